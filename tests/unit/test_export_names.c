/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients by name: precedence, the resolver, remembered answers. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>

#include "exports/export_priv.h"
#include "lib/util.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/runner.h"

static void resolve(const char *addr)
{
	struct sockaddr_storage ss = peer(addr, 1000);

	export_resolve(table, (struct sockaddr *)&ss);
}

/* As a caller does: asks, has a worker resolve, asks again. */
static int ask_twice(const char *path, const char *addr)
{
	struct export_opts opts;
	int err = ask(path, addr, &opts);

	if (err != -EAGAIN)
		return err;
	resolve(addr);
	return ask(path, addr, &opts);
}

TEST_CASE(.setup = table_begin, .teardown = table_end);

TEST(hosts_go_before_networks_wildcards_netgroups_and_everyone)
{
	struct export_opts opts;

	publish("/a *(anonuid=5) @trusted(anonuid=4) *.example(anonuid=3) "
		"192.0.2.0/29(anonuid=2) h1(anonuid=1) 192.0.2.0/24(anonuid=9)"
		" 192.0.2.7(anonuid=7)\n"
		"/b *(anonuid=5) @trusted(anonuid=4) h9.*(anonuid=3)\n");
	resolve("192.0.2.1");
	resolve("192.0.2.7");
	resolve("192.0.2.8");
	resolve("192.0.2.9");
	resolve("198.51.100.1");
	ck_assert_int_eq(ask("/a", "192.0.2.1", &opts), 0);
	ck_assert_uint_eq(opts.anonuid, 1);
	ck_assert_int_eq(ask("/a", "192.0.2.7", &opts), 0);
	ck_assert_uint_eq(opts.anonuid, 7);
	/* Of one kind, the first as written. */
	ck_assert_int_eq(ask("/a", "192.0.2.2", &opts), -EAGAIN);
	resolve("192.0.2.2");
	ck_assert_int_eq(ask("/a", "192.0.2.2", &opts), 0);
	ck_assert_uint_eq(opts.anonuid, 2);
	ck_assert_int_eq(ask("/a", "198.51.100.1", &opts), 0);
	ck_assert_uint_eq(opts.anonuid, 5);
	ck_assert_int_eq(ask("/b", "192.0.2.7", &opts), 0);
	ck_assert_uint_eq(opts.anonuid, 4);
	ck_assert_int_eq(ask("/b", "192.0.2.9", &opts), 0);
	ck_assert_uint_eq(opts.anonuid, 3);
	ck_assert_int_eq(ask("/b", "192.0.2.1", &opts), 0);
	ck_assert_uint_eq(opts.anonuid, 5);
}

TEST(names_are_asked_once_and_remembered)
{
	struct export_opts opts;
	unsigned before;

	publish("/a h1.example *.else @trusted\n/b 192.0.2.0/24\n");
	ck_assert_int_eq(ask_twice("/b", "192.0.2.1"), 0);
	ck_assert_uint_eq(dns_asked, 0);
	ck_assert_int_eq(ask_twice("/a", "192.0.2.1"), 0);
	before = dns_asked;
	ck_assert_uint_gt(before, 0);
	ck_assert_int_eq(ask_twice("/a", "192.0.2.1"), 0);
	resolve("192.0.2.1");
	ck_assert_uint_eq(dns_asked, before);
	/* A "no" is remembered too. */
	ck_assert_int_eq(ask_twice("/a", "192.0.2.2"), -EACCES);
	before = dns_asked;
	ck_assert_int_eq(ask_twice("/a", "192.0.2.2"), -EACCES);
	ck_assert_uint_eq(dns_asked, before);
	/* By the short name, and by the address. */
	ck_assert_int_eq(ask_twice("/a", "192.0.2.7"), 0);
	ck_assert_int_eq(ask_twice("/a", "192.0.2.8"), 0);
	/* A table with the same names knows the same, whatever else it says. */
	publish("/other *\n/a h1.example *.else(rw) @trusted\n/c *\n");
	before = dns_asked;
	ck_assert_int_eq(ask("/a", "192.0.2.1", &opts), 0);
	ck_assert_int_eq(ask("/a", "192.0.2.2", &opts), -EACCES);
	ck_assert_uint_eq(dns_asked, before);
	/* One with others is another question. */
	publish("/a h2.example\n");
	ck_assert_int_eq(ask_twice("/a", "192.0.2.1"), -EACCES);
	ck_assert_int_eq(ask_twice("/a", "192.0.2.2"), 0);
}

