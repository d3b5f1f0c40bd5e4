/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The posix backend on a disk where one sync in a hundred fails, and one write
 * in a hundred finds that unsynced data is lost: threads write, commit and set
 * attributes, and the sweeper closes.  Data that was called durable is.
 *
 * GANNET_TEST_STORM is for how many seconds; 2.
 */
#include "tests/unit/posix_fixture.h"
#include "tests/unit/sync_faults.h"

#define THREADS	4
#define FILES	3

static struct vfs_handle file[FILES];
static uint64_t until_ms;
static atomic_ulong ops, acks, errors, changed, lies;

struct write {
	struct vfs_node *n;
	ino_t ino;
	uint64_t verf;			/* that it was answered with */
	unsigned number;
};

static int64_t write_some(struct write *wr, enum vfs_stable how)
{
	int64_t done;

	wr->verf = w.fs->verf;		/* as nfs3/proc_io.c reads it */
	done = write_str(wr->n, 0, "0123456789", &how);
	wr->number = sync_faults_last_write();
	return done;
}

static void acknowledged(const struct write *wr, bool ok)
{
	atomic_fetch_add(ok ? &acks : &errors, 1);
	if (ok && sync_faults_lost(wr->ino, wr->number))
		atomic_fetch_add(&lies, 1);
}

static void by_chance(unsigned r)
{
	/* Calls of other threads come at different moments. */
	if (r % 2)
		pause_on_purpose(r % 100);
}

/* Several WRITEs, as a client sends, and a COMMIT of all of them. */
static void write_and_commit(struct write *wr, unsigned r)
{
	struct write first = *wr;
	bool ok;

	if (write_some(&first, VFS_UNSTABLE) < 0 ||
	    (by_chance(r), write_some(wr, VFS_UNSTABLE)) < 0)
		return;
	ok = DO(posix_commit, &w.who, wr->n) == 0;
	if (ok && (w.fs->verf != first.verf || w.fs->verf != wr->verf)) {
		atomic_fetch_add(&changed, 1);
		return;			/* sent again */
	}
	acknowledged(&first, ok);
	acknowledged(wr, ok);
}

static void do_one(unsigned r)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = 0640 };
	struct write wr;

	wr.n = must_open(&file[r % FILES]);
	wr.ino = to_posix(wr.n)->ino;
	switch (r / FILES % 8) {
	case 0:
		DO(posix_setattr, &w.who, wr.n, .set = &set);
		break;
	case 1: case 2:
		acknowledged(&wr, write_some(&wr, VFS_FILE_SYNC) > 0);
		break;
	case 3:
		write_some(&wr, VFS_UNSTABLE);
		break;
	default:
		write_and_commit(&wr, r / FILES / 8);
	}
	vfs_node_put(wr.n);
	atomic_fetch_add(&ops, 1);
	/* So that the sweeper finds something idle. */
	if (r % 1024 == 5)
		pause_on_purpose(30000);
}

/* However slow the machine is, each kind of result is looked at. */
static bool seen_enough(void)
{
	return acks > 100 && errors > 0 && changed > 0;
}

static void worker(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	while (runner_now_ms() < until_ms || !seen_enough())
		do_one((unsigned)rand_r(&seed) >> 3);
}

TEST_CASE(.timeout = getenv("GANNET_TEST_STORM") ? 24 * 3600 : 60);

TEST_LOOP(acknowledged_changes_are_on_a_disk_that_fails_at_times, 0, 2)
{
	const struct posix_options options = { .idle_ms = 4 };
	const char *seconds = getenv("GANNET_TEST_STORM");
	pthread_t thread[THREADS];
	struct vfs_node *n;
	char name[8] = "f0";

	world_open(_i * 2, &options);
	to_posix_fs(w.fs)->ram = false;
	for (int i = 0; i < FILES; i++) {
		name[1] = (char)('0' + i);
		n = must_create(w.root, name);
		file[i] = handle_of(n);
		vfs_node_put(n);
	}
	sync_faults.one_in = 100;
	sync_faults.pause_us = 50;
	until_ms = runner_now_ms() + 1000u * (seconds ? atoi(seconds) : 2);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_ok(thread_start(&thread[i], "worker", worker,
				       (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		assert_ok(pthread_join(thread[i], NULL));
	sync_faults.one_in = 0;
	printf("# %lu operations, %lu acknowledged, %lu errors, %lu sent "
	       "again, %d reports of lost data: %lu lies\n", ops, acks, errors,
	       changed, sync_faults_told(), lies);
	ck_assert_uint_eq(lies, 0);
	world_close();
}

int main(void)
{
	return world_run();
}
