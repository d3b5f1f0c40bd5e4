/* SPDX-License-Identifier: BSD-2-Clause */
/* GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF; and the rights to use an
 * export or a handle. */
#include "tests/server/nfs_client.h"

#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "tests/server/fault_vfs.h"
#include "tests/server/module_vfs.h"
#include "tests/unit/runner.h"

static int try_getattr(struct nfs_client *c, nfs_fh3 fh)
{
	GETATTR3args a = { .object = fh };
	GETATTR3res r;

	nfs_call(c, getattr, &a, &r);
	return r.status;
}

static int try_setattr(struct nfs_client *c, const SETATTR3args *args,
		       wcc_data *wcc)
{
	SETATTR3args a = *args;
	SETATTR3res r;

	nfs_call(c, setattr, &a, &r);
	*wcc = r.SETATTR3res_u.resok.obj_wcc;
	return r.status;
}

static SETATTR3args set_mode(nfs_fh3 fh, uint32_t mode)
{
	SETATTR3args a = { .object = fh };

	a.new_attributes.mode.set_it = 1;
	a.new_attributes.mode.set_mode3_u.mode = mode;
	return a;
}

static SETATTR3args set_size(nfs_fh3 fh, uint64_t size)
{
	SETATTR3args a = { .object = fh };

	a.new_attributes.size.set_it = 1;
	a.new_attributes.size.set_size3_u.size = size;
	return a;
}

TEST_CASE(.setup = nfs_setup, .teardown = nfs_teardown);

/* As with every NFS server, a handle does not ask for the way to its file. */
TEST(a_directory_that_is_closed_does_not_close_the_handles_below_it)
{
	nfs_fh3 dir = nfs_make_dir(top, "dir");
	nfs_fh3 file = nfs_make_file(dir, "file", "text");
	SETATTR3args open_file = set_mode(file, 0644);
	SETATTR3args closed = set_mode(dir, 0700);
	READ3args a = { .file = file, .count = 4 };
	LOOKUP3args la = { .what = { dir, (char *)(uintptr_t)"file" } };
	LOOKUP3res lr;
	wcc_data wcc;
	READ3res r;

	ck_assert_int_eq(try_setattr(&root, &open_file, &wcc), NFS3_OK);
	ck_assert_int_eq(try_setattr(&root, &closed, &wcc), NFS3_OK);
	nfs_call(&user, lookup, &la, &lr);
	ck_assert_int_eq(lr.status, NFS3ERR_ACCES);
	nfs_call(&user, read, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	/* The file's own mode closes it. */
	open_file = set_mode(file, 0600);
	ck_assert_int_eq(try_setattr(&root, &open_file, &wcc), NFS3_OK);
	nfs_call(&user, read, &a, &r);
	ck_assert_int_eq(r.status, NFS3ERR_ACCES);
}

TEST(null_needs_nothing)
{
	struct nfs_wait w = { .c = &root };

	ck_assert_int_eq(rpc_nfs3_null_async(root.rpc, nfs_done, &w), 0);
	ck_assert_int_eq(nfs_wait(&w), RPC_STATUS_SUCCESS);
}

TEST(attributes_are_those_of_the_file)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "12345");
	fattr3 dir = nfs_attr(top);
	fattr3 a = nfs_attr(fh);

	ck_assert_int_eq(dir.type, NF3DIR);
	ck_assert_int_eq(a.type, NF3REG);
	ck_assert_uint_eq(a.nlink, 1);
	ck_assert_uint_eq(a.uid, 0);
	ck_assert_uint_eq(a.size, 5);
	ck_assert_uint_ge(a.used, 5);
	ck_assert_uint_eq(a.fsid, dir.fsid);
	ck_assert_uint_ne(a.fsid, 0);
	ck_assert_uint_ne(a.fileid, dir.fileid);
	ck_assert_uint_ne(a.mtime.seconds, 0);
}

