/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock manager for the model of restarts: the server's own code, with one
 * file of two bytes and one host, which has two processes.
 *
 * As in nlm_server.c, each step makes the lock manager's table of the model's
 * state, runs the code, and writes the state down again.  Of times only the
 * order matters, so they are counted from 1 again after each step.
 */
#include "lib/clock.h"

static uint64_t model_now;
#define clock_ns()	(model_now++)
#define clock_ms()	UINT64_C(0)

#include "tests/models/nlm_code.c"

#define OWNERS	2
#define BYTES	2

/* A LOCK that has come to the server; or none, @came is 0. */
struct model_lock {
	uint8_t came, state, byte, heard;
};

/* A waiter; or none, @used is 0. */
struct model_wait {
	uint8_t used, state, asleep, granted, cut, kept, dropped, answer;
	uint8_t before, before_state, before_older;
};

/* The server's state: of the host, */
struct model_server {
	uint8_t state, newest, unsure, restart_state, restart_at;
	uint8_t doubt, doubt_at, heard_at;
	uint8_t ended_at, ended_state;		/* ... in the table */
	/* ... and of its processes, whose bytes have states, or 0. */
	uint8_t held[OWNERS][BYTES], older[OWNERS][BYTES];
	uint8_t dropped[OWNERS], kept[OWNERS];
	struct model_lock lock[OWNERS];
	struct model_wait wait[OWNERS][BYTES];
};

/* ---- the rest of the server */

NEVER(int, rpc_client_call, struct rpc_client *c,
      const struct rpc_client_to *to, const void *args, size_t len,
      rpc_client_done *done, void *arg)

static uint64_t call_came;

uint64_t rpc_call_started(const struct rpc_call *call)
{
	return call_came;
}

/* A notice comes while the backend works; 0: none. */
static unsigned meanwhile;
/* The backend's answer to a LOCK. */
static int backend_says;

static void notify(unsigned state);

static int backend_locks(struct vfs_op *op)
{
	unsigned state = meanwhile;

	meanwhile = 0;
	if (state)
		notify(state);
	return op->lock->how == VFS_LOCK_SET && !op->lock->back ?
	       backend_says : 0;
}

/* ---- the state of the model, and the table */

static struct nlm_who who_of(unsigned o)
{
	static const uint8_t names[] = "01";
	struct nlm_who who = { .name = names, .name_len = 1, .oh = names + o,
			       .oh_len = 1, .svid = o };

	who.addr.s6_addr[15] = 1;
	return who;
}

static void notify(unsigned state)
{
	const struct sockaddr_in6 addr = {
		.sin6_family = AF_INET6, .sin6_addr = who_of(0).addr,
	};

	nlm.prog.ctx = &nlm;
	nlm_restarted(&nlm.prog, "0", (const struct sockaddr *)&addr, state);
}

static void load_hold(const struct model_server *s, unsigned o)
{
	const struct nlm_who who = who_of(o);
	struct nlm_owner *owner = nlm_owner_get(&nlm.table, &who);

	for (unsigned b = 0; b < BYTES; b++) {
		const struct nlm_span at = { b, b, true };
		struct nlm_spare spare;
		struct nlm_hold *h;

		if (!s->held[o][b])
			continue;
		h = nlm_hold_make(&nlm, the_file, owner);
		nlm_spare_get(&nlm.table, owner->host, false, &spare);
		if (s->older[o][b])
			nlm_range_set(&nlm.table, h, &at, s->held[o][b],
				      &spare);
		nlm_spare_put(&spare);
		nlm_spare_get(&nlm.table, owner->host, false, &spare);
		nlm_range_set(&nlm.table, h, &at, s->older[o][b] ?
			      s->older[o][b] : s->held[o][b], &spare);
		nlm_spare_put(&spare);
		h->kept = s->kept[o];
		if (s->dropped[o]) {
			h->dropped = true;
			nlm_hold_mark(h);
		}
	}
}

