/* SPDX-License-Identifier: BSD-2-Clause */
/* Exports of which some can't be served: at a start, at a reload, in a check.
 * And the ids by which filehandles find them. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "exports/export_priv.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/runner.h"

/* Of mounting "/away...". */
static atomic_int away_error;
static atomic_uint failures;

static int mount_unless_away(const struct vfs_config *config,
			     struct vfs_fs **out)
{
	int err = atomic_load(&away_error);

	if (strncmp(config->path, "/away", 5) != 0 || !err)
		return mem_vfs_ops.mount(config, out);
	atomic_fetch_add(&failures, 1);
	return err;
}

/* Held while paths don't answer. */
static pthread_mutex_t hangs = PTHREAD_MUTEX_INITIALIZER;

static bool is_at_once_it_answers(struct vfs_fs *fs, const char *path)
{
	mutex_lock(&hangs);
	mutex_unlock(&hangs);
	return true;
}

static struct vfs_ops disk;		/* outlives its exports */

static void begin(void)
{
	table_begin();
	disk = mem_vfs_ops;
	disk.mount = mount_unless_away;
	table->backend = &disk;
	table->retry_s = 1;
	/* No test waits for it. */
	table->patience_s = 3600;
	atomic_store(&away_error, -ENOENT);
	atomic_store(&failures, 0);
}

TEST_CASE(.setup = begin, .teardown = table_end);

static void start(const char *text)
{
	export_table_lenient(table, true);
	publish(text);
	export_table_lenient(table, false);
}

static char late[300];

/* Notes in @late what is not waited for. */
static bool publish_heard(const char *text)
{
	struct export_set *set = NULL;
	char *err;

	*late = '\0';
	ck_assert_int_eq(parse(text, &set, &err), 0);
	export_set_late(set, take_note, late);
	ck_assert_int_eq(export_table_publish(table, set, &err), 0);
	return *late;
}

static int publish_fails(const char *text, char **err)
{
	struct export_set *set = NULL;

	ck_assert_int_eq(parse(text, &set, err), 0);
	return export_table_publish(table, set, err);
}

static int ask_for(const char *path)
{
	struct export_opts opts;

	return ask(path, "192.0.2.1", &opts);
}

static const int errors[] = { -ENOENT, -ENOTDIR, -EACCES, -EIO, -EXDEV };

TEST_LOOP(an_export_that_can_not_be_mounted_keeps_no_other_from_a_start,
	  0, ARRAY_SIZE(errors))
{
	atomic_store(&away_error, errors[_i]);
	start("/a *\n/away *\n/b *\n/away/too *\n");
	ck_assert_int_eq(ask_for("/a"), 0);
	ck_assert_int_eq(ask_for("/b"), 0);
	/* Their clients wait, and get no other directory. */
	ck_assert_int_eq(ask_for("/away"), -ETIMEDOUT);
	ck_assert_int_eq(ask_for("/away/too"), -ETIMEDOUT);
	atomic_store(&away_error, 0);
	EVENTUALLY(ask_for("/away") == 0 && ask_for("/away/too") == 0);
}

TEST(an_export_that_can_not_be_mounted_is_tried_again_and_again)
{
	start("/away *\n");
	EVENTUALLY(atomic_load(&failures) > 2);
	ck_assert_int_eq(ask_for("/away"), -ETIMEDOUT);
}

TEST(a_reload_is_all_or_nothing)
{
	char *err;

	start("/a *\n");
	ck_assert_int_eq(publish_fails("/away *\n/b *\n", &err), -ENOENT);
	free(err);
	ck_assert_int_eq(ask_for("/a"), 0);
	ck_assert_int_eq(ask_for("/b"), -ENOENT);
}

TEST(a_reload_leaves_what_is_tried_since_the_start)
{
	start("/a *\n/away *\n");
	ck_assert(publish_heard("/a *\n/away *\n/b *\n"));
	ck_assert_str_eq(late, "exports:2: '/away' can't be exported yet, its "
			 "clients have to wait");
	ck_assert_int_eq(ask_for("/b"), 0);
	ck_assert_int_eq(ask_for("/away"), -ETIMEDOUT);
	atomic_store(&away_error, 0);
	EVENTUALLY(ask_for("/away") == 0);
}

