/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration with rpcbind (RFC 1833, version 4 of the protocol).
 *
 * rpcb_set() of libtirpc would do for the netids in /etc/netconfig, where the
 * RDMA ones are not, and it waits for a minute for an answer.  So these
 * functions make the calls themselves, with libtirpc's client.
 *
 * rpcbind takes SET and UNSET from this machine only: from any user through
 * its socket, from a reserved port through loopback.
 */
#include "rpc/rpcbind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rpc/rpc.h>
#include <rpc/rpcb_prot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "rpc/listener.h"
#include "transport/addr.h"

#define RPCBIND_SOCKET	"/run/rpcbind.sock"
#define RPCBIND_PORT	111
#define REPLACE_TRIES	16

struct rpcbind {
	CLIENT	*client;	/* owns its socket */
	struct rpcbind_other other;
};

static const struct timeval timeout = { .tv_sec = RPCBIND_TIMEOUT };

/* A connected socket, or -errno.  SO_SNDTIMEO also bounds connect(). */
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

static bool same_map(const struct rpcb *a, const struct rpcb *b)
{
	return a->r_prog == b->r_prog && a->r_vers == b->r_vers &&
	       strcmp(a->r_netid, b->r_netid) == 0;
}

static void note_other(struct rpcbind_other *other, const struct rpcb *map)
{
	char self[16];

	snprintf(self, sizeof(self), "%u", (unsigned)geteuid());
	snprintf(other->addr, sizeof(other->addr), "%s", map->r_addr);
	snprintf(other->owner, sizeof(other->owner), "%s", map->r_owner);
	/* It knows users by its socket only; over loopback it trusts reserved
	 * ports, which root has. */
	other->trusted = !strcmp(other->owner, "superuser") ||
			 !strcmp(other->owner, "unknown") ||
			 !strcmp(other->owner, self);
}

/* Finds the mapping of the same program, version and netid.  0; -ENOENT: not
 * registered; or another -errno. */
static int find_other(struct rpcbind *rb, const struct rpcb *map)
{
	rpcblist_ptr list = NULL;
	int err;

	err = rpcbind_call(rb, RPCBPROC_DUMP, put_nothing, NULL,
			   (xdrproc_t)xdr_rpcblist_ptr, &list);
	if (err)
		return err;
	err = -ENOENT;
	for (rpcblist_ptr l = list; l && err; l = l->rpcb_next)
		if (same_map(&l->rpcb_map, map)) {
			note_other(&rb->other, &l->rpcb_map);
			err = 0;
		}
	clnt_freeres(rb->client, (xdrproc_t)xdr_rpcblist_ptr, &list);
	return err;
}

/* Takes the place of rb->other.  Another user can register again between the
 * two calls, any number of times: try some times. */
static int replace_other(struct rpcbind *rb, struct rpcb *map)
{
	int err = -EACCES;

	for (int i = 0; i < REPLACE_TRIES && err == -EACCES; i++) {
		rpcbind_change(rb, RPCBPROC_UNSET, map);
		err = rpcbind_change(rb, RPCBPROC_SET, map);
	}
	return err ? err : RPCBIND_REPLACED;
}

/* True if the mapping rb->other is to stay. */
static bool other_stays(struct rpcbind *rb, const char *netid)
{
	enum rpcbind_use use = rpcbind_use_of(netid, rb->other.addr);

	if (use == RPCBIND_FOREIGN)
		rb->other.trusted = false;
	return rb->other.trusted && use == RPCBIND_USED;
}

int rpcbind_set(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		const char *netid, const struct sockaddr *addr)
{
	char uaddr[RPCBIND_UADDR_MAX];
	struct rpcb map;
	int err;

	rpcbind_fill(&map, prog, vers, netid, rpcbind_uaddr(addr, uaddr));
	err = rpcbind_change(rb, RPCBPROC_SET, &map);
	if (err != -EACCES)
		return err;
	err = find_other(rb, &map);
	if (err)
		return err == -ENOENT ? -EACCES : err;
	return other_stays(rb, netid) ? -EEXIST : replace_other(rb, &map);
}

