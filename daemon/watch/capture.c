/* SPDX-License-Identifier: BSD-2-Clause */
/* capture - a stream of RPC messages, as packets of a pcapng file. */
#include "daemon/watch/stream.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/watch/capture_packets.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "lib/stats.h"

STAT(capture_messages, "messages captured for gannetctl");
STAT(capture_dropped, "messages not captured: gannetctl took them too slowly");

#define RING		(32u << 20)
/* Packets are sent after so many bytes, or when the ring is empty. */
#define BATCH		(256u << 10)
#define BUFFER		(BATCH + MSG_MAX_LEN + \
			 CAPTURE_EXTRA(MSG_MAX_LEN) + CAPTURE_FRAME)
struct capture {
	struct stream	 stream;	/* first */
	/* One capture's. */
	uint32_t	 snaplen;
	_Atomic uint64_t dropped[CAPTURE_VIAS];

	/* Its thread's, and before that of the control thread. */
	uint64_t	 size;		/* limit: bytes */
	uint64_t	 taken[CAPTURE_VIAS];	/* messages */
	struct capture_packets *packets;
	struct pcapng	 out;
};

/* ---- on the threads that serve calls */

static void note_addresses(struct capture_message *to, const struct xprt *x)
{
	const struct sockaddr *peer = (const struct sockaddr *)&x->peer;
	const struct sockaddr *local = (const struct sockaddr *)&x->local;

	to->host[CAPTURE_CLIENT] = xprt_addr_host(peer);
	to->host[CAPTURE_SERVER] = xprt_addr_host(local);
	to->port[CAPTURE_CLIENT] = xprt_addr_port(&x->peer);
	to->port[CAPTURE_SERVER] = xprt_addr_port(&x->local);
	/* A socket for both families does not know at which address a datagram
	 * came: it is then 0.0.0.0 rather than ::. */
	if (IN6_IS_ADDR_V4MAPPED(&to->host[CAPTURE_CLIENT]) &&
	    IN6_IS_ADDR_UNSPECIFIED(&to->host[CAPTURE_SERVER]))
		memset(&to->host[CAPTURE_SERVER].s6_addr[10], 0xff, 2);
}

/* A message, in pieces. */
struct shown {
	const struct xprt *xprt;
	bool		 is_reply;
	uint32_t	 len;		/* of the message; */
	unsigned	 n;		/* the pieces can have less of it */
	struct iovec	 iov[MSG_MAX_SEGS];
};

static uint32_t shown_bytes(const struct shown *s)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < s->n; i++)
		sum += (uint32_t)s->iov[i].iov_len;
	/* Of a longer call the transport has not kept the rest. */
	return MIN(sum, (uint32_t)MSG_MAX_LEN);
}

/* The bytes to keep. */
static uint32_t bytes_to_keep(const struct capture *c, const struct shown *s)
{
	uint32_t n = MIN(shown_bytes(s), c->snaplen);

	return n < s->len ? MIN(n, CAPTURE_CUT) : n;
}

/* False: the message was dropped. */
static bool keep_message(struct capture *c, const struct shown *s)
{
	uint32_t stored = bytes_to_keep(c, s), at = 0;
	uint8_t via = capture_via(s->xprt->via);
	struct ring_record *record;
	struct capture_message *m;
	uint8_t *data;

	record = ring_reserve(c->stream.ring, sizeof(*m) + stored);
	if (!record) {
		atomic_fetch_add_explicit(&c->dropped[via], 1,
					  memory_order_relaxed);
		stat_inc(capture_dropped);
		return false;
	}
	stat_inc(capture_messages);
	m = (void *)record->data;
	data = record->data + sizeof(*m);
	m->ns = clock_wall_ns();
	m->len = s->len;
	m->stored = stored;
	m->via = via;
	m->is_reply = s->is_reply;
	note_addresses(m, s->xprt);
	for (unsigned i = 0; at < stored; i++) {
		uint32_t n = MIN((uint32_t)s->iov[i].iov_len, stored - at);

		memcpy(data + at, s->iov[i].iov_base, n);
		at += n;
	}
	ring_add(record);
	return true;
}

static void show_piece(struct shown *s, const void *data, uint32_t len)
{
	s->iov[s->n++] = (struct iovec){ (void *)(uintptr_t)data, len };
}

static bool see_call(struct rpc_tap *tap, const struct msg *m,
		     const struct rpc_header *h, const struct xdr_in *args)
{
	struct capture *c = container_of(tap, struct capture, stream.tap);
	struct shown s = { .xprt = m->xprt, .len = m->call_len };

	if (!capture_filter_takes(&c->stream.filter, m, h, args))
		return false;
	for (uint32_t i = 0; i < m->ncall; i++)
		show_piece(&s, m->call[i].data, m->call[i].len);
	/* A reply without its call could not be read. */
	return keep_message(c, &s);
}

