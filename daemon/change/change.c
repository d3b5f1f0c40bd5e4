/* SPDX-License-Identifier: BSD-2-Clause */
/* change - what gannetctl(8) has the server change. */
#include "daemon/change/change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/watch/audit.h"
#include "daemon/watch/report.h"
#include "lib/util.h"

/* A change that is asked for. */
struct change {
	struct changer_job job;
	const struct report *r;
	struct control_call *call;
	enum change_kind kind;
};

static void end_with_error(struct control_call *call, const char *error)
{
	char *text;

	if (asprintf(&text, "%s (nothing has changed)", error) < 0)
		text = NULL;
	control_call_end(call, NULL, text ? text : error);
	free(text);
}

/* 0 or -errno. */
static int make_change(const struct change *c, struct outcome *o)
{
	const struct report *r = c->r;

	switch (c->kind) {
	case CHANGE_RELOAD:
		return r->reload(r->server, o);
	case CHANGE_REOPEN:
		return audit_reopen(r->audit, *r->now ? *r->now : r->o, o);
	default:
		return change_rules(r, c->call, c->kind, o);
	}
}

static void run_change(struct changer_job *job, bool stops)
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
	err = make_change(c, &o);
	if (err)
		end_with_error(c->call, o.error ? o.error : strerror(-err));
	else
		control_call_end(c->call, outcome_json(&o), "out of memory");
	outcome_fini(&o);
	free(c);
}

void change_later(void *report, struct control_call *call, int kind)
{
	const struct report *r = report;
	struct change *c = malloc(sizeof(*c));

	if (!c) {
		end_with_error(call, "out of memory");
		return;
	}
	*c = (struct change){ { NULL, run_change }, r, call, kind };
	if (changer_give(r->changer, &c->job))
		return;
	end_with_error(call, "too many changes wait, since a file system does "
		       "not answer");
	free(c);
}