const struct rpcbind_other *rpcbind_other(const struct rpcbind *rb)
{
	return &rb->other;
}

int rpcbind_restore(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		    const char *netid, const char *uaddr)
{
	struct rpcb map;

	if (rpcbind_use_of(netid, uaddr) == RPCBIND_FOREIGN)
		return -EACCES;
	rpcbind_fill(&map, prog, vers, netid, (char *)(uintptr_t)uaddr);
	return rpcbind_change(rb, RPCBPROC_SET, &map);
}

int rpcbind_unset(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		  const char *netid, const struct sockaddr *addr)
{
	char uaddr[RPCBIND_UADDR_MAX];
	struct rpcb map;
	int err;

	rpcbind_fill(&map, prog, vers, netid, rpcbind_uaddr(addr, uaddr));
	err = find_other(rb, &map);
	if (err)
		return err;
	return strcmp(rb->other.addr, uaddr) ? -ENOENT :
	       rpcbind_change(rb, RPCBPROC_UNSET, &map);
}

/* ---- the kernel's word */

/* Reads "192.0.2.7.8.1" or "2001:db8::1.8.1" for a socket of @family. */
static bool parse_uaddr(const char *uaddr, sa_family_t family,
			struct sockaddr_storage *out)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };
	char host[RPCBIND_UADDR_MAX];
	unsigned high, low;
	char *dot;

	snprintf(host, sizeof(host), "%s", uaddr);
	for (int i = 0; i < 2; i++) {
		dot = strrchr(host, '.');
		if (!dot)
			return false;
		*dot = '\0';
	}
	if (sscanf(uaddr + strlen(host), ".%u.%u", &high, &low) != 2)
		return false;
	in.sin_port = in6.sin6_port = htons((uint16_t)(high << 8 | low));
	if (family == AF_INET)
		memcpy(out, &in, sizeof(in));
	else
		memcpy(out, &in6, sizeof(in6));
	return inet_pton(family, host, family == AF_INET ?
		(void *)&((struct sockaddr_in *)out)->sin_addr :
		(void *)&((struct sockaddr_in6 *)out)->sin6_addr) == 1;
}

static bool is_trusted(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

/* @err: why @at could not be taken. */
static enum rpcbind_use user_of(bool udp, const struct sockaddr_storage *at,
				int err)
{
	uid_t wrong;

	switch (rpc_listener_check(udp ? IPPROTO_UDP : IPPROTO_TCP, at,
				   is_trusted, &wrong)) {
	case RPC_LISTENER_WRONG:
		return RPCBIND_FOREIGN;
	case RPC_LISTENER_NONE:
		/* Perhaps its owner means to listen later. */
		return err == EADDRINUSE ? RPCBIND_FOREIGN : RPCBIND_FREE;
	default:
		return RPCBIND_USED;
	}
}

enum rpcbind_use rpcbind_use_of(const char *netid, const char *uaddr)
{
	bool six = strlen(netid) == 4 && netid[3] == '6';
	bool udp = strncmp(netid, "udp", 3) == 0;
	struct sockaddr_storage at = { 0 };
	const int one = 1;
	int fd, err = 0;

	if ((!udp && strncmp(netid, "tcp", 3) != 0) || (netid[3] && !six) ||
	    !parse_uaddr(uaddr, six ? AF_INET6 : AF_INET, &at))
		return RPCBIND_USED;
	fd = socket(at.ss_family, (udp ? SOCK_DGRAM : SOCK_STREAM) |
		    SOCK_CLOEXEC, 0);
	if (fd < 0)
		return RPCBIND_USED;
	/* Permits a bind while old connections remain, but not while another
	 * socket listens. */
	if (!udp)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (six)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at,
		 xprt_addr_len((struct sockaddr *)&at)) < 0)
		err = errno;
	close(fd);
	/* An address that has left the machine has no server here. */
	return !err || err == EADDRNOTAVAIL ? RPCBIND_FREE :
	       user_of(udp, &at, err);
}
