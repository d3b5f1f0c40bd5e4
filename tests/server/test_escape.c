/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A local user swaps directories and files of an export for symbolic links that
 * lead out of it, and moves directories out, while clients use them by every
 * procedure.  Next to the export lie files that no client may see or change.
 *
 * By the table of files, and as root also by the system's handles.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "mountd/mountd.h"
#include "tests/server/nfs_ops.h"
#include "tests/unit/runner.h"

#define SECRET		"TOP-SECRET"
#define CLIENTS		2
/* GANNET_ESCAPE_MS makes it longer. */
#define RACE_MS		700

static const struct caller_cred root = { .uid = 0 };
static struct doors d;
static struct nfs3_fh top;
static char base[64];			/* export/ and secret/ are there */
static uint64_t outside[8];		/* inode numbers */
static unsigned noutside;
static atomic_bool over;

/* The clients' results; each kind has to occur. */
static atomic_ulong met_dir, met_link, met_file, denied, done, swaps;

/* ---- the files */

static const char *at(const char *name)
{
	static _Thread_local char path[4][128];
	static _Thread_local int i;

	i = (i + 1) % 4;
	snprintf(path[i], sizeof(path[i]), "%s/%s", base, name);
	return path[i];
}

static void make_dir(const char *name)
{
	ck_assert_int_eq(mkdir(at(name), 0777), 0);
}

static void make_file(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "we");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void is_outside(const char *name)
{
	struct stat st;

	ck_assert_int_eq(stat(at(name), &st), 0);
	outside[noutside++] = st.st_ino;
}

