/* SPDX-License-Identifier: BSD-2-Clause */
/* portmap - the table of mappings, and the program that reads it. */
#include "portmap/portmap.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "rpc/rpcbind.h"
#include "transport/addr.h"
#include "wire/getport.h"
#include "wire/portmap.h"

STAT(portmap_refused, "registrations with the port mapper that were refused");

#define NETID_SIZE	8

struct map {
	uint32_t	prog, vers;
	char		netid[NETID_SIZE];
	struct sockaddr_storage addr;
};

struct portmap {
	struct rpc_program prog;
	/* Published by @count, and never changed then. */
	struct map	map[PORTMAP_MAX];
	atomic_uint	count;
};

static struct portmap *portmap_of(struct rpc_program *prog)
{
	return container_of(prog, struct portmap, prog);
}

int portmap_add(struct rpc_program *prog, uint32_t number, uint32_t vers,
		const char *netid, const struct sockaddr *addr)
{
	struct portmap *p = portmap_of(prog);
	unsigned n = atomic_load(&p->count);
	struct map *m = &p->map[n];

	if (n == PORTMAP_MAX || strlen(netid) >= NETID_SIZE)
		return -ENOSPC;
	m->prog = number;
	m->vers = vers;
	strcpy(m->netid, netid);
	xprt_addr_copy(&m->addr, addr);
	atomic_store(&p->count, n + 1);
	return 0;
}

void portmap_clear(struct rpc_program *prog)
{
	atomic_store(&portmap_of(prog)->count, 0);
}

/* ---- look-up */

static struct portmap *of_call(struct rpc_call *call)
{
	return call->prog->ctx;
}

/* The netid of the transport that the call came over. */
static const char *netid_of(struct rpc_call *call)
{
	bool ip6 = rpc_call_peer(call)->sa_family == AF_INET6;

	if (call->msg->xprt->datagram)
		return ip6 ? "udp6" : "udp";
	return ip6 ? "tcp6" : "tcp";
}

/* The netid that the arguments mean, into NETID_SIZE bytes; "": none that we
 * have. */
static void wanted(struct rpc_call *call, char *netid)
{
	const struct portmap_args *a = rpc_args(call);

	*netid = '\0';
	if (call->version->vers == 2) {
		strcpy(netid, a->proto == IPPROTO_TCP ? "tcp" :
			      a->proto == IPPROTO_UDP ? "udp" : "");
	} else if (a->netid.len == 0) {
		strcpy(netid, netid_of(call));
	} else if (a->netid.len < NETID_SIZE) {
		memcpy(netid, a->netid.data, a->netid.len);
		netid[a->netid.len] = '\0';
	}
}

/* The mapping of this version, or else unless @exact of another one: the
 * program then says which versions it has. */
static const struct map *find_map(struct rpc_call *call, bool exact)
{
	const struct portmap_args *a = rpc_args(call);
	const struct portmap *p = of_call(call);
	unsigned n = atomic_load(&p->count);
	const struct map *other = NULL;
	char netid[NETID_SIZE];

	wanted(call, netid);
	for (unsigned i = 0; i < n; i++) {
		const struct map *m = &p->map[i];

		if (m->prog != a->prog || strcmp(m->netid, netid))
			continue;
		if (m->vers == a->vers)
			return m;
		other = m;
	}
	return exact ? NULL : other;
}

static bool is_wildcard(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(
			&((const struct sockaddr_in6 *)sa)->sin6_addr);
	return ((const struct sockaddr_in *)sa)->sin_addr.s_addr == INADDR_ANY;
}

/* The address to answer: a wildcard becomes the address that the query came
 * to. */
static void tell_addr(struct rpc_call *call, const struct map *m, char *uaddr)
{
	const struct sockaddr_storage *asked = &call->msg->xprt->local;
	struct sockaddr_storage ss = m->addr;

	if (is_wildcard((struct sockaddr *)&ss) &&
	    asked->ss_family == ss.ss_family) {
		ss = *asked;
		xprt_addr_set_port(&ss, xprt_addr_port(&m->addr));
	}
	rpcbind_uaddr((struct sockaddr *)&ss, uaddr);
}

static uint32_t port_of(const struct map *m)
{
	return xprt_addr_port(&m->addr);
}

/* ---- procedures */

static int do_refuse(struct rpc_call *call)
{
	stat_inc(portmap_refused);
	call->failed = true;
	return 0;			/* FALSE */
}

static int do_getport(struct rpc_call *call)
{
	struct portmap_res *res = rpc_res(call);
	const struct map *m = find_map(call, false);

	res->word = m ? port_of(m) : 0;
	return 0;
}

static int get_addr(struct rpc_call *call, bool exact)
{
	struct portmap_res *res = rpc_res(call);
	const struct map *m = find_map(call, exact);

	if (m)
		tell_addr(call, m, res->uaddr);
	return 0;
}

static int do_getaddr(struct rpc_call *call)
{
	return get_addr(call, false);
}

static int do_getversaddr(struct rpc_call *call)
{
	return get_addr(call, true);
}

static int do_gettime(struct rpc_call *call)
{
	struct portmap_res *res = rpc_res(call);

	res->word = (uint32_t)time(NULL);
	return 0;
}

/* An entry of a list is shorter. */
#define ENTRY_MAX	256

static int list_room(struct rpc_call *call)
{
	return rpc_body_get(call, PORTMAP_MAX * ENTRY_MAX);
}

/* struct pmap, RFC 1833 section 3.1; nothing if version 2 has no such netid. */
static void put_pmap(struct xdr_out *x, const struct map *m)
{
	bool tcp = !strcmp(m->netid, "tcp");

	if (!tcp && strcmp(m->netid, "udp"))
		return;
	xdr_put_bool(x, true);
	portmap_put_pmap(x, &(struct portmap_args){
		.prog = m->prog, .vers = m->vers, .port = port_of(m),
		.proto = tcp ? IPPROTO_TCP : IPPROTO_UDP });
}

