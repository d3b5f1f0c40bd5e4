/* SPDX-License-Identifier: BSD-2-Clause */
/* Each option of exports(5): its effect, its warning or its error. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exports/export_priv.h"
#include "lib/util.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/runner.h"

#define NOT_MOUNTED "'/a' is of the kind mem, which is not mounted in this " \
	"system, so 'mountpoint' can't be asked of it"
#define NEEDS(list) "sec=" list ": there is no Kerberos, which needs " \
	"gannet-krb5 and a keytab: "
#define NO_KRB5(list) NEEDS(list) "only callers with sys are served"
#define NO_CALLER(list) NEEDS(list) "no caller is served"
#define FLAVORS ": expected sys, unix, none, null, krb5, krb5i, krb5p, or " \
	"several with ':' between them"
#define NO_EFFECT(option) ": no effect, because sec= stands in the defaults " \
	"of the line; write sec=sys," option
#define NO_TLS ": there is no TLS here: only callers without it are served"
#define TLS_ONLY "xprtsec= without none is refused: there is no TLS here, " \
	"and calls would go unprotected; add none if that is meant"
#define NFS4 "NFSv4 clients only are told; this is NFSv3, whose clients " \
	"see the directory itself"
#define NO_LIST " is refused: such users would not be squashed; the " \
	"kernel's server does not do it either"

static const struct {
	const char *line;
	const char *effect;	/* NULL: refused */
	const char *told;	/* warnings or the error, without the place */
} rows[] = {
	{ "h", "ro,secure,root_squash", NULL },
	{ "h(rw)", "rw,secure,root_squash", NULL },
	{ "h(rw,ro)", "ro,secure,root_squash", NULL },
	{ "-rw h", "rw,secure,root_squash", NULL },
	{ "-rw h(ro)", "ro,secure,root_squash", NULL },
	{ "h(insecure)", "ro,insecure,root_squash", NULL },
	{ "h(insecure,secure)", "ro,secure,root_squash", NULL },
	{ "h(no_root_squash)", "ro,secure", NULL },
	{ "h(no_root_squash,root_squash)", "ro,secure,root_squash", NULL },
	{ "h(all_squash)", "ro,secure,root_squash,all_squash", NULL },
	{ "h(all_squash,no_all_squash)", "ro,secure,root_squash", NULL },
	{ "h(manage_gids)", "ro,secure,root_squash,manage_gids", NULL },
	{ "-manage_gids h(no_manage_gids)", "ro,secure,root_squash", NULL },
	{ "h(all_squash,anonuid=-2,anongid=-2147483648)",
	  "ro,secure,root_squash,all_squash", NULL },
	{ "h(anongid=-)", NULL, "anongid=-: expected a group id, 0 to "
	  "4294967294" },
	{ "h(anongid=-2147483649)", NULL, "anongid=-2147483649: expected a "
	  "group id, 0 to 4294967294" },
	{ "h(rw,)", "rw,secure,root_squash", NULL },

	{ "h(sec=sys)", "ro,secure,root_squash", NULL },
	{ "h(sec=unix:none)", "ro,secure,root_squash", NULL },
	{ "h(sec=krb5p:krb5i:krb5:sys)", "ro,secure,root_squash",
	  NO_KRB5("krb5p:krb5i:krb5:sys") },
	{ "h(sec=krb5)", "ro,secure,root_squash", NO_CALLER("krb5") },
	{ "h(sec=krb5i:krb5p,rw)", "rw,secure,root_squash",
	  NO_CALLER("krb5i:krb5p") },
	{ "-sec=krb5 h", "ro,secure,root_squash", NO_CALLER("krb5") },
	{ "-sec=krb5", "ro,secure,root_squash", NO_CALLER("krb5") },
	{ "h(sec=none)", "ro,secure,root_squash", NULL },
	{ "h(sec=null)", "ro,secure,root_squash", NULL },
	{ "h(sec=none:krb5)", "ro,secure,root_squash", NEEDS("none:krb5")
	  "only callers with none are served" },
	{ "h(sec=krb5,sec=none)", "ro,secure,root_squash", NEEDS("krb5:none")
	  "only callers with none are served" },
	{ "h(sec=none:krb5:sys)", "ro,secure,root_squash",
	  NEEDS("none:krb5:sys") "only callers with none:sys are served" },
	{ "-sec=krb5 h(sec=sys)", "ro,secure,root_squash",
	  NO_KRB5("krb5:sys") },
	{ "h(sec=lkey)", NULL, "sec=lkey" FLAVORS },
	{ "h(sec=sys:)", NULL, "sec=sys:" FLAVORS },
	{ "h(sec=)", NULL, "sec=" FLAVORS },
	/* Behind a sec= stand the options of its flavors. */
	{ "h(sec=krb5,rw,sec=sys,ro)", "ro,secure,root_squash",
	  NO_KRB5("krb5:sys") },
	{ "h(sec=sys,ro,sec=krb5,rw)", "ro,secure,root_squash",
	  NO_KRB5("sys:krb5") },
	{ "h(sec=sys,sec=krb5,rw,insecure,no_root_squash)",
	  "ro,secure,root_squash", NO_KRB5("sys:krb5") },
	{ "h(rw,sec=sys,sec=krb5,ro,all_squash)", "rw,secure,root_squash",
	  NO_KRB5("sys:krb5") },
	{ "h(sec=krb5,rw,sec=sys)", "rw,secure,root_squash",
	  NO_KRB5("krb5:sys") },
	{ "h(sec=sys,ro,sec=krb5,rw,sec=sys,insecure)",
	  "ro,insecure,root_squash", NO_KRB5("sys:krb5") },
	/* As exportfs has it. */
	{ "-sec=sys,ro h(rw)", "ro,secure,root_squash", "rw" NO_EFFECT("rw") },
	{ "-sec=sys,rw h(ro)", "rw,secure,root_squash", "ro" NO_EFFECT("ro") },
	{ "-sec=sys,rw h(rw)", "rw,secure,root_squash", NULL },
	{ "-sec=sys,rw h(sec=sys,ro)", "ro,secure,root_squash", NULL },

	{ "h(xprtsec=none)", "ro,secure,root_squash", NULL },
	{ "h(xprtsec=none:tls:mtls)", "ro,secure,root_squash",
	  "xprtsec=none:tls:mtls" NO_TLS },
	{ "h(xprtsec=tls)", NULL, TLS_ONLY },
	{ "h(xprtsec=mtls:tls)", NULL, TLS_ONLY },
	{ "-xprtsec=mtls h", NULL, TLS_ONLY },
	{ "h(xprtsec=ssl)", NULL, "xprtsec=ssl: expected none, tls, mtls, "
	  "or several with ':' between them" },

	{ "h(fsid=0)", "ro,secure,root_squash", NULL },
	{ "h(fsid=0xffffffff)", "ro,secure,root_squash", NULL },
	{ "h(fsid=0x100000000)", NULL, "fsid=0x100000000: expected a number, "
	  "0 to 4294967295, or a UUID" },
	{ "h(fsid=-1)", NULL, "fsid=-1: expected a number, 0 to "
	  "4294967295, or a UUID" },

	{ "h(sync,wdelay,no_wdelay,no_subtree_check,sign_fh,hide,nocrossmnt,"
	  "secure_locks,auth_nlm,insecure_locks,no_auth_nlm,pnfs,"
	  "no_pnfs,security_label)", "ro,secure,root_squash", NULL },
	{ "h(reexport=none) g(reexport=auto-fsidnum) "
	  "f(reexport=predefined-fsidnum)", "ro,secure,root_squash", NULL },
	{ "h(reexport=yes)", NULL, "reexport=yes: expected none, "
	  "auto-fsidnum or predefined-fsidnum" },
	{ "h(async)", "ro,secure,root_squash", "async: not done: what was "
	  "answered as stable is on stable storage all the same" },
	{ "h(subtree_check)", "ro,secure,root_squash", "subtree_check: not "
	  "done: signed filehandles keep clients inside the export, but a "
	  "file that was moved out of it stays in reach of those that had "
	  "its handle" },
	{ "h(crossmnt)", "ro,secure,root_squash,crossmnt", NULL },
	{ "-crossmnt h(nocrossmnt)", "ro,secure,root_squash", NULL },
	{ "h(nohide)", "ro,secure,root_squash,nohide", NULL },
	{ "-nohide h(hide)", "ro,secure,root_squash", NULL },
	{ "h(mountpoint)", NULL, NOT_MOUNTED },
	{ "h(mp=/b)", NULL, NOT_MOUNTED },
	{ "h(mountpoint=b)", NULL, "mountpoint=b: expected an absolute path" },
	{ "h(mp=../b)", NULL, "mp=../b: expected an absolute path" },
	{ "h(no_acl)", "ro,secure,root_squash,no_acl", NULL },
	{ "h(no_acl,acl)", "ro,secure,root_squash", NULL },
	{ "h(nordirplus)", "ro,secure,root_squash,nordirplus", NULL },
	{ "h(refer=/b@192.0.2.1+192.0.2.2)", "ro,secure,root_squash",
	  "refer=/b@192.0.2.1+192.0.2.2: " NFS4 },
	{ "h(replicas=/b@192.0.2.1)", "ro,secure,root_squash",
	  "replicas=/b@192.0.2.1: " NFS4 },
	{ "h(squash_uids=0-15,20)", NULL, "squash_uids=0-15" NO_LIST },
	{ "h(squash_gids=3)", NULL, "squash_gids=3" NO_LIST },
};

