/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server - everything between the options and the sockets, put together.
 *
 * Made from the bottom up and taken down the other way round: payload pool,
 * pollers, RPC server and its workers, exports, programs, listeners, rpcbind.
 */
#include "daemon/serve/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/serve/announce.h"
#include "daemon/watch/audit.h"
#include "daemon/change/change.h"
#include "daemon/watch/report.h"
#include "daemon/serve/kerberos.h"
#include "daemon/serve/serve.h"
#include "daemon/serve/locks.h"
#include "daemon/serve/tls.h"
#include "exports/export.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "rpc/limit.h"
#include "transport/clients.h"
#include "transport/fabric/fabrics.h"
#include "transport/rpcrdma/rpcrdma.h"
#include "transport/stream/stream.h"

/* TCP and UDP, both again for programs with a port apart, and fabrics. */
#define MAX_LISTENERS	(2 + 2 * PROGRAMS_MAX + FABRICS_MAX)

/* The grant of an RDMA connection that is new or has little to do. */
#define FIRST_CREDITS	32
/* A client's replies and next calls can be on their way for so long. */
#define PATH_US		10000

struct started {		/* a fabric in use */
	const struct fabric_row *row;
	struct fabric		 fabric;
};

struct listener {
	struct xprt_listener *l;
	const char	     *name;	/* in "ready: NAME PORT" */
	unsigned	      over;	/* RPC_OVER_... */
	struct started	     *fabric;	/* of RDMA */
	const struct rpc_program *only;	/* whose own port this is; or NULL */
};

struct server {
	const struct options	*o;		/* borrowed; of the start */
	struct options		*now;		/* NULL: as at the start */
	const struct backends	*backends;	/* borrowed */
	struct kerberos		*krb5;		/* likewise; or NULL */
	struct pool		*pool;
	struct pollers		 pollers;
	/* For RDMA devices, which refuse threads whose credentials change. */
	struct pollers		 device_pollers;
	struct rpc_server	*rpc;
	struct work_class	*names;		/* of name look-ups */
	struct tls_part		 tls;
	struct audit		*audit;
	struct export_table	*exports;
	struct changer		*changer;
	struct rpc_program	*programs[PROGRAMS_MAX];	/* or NULL */
	struct locks		 locks;
	struct xprt_env		 env;
	struct xprt_env		 device_env;
	struct xprt_clients	*clients;
	struct rpcrdma_budget	 rdma_budget;
	struct started		 fabrics[FABRICS_MAX];
	unsigned		 nfabrics;
	struct listener		 listeners[MAX_LISTENERS];
	unsigned		 nlisteners;
	struct announcements	 announced;
	int			 state_lock;	/* descriptor, or -1 */
	struct shares		 shares;
	struct report		 report;
	struct control		*control;	/* NULL: none */
	struct pages		*pages;		/* NULL: none */
};

void server_reload(struct server *s)
{
	changer_reload(s->changer);
}

static int listen_at(struct server *s, const struct sockaddr *sa,
		     struct listener *l)
{
	const struct rpcrdma_options o = {
		.credits = s->o->rdma_credits, .first_credits = FIRST_CREDITS,
		.path_us = PATH_US,
		.budget = &s->rdma_budget, .read_read = s->o->rdma_read_read,
		.expose_bytes = s->o->memory / 4,
		.inline_size = s->o->rdma_inline,
	};
	struct xprt_env *env = &s->env;

	if (l->over == RPC_OVER_TCP)
		return tcp_listen(env, sa, &s->tls.tcp, &l->l);
	if (l->over == RPC_OVER_UDP)
		return udp_listen(env, sa, NULL, &l->l);
	if (l->fabric->row->has_own_pollers)
		env = &s->device_env;
	return rpcrdma_listen(&l->fabric->fabric, env, sa, &o, &l->l);
}

