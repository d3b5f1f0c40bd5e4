/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attack - runs a row: connects, has the script sent, takes the answers.
 *
 * A call that is good is sent behind the script.  A responder handles the
 * messages of a connection in order, so after its reply no answer can come for
 * a message that was dropped.
 */
#include "tests/adversary/adversary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/unit/pause.h"

enum {
	R_BYTES = 1 << 20, W_BYTES = 1 << 16, SOME_BYTES = 4096,
	GREETING = 0x600dca11,	/* xids of the good calls */
	PATIENCE_MS = 20000,
	BLANK = 0xee,
};

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Takes a message, or sees the end.  False: nothing came for so long. */
static bool await(struct peer *p, const struct peer_msg **m, bool *down)
{
	uint64_t until = now_ms() + PATIENCE_MS;

	do {
		mutex_lock(&p->lock);
		*m = NULL;
		if (p->nmsgs != p->ntaken) {
			p->msg = p->msgs[p->ntaken++ % PEER_MSGS];
			*m = &p->msg;
		}
		*down = p->down && p->nsent == 0;
		mutex_unlock(&p->lock);
		if (*m || *down)
			return true;
		/* Another thread brings it. */
		pause_on_purpose(50);
	} while (now_ms() < until);
	return false;
}

/* ---- the answers */

static unsigned judge_rpc(const uint8_t *data, uint32_t len, uint32_t xid)
{
	struct xdr_in x;
	uint32_t stat, result;

	xdr_in_init(&x, data, len);
	if (xdr_get_u32(&x) != xid || xdr_get_u32(&x) != 1)
		return STRANGE;
	if (xdr_get_u32(&x) != 0)
		return xdr_ok(&x) ? REFUSED : STRANGE;
	xdr_get_u32(&x);
	xdr_get_opaque(&x, 400);
	stat = xdr_get_u32(&x);
	if (!xdr_ok(&x))
		return STRANGE;
	if (stat != 0)
		return stat == 4 ? GARBAGE : REFUSED;
	result = xdr_get_u32(&x);	/* NULL has none */
	return xdr_ok(&x) && result != 0 ? STATUS : RESULTS;
}

static unsigned judge_error(const struct peer_msg *m)
{
	uint32_t err = xdr_word(m->data + 16);

	if (err == RPCRDMA_ERR_CHUNK)
		return ERR_CHUNK;
	if (err == RPCRDMA_ERR_VERS && m->len >= 28 &&
	    xdr_word(m->data + 20) == 1 && xdr_word(m->data + 24) == 1)
		return ERR_VERS;
	return STRANGE;
}

static bool was_sent(const struct attack *a, uint32_t xid)
{
	for (unsigned i = 0; i < a->nsent; i++)
		if (a->xids[i] == xid)
			return true;
	return false;
}

/* An invalidated handle must be one that we gave. */
static bool was_given(const struct attack *a, uint32_t handle)
{
	return handle == a->region[MEMORY_R].handle ||
	       handle == a->region[MEMORY_W].handle;
}

static unsigned judge(struct attack *a, const struct peer_msg *m)
{
	struct rpcrdma_header *h = &a->peer.hdr;
	uint32_t xid;

	if (m->len < 20)
		return STRANGE;
	xid = xdr_word(m->data);
	if (!was_sent(a, xid) || xdr_word(m->data + 8) == 0 ||
	    (m->invalidated && !was_given(a, m->handle)))
		return STRANGE;
	if (xdr_word(m->data + 12) == RPCRDMA_ERROR)
		return m->invalidated ? STRANGE : judge_error(m);
	if (rpcrdma_header_decode(m->data, m->len, h) < 0 || h->nreads > 0)
		return STRANGE;
	if (h->proc == RPCRDMA_MSG)
		return h->has_reply && h->reply.length > 0 ? STRANGE :
			judge_rpc(m->data + h->len, m->len - h->len, xid);
	if (h->proc != RPCRDMA_NOMSG || !h->has_reply ||
	    h->reply.length > W_BYTES)
		return STRANGE;
	return judge_rpc(a->region[MEMORY_W].bytes, h->reply.length, xid);
}

