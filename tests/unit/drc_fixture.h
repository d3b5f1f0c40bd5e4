/* SPDX-License-Identifier: BSD-2-Clause */
/* drc_fixture - a duplicate request cache, two connections whose state the test
 * sets, and one call after the other. */
#pragma once

#include "rpc/drc.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "rpc/drc_rule.h"
#include "tests/unit/runner.h"

#define BYTES	((size_t)1 << 20)

/* A connection as a transport might tell of it. */
struct wire {
	struct xprt	 x;
	struct xprt_view view;
};

static struct drc *drc;
static struct wire a, b;
static struct drc_call call;		/* as the next one asks */
static struct drc_call calls[4096];	/* calls that asked */
static unsigned ncalls;
static uint8_t reply[MSG_HEAD_SIZE];
static struct drc_ask ask;
static atomic_uint nlooks;		/* at connections */
static _Atomic uint64_t *sent;		/* of the last answer */

static void look(struct xprt *x, struct xprt_view *v)
{
	struct wire *w = container_of(x, struct wire, x);

	nlooks++;
	w->view.ended = v->ended;
	*v = w->view;
}

static const struct xprt_ops ops = { .name = "wire", .look = look };

static void wire_init_from(struct wire *w, uint32_t host)
{
	struct sockaddr_in *in = (void *)&w->x.peer;

	memset(w, 0, sizeof(*w));
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(host);
	w->x.ops = &ops;
	w->x.fate = xprt_fate_create(&w->x, 0);
	ck_assert_ptr_nonnull(w->x.fate);
	/* As TCP says of one that was not heard since. */
	w->view.heard = w->x.fate->born;
}

/* From 192.0.2.7. */
static void wire_init(struct wire *w)
{
	wire_init_from(w, 0xc0000207);
}

static void wire_fini(struct wire *w)
{
	xprt_fate_end(w->x.fate, XPRT_BROKEN);
	xprt_fate_put(w->x.fate);
}

static void set_addr(struct drc_key *k, const char *text, uint16_t port,
		     bool datagram)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *in = (void *)&ss;
	struct sockaddr_in6 *in6 = (void *)&ss;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else {
		ck_assert_int_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		in6->sin6_scope_id = 3;
	}
	drc_key_addr(k, (struct sockaddr *)&ss, datagram);
}

/* The next call comes on @w; NULL: as a datagram. */
static void come_on(struct wire *w)
{
	call.fate = w ? w->x.fate : NULL;
}

static void start(void)
{
	log_threshold = LOG_LEVEL_ERR;
	ck_assert_int_eq(drc_create(BYTES, &drc), 0);
	wire_init(&a);
	wire_init(&b);
	memset(&call, 0, sizeof(call));
	ncalls = nlooks = 0;
	call.keep = true;
	call.may_resend = true;
	call.key = (struct drc_key){ .xid = 1, .prog = 100003, .vers = 3,
				     .proc = 8, .len = 120, .flavor = 1,
				     .sum = 42 };
	set_addr(&call.key, "192.0.2.7", 801, false);
	come_on(&a);
}

static void stop(void)
{
	drc_destroy(drc);
	wire_fini(&a);
	wire_fini(&b);
}

/* @call asks; it is calls[ncalls - 1] then. */
static enum drc_verdict lookup(void)
{
	struct drc_call *c = &calls[ncalls++ % ARRAY_SIZE(calls)];

	*c = call;
	ask = (struct drc_ask){ .reply = reply };
	return drc_lookup(drc, c, &ask);
}

static struct drc_call *asked(void)
{
	return &calls[(ncalls - 1) % ARRAY_SIZE(calls)];
}

static struct drc_call *done(struct drc_call *c, const void *bytes,
			     uint32_t len)
{
	struct drc_call *waited = drc_done(drc, c, bytes, len);

	sent = waited ? waited->sent : c->sent;
	return waited;
}

/* As a transport does when it sends the reply. */
static void place(uint64_t position)
{
	if (sent)
		atomic_store(sent, position);
	sent = NULL;
}

/* A new call, answered, whose reply ends at 10. */
static void answer(const void *bytes, uint32_t len)
{
	ck_assert_int_eq(lookup(), DRC_NEW);
	ck_assert_ptr_null(done(asked(), bytes, len));
	place(10);
}

static void forget(void)
{
	ck_assert_ptr_null(drc_forget(drc, asked()));
}

static size_t entries(void)
{
	size_t n, bytes;

	drc_usage(drc, &n, &bytes);
	return n;
}
