/* SPDX-License-Identifier: BSD-2-Clause */
/* sec=: the flavors that a rule serves, and the rights of each flavor's
 * callers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exports/export_priv.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "lib/util.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/runner.h"

#define NONE	RPC_AUTH_NONE
#define SYS	RPC_AUTH_SYS
#define KRB5	RPC_AUTH_KRB5
#define KRB5I	RPC_AUTH_KRB5I
#define KRB5P	RPC_AUTH_KRB5P

static void setup(void)
{
	log_threshold = LOG_LEVEL_ERR;
	table_begin();
	table->config.krb5 = true;
}

TEST_CASE(.setup = setup, .teardown = table_end);

static bool is_listed(const struct export_opts *o, enum rpc_auth_flavor flavor)
{
	uint32_t list[EXPORT_FLAVORS];
	unsigned n = export_flavors(o, list);

	while (n > 0 && list[n - 1] != flavor)
		n--;
	return n > 0;
}

/* Asks for /a, and returns the caller's rights, or "refused" and the errno. */
static const char *by_port(enum rpc_auth_flavor flavor, enum export_need need,
			   uint16_t port)
{
	static char text[64];
	struct sockaddr_storage ss = peer("192.0.2.1", port);
	const struct export_peer from = {
		.addr = (struct sockaddr *)&ss, .flavor = flavor, .need = need,
	};
	struct export_opts o;
	struct export_tree *e;
	const char *rest;
	int err = export_find_path(table, "/a", &from, &e, &o, &rest);

	if (err < 0) {
		snprintf(text, sizeof(text), "refused %s",
			 strerrorname_np(-err));
		return text;
	}
	export_put(e);
	ck_assert_int_eq(o.manage_gids, is_listed(&o, flavor) ?
			 flavor >= RPC_AUTH_KRB5 : need == EXPORT_LOCKS);
	snprintf(text, sizeof(text), "%s%s%s%s%s", o.rw ? "rw" : "ro",
		 o.root_squash ? " root" : "", o.all_squash ? " all" : "",
		 o.secure ? "" : " insecure", o.is_weak ? " weak" : "");
	return text;
}

static const char *by(enum rpc_auth_flavor flavor)
{
	return by_port(flavor, EXPORT_CALLS, 1000);
}

#define WEAK	"refused EKEYREJECTED"
#define N_FLAVORS	5

static const enum rpc_auth_flavor flavors[N_FLAVORS] = {
	NONE, SYS, KRB5, KRB5I, KRB5P
};

static const struct {
	const char *rule;
	const char *may[N_FLAVORS];
} rows[] = {
	{ "", { "ro root", "ro root", WEAK, WEAK, WEAK } },
	{ "sec=sys", { "ro root", "ro root", WEAK, WEAK, WEAK } },
	{ "sec=krb5", { WEAK, WEAK, "ro root", WEAK, WEAK } },
	{ "sec=krb5i,rw", { WEAK, WEAK, WEAK, "rw root", WEAK } },
	{ "rw,sec=krb5p:krb5", { WEAK, WEAK, "rw root", WEAK, "rw root" } },
	{ "sec=krb5p:krb5i:krb5:sys", { "ro root", "ro root", "ro root",
	  "ro root", "ro root" } },
	/* Options behind a sec= belong to its flavors; a flavor begins with all
	 * options that stood before it. */
	{ "sec=krb5,rw,sec=sys,ro", { "ro root", "ro root", "rw root", WEAK,
	  WEAK } },
	{ "sec=sys,all_squash,sec=krb5:krb5p,rw,no_root_squash", {
	  "ro root all", "ro root all", "rw all", WEAK, "rw all" } },
	{ "rw,sec=krb5,insecure,sec=sys,ro", { "ro root insecure",
	  "ro root insecure", "rw root insecure", WEAK, WEAK } },
	{ "sec=sys,ro,sec=krb5,rw,sec=sys:krb5,insecure", {
	  "ro root insecure", "ro root insecure", "rw root insecure", WEAK,
	  WEAK } },
	/* `none` serves all callers as the anonymous user, except flavors that
	 * have their own rights. */
	{ "sec=none", { "ro root", "ro root all", "ro root all",
	  "ro root all", "ro root all" } },
	{ "sec=krb5,rw,sec=none,ro", { "ro root", "ro root all", "rw root",
	  "ro root all", "ro root all" } },
	{ "sec=sys,rw,sec=none,ro", { "ro root", "rw root", "ro root all",
	  "ro root all", "ro root all" } },
};

TEST_LOOP(each_flavor_has_the_rights_behind_the_sec_that_names_it, 0,
	  ARRAY_SIZE(rows))
{
	char text[256];

	snprintf(text, sizeof(text), "/a *(%s%s)\n", rows[_i].rule,
		 *rows[_i].rule ? "" : "ro");
	publish(text);
	for (unsigned f = 0; f < N_FLAVORS; f++)
		ck_assert_msg(strcmp(by(flavors[f]), rows[_i].may[f]) == 0,
			      "%s: %u is '%s', not '%s'", text, flavors[f],
			      by(flavors[f]), rows[_i].may[f]);
	/* A row of rpc/ that told no flavor. */
	ck_assert_str_eq(by(RPC_AUTH_UNKNOWN), WEAK);
}

/* Parses @text, and prints it. */
static char *printed(const char *text)
{
	struct export_set *set = NULL;
	char *out = NULL, *err;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	if (parse(text, &set, &err) < 0)
		ck_abort_msg("%s", err);
	export_set_print(set, f);
	fclose(f);
	export_set_free(set);
	return out;
}