static void make_tree(void)
{
	strcpy(base, "/tmp/gannet-escape.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	make_dir("secret");
	make_dir("secret/sub");
	make_file("secret/x", SECRET);
	make_file("secret/victim", SECRET);
	make_dir("export");
	make_dir("export/d");
	make_dir("export/d/sub");
	make_file("export/d/x", "inside");
	make_file("export/d/victim", "inside");
	ck_assert_int_eq(symlink("../secret", at("export/l")), 0);
	make_file("export/f", "inside");
	ck_assert_int_eq(symlink("../secret/victim", at("export/fl")), 0);
	make_dir("export/m");
	make_dir("export/m/sub");
	noutside = 0;
	is_outside(".");
	is_outside("secret");
	is_outside("secret/sub");
	is_outside("secret/x");
	is_outside("secret/victim");
}

static void check_secret(void)
{
	char text[64] = "";
	struct stat st;
	FILE *f;

	for (int i = 0; i < 2; i++) {
		f = fopen(at(i ? "secret/x" : "secret/victim"), "re");
		ck_assert_ptr_nonnull(f);
		ck_assert_ptr_nonnull(fgets(text, sizeof(text), f));
		fclose(f);
		ck_assert_str_eq(text, SECRET);
		ck_assert_int_eq(stat(at(i ? "secret/x" : "secret/victim"),
				      &st), 0);
		ck_assert_uint_eq(st.st_nlink, 1);
		ck_assert_uint_eq(st.st_mode & 0111, 0);
	}
	/* Nothing was made there, nor removed. */
	ck_assert_int_eq(rmdir(at("secret/sub")), 0);
	ck_assert_int_eq(unlink(at("secret/x")), 0);
	ck_assert_int_eq(unlink(at("secret/victim")), 0);
	ck_assert_msg(rmdir(at("secret")) == 0, "secret/ is not empty");
}

/* ---- calls: no reply has the secret in it */

static uint32_t ask(struct caller *c)
{
	uint32_t status = nfs_status(c);

	ck_assert_msg(!memmem(c->in.p, xdr_left(&c->in), SECRET,
			      strlen(SECRET)), "the secret is out");
	if (status == NFS3_OK)
		atomic_fetch_add(&done, 1);
	else
		atomic_fetch_add(&denied, 1);
	return status;
}

/* The type of a handle's object, which must not lie outside; 0: gone. */
static uint32_t type_of(struct caller *c, const struct nfs3_fh *fh)
{
	uint64_t fileid;
	uint32_t type;

	nfs_begin(c, NFSPROC3_GETATTR, &root);
	nfs_put_fh(c, fh);
	if (ask(c) != NFS3_OK)
		return 0;
	type = xdr_get_u32(&c->in);
	xdr_get_fixed(&c->in, 48);
	fileid = xdr_get_u64(&c->in);
	for (unsigned i = 0; i < noutside; i++)
		ck_assert_msg(fileid != outside[i], "a handle of %u outside",
			      i);
	return type;
}

static bool look_up(struct caller *c, const struct nfs3_fh *dir,
		    const char *name, struct nfs3_fh *fh)
{
	nfs_begin(c, NFSPROC3_LOOKUP, &root);
	nfs_put_name(c, dir, name);
	if (ask(c) != NFS3_OK)
		return false;
	*fh = harness_get_fh(&c->in);
	return true;
}

/* Everything that the table has, with the names that lie in secret/. */
static void try_all(struct caller *c, const struct nfs3_fh *dir,
		    const struct nfs3_fh *file, unsigned n)
{
	static const char *const names[] = { "x", "victim", "sub", "new" };
	struct nfs_cell cell = { *dir, *file, *file };
	const char *name = names[n % 4];

	for (int i = 0; i < NFS_OPS; i++) {
		nfs_begin(c, nfs_ops[i].proc, &root);
		nfs_put_op(c, &nfs_ops[i], &cell);
		ask(c);
	}
	nfs_begin(c, NFSPROC3_REMOVE, &root);
	nfs_put_name(c, dir, name);
	ask(c);
	nfs_begin(c, NFSPROC3_RMDIR, &root);
	nfs_put_name(c, dir, name);
	ask(c);
	nfs_begin(c, NFSPROC3_RENAME, &root);
	nfs_put_name(c, dir, name);
	nfs_put_name(c, &top, "taken");
	ask(c);
	nfs_begin(c, NFSPROC3_RENAME, &root);
	nfs_put_name(c, &top, "taken");
	nfs_put_name(c, dir, name);
	ask(c);
}

/* CREATE, with a size, of a name that can be a link to a file outside. */
static void create_over(struct caller *c, uint32_t how)
{
	nfs_begin(c, NFSPROC3_CREATE, &root);
	nfs_put_name(c, &top, "f");
	xdr_put_u32(&c->out, how);
	if (how == EXCLUSIVE) {
		xdr_put_u64(&c->out, 1);
	} else {
		for (int i = 0; i < 3; i++)
			xdr_put_u32(&c->out, 0);
		xdr_put_u32(&c->out, 1);
		xdr_put_u64(&c->out, 0);	/* size */
		xdr_put_u32(&c->out, 0);
		xdr_put_u32(&c->out, 0);
	}
	ask(c);
}

static void mount_below(struct caller *c, const char *below)
{
	struct nfs3_fh fh;
	char path[128];

	snprintf(path, sizeof(path), "%s/export/%s", base, below);
	caller_begin(c, MOUNT_PROGRAM, 3, 1, &root);
	xdr_put_opaque(&c->out, path, (uint32_t)strlen(path));
	if (ask(c) != 0)
		return;
	fh = harness_get_fh(&c->in);
	type_of(c, &fh);
}

/* The directory "d": its place now, and its contents. */
static void visit_dir(struct caller *c, unsigned n)
{
	struct nfs3_fh dir, file;

	if (!look_up(c, &top, "d", &dir))
		return;
	switch (type_of(c, &dir)) {
	case 2:
		atomic_fetch_add(&met_dir, 1);
		break;
	case 5:
		atomic_fetch_add(&met_link, 1);
		break;
	}
	file = dir;
	if (look_up(c, &dir, n % 2 ? "x" : "victim", &file))
		type_of(c, &file);
	try_all(c, &dir, &file, n);
}

static void visit_file(struct caller *c, unsigned n)
{
	struct nfs3_fh file;

	create_over(c, n % 3);
	if (!look_up(c, &top, "f", &file))
		return;
	if (type_of(c, &file) == 1)
		atomic_fetch_add(&met_file, 1);
	try_all(c, &file, &file, n);
}

/* It might have been moved out meanwhile, and ".." must not lead there. */
static void visit_moved(struct caller *c, const struct nfs3_fh *moved,
			const struct nfs3_fh *sub)
{
	struct nfs3_fh up;

	if (look_up(c, moved, "..", &up))
		type_of(c, &up);
	if (look_up(c, sub, "..", &up) && look_up(c, &up, "..", &up))
		type_of(c, &up);
}

static void *client(void *arg)
{
	struct nfs3_fh moved, sub;
	static _Thread_local struct caller c;

	caller_open(&c, &d, DOOR_TCP, false);
	for (unsigned n = 0; !over; n++) {
		visit_dir(&c, n);
		visit_file(&c, n);
		mount_below(&c, n % 2 ? "d/sub" : "l/sub");
		if (look_up(&c, &top, "m", &moved) &&
		    look_up(&c, &moved, "sub", &sub))
			for (int i = 0; i < 20; i++)
				visit_moved(&c, &moved, &sub);
	}
	caller_close(&c);
	return NULL;
}

/* ---- the local user */

static void swap(const char *a, const char *b)
{
	char from[128], to[128];

	snprintf(from, sizeof(from), "%s/export/%s", base, a);
	snprintf(to, sizeof(to), "%s/export/%s", base, b);
	if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to,
		    2 /* RENAME_EXCHANGE */) == 0)
		atomic_fetch_add(&swaps, 1);
}

