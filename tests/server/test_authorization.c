/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every caller's rights, as one table: every procedure, on every kind of
 * export, for every kind of caller, through every door.  A refused call changes
 * nothing.
 *
 * On the mem backend; with GANNET_TEST_POSIX_DIR in the environment on
 * directories below that one, which takes root (see nfs3_posix.sh).
 */
#include <stdio.h>
#include <sys/stat.h>

#include "mountd/mountd.h"
#include "tests/server/nfs_ops.h"
#include "tests/unit/runner.h"

#define OWNER		1000
#define GROUP		100
#define NOBODY		65534
#define SECRET		"secret"
#define AUTH_BADCRED	1

static const struct export_row {
	const char *name;
	const char *client;		/* and options */
	bool	    ro, secure, closed, root_squash;
	enum as	    all;		/* NAS: callers stay who they are */
} exports[] = {
	{ "rw", "127.0.0.1(rw,insecure,no_root_squash)", .all = NAS },
	{ "ro", "127.0.0.1(ro,insecure,no_root_squash)", .ro = true,
	  .all = NAS },
	{ "root_squash", "127.0.0.1(rw,insecure)", .root_squash = true,
	  .all = NAS },
	{ "all_squash", "127.0.0.1(rw,insecure,all_squash)",
	  .all = AS_OTHER },
	{ "all_as_owner", "127.0.0.1(rw,insecure,all_squash,anonuid=1000,"
	  "anongid=100)", .all = AS_OWNER },
	{ "secure", "127.0.0.1(rw,secure,no_root_squash)", .secure = true,
	  .all = NAS },
	{ "others", "192.0.2.1(rw,insecure,no_root_squash)", .closed = true,
	  .all = NAS },
};
#define NEXPORTS	ARRAY_SIZE(exports)

static const struct caller_row {
	const char	  *name;
	struct caller_cred cred;
	enum as		   as;
} callers[] = {
	{ "root", { .uid = 0, .gid = 0 }, AS_ROOT },
	{ "the owner", { .uid = OWNER, .gid = GROUP }, AS_OWNER },
	{ "a member of the group", { .uid = 2000, .gid = GROUP }, AS_GROUP },
	{ "a member by another group", { .uid = 2000, .gid = 200, .ngids = 2,
	  .gids = { 300, GROUP } }, AS_GROUP },
	{ "somebody else", { .uid = 2000, .gid = 200 }, AS_OTHER },
	{ "nobody", { .uid = NOBODY, .gid = NOBODY }, AS_OTHER },
	{ "a caller without a name", { .none = true }, AS_OTHER },
	{ "one in 17 groups", { .uid = 0, .gid = 0, .ngids = 17 }, NAS },
};
#define NCALLERS	ARRAY_SIZE(callers)

static struct doors d;
static struct caller admin;
static char base[128];
static struct nfs3_fh tops[NEXPORTS];
static bool protected_links;		/* fs.protected_hardlinks holds */
static const struct caller_cred root = { .uid = 0 };

/* ---- the server, and its files */

static void path_of(unsigned e, char out[160])
{
	snprintf(out, 160, "%s/%s", base, exports[e].name);
}

/* @all: everything to root of this machine; else as in the table. */
static void exports_text(bool all, char *out, size_t size)
{
	const char *kind = !*base ? "" : getenv("GANNET_TEST_POSIX_TABLE") ?
		"posix,async,table:" : "posix,async:";
	size_t n = 0;
	char path[160];

	for (unsigned e = 0; e < NEXPORTS; e++) {
		path_of(e, path);
		n += (size_t)snprintf(out + n, size - n, "%s%s %s\n",
			kind, path, all ?
			"127.0.0.1(rw,insecure,no_root_squash)" :
			exports[e].client);
	}
	ck_assert_uint_lt(n, size);
}

static void publish(bool all)
{
	char text[2048];

	exports_text(all, text, sizeof(text));
	harness_publish(&d.srv, text);
}

