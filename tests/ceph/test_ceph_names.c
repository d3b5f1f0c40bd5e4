/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many threads change names in one directory at the same time, each its own
 * names, through two servers.  Both servers agree with the answers, in look-ups
 * and in listings.
 *
 * GANNET_CEPH_SECONDS is for how long; GANNET_CRASH_SEED makes the same choices
 * again.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/ceph/pair.h"
#include "tests/unit/runner.h"

#define SECONDS	15
#define WORKERS	8
#define NAMES	6
#define PATH	32

struct name {
	atomic_uint	  changes;	/* odd: one is under way */
	_Atomic enum kind is;
};

struct worker {
	unsigned index;
	pthread_t thread;
	uint64_t random, until;
	struct nfs_context *nfs[2];	/* one for each server */
	struct name name[NAMES];
	unsigned long changes;
};

static struct worker worker[WORKERS];
static const char *_Atomic any_wrong;	/* the broken rule */

static unsigned choose(struct worker *w, unsigned n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->random >> 33) % n;
}

static char *path_of(const struct worker *w, unsigned i, char path[PATH])
{
	snprintf(path, PATH, "/side/%u.%u", w->index, i);
	return path;
}

/* ---- changes, each by one of the servers */

static int make_one(struct worker *w, struct nfs_context *nfs, const char *path,
		    enum kind *is)
{
	struct nfsfh *fh;
	int err;

	*is = KIND_FILE;
	switch (choose(w, 4)) {
	case 0:
		*is = KIND_DIR;
		return nfs_mkdir(nfs, path);
	case 1:
		*is = KIND_LINK;
		return nfs_symlink(nfs, "nowhere", path);
	default:
		err = nfs_open2(nfs, path, O_CREAT | O_EXCL | O_RDWR, 0644,
				&fh);
		return err < 0 ? err : nfs_close(nfs, fh);
	}
}

static int remove_one(struct nfs_context *nfs, const char *path, enum kind is)
{
	return is == KIND_DIR ? nfs_rmdir(nfs, path) : nfs_unlink(nfs, path);
}

/* @there tells whether the name is. */
static bool is_so(struct nfs_context *nfs, const char *path, bool there)
{
	struct nfs_stat_64 st;

	return nfs_lstat64(nfs, path, &st) == (there ? 0 : -ENOENT);
}

static void look_by_both(struct worker *w, unsigned i)
{
	char path[PATH];

	for (int at = 0; at < 2; at++)
		if (!is_so(w->nfs[at], path_of(w, i, path),
			   w->name[i].is != KIND_NONE))
			any_wrong = "a look-up";
}

static void make_or_remove(struct worker *w, unsigned i)
{
	struct nfs_context *nfs = w->nfs[choose(w, 2)];
	struct name *name = &w->name[i];
	enum kind is = KIND_NONE;
	char path[PATH];
	int err;

	path_of(w, i, path);
	err = name->is == KIND_NONE ? make_one(w, nfs, path, &is) :
				 remove_one(nfs, path, name->is);
	if (err < 0)
		any_wrong = "a name that is made or removed";
	name->is = is;
}

/* Gives what the name @i is of the name @to, as its only one or as another. */
static void move_or_link(struct worker *w, unsigned i, unsigned to)
{
	struct nfs_context *nfs = w->nfs[choose(w, 2)];
	/* libnfs would follow a symbolic link. */
	bool moves = w->name[i].is != KIND_FILE || choose(w, 2);
	char from_path[PATH], to_path[PATH];

	path_of(w, i, from_path);
	path_of(w, to, to_path);
	if ((moves ? nfs_rename(nfs, from_path, to_path) :
		     nfs_link(nfs, from_path, to_path)) < 0)
		any_wrong = "a name that is moved or linked";
	w->name[to].is = w->name[i].is;
	if (moves)
		w->name[i].is = KIND_NONE;
}

static void *change_names(void *arg)
{
	struct worker *w = arg;

	while (!any_wrong && runner_now_ms() < w->until) {
		unsigned i = choose(w, NAMES), to = (i + 1) % NAMES;
		bool both = w->name[i].is != KIND_NONE &&
			    w->name[to].is == KIND_NONE && choose(w, 2);

		w->name[i].changes++;
		if (both)
			w->name[to].changes++;
		if (both)
			move_or_link(w, i, to);
		else
			make_or_remove(w, i);
		look_by_both(w, i);
		if (both) {
			look_by_both(w, to);
			w->name[to].changes++;
		}
		w->name[i].changes++;
		w->changes++;
	}
	return NULL;
}

