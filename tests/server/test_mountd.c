/* SPDX-License-Identifier: BSD-2-Clause */
/* MOUNT versions 1 and 3: RFC 1813 section 5, RFC 1094 appendix A. */
#include "tests/server/nfs_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/stats.h"
#include "tests/server/fake_xprt.h"
#include "tests/server/fault_vfs.h"
#include "tests/unit/runner.h"

#define EXPORTS \
	"/mem 127.0.0.1(rw,insecure,no_root_squash)\n" \
	"/mem/inner 127.0.0.0/8(rw,insecure) 192.0.2.7(ro)\n" \
	"/closed 192.0.2.0/24(rw,insecure)\n" \
	"/squashed 127.0.0.1(rw,insecure,all_squash)\n" \
	"/everyone *(ro,insecure)\n"

static char state_dir[] = "/tmp/gannet-mountd-XXXXXX";
static struct harness_config config;
static struct nfs_client m;		/* speaks MOUNT version 3 */
static nfs_fh3 dir, sub;

static void end_server(void)
{
	nfs_client_close(&m);
	nfs_teardown();
}

static void start_server(void)
{
	nfs_setup_with(&config);
	nfs_client_open(&m, srv.port, MOUNT_PROGRAM, MOUNT_V3, 0);
}

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(state_dir));
	fault_init();
	config.backend = &fault_vfs_ops;
	config.exports = EXPORTS;
	config.state_dir = state_dir;
	start_server();
	dir = nfs_make_dir(top, "dir");
	sub = nfs_make_dir(dir, "sub");
	nfs_make_file(top, "file", "");
	nfs_make_link(top, "link", "dir");
}

static void teardown(void)
{
	char cmd[128];

	end_server();
	snprintf(cmd, sizeof(cmd), "rm -r %s", state_dir);
	ck_assert_int_eq(system(cmd), 0);
}

static nfs_fh3 got;

static int mnt(const char *path)
{
	mountres3_ok *ok;
	mountres3 r;

	ck_assert_int_eq(nfs_try(&m, rpc_mount3_mnt_async,
				 (char *)(uintptr_t)path, &r),
			 RPC_STATUS_SUCCESS);
	ok = &r.mountres3_u.mountinfo;
	if (r.fhs_status == MNT3_OK) {
		ck_assert_uint_eq(ok->auth_flavors.auth_flavors_len, 1);
		ck_assert_int_eq(ok->auth_flavors.auth_flavors_val[0], 1);
		got.data.data_len = ok->fhandle.fhandle3_len;
		got.data.data_val = ok->fhandle.fhandle3_val;
	}
	return r.fhs_status;
}

static void umnt(const char *path)
{
	struct nfs_wait w = { .c = &m };

	ck_assert_int_eq(rpc_mount3_umnt_async(m.rpc, nfs_done,
					       (char *)(uintptr_t)path, &w),
			 0);
	ck_assert_int_eq(nfs_wait(&w), RPC_STATUS_SUCCESS);
}

static void umntall(void)
{
	struct nfs_wait w = { .c = &m };

	ck_assert_int_eq(rpc_mount3_umntall_async(m.rpc, nfs_done, &w), 0);
	ck_assert_int_eq(nfs_wait(&w), RPC_STATUS_SUCCESS);
}

/* libnfs hands over a pointer to the list's head. */
#define get_list(client, fn, list) ({ \
		struct nfs_wait w_ = { .c = (client), .res = (list), \
				       .size = sizeof(*(list)), \
				       .keep = nfs_keeper(list) }; \
		ck_assert_int_eq(fn((client)->rpc, nfs_done, &w_), 0); \
		ck_assert_int_eq(nfs_wait(&w_), RPC_STATUS_SUCCESS); })

static char text[8192];

static const char *dump_text(mountlist list)
{
	size_t n = 0;

	*text = '\0';
	for (; list; list = list->ml_next)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s:%s ",
				      list->ml_hostname, list->ml_directory);
	return text;
}

static const char *dump(void)
{
	mountlist list;

	get_list(&m, rpc_mount3_dump_async, &list);
	return dump_text(list);
}

