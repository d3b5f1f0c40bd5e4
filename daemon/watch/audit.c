/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * audit - see audit.h.
 *
 * Ownership: the rules are a snapshot, replaced under RCU.  The sink is the
 * audit's thread's; the changer's thread leaves the next one under the lock.
 */
#include "daemon/watch/audit.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "daemon/watch/audit_record.h"
#include "daemon/watch/audit_sink.h"
#include "daemon/change/change.h"
#include "exports/export.h"
#include "lib/clock.h"
#include "lib/hash.h"
#include "lib/log.h"
#include "lib/rcu.h"
#include "lib/ring.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "rpc/audit.h"
#include "rpc/rpc.h"

STAT(audit_records, "calls recorded for the audit");
STAT(audit_dropped, "calls not recorded for the audit: its ring was full");
STAT(audit_write_errors, "failed attempts to write the audit");

#define RING		(4u << 20)
/* Lines are written after so many bytes, or when the ring is empty. */
#define BATCH		(64u << 10)
/* Between two looks for records, after an empty one; and between two attempts
 * to write. */
#define IDLE_MS		50
#define AGAIN_MS	1000
/* For the last records, at the end. */
#define STOP_S		5
/* Calls that change nothing, each told once an interval. */
#define SEEN		8192u
#define SEEN_TIME	0xffffffu

/* A snapshot. */
struct audit_rules {
	unsigned	 interval;	/* seconds; 0: each call is recorded */
	unsigned	 nexports;	/* 0: all */
	char		*exports[];	/* owned */
};

struct audit {
	struct rpc_audit hook;
	struct audit_rules *_Atomic rules;	/* under RCU */
	struct ring	*ring;
	_Atomic uint64_t dropped;	/* not told yet */
	_Atomic uint64_t seen[SEEN];

	pthread_t	 thread;
	bool		 started;
	int		 stop;		/* an eventfd */
	pthread_mutex_t	 lock;		/* guards the next two */
	struct audit_sink next;
	bool		 has_next;

	/* The thread's. */
	struct audit_sink sink;
	char		*out;		/* lines that are not written yet */
	size_t		 len, room;
	size_t		 at;		/* bytes of @out that are written */
	bool		 failing;	/* the log says so */
};

/* ---- on the threads that serve calls */

/* True if @path is one of the rules', or below. */
static bool is_of_export(const struct audit_rules *r,
			 const struct export_tree *e)
{
	for (unsigned i = 0; e && i < r->nexports; i++) {
		size_t len = strlen(r->exports[i]);

		if (!strncmp(e->path, r->exports[i], len) &&
		    (!e->path[len] || e->path[len] == '/' ||
		     r->exports[i][len - 1] == '/'))
			return true;
	}
	return r->nexports == 0;
}

static uint64_t hash_view(struct xdr_view v)
{
	return v.data ? hash_keyed(v.data, v.len) : 0;
}

/* The call's kind, caller, object and outcome. */
static uint64_t hash_event(const struct rpc_audit_event *e)
{
	const struct sockaddr *peer = rpc_call_peer(e->call);

	return hash_values(hash_addr(xprt_addr_host(peer).s6_addr),
			   (uint64_t)e->call->cred.uid << 32 | e->proc,
			   (uintptr_t)e->status, hash_view(e->at.fh),
			   hash_view(e->at.name));
}

/* A call that changes nothing is due once an interval.  Another one that comes
 * to the same place of the table can make it due again, earlier. */
static bool is_due(struct audit *a, const struct audit_rules *r,
		   const struct rpc_audit_event *e)
{
	uint64_t now, was, key;
	_Atomic uint64_t *seen;

	if (r->interval == 0 || audit_procs_changes() >> e->proc & 1)
		return true;
	key = hash_event(e);
	seen = &a->seen[key % SEEN];
	now = (uint64_t)clock_coarse_s() & SEEN_TIME;
	was = atomic_load(seen);
	key |= SEEN_TIME;
	do
		if ((was | SEEN_TIME) == key &&
		    ((now - was) & SEEN_TIME) < r->interval)
			return false;
	while (!atomic_compare_exchange_weak(seen, &was,
					     (key & ~(uint64_t)SEEN_TIME) |
					     now));
	return true;
}

/* The texts of a record. */
struct texts {
	struct xdr_view	of[AUDIT_TEXTS];
	char		path[2][PATH_MAX];
};

