/* SPDX-License-Identifier: BSD-2-Clause */
/* crc32c - the CRC of MPA (RFC 5044 section 4.4).  Pure. */
#ifndef GANNET_TRANSPORT_FABRIC_IWARP_CRC32C_H
#define GANNET_TRANSPORT_FABRIC_IWARP_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The CRC of what had @crc, followed by @data.  Begins with 0; of
 * "123456789" it is 0xe3069283.  On the wire it goes least significant byte
 * first.  Any thread.
 */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

/* The same from tables, for processors without instructions for it. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len);
/* Does crc32c() use instructions? */
bool crc32c_is_fast(void);

#endif