/* ---- listings */

/* The names, as they were when a listing began. */
struct before {
	unsigned  changes;
	enum kind is;
	unsigned  seen;			/* in the listing */
};

static void note_names(struct before all[WORKERS][NAMES])
{
	for (unsigned k = 0; k < WORKERS; k++)
		for (unsigned i = 0; i < NAMES; i++)
			all[k][i] = (struct before){
				.changes = worker[k].name[i].changes,
				.is = worker[k].name[i].is,
			};
}

static void list_names(struct nfs_context *nfs,
		       struct before all[WORKERS][NAMES])
{
	struct nfsdirent *entry;
	struct nfsdir *dir;
	unsigned k, i;

	ck_assert_int_eq(nfs_opendir(nfs, "/side", &dir), 0);
	while ((entry = nfs_readdir(nfs, dir)))
		if (sscanf(entry->name, "%u.%u", &k, &i) == 2)
			all[k][i].seen++;
	nfs_closedir(nfs, dir);
}

/* Compares the names that did not change since the listing began, and returns
 * their number. */
static unsigned compare_names(struct before all[WORKERS][NAMES])
{
	unsigned compared = 0;

	for (unsigned k = 0; k < WORKERS; k++) {
		for (unsigned i = 0; i < NAMES; i++) {
			const struct before *b = &all[k][i];

			if (b->changes % 2 ||
			    worker[k].name[i].changes != b->changes)
				continue;
			compared++;
			ck_assert_msg(b->seen == (b->is != KIND_NONE),
				      "%u.%u is listed %u times", k, i,
				      b->seen);
		}
	}
	return compared;
}

static void start_workers(uint64_t until)
{
	for (unsigned k = 0; k < WORKERS; k++) {
		struct worker *w = &worker[k];

		w->index = k;
		w->random = pair_crash->seed + k;
		w->until = until;
		w->nfs[0] = pair_nfs(&pair_crash->d);
		w->nfs[1] = pair_nfs(&pair_second);
	}
	ck_assert_int_eq(nfs_mkdir(worker[0].nfs[0], "/side"), 0);
	for (unsigned k = 0; k < WORKERS; k++)
		ck_assert_int_eq(pthread_create(&worker[k].thread, NULL,
						change_names, &worker[k]), 0);
}

static unsigned long end_workers(void)
{
	unsigned long changes = 0;

	for (unsigned k = 0; k < WORKERS; k++) {
		struct worker *w = &worker[k];

		pthread_join(w->thread, NULL);
		changes += w->changes;
		nfs_destroy_context(w->nfs[0]);
		nfs_destroy_context(w->nfs[1]);
	}
	return changes;
}

TEST_CASE(.setup = pair_start, .teardown = pair_stop,
	  .timeout = 120 + crash_setting("GANNET_CEPH_SECONDS", SECONDS));

TEST(names_of_one_directory_change_side_by_side)
{
	uint64_t until = runner_now_ms() +
		1000ull * crash_setting("GANNET_CEPH_SECONDS", SECONDS);
	struct nfs_context *lister[2] = { pair_nfs(&pair_crash->d),
					  pair_nfs(&pair_second) };
	unsigned long listed = 0, changes;

	start_workers(until);
	for (unsigned n = 0; !any_wrong && runner_now_ms() < until; n++) {
		struct before all[WORKERS][NAMES];

		note_names(all);
		list_names(lister[n % 2], all);
		listed += compare_names(all);
	}
	changes = end_workers();
	ck_assert_msg(!any_wrong, "not as it has to be: %s", any_wrong);
	printf("# names of one directory: %lu changes, %lu listed, seed %llu\n",
	       changes, listed, (unsigned long long)pair_crash->seed);
	fflush(stdout);
	ck_assert_uint_gt(listed, 0);
	nfs_destroy_context(lister[0]);
	nfs_destroy_context(lister[1]);
}