TEST_CASE(.setup = table_begin, .teardown = table_end);

TEST_LOOP(each_option_has_its_effect_its_warning_or_its_error, 0,
	  ARRAY_SIZE(rows))
{
	char line[512], told[2048] = "", want[2048] = "", effect[128];
	const char *expected = rows[_i].told;
	struct export_set *set = NULL;
	char *err = NULL;
	int ret;

	snprintf(line, sizeof(line), "/a %s\n", rows[_i].line);
	ret = parse(line, &set, &err);
	if (expected)
		snprintf(want, sizeof(want), "exports:1: %s", expected);
	if (!rows[_i].effect) {
		ck_assert_int_eq(ret, -EINVAL);
		ck_assert_str_eq(err, want);
		free(err);
		return;
	}
	if (ret < 0)
		ck_abort_msg("%s", err);
	export_set_notes(set, take_note, told);
	ck_assert_str_eq(told, want);
	effect_of(&set->exports[0]->clients[0], effect, sizeof(effect));
	ck_assert_str_eq(effect, rows[_i].effect);
	export_set_free(set);
}

TEST(a_warning_stands_once_for_all_lines)
{
	char told[2048] = "";
	struct export_set *set = NULL;
	char *err;

	ck_assert_int_eq(parse("/a h(async)\n/b h(rw) g(async)\n"
			       "/c h(xprtsec=none:tls)\n/d -async h\n", &set,
			       &err), 0);
	export_set_notes(set, take_note, told);
	ck_assert_str_eq(told, "exports:1: async: not done: what was answered "
			 "as stable is on stable storage all the same (and 2 "
			 "more)exports:3: xprtsec=none:tls" NO_TLS);
	export_set_free(set);
}

