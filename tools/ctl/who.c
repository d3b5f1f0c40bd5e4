/* SPDX-License-Identifier: BSD-2-Clause */
/* who - gannetctl's commands clients, latency and disconnect. */
#include "tools/ctl/who.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words */

const char *amount_text(double n, char out[SHORT_TEXT])
{
	static const char units[] = "KMGTPE";
	int i = -1;

	while (n >= 1023.5 && i + 1 < (int)strlen(units)) {
		n /= 1024;
		i++;
	}
	if (i < 0)
		snprintf(out, SHORT_TEXT, "%.0f", n);
	else
		snprintf(out, SHORT_TEXT, "%.1f%c", n, units[i]);
	return out;
}

const char *time_text(uint64_t ns, char out[SHORT_TEXT])
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	double n = (double)ns;
	int i = 0;

	for (; n >= 999.5 && i < 3; i++)
		n /= 1000;
	if (ns == 0)
		snprintf(out, SHORT_TEXT, "-");
	else
		snprintf(out, SHORT_TEXT, i && n < 99.95 ? "%.1f%s" :
			 "%.0f%s", n, units[i]);
	return out;
}

const char *row_name(const json_t *row, const char *key)
{
	const json_t *name = json_object_get(row, key);

	return json_is_null(name) ? "(others)" :
	       json_string_value(name) ? : "?";
}

const char *who_by(const char *by)
{
	static const char *const words[] = { "procedure", "export", "client" };

	for (size_t i = 0; *by && i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(words[i], by, strlen(by)) == 0)
			return words[i];
	complain("--by %s: expected procedure, export or client", by);
	return NULL;
}

/* ---- clients */

/* Writes the kinds of transports that the client uses, as "tcp, iwarp". */
static void list_transports(const json_t *client, char *out, size_t size)
{
	const json_t *conn;
	size_t i, len = 0;

	*out = '\0';
	json_array_foreach(json_object_get(client, "transports"), i, conn) {
		const char *name = json_string_value(json_object_get(conn,
			"provider")) ? : text_of(conn, "transport");

		if (strstr(out, name))
			continue;
		len += (size_t)snprintf(out + len, size - len, "%s%s",
					len ? "," : "", name);
		if (len >= size)
			return;
	}
	if (json_is_true(json_object_get(client, "udp")))
		snprintf(out + len, size - len, "%sudp", len ? "," : "");
}

static void show_paths(const json_t *client)
{
	const json_t *path;
	size_t i;

	json_array_foreach(json_object_get(client, "paths"), i, path)
		printf("  mounted %s\n", json_string_value(path));
}

static void show_client(const json_t *client)
{
	char over[64], read[SHORT_TEXT], written[SHORT_TEXT], p50[SHORT_TEXT],
	     p99[SHORT_TEXT], seen[SHORT_TEXT] = "never";

	list_transports(client, over, sizeof(over));
	if (json_is_integer(json_object_get(client, "last_seen_s")))
		snprintf(seen, sizeof(seen), "%lld s",
			 integer_of(client, "last_seen_s"));
	printf("%-26s %5lld %-12s %10lld %8lld %8s %8s %8s %8s %8s\n",
	       row_name(client, "address"), integer_of(client, "connections"),
	       *over ? over : "-", integer_of(client, "calls"),
	       integer_of(client, "failed"),
	       amount_text((double)integer_of(client, "bytes_read"), read),
	       amount_text((double)integer_of(client, "bytes_written"),
			   written),
	       time_text((uint64_t)integer_of(client, "p50_ns"), p50),
	       time_text((uint64_t)integer_of(client, "p99_ns"), p99), seen);
}

static void show_clients(const json_t *r)
{
	const json_t *client;
	size_t i;

	printf("%-26s %5s %-12s %10s %8s %8s %8s %8s %8s %8s\n", "client",
	       "conns", "over", "calls", "failed", "read", "written", "p50",
	       "p99", "seen ago");
	json_array_foreach(r, i, client) {
		show_client(client);
		show_paths(client);
		show_held(client, "  ");
	}
}