static const char *exports_text(exports list)
{
	size_t n = 0;

	*text = '\0';
	for (; list; list = list->ex_next) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s(",
				      list->ex_dir);
		for (groups g = list->ex_groups; g; g = g->gr_next)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
					      "%s%s", g->gr_name,
					      g->gr_next ? "," : "");
		n += (size_t)snprintf(text + n, sizeof(text) - n, ") ");
	}
	return text;
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(null_does_nothing)
{
	struct nfs_wait w = { .c = &m };

	ck_assert_int_eq(rpc_mount3_null_async(m.rpc, nfs_done, &w), 0);
	ck_assert_int_eq(nfs_wait(&w), RPC_STATUS_SUCCESS);
}

TEST(an_export_is_mounted_by_its_path)
{
	static const char *const same[] = { "/mem", "/mem/", "/mem/.",
					    "/mem/dir/..", "/mem/../..",
					    "/mem///" };

	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		ck_assert_int_eq(mnt(same[i]), MNT3_OK);
		ck_assert_msg(nfs_same_fh(got, top), "%s", same[i]);
	}
}

TEST(directories_below_an_export_are_mounted)
{
	ck_assert_int_eq(mnt("/mem/dir"), MNT3_OK);
	ck_assert(nfs_same_fh(got, dir));
	ck_assert_int_eq(mnt("/mem//dir/./sub/"), MNT3_OK);
	ck_assert(nfs_same_fh(got, sub));
}

TEST(an_export_within_another_is_its_own)
{
	ck_assert_int_eq(mnt("/mem/inner"), MNT3_OK);
	ck_assert_uint_ne(nfs_attr(got).fsid, nfs_attr(top).fsid);
}

TEST(paths_that_are_no_exports_are_refused)
{
	uint64_t refused = stats_sum_by_name("mount_refused");
	char path[1200];

	ck_assert_int_eq(mnt("/mem/none"), MNT3ERR_NOENT);
	ck_assert_int_eq(mnt("/mem/none/below"), MNT3ERR_NOENT);
	ck_assert_int_eq(mnt("/"), MNT3ERR_NOENT);
	ck_assert_int_eq(mnt("/memory"), MNT3ERR_NOENT);
	ck_assert_int_eq(mnt("/mem/../closed"), MNT3ERR_NOENT);
	ck_assert_int_eq(mnt("/mem/file"), MNT3ERR_NOTDIR);
	ck_assert_int_eq(mnt("/mem/file/x"), MNT3ERR_NOTDIR);
	ck_assert_int_eq(mnt("/closed"), MNT3ERR_ACCES);
	ck_assert_int_eq(mnt("mem"), MNT3ERR_INVAL);
	ck_assert_int_eq(mnt(""), MNT3ERR_INVAL);
	memset(path, 'x', sizeof(path));
	memcpy(path, "/mem/", 5);
	path[5 + 256] = '\0';
	ck_assert_int_eq(mnt(path), MNT3ERR_NAMETOOLONG);
	path[5 + 256] = '/';
	path[1025] = '\0';
	ck_assert_int_eq(mnt(path), MNT3ERR_NAMETOOLONG);
	ck_assert_uint_eq(stats_sum_by_name("mount_refused"), refused + 12);
	ck_assert_str_eq(dump(), "");
}

TEST(symbolic_links_are_followed)
{
	static const struct { const char *text, *path; nfs_fh3 *to; } at[] = {
		{ "dir", "/mem/l0", &dir },
		{ "dir/", "/mem/l1/sub", &sub },
		{ "./dir//sub", "/mem/l2/.", &sub },
		{ "/mem/dir", "/mem/l3/sub", &sub },
		{ "/mem", "/mem/l4/link/../dir", &dir },
		{ "/mem/dir/sub/..", "/mem/l5", &dir },
		{ "l0", "/mem/l6", &dir },	/* to a link */
		{ "link/sub/../sub", "/mem/l7", &sub },
	};
	char name[8];

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		snprintf(name, sizeof(name), "l%zu", i);
		nfs_make_link(top, name, at[i].text);
	}
	nfs_make_link(dir, "up", "../link/sub");
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		ck_assert_msg(mnt(at[i].path) == MNT3_OK, "%s", at[i].path);
		ck_assert_msg(nfs_same_fh(got, *at[i].to), "%s", at[i].path);
	}
	ck_assert_int_eq(mnt("/mem/dir/up"), MNT3_OK);
	ck_assert(nfs_same_fh(got, sub));
}

