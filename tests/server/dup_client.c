/* SPDX-License-Identifier: BSD-2-Clause */
/* dup_client - a client that can send anything twice. */
#include "tests/server/dup_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"
#include "transport/addr.h"

struct nfs3_fh dup_dir;

static void begin(struct dup_call *c, uint32_t xid, uint32_t proc)
{
	const struct rpc_header h = { .xid = xid, .prog = NFS3_PROGRAM,
				      .vers = NFS3_VERSION, .proc = proc };

	c->xid = xid;
	record_call(&c->out, c->buf, sizeof(c->buf), &h);
}

static void put_words(struct dup_call *c, unsigned n, uint32_t word)
{
	while (n-- > 0)
		xdr_put_u32(&c->out, word);
}

static void put_fh(struct dup_call *c, const struct nfs3_fh *fh)
{
	xdr_put_opaque(&c->out, fh->data, fh->len);
}

static void put_name(struct dup_call *c, const char *name)
{
	put_fh(c, &dup_dir);
	xdr_put_opaque(&c->out, name, (uint32_t)strlen(name));
}

void dup_name(struct dup_call *c, uint32_t xid, uint32_t proc,
	      const char *name)
{
	begin(c, xid, proc);
	put_name(c, name);
	record_end(&c->out);
}

void dup_create(struct dup_call *c, uint32_t xid, const char *name,
		enum dup_create how)
{
	begin(c, xid, NFSPROC3_CREATE);
	put_name(c, name);
	xdr_put_u32(&c->out, how);
	put_words(c, 6, 0);
	record_end(&c->out);
}

void dup_mkdir(struct dup_call *c, uint32_t xid, const char *name)
{
	begin(c, xid, NFSPROC3_MKDIR);
	put_name(c, name);
	put_words(c, 6, 0);
	record_end(&c->out);
}

void dup_rename(struct dup_call *c, uint32_t xid, const char *from,
		const char *to)
{
	begin(c, xid, NFSPROC3_RENAME);
	put_name(c, from);
	put_name(c, to);
	record_end(&c->out);
}

void dup_link(struct dup_call *c, uint32_t xid, const struct nfs3_fh *file,
	      const char *name)
{
	begin(c, xid, NFSPROC3_LINK);
	put_fh(c, file);
	put_name(c, name);
	record_end(&c->out);
}

void dup_write(struct dup_call *c, uint32_t xid, const struct nfs3_fh *file,
	       const void *data, uint32_t len)
{
	begin(c, xid, NFSPROC3_WRITE);
	put_fh(c, file);
	xdr_put_u64(&c->out, 0);
	xdr_put_u32(&c->out, len);
	xdr_put_u32(&c->out, 0);
	xdr_put_opaque(&c->out, data, len);
	record_end(&c->out);
}

void dup_getattr(struct dup_call *c, uint32_t xid,
		 const struct nfs3_fh *file)
{
	begin(c, xid, NFSPROC3_GETATTR);
	put_fh(c, file);
	record_end(&c->out);
}

void dup_read(struct dup_call *c, uint32_t xid, const struct nfs3_fh *file,
	      uint32_t len)
{
	begin(c, xid, NFSPROC3_READ);
	put_fh(c, file);
	xdr_put_u64(&c->out, 0);
	xdr_put_u32(&c->out, len);
	record_end(&c->out);
}

/* Binds to a port of @own's address that the system gives to no socket by
 * itself: it is free when the client comes back. */
static void bind_own(int fd, struct sockaddr *own)
{
	int err;

	/* The port is in the same place for both families. */
	do {
		((struct sockaddr_in *)own)->sin_port =
			htons((uint16_t)(10240 + arc4random_uniform(20480)));
		err = bind(fd, own, xprt_addr_len(own));
	} while (err < 0 && errno == EADDRINUSE);
	ck_assert_int_eq(err, 0);
}

