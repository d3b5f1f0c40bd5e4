/* SPDX-License-Identifier: BSD-2-Clause */
/* life - see life.h. */
#include "transport/life.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/probe.h"
#include "transport/xprt.h"

void xprt_log(const struct xprt *x, enum log_level level, const char *fmt,
	      ...)
{
	const struct sockaddr *peer = (const struct sockaddr *)&x->peer;
	struct in6_addr host = xprt_addr_host(peer);
	char client[INET6_ADDRSTRLEN], text[800];
	const struct log_fields fields = { .client = client,
					   .transport = x->via };
	va_list ap;

	xprt_host_text(&host, client);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_print_with(level, &fields, "%s: %s", x->name, text);
}

/* Clients come and go over TCP all the time: that is nothing to tell, unless it
 * goes wrong. */
static enum log_level life_level(const struct xprt *x)
{
	return x->rdma ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG;
}

void xprt_life_begin(struct xprt *x, const char *fmt, ...)
{
	char local[XPRT_ADDR_TEXT], agreed[256];
	va_list ap;

	x->life.since = clock_ns();
	va_start(ap, fmt);
	vsnprintf(agreed, sizeof(agreed), fmt, ap);
	va_end(ap);
	PROBE(conn_begin, x, x->via);
	xprt_log_limited(x, life_level(x), "connected to %s%s",
			 xprt_addr_text((const struct sockaddr *)&x->local,
					local, sizeof(local)), agreed);
}

void xprt_life_why(struct xprt *x, const char *why)
{
	const char *none = NULL;

	atomic_compare_exchange_strong(&x->life.why, &none, why);
}

const char *xprt_life_cause(int err)
{
	const char *text;

	switch (err) {
	case 0:
		return "the client closed it";
	case -ECONNRESET:
	case -EPIPE:
		return "the client reset it";
	case -ESHUTDOWN:
		return "the server ends";
	case -EBADMSG:
		return "a message is not a call";
	case -EPROTO:
		return "a rule of the transport was broken";
	case -EREMOTEIO:
		return "an access to memory was refused";
	}
	text = strerrordesc_np(-err);
	return text ? text : "an error";
}

void xprt_life_end(struct xprt *x, int err, const struct xprt_sums *sums)
{
	const char *why = atomic_load(&x->life.why);
	enum log_level level;
	uint64_t ms = (clock_ns() - x->life.since) / NS_PER_MS;

	level = why || err ? LOG_LEVEL_INFO : life_level(x);
	if (!why)
		why = xprt_life_cause(err);
	PROBE(conn_end, x, err, why, sums->calls, sums->received, sums->sent);
	if (!x->life.since) {
		xprt_log_limited(x, LOG_LEVEL_INFO, "not connected: %s", why);
		return;
	}
	xprt_log_limited(x, level, "ended after %llu.%03u s: %s; "
			 "calls: %llu, bytes received: %llu, sent: %llu",
			 (unsigned long long)ms / 1000, (unsigned)(ms % 1000),
			 why, (unsigned long long)sums->calls,
			 (unsigned long long)sums->received,
			 (unsigned long long)sums->sent);
}
