/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire - a TCP connection that carries calls and replies.
 *
 * Receiving: the beginning of a record comes into a small buffer, with any
 * bytes that have arrived; the rest of a long fragment comes straight into the
 * record.  With TLS, tls.c's functions stand in for the socket's.
 */
#include "tools/nfs/wire.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/util.h"
#include "lib/xdr.h"
#include "transport/addr.h"
#include "transport/socket/socket.h"
#include "wire/getport.h"
#include "wire/nlm.h"
#include "wire/record.h"

enum {
	CONNECT_MS = 10000,
	RECORD_MAX = 16 << 20,		/* bytes; READs are shorter */
};

struct nfsc_wire {
	int		     fd;
	struct wire_guard   *guard;	/* owned; NULL: bytes go in clear */
	bool		     full;	/* receiving waits for room to send */
	uint32_t	     xid;	/* of wire_call() */
	struct cds_list_head unsent;

	struct record_in     record;
	uint8_t		    *buf;	/* owned: the record so far */
	size_t		     len, size;
	bool		     whole;	/* it was given out */
	const uint8_t	    *at, *end;	/* received, and not looked at */
	uint8_t		     small[8192];
};

/* ---- bytes */

ssize_t wire_read(struct nfsc_wire *w, void *to, size_t len)
{
	struct iovec iov = { to, len };
	ssize_t n;

	if (w->guard) {
		n = w->guard->recv(w->guard, &iov);
		w->full = n == -EBUSY;
	} else {
		n = recv(w->fd, to, len, MSG_DONTWAIT);
		if (n < 0)
			n = errno == EINTR ? -EAGAIN : -errno;
	}
	if (n == -EAGAIN || n == -EBUSY)
		return 0;
	return n == 0 ? -ECONNRESET : n;
}

ssize_t wire_write(struct nfsc_wire *w, struct iovec *iov, unsigned n)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t sent;

	if (w->guard) {
		sent = w->guard->send(w->guard, iov, n);
	} else {
		do
			sent = sendmsg(w->fd, &msg,
				       MSG_NOSIGNAL | MSG_DONTWAIT);
		while (sent < 0 && errno == EINTR);
		sent = sent < 0 ? -errno : sent;
	}
	return sent == -EAGAIN ? 0 : sent;
}

bool wire_pending(struct nfsc_wire *w)
{
	return w->guard && !w->full && w->guard->pending(w->guard);
}

int wire_protect(struct nfsc_wire *w, struct wire_guard *g)
{
	if (w->at != w->end)
		return -EPROTO;
	w->guard = g;
	return 0;
}

/* ---- sending */

bool wire_sent(const struct wire_out *m)
{
	uint32_t pad = xdr_pad(m->data_len);

	return m->sent == RECORD_MARK_SIZE + m->head_len +
			  (size_t)m->data_len + pad;
}

/* The parts of @m that are not sent yet; returns how many. */
static int parts(const struct wire_out *m, uint32_t *mark, struct iovec iov[4])
{
	static const uint8_t zeros[4];
	uint32_t pad = xdr_pad(m->data_len);
	const struct iovec all[] = {
		{ mark, RECORD_MARK_SIZE },
		{ (void *)(uintptr_t)m->head, m->head_len },
		{ (void *)(uintptr_t)m->data, m->data_len },
		{ (void *)(uintptr_t)zeros, pad },
	};
	size_t skip = m->sent;
	int n = 0;

	record_put_mark(mark, (size_t)m->head_len + m->data_len + pad);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		size_t past = MIN(skip, all[i].iov_len);

		skip -= past;
		if (past == all[i].iov_len)
			continue;
		iov[n].iov_base = (uint8_t *)all[i].iov_base + past;
		iov[n++].iov_len = all[i].iov_len - past;
	}
	return n;
}

/* Sends as much as the socket takes.  0 or -errno. */
static int push(struct nfsc_wire *w)
{
	struct iovec iov[4];
	uint32_t mark;
	ssize_t n;

	while (!cds_list_empty(&w->unsent)) {
		struct wire_out *m = cds_list_first_entry(&w->unsent,
						struct wire_out, link);

		n = wire_write(w, iov, (unsigned)parts(m, &mark, iov));
		if (n <= 0)
			return (int)n;
		m->sent += (size_t)n;
		if (wire_sent(m))
			cds_list_del(&m->link);
	}
	return 0;
}

void wire_send(struct nfsc_wire *w, struct wire_out *m)
{
	m->sent = 0;
	cds_list_add_tail(&m->link, &w->unsent);
	push(w);		/* wire_receive() also gets the error */
}

/* ---- receiving */

static int grow_wire(struct nfsc_wire *w, size_t more)
{
	size_t size = MAX(w->size, sizeof(w->small));
	uint8_t *buf;

	while (size - w->len < more)
		size *= 2;
	if (size == w->size)
		return 0;
	buf = realloc(w->buf, size);
	if (!buf)
		return -ENOMEM;
	w->buf = buf;
	w->size = size;
	return 0;
}