TEST(a_reload_hears_of_the_exports_that_it_did_not_wait_for)
{
	const char *const what = "exports:1: '/a' does not answer; not waiting "
				 "for it, it stays as it was";

	disk.is_at = is_at_once_it_answers;
	ck_assert(!publish_heard("/a *\n"));
	mutex_lock(&hangs);
	table->patience_s = 0;
	ck_assert(publish_heard("/a *(rw)\n"));
	ck_assert_str_eq(late, what);
	/* So does the next one, which does not wait again. */
	table->patience_s = 3600;
	ck_assert(publish_heard("/a *\n"));
	ck_assert_str_eq(late, what);
	mutex_unlock(&hangs);
	EVENTUALLY(!publish_heard("/a *\n"));
}

TEST(everything_that_can_not_be_mounted_is_reported)
{
	char *err;

	ck_assert_int_eq(publish_fails("/away *\n/a *\n/away2 *\n", &err),
			 -ENOENT);
	ck_assert_str_eq(err, "exports:1: '/away' can't be exported: there is "
			 "no such directory\n"
			 "exports:3: '/away2' can't be exported: there is no "
			 "such directory");
	free(err);
}

static char notes[500];

TEST(an_id_of_another_export_keeps_no_other_from_a_start)
{
	struct export_set *set = NULL;
	char *err;

	export_table_lenient(table, true);
	ck_assert_int_eq(parse("/a *(fsid=1)\n/b *\n/a/c 192.0.2.1(fsid=1)\n",
			       &set, &err), 0);
	export_set_notes(set, take_note, notes);
	ck_assert_ptr_nonnull(strstr(notes, "exports:3: '/a/c' and '/a' "
		"(exports:1) have the same file system id; give one of them "
		"another with fsid=, until then '/a/c' is not exported"));
	ck_assert_int_eq(export_table_publish(table, set, &err), 0);
	export_table_lenient(table, false);
	ck_assert_int_eq(ask_for("/a"), 0);
	ck_assert_int_eq(ask_for("/b"), 0);
	/* Nor is it a directory of the export that it lies in. */
	ck_assert_int_eq(ask_for("/a/c"), -EACCES);
	ck_assert_int_eq(ask_for("/a/c/d"), -EACCES);
}

TEST(a_change_leaves_an_export_whose_id_is_another_one_s)
{
	struct export_set *set = NULL;
	char *err;

	start("/a *(fsid=1)\n/c *(fsid=1)\n");
	ck_assert_int_eq(export_set_copy(table, &set), 0);
	ck_assert_int_eq(export_set_add(table, "ctl", "/b *", &set, &err), 0);
	ck_assert_int_eq(export_table_publish(table, set, &err), 0);
	ck_assert_int_eq(ask_for("/b"), 0);
	ck_assert_int_eq(ask_for("/a"), 0);
	ck_assert_int_eq(ask_for("/c"), -EACCES);
	/* Another such mistake is one. */
	ck_assert_int_eq(export_set_copy(table, &set), 0);
	ck_assert_int_eq(export_set_add(table, "ctl", "/d *(fsid=1)", &set,
					&err), -EINVAL);
	export_set_free(set);
	free(err);
	/* Without the other one it is served. */
	ck_assert_int_eq(export_set_copy(table, &set), 0);
	ck_assert_int_eq(export_set_remove(set, "/a", NULL, &err), 0);
	ck_assert_int_eq(export_table_publish(table, set, &err), 0);
	ck_assert_int_eq(ask_for("/c"), 0);
}

TEST(ids_of_other_exports_are_mistakes_of_a_reload)
{
	struct export_set *set = NULL;
	char *err;

	ck_assert_int_eq(parse("/a *(fsid=1)\n/b *(fsid=1)\n/c *(fsid=2)\n"
			       "/d h(fsid=3) g(fsid=2)\n/e *(fsid=1)\n",
			       &set, &err), -EINVAL);
	ck_assert_str_eq(err, "exports:2: '/b' and '/a' (exports:1) have the "
		"same file system id; give one of them another with fsid=\n"
		"exports:5: '/e' and '/a' (exports:1) have the same file "
		"system id; give one of them another with fsid=\n"
		"exports:4: '/d' and '/c' (exports:3) have the same file "
		"system id; give one of them another with fsid=");
	free(err);
}

