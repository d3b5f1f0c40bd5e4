/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of grace periods and records of the CephFS backend, in the cluster that
 * CEPH_CONF names (tests/ceph/run): one server, and others that are played.
 */
#include "tests/ceph/own_fixture.h"

TEST_CASE(.setup = begin, .teardown = end, .timeout = 120);

/* ---- the grace period of all servers */

static int set_lock(struct cfs_client *c, bool reclaim)
{
	int err = cfs_grace_set_begin(c, reclaim);

	if (err == 0)
		cfs_grace_set_end(c);
	return err;
}

static int notify(struct cfs_fs *fs, const char *text)
{
	return rados_notify2(fs->store.io, fs->grace.object, text,
			     (int)strlen(text), 20000, NULL, NULL);
}

TEST(a_grace_period_holds_when_its_server_has_the_answer)
{
	struct cfs_fs *fs = cfs_fs(vt.fs);

	ck_assert_int_eq(notify(fs, ""), 0);
	ck_assert_int_eq(notify(fs, "grace"), 0);
	ck_assert_int_eq(notify(fs, "grace -1 and more than a record has"), 0);
	ck_assert_int_eq(set_lock(&fs->client[0], false), 0);
	ck_assert_int_eq(notify(fs, "grace 3000"), 0);
	ck_assert_int_eq(set_lock(&fs->client[0], false), -ETIMEDOUT);
	/* No client here has to reclaim. */
	ck_assert_int_eq(set_lock(&fs->client[0], true), -ENOLCK);
	/* A notice of a shorter period does not end the longer one. */
	ck_assert_int_eq(notify(fs, "grace 0"), 0);
	ck_assert_int_eq(set_lock(&fs->client[0], false), -ETIMEDOUT);
}

TEST(an_owner_gets_back_what_it_had_also_in_a_grace_period)
{
	struct vfs_locker mine = { .id = 1 }, another = { .id = 2 };
	struct vfs_lock l = { .how = VFS_LOCK_SET, .locker = &mine, .len = 10,
			      .exclusive = true };
	struct vfs_node *f = vt_file(vt.root, "f");

	ck_assert_int_eq(DO(vt.ops->lock, &vt.who, f, .lock = &l), 0);
	ck_assert_int_eq(notify(cfs_fs(vt.fs), "grace 3000"), 0);
	l.exclusive = false;
	ck_assert_int_eq(DO(vt.ops->lock, &vt.who, f, .lock = &l), -ETIMEDOUT);
	l.back = true;
	ck_assert_int_eq(DO(vt.ops->lock, &vt.who, f, .lock = &l), 0);
	/* Not one whose locks have gone with a session. */
	l.locker = &another;
	ck_assert_int_eq(DO(vt.ops->lock, &vt.who, f, .lock = &l), -ETIMEDOUT);
	l = (struct vfs_lock){ .how = VFS_LOCK_RELEASE, .locker = &mine };
	ck_assert_int_eq(DO(vt.ops->lock, &vt.who, f, .lock = &l), 0);
	vfs_node_put(f);
}

/* True if the record in the cluster is of this process, and begins so. */
static bool record_is(struct cfs_client *c, const char *want)
{
	struct cfs_record r;

	return cfs_record_get(c->fs, c->name, &r) == 0 &&
	       r.process == cfs_process() &&
	       strncmp(r.text, want, strlen(want)) == 0;
}

TEST(a_record_tells_of_locks_until_none_is_left)
{
	struct cfs_client *c = &cfs_fs(vt.fs)->client[0];

	ck_assert(record_is(c, "live"));
	atomic_store(&c->lockers, 1);
	ck_assert_int_eq(set_lock(c, false), 0);
	ck_assert(record_is(c, "held"));
	cfs_grace_tick(c->fs);
	ck_assert(record_is(c, "held"));
	atomic_store(&c->lockers, 0);
	cfs_grace_tick(c->fs);
	ck_assert(record_is(c, "live"));
}