static bool is_good(const struct peer_msg *m)
{
	return m->len >= 28 && xdr_word(m->data) == GREETING &&
	       xdr_word(m->data + 12) == RPCRDMA_MSG &&
	       xdr_word(m->data + 8) > 0 &&
	       judge_rpc(m->data + 28, m->len - 28, GREETING) == RESULTS;
}

static void send_good(struct attack *a)
{
	unsigned nsent = a->nsent;

	script_run(a, "msg xid:0x600dca11 0 0 0 null");
	a->nsent = nsent;
}

/* True when no other answer is to come. */
static bool is_over(const struct attack *a, bool good)
{
	if (a->seen & END)
		return true;
	if (a->allowed == END || !good)
		return false;
	return (a->allowed & SILENCE) || a->answers >= a->nsent;
}

/* Takes all answers. */
static void take_answers(struct attack *a)
{
	const struct peer_msg *m;
	bool good = false, down;

	while (!*a->why && !is_over(a, good)) {
		if (!await(&a->peer, &m, &down)) {
			strcpy(a->why, good ? "no answer came" :
					      "the server went silent");
			break;
		}
		if (!m) {
			a->seen |= END;
			break;
		}
		if (is_good(m))
			good = true;
		else
			a->answers++, a->seen |= judge(a, m);
		if (m->len >= 20)
			a->granted = xdr_word(m->data + 8);
	}
	if (a->seen == 0 && good)
		a->seen = SILENCE;
}

void attack_wait(struct attack *a)
{
	if (!a->closed)
		send_good(a);
	take_answers(a);
}

/* ---- memory */

static void add_region(struct attack *a, enum memory k, uint32_t len,
		       unsigned access)
{
	struct region *r = &a->region[k];

	r->len = len;
	r->bytes = malloc(len);
	memset(r->bytes, k == MEMORY_W ? BLANK : 0, len);
	r->mr = peer_register(&a->peer, r->bytes, len, access);
	r->handle = r->mr->rkey;
}

static void add_regions(struct attack *a)
{
	struct region *gone = &a->region[MEMORY_GONE];
	struct region *wild = &a->region[MEMORY_WILD];

	add_region(a, MEMORY_R, R_BYTES, FABRIC_REMOTE_READ);
	add_region(a, MEMORY_W, W_BYTES, FABRIC_REMOTE_WRITE);
	add_region(a, MEMORY_GONE, SOME_BYTES, FABRIC_REMOTE_READ |
						FABRIC_REMOTE_WRITE);
	/* iWARP invalidates no handle that connections share. */
	fabric_mr_bind(a->region[MEMORY_R].mr, a->peer.fc);
	fabric_mr_bind(a->region[MEMORY_W].mr, a->peer.fc);
	fabric_mr_destroy(gone->mr);
	gone->mr = NULL;
	wild->bytes = gone->bytes;
	wild->handle = gone->handle ^ 0x5a5a5a00;
}

/* Memory for another connection alone. */
static void add_other(struct attack *a)
{
	require(peer_open_to(&a->other, &a->site->fabric,
			     (const struct sockaddr *)&a->site->addr,
			     a->site->loop, NULL) == 0);
	peer_wait_up(&a->other);
	add_region(a, MEMORY_OTHER, SOME_BYTES, FABRIC_REMOTE_READ |
						FABRIC_REMOTE_WRITE);
	fabric_mr_bind(a->region[MEMORY_OTHER].mr, a->other.fc);
}

static void drop_regions(struct attack *a)
{
	for (int i = 0; i < NMEMORIES; i++) {
		if (a->region[i].mr)
			fabric_mr_destroy(a->region[i].mr);
		if (i != MEMORY_WILD)
			free(a->region[i].bytes);
	}
	if (a->other.fc)
		peer_close(&a->other);
}

