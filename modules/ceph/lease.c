/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lease - one move of a directory at a time, by all servers of the file system.
 *
 * A metadata server that is asked to move a directory into itself can wait
 * forever, for a lock that it holds itself (Ceph 16.2).  A kernel never asks
 * for this: it looks first, and no other move of a directory comes between.
 * These servers do so under the lease.  But a rename within one directory,
 * which takes no lease, can give the name to another directory between the look
 * and the rename.
 *
 * The lease is a value in an object that they share: nothing, or three numbers
 * in hexadecimal digits, of the server, of its process, and of the move.  A
 * server that has seen the same numbers for LEASE_S assumes that their owner
 * died.  So a move may begin its rename only in the first half of that time;
 * the rename is assumed to end within the other half.  A server takes over the
 * lease of its predecessor, which has been shut out, at once.
 */
#include "modules/ceph/servers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/clock.h"

#define OBJECT		"moves"
#define KEY		"lease"
#define LEASE_S		60u
#define WAIT_S		1
#define PAUSE_US	5000

/* Replaces @was.  -ECANCELED: the lease is not @was.  Both can be "". */
static int replace_lease(struct cfs_fs *fs, const char *was, const char *text)
{
	rados_write_op_t op = rados_create_write_op();
	size_t key_len = strlen(KEY), len = strlen(text);
	const char *key = KEY;
	int err, rval;

	if (!op)
		return -ENOMEM;
	rados_write_op_create(op, LIBRADOS_CREATE_IDEMPOTENT, NULL);
	rados_write_op_omap_cmp2(op, KEY, LIBRADOS_CMPXATTR_OP_EQ, was,
				 key_len, strlen(was), &rval);
	rados_write_op_omap_set2(op, &key, &text, &key_len, &len, 1);
	err = rados_write_op_operate(op, fs->store.io, OBJECT, NULL,
				     CFS_WHEN_FULL);
	rados_release_write_op(op);
	return err;
}

static int fetch_lease(struct cfs_fs *fs, char text[CFS_LEASE_MAX])
{
	rados_read_op_t op = rados_create_read_op();
	size_t key_len = strlen(KEY), len = 0;
	char *key = NULL, *val = NULL;
	const char *wanted = KEY;
	rados_omap_iter_t iter;
	int err, rval = 0;

	if (!op)
		return -ENOMEM;
	rados_read_op_omap_get_vals_by_keys2(op, &wanted, 1, &key_len, &iter,
					     &rval);
	err = rados_read_op_operate(op, fs->store.io, OBJECT, 0);
	rados_release_read_op(op);
	if (err < 0 || rval < 0)
		return err < 0 ? err : rval;
	rados_omap_get_next2(iter, &key, &val, &key_len, &len);
	len = MIN(len, CFS_LEASE_MAX - 1u);
	if (key)
		memcpy(text, val, len);
	text[key ? len : 0] = '\0';
	rados_omap_get_end(iter);
	return 0;
}

/* The keeper connects the store again when it is not usable. */
static int try_once(struct cfs_fs *fs, const char *was, const char *text)
{
	int err;

	pthread_rwlock_rdlock(&fs->grace.sets);
	err = fs->grace.usable ? replace_lease(fs, was, text) : -ENOTCONN;
	pthread_rwlock_unlock(&fs->grace.sets);
	return err;
}

static int look_at_lease(struct cfs_fs *fs, char text[CFS_LEASE_MAX])
{
	int err;

	pthread_rwlock_rdlock(&fs->grace.sets);
	err = fs->grace.usable ? fetch_lease(fs, text) : -ENOTCONN;
	pthread_rwlock_unlock(&fs->grace.sets);
	return err;
}

static uint64_t server_number(const struct cfs_fs *fs)
{
	return hash_text(0, fs->uuid);
}

static bool is_predecessors(const struct cfs_fs *fs, const char *text)
{
	uint64_t server, process;

	return sscanf(text, "%16" SCNx64 " %16" SCNx64, &server,
		      &process) == 2 &&
	       server == server_number(fs) && process != cfs_process();
}

/* The server that has the lease @text is dead, or has had it for too long. */
static bool is_over(struct cfs_fs *fs, const char *text)
{
	if (is_predecessors(fs, text))
		return true;
	if (strcmp(fs->lease.text, text) != 0) {
		strcpy(fs->lease.text, text);
		fs->lease.since = clock_ms();
	}
	return clock_ms() - fs->lease.since >= LEASE_S * 1000;
}

static int take_from_others(struct cfs_fs *fs, struct cfs_lease *l)
{
	uint64_t end = clock_ms() + WAIT_S * 1000, number;
	char there[CFS_LEASE_MAX];
	int err;

	strcpy(there, fs->kept_lease.text);
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	snprintf(l->text, sizeof(l->text),
		 "%016" PRIx64 " %016" PRIx64 " %016" PRIx64,
		 server_number(fs), cfs_process(), number);
	for (;;) {
		l->since = clock_ms();
		err = try_once(fs, there, l->text);
		/* Such a write can still take effect. */
		if (err < 0 && err != -ECANCELED && err != -ENOTCONN)
			fs->kept_lease = *l;
		else if (err != -ENOTCONN)
			*fs->kept_lease.text = '\0';
		if (err != -ECANCELED || clock_ms() >= end)
			return err;
		err = look_at_lease(fs, there);
		if (err < 0)
			return err;
		if (*there && !is_over(fs, there)) {
			*there = '\0';
			usleep(PAUSE_US);
		}
	}
}

/* Logs once that the lease is missing. */
static void note_lease(struct cfs_fs *fs, int err)
{
	if (err < 0 && !fs->lease_missed)
		vfs_log(VFS_LOG_WARN, "%s: a directory has to wait before it "
			"moves: another server is moving one, or died while "
			"moving it: %s", fs->path, strerror(-err));
	fs->lease_missed = err < 0;
}

int cfs_lease_take(struct cfs_fs *fs, struct cfs_lease *l)
{
	const struct timespec until = cfs_time_in(WAIT_S);
	int err = -pthread_mutex_clocklock(&fs->moves, CLOCK_MONOTONIC, &until);

	if (err < 0)
		return err;
	err = take_from_others(fs, l);
	note_lease(fs, err);
	if (err == 0)
		return 0;
	mutex_unlock(&fs->moves);
	return -ETIMEDOUT;
}

bool cfs_lease_lasts(const struct cfs_lease *l)
{
	return clock_ms() - l->since < LEASE_S * 1000 / 2;
}

void cfs_lease_give(struct cfs_fs *fs, const struct cfs_lease *l)
{
	/* The next move of this server tries again; the others wait until the
	 * lease is over. */
	if (try_once(fs, l->text, "") < 0)
		fs->kept_lease = *l;
	mutex_unlock(&fs->moves);
}
