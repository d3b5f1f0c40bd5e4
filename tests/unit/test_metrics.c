/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics as text. */
#include "daemon/watch/metrics.h"
#include "daemon/watch/metrics_clients.h"
#include "daemon/watch/metrics_text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/runner.h"

static char *text;
static size_t len;
static struct metrics_out m;

static void begin(void)
{
	m = (struct metrics_out){ .f = open_memstream(&text, &len),
				  .open = true };
}

static void finish(void)
{
	free(text);
}

TEST_CASE(.setup = begin, .teardown = finish);

static void wrote(const char *expected)
{
	fclose(m.f);
	ck_assert_str_eq(text, expected);
}

TEST(openmetrics_names_a_counter_without_its_suffix)
{
	metrics_family(&m, "a_bytes", METRICS_COUNTER, "bytes", "Some.");
	metrics_sample(&m, METRICS_NO_LABELS, 5);
	metrics_end(&m);
	wrote("# TYPE a_bytes counter\n# UNIT a_bytes bytes\n"
	      "# HELP a_bytes Some.\na_bytes_total 5\n# EOF\n");
}

TEST(the_older_format_names_it_with_the_suffix)
{
	m.open = false;
	metrics_family(&m, "a_bytes", METRICS_COUNTER, "bytes", "Some.");
	metrics_sample(&m, METRICS_NO_LABELS, UINT64_MAX);
	metrics_end(&m);
	wrote("# TYPE a_bytes_total counter\n# HELP a_bytes_total Some.\n"
	      "a_bytes_total 18446744073709551615\n");
}

TEST(the_older_format_has_no_infos)
{
	m.open = false;
	metrics_family(&m, "a", METRICS_INFO, NULL, "Some.");
	metrics_sample(&m, METRICS_LABELS({ "version", "1" }), 1);
	wrote("# TYPE a_info gauge\n# HELP a_info Some.\n"
	      "a_info{version=\"1\"} 1\n");
}

TEST(values_of_labels_are_escaped)
{
	metrics_family(&m, "a", METRICS_GAUGE, NULL, "A \"b\"\\\n.");
	metrics_sample(&m, METRICS_LABELS({ "p", "/\"} 1\n#\\" },
		{ "q", "" }), 0);
	wrote("# TYPE a gauge\n# HELP a A \\\"b\\\"\\\\\\n.\n"
	      "a{p=\"/\\\"} 1\\n#\\\\\",q=\"\"} 0\n");
}

TEST(bytes_that_are_no_utf_8_are_octal)
{
	metrics_family(&m, "a", METRICS_GAUGE, NULL, "A.");
	metrics_sample(&m, METRICS_LABELS({ "p",
		"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\xa6 "	/* valid */
		"\xff \xc3 \xc0\xaf \xed\xa0\x80 \xf5 \xe2\x82" }), 0);
	wrote("# TYPE a gauge\n# HELP a A.\n"
	      "a{p=\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\xa6 "
	      "\\\\377 \\\\303 \\\\300\\\\257 \\\\355\\\\240\\\\200 \\\\365 "
	      "\\\\342\\\\202\"} 0\n");
}

TEST(a_histogram_is_cumulative_and_in_seconds)
{
	static const uint64_t bounds[] = { 50000, 1000000, 1000000000 };
	static const uint64_t counts[] = { 2, 0, 3, 1 };
	const struct metrics_times t = { bounds, counts, 3, 7000000050 };

	metrics_family(&m, "a_seconds", METRICS_HISTOGRAM, "seconds", "A.");
	metrics_histogram(&m, METRICS_LABELS({ "p", "x" }), &t);
	wrote("# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n"
	      "# HELP a_seconds A.\n"
	      "a_seconds_bucket{p=\"x\",le=\"0.00005\"} 2\n"
	      "a_seconds_bucket{p=\"x\",le=\"0.001\"} 2\n"
	      "a_seconds_bucket{p=\"x\",le=\"1.0\"} 5\n"
	      "a_seconds_bucket{p=\"x\",le=\"+Inf\"} 6\n"
	      "a_seconds_count{p=\"x\"} 6\n"
	      "a_seconds_sum{p=\"x\"} 7.00000005\n");
}

