/* SPDX-License-Identifier: BSD-2-Clause */
/* lock_list - who holds and waits for which bytes of which file, in JSON for
 * gannetctl(8), and the end of a client's locks. */
#include "daemon/watch/report.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"

/* The most locks of an answer: no call can lock while they are listed. */
#define LOCKS_MOST	1000ul

static const char *const kind_names[] = {
	[LOCK_HELD] = "lock", [LOCK_WAITS] = "wait", [LOCK_TOLD] = "granted",
	[LOCK_SHARE] = "share",
};

/* By the bits of a share. */
static const char *const share_names[] = { "none", "read", "write", "both" };

/* Adds the members of @p to @o. */
static void add_party(json_t *o, const struct lock_party *p, bool has_range)
{
	char *oh = malloc(2 * (size_t)p->oh_len + 1);

	if (oh)
		sodium_bin2hex(oh, 2 * (size_t)p->oh_len + 1, p->oh,
			       p->oh_len);
	json_object_set_new(o, "client", who_host(p->addr));
	json_object_set_new(o, "host", json_text(p->host));
	json_object_set_new(o, "process", json_integer(p->svid));
	json_object_set_new(o, "owner", json_string(oh ? oh : ""));
	free(oh);
	if (!has_range)
		return;
	json_object_set_new(o, "first", json_integer((json_int_t)p->first));
	json_object_set_new(o, "last", p->last == LOCK_TO_END ? json_null() :
			    json_integer((json_int_t)p->last));
	json_object_set_new(o, "exclusive", json_boolean(p->exclusive));
}

static void add_lock(void *arg, const struct lock_view *v)
{
	const bool is_share = v->kind == LOCK_SHARE;
	json_t *o = json_pack("{s:s, s:o, s:o, s:I}",
		"kind", kind_names[v->kind], "export", json_text(v->export),
		"fileid", json_sprintf("%llu", (unsigned long long)v->fileid),
		"ms", (json_int_t)v->ms), *blocker = NULL;

	add_party(o, &v->owner, !is_share);
	if (is_share) {
		json_object_set_new(o, "access", json_string(
				    share_names[v->access & 3]));
		json_object_set_new(o, "deny", json_string(
				    share_names[v->deny & 3]));
	}
	if (v->is_blocked) {
		blocker = json_object();
		add_party(blocker, &v->blocker, true);
	}
	if (v->kind == LOCK_WAITS)
		json_object_set_new(o, "blocked_by", blocker ? : json_null());
	json_array_append_new(arg, o);
}

json_t *lock_list(void *report, const char *argument, const char **wrong)
{
	json_t *rows = json_array();
	struct lock_totals t = { 0 };
	unsigned long most = LOCKS_MOST;
	char *end;

	if (argument) {
		most = strtoul(argument, &end, 10);
		if (*end || end == argument || most > LOCKS_MOST) {
			json_decref(rows);
			*wrong = "locks: expected a number up to 1000";
			return NULL;
		}
	}
	report_locks(report, (unsigned)most, add_lock, rows, &t);
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:I, s:o}",
		"locks", (int)t.locks, "waits", (int)t.waits,
		"shares", (int)t.shares, "hosts", (int)t.hosts,
		"monitored", (int)t.monitored, "grace_ms",
		(json_int_t)t.grace_ms, "rows", rows);
}

/* ---- release */

static void release_all(const struct report *r, const struct in6_addr *addr,
			const char *name, struct lock_totals *ended)
{
	const struct program_row *row;
	struct rpc_program *prog;

	for (unsigned i = 0; (prog = r->program(r->server, i, &row)); i++)
		if (row->release)
			row->release(prog, addr, name, ended);
}

json_t *lock_release(void *report, const char *argument, const char **wrong)
{
	const struct report *r = report;
	struct audit_release e = { .uid = control_user() };
	const struct lock_totals *t = &e.ended;
	char host[64];
	size_t len;

	len = argument ? strcspn(argument, " ") : 0;
	if (len >= sizeof(host))
		len = 0;
	memcpy(host, argument ? argument : "", len);
	host[len] = '\0';
	if (!who_parse_host(host, &e.addr)) {
		*wrong = "locks release: expected an IPv4 or IPv6 address";
		return NULL;
	}
	e.name = argument[len] ? argument + len + 1 : NULL;
	release_all(r, &e.addr, e.name, &e.ended);
	if (t->hosts == 0) {
		*wrong = "locks release: no such client has locks";
		return NULL;
	}
	/* As a warning: the client, if it lives, has not let go of them. */
	log_at(LOG_LEVEL_WARN, "gannetctl: ends %u locks, %u waits and %u "
	       "shares of %s", t->locks, t->waits, t->shares, argument);
	audit_note_release(r->audit, &e);
	return json_pack("{s:o, s:i, s:i, s:i, s:i}", "address",
			 who_host(&e.addr), "hosts", (int)t->hosts, "locks",
			 (int)t->locks, "waits", (int)t->waits, "shares",
			 (int)t->shares);
}
