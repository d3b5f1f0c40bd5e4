/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock manager for its model: the server's own code, from the step behind
 * the order of calls on, with one file of two bytes and two hosts of one owner
 * each.
 *
 * A search goes back and forth between states.  So each step makes the lock
 * manager's table of the model's state, runs the code, and writes the state
 * down again.
 */
#include "tests/models/nlm_code.c"

#define OWNERS	2
#define BYTES	2
#define WAITS	3
/* The call-backs of the model, which are the server's last ones. */
#ifndef TELLS
#define TELLS	2
#endif
#define SKIPPED	(TRIES - TELLS)

/* One waiter, in the order of the file's. */
struct model_wait {
	uint8_t used, owner, start, end, exclusive;
	uint8_t granted, cut, kept, calling, told, first, tries, grant;
	uint8_t before[BYTES];
};

/* The server's state.  A byte is held by an owner 0: not, 1: as shared, 2: as
 * exclusive. */
struct model_server {
	uint8_t held[OWNERS][BYTES];
	struct model_wait wait[WAITS];
	uint8_t grants;			/* so far */
};

/* The call-backs that a step made. */
static struct { uint8_t owner, grant, try; } told[WAITS];
static unsigned ntold;

/* ---- the rest of the server */

int rpc_client_call(struct rpc_client *c, const struct rpc_client_to *to,
		    const void *args, size_t len, rpc_client_done *done,
		    void *arg)
{
	struct telling *t = arg;

	told[ntold].owner = t->host->name[0] - '0';
	told[ntold].grant = (uint8_t)(t->cookie / NLM_CALL_BACKS);
	told[ntold++].try = (uint8_t)(t->cookie % NLM_CALL_BACKS - SKIPPED);
	free(t);
	return 0;
}

/* No host of the model restarts. */
uint64_t rpc_call_started(const struct rpc_call *call)
{
	return 1;
}

/* ---- the state of the model, and the table */

static struct nlm_who who_of(unsigned o)
{
	static const uint8_t names[] = "01";
	struct nlm_who who = { .name = names + o, .name_len = 1,
			       .oh = names + o, .oh_len = 1 };

	who.addr.s6_addr[15] = (uint8_t)(o + 1);
	return who;
}

static void set_range(struct nlm_hold *h, unsigned byte, bool exclusive)
{
	const struct nlm_span at = { byte, byte, exclusive };
	struct nlm_spare spare;

	nlm_spare_get(&nlm.table, h->owner->host, false, &spare);
	nlm_range_set(&nlm.table, h, &at, 1, &spare);
	nlm_spare_put(&spare);
}

static void load_hold(const struct model_server *s, unsigned o)
{
	const struct nlm_who who = who_of(o);
	struct nlm_owner *owner = nlm_owner_get(&nlm.table, &who);

	owner->host->monitored = true;
	owner->host->calling = OWNERS;	/* the call can end so many */
	for (unsigned b = 0; b < BYTES; b++)
		if (s->held[o][b])
			set_range(nlm_hold_make(&nlm, the_file, owner), b,
				  s->held[o][b] == 2);
}

static void load_wait(const struct model_wait *m)
{
	const struct nlm_who who = who_of(m->owner);
	const struct nlm_span at = { m->start, m->end, m->exclusive };
	struct nlm_wait *w = nlm_wait_add(&nlm.table, the_file,
					  nlm_owner_find(&nlm.table, &who),
					  &at);

	w->granted = m->granted;
	w->cut = m->cut;
	w->kept = m->kept;
	w->calling = m->calling;
	w->told = m->told;
	w->tries = m->granted ? m->tries + SKIPPED : 0;
	w->first = m->first + SKIPPED;
	w->id = m->grant * NLM_CALL_BACKS;
	for (unsigned b = 0; b < BYTES; b++)
		if (m->before[b])
			nlm_wait_keep(w, &(struct nlm_span){
				      b, b, m->before[b] == 2 }, 1);
	if (w->granted || w->cut)
		nlm_wait_put(w, NULL);
	if (w->granted) {
		nlm_wait_put(w, &nlm.grants);
		if (!w->calling)
			nlm_due_put(w, &nlm.due);
	}
}

static void load(const struct model_server *s)
{
	static const struct nlm_limits limits = {
		9, 9, 99, 99, 99, 99, 9, 9, 99, 99,
	};
	static bool is_set;

	if (!is_set) {
		is_set = true;
		nlm_table_init(&nlm.table, &limits);
		CDS_INIT_LIST_HEAD(&nlm.awaiting);
		pthread_mutex_init(&nlm.lock, NULL);
		pthread_mutex_init(&nlm.await_lock, NULL);
		pthread_cond_init(&nlm.wake, NULL);
		exp0.fs = &fs;
		nlm.config.client = (struct rpc_client *)&nlm;
	}
	the_file = nlm_file_add(&nlm.table, &fs, &handle);
	the_file->nlm = &nlm;
	the_file->exp = &exp0;
	the_file->refs = 1;
	nlm.next_grant = s->grants * NLM_CALL_BACKS;
	for (unsigned o = 0; o < OWNERS; o++)
		load_hold(s, o);
	for (unsigned i = 0; i < WAITS && s->wait[i].used; i++)
		load_wait(&s->wait[i]);
	ntold = 0;
}