/* Makes @what at @port of the address to bind to, which is left in @at. */
static int try_listener(struct server *s, const struct listener *what,
			unsigned port, struct sockaddr_storage *at)
{
	struct listener *l = &s->listeners[s->nlisteners];
	int err;

	*l = *what;
	options_address(s->o->bind, at);	/* checked when it was read */
	xprt_addr_set_port(at, (uint16_t)port);
	err = listen_at(s, (struct sockaddr *)at, l);
	if (err == -EAFNOSUPPORT && !s->o->bind) {
		/* No IPv6 on this machine. */
		options_address("0.0.0.0", at);
		xprt_addr_set_port(at, (uint16_t)port);
		err = listen_at(s, (struct sockaddr *)at, l);
	}
	if (!err)
		s->nlisteners++;
	return err;
}

/* The same; logs an error.  *@got is the port it got. */
static int add_listener(struct server *s, const struct listener *what,
			unsigned port, unsigned *got)
{
	char text[XPRT_ADDR_TEXT];
	struct sockaddr_storage at;
	int err = try_listener(s, what, port, &at);

	if (err)
		log_err("cannot listen on %s %s: %s%s", what->name,
			xprt_addr_text((struct sockaddr *)&at, text,
				       sizeof(text)), strerror(-err),
			listen_hint(err, port));
	else
		*got = xprt_addr_port(
			&s->listeners[s->nlisteners - 1].l->local);
	return err;
}

/* Listens at the separate port of @row, if this process can. */
static void listen_for_one(struct server *s, const struct program_row *row,
			   const struct rpc_program *prog)
{
	const struct listener
		tcp = { .name = row->tcp_name, .over = RPC_OVER_TCP,
			.only = prog },
		udp = { .name = row->udp_name, .over = RPC_OVER_UDP,
			.only = prog };
	struct sockaddr_storage at;
	int err = try_listener(s, &tcp, row->port, &at);

	if (!err)
		err = try_listener(s, &udp, row->port, &at);
	if (err)
		log_info("%s: port %u can't be used for TCP and UDP: %s: "
			 "clients need the mount options port=, mountport= "
			 "and nolock",
			 prog->name, row->port, strerror(-err));
	else
		log_info("no rpcbind runs: answering port queries at port %u",
			 row->port);
}

/* TCP and UDP on one port; with port 0, one that is free for both. */
static int listen_streams(struct server *s)
{
	static const struct listener
		tcp = { .name = "tcp", .over = RPC_OVER_TCP },
		udp = { .name = "udp", .over = RPC_OVER_UDP };
	unsigned port;
	int err;

	for (int tries = 0; ; tries++) {
		err = add_listener(s, &tcp, s->o->port, &port);
		if (err)
			return err;
		err = add_listener(s, &udp, port, &port);
		if (!err || s->o->port || tries == 10)
			return err;
		s->nlisteners--;
		s->listeners[s->nlisteners].l->ops->free(
			s->listeners[s->nlisteners].l);
	}
}

/* Says why the service can't start; returns @err. */
static int cannot(const char *what, int err)
{
	log_err("cannot start %s: %s", what, strerror(-err));
	return err;
}

/* The pollers of fabrics that must not share the others. */
static int start_device_pollers(struct server *s)
{
	int err;

	if (s->device_pollers.n)
		return 0;
	err = pollers_start(&s->device_pollers, "rdma", s->o->pollers,
			    s->o->spin, false);
	if (err)
		return cannot("the pollers of RDMA devices", err);
	s->device_env = s->env;
	s->device_env.loops = s->device_pollers.loops;
	return 0;
}