/* The id in a handle that @addr gets of the root of @path. */
static uint32_t id_of(const char *path, const char *addr)
{
	struct sockaddr_storage ss = peer(addr, 1000);
	const struct vfs_handle root = { .len = 4 };
	struct vfs_handle h;
	struct export_opts opts;
	struct nfs3_fh fh;
	struct export_tree *e;
	const char *rest;
	uint32_t id;

	ck_assert_int_eq(export_find_path(table, path, BY_SYS(&ss, false), &e,
					  &opts, &rest), 0);
	export_fh_make(table, e, &opts, &root, &fh);
	export_put(e);
	ck_assert_int_eq(export_fh_parse(table, fh.data, fh.len, &id, &h), 0);
	return id;
}

static int find_id(uint32_t id, const char *addr)
{
	struct sockaddr_storage ss = peer(addr, 1000);
	struct export_opts opts;
	struct export_tree *e;
	int err = export_find(table, id, BY_SYS(&ss, false), &e, &opts);

	if (err == 0)
		export_put(e);
	return err;
}

TEST(each_rule_of_a_path_can_have_its_own_fsid)
{
	publish("/a 192.0.2.0/24(fsid=9) 198.51.100.0/24(fsid=4) ::1\n");
	ck_assert_uint_eq(id_of("/a", "192.0.2.1"), 9);
	ck_assert_uint_eq(id_of("/a", "198.51.100.1"), 4);
	/* Without fsid= a rule has the smallest. */
	ck_assert_uint_eq(id_of("/a", "::1"), 4);
	/* Handles of a client whose rule changed are good. */
	ck_assert_int_eq(find_id(9, "198.51.100.1"), 0);
	ck_assert_int_eq(find_id(4, "192.0.2.1"), 0);
	ck_assert_int_eq(find_id(9, "203.0.113.1"), -EACCES);
	ck_assert_int_eq(find_id(5, "192.0.2.1"), -ESTALE);
	ck_assert(export_same_id(table, 4, 9));
	ck_assert(!export_same_id(table, 4, 5));
	ck_assert(!export_same_id(table, 5, 6));
}

TEST(rules_with_their_own_fsid_come_and_go_while_others_stay)
{
	struct export_set *set = NULL;
	char *err;

	publish("/a 192.0.2.1(fsid=9)\n");
	/* A cluster's manager adds and removes them one by one. */
	ck_assert_int_eq(export_set_copy(table, &set), 0);
	ck_assert_int_eq(export_set_add(table, "ctl", "/a 192.0.2.2(fsid=4)",
					&set, &err), 0);
	ck_assert_int_eq(export_table_publish(table, set, &err), 0);
	ck_assert_uint_eq(id_of("/a", "192.0.2.1"), 9);
	ck_assert_uint_eq(id_of("/a", "192.0.2.2"), 4);
	publish("/a 192.0.2.2(fsid=4) 192.0.2.1(fsid=9)\n");
	ck_assert_int_eq(export_set_copy(table, &set), 0);
	ck_assert_int_eq(export_set_remove(set, "/a", "192.0.2.1", &err), 0);
	ck_assert_int_eq(export_table_publish(table, set, &err), 0);
	ck_assert_uint_eq(id_of("/a", "192.0.2.2"), 4);
	ck_assert_int_eq(find_id(4, "192.0.2.2"), 0);
}

TEST(a_rule_keeps_its_fsid_when_its_options_change)
{
	struct export_set *set = NULL;
	struct export_opts opts;
	char *err;

	publish("/a 192.0.2.1(fsid=9) 192.0.2.2(fsid=4)\n");
	ck_assert_int_eq(export_set_copy(table, &set), 0);
	ck_assert_int_eq(export_set_change(table, "ctl", "/a",
					   "192.0.2.1(rw)", set, &err), 0);
	ck_assert_int_eq(export_set_change(table, "ctl", "/a",
					   "192.0.2.2(rw,fsid=4)", set, &err),
			 0);
	ck_assert_int_eq(export_set_change(table, "ctl", "/a",
					   "192.0.2.2(rw,fsid=9)", set, &err),
			 -EINVAL);
	free(err);
	ck_assert_int_eq(export_table_publish(table, set, &err), 0);
	ck_assert_uint_eq(id_of("/a", "192.0.2.1"), 9);
	ck_assert_uint_eq(id_of("/a", "192.0.2.2"), 4);
	ck_assert_int_eq(ask("/a", "192.0.2.1", &opts), 0);
	ck_assert(opts.rw);
}