static void setup(void)
{
	const char *dir = getenv("GANNET_TEST_POSIX_DIR");
	struct harness_config hc = { 0 };
	char text[2048], path[160];
	FILE *f = fopen("/proc/sys/fs/protected_hardlinks", "re");

	protected_links = dir && f && fgetc(f) == '1';
	if (f)
		fclose(f);
	if (dir) {
		snprintf(base, sizeof(base), "%s/authorization.XXXXXX", dir);
		ck_assert_ptr_nonnull(mkdtemp(base));
		chmod(base, 0755);
	}
	for (unsigned e = 0; dir && e < NEXPORTS; e++) {
		path_of(e, path);
		ck_assert_int_eq(mkdir(path, 0755), 0);
	}
	exports_text(true, text, sizeof(text));
	hc.exports = text;
	hc.backend = dir ? &posix_vfs_ops : NULL;
	doors_open(&d, &hc);
	for (unsigned e = 0; e < NEXPORTS; e++) {
		path_of(e, path);
		harness_root(&d.srv, path, &tops[e]);
	}
	caller_open(&admin, &d, DOOR_TCP, false);
}

static void teardown(void)
{
	char command[160];

	caller_close(&admin);
	doors_close(&d);
	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	if (*base)
		ck_assert_int_eq(system(command), 0);
}

/* As root, who must succeed. */
static void admin_make(uint32_t proc, const struct nfs3_fh *dir,
		       const char *name, struct nfs3_fh *fh)
{
	nfs_begin(&admin, proc, &root);
	nfs_put_name(&admin, dir, name);
	if (proc == NFSPROC3_CREATE)
		xdr_put_u32(&admin.out, GUARDED);
	nfs_put_attr(&admin, proc == NFSPROC3_MKDIR ? 0750 : 0640, OWNER,
		     GROUP);
	if (proc == NFSPROC3_SYMLINK)
		xdr_put_opaque(&admin.out, "file", 4);
	ck_assert_uint_eq(nfs_status(&admin), NFS3_OK);
	ck_assert(nfs_take_fh(&admin, fh));
}

static void make_cell(unsigned e, const char *name, struct nfs_cell *cell)
{
	struct nfs3_fh any;

	admin_make(NFSPROC3_MKDIR, &tops[e], name, &cell->dir);
	admin_make(NFSPROC3_CREATE, &cell->dir, "file", &cell->file);
	admin_make(NFSPROC3_SYMLINK, &cell->dir, "link", &cell->link);
	admin_make(NFSPROC3_CREATE, &cell->dir, "gone", &any);
	admin_make(NFSPROC3_CREATE, &cell->dir, "from", &any);
	admin_make(NFSPROC3_MKDIR, &cell->dir, "goner", &any);
	nfs_begin(&admin, NFSPROC3_WRITE, &root);
	nfs_put_write(&admin, &cell->file, SECRET);
	ck_assert_uint_eq(nfs_status(&admin), NFS3_OK);
}

/* ---- expected results */

static bool may_enter(const struct export_row *e, enum door door,
		      bool reserved)
{
	return !e->closed && (!e->secure || reserved || door == DOOR_LOOP);
}

static enum as acts_as(const struct export_row *e, const struct caller_row *c)
{
	if (c->cred.none)		/* is always the anonymous user */
		return e->all == AS_OWNER ? AS_OWNER : AS_OTHER;
	if (e->all != NAS)
		return e->all;
	return c->as == AS_ROOT && e->root_squash ? AS_OTHER : c->as;
}

static uint32_t wanted(const struct nfs_op *op, const struct export_row *e,
		       const struct caller_row *c, bool enters)
{
	if (c->as == NAS)
		return CALLER_DENIED + AUTH_BADCRED;
	if (!enters)
		return NFS3ERR_ACCES;
	if (op->change && e->ro)
		return NFS3ERR_ROFS;
	/* A file that the caller can't write can't be linked either. */
	if (protected_links && op->proc == NFSPROC3_LINK &&
	    acts_as(e, c) == AS_GROUP)
		return NFS3ERR_PERM;
	return op->want[acts_as(e, c)];
}

static bool is_there(const struct nfs3_fh *dir, const char *name)
{
	nfs_begin(&admin, NFSPROC3_LOOKUP, &root);
	nfs_put_name(&admin, dir, name);
	return nfs_status(&admin) == NFS3_OK;
}