static void load_wait(const struct model_server *s, unsigned o, unsigned b)
{
	const struct model_wait *m = &s->wait[o][b];
	const struct nlm_span at = { b, b, true };
	const struct nlm_who who = who_of(o);
	struct nlm_wait *w;

	if (!m->used)
		return;
	w = nlm_wait_add(&nlm.table, the_file,
			 nlm_owner_get(&nlm.table, &who), &at);
	w->state = m->state;
	w->granted = m->granted;
	w->cut = m->cut;
	w->kept = m->kept;
	w->answer = (enum nlm_wait_answer)m->answer;
	w->dropped = m->dropped;
	w->id = (o * BYTES + b + 1) * NLM_CALL_BACKS;
	if (m->before) {
		nlm_wait_keep(w, &at, m->before_state);
		w->before[0].from.older = m->before_older;
	}
	if (!m->asleep)
		nlm_wait_put(w, w->granted ? &nlm.grants :
				w->cut ? NULL : &the_file->foreign);
	if (w->dropped || w->answer)
		nlm_wait_mark(w);
}

static void load(const struct model_server *s)
{
	static const struct nlm_limits limits = {
		9, 9, 99, 99, 99, 99, 9, 9, 99, 99,
	};
	const struct nlm_who who = who_of(0);
	struct nlm_host *h;
	static bool is_set;

	if (!is_set) {
		is_set = true;
		nlm_table_init(&nlm.table, &limits);
		pthread_mutex_init(&nlm.lock, NULL);
		pthread_cond_init(&nlm.wake, NULL);
		exp0.fs = &fs;
		ops.lock = backend_locks;
	}
	the_file = nlm_file_add(&nlm.table, &fs, &handle);
	the_file->nlm = &nlm;
	the_file->exp = &exp0;
	the_file->node = &node;
	the_file->refs = 1;
	h = nlm_host_get(&nlm.table, &who);
	h->monitored = true;
	h->state = s->state;
	h->newest = s->newest;
	h->heard_ns = s->heard_at;
	h->unsure = s->unsure;
	h->restart_state = s->restart_state;
	h->restart_ns = s->restart_at;
	h->doubt = s->doubt;
	h->doubt_ns = s->doubt_at;
	nlm.table.ended[0] = (struct nlm_ended){
		.ns = s->ended_at, .state = s->ended_state,
	};
	for (unsigned o = 0; o < OWNERS; o++) {
		load_hold(s, o);
		for (unsigned b = 0; b < BYTES; b++)
			load_wait(s, o, b);
	}
	nlm.next_grant = OWNERS * BYTES * NLM_CALL_BACKS;
	model_now = 16;
}

static void save_wait(struct model_server *s, struct nlm_wait *w)
{
	struct model_wait *m = &s->wait[w->owner->svid][w->at.start];

	if (w->in == &the_file->ready)
		abort();
	*m = (struct model_wait){
		.used = 1, .state = (uint8_t)w->state, .granted = w->granted,
		.cut = w->cut, .kept = w->kept, .dropped = w->dropped,
		.answer = w->answer, .asleep = w->in == &the_file->asleep,
	};
	if ((w->granted || w->cut) && w->nbefore) {
		m->before = true;
		m->before_state = (uint8_t)w->before[0].from.state;
		m->before_older = (uint8_t)w->before[0].from.older;
	}
	nlm_wait_free(&nlm.table, w);
}

static void save_hold(struct model_server *s, struct nlm_hold *h)
{
	unsigned o = h->owner->svid;
	struct nlm_range *r, *next;

	cds_list_for_each_entry_safe(r, next, &h->ranges, link) {
		for (uint64_t b = r->at.start; b <= r->at.end; b++) {
			s->held[o][b] = (uint8_t)r->from.state;
			s->older[o][b] = (uint8_t)r->from.older;
		}
		take(&nlm.table, h, r);
	}
	s->dropped[o] = h->dropped;
	s->kept[o] = h->dropped ? (uint8_t)h->kept : 0;
	nlm_hold_free(h);
}

