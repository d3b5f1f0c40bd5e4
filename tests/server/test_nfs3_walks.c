/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listings of a directory that changes, against a model.
 *
 * Twelve readers with pages of many sizes list one directory by READDIR and
 * READDIRPLUS.  They take turns at random with changes, which the server or a
 * local process makes; readers give up half through, begin again, and ask for
 * a page twice.  Whatever happens:
 *
 *  - a name that was there from before a listing's first call to its end is
 *    listed exactly once;
 *  - a name that was gone before the first call is not listed;
 *  - a name that came or went once since then is listed once at most;
 *  - each page is what the directory holds at that moment after the cookie,
 *    as a local process finds it that opens the directory and seeks there,
 *    with the attributes and handles of that moment.
 *
 * Where the file system's positions are mere counts (tmpfs before Linux 6.6,
 * overlayfs) only the last is true, as it is for the kernel's server.  Linux
 * 6.18's tmpfs loses names to every reader once a name was replaced by a
 * rename: it lists the new file first, but at the old one's position.  So no
 * name is replaced there; and since one walk of some thousands had a name twice
 * while another process changed other names, only pages are compared then.
 *
 * GANNET_WALK_STEPS is the number of steps (3000), GANNET_WALK_SEED the seed of
 * the random walks (the time), GANNET_WALK_DIR where on disk they are (here).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/log.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "tests/server/nfs_client.h"
#include "tests/unit/positions.h"
#include "tests/unit/runner.h"
#include "tests/unit/spread.h"
#include "vfs/posix/posix.h"

#define NAMES	300
#define READERS	12
#define NONE	(-1)

/* Check notes each ck_assert() by a system call, and these are many. */
#define MUST(cond, ...) do { \
		if (!(cond)) \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)

struct file {
	unsigned nlink;
	uint64_t size;
};

struct name {
	int	 file;			/* NONE: no such name */
	unsigned changed;		/* the step of its last change */
	unsigned before;		/* and of the change before that */
};

struct reader {
	bool	 active;
	bool	 plus;
	uint32_t dircount, maxcount;
	uint64_t cookie, last;		/* of the next page, of the last one */
	char	 verf[NFS3_COOKIEVERFSIZE];
	unsigned began;
	uint8_t	 seen[NAMES];
	bool	 again;			/* the last page was asked for again */
};

/* The names of one page, by the server or by the local process. */
struct names {
	int	 name[NAMES];
	int	 n;
	bool	 eof;
};

static struct {
	char	 dir[512];
	nfs_fh3	 fh;
	struct nfs3_fh handle;
	uint64_t random;
	unsigned step;
	unsigned walks;			/* that came to their end */
	bool	 stable;		/* positions name entries */
	bool	 replace;		/* names, by renames */
	struct name name[NAMES];
	struct file file[NAMES];	/* free: no links */
	struct reader reader[READERS];
} m;

static unsigned pick(unsigned n)
{
	m.random = m.random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(m.random >> 33) % n;
}

static char *path_of(int i)
{
	static char buf[2][600];
	static int turn;

	turn ^= 1;
	snprintf(buf[turn], sizeof(buf[turn]), "%s/n%03d", m.dir, i);
	return buf[turn];
}

static diropargs3 there(int i)
{
	return (diropargs3){ m.fh, path_of(i) + strlen(m.dir) + 1 };
}

/* The index in a name of the model's, or NONE. */
static int index_of(const char *s)
{
	return s[0] == 'n' ? atoi(s + 1) : NONE;
}

/* ---- changes */

static void touch(int i)
{
	m.name[i].before = m.name[i].changed;
	m.name[i].changed = m.step;
}

static void set_name(int i, int file)
{
	/* A replaced name can get another position: two changes. */
	if (m.name[i].file != NONE && file != NONE)
		touch(i);
	if (m.name[i].file != NONE)
		m.file[m.name[i].file].nlink--;
	m.name[i].file = file;
	if (file != NONE)
		m.file[file].nlink++;
	touch(i);
}