static void put_rpcb(struct xdr_out *x, const struct map *m)
{
	char uaddr[RPCBIND_UADDR_MAX];

	xdr_put_bool(x, true);
	rpcbind_uaddr((const struct sockaddr *)&m->addr, uaddr);
	portmap_put_rpcb(x, &(struct portmap_args){
		.prog = m->prog, .vers = m->vers, .netid = xdr_text(m->netid),
		.addr = xdr_text(uaddr), .owner = xdr_text("gannetd") });
}

/* struct rpcb_entry, section 2.1. */
static void put_rpcb_entry(struct rpc_call *call, struct xdr_out *x,
			   const struct map *m)
{
	bool ip6 = m->addr.ss_family == AF_INET6;
	bool udp = !strncmp(m->netid, "udp", 3);
	char uaddr[RPCBIND_UADDR_MAX];

	tell_addr(call, m, uaddr);
	xdr_put_bool(x, true);
	xdr_put_string(x, uaddr);
	xdr_put_string(x, m->netid);
	xdr_put_u32(x, udp ? 1 : 3);	/* connectionless, ordered release */
	xdr_put_string(x, ip6 ? "inet6" : "inet");
	xdr_put_string(x, udp ? "udp" :
		       !strncmp(m->netid, "tcp", 3) ? "tcp" : "-");
}

static int put_list(struct rpc_call *call)
{
	const struct portmap_args *a = rpc_args(call);
	bool some = call->procnum == RPCB_GETADDRLIST;
	const struct portmap *p = of_call(call);
	unsigned n = atomic_load(&p->count);
	static const uint32_t end = 0;
	struct xdr_out x;

	xdr_out_init(&x, rpc_body(call)->data, PORTMAP_MAX * ENTRY_MAX);
	for (unsigned i = 0; i < n; i++) {
		const struct map *m = &p->map[i];

		if (call->version->vers == 2)
			put_pmap(&x, m);
		else if (!some)
			put_rpcb(&x, m);
		else if (m->prog == a->prog && m->vers == a->vers)
			put_rpcb_entry(call, &x, m);
	}
	rpc_body_set(call, (uint32_t)xdr_out_len(&x), &end, 1);
	return 0;
}

/* ---- the program */

#define ROW(proc, decoder, run, put) [proc] = { \
		.name = #proc, .decode = decoder, .steps = { run }, \
		.encode = put, .args_size = sizeof(struct portmap_args), \
		.res_size = sizeof(struct portmap_res) }
#define LIST(proc, decoder) [proc] = { \
		.name = #proc, .decode = decoder, \
		.steps = { list_room, put_list }, \
		.args_size = sizeof(struct portmap_args), \
		.flags = RPC_PROC_LONG }
#define RPCB_COMMON \
	[PMAP_NULL] = { .name = "NULL" }, \
	ROW(PMAP_SET, portmap_get_rpcb, do_refuse, portmap_put_word), \
	ROW(PMAP_UNSET, portmap_get_rpcb, do_refuse, portmap_put_word), \
	ROW(RPCB_GETADDR, portmap_get_rpcb, do_getaddr, portmap_put_uaddr), \
	LIST(RPCB_DUMP, NULL), \
	ROW(RPCB_GETTIME, NULL, do_gettime, portmap_put_word)

static const struct rpc_proc procs2[] = {
	[PMAP_NULL] = { .name = "NULL" },
	ROW(PMAP_SET, portmap_get_pmap, do_refuse, portmap_put_word),
	ROW(PMAP_UNSET, portmap_get_pmap, do_refuse, portmap_put_word),
	ROW(PMAP_GETPORT, portmap_get_pmap, do_getport, portmap_put_word),
	LIST(PMAP_DUMP, NULL),
};

static const struct rpc_proc procs3[] = { RPCB_COMMON };

static const struct rpc_proc procs4[] = {
	RPCB_COMMON,
	ROW(RPCB_GETVERSADDR, portmap_get_rpcb, do_getversaddr,
	    portmap_put_uaddr),
	LIST(RPCB_GETADDRLIST, portmap_get_rpcb),
};

#define SERVES(n) { .vers = n, .nproc = ARRAY_SIZE(procs##n), \
		    .procs = procs##n }

static const struct rpc_version versions[] = { SERVES(2), SERVES(3),
					       SERVES(4) };

struct rpc_program *portmap_create(void)
{
	struct portmap *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->prog = (struct rpc_program){
		.name = "portmapper", .prog = RPCBIND_PROGRAM,
		.nversions = ARRAY_SIZE(versions), .versions = versions,
		.no_rdma = true, .ctx = p,
		.announced = RPC_OVER_TCP | RPC_OVER_UDP,
	};
	return &p->prog;
}

void portmap_destroy(struct rpc_program *prog)
{
	free(portmap_of(prog));
}

static bool has_rpcbind(void)
{
	struct rpcbind *rb;

	if (rpcbind_open(NULL, 0, &rb))
		return false;
	rpcbind_close(rb);
	return true;
}

/* Where no rpcbind runs, we take its place. */
static int create_portmap(const struct program_env *env,
			  struct rpc_program **out)
{
	if (!env->port_mapper || has_rpcbind())
		return 0;
	*out = portmap_create();
	return *out ? 0 : -ENOMEM;
}

const struct program_row portmap_row = {
	.create = create_portmap, .destroy = portmap_destroy,
	.port = RPCBIND_PORT, .tcp_name = "portmap", .udp_name = "portmap-udp",
	.add = portmap_add, .clear = portmap_clear,
};
