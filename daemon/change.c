/* SPDX-License-Identifier: BSD-2-Clause */
/* change - what gannetctl(8) has the server change. */
#include "daemon/change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

/* A change that is asked for. */
struct change {
	struct reloader_job job;
	const struct report *r;
	struct control_call *call;
	/* 0 or -errno. */
	int (*make)(const struct change *c, struct outcome *o);
};

static void end_with_error(struct control_call *call, const char *error)
{
	char *text;

	if (asprintf(&text, "%s (nothing has changed)", error) < 0)
		text = NULL;
	control_call_end(call, NULL, text ? text : error);
	free(text);
}

static void run_change(struct reloader_job *job, bool stops)
{
	struct change *c = container_of(job, struct change, job);
	struct outcome o;
	int err;

	if (stops) {
		end_with_error(c->call, "the server ends");
		free(c);
		return;
	}
	outcome_init(&o);
	err = c->make(c, &o);
	if (err)
		end_with_error(c->call, o.error ? o.error : strerror(-err));
	else
		control_call_end(c->call, outcome_json(&o), "out of memory");
	outcome_fini(&o);
	free(c);
}

static void ask_for_change(const struct report *r, struct control_call *call,
			   int (*make)(const struct change *c,
				       struct outcome *o))
{
	struct change *c = malloc(sizeof(*c));

	if (!c) {
		end_with_error(call, "out of memory");
		return;
	}
	*c = (struct change){ { NULL, run_change }, r, call, make };
	if (reloader_give(r->reloader, &c->job))
		return;
	end_with_error(call, "too many changes wait, since a file system does "
		       "not answer");
	free(c);
}

/* ---- reload */

static int make_reload(const struct change *c, struct outcome *o)
{
	return c->r->reload(c->r->server, o);
}

void change_reload(void *report, struct control_call *call)
{
	ask_for_change(report, call, make_reload);
}

/* ---- reopen */

static int make_reopen(const struct change *c, struct outcome *o)
{
	const struct report *r = c->r;

	return audit_reopen(r->audit, *r->now ? *r->now : r->o, o);
}

void change_reopen(void *report, struct control_call *call)
{
	ask_for_change(report, call, make_reopen);
}

/* ---- exports */

static int make_add(const struct change *c, struct outcome *o)
{
	return change_rules(c->r, c->call, CHANGE_ADD, o);
}

static int make_remove(const struct change *c, struct outcome *o)
{
	return change_rules(c->r, c->call, CHANGE_REMOVE, o);
}

static int make_set(const struct change *c, struct outcome *o)
{
	return change_rules(c->r, c->call, CHANGE_SET, o);
}

void change_add(void *report, struct control_call *call)
{
	ask_for_change(report, call, make_add);
}

void change_remove(void *report, struct control_call *call)
{
	ask_for_change(report, call, make_remove);
}

void change_set(void *report, struct control_call *call)
{
	ask_for_change(report, call, make_set);
}
