/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nsm - the monitor, and its thread, which writes the list of hosts.
 *
 * Operation: a host joins the list at once, and its waiters wait until the
 * thread has replaced the file, for all that came meanwhile together.  Then
 * rpc.statd is asked, where it runs.  A host that leaves is written with the
 * next change, or a second later: clients lock, unlock and lock again.
 */
#include "nsm/nsm.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "nsm/file.h"
#include "nsm/priv.h"

STAT(nsm_save_failed, "failures to write the list of hosts with locks");

#define RETRY_MS	1000

/* The file's new text, malloced, with the lock held; NULL: no memory. */
static char *format_list(struct nsm *n, size_t *len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, len);

	if (!f)
		return NULL;
	nsm_hosts_print(&n->hosts, &n->head, f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/* A host is on the list as long as a waiter needs it, even if an earlier
 * attempt failed, or its last lock went, meanwhile. */
static void keep_waited(struct cds_list_head *waiters)
{
	struct nsm_waiter *w;

	cds_list_for_each_entry(w, waiters, link)
		w->host->monitored = true;
}

/* Notes that the file was written, or not, with the hosts of n->saving. */
static void note_saved(struct nsm *n, int err)
{
	struct cds_list_head *waiters = &n->saving;
	struct nsm_waiter *w;

	if (!err)
		n->kept = true;
	else
		nsm_save_in(n, RETRY_MS);
	keep_waited(waiters);
	cds_list_for_each_entry(w, waiters, link) {
		if (!err)
			w->host->saved = true;
		else if (!w->host->saved)
			w->host->monitored = false;
	}
}

/* The file was written, or not: its waiters go on.  Called and returns with the
 * lock held. */
static void end_saving(struct nsm *n, int err)
{
	struct nsm_waiter *w;
	bool asks;

	while (!cds_list_empty(&n->saving)) {
		w = cds_list_first_entry(&n->saving, struct nsm_waiter, link);
		asks = !err && w->done && n->statd_port && !w->host->user;
		if (asks)
			cds_list_move(&w->link, &n->asking);
		mutex_unlock(&n->lock);
		if (asks)
			nsm_statd_mon(w);
		else
			nsm_waiter_end(w, err);
		mutex_lock(&n->lock);
	}
}

/* Writes the file, and lets its waiters go on.  Called and returns with the
 * lock held. */
static void nsm_save(struct nsm *n)
{
	size_t len = 0;
	char *text;
	int err = -ENOMEM;

	cds_list_splice(&n->waiters, &n->saving);
	CDS_INIT_LIST_HEAD(&n->waiters);
	keep_waited(&n->saving);
	text = format_list(n, &len);
	n->save_at = 0;
	mutex_unlock(&n->lock);
	if (text)
		err = nsm_file_replace(n->state_dir, text, len);
	free(text);
	if (err) {
		stat_inc(nsm_save_failed);
		log_limited(LOG_LEVEL_ERR, "can't write %s/nsm: %s; new hosts "
			    "get no locks", n->state_dir,
			    strerrordesc_np(-err));
	}
	mutex_lock(&n->lock);
	note_saved(n, err);
	end_saving(n, err);
}

/* The grace period is over, with the lock held: hosts have nothing left to
 * claim. */
static void end_claims(struct nsm *n)
{
	struct nsm_host *host, *next;

	n->claims = false;
	cds_list_for_each_entry_safe(host, next, &n->hosts.list, link) {
		if (!host->claims)
			continue;
		host->claims = false;
		nsm_save_in(n, NSM_LAZY_MS);
		nsm_hosts_tidy(&n->hosts, host);
	}
}

static void nsm_run(void *arg)
{
	struct nsm *n = arg;
	uint64_t now, next;

	mutex_lock(&n->lock);
	while (!n->stop) {
		now = clock_ms();
		if (n->save_at && n->save_at <= now) {
			nsm_save(n);
			continue;
		}
		if (n->claims && n->claims_end <= now)
			end_claims(n);
		next = nsm_tell_due(n, now);
		if (n->claims)
			next = MIN(next, n->claims_end);
		if (n->save_at)
			next = MIN(next, n->save_at);
		if (next == UINT64_MAX)
			pthread_cond_wait(&n->wake, &n->lock);
		else
			cond_wait_until(&n->wake, &n->lock, next * NS_PER_MS);
	}
	if (n->save_at)
		nsm_save(n);
	mutex_unlock(&n->lock);
}

unsigned nsm_hosts_before(const struct nsm *n)
{
	return n->before;
}

struct rpc_program *nsm_program(struct nsm *n)
{
	return &n->prog;
}

bool nsm_is_own(const struct nsm *n)
{
	return !n->statd_port;
}

void nsm_on_restart(struct nsm *n, nsm_restarted_fn *fn, void *ctx)
{
	n->restarted = fn;
	n->restarted_ctx = ctx;
}

void nsm_tell(struct nsm *n)
{
	struct nsm_host *host;

	mutex_lock(&n->lock);
	n->tells = n->claims = true;
	n->claims_end = clock_ms() + n->config.grace_ms;
	cds_list_for_each_entry(host, &n->hosts.list, link)
		host->until = clock_ms() + n->config.tell_ms;
	pthread_cond_signal(&n->wake);
	mutex_unlock(&n->lock);
}

static struct nsm *make_nsm(const struct nsm_config *config)
{
	struct nsm *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->config = *config;
	set_default(&n->config.max_hosts, 4096);
	set_default(&n->config.max_addr_hosts, 64);
	set_default(&n->config.tell_ms, 15 * 60 * 1000);
	set_default(&n->config.first_ms, 2 * 1000);
	set_default(&n->config.retry_ms, 60 * 1000);
	set_default(&n->config.statd_ms, 10 * 1000);
	n->state_dir = strdup(config->state_dir);
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->wake, NULL);
	CDS_INIT_LIST_HEAD(&n->waiters);
	CDS_INIT_LIST_HEAD(&n->saving);
	CDS_INIT_LIST_HEAD(&n->asking);
	nsm_hosts_init(&n->hosts, n->config.max_hosts,
		       n->config.max_addr_hosts);
	if (gethostname(n->my_name, NSM_NAME_MAX) < 0 || !*n->my_name)
		strcpy(n->my_name, "localhost");
	nsm_program_init(n);
	return n;
}

