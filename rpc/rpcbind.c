/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration with rpcbind (RFC 1833, version 4 of the protocol).
 *
 * rpcb_set() of libtirpc would do for the netids in /etc/netconfig, where the
 * RDMA ones are not, and it waits for a minute when nobody answers.  So these
 * functions make the calls themselves, with libtirpc's client.
 *
 * rpcbind takes SET and UNSET from this machine only: from any user through
 * its socket, from a reserved port through loopback.
 */
#include "rpc/rpcbind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rpc/rpc.h>
#include <rpc/rpcb_prot.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define RPCBIND_SOCKET	"/run/rpcbind.sock"
#define RPCBIND_PORT	111

struct rpcbind {
	CLIENT	*client;	/* owns its socket */
};

static const struct timeval timeout = { .tv_sec = RPCBIND_TIMEOUT };

/* A connected socket, or -errno.  SO_SNDTIMEO bounds connect(), too. */
static int dial(const struct sockaddr *at, socklen_t len)
{
	int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	/* Without privilege this fails; then rpcbind will refuse us. */
	if (at->sa_family != AF_UNIX)
		bindresvport_sa(fd, NULL);
	if (connect(fd, at, len) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err == -EAGAIN || err == -EINPROGRESS ? -ETIMEDOUT : err;
}

static int dial_default(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX,
				  .sun_path = RPCBIND_SOCKET };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(RPCBIND_PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = dial((struct sockaddr *)&un, sizeof(un));

	return fd >= 0 ? fd : dial((struct sockaddr *)&in, sizeof(in));
}

int rpcbind_open(const struct sockaddr *at, socklen_t len,
		 struct rpcbind **out)
{
	struct netbuf nb = { 0 };
	struct rpcbind *rb;
	struct sockaddr_storage ss = { 0 };
	int err, fd;

	rb = calloc(1, sizeof(*rb));
	if (!rb)
		return -ENOMEM;
	fd = at ? dial(at, len) : dial_default();
	if (fd < 0) {
		err = fd == -ENOENT || fd == -EACCES ? -ECONNREFUSED : fd;
		goto fail;
	}
	nb.buf = &ss;
	nb.maxlen = nb.len = sizeof(ss);
	rb->client = clnt_vc_create(fd, &nb, RPCBPROG, RPCBVERS4, 0, 0);
	if (!rb->client) {
		close(fd);
		err = -ENOMEM;
		goto fail;
	}
	clnt_control(rb->client, CLSET_FD_CLOSE, NULL);
	*out = rb;
	return 0;

fail:
	free(rb);
	return err;
}

void rpcbind_close(struct rpcbind *rb)
{
	auth_destroy(rb->client->cl_auth);
	clnt_destroy(rb->client);
	free(rb);
}

char *rpcbind_uaddr(const struct sockaddr *addr, char *out)
{
	const struct sockaddr_in *in = (const void *)addr;
	const struct sockaddr_in6 *in6 = (const void *)addr;
	char host[INET6_ADDRSTRLEN] = "";
	unsigned port;

	if (addr->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		port = ntohs(in6->sin6_port);
	} else {
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		port = ntohs(in->sin_port);
	}
	snprintf(out, RPCBIND_UADDR_MAX, "%s.%u.%u", host, port >> 8,
		 port & 255);
	return out;
}

static bool_t put_nothing(XDR *xdr, ...)
{
	return TRUE;
}

static int rpcbind_call(struct rpcbind *rb, rpcproc_t proc, xdrproc_t put,
			void *args, xdrproc_t get, void *res)
{
	switch (clnt_call(rb->client, proc, put, args, get, res, timeout)) {
	case RPC_SUCCESS:
		return 0;
	case RPC_TIMEDOUT:
		return -ETIMEDOUT;
	case RPC_AUTHERROR:
		return -EACCES;
	case RPC_PROGUNAVAIL:
	case RPC_PROGVERSMISMATCH:
	case RPC_PROCUNAVAIL:
		return -EPROTONOSUPPORT;
	default:
		return -EIO;
	}
}

/* SET or UNSET.  0, -EACCES when the answer is FALSE, or -errno. */
static int rpcbind_change(struct rpcbind *rb, rpcproc_t proc, struct rpcb *map)
{
	bool_t done = FALSE;
	int err;

	err = rpcbind_call(rb, proc, (xdrproc_t)xdr_rpcb, map,
			   (xdrproc_t)xdr_bool, &done);
	return err ? err : done ? 0 : -EACCES;
}

/* The strings are borrowed; libtirpc does not write to them. */
static void rpcbind_fill(struct rpcb *map, uint32_t prog, uint32_t vers,
			 const char *netid, char *uaddr)
{
	static char owner[16];

	snprintf(owner, sizeof(owner), "%u", (unsigned)geteuid());
	map->r_prog = prog;
	map->r_vers = vers;
	map->r_netid = (char *)(uintptr_t)netid;
	map->r_addr = uaddr;
	map->r_owner = owner;
}

int rpcbind_set(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		const char *netid, const struct sockaddr *addr)
{
	char uaddr[RPCBIND_UADDR_MAX];
	struct rpcb map;
	int err;

	rpcbind_fill(&map, prog, vers, netid, rpcbind_uaddr(addr, uaddr));
	err = rpcbind_change(rb, RPCBPROC_SET, &map);
	if (err == -EACCES) {
		err = rpcbind_change(rb, RPCBPROC_UNSET, &map);
		if (!err)
			err = rpcbind_change(rb, RPCBPROC_SET, &map);
	}
	return err;
}

static bool same_map(const struct rpcb *a, const struct rpcb *b)
{
	return a->r_prog == b->r_prog && a->r_vers == b->r_vers &&
	       strcmp(a->r_netid, b->r_netid) == 0 &&
	       strcmp(a->r_addr, b->r_addr) == 0;
}

int rpcbind_unset(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		  const char *netid, const struct sockaddr *addr)
{
	char uaddr[RPCBIND_UADDR_MAX];
	rpcblist_ptr list = NULL;
	bool ours = false;
	struct rpcb map;
	int err;

	rpcbind_fill(&map, prog, vers, netid, rpcbind_uaddr(addr, uaddr));
	err = rpcbind_call(rb, RPCBPROC_DUMP, put_nothing, NULL,
			   (xdrproc_t)xdr_rpcblist_ptr, &list);
	if (err)
		return err;
	for (rpcblist_ptr l = list; l; l = l->rpcb_next)
		ours = ours || same_map(&l->rpcb_map, &map);
	clnt_freeres(rb->client, (xdrproc_t)xdr_rpcblist_ptr, &list);
	return ours ? rpcbind_change(rb, RPCBPROC_UNSET, &map) : -ENOENT;
}
