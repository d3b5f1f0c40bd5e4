/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of hosts with locks: its text, its bounds, its file. */
#include "nsm/hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "nsm/file.h"
#include "tests/unit/runner.h"

static struct nsm_hosts hosts;
static struct nsm_head head;

static const char all[] =
	"state 901\nboot 0f-1\nhost 192.0.2.11 c1\n"
	"host 192.0.2.11 c1 192.0.2.1\nhost 192.0.2.11 c1 192.0.2.2\n"
	"tell 2001:db8::1 c2.example\ntell 2001:db8::1 c2.example 2001:db8::2\n"
	"host fe80::1%lo c3 fe80::2%lo\n"
	"user 192.0.2.9 192.0.2.9 4 16 000102030405060708090a0b0c0d0eff\n";

static void setup(void)
{
	nsm_hosts_init(&hosts, 8, 3);
}

static void teardown(void)
{
	nsm_hosts_fini(&hosts);
}

static unsigned parse(const char *text, size_t len)
{
	char *copy = strndup(text, len);
	unsigned bad;

	nsm_hosts_fini(&hosts);
	bad = nsm_hosts_parse(&hosts, copy, &head);
	free(copy);
	return bad;
}

static char *print(void)
{
	static char text[1024];
	FILE *f = fmemopen(text, sizeof(text), "w");

	nsm_hosts_print(&hosts, &head, f);
	fclose(f);
	return text;
}