/* Clients remove things; put back the ones that a visit needs. */
static void put_back(void)
{
	int fd;

	chmod(at("export/d"), 0777);
	chmod(at("export/l"), 0777);
	mkdir(at("export/d/sub"), 0777);
	mkdir(at("export/l/sub"), 0777);	/* where d is the link */
	fd = open(at("export/f"), O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
		  0666);
	if (fd >= 0)
		close(fd);
}

static void *local_user(void *arg)
{
	for (unsigned n = 0; !over; n++) {
		swap("d", "l");
		swap("f", "fl");
		if (n % 2)
			rename(at("secret/m"), at("export/m"));
		else
			rename(at("export/m"), at("secret/m"));
		if (n % 16 == 0)
			put_back();
		/* Sometimes within a call, sometimes between two. */
		if (n % 3 == 0)
			pause_on_purpose(n % 300);
	}
	rename(at("secret/m"), at("export/m"));
	return NULL;
}

static void race(void)
{
	const char *ms = getenv("GANNET_ESCAPE_MS");
	pthread_t thread[CLIENTS + 1];

	over = false;
	for (int i = 0; i < CLIENTS; i++)
		pthread_create(&thread[i], NULL, client, NULL);
	pthread_create(&thread[CLIENTS], NULL, local_user, NULL);
	/* So long they race. */
	pause_on_purpose(1000u * (unsigned)(ms ? atoi(ms) : RACE_MS));
	EVENTUALLY(met_dir && met_link && met_file && denied && done);
	over = true;
	for (int i = 0; i <= CLIENTS; i++)
		pthread_join(thread[i], NULL);
}

/* Without a race first: outside files stay out of reach. */
static void stand_still(void)
{
	static struct caller c;
	struct nfs3_fh fh, moved, sub;

	caller_open(&c, &d, DOOR_TCP, false);
	ck_assert(look_up(&c, &top, "l", &fh));
	ck_assert_uint_eq(type_of(&c, &fh), 5);
	ck_assert(!look_up(&c, &fh, "x", &fh));
	ck_assert(look_up(&c, &top, "fl", &fh));
	ck_assert_uint_eq(type_of(&c, &fh), 5);
	ck_assert(!look_up(&c, &top, "l/x", &fh));
	ck_assert(look_up(&c, &top, "..", &fh));	/* itself */
	ck_assert_uint_eq(type_of(&c, &fh), 2);
	ck_assert(look_up(&c, &top, "m", &moved));
	ck_assert(look_up(&c, &moved, "sub", &sub));
	ck_assert_int_eq(rename(at("export/m"), at("secret/m")), 0);
	ck_assert(!look_up(&c, &moved, "..", &fh));
	ck_assert_int_eq(rename(at("secret/m"), at("export/m")), 0);
	caller_close(&c);
}

static void run_with(const char *kind)
{
	struct harness_config hc = { .backend = &posix_vfs_ops };
	char text[160], path[96];

	make_tree();
	snprintf(path, sizeof(path), "%s/export", base);
	snprintf(text, sizeof(text), "%s%s 127.0.0.1(rw,insecure,"
		 "no_root_squash)\n", kind, path);
	hc.exports = text;
	doors_open(&d, &hc);
	harness_root(&d.srv, path, &top);
	stand_still();
	race();
	doors_close(&d);
	check_secret();
	printf("%lu swaps; a directory %lu times, a link %lu, a file %lu; "
	       "%lu calls done, %lu refused\n", swaps, met_dir, met_link,
	       met_file, done, denied);
	snprintf(text, sizeof(text), "chmod -R u+rwX %s; rm -rf %s", base,
		 base);
	ck_assert_int_eq(system(text), 0);
}

TEST_LOOP(nobody_gets_out_of_an_export_by_swapping_links_for_directories, 0, 2)
{
	run_with(_i ? "posix,async:" : "posix,async,table:");
}