/* As from two files that tools wrote. */
TEST(a_client_that_stands_twice_with_the_same_options_is_warned_of)
{
	char told[2048] = "";
	struct export_set *set = NULL;
	char *err;

	ck_assert_int_eq(parse("/a h(rw,insecure) 10.0.0.0/8\n"
			       "/a 10.1.0.0/8(sync) h(insecure,rw) g\n",
			       &set, &err), 0);
	ck_assert_uint_eq(set->nexports, 1);
	ck_assert_uint_eq(set->exports[0]->nclients, 3);
	export_set_notes(set, take_note, told);
	ck_assert_str_eq(told, "exports:2: client '10.1.0.0/8' of '/a' is "
			 "there already"
			 "exports:2: client 'h' of '/a' is there already");
	export_set_free(set);
}

/* For kernels of either kind, both are given. */
TEST(a_uuid_counts_before_a_number)
{
	static const char *const lines[] = {
		"/a h(fsid=5,fsid=01234567-89ab-cdef-0123-456789abcdef)",
		"/a h(fsid=01234567-89ab-cdef-0123-456789abcdef,fsid=5)",
		"/a h(fsid=01234567-89ab-cdef-0123-456789abcdef)",
	};
	uint32_t ids[ARRAY_SIZE(lines)];

	for (unsigned i = 0; i < ARRAY_SIZE(lines); i++) {
		struct export_set *set = NULL;
		char *err;

		ck_assert_int_eq(parse(lines[i], &set, &err), 0);
		ids[i] = set->exports[0]->id;
		export_set_free(set);
	}
	ck_assert(ids[0] == ids[2] && ids[1] == ids[2]);
}

#define OPS ": expected a number of calls a second; 0 is no limit"
#define BYTES ": expected a number of bytes a second, such as 500k or 20m; " \
	"0 is no limit"