static void see_reply(struct rpc_tap *tap, const struct msg *m)
{
	struct capture *c = container_of(tap, struct capture, stream.tap);
	struct shown s = {
		.xprt = m->xprt, .is_reply = true,
		.len = m->head_len + m->body_len + m->tail_len,
	};

	show_piece(&s, m->head, m->head_len);
	if (m->body)
		show_piece(&s, m->body->data, m->body_len);
	/* The tail has no place behind a body that can't be read. */
	if (m->body || !m->body_len)
		show_piece(&s, m->head + m->head_len, m->tail_len);
	keep_message(c, &s);
}

/* ---- on the capture's thread */

static void send_packets(struct capture *c)
{
	stream_send(&c->stream, c->out.start, pcapng_len(&c->out));
	c->out.p = c->out.start;
}

/* True if the file would exceed its limit, with @m and its end. */
static bool is_too_long(const struct capture *c,
			const struct capture_message *m)
{
	return c->size && c->stream.sent + pcapng_len(&c->out) + m->stored +
	       CAPTURE_EXTRA(m->stored) + CAPTURE_FRAME > c->size;
}

/* Sends packets of the waiting messages. */
static bool take_messages(struct stream *s)
{
	struct capture *c = container_of(s, struct capture, stream);
	const struct capture_message *m;
	struct ring_record *r;
	bool any;

	while (!s->full && pcapng_len(&c->out) < BATCH &&
	       (r = ring_next(s->ring))) {
		m = (const void *)r->data;
		if (is_too_long(c, m)) {
			s->full = true;
			break;
		}
		capture_add(c->packets, &c->out, m, r->data + sizeof(*m));
		c->taken[m->via]++;
		ring_release(s->ring);
		if (s->count && --s->count == 0)
			s->full = true;
	}
	any = pcapng_len(&c->out) > 0;
	send_packets(c);
	return any;
}

static void finish_file(struct stream *s)
{
	struct capture *c = container_of(s, struct capture, stream);
	uint64_t received[CAPTURE_VIAS], dropped[CAPTURE_VIAS];
	uint64_t messages = 0, lost = 0;

	for (unsigned i = 0; i < CAPTURE_VIAS; i++) {
		dropped[i] = atomic_load_explicit(&c->dropped[i],
						  memory_order_relaxed);
		received[i] = c->taken[i] + dropped[i];
		messages += c->taken[i];
		lost += dropped[i];
	}
	capture_end(&c->out, clock_wall_ns(), received, dropped);
	send_packets(c);
	log_info("gannetctl: capture ends: %llu messages, %llu dropped",
		 (unsigned long long)messages, (unsigned long long)lost);
}

static void begin_file(struct stream *s)
{
	struct capture *c = container_of(s, struct capture, stream);

	capture_begin(&c->out, "gannetd " PACKAGE_VERSION, 0);
}

static void release_capture(struct stream *s)
{
	struct capture *c = container_of(s, struct capture, stream);

	capture_packets_destroy(c->packets);
	free(c->out.start);
	c->packets = NULL;
	c->out.start = NULL;
}

/* ---- on the control thread */

static bool read_capture_options(struct stream *s, const json_t *options,
				 const char *texts[3], const char **wrong)
{
	json_int_t snaplen = MSG_MAX_LEN, count = 0, duration = 0, size = 0;
	struct capture *c = container_of(s, struct capture, stream);
	json_error_t error;

	if (options &&
	    json_unpack_ex((json_t *)(uintptr_t)options, &error, JSON_STRICT,
			   "{s?s, s?s, s?s, s?I, s?I, s?I, s?I}",
			   "client", &texts[0], "proc", &texts[1],
			   "export", &texts[2], "snaplen", &snaplen, "count",
			   &count, "duration", &duration, "size", &size) < 0) {
		*wrong = "capture: expected client, proc, export, snaplen, "
			 "count, duration or size";
		return false;
	}
	if (snaplen < 1 || count < 0 || duration < 0 || size < 0 ||
	    duration > UINT32_MAX) {
		*wrong = "capture: a number is out of range";
		return false;
	}
	c->snaplen = (uint32_t)MIN(snaplen, (json_int_t)MSG_MAX_LEN);
	s->count = (uint64_t)count;
	s->duration = (uint64_t)duration * NS_PER_S;
	c->size = (uint64_t)size;
	return true;
}

static json_t *make_capture(struct stream *s)
{
	struct capture *c = container_of(s, struct capture, stream);
	uint8_t *buffer = malloc(BUFFER);

	memset(c->taken, 0, sizeof(c->taken));
	for (unsigned i = 0; i < CAPTURE_VIAS; i++)
		atomic_store(&c->dropped[i], 0);
	c->packets = capture_packets_create();
	pcapng_init(&c->out, buffer, buffer ? BUFFER : 0);
	return c->packets && buffer ?
	       json_pack("{s:i}", "snaplen", (int)c->snaplen) : NULL;
}

const struct stream_kind capture_stream = {
	.name = "capture", .size = sizeof(struct capture), .ring = RING,
	.place = RPC_TAP_CAPTURE,
	.tap = { .call = see_call, .reply = see_reply },
	.taken = "capture: there is one already; only one at a time",
	.no_memory = "capture: out of memory",
	.read = read_capture_options, .make = make_capture,
	.begin = begin_file, .take = take_messages, .end = finish_file,
	.release = release_capture,
};
