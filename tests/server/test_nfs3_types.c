/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of doc/posix.md on each type of file system: a client has the same
 * rights, and gets the same answers, as a local process; names, handles,
 * listings, quotas.
 *
 * All rules of a type share a server, which is restarted once.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/quota.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/mount_space.h"
#include "tests/server/nfs_names.h"
#include "tests/server/types_rules.h"
#include "tests/unit/runner.h"

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	ck_assert_msg(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s: %s",
		      path, strerror(errno));
}

static void a_name_that_a_local_process_makes_is_there(void)
{
	nfs_fh3 fh;

	for (int i = 0; i < 10; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%d", i);
		ck_assert_int_eq(try_lookup(dir, name, &fh), NFS3ERR_NOENT);
		put_file(at(name), "text");
		ck_assert_int_eq(try_lookup(dir, name, &fh), NFS3_OK);
		ck_assert_uint_eq(nfs_attr(fh).size, 4);
		put_file(at(name), "longer text");
		ck_assert_uint_eq(nfs_attr(fh).size, 11);
		ck_assert_int_eq(unlink(at(name)), 0);
		ck_assert_int_eq(try_lookup(dir, name, &fh), NFS3ERR_NOENT);
	}
}

/* Where a file that is open stays, under another name, it goes soon. */
static void a_directory_is_empty_when_its_files_are_removed(void)
{
	nfs_fh3 sub = nfs_make_dir(dir, "sub");

	nfs_make_file(sub, "file", "text");
	nfs_make_file(sub, "other", "text");
	ck_assert_int_eq(try_rename(sub, "other", sub, "file"), NFS3_OK);
	ck_assert_int_eq(try_remove(&root, sub, "file"), NFS3_OK);
	if (type->has & TYPE_BY_OPEN)
		EVENTUALLY(try_rmdir(dir, "sub") == NFS3_OK);
	else
		ck_assert_int_eq(try_rmdir(dir, "sub"), NFS3_OK);
}

static void changes_say_how_it_was_before_and_after(void)
{
	SETATTR3args a = { 0 };
	SETATTR3res r;
	wcc_data *wcc = &r.SETATTR3res_u.resok.obj_wcc;

	ck_assert_int_eq(try_create(&root, dir, "f", GUARDED, NULL), NFS3_OK);
	ck_assert(nfs_wcc);
	ck_assert_int_eq(try_mkdir(&root, dir, "d"), NFS3_OK);
	ck_assert(nfs_wcc);
	ck_assert_int_eq(try_rename(dir, "f", dir, "g"), NFS3_OK);
	ck_assert(nfs_wcc);
	a.object = find(dir, "g");
	a.new_attributes.size.set_it = 1;
	a.new_attributes.size.set_size3_u.size = 100;
	nfs_call(&root, setattr, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert(nfs_full_wcc(wcc));
	ck_assert_uint_eq(wcc->before.pre_op_attr_u.attributes.size, 0);
	ck_assert_uint_eq(wcc->after.post_op_attr_u.attributes.size, 100);
	ck_assert_int_eq(try_remove(&root, dir, "g"), NFS3_OK);
	ck_assert(nfs_wcc);
}

static void what_FSINFO_and_PATHCONF_say_is_so(void)
{
	static const struct step make = { MAKE, 0, "f", NULL, 0644 };
	static const struct step symlink = { SYMLINK, 0, "s", "f", 0 };
	static const struct step link = { LINK, 0, "f", "l", 0 };
	FSINFO3args fa = { .fsroot = dir };
	PATHCONF3args pa = { .object = dir };
	FSINFO3res f;
	PATHCONF3res p;
	uint32_t has;

	nfs_call(&root, fsinfo, &fa, &f);
	ck_assert_int_eq(f.status, NFS3_OK);
	has = f.FSINFO3res_u.resok.properties;
	nfs_call(&root, pathconf, &pa, &p);
	ck_assert_int_eq(p.status, NFS3_OK);
	ck_assert_int_eq(take(&make), NFS3_OK);
	ck_assert_int_eq(take(&symlink) == NFS3_OK,
			 (has & FSF3_SYMLINK) != 0);
	ck_assert_int_eq(take(&link) == NFS3_OK, (has & FSF3_LINK) != 0);
	ck_assert_int_eq(nfs_exists(dir, "F") == NFS3_OK,
			 p.PATHCONF3res_u.resok.case_insensitive);
}

/* ---- over a restart */

static nfs_fh3 file, gone;

/* The handle, for as long as the test runs. */
static nfs_fh3 keep(nfs_fh3 fh)
{
	char *bytes = malloc(fh.data.data_len);

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, fh.data.data_val, fh.data.data_len);
	fh.data.data_val = bytes;
	return fh;
}

