/* SPDX-License-Identifier: BSD-2-Clause */
/* monitor - hosts join the list of monitored hosts, and leave it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stats.h"
#include "nsm/priv.h"

STAT(nsm_monitored, "hosts that began to be monitored for their locks");

/* With the lock held.  If the host is on the list for another address of ours,
 * the restarts that it announced there are old news here. */
static void note_last_state(struct nsm *n, struct nsm_host *host)
{
	const struct nsm_host *other;

	cds_list_for_each_entry(other,
				nsm_hosts_chain(&n->hosts, nsm_addr(host)),
				near)
		if (!other->user && nsm_same_addr(other, nsm_addr(host)) &&
		    !strcmp(other->name, host->name) &&
		    nsm_state_is_newer(other->last_state, host->last_state))
			host->last_state = other->last_state;
}

/* Finds the host, or adds it; the caller holds the lock. */
static int nsm_join(struct nsm *n, const struct rpc_host *who,
		    const struct nsm_host *user, struct nsm_host **out)
{
	uint64_t now = clock_ms();
	struct nsm_host *host;
	int err;

	host = nsm_hosts_find(&n->hosts, who, user != NULL);
	if (!host) {
		err = nsm_hosts_add(&n->hosts, who, &host);
		if (err)
			return err;
		stat_inc(nsm_monitored);
		note_last_state(n, host);
	}
	if (!host->monitored)
		host->saved = host->ready = false;
	host->monitored = true;
	/* The host speaks to us: this is the time to tell it of our start. */
	if (host->untold) {
		host->until = MAX(host->until, now);
		if (!host->telling)
			nsm_hosts_tell_at(&n->hosts, host, now, NSM_AT_ONCE);
	}
	if (user) {
		host->user = true;
		host->vers = user->vers;
		host->proc = user->proc;
		memcpy(host->priv, user->priv, SM_PRIV_SIZE);
		host->ready = false;
	}
	*out = host;
	return 0;
}

void nsm_add(struct nsm *n, const struct rpc_host *who,
	     const struct nsm_host *user, nsm_done_fn *done, void *arg)
{
	struct nsm_waiter *w = malloc(sizeof(*w));
	struct nsm_host *host = NULL;
	int err = -ENOMEM;

	if (!w)
		goto fail;
	mutex_lock(&n->lock);
	err = n->stop ? -ECANCELED : nsm_join(n, who, user, &host);
	if (!err && !host->ready) {
		*w = (struct nsm_waiter){ .nsm = n, .host = host,
					  .done = done, .arg = arg };
		host->calls++;
		host->waiters++;
		cds_list_add_tail(&w->link, &n->waiters);
		nsm_save_in(n, 0);
		mutex_unlock(&n->lock);
		return;
	}
	mutex_unlock(&n->lock);
fail:
	free(w);
	done(arg, err);
}

void nsm_monitor(struct nsm *n, const struct rpc_host *who, nsm_done_fn *done,
		 void *arg)
{
	nsm_add(n, who, NULL, done, arg);
}

/* The host leaves the list, with the lock held. */
static void stop_monitoring(struct nsm *n, struct nsm_host *host)
{
	host->monitored = host->saved = host->ready = false;
	if (!host->user)
		nsm_forget_addr(n, nsm_addr(host));
	nsm_save_in(n, NSM_LAZY_MS);
	nsm_hosts_tidy(&n->hosts, host);
}

void nsm_remove_user(struct nsm *n, const char *name)
{
	struct nsm_host *host, *next;

	mutex_lock(&n->lock);
	cds_list_for_each_entry_safe(host, next, &n->hosts.list, link)
		if (host->user && host->monitored &&
		    (!name || !strcmp(host->name, name)))
			stop_monitoring(n, host);
	mutex_unlock(&n->lock);
}

void nsm_unmonitor(struct nsm *n, const struct rpc_host *who)
{
	struct nsm_host *host;

	mutex_lock(&n->lock);
	host = nsm_hosts_find(&n->hosts, who, false);
	if (host && host->monitored)
		stop_monitoring(n, host);
	mutex_unlock(&n->lock);
}