TEST(a_forged_handle_is_bad)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "");
	char copy[NFS3_FHSIZE] = { 0 };
	nfs_fh3 bad = { { fh.data.data_len, copy } };
	nfs_fh3 none = { { 0, copy } };
	nfs_fh3 zero = { { NFS3_FHSIZE, copy } };

	ck_assert_int_eq(try_getattr(&root, none), NFS3ERR_BADHANDLE);
	ck_assert_int_eq(try_getattr(&root, zero), NFS3ERR_BADHANDLE);
	for (u_int i = 0; i < fh.data.data_len; i++) {
		/* No export has that number: no key of its tree is known. */
		bool in_id = module_vfs() && i >= 4 && i < 8;

		memcpy(copy, fh.data.data_val, fh.data.data_len);
		copy[i] ^= 1;
		ck_assert_int_eq(try_getattr(&root, bad),
				 in_id ? NFS3ERR_STALE : NFS3ERR_BADHANDLE);
	}
	memcpy(copy, fh.data.data_val, fh.data.data_len);
	ck_assert_int_eq(try_getattr(&root, bad), NFS3_OK);
}

TEST(a_handle_of_another_server_is_logged_once)
{
	char bytes[28] = { 1, 0, 6, 1 };	/* as the kernel's server's */
	nfs_fh3 fh = { { sizeof(bytes), bytes } };
	int keep = dup(STDERR_FILENO), lines = 0;
	FILE *file = tmpfile();
	char line[256];

	dup2(fileno(file), STDERR_FILENO);
	log_threshold = LOG_LEVEL_WARN;
	for (int i = 0; i < 10; i++)
		try_getattr(&root, fh);
	log_threshold = LOG_LEVEL_ERR;
	dup2(keep, STDERR_FILENO);
	close(keep);
	rewind(file);
	while (fgets(line, sizeof(line), file)) {
		ck_assert_ptr_nonnull(strstr(line, "another server made"));
		lines++;
	}
	fclose(file);
	ck_assert_int_eq(lines, 1);
}

TEST(the_handle_of_a_removed_file_is_stale)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "");
	REMOVE3args a = { .object = { top, "f" } };
	REMOVE3res r;

	nfs_call(&root, remove, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_int_eq(try_getattr(&root, fh), NFS3ERR_STALE);
}

TEST(setattr_sets_what_it_is_told)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "12345");
	SETATTR3args a = set_mode(fh, 0100751);
	sattr3 *s = &a.new_attributes;
	wcc_data wcc;
	fattr3 now;

	s->uid.set_it = s->gid.set_it = 1;
	s->uid.set_uid3_u.uid = 7;
	s->gid.set_gid3_u.gid = 8;
	s->atime.set_it = s->mtime.set_it = SET_TO_CLIENT_TIME;
	s->atime.set_atime_u.atime = (nfstime3){ 1000, 1 };
	s->mtime.set_mtime_u.mtime = (nfstime3){ 2000, 999999999 };
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3_OK);
	ck_assert(nfs_full_wcc(&wcc));
	ck_assert_uint_eq(wcc.before.pre_op_attr_u.attributes.size, 5);
	now = nfs_attr(fh);
	ck_assert_uint_eq(now.mode, 0751);
	ck_assert_uint_eq(now.uid, 7);
	ck_assert_uint_eq(now.gid, 8);
	ck_assert_uint_eq(now.atime.seconds, 1000);
	ck_assert_uint_eq(now.atime.nseconds, 1);
	ck_assert_uint_eq(now.mtime.seconds, 2000);
	ck_assert_uint_eq(now.mtime.nseconds, 999999999);
	ck_assert_mem_eq(&wcc.after.post_op_attr_u.attributes, &now,
			 sizeof(now));

	memset(s, 0, sizeof(*s));
	s->mtime.set_it = SET_TO_SERVER_TIME;
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3_OK);
	ck_assert_uint_gt(nfs_attr(fh).mtime.seconds, 1000000000);
	ck_assert_uint_eq(nfs_attr(fh).atime.seconds, 1000);
}

TEST(setattr_truncates_and_extends)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "12345");
	SETATTR3args a = set_size(fh, 2);
	wcc_data wcc;

	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3_OK);
	ck_assert_uint_eq(nfs_attr(fh).size, 2);
	ck_assert_uint_eq(wcc.before.pre_op_attr_u.attributes.size, 5);
	a = set_size(fh, 5ull << 30);
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3_OK);
	ck_assert_uint_eq(nfs_attr(fh).size, 5ull << 30);
}

