/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The floor: the cost of a call in a program that only makes the system calls
 * which no server can do without.  It receives calls of the right length, does
 * a call's work on a file with one fstat for its attributes, and sends replies
 * of the right length.  It counts the processor time of the thread that serves.
 */
#include "tests/bench/raw.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MAX = 32, NAMES = 64, SCATTERED = 192 << 20, PAGE = 4096 };

struct floor;

struct floor_work {
	const char *name;
	unsigned    depth;
	size_t	    in, out;		/* data of a call, and of a reply */
	void	  (*serve)(struct floor *f, const uint8_t *data);
};

struct floor {
	const struct floor_work *work;
	int	      dir, fd, socket;
	int	      pipe[2];
	uint64_t      random;
	unsigned      turn;
	bool	      gone;		/* the client is */
	struct iovec  reply[2 * DEPTH_MAX];
	unsigned      nreply;
	size_t	      used;		/* of out */
	uint8_t	      out[DEPTH_MAX * PAGE];
	uint8_t	      in[2 * BLOCK];
};

/* ---- the work of a call */

static void add_reply(struct floor *f, void *p, size_t len)
{
	f->reply[f->nreply++] = (struct iovec){ p, len };
}

static void send_replies(struct floor *f)
{
	if (f->nreply > 0)
		send_all_iov(f->socket, f->reply, f->nreply);
	f->nreply = 0;
	f->used = 0;
}

static off_t next_offset(struct floor *f, size_t len)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return (off_t)(f->random % (AREA / len) * len);
}

static void put_attributes(struct floor *f, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		die("fstat");
	add_reply(f, block, REPLY);
}

static void serve_getattr(struct floor *f, const uint8_t *data)
{
	put_attributes(f, f->fd);
}

static void serve_lookup(struct floor *f, const uint8_t *data)
{
	struct statx sx;

	if (statx(f->dir, "floor", AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS,
		  &sx) < 0)
		die("statx");
	add_reply(f, block, REPLY);
}

static void serve_small_read(struct floor *f, const uint8_t *data)
{
	size_t len = f->work->out;
	uint8_t *to = f->out + f->used;

	f->used += len;
	if (pread(f->fd, to, len, next_offset(f, len)) < 0)
		die("pread");
	put_attributes(f, f->fd);
	add_reply(f, to, len);
}

/* No byte of a long READ is touched. */
static void serve_long_read(struct floor *f, const uint8_t *data)
{
	loff_t at = next_offset(f, f->work->out);
	size_t left = f->work->out;
	struct stat st;

	if (f->gone)
		return;		/* data of a reply is left in the pipe */
	send_replies(f);
	if (fstat(f->fd, &st) < 0)
		die("fstat");
	send(f->socket, block, REPLY, MSG_MORE | MSG_NOSIGNAL);
	while (left > 0) {
		ssize_t n = splice(f->fd, &at, f->pipe[1], NULL, left, 0), k;

		if (n <= 0)
			die("splice");
		for (left -= (size_t)n; n > 0; n -= k) {
			k = splice(f->pipe[0], NULL, f->socket, NULL,
				   (size_t)n, left ? SPLICE_F_MORE : 0);
			if (k <= 0) {
				f->gone = true;
				return;
			}
		}
	}
}

static void serve_write(struct floor *f, const uint8_t *data)
{
	size_t len = f->work->in;

	if (pwrite(f->fd, data, len, next_offset(f, len)) < 0)
		die("pwrite");
	put_attributes(f, f->fd);
}

/* A CREATE, and then the REMOVE of that. */
static void serve_create(struct floor *f, const uint8_t *data)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "floor-%u", f->turn / 2 % NAMES);
	if (f->turn++ % 2) {
		unlinkat(f->dir, name, 0);
		put_attributes(f, f->dir);
		return;
	}
	fd = openat(f->dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		die(name);
	put_attributes(f, fd);
	close(fd);
}

