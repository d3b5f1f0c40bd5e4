/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The outbox over socket pairs.  Its user here sends one long stream, whose
 * bytes are known by their place, in pieces of three bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/unit/runner.h"
#include "transport/socket/outbox.h"

#define STREAM		(1u << 20)
#define PIECE		3u
#define FEW		8u	/* pieces in one fill */

enum step { FILL, SENDMSG, SENT, NSTEPS };

static struct {
	struct outbox	o;
	int		peer;
	/* Under the outbox's lock. */
	size_t		posted;
	size_t		published;
	unsigned	updates;
	/* The sender's. */
	size_t		claimed;
	size_t		at;
	unsigned	fills;
	bool		in_fill;
	bool		last_full;
	/* Faults. */
	size_t		room;		/* that the socket has */
	unsigned	calls;		/* of sendmsg() */
	int		broken;		/* errno of ... */
	unsigned	broken_at;	/* this call of sendmsg() */
	unsigned	fill_fails_at;	/* this fill; 0: none */
	enum step	kill_step;
	unsigned	kill_at;	/* this many of it; 0: never */
	size_t		pipe_at;	/* the stream's bytes from here ... */
	size_t		pipe_end;	/* to here are in the pipe */
	struct pipe	pipe;
} t;

static uint8_t stream[STREAM];

static void maybe_kill(enum step step, unsigned nth)
{
	if (t.kill_step != step || t.kill_at != nth)
		return;
	ck_assert(!outbox_kill(&t.o));
	ck_assert(!outbox_over(&t.o));
}

/* A socket with just as much room as a test says; every call is interrupted
 * once. */
ssize_t sendmsg(int fd, const struct msghdr *mh, int flags)
{
	static bool interrupted;
	size_t left = t.room, n = 0;

	interrupted = !interrupted;
	if (interrupted) {
		errno = EINTR;
		return -1;
	}
	t.calls++;
	maybe_kill(SENDMSG, t.calls);
	if (t.broken && t.calls == t.broken_at) {
		errno = t.broken;
		return -1;
	}
	if (t.room == SIZE_MAX)
		return syscall(SYS_sendmsg, fd, mh, flags);
	for (size_t i = 0; i < mh->msg_iovlen && left > 0; i++) {
		size_t len = MIN(mh->msg_iov[i].iov_len, left);

		ck_assert_int_eq(send(fd, mh->msg_iov[i].iov_base, len, 0),
				 (int)len);
		left -= len;
		n += len;
	}
	t.room = left;
	errno = EAGAIN;
	return n > 0 ? (ssize_t)n : -1;
}

static bool claim(struct outbox *o)
{
	t.claimed = t.posted;
	return t.at < t.claimed;
}

static int fill(struct outbox *o, struct outbox_piece *p)
{
	size_t end = t.at < t.pipe_at ? MIN(t.pipe_at, t.claimed) : t.claimed;

	ck_assert(!t.in_fill);
	t.in_fill = true;
	t.fills++;
	maybe_kill(FILL, t.fills);
	if (t.at >= t.pipe_at && t.at < t.pipe_end) {
		p->pipe = &t.pipe;
		p->piped = t.pipe_end - t.at;
		return 0;
	}
	for (size_t at = t.at; at < end && p->niov < FEW; p->niov++) {
		size_t len = MIN(PIECE, end - at);

		p->iov[p->niov] = (struct iovec){ stream + at, len };
		at += len;
		p->more = at < t.claimed;
	}
	return t.fill_fails_at == t.fills ? -EACCES : 0;
}

static int sent(struct outbox *o, size_t n, bool full)
{
	ck_assert(t.in_fill);
	t.in_fill = false;
	t.last_full = full;
	t.at += n;
	maybe_kill(SENT, t.fills);
	return 0;
}

static void publish(struct outbox *o, size_t n)
{
	t.published += n;
	ck_assert_uint_eq(t.published, t.at);
	ck_assert_uint_eq(t.published, o->sent);
}

static void update(struct outbox *o)
{
	t.updates++;
}

