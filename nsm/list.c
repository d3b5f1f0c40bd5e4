/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list - the hosts in memory, and how they are read at the start.
 *
 * The state number is odd, and grows by two at each start.  The first is taken
 * from the clock: so a list that was lost does not make us use numbers that
 * hosts have seen, and rpc.statd, which counts from 1, does not either.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "nsm/file.h"
#include "nsm/priv.h"

STAT(nsm_bad_line, "malformed lines of the list of hosts with locks");

void nsm_save_in(struct nsm *n, uint32_t ms)
{
	uint64_t at = clock_ms() + ms;

	if (!n->save_at || at < n->save_at)
		n->save_at = at;
	pthread_cond_signal(&n->wake);
}

void nsm_host_put(struct nsm *n, struct nsm_host *host)
{
	host->calls--;
	nsm_hosts_tidy(&n->hosts, host);
}

/* A waiter goes, with the lock held. */
static void end_waiting(struct nsm *n, struct nsm_host *host)
{
	host->waiters--;
	nsm_host_put(n, host);
}

/* The host was added for a waiter that is forgotten.  Unless it has another
 * waiter, it leaves the list here: otherwise it would stay.  The caller holds
 * the lock. */
static void leave_list(struct nsm *n, struct nsm_host *host)
{
	if (host->ready || host->user || host->waiters > 1)
		return;
	host->monitored = host->saved = false;
	nsm_save_in(n, NSM_LAZY_MS);
}

bool nsm_waiter_end(struct nsm_waiter *w, int err)
{
	struct nsm *n = w->nsm;
	bool waited;

	mutex_lock(&n->lock);
	cds_list_del(&w->link);
	if (!w->done)
		leave_list(n, w->host);
	/* Not if it left the list meanwhile, and came back. */
	else if (!err && w->host->saved)
		w->host->ready = true;
	end_waiting(n, w->host);
	mutex_unlock(&n->lock);
	waited = w->done;
	if (waited)
		w->done(w->arg, err);
	free(w);
	return waited;
}

static struct nsm_waiter *find_waiter(struct cds_list_head *list, void *arg)
{
	struct nsm_waiter *w;

	cds_list_for_each_entry(w, list, link)
		if (w->arg == arg && w->done)
			return w;
	return NULL;
}

bool nsm_forget(struct nsm *n, void *arg)
{
	struct nsm_waiter *busy, *waits;

	mutex_lock(&n->lock);
	busy = find_waiter(&n->saving, arg);
	if (!busy)
		busy = find_waiter(&n->asking, arg);
	waits = find_waiter(&n->waiters, arg);
	if (busy) {
		/* The thread that writes the file frees it, or the end of the
		 * call to rpc.statd. */
		busy->done = NULL;
	} else if (waits) {
		cds_list_del(&waits->link);
		leave_list(n, waits->host);
		end_waiting(n, waits->host);
		free(waits);
	}
	mutex_unlock(&n->lock);
	return busy || waits;
}

static uint32_t raised(uint32_t state)
{
	return state ? (state | 1) + 2 : (uint32_t)(time(NULL) / 2) | 1;
}

/* The hosts to be told of a restart, of this server or, if @machine, of the
 * whole machine: that includes the hosts of its lock managers. */
static void begin_telling(struct nsm *n, bool machine)
{
	struct nsm_host *host;

	cds_list_for_each_entry(host, &n->hosts.list, link) {
		if (host->user && !machine)
			continue;
		host->untold = true;
		host->tries = 0;
		if (!host->telling)
			nsm_hosts_tell_at(&n->hosts, host, 0, NSM_AT_ONCE);
		host->until = clock_ms() + n->config.tell_ms;
	}
}

void nsm_crash(struct nsm *n)
{
	mutex_lock(&n->lock);
	n->head.state = raised(n->head.state);
	n->kept = false;
	begin_telling(n, true);
	nsm_save_in(n, 0);
	mutex_unlock(&n->lock);
}

static void read_boot(char *out)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, out, NSM_BOOT_MAX - 1);
		close(fd);
	}
	out[MAX(n, 0)] = '\0';
	out[strcspn(out, " \n")] = '\0';
	if (!*out)
		strcpy(out, "unknown");
}

int nsm_load(struct nsm *n)
{
	struct nsm_host *host;
	char boot[NSM_BOOT_MAX], *text = NULL;
	int err = nsm_file_read(n->state_dir, &text);

	if (err) {
		log_err("can't read %s/nsm: %s", n->state_dir,
			strerror(-err));
		return err;
	}
	/* Such a line might have been a host, which is to have its grace. */
	n->before = nsm_hosts_parse(&n->hosts, text, &n->head);
	stat_add(nsm_bad_line, n->before);
	free(text);
	read_boot(boot);
	begin_telling(n, strcmp(boot, n->head.boot) != 0);
	strcpy(n->head.boot, boot);
	n->head.state = raised(n->head.state);
	cds_list_for_each_entry(host, &n->hosts.list, link) {
		n->before += !host->user;
		host->claims = !host->user;
		host->ready = host->user && !host->untold;
		host->monitored = host->ready;
	}
	nsm_save_in(n, 0);
	return 0;
}

uint32_t nsm_state(struct nsm *n)
{
	uint32_t state;

	mutex_lock(&n->lock);
	state = n->head.state;
	mutex_unlock(&n->lock);
	return state;
}