TEST(setattr_refuses_what_can_not_be)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "12345");
	SETATTR3args a = { .object = fh };
	wcc_data wcc;

	a.new_attributes.atime.set_it = SET_TO_CLIENT_TIME;
	a.new_attributes.atime.set_atime_u.atime.nseconds = 1000000000;
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3ERR_INVAL);
	/* A poller refuses it, and must not wait for attributes. */
	ck_assert(wcc.after.attributes_follow || module_vfs());
	a.new_attributes.atime.set_it = DONT_CHANGE;
	a.new_attributes.mtime.set_it = SET_TO_CLIENT_TIME;
	a.new_attributes.mtime.set_mtime_u.mtime.nseconds = UINT32_MAX;
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3ERR_INVAL);
	a = set_size(fh, 1ull << 63);
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3ERR_INVAL);
	a = set_size(top, 0);
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3ERR_INVAL);
	ck_assert_uint_eq(nfs_attr(fh).size, 5);
}

TEST(setattr_by_another_is_refused)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "");
	SETATTR3args a = set_mode(fh, 0777);
	wcc_data wcc;

	ck_assert_int_eq(try_setattr(&user, &a, &wcc), NFS3ERR_PERM);
	a = set_size(fh, 0);
	ck_assert_int_eq(try_setattr(&user, &a, &wcc), NFS3ERR_ACCES);
}

TEST(the_guard_is_the_ctime)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "12345");
	SETATTR3args a = set_mode(fh, 0600);
	fattr3 now = nfs_attr(fh);
	wcc_data wcc;

	a.guard.check = 1;
	a.guard.sattrguard3_u.obj_ctime = now.ctime;
	a.guard.sattrguard3_u.obj_ctime.nseconds ^= 1;
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3ERR_NOT_SYNC);
	ck_assert_uint_eq(nfs_attr(fh).mode, now.mode);
	a.guard.sattrguard3_u.obj_ctime = now.ctime;
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3_OK);
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3ERR_NOT_SYNC);
	ck_assert_uint_eq(nfs_attr(fh).mode, 0600);
}

static uint32_t access_of(struct nfs_client *c, nfs_fh3 fh, uint32_t want)
{
	ACCESS3args a = { .object = fh, .access = want };
	ACCESS3res r;

	nfs_call(c, access, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert(r.ACCESS3res_u.resok.obj_attributes.attributes_follow);
	ck_assert_uint_eq(r.ACCESS3res_u.resok.obj_attributes.post_op_attr_u
			  .attributes.fsid, nfs_attr(fh).fsid);
	return r.ACCESS3res_u.resok.access;
}

TEST(access_says_what_the_caller_may)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "");
	SETATTR3args a = set_mode(fh, 0644);
	wcc_data wcc;

	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3_OK);
	ck_assert_uint_eq(access_of(&root, fh, ACCESS3_READ | ACCESS3_MODIFY),
			  ACCESS3_READ | ACCESS3_MODIFY);
	ck_assert_uint_eq(access_of(&user, fh, 0x3f), ACCESS3_READ);
	ck_assert_uint_eq(access_of(&user, top, 0x3f),
			  ACCESS3_READ | ACCESS3_LOOKUP);
	/* Nothing is granted that was not asked for, or that does not
	 * exist. */
	ck_assert_uint_eq(access_of(&root, top, ACCESS3_LOOKUP),
			  ACCESS3_LOOKUP);
	ck_assert_uint_eq(access_of(&root, top, 0xffffffc0), 0);
}