#define TWO(option) "'/a' has two different " option "= options; it is the " \
	"limit of all clients together"

static const struct {
	const char *line;
	const char *told;	/* of the first client, and of the second; or
				 * the error */
	int	    ret;
} limits[] = {
	{ "h g", "0 0 0 0, 0 0 0 0", 0 },
	{ "h(client_max_ops=5) g", "0 0 5 0, 0 0 0 0", 0 },
	{ "h(client_max_bytes=3k) g(client_max_bytes=2G)",
	  "0 0 0 3072, 0 0 0 2147483648", 0 },
	{ "-client_max_ops=5,client_max_bytes=1m h g(client_max_ops=0)",
	  "0 0 5 1048576, 0 0 0 1048576", 0 },
	/* These are the export's. */
	{ "h(max_ops=7) g", "7 0 0 0, 7 0 0 0", 0 },
	{ "h g(max_bytes=1k)", "0 1024 0 0, 0 1024 0 0", 0 },
	{ "h(max_ops=7,max_ops=8) g(max_ops=8)", "8 0 0 0, 8 0 0 0", 0 },
	{ "h(max_ops=0) g(client_max_ops=9223372036854775807)",
	  "0 0 0 0, 0 0 9223372036854775807 0", 0 },
	{ "h(max_ops=7) g(max_ops=8)", TWO("max_ops"), -EINVAL },
	{ "-max_bytes=7 h g(max_bytes=0)", TWO("max_bytes"), -EINVAL },
	{ "h(max_ops=) g", "max_ops=" OPS, -EINVAL },
	{ "h(max_ops=-1) g", "max_ops=-1" OPS, -EINVAL },
	{ "h(max_ops=1k) g", "max_ops=1k" OPS, -EINVAL },
	{ "h(client_max_ops=1.5) g", "client_max_ops=1.5" OPS, -EINVAL },
	{ "h(client_max_ops=9223372036854775808) g",
	  "client_max_ops=9223372036854775808" OPS, -EINVAL },
	{ "h(max_bytes=1t) g", "max_bytes=1t" BYTES, -EINVAL },
	{ "h(client_max_bytes=17179869184g) g",
	  "client_max_bytes=17179869184g" BYTES, -EINVAL },
	{ "h(max_ops) g", "option 'max_ops' is not known; did you mean "
	  "'max_ops='?", -EINVAL },
};

TEST_LOOP(a_limit_is_a_client_s_or_the_export_s, 0, ARRAY_SIZE(limits))
{
	char line[128], told[512] = "", want[512], *err = NULL;
	struct export_set *set = NULL;
	const struct client *c;
	size_t n = 0;

	snprintf(line, sizeof(line), "/a %s\n", limits[_i].line);
	ck_assert_int_eq(parse(line, &set, &err), limits[_i].ret);
	if (limits[_i].ret < 0) {
		snprintf(want, sizeof(want), "exports:1: %s", limits[_i].told);
		ck_assert_str_eq(err, want);
		free(err);
		return;
	}
	for (c = set->exports[0]->clients; n < sizeof(told); c++) {
		n += (size_t)snprintf(told + n, sizeof(told) - n,
			"%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
			c->opts.max.ops, c->opts.max.bytes,
			c->opts.client_max.ops, c->opts.client_max.bytes);
		ck_assert(c->opts.limited == (rates_any(&c->opts.max) ||
					      rates_any(&c->opts.client_max)));
		if (c != set->exports[0]->clients)
			break;
		n += (size_t)snprintf(told + n, sizeof(told) - n, ", ");
	}
	ck_assert_str_eq(told, limits[_i].told);
	export_set_free(set);
}

/* A reload compares the text, and gannetctl keeps it in a file. */
TEST(limits_are_printed_as_they_are_read)
{
	static const char text[] = "/a h(client_max_ops=5,client_max_bytes=3k,"
		"max_ops=7,max_bytes=1025) g";
	struct export_set *set = NULL, *again = NULL;
	char *err, *out, *out2;
	size_t len;
	FILE *f;

	ck_assert_int_eq(parse(text, &set, &err), 0);
	f = open_memstream(&out, &len);
	export_set_print(set, f);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(out, ",client_max_ops=5,"
		"client_max_bytes=3k,max_ops=7,max_bytes=1025)\n"));
	ck_assert_ptr_nonnull(strstr(out, "sys,max_ops=7,max_bytes=1025)\n"));
	ck_assert_int_eq(parse(out, &again, &err), 0);
	f = open_memstream(&out2, &len);
	export_set_print(again, f);
	fclose(f);
	ck_assert_str_eq(out, out2);
	free(out);
	free(out2);
	export_set_free(set);
	export_set_free(again);
}