/* Times in their order, from 1; 0 stays. */
static void count_times(struct model_server *s)
{
	uint8_t *t[] = { &s->doubt_at, &s->restart_at, &s->ended_at,
			 &s->heard_at, &s->lock[0].came, &s->lock[1].came };
	uint8_t rank[ARRAY_SIZE(t)];

	for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
		bool seen[256] = { false };

		rank[i] = *t[i] > 0;
		for (unsigned k = 0; k < ARRAY_SIZE(t); k++) {
			if (*t[i] && *t[k] && *t[k] < *t[i] && !seen[*t[k]])
				rank[i]++;
			seen[*t[k]] = true;
		}
	}
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		*t[i] = rank[i];
}

static void save(struct model_server *s)
{
	const struct nlm_who who = who_of(0);
	struct nlm_host *h = nlm_host_find(&nlm.table, &who);
	struct nlm_owner *o, *onext;
	struct nlm_hold *hold, *hnext;
	struct nlm_wait *w, *wnext;

	s->state = (uint8_t)h->state;
	s->newest = (uint8_t)h->newest;
	s->heard_at = (uint8_t)h->heard_ns;
	s->unsure = h->unsure;
	s->restart_state = (uint8_t)h->restart_state;
	s->restart_at = (uint8_t)h->restart_ns;
	s->doubt = h->doubt;
	s->doubt_at = h->doubt ? (uint8_t)h->doubt_ns : 0;
	s->ended_at = (uint8_t)nlm.table.ended[0].ns;
	s->ended_state = (uint8_t)nlm.table.ended[0].state;
	memset(s->held, 0, sizeof(s->held));
	memset(s->older, 0, sizeof(s->older));
	memset(s->dropped, 0, sizeof(s->dropped));
	memset(s->kept, 0, sizeof(s->kept));
	memset(s->wait, 0, sizeof(s->wait));
	cds_list_for_each_entry_safe(w, wnext, &the_file->waits, on_file)
		save_wait(s, w);
	cds_list_for_each_entry_safe(hold, hnext, &the_file->holds, on_file)
		save_hold(s, hold);
	cds_list_for_each_entry_safe(o, onext, &h->owners, on_host)
		nlm_owner_tidy(&nlm.table, o);
	nlm_host_free(&nlm.table, h);
	the_file->refs = 0;
	the_file->node = NULL;
	nlm_file_free(&nlm.table, the_file);
	job = NULL;
	nlm.jobs = 0;
	count_times(s);
}

/* ---- the events */

static struct xprt xprt;
static struct msg msg = { .xprt = &xprt };
static struct rpc_version version = { .vers = 4 };
static struct rpc_call call = { .msg = &msg, .version = &version,
				.prog = &nlm.prog };

/* A LOCK of the process @o in @state comes. */
static void model_comes(struct model_server *s, unsigned o, unsigned byte,
			unsigned state)
{
	s->lock[o] = (struct model_lock){ .came = 16, .byte = (uint8_t)byte,
					  .state = (uint8_t)state };
	count_times(s);
}

static void begin_step(const struct model_lock *l, unsigned o)
{
	const struct nlm_who who = who_of(o);
	struct sockaddr_in6 *peer = (struct sockaddr_in6 *)&xprt.peer;
	struct nlm_args *a = rpc_args(&call);
	struct nlm_op *op = nlm_op(&call);

	peer->sin6_family = AF_INET6;
	peer->sin6_addr = who.addr;
	*a = (struct nlm_args){
		.name = { who.name, who.name_len }, .oh = { who.oh, 1 },
		.fh = { who.name, 1 }, .svid = o,
		.off = l->byte, .len = 1, .exclusive = true,
		.block = backend_says == 1, .state = l->state,
	};
	*(struct nlm_res *)rpc_res(&call) = (struct nlm_res){ 0 };
	memset(op, 0, sizeof(*op));
	op->nlm = &nlm;
	op->exp = &exp0;
	op->node = &node;
	op->file = the_file;
	call_came = l->came;
	atomic_store(&node.refs, 9);
}

/* nlm_lock() in two steps: the LOCK of @o tells its state. */
static void model_hear(struct model_server *s, unsigned o)
{
	load(s);
	begin_step(&s->lock[o], o);
	nlm_hear_state(&call);
	s->lock[o].heard = 1;
	save(s);
}