TEST(a_name_that_does_not_lead_back_is_not_believed)
{
	publish("/a *.example @trusted\n");
	dns_forged = true;
	ck_assert_int_eq(ask_twice("/a", "192.0.2.1"), -EACCES);
	ck_assert_int_eq(ask_twice("/a", "192.0.2.7"), -EACCES);
	/* An address in a netgroup needs no name. */
	ck_assert_int_eq(ask_twice("/a", "192.0.2.8"), 0);
}

/* The owner of a zone for addresses and one for names can give its host any
 * name, and both lead to each other. */
TEST(a_name_of_another_domain_is_not_that_of_a_client)
{
	static const char *const names[] = {
		"h7.attacker.net", "h7.example.attacker.net",
		"h7.example.", "192.0.2.7", "@trusted",
		"h7.xexample", "example", ".example.net",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		/* Publish another table, to forget all answers. */
		publish(i % 2 ? "/a *.example h7 @trusted\n" :
			"/a h7 @trusted *.example\n/b h9\n");
		dns_alias = names[i];
		ck_assert_msg(ask_twice("/a", "192.0.2.66") == -EACCES, "%s",
			      names[i]);
		dns_alias = NULL;
		ck_assert_int_eq(ask_twice("/a", "192.0.2.7"), 0);
	}
}

TEST(unresolvable_names_are_no_clients)
{
	publish("/a *.example h3\n");
	dns_error = EAI_AGAIN;
	ck_assert_int_eq(ask_twice("/a", "192.0.2.3"), -EACCES);
	dns_error = 0;
	publish("/a *.example h4\n");
	ck_assert_int_eq(ask_twice("/a", "192.0.2.3"), 0);
}

TEST(a_client_stays_one_while_names_are_unresolvable)
{
	publish("/a *.example\n/b h3\n");
	table->resolver.keep_s = -1;
	resolve("192.0.2.3");
	/* Known, but too old to go by. */
	ck_assert_int_eq(ask_twice("/a", "192.0.2.3"), -EAGAIN);
	table->resolver.keep_s = 60;
	dns_error = EAI_AGAIN;
	ck_assert_int_eq(ask_twice("/a", "192.0.2.3"), 0);
	ck_assert_int_eq(ask_twice("/b", "192.0.2.3"), 0);
	ck_assert_int_eq(ask_twice("/b", "192.0.2.4"), -EACCES);
}

/* Known from now on, but each time too old to go by. */
static void resolve_old(const char *addr)
{
	table->resolver.keep_s = -1;
	resolve(addr);
	table->resolver.keep_s = 60;
}

TEST(a_known_client_waits_for_few_unresolvable_names)
{
	unsigned before;

	publish("/a h1 h2 h3 h4 h5 h6 h7 h8 h9 *.example @trusted\n");
	resolve_old("192.0.2.9");
	dns_error = EAI_AGAIN;
	before = dns_asked;
	ck_assert_int_eq(ask_twice("/a", "192.0.2.9"), 0);
	ck_assert_uint_le(dns_asked - before, 3);
	/* A new peer is told after all were asked. */
	before = dns_asked;
	ck_assert_int_eq(ask_twice("/a", "192.0.2.6"), -EACCES);
	ck_assert_uint_ge(dns_asked - before, 9);
	dns_error = 0;
}

TEST(unresolvable_names_shut_out_no_others)
{
	publish("/a dead1 dead2 dead3 dead4 h3 dead5 dead6 dead7 h4\n"
		"/b h3\n");
	ck_assert_int_eq(ask_twice("/a", "192.0.2.4"), 0);
	/* Nor one that is known not to be a client, and becomes one. */
	dns_forged = true;
	resolve_old("192.0.2.3");
	dns_forged = false;
	for (unsigned i = 0; i < 3; i++)
		resolve_old("192.0.2.3");
	ck_assert_int_eq(ask_twice("/a", "192.0.2.3"), 0);
	/* And the other way round. */
	publish("/a dead1 dead2 dead3 dead4 h3\n");
	resolve_old("192.0.2.3");
	dns_forged = true;
	for (unsigned i = 0; i < 3; i++)
		resolve_old("192.0.2.3");
	ck_assert_int_eq(ask_twice("/a", "192.0.2.3"), -EACCES);
	dns_forged = false;
}