TEST_LOOP(rules_are_printed_so_that_they_say_the_same_again, 0,
	  ARRAY_SIZE(rows))
{
	char text[256], *once, *twice;

	snprintf(text, sizeof(text), "/a *(%s%s)\n", rows[_i].rule,
		 *rows[_i].rule ? "" : "ro");
	once = printed(text);
	publish(once);
	for (unsigned f = 0; f < N_FLAVORS; f++)
		ck_assert_msg(strcmp(by(flavors[f]), rows[_i].may[f]) == 0,
			      "%s: %u is '%s', not '%s'", once, flavors[f],
			      by(flavors[f]), rows[_i].may[f]);
	twice = printed(once);
	ck_assert_str_eq(once, twice);
	free(once);
	free(twice);
}

TEST(one_list_of_options_for_all_flavors_is_printed_once)
{
	char *text = printed("/a *(sec=krb5p:krb5,rw)\n");

	ck_assert_str_eq(text, "/a\t*(rw,root_squash,no_all_squash,"
			 "no_manage_gids,anonuid=65534,anongid=65534,secure,"
			 "secure_locks,hide,nocrossmnt,acl,sec=krb5p:krb5)\n");
	free(text);
}

TEST(flavors_are_listed_in_the_order_of_the_rule)
{
	uint32_t list[EXPORT_FLAVORS];
	struct export_opts o;

	publish("/a *(sec=krb5p:krb5i,sec=sys:krb5p,sec=none)\n/b *\n");
	ck_assert_int_eq(ask("/a", "192.0.2.1", &o), 0);
	ck_assert_uint_eq(export_flavors(&o, list), 4);
	ck_assert_uint_eq(list[0], KRB5P);
	ck_assert_uint_eq(list[1], KRB5I);
	ck_assert_uint_eq(list[2], SYS);
	ck_assert_uint_eq(list[3], NONE);
	ck_assert_int_eq(ask("/b", "192.0.2.1", &o), 0);
	ck_assert_uint_eq(export_flavors(&o, list), 1);
	ck_assert_uint_eq(list[0], SYS);
}

TEST(each_client_of_a_path_has_its_flavors)
{
	publish("/a -sec=krb5,rw 192.0.2.1 192.0.2.2(sec=sys,ro) "
		"*(sec=krb5i)\n");
	ck_assert_str_eq(by(KRB5), "rw root");
	ck_assert_str_eq(by(SYS), WEAK);
	publish("/a -sec=krb5,rw 192.0.2.2 192.0.2.1(sec=sys,ro)\n");
	ck_assert_str_eq(by(KRB5), "rw root");
	ck_assert_str_eq(by(SYS), "ro root");
	ck_assert_str_eq(by(KRB5I), WEAK);
}

TEST(a_caller_that_mounts_is_the_anonymous_user_and_reads_only)
{
	publish("/a *(sec=krb5,rw,no_root_squash)\n");
	ck_assert_str_eq(by_port(SYS, EXPORT_MOUNTS, 1000), "ro all weak");
	ck_assert_str_eq(by_port(NONE, EXPORT_MOUNTS, 1000), "ro all weak");
	ck_assert_str_eq(by_port(KRB5, EXPORT_MOUNTS, 1000), "rw");
	ck_assert_str_eq(by_port(SYS, EXPORT_CALLS, 1000), WEAK);
}

TEST(locks_are_taken_with_any_flavor_and_the_rights_of_the_first)
{
	publish("/a *(sec=krb5,rw,sec=krb5p,ro)\n");
	ck_assert_str_eq(by_port(SYS, EXPORT_LOCKS, 1000), "rw root");
	ck_assert_str_eq(by_port(KRB5P, EXPORT_LOCKS, 1000), "ro root");
}

/* exports(5): secure is for requests without Kerberos. */
TEST(kerberos_needs_no_low_port)
{
	uint64_t count = stats_sum_by_name("export_bad_port");

	publish("/a *(sec=krb5:sys)\n");
	ck_assert_str_eq(by_port(KRB5, EXPORT_CALLS, 2000), "ro root");
	ck_assert_str_eq(by_port(SYS, EXPORT_CALLS, 2000), "refused EACCES");
	publish("/a *(sec=krb5)\n");
	ck_assert_str_eq(by_port(SYS, EXPORT_MOUNTS, 2000), "refused EACCES");
	ck_assert_uint_eq(stats_sum_by_name("export_bad_port"), count + 2);
}

TEST(without_kerberos_its_rules_grant_nothing)
{
	table->config.krb5 = false;
	publish("/a *(sec=krb5:krb5p,rw)\n");
	for (unsigned f = 0; f < N_FLAVORS; f++)
		for (int need = EXPORT_CALLS; need <= EXPORT_LOCKS; need++)
			ck_assert_msg(!strncmp(by_port(flavors[f], need, 1000),
					       "refused", 7),
				      "%u, %d", flavors[f], need);
	publish("/a *(sec=krb5,rw,sec=sys,ro)\n");
	ck_assert_str_eq(by(SYS), "ro root");
}

TEST(a_reload_changes_the_flavors_at_once)
{
	uint64_t count = stats_sum_by_name("export_bad_flavor");

	publish("/a *(rw)\n");
	ck_assert_str_eq(by(SYS), "rw root");
	publish("/a *(rw,sec=krb5)\n");
	ck_assert_str_eq(by(SYS), WEAK);
	ck_assert_uint_eq(stats_sum_by_name("export_bad_flavor"), count + 1);
	publish("/a *(rw,sec=krb5:sys)\n");
	ck_assert_str_eq(by(SYS), "rw root");
}

TEST(the_same_client_with_other_flavors_is_a_mistake)
{
	struct export_set *set = NULL;
	char *err;

	ck_assert_int_eq(parse("/a h(sec=krb5:sys) h(sec=sys:krb5)\n", &set,
			       &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err, "is there already with other"));
	free(err);
}