TEST(a_client_that_stands_twice_needs_the_same_limits)
{
	struct export_set *set = NULL;
	char *err;

	ck_assert_int_eq(parse("/a h(client_max_ops=5)\n"
			       "/a h(client_max_ops=6)\n", &set, &err),
			 -EINVAL);
	ck_assert_ptr_nonnull(strstr(err, "exports:2: client 'h' of '/a' is "
				     "there already with other options"));
	free(err);
}

/* A change of one rule's options also sets options of the export; the options
 * that it does not name stay. */
TEST(a_change_of_a_rule_changes_the_export_s_limits)
{
	static const struct { const char *rule; uint64_t max, client; } steps[]
	= {
		{ "h(max_ops=8)", 8, 0 },
		{ "h(client_max_ops=3)", 8, 3 },
		{ "h(rw)", 8, 0 },
		{ "h(max_ops=0)", 0, 0 },
	};
	struct export_set *set = NULL;
	char *err;

	publish("/a h(max_ops=7) g(max_ops=7)\n");
	ck_assert_int_eq(export_set_copy(table, &set), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
		const struct export *e = set->exports[0];

		ck_assert_int_eq(export_set_change(table, "x", "/a",
				 steps[i].rule, set, &err), 0);
		ck_assert_uint_eq(e->clients[0].opts.max.ops, steps[i].max);
		ck_assert_uint_eq(e->clients[1].opts.max.ops, steps[i].max);
		ck_assert_uint_eq(e->clients[0].opts.client_max.ops,
				  steps[i].client);
	}
	export_set_free(set);
}

/* Else an export for Kerberos would be open to AUTH_SYS. */
TEST(a_change_of_a_rule_leaves_out_no_flavor_silently)
{
	static const struct { const char *rule; int err; } steps[] = {
		{ "h(rw)", 0 },
		{ "h(sec=krb5p:sys)", 0 },
		{ "h(rw)", -EINVAL },
		{ "h(sec=krb5p,rw)", 0 },
		{ "h", -EINVAL },
		{ "h(ro)", -EINVAL },
		{ "h(sec=sys)", 0 },
		{ "h(ro)", 0 },
	};
	struct export_set *set = NULL;
	char *err;

	publish("/a h\n");
	ck_assert_int_eq(export_set_copy(table, &set), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
		ck_assert_int_eq(export_set_change(table, "x", "/a",
				 steps[i].rule, set, &err), steps[i].err);
		if (!steps[i].err)
			continue;
		ck_assert_ptr_nonnull(strstr(err, "the rule has sec=krb5p"));
		free(err);
	}
	export_set_free(set);
}

static const struct {
	const char *line;
	const char *mountpoint;	/* NULL: refused */
} mountpoints[] = {
	{ "h(mountpoint)", "/a/b" },
	{ "h(mp,rw)", "/a/b" },
	{ "h(mp=)", "/a/b" },
	{ "h(mountpoint=/a//b/)", "/a/b" },
	{ "h(mp=/c)", "/c" },
	{ "\"h(mp=/c d)\"", "/c d" },
	{ "-mp=/c h g(rw)", "/c" },
	/* It is the export's. */
	{ "h g(mp=/c)", "/c" },
	{ "h(mp) g(mp=/a/b)", "/a/b" },
	{ "h(mp=/c) g(mp)", NULL },
};

TEST_LOOP(mountpoint_names_a_directory, 0, ARRAY_SIZE(mountpoints))
{
	const char *want = mountpoints[_i].mountpoint;
	struct export_set *set = NULL;
	char line[128], *err = NULL;
	int ret;

	snprintf(line, sizeof(line), "posix:/a/b %s\n", mountpoints[_i].line);
	ret = parse(line, &set, &err);
	if (!want) {
		ck_assert_int_eq(ret, -EINVAL);
		ck_assert_str_eq(err, "exports:1: '/a/b' has two different "
				 "mountpoint= options");
		free(err);
		return;
	}
	if (ret < 0)
		ck_abort_msg("%s", err);
	ck_assert_str_eq(set->exports[0]->mountpoint, want);
	export_set_free(set);
}