static int start_fabric(struct server *s, const struct fabric_row *row,
			const struct fabric_options *o)
{
	unsigned port = s->nfabrics ? o->port : s->o->rdma_port;
	struct started *fabric = &s->fabrics[s->nfabrics];
	const struct listener l = { .name = row->listener,
				    .over = RPC_OVER_RDMA, .fabric = fabric };
	int err;

	if (!row->available()) {
		log_err("--rdma %s: %s", row->name, row->absent);
		return -ENODEV;
	}
	err = row->create(o, &fabric->fabric);
	if (err)
		return cannot(row->title, err);
	fabric->row = row;
	s->nfabrics++;
	if (row->has_own_pollers)
		err = start_device_pollers(s);
	if (!err)
		err = add_listener(s, &l, port, &port);
	return err;
}

static int listen_rdma(struct server *s)
{
	unsigned wanted = s->o->rdma == RDMA_AUTO ? 1u << fabrics_first() :
			  s->o->rdma;
	int err = 0;

	for (unsigned i = 0; i < fabrics_count() && !err; i++)
		if (wanted & 1u << i)
			err = start_fabric(s, fabric_rows[i],
					   &s->o->fabrics[i]);
	return err;
}

void server_print_ready(const struct server *s, FILE *out)
{
	for (unsigned i = 0; i < s->nlisteners; i++)
		fprintf(out, "ready: %s %u\n", s->listeners[i].name,
			xprt_addr_port(&s->listeners[i].l->local));
	fprintf(out, "ready\n");
	fflush(out);
}

static int announce_at(struct server *s, const struct listener *l)
{
	int err = 0;

	for (unsigned i = 0; i < PROGRAMS_MAX && !err; i++) {
		const struct rpc_program *prog = s->programs[i];

		if (prog && prog->announced & l->over &&
		    (program_rows[i]->port ? prog : NULL) == l->only)
			err = announce(&s->announced, prog, l->over,
				       &l->l->local);
	}
	return err;
}

static void announce_all(struct server *s)
{
	int err = 0;

	for (unsigned i = 0; i < s->nlisteners && !err; i++) {
		const struct listener *l = &s->listeners[i];

		/* A netid has one port: the first fabric's. */
		if (!l->fabric || l->fabric == s->fabrics)
			err = announce_at(s, l);
	}
	if (err)
		log_info("rpcbind does not answer: clients need the mount "
			 "options port=, mountport= and nolock");
}

static void tell_rpcbind(void *arg, bool on)
{
	struct server *s = arg;

	if (!on)
		announce_withdraw(&s->announced);
	else if (s->o->rpcbind)
		announce_all(s);
}

static int start_rpc(struct server *s)
{
	struct rpc_server_config config = {
		.nworkers = s->o->threads,
		.drc_bytes = s->o->reply_memory,
		.pool = s->pool,
	};

	return kerberos_serve(s->krb5, &config, &s->rpc);
}

static int make_programs(struct server *s)
{
	const struct program_env env = {
		.server = s->rpc, .exports = s->exports, .names = s->names,
		.state_dir = s->o->state_dir, .rdma_mount = s->o->rdma_mount,
		.port_mapper = s->o->rpcbind, .locks = &s->locks,
		.audit = audit_hook(s->audit),
	};
	int err = 0;

	for (unsigned i = 0; i < PROGRAMS_MAX && program_rows[i] && !err; i++) {
		struct rpc_program **prog = &s->programs[i];

		err = program_rows[i]->create(&env, prog);
		if (!err && *prog)
			err = rpc_server_add(s->rpc, *prog);
		if (!err && *prog && program_rows[i]->add) {
			s->announced.mapper = *prog;
			s->announced.row = program_rows[i];
		}
	}
	return err;
}

