/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory - that of the caller: structs of any version, the memory that calls
 * name, and the regions that outlive them.
 */
#include "client/rpcrdma/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "lib/xdr.h"

int client_check_size(const void *s, size_t size, size_t first, size_t known)
{
	const uint8_t *byte = s;

	if (size < first)
		return -EINVAL;
	for (size_t i = known; i < size; i++)
		if (byte[i] != 0)
			return -E2BIG;
	return 0;
}

/* ---- what a call names */

static int take_memory(struct rpcrdma_memory *to,
		       const struct gannet_rpcrdma_memory *from)
{
	const struct iovec one = { from->addr, from->len };
	const struct iovec *iov = from->niov ? from->iov : &one;
	unsigned n = from->niov ? from->niov : 1;
	uint64_t len = 0;

	if (n > GANNET_RPCRDMA_SEGMENTS)
		return -EMSGSIZE;
	for (unsigned i = 0; i < n; i++) {
		if (iov[i].iov_len > UINT32_MAX)
			return -EINVAL;
		len += iov[i].iov_len;
	}
	if (len > UINT32_MAX)
		return -EINVAL;
	*to = (struct rpcrdma_memory){
		.addr = from->addr, .len = (uint32_t)len,
		.niov = from->niov, .iov = from->iov,
	};
	return 0;
}

/*
 * On the wire positions count what sources carry, padded (RFC 8166 section
 * 3.4.5); the caller's are those of its own message.
 */
static int take_sources(struct client_call *call)
{
	const struct gannet_rpcrdma_call *u = call->user;
	struct rpcrdma_request *q = &call->q;
	uint64_t at, carried = 0;
	int err;

	q->nreads = u->nsources;
	for (unsigned i = 0; i < u->nsources; i++) {
		err = take_memory(&q->read[i].mem, &u->source[i].mem);
		if (err < 0)
			return err;
		at = u->source[i].position + carried;
		if (at > UINT32_MAX)
			return -EINVAL;
		q->read[i].position = (uint32_t)at;
		carried += (uint64_t)q->read[i].mem.len +
			   xdr_pad(q->read[i].mem.len);
	}
	return 0;
}

int client_take_call(struct client_call *call)
{
	const struct gannet_rpcrdma_call *u = call->user;
	struct rpcrdma_request *q = &call->q;
	int err;

	q->call = u->msg;
	q->call_len = u->msg_len;
	err = take_sources(call);
	q->nwrites = u->nsinks;
	for (unsigned i = 0; i < u->nsinks && err == 0; i++)
		err = take_memory(&q->write[i], &u->sink[i]);
	if (err == 0 && u->reply_mem.niov > 0)
		err = -EINVAL;
	if (err == 0)
		err = take_memory(&q->reply, &u->reply_mem);
	return err;
}

