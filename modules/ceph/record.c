/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record - the records of all servers' sessions: one value for each session, by
 * its name, in an object that the servers of a file system share.
 *
 *	live PROCESS			the session has no locks
 *	held PROCESS			it has had locks since it began
 *	taken SECONDS PROCESS SINCE	so it has, and a server takes it over,
 *					or ends it
 *	grace SECONDS PROCESS SINCE	its server has ended or started, and the
 *					clients may still have to reclaim
 *
 * PROCESS is a random number of the server's process, in hexadecimal digits.
 * SINCE is the time, in seconds since 1970, from which on no other client was
 * granted a lock that is to be reclaimed; 0: one might have been granted.
 */
#include "modules/ceph/servers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define RECORDS		"servers"
#define BATCH		100

uint64_t cfs_process(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t number;
	uint64_t n;

	mutex_lock(&lock);
	while (!number)
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			number = 0;
	n = number;
	mutex_unlock(&lock);
	return n;
}

bool cfs_record_is_own(const struct cfs_fs *fs, const char *name)
{
	size_t len = strlen(fs->uuid);

	return strncmp(name, fs->uuid, len) == 0 &&
	       strrchr(name, '.') == name + len;
}

/* ---- their text */

static const char *const words[] = {
	[CFS_LIVE] = "live",
	[CFS_HELD] = "held",
	[CFS_TAKEN] = "taken",
	[CFS_GRACE] = "grace",
};

/* A part that is missing, or no number, is 0. */
static void parse_record(struct cfs_record *r)
{
	char word[8] = "";
	int at = 0, n = 0;

	r->process = r->since = r->seconds = 0;
	sscanf(r->text, "%7[a-z] %n", word, &at);
	r->kind = CFS_LIVE;
	while (r->kind < CFS_GRACE && strcmp(word, words[r->kind]) != 0)
		r->kind++;
	if (strcmp(word, words[r->kind]) != 0)
		return;
	/* sscanf() would take a sign. */
	if (r->kind >= CFS_TAKEN && r->text[at] >= '0' &&
	    r->text[at] <= '9' &&
	    sscanf(r->text + at, "%5u%n", &r->seconds, &n) == 1)
		r->seconds = MIN(r->seconds, CFS_GRACE_MAX);
	sscanf(r->text + at + n, "%16" SCNx64 "%18" SCNu64, &r->process,
	       &r->since);
}

static void format_record(struct cfs_record *r)
{
	char *to = r->text, *end = to + sizeof(r->text);

	to += snprintf(to, (size_t)(end - to), "%s ", words[r->kind]);
	if (r->kind >= CFS_TAKEN)
		to += snprintf(to, (size_t)(end - to), "%u ", r->seconds);
	to += snprintf(to, (size_t)(end - to), "%016" PRIx64, r->process);
	if (r->kind >= CFS_TAKEN)
		snprintf(to, (size_t)(end - to), " %" PRIu64, r->since);
}

unsigned cfs_notice_read(const char *text)
{
	struct cfs_record r;

	snprintf(r.text, sizeof(r.text), "%s", text);
	parse_record(&r);
	return r.kind == CFS_GRACE ? r.seconds : 0;
}

/* ---- reading */

static void set_record(struct cfs_record *r, const char *val, size_t len)
{
	len = MIN(len, sizeof(r->text) - 1);
	memcpy(r->text, val, len);
	r->text[len] = '\0';
	parse_record(r);
}

/* The key's beginning is where the next batch starts, even if it is no name of
 * a session: r->text is then empty. */
static bool fetch_record(rados_omap_iter_t iter, struct cfs_record *r)
{
	char *key, *val;
	size_t key_len, val_len;
	bool fits;

	if (rados_omap_get_next2(iter, &key, &val, &key_len, &val_len) < 0 ||
	    !key)
		return false;
	fits = key_len < sizeof(r->name);
	key_len = MIN(key_len, sizeof(r->name) - 1);
	memcpy(r->name, key, key_len);
	r->name[key_len] = '\0';
	set_record(r, val, fits ? val_len : 0);
	return true;
}

/* Calls @fn for some records behind @last, which it moves on. */
static int some_records(struct cfs_fs *fs, struct cfs_record *last, bool *more,
			cfs_record_fn *fn, void *arg)
{
	rados_read_op_t op = rados_create_read_op();
	rados_omap_iter_t iter;
	unsigned char left = 0;
	int err, rval = 0;
	bool any = false;

	if (!op)
		return -ENOMEM;
	rados_read_op_omap_get_vals2(op, last->name, "", BATCH, &iter, &left,
				     &rval);
	err = rados_read_op_operate(op, fs->store.io, RECORDS, 0);
	rados_release_read_op(op);
	*more = false;
	if (err < 0 || rval < 0)
		return err < 0 ? err : rval;
	while (fetch_record(iter, last)) {
		if (!*last->text)
			continue;
		fn(fs, last, arg);
		any = true;
	}
	rados_omap_get_end(iter);
	*more = left && any;
	return 0;
}

int cfs_record_each(struct cfs_fs *fs, cfs_record_fn *fn, void *arg)
{
	struct cfs_record last = { .name = "" };
	bool more = true;
	int err = 0;

	while (err == 0 && more)
		err = some_records(fs, &last, &more, fn, arg);
	/* No server has made the object yet. */
	return err == -ENOENT ? 0 : err;
}

int cfs_record_get(struct cfs_fs *fs, const char *name, struct cfs_record *r)
{
	rados_read_op_t op = rados_create_read_op();
	size_t len = strlen(name), key_len, val_len = 0;
	char *key = NULL, *val = NULL;
	rados_omap_iter_t iter;
	int err, rval = 0;

	if (!op)
		return -ENOMEM;
	rados_read_op_omap_get_vals_by_keys2(op, &name, 1, &len, &iter, &rval);
	err = rados_read_op_operate(op, fs->store.io, RECORDS, 0);
	rados_release_read_op(op);
	if (err < 0 || rval < 0)
		return err < 0 ? err : rval;
	err = rados_omap_get_next2(iter, &key, &val, &key_len, &val_len);
	if (err == 0 && !key)
		err = -ENOENT;
	if (err == 0) {
		snprintf(r->name, sizeof(r->name), "%s", name);
		set_record(r, val, val_len);
	}
	rados_omap_get_end(iter);
	return err;
}

/* ---- writing */

/* With @was, only if the record has this text; else -ECANCELED. */
static int operate(struct cfs_fs *fs, const char *name, const char *was,
		   const char *text)
{
	rados_write_op_t op = rados_create_write_op();
	size_t key_len = strlen(name), len = text ? strlen(text) : 0;
	int err, rval;

	if (!op)
		return -ENOMEM;
	if (was)
		rados_write_op_omap_cmp2(op, name, LIBRADOS_CMPXATTR_OP_EQ,
					 was, key_len, strlen(was), &rval);
	if (text)
		rados_write_op_omap_set2(op, &name, &text, &key_len, &len, 1);
	else
		rados_write_op_omap_rm_keys2(op, &name, &key_len, 1);
	err = rados_write_op_operate(op, fs->store.io, RECORDS, NULL,
				     CFS_WHEN_FULL);
	rados_release_write_op(op);
	return err;
}

int cfs_record_put(struct cfs_fs *fs, struct cfs_record *r,
		   const struct cfs_record *was)
{
	format_record(r);
	return operate(fs, r->name, was ? was->text : NULL, r->text);
}

int cfs_record_remove(struct cfs_fs *fs, const struct cfs_record *was)
{
	return operate(fs, was->name, was->text, NULL);
}