/* The address by which the cluster knows the watch's connection. */
static void address_of(struct cfs_fs *fs, char out[128])
{
	char *addrs = NULL;

	mutex_lock(&fs->grace.store);
	if (!fs->store.open || rados_getaddrs(fs->store.cluster, &addrs) < 0)
		addrs = NULL;
	snprintf(out, 128, "%s", addrs ? addrs : "");
	free(addrs);
	mutex_unlock(&fs->grace.store);
}

static bool has_moved(struct cfs_fs *fs, const char *from)
{
	char now[128];

	address_of(fs, now);
	return *now && strcmp(now, from) != 0;
}

TEST(a_server_that_can_not_be_told_gives_no_locks)
{
	struct cfs_fs *fs = cfs_fs(vt.fs);

	mutex_lock(&fs->grace.store);	/* the keeper waits */
	atomic_store(&fs->grace.lost, true);
	ck_assert_int_eq(set_lock(&fs->client[0], false), -ETIMEDOUT);
	ck_assert_int_eq(set_lock(&fs->client[0], true), -ETIMEDOUT);
	mutex_unlock(&fs->grace.store);
	EVENTUALLY(set_lock(&fs->client[0], false) == 0);
}

TEST(a_watch_that_the_cluster_has_ended_begins_anew)
{
	struct cfs_fs *fs = cfs_fs(vt.fs);
	char from[128], command[300];

	address_of(fs, from);
	snprintf(command, sizeof(command), "ceph osd blocklist add '%s' 60 "
		 ">/dev/null 2>&1", from);
	ck_assert_int_eq(system(command), 0);
	EVENTUALLY(has_moved(fs, from));
	ck_assert_int_eq(set_lock(&fs->client[0], false), 0);
	ck_assert_int_eq(notify(fs, "grace 3000"), 0);
	ck_assert_int_eq(set_lock(&fs->client[0], false), -ETIMEDOUT);
}

TEST(a_server_that_was_shut_out_with_locks_begins_a_grace_period)
{
	struct cfs_client *c = &cfs_fs(vt.fs)->client[0];
	struct vfs_node *f = vt_file(vt.root, "f");

	atomic_store(&c->lockers, 1);
	ck_assert_int_eq(set_lock(c, false), 0);
	vt_write(f, 0, "text");
	shut_out(c);
	EVENTUALLY((DO(vt.ops->commit, &vt.who, f),
		    record_is(c, "grace 60")));
	EVENTUALLY(!atomic_load(&c->lost));
	/* Nothing tells locks of the lost session from other clients' newer
	 * ones. */
	atomic_store(&c->grace_until, 1);
	cfs_grace_tick(c->fs);
	ck_assert(record_is(c, "grace 60"));
	atomic_store(&c->lockers, 0);
	cfs_grace_tick(c->fs);
	ck_assert(record_is(c, "live"));
	vfs_node_put(f);
}

static void put_grace(struct cfs_fs *fs, const char *name, uint64_t process,
		      uint64_t since)
{
	struct cfs_record r = { .kind = CFS_GRACE, .process = process,
				.seconds = 60, .since = since };

	strcpy(r.name, name);
	ck_assert_int_eq(cfs_record_put(fs, &r, NULL), 0);
}

TEST(a_record_is_read_as_it_was_written)
{
	static const struct {
		const char *text;
		struct cfs_record r;
	} rows[] = {
		{ "live 00000000000000ff",
		  { .kind = CFS_LIVE, .process = 255 } },
		{ "held 8000000000000000",
		  { .kind = CFS_HELD, .process = 1ull << 63 } },
		{ "taken 50 0000000000000001 1764169353",
		  { .kind = CFS_TAKEN, .process = 1, .seconds = 50,
		    .since = 1764169353 } },
		{ "grace 3600 0000000000000001 1764169353",
		  { .kind = CFS_GRACE, .process = 1, .seconds = 3600,
		    .since = 1764169353 } },
	};
	struct cfs_fs *fs = cfs_fs(vt.fs);

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cfs_record w = rows[i].r, r;

		strcpy(w.name, "a.record");
		ck_assert_int_eq(cfs_record_put(fs, &w, NULL), 0);
		ck_assert_str_eq(w.text, rows[i].text);
		ck_assert_int_eq(cfs_record_get(fs, w.name, &r), 0);
		ck_assert_int_eq(r.kind, w.kind);
		ck_assert_uint_eq(r.process, w.process);
		ck_assert_uint_eq(r.seconds, w.seconds);
		ck_assert_uint_eq(r.since, w.since);
		ck_assert_int_eq(cfs_record_remove(fs, &r), 0);
		ck_assert_int_eq(cfs_record_get(fs, w.name, &r), -ENOENT);
	}
}