/* @first: the place of its texts, @path: room for one. */
static void set_texts(struct texts *t, unsigned first,
		      const struct rpc_audit_object *o, char path[PATH_MAX])
{
	const struct vfs_ops *ops = o->node ? o->node->fs->ops : NULL;
	int len = ops && ops->path ? ops->path(o->node, path, PATH_MAX) : -1;

	if (len >= 0)
		t->of[first] = (struct xdr_view){ (const uint8_t *)path,
						  (uint32_t)len };
	else
		t->of[first + 1] = o->fh;
	t->of[first + 2] = o->name;
}

/* Puts the texts @of into @r, which has room for them. */
static void fill_texts(struct audit_record *r, const struct xdr_view *of)
{
	uint8_t *p = r->text;

	for (unsigned i = 0; i < AUDIT_TEXTS; i++) {
		uint32_t len = MIN(of[i].len, AUDIT_TEXT_MAX);

		r->len[i] = of[i].data ? (uint16_t)len : AUDIT_NO_TEXT;
		if (of[i].data) {
			memcpy(p, of[i].data, len);
			p += len;
		}
	}
}

/* A record of now with the texts @of, and zeroes; NULL: no room. */
static struct ring_record *reserve_record(struct audit *a,
					  const struct xdr_view *of)
{
	uint32_t len = sizeof(struct audit_record);
	struct ring_record *record;
	struct audit_record *r;

	for (unsigned i = 0; i < AUDIT_TEXTS; i++)
		len += MIN(of[i].len, AUDIT_TEXT_MAX);
	record = ring_reserve(a->ring, len);
	if (!record) {
		stat_inc(audit_dropped);
		atomic_fetch_add_explicit(&a->dropped, 1,
					  memory_order_relaxed);
		return NULL;
	}
	r = (struct audit_record *)record->data;
	*r = (struct audit_record){ .at = clock_wall_ns() };
	fill_texts(r, of);
	stat_inc(audit_records);
	return record;
}

static void fill_record(struct audit_record *r, const struct rpc_audit_event *e)
{
	const struct rpc_call *call = e->call;
	const struct xprt *x = call->msg->xprt;

	r->ns = clock_ns() - rpc_call_started(call);
	r->host = xprt_addr_host(rpc_call_peer(call));
	r->port = xprt_addr_port(&x->peer);
	r->xid = call->xid;
	r->sec = export_flavor_name(call->cred.flavor);
	/* A name of Kerberos can have no user. */
	r->has_user = call->cred.flavor == RPC_AUTH_SYS ||
		      call->cred.uid != UINT32_MAX;
	r->uid = call->cred.uid;
	r->gid = call->cred.gid;
	r->has_actor = e->cred != NULL;
	r->as_uid = e->cred ? e->cred->uid : 0;
	r->as_gid = e->cred ? e->cred->gid : 0;
	r->via = x->via;
	r->proc = call->proc->name;
	r->status = e->status;
}

static void keep_event(struct audit *a, const struct rpc_audit_event *e)
{
	struct texts t = { .of[0].data = NULL };
	struct ring_record *record;

	if (e->exp)
		t.of[AUDIT_EXPORT] = (struct xdr_view){
			(const uint8_t *)e->exp->path,
			(uint32_t)strlen(e->exp->path) };
	set_texts(&t, AUDIT_PATH, &e->at, t.path[0]);
	set_texts(&t, AUDIT_TO_PATH, &e->to, t.path[1]);
	record = reserve_record(a, t.of);
	if (!record)
		return;
	fill_record((struct audit_record *)record->data, e);
	ring_add(record);
}

/* Whatever calls are selected: it is of all exports. */
void audit_note_release(struct audit *a, const struct audit_release *e)
{
	struct xdr_view of[AUDIT_TEXTS] = { { NULL, 0 } };
	struct ring_record *record = NULL;
	struct audit_record *r;

	if (!a)
		return;
	if (e->name)
		of[AUDIT_NAME] = (struct xdr_view){
			(const uint8_t *)e->name, (uint32_t)strlen(e->name) };
	rcu_enter();
	if (atomic_load_explicit(&a->rules, memory_order_acquire))
		record = reserve_record(a, of);
	rcu_exit();
	if (!record)
		return;
	r = (struct audit_record *)record->data;
	r->host = e->addr;
	r->has_user = true;
	r->uid = e->uid;
	r->proc = "locks release";
	r->ended = e->ended;
	ring_add(record);
}