static int add(const char *name, const char *addr, struct nsm_host **out)
{
	struct sockaddr_storage ss;

	ck_assert(nsm_addr_parse(addr, &ss));
	return nsm_hosts_add(&hosts, &(struct rpc_host){
		name, (struct sockaddr *)&ss, NULL }, out);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(the_text_is_read_as_it_was_written)
{
	ck_assert_uint_eq(parse(all, strlen(all)), 0);
	ck_assert_uint_eq(head.state, 901);
	ck_assert_uint_eq(hosts.all.count, 7);
	ck_assert_str_eq(print(), all);
}

/* Its monitor was told of its end: after a restart nothing is kept for that. */
TEST(a_host_that_is_only_to_be_told_is_no_user)
{
	static const char user[] = "state 901\nboot 0f-1\nuser 192.0.2.9 c1 "
		"4 16 000102030405060708090a0b0c0d0eff\n";
	struct nsm_host *host;

	ck_assert_uint_eq(parse(user, strlen(user)), 0);
	host = cds_list_first_entry(&hosts.list, struct nsm_host, link);
	host->monitored = false;
	host->untold = true;
	ck_assert_str_eq(print(),
			 "state 901\nboot 0f-1\ntell 192.0.2.9 c1\n");
}

TEST(a_host_that_may_claim_its_locks_stays_on_the_list)
{
	struct nsm_host *host;

	ck_assert_int_eq(add("c1", "192.0.2.1", &host), 0);
	host->claims = true;
	nsm_hosts_tidy(&hosts, host);
	ck_assert_ptr_nonnull(strstr(print(), "tell 192.0.2.1 c1\n"));
	host->claims = false;
	nsm_hosts_tidy(&hosts, host);
	ck_assert_uint_eq(hosts.all.count, 0);
}

TEST(a_network_of_ipv6_has_three_quarters_of_the_list)
{
	struct nsm_host *host, *other;
	char addr[32];

	for (unsigned i = 1; i <= 6; i++) {
		snprintf(addr, sizeof(addr), "2001:db8::%x:1", i);
		ck_assert_int_eq(add("c1", addr, &host), 0);
		host->monitored = true;
	}
	ck_assert_int_eq(add("c1", "2001:db8::7:1", &host), -EDQUOT);
	ck_assert_int_eq(add("c1", "2001:db8:0:1::1", &other), 0);
	ck_assert_int_eq(add("c1", "192.0.2.1", &other), 0);
	/* An address that no host has now, which could not be notified. */
	host->monitored = false;
	host->untold = true;
	nsm_hosts_tidy(&hosts, host);
	ck_assert_int_eq(add("c1", "2001:db8::7:1", &other), 0);
	ck_assert_uint_eq(hosts.all.count, 8);
}

TEST(a_site_of_ipv6_has_seven_eighths_of_the_list)
{
	struct nsm_host *host;
	char addr[32];

	for (unsigned i = 1; i <= 7; i++) {
		snprintf(addr, sizeof(addr), "2001:db8:0:%x::1", i);
		ck_assert_int_eq(add("c1", addr, &host), 0);
		host->monitored = true;
	}
	ck_assert_int_eq(add("c1", "2001:db8:0:8::1", &host), -EDQUOT);
	ck_assert_int_eq(add("c1", "2001:db8:1::1", &host), 0);
	host->monitored = true;
	ck_assert_int_eq(add("c1", "192.0.2.1", &host), -ENOSPC);
}

TEST(a_list_that_had_no_bounds_for_networks_is_read_whole)
{
	static const char list[] =
		"state 3\nboot 0f-1\n"
		"host 2001:db8::1 c1\nhost 2001:db8::2 c2\n"
		"host 2001:db8::3 c3\nhost 2001:db8::4 c4\n"
		"tell 2001:db8::5 c5\nhost 2001:db8::6 c6\n"
		"host 2001:db8::7 c7\nhost 2001:db8::8 c8\n";
	struct nsm_host *host;

	ck_assert_uint_eq(parse(list, strlen(list)), 0);
	ck_assert_str_eq(print(), list);
	hosts.max = 16;
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(add("c9", (const char *[]){
			"2001:db8::9", "2001:db8::a", "2001:db8::b",
			"2001:db8::c" }[i], &host), 0);
	cds_list_for_each_entry(host, &hosts.list, link)
		host->monitored = true;
	/* Hosts that come later have them. */
	ck_assert_int_eq(add("c9", "2001:db8::d", &host), -EDQUOT);
	ck_assert_int_eq(add("c9", "192.0.2.1", &host), 0);
}

/* Nor does a host that could not be told make room for others of the list. */
TEST(a_list_of_larger_bounds_is_read_whole)
{
	static const char lists[][512] = {
		"state 3\nboot 0f-1\n"
		"host 192.0.2.1 c1\nhost 192.0.2.1 c2\nhost 192.0.2.1 c3\n"
		"tell 192.0.2.1 c4\nhost 192.0.2.1 c5\n",
		"state 3\nboot 0f-1\n"
		"tell 192.0.2.1 c1\nhost 192.0.2.2 c1\nhost 192.0.2.3 c1\n"
		"host 192.0.2.4 c1\nhost 192.0.2.5 c1\nhost 192.0.2.6 c1\n"
		"host 192.0.2.7 c1\nhost 192.0.2.8 c1\nhost 192.0.2.9 c1\n"
		"host 192.0.2.10 c1\n",
	};
	struct nsm_host *host;

	for (unsigned i = 0; i < ARRAY_SIZE(lists); i++) {
		ck_assert_uint_eq(parse(lists[i], strlen(lists[i])), 0);
		ck_assert_str_eq(print(), lists[i]);
	}
	/* The bounds hold for hosts that come later, and these can still take
	 * the places of hosts that could not be told. */
	ck_assert_int_eq(add("c2", "192.0.2.11", &host), 0);
	host->monitored = true;
	ck_assert_int_eq(add("c3", "192.0.2.11", &host), -ENOSPC);
}

TEST(text_that_was_cut_off_keeps_its_whole_lines)
{
	unsigned lines, n;

	for (size_t len = 0; len < strlen(all); len++) {
		n = parse(all, len);
		lines = 0;
		for (size_t i = 0; i < len; i++)
			lines += all[i] == '\n';
		ck_assert_uint_eq(n, len && all[len - 1] != '\n');
		ck_assert_uint_eq(hosts.all.count, lines > 2 ? lines - 2 : 0);
	}
}

TEST(malformed_lines_are_left_out)
{
	static const char text[] =
		"state 4294967296\nstate -1\nhost 192.0.2.1\nhost c1 c1\n\n"
		"host 192.0.2.1 ../x\nhost 192.0.2.1 a b\nnone 192.0.2.1 a\n"
		"user 192.0.2.1 a 1 2 0001\nuser 192.0.2.1 a x 2 "
		"00000000000000000000000000000000\n"
		"host 192.0.2.1 c1\nhost 192.0.2.1 c1\n";

	ck_assert_uint_eq(parse(text, strlen(text)), 11);
	ck_assert_uint_eq(hosts.all.count, 1);
	ck_assert_uint_eq(head.state, 0);
}

TEST(names_that_no_host_has_are_refused)
{
	static const char *const names[] = { "", "../x", "a b", "a\nb", "a/b",
					     "\xc3\xa9", "a\177" };
	char longest[NSM_NAME_MAX + 2];
	struct nsm_host *host;

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		ck_assert_int_eq(add(names[i], "192.0.2.1", &host), -EINVAL);
	memset(longest, 'x', sizeof(longest));
	longest[NSM_NAME_MAX + 1] = '\0';
	ck_assert_int_eq(add(longest, "192.0.2.1", &host), -EINVAL);
	longest[NSM_NAME_MAX] = '\0';
	ck_assert_int_eq(add(longest, "192.0.2.1", &host), 0);
}

TEST(hosts_are_bounded_for_an_address_and_in_all)
{
	char addr[32];
	struct nsm_host *host, *first = NULL;

	for (int i = 0; i < 8; i++) {
		snprintf(addr, sizeof(addr), "192.0.2.%d", i / 2);
		ck_assert_int_eq(add(i % 2 ? "a" : "b", addr, &host), 0);
		first = first ? first : host;
		host->monitored = true;
	}
	ck_assert_int_eq(add("c", "192.0.2.9", &host), -ENOSPC);
	/* A host that could not be told of our start makes room. */
	first->monitored = false;
	first->untold = true;
	nsm_hosts_tidy(&hosts, first);
	ck_assert_int_eq(add("c", "192.0.2.1", &host), 0);
	host->monitored = true;
	ck_assert_int_eq(add("d", "192.0.2.1", &host), -EDQUOT);
	/* The same where too many hosts share the address. */
	host->monitored = false;
	host->untold = true;
	ck_assert_int_eq(add("d", "192.0.2.1", &host), 0);
	ck_assert_ptr_null(nsm_hosts_find(&hosts, &(struct rpc_host){
		"c", nsm_addr(host), NULL }, false));
}

TEST(the_host_that_waited_longest_is_told_first)
{
	struct nsm_host *host[3];
	const char *addr[] = { "192.0.2.1", "192.0.2.2", "192.0.2.3" };

	ck_assert_ptr_null(nsm_hosts_due(&hosts));
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(add("h", addr[i], &host[i]), 0);
		host[i]->untold = true;
		host[i]->until = 100;
		nsm_hosts_tell_at(&hosts, host[i], 0, NSM_AT_ONCE);
	}
	ck_assert_ptr_eq(nsm_hosts_due(&hosts), host[0]);
	/* It did not answer: the others come before its next attempt. */
	nsm_hosts_tell_at(&hosts, host[0], 7, 1);
	ck_assert_ptr_eq(nsm_hosts_due(&hosts), host[1]);
	nsm_hosts_tell_at(&hosts, host[1], 9, 0);
	host[2]->telling = true;
	ck_assert_ptr_eq(nsm_hosts_due(&hosts), host[0]);
	nsm_hosts_tell_at(&hosts, host[0], 101, 2);
	ck_assert_ptr_eq(nsm_hosts_due(&hosts), host[1]);
	host[1]->untold = false;
	ck_assert_ptr_null(nsm_hosts_due(&hosts));
}

