/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tell - SM_NOTIFY: our news to hosts, and theirs to us.
 *
 * The news leaves from the address that the host calls: a host ignores news
 * from a stranger's address.
 *
 * The news goes by UDP and TCP in turn, since a host can have either closed,
 * and again until the host has answered, which it does without results.  The
 * attempts get rarer only after the grace period: a host that could not be
 * reached for a while can still claim its locks before that.
 */
#include <netinet/in.h>
#include <stdlib.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "nsm/priv.h"

STAT(nsm_told, "hosts notified of our restart");
STAT(nsm_tell_failed, "failed attempts to notify a host of our restart");
STAT(nsm_restarts, "restart notices of hosts with locks");
STAT(nsm_repeated, "repeated restart notices");
STAT(nsm_strangers, "restart notices of hosts without locks here");

#define TELL_MS		4000		/* for one attempt */
#define MAX_TELLING	32		/* at a time */
#define MAX_NEWS	64		/* hosts with one address */

/* ---- ours */

/* With the lock held. */
static void tell_after(struct nsm *n, struct nsm_host *host, unsigned pause)
{
	uint64_t ms = MIN((uint64_t)n->config.first_ms << pause,
			  n->config.retry_ms);

	nsm_hosts_tell_at(&n->hosts, host, clock_ms() + ms, pause);
}

static void was_told(void *arg, int err, struct xdr_in *results)
{
	struct nsm_waiter *w = arg;
	struct nsm_host *host = w->host;
	struct nsm *n = w->nsm;
	unsigned pause = 0;

	mutex_lock(&n->lock);
	host->telling = false;
	n->telling--;
	if (err) {
		stat_inc(nsm_tell_failed);
		if (clock_ms() >= n->claims_end)
			pause = MIN(host->tries, NSM_AT_ONCE - 1);
		tell_after(n, host, pause);
		host->tries++;
	} else if (w->state != n->head.state) {
		/* SM_SIMU_CRASH came meanwhile.  The host has confirmed the
		 * state before it. */
		nsm_hosts_tell_at(&n->hosts, host, 0, NSM_AT_ONCE);
	} else {
		stat_inc(nsm_told);
		host->untold = false;
		nsm_save_in(n, NSM_LAZY_MS);
	}
	nsm_host_put(n, host);
	pthread_cond_signal(&n->wake);
	mutex_unlock(&n->lock);
	free(w);
}

static void tell_host(struct nsm *n, struct nsm_host *host)
{
	const struct sm_call call = { .name = n->my_name,
				      .state = n->head.state };
	struct rpc_client_to to = {
		.addr = host->addr,
		.from = host->local.ss_family ? host->local : n->config.from,
		.prog = NSM_PROG, .vers = 1,
		.proc = SM_NOTIFY, .timeout_ms = TELL_MS,
		.proto = host->tries % 2 ? IPPROTO_TCP : IPPROTO_UDP,
	};
	struct nsm_waiter *w = malloc(sizeof(*w));
	uint8_t args[NSM_NAME_MAX + 16];
	struct xdr_out x;

	tell_after(n, host, 0);
	if (!w)
		return;
	*w = (struct nsm_waiter){ .nsm = n, .host = host,
				  .state = call.state };
	xdr_out_init(&x, args, sizeof(args));
	sm_put_notify(&x, &call);
	if (rpc_client_call(n->config.client, &to, args, xdr_out_len(&x),
			    was_told, w)) {
		free(w);
		return;
	}
	host->telling = true;
	host->calls++;
	n->telling++;
}

uint64_t nsm_tell_due(struct nsm *n, uint64_t now)
{
	struct nsm_host *host;

	if (!n->tells || !n->kept)
		return UINT64_MAX;
	/* The end of a call wakes the thread. */
	while (n->telling < MAX_TELLING) {
		host = nsm_hosts_due(&n->hosts);
		if (!host)
			break;
		if (host->due > now)
			return host->due;
		tell_host(n, host);
	}
	return UINT64_MAX;
}

/* ---- theirs */

/* A lock manager of this machine had asked for the host. */
static void call_user(struct nsm *n, const struct nsm_host *host,
		      uint32_t state)
{
	const struct sm_call call = { .name = host->name, .state = state,
				      .priv = host->priv };
	struct rpc_client_to to = nsm_to_loopback(0, NSM_USER_PROG,
						  host->vers, host->proc);
	uint8_t args[NSM_NAME_MAX + 32];
	struct xdr_out x;

	to.check = nsm_user_check;
	xdr_out_init(&x, args, sizeof(args));
	sm_put_status(&x, &call);
	rpc_client_call(n->config.client, &to, args, xdr_out_len(&x), NULL,
			NULL);
}