/* Processes the received bytes.  1: the record is whole; 0: more must come. */
static int assemble(struct nfsc_wire *w)
{
	struct record_span span;

	while (w->at < w->end) {
		switch (record_next(&w->record, &w->at, w->end, &span)) {
		case RECORD_BAD:
			return -EBADMSG;
		case RECORD_MORE:
			continue;
		case RECORD_SPAN:
			break;
		}
		if (span.len > 0 && span.data != w->buf + w->len) {
			if (grow_wire(w, span.len) < 0)
				return -ENOMEM;
			memcpy(w->buf + w->len, span.data, span.len);
		}
		w->len += span.len;
		if (span.end)
			return 1;
	}
	return 0;
}

/* Receives the available bytes.  1, 0 if nothing is, or -errno. */
static int fill_wire(struct nfsc_wire *w)
{
	size_t len = w->record.left;
	uint8_t *to = w->small;
	ssize_t n;

	if (len <= sizeof(w->small)) {
		len = sizeof(w->small);
	} else {
		if (grow_wire(w, len) < 0)
			return -ENOMEM;
		to = w->buf + w->len;
	}
	n = wire_read(w, to, len);
	if (n <= 0)
		return (int)n;
	w->at = to;
	w->end = to + n;
	return 1;
}

void wire_poll(struct nfsc_wire *w, struct pollfd *p)
{
	/* While it is full, bytes that have come are no event: they wait. */
	*p = (struct pollfd){ .fd = w->fd,
			      .events = w->full ? POLLOUT : POLLIN };
	if (!cds_list_empty(&w->unsent))
		p->events |= POLLOUT;
}

static int wait_for_more(struct nfsc_wire *w, int ms)
{
	struct pollfd p;
	int n;

	wire_poll(w, &p);
	n = poll(&p, 1, ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return n == 0 ? -ETIMEDOUT : 0;
}

int wire_receive(struct nfsc_wire *w, int ms, struct xdr_in *x)
{
	int got;

	if (w->whole)
		w->len = 0;
	w->whole = false;
	while ((got = assemble(w)) == 0) {
		int err = push(w);

		/* The reason why nothing is sent can have come. */
		if (err == 0 || w->guard)
			got = fill_wire(w);
		if (err == 0 || got == -ENOKEY)
			err = got;
		if (got == 0 && err == 0)
			err = wait_for_more(w, ms);
		if (err < 0)
			return err;
	}
	if (got < 0)
		return got;
	w->whole = true;
	xdr_in_init(x, w->buf, w->len);
	return 0;
}

int wire_call(struct nfsc_wire *w, const struct rpc_procedure *p,
	      const struct nfsc_config *c, const void *args, uint32_t len,
	      int ms, struct xdr_in *x)
{
	uint8_t header[RPC_HEADER_MAX];
	struct wire_out m = { .data = args, .data_len = len };
	struct xdr_out out;
	int err;

	xdr_out_init(&out, header, sizeof(header));
	rpc_put_call(&out, ++w->xid, p, c);
	m.head = header;
	m.head_len = (uint32_t)xdr_out_len(&out);
	wire_send(w, &m);
	err = wire_receive(w, ms, x);
	/* It is this frame's: it can't wait for its rest. */
	if (!wire_sent(&m))
		cds_list_del(&m.link);
	return err < 0 ? err : rpc_get_reply(x, w->xid);
}

static int patience_ms(const struct nfsc_config *c)
{
	return c->connect_ms ? (int)c->connect_ms : CONNECT_MS;
}

int wire_call_locks(struct nfsc_wire *w, const struct nfsc_config *c,
		    uint32_t procedure, const struct nlm_args *a,
		    uint32_t *status)
{
	const struct rpc_procedure p = { RPC_NLM, 4, procedure };
	int ms = patience_ms(c);
	struct nlm_res_args res;
	uint8_t args[512];
	struct xdr_out out;
	struct xdr_in x;
	int err;

	xdr_out_init(&out, args, sizeof(args));
	nlm_put_args(&out, a, procedure, true);
	err = wire_call(w, &p, c, args, (uint32_t)xdr_out_len(&out), ms, &x);
	if (err < 0)
		return err;
	if (!nlm_get_res(&x, &res))
		return -EBADMSG;
	*status = res.status;
	return 0;
}

/* ---- connecting */

static void init_wire(struct nfsc_wire *w)
{
	w->fd = -1;
	CDS_INIT_LIST_HEAD(&w->unsent);
	record_in_init(&w->record, RECORD_MAX);
	if (getrandom(&w->xid, sizeof(w->xid), GRND_NONBLOCK) < 0)
		w->xid = (uint32_t)getpid();
}

int wire_connect(const struct sockaddr *to, bool reserved, int ms)
{
	const struct sockaddr_storage from = { .ss_family = to->sa_family };
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK |
			SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (reserved)
		socket_bind_reserved(fd, &from);
	socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	err = socket_connect(fd, to, ms);
	if (err < 0)
		close(fd);
	return err < 0 ? err : fd;
}

int wire_dial(const struct sockaddr *host, uint16_t port, int ms, bool reserved,
	      struct nfsc_wire **out)
{
	struct nfsc_wire *w = calloc(1, sizeof(*w));
	struct sockaddr_storage to;

	if (!w)
		return -ENOMEM;
	init_wire(w);
	xprt_addr_copy(&to, host);
	if (to.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&to)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&to)->sin_port = htons(port);
	w->fd = wire_connect((const struct sockaddr *)&to, reserved, ms);
	if (w->fd < 0) {
		int err = w->fd;

		wire_close(w);
		return err;
	}
	*out = w;
	return 0;
}

