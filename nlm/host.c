/* SPDX-License-Identifier: BSD-2-Clause */
/* host - clients that restart, and exports that go: their locks end. */
#include "nlm/proc.h"

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/stats.h"

STAT(nlm_restarts, "clients whose locks ended because they restarted");
STAT(nlm_released, "locks of clients that gannetctl released");
STAT(nlm_late_restarts, "restart notices that came again, or with an older "
     "state, and ended no locks by themselves");

/* Under nlm->lock.  @state: of the host's monitor since its restart; locks with
 * this state are kept.  0: none are. */
static void drop_owner(struct nlm *nlm, struct nlm_owner *o, uint32_t state)
{
	struct nlm_share *s;
	struct nlm_hold *h;
	struct nlm_wait *w;

	cds_list_for_each_entry(h, &o->holds, on_owner) {
		h->kept = h->dropped && !h->kept ? 0 : state;
		h->dropped = true;
		nlm_hold_mark(h);
		nlm_file_kick(nlm, h->file);
	}
	cds_list_for_each_entry(w, &o->waits, on_owner) {
		w->dropped |= !state || w->state != state;
		nlm_wait_mark(w);
		nlm_file_kick(nlm, w->file);
	}
	cds_list_for_each_entry(s, &o->shares, on_owner) {
		s->dropped |= !state || s->state != state;
		s->file->marked_shares = true;
		nlm_file_kick(nlm, s->file);
	}
}

static void drop_owners(struct nlm *nlm, struct nlm_host *h, uint32_t state)
{
	struct nlm_owner *o;

	h->restart_state = state;
	h->restart_ns = clock_ns();
	/* It no longer matters whether an earlier notice was late. */
	h->doubt = false;
	/* The sweep keeps the host for the calls that came before: another
	 * address can take its place among the ended ones of the table. */
	h->used_ms = clock_ms();
	cds_list_for_each_entry(o, &h->owners, on_host)
		drop_owner(nlm, o, state);
}

static void end_host(struct nlm *nlm, struct nlm_host *h, uint32_t state)
{
	stat_inc(nlm_restarts);
	log_limited(LOG_LEVEL_INFO, "%s has restarted: its %u locks end",
		    h->name, h->n[NLM_RANGES]);
	if (state)
		h->state = state;
	h->unsure = false;
	if (nlm_is_newer(state, h->newest))
		h->newest = state;
	drop_owners(nlm, h, state);
}

/*
 * False: the notice came again; or its state is not newer than all states that
 * the host was in.  Then it was late; or the state went backwards, since the
 * host was restored or its monitor's files were lost, or comes forward again
 * after that.  The state of the host's next LOCK says which.
 */
static bool drop_host(struct nlm *nlm, struct nlm_host *h, uint32_t state)
{
	bool repeated = state && h->restart_state == state;
	/* A LOCK can have come before the notice of its state. */
	bool is_newest = nlm_is_newer(state, h->newest) ||
			 (state == h->newest && state == h->state &&
			  !h->unsure && !h->doubt);

	if (!state || (is_newest && !repeated)) {
		end_host(nlm, h, state);
		return true;
	}
	if (!repeated) {
		h->doubt = true;
		h->doubt_ns = clock_ns();
		if (state == h->state)
			h->state = 0;
	}
	stat_inc(nlm_late_restarts);
	return false;
}

/* Under nlm->lock: notes that the host has sent a LOCK in @state, which came at
 * @ns.  True: it has restarted in that state, and its earlier locks end. */
static bool hear_state(struct nlm *nlm, struct nlm_host *h, uint32_t state,
		       uint64_t ns)
{
	/* A LOCK from before the notice says nothing about it. */
	bool settles = h->doubt && ns > h->doubt_ns;
	/* A notice of this state also comes, and ends the other locks. */
	bool is_newest = nlm_is_newer(state, h->newest);
	bool ends = settles && !is_newest && state != h->state;

	if (is_newest)
		h->newest = state;
	/* A later LOCK was heard first. */
	if (ns < h->heard_ns)
		return false;
	h->heard_ns = ns;
	if (settles)
		h->doubt = false;
	if (is_newest)
		h->state = state;
	/* The LOCK is late, or the state went back. */
	h->unsure |= state != h->state;
	if (ends)
		end_host(nlm, h, state);
	return ends;
}

void nlm_hear_state(struct rpc_call *call)
{
	const struct nlm_args *a = rpc_args(call);
	const struct nlm_who who = nlm_who_of(call);
	struct nlm *nlm = nlm_op(call)->nlm;
	struct nlm_host *h = NULL;
	bool ended = false;

	if (!a->state)
		return;
	mutex_lock(&nlm->lock);
	/* A LOCK that came before the host's locks were ended has an old state
	 * of the host: it says nothing of the state now. */
	while ((h = nlm_host_next(&nlm->table, &who, h)))
		if (!nlm_is_outlived(call, h))
			ended |= hear_state(nlm, h, a->state,
					    rpc_call_started(call));
	/* Earlier LOCKs of the host can be under way at an address of ours with
	 * which the host is not in the table yet. */
	if (ended)
		nlm_table_ended(&nlm->table, &who, a->state);
	mutex_unlock(&nlm->lock);
}