static void free_nsm(struct nsm *n)
{
	nsm_hosts_fini(&n->hosts);
	pthread_cond_destroy(&n->wake);
	pthread_mutex_destroy(&n->lock);
	free(n->state_dir);
	free(n);
}

int nsm_create(const struct nsm_config *config, struct nsm **out)
{
	struct nsm *n = make_nsm(config);
	int err = -ENOMEM;

	if (!n)
		return err;
	if (n->state_dir)
		err = nsm_load(n);
	if (err)
		goto fail;
	if (config->use_statd)
		n->statd_port = nsm_statd_find(config->client);
	if (nsm_is_own(n))
		n->prog.announced = RPC_OVER_TCP | RPC_OVER_UDP;
	log_info("locks: %s learns when clients restart",
		 n->statd_port ? "this machine's status monitor (rpc.statd)" :
		 "gannetd itself");
	err = thread_start(&n->thread, "nsm", nsm_run, n);
	if (err)
		goto fail;
	*out = n;
	return 0;

fail:
	free_nsm(n);
	return err;
}

void nsm_stop(struct nsm *n)
{
	mutex_lock(&n->lock);
	n->stop = true;
	pthread_cond_signal(&n->wake);
	mutex_unlock(&n->lock);
	pthread_join(n->thread, NULL);
}

void nsm_destroy(struct nsm *n)
{
	struct nsm_waiter *w, *next;

	cds_list_for_each_entry_safe(w, next, &n->waiters, link)
		nsm_waiter_end(w, -ECANCELED);
	free_nsm(n);
}
