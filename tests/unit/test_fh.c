/* SPDX-License-Identifier: BSD-2-Clause */
/* Filehandles and their key; squashing. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exports/export_priv.h"
#include "lib/stats.h"
#include "lib/util.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/runner.h"

#define KEY	"filehandle.key"

static struct vfs_fs a_tree;
static struct export_tree an_export = { .id = 0x80c0ffee, .fs = &a_tree };

static struct vfs_handle handle(uint32_t len)
{
	struct vfs_handle h = { .len = len };

	for (uint32_t i = 0; i < len; i++)
		h.data[i] = (uint8_t)(i * 7 + 1);
	return h;
}

/* For a client whose rule has no fsid=. */
static void make_fh(const struct export_tree *e, const struct vfs_handle *h,
		    struct nfs3_fh *fh)
{
	export_fh_make(table, e, &(struct export_opts){ 0 }, h, fh);
}

static int parse_fh(const struct nfs3_fh *fh, uint32_t len)
{
	struct vfs_handle h;
	uint32_t id;

	return export_fh_parse(table, fh->data, len, &id, &h);
}

TEST_CASE(.setup = table_begin, .teardown = table_end);

TEST(a_filehandle_is_read_as_it_was_made)
{
	for (uint32_t len = 0; len <= VFS_HANDLE_MAX; len++) {
		struct vfs_handle h = handle(len), back;
		struct nfs3_fh fh;
		uint32_t id;

		make_fh(&an_export, &h, &fh);
		ck_assert_uint_le(fh.len, NFS3_FHSIZE);
		ck_assert_uint_eq(fh.len % 4, 0);
		ck_assert_int_eq(export_fh_parse(table, fh.data, fh.len, &id,
						 &back), 0);
		ck_assert_uint_eq(id, an_export.id);
		ck_assert_uint_eq(back.len, len);
		ck_assert_int_eq(memcmp(back.data, h.data, len), 0);
	}
}