TEST(no_symbolic_link_leads_out_of_the_exports)
{
	static const struct { const char *text; int status; } to[] = {
		{ "..", MNT3ERR_ACCES },
		{ "../closed", MNT3ERR_ACCES },
		{ "../memory", MNT3ERR_ACCES },
		{ "../..", MNT3ERR_ACCES },
		{ "dir/../..", MNT3ERR_ACCES },
		{ "/", MNT3ERR_ACCES },
		{ "/closed", MNT3ERR_ACCES },
		{ "/mem/../closed", MNT3ERR_ACCES },
		{ "/memory", MNT3ERR_ACCES },
		{ "/etc", MNT3ERR_ACCES },
		{ "none", MNT3ERR_NOENT },
		{ "file", MNT3ERR_NOTDIR },
		{ "file/..", MNT3ERR_NOTDIR },
		{ "l13", MNT3ERR_NOTDIR },	/* itself */
	};
	char name[8], path[16];

	for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
		snprintf(name, sizeof(name), "l%zu", i);
		nfs_make_link(top, name, to[i].text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
		snprintf(path, sizeof(path), "/mem/l%zu", i);
		ck_assert_msg(mnt(path) == to[i].status, "%s", to[i].text);
	}
	/* Nor does the path that goes on after a link. */
	ck_assert_int_eq(mnt("/mem/link/../.."), MNT3ERR_ACCES);
}

/* As in the kernel's server: a client can also mount them by their paths. */
TEST(a_symbolic_link_leads_into_another_export)
{
	nfs_fh3 other;

	ck_assert_int_eq(mnt("/everyone"), MNT3_OK);
	other = got;
	other.data.data_val = malloc(got.data.data_len);
	memcpy(other.data.data_val, got.data.data_val, got.data.data_len);
	nfs_make_link(top, "out", "/everyone");
	nfs_make_link(top, "outer", "out/");
	nfs_make_link(top, "ring", "/everyone/../mem/ring");
	nfs_make_link(top, "aside", "../everyone");
	nfs_make_link(dir, "aside", ".././../.././everyone/");
	nfs_make_link(top, "back", "../mem/dir");
	nfs_make_link(top, "circle", "../mem/circle");
	ck_assert_int_eq(mnt("/mem/out"), MNT3_OK);
	ck_assert(nfs_same_fh(got, other));
	ck_assert_int_eq(mnt("/mem/outer/."), MNT3_OK);
	ck_assert(nfs_same_fh(got, other));
	ck_assert_int_eq(mnt("/mem/out/none"), MNT3ERR_NOENT);
	ck_assert_int_eq(mnt("/mem/out/.."), MNT3ERR_ACCES);
	ck_assert_int_eq(mnt("/mem/ring"), MNT3ERR_NOTDIR);
	ck_assert_int_eq(mnt("/mem/aside"), MNT3_OK);
	ck_assert(nfs_same_fh(got, other));
	ck_assert_int_eq(mnt("/mem/dir/aside"), MNT3_OK);
	ck_assert(nfs_same_fh(got, other));
	ck_assert_int_eq(mnt("/mem/aside/none"), MNT3ERR_NOENT);
	ck_assert_int_eq(mnt("/mem/back"), MNT3_OK);
	ck_assert(nfs_same_fh(got, dir));
	ck_assert_int_eq(mnt("/mem/out/../mem/dir"), MNT3_OK);
	ck_assert(nfs_same_fh(got, dir));
	ck_assert_int_eq(mnt("/mem/circle"), MNT3ERR_NOTDIR);
	free(other.data.data_val);
}

TEST(the_caller_must_be_let_through)
{
	SETATTR3args a = { .object = dir };
	SETATTR3res r;

	a.new_attributes.mode.set_it = 1;
	a.new_attributes.mode.set_mode3_u.mode = 0700;
	nfs_call(&root, setattr, &a, &r);
	ck_assert_int_eq(mnt("/mem/dir/sub"), MNT3_OK);
	rpc_set_uid(m.rpc, USER_UID);
	ck_assert_int_eq(mnt("/mem/dir/sub"), MNT3ERR_ACCES);
	/* The directory itself is in one that lets him through. */
	ck_assert_int_eq(mnt("/mem/dir"), MNT3_OK);
}

