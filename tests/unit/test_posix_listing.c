/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend: the attributes that READDIRPLUS has of each entry. */
#include <sys/stat.h>

#include "tests/unit/posix_fixture.h"

#define FILES 300

struct found {
	bool		has_attr;
	struct vfs_attr attr;
	bool		has_handle;
	struct vfs_handle handle;
	int		times;
};

/* A listing of the directory, all of it. */
static struct reading {
	int	 room;
	uint64_t cookie;
	bool	 eof;
	struct found file[FILES + 1];	/* e0, e1, ... */
	struct found sub;
	int	 strangers;
	void	 (*meanwhile)(void);	/* once, after the first file */
} r;

static bool take(void *arg, const struct vfs_dirent *d)
{
	int *room = arg;
	struct found *f = NULL;
	char name[256];
	unsigned n;

	if (*room == 0)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)d->name.len, d->name.s);
	if (sscanf(name, "e%u", &n) == 1 && n < ARRAY_SIZE(r.file))
		f = &r.file[n];
	else if (strcmp(name, "sub") == 0)
		f = &r.sub;
	else if (name[0] != '.')
		r.strangers++;
	if (f) {
		f->has_attr = d->has_attr;
		f->attr = d->attr;
		f->has_handle = d->has_handle;
		f->handle = d->handle;
		f->times++;
	}
	if (f && r.meanwhile) {
		r.meanwhile();
		r.meanwhile = NULL;
	}
	(*room)--;
	r.cookie = d->cookie;
	return true;
}

static void begin_list(int room)
{
	memset(&r, 0, sizeof(r));
	r.room = room;
}

static int try_list_page(void)
{
	int room = r.room, err;

	err = GET(eof, r.eof, posix_readdir, &w.who, w.root,
		  .readdir = { .cookie = r.cookie, .plus = true, .emit = take,
			       .arg = &room });
	ck_assert(err || r.eof || room < r.room);
	return err;
}

static void list_page(void)
{
	assert_ok(try_list_page());
}

static void list(void)
{
	begin_list(70);
	while (!r.eof)
		list_page();
}

static void make_file(int i)
{
	char name[16];

	snprintf(name, sizeof(name), "e%d", i);
	close(open(local(name), O_CREAT | O_WRONLY, 0644));
}

static void open_full(int i)
{
	world_open(i, NULL);
	for (int n = 0; n < FILES; n++)
		make_file(n);
	assert_ok(mkdir(local("sub"), 0755));
}

static void assert_all_there(void)
{
	for (int i = 0; i < FILES; i++) {
		ck_assert_int_eq(r.file[i].times, 1);
		ck_assert(r.file[i].has_attr);
	}
	ck_assert_int_eq(r.sub.times, 1);
	ck_assert_int_eq(r.strangers, 0);
}

TEST_CASE(.timeout = 120);

TEST_LOOP(names_follow_every_change, 0, WORLDS)
{
	open_full(_i);
	list();
	make_file(FILES);
	list();
	ck_assert_int_eq(r.file[FILES].times, 1);
	assert_ok(unlink(local("e5")));
	list();
	ck_assert_int_eq(r.file[5].times, 0);
	assert_ok(rename(local("e6"), local("e5")));
	list();
	ck_assert_int_eq(r.file[5].times, 1);
	ck_assert_int_eq(r.file[6].times, 0);
	must_remove(w.root, "e5", false);
	vfs_node_put(must_create(w.root, "e6"));
	list();
	ck_assert_int_eq(r.file[5].times, 0);
	ck_assert_int_eq(r.file[6].times, 1);
	world_close();
}

TEST_LOOP(attributes_follow_the_servers_changes, 0, WORLDS)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = 0600 };
	struct vfs_node *n, *sub;

	open_full(_i);
	n = must_lookup(w.root, "e10");
	sub = must_lookup(w.root, "sub");
	list();
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	list();
	ck_assert_uint_eq(r.file[10].attr.size, 4);
	assert_ok(DO(posix_setattr, &w.who, n, .set = &set));
	list();
	ck_assert_uint_eq(r.file[10].attr.mode, 0600);
	assert_ok(DO(posix_link, &w.who, n,
		     .to = { .dir = sub, .name = name_of("other") }));
	list();
	ck_assert_uint_eq(r.file[10].attr.nlink, 2);
	vfs_node_put(n);
	vfs_node_put(sub);
	world_close();
}

/* Two exports can hold the same file: a directory and one below it. */
TEST_LOOP(changes_by_another_export_show, 0, WORLDS)
{
	struct vfs_config other;
	struct vfs_node *root, *n;
	struct vfs_fs *fs;

	open_full(_i);
	other = w.config;
	other.state_dir = NULL;		/* the first one's table is there */
	assert_ok(posix_vfs_ops.mount(&other, &fs));
	assert_ok(fs->ops->root(fs, &root));
	n = must_lookup(root, "e10");
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(write_str(n, i, "x", NULL), 1);
		list();
		ck_assert_uint_eq(r.file[10].attr.size, i + 1);
	}
	vfs_node_put(n);
	vfs_node_put(root);
	posix_vfs_ops.unmount(fs);
	world_close();
}

TEST_LOOP(attributes_follow_local_changes, 0, WORLDS)
{
	const struct timespec times[2] = { { 1000, 5 }, { 2000, 6 } };
	int fd;

	open_full(_i);
	list();
	assert_ok(truncate(local("e20"), 1234));
	list();
	ck_assert_uint_eq(r.file[20].attr.size, 1234);
	assert_ok(chmod(local("e20"), 0640));
	list();
	ck_assert_uint_eq(r.file[20].attr.mode, 0640);
	assert_ok(utimensat(AT_FDCWD, local("e20"), times, 0));
	list();
	ck_assert_int_eq(r.file[20].attr.mtime.tv_sec, 2000);
	fd = open(local("e20"), O_WRONLY | O_APPEND);
	ck_assert_int_ge(fd, 0);
	for (unsigned i = 1; i < 5; i++) {
		ck_assert_int_eq(write(fd, "x", 1), 1);
		list();
		ck_assert_uint_eq(r.file[20].attr.size, 1234 + i);
	}
	close(fd);
	world_close();
}

