/* SPDX-License-Identifier: BSD-2-Clause */
/* stream_fixture - a server on real loopback sockets. */
#include "tests/unit/stream_fixture.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>

#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "lib/xdr.h"
#include "tests/unit/runner.h"
#include "wire/record.h"

#define WORKERS		2
#define RECORD_BUF	(POOL_BUF_MAX + 64)

struct fx fx;

/* The contents of msg->upper. */
struct upper {
	struct msg	*next;
	unsigned	 uses;		/* never cleared by the transport */
};

struct queue {
	struct msg	*first;
	struct msg	*last;
	unsigned	 len;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_came = PTHREAD_COND_INITIALIZER;
static struct queue work, held;
static bool ending;
static bool holds_none;		/* FX_HOLD is FX_ECHO from now on */
static pthread_t workers[WORKERS];

static struct upper *upper_of(struct msg *m)
{
	return m->upper;
}

static void queue_add(struct queue *q, struct msg *m)
{
	upper_of(m)->next = NULL;
	if (q->first)
		upper_of(q->last)->next = m;
	else
		q->first = m;
	q->last = m;
	q->len++;
}

static struct msg *queue_take(struct queue *q)
{
	struct msg *m = q->first;

	if (m) {
		q->first = upper_of(m)->next;
		q->len--;
	}
	return m;
}

static uint32_t word(const struct msg *m, unsigned i)
{
	uint32_t v;

	memcpy(&v, m->call[0].data + 4 * i, 4);
	return be32toh(v);
}

static uint8_t pattern(uint32_t xid, size_t i)
{
	return (uint8_t)(xid * 31 + i * 7 + (i >> 8));
}

static void send_reply(struct msg *m)
{
	if (atomic_load(&fx.notes))
		m->sent = &fx.sent[word(m, 0) % FX_NOTED];
	if (xprt_reply(m) < 0)
		atomic_fetch_add(&fx.lost, 1);
}

/* Moves the body into a pipe. */
static void pipe_body(struct msg *m)
{
	struct pipe *pipe = pipe_get(fx.pipes);

	if (!pipe)
		return;
	pipe->left = m->body_len;
	if (!m->xprt->takes_pipes ||
	    write(pipe->wr, m->body->data, m->body_len) !=
	    (ssize_t)m->body_len) {
		pipe_put(pipe);
		return;
	}
	buf_put(m->body);
	m->body = NULL;
	m->pipe = pipe;
	atomic_fetch_add(&fx.piped, 1);
}

/* A buffer for the reply.  A poller may wait here until the pool has grown.
 * NULL: the pool is full, and the call is lost. */
static struct buf *get_buf(struct msg *m, uint32_t len)
{
	bool before = thread_must_not_wait;
	struct buf *b;

