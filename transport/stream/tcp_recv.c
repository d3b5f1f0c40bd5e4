/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_recv - from the stream to calls.  All on the loop's thread.
 *
 * Operation: bytes are received into the poller's chunk, which its connections
 * share.  A whole record there becomes a call: a small one is copied next to
 * its message, a larger one stays in the chunk and holds a reference to it.  An
 * incomplete record at the end, the part, goes to memory of the connection's
 * own; the rest of it is received there directly.
 *
 * A part's marks are believed only up to PART_GROW times the bytes that came,
 * or up to the length of the connection's last records; the part gets a payload
 * buffer for all of that at once.  So a connection never holds one while it
 * waits for another.
 *
 * Errors: a malformed record, one that is not a call, or a lack of memory
 * closes the connection.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "lib/stats.h"
#include "transport/stream/tcp.h"

STAT(tcp_bytes_in, "bytes received over TCP");
STAT(tcp_records, "RPC records received over TCP");
STAT(tcp_bad_records, "TCP records too long, empty or endless");
STAT(tcp_cut_records, "RPC records cut because they were too long");
STAT(tcp_read_pauses, "times a TCP connection was not read for a while");

#define PART_GROW	32
#define PART_MIN	2048u
/* A record of this size or more marks a connection of bulk data: then few bytes
 * are received before a record's length is known, since these are copied. */
#define BULK_MIN	(64u << 10)
#define BULK_RECV	(4u << 10)
/* Gathered replies are sent at this number. */
#define BATCH_CALLS	64
#define BATCH_BYTES	(128u << 10)
/* With just one connection, a batch of calls is answered in two parts of at
 * least this many, and the peer works on one part during the other. */
#define PART_CALLS	16
/* Bytes to receive before others get their turn. */
#define RECV_ROUNDS	8

/* Stops reading until tcp_recv_resume(). */
static void pause_reading(struct tcp_conn *conn)
{
	if (!conn->in.paused)
		stat_inc(tcp_read_pauses);
	conn->in.paused = true;
}

static void granted(struct pool_request *r, struct buf *b)
{
	struct tcp_conn *conn = container_of(r, struct tcp_conn, in.room);

	mutex_lock(&conn->out.box.lock);
	conn->out.granted = b;
	conn->out.waiting = false;
	outbox_kick(&conn->out.box);
	mutex_unlock(&conn->out.box.lock);
}

/* ... and until the pool gives a buffer: of @part bytes for the record, or, if
 * that is 0, of a chunk for all connections. */
static void pause_for_pool(struct tcp_conn *conn, uint32_t part)
{
	struct buf *b;

	pause_reading(conn);
	conn->in.short_of = true;
	conn->in.part_want = part;
	conn->in.room.ready = granted;
	conn->in.room.flow = part ? conn->xprt.flow : 0;
	mutex_lock(&conn->out.box.lock);
	conn->out.waiting = true;
	mutex_unlock(&conn->out.box.lock);
	b = pool_request(conn->xprt.pool, part ? part : TCP_CHUNK_SIZE,
			 &conn->in.room);
	if (b)				/* it came back meanwhile */
		granted(&conn->in.room, b);
}

/* True if another call can be taken, by the counts of calls in progress. */
static bool below_limits(struct tcp_conn *conn)
{
	const struct tcp_options *o = &conn->poller->listener->o;
	uint64_t calls = conn->in.taken - conn->pace.seen_finished -
			 conn->batch.calls;

	return calls < o->max_calls &&
	       conn->pace.seen_queued + conn->batch.bytes <= o->max_queued;
}

static bool may_take(struct tcp_conn *conn)
{
	if (unlikely(conn->secure) && tcp_secure_is_shaking(conn))
		return false;
	if (likely(below_limits(conn) && conn->batch.calls < conn->pace.max &&
		   conn->batch.bytes < BATCH_BYTES))
		return true;
	tcp_send_flush(conn);
	conn->out.box.gathering = true;
	if (below_limits(conn))
		return true;
	pause_reading(conn);
	return false;
}