/* Everything was done, or nothing. */
static void check_effect(const struct nfs_cell *cell, bool done,
			 const char *who)
{
	static const char *const made[] = { "new", "newdir", "newlink",
		"newfifo", "newname", "to" };
	static const char *const gone[] = { "gone", "goner", "from" };
	struct xdr_view data;

	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		ck_assert_msg(is_there(&cell->dir, made[i]) == done,
			      "%s: %s", who, made[i]);
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		ck_assert_msg(is_there(&cell->dir, gone[i]) != done,
			      "%s: %s", who, gone[i]);
	nfs_begin(&admin, NFSPROC3_READ, &root);
	nfs_put_fh(&admin, &cell->file);
	xdr_put_u64(&admin.out, 0);
	xdr_put_u32(&admin.out, 100);
	ck_assert_uint_eq(nfs_status(&admin), NFS3_OK);
	ck_assert(xdr_get_bool(&admin.in));
	xdr_get_u32(&admin.in);
	ck_assert_msg((xdr_get_u32(&admin.in) & 0777) == (done ? 0604 : 0640),
		      "%s: the mode", who);
	xdr_get_fixed(&admin.in, 76);		/* other attributes */
	xdr_get_u64(&admin.in);			/* count, end of file */
	data = xdr_get_opaque(&admin.in, 100);
	ck_assert_msg(xdr_ok(&admin.in) && data.len == (done ? 7u : 6u) &&
		      !memcmp(data.data, done ? "WRITTEN" : SECRET, data.len),
		      "%s: the data", who);
}

/* A caller's turn, through one door. */
struct turn {
	struct nfs_cell cell;
	char	    name[120];
	bool	    done;
};

static void take_turn(struct caller *c, enum door door, bool reserved,
		      const struct export_row *e, const struct caller_row *who,
		      struct turn *t)
{
	bool enters = may_enter(e, door, reserved);

	for (size_t i = 0; i < NFS_OPS; i++) {
		uint32_t want = wanted(&nfs_ops[i], e, who, enters);
		uint32_t got;

		nfs_begin(c, nfs_ops[i].proc, &who->cred);
		nfs_put_op(c, &nfs_ops[i], &t->cell);
		got = nfs_status(c);
		ck_assert_msg(got == want, "%s: %s is %u, not %u", t->name,
			      nfs_ops[i].name, got, want);
		if (nfs_ops[i].proc == NFSPROC3_ACCESS && got == NFS3_OK &&
		    acts_as(e, who) == AS_OTHER) {
			if (xdr_get_bool(&c->in))
				xdr_get_fixed(&c->in, 84);
			ck_assert_uint_eq(xdr_get_u32(&c->in), 0);
		}
		t->done = got == NFS3_OK;	/* the last one changes */
	}
}