TEST(a_histogram_without_labels_has_its_bounds)
{
	static const uint64_t bounds[] = { 1000000 };
	static const uint64_t counts[] = { 0, 0 };
	const struct metrics_times t = { bounds, counts, 1, 0 };

	m.open = false;
	metrics_family(&m, "a_seconds", METRICS_HISTOGRAM, "seconds", "A.");
	metrics_histogram(&m, METRICS_NO_LABELS, &t);
	wrote("# TYPE a_seconds histogram\n# HELP a_seconds A.\n"
	      "a_seconds_bucket{le=\"0.001\"} 0\n"
	      "a_seconds_bucket{le=\"+Inf\"} 0\n"
	      "a_seconds_count 0\na_seconds_sum 0.0\n");
}

TEST(openmetrics_is_for_those_who_ask_for_it)
{
	static const char *const yes[] = {
		"application/openmetrics-text",
		("application/openmetrics-text;version=1.0.0;q=0.5,"
		 "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"),
		"text/plain, Application/OpenMetrics-Text ; version=0.0.1",
		"application/openmetrics-text;q=0.01",
	};
	static const char *const no[] = {
		"", "text/plain", "*/*", "application/openmetrics-texts",
		"text/html;x=application/openmetrics-text",
		"application/openmetrics-text;q=0",
		"application/openmetrics-text;q=0.000, text/plain",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(yes); i++)
		ck_assert_msg(metrics_wants_open(yes[i]), "%s", yes[i]);
	for (unsigned i = 0; i < ARRAY_SIZE(no); i++)
		ck_assert_msg(!metrics_wants_open(no[i]), "%s", no[i]);
	ck_assert(!metrics_wants_open(NULL));
	fclose(m.f);
}

TEST(a_row_is_for_its_counter_alone_or_for_a_prefix)
{
	static const struct metrics_row one = { "tcp_refused", { "a" } };
	static const struct metrics_row many = { "nfs3err_", { NULL } };

	ck_assert(metrics_row_has(&one, "tcp_refused"));
	ck_assert(!metrics_row_has(&one, "tcp_refused_peer"));
	ck_assert(metrics_row_has(&many, "nfs3err_IO"));
	ck_assert(!metrics_row_has(&many, "nfs3er"));
	ck_assert(metrics_rows_have("rdma_bad_version"));
	ck_assert(!metrics_rows_have("drc_hits"));
	fclose(m.f);
}

/* ---- clients */

static struct metrics_client hosts[4];
static uint64_t others[CLIENT_NUMBERS];
static struct metrics_clients *named;

/* Three clients of which two are named; all are there from time 1 on. */
static void begin_clients(void)
{
	memset(others, 0, sizeof(others));
	memset(hosts, 0, sizeof(hosts));
	for (unsigned i = 0; i < 4; i++) {
		hosts[i].host.s6_addr[15] = (uint8_t)(i + 1);
		hosts[i].first = 1;
		hosts[i].n[CLIENT_CALLS] = 10 * (i + 3);
	}
	named = metrics_clients_create(2);
	metrics_clients_update(named, hosts, 3, others);
}

static void finish_clients(void)
{
	metrics_clients_destroy(named);
}

TEST_CASE(.setup = begin_clients, .teardown = finish_clients);

/* The calls that are told of @hosts[@i]; -1: it has no name. */
static int64_t told(unsigned i)
{
	const struct metrics_client *c;

	for (unsigned k = 0; (c = metrics_clients_named(named, k)); k++)
		if (!memcmp(&c->host, &hosts[i].host, sizeof(c->host)))
			return (int64_t)c->n[CLIENT_CALLS];
	return -1;
}

static int64_t rest(void)
{
	return (int64_t)metrics_clients_rest(named)[CLIENT_CALLS];
}

TEST(clients_without_a_name_are_summed)
{
	ck_assert_int_eq(told(0), 30);
	ck_assert_int_eq(told(1), 40);
	ck_assert_int_eq(told(2), -1);
	ck_assert_int_eq(rest(), 50);
	others[CLIENT_CALLS] = 5;
	metrics_clients_update(named, hosts, 3, others);
	ck_assert_int_eq(rest(), 55);
}