	thread_must_not_wait = false;
	b = pool_alloc(m->xprt->pool, len);
	thread_must_not_wait = before;
	return b;
}

static void reply_big(struct msg *m)
{
	uint32_t xid = word(m, 0), len = word(m, 2);
	struct buf *b = get_buf(m, len);

	if (!b) {
		xprt_drop(m);
		return;
	}
	for (uint32_t i = 0; i < len; i++)
		b->data[i] = pattern(xid, i);
	memcpy(m->head, m->call[0].data, 4);
	memcpy(m->head + 4, "tail", 4);
	m->head_len = 4;
	m->tail_len = 4;
	m->body = b;
	m->body_len = len;
	if (word(m, 1) == FX_PIPE || word(m, 1) == FX_WORK_PIPE)
		pipe_body(m);
	send_reply(m);
}

static void reply_echo(struct msg *m)
{
	const uint8_t *data = m->call[0].data;
	uint32_t head = MIN(m->call_len, (uint32_t)FX_CALL_MIN);

	memcpy(m->head, data, head);
	m->head_len = head;
	if (m->call_len > head) {
		m->body_len = m->call_len - head;
		m->body = get_buf(m, m->body_len);
		if (!m->body) {
			xprt_drop(m);
			return;
		}
		memcpy(m->body->data, data + head, m->body_len);
	}
	send_reply(m);
}

static void act(struct msg *m)
{
	switch (word(m, 1)) {
	case FX_BIG:
	case FX_WORK_BIG:
	case FX_PIPE:
	case FX_WORK_PIPE:
		reply_big(m);
		break;
	case FX_DROP:
		xprt_drop(m);
		break;
	case FX_REJECT:
		xprt_reject(m);
		break;
	case FX_KEEP:
		fx.kept = m->xprt;
		xprt_get(fx.kept);
		reply_echo(m);
		break;
	case FX_STOP:
		while (sem_wait(&fx.go) && errno == EINTR)
			;
		reply_echo(m);
		break;
	default:
		reply_echo(m);
	}
}

static void worker(void *arg)
{
	struct msg *m;

	mutex_lock(&lock);
	while (!ending || work.first) {
		m = queue_take(&work);
		if (!m) {
			pthread_cond_wait(&work_came, &lock);
			continue;
		}
		mutex_unlock(&lock);
		act(m);
		mutex_lock(&lock);
	}
	mutex_unlock(&lock);
}

static bool is_work(uint32_t op)
{
	return op == FX_WORK || op == FX_WORK_BIG || op == FX_WORK_PIPE;
}

static void recv_call(struct xprt_sink *sink, struct msg *m)
{
	bool here = false;
	uint32_t op;

	for (unsigned i = 0; i < FX_LOOPS; i++)
		if (fx.loops[i] == loop_current)
			atomic_fetch_or(&fx.loops_used, 1u << i);
	atomic_store(&fx.uses, ++upper_of(m)->uses);
	if (m->call_len < FX_CALL_MIN) {
		xprt_drop(m);
		atomic_fetch_add(&fx.taken, 1);
		return;
	}
	op = word(m, 1);
	mutex_lock(&lock);
	fx.peer = m->xprt->peer;
	fx.local = m->xprt->local;
	if (is_work(op)) {
		queue_add(&work, m);
		pthread_cond_signal(&work_came);
	} else if (op == FX_HOLD && !holds_none) {
		queue_add(&held, m);
	} else {
		here = true;
	}
	mutex_unlock(&lock);
	atomic_fetch_add(&fx.taken, 1);
	if (here)
		act(m);
}

void fx_start(unsigned pool_mib)
{
	memset(&fx, 0, sizeof(fx));
	ending = holds_none = false;
	ck_assert_int_eq(pool_create((size_t)pool_mib << 20, &fx.pool), 0);
	ck_assert_int_eq(pipes_create(&fx.pipes), 0);
	for (unsigned i = 0; i < FX_LOOPS; i++) {
		ck_assert_int_eq(loop_create("poll", &fx.loops[i]), 0);
		ck_assert_int_eq(loop_start(fx.loops[i]), 0);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		ck_assert_int_eq(thread_start(&workers[i], "work", worker,
					      NULL), 0);
	fx.sink.recv = recv_call;
	fx.sink.msg_upper = sizeof(struct upper);
	fx.env = (struct xprt_env){
		.sink = &fx.sink, .pool = fx.pool, .loops = fx.loops,
		.nloops = FX_LOOPS, .max_conns = 100,
	};
}

/* Until the listener is freed, a connection in its queue can still bring calls.
 * From here on these are answered at once: to free the listener waits for
 * them. */
static void hold_none(void)
{
	mutex_lock(&lock);
	holds_none = true;
	mutex_unlock(&lock);
	fx_release(true);
}

void fx_stop(void)
{
	hold_none();
	if (fx.l)
		fx_unlisten();
	mutex_lock(&lock);
	ending = true;
	pthread_cond_broadcast(&work_came);
	mutex_unlock(&lock);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	for (unsigned i = 0; i < FX_LOOPS; i++)
		loop_destroy(fx.loops[i]);
	ck_assert_uint_eq(fx_pool_out(), 0);
	pipes_destroy(fx.pipes);
	pool_destroy(fx.pool);
}

struct sockaddr_storage fx_addr(const char *host, uint16_t port)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_storage ss = { 0 };

	sin.sin_port = sin6.sin6_port = htons(port);
	if (inet_pton(AF_INET, host, &sin.sin_addr) == 1) {
		memcpy(&ss, &sin, sizeof(sin));
	} else {
		ck_assert_int_eq(inet_pton(AF_INET6, host, &sin6.sin6_addr),
				 1);
		memcpy(&ss, &sin6, sizeof(sin6));
	}
	return ss;
}

uint16_t fx_port(void)
{
	struct sockaddr_in sin;

	/* At the same place in both families. */
	memcpy(&sin, &fx.l->local, sizeof(sin));
	return ntohs(sin.sin_port);
}

void fx_listen_on(const char *host, const struct tcp_options *o)
{
	struct sockaddr_storage ss = fx_addr(host, 0);

	ck_assert_int_eq(tcp_listen(&fx.env, (struct sockaddr *)&ss, o,
				    &fx.l), 0);
}

void fx_listen(const struct tcp_options *o)
{
	fx_listen_on("127.0.0.1", o);
}

void fx_unlisten(void)
{
	fx.l->ops->free(fx.l);
	fx.l = NULL;
}

unsigned fx_conns(void)
{
	return fx.l->ops->count(fx.l);
}

void fx_settle(void)
{
	/* Time for events that must not happen. */
	pause_on_purpose(50000);
}

static void fx_nothing(void *arg)
{
}

bool fx_arrived(int fd)
{
	int left;

	ck_assert_int_eq(ioctl(fd, SIOCOUTQ, &left), 0);
	return left == 0;
}

void fx_received(uint64_t bytes)
{
	EVENTUALLY(stats_sum_by_name("tcp_bytes_in") >= bytes);
}

void fx_turn(void)
{
	for (unsigned i = 0; i < FX_LOOPS; i++)
		loop_call(fx.loops[i], fx_nothing, NULL);
}

unsigned fx_held(void)
{
	unsigned n;

	mutex_lock(&lock);
	n = held.len;
	mutex_unlock(&lock);
	return n;
}

struct xprt *fx_held_xprt(void)
{
	struct xprt *x;