/* All callers and exports through one door, from one kind of port. */
static void try_door(enum door door, bool reserved)
{
	static struct turn turns[NEXPORTS][NCALLERS];
	static struct caller c;

	publish(true);
	for (unsigned e = 0; e < NEXPORTS; e++)
		for (unsigned i = 0; i < NCALLERS; i++) {
			struct turn *t = &turns[e][i];

			snprintf(t->name, sizeof(t->name),
				 "%s over %s%s on %s", callers[i].name,
				 door_names[door],
				 reserved ? ", a low port," : "",
				 exports[e].name);
			make_cell(e, t->name, &t->cell);
		}
	publish(false);
	caller_open(&c, &d, door, reserved);
	for (unsigned e = 0; e < NEXPORTS; e++)
		for (unsigned i = 0; i < NCALLERS; i++)
			take_turn(&c, door, reserved, &exports[e], &callers[i],
				  &turns[e][i]);
	caller_close(&c);
	publish(true);
	for (unsigned e = 0; e < NEXPORTS; e++)
		for (unsigned i = 0; i < NCALLERS; i++)
			check_effect(&turns[e][i].cell, turns[e][i].done,
				     turns[e][i].name);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST_LOOP(each_may_do_what_its_export_and_the_files_allow_and_no_more,
	  0, 2 * NDOORS)
{
	try_door((enum door)(_i / 2), _i % 2);
}

static uint32_t mnt(struct caller *c, const char *path,
		    const struct caller_cred *cred)
{
	uint32_t stat;

	caller_begin(c, MOUNT_PROGRAM, 3, 1, cred);
	xdr_put_opaque(&c->out, path, (uint32_t)strlen(path));
	stat = caller_send(c);
	return stat == RPC_SUCCESS ? xdr_get_u32(&c->in) : 0x1000 + stat;
}

TEST_LOOP(each_may_mount_what_it_may_use, 0, 2 * NDOORS)
{
	enum door door = (enum door)(_i / 2);
	bool reserved = _i % 2;
	static struct caller c;
	char path[160];

	publish(false);
	caller_open(&c, &d, door, reserved);
	for (unsigned e = 0; e < NEXPORTS; e++)
		for (unsigned i = 0; i < NCALLERS; i++) {
			uint32_t want = NFS3_OK;

			if (!may_enter(&exports[e], door, reserved))
				want = NFS3ERR_ACCES;
			if (door != DOOR_TCP)
				want = 0x1000 + RPC_PROG_UNAVAIL;
			if (callers[i].as == NAS)
				want = 0x1000 + CALLER_DENIED + AUTH_BADCRED;
			path_of(e, path);
			ck_assert_msg(mnt(&c, path, &callers[i].cred) == want,
				      "%s of %s", exports[e].name,
				      callers[i].name);
		}
	caller_close(&c);
}

/* ---- handles */

/* The status of GETATTR by @fh. */
static uint32_t getattr(struct caller *c, const struct nfs3_fh *fh)
{
	nfs_begin(c, NFSPROC3_GETATTR, &root);
	nfs_put_fh(c, fh);
	return nfs_status(c);
}

TEST_LOOP(no_bit_of_a_handle_can_be_changed, 0, NDOORS)
{
	static struct caller c;
	struct nfs3_fh fh;
	struct nfs_cell cell;

	make_cell(0, "bits", &cell);
	caller_open(&c, &d, (enum door)_i, false);
	ck_assert_uint_eq(getattr(&c, &cell.file), NFS3_OK);
	for (unsigned bit = 0; bit < cell.file.len * 8; bit++) {
		fh = cell.file;
		fh.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_uint_eq(getattr(&c, &fh), NFS3ERR_BADHANDLE);
	}
	for (uint32_t len = 0; len <= NFS3_FHSIZE; len++) {
		fh = cell.file;
		fh.len = len;
		if (len != cell.file.len)
			ck_assert_uint_eq(getattr(&c, &fh),
					  NFS3ERR_BADHANDLE);
	}
	/* The front of one and the back of another. */
	for (uint32_t i = 1; i < cell.file.len; i++) {
		fh = cell.file;
		memcpy(fh.data, cell.dir.data, i);
		if (cell.dir.len == fh.len && memcmp(fh.data, cell.file.data,
		    fh.len) && memcmp(fh.data, cell.dir.data, fh.len))
			ck_assert_uint_eq(getattr(&c, &fh),
					  NFS3ERR_BADHANDLE);
	}
	caller_close(&c);
}

static uint32_t rename_to(struct caller *c, const struct nfs3_fh *from,
			  const struct nfs3_fh *to)
{
	nfs_begin(c, NFSPROC3_RENAME, &root);
	nfs_put_name(c, from, "from");
	nfs_put_name(c, to, "to");
	return nfs_status(c);
}

static uint32_t link_to(struct caller *c, const struct nfs3_fh *file,
			const struct nfs3_fh *dir)
{
	nfs_begin(c, NFSPROC3_LINK, &root);
	nfs_put_fh(c, file);
	nfs_put_name(c, dir, "newname");
	return nfs_status(c);
}

TEST_LOOP(nothing_is_moved_or_linked_between_exports, 0, NDOORS)
{
	struct nfs_cell cells[NEXPORTS];
	static struct caller c;

	publish(true);
	for (unsigned e = 0; e < NEXPORTS; e++)
		make_cell(e, "between", &cells[e]);
	publish(false);
	caller_open(&c, &d, (enum door)_i, false);
	for (unsigned a = 0; a < NEXPORTS; a++)
		for (unsigned b = 0; b < NEXPORTS; b++) {
			uint32_t want = NFS3ERR_XDEV;

			if (a == b)
				continue;
			if (exports[a].ro)
				want = NFS3ERR_ROFS;
			if (!may_enter(&exports[a], (enum door)_i, false))
				want = NFS3ERR_ACCES;
			ck_assert_uint_eq(rename_to(&c, &cells[a].dir,
						    &cells[b].dir), want);
			ck_assert_uint_eq(link_to(&c, &cells[a].file,
						  &cells[b].dir), want);
		}
	caller_close(&c);
	publish(true);
	for (unsigned e = 0; e < NEXPORTS; e++)
		check_effect(&cells[e], false, exports[e].name);
}

int main(void)
{
	if (!doors_may_bind_reserved()) {
		printf("SKIP: may not bind ports below 1024, nor make a "
		       "namespace where it may\n");
		return 77;
	}
	return run_tests();
}