/* Hands over @m with its call at @data. 0, or -EBADMSG: it was no call. */
static int tcp_give(struct tcp_conn *conn, struct tcp_msg *m,
		    const uint8_t *data, uint32_t len, uint32_t cut)
{
	struct msg *msg = &m->msg;

	stat_inc(tcp_records);
	msg->xprt = &conn->xprt;
	msg->call[0].data = data;
	msg->call[0].len = len;
	msg->ncall = 1;
	msg->call_len = len;
	if (unlikely(cut > 0)) {
		stat_inc(tcp_cut_records);
		msg_add_cut(msg, cut);
	}
	msg->in_pool = m->call_buf != NULL;
	msg->head_len = 0;
	msg->tail_len = 0;
	msg->body_len = 0;
	msg->body_ddp = false;
	msg->sent = NULL;
	conn->in.trusted -= conn->in.trusted / 8;
	conn->in.trusted = MAX(conn->in.trusted, len);
	conn->in.bulk = len >= BULK_MIN;
	conn->in.taken++;
	conn->xprt.sink->recv(conn->xprt.sink, msg);
	return conn->in.rejected ? -EBADMSG : 0;
}

/* Takes a whole record in one place; @chunk holds it, or it must be copied. */
static int tcp_take_whole(struct tcp_conn *conn, const struct record_span *span,
			  struct buf *chunk)
{
	struct tcp_msg *m = tcp_msg_alloc(conn->poller);
	const uint8_t *data = span->data;

	if (!m)
		return -ENOMEM;
	if (span->len <= TCP_CALL_SMALL) {
		data = memcpy(m->small, data, span->len);
	} else if (chunk) {
		buf_get(chunk);
		m->call_buf = chunk;
	} else {
		m->call_mem = malloc(span->len);
		if (!m->call_mem) {
			tcp_msg_free(conn->poller, m);
			return -ENOMEM;
		}
		data = memcpy(m->call_mem, data, span->len);
	}
	return tcp_give(conn, m, data, span->len, 0);
}

static uint8_t *part_data(const struct tcp_conn *conn)
{
	return conn->in.part.buf ? conn->in.part.buf->data : conn->in.part.mem;
}

static void part_drop(struct tcp_conn *conn)
{
	buf_put(conn->in.part.buf);
	free(conn->in.part.mem);
	conn->in.part = (struct tcp_part){ 0 };
}

/* Takes the part, which is a whole record now. */
static int take_part(struct tcp_conn *conn)
{
	struct tcp_msg *m = tcp_msg_alloc(conn->poller);
	uint32_t len = conn->in.part.len;
	uint32_t cut = conn->in.part.cut;
	const uint8_t *data = part_data(conn);

	if (!m)
		return -ENOMEM;
	if (len <= TCP_CALL_SMALL) {
		data = memcpy(m->small, data, len);
		part_drop(conn);
	} else {
		m->call_buf = conn->in.part.buf;
		m->call_mem = conn->in.part.mem;
		conn->in.part = (struct tcp_part){ 0 };
	}
	return tcp_give(conn, m, data, len, cut);
}

/* Moves the part from malloc'ed memory to @b. */
static void part_move(struct tcp_conn *conn, struct buf *b, uint32_t size)
{
	if (conn->in.part.len)
		memcpy(b->data, conn->in.part.mem, conn->in.part.len);
	free(conn->in.part.mem);
	conn->in.part.mem = NULL;
	conn->in.part.buf = b;
	conn->in.part.room = size;
}

/* Gets a buffer for the whole record.  0 or -EAGAIN. */
static int part_get_buf(struct tcp_conn *conn, uint32_t size)
{
	struct buf *b = pool_alloc_for(conn->xprt.pool, size,
				       conn->xprt.flow);

	if (!b) {
		pause_for_pool(conn, size);
		return -EAGAIN;
	}
	part_move(conn, b, size);
	return 0;
}