static void note_event(struct rpc_audit *hook, const struct rpc_audit_event *e)
{
	struct audit *a = container_of(hook, struct audit, hook);
	const struct audit_rules *r;

	rcu_enter();
	r = atomic_load_explicit(&a->rules, memory_order_acquire);
	if (r && is_of_export(r, e->exp) && is_due(a, r, e))
		keep_event(a, e);
	rcu_exit();
}

/* ---- on the audit's thread */

static void take_sink(struct audit *a)
{
	mutex_lock(&a->lock);
	if (a->has_next) {
		audit_sink_close(&a->sink);
		a->sink = a->next;
		a->has_next = false;
		a->failing = false;
		/* A line goes to one file, whole. */
		while (a->at > 0 && a->out[a->at - 1] != '\n')
			a->at--;
	}
	mutex_unlock(&a->lock);
}

/* Takes @line, which can be NULL: no memory. */
static void append_line(struct audit *a, char *line)
{
	size_t len = line ? strlen(line) : 0;
	size_t need = a->len + len + 1;
	char *out = a->out;

	if (need > a->room)
		out = realloc(a->out, need + BATCH);
	if (!line || !out) {
		stat_inc(audit_dropped);
		atomic_fetch_add(&a->dropped, 1);
	} else {
		if (need > a->room)
			a->room = need + BATCH;
		a->out = out;
		memcpy(out + a->len, line, len);
		out[a->len + len] = '\n';
		a->len = need;
	}
	free(line);
}

/* Makes lines of all waiting records. */
static void make_lines(struct audit *a)
{
	uint64_t dropped = atomic_exchange(&a->dropped, 0);
	struct ring_record *r;

	while (a->len < BATCH && (r = ring_next(a->ring))) {
		append_line(a, audit_line((const void *)r->data));
		ring_release(a->ring);
	}
	if (dropped)
		append_line(a, audit_dropped_line(clock_wall_ns(), dropped));
}

/* The sink is full. */
static void fail_write(struct audit *a, int err)
{
	stat_inc(audit_write_errors);
	if (!a->failing && err != -EAGAIN)
		log_err("audit: %s: %s; trying again", a->sink.name,
			strerror(-err));
	a->failing |= err != -EAGAIN;
}

/* 0, or -errno: -EAGAIN, a pipe is full. */
static int write_lines_out(struct audit *a)
{
	while (a->at < a->len) {
		long n = audit_sink_write(&a->sink, a->out + a->at,
					  a->len - a->at);

		if (n == -EINTR)
			continue;
		if (n <= 0) {
			n = n < 0 ? n : -EIO;
			fail_write(a, (int)n);
			return (int)n;
		}
		a->at += (size_t)n;
	}
	if (a->failing)
		log_info("audit: %s: written again", a->sink.name);
	a->failing = false;
	a->at = a->len = 0;
	return 0;
}

/* Waits for @ms, or if the sink is @full until that takes more.  True if the
 * end has come. */
static bool audit_wait(struct audit *a, int ms, bool full)
{
	struct pollfd p[2] = {
		{ .fd = a->stop, .events = POLLIN },
		{ .fd = full ? a->sink.fd : -1, .events = POLLOUT },
	};

	return poll(p, 2, ms) > 0 && p[0].revents;
}

static void run_audit(void *arg)
{
	struct audit *a = arg;
	bool done = false, any;
	int err;

	for (;;) {
		take_sink(a);
		if (a->len == 0)
			make_lines(a);
		any = a->len > 0;
		err = write_lines_out(a);
		if (any && err == 0)
			continue;
		if (done)
			break;
		done = audit_wait(a, err ? AGAIN_MS : IDLE_MS, err == -EAGAIN);
	}
	if (err == 0)
		return;
	log_err("audit: %s: the last records are lost", a->sink.name);
}

/* ---- at the start, and on the changer's thread */

static void free_rules(struct audit_rules *r)
{
	for (unsigned i = 0; r && i < r->nexports; i++)
		free(r->exports[i]);
	free(r);
}

/* NULL: no memory. */
static struct audit_rules *make_rules(const struct options *o)
{
	unsigned n = o->audit_exports->n;
	struct audit_rules *r = calloc(1, sizeof(*r) + n * sizeof(char *));