TEST_LOOP(attributes_follow_changes_made_elsewhere, 0, WORLDS)
{
	struct vfs_attr attr;

	open_full(_i);
	assert_ok(link(local("e30"), local("sub/other")));
	list();
	ck_assert_uint_eq(r.file[30].attr.nlink, 2);
	assert_ok(truncate(local("sub/other"), 99));
	list();
	ck_assert_uint_eq(r.file[30].attr.size, 99);
	attr = r.sub.attr;
	assert_ok(mkdir(local("sub/below"), 0755));
	list();
	ck_assert(r.sub.attr.nlink != attr.nlink ||
		  !posix_same_time(&r.sub.attr.mtime, &attr.mtime));
	world_close();
}

/* Replaces each file that was not listed yet: the new one has another size, and
 * perhaps the old inode number. */
static void replace_the_rest(void)
{
	char name[16];

	for (int i = 0; i < FILES; i++) {
		if (r.file[i].times)
			continue;
		snprintf(name, sizeof(name), "e%d", i);
		assert_ok(unlink(local(name)));
		make_file(i);
		assert_ok(truncate(local(name), i + 1));
	}
}

static void assert_one_file(const struct found *f, int i)
{
	struct vfs_node *n;
	struct vfs_attr now;

	if (!f->has_attr || f->attr.size == 0)	/* the old one, or unknown */
		return;
	ck_assert_uint_eq(f->attr.size, i + 1);
	ck_assert(f->has_handle);
	n = must_open(&f->handle);
	now = attr_of(n);
	ck_assert_uint_eq(now.fileid, f->attr.fileid);
	ck_assert_uint_eq(now.size, f->attr.size);
	vfs_node_put(n);
}

/* Whether the names were known before or not. */
TEST_LOOP(handle_and_attributes_are_of_one_file, 0, WORLDS)
{
	for (int known = 0; known < 2; known++) {
		open_full(_i);
		world_settle("");
		if (known)
			list();
		/* A listing can have a replaced name twice, or not at all. */
		begin_list(4 * FILES);
		r.meanwhile = replace_the_rest;
		list_page();
		ck_assert(r.eof);
		for (int i = 0; i < FILES; i++)
			assert_one_file(&r.file[i], i);
		world_close();
	}
}

TEST_LOOP(without_search_permission_a_listing_has_names_alone, 0, WORLDS)
{
	struct vfs_cred bob = { .uid = 1002, .gid = 1002 };

	open_full(_i);
	if (!to_posix_fs(w.fs)->privileged) {
		printf("skipped: no callers\n");
		world_close();
		return;
	}
	posix_cred_server(to_posix_fs(w.fs));
	assert_ok(chmod(w.dir, 0744));
	list();
	assert_all_there();
	w.who.cred = &bob;
	list();
	for (int i = 0; i < FILES; i++) {
		ck_assert_int_eq(r.file[i].times, 1);
		ck_assert(!r.file[i].has_attr);
	}
	posix_cred_server(to_posix_fs(w.fs));
	assert_ok(chmod(w.dir, 0711));
	begin_list(70);
	assert_err(try_list_page(), EACCES);
	w.who.cred = &w.cred;
	posix_cred_server(to_posix_fs(w.fs));
	world_close();
}

struct owner {
	pthread_t	  thread;
	struct vfs_node	 *file;
	char		  name[16];
	uint64_t	  size;		/* as the listing has it */
	uint64_t	  cookie;
	int		  left;
	int		  wrong;
};

static bool take_own(void *arg, const struct vfs_dirent *d)
{
	struct owner *o = arg;

	if (o->left == 0)
		return false;
	if (d->name.len == strlen(o->name) &&
	    memcmp(d->name.s, o->name, d->name.len) == 0)
		o->size = d->attr.size;
	o->cookie = d->cookie;
	o->left--;
	return true;
}

/* Writes, lists a few times, and finds its writes in the listing. */
static void own(void *arg)
{
	struct owner *o = arg;
	bool eof;

	for (unsigned i = 0; i < 100 && !o->wrong; i++) {
		if (i % 4 == 0)
			write_str(o->file, i, "x", NULL);
		o->cookie = 0;
		do {
			o->left = 70;
			if (GET(eof, eof, posix_readdir, &w.who, w.root,
				.readdir = { .cookie = o->cookie, .plus = true,
					     .emit = take_own, .arg = o }) < 0)
				o->wrong++;
		} while (!eof && o->wrong == 0);
		o->wrong += o->size != i / 4 * 4 + 1;
	}
}

TEST_LOOP(a_writer_finds_its_change_in_the_next_listing, 0, WORLDS)
{
	struct owner o[4];

	open_full(_i);
	list();
	for (int i = 0; i < 4; i++) {
		o[i] = (struct owner){ 0 };
		snprintf(o[i].name, sizeof(o[i].name), "e%d", i);
		o[i].file = must_lookup(w.root, o[i].name);
	}
	for (int i = 0; i < 4; i++)
		assert_ok(thread_start(&o[i].thread, "own", own, &o[i]));
	for (int i = 0; i < 4; i++) {
		pthread_join(o[i].thread, NULL);
		ck_assert_int_eq(o[i].wrong, 0);
		vfs_node_put(o[i].file);
	}
	world_close();
}

int main(void)
{
	return world_run();
}