static void count_record(struct cfs_fs *fs, const struct cfs_record *r,
			 void *arg)
{
	*(unsigned *)arg += strncmp(r->name, "many", 4) == 0;
}

TEST(every_record_is_found_beside_keys_that_are_none)
{
	struct cfs_fs *fs = cfs_fs(vt.fs);
	struct cfs_record r = { .kind = CFS_LIVE };
	unsigned found = 0;

	ck_assert_int_eq(system("rados -p meta -N gannet setomapval servers "
				"$(printf '%0300d' 0) x"), 0);
	for (unsigned i = 0; i < 250; i++) {
		sprintf(r.name, "many.%u", i);
		ck_assert_int_eq(cfs_record_put(fs, &r, NULL), 0);
	}
	ck_assert_int_eq(cfs_record_each(fs, count_record, &found), 0);
	ck_assert_uint_eq(found, 250);
	ck_assert_int_eq(system("rados -p meta -N gannet rm servers"), 0);
}

TEST(a_record_tells_of_locks_again_while_one_is_set)
{
	struct cfs_client *c = &cfs_fs(vt.fs)->client[0];

	put_grace(c->fs, c->name, cfs_process(), (uint64_t)time(NULL));
	atomic_store(&c->grace_until, 1);
	ck_assert_int_eq(cfs_grace_set_begin(c, false), 0);
	cfs_grace_tick(c->fs);
	ck_assert(record_is(c, "held"));
	cfs_grace_set_end(c);
	cfs_grace_tick(c->fs);
	ck_assert(record_is(c, "live"));
}

TEST(a_server_that_was_shut_out_unnoticed_vouches_for_no_lock)
{
	struct cfs_client *c = &cfs_fs(vt.fs)->client[0];
	struct cfs_record r;

	atomic_store(&c->lockers, 1);
	ck_assert_int_eq(set_lock(c, false), 0);
	shut_out(c);
	cfs_grace_leave(c);
	ck_assert_int_eq(cfs_record_get(c->fs, c->name, &r), 0);
	ck_assert_int_eq(r.kind, CFS_GRACE);
	ck_assert_uint_eq(r.since, 0);
}

TEST(a_server_that_ends_vouches_for_its_locks)
{
	struct cfs_client *c = &cfs_fs(vt.fs)->client[0];
	struct cfs_record r;

	atomic_store(&c->lockers, 1);
	ck_assert_int_eq(set_lock(c, false), 0);
	cfs_grace_leave(c);
	ck_assert_int_eq(cfs_record_get(c->fs, c->name, &r), 0);
	ck_assert_int_eq(r.kind, CFS_GRACE);
	ck_assert_uint_gt(r.since, 0);
	/* The next test's server has no grace period. */
	ck_assert_int_eq(cfs_record_remove(c->fs, &r), 0);
}

static bool has_object(struct cfs_fs *fs, const char *name)
{
	return rados_stat(fs->store.io, name, NULL, NULL) == 0;
}

