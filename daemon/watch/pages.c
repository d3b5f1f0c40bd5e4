/* SPDX-License-Identifier: BSD-2-Clause */
/* pages - what --metrics serves over HTTP. */
#include "daemon/watch/report.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/watch/health.h"
#include "daemon/watch/metrics.h"
#include "daemon/watch/web.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "lib/util.h"
#include "transport/addr.h"

STAT(web_unserved, "starts without metrics and the status page, because their "
     "address was not available");

struct pages {
	struct report	       *report;		/* borrowed */
	struct metrics_clients *named;
	struct health	       *health;
	struct web	       *web;
	char			policy[400];	/* of the status page */
};

static const char status_page[] = {
#include "daemon/watch/status.inc"
	0
};

/* ---- the policy of the status page */

#define HASH_TEXT	sodium_base64_ENCODED_LEN(crypto_hash_sha256_BYTES, \
				sodium_base64_VARIANT_ORIGINAL)

/* The hash by which a browser knows the text of the page's only @element. */
static const char *hash_of(const char *element, char out[HASH_TEXT])
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char begin[16], end[16];
	const char *from, *to;

	snprintf(begin, sizeof(begin), "<%s>", element);
	snprintf(end, sizeof(end), "</%s>", element);
	from = strstr(status_page, begin) + strlen(begin);
	to = strstr(from, end);
	crypto_hash_sha256(hash, (const unsigned char *)from,
			   (unsigned long long)(to - from));
	sodium_bin2base64(out, HASH_TEXT, hash, sizeof(hash),
			  sodium_base64_VARIANT_ORIGINAL);
	return out;
}

/* The page runs and loads only its own contents. */
static void make_policy(struct pages *p)
{
	char script[HASH_TEXT], style[HASH_TEXT];

	snprintf(p->policy, sizeof(p->policy), "default-src 'none'; "
		 "script-src 'sha256-%s'; style-src 'sha256-%s'; img-src "
		 "data:; connect-src 'self'; base-uri 'none'; form-action "
		 "'none'; frame-ancestors 'none'", hash_of("script", script),
		 hash_of("style", style));
}

/* ---- pages */

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

static bool make_page(void *arg, const char *accept, struct web_answer *out)
{
	struct pages *p = arg;

	out->type = "text/html; charset=utf-8";
	out->policy = p->policy;
	out->len = sizeof(status_page) - 1;
	out->text = strdup(status_page);
	return out->text;
}

/*
 * The commands of gannetctl whose results the status page has, and the members
 * that it has of each.  Every user of this machine can read the page, so it
 * omits data that the table in SECURITY.md leaves to the group of the control
 * socket: options of rules, the state directory, and who has which lock.
 */
static const struct part {
	const char *command, *argument;
	const char *members[10];
} parts[] = {
	{ "status", NULL, { "version", "state", "calls", "pid", "uptime_s",
			    "listeners", "memory" } },
	{ "exports", NULL, { "path", "kind", "away", "clients", "held_back",
			     "held_back_ns" } },
	{ "stats", NULL, { "counters", "procedures" } },
	{ "waits", NULL, { "workers", "calls" } },
	{ "clients", NULL, { NULL } },	/* all */
	{ "latency", "export", { "by", "rows" } },
	{ "locks", "0", { "locks", "waits", "shares" } },
};

/* Returns the members of @from, or of each object in that array. */
static json_t *pick_members(const json_t *from, const char *const members[])
{
	json_t *out = json_is_array(from) ? json_array() : json_object();
	const json_t *one;
	size_t i;

	json_array_foreach(from, i, one)
		json_array_append_new(out, pick_members(one, members));
	for (i = 0; json_is_object(from) && members[i]; i++)
		json_object_set(out, members[i],
				json_object_get(from, members[i]));
	return out;
}

static json_t *public_part(struct report *r, const struct part *p)
{
	json_t *whole = report_ask(r, p->command, p->argument);
	json_t *out = p->members[0] ? pick_members(whole, p->members) :
				      json_incref(whole);

	json_decref(whole);
	return out;
}

static bool make_status(void *arg, const char *accept, struct web_answer *out)
{
	json_t *all = json_object();
	struct pages *p = arg;

	for (unsigned i = 0; i < ARRAY_SIZE(parts); i++)
		json_object_set_new(all, parts[i].command,
				    public_part(p->report, &parts[i]));
	out->type = "application/json";
	out->text = json_dumps(all, JSON_COMPACT);
	out->len = out->text ? strlen(out->text) : 0;
	json_decref(all);
	return out->text;
}

/* ---- for probes */

static bool make_line(const char *line, unsigned status,
		      struct web_answer *out)
{
	int len = asprintf(&out->text, "%s\n", line);

	out->type = "text/plain; charset=utf-8";
	out->status = status;
	out->len = len < 0 ? 0 : (size_t)len;
	return len >= 0;
}

/* A server that answers this is alive; a restart would not help a file system
 * that hangs. */
static bool make_alive_line(void *arg, const char *accept,
			    struct web_answer *out)
{
	return make_line("ok", 0, out);
}

static bool make_ready_line(void *arg, const char *accept,
			    struct web_answer *out)
{
	struct pages *p = arg;
	char why[512];

	if (health_is_ready(p->health, p->report, why, sizeof(why)))
		return make_line("ok", 0, out);
	return make_line(why, 503, out);
}

static const struct web_page pages[] = {
	{ "/healthz", make_alive_line },
	{ "/readyz", make_ready_line },
	{ "/", make_page },
	{ "/status.json", make_status },
	{ "/metrics", make_metrics },
	{ NULL, NULL }
};

/* 0 or -errno. */
static int pages_serve(struct pages *p, struct sockaddr_storage *at)
{
	int err;

	p->named = metrics_clients_create(p->report->o->metrics_clients);
	p->health = health_create();
	err = p->named && p->health ? web_start(at, pages, p, &p->web) :
	      -ENOMEM;
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
	if (p) {
		p->report = r;
		make_policy(p);
	}
	err = p ? pages_serve(p, &at) : -ENOMEM;
	xprt_addr_text((struct sockaddr *)&at, text, sizeof(text));
	if (!err) {
		log_info("metrics are at http://%s/metrics, the status page at "
			 "http://%s/", text, text);
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
	health_destroy(p->health);
	free(p);
}
