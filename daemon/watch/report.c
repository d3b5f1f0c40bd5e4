/* SPDX-License-Identifier: BSD-2-Clause */
/* report - the server's state in JSON, for gannetctl(8). */
#include "daemon/watch/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "transport/addr.h"

/* ---- status */

static json_t *report_listeners(const struct report *r)
{
	json_t *list = json_array();
	char text[XPRT_ADDR_TEXT];
	struct xprt_listener *l;
	const char *name;

	for (unsigned i = 0; (l = r->listener(r->server, i, &name)); i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:i}",
			"name", name, "address",
			xprt_addr_text((struct sockaddr *)&l->local, text,
				       sizeof(text)),
			"connections", (int)l->ops->count(l)));
	return list;
}

static void count_export(void *arg, const char *path, const char *client,
			 bool everyone)
{
	(*(unsigned *)arg)++;
}

static json_t *report_status(void *arg, const char *argument,
			     const char **wrong)
{
	const struct report *r = arg;
	size_t taken, used, replies, bytes;
	unsigned rules = 0;

	pool_usage(r->pool, &taken, &used);
	rpc_server_replies(r->rpc, &replies, &bytes);
	export_walk(r->exports, count_export, &rules);
	return json_pack("{s:s, s:s, s:i, s:i, s:I, s:o, s:o, s:i, "
		"s:{s:I, s:I}, s:{s:I, s:I, s:I}}", "version", PACKAGE_VERSION,
		"state", drain_state(r), "calls", (int)rpc_busy(),
		"pid", (int)getpid(),
		"uptime_s", (json_int_t)((clock_ns() - r->started) / NS_PER_S),
		"state_dir", json_text(r->o->state_dir),
		"listeners", report_listeners(r), "rules", (int)rules,
		"memory", "taken", (json_int_t)taken, "used",
		(json_int_t)used, "replies", "remembered",
		(json_int_t)replies, "bytes", (json_int_t)bytes, "most",
		(json_int_t)r->o->reply_memory);
}

/* ---- exports */

/* Of one kind of limits: "client_" or none is before the names. */
static void add_limits(json_t *o, const char *before, const struct rates *r)
{
	char ops[32], bytes[32];

	snprintf(ops, sizeof(ops), "%smax_ops", before);
	snprintf(bytes, sizeof(bytes), "%smax_bytes", before);
	json_object_set_new(o, ops, json_integer((json_int_t)r->ops));
	json_object_set_new(o, bytes, json_integer((json_int_t)r->bytes));
}

/* One object for each path, whose rules come together. */
static void add_export_rule(void *arg, const struct export_rule *rule)
{
	json_t *list = arg, *name = json_text(rule->path), *one;
	json_t *last = json_array_get(list, json_array_size(list) - 1);

	if (!json_equal(json_object_get(last, "path"), name)) {
		last = json_pack("{s:O, s:s, s:b, s:[], s:[], s:i, s:i}",
				 "path", name, "kind", rule->kind, "away",
				 rule->is_away, "clients", "rules",
				 "held_back", 0, "held_back_ns", 0);
		if (rule->why)
			json_object_set_new(last, "why", json_text(rule->why));
		add_limits(last, "", &rule->opts->max);
		json_array_append_new(list, last);
	}
	json_array_append_new(json_object_get(last, "clients"),
			      json_text(rule->client));
	one = json_pack("{s:o, s:s, s:o}", "client", json_text(rule->client),
			"options", rule->options, "from",
			json_text(rule->where));
	add_limits(one, "client_", &rule->opts->client_max);
	json_array_append_new(json_object_get(last, "rules"), one);
	json_decref(name);
}

/* The account of a path that is exported. */
static void add_export_held(const char *name, unsigned users,
			    const struct account_sum *sum, void *arg)
{
	json_t *list = arg, *o, *text = name ? json_text(name) : NULL;
	size_t i;

	json_array_foreach(list, i, o)
		if (users > 0 && text &&
		    json_equal(json_object_get(o, "path"), text)) {
			json_object_set_new(o, "held_back",
				json_integer((json_int_t)sum->held));
			json_object_set_new(o, "held_back_ns",
				json_integer((json_int_t)sum->held_ns));
		}
	json_decref(text);
}

static json_t *report_exports(void *arg, const char *argument,
			      const char **wrong)
{
	const struct report *r = arg;
	json_t *list = json_array();

	export_walk_rules(r->exports, add_export_rule, list);
	account_book_walk(r->export_accounts, add_export_held, list);
	return list;
}

/* ---- stats */

static void add_counter(const struct stat_counter *c, uint64_t sum, void *arg)
{
	json_object_set_new(arg, c->name, json_integer((json_int_t)sum));
}

static void add_procedure(const struct rpc_program *prog,
			  const struct rpc_version *version, uint32_t proc,
			  struct rpc_proc_counts *n, void *arg)
{
	struct account_sum sum;

