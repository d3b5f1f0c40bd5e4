/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nsm - the list of hosts, its file, and the thread that writes it.
 *
 * Operation: a host joins the list at once, and its waiters wait until the
 * thread has replaced the file, for all that came meanwhile together.  Then
 * rpc.statd is asked, where it runs.  A host that leaves is written with the
 * next change, or a second later: clients lock, unlock and lock again.
 *
 * The state number is odd, and grows by two at each start.  The first is taken
 * from the clock: so a list that was lost does not make us use numbers that
 * hosts have seen, and rpc.statd, which counts from 1, does not either.
 */
#include "nsm/nsm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "nsm/file.h"
#include "nsm/priv.h"

STAT(nsm_monitored, "hosts that began to be monitored for their locks");
STAT(nsm_save_failed, "failures to write the list of hosts with locks");
STAT(nsm_bad_line, "malformed lines of the list of hosts with locks");

#define RETRY_MS	1000

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

/* The host was added for a waiter that is forgotten: without another one,
 * nobody would take it off the list.  The caller holds the lock. */
static void leave_list(struct nsm *n, struct nsm_host *host)
{
	if (host->ready || host->user || host->waiters > 1)
		return;
	host->monitored = host->saved = false;
	nsm_save_in(n, NSM_LAZY_MS);
}

void nsm_waiter_end(struct nsm_waiter *w, int err)
{
	struct nsm *n = w->nsm;

	mutex_lock(&n->lock);
	if (!w->done)
		leave_list(n, w->host);
	/* Not if it left the list meanwhile, and came back. */
	else if (!err && w->host->saved)
		w->host->ready = true;
	end_waiting(n, w->host);
	mutex_unlock(&n->lock);
	if (w->done)
		w->done(w->arg, err);
	free(w);
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
	struct nsm_waiter *saved, *waits;

	mutex_lock(&n->lock);
	saved = find_waiter(&n->saving, arg);
	waits = find_waiter(&n->waiters, arg);
	if (saved) {
		/* The thread that writes the file frees it. */
		saved->done = NULL;
	} else if (waits) {
		cds_list_del(&waits->link);
		leave_list(n, waits->host);
		end_waiting(n, waits->host);
		free(waits);
	}
	mutex_unlock(&n->lock);
	return saved || waits;
}

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

/* A host is on the list as long as somebody waits for it, whatever others did
 * with it meanwhile: an earlier attempt failed, or its last lock went. */
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

/* The file was written, or not: those who waited for it go on.  Called and
 * returns with the lock held. */
static void end_saving(struct nsm *n, int err)
{
	struct nsm_waiter *w;

	while (!cds_list_empty(&n->saving)) {
		w = cds_list_first_entry(&n->saving, struct nsm_waiter, link);
		cds_list_del(&w->link);
		mutex_unlock(&n->lock);
		if (!err && w->done && n->statd_port && !w->host->user)
			nsm_statd_mon(w);
		else
			nsm_waiter_end(w, err);
		mutex_lock(&n->lock);
	}
}

/* Writes the file, and lets those who waited for it go on.  Called and returns
 * with the lock held. */
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

/* The same host is on the list for another address of ours, with the lock
 * held: what it told of its restarts is no news. */
static void note_last_state(struct nsm *n, struct nsm_host *host)
{
	const struct nsm_host *other;

	cds_list_for_each_entry(other, &n->hosts.list, link)
		if (!other->user && nsm_same_addr(other, nsm_addr(host)) &&
		    !strcmp(other->name, host->name) &&
		    nsm_state_is_newer(other->last_state, host->last_state))
			host->last_state = other->last_state;
}

/* Finds the host, or adds it; the caller holds the lock. */
static int nsm_join(struct nsm *n, const struct rpc_host *who,
		    const struct nsm_host *user, struct nsm_host **out)
{
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
		host->due = clock_ms();
		host->until = MAX(host->until, host->due);
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

/* Asks rpc.statd to forget the address of @host, which is not monitored any
 * more, unless another host has it.  The caller holds the lock. */
static void forget_addr(struct nsm *n, const struct nsm_host *host)
{
	const struct nsm_host *other;
	char addr[NSM_NAME_MAX];

	if (!n->statd_port || n->stop)
		return;
	cds_list_for_each_entry(other, &n->hosts.list, link)
		if (other->monitored && !other->user &&
		    nsm_same_addr(other, nsm_addr(host)))
			return;
	nsm_addr_text(nsm_addr(host), addr);
	nsm_statd_unmon(n, addr);
}

/* The host leaves the list, with the lock held. */
static void stop_monitoring(struct nsm *n, struct nsm_host *host)
{
	host->monitored = host->saved = host->ready = false;
	if (!host->user)
		forget_addr(n, host);
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

uint32_t nsm_state(struct nsm *n)
{
	uint32_t state;

	mutex_lock(&n->lock);
	state = n->head.state;
	mutex_unlock(&n->lock);
	return state;
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

static uint32_t raised(uint32_t state)
{
	return state ? (state | 1) + 2 : (uint32_t)(time(NULL) / 2) | 1;
}

/* The hosts that have to be told of a restart, of this server or, if @machine,
 * of the whole machine: then those of its lock managers, too. */
static void begin_telling(struct nsm *n, bool machine)
{
	struct nsm_host *host;

	cds_list_for_each_entry(host, &n->hosts.list, link) {
		if (host->user && !machine)
			continue;
		host->untold = true;
		host->tries = 0;
		host->due = 0;
		host->until = clock_ms() + n->config.tell_ms;
	}
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

/* The hosts of the last server are monitored no more, and are to be told.
 * Those that lock managers of this machine asked for stay monitored. */
static int load_list(struct nsm *n)
{
	struct nsm_host *host;
	char boot[NSM_BOOT_MAX], *text = NULL;
	int err = nsm_file_read(n->state_dir, &text);

	if (err) {
		log_err("can't read %s/nsm: %s", n->state_dir,
			strerror(-err));
		return err;
	}
	/* Such a line may have been a host, which is to have its grace. */
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
	n->state_dir = strdup(config->state_dir);
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->wake, NULL);
	CDS_INIT_LIST_HEAD(&n->waiters);
	CDS_INIT_LIST_HEAD(&n->saving);
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
		err = load_list(n);
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