/*
 * Makes room for @need bytes of the record, or for its whole length if the
 * marks are believed. 0, -ENOMEM, or -EAGAIN: reading is paused.
 */
static int part_reserve(struct tcp_conn *conn, uint32_t need)
{
	const struct record_in *rec = &conn->in.rec;
	uint32_t claim = MIN(record_claim(rec), MSG_MAX_LEN);
	uint32_t trust = MAX(conn->in.trusted, need * PART_GROW);
	uint8_t *mem;

	claim = MAX(claim, need);
	trust = MAX(trust, PART_MIN);
	if (conn->in.part.buf || conn->in.part.room >= MIN(claim, trust))
		return 0;
	/* More fragments can follow, of any length. */
	if (claim > TCP_PART_SMALL && !rec->last)
		claim = MSG_MAX_LEN;
	if (claim > TCP_PART_SMALL &&
	    (trust >= claim || need > TCP_PART_SMALL))
		return part_get_buf(conn, claim);
	claim = MIN(claim, trust);
	/* Grow in large steps: a record of many short fragments must not be
	 * copied for each of them. */
	claim = MAX(claim, 2 * conn->in.part.room);
	claim = MIN(claim, TCP_PART_SMALL);
	if (conn->in.part.room >= claim)
		return 0;
	mem = realloc(conn->in.part.mem, claim);
	if (!mem)
		return -ENOMEM;
	conn->in.part.mem = mem;
	conn->in.part.room = claim;
	return 0;
}

/* Adds bytes to the part.  Copies them unless they are in place already; drops
 * those beyond the limit.  Not inlined: a record in one place passes it by. */
static __attribute__((noinline)) int
part_add(struct tcp_conn *conn, const struct record_span *span)
{
	uint32_t len = MIN(conn->in.part.len + span->len, MSG_MAX_LEN);
	uint32_t kept = len - conn->in.part.len;
	int err;

	if (conn->in.part.room == 0 ||
	    span->data != part_data(conn) + conn->in.part.len) {
		err = part_reserve(conn, len);
		if (err)
			return err;
		assert(conn->in.part.room >= len);
		memcpy(part_data(conn) + conn->in.part.len, span->data, kept);
	}
	conn->in.part.len = len;
	conn->in.part.cut += span->len - kept;
	return span->end ? take_part(conn) : 0;
}

/* Takes one step from *@p on: 0, 1 when no bytes are left, or -errno. */
static int tcp_parse_one(struct tcp_conn *conn, const uint8_t **p,
			 const uint8_t *end, struct buf *chunk)
{
	struct record_in before = conn->in.rec;
	const uint8_t *start = *p;
	struct record_span span;
	int err;

	switch (record_next(&conn->in.rec, p, end, &span)) {
	case RECORD_MORE:
		return 1;
	case RECORD_BAD:
		stat_inc(tcp_bad_records);
		return -EBADMSG;
	case RECORD_SPAN:
		break;
	}
	if (span.end && span.len > 0 && conn->in.part.room == 0)
		return tcp_take_whole(conn, &span, chunk);
	err = part_add(conn, &span);
	if (err == -EAGAIN) {
		conn->in.rec = before;
		*p = start;
	}
	return err;
}

/* 0, -EAGAIN when reading was paused on the way, or -errno. */
static int parse(struct tcp_conn *conn, const uint8_t **p, const uint8_t *end,
		 struct buf *chunk)
{
	int err = 0;

	while (*p < end && !err) {
		if (!may_take(conn))
			return -EAGAIN;
		err = tcp_parse_one(conn, p, end, chunk);
	}
	return err == 1 ? 0 : err;
}

/* Keeps the bytes that can't be parsed yet. */
static int rest_save(struct tcp_conn *conn, const uint8_t *p,
		     const uint8_t *end)
{
	if (p == end)
		return 0;
	conn->in.rest.len = (uint32_t)(end - p);
	conn->in.rest.off = 0;
	conn->in.rest.mem = malloc(conn->in.rest.len);
	if (!conn->in.rest.mem)
		return -ENOMEM;
	memcpy(conn->in.rest.mem, p, conn->in.rest.len);
	return 0;
}

