/* SPDX-License-Identifier: BSD-2-Clause */
/* life - tells the log when a connection begins, and when and why it ends. */
#include "transport/life.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/probe.h"
#include "transport/xprt.h"

void xprt_life_begin(struct xprt *x, const char *fmt, ...)
{
	char local[XPRT_ADDR_TEXT], agreed[256];
	va_list ap;

	x->life.since = clock_ns();
	va_start(ap, fmt);
	vsnprintf(agreed, sizeof(agreed), fmt, ap);
	va_end(ap);
	PROBE(conn_begin, x, x->via);
	log_limited(LOG_LEVEL_INFO, "%s: connected to %s%s", x->name,
		    xprt_addr_text((const struct sockaddr *)&x->local, local,
				   sizeof(local)), agreed);
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
	uint64_t ms = (clock_ns() - x->life.since) / NS_PER_MS;

	if (!why)
		why = xprt_life_cause(err);
	PROBE(conn_end, x, err, why, sums->calls, sums->received, sums->sent);
	if (!x->life.since) {
		log_limited(LOG_LEVEL_INFO, "%s: not connected: %s", x->name,
			    why);
		return;
	}
	log_limited(LOG_LEVEL_INFO, "%s: ended after %llu.%03u s: %s; "
		    "calls: %llu, bytes received: %llu, sent: %llu", x->name,
		    (unsigned long long)ms / 1000, (unsigned)(ms % 1000), why,
		    (unsigned long long)sums->calls,
		    (unsigned long long)sums->received,
		    (unsigned long long)sums->sent);
}
