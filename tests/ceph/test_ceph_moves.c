/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two servers move directories into other directories, in turns and at once:
 * each move ends, none makes a directory its own ancestor, and ".." agrees with
 * the answers.
 *
 * GANNET_CEPH_SECONDS is for how long; GANNET_CRASH_SEED makes the same choices
 * again.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tests/ceph/pair.h"
#include "tests/unit/runner.h"

#define SECONDS	8
#define WORKERS	8
#define DIRS	5
#define TOP	DIRS		/* the directory of all, which stays */
#define LONG_MS	20000

static struct model_fh dir[DIRS + 1];
static uint64_t fileid[DIRS + 1];
static const char *const names[DIRS] = { "0", "1", "2", "3", "4" };
static struct wire wire[WORKERS];	/* by the two servers in turns */

static void make_dirs(void)
{
	for (unsigned k = 0; k < WORKERS; k++)
		ck_assert(wire_open(&wire[k], k % 2 ? pair_second.tcp_port :
				    pair_crash->d.tcp_port, NFS_PROGRAM));
	dir[TOP] = pair_crash->root;
	for (unsigned i = 0; i < DIRS; i++)
		ck_assert(wire_mkdir(&wire[0], &dir[TOP], names[i], &dir[i]));
	for (unsigned i = 0; i <= DIRS; i++)
		fileid[i] = wire_getattr(&wire[0], &dir[i]).fileid;
}

static void begin(void)
{
	pair_start();
	make_dirs();
}

static void end(void)
{
	for (unsigned k = 0; k < WORKERS; k++)
		wire_close(&wire[k]);
	pair_stop();
}

TEST_CASE(.setup = begin, .teardown = end,
	  .timeout = 120 + crash_setting("GANNET_CEPH_SECONDS", SECONDS));

static void lies_in(unsigned i, unsigned in)
{
	for (unsigned k = 0; k < 2; k++) {
		struct wire_attr up = wire_lookup(&wire[k], &dir[i], "..");

		ck_assert_int_eq(up.status, NFS3_OK);
		ck_assert_uint_eq(up.fileid, fileid[in]);
	}
}

TEST(dotdot_is_where_either_server_moved_the_directory_to)
{
	for (unsigned n = 0; n < 10; n++) {
		struct wire *a = &wire[n % 2], *b = &wire[(n + 1) % 2];

		ck_assert_int_eq(wire_move(a, &dir[TOP], "0", &dir[1]), 0);
		lies_in(0, 1);
		ck_assert_int_eq(wire_move(b, &dir[1], "0", &dir[2]), 0);
		lies_in(0, 2);
		ck_assert_int_eq(wire_move(a, &dir[2], "0", &dir[TOP]), 0);
		lies_in(0, TOP);
	}
}

/* The first server moved it, the second one moved it back. */
TEST(a_directory_goes_where_another_server_made_room_for_it)
{
	for (unsigned n = 0; n < 5; n++) {
		struct wire *a = &wire[n % 2], *b = &wire[(n + 1) % 2];

		ck_assert_int_eq(wire_move(a, &dir[TOP], "0", &dir[1]), 0);
		ck_assert_int_eq(wire_move(b, &dir[1], "0", &dir[TOP]), 0);
		ck_assert_int_eq(wire_move(a, &dir[TOP], "1", &dir[0]), 0);
		ck_assert_int_eq(wire_move(a, &dir[TOP], "0", &dir[1]),
				 NFS3ERR_INVAL);
		ck_assert_int_eq(wire_move(b, &dir[0], "1", &dir[TOP]), 0);
	}
}

/* ---- at once */

static atomic_uint in[DIRS];		/* where each was seen last */
static atomic_ulong longest;		/* that a RENAME took, in ms */
static atomic_int strange;		/* no call may return this status */

struct worker {
	pthread_t thread;
	unsigned  index;
	uint64_t  random, until;
	unsigned  moves, refused;
};

static unsigned choose(struct worker *w, unsigned n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->random >> 33) % n;
}

static void note_time(uint64_t ms)
{
	unsigned long was = atomic_load(&longest);

	while (was < ms && !atomic_compare_exchange_weak(&longest, &was, ms))
		;
}

/* Another worker moved it meanwhile. */
static void find_again(struct worker *w, unsigned i)
{
	struct wire_attr up = wire_lookup(&wire[w->index], &dir[i], "..");

	for (unsigned k = 0; k <= DIRS; k++)
		if (up.status == NFS3_OK && up.fileid == fileid[k])
			in[i] = k;
}

static void move_one(struct worker *w, unsigned i, unsigned to)
{
	uint64_t start = runner_now_ms();
	int status = wire_move(&wire[w->index], &dir[in[i]], names[i],
			       &dir[to]);

	note_time(runner_now_ms() - start);
	switch (status) {
	case NFS3_OK:
		w->moves++;
		in[i] = to;
		break;
	case NFS3ERR_INVAL:
		w->refused++;
		break;
	case NFS3ERR_NOENT:
		find_again(w, i);
		break;
	case NFS3ERR_JUKEBOX:
		break;
	default:
		atomic_store(&strange, status);
	}
}

static void *move_dirs(void *arg)
{
	struct worker *w = arg;

	while (!strange && runner_now_ms() < w->until) {
		unsigned i = choose(w, DIRS), to = choose(w, DIRS + 1);

		if (to != i && to != in[i])
			move_one(w, i, to);
	}
	return NULL;
}

static void start_worker(struct worker *w, unsigned k)
{
	*w = (struct worker){
		.index = k,
		.random = pair_crash->seed + k,
		.until = runner_now_ms() + 1000ull *
			 crash_setting("GANNET_CEPH_SECONDS", SECONDS),
	};
	ck_assert_int_eq(pthread_create(&w->thread, NULL, move_dirs, w), 0);
}

/* The directories below @at, down to @depth. */
static unsigned count_below(struct wire *w, const struct model_fh *at,
			    unsigned depth)
{
	unsigned n = 0;

	for (unsigned i = 0; depth > 0 && i < DIRS; i++) {
		struct wire_attr a = wire_lookup(w, at, names[i]);

		ck_assert(a.status == NFS3_OK || a.status == NFS3ERR_NOENT);
		if (a.status == NFS3_OK)
			n += 1 + count_below(w, &a.fh, depth - 1);
	}
	return n;
}

/* The metadata server hangs (Ceph 16.2) if it is asked to move a directory into
 * itself. */
TEST(directories_move_into_and_out_of_each_other_by_two_servers)
{
	struct worker worker[WORKERS];
	unsigned moves = 0, refused = 0;

	for (unsigned i = 0; i < DIRS; i++)
		in[i] = TOP;
	for (unsigned k = 0; k < WORKERS; k++)
		start_worker(&worker[k], k);
	for (unsigned k = 0; k < WORKERS; k++) {
		pthread_join(worker[k].thread, NULL);
		moves += worker[k].moves;
		refused += worker[k].refused;
	}
	printf("# directories into each other: %u moves, %u refused, %lu ms at "
	       "most, seed %llu\n", moves, refused, atomic_load(&longest),
	       (unsigned long long)pair_crash->seed);
	fflush(stdout);
	ck_assert_int_eq(strange, 0);
	ck_assert_uint_gt(moves, 0);
	ck_assert_uint_gt(refused, 0);
	ck_assert_uint_lt(atomic_load(&longest), LONG_MS);
	/* All are still below the one of all, once. */
	for (unsigned k = 0; k < 2; k++)
		ck_assert_uint_eq(count_below(&wire[k], &dir[TOP], DIRS), DIRS);
}