/*
 * Notes the news with the lock held.  False: it is old, a call that was sent
 * again or, to a lock manager of this machine, was late.  Our lock manager
 * judges late news itself: the state of a host that lost its monitor's files,
 * or was restored, goes backwards.
 */
static bool is_new(struct nsm_host *host, uint32_t state)
{
	if (host->user ? !nsm_state_is_newer(state, host->last_state) :
	    state && state == host->last_state) {
		stat_inc(nsm_repeated);
		return false;
	}
	stat_inc(nsm_restarts);
	host->last_state = state;
	return true;
}

/* Finds the hosts that the news means, with the lock held, and the lock
 * managers of this machine that asked for its address. */
static unsigned find_meant(struct nsm *n, const char *name,
			   const struct sockaddr *addr,
			   struct nsm_host **out)
{
	const char *meant = nsm_hosts_meant(&n->hosts, name, addr);
	struct nsm_host *host;
	unsigned count = 0;

	cds_list_for_each_entry(host, nsm_hosts_chain(&n->hosts, addr), near)
		if (count < MAX_NEWS && nsm_same_addr(host, addr) &&
		    (host->user || (meant && !strcmp(host->name, meant))))
			out[count++] = host;
	return count;
}

/* True if one of @list is a host of ours. */
static bool has_ours(struct nsm_host *const *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!list[i]->user)
			return true;
	return false;
}

/* News of a host that is not on the list, for our lock manager: its first LOCK
 * can wait behind another call.  News without a name say nothing where several
 * hosts have the address. */
static void tell_of_stranger(struct nsm *n, const char *name,
			     const struct sockaddr *addr, uint32_t state)
{
	bool unnamed = nsm_names_address(name, addr), others = false;
	const struct nsm_host *host;

	mutex_lock(&n->lock);
	cds_list_for_each_entry(host, nsm_hosts_chain(&n->hosts, addr), near)
		others |= !host->user && nsm_same_addr(host, addr);
	mutex_unlock(&n->lock);
	if (n->restarted && (!unnamed || !others))
		n->restarted(n->restarted_ctx, unnamed ? NULL : name, addr,
			     state);
}

/* Passes the news on, without the lock.  Hosts of @list have one name, however
 * many addresses of ours they use. */
static void pass_on(struct nsm *n, struct nsm_host *const *list,
		    unsigned count, uint32_t state)
{
	bool told = false;

	for (unsigned i = 0; i < count; i++) {
		const struct nsm_host *host = list[i];

		if (host->user)
			call_user(n, host, state);
		else if (n->restarted && !told)
			n->restarted(n->restarted_ctx, host->name,
				     nsm_addr(host), state);
		told |= !host->user;
	}
}

void nsm_news(struct nsm *n, const char *name, const struct sockaddr *addr,
	      uint32_t state)
{
	struct nsm_host *meant[MAX_NEWS];
	char from[NSM_NAME_MAX];
	unsigned all, count = 0;
	bool ours;

	mutex_lock(&n->lock);
	all = find_meant(n, name, addr, meant);
	ours = has_ours(meant, all);
	for (unsigned i = 0; i < all; i++)
		if (is_new(meant[i], state)) {
			meant[i]->calls++;
			meant[count++] = meant[i];
		}
	mutex_unlock(&n->lock);
	pass_on(n, meant, count, state);
	mutex_lock(&n->lock);
	for (unsigned i = 0; i < count; i++)
		nsm_host_put(n, meant[i]);
	mutex_unlock(&n->lock);
	if (!ours)
		tell_of_stranger(n, name, addr, state);
	if (all)
		return;
	stat_inc(nsm_strangers);
	nsm_addr_text(addr, from);
	log_limited(LOG_LEVEL_INFO, "%s has restarted, says %s: no host of "
		    "that name and address has locks", name, from);
}

void nsm_notified(struct nsm *n, const char *name, uint32_t state)
{
	struct sockaddr_storage addr;

	if (nsm_addr_parse(name, &addr))
		nsm_news(n, name, (const struct sockaddr *)&addr, state);
}