static int start_programs(struct server *s)
{
	const struct export_config exports = {
		.backend = &posix_vfs_ops, .backends = s->backends,
		.state_dir = s->o->state_dir, .manage_gids = s->o->manage_gids,
		.krb5 = s->krb5 != NULL, .protection = options_protection(s->o),
		.attach = share_give, .release = share_return,
		.arg = &s->shares,
	};
	int err;

	err = state_dir_open(s->o->state_dir, &s->state_lock);
	if (err) {
		log_err("state directory %s: %s (see --state-dir)",
			s->o->state_dir, err == -EBUSY ?
			"another gannetd uses it" : strerror(-err));
		return err;
	}
	s->shares.rpc = s->rpc;
	err = export_table_create(&exports, &s->exports);
	if (err) {
		log_err("state directory %s: %s", s->o->state_dir,
			strerror(-err));
		return err;
	}
	s->names = work_class_create(s->rpc, "names",
				     MAX(1u, s->o->threads / 4));
	if (!s->names)
		return cannot("the programs", -ENOMEM);
	/* Before the first export, which can contain them. */
	err = own_files_keep(s->o);
	if (err)
		return cannot("the exports", err);
	err = tls_part_start(&s->tls, s->o, s->rpc);
	if (!err)
		err = audit_create(s->o, &s->audit);
	if (!err)
		err = locks_start(s->o, &s->locks);
	/* This can take long, so the grace period of the locks begins later. */
	if (!err)
		err = exports_start(s->o, s->exports);
	if (err)
		return err;
	err = make_programs(s);
	return err ? cannot("the programs", err) : 0;
}

static int tune(struct server *s, struct outcome *o)
{
	struct xprt_env env = s->env;
	int err = tune_reload(s->o, &s->now, s->exports, s->tls.server, o);

	/* Its file might have been moved away, whatever the mistake was. */
	audit_apply(s->audit, s->now ? s->now : s->o);
	if (err)
		return err;
	shares_tidy(&s->shares);
	rpc_limits_changed(s->rpc);
	pool_limit(s->pool, s->now->memory);
	s->rdma_budget.max = s->now->rdma_memory;
	tune_connections(&env, s->now);
	for (unsigned i = 0; i < s->nlisteners; i++)
		if (s->listeners[i].l->gate)
			xprt_gate_limit(s->listeners[i].l->gate, env.max_conns,
					env.max_peer_conns);
	log_info("configuration and exports read again");
	log_threshold = s->now->log_level;
	return 0;
}

static int reload_for(void *arg, struct outcome *o)
{
	int err;

	notify(NOTIFY_RELOADING);
	err = tune(arg, o);
	notify(NOTIFY_READY);
	return err;
}

static struct xprt_listener *listener_at(void *arg, unsigned i,
					 const char **name)
{
	const struct server *s = arg;

	if (i >= s->nlisteners)
		return NULL;
	*name = s->listeners[i].name;
	return s->listeners[i].l;
}

static struct rpc_program *program_at(void *arg, unsigned i,
				      const struct program_row **row)
{
	const struct server *s = arg;

	for (unsigned n = 0; n < PROGRAMS_MAX; n++) {
		*row = program_rows[n];
		if (s->programs[n] && i-- == 0)
			return s->programs[n];
	}
	return NULL;
}

/* The parts that no call needs an export for. */
static int start_parts(struct server *s)
{
	const struct options *o = s->o;
	int err = shares_init(&s->shares, o->threads);

	s->clients = xprt_clients_create(0, 0);
	if (!err)
		err = s->clients ? pool_create(o->memory, &s->pool) : -ENOMEM;
	if (!err)
		err = pollers_start(&s->pollers, "poller", o->pollers,
				    o->spin, true);
	return err ? err : start_rpc(s);
}