	mutex_lock(&lock);
	x = held.last->xprt;
	mutex_unlock(&lock);
	return x;
}

unsigned fx_release(bool worker_too)
{
	struct queue all;
	struct msg *m;
	unsigned n;

	mutex_lock(&lock);
	all = held;
	held = (struct queue){ 0 };
	n = all.len;
	while (worker_too && (m = queue_take(&all)))
		queue_add(&work, m);
	pthread_cond_broadcast(&work_came);
	mutex_unlock(&lock);
	while ((m = queue_take(&all)))
		reply_echo(m);
	return n;
}

size_t fx_pool_out(void)
{
	size_t taken, out;

	pool_usage(fx.pool, &taken, &out);
	return out;
}

int fx_connect_to(const struct sockaddr_storage *to, int type)
{
	struct timeval tv = { .tv_sec = 60 };
	int one = 1, fd = socket(to->ss_family, type | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	if (type == SOCK_STREAM)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)to,
				 to->ss_family == AF_INET6 ?
				 sizeof(struct sockaddr_in6) :
				 sizeof(struct sockaddr_in)), 0);
	return fd;
}

int fx_connect(void)
{
	return fx_connect_to(&fx.l->local, SOCK_STREAM);
}

void fx_send(int fd, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len > 0) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0)
			return;		/* the server closed */
		p += n;
		len -= (size_t)n;
	}
}

bool fx_recv(int fd, void *data, size_t len)
{
	uint8_t *p = data;

	while (len > 0) {
		ssize_t n = recv(fd, p, len, 0);

		ck_assert(n >= 0 || (errno != EAGAIN && errno != EINTR));
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

size_t fx_call(uint8_t *out, uint32_t xid, enum fx_op op, uint32_t arg,
	       size_t len)
{
	record_put_mark(out, len);
	xdr_set_word(out + 4, xid);
	xdr_set_word(out + 8, op);
	xdr_set_word(out + 12, arg);
	for (size_t i = FX_CALL_MIN; i < len; i++)
		out[4 + i] = pattern(xid, i);
	return len + 4;
}

void fx_send_call(int fd, uint32_t xid, enum fx_op op, uint32_t arg,
		  size_t len)
{
	uint8_t *out = malloc(len + 4);

	fx_send(fd, out, fx_call(out, xid, op, arg, len));
	free(out);
}

long fx_recv_record(int fd, uint8_t *out, size_t size)
{
	uint32_t mark;

	if (!fx_recv(fd, &mark, 4))
		return -1;
	mark = be32toh(mark);
	ck_assert(mark & RECORD_LAST);
	mark &= ~RECORD_LAST;
	ck_assert_uint_le(mark, size);
	return fx_recv(fd, out, mark) ? (long)mark : -1;
}

static uint32_t recv_checked(int fd, size_t first, size_t tail, long *len)
{
	uint8_t *in = malloc(RECORD_BUF);
	uint32_t xid;

	*len = fx_recv_record(fd, in, RECORD_BUF);
	ck_assert_int_ge(*len, 4);
	memcpy(&xid, in, 4);
	xid = be32toh(xid);
	for (size_t i = first; i < (size_t)*len - tail; i++)
		if (in[i] != pattern(xid, first == 4 ? i - 4 : i))
			ck_abort_msg("byte %zu of xid %u is wrong", i, xid);
	if (tail)
		ck_assert_mem_eq(in + *len - tail, "tail", tail);
	free(in);
	return xid;
}

uint32_t fx_recv_echo(int fd)
{
	long len;

	return recv_checked(fd, FX_CALL_MIN, 0, &len);
}

uint32_t fx_recv_big(int fd, uint32_t want)
{
	uint32_t xid;
	long len;

	xid = recv_checked(fd, 4, 4, &len);
	ck_assert_int_eq(len, (long)want + 8);
	return xid;
}

bool fx_ended(int fd)
{
	uint8_t c;

	return !fx_recv(fd, &c, 1);
}
