/* SPDX-License-Identifier: BSD-2-Clause */
/* stream - see stream.h. */
#include "daemon/watch/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/thread.h"
#include "lib/util.h"

/* For gannetctl to take some more, when the end has come; and to take the rest,
 * when the server ends. */
#define MORE_NS		(10 * NS_PER_S)
#define REST_NS		(2 * NS_PER_S)
/* Between two looks for more, when the ring was empty: the threads that serve
 * calls wake no thread. */
#define IDLE_MS		10

/* ---- on the stream's thread */

/* From now on seconds are left, more while gannetctl reads. */
static void start_end(struct stream *s)
{
	if (s->ending)
		return;
	s->ending = true;
	s->until = clock_ns() + MORE_NS;
}

/* Waits for @ms, or until the connection takes bytes if @events says so.  Looks
 * for the end that gannetctl, the server or the time make. */
static void stream_wait(struct stream *s, short events, uint64_t ms)
{
	struct pollfd p[2] = {
		{ .fd = s->fd, .events = (short)(events | POLLRDHUP) },
		{ .fd = s->stop, .events = POLLIN },
	};
	uint64_t now = clock_ns();

	if (s->ending)
		p[0].events = events;
	if (now < s->until)
		ms = MIN(ms, (s->until - now) / NS_PER_MS + 1);
	if (poll(p, s->stopping ? 1 : 2, (int)ms) < 0)
		return;
	if (p[0].revents & POLLRDHUP ||
	    (!s->ending && clock_ns() >= s->until))
		start_end(s);
	if (p[1].revents) {		/* the end, whatever gannetctl does */
		s->ending = s->stopping = true;
		s->until = clock_ns() + REST_NS;
	}
	if (p[0].revents & (POLLHUP | POLLERR))
		s->broken = true;
}

void stream_send(struct stream *s, const void *data, size_t len)
{
	size_t at = 0;

	while (at < len && !s->broken) {
		ssize_t n = send(s->fd, (const uint8_t *)data + at, len - at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			at += (size_t)n;
			if (s->ending && !s->stopping)
				s->until = clock_ns() + MORE_NS;
		} else if (errno != EAGAIN ||
			   (s->ending && clock_ns() >= s->until)) {
			s->broken = true;
		} else {
			stream_wait(s, POLLOUT, 1000);
		}
	}
	s->sent += len;
}

static void release_stream(struct stream *s)
{
	capture_filter_fini(&s->filter);
	ring_destroy(s->ring);
	s->ring = NULL;
	s->kind->release(s);
}

static void run_stream(void *arg)
{
	struct stream *s = arg;

	rpc_server_tap(s->rpc, s->kind->place, &s->tap);
	s->kind->begin(s);
	log_info("gannetctl: %s begins", s->kind->name);
	do {
		bool busy = s->kind->take(s);

		stream_wait(s, 0, busy ? 0 : IDLE_MS);
	} while (!s->ending && !s->broken && !s->full);
	rpc_server_tap(s->rpc, s->kind->place, NULL);
	while (!s->broken && s->kind->take(s))
		;
	start_end(s);
	s->kind->end(s);
	release_stream(s);
	atomic_store(&s->over, true);
	/* A reader that sees the end can begin another stream at once. */
	close(s->fd);
}

/* ---- on the control thread */

struct stream *stream_create(const struct stream_kind *kind,
			     struct rpc_server *rpc,
			     struct export_table *exports)
{
	struct stream *s = calloc(1, kind->size);

	if (!s)
		return NULL;
	s->kind = kind;
	s->rpc = rpc;
	s->exports = exports;
	s->tap = kind->tap;
	s->stop = eventfd(0, EFD_CLOEXEC);
	if (s->stop >= 0)
		return s;
	free(s);
	return NULL;
}

static void join_stream(struct stream *s)
{
	if (s->started)
		pthread_join(s->thread, NULL);
	s->started = false;
}

void stream_destroy(struct stream *s)
{
	const uint64_t one = 1;

	if (!s)
		return;
	if (write(s->stop, &one, sizeof(one)) < 0)
		log_debug("%s: %s", s->kind->name, strerror(errno));
	join_stream(s);
	close(s->stop);
	free(s);
}

json_t *stream_open(struct stream *s, const json_t *options,
		    const char **wrong)
{
	const char *texts[3] = { NULL, NULL, NULL };
	json_t *answer;

	if (s->started && !atomic_load(&s->over)) {
		*wrong = s->kind->taken;
		return NULL;
	}
	join_stream(s);
	if (!s->kind->read(s, options, texts, wrong) ||
	    capture_filter_init(&s->filter, s->rpc, s->exports, texts,
				wrong) < 0)
		return NULL;
	s->ring = ring_create(s->kind->ring);
	answer = s->ring ? s->kind->make(s) : NULL;
	if (!answer) {
		release_stream(s);
		*wrong = s->kind->no_memory;
	}
	return answer;
}

void stream_start(struct stream *s, int fd)
{
	if (fd < 0) {
		release_stream(s);
		return;
	}
	s->fd = fd;
	s->ending = s->stopping = s->broken = s->full = false;
	s->sent = 0;
	s->until = s->duration ? clock_ns() + s->duration : UINT64_MAX;
	atomic_store(&s->over, false);
	s->started = thread_start(&s->thread, s->kind->name, run_stream,
				  s) == 0;
	if (s->started)
		return;
	release_stream(s);
	close(fd);
}
