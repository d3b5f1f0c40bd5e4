/* SPDX-License-Identifier: BSD-2-Clause */
/* crc32c - the CRC of MPA (RFC 5044 section 4.4), by ISA-L.  Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <isa-l/crc.h>

/*
 * Continues @crc, 0 at the beginning, over @len bytes of @data, less than
 * 2 GiB.  The CRC of "123456789" is 0xe3069283; on the wire the least
 * significant byte goes first.  Any thread.
 */
static inline uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	/* It only reads. */
	return ~crc32_iscsi((unsigned char *)(uintptr_t)data,
			    (int)len, ~crc);
}
