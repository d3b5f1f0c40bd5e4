/* SPDX-License-Identifier: BSD-2-Clause */
/* The export table: the rights of clients, and changes of the table. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "exports/export_priv.h"
#include "lib/stats.h"
#include "lib/util.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/runner.h"
#include "tests/unit/vfs_do.h"

TEST_CASE(.setup = table_begin, .teardown = table_end);

TEST(addresses_and_networks_match_bit_by_bit)
{
	struct export_opts opts;

	publish("/a 10.1.2.3 10.2.0.0/255.255.252.0 2001:db8::/33 0.0.0.0/32\n"
		"/b ::ffff:10.0.0.0/104\n/c ::/0\n/d 0.0.0.0/0\n/e ::1\n");
	ck_assert_int_eq(ask("/a", "10.1.2.3", &opts), 0);
	ck_assert_int_eq(ask("/a", "10.1.2.2", &opts), -EACCES);
	ck_assert_int_eq(ask("/a", "::ffff:10.1.2.3", &opts), 0);
	ck_assert_int_eq(ask("/a", "10.2.3.255", &opts), 0);
	ck_assert_int_eq(ask("/a", "10.2.4.0", &opts), -EACCES);
	ck_assert_int_eq(ask("/a", "2001:db8:7fff::1", &opts), 0);
	ck_assert_int_eq(ask("/a", "2001:db8:8000::1", &opts), -EACCES);
	ck_assert_int_eq(ask("/b", "10.9.9.9", &opts), 0);
	ck_assert_int_eq(ask("/b", "10.200.9.9", &opts), 0);
	ck_assert_int_eq(ask("/b", "11.9.9.9", &opts), -EACCES);
	ck_assert_int_eq(ask("/c", "2001:db8::1", &opts), 0);
	ck_assert_int_eq(ask("/c", "10.9.9.9", &opts), -EACCES);
	ck_assert_int_eq(ask("/d", "::ffff:1.2.3.4", &opts), 0);
	ck_assert_int_eq(ask("/d", "::1", &opts), -EACCES);
	ck_assert_int_eq(ask("/e", "::1", &opts), 0);
	ck_assert_uint_eq(dns_asked, 0);
}

TEST(a_prefix_of_any_length_ends_at_its_last_bit)
{
	struct addr net = { .family = AF_INET6, .bytes = { 0x20, 0x01 } };

	for (unsigned bits = 0; bits <= 128; bits++) {
		ck_assert(addr_in_prefix(&net, &net, bits));
		for (unsigned i = 0; i < 128; i++) {
			struct addr a = net;

			a.bytes[i / 8] ^= (uint8_t)(0x80 >> i % 8);
			ck_assert_int_eq(addr_in_prefix(&a, &net, bits),
					 i >= bits);
		}
	}
}

static int find_at(const char *path, const struct sockaddr *sa, bool any_port,
		   struct export_tree **out)
{
	struct export_opts opts;
	const char *rest;

	return export_find_path(table, path, BY_SYS(sa, any_port), out, &opts,
				&rest);
}

TEST(secure_exports_refuse_high_ports_but_not_rdma)
{
	struct sockaddr_storage ss = peer("192.0.2.1", 1024);
	struct sockaddr *sa = (struct sockaddr *)&ss;
	uint64_t count = stats_sum_by_name("export_bad_port");
	struct export_tree *e;

	publish("/a 192.0.2.1\n/b 192.0.2.1(insecure)\n");
	ck_assert_int_eq(find_at("/a", sa, false, &e), -EACCES);
	ck_assert_uint_eq(stats_sum_by_name("export_bad_port"), count + 1);
	ck_assert_int_eq(find_at("/a", sa, true, &e), 0);
	export_put(e);
	ck_assert_int_eq(find_at("/b", sa, false, &e), 0);
	export_put(e);
	ss = peer("192.0.2.1", 1023);
	ck_assert_int_eq(find_at("/a", sa, false, &e), 0);
	export_put(e);
}

TEST(a_peer_without_an_address_is_only_everyone)
{
	struct sockaddr sa = { .sa_family = AF_UNSPEC };
	struct export_tree *e;

	publish("/a *\n/b 0.0.0.0/0 ::/0 *.x h @g\n");
	ck_assert_int_eq(find_at("/a", &sa, false, &e), 0);
	export_put(e);
	ck_assert_int_eq(find_at("/b", &sa, false, &e), -EACCES);
	export_resolve(table, &sa);
}

static const struct {
	const char *ask;
	const char *export;	/* NULL: none */
	const char *rest;
} paths[] = {
	{ "/a", "/a", "" },
	{ "/a/", "/a", "" },
	{ "//a//", "/a", "" },
	{ "/./a/.", "/a", "" },
	{ "/a/b", "/a/b", "" },
	{ "/a/b/c/d", "/a/b", "c/d" },
	{ "/a//b/.//c/", "/a/b", "c/" },
	{ "/a/bc", "/a", "bc" },
	{ "/a/.b", "/a", ".b" },
	{ "/a/..", "/a", ".." },
	{ "/ab", NULL, NULL },
	{ "/", NULL, NULL },
	{ "", NULL, NULL },
	{ "a", NULL, NULL },
	{ "/b/a", NULL, NULL },
	{ "/../a", NULL, NULL },
};

