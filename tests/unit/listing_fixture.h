/* SPDX-License-Identifier: BSD-2-Clause */
/* listing_fixture - a directory of many files, and listings of it. */
#ifndef GANNET_TESTS_UNIT_LISTING_FIXTURE_H
#define GANNET_TESTS_UNIT_LISTING_FIXTURE_H

#include <stdlib.h>
#include <sys/stat.h>

#include "lib/stats.h"
#include "tests/unit/posix_fixture.h"

#define FILES 300

/* A listing of the directory, all of it. */
struct found {
	bool		has_attr;
	struct vfs_attr attr;
	int		times;
};

struct reading {
	int	 room;
	uint64_t cookie;
	bool	 eof;
	struct found file[FILES + 1];	/* e0, e1, ... */
	struct found sub;
	int	 strangers;
};

extern struct reading r;

/* A world with e0, e1, ... and a directory "sub"; false, and none, where
 * listings are not kept at all. */
bool open_full(int i);
bool open_full_with(int i, const struct vfs_config *config);
void make_file(int i);

/* A listing in pages of @room entries. */
void begin_list(int room);
void list_page(void);
int  try_list_page(void);
/* A whole one; one that came from what is kept. */
void list(void);
void list_kept(void);
void assert_all_there(void);

/* Of a counter. */
uint64_t count(const char *name);

/* On both file systems; how handles open makes no difference. */
#define add_fs_test(t, fn)	tcase_add_loop_test((t), fn, 0, 2)
/* On tmpfs, where the file system makes none either. */
#define add_ram_test(t, fn)	tcase_add_loop_test((t), fn, 1, 2)

#endif