TEST(the_file_is_replaced_as_a_whole)
{
	char dir[] = "/tmp/gannet-nsm-XXXXXX", name[64], *text;
	struct stat st;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(nsm_file_read(dir, &text), 0);
	ck_assert_str_eq(text, "");
	free(text);
	ck_assert_int_eq(nsm_file_replace(dir, all, strlen(all)), 0);
	ck_assert_int_eq(nsm_file_replace(dir, "short\n", 6), 0);
	ck_assert_int_eq(nsm_file_read(dir, &text), 0);
	ck_assert_str_eq(text, "short\n");
	free(text);
	snprintf(name, sizeof(name), "%s/nsm", dir);
	ck_assert_int_eq(stat(name, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	unlink(name);
	rmdir(dir);
	ck_assert_int_eq(nsm_file_replace(dir, all, 5), -ENOENT);
	ck_assert_int_eq(nsm_file_read(dir, &text), -ENOENT);
}

/* The list has these names, "a b", with one address. */
static const char *meant(const char *names, const char *told)
{
	char text[64], *next = text, *name;
	struct nsm_host *host;
	struct sockaddr_storage ss;
	const char *found;

	nsm_hosts_fini(&hosts);
	strcpy(text, names);
	while ((name = strsep(&next, " ")))
		ck_assert_int_eq(add(name, "192.0.2.1", &host), 0);
	ck_assert_int_eq(add("other", "192.0.2.2", &host), 0);
	ck_assert(nsm_addr_parse("192.0.2.1", &ss));
	found = nsm_hosts_meant(&hosts, told, (struct sockaddr *)&ss);
	return found ? found : "";
}

TEST(a_notice_means_the_host_that_it_names)
{
	ck_assert_str_eq(meant("a b", "b"), "b");
	ck_assert_str_eq(meant("a b", "B"), "b");
	ck_assert_str_eq(meant("a b.example", "b"), "b.example");
	ck_assert_str_eq(meant("a b", "b.example"), "b");
	ck_assert_str_eq(meant("b b.example", "b.example"), "b.example");
	ck_assert_str_eq(meant("a.example", "a.elsewhere"), "");
	ck_assert_str_eq(meant("a.example a.elsewhere", "a"), "");
	ck_assert_str_eq(meant("a", "b"), "");
	ck_assert_str_eq(meant("a", "other"), "");
	ck_assert_str_eq(meant("aa", "a"), "");
	ck_assert_str_eq(meant("a", ""), "");
}

TEST(a_notice_that_names_an_address_means_the_only_host_there)
{
	static const char *const names[] = { "192.0.2.1", "::ffff:192.0.2.1",
		"localhost", "localhost.localdomain" };

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		ck_assert_str_eq(meant("a", names[i]), "a");
		ck_assert_str_eq(meant("a b", names[i]), "");
	}
	ck_assert_str_eq(meant("a", "192.0.2.2"), "");
	ck_assert_str_eq(meant("a localhost", "localhost"), "localhost");
}

TEST(states_grow_and_begin_again_after_the_largest)
{
	ck_assert(nsm_state_is_newer(7, 5));
	ck_assert(!nsm_state_is_newer(5, 5));
	ck_assert(!nsm_state_is_newer(3, 5));
	ck_assert(nsm_state_is_newer(1, UINT32_MAX));
	ck_assert(!nsm_state_is_newer(UINT32_MAX, 1));
	ck_assert(nsm_state_is_newer(0, 5));
	ck_assert(nsm_state_is_newer(1, 0));
}

TEST(every_truncation_of_arguments_is_rejected)
{
	static const uint8_t priv[SM_PRIV_SIZE] = { 1, 2, 3 };
	const struct sm_call call = { .name = "c1", .my_name = "server",
				      .prog = 100021, .vers = 4, .proc = 16,
				      .priv = priv, .state = 7 };
	struct sm_args a = { 0 };
	uint8_t wire[256];
	struct xdr_out out;
	struct xdr_in x;

	xdr_out_init(&out, wire, sizeof(wire));
	sm_put_mon(&out, &call);
	for (size_t len = 0; len <= xdr_out_len(&out); len++) {
		xdr_in_init(&x, wire, len);
		ck_assert_int_eq(sm_get_mon(&x, &a), len == xdr_out_len(&out));
	}
	ck_assert_uint_eq(a.name.len, 2);
	ck_assert_uint_eq(a.proc, 16);
	ck_assert_mem_eq(a.priv.data, priv, SM_PRIV_SIZE);
	xdr_out_init(&out, wire, sizeof(wire));
	sm_put_notify(&out, &call);
	for (size_t len = 0; len <= xdr_out_len(&out); len++) {
		xdr_in_init(&x, wire, len);
		ck_assert_int_eq(sm_get_notify(&x, &a),
				 len == xdr_out_len(&out));
	}
	ck_assert_uint_eq(a.state, 7);
}

/* Anybody can send notices. */
TEST(a_notice_is_compared_with_hosts_of_its_address_alone)
{
	struct sockaddr_storage ss;
	struct nsm_host *host;
	char addr[32];

	nsm_hosts_init(&hosts, 4096, 64);
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(addr, sizeof(addr), "192.0.%u.%u", i / 250, i % 250);
		ck_assert_int_eq(add("c1", addr, &host), 0);
	}
	nsm_steps = 0;
	ck_assert(nsm_addr_parse("192.0.3.7", &ss));
	ck_assert_str_eq(nsm_hosts_meant(&hosts, "c1", (struct sockaddr *)&ss),
			 "c1");
	ck_assert_ptr_nonnull(nsm_hosts_find(&hosts, &(struct rpc_host){
		"c1", (struct sockaddr *)&ss, NULL }, false));
	ck_assert(nsm_addr_parse("198.51.100.7", &ss));
	ck_assert_ptr_null(nsm_hosts_meant(&hosts, "c1",
					   (struct sockaddr *)&ss));
	/* By chance a chain has 2, and more than 32 never. */
	ck_assert_uint_le(nsm_steps, 3 * 32);
}