TEST_LOOP(the_longest_path_is_the_one, 0, ARRAY_SIZE(paths))
{
	struct sockaddr_storage ss = peer("192.0.2.1", 1000);
	struct export_opts opts;
	struct export_tree *e;
	const char *rest;
	int err;

	publish("/a *\n/a/b *\n/c *\n");
	err = export_find_path(table, paths[_i].ask, BY_SYS(&ss, false), &e,
			       &opts, &rest);
	if (!paths[_i].export) {
		ck_assert_int_eq(err, -ENOENT);
		return;
	}
	ck_assert_int_eq(err, 0);
	ck_assert_str_eq(e->path, paths[_i].export);
	ck_assert_str_eq(rest, paths[_i].rest);
	export_put(e);
}

TEST(an_inner_export_does_not_fall_back_to_the_outer)
{
	struct export_opts opts;

	publish("/ *\n/a 192.0.2.1\n");
	ck_assert_int_eq(ask("/a/x", "192.0.2.2", &opts), -EACCES);
	ck_assert_int_eq(ask("/b", "192.0.2.2", &opts), 0);
}

static struct export_tree *get(const char *path)
{
	struct sockaddr_storage ss = peer("192.0.2.1", 1000);
	struct export_opts opts;
	struct export_tree *e;
	const char *rest;

	ck_assert_int_eq(export_find_path(table, path, BY_SYS(&ss, false), &e,
					  &opts, &rest), 0);
	return e;
}

static int find_id(uint32_t id, struct export_tree **out)
{
	struct sockaddr_storage ss = peer("192.0.2.1", 1000);
	struct export_opts opts;

	return export_find(table, id, BY_SYS(&ss, false), out, &opts);
}

TEST(ids_are_the_same_in_every_table)
{
	struct export_tree *e, *again;
	uint32_t a, b;

	publish("/a *\n/b *\n/c *(fsid=42)\n");
	e = get("/a");
	a = e->id;
	ck_assert_int_eq(find_id(a, &again), 0);
	ck_assert_ptr_eq(again, e);
	export_put(again);
	export_put(e);
	e = get("/b");
	b = e->id;
	export_put(e);
	ck_assert_uint_ne(a, b);
	/* No fsid=N is like that. */
	ck_assert_uint_eq(a & b & 0x80000000, 0x80000000);
	e = get("/c");
	ck_assert_uint_eq(e->id, 42);
	ck_assert_uint_eq(e->fs->fsid, 42);
	export_put(e);
	ck_assert_int_eq(find_id(43, &e), -ESTALE);
	table_end();
	table_begin();
	ck_assert_int_eq(find_id(a, &e), -ESTALE);
	publish("/x *\n/b *\n/a *\n");
	e = get("/a");
	ck_assert_uint_eq(e->id, a);
	export_put(e);
	e = get("/b");
	ck_assert_uint_eq(e->id, b);
	export_put(e);
}

/* True if @path has a file "mark"; with @make, makes it. */
static bool marked(const char *path, bool make)
{
	struct vfs_cred root = { 0 };
	struct vfs_op who = { .cred = &root };
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	struct vfs_name name = { "mark", 4 };
	struct export_tree *e = get(path);
	struct vfs_node *dir, *n;
	int err;

	ck_assert_int_eq(e->fs->ops->root(e->fs, &dir), 0);
	if (make)
		err = GET(out, n, e->fs->ops->create, &who, dir, .name = name,
			  .create = &how);
	else
		err = GET(out, n, e->fs->ops->lookup, &who, dir, .name = name);
	if (err == 0)
		vfs_node_put(n);
	vfs_node_put(dir);
	export_put(e);
	return err == 0;
}