TEST(a_backend_that_fails)
{
	fault_set(FAULT_LOOKUP, EIO);
	ck_assert_int_eq(mnt("/mem/dir"), MNT3ERR_IO);
	fault_set(FAULT_LOOKUP, EPERM);
	ck_assert_int_eq(mnt("/mem/dir"), MNT3ERR_PERM);
	fault_set(FAULT_LOOKUP, EOPNOTSUPP);
	ck_assert_int_eq(mnt("/mem/dir"), MNT3ERR_NOTSUPP);
	fault_set(FAULT_LOOKUP, ENOMEM);
	ck_assert_int_eq(mnt("/mem/dir"), MNT3ERR_SERVERFAULT);
	fault_set(FAULT_LOOKUP, 0);
	fault_set(FAULT_GETATTR, ESTALE);
	ck_assert_int_eq(mnt("/mem"), MNT3ERR_NOENT);
}

/* MOUNT has no status for "later": mount(8) gives up at any that it gets, and
 * goes on when it hears nothing. */
TEST(a_path_may_have_1024_bytes)
{
	char path[1026] = "/mem";

	for (int i = 4; i < 1024; i += 2)
		memcpy(path + i, "/.", 2);
	ck_assert_int_eq(mnt(path), MNT3_OK);
	ck_assert(nfs_same_fh(got, top));
	path[1024] = '/';
	ck_assert_int_eq(mnt(path), MNT3ERR_NAMETOOLONG);
}

TEST(an_export_may_be_for_a_host_by_name)
{
	harness_publish(&srv, "/mem localhost(rw,insecure)\n");
	ck_assert_int_eq(mnt("/mem"), MNT3_OK);
	harness_publish(&srv, "/mem nosuchhost.invalid(rw,insecure)\n");
	ck_assert_int_eq(mnt("/mem"), MNT3ERR_ACCES);
}

static uint64_t free_files(void)
{
	FSSTAT3args a = { .fsroot = top };
	FSSTAT3res r;

	nfs_call(&root, fsstat, &a, &r);
	return r.FSSTAT3res_u.resok.ffiles;
}