TEST(records_that_nobody_needs_go)
{
	struct cfs_fs *fs = cfs_fs(vt.fs);
	uint64_t now = (uint64_t)time(NULL);
	char gone[80], lasting[80];
	struct cfs_record r;

	snprintf(gone, sizeof(gone), "%.64s.7", fs->uuid);
	snprintf(lasting, sizeof(lasting), "%.64s.8", fs->uuid);
	/* Of an export that ended in its grace period, and one that did not. */
	put_grace(fs, gone, cfs_process(), now - 100);
	put_grace(fs, lasting, cfs_process(), now);
	/* Of servers that ended, long ago and today. */
	put_grace(fs, "retired.0", 1, now - 100000);
	put_grace(fs, "away.0", 1, now - 10000);
	ck_assert_int_eq(rados_write_full(fs->store.io, "server.retired", "",
					  0), 0);
	/* The first does not keep the others' clients from reclaiming. */
	ck_assert_int_eq(cfs_grace_learn(fs), 0);
	ck_assert_int_eq(set_lock(&fs->client[0], true), 0);
	mutex_lock(&fs->grace.store);
	fs->grace.tidy_at = 1;
	mutex_unlock(&fs->grace.store);
	cfs_grace_tick(fs);
	ck_assert_int_eq(cfs_record_get(fs, gone, &r), -ENOENT);
	ck_assert_int_eq(cfs_record_get(fs, lasting, &r), 0);
	ck_assert_int_eq(cfs_record_remove(fs, &r), 0);
	ck_assert_int_eq(cfs_record_get(fs, "retired.0", &r), -ENOENT);
	ck_assert(!has_object(fs, "server.retired"));
	ck_assert_int_eq(cfs_record_get(fs, "away.0", &r), 0);
	ck_assert_int_eq(cfs_record_remove(fs, &r), 0);
}

TEST(a_server_that_ends_without_locks_leaves_nothing)
{
	struct cfs_options named = { .uuid = "leaves" };
	struct vfs_config config = { .ops = vt.ops, .path = "/",
				     .options = &named };
	struct cfs_fs *fs = cfs_fs(vt.fs);
	struct vfs_fs *second;
	struct cfs_record r;

	ck_assert_int_eq(vt.ops->mount(&config, &second), 0);
	ck_assert(has_object(fs, "server.leaves"));
	vt.ops->unmount(second);
	ck_assert(!has_object(fs, "server.leaves"));
	ck_assert_int_eq(cfs_record_get(fs, "leaves.0", &r), -ENOENT);
	ck_assert(has_object(fs, fs->grace.object));
}

/* ---- servers that take each other's place */

static void put_record(struct cfs_fs *fs, const char *name,
		       enum cfs_record_kind kind, uint64_t process)
{
	struct cfs_record r = { .kind = kind, .process = process };

	strcpy(r.name, name);
	ck_assert_int_eq(cfs_record_put(fs, &r, NULL), 0);
}

TEST(a_server_that_was_succeeded_takes_nothing_back)
{
	struct cfs_client *c = &cfs_fs(vt.fs)->client[0];
	struct vfs_node *f = vt_file(vt.root, "f");
	struct cfs_record r;

	put_record(c->fs, c->name, CFS_HELD, 1);
	/* Recording the server's locks does not hide its successor. */
	atomic_store(&c->lockers, 1);
	ck_assert_int_eq(set_lock(c, false), -ETIMEDOUT);
	shut_out(c);
	EVENTUALLY((DO(vt.ops->commit, &vt.who, f),
		    atomic_load(&c->succeeded)));
	ck_assert_int_eq(cfs_record_get(c->fs, c->name, &r), 0);
	ck_assert_uint_eq(r.process, 1);
	ck_assert_int_eq(r.kind, CFS_HELD);
	ck_assert_int_eq(DO(vt.ops->commit, &vt.who, f), -ETIMEDOUT);
	vfs_node_put(f);
}

/* A libcephfs client with a session of @name; @timeout overrides the default
 * unless it is 0. */
static struct ceph_mount_info *session_of(const char *name, unsigned timeout)
{
	struct ceph_mount_info *cm;

	ck_assert_int_eq(ceph_create(&cm, "gannet"), 0);
	ck_assert_int_eq(ceph_conf_read_file(cm, NULL), 0);
	ck_assert_int_eq(ceph_init(cm), 0);
	ceph_set_uuid(cm, name);
	if (timeout)
		ceph_set_session_timeout(cm, timeout);
	ck_assert_int_eq(ceph_mount(cm, "/"), 0);
	return cm;
}