int server_start(const struct options *o, const struct backends *backends,
		 struct kerberos *krb5, struct server **out)
{
	struct server *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		goto fail;
	*s = (struct server){ .o = o, .backends = backends, .krb5 = krb5,
			      .state_lock = -1 };
	err = start_parts(s);
	if (err)
		goto fail;
	/* From here on, a failing step logs its reason. */
	err = start_programs(s);
	if (err)
		goto fail_said;
	s->env = (struct xprt_env){
		.sink = rpc_server_sink(s->rpc), .pool = s->pool,
		.loops = s->pollers.loops, .nloops = s->pollers.n,
		.clients = s->clients,
	};
	tune_connections(&s->env, o);
	s->rdma_budget.max = o->rdma_memory;
	err = listen_streams(s);
	if (!err)
		err = listen_rdma(s);
	if (err)
		goto fail_said;
	for (unsigned i = 0; i < PROGRAMS_MAX; i++)
		if (s->programs[i] && program_rows[i]->port)
			listen_for_one(s, program_rows[i], s->programs[i]);
	err = changer_start(reload_for, s, &s->changer);
	if (err)
		goto fail;
	locks_listen(&s->locks, o, &s->env, &s->listeners[0].l->local);
	tell_rpcbind(s, true);
	nsm_tell(s->locks.nsm);
	s->report = (struct report){
		.o = o, .rpc = s->rpc, .exports = s->exports,
		.pool = s->pool, .budget = &s->rdma_budget,
		.started = clock_ns(), .born = clock_wall_ns(),
		.clients = s->clients, .export_accounts = s->shares.accounts,
		.export_backends = s->shares.backends,
		.capture = stream_create(&capture_stream, s->rpc, s->exports),
		.trace = stream_create(&trace_stream, s->rpc, s->exports),
		.listener = listener_at, .program = program_at, .server = s,
		.announce = tell_rpcbind, .audit = s->audit,
		.drain = { .lock = PTHREAD_MUTEX_INITIALIZER },
		.reload = reload_for, .changer = s->changer, .now = &s->now,
	};
	s->control = report_start(&s->report);
	s->pages = pages_start(&s->report);
	*out = s;
	return 0;

fail:
	cannot("the service", err);
fail_said:
	if (s)
		server_stop(s);
	return err;
}

void server_drain(struct server *s)
{
	drain_for_the_end(&s->report);
}

bool server_drained(struct server *s)
{
	return drain_is_empty(&s->report);
}

void server_stop(struct server *s)
{
	pages_stop(s->pages);
	control_stop(s->control);
	stream_destroy(s->report.capture);
	stream_destroy(s->report.trace);
	announce_withdraw(&s->announced);
	changer_stop(s->changer);
	while (s->nlisteners > 0) {
		struct xprt_listener *l = s->listeners[--s->nlisteners].l;

		l->ops->free(l);
	}
	locks_unlisten(&s->locks);	/* no call runs now */
	for (unsigned i = 0; i < PROGRAMS_MAX; i++)
		if (s->programs[i] && program_rows[i]->stop)
			program_rows[i]->stop(s->programs[i]);
	locks_stop(&s->locks);
	shares_clear(&s->shares);
	if (s->names)
		work_class_destroy(s->names);
	tls_part_stop(&s->tls);
	if (s->rpc)
		kerberos_end(s->krb5, s->rpc);
	xprt_clients_destroy(s->clients);
	pollers_stop(&s->device_pollers);
	pollers_stop(&s->pollers);
	for (unsigned i = 0; i < PROGRAMS_MAX; i++)
		if (s->programs[i] && program_rows[i]->destroy)
			program_rows[i]->destroy(s->programs[i]);
	locks_free(&s->locks);
	audit_destroy(s->audit);
	if (s->exports)
		export_table_destroy(s->exports);
	while (s->nfabrics > 0) {
		s->nfabrics--;
		s->fabrics[s->nfabrics].row->destroy(
			&s->fabrics[s->nfabrics].fabric);
	}
	if (s->pool)
		pool_destroy(s->pool);
	if (s->state_lock >= 0)
		close(s->state_lock);
	shares_fini(&s->shares);
	tune_free(s->now);
	free(s);
}

bool server_tidy(struct server *s, bool trim)
{
	rpc_server_relieve(s->rpc);
	return trim && pool_trim(s->pool);
}

int server_state_lock(const struct server *s)
{
	return s->state_lock;
}

void server_log_counters(struct server *s)
{
	counters_log(&s->report);
}