static void save_wait(struct model_wait *m, const struct nlm_wait *w)
{
	*m = (struct model_wait){
		.used = 1, .owner = w->owner->host->name[0] - '0',
		.start = (uint8_t)w->at.start, .end = (uint8_t)w->at.end,
		.exclusive = w->at.exclusive, .granted = w->granted,
		.cut = w->cut, .kept = w->kept,
	};
	if (w->granted || w->cut)
		for (unsigned i = 0; i < w->nbefore; i++)
			for (uint64_t b = w->before[i].at.start;
			     b <= w->before[i].at.end; b++)
				m->before[b] = 1 + w->before[i].at.exclusive;
	if (!w->granted)
		return;
	m->calling = w->calling;
	m->told = w->told;
	/* One that was granted just now begins at 0. */
	m->tries = (uint8_t)(w->tries - MIN(w->tries, SKIPPED));
	m->first = w->told || w->calling ? (uint8_t)(w->first - SKIPPED) : 0;
	m->grant = (uint8_t)(w->id / NLM_CALL_BACKS);
}

/* A waiter was not tried, or sleeps though nothing is in its way. */
static bool forgotten;

static bool is_forgotten(const struct nlm_wait *w)
{
	const struct nlm_wait *o;

	if (w->in == &the_file->ready)
		return true;
	if (w->granted || w->cut || nlm_conflict(the_file, w->owner, &w->at))
		return false;
	cds_list_for_each_entry(o, &w->owner->waits, on_owner)
		if ((o->granted || o->cut) && nlm_overlap(&o->at, &w->at))
			return false;
	return true;
}

/* Runs the job that a mark gave, as a worker would, and frees the table. */
static void save(struct model_server *s)
{
	static const struct model_server empty;
	struct nlm_hold *h, *hnext;
	struct nlm_wait *w, *wnext;
	struct nlm_owner *o, *onext;
	struct nlm_range *r, *rnext;
	unsigned n = 0;

	while (job) {
		struct work_item *item = job;

		job = NULL;
		item->run(item);
	}
	*s = empty;
	s->grants = (uint8_t)(nlm.next_grant / NLM_CALL_BACKS);
	forgotten = false;
	cds_list_for_each_entry(w, &the_file->waits, on_file)
		forgotten |= is_forgotten(w);
	cds_list_for_each_entry_safe(w, wnext, &the_file->waits, on_file) {
		assert(n < WAITS);
		save_wait(&s->wait[n++], w);
		nlm_wait_free(&nlm.table, w);
	}
	cds_list_for_each_entry_safe(h, hnext, &the_file->holds, on_file) {
		unsigned i = h->owner->host->name[0] - '0';

		cds_list_for_each_entry_safe(r, rnext, &h->ranges, link) {
			for (uint64_t b = r->at.start; b <= r->at.end; b++)
				s->held[i][b] = 1 + r->at.exclusive;
			take(&nlm.table, h, r);
		}
		nlm_hold_free(h);
	}
	for (unsigned i = 0; i < OWNERS; i++) {
		const struct nlm_who who = who_of(i);
		struct nlm_host *host = nlm_host_find(&nlm.table, &who);

		cds_list_for_each_entry_safe(o, onext, &host->owners, on_host)
			nlm_owner_tidy(&nlm.table, o);
		nlm_host_free(&nlm.table, host);
	}
	the_file->refs = 0;
	the_file->node = NULL;
	nlm_file_free(&nlm.table, the_file);
}

/* ---- the events */

static struct xprt xprt;
static struct msg msg = { .xprt = &xprt };
static struct rpc_version version = { .vers = 4 };
static struct rpc_call call = { .msg = &msg, .version = &version,
				.prog = &nlm.prog };

/* A call of @o about the bytes of @mask, with the file counted by load(). */
static void begin_step(unsigned o, unsigned mask, bool exclusive, bool block)
{
	const struct nlm_who who = who_of(o);
	struct sockaddr_in6 *peer = (struct sockaddr_in6 *)&xprt.peer;
	struct nlm_args *a = rpc_args(&call);
	struct nlm_op *op = nlm_op(&call);

	peer->sin6_family = AF_INET6;
	peer->sin6_addr = who.addr;
	nlm.prog.ctx = &nlm;
	*a = (struct nlm_args){
		.name = { who.name, who.name_len }, .oh = { who.oh, 1 },
		.fh = { who.name, 1 },
		.off = mask == 2, .len = mask == 3 ? 2 : 1, .block = block,
		.exclusive = exclusive, .state = 1,
	};
	*(struct nlm_res *)rpc_res(&call) = (struct nlm_res){ 0 };
	memset(op, 0, sizeof(*op));
	op->nlm = &nlm;
	op->exp = &exp0;
	op->node = &node;
	op->file = the_file;
	atomic_store(&node.refs, 9);
}

typedef int step_fn(struct rpc_call *call);