TEST(exports_kept_in_the_table_stay_mounted)
{
	struct export_opts opts;

	publish("/a *\n/b *\n");
	ck_assert(marked("/a", true));
	publish("/c *\n/a 192.0.2.0/24(rw)\n");
	ck_assert(marked("/a", false));
	ck_assert_int_eq(ask("/b", "192.0.2.1", &opts), -ENOENT);
	ck_assert_int_eq(ask("/a", "10.0.0.1", &opts), -EACCES);
	publish("/c *\n");
	publish("/a *\n");
	ck_assert(!marked("/a", false));
}

static unsigned attached, released;

static void attach(void *arg, struct export_tree *e)
{
	attached++;
	e->user = arg;
}

static void release(void *arg, struct export_tree *e)
{
	ck_assert_ptr_eq(e->user, arg);
	released++;
}

static void has_upper(void *arg, struct export_tree *e)
{
	ck_assert_ptr_eq(e->user, arg);
}

TEST(an_export_in_use_outlives_the_table_that_named_it)
{
	struct export_opts opts;
	struct export_tree *e;

	table->config.attach = attach;
	table->config.release = release;
	table->config.arg = &released;
	publish("/a *\n");
	publish("/a *(rw)\n");
	ck_assert_uint_eq(attached, 1);
	export_each(table, has_upper, &released);
	ck_assert(marked("/a", true));
	e = get("/a");
	publish("");
	ck_assert_int_eq(ask("/a", "192.0.2.1", &opts), -ENOENT);
	ck_assert_uint_eq(released, 0);
	/* It is the same one when it comes back meanwhile. */
	publish("/a *\n");
	ck_assert(marked("/a", false));
	publish("");
	export_put(e);
	ck_assert_uint_eq(released, 1);
}

static int publish_fails(const char *text, char **err)
{
	struct export_set *set = NULL;

	if (parse(text, &set, err) < 0)
		ck_abort_msg("%s", *err);
	return export_table_publish(table, set, err);
}

static atomic_int mount_error;

static int mount_fails(const struct vfs_config *config, struct vfs_fs **out)
{
	return mount_error == -EINVAL ? vfs_fail(config, "no %s", "disk") :
					mount_error;
}

TEST(a_table_that_cannot_be_mounted_changes_nothing)
{
	static const struct vfs_ops broken = { .name = "broken",
					       .mount = mount_fails };
	static const struct {
		int err;
		const char *why;
	} cases[] = {
		{ -ENOENT, ": there is no such directory" },
		{ -ENOTDIR, ": it is not a directory" },
		{ -EACCES, ": this server may not open it" },
		{ -EIO, ": Input/output error" },
		{ -EINVAL, ": no disk" },
	};
	char want[200], *err;

	publish("/a *\n");
	ck_assert(marked("/a", true));
	table->backend = &broken;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		mount_error = cases[i].err;
		ck_assert_int_eq(publish_fails("mem:/a *\nmem:/b *\n/c *\n",
					       &err), cases[i].err);
		snprintf(want, sizeof(want),
			 "exports:3: '/c' can't be exported%s",
			 cases[i].why);
		ck_assert_str_eq(err, want);
		free(err);
		ck_assert(marked("/a", false));
	}
}

/* A backend that hangs where a test says so. */
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool mount_hangs, look_hangs, unmount_hangs;
static atomic_uint hanging, failures;
static struct vfs_ops slow;		/* outlives its exports */

static void use_disk(atomic_bool *hangs)
{
	if (!atomic_load(hangs))
		return;
	atomic_fetch_add(&hanging, 1);
	mutex_lock(&disk);
	mutex_unlock(&disk);
	atomic_fetch_sub(&hanging, 1);
}

static int slow_mount(const struct vfs_config *config, struct vfs_fs **out)
{
	if (strcmp(config->path, "/slow") == 0) {
		use_disk(&mount_hangs);
		if (mount_error) {
			atomic_fetch_add(&failures, 1);
			return mount_error;
		}
	}
	return mem_vfs_ops.mount(config, out);
}

