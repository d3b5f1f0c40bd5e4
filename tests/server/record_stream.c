/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/server/record_stream.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/uio.h>

void record_send(int fd, struct iovec *iov, int n)
{
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = (size_t)n };

	while (mh.msg_iovlen > 0) {
		ssize_t len = sendmsg(fd, &mh, MSG_NOSIGNAL);

		if (len < 0 && errno != EINTR)
			return;
		while (mh.msg_iovlen > 0 && len >= 0 &&
		       (size_t)len >= mh.msg_iov->iov_len) {
			len -= (ssize_t)mh.msg_iov->iov_len;
			mh.msg_iov++;
			mh.msg_iovlen--;
		}
		if (len > 0) {
			mh.msg_iov->iov_base =
				(char *)mh.msg_iov->iov_base + len;
			mh.msg_iov->iov_len -= (size_t)len;
		}
	}
}

static bool receive_all(int fd, void *p, size_t len)
{
	return recv(fd, p, len, MSG_WAITALL) == (ssize_t)len;
}

uint32_t record_receive(int fd, void *msg, uint32_t max)
{
	uint32_t len = 0, mark, part;

	do {
		if (!receive_all(fd, &mark, sizeof(mark)))
			return 0;
		mark = ntohl(mark);
		part = mark & ~RECORD_LAST;
		if (part > max - len ||
		    !receive_all(fd, (char *)msg + len, part))
			return 0;
		len += part;
	} while (!(mark & RECORD_LAST));
	return len;
}

void record_call(struct xdr_out *x, void *buf, size_t size,
		 const struct rpc_header *h)
{
	xdr_out_init(x, buf, size);
	xdr_reserve(x, RECORD_MARK_SIZE);
	rpc_header_call(x, h, &(struct rpc_auth_sys){ .machine = "" });
}

size_t record_end(struct xdr_out *x)
{
	size_t len = xdr_out_len(x);

	assert(!x->bad);
	record_put_mark(x->start, len - RECORD_MARK_SIZE);
	return len;
}

bool record_post(int fd, struct xdr_out *x)
{
	size_t len = record_end(x);

	for (size_t at = 0; at < len; ) {
		ssize_t n = send(fd, x->start + at, len - at, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

void record_answer(int fd, uint32_t proc, uint32_t first, uint32_t second)
{
	uint8_t wire[1024];
	struct rpc_header h;
	struct xdr_out out;
	struct xdr_in x;
	bool ok;

	xdr_in_init(&x, wire, record_receive(fd, wire, sizeof(wire)));
	ok = rpc_header_decode(&x, &h) == RPC_HEADER_CALL && h.proc == proc;
	assert(ok);
	xdr_out_init(&out, wire, sizeof(wire));
	xdr_reserve(&out, RECORD_MARK_SIZE);
	rpc_header_accepted(&out, h.xid, RPC_SUCCESS);
	xdr_put_u32(&out, first);
	xdr_put_u32(&out, second);
	ok = record_post(fd, &out);
	assert(ok);
}