TEST(sessions_that_no_export_takes_over_are_ended_at_the_start)
{
	struct cfs_fs *fs = cfs_fs(vt.fs);
	struct cfs_client *c = &fs->client[0];
	struct ceph_mount_info *cm[2];
	struct ceph_statx sx;
	struct cfs_record r;
	char name[2][80];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(name[i], sizeof(name[i]), "%.64s.%u", fs->uuid,
			 7 + i);
		cm[i] = session_of(name[i], 0);
		put_record(fs, name[i], i ? CFS_HELD : CFS_LIVE, 1);
	}
	ck_assert_int_eq(cfs_client_end_left_over(fs), 0);
	for (unsigned i = 0; i < 2; i++) {
		EVENTUALLY(ceph_statx(cm[i], dir, &sx, CFS_WANT, 0) ==
			   -ESHUTDOWN);
		ceph_abort_conn(cm[i]);
		ceph_release(cm[i]);
	}
	ck_assert_int_eq(cfs_record_get(fs, name[0], &r), -ENOENT);
	ck_assert_int_eq(cfs_record_get(fs, name[1], &r), 0);
	ck_assert_int_eq(r.kind, CFS_GRACE);
	ck_assert_uint_eq(r.process, cfs_process());
	ck_assert_uint_gt(r.since, 0);
	ck_assert(record_is(c, "live"));
	/* The records are gone when no server needs them. */
	r.since = 1;
	ck_assert_int_eq(cfs_record_put(fs, &r, NULL), 0);
	mutex_lock(&fs->grace.store);
	fs->grace.tidy_at = 1;
	mutex_unlock(&fs->grace.store);
	cfs_grace_tick(fs);
	ck_assert_int_eq(cfs_record_get(fs, name[1], &r), -ENOENT);
	ck_assert(record_is(c, "live"));
}

TEST(a_lock_that_came_too_late_is_known_for_it)
{
	struct cfs_client *c = &cfs_fs(vt.fs)->client[0];
	uint64_t now = runner_now_ms();

	ck_assert_int_eq(cfs_grace_set_begin(c, false), 0);
	ck_assert(!cfs_grace_set_late(c, false, now - 10000));
	atomic_store(&c->fs->grace.until, now + 100000);
	ck_assert(!cfs_grace_set_late(c, false, now));
	ck_assert(cfs_grace_set_late(c, false, now - 10000));
	cfs_grace_set_end(c);
}

/* The metadata server waits until a client takes the session over. */
TEST(locks_outlast_a_metadata_server_if_their_session_does)
{
	struct cfs_fs *fs = cfs_fs(vt.fs);
	struct ceph_mount_info *cm;
	struct cfs_record r;
	char name[80], *why = NULL;
	const struct vfs_config config = { .why = &why };

	snprintf(name, sizeof(name), "%.64s.7", fs->uuid);
	cm = session_of(name, 300);
	put_record(fs, name, CFS_HELD, 1);
	cluster("kill", "mds.a");
	ceph_abort_conn(cm);
	ceph_release(cm);
	cluster("start", "mds.a");
	EVENTUALLY(system("ceph mds stat | grep -q clientreplay") == 0);
	fs->config = &config;
	ck_assert_msg(cfs_client_end_left_over(fs) == 0, "%s", why);
	ck_assert_int_eq(cfs_record_get(fs, name, &r), 0);
	ck_assert_int_eq(r.kind, CFS_GRACE);
	ck_assert_uint_gt(r.since, 0);
	EVENTUALLY(vt_lookup(vt.root, "none") == -ENOENT);
	ck_assert_int_eq(cfs_record_remove(fs, &r), 0);
}

/* Other clients can hold locks that were not reclaimed in that period. */
TEST(a_session_that_outlasts_its_grace_period_proves_nothing)
{
	struct cfs_fs *fs = cfs_fs(vt.fs);
	struct ceph_mount_info *cm;
	struct cfs_record r;
	char name[80];

	snprintf(name, sizeof(name), "%.64s.7", fs->uuid);
	cm = session_of(name, 0);
	put_grace(fs, name, 1, (uint64_t)time(NULL) - 100);
	ck_assert_int_eq(cfs_client_end_left_over(fs), 0);
	ceph_abort_conn(cm);
	ceph_release(cm);
	ck_assert_int_eq(cfs_record_get(fs, name, &r), 0);
	ck_assert_int_eq(r.kind, CFS_GRACE);
	ck_assert_uint_eq(r.since, 0);
	ck_assert_int_eq(cfs_record_remove(fs, &r), 0);
}