static const struct floor_work works[] = {
	{ "floor-getattr", 32, 0, 0, serve_getattr },
	{ "floor-lookup", 32, 0, 0, serve_lookup },
	{ "floor-create", 32, 0, 0, serve_create },
	{ "floor-read-4k", 32, 0, PAGE, serve_small_read },
	{ "floor-read-64k", 8, 0, 65536, serve_long_read },
	{ "floor-read-1m", 8, 0, BLOCK, serve_long_read },
	{ "floor-write-4k", 32, PAGE, 0, serve_write },
	{ "floor-write-64k", 8, 65536, 0, serve_write },
	{ "floor-write-1m", 8, BLOCK, 0, serve_write },
};

/* ---- serving and calling */

static void *serve_floor(void *arg)
{
	struct floor *f = arg;
	size_t call = CALL + f->work->in, have = 0, at;
	/* Small calls come several at a time, a long one alone. */
	size_t most = call < BLOCK / DEPTH_MAX ? DEPTH_MAX * call : call;
	ssize_t n;

	while ((n = recv(f->socket, f->in + have, most - have, 0)) > 0) {
		have += (size_t)n;
		for (at = 0; have - at >= call; at += call)
			f->work->serve(f, f->in + at + CALL);
		send_replies(f);
		have -= at;
		if (at > 0)
			memmove(f->in, f->in + at, have);
	}
	return NULL;
}

static double time_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Has a number of calls under way for a while; returns how many were
 * answered. */
static double call_floor(const struct floor_work *w, int fd)
{
	size_t call = CALL + w->in, reply = REPLY + w->out, have = 0;
	double start = now(), count = 0;

	if (send_all(fd, area, w->depth * call))
		die("send");
	while (now() - start < seconds) {
		/* The kernel drops the bytes. */
		ssize_t n = recv(fd, NULL, AREA, MSG_TRUNC);

		if (n <= 0)
			die("recv");
		have += (size_t)n;
		count += (double)(have / reply);
		if (send_all(fd, area, have / reply * call))
			die("send");
		have %= reply;
	}
	return count;
}

static void measure_floor(struct floor *f, const struct floor_work *w)
{
	double start, count, used, took;
	pthread_t thread;
	clockid_t clock;
	int fds[2];

	socket_pair(fds);
	if (pipe2(f->pipe, O_CLOEXEC) < 0)
		die("pipe");
	fcntl(f->pipe[1], F_SETPIPE_SZ, (int)BLOCK);
	f->work = w;
	f->socket = fds[0];
	f->random = 88172645463325252u;
	f->turn = 0;
	f->gone = false;
	pthread_create(&thread, NULL, serve_floor, f);
	pthread_getcpuclockid(thread, &clock);
	start = now();
	used = time_of(clock);
	count = call_floor(w, fds[1]);
	used = time_of(clock) - used;
	took = now() - start;
	printf("{\"server\": \"raw\", \"work\": \"%s\", \"ops_per_s\": %.1f, "
	       "\"bytes_per_s\": %.0f, \"server_us_per_op\": %.3f}\n", w->name,
	       count / took, count / took * (double)(w->in + w->out),
	       used * 1e6 / count);
	close(fds[1]);
	pthread_join(thread, NULL);
	close(fds[0]);
	close(f->pipe[0]);
	close(f->pipe[1]);
}

void floors(int dir, int fd)
{
	struct floor *f = calloc(1, sizeof(*f));
	int named = openat(dir, "floor", O_WRONLY | O_CREAT, 0644);

	if (!f || named < 0)
		die("the floor");
	close(named);
	/* A splice can't say MSG_NOSIGNAL. */
	signal(SIGPIPE, SIG_IGN);
	f->dir = dir;
	f->fd = fd;
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++)
		if (wants(works[i].name))
			measure_floor(f, &works[i]);
	unlinkat(dir, "floor", 0);
	for (unsigned i = 0; i < NAMES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "floor-%u", i);
		unlinkat(dir, name, 0);
	}
	free(f);
}

/* ---- memory in single pages */

void scatter(const char *in)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/scattered", in);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		die(path);
	for (off_t at = 0; at < SCATTERED; at += (off_t)AREA)
		if (write(fd, area, AREA) != (ssize_t)AREA)
			die(path);
	/* Each free page has a neighbour in use. */
	for (off_t at = 0; at < SCATTERED; at += 2 * PAGE)
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      at, PAGE) < 0)
			die(path);
	close(fd);
}