static void handles_hold(void)
{
	file = keep(nfs_make_file(dir, "file", "text"));
	gone = keep(nfs_make_file(dir, "gone", "text"));
	ck_assert_int_eq(rename(at("file"), at("moved")), 0);
	ck_assert_int_eq(unlink(at("gone")), 0);
	ck_assert_uint_eq(nfs_attr(file).size, 4);
	/* Its number can be used again. */
	for (int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "new%d", i);
		put_file(at(name), "new");
	}
	/* Such file systems keep it under another name while it is open. */
	if (!(type->has & TYPE_BY_OPEN))
		ck_assert_int_eq(space_status(gone), NFS3ERR_STALE);
}

static void handles_hold_over_a_restart(void)
{
	int status = space_status(file);

	printf("# %s: %s\n", type->name, status ? "stale" : "lasts");
	ck_assert_msg(status == NFS3_OK ||
		      (status == NFS3ERR_STALE &&
		       !(type->has & TYPE_HANDLES)),
		      "%s: %d", type->name, status);
	if (status == NFS3_OK)
		ck_assert_uint_eq(nfs_attr(file).size, 4);
	ck_assert_int_eq(space_status(gone), NFS3ERR_STALE);
	ck_assert_uint_eq(nfs_attr(find(dir, "moved")).size, 4);
	free(file.data.data_val);
	free(gone.data.data_val);
}

static const char one[] = "\x12\x34\x56\x78\x9a\xbc\xde\xf0";
static const char two[] = "\x12\x34\x56\x78\x9a\xbc\xde\xf1";

static void a_repeated_exclusive_create_is_known(void)
{
	for (int i = 0; i < 2; i++) {
		struct nfs_client *c = i ? &user : &root;
		const char *name = i ? "user" : "root";
		int status = try_create(c, dir, name, EXCLUSIVE, one);

		ck_assert_msg(status == NFS3_OK, "%s: %s: %d", type->name,
			      name, status);
		ck_assert_int_eq(try_create(c, dir, name, EXCLUSIVE, one),
				 NFS3_OK);
		ck_assert_int_eq(try_create(c, dir, name, EXCLUSIVE, two),
				 NFS3ERR_EXIST);
	}
}

static void it_is_known_after_a_restart(void)
{
	int status;

	ck_assert_int_eq(try_create(&root, dir, "root", EXCLUSIVE, two),
			 NFS3ERR_EXIST);
	status = try_create(&root, dir, "root", EXCLUSIVE, one);
	ck_assert_msg(status == NFS3_OK ||
		      (status == NFS3ERR_EXIST &&
		       !(type->has & TYPE_VERIFIER)),
		      "%s: %d", type->name, status);
}

/* ---- listings under change */

#define NFILES		100
#define PAGE		1024

static unsigned char seen[NFILES];

