/* SPDX-License-Identifier: BSD-2-Clause */
/* pages - what --metrics serves over HTTP. */
#include "daemon/pages.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/metrics.h"
#include "daemon/web.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "transport/addr.h"

STAT(web_unserved, "starts without metrics and the status page, because their "
     "address was not to be had");

struct pages {
	struct report	       *report;		/* borrowed */
	struct metrics_clients *named;
	struct web	       *web;
};

static bool make_metrics(void *arg, const char *accept, struct web_answer *out)
{
	bool open = metrics_wants_open(accept);
	struct pages *p = arg;

	out->type = open ?
		"application/openmetrics-text; version=1.0.0; charset=utf-8" :
		"text/plain; version=0.0.4; charset=utf-8";
	out->text = metrics_make(p->report, p->named, open, &out->len);
	return out->text;
}

static const struct web_page pages[] = {
	{ "/metrics", make_metrics },
	{ NULL, NULL }
};

/* 0 or -errno. */
static int pages_serve(struct pages *p, struct sockaddr_storage *at)
{
	int err;

	p->named = metrics_clients_create(p->report->o->metrics_clients);
	err = p->named ? web_start(at, pages, p, &p->web) : -ENOMEM;
	if (!err)
		xprt_addr_set_port(at, (uint16_t)web_port(p->web));
	return err;
}

struct pages *pages_start(struct report *r)
{
	struct sockaddr_storage at;
	char text[XPRT_ADDR_TEXT];
	struct pages *p;
	int err;

	/* It was checked when it was read. */
	if (options_metrics(r->o->metrics, &at) || !at.ss_family)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (p)
		p->report = r;
	err = p ? pages_serve(p, &at) : -ENOMEM;
	xprt_addr_text((struct sockaddr *)&at, text, sizeof(text));
	if (!err) {
		log_info("metrics are at http://%s/metrics", text);
		return p;
	}
	stat_inc(web_unserved);
	log_warn("metrics: cannot listen on %s: %s (see --metrics)", text,
		 strerror(-err));
	pages_stop(p);
	return NULL;
}

void pages_stop(struct pages *p)
{
	if (!p)
		return;
	web_stop(p->web);
	metrics_clients_destroy(p->named);
	free(p);
}