static unsigned run_step(struct model_server *s, step_fn *step)
{
	step(&call);
	save(s);
	return ((struct nlm_res *)rpc_res(&call))->status;
}

/* True if a call of @o about @mask waits for the answer to a call-back. */
static bool model_awaits(const struct model_server *now, unsigned o,
			 unsigned mask)
{
	struct model_server s = *now;
	struct nlm_span at;
	bool awaits;

	load(&s);
	begin_step(o, mask, false, false);
	nlm_span_of(rpc_args(&call), &at);
	awaits = awaited_grant(&call, &at) != 0;
	save(&s);
	return awaits;
}

static unsigned model_lock(struct model_server *s, unsigned o, unsigned mask,
			   bool exclusive, bool block)
{
	load(s);
	begin_step(o, mask, exclusive, block);
	return run_step(s, nlm_lock);
}

static unsigned model_cancel(struct model_server *s, unsigned o,
			     unsigned mask, bool exclusive)
{
	load(s);
	begin_step(o, mask, exclusive, true);
	return run_step(s, nlm_cancel);
}

static unsigned model_unlock(struct model_server *s, unsigned o,
			     unsigned mask)
{
	load(s);
	begin_step(o, mask, false, false);
	return run_step(s, nlm_unlock);
}

/* The thread makes the call-backs that are due. */
static void model_tell(struct model_server *s)
{
	load(s);
	nlm_call_back(&nlm, UINT64_MAX);
	save(s);
}

/* The call-back number @try of @grant is over: with an answer, or not. */
static void model_over(struct model_server *s, unsigned o, unsigned grant,
		       unsigned try, int status)
{
	const struct nlm_who who = who_of(o);
	struct telling *t = malloc(sizeof(*t));
	uint8_t bytes[64];
	struct nlm_res r = { .status = (enum nlm_status)status };
	struct xdr_out out;
	struct xdr_in in;

	load(s);
	*t = (struct telling){
		&nlm, nlm_host_find(&nlm.table, &who),
		grant * NLM_CALL_BACKS + try + SKIPPED,
	};
	r.cookie = (struct xdr_view){ (uint8_t *)&t->cookie, 8 };
	xdr_out_init(&out, bytes, sizeof(bytes));
	nlm_put_res4(&out, &r);
	xdr_in_init(&in, bytes, (uint32_t)xdr_out_len(&out));
	told_client(t, status < 0 ? -ETIMEDOUT : 0, &in);
	save(s);
}

/* True if a client is to be called back. */
static bool model_to_tell(const struct model_server *s)
{
	for (unsigned i = 0; i < WAITS && s->wait[i].used; i++)
		if (s->wait[i].granted && !s->wait[i].calling)
			return true;
	return false;
}

/* A waiter of which @o is being called back, or NULL. */
static const struct model_wait *model_calls(const struct model_server *s,
					    unsigned o)
{
	for (unsigned i = 0; i < WAITS && s->wait[i].used; i++)
		if (s->wait[i].owner == o && s->wait[i].calling)
			return &s->wait[i];
	return NULL;
}

/* No answer of @o comes. */
static void model_silent(struct model_server *s, unsigned o)
{
	const struct model_wait w = *model_calls(s, o);

	model_over(s, o, w.grant, w.tries, -1);
}

static unsigned mask_of(const struct model_wait *w)
{
	return (w->start == 0) + 2u * (w->end == 1);
}

/* The bytes of the call-back number @i of the last step. */
static unsigned told_mask(const struct model_server *s, unsigned i)
{
	for (unsigned k = 0; k < WAITS; k++)
		if (s->wait[k].granted && s->wait[k].grant == told[i].grant)
			return mask_of(&s->wait[k]);
	abort();
}

/* ---- invariants; @has is the clients' view, @racy marks bytes that their own
 * threads raced for */

static bool conflict(unsigned a, unsigned b)
{
	return a && b && a + b > 2;
}

static bool model_is_right(const struct model_server *s, const uint8_t *has,
			   const uint8_t *racy)
{
	if (forgotten)
		return false;
	for (unsigned b = 0; b < BYTES; b++) {
		const uint8_t *h0 = &has[b], *h1 = &has[BYTES + b];

		/* No byte is given to two, nor do two believe so. */
		if (conflict(s->held[0][b], s->held[1][b]))
			return false;
		if (!racy[0] && !racy[1] && conflict(*h0, *h1))
			return false;
		/* The server knows of each byte that a client has. */
		if ((!racy[0] && *h0 > s->held[0][b]) ||
		    (!racy[1] && *h1 > s->held[1][b]))
			return false;
	}
	return true;
}

/* Nothing is under way: every lock of the server has an owner.  That includes
 * threads that raced, unless the process ended before a reply came (2). */
static bool model_is_clean(const struct model_server *s, const uint8_t *has,
			   const uint8_t *racy)
{
	for (unsigned o = 0; o < OWNERS; o++)
		for (unsigned b = 0; b < BYTES; b++)
			if ((!racy[o] && has[o * BYTES + b] != s->held[o][b]) ||
			    (!(racy[o] & 2) && !has[o * BYTES + b] &&
			     s->held[o][b]))
				return false;
	return true;
}