/* Lists from @cookie on, a page; the last cookie, or 0 at the end. */
static uint64_t list_page(uint64_t cookie, char *verf)
{
	READDIR3args a = { .dir = dir, .cookie = cookie, .count = PAGE };
	READDIR3res r;
	unsigned i;

	memcpy(a.cookieverf, verf, NFS3_COOKIEVERFSIZE);
	nfs_call(&root, readdir, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	memcpy(verf, r.READDIR3res_u.resok.cookieverf, NFS3_COOKIEVERFSIZE);
	for (const entry3 *e = r.READDIR3res_u.resok.reply.entries; e;
	     e = e->nextentry) {
		cookie = e->cookie;
		if (sscanf(e->name, "stays%u", &i) == 1 && i < NFILES)
			seen[i]++;
	}
	return r.READDIR3res_u.resok.reply.eof ? 0 : cookie;
}

/* A local process removes, makes and renames names that do not stay. */
static void change_names(int round)
{
	char name[32], new[32];

	for (int i = round; i < NFILES; i += 5) {
		snprintf(name, sizeof(name), "goes%d", i);
		snprintf(new, sizeof(new), "new-name%d", i);
		if (i % 2)
			unlink(at(name));
		else
			rename(at(name), at(new));
	}
}

static void names_that_stay_are_listed_once(void)
{
	char verf[NFS3_COOKIEVERFSIZE] = { 0 }, name[32];
	uint64_t cookie = 0;
	int round = 0;

	for (int i = 0; i < NFILES; i++) {
		snprintf(name, sizeof(name), "stays%d", i);
		put_file(at(name), "");
		snprintf(name, sizeof(name), "goes%d", i);
		put_file(at(name), "");
	}
	do {
		cookie = list_page(cookie, verf);
		change_names(round++);
	} while (cookie);
	ck_assert_int_gt(round, 4);
	for (int i = 0; i < NFILES; i++)
		ck_assert_msg(seen[i] == 1, "%s: stays%d: %d times",
			      type->name, i, seen[i]);
}

/* ---- quotas */

static void set_quota(uint64_t kbytes, uint64_t inodes)
{
	struct if_dqblk q = {
		.dqb_bhardlimit = kbytes, .dqb_ihardlimit = inodes,
		.dqb_valid = QIF_LIMITS,
	};
	int fd = open(types_top, O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(syscall(SYS_quotactl_fd, fd,
				 Q_SETQUOTA << SUBCMDSHIFT | USRQUOTA,
				 USER_UID, &q), 0);
	close(fd);
}

/* Returns how much was written before the first refusal, which says @status. */
static uint64_t write_until(nfs_fh3 fh, stable_how how, int status)
{
	static char data[65536];
	WRITE3args a = { .file = fh, .count = sizeof(data), .stable = how,
			 .data = { sizeof(data), data } };
	WRITE3res r;

	for (;;) {
		nfs_call(&user, write, &a, &r);
		if (r.status != NFS3_OK)
			break;
		a.offset += r.WRITE3res_u.resok.count;
		ck_assert_uint_le(a.offset, 4u << 20);
	}
	ck_assert_int_eq(r.status, status);
	return a.offset;
}

static int commit_of(nfs_fh3 fh)
{
	COMMIT3args a = { .file = fh };
	COMMIT3res r;

	nfs_call(&user, commit, &a, &r);
	return r.status;
}

static uint64_t written[2];
static const char *const over[] = { "unstable", "stable" };

static void a_quota_is_an_answer(void)
{
	static const stable_how hows[] = { UNSTABLE, FILE_SYNC };
	struct stat st;
	int status = NFS3_OK, n;
	char name[16];
	nfs_fh3 fh;

	for (int i = 0; i < 2; i++) {
		set_quota(600 * ((unsigned)i + 1), 0);
		ck_assert_int_eq(try_create(&user, dir, over[i], GUARDED,
					    NULL), NFS3_OK);
		fh = find(dir, over[i]);
		written[i] = write_until(fh, hows[i], NFS3ERR_DQUOT);
		ck_assert_uint_gt(written[i], 0);
		ck_assert_int_eq(commit_of(fh), NFS3_OK);
	}
	set_quota(0, 40);
	for (n = 0; status == NFS3_OK && n < 100; n++) {
		snprintf(name, sizeof(name), "n%d", n);
		status = n % 2 ? try_mkdir(&user, dir, name) :
			 try_create(&user, dir, name,
				    n % 4 ? EXCLUSIVE : GUARDED, one);
	}
	ck_assert_int_eq(status, NFS3ERR_DQUOT);
	ck_assert_int_gt(n, 5);
	ck_assert(!lstat_of(client, name, &st));
	/* Others have none. */
	ck_assert_int_eq(try_create(&other, dir, "other", GUARDED, NULL),
			 NFS3_OK);
	set_quota(0, 0);
}

static void what_was_answered_is_there(void)
{
	for (int i = 0; i < 2; i++)
		ck_assert_uint_ge(nfs_attr(find(dir, over[i])).size,
				  written[i]);
}

/* ---- all of them */

#define RULE(has, rule, later)	{ #rule, rule, later, has }
static const struct rule {
	const char *name;
	void	    (*run)(void);
	void	    (*later)(void);	/* after the restart, or NULL */
	unsigned    has;		/* of types that have it */
} rules[] = {
	/* The user has nothing before it. */
	RULE(TYPE_QUOTA, a_quota_is_an_answer, what_was_answered_is_there),
	RULE(0, a_client_may_what_a_local_process_may, NULL),
	RULE(0, names_go_as_a_local_process_has_them_go, NULL),
	RULE(0, odd_names_are_as_for_a_local_process, NULL),
	RULE(TYPE_CASELESS,
	     names_that_differ_in_case_are_as_for_a_local_process, NULL),
	RULE(0, a_name_that_a_local_process_makes_is_there, NULL),
	RULE(0, a_directory_is_empty_when_its_files_are_removed, NULL),
	RULE(0, changes_say_how_it_was_before_and_after, NULL),
	RULE(0, what_FSINFO_and_PATHCONF_say_is_so, NULL),
	RULE(TYPE_COOKIES, names_that_stay_are_listed_once, NULL),
	RULE(0, a_repeated_exclusive_create_is_known,
	     it_is_known_after_a_restart),
	RULE(0, handles_hold, handles_hold_over_a_restart),
};

static void rule_begin(const struct rule *r)
{
	const char *fold = r->has & TYPE_CASELESS ? "fold/" : "";
	char rule_dir[320];
	nfs_fh3 fh = top;

	snprintf(rule_dir, sizeof(rule_dir), "%s/%s%s", types_top, fold,
		 r->name);
	snprintf(local, sizeof(local), "%s/local", rule_dir);
	snprintf(client, sizeof(client), "%s/client", rule_dir);
	umask(0);
	ck_assert(mkdir(rule_dir, 0755) == 0 || errno == EEXIST);
	ck_assert(mkdir(local, 0777) == 0 || errno == EEXIST);
	ck_assert(mkdir(client, 0777) == 0 || errno == EEXIST);
	if (*fold)
		fh = find(fh, "fold");
	dir = space_keep(find(find(fh, r->name), "client"));
	printf("# %s: %s\n", type->name, r->name);
}

static bool is_for(const struct rule *r)
{
	return (type->has & r->has) == r->has;
}

TEST_CASE(.timeout = 120);

TEST_LOOP(the_rules_hold_on, 0, ntypes)
{
	type = &types[_i];
	if (!types_mount(type))
		return;
	types_serve();
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (is_for(&rules[i])) {
			rule_begin(&rules[i]);
			rules[i].run();
		}
	types_restart();
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (is_for(&rules[i]) && rules[i].later) {
			rule_begin(&rules[i]);
			rules[i].later();
		}
	types_end();
	types_unmount();
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (geteuid() != 0) {
		printf("skipped: needs root\n");
		return 77;
	}
	return space_run_tests();
}