TEST(no_mount_holds_on_to_a_directory)
{
	RMDIR3args a = { .object = { dir, "sub" } };
	uint64_t before = free_files();
	RMDIR3res r;

	ck_assert_int_eq(mnt("/mem/dir/sub"), MNT3_OK);
	ck_assert_int_eq(mnt("/mem/dir/sub/.."), MNT3_OK);
	ck_assert_int_eq(mnt("/mem/dir/sub/none"), MNT3ERR_NOENT);
	nfs_call(&root, rmdir, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_uint_eq(free_files(), before + 1);
}

TEST(the_list_of_mounts)
{
	mnt("/mem");
	mnt("/mem/dir/");
	mnt("/mem");
	mnt("/everyone");
	ck_assert_str_eq(dump(), "127.0.0.1:/mem 127.0.0.1:/mem/dir "
			 "127.0.0.1:/everyone ");
	umnt("/mem/dir");
	umnt("/none");
	umnt("relative");
	ck_assert_str_eq(dump(), "127.0.0.1:/mem 127.0.0.1:/everyone ");
	umntall();
	ck_assert_str_eq(dump(), "");
}

/* MNT of /everyone from @addr, by hand. */
static void mnt_from(const char *addr)
{
	static const uint32_t words[] = { 7, 0, 2, MOUNT_PROGRAM, 3, 1,
					  0, 0, 0, 0 };
	struct fake_xprt conn;
	struct fake_call *call;
	uint8_t buf[128];
	struct xdr_out x;

	fake_xprt_init(&conn, rpc_server_sink(srv.server), srv.pool, addr,
		       1023);
	xdr_out_init(&x, buf, sizeof(buf));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		xdr_put_u32(&x, words[i]);
	xdr_put_opaque(&x, "/everyone", 9);
	call = fake_send(&conn, buf, (uint32_t)xdr_out_len(&x));
	fake_wait(call);
	/* Accepted, MNT3_OK. */
	ck_assert_uint_gt(call->len, 28);
	ck_assert_mem_eq(call->reply + 20, "\0\0\0\0\0\0\0\0", 8);
	fake_free(call);
}

TEST(hosts_are_addresses_of_any_kind)
{
	mnt_from("2001:db8::1");
	mnt_from("192.0.2.9");
	mnt_from("::ffff:192.0.2.10");
	ck_assert_str_eq(dump(), "2001:db8::1:/everyone 192.0.2.9:/everyone "
			 "192.0.2.10:/everyone ");
}

TEST(the_list_of_mounts_survives_a_restart)
{
	mnt("/mem");
	mnt("/mem/dir");
	umnt("/mem");
	end_server();
	start_server();
	ck_assert_str_eq(dump(), "127.0.0.1:/mem/dir ");
}

/* 4000 entries make more than the largest reply: the last are left out. */
TEST(a_list_of_mounts_that_is_too_long_is_cut)
{
	uint64_t cut = stats_sum_by_name("mount_list_cut");
	char file[64], path[401] = { 0 };
	unsigned count = 0;
	mountlist list;
	FILE *f;

	end_server();
	snprintf(file, sizeof(file), "%s/rmtab", state_dir);
	memset(path, 'p', 400);
	*path = '/';
	f = fopen(file, "w");
	for (int i = 0; i < 4000; i++)
		fprintf(f, "host%04d %s\n", i, path);
	fclose(f);
	start_server();
	get_list(&m, rpc_mount3_dump_async, &list);
	for (; list; list = list->ml_next, count++) {
		ck_assert_uint_eq(strlen(list->ml_hostname), 8);
		ck_assert_int_eq(atoi(list->ml_hostname + 4), count);
		ck_assert_str_eq(list->ml_directory, path);
	}
	ck_assert_uint_eq(count, (1 << 20) / (4 + 12 + 404));
	ck_assert_uint_eq(stats_sum_by_name("mount_list_cut"), cut + 1);
}

TEST(the_list_of_exports)
{
	exports list;

	get_list(&m, rpc_mount3_export_async, &list);
	ck_assert_str_eq(exports_text(list),
			 "/mem(127.0.0.1) "
			 "/mem/inner(192.0.2.7,127.0.0.0/8) "
			 "/closed(192.0.2.0/24) /squashed(127.0.0.1) "
			 "/everyone(*) ");
	harness_publish(&srv, "/all *.example(rw) 192.0.2.1(rw) *(ro)\n"
			"/some @group(ro) *.example(rw)\n");
	get_list(&m, rpc_mount3_export_async, &list);
	ck_assert_str_eq(exports_text(list),
			 "/all() /some(*.example,@group) ");
	harness_publish(&srv, "");
	get_list(&m, rpc_mount3_export_async, &list);
	ck_assert_ptr_null(list);
}

TEST(a_long_list_of_exports)
{
	char *conf = malloc(1 << 20);
	unsigned count = 0;
	exports list;
	size_t n = 0;

	for (int i = 0; i < 500; i++)
		n += (size_t)sprintf(conf + n, "/export/with/a/long/name/%d "
				     "192.0.2.1(rw) 192.0.2.2(ro)\n", i);
	/* Small ones: they are all in memory at once. */
	harness_publish(&srv, conf);
	get_list(&m, rpc_mount3_export_async, &list);
	for (; list; list = list->ex_next, count++)
		ck_assert_str_eq(list->ex_groups->gr_next->gr_name,
				 "192.0.2.2");
	ck_assert_uint_eq(count, 500);
	free(conf);
}

TEST(version_1_lists_but_has_no_handles)
{
	struct nfs_client v1;
	mountlist mounts;
	mountres1 r;
	exports list;

	mnt("/mem");
	nfs_client_open(&v1, srv.port, MOUNT_PROGRAM, MOUNT_V1, 0);
	ck_assert_int_eq(nfs_try(&v1, rpc_mount1_mnt_async, "/mem", &r),
			 RPC_STATUS_SUCCESS);
	ck_assert_int_eq(r.fhs_status, MNT1ERR_INVAL);
	ck_assert_int_eq(nfs_try(&v1, rpc_mount1_mnt_async, "/none", &r),
			 RPC_STATUS_SUCCESS);
	ck_assert_int_eq(r.fhs_status, MNT1ERR_NOENT);
	ck_assert_int_eq(nfs_try(&v1, rpc_mount1_mnt_async, "/closed", &r),
			 RPC_STATUS_SUCCESS);
	ck_assert_int_eq(r.fhs_status, MNT1ERR_ACCES);
	get_list(&v1, rpc_mount1_dump_async, &mounts);
	ck_assert_str_eq(dump_text(mounts), "127.0.0.1:/mem ");
	get_list(&v1, rpc_mount1_export_async, &list);
	ck_assert_str_eq(list->ex_dir, "/mem");
	get_list(&v1, rpc_mount1_dump_async, &mounts);
	nfs_client_close(&v1);
}