/* Nothing was written where the script did not say so, and for a call that
 * was refused nothing at all. */
static bool is_untouched(const struct attack *a)
{
	const struct region *r = &a->region[MEMORY_W];
	uint32_t from = a->seen & (RESULTS | STATUS | END) ? a->written_to : 0;

	for (uint32_t i = from; i < r->len; i++)
		if (r->bytes[i] != BLANK)
			return false;
	return true;
}

/* ---- connections */

static void choose_private(const char *script, struct peer_options *o)
{
	static const uint8_t garbage[8] = { 0xf6, 0xab, 0x0e, 0x18, 99, 0xff,
					    0xff, 0xff };
	static const uint8_t zeros[196];
	static const uint8_t most[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, 1, 0xff,
					 0xff };

	if (strstr(script, "private:garbage"))
		o->raw_private = garbage, o->raw_private_len = 8;
	else if (strstr(script, "private:cut"))
		o->raw_private = most, o->raw_private_len = 5;
	else if (strstr(script, "private:most"))
		o->raw_private = most, o->raw_private_len = 8;
	else if (strstr(script, "private:zeros"))
		o->raw_private = zeros, o->raw_private_len = sizeof(zeros);
	else if (strstr(script, "private:none"))
		o->private_data = NULL;
}

static bool came_up(struct peer *p)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	bool up, down;

	do {
		mutex_lock(&p->lock);
		up = p->up;
		down = p->down;
		mutex_unlock(&p->lock);
		/* Another thread brings it up. */
		if (!up)
			pause_on_purpose(50);
	} while (!up && !down && now_ms() < until);
	return up;
}

/* A connection that has made a call; false: it did not come about. */
static bool try_to_open(struct attack *a, const struct site *site,
			const char *script)
{
	const struct rpcrdma_private ours = {
		.remote_inv = strstr(script, "private:invalidate"),
		.send_size = PEER_INLINE, .recv_size = PEER_INLINE };
	struct peer_options o = { .private_data = &ours };
	struct rpcrdma_private theirs;
	const struct peer_msg *m;
	bool down;

	memset(a, 0, sizeof(*a));
	a->site = site;
	choose_private(script, &o);
	if (o.raw_private)
		o.private_data = NULL;
	if (peer_open_to(&a->peer, &site->fabric,
			 (const struct sockaddr *)&site->addr, site->loop,
			 &o) < 0)
		return false;
	a->open = true;
	add_regions(a);
	if (!came_up(&a->peer))
		return false;
	rpcrdma_private_decode(a->peer.fc->info.private_data,
			       a->peer.fc->info.private_len, &theirs);
	a->threshold = theirs.recv_size;
	send_good(a);
	if (!await(&a->peer, &m, &down) || !m || !is_good(m))
		return false;
	a->granted = xdr_word(m->data + 8);
	return true;
}

void attack_end(struct attack *a)
{
	if (a->open) {
		peer_close(&a->peer);
		drop_regions(a);
	}
	a->open = false;
}

static bool open_attack(struct attack *a, const struct site *site,
			const char *script)
{
	/* The CM of a device can lose a request. */
	for (int tries = site->own ? 1 : 3; tries > 0; tries--) {
		if (try_to_open(a, site, script))
			return true;
		attack_end(a);
	}
	return false;
}

/* True for rows that need a separate connection, and for those after which an
 * answer can still be on its way. */
static bool is_alone(const struct row *row)
{
	return ((row->answers & SILENCE) && row->answers != SILENCE) ||
	       strstr(row->script, "private:") ||
	       strstr(row->script, "credits:") ||
	       strstr(row->script, "free:") || strstr(row->script, "close");
}

static bool begin(struct attack *a, const struct row *row)
{
	struct region *w = &a->region[MEMORY_W];

	if (a->open && is_alone(row))
		attack_end(a);
	if (!a->open && !open_attack(a, a->site, row->script))
		return false;
	if (strstr(row->script, "other:"))
		add_other(a);
	memset(w->bytes, BLANK, w->len);
	a->allowed = row->answers & 0xffff;
	if (!a->site->own)
		a->allowed |= row->answers >> 16;
	a->written_to = 0;
	a->nsent = 0;
	a->closed = false;
	a->seen = 0;
	a->answers = 0;
	*a->why = '\0';
	return true;
}

