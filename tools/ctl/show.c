/* SPDX-License-Identifier: BSD-2-Clause */
/* show - prints results as text for people. */
#include "tools/ctl/ctl.h"

#include <stdio.h>
#include <string.h>

const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key)) ? : "?";
}

long long integer_of(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

void show_status(const json_t *r)
{
	const json_t *memory = json_object_get(r, "memory"), *l;
	const json_t *replies = json_object_get(r, "replies");
	long long up = integer_of(r, "uptime_s");
	size_t i;

	printf("gannetd %s, process %lld, up %lld d %02lld:%02lld:%02lld\n",
	       text_of(r, "version"), integer_of(r, "pid"), up / 86400,
	       up / 3600 % 24, up / 60 % 60, up % 60);
	printf("state            %s, %lld calls in progress\n",
	       text_of(r, "state"), integer_of(r, "calls"));
	printf("state directory  %s\n", text_of(r, "state_dir"));
	printf("memory for data  %lld MiB taken, %lld KiB in use\n",
	       integer_of(memory, "taken") >> 20,
	       integer_of(memory, "used") >> 10);
	printf("replies          %lld remembered, in %lld KiB of %lld MiB\n",
	       integer_of(replies, "remembered"),
	       integer_of(replies, "bytes") >> 10,
	       integer_of(replies, "most") >> 20);
	printf("exports          %lld rule%s\n", integer_of(r, "rules"),
	       integer_of(r, "rules") == 1 ? "" : "s");
	json_array_foreach(json_object_get(r, "listeners"), i, l)
		printf("%-16s %s, %lld connections\n", text_of(l, "name"),
		       text_of(l, "address"), integer_of(l, "connections"));
}

void show_held(const json_t *o, const char *before)
{
	if (integer_of(o, "held_back"))
		printf("%slimits held calls back %lld times, for %.3f s in "
		       "all\n", before, integer_of(o, "held_back"),
		       (double)integer_of(o, "held_back_ns") / 1e9);
}

void show_exports(const json_t *r)
{
	const json_t *e, *rule;
	const char *why;
	size_t i, k;
	bool away;

	json_array_foreach(r, i, e) {
		away = json_is_true(json_object_get(e, "away"));
		json_array_foreach(json_object_get(e, "rules"), k, rule)
			printf("%s\t%s(%s)\t%s\n", text_of(e, "path"),
			       text_of(rule, "client"),
			       text_of(rule, "options"),
			       text_of(rule, "from"));
		why = json_string_value(json_object_get(e, "why"));
		if (away && why)
			printf("# %s is not exported now: %s\n",
			       text_of(e, "path"), why);
		else if (away || strcmp(text_of(e, "kind"), "posix") != 0)
			printf("# %s is of the kind %s%s\n", text_of(e, "path"),
			       text_of(e, "kind"),
			       away ? ", and does not answer" : "");
		show_held(e, "# ");
	}
}

void show_stats(const json_t *r)
{
	const json_t *p, *n;
	const char *name;
	size_t i;

	printf("%-10s %-4s %-12s %12s %10s %10s\n", "program", "vers",
	       "procedure", "calls", "failed", "us each");
	json_array_foreach(json_object_get(r, "procedures"), i, p)
		printf("%-10s %-4lld %-12s %12lld %10lld %10.1f\n",
		       text_of(p, "program"), integer_of(p, "version"),
		       text_of(p, "procedure"), integer_of(p, "calls"),
		       integer_of(p, "failed"),
		       (double)integer_of(p, "ns") / 1000 /
		       (double)(integer_of(p, "calls") ? : 1));
	json_object_foreach(json_object_get(r, "counters"), name, n)
		if (json_integer_value(n))
			printf("%-40s %lld\n", name,
			       (long long)json_integer_value(n));
}

void show_waits(const json_t *r)
{
	const json_t *e;
	size_t i;

	json_array_foreach(json_object_get(r, "workers"), i, e)
		printf("workers of %s: %lld of %lld busy, %lld calls wait\n",
		       text_of(e, "workers_of"), integer_of(e, "busy"),
		       integer_of(e, "most"), integer_of(e, "calls_waiting"));
	json_array_foreach(json_object_get(r, "calls"), i, e)
		printf("%s: %s %s has waited %lld ms for %s\n",
		       text_of(e, "client"), text_of(e, "program"),
		       text_of(e, "procedure"), integer_of(e, "ms"),
		       text_of(e, "waits_for"));
}

void show_level(const json_t *r)
{
	printf("log level %s\n", text_of(r, "level"));
}