/* Then it has its turn, in which, or after which, a notice can come; the
 * backend gives @answer.  Returns the status. */
static enum nlm_status model_lock(struct model_server *s, unsigned o,
				  unsigned notice, int answer)
{
	const unsigned byte = s->lock[o].byte;
	const struct nlm_span at = { byte, byte, true };
	enum nlm_status status;

	load(s);
	meanwhile = notice;
	backend_says = answer;
	begin_step(&s->lock[o], o);
	nlm_turn_begin(&nlm, the_file);
	if (lock(&call, &at, &status) < 0)
		status = NLM4_DENIED_GRACE_PERIOD;
	backend_says = 0;
	nlm_turn_end(the_file);
	if (meanwhile)
		notify(meanwhile);
	meanwhile = 0;
	s->lock[o] = (struct model_lock){ 0 };
	save(s);
	return status;
}

/* The locks that were in the way of waiters are gone. */
static void model_grant(struct model_server *s, unsigned notice)
{
	load(s);
	meanwhile = notice;
	nlm_turn_begin(&nlm, the_file);
	nlm_foreign_ready(the_file);
	nlm_turn_end(the_file);
	if (meanwhile)
		notify(meanwhile);
	meanwhile = 0;
	save(s);
}

static bool model_is_granted(const struct model_server *s, unsigned o,
			     unsigned byte)
{
	const struct model_wait *w = &s->wait[o][byte];

	return w->granted && !w->answer;
}

/* The host answers the call-back for a waiter. */
static void model_answer(struct model_server *s, unsigned o, unsigned byte,
			 bool taken)
{
	const uint64_t id = (o * BYTES + byte + 1) * NLM_CALL_BACKS;

	load(s);
	answered(&nlm, nlm_grant_find(nlm.grants, id), id,
		 taken ? NLM4_GRANTED : NLM4_DENIED);
	save(s);
}

/* Returns true if the CANCEL was denied. */
static bool model_cancel(struct model_server *s, unsigned o, unsigned byte)
{
	load(s);
	begin_step(&(struct model_lock){ .byte = (uint8_t)byte }, o);
	nlm_cancel(&call);
	save(s);
	return ((struct nlm_res *)rpc_res(&call))->status == NLM4_DENIED;
}

static void model_unlock(struct model_server *s, unsigned o, unsigned byte)
{
	load(s);
	begin_step(&(struct model_lock){ .byte = (uint8_t)byte }, o);
	nlm_unlock(&call);
	save(s);
}

static void model_notice(struct model_server *s, unsigned state)
{
	load(s);
	notify(state);
	save(s);
}

/* The job that acts on marks. */
static void model_job(struct model_server *s)
{
	load(s);
	nlm_turn_begin(&nlm, the_file);
	nlm_turn_end(the_file);
	save(s);
}

static bool model_has_job(const struct model_server *s)
{
	bool has = s->dropped[0] || s->dropped[1];

	for (unsigned o = 0; o < OWNERS; o++)
		for (unsigned b = 0; b < BYTES; b++)
			has |= s->wait[o][b].dropped || s->wait[o][b].answer;
	return has;
}

static bool model_has_waits(const struct model_server *s)
{
	bool has = false;

	for (unsigned o = 0; o < OWNERS; o++)
		for (unsigned b = 0; b < BYTES; b++)
			has |= s->wait[o][b].used;
	return has;
}

/* ---- invariants; @has is the view of the host's processes */

static bool model_is_right(const struct model_server *s, const uint8_t *has)
{
	for (unsigned o = 0; o < OWNERS; o++)
		for (unsigned b = 0; b < BYTES; b++)
			if (has[o * BYTES + b] && !s->held[o][b])
				return false;
	return true;
}

static bool model_is_clean(const struct model_server *s, const uint8_t *has)
{
	for (unsigned o = 0; o < OWNERS; o++)
		for (unsigned b = 0; b < BYTES; b++)
			if (!has[o * BYTES + b] && s->held[o][b])
				return false;
	return true;
}