static void create(int i, bool by_server)
{
	CREATE3args a = { .where = there(i), .how = { .mode = GUARDED } };
	CREATE3res r;
	int f = 0, fd;

	while (m.file[f].nlink)
		f++;
	m.file[f].size = 0;
	set_name(i, f);
	if (by_server) {
		nfs_call(&root, create, &a, &r);
		ck_assert_int_eq(r.status, NFS3_OK);
		return;
	}
	fd = open(path_of(i), O_CREAT | O_EXCL | O_WRONLY, 0644);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void take_away(int i, bool by_server)
{
	REMOVE3args a = { .object = there(i) };
	REMOVE3res r;

	set_name(i, NONE);
	if (by_server) {
		nfs_call(&root, remove, &a, &r);
		ck_assert_int_eq(r.status, NFS3_OK);
		return;
	}
	ck_assert_int_eq(unlink(path_of(i)), 0);
}

static void move(int i, int j, bool by_server)
{
	RENAME3args a = { .from = there(i), .to = there(j) };
	RENAME3res r;
	int file = m.name[i].file;

	/* Two names of one file: nothing happens. */
	if (file != m.name[j].file) {
		set_name(j, file);
		set_name(i, NONE);
	}
	if (by_server) {
		nfs_call(&root, rename, &a, &r);
		ck_assert_int_eq(r.status, NFS3_OK);
		return;
	}
	ck_assert_int_eq(rename(path_of(i), path_of(j)), 0);
}

static nfs_fh3 find(int i)
{
	LOOKUP3args a = { .what = there(i) };
	LOOKUP3res r;

	nfs_call(&root, lookup, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	return r.LOOKUP3res_u.resok.object;
}

static void add_link(int i, int j, bool by_server)
{
	LINK3args a = { .link = there(j) };
	LINK3res r;

	set_name(j, m.name[i].file);
	if (by_server) {
		a.file = find(i);
		nfs_call(&root, link, &a, &r);
		ck_assert_int_eq(r.status, NFS3_OK);
		return;
	}
	ck_assert_int_eq(link(path_of(i), path_of(j)), 0);
}

static void resize(int i, bool by_server)
{
	SETATTR3args a = { .new_attributes.size.set_it = 1 };
	SETATTR3res r;
	uint64_t size = pick(100000);

	m.file[m.name[i].file].size = size;
	if (by_server) {
		a.object = find(i);
		a.new_attributes.size.set_size3_u.size = size;
		nfs_call(&root, setattr, &a, &r);
		ck_assert_int_eq(r.status, NFS3_OK);
		return;
	}
	ck_assert_int_eq(truncate(path_of(i), (off_t)size), 0);
}

static void change(void)
{
	int i = (int)pick(NAMES), j = (int)pick(NAMES);
	bool by_server = pick(2), there = m.name[i].file != NONE;
	unsigned what = pick(8);

	if (!there)
		create(i, by_server);
	else if (what < 3)
		take_away(i, by_server);
	else if (what < 5 && i != j &&
		 (m.replace || m.name[j].file == NONE))
		move(i, j, by_server);
	else if (what < 6 && m.name[j].file == NONE)
		add_link(i, j, by_server);
	else
		resize(i, by_server);
}

/* ---- one page */

static void add(struct names *p, const char *name)
{
	int i = index_of(name);

	if (i == NONE)
		return;
	MUST(p->n < NAMES, "step %u: more names than there are", m.step);
	p->name[p->n++] = i;
}

static void check_plus(const entryplus3 *e)
{
	const fattr3 *a = &e->name_attributes.post_op_attr_u.attributes;
	int i = index_of(e->name);
	const struct file *f;
	fattr3 now;

	if (i == NONE || m.name[i].file == NONE)
		return;
	f = &m.file[m.name[i].file];
	MUST(e->name_attributes.attributes_follow &&
	     e->name_handle.handle_follows && a->fileid == e->fileid &&
	     a->size == f->size && a->nlink == f->nlink,
	     "step %u: %s: fileid %llu and %llu, size %llu of %llu, nlink %u "
	     "of %u", m.step, e->name, (unsigned long long)e->fileid,
	     (unsigned long long)a->fileid, (unsigned long long)a->size,
	     (unsigned long long)f->size, a->nlink, f->nlink);
	if (pick(10))
		return;
	now = nfs_attr(e->name_handle.post_op_fh3_u.handle);
	ck_assert_uint_eq(now.fileid, a->fileid);
	ck_assert_uint_eq(now.size, a->size);
}

static void read_plus(struct reader *r, struct names *page)
{
	READDIRPLUS3args a = { .dir = m.fh, .cookie = r->cookie,
			       .dircount = r->dircount,
			       .maxcount = r->maxcount };
	READDIRPLUS3res res;
	READDIRPLUS3resok *ok = &res.READDIRPLUS3res_u.resok;

	memcpy(a.cookieverf, r->verf, sizeof(a.cookieverf));
	nfs_call(&root, readdirplus, &a, &res);
	ck_assert_int_eq(res.status, NFS3_OK);
	MUST(ok->reply.entries || ok->reply.eof, "step %u: nothing", m.step);
	for (entryplus3 *e = ok->reply.entries; e; e = e->nextentry) {
		check_plus(e);
		add(page, e->name);
		r->cookie = e->cookie;
	}
	page->eof = ok->reply.eof;
	memcpy(r->verf, ok->cookieverf, sizeof(r->verf));
}

static void read_plain(struct reader *r, struct names *page)
{
	READDIR3args a = { .dir = m.fh, .cookie = r->cookie,
			   .count = r->maxcount };
	READDIR3res res;
	READDIR3resok *ok = &res.READDIR3res_u.resok;

	memcpy(a.cookieverf, r->verf, sizeof(a.cookieverf));
	nfs_call(&root, readdir, &a, &res);
	ck_assert_int_eq(res.status, NFS3_OK);
	MUST(ok->reply.entries || ok->reply.eof, "step %u: nothing", m.step);
	for (entry3 *e = ok->reply.entries; e; e = e->nextentry) {
		add(page, e->name);
		r->cookie = e->cookie;
	}
	page->eof = ok->reply.eof;
	memcpy(r->verf, ok->cookieverf, sizeof(r->verf));
}

/* As a local process finds it, and knfsd: false where it can't seek there. */
static bool read_local(uint64_t cookie, struct names *all)
{
	char buf[32768] __attribute__((aligned(8)));
	int fd = open(m.dir, O_RDONLY | O_DIRECTORY);
	bool good;
	long len;

	ck_assert_int_ge(fd, 0);
	good = lseek(fd, (off_t)cookie, SEEK_SET) >= 0;
	while (good && (len = syscall(SYS_getdents64, fd, buf,
				      sizeof(buf))) > 0)
		for (long at = 0; at < len;) {
			const struct dirent64 *d = (const void *)(buf + at);

			good = good && d->d_off > 0;
			add(all, d->d_name);
			at += d->d_reclen;
		}
	close(fd);
	return good;
}

/* The page is the directory's state now. */
static void compare(const struct names *page, uint64_t cookie)
{
	struct names now = { .n = 0 };

	if (!read_local(cookie, &now))
		return;
	MUST(page->n <= now.n && (!page->eof || page->n == now.n),
	     "step %u: a page of %d of the model's names%s, where there are %d",
	     m.step, page->n, page->eof ? " and the end" : "", now.n);
	for (int i = 0; i < page->n; i++)
		MUST(page->name[i] == now.name[i],
		     "step %u: a page has n%03d where the directory has n%03d",
		     m.step, page->name[i], now.name[i]);
}

/* ---- readers */

static void check_walk(const struct reader *r)
{
	m.walks++;
	for (int i = 0; i < NAMES && m.stable; i++) {
		const struct name *n = &m.name[i];
		unsigned seen = r->seen[i];

		if (n->changed < r->began)
			MUST(seen == (n->file != NONE), "n%03d %s since step "
			     "%u; a listing from step %u to %u has it %u times",
			     i, n->file == NONE ? "is gone" : "is there",
			     n->changed, r->began, m.step, seen);
		else if (n->before < r->began)
			MUST(seen <= 1, "n%03d changed once since step %u; a "
			     "listing has it %u times", i, r->began, seen);
	}
}

static void begin(struct reader *r)
{
	static const uint32_t counts[] = { 300, 600, 1000, 4096, 65536 };
	static const uint32_t dircounts[] = { 100, 512, 4096, 65536 };

	*r = (struct reader){ .active = true, .plus = pick(2),
			      .began = m.step };
	r->maxcount = counts[pick(ARRAY_SIZE(counts))];
	r->dircount = dircounts[pick(ARRAY_SIZE(dircounts))];
}

static void read_page(struct reader *r)
{
	struct names page = { .n = 0 };
	uint64_t from = r->cookie;

	if (r->plus)
		read_plus(r, &page);
	else
		read_plain(r, &page);
	compare(&page, from);
	/* Entries that came twice because of a repeated call do not count. */
	for (int i = 0; i < page.n && !r->again; i++)
		r->seen[page.name[i]]++;
	r->last = from;
	if (page.eof && !r->again)
		check_walk(r);
	r->active = !page.eof;
}

/* As a client does whose connection was lost. */
static void read_again(struct reader *r)
{
	struct reader copy = *r;

	copy.cookie = r->last;
	copy.again = true;
	read_page(&copy);
}

static void step(void)
{
	struct reader *r = &m.reader[pick(READERS)];
	unsigned what = pick(100);

	m.step++;
	root.used = 0;
	if (what < 20)
		change();
	else if (!r->active)
		begin(r);
	else if (what < 24)
		r->active = false;
	else if (what < 30)
		read_again(r);
	else
		read_page(r);
}

/* ---- where */

static char base[2][256];		/* on tmpfs, on disk */

static void make_base(void)
{
	const char *disk = getenv("GANNET_WALK_DIR");

	snprintf(base[0], sizeof(base[0]), "/dev/shm/walks-XXXXXX");
	snprintf(base[1], sizeof(base[1]), "%s/walks-XXXXXX",
		 disk ? disk : getenv("PWD"));
	if (!mkdtemp(base[0]) || !mkdtemp(base[1])) {
		perror("walks");
		exit(1);
	}
	spread_subdirectories(base[1]);
}

static void learn_positions(void)
{
	struct statfs sf;

	ck_assert_int_eq(statfs(m.dir, &sf), 0);
	m.stable = positions_last(m.dir);
	m.replace = !m.stable || sf.f_type != TMPFS_MAGIC;
	if (!m.stable)
		printf("%s: positions are counts: no name is sure to be "
		       "listed\n", m.dir);
}

/* Bit 0 of @i: on disk, not on tmpfs.  Bit 1: with the table of handles. */
static void open_world(int i)
{
	struct harness_config config = { .backend = &posix_vfs_ops };
	char exports[1024];

	log_threshold = LOG_LEVEL_ERR;
	memset(&m, 0, sizeof(m));
	snprintf(m.dir, sizeof(m.dir), "%s/walk-XXXXXX", base[i & 1]);
	ck_assert_ptr_nonnull(mkdtemp(m.dir));
	learn_positions();
	for (int n = 0; n < NAMES; n++)
		m.name[n].file = NONE;
	snprintf(exports, sizeof(exports), "posix,async%s:%s "
		 "127.0.0.1(rw,insecure,no_root_squash)\n",
		 i & 2 ? ",table" : "", m.dir);
	config.exports = exports;
	harness_start(&srv, &config);
	harness_root(&srv, m.dir, &m.handle);
	m.fh.data.data_val = (char *)m.handle.data;
	m.fh.data.data_len = m.handle.len;
	nfs_client_open(&root, srv.port, NFS_PROGRAM, NFS_V3, (int)geteuid());
}

static void close_world(void)
{
	nfs_client_close(&root);
	harness_stop(&srv);
}

static unsigned steps(void)
{
	const char *s = getenv("GANNET_WALK_STEPS");

	return s ? (unsigned)atoi(s) : 3000;
}

static void walk(uint64_t seed)
{
	m.random = seed;
	for (int i = 0; i < NAMES; i++)
		if (pick(4))
			create(i, false);
	while (m.step < steps() || m.walks <= steps() / 100)
		step();
}

TEST_CASE(.timeout = 60 + steps() / 100);

TEST_LOOP(walks_find_what_is_there, 0, 4)
{
	open_world(_i);
	walk(1);
	close_world();
}

/* ---- and other names come and go all the time */

static atomic_bool quiet;

static void make_noise(void *arg)
{
	unsigned turn = 0;
	char a[600], b[600];

	while (!atomic_load(&quiet)) {
		snprintf(a, sizeof(a), "%s/x%u", m.dir, turn++ % 97);
		snprintf(b, sizeof(b), "%s/x%u", m.dir, turn * 7 % 97);
		close(open(a, O_CREAT | O_WRONLY, 0644));
		if (!m.replace || turn % 3 == 0)
			unlink(b);
		if (turn % 3)
			rename(a, b);
		/* A walk comes to an end between two changes. */
		pause_on_purpose(100);
	}
}

TEST_LOOP(walks_find_what_is_there_while_other_names_change, 0, 4)
{
	const char *given = getenv("GANNET_WALK_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) :
			(uint64_t)time(NULL) << 2 | (unsigned)_i;
	pthread_t noise;

	printf("GANNET_WALK_SEED=%llu, world %d\n", (unsigned long long)seed,
	       _i);
	fflush(stdout);
	open_world(_i);
	atomic_store(&quiet, !m.stable);
	m.stable = m.stable && _i & 1;
	ck_assert_int_eq(thread_start(&noise, "noise", make_noise, NULL), 0);
	walk(seed);
	atomic_store(&quiet, true);
	pthread_join(noise, NULL);
	close_world();
}

int main(void)
{
	char command[600];
	int rc;

	make_base();
	rc = run_tests();
	snprintf(command, sizeof(command), "rm -rf %s %s", base[0], base[1]);
	if (system(command))
		perror(command);
	return rc;
}