/* A host that is not in the table, or not with the address of ours that it
 * calls, can have a LOCK that waits for a worker, or behind another call. */
static void drop_hosts(struct nlm *nlm, const struct nlm_who *who,
		       uint32_t state)
{
	struct nlm_host *h = NULL;
	bool late = false;

	mutex_lock(&nlm->lock);
	/* Without a name, it is not known which host has restarted. */
	while (who->name && !nlm->stops &&
	       (h = nlm_host_next(&nlm->table, who, h)))
		late |= !drop_host(nlm, h, state);
	if (!late)
		nlm_table_ended(&nlm->table, who, state);
	mutex_unlock(&nlm->lock);
}

void nlm_restarted(struct rpc_program *prog, const char *name,
		   const struct sockaddr *addr, uint32_t state)
{
	const struct nlm_who who = {
		.addr = xprt_addr_host(addr), .name = (const uint8_t *)name,
		.name_len = name ? (uint32_t)strlen(name) : 0,
	};
	drop_hosts(prog->ctx, &who, state);
}

void nlm_release(struct rpc_program *prog, const struct in6_addr *addr,
		 const char *name, struct lock_totals *ended)
{
	const struct nlm_who who = {
		.addr = *addr, .name = (const uint8_t *)name,
		.name_len = name ? (uint32_t)strlen(name) : 0,
	};
	struct nlm *nlm = prog->ctx;
	struct nlm_host *h = NULL;

	mutex_lock(&nlm->lock);
	while (!nlm->stops && (h = nlm_host_next(&nlm->table, &who, h))) {
		/* A LOCK under way is refused when it comes to its end. */
		ended->hosts += !cds_list_empty(&h->owners) || h->locking > 0;
		ended->locks += h->n[NLM_RANGES];
		ended->waits += h->n[NLM_WAITS];
		ended->shares += h->n[NLM_SHARES];
		drop_owners(nlm, h, 0);
	}
	nlm_table_ended(&nlm->table, &who, 0);
	mutex_unlock(&nlm->lock);
	stat_add(nlm_released, ended->locks);
}

int nlm_free_all(struct rpc_call *call)
{
	const struct nlm_notify_args *a = rpc_args(call);
	const struct nlm_who who = {
		.addr = xprt_addr_host(rpc_call_peer(call)),
		.name = a->name.data, .name_len = a->name.len,
	};
	drop_hosts(call->prog->ctx, &who, 0);
	return 0;
}

/* Only the machine's rpc.statd may call: from a reserved port of loopback. */
static bool is_statd(const struct rpc_call *call)
{
	return xprt_addr_port(&call->msg->xprt->peer) < IPPORT_RESERVED &&
	       xprt_addr_is_loopback(rpc_call_peer(call));
}

int nlm_sm_notify(struct rpc_call *call)
{
	const struct nlm_notify_args *a = rpc_args(call);
	struct nlm *nlm = call->prog->ctx;
	const struct nlm_monitor *m = &nlm->config.monitor;
	char name[NLM_NAME_MAX + 1];

	if (!is_statd(call) || a->name.len > NLM_NAME_MAX)
		return 0;
	memcpy(name, a->name.data, a->name.len);
	name[a->name.len] = '\0';
	if (m->notified)
		m->notified(m->nsm, name, a->state);
	else
		nlm_restarted(&nlm->prog, name, rpc_call_peer(call), a->state);
	return 0;
}

static void unmonitor(const struct nlm_monitor *m, const struct nlm_host *h)
{
	const struct sockaddr_in6 addr = {
		.sin6_family = AF_INET6, .sin6_addr = h->addr,
	}, local = {
		.sin6_family = AF_INET6, .sin6_addr = h->local,
	};
	const struct rpc_host host = {
		.name = h->name, .addr = (const struct sockaddr *)&addr,
		.local = (const struct sockaddr *)&local,
	};

	if (h->monitored && m->unmonitor)
		m->unmonitor(m->nsm, &host);
}

void nlm_hosts_sweep(struct nlm *nlm, uint64_t now)
{
	struct nlm_host *h, *next;

	for (unsigned i = 0; i < NLM_BUCKETS; i++)
		cds_list_for_each_entry_safe(h, next, &nlm->table.host[i],
					     link) {
			if (!cds_list_empty(&h->owners) || h->calling ||
			    h->locking ||
			    now < h->used_ms + nlm->config.idle_ms)
				continue;
			unmonitor(&nlm->config.monitor, h);
			nlm_host_free(&nlm->table, h);
		}
}

void nlm_files_sweep(struct nlm *nlm)
{
	struct nlm_file *f;

	for (unsigned i = 0; i < NLM_BUCKETS; i++)
		cds_list_for_each_entry(f, &nlm->table.file[i], link) {
			f->gone |= !export_is_current(nlm->config.exports,
						      f->exp);
			f->again = f->foreign != NULL;
			if (f->gone || f->again || f->departures !=
			    atomic_load(&f->exp->departures))
				nlm_file_kick(nlm, f);
		}
}