/* Asks the rpcbind that @w leads to. */
static int ask_rpcbind(struct nfsc_wire *w, const struct getport *g, int ms,
		       uint16_t *port)
{
	const struct rpc_procedure p = {
		RPCBIND_PROGRAM, getport_version(g), PMAPPROC_GETPORT,
	};
	uint8_t args[64];
	struct xdr_out out;
	struct xdr_in x;
	int err;

	xdr_out_init(&out, args, sizeof(args));
	getport_put(&out, g);
	err = wire_call(w, &p, NULL, args, (uint32_t)xdr_out_len(&out), ms,
			&x);
	if (err < 0)
		return err;
	if (!getport_get(&x, g, port))
		return -EBADMSG;
	return *port ? 0 : -EPROTONOSUPPORT;
}

int wire_find_port(const struct sockaddr *host, uint32_t program,
		   uint32_t version, int ms, uint16_t *port)
{
	const struct getport g = { host->sa_family, IPPROTO_TCP, program,
				   version };
	struct nfsc_wire *w;
	int err = wire_dial(host, RPCBIND_PORT, ms, true, &w);

	if (err < 0)
		return err;
	err = ask_rpcbind(w, &g, ms, port);
	wire_close(w);
	return err;
}

int wire_secure(struct nfsc_wire *w, const struct rpc_procedure *null,
		const struct nfsc_config *c, const char *host)
{
	return c->tls ? c->tls->secure(c->tls, w, null, host,
				       patience_ms(c)) : 0;
}

/* A program of a host. */
struct aim {
	const char *host;
	uint16_t    port;		/* 0: rpcbind's */
	struct rpc_procedure null;
	const struct nfsc_config *c;
};

/* Connects to the program at one address of its host. */
static int open_at(const struct sockaddr *at, const struct aim *aim,
		   struct nfsc_wire **out)
{
	const struct rpc_procedure *null = &aim->null;
	uint16_t port = aim->port;
	int err = 0, ms = patience_ms(aim->c);
	struct nfsc_wire *w;
	struct xdr_in x;

	if (port == 0)
		err = wire_find_port(at, null->program, null->version, ms,
				     &port);
	if (err == 0)
		err = wire_dial(at, port, ms, true, &w);
	if (err < 0)
		return err;
	err = wire_secure(w, null, aim->c, aim->host);
	if (err == 0)
		err = wire_call(w, null, NULL, NULL, 0, ms, &x);
	if (err < 0) {
		wire_close(w);
		return err;
	}
	*out = w;
	return 0;
}

int wire_open(const char *host, uint16_t port, uint32_t program,
	      uint32_t version, const struct nfsc_config *c,
	      struct nfsc_wire **out)
{
	const struct aim aim = { host, port, { program, version, 0 }, c };
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *ai;
	int one, err = -EHOSTUNREACH;

	if (getaddrinfo(host, NULL, &hints, &list) != 0)
		return err;
	/* Another server might listen at one of them: a server that listens
	 * only on IPv4 leaves its port to other servers on IPv6. */
	for (ai = list; ai && err < 0; ai = ai->ai_next) {
		one = open_at(ai->ai_addr, &aim, out);
		/* A certificate's fault says more than an address without a
		 * server. */
		if (one == 0 || err != -ENOKEY)
			err = one;
	}
	freeaddrinfo(list);
	return err;
}

int wire_peer(const struct nfsc_wire *w, struct sockaddr_storage *out)
{
	socklen_t len = sizeof(*out);

	memset(out, 0, sizeof(*out));
	return getpeername(w->fd, (struct sockaddr *)out, &len) < 0 ? -errno :
	       0;
}

bool wire_is_local(const struct nfsc_wire *w)
{
	struct sockaddr_storage here, there;

	if (socket_local(w->fd, &here) < 0 || wire_peer(w, &there) < 0)
		return false;
	return xprt_addr_same_host((struct sockaddr *)&here,
				   (struct sockaddr *)&there);
}

void wire_close(struct nfsc_wire *w)
{
	if (w->guard)
		w->guard->close(w->guard);
	if (w->fd >= 0)
		close(w->fd);
	free(w->buf);
	free(w);
}