TEST(fsstat_counts_space)
{
	FSSTAT3args a = { .fsroot = top };
	FSSTAT3res r;
	FSSTAT3resok *ok = &r.FSSTAT3res_u.resok;
	uint64_t files, bytes;

	nfs_call(&root, fsstat, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert(ok->obj_attributes.attributes_follow);
	ck_assert_uint_ge(ok->tbytes, ok->fbytes);
	ck_assert_uint_ge(ok->fbytes, ok->abytes);
	ck_assert_uint_ge(ok->tfiles, ok->ffiles);
	ck_assert_uint_eq(ok->invarsec, 0);
	if (fault_on_posix() || module_vfs())
		return;		/* others also use the file system */
	files = ok->ffiles;
	bytes = ok->fbytes;
	nfs_make_file(top, "f", "data");
	nfs_call(&root, fsstat, &a, &r);
	ck_assert_uint_eq(ok->ffiles, files - 1);
	ck_assert_uint_lt(ok->fbytes, bytes);
}

TEST(fsinfo_offers_a_mebibyte)
{
	FSINFO3args a = { .fsroot = top };
	FSINFO3res r;
	FSINFO3resok *ok = &r.FSINFO3res_u.resok;

	nfs_call(&root, fsinfo, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert(ok->obj_attributes.attributes_follow);
	ck_assert_uint_eq(ok->rtmax, 1 << 20);
	ck_assert_uint_eq(ok->rtpref, 1 << 20);
	ck_assert_uint_eq(ok->wtmax, 1 << 20);
	ck_assert_uint_eq(ok->wtpref, 1 << 20);
	ck_assert_uint_ge(ok->dtpref, 64 << 10);
	ck_assert_uint_eq(ok->properties, FSF3_LINK | FSF3_SYMLINK |
			  FSF3_HOMOGENEOUS | FSF3_CANSETTIME);
	ck_assert_uint_gt(ok->maxfilesize, 1ull << 40);
	ck_assert_uint_eq(ok->time_delta.seconds, 0);
	ck_assert_uint_ge(ok->time_delta.nseconds, 1);
}

TEST(pathconf_is_that_of_posix)
{
	PATHCONF3args a = { .object = top };
	PATHCONF3res r;
	PATHCONF3resok *ok = &r.PATHCONF3res_u.resok;

	nfs_call(&root, pathconf, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert(ok->obj_attributes.attributes_follow);
	ck_assert_uint_eq(ok->name_max, 255);
	ck_assert_uint_gt(ok->linkmax, 1);
	ck_assert(ok->no_trunc);
	ck_assert(ok->chown_restricted);
	ck_assert(!ok->case_insensitive);
	ck_assert(ok->case_preserving);
}

TEST(an_export_that_is_gone_is_stale)
{
	harness_publish(&srv, "/other 127.0.0.1(rw,insecure)\n");
	ck_assert_int_eq(try_getattr(&root, top), NFS3ERR_STALE);
}

TEST(an_export_for_others_gives_no_access)
{
	uint64_t denied = stats_sum_by_name("export_denied");

	harness_publish(&srv, "/mem 192.0.2.1(rw,insecure)\n");
	ck_assert_int_eq(try_getattr(&root, top), NFS3ERR_ACCES);
	ck_assert_uint_gt(stats_sum_by_name("export_denied"), denied);
}

/* Which takes a look-up, and so a worker. */
TEST(an_export_may_be_for_a_host_by_name)
{
	harness_publish(&srv, "/mem localhost(rw,insecure)\n");
	ck_assert_int_eq(try_getattr(&root, top), NFS3_OK);
	harness_publish(&srv, "/mem nosuchhost.invalid(rw,insecure)\n");
	ck_assert_int_eq(try_getattr(&root, top), NFS3ERR_ACCES);
}

TEST(root_is_squashed_unless_told_otherwise)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "");
	SETATTR3args a = set_mode(fh, 0600);
	wcc_data wcc;

	harness_publish(&srv, "/mem 127.0.0.1(rw,insecure)\n");
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3ERR_PERM);
	harness_publish(&srv, "/mem 127.0.0.1(rw,insecure,all_squash,"
			"anonuid=0,anongid=0)\n");
	ck_assert_int_eq(try_setattr(&user, &a, &wcc), NFS3_OK);
}

TEST(a_caller_without_credentials_is_anonymous)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "");
	SETATTR3args a = set_mode(fh, 0600);
	wcc_data wcc;

	rpc_set_auth(root.rpc, libnfs_authnone_create());
	ck_assert_int_eq(try_getattr(&root, fh), NFS3_OK);
	ck_assert_int_eq(try_setattr(&root, &a, &wcc), NFS3ERR_PERM);
}

TEST(a_read_only_export_grants_no_change)
{
	harness_publish(&srv, "/mem 127.0.0.1(ro,insecure,no_root_squash)\n");
	ck_assert_uint_eq(access_of(&root, top, 0x3f),
			  ACCESS3_READ | ACCESS3_LOOKUP);
}