static const struct outbox_ops ops = {
	.claim = claim, .fill = fill, .sent = sent, .publish = publish,
};

static void setup(void)
{
	int fd[2];

	memset(&t, 0, sizeof(t));
	t.room = SIZE_MAX;
	t.pipe_at = t.pipe_end = SIZE_MAX;
	for (size_t i = 0; i < STREAM; i++)
		stream[i] = (uint8_t)(i ^ i >> 8 ^ i >> 16);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
				    fd), 0);
	t.peer = fd[1];
	outbox_init(&t.o, &ops, update, fd[0], NULL);
}

static void teardown(void)
{
	close(t.o.fd);
	close(t.peer);
	outbox_fini(&t.o);
}

static void again(void)
{
	teardown();
	setup();
}

static void post(size_t n)
{
	mutex_lock(&t.o.lock);
	t.posted += n;
	outbox_push(&t.o);
	mutex_unlock(&t.o.lock);
}

/* The peer has exactly the stream up to @end. */
static void has_come(size_t end)
{
	uint8_t got[256];
	ssize_t n = recv(t.peer, got, sizeof(got), 0);

	ck_assert_int_eq(MAX(n, 0), (int)end);
	ck_assert_mem_eq(got, stream, end);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(a_socket_that_is_full_after_any_byte_gets_the_rest_later)
{
	const size_t len = 2 * FEW * PIECE + 5;
	unsigned fills;

	for (size_t room = 0; room < len; room++) {
		again();
		t.room = room;
		post(len);
		ck_assert(t.o.blocked && t.last_full);
		ck_assert_uint_eq(t.published, room);
		fills = t.fills;
		post(1);
		ck_assert_uint_eq(t.fills, fills);
		t.room = 1;
		outbox_ready(&t.o);
		ck_assert_uint_eq(t.published, room + 1);
		ck_assert(t.o.blocked);
		t.room = SIZE_MAX;
		outbox_ready(&t.o);
		ck_assert(!t.o.blocked && !t.last_full);
		ck_assert(!t.o.closing);
		has_come(len + 1);
	}
}

TEST(nothing_is_sent_after_a_kill_at_any_step)
{
	for (int step = FILL; step < NSTEPS; step++) {
		for (unsigned nth = 1; nth <= 3; nth++) {
			again();
			t.kill_step = (enum step)step;
			t.kill_at = nth;
			post(4 * FEW * PIECE);
			ck_assert(!t.o.sending && !t.o.closing);
			ck_assert(outbox_kill(&t.o));
			post(10);
			outbox_ready(&t.o);
			ck_assert_uint_eq(t.fills, nth);
			/* The sender finishes its piece. */
			has_come(nth * FEW * PIECE);
		}
	}
	again();
	ck_assert(outbox_kill(&t.o));
	post(10);
	ck_assert_uint_eq(t.fills, 0);
}

TEST(a_socket_that_fails_at_any_call_kills_the_outbox)
{
	for (unsigned nth = 1; nth <= 3; nth++) {
		again();
		t.broken = EPIPE;
		t.broken_at = nth;
		post(4 * FEW * PIECE);
		ck_assert_int_eq(t.o.err, -EPIPE);
		ck_assert(t.o.closing && t.o.dead);
		ck_assert(!t.o.blocked && !t.last_full);
		post(10);
		outbox_ready(&t.o);
		ck_assert_uint_eq(t.calls, nth);
		outbox_close(&t.o, -EIO);
		ck_assert_int_eq(t.o.err, -EPIPE);
		has_come((nth - 1) * FEW * PIECE);
	}
}

TEST(a_fill_that_fails_is_the_last_that_goes_out)
{
	for (unsigned nth = 1; nth <= 3; nth++) {
		again();
		t.fill_fails_at = nth;
		post(4 * FEW * PIECE);
		ck_assert_int_eq(t.o.err, -EACCES);
		ck_assert(t.o.dead && !t.in_fill);
		has_come(nth * FEW * PIECE);
	}
}

TEST(posts_of_a_held_outbox_wait)
{
	t.o.held = true;
	post(10);
	outbox_ready(&t.o);
	ck_assert_uint_eq(t.claimed, 0);
	has_come(0);
	mutex_lock(&t.o.lock);
	t.o.held = false;
	outbox_push(&t.o);
	mutex_unlock(&t.o.lock);
	has_come(10);
}

/* On the loop's thread, behind the task. */
static void is_over(void *arg)
{
	ck_assert_uint_eq(t.updates, 1);
	ck_assert(outbox_over(&t.o));
}

TEST(a_killed_outbox_is_over_when_its_task_has_run)
{
	struct loop *loop;

	ck_assert_int_eq(loop_create("outbox", &loop), 0);
	t.o.loop = loop;
	t.room = 3;
	post(5);
	ck_assert(outbox_kill(&t.o));
	ck_assert(!outbox_over(&t.o));
	ck_assert_int_eq(loop_start(loop), 0);
	loop_call(loop, is_over, NULL);
	mutex_lock(&t.o.lock);
	outbox_kick(&t.o);
	mutex_unlock(&t.o.lock);
	loop_destroy(loop);
	ck_assert_uint_eq(t.updates, 1);
}

/* The thread that killed it meanwhile has left the rest to the sender. */
TEST(a_sender_whose_outbox_was_killed_has_its_task_run)
{
	struct loop *loop;

	ck_assert_int_eq(loop_create("outbox", &loop), 0);
	t.o.loop = loop;
	t.kill_step = SENDMSG;
	t.kill_at = 1;
	post(5);
	ck_assert(t.o.dead && !t.o.closing);
	ck_assert(!outbox_over(&t.o));
	ck_assert_int_eq(loop_start(loop), 0);
	loop_call(loop, is_over, NULL);
	loop_destroy(loop);
}

TEST(pipes_go_out_in_their_place)
{
	int fd[2];

	ck_assert_int_eq(pipe2(fd, O_NONBLOCK), 0);
	t.pipe = (struct pipe){ .rd = fd[0], .wr = fd[1], .left = 50 };
	t.pipe_at = 20;
	t.pipe_end = 70;
	ck_assert_int_eq(write(fd[1], stream + 20, 50), 50);
	post(90);
	ck_assert_int_eq(t.o.err, 0);
	ck_assert_uint_eq(t.pipe.left, 0);
	has_come(90);
	/* An empty one has lost its bytes: the stream can't go on. */
	t.pipe_at = 90;
	t.pipe_end = 95;
	close(fd[1]);
	post(10);
	ck_assert_int_eq(t.o.err, -EIO);
	close(fd[0]);
}

static void *post_half(void *arg)
{
	for (size_t n = 0; n < STREAM / 2; n += 64)
		post(64);
	return NULL;
}

static void *wait_for_room(void *arg)
{
	struct pollfd p = { .fd = t.o.fd, .events = POLLOUT };
	bool over = false;

	while (!over) {
		ck_assert_int_ge(poll(&p, 1, 10), 0);
		if (p.revents & POLLOUT)
			outbox_ready(&t.o);
		mutex_lock(&t.o.lock);
		over = t.published == STREAM;
		mutex_unlock(&t.o.lock);
	}
	return NULL;
}

TEST(bytes_of_two_senders_and_the_loop_go_out_in_order)
{
	struct pollfd p = { .fd = t.peer, .events = POLLIN };
	int size = 4096;
	uint8_t got[4096];
	pthread_t thread[3];
	size_t at = 0;

	setsockopt(t.o.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	pthread_create(&thread[0], NULL, post_half, NULL);
	pthread_create(&thread[1], NULL, post_half, NULL);
	pthread_create(&thread[2], NULL, wait_for_room, NULL);
	while (at < STREAM) {
		ssize_t n = poll(&p, 1, -1);

		n = recv(t.peer, got, sizeof(got), 0);
		ck_assert_int_gt(n, 0);
		ck_assert_mem_eq(got, stream + at, (size_t)n);
		at += (size_t)n;
	}
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	ck_assert_int_eq(t.o.err, 0);
}
