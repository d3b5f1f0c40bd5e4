/* SPDX-License-Identifier: BSD-2-Clause */
/* Each option of exports(5): its effect, its warning or its error. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/runner.h"
#include "vfs/export_priv.h"

#define NOT_MOUNTED "'/a' is of the kind mem, which is not mounted in this " \
	"system, so 'mountpoint' can't be asked of it"
#define NO_KRB5 ": there is no Kerberos here: only callers with sys are " \
	"served"
#define NO_SYS "sec= without sys is refused: there is no Kerberos here, " \
	"and users would be believed without it; add sec=sys if that is meant"
#define FLAVORS ": expected sys, unix, none, null, krb5, krb5i, krb5p, or " \
	"several with ':' between them"
#define NO_ANON "sec= without sys is refused: callers that say who they are " \
	"would be served all the same; write sec=sys,all_squash to make all " \
	"callers anonymous"
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
	  "sec=krb5p:krb5i:krb5:sys" NO_KRB5 },
	{ "h(sec=krb5)", NULL, NO_SYS },
	{ "h(sec=krb5i:krb5p,rw)", NULL, NO_SYS },
	{ "-sec=krb5 h(rw)", NULL, NO_SYS },
	{ "-sec=krb5", NULL, NO_SYS },
	{ "h(sec=none)", NULL, NO_ANON },
	{ "h(sec=null)", NULL, NO_ANON },
	{ "h(sec=none:krb5)", NULL, NO_SYS },
	{ "h(sec=krb5,sec=none)", NULL, NO_SYS },
	{ "-sec=krb5 h(sec=none)", NULL, NO_SYS },
	{ "h(sec=none:krb5:sys)", "ro,secure,root_squash",
	  "sec=none:krb5:sys" NO_KRB5 },
	{ "-sec=krb5 h(sec=sys)", "ro,secure,root_squash",
	  "sec=krb5" NO_KRB5 },
	{ "h(sec=lkey)", NULL, "sec=lkey" FLAVORS },
	{ "h(sec=sys:)", NULL, "sec=sys:" FLAVORS },
	{ "h(sec=)", NULL, "sec=" FLAVORS },
	/* Behind a sec= stand the options of its flavors. */
	{ "h(sec=krb5,rw,sec=sys,ro)", "ro,secure,root_squash",
	  "sec=krb5" NO_KRB5 },
	{ "h(sec=sys,ro,sec=krb5,rw)", "ro,secure,root_squash",
	  "sec=krb5" NO_KRB5 },
	{ "h(sec=sys,sec=krb5,rw,insecure,no_root_squash)",
	  "ro,secure,root_squash", "sec=krb5" NO_KRB5 },
	{ "h(rw,sec=sys,sec=krb5,ro,all_squash)", "rw,secure,root_squash",
	  "sec=krb5" NO_KRB5 },
	{ "h(sec=krb5,rw,sec=sys)", "rw,secure,root_squash",
	  "sec=krb5" NO_KRB5 },
	{ "h(sec=sys,ro,sec=krb5,rw,sec=sys,insecure)",
	  "ro,insecure,root_squash", "sec=krb5" NO_KRB5 },
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
	effect_of(&set->entries[0]->clients[0], effect, sizeof(effect));
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
	ck_assert_uint_eq(set->nentries, 1);
	ck_assert_uint_eq(set->entries[0]->nclients, 3);
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
		ids[i] = set->entries[0]->id;
		export_set_free(set);
	}
	ck_assert(ids[0] == ids[2] && ids[1] == ids[2]);
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
	ck_assert_str_eq(set->entries[0]->mountpoint, want);
	export_set_free(set);
}
