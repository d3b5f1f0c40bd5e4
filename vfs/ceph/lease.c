/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lease - one move of a directory at a time, by all servers of the file system.
 *
 * A metadata server that is to move a directory into itself may wait for ever,
 * for a lock that it holds itself (Ceph 16.2).  A kernel never asks for it: it
 * looks first, and no other move of a directory comes between.  Nor do these
 * servers.
 *
 * The lease is a value in an object that they share: a number of the move, and
 * the time until which it has the lease, in seconds since 1970.  A server that
 * dies keeps it until then; the clocks agree to CLOCKS_S seconds.
 */
#include "vfs/ceph/ceph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/clock.h"

#define OBJECT		"moves"
#define KEY		"lease"
#define LEASE_S		15
#define CLOCKS_S	2
#define WAIT_S		1
#define PAUSE_US	5000

/* Replaces @was, if that is what is there: -ECANCELED.  Both may be "". */
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
	err = rados_write_op_operate(op, fs->store.io, OBJECT, NULL, 0);
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

static bool is_over(const char *text)
{
	uint64_t until;

	return sscanf(text, "%*16x %18" SCNu64, &until) != 1 ||
	       (uint64_t)time(NULL) > until + CLOCKS_S;
}

/* The keeper may reach the store anew between two of these. */
static int try_once(struct cfs_fs *fs, const char *was, const char *text)
{
	int err;

	pthread_rwlock_rdlock(&fs->grace.sets);
	err = fs->store.open ? replace_lease(fs, was, text) : -ENOTCONN;
	pthread_rwlock_unlock(&fs->grace.sets);
	return err;
}

static int look_at_lease(struct cfs_fs *fs, char text[CFS_LEASE_MAX])
{
	int err;

	pthread_rwlock_rdlock(&fs->grace.sets);
	err = fs->store.open ? fetch_lease(fs, text) : -ENOTCONN;
	pthread_rwlock_unlock(&fs->grace.sets);
	return err;
}

static int take_from_others(struct cfs_fs *fs, struct cfs_lease *l)
{
	uint64_t end = clock_ms() + WAIT_S * 1000, number;
	char there[CFS_LEASE_MAX] = "";
	int err;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	for (;;) {
		snprintf(l->text, sizeof(l->text), "%016" PRIx64 " %" PRIu64,
			 number, (uint64_t)time(NULL) + LEASE_S);
		err = try_once(fs, there, l->text);
		if (err != -ECANCELED || clock_ms() >= end)
			return err;
		err = look_at_lease(fs, there);
		if (err < 0)
			return err;
		if (*there && !is_over(there)) {
			*there = '\0';
			usleep(PAUSE_US);
		}
	}
}

int cfs_lease_take(struct cfs_fs *fs, struct cfs_lease *l)
{
	const struct timespec until = cfs_time_in(WAIT_S);
	int err = -pthread_mutex_clocklock(&fs->moves, CLOCK_MONOTONIC, &until);

	if (err < 0)
		return err;
	err = take_from_others(fs, l);
	if (err == 0)
		return 0;
	mutex_unlock(&fs->moves);
	/* Whatever it is, it passes. */
	return -ETIMEDOUT;
}

void cfs_lease_give(struct cfs_fs *fs, const struct cfs_lease *l)
{
	/* If it can't be told, the others wait for the time. */
	try_once(fs, l->text, "");
	mutex_unlock(&fs->moves);
}