	rpc_proc_sum(n, &sum);
	if (sum.calls)
		json_array_append_new(arg, json_pack(
			"{s:s, s:i, s:s, s:I, s:I, s:I}",
			"program", prog->name, "version", (int)version->vers,
			"procedure", version->procs[proc].name,
			"calls", (json_int_t)sum.calls, "failed",
			(json_int_t)sum.failed, "ns", (json_int_t)sum.ns));
}

static json_t *report_stats(void *arg, const char *argument,
			    const char **wrong)
{
	const struct report *r = arg;
	json_t *counters = json_object(), *procedures = json_array();

	stats_walk(add_counter, counters);
	rpc_server_walk_procs(r->rpc, add_procedure, procedures);
	return json_pack("{s:o, s:o}", "counters", counters, "procedures",
			 procedures);
}

/* ---- waits */

static void add_class(const char *name, unsigned max, unsigned running,
		      unsigned waiting, void *arg)
{
	json_array_append_new(arg, json_pack("{s:o, s:i, s:i, s:i}",
		"workers_of", json_text(name), "busy", (int)running,
		"most", (int)max, "calls_waiting", (int)waiting));
}

static void add_suspended(const struct rpc_call *call, const char *why,
			  uint64_t ns, void *arg)
{
	json_array_append_new(arg, json_pack("{s:s, s:s, s:s, s:s, s:I}",
		"client", call->msg->xprt->name, "program", call->prog->name,
		"procedure", call->proc->name, "waits_for", why,
		"ms", (json_int_t)(ns / 1000000)));
}

static json_t *report_waits(void *arg, const char *argument,
			    const char **wrong)
{
	const struct report *r = arg;
	json_t *workers = json_array(), *calls = json_array();

	rpc_server_walk_classes(r->rpc, add_class, workers);
	rpc_server_walk_suspended(r->rpc, add_suspended, calls);
	return json_pack("{s:o, s:o}", "workers", workers, "calls", calls);
}

/* ---- log-level */

static json_t *set_log_level(void *arg, const char *argument,
			     const char **wrong)
{
	enum log_level level;

	if (!argument || !log_level_parse(argument, &level)) {
		*wrong = "log-level: expected err, warn, info or debug";
		return NULL;
	}
	log_threshold = level;
	log_at(LOG_LEVEL_INFO, "gannetctl: log level %s", argument);
	return json_pack("{s:s}", "level", argument);
}

/* ---- streams */

static json_t *open_capture(void *arg, const json_t *options,
			    const char **wrong)
{
	const struct report *r = arg;

	return r->capture ? stream_open(r->capture, options, wrong) : NULL;
}

static void start_capture(void *arg, int fd)
{
	stream_start(((const struct report *)arg)->capture, fd);
}

static json_t *open_trace(void *arg, const json_t *options, const char **wrong)
{
	const struct report *r = arg;

	return r->trace ? stream_open(r->trace, options, wrong) : NULL;
}

static void start_trace(void *arg, int fd)
{
	stream_start(((const struct report *)arg)->trace, fd);
}

static const struct control_command commands[] = {
	{ .name = "status", .run = report_status },
	{ .name = "exports", .run = report_exports },
	{ .name = "stats", .run = report_stats },
	{ .name = "waits", .run = report_waits },
	{ .name = "locks", .run = lock_list },
	{ .name = "locks-release", .run = lock_release },
	{ .name = "clients", .run = who_clients },
	{ .name = "latency", .run = who_latency },
	{ .name = "disconnect", .run = who_disconnect },
	{ .name = "drain", .run = drain_begin },
	{ .name = "drain-state", .run = drain_tell },
	{ .name = "resume", .run = drain_resume },
	{ .name = "log-level", .run = set_log_level },
	{ .name = "reload", .later = change_later,
	  .kind = CHANGE_RELOAD },
	{ .name = "reopen", .later = change_later,
	  .kind = CHANGE_REOPEN },
	{ .name = "exports-add", .later = change_later,
	  .kind = CHANGE_ADD },
	{ .name = "exports-remove", .later = change_later,
	  .kind = CHANGE_REMOVE },
	{ .name = "exports-set", .later = change_later,
	  .kind = CHANGE_SET },
	{ .name = "capture", .open = open_capture, .stream = start_capture },
	{ .name = "trace", .open = open_trace, .stream = start_trace },
	{ .name = NULL },
};

json_t *report_ask(struct report *r, const char *command,
		   const char *argument)
{
	const struct control_command *c = commands;
	const char *wrong;

	while (c->name && strcmp(c->name, command) != 0)
		c++;
	return c->name && c->run ? c->run(r, argument, &wrong) : NULL;
}

struct control *report_start(struct report *r)
{
	struct control *c = NULL;
	char *path = NULL;
	int err = 0;

	if (r->o->control)
		path = strdup(r->o->control);
	else if (asprintf(&path, "%s/control", r->o->state_dir) < 0)
		path = NULL;
	err = path ? control_start(path, commands, r, &c) : -ENOMEM;
	if (err)
		log_warn("gannetctl finds no socket %s: %s", path ? : "",
			 strerror(-err));
	free(path);
	return c;
}