TEST(every_changed_bit_is_refused)
{
	struct vfs_handle h = handle(13);
	uint64_t count = stats_sum_by_name("fh_forged");
	struct nfs3_fh fh;

	make_fh(&an_export, &h, &fh);
	for (uint32_t bit = 0; bit < fh.len * 8; bit++) {
		fh.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_eq(parse_fh(&fh, fh.len), -EBADMSG);
		fh.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	ck_assert_uint_eq(stats_sum_by_name("fh_forged"),
			  count + fh.len * 8);
	ck_assert_int_eq(parse_fh(&fh, fh.len), 0);
}

TEST(every_other_length_is_refused)
{
	struct vfs_handle h = handle(20);
	struct nfs3_fh fh;

	make_fh(&an_export, &h, &fh);
	for (uint32_t len = 0; len <= NFS3_FHSIZE; len++)
		ck_assert_int_eq(parse_fh(&fh, len),
				 len == fh.len ? 0 : -EBADMSG);
	ck_assert_int_eq(parse_fh(&fh, NFS3_FHSIZE + 1), -EBADMSG);
}

/* No client can turn a handle of one export into one of another. */
TEST(handles_do_not_move_between_exports)
{
	struct export_tree other = { .id = 0x80c0ffef, .fs = &a_tree };
	struct vfs_handle h = handle(12);
	struct nfs3_fh a, b;

	make_fh(&an_export, &h, &a);
	make_fh(&other, &h, &b);
	memcpy(a.data + 4, b.data + 4, 4);
	ck_assert_int_eq(parse_fh(&a, a.len), -EBADMSG);
	memcpy(a.data + a.len - 8, b.data + b.len - 8, 8);
	ck_assert_int_eq(parse_fh(&a, a.len), 0);	/* it is b now */
	ck_assert_int_eq(memcmp(a.data, b.data, a.len), 0);
}

TEST(another_server_without_the_key_refuses)
{
	struct vfs_handle h = handle(12);
	struct nfs3_fh fh;

	make_fh(&an_export, &h, &fh);
	table_end();
	table_begin();
	ck_assert_int_eq(parse_fh(&fh, fh.len), -EBADMSG);
}

/* ---- a key of the tree's own */

static const uint8_t shared_key[VFS_HANDLE_KEY] = "fifteen letters";
static const uint8_t other_key[VFS_HANDLE_KEY] = "fifteen of them";

/* A mount that takes its time, of a tree that has a key. */
static sem_t may_mount;

static int mount_late(const struct vfs_config *config, struct vfs_fs **out)
{
	int err;

	while (sem_wait(&may_mount) < 0)
		;
	err = mem_vfs_ops.mount(config, out);
	if (err == 0)
		(*out)->handle_key = shared_key;
	return err;
}

/* Borrowed from the table. */
static struct export_tree *export_at(const char *path)
{
	struct sockaddr_storage from = peer("192.0.2.1", 1000);
	const struct sockaddr *sa = (const struct sockaddr *)&from;
	struct export_opts opts;
	struct export_tree *e;
	const char *rest;

	ck_assert_int_eq(export_find_path(table, path, BY_SYS(sa, false), &e,
					  &opts, &rest), 0);
	export_put(e);
	return e;
}

/* Gives the tree of "/shared" a key, as its backend's mount would. */
static struct export_tree *share(const uint8_t *key)
{
	struct export_tree *e;

	publish("mem:/shared *\nmem:/b *\n");
	e = export_at("/shared");
	e->fs->handle_key = key;
	return e;
}

TEST(servers_of_a_tree_with_a_key_take_each_others_handles)
{
	struct vfs_handle h = handle(20);
	struct nfs3_fh here, there;

	make_fh(share(shared_key), &h, &here);
	table_end();
	table_begin();
	make_fh(share(shared_key), &h, &there);
	ck_assert_uint_eq(here.len, there.len);
	ck_assert_int_eq(memcmp(here.data, there.data, here.len), 0);
	ck_assert_int_eq(parse_fh(&here, here.len), 0);
}

TEST(every_changed_bit_of_a_handle_of_a_tree_is_refused)
{
	struct vfs_handle h = handle(13);
	struct nfs3_fh fh;

	make_fh(share(shared_key), &h, &fh);
	for (uint32_t bit = 0; bit < fh.len * 8; bit++) {
		bool in_id = bit / 8 >= 4 && bit / 8 < 8;

		fh.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		/* No export has that number: no key to look with. */
		ck_assert_int_eq(parse_fh(&fh, fh.len),
				 in_id ? -ESTALE : -EBADMSG);
		fh.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	ck_assert_int_eq(parse_fh(&fh, fh.len), 0);
}

TEST(another_key_of_the_tree_refuses_handles_of_the_old_one)
{
	struct vfs_handle h = handle(13);
	struct nfs3_fh fh;

	make_fh(share(shared_key), &h, &fh);
	share(other_key);
	ck_assert_int_eq(parse_fh(&fh, fh.len), -EBADMSG);
	share(NULL);
	ck_assert_int_eq(parse_fh(&fh, fh.len), -EBADMSG);
}

/* The key of one tree is good for no handle of another. */
TEST(a_key_of_a_tree_makes_handles_of_that_tree_alone)
{
	struct export_tree *e = share(shared_key);
	struct vfs_handle h = handle(13);
	struct nfs3_fh fh;
	struct export_tree forged = { .fs = e->fs, .id = export_at("/b")->id };

	make_fh(&forged, &h, &fh);
	ck_assert_int_eq(parse_fh(&fh, fh.len), -EBADMSG);
}

TEST(a_handle_of_a_tree_that_is_not_mounted_yet_is_one_for_later)
{
	static struct vfs_ops late;
	struct vfs_handle h = handle(13);
	struct nfs3_fh fh;

	make_fh(share(shared_key), &h, &fh);
	table_end();
	table_begin();
	late = mem_vfs_ops;
	late.mount = mount_late;
	table->backend = &late;
	table->patience_s = 0;
	publish("/shared *\n");
	ck_assert_int_eq(parse_fh(&fh, fh.len), -ETIMEDOUT);
	sem_post(&may_mount);
	EVENTUALLY(parse_fh(&fh, fh.len) == 0);
}

static char dir[] = "/tmp/gannet-test-fh-XXXXXX";

static void state_begin(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static int key_of(uint8_t key[EXPORT_KEY_LEN])
{
	return export_key_load(dir, key);
}

static const char *in_dir(const char *name)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void state_end(void)
{
	unlink(in_dir(KEY));
	ck_assert_int_eq(rmdir(dir), 0);	/* nothing else was left */
}

TEST_CASE(.setup = state_begin, .teardown = state_end);

TEST(the_key_is_kept_for_this_server_alone)
{
	uint8_t a[EXPORT_KEY_LEN], b[EXPORT_KEY_LEN] = { 0 };
	uint8_t zero[EXPORT_KEY_LEN] = { 0 };
	struct stat st;

	umask(0);
	ck_assert_int_eq(key_of(a), 0);
	ck_assert_int_ne(memcmp(a, zero, sizeof(a)), 0);
	ck_assert_int_eq(stat(in_dir(KEY), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(key_of(b), 0);
	ck_assert_int_eq(memcmp(a, b, sizeof(a)), 0);
}

TEST(without_a_state_directory_keys_differ)
{
	uint8_t a[EXPORT_KEY_LEN], b[EXPORT_KEY_LEN];

	ck_assert_int_eq(export_key_load(NULL, a), 0);
	ck_assert_int_eq(export_key_load(NULL, b), 0);
	ck_assert_int_ne(memcmp(a, b, sizeof(a)), 0);
}

TEST(a_key_that_others_can_read_is_refused)
{
	uint8_t key[EXPORT_KEY_LEN];

	ck_assert_int_eq(key_of(key), 0);
	ck_assert_int_eq(chmod(in_dir(KEY), 0640), 0);
	ck_assert_int_eq(key_of(key), -EPERM);
	ck_assert_int_eq(chmod(in_dir(KEY), 0604), 0);
	ck_assert_int_eq(key_of(key), -EPERM);
}

TEST(a_key_of_another_length_or_kind_is_refused)
{
	uint8_t key[EXPORT_KEY_LEN];

	ck_assert_int_eq(key_of(key), 0);
	ck_assert_int_eq(truncate(in_dir(KEY), EXPORT_KEY_LEN - 1), 0);
	ck_assert_int_eq(key_of(key), -EINVAL);
	ck_assert_int_eq(truncate(in_dir(KEY), EXPORT_KEY_LEN + 1), 0);
	ck_assert_int_eq(key_of(key), -EINVAL);
	unlink(in_dir(KEY));
	ck_assert_int_eq(symlink("/dev/zero", in_dir(KEY)), 0);
	ck_assert_int_eq(key_of(key), -ELOOP);
	unlink(in_dir(KEY));
	ck_assert_int_eq(mkfifo(in_dir(KEY), 0600), 0);
	ck_assert_int_eq(key_of(key), -EINVAL);
}

TEST(a_state_directory_must_be_there)
{
	uint8_t key[EXPORT_KEY_LEN];

	ck_assert_int_eq(export_key_load(in_dir("none"), key), -ENOENT);
}

struct start { pthread_t thread; uint8_t key[EXPORT_KEY_LEN]; int err; };

static void load(void *arg)
{
	struct start *s = arg;

	s->err = key_of(s->key);
}

TEST(servers_that_start_at_once_get_one_key)
{
	struct start s[8];

	for (unsigned i = 0; i < 8; i++)
		ck_assert_int_eq(thread_start(&s[i].thread, "start", load,
					      &s[i]), 0);
	for (unsigned i = 0; i < 8; i++) {
		pthread_join(s[i].thread, NULL);
		ck_assert_int_eq(s[i].err, 0);
		ck_assert_int_eq(memcmp(s[i].key, s[0].key,
					EXPORT_KEY_LEN), 0);
	}
}

/* Squashing: the caller, the options, and the user that it acts as. */
static void assert_caller(const struct export_opts *opts,
			  const struct export_claim *who, struct vfs_cred *out)
{
	ck_assert_int_eq(export_caller_counted(table, opts, who, false,
					       out), 0);
}

#define ROOT	0x1		/* root_squash */
#define ALL	0x2		/* all_squash */
#define NONE	0x4		/* AUTH_NONE */
#define NO_ID	UINT32_MAX

static const struct {
	unsigned how;
	uint32_t uid, gid, gids[3];
	uint32_t as_uid, as_gid, as_n, as_gids[3];
} squashes[] = {
	{ ROOT, 1, 2, { 3, 4, 5 }, 1, 2, 3, { 3, 4, 5 } },
	{ ROOT, 0, 0, { 0, 4, 0 }, 70, 71, 3, { 71, 4, 71 } },
	{ ROOT, 0, 2, { 3, 4, 5 }, 70, 2, 3, { 3, 4, 5 } },
	{ ROOT, 1, 0, { 3, 4, 5 }, 1, 71, 3, { 3, 4, 5 } },
	{ 0, 0, 0, { 0, 4, 5 }, 0, 0, 3, { 0, 4, 5 } },
	{ ALL, 1, 2, { 3, 4, 5 }, 70, 71, 0, { 0 } },
	{ ALL, 0, 0, { 0, 4, 5 }, 70, 71, 0, { 0 } },
	{ ALL | ROOT, 0, 0, { 0, 4, 5 }, 70, 71, 0, { 0 } },
	{ NONE, 0, 0, { 0, 4, 5 }, 70, 71, 0, { 0 } },
	{ NONE | ROOT, 1, 2, { 3, 4, 5 }, 70, 71, 0, { 0 } },
	/* -1 is no id: the system would refuse to act as it. */
	{ ROOT, NO_ID, 2, { 3, 4, 5 }, 70, 2, 3, { 3, 4, 5 } },
	{ 0, 1, NO_ID, { 3, 4, 5 }, 1, 71, 3, { 3, 4, 5 } },
	{ 0, NO_ID, NO_ID, { 3, 4, 5 }, 70, 71, 3, { 3, 4, 5 } },
	{ ROOT, 1, 2, { 3, NO_ID, 5 }, 1, 2, 2, { 3, 5 } },
	{ 0, 1, 2, { NO_ID, 0, NO_ID }, 1, 2, 1, { 0 } },
	{ 0, 1, 2, { NO_ID, NO_ID, NO_ID }, 1, 2, 0, { 0 } },
	{ ALL, NO_ID, NO_ID, { NO_ID, 4, 5 }, 70, 71, 0, { 0 } },
};

TEST_CASE(.setup = table_begin, .teardown = table_end);

TEST_LOOP(callers_act_as_the_options_say, 0, ARRAY_SIZE(squashes))
{
	struct export_opts opts = {
		.root_squash = squashes[_i].how & ROOT,
		.all_squash = squashes[_i].how & ALL,
		.anonuid = 70,
		.anongid = 71,
	};
	const struct export_claim who = {
		.none = squashes[_i].how & NONE, .uid = squashes[_i].uid,
		.gid = squashes[_i].gid, .ngids = 3, .gids = squashes[_i].gids,
	};
	struct vfs_cred cred;

	memset(&cred, 0xff, sizeof(cred));
	assert_caller(&opts, &who, &cred);
	ck_assert_uint_eq(cred.uid, squashes[_i].as_uid);
	ck_assert_uint_eq(cred.gid, squashes[_i].as_gid);
	ck_assert_uint_eq(cred.ngids, squashes[_i].as_n);
	for (uint32_t i = 0; i < cred.ngids; i++)
		ck_assert_uint_eq(cred.gids[i], squashes[_i].as_gids[i]);
	export_caller_put(&cred);
}

/* Backends remember callers by it. */
TEST(lists_of_groups_have_a_number_each)
{
	const struct export_opts opts = { .root_squash = true, .anongid = 9 };
	uint32_t gids[3] = { 0, 9, 1 };
	struct export_claim who = { .ngids = 3, .gids = gids };
	struct vfs_cred a, b;

	assert_caller(&opts, &who, &a);
	gids[0] = 9;
	assert_caller(&opts, &who, &b);
	ck_assert_uint_eq(a.gids_id, b.gids_id);
	export_caller_put(&b);
	for (uint32_t i = 0; i < 20000; i++) {
		gids[2] = 2 + i;
		assert_caller(&opts, &who, &b);
		ck_assert_uint_ne(a.gids_id, b.gids_id);
		ck_assert_uint_eq(b.gids[2], 2 + i);
		export_caller_put(&b);
	}
	/* Pushed out of the table, it is the call's as long as that counts. */
	ck_assert_uint_eq(a.gids[2], 1);
	export_caller_put(&a);
	who.ngids = 0;
	assert_caller(&opts, &who, &a);
	ck_assert_uint_eq(a.gids_id, 0);
	export_caller_put(&a);
}
