/* SPDX-License-Identifier: BSD-2-Clause */
/* who - who does what, in JSON for gannetctl(8). */
#include "daemon/watch/report.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "rpc/limit.h"
#include "transport/clients.h"

/* ---- accounts */

static json_int_t quantile_of(const struct account_sum *sum,
			      unsigned per_mille)
{
	return (json_int_t)histogram_quantile(sum->histogram, per_mille);
}

/* Adds the members that each account has.  Takes @o. */
static json_t *add_sums(json_t *o, const struct account_sum *sum)
{
	json_t *sums = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
		"s:I, s:I}",
		"calls", (json_int_t)sum->calls,
		"failed", (json_int_t)sum->failed,
		"bytes_read", (json_int_t)sum->bytes[ACCOUNT_READ],
		"bytes_written", (json_int_t)sum->bytes[ACCOUNT_WRITTEN],
		"ns", (json_int_t)sum->ns,
		"held_back", (json_int_t)sum->held,
		"held_back_ns", (json_int_t)sum->held_ns,
		"p50_ns", quantile_of(sum, 500),
		"p99_ns", quantile_of(sum, 990),
		"p999_ns", quantile_of(sum, 999));

	json_object_update(o, sums);
	json_decref(sums);
	return o;
}

/* The buckets that counted, each with the time that it ends before. */
static json_t *histogram_json(const struct account_sum *sum)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (sum->histogram[i])
			json_array_append_new(list, json_pack("[I, I]",
				(json_int_t)histogram_low(i + 1),
				(json_int_t)sum->histogram[i]));
	return list;
}

/* ---- clients */

json_t *who_host(const struct in6_addr *host)
{
	char text[INET6_ADDRSTRLEN];

	return host ? json_string(xprt_host_text(host, text)) : json_null();
}

bool who_parse_host(const char *text, struct in6_addr *out)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, text, &sin.sin_addr) != 1)
		return inet_pton(AF_INET6, text, out) == 1;
	*out = xprt_addr_host((struct sockaddr *)&sin);
	return true;
}

static json_t *conn_json(const struct xprt_facts *f)
{
	json_t *o = json_pack("{s:s, s:s*, s:i}", "transport", f->transport,
			      "provider", f->provider, "port", (int)f->port);
	json_t *limits;

	if (f->credits) {
		limits = json_pack("{s:i, s:I, s:I}",
			"credits", (int)f->credits,
			"inline_to_client", (json_int_t)f->send_inline,
			"inline_from_client", (json_int_t)f->recv_inline);
		json_object_update(o, limits);
		json_decref(limits);
	}
	return o;
}

struct clients_report {
	json_t	       *list;
	json_t	       *mounts;		/* lists of paths, by host */
	const struct in6_addr *only;	/* or NULL */
	uint64_t	now;
};

static void who_note_mount(void *arg, const char *host, const char *path)
{
	json_t *mounts = arg, *paths = json_object_get(mounts, host);

	if (!paths) {
		paths = json_array();
		/* A host that is not a string was not written by this
		 * server. */
		if (json_object_set_new(mounts, host, paths) < 0)
			return;
	}
	json_array_append_new(paths, json_text(path));
}

static void who_note_mounts(const struct report *r, json_t *mounts)
{
	const struct program_row *row;
	struct rpc_program *prog;

	for (unsigned i = 0; (prog = r->program(r->server, i, &row)); i++)
		if (row->mounts)
			row->mounts(prog, who_note_mount, mounts);
}

static json_int_t seconds_since(const struct clients_report *r, uint64_t ns)
{
	return (json_int_t)((r->now - MIN(ns, r->now)) / NS_PER_S);
}