/* The counter went up as often as it should, though perhaps just now. */
static bool was_counted(const struct row *row, uint64_t before, unsigned n)
{
	uint64_t until = now_ms() + PATIENCE_MS;

	WAIT_WHILE(stats_sum_by_name(row->counter) < before + n &&
		   now_ms() < until);
	return stats_sum_by_name(row->counter) == before + n;
}

static bool goes_on(const struct site *site)
{
	static struct attack a;
	bool well = open_attack(&a, site, "");

	attack_end(&a);
	return well;
}

bool attack_run(struct attack *a, const struct row *row)
{
	uint64_t before;

	if (!begin(a, row)) {
		strcpy(a->why, "no connection");
		attack_end(a);
		return false;
	}
	before = row->counter ? stats_sum_by_name(row->counter) : 0;
	if (script_run(a, row->script))
		attack_wait(a);
	else
		strcpy(a->why, "a script that is wrong");
	if (!*a->why && (a->seen == 0 || a->seen & ~a->allowed))
		strcpy(a->why, "not the answer");
	else if (!*a->why && !is_untouched(a))
		strcpy(a->why, "memory was written");
	else if (!*a->why && a->site->own && row->counter &&
		 !was_counted(row, before, a->nsent))
		strcpy(a->why, "not counted");
	if (*a->why || (a->seen & END) || is_alone(row))
		attack_end(a);
	if (!*a->why && (a->seen & END) && !goes_on(a->site))
		strcpy(a->why, "no new connection");
	return !*a->why;
}

/* ---- the file */

static void put_create(struct peer *p, const struct site *s, uint32_t xid)
{
	const uint32_t head[] = { xid, 1, 32, 0, 0, 0, 0, xid, 0, 2,
		100003, 3, 8, 1, 20, 0, 0, 0, 0, 0, 0, 0 };
	/* UNCHECKED; a mode, no owner, no group; a size; no times. */
	static const uint32_t how[] = { 0, 1, 0644, 0, 0, 1, 0, 0, 0, 0 };

	xdr_out_init(&p->out, p->build, sizeof(p->build));
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		xdr_put_u32(&p->out, head[i]);
	xdr_put_opaque(&p->out, s->root, s->root_len);
	xdr_put_string(&p->out, "adversary");
	for (size_t i = 0; i < ARRAY_SIZE(how); i++)
		xdr_put_u32(&p->out, how[i]);
}

static bool make_file(struct attack *a, struct site *site)
{
	const struct peer_msg *m;
	uint32_t xid = script_xid();
	struct xdr_view fh;
	struct xdr_in x;
	bool down;

	put_create(&a->peer, site, xid);
	peer_send(&a->peer);
	if (!await(&a->peer, &m, &down) || !m || m->len < 28 ||
	    judge_rpc(m->data + 28, m->len - 28, xid) != RESULTS)
		return false;
	/* Skip the headers, the status, and the mark before the handle. */
	xdr_in_init(&x, m->data, m->len);
	xdr_get_fixed(&x, 28 + 24);
	xdr_get_u64(&x);
	fh = xdr_get_opaque(&x, sizeof(site->file));
	if (!xdr_ok(&x))
		return false;
	site->file_len = fh.len;
	memcpy(site->file, fh.data, fh.len);
	return true;
}

bool attack_prepare(struct site *site)
{
	static const struct row fill = { .name = "the file is made",
		.script = "msg 1 data r:8192 0 0 0 head:8192",
		.answers = RESULTS };
	static struct attack a;
	bool made = open_attack(&a, site, "") && make_file(&a, site) &&
		    attack_run(&a, &fill);

	attack_end(&a);
	return made;
}
