/* SPDX-License-Identifier: BSD-2-Clause */
/* listing_fixture - a directory of many files, and listings of it. */
#include "tests/unit/listing_fixture.h"

struct reading r;

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
		f->times++;
	}
	(*room)--;
	r.cookie = d->cookie;
	return true;
}

void begin_list(int room)
{
	memset(&r, 0, sizeof(r));
	r.room = room;
}

int try_list_page(void)
{
	uint64_t verf = 0;
	int room = r.room, err;

	err = posix_readdir(&w.ctx, w.root, r.cookie, &verf, true, take, &room,
			    &r.eof, NULL);
	ck_assert(err || r.eof || room < r.room);
	return err;
}

void list_page(void)
{
	assert_ok(try_list_page());
}

void list(void)
{
	begin_list(70);
	while (!r.eof)
		list_page();
}

uint64_t count(const char *name)
{
	return stats_sum_by_name(name);
}

void make_file(int i)
{
	char name[16];

	snprintf(name, sizeof(name), "e%d", i);
	close(open(local(name), O_CREAT | O_WRONLY, 0644));
}

bool open_full_with(int i, const struct vfs_config *config)
{
	world_open(i, config);
	for (int n = 0; n < FILES; n++)
		make_file(n);
	assert_ok(mkdir(local("sub"), 0755));
	if (to_posix_fs(w.fs)->keeps_listings)
		return true;
	printf("skipped: this file system's listings are not kept\n");
	world_close();
	return false;
}

bool open_full(int i)
{
	return open_full_with(i, NULL);
}

void list_kept(void)
{
	uint64_t kept;

	/* Until the test's time is over: a watch may be set late. */
	for (;;) {
		kept = count("posix_listing_used");
		list();
		if (count("posix_listing_used") >= kept + FILES / 70)
			return;
		usleep(20000);
	}
}

void assert_all_there(void)
{
	for (int i = 0; i < FILES; i++) {
		ck_assert_int_eq(r.file[i].times, 1);
		ck_assert(r.file[i].has_attr);
	}
	ck_assert_int_eq(r.sub.times, 1);
	ck_assert_int_eq(r.strangers, 0);
}
