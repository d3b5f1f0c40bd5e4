/* SPDX-License-Identifier: BSD-2-Clause */
/* A TCP connection whose NFS calls a test makes by hand, many at once, from the
 * address that it wants. */
#pragma once

#include "tests/server/nfs_client.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"

#define JUKEBOX		10008
#define PEER_MAX	512		/* calls of a connection */

struct peer {
	int	 fd;
	uint32_t first, xid;		/* of its calls */
	bool	 answered[PEER_MAX];
	uint32_t last;			/* the xid of the last reply */
	uint32_t status;		/* ... its status */
	unsigned jukebox;		/* replies that say so */
};

static void peer_open(struct peer *p, const char *from, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	static uint32_t first;

	memset(p, 0, sizeof(*p));
	p->first = p->xid = first += 1u << 20;	/* no two calls are one */
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(p->fd, 0);
	inet_pton(AF_INET, from, &a.sin_addr);
	ck_assert_int_eq(bind(p->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons(port);
	ck_assert_int_eq(connect(p->fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

static _Thread_local uint32_t call_words[16 + 16 + (1u << 18)];

static void put(uint32_t **w, uint32_t v)
{
	*(*w)++ = htonl(v);
}

/* A call up to its handle.  Returns where the rest goes. */
static uint32_t *put_call(struct peer *p, uint32_t proc, const void *fh,
			  uint32_t len)
{
	const struct rpc_header h = { .xid = p->xid++, .prog = NFS_PROGRAM,
				      .vers = NFS_V3, .proc = proc };
	struct xdr_out x;

	memset(call_words, 0, 128);
	record_call(&x, call_words, 128, &h);
	xdr_put_opaque(&x, fh, len);
	return call_words + xdr_out_len(&x) / 4;
}

/* The call ends at @w. */
static bool send_call(struct peer *p, const uint32_t *w)
{
	const char *at = (const char *)call_words;
	size_t left = (size_t)(w - call_words) * 4;
	ssize_t n;

	record_put_mark(call_words, left - RECORD_MARK_SIZE);
	for (; left > 0; at += n, left -= (size_t)n) {
		n = send(p->fd, at, left, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
	}
	return true;
}

static bool send_getattr(struct peer *p, const struct nfs3_fh *fh)
{
	return send_call(p, put_call(p, NFS3_GETATTR, fh->data, fh->len));
}

static bool send_write(struct peer *p, nfs_fh3 fh, uint32_t len)
{
	uint32_t *w = put_call(p, NFS3_WRITE, fh.data.data_val,
			       fh.data.data_len);

	w += 2;
	put(&w, len);
	put(&w, UNSTABLE);
	put(&w, len);
	return send_call(p, w + len / 4);
}

static bool send_read(struct peer *p, nfs_fh3 fh, uint32_t len)
{
	uint32_t *w = put_call(p, NFS3_READ, fh.data.data_val,
			       fh.data.data_len);

	w += 2;
	put(&w, len);
	return send_call(p, w);
}

/* One whole reply, to a call that was not answered yet. */
static bool receive(struct peer *p)
{
	static uint32_t reply[1u << 16];
	uint32_t n;

	if (record_receive(p->fd, reply, sizeof(reply)) == 0)
		return false;
	p->last = ntohl(reply[0]);
	n = p->last - p->first;
	ck_assert_uint_lt(n, p->xid - p->first);
	if (n < PEER_MAX) {
		ck_assert(!p->answered[n]);
		p->answered[n] = true;
	}
	p->status = ntohl(reply[6]);
	p->jukebox += p->status == JUKEBOX;
	return true;
}

/* All calls are answered; returns how many with JUKEBOX. */
static unsigned receive_rest(struct peer *p)
{
	for (uint32_t n = 0; n < p->xid - p->first; n++)
		while (!p->answered[n])
			ck_assert(receive(p));
	return p->jukebox;
}

/* All calls are answered, none with JUKEBOX. */
static void peer_end(struct peer *p)
{
	ck_assert_uint_eq(receive_rest(p), 0);
	close(p->fd);
}