TEST(a_busier_client_gets_a_name_for_what_is_new)
{
	hosts[2].n[CLIENT_CALLS] = 62;
	metrics_clients_update(named, hosts, 3, others);
	/* More than twice 30.  Its earlier share stays with the rest. */
	ck_assert_int_eq(told(0), -1);
	ck_assert_int_eq(told(2), 0);
	ck_assert_int_eq(rest(), 62);
	hosts[0].n[CLIENT_CALLS] = 32;
	hosts[2].n[CLIENT_CALLS] = 70;
	metrics_clients_update(named, hosts, 3, others);
	ck_assert_int_eq(told(2), 8);
	ck_assert_int_eq(rest(), 64);
}

TEST(a_client_that_goes_leaves_its_name_to_another)
{
	metrics_clients_update(named, hosts + 1, 2, others);
	ck_assert_int_eq(told(0), -1);
	ck_assert_int_eq(told(1), 40);
	ck_assert_int_eq(told(2), 0);
	ck_assert_int_eq(rest(), 50);
}

TEST(the_rest_grows_on_when_busier_clients_went)
{
	/* Both with a name and the one without go, others call on. */
	metrics_clients_update(named, hosts, 0, others);
	ck_assert_int_eq(rest(), 50);
	others[CLIENT_CALLS] = 7;
	metrics_clients_update(named, hosts, 0, others);
	ck_assert_int_eq(rest(), 57);
}

TEST(a_client_that_comes_again_counts_on)
{
	hosts[0].first = 3;
	hosts[0].n[CLIENT_CALLS] = 2;
	hosts[2].first = 3;
	hosts[2].n[CLIENT_CALLS] = 4;
	metrics_clients_update(named, hosts, 3, others);
	ck_assert_int_eq(told(0), 30 + 2);
	ck_assert_int_eq(rest(), 50 + 4);
}

TEST(a_new_client_has_all_its_calls)
{
	metrics_clients_update(named, hosts + 1, 1, others);
	hosts[3].first = 4;
	metrics_clients_update(named, (struct metrics_client[]){ hosts[1],
			       hosts[3] }, 2, others);
	ck_assert_int_eq(told(3), 60);
}

TEST(the_busiest_are_named_at_first)
{
	finish_clients();
	named = metrics_clients_create(1);
	hosts[2].n[CLIENT_CALLS] = 300;
	metrics_clients_update(named, hosts, 4, others);
	ck_assert_int_eq(told(2), 300);
	ck_assert_int_eq(rest(), 30 + 40 + 60);
}

TEST(each_call_of_clients_is_told_once_and_none_is_taken_back)
{
	int64_t all = 30 + 40 + 50, gone = 0, before[5], sum;
	unsigned seed = 7;

	hosts[3].n[CLIENT_CALLS] = 0;
	for (unsigned i = 0; i < 2000; i++) {
		unsigned who = (unsigned)rand_r(&seed) % 4;
		unsigned calls = (unsigned)rand_r(&seed) % 100;

		for (unsigned k = 0; k < 4; k++)
			before[k] = told(k);
		before[4] = rest();
		if (rand_r(&seed) % 8 == 0) {	/* goes, and comes again */
			hosts[who].n[CLIENT_CALLS] = 0;
			hosts[who].first = 3 + 2 * i;
		}
		hosts[who].n[CLIENT_CALLS] += calls;
		others[CLIENT_CALLS] += calls / 2;
		all += calls + calls / 2;
		metrics_clients_update(named, hosts, 4, others);
		sum = rest();
		ck_assert_int_ge(sum, before[4]);
		for (unsigned k = 0; k < 4; k++) {
			sum += MAX(told(k), 0);
			if (told(k) >= 0)
				ck_assert_int_ge(told(k), before[k]);
			else if (before[k] >= 0)
				gone += before[k];
		}
		ck_assert_int_eq(sum + gone, all);
	}
}