/* One client, with each connection. */
static void show_one(const json_t *r)
{
	const json_t *client = json_array_get(r, 0), *conn;
	size_t i;

	show_clients(r);
	printf("  first seen %lld s ago\n",
	       integer_of(client, "first_seen_s"));
	json_array_foreach(json_object_get(client, "transports"), i, conn) {
		printf("  port %lld: %s", integer_of(conn, "port"),
		       text_of(conn, "transport"));
		if (json_object_get(conn, "provider"))
			printf(" (%s)", text_of(conn, "provider"));
		if (integer_of(conn, "credits"))
			printf(", %lld credits, Sends of %lld bytes to it, of "
			       "%lld from it", integer_of(conn, "credits"),
			       integer_of(conn, "inline_to_client"),
			       integer_of(conn, "inline_from_client"));
		printf("\n");
	}
}

static int wrong_usage(const char *text)
{
	complain("%s: see gannetctl --help", text);
	return USAGE;
}

/* Options that can stand behind these commands. */
static const struct option who_options[] = {
	{ "by", required_argument, NULL, 'b' },
	{ "json", no_argument, NULL, 'j' },
	{ "socket", required_argument, NULL, 's' },
	{ NULL, 0, NULL, 0 },
};

/* Reads them into @c, and --by into @by if that is not NULL.  False: they are
 * wrong. */
static bool read_who_options(struct ctl *c, const char **by, int argc,
			     char **argv)
{
	int o;

	optind = 0;
	while ((o = getopt_long(argc, argv, "j", who_options, NULL)) != -1) {
		if (o == 'j')
			c->json = true;
		else if (o == 's')
			c->path = optarg;
		else if (o != 'b' || !by || !(*by = who_by(optarg)))
			return false;
	}
	return true;
}

int run_clients(const struct ctl *c, int argc, char **argv)
{
	struct ctl mine = *c;
	const char *address;

	if (!read_who_options(&mine, NULL, argc, argv) || argc - optind > 1)
		return wrong_usage("clients: expected an address, or nothing");
	address = argv[optind];
	return ctl_print(&mine, ctl_ask(&mine, "clients", address, NULL,
					CTL_PATIENCE),
			 address ? show_one : show_clients);
}

/* ---- latency */

static void show_latency(const json_t *r)
{
	char p50[SHORT_TEXT], p99[SHORT_TEXT], p999[SHORT_TEXT],
	     mean[SHORT_TEXT];
	const json_t *row;
	size_t i;

	printf("%-32s %12s %10s %8s %8s %8s %8s\n", text_of(r, "by"), "calls",
	       "failed", "mean", "p50", "p99", "p99.9");
	json_array_foreach(json_object_get(r, "rows"), i, row) {
		long long calls = integer_of(row, "calls");

		printf("%-32s %12lld %10lld %8s %8s %8s %8s\n",
		       row_name(row, "name"), calls, integer_of(row, "failed"),
		       time_text((uint64_t)(integer_of(row, "ns") /
					    (calls ? calls : 1)), mean),
		       time_text((uint64_t)integer_of(row, "p50_ns"), p50),
		       time_text((uint64_t)integer_of(row, "p99_ns"), p99),
		       time_text((uint64_t)integer_of(row, "p999_ns"), p999));
	}
}

int run_latency(const struct ctl *c, int argc, char **argv)
{
	const char *by = "procedure";
	struct ctl mine = *c;

	if (!read_who_options(&mine, &by, argc, argv) || argc > optind)
		return wrong_usage("latency: expected --by client, export or "
				   "procedure, or nothing");
	return ctl_print(&mine, ctl_ask(&mine, "latency", by, NULL,
					CTL_PATIENCE), show_latency);
}

/* ---- disconnect */

void show_disconnect(const json_t *r)
{
	printf("%lld connections of %s end\n", integer_of(r, "connections"),
	       text_of(r, "address"));
}
