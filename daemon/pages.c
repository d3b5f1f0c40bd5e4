/* SPDX-License-Identifier: BSD-2-Clause */
/* pages - what --metrics serves over HTTP. */
#include "daemon/pages.h"

#include <string.h>

#include "daemon/metrics.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "transport/addr.h"

STAT(web_unserved, "starts without metrics and the status page, because their "
     "address was not to be had");

static bool make_metrics(void *arg, const char *accept, struct web_answer *out)
{
	bool open = metrics_wants_open(accept);

	out->type = open ?
		"application/openmetrics-text; version=1.0.0; charset=utf-8" :
		"text/plain; version=0.0.4; charset=utf-8";
	out->text = metrics_make(arg, open, &out->len);
	return out->text;
}

static const struct web_page pages[] = {
	{ "/metrics", make_metrics },
	{ NULL, NULL }
};

struct web *pages_start(struct report *r)
{
	struct sockaddr_storage at;
	char text[XPRT_ADDR_TEXT];
	struct web *w = NULL;
	int err;

	/* It was checked when it was read. */
	if (options_metrics(r->o->metrics, &at) || !at.ss_family)
		return NULL;
	err = web_start(&at, pages, r, &w);
	if (!err)
		xprt_addr_set_port(&at, (uint16_t)web_port(w));
	xprt_addr_text((struct sockaddr *)&at, text, sizeof(text));
	if (!err) {
		log_info("metrics are at http://%s/metrics", text);
		return w;
	}
	stat_inc(web_unserved);
	log_warn("metrics: cannot listen on %s: %s (see --metrics)", text,
		 strerror(-err));
	return NULL;
}
