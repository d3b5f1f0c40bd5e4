/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * servers - state that the servers of a file system share outside it: the key
 * of their handles, the records of their sessions, and their grace periods.
 */
#pragma once

#include "modules/ceph/ceph.h"

/* ---- store.c */

/* For writes that make objects. */
#define CFS_WHEN_FULL	LIBRADOS_OPERATION_FULL_FORCE

/* Reaches the objects of the file system that @o names.  @s->step is then the
 * part that failed. */
int  cfs_store_open(const struct cfs_options *o, struct cfs_store *s);
void cfs_store_close(struct cfs_store *s);

/* ---- identity.c */

/*
 * The key of the file system's handles, which all servers of it have: made by
 * the first that asks with @make, and then never changed.  -ENOENT: no key yet.
 */
int  cfs_identity_key(struct cfs_store *s, bool make,
		      uint8_t key[VFS_HANDLE_KEY]);

/* ---- record.c */

/* The number of this process in its records. */
uint64_t cfs_process(void);
/* The seconds of the grace period in @text, a notice or a record; 0: none. */
unsigned cfs_notice_read(const char *text);

typedef void cfs_record_fn(struct cfs_fs *fs, const struct cfs_record *r,
			   void *arg);

/* Calls @fn for each record. */
int  cfs_record_each(struct cfs_fs *fs, cfs_record_fn *fn, void *arg);
/* -ENOENT: not found. */
int  cfs_record_get(struct cfs_fs *fs, const char *name, struct cfs_record *r);
/* Writes @r, and its text.  -ECANCELED: the stored record is not @was, if
 * given. */
int  cfs_record_put(struct cfs_fs *fs, struct cfs_record *r,
		    const struct cfs_record *was);
int  cfs_record_remove(struct cfs_fs *fs, const struct cfs_record *was);
/* True if the session @name is of this server. */
bool cfs_record_is_own(const struct cfs_fs *fs, const char *name);

/* ---- notice.c */

/* Starts to watch, which must precede taking over sessions. */
int  cfs_notice_open(struct cfs_fs *fs);
/* Connects fs->store again, and watches. */
int  cfs_notice_reopen(struct cfs_fs *fs);
/* Also closes fs->store. */
void cfs_notice_close(struct cfs_fs *fs);
/* Gives no new locks for @s seconds. */
void cfs_notice_begin(struct cfs_fs *fs, uint64_t s);
/* True if other servers can notify this one. */
bool cfs_notice_is_heard(const struct cfs_fs *fs);
/* Tells the other servers of the grace period of @fs's clients. */
int  cfs_notice_tell(struct cfs_fs *fs);
/* The server that had the session @name does not come back. */
void cfs_notice_forget(struct cfs_fs *fs, const char *name);

/* ---- grace.c */

/* Learns from the records which servers are in their grace period, and whether
 * this server's clients may reclaim. */
int  cfs_grace_learn(struct cfs_fs *fs);
void cfs_grace_tick(struct cfs_fs *fs);
/* Before @c's session, if any, is taken over.  -ESTALE: this process had it,
 * and then another. */
int  cfs_grace_take_over(struct cfs_client *c);
/* After that.  @lasted: the cluster has kept the session's locks until now. */
int  cfs_grace_taken_over(struct cfs_client *c, bool lasted);
/* Fills in the record of a session that a predecessor of this server had, and
 * that is not taken over.  -ENOENT: no such session. */
int  cfs_grace_left_over(struct cfs_fs *fs, struct cfs_record *r);
/* Before @c's locks go, which are to be reclaimed. */
void cfs_grace_leave(struct cfs_client *c);
/* Before @c's session ends. */
void cfs_grace_forget(struct cfs_client *c);
/* Around the setting of a lock.  -ETIMEDOUT: not now.  -ENOLCK: another client
 * can have held the lock that is to be reclaimed. */
int  cfs_grace_set_begin(struct cfs_client *c, bool reclaim);
void cfs_grace_set_end(struct cfs_client *c);
/* Between them: true if a lock whose setting began at @began, clock_ms(), might
 * belong to another client by now. */
bool cfs_grace_set_late(struct cfs_client *c, bool reclaim, uint64_t began);

/* ---- session.c */

/* Makes @c's client.  The reason is that of vfs_fail(). */
int  cfs_client_make(struct cfs_client *c);
/* Replaces a lost one.  On the keeper's thread. */
void cfs_client_renew(struct cfs_client *c);
void cfs_client_end(struct cfs_client *c);
/* Ends the sessions that a predecessor of this server had, and that no export
 * of it has taken over.  The reason is that of vfs_fail(). */
int  cfs_client_end_left_over(struct cfs_fs *fs);