static void who_add_client(const struct xprt_client_view *v, void *arg)
{
	struct clients_report *r = arg;
	json_t *conns, *o, *address, *paths;

	if (r->only && (!v->host || memcmp(v->host, r->only,
					   sizeof(*v->host)) != 0))
		return;
	if (!v->host && !v->sum.calls && !v->nconns)
		return;
	conns = json_array();
	for (unsigned i = 0; i < v->nshown; i++)
		json_array_append_new(conns, conn_json(&v->conns[i]));
	address = who_host(v->host);
	paths = json_object_get(r->mounts, json_string_value(address) ? : "");
	o = json_pack("{s:o, s:I, s:b, s:i, s:o, s:o}",
		"address", address, "first_seen_s",
		seconds_since(r, v->first), "udp", (int)v->udp,
		"connections", (int)v->nconns, "transports", conns,
		"paths", paths ? json_incref(paths) : json_array());
	json_object_set_new(o, "last_seen_s", v->last ?
		json_integer(seconds_since(r, v->last)) : json_null());
	json_array_append_new(r->list, add_sums(o, &v->sum));
}

json_t *who_clients(void *report, const char *argument, const char **wrong)
{
	const struct report *r = report;
	struct clients_report c = { .now = clock_ns() };
	struct in6_addr host;

	if (argument) {
		if (!who_parse_host(argument, &host)) {
			*wrong = "clients: expected an IPv4 or IPv6 address";
			return NULL;
		}
		c.only = &host;
	}
	c.list = json_array();
	c.mounts = json_object();
	who_note_mounts(r, c.mounts);
	xprt_clients_walk(r->clients, who_add_client, &c);
	json_decref(c.mounts);
	if (argument && json_array_size(c.list) == 0) {
		json_decref(c.list);
		*wrong = "clients: no such client has called lately";
		return NULL;
	}
	return c.list;
}

/* ---- latency */

/* Takes @name. */
static void add_row(json_t *rows, json_t *name, const struct account_sum *sum)
{
	json_t *o;

	if (!sum->calls) {
		json_decref(name);
		return;
	}
	o = json_pack("{s:o, s:o}", "name", name, "histogram",
		      histogram_json(sum));
	json_array_append_new(rows, add_sums(o, sum));
}

static void add_proc_row(const struct rpc_program *prog,
			 const struct rpc_version *version, uint32_t proc,
			 struct rpc_proc_counts *n, void *arg)
{
	struct account_sum sum;

	rpc_proc_sum(n, &sum);
	add_row(arg, json_sprintf("%s%u %s", prog->name, version->vers,
				      version->procs[proc].name), &sum);
}

static void add_export_row(const char *name, unsigned users,
			   const struct account_sum *sum, void *arg)
{
	add_row(arg, name ? json_text(name) : json_null(), sum);
}

static void add_client_row(const struct xprt_client_view *v, void *arg)
{
	add_row(arg, who_host(v->host), &v->sum);
}

json_t *who_latency(void *report, const char *argument, const char **wrong)
{
	const struct report *r = report;
	const char *by = argument ? : "procedure";
	json_t *rows = json_array();

	if (!strcmp(by, "procedure")) {
		rpc_server_walk_procs(r->rpc, add_proc_row, rows);
	} else if (!strcmp(by, "export")) {
		account_book_walk(r->export_accounts, add_export_row, rows);
	} else if (!strcmp(by, "client")) {
		xprt_clients_walk(r->clients, add_client_row, rows);
	} else {
		json_decref(rows);
		*wrong = "latency: expected procedure, export or client";
		return NULL;
	}
	return json_pack("{s:s, s:o}", "by", by, "rows", rows);
}

/* ---- disconnect */

json_t *who_disconnect(void *report, const char *argument, const char **wrong)
{
	const struct report *r = report;
	struct in6_addr host;
	unsigned n;

	if (!argument || !who_parse_host(argument, &host)) {
		*wrong = "disconnect: expected an IPv4 or IPv6 address";
		return NULL;
	}
	n = xprt_clients_end(r->clients, &host);
	rpc_limits_let_go(r->rpc, &host);
	log_at(LOG_LEVEL_INFO, "gannetctl: ends %u connections of %s", n,
	       argument);
	return json_pack("{s:o, s:i}", "address", who_host(&host),
			 "connections", (int)n);
}