static bool slow_is_at(struct vfs_fs *fs, const char *path)
{
	if (strcmp(path, "/slow") == 0)
		use_disk(&look_hangs);
	return true;
}

static void slow_unmount(struct vfs_fs *fs)
{
	use_disk(&unmount_hangs);
	mem_vfs_ops.unmount(fs);
}

static void hang(atomic_bool *where)
{
	slow = mem_vfs_ops;
	slow.mount = slow_mount;
	slow.is_at = slow_is_at;
	slow.unmount = slow_unmount;
	table->backend = &slow;
	table->retry_s = 1;
	mutex_lock(&disk);
	atomic_store(where, true);
}

static void go_on(atomic_bool *where)
{
	atomic_store(where, false);
	mutex_unlock(&disk);
}

TEST(an_export_that_is_taken_out_is_not_waited_for)
{
	struct export_opts opts;

	hang(&unmount_hangs);
	publish("/slow *\n/b *\n");
	ck_assert(marked("/slow", true));
	publish("/b *\n");
	EVENTUALLY(atomic_load(&hanging) == 1);
	publish("/b *(rw)\n/c *\n");
	ck_assert_int_eq(ask("/b", "192.0.2.1", &opts), 0);
	ck_assert(opts.rw);
	ck_assert_int_eq(ask("/c", "192.0.2.1", &opts), 0);
	go_on(&unmount_hangs);
}

/* A directory is never mounted twice. */
TEST(an_export_comes_back_after_its_unmount)
{
	struct export_opts opts;

	hang(&unmount_hangs);
	publish("/slow *\n");
	ck_assert(marked("/slow", true));
	publish("");
	EVENTUALLY(atomic_load(&hanging) == 1);
	table->patience_s = 1;
	publish("/slow *\n/b *\n");
	ck_assert_int_eq(ask("/b", "192.0.2.1", &opts), 0);
	/* For -ETIMEDOUT clients come again. */
	ck_assert_int_eq(ask("/slow", "192.0.2.1", &opts), -ETIMEDOUT);
	/* Nor is it waited for again; and it is the same that waits. */
	table->patience_s = 3600;
	publish("/slow *\n/b *\n/c *\n");
	ck_assert_int_eq(ask("/c", "192.0.2.1", &opts), 0);
	publish("/b *\n/c *\n");
	publish("/slow *\n/b *\n/c *\n");
	ck_assert_int_eq(ask("/slow", "192.0.2.1", &opts), -ETIMEDOUT);
	ck_assert_uint_eq(atomic_load(&hanging), 1);
	go_on(&unmount_hangs);
	EVENTUALLY(ask("/slow", "192.0.2.1", &opts) == 0);
	ck_assert(!marked("/slow", false));
}

static void count_away(void *arg, const struct export_rule *rule)
{
	*(unsigned *)arg += rule->is_away;
}

TEST(a_mount_that_hangs_keeps_no_other_export)
{
	struct export_opts opts;
	unsigned away = 0;

	hang(&mount_hangs);
	mount_error = 0;
	table->patience_s = 1;
	publish("/slow *\n");
	table->patience_s = 3600;
	publish("/slow *\n/b *\n");
	ck_assert_int_eq(ask("/b", "192.0.2.1", &opts), 0);
	ck_assert_int_eq(ask("/slow", "192.0.2.1", &opts), -ETIMEDOUT);
	export_walk_rules(table, count_away, &away);
	ck_assert_uint_eq(away, 1);
	go_on(&mount_hangs);
	EVENTUALLY(ask("/slow", "192.0.2.1", &opts) == 0);
	export_walk_rules(table, count_away, &away);
	ck_assert_uint_eq(away, 1);
}

/* Its failure comes too late to refuse the table. */
TEST(a_mount_that_hangs_and_fails_is_tried_until_it_works)
{
	struct export_opts opts;

	hang(&mount_hangs);
	mount_error = -EIO;
	table->patience_s = 1;
	publish("/slow *\n/b *\n");
	EVENTUALLY(atomic_load(&hanging) == 1);
	go_on(&mount_hangs);
	EVENTUALLY(atomic_load(&failures) > 1);
	ck_assert_int_eq(ask("/slow", "192.0.2.1", &opts), -ETIMEDOUT);
	/* A new table does not wait for the mount either: its rules could mend
	 * it. */
	table->patience_s = 3600;
	publish("/slow *(fsid=7)\n/c *\n");
	ck_assert_int_eq(ask("/c", "192.0.2.1", &opts), 0);
	table->patience_s = 1;
	mount_error = 0;
	EVENTUALLY(ask("/slow", "192.0.2.1", &opts) == 0);
}