#define MANY	3000u
/* Of hosts in one chain, by chance, and of lists for pauses. */
#define FEW	64u

/* Adds the host @i of @network, that has locks. */
static int add_to(unsigned network, unsigned i, struct nsm_host **out)
{
	char addr[40];
	int err;

	snprintf(addr, sizeof(addr), "2001:db8:0:%x::%x:%x", network, i / 9999,
		 i % 9999 + 1);
	err = add("c1", addr, out);
	if (err == 0)
		(*out)->monitored = true;
	return err;
}

/* A client chooses its name and, in its network, its address. */
TEST(a_host_joins_a_list_that_is_full_or_not_at_the_same_cost)
{
	struct nsm_host *host, *old = NULL;

	nsm_hosts_init(&hosts, 2 * MANY, 64);
	for (unsigned i = 0; i < MANY; i++) {
		nsm_steps = 0;
		ck_assert_int_eq(add_to(1, i, &host), 0);
		ck_assert_uint_le(nsm_steps, FEW);
		old = old ? old : host;
	}
	/* The network has its share.  The first search passes hosts that were
	 * not monitored yet when they came. */
	hosts.max = MANY;
	ck_assert_int_eq(add_to(1, MANY, &host), -EDQUOT);
	for (unsigned i = 1; i < MANY; i++) {
		nsm_steps = 0;
		ck_assert_int_eq(add_to(1, MANY + i, &host), -EDQUOT);
		ck_assert_int_eq(add_to(2, i, &host), -EDQUOT);
		ck_assert_int_eq(add("c1", "192.0.2.1", &host), -ENOSPC);
		ck_assert_uint_le(nsm_steps, FEW);
	}
	/* A host that has no locks and was not reached makes room. */
	old->monitored = false;
	old->untold = true;
	nsm_hosts_tidy(&hosts, old);
	hosts.max = 2 * MANY;
	nsm_steps = 0;
	ck_assert_int_eq(add_to(1, MANY, &host), 0);
	ck_assert_uint_le(nsm_steps, FEW);
}

TEST(the_next_host_to_be_told_is_found_among_many)
{
	struct nsm_host *host;

	nsm_hosts_init(&hosts, 2 * MANY, 64);
	for (unsigned i = 0; i < MANY; i++) {
		ck_assert_int_eq(add_to(1, i, &host), 0);
		host->untold = true;
		host->until = MANY;
		nsm_hosts_tell_at(&hosts, host, 1 + i, i % NSM_PAUSES);
	}
	for (unsigned i = 0; i < MANY; i++) {
		nsm_steps = 0;
		host = nsm_hosts_due(&hosts);
		ck_assert_uint_eq(host->due, 1 + i);
		host->telling = true;
		ck_assert_uint_le(nsm_steps, FEW);
	}
	ck_assert_ptr_null(nsm_hosts_due(&hosts));
}