int dup_connect(int family, uint16_t port, const char *from)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr *sa = (struct sockaddr *)&a6;
	const struct timeval minute = { .tv_sec = 60 };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	ck_assert_int_ge(fd, 0);
	/* A reply that never comes fails its test, even without a fork. */
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
	/* A socket that does not read would keep a second call until the first
	 * is acknowledged. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (family == AF_INET)
		sa = (struct sockaddr *)&a;
	inet_pton(AF_INET, from ? from : "127.0.0.1", &a.sin_addr);
	bind_own(fd, sa);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = a6.sin6_port = htons(port);
	ck_assert_int_eq(connect(fd, sa, xprt_addr_len(sa)), 0);
	return fd;
}

int dup_connect_from(const struct sockaddr_storage *own, uint16_t port)
{
	const struct timeval minute = { .tv_sec = 60 };
	struct sockaddr_storage to = *own;
	int fd = socket(own->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	ck_assert_int_ge(fd, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)own,
			      xprt_addr_len((const struct sockaddr *)own)), 0);
	/* The port is in the same place for both families. */
	((struct sockaddr_in *)&to)->sin_port = htons(port);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to,
				 xprt_addr_len((struct sockaddr *)&to)), 0);
	return fd;
}

void dup_send(int fd, const struct dup_call *c)
{
	size_t len = xdr_out_len(&c->out);

	ck_assert_int_eq(send(fd, c->buf, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void receive(int fd, void *to, size_t len)
{
	ck_assert_int_eq(recv(fd, to, len, MSG_WAITALL), (ssize_t)len);
}

/* Bytes beyond the reply's memory are read and dropped. */
void dup_take(int fd, struct dup_reply *r)
{
	uint32_t mark, len, n;
	char rest[4096];

	receive(fd, &mark, sizeof(mark));
	len = be32toh(mark) & ~RECORD_LAST;
	n = MIN(len, (uint32_t)sizeof(r->buf));
	receive(fd, r->buf, n);
	xdr_in_init(&r->in, r->buf, n);
	for (; n < len; n += MIN(len - n, (uint32_t)sizeof(rest)))
		receive(fd, rest, MIN(len - n, (uint32_t)sizeof(rest)));
	r->xid = xdr_get_u32(&r->in);
	ck_assert_uint_eq(xdr_get_u32(&r->in), 1);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(xdr_get_u32(&r->in), 0);
	r->status = xdr_get_u32(&r->in);
}

uint32_t dup_status(int fd, const struct dup_call *c)
{
	struct dup_reply r;

	dup_take(fd, &r);
	ck_assert_uint_eq(r.xid, c->xid);
	return r.status;
}

uint32_t dup_do(int fd, const struct dup_call *c)
{
	dup_send(fd, c);
	return dup_status(fd, c);
}

uint32_t dup_lookup(int fd, const char *name, struct nfs3_fh *fh)
{
	struct dup_call c;
	struct dup_reply r;
	uint32_t len;

	dup_name(&c, 0x10000000, NFSPROC3_LOOKUP, name);
	dup_send(fd, &c);
	dup_take(fd, &r);
	if (r.status == NFS3_OK && fh) {
		len = xdr_get_u32(&r.in);
		ck_assert_uint_le(len, sizeof(fh->data));
		fh->len = len;
		memcpy(fh->data, r.in.p, len);
	}
	return r.status;
}

bool dup_exists(int fd, const char *name)
{
	uint32_t status = dup_lookup(fd, name, NULL);

	ck_assert(status == NFS3_OK || status == NFS3ERR_NOENT);
	return status == NFS3_OK;
}

void dup_make(int fd, const char *name)
{
	struct dup_call c;

	dup_create(&c, 0x20000000, name, DUP_GUARDED);
	ck_assert_uint_eq(dup_do(fd, &c), NFS3_OK);
}

void dup_deafen(int fd)
{
	/* The kernel keeps the header all the same. */
	struct sock_filter one_byte = BPF_STMT(BPF_RET | BPF_K, 1);
	struct sock_fprog prog = { 1, &one_byte };

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
				    sizeof(prog)), 0);
}

void dup_reset(int fd)
{
	struct linger now = { 1, 0 };

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now,
				    sizeof(now)), 0);
	close(fd);
}
