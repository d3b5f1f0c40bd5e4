/* SPDX-License-Identifier: BSD-2-Clause */
/* announce - registers our listeners with rpcbind, and unregisters them. */
#include "daemon/serve/announce.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/util.h"

/* The netids of each transport, RFC 5665 and RFC 8166 section 9. */
static const struct netid {
	unsigned over;
	const char *netid;
	sa_family_t family;
} netids[] = {
	{ RPC_OVER_TCP, "tcp", AF_INET }, { RPC_OVER_TCP, "tcp6", AF_INET6 },
	{ RPC_OVER_UDP, "udp", AF_INET }, { RPC_OVER_UDP, "udp6", AF_INET6 },
	{ RPC_OVER_RDMA, "rdma", AF_INET },
	{ RPC_OVER_RDMA, "rdma6", AF_INET6 },
};

/*
 * Writes the address of a listener at @local in @family; false when it does not
 * serve that family.  The IPv6 wildcard serves both.
 */
static bool local_in(const struct sockaddr_storage *local, sa_family_t family,
		     struct sockaddr_storage *out)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_in6 sin6;

	*out = *local;
	if (local->ss_family == family)
		return true;
	memcpy(&sin6, local, sizeof(sin6));
	if (local->ss_family != AF_INET6 ||
	    !IN6_IS_ADDR_UNSPECIFIED(&sin6.sin6_addr))
		return false;
	sin.sin_port = sin6.sin6_port;
	memset(out, 0, sizeof(*out));
	memcpy(out, &sin, sizeof(sin));
	return true;
}

/* The mapping @what of the program @name meets another server's. */
static void log_other(const struct rpcbind_other *other, const char *name,
		      const struct announcement *what, bool stays)
{
	log_warn("%s %u over %s: rpcbind has another server at %s, registered "
		 "by %s, %s", name, what->vers, what->netid, other->addr,
		 other->owner, stays ? "which is at work and stays: clients "
		 "that ask rpcbind find that one (see --no-rpcbind)" :
		 other->trusted ? "where nothing listens: replaced until this "
		 "server ends" : "which is another user's: replaced");
}

/* 0; -EEXIST: another server stays; or another -errno of rpcbind_set(). */
static int register_mapping(struct rpcbind *rb, struct announcements *a,
			    const char *name, struct announcement *what)
{
	struct announcement *grown = reallocarray(a->list, a->n + 1,
						  sizeof(*grown));
	const struct rpcbind_other *other = rpcbind_other(rb);
	int err;

	if (!grown)
		return -ENOMEM;
	a->list = grown;
	what->replaced[0] = '\0';
	err = rpcbind_set(rb, what->prog, what->vers, what->netid,
			  (const struct sockaddr *)&what->addr);
	if (err == RPCBIND_REPLACED || err == -EEXIST)
		log_other(other, name, what, err == -EEXIST);
	if (err < 0)
		return err;
	if (err == RPCBIND_REPLACED && other->trusted)
		strcpy(what->replaced, other->addr);
	a->list[a->n++] = *what;
	return 0;
}

/* Logs an error.  0, also if the mapping is refused; or -errno: @rb is
 * unusable.  With our own port mapper @rb is not used. */
static int set_mapping(struct rpcbind *rb, struct announcements *a,
		       const char *name, struct announcement *what)
{
	int err;

	if (a->mapper)
		err = a->row->add(a->mapper, what->prog, what->vers,
				  what->netid,
				  (const struct sockaddr *)&what->addr);
	else
		err = register_mapping(rb, a, name, what);
	if (err && err != -EEXIST)
		log_warn("%s %u over %s is not registered with rpcbind: %s%s",
			 name, what->vers, what->netid, strerror(-err),
			 err == -EACCES ? " (it is another user's, or port 111 "
			 "another gannetd's: see --no-rpcbind)" : "");
	return err == -EACCES || err == -EEXIST ? 0 : err;
}

int announce(struct announcements *a, const struct rpc_program *prog,
	     unsigned over, const struct sockaddr_storage *local)
{
	struct announcement what = { .prog = prog->prog };
	struct rpcbind *rb = NULL;
	int err = a->mapper ? 0 : rpcbind_open(NULL, 0, &rb);

	if (err)
		return err;
	for (unsigned k = 0; k < ARRAY_SIZE(netids) && !err; k++) {
		if (over != netids[k].over ||
		    !local_in(local, netids[k].family, &what.addr))
			continue;
		what.netid = netids[k].netid;
		for (unsigned v = 0; v < prog->nversions && !err; v++) {
			what.vers = prog->versions[v].vers;
			err = set_mapping(rb, a, prog->name, &what);
		}
	}
	if (rb)
		rpcbind_close(rb);
	return 0;
}

static void withdraw_list(struct rpcbind *rb, const struct announcements *a)
{
	for (unsigned i = a->n; i-- > 0;) {
		const struct announcement *what = &a->list[i];
		int err = rpcbind_unset(rb, what->prog, what->vers,
					what->netid,
					(const struct sockaddr *)&what->addr);

		if (!err && *what->replaced)
			err = rpcbind_restore(rb, what->prog, what->vers,
					      what->netid, what->replaced);
		/* -ENOENT: another server took our place, and keeps it. */
		if (err && err != -ENOENT && err != -EACCES)
			break;
	}
}

void announce_withdraw(struct announcements *a)
{
	struct rpcbind *rb;

	if (a->mapper)
		a->row->clear(a->mapper);
	if (a->n > 0 && rpcbind_open(NULL, 0, &rb) == 0) {
		withdraw_list(rb, a);
		rpcbind_close(rb);
	}
	free(a->list);
	a->list = NULL;
	a->n = 0;
}
