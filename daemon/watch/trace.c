/* SPDX-License-Identifier: BSD-2-Clause */
/* trace - a stream of the times of calls, as lines of JSON. */
#include "daemon/watch/report.h"

#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "rpc/share.h"

STAT(trace_calls, "calls traced for gannetctl");
STAT(trace_dropped, "calls not traced: gannetctl took them too slowly");

#define RING		(4u << 20)
#define BATCH		(64u << 10)
/* A line is shorter, whatever the path. */
#define LINE_MAX_LEN	(6u * VFS_PATH_MAX + 1024)

/* A call in the ring. */
struct traced {
	uint64_t	 wall;		/* ns since 1970: the end */
	struct rpc_end	 e;
};

struct trace {
	struct stream	 stream;	/* first */
	/* One trace's. */
	uint64_t	 slower;	/* ns */
	_Atomic uint64_t dropped;

	/* Its thread's. */
	uint64_t	 calls;
	uint64_t	 told;		/* of those dropped */
	char		*out;		/* BATCH and a line */
	size_t		 len;		/* bytes in it */
	/* The path of an account, as it was when the batch began. */
	const struct account *of;
	char		*path;		/* NULL: no export has it */
};

/* ---- on the threads that serve calls */

static bool trace_call(struct rpc_tap *tap, const struct msg *m,
		       const struct rpc_header *h, const struct xdr_in *args)
{
	struct trace *t = container_of(tap, struct trace, stream.tap);

	return h && capture_filter_takes(&t->stream.filter, m, h, args);
}

static void trace_end(struct rpc_tap *tap, const struct rpc_end *e)
{
	struct trace *t = container_of(tap, struct trace, stream.tap);
	struct ring_record *r;
	struct traced *to;

	if (e->ns < t->slower)
		return;
	r = ring_reserve(t->stream.ring, sizeof(*to));
	if (!r) {
		atomic_fetch_add_explicit(&t->dropped, 1,
					  memory_order_relaxed);
		stat_inc(trace_dropped);
		return;
	}
	stat_inc(trace_calls);
	to = (void *)r->data;
	to->wall = clock_wall_ns();
	to->e = *e;
	ring_add(r);
}

/* ---- on the trace's thread */

static void find_path(void *arg, struct export_tree *e)
{
	const struct rpc_share *share = e->user;
	struct trace *t = arg;

	if (share && share->account == t->of && e->id == e->top && !t->path)
		t->path = strdup(e->path);
}

static void forget_path(struct trace *t)
{
	free(t->path);
	t->path = NULL;
	t->of = NULL;
}

/* NULL: none, or it is gone. */
static const char *path_of(struct trace *t, const struct account *account)
{
	if (!account || account == t->of)
		return account ? t->path : NULL;
	forget_path(t);
	t->of = account;
	export_each(t->stream.exports, find_path, t);
	return t->path;
}

static void add_line(struct trace *t, json_t *o)
{
	size_t room = BATCH + LINE_MAX_LEN - t->len, len;

	len = o ? json_dumpb(o, t->out + t->len, room, JSON_COMPACT) : 0;
	json_decref(o);
	if (len == 0 || len >= room)
		return;
	t->len += len;
	t->out[t->len++] = '\n';
}

static void add_call(struct trace *t, const struct traced *c)
{
	static const char *const parts[RPC_PARTS] = {
		[RPC_PART_DECODE] = "decode", [RPC_PART_WORKER] = "worker",
		[RPC_PART_WAIT] = "wait", [RPC_PART_BACKEND] = "backend",
		[RPC_PART_SEND] = "send",
	};
	const struct rpc_end *e = &c->e;
	const char *path = path_of(t, e->by_export);
	char client[INET6_ADDRSTRLEN];
	json_t *o, *ns = json_object();

	for (unsigned i = 0; i < RPC_PARTS; i++)
		json_object_set_new(ns, parts[i],
				    json_integer((json_int_t)e->part[i]));
	o = json_pack("{s:I, s:s, s:i, s:s, s:s*, s:s*, s:I, s:s, s:I, s:o, "
		      "s:s*, s:I, s:I}", "time", (json_int_t)c->wall,
		      "client", xprt_host_text(&e->host, client), "port",
		      (int)e->port, "transport", e->via,
		      "program", e->prog ? e->prog->name : NULL,
		      "procedure", e->proc ? e->proc->name : NULL, "xid",
		      (json_int_t)e->xid, "status", e->status, "ns",
		      (json_int_t)e->ns, "parts", ns, "why", e->why,
		      "call", (json_int_t)e->call_len, "reply",
		      (json_int_t)e->reply_len);
	if (o && path)
		json_object_set_new(o, "export", json_text(path));
	add_line(t, o);
}