TEST(a_mount_that_fails_late_is_not_tried_when_nobody_wants_it)
{
	unsigned n;

	hang(&mount_hangs);
	mount_error = -EIO;
	table->patience_s = 1;
	publish("/slow *\n/b *\n");
	go_on(&mount_hangs);
	EVENTUALLY(atomic_load(&failures) > 0);
	publish("/b *\n");
	n = atomic_load(&failures);
	ck_assert(HOLDS_FOR(1500, atomic_load(&failures) <= n + 1));
}

TEST(an_export_that_hangs_and_stays_keeps_no_other)
{
	struct export_opts opts;

	hang(&look_hangs);
	publish("/slow *\n");
	table->patience_s = 1;
	publish("/slow *(rw)\n/b *\n");
	ck_assert_int_eq(ask("/b", "192.0.2.1", &opts), 0);
	ck_assert_int_eq(ask("/slow", "192.0.2.1", &opts), 0);
	ck_assert(opts.rw);
	EVENTUALLY(atomic_load(&hanging) == 1);
	table->patience_s = 3600;
	publish("/slow *\n/c *\n");
	ck_assert_int_eq(ask("/c", "192.0.2.1", &opts), 0);
	go_on(&look_hangs);
}

TEST(ids_in_clients_handles_can_not_change)
{
	char *err;

	publish("/a *\n/b *(fsid=3)\n");
	ck_assert_int_eq(publish_fails("/a *(fsid=1)\n", &err), -EINVAL);
	ck_assert_str_eq(err, "exports:1: '/a' is exported now with another "
			 "fsid=; take it out first, or restart");
	free(err);
	ck_assert_int_eq(publish_fails("/a ::1\n/b *(fsid=3)\n/a *(fsid=1)\n",
				       &err), -EINVAL);
	ck_assert_ptr_eq(strstr(err, "exports:3: '/a'"), err);
	free(err);
	ck_assert_int_eq(publish_fails("/b *\n", &err), -EINVAL);
	free(err);
	ck_assert_int_eq(publish_fails("mem,size=1m:/a *\n", &err), -EINVAL);
	ck_assert_str_eq(err, "exports:1: '/a' is exported now as another "
			 "file system or with other options; take it out "
			 "first, or restart");
	free(err);
	publish("");
	publish("mem,size=1m:/a *(fsid=1)\n");
}

#define LOOKUPS	20000

static _Atomic bool stop;

static void look(void *arg)
{
	static const char *const addrs[] = { "192.0.2.1", "192.0.2.2",
					     "192.0.2.7", "10.0.0.1" };
	unsigned *faults = arg;

	for (unsigned i = 0; i < LOOKUPS && !stop; i++) {
		struct sockaddr_storage ss = peer(addrs[i % 4], 1000);
		struct sockaddr *sa = (struct sockaddr *)&ss;
		struct export_opts opts;
		struct export_tree *e;
		const char *rest;
		int err = export_find_path(table, "/a/x", BY_SYS(sa, false), &e,
					   &opts, &rest);

		if (err == -EAGAIN) {
			export_resolve(table, sa);
			continue;
		}
		if (err == -ENOENT || err == -EACCES)
			continue;
		if (err != 0 || strcmp(e->path, "/a") != 0 ||
		    e->fs->ops != &mem_vfs_ops)
			++*faults;
		else
			export_put(e);
	}
}

TEST(tables_change_under_those_who_look)
{
	pthread_t threads[3];
	unsigned faults[3] = { 0 };

	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(thread_start(&threads[i], "look", look,
					      &faults[i]), 0);
	for (unsigned i = 0; i < 60; i++) {
		publish("/a *.example @trusted\n/b *\n");
		publish("/b *\n/a h1 h2\n");
		if (i % 3 == 0)
			publish("/b *\n");
	}
	stop = true;
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_uint_eq(faults[i], 0);
	}
}