static void rest_drop(struct tcp_conn *conn)
{
	free(conn->in.rest.mem);
	conn->in.rest.mem = NULL;
}

/* @n bytes were received and parsed. */
static void chunk_advance(struct tcp_poller *p, uint32_t n)
{
	/* Pairs with the release in buf_put(): the calls are done reading. */
	if (atomic_load_explicit(&p->chunk->ref.count,
				 memory_order_acquire) == 1) {
		p->chunk_used = 0;
		return;
	}
	p->chunk_used = ALIGN_UP(p->chunk_used + n, 64u);
	if (p->chunk_used + TCP_RECV_MAX > TCP_CHUNK_SIZE) {
		buf_put(p->chunk);
		p->chunk = NULL;
	}
}

/* Names the place of the next bytes: the part for bytes that surely belong to
 * it, then the chunk.  Returns the number of iovecs, or -errno. */
static int tcp_receive_iov(struct tcp_conn *conn, struct iovec *iov)
{
	struct tcp_poller *p = conn->poller;
	uint32_t left = conn->in.rec.left;
	bool little = conn->in.bulk && record_idle(&conn->in.rec);
	int err, n = 0;

	if (left > 0 && conn->in.part.len < MSG_MAX_LEN) {
		err = part_reserve(conn, conn->in.part.len + 1);
		if (err)
			return err;
		if (conn->in.part.room - conn->in.part.len >= left) {
			iov[n].iov_base = part_data(conn) + conn->in.part.len;
			iov[n++].iov_len = left;
			little = conn->in.part.buf;
		}
	}
	p->chunk_idle = false;
	if (!p->chunk) {
		p->chunk = pool_alloc(p->listener->env.pool, TCP_CHUNK_SIZE);
		p->chunk_used = 0;
	}
	if (p->chunk) {
		/* Behind the bytes that calls still use. */
		iov[n].iov_base = p->chunk->data + p->chunk_used;
		iov[n++].iov_len = little ? BULK_RECV : TCP_RECV_MAX;
	} else if (n == 0) {
		pause_for_pool(conn, 0);
		return -EAGAIN;
	}
	return n;
}

/* Parses the @n bytes that came into @iov. 0 or -errno. */
static int received(struct tcp_conn *conn, const struct iovec *iov, int niov,
		    size_t n)
{
	struct tcp_poller *p = conn->poller;
	const uint8_t *at = iov[0].iov_base, *end;
	bool midway = !record_idle(&conn->in.rec);
	uint64_t taken = conn->in.taken;
	int err = 0;

	conn->times.active = loop_now(p->loop);
	conn->pace.max = conn->pace.at_once >= 2 * PART_CALLS &&
			 loop_one_ready(p->loop) ? conn->pace.at_once / 2 :
			 BATCH_CALLS;
	if (!p->chunk || at != p->chunk->data + p->chunk_used) {
		end = at + MIN(n, iov[0].iov_len);
		n -= (size_t)(end - at);
		err = tcp_parse_one(conn, &at, end, NULL);
		at = iov[niov - 1].iov_base;
	}
	if (n > 0) {
		end = at + n;
		if (err >= 0)
			err = parse(conn, &at, end, p->chunk);
		if (err == -EAGAIN)
			err = rest_save(conn, at, end);
		chunk_advance(p, (uint32_t)n);
	}
	conn->pace.at_once = (unsigned)(conn->in.taken - taken);
	if (!record_idle(&conn->in.rec) && (!midway || taken != conn->in.taken))
		conn->times.since = conn->times.active;
	return MIN(err, 0);
}

/* Stop reading: no record follows a bad mark, and the socket can be ready once
 * more before update closes it. */
