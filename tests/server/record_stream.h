/* SPDX-License-Identifier: BSD-2-Clause */
/* record_stream - whole RPC messages over a TCP connection (RFC 5531 11). */
#pragma once

#include <stdint.h>

#include "wire/header.h"
#include "wire/record.h"

struct iovec;

/* Sends it all, unless the connection ends.  Changes @iov. */
void record_send(int fd, struct iovec *iov, int n);
/* Waits for a whole record of at most @max bytes; its length, or 0 at the
 * connection's end and after a longer one. */
uint32_t record_receive(int fd, void *msg, uint32_t max);

/* Begins a call of root's in @size bytes at @buf, with room for its mark; its
 * arguments follow, and then record_end(). */
void record_call(struct xdr_out *x, void *buf, size_t size,
		 const struct rpc_header *h);
/* Puts the mark; returns the length with it. */
size_t record_end(struct xdr_out *x);
/* ... and sends it.  False: it could not be sent whole. */
bool record_post(int fd, struct xdr_out *x);
/* As a server: waits for a call of @proc, and answers with two words. */
void record_answer(int fd, uint32_t proc, uint32_t first, uint32_t second);