	if (!r)
		return NULL;
	r->interval = o->audit_interval;
	for (; r->nexports < n; r->nexports++) {
		r->exports[r->nexports] = strdup(
			o->audit_exports->v[r->nexports]);
		if (!r->exports[r->nexports]) {
			free_rules(r);
			return NULL;
		}
	}
	return r;
}

static uint64_t procs_of(const struct options *o, enum audit_kind kind)
{
	uint64_t procs = audit_procs_changes();

	if (kind == AUDIT_OFF)
		return 0;
	if (o->audit_procs)
		audit_procs_parse(o->audit_procs, &procs);	/* checked */
	return procs;
}

/* Makes the ring and the thread, for the first stream. */
static int ready_stream(struct audit *a)
{
	if (!a->ring)
		a->ring = ring_create(RING);
	if (!a->ring)
		return -ENOMEM;
	if (!a->started) {
		int err = thread_start(&a->thread, "audit", run_audit, a);

		if (err)
			return err;
		a->started = true;
	}
	return 0;
}

static void give_sink(struct audit *a, const struct audit_sink *sink)
{
	mutex_lock(&a->lock);
	if (a->has_next)
		audit_sink_close(&a->next);
	a->next = *sink;
	a->has_next = true;
	mutex_unlock(&a->lock);
}

static int try_options(struct audit *a, const struct options *o)
{
	struct audit_rules *rules = NULL, *old;
	struct audit_sink sink;
	uint64_t procs;
	int err = audit_sink_open(o->audit, &sink);

	if (err)
		return err;
	procs = procs_of(o, sink.kind);
	if (procs) {
		rules = make_rules(o);
		err = rules ? ready_stream(a) : -ENOMEM;
	}
	if (err) {
		free_rules(rules);
		audit_sink_close(&sink);
		return err;
	}
	/* After "off" the last records still go to the sink that they were
	 * noted for. */
	if (procs)
		give_sink(a, &sink);
	else
		audit_sink_close(&sink);
	old = atomic_exchange(&a->rules, rules);
	atomic_store(&a->hook.procs, procs);
	if (old)
		rcu_wait();
	free_rules(old);
	return 0;
}

static int apply_or_tell(struct audit *a, const struct options *o)
{
	int err = try_options(a, o);

	if (err)
		log_err("audit: %s: %s", o->audit, strerror(-err));
	return err;
}

int audit_create(const struct options *o, struct audit **out)
{
	struct audit *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	a->hook.note = note_event;
	a->sink.fd = -1;
	pthread_mutex_init(&a->lock, NULL);
	a->stop = eventfd(0, EFD_CLOEXEC);
	err = a->stop < 0 ? -errno : apply_or_tell(a, o);
	if (err)
		audit_destroy(a);
	else
		*out = a;
	return err;
}

struct rpc_audit *audit_hook(struct audit *a)
{
	return &a->hook;
}

void audit_apply(struct audit *a, const struct options *o)
{
	if (a)
		apply_or_tell(a, o);
}

int audit_reopen(struct audit *a, const struct options *o, struct outcome *out)
{
	struct audit_sink sink;
	int err = audit_sink_open(o->audit, &sink);
	char *why;

	if (err == 0 && sink.kind == AUDIT_FILE && a->started) {
		give_sink(a, &sink);
		log_info("audit: %s: opened again", o->audit);
	} else if (err == 0) {
		audit_sink_close(&sink);
	} else if (asprintf(&why, "audit: %s: %s", o->audit,
			    strerror(-err)) >= 0) {
		outcome_error(out, why);
		free(why);
	}
	return err;
}

/* False: the thread hangs in a write, and keeps @a. */
static bool stop_thread(struct audit *a)
{
	const uint64_t one = 1;
	struct timespec until;

	if (!a->started || write(a->stop, &one, sizeof(one)) != sizeof(one))
		return true;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_S;
	return pthread_timedjoin_np(a->thread, NULL, &until) == 0;
}

void audit_destroy(struct audit *a)
{
	if (!a)
		return;
	if (!stop_thread(a)) {
		log_err("audit: a write hangs: the last records are lost");
		return;
	}
	if (a->stop >= 0)
		close(a->stop);
	if (a->has_next)
		audit_sink_close(&a->next);
	audit_sink_close(&a->sink);
	free_rules(atomic_load(&a->rules));
	ring_destroy(a->ring);
	pthread_mutex_destroy(&a->lock);
	free(a->out);
	free(a);
}