static void tcp_give_up(struct tcp_conn *conn, int err)
{
	conn->in.paused = true;
	outbox_close(&conn->out.box, err);
}

/* The bytes, or -errno. */
static ssize_t bytes_from_peer(struct tcp_conn *conn, struct iovec *iov,
			       int niov)
{
	ssize_t n;

	if (unlikely(conn->secure))
		return tcp_secure_recv(conn, iov, niov);
	n = niov == 1 ? recv(conn->fd.fd, iov[0].iov_base, iov[0].iov_len, 0) :
			readv(conn->fd.fd, iov, niov);
	return n < 0 ? -errno : n;
}

/* True if more bytes might be ready. */
static bool tcp_receive(struct tcp_conn *conn)
{
	struct iovec iov[2] = { 0 };
	int niov = tcp_receive_iov(conn, iov);
	bool all_came;
	ssize_t n;
	int err;

	if (niov < 0) {
		if (niov != -EAGAIN)
			tcp_give_up(conn, niov);
		return false;
	}
	n = bytes_from_peer(conn, iov, niov);
	if (n <= 0) {
		conn->eof = n == 0;
		if (n < 0 && n != -EAGAIN && n != -EINTR)
			tcp_give_up(conn, (int)n);
		return false;
	}
	stat_add(tcp_bytes_in, (uint64_t)n);
	conn->in.received += (uint64_t)n;
	conn->out.box.gathering = true;
	err = received(conn, iov, niov, (size_t)n);
	/* Each receive of bulk data ends a call or two.  Their replies wait for
	 * the replies of the next receives: one system call then sends many. */
	if (err || !conn->in.bulk)
		tcp_send_flush(conn);
	if (err)
		tcp_give_up(conn, err);
	/* TLS hands out a record at a time. */
	all_came = !conn->secure &&
		   (size_t)n < iov[0].iov_len + iov[1].iov_len;
	return !err && !all_came;
}

void tcp_recv(struct tcp_conn *conn)
{
	for (int i = 0; i < RECV_ROUNDS && !conn->in.paused; i++)
		if (!tcp_receive(conn))
			break;
	/* The socket does not tell of the rest of a TLS record. */
	while (unlikely(conn->secure) && !conn->in.paused &&
	       tcp_secure_pending(conn) && tcp_receive(conn))
		;
	if (conn->out.box.gathering)
		tcp_send_flush(conn);
}

void tcp_recv_take(struct tcp_conn *conn)
{
	struct tcp_poller *p = conn->poller;
	struct buf *b;

	mutex_lock(&conn->out.box.lock);
	b = conn->out.granted;
	conn->out.granted = NULL;
	mutex_unlock(&conn->out.box.lock);
	conn->in.short_of = false;
	if (!b)
		return;
	if (conn->state == TCP_LIVE && conn->in.part_want) {
		part_move(conn, b, conn->in.part_want);
	} else if (conn->state == TCP_LIVE && !p->chunk) {
		p->chunk = b;
		p->chunk_used = 0;
	} else {
		buf_put(b);
	}
}

void tcp_recv_resume(struct tcp_conn *conn)
{
	const uint8_t *p, *end;
	int err;

	conn->in.paused = false;
	conn->times.since = loop_now(conn->poller->loop);
	if (!conn->in.rest.mem)
		return;
	p = conn->in.rest.mem + conn->in.rest.off;
	end = conn->in.rest.mem + conn->in.rest.len;
	conn->out.box.gathering = true;
	err = parse(conn, &p, end, NULL);
	tcp_send_flush(conn);
	conn->in.rest.off = (uint32_t)(p - conn->in.rest.mem);
	if (p == end)
		rest_drop(conn);
	if (err && err != -EAGAIN)
		tcp_give_up(conn, err);
}

void tcp_recv_drop(struct tcp_conn *conn)
{
	rest_drop(conn);
	part_drop(conn);
	record_in_init(&conn->in.rec, MSG_MAX_TAKEN);
}