static int meanwhile;

static void ask_meanwhile(void)
{
	struct export_opts opts;

	meanwhile = ask("/a", "192.0.2.3", &opts);
}

TEST(while_one_caller_asks_the_others_use_the_old_answer)
{
	publish("/a h3\n");
	dns_meanwhile = ask_meanwhile;
	resolve_old("192.0.2.3");
	ck_assert_int_eq(meanwhile, -EAGAIN);
	dns_forged = true;
	ck_assert_int_eq(ask_twice("/a", "192.0.2.3"), -EACCES);
	ck_assert_int_eq(meanwhile, 0);
	dns_forged = false;
	dns_meanwhile = NULL;
}

TEST(more_peers_than_are_kept_are_still_served)
{
	char addr[32];

	publish("/a h1 *.example @trusted\n");
	for (unsigned i = 0; i < 10000; i++) {
		snprintf(addr, sizeof(addr), "192.%u.%u.1", i >> 8, i & 255);
		ck_assert_int_eq(ask_twice("/a", addr), 0);
		ck_assert_uint_le(memo_count(table->peers), PEERS_MAX);
	}
	ck_assert_int_eq(ask_twice("/a", "192.0.0.1"), 0);
}

/* Verdicts on names that have left the table. */
TEST(after_a_change_of_names_old_answers_take_no_places)
{
	char addr[32];

	publish("/a h1 *.example @trusted\n");
	for (unsigned i = 0; i < 100; i++) {
		snprintf(addr, sizeof(addr), "192.0.2.%u", i);
		resolve(addr);
	}
	publish("/a h1 *.example @trusted\n/b h1\n");
	ck_assert_uint_eq(memo_count(table->peers), 0);
	ck_assert_int_eq(ask_twice("/b", "192.0.2.1"), 0);
	ck_assert_uint_eq(memo_count(table->peers), 1);
	publish("/a h1 *.example @trusted\n/b h1(ro)\n");
	ck_assert_uint_eq(memo_count(table->peers), 1);
}

/* Any number of addresses of one network, and of one site. */
TEST_LOOP(addresses_of_one_customer_leave_answers_of_others, 0, 2)
{
	static const char *const form[] = { "2001:db8::%x",
					    "2001:db8:0:%x::1" };
	struct export_opts opts;
	char addr[32];

	table->resolver.keep_s = 3600;
	publish("/a h1 *.example @trusted\n");
	ck_assert_int_eq(ask_twice("/a", "192.0.2.1"), 0);
	for (unsigned i = 1; i < 2 * PEERS_MAX; i++) {
		snprintf(addr, sizeof(addr), form[_i], i);
		resolve(addr);
		ck_assert_uint_le(memo_count(table->peers), PEERS_MAX);
		ck_assert_int_eq(ask("/a", "192.0.2.1", &opts), 0);
	}
	ck_assert_int_ne(ask("/a", addr, &opts), -EAGAIN);
}

TEST(the_system_knows_itself)
{
	struct addr here = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } };
	struct addr there = { .family = AF_INET, .bytes = { 192, 0, 2, 1 } };
	char name[NI_MAXHOST];

	if (resolver_system.has_addr("localhost", &here) != 1)
		return;		/* it has no list of hosts at all */
	ck_assert_int_eq(resolver_system.has_addr("localhost", &there), 0);
	ck_assert_int_eq(resolver_system.has_addr("127.0.0.1", &here), 1);
	ck_assert_int_eq(resolver_system.name(&here, name, sizeof(name)), 0);
	ck_assert_int_eq(resolver_system.has_addr(name, &here), 1);
	ck_assert(!resolver_system.in_netgroup("no-such-group", "localhost"));
}