static bool is_served(struct ceph_mount_info *cm)
{
	struct ceph_statx sx;

	return ceph_statx(cm, dir, &sx, CFS_WANT, 0) == 0;
}

static void count_all(struct cfs_fs *fs, const struct cfs_record *r, void *arg)
{
	(*(unsigned *)arg)++;
}

TEST(a_check_takes_nothing_from_a_server_that_runs)
{
	struct cfs_fs *fs = cfs_fs(vt.fs);
	struct vfs_config config = { .ops = vt.ops, .check = true };
	struct ceph_mount_info *cm;
	struct vfs_fs *checked;
	struct cfs_record r;
	unsigned before = 0, after = 0;
	char name[80];

	snprintf(name, sizeof(name), "%.64s.7", fs->uuid);
	cm = session_of(name, 0);
	put_record(fs, name, CFS_HELD, 1);
	ck_assert_int_eq(cfs_record_each(fs, count_all, &before), 0);
	ck_assert_int_eq(rados_remove(fs->store.io, "handle-key"), 0);
	setup(&config);
	strcpy(options.uuid, fs->uuid);
	ck_assert_int_eq(vt.ops->mount(&config, &checked), 0);
	ck_assert_uint_eq(checked->fsid, vt.fs->fsid);
	vt.ops->unmount(checked);
	ck_assert(is_served(cm));
	ck_assert_int_eq(cfs_record_get(fs, name, &r), 0);
	ck_assert_uint_eq(r.process, 1);
	ck_assert_int_eq(cfs_record_each(fs, count_all, &after), 0);
	ck_assert_uint_eq(before, after);
	ck_assert_int_eq(rados_stat(fs->store.io, "handle-key", NULL, NULL),
			 -ENOENT);
	ck_assert_int_eq(cfs_record_remove(fs, &r), 0);
	ceph_unmount(cm);
	ceph_release(cm);
}

static void *mount_other(void *arg)
{
	struct vfs_config config = { .ops = vt.ops, .path = "/",
				     .options = arg };
	struct vfs_fs *second;

	ck_assert_int_eq(vt.ops->mount(&config, &second), 0);
	vt.ops->unmount(second);
	return NULL;
}

TEST(a_file_system_without_a_metadata_server_keeps_no_other_waiting)
{
	struct cfs_options first = { .uuid = "one" };
	struct cfs_options second = { .fs = "fs2", .id = "admin",
				      .timeout = 2 };
	char *why = NULL;
	struct vfs_config config = { .ops = vt.ops, .path = "/",
				     .options = &second, .why = &why };
	struct vfs_fs *none;
	pthread_t t;

	ck_assert_int_eq(system("{ ceph fs flag set enable_multiple true &&"
		" ceph osd pool create meta2 1 && ceph osd pool create data2 1"
		" && ceph fs new fs2 meta2 data2; } >/dev/null 2>&1"), 0);
	cluster("kill", "mds.a");
	ck_assert_int_eq(pthread_create(&t, NULL, mount_other, &first), 0);
	/* It has written its record, and waits. */
	EVENTUALLY(cfs_client_is_named("one.0"));
	pause_on_purpose(500000);
	/* No metadata server takes this one, so it can't be mounted either. */
	ck_assert_int_lt(vt.ops->mount(&config, &none), 0);
	ck_assert_ptr_nonnull(strstr(why, "can't mount: "));
	free(why);
	/* The only one is for the first. */
	ck_assert_int_eq(system("{ ceph fs fail fs2 &&"
		" ceph fs rm fs2 --yes-i-really-mean-it; } >/dev/null 2>&1"),
		0);
	cluster("start", "mds.a");
	pthread_join(t, NULL);
}
