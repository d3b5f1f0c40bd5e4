/* SPDX-License-Identifier: BSD-2-Clause */
/* drain - stops accepting calls, for the end or until gannetctl(8) resumes. */
#include "daemon/serve/drain.h"

#include <stdio.h>
#include <string.h>

#include "daemon/serve/serve.h"
#include "daemon/watch/report.h"
#include "lib/log.h"
#include "lib/thread.h"
#include "rpc/limit.h"
#include "transport/addr.h"

/* With the lock. */
static void stop_listeners(struct report *r)
{
	struct xprt_listener *l;
	const char *name;

	r->announce(r->server, false);
	/* A drain does not take as long as calls can wait for their limits. */
	rpc_limits_off(r->rpc, true);
	for (unsigned i = 0; (l = r->listener(r->server, i, &name)); i++)
		l->ops->stop(l);
}

/* With the lock.  0; or -errno and @error, and all are stopped. */
static int start_listeners(struct report *r, char *error, size_t size)
{
	char text[XPRT_ADDR_TEXT];
	struct xprt_listener *l;
	const char *name;
	int err = 0;

	for (unsigned i = 0; (l = r->listener(r->server, i, &name)); i++) {
		err = l->ops->start(l);
		if (err)
			break;
	}
	if (!err) {
		rpc_limits_off(r->rpc, false);
		r->announce(r->server, true);
		return 0;
	}
	snprintf(error, size, "cannot listen on %s %s: %s; drained still", name,
		 xprt_addr_text((struct sockaddr *)&l->local, text,
				sizeof(text)), strerror(-err));
	log_err("gannetctl: %s", error);
	stop_listeners(r);
	return err;
}

void drain_for_the_end(struct report *r)
{
	const struct program_row *row;
	struct rpc_program *prog;

	for (unsigned i = 0; (prog = r->program(r->server, i, &row)); i++)
		if (row->ending)
			row->ending(prog);
	mutex_lock(&r->drain.lock);
	r->drain.ends = true;
	r->drain.on = true;
	stop_listeners(r);
	mutex_unlock(&r->drain.lock);
}

static unsigned count_conns(const struct report *r)
{
	struct xprt_listener *l;
	const char *name;
	unsigned n = 0;

	for (unsigned i = 0; (l = r->listener(r->server, i, &name)); i++)
		n += l->ops->count(l);
	return n;
}

bool drain_is_empty(const struct report *r)
{
	return count_conns(r) == 0 && rpc_busy() == 0;
}

const char *drain_state(const struct report *r)
{
	return !r->drain.on ? "serving" :
	       drain_is_empty(r) ? "drained" : "draining";
}

/* ---- gannetctl */

json_t *drain_tell(void *report, const char *argument, const char **wrong)
{
	const struct report *r = report;

	return json_pack("{s:s, s:i, s:i}", "state", drain_state(r),
			 "connections", (int)count_conns(r), "calls",
			 (int)rpc_busy());
}

json_t *drain_begin(void *report, const char *argument, const char **wrong)
{
	struct report *r = report;

	mutex_lock(&r->drain.lock);
	if (!r->drain.on) {
		log_at(LOG_LEVEL_INFO, "gannetctl: draining: no calls are "
		       "accepted until gannetctl resume");
		r->drain.on = true;
		notify(NOTIFY_DRAINING);
		stop_listeners(r);
	}
	mutex_unlock(&r->drain.lock);
	return drain_tell(r, NULL, wrong);
}

json_t *drain_resume(void *report, const char *argument, const char **wrong)
{
	struct report *r = report;
	int err = 0;

	mutex_lock(&r->drain.lock);
	if (r->drain.ends) {
		*wrong = "the server ends";
		err = -1;
	} else if (r->drain.on) {
		err = start_listeners(r, r->drain.error,
				      sizeof(r->drain.error));
		*wrong = r->drain.error;
	}
	if (!err && r->drain.on) {
		r->drain.on = false;
		notify(NOTIFY_SERVING);
		log_at(LOG_LEVEL_INFO, "gannetctl: serving again");
	}
	mutex_unlock(&r->drain.lock);
	return err ? NULL : drain_tell(r, NULL, wrong);
}