static void send_lines(struct trace *t)
{
	stream_send(&t->stream, t->out, t->len);
	t->len = 0;
}

static uint64_t dropped_of(struct trace *t)
{
	return atomic_load_explicit(&t->dropped, memory_order_relaxed);
}

static bool take_calls(struct stream *s)
{
	struct trace *t = container_of(s, struct trace, stream);
	struct ring_record *r;
	uint64_t dropped;
	bool any;

	while (!s->full && t->len < BATCH && (r = ring_next(s->ring))) {
		add_call(t, (const void *)r->data);
		t->calls++;
		ring_release(s->ring);
		if (s->count && --s->count == 0)
			s->full = true;
	}
	forget_path(t);
	dropped = dropped_of(t);
	if (dropped != t->told)
		add_line(t, json_pack("{s:I}", "dropped",
				      (json_int_t)dropped));
	t->told = dropped;
	any = t->len > 0;
	send_lines(t);
	return any;
}

static void begin_lines(struct stream *s)
{
	struct trace *t = container_of(s, struct trace, stream);

	add_line(t, json_object());
	send_lines(t);
}

static void end_lines(struct stream *s)
{
	struct trace *t = container_of(s, struct trace, stream);

	add_line(t, json_pack("{s:I, s:I}", "calls", (json_int_t)t->calls,
			      "dropped", (json_int_t)dropped_of(t)));
	send_lines(t);
	log_info("gannetctl: trace ends: %llu calls, %llu dropped",
		 (unsigned long long)t->calls,
		 (unsigned long long)dropped_of(t));
}

static void release_trace(struct stream *s)
{
	struct trace *t = container_of(s, struct trace, stream);

	free(t->out);
	t->out = NULL;
}

/* ---- on the control thread */

static bool read_trace_options(struct stream *s, const json_t *options,
			       const char *texts[3], const char **wrong)
{
	struct trace *t = container_of(s, struct trace, stream);
	json_int_t slower = 0, count = 0, duration = 0;
	json_error_t error;

	if (options &&
	    json_unpack_ex((json_t *)(uintptr_t)options, &error, JSON_STRICT,
			   "{s?s, s?s, s?s, s?I, s?I, s?I}", "client",
			   &texts[0], "proc", &texts[1], "export", &texts[2],
			   "slower", &slower, "count", &count, "duration",
			   &duration) < 0) {
		*wrong = "trace: expected client, proc, export, slower, count "
			 "or duration";
		return false;
	}
	if (slower < 0 || count < 0 || duration < 0 || slower > UINT32_MAX ||
	    duration > UINT32_MAX) {
		*wrong = "trace: a number is out of range";
		return false;
	}
	t->slower = (uint64_t)slower * 1000;
	s->count = (uint64_t)count;
	s->duration = (uint64_t)duration * NS_PER_S;
	return true;
}

static json_t *make_trace(struct stream *s)
{
	struct trace *t = container_of(s, struct trace, stream);

	t->calls = t->told = 0;
	t->len = 0;
	atomic_store(&t->dropped, 0);
	t->out = malloc(BATCH + LINE_MAX_LEN);
	return t->out ? json_object() : NULL;
}

const struct stream_kind trace_stream = {
	.name = "trace", .size = sizeof(struct trace), .ring = RING,
	.place = RPC_TAP_TRACE,
	.tap = { .call = trace_call, .end = trace_end },
	.taken = "trace: there is one already; only one at a time",
	.no_memory = "trace: out of memory",
	.read = read_trace_options, .make = make_trace,
	.begin = begin_lines, .take = take_calls, .end = end_lines,
	.release = release_trace,
};
