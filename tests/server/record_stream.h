/* SPDX-License-Identifier: BSD-2-Clause */
/* record_stream - whole RPC messages over a TCP connection (RFC 5531 11). */
#ifndef GANNET_TESTS_SERVER_RECORD_STREAM_H
#define GANNET_TESTS_SERVER_RECORD_STREAM_H

#include <stdint.h>

#include "wire/record.h"

struct iovec;

/* Sends it all, unless the connection ends.  Changes @iov. */
void record_send(int fd, struct iovec *iov, int n);
/* Waits for a whole record of at most @max bytes; its length, or 0 at the
 * connection's end and after a longer one. */
uint32_t record_receive(int fd, void *msg, uint32_t max);

#endif
