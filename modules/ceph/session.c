/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session - creates clients of the library, and replaces lost ones.
 *
 * A client that is silent for a minute is shut out by the cluster
 * ("blocklisted"): from then on every request of it fails, and its unwritten
 * data is lost, though the library's fsync then answers 0.  The keeper first
 * changes the write verifier, which makes NFS clients send lost data again, and
 * creates a new client.
 *
 * A server that dies leaves its clients' capabilities and locks behind for
 * that minute.  So each has a name that its successor knows: the server's,
 * which the state directory keeps, and a number.  A new client of the name
 * first has the cluster shut out the old one.
 */
#include "modules/ceph/servers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"

#define AGAIN_MS	1000
#define RENEW_WAIT_S	1

/*
 * The exports that take over sessions now, at most one of a file system: the
 * first export that is mounted ends the sessions that no other one has taken
 * over.  Exports of another file system don't wait for it, since this one can
 * be without a metadata server for long.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t	changed;
	struct cfs_fs  *first;
} taking = { .lock = PTHREAD_MUTEX_INITIALIZER,
	     .changed = PTHREAD_COND_INITIALIZER };

static bool is_taking(const struct cfs_fs *fs)
{
	const struct cfs_fs *o = taking.first;

	while (o && o->which != fs->which)
		o = o->next_taking;
	return o;
}

static void begin_taking(struct cfs_fs *fs)
{
	mutex_lock(&taking.lock);
	while (is_taking(fs))
		pthread_cond_wait(&taking.changed, &taking.lock);
	fs->next_taking = taking.first;
	taking.first = fs;
	mutex_unlock(&taking.lock);
}

static void end_taking(struct cfs_fs *fs)
{
	struct cfs_fs **p;

	mutex_lock(&taking.lock);
	for (p = &taking.first; *p != fs; p = &(*p)->next_taking)
		;
	*p = fs->next_taking;
	pthread_cond_broadcast(&taking.changed);
	mutex_unlock(&taking.lock);
}

static int set_conf(struct ceph_mount_info *cm, const struct cfs_options *o)
{
	static const struct { const char *name, *value; } rows[] = {
		/* ACLs are checked, and kept in step with modes. */
		{ "client_acl_type", "posix_acl" },
		{ "client_permissions", "true" },
		{ "fuse_default_permissions", "false" },
		/* The bytes below a directory change without its times. */
		{ "client_dirsize_rbytes", "false" },
		/* Handles have the real ones. */
		{ "client_use_faked_inos", "false" },
		/* To check its access to a pool, a client would write to it,
		 * and wait for that while the pool is full. */
		{ "client_check_pool_perm", "false" },
		/* Clients must not create this name (name.c). */
		{ "client_snapdir", ".snap" },
	};
	char timeout[24];
	int err = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(rows) && err == 0; i++)
		err = ceph_conf_set(cm, rows[i].name, rows[i].value);
	snprintf(timeout, sizeof(timeout), "%llu", (unsigned long long)
		 cfs_timeout(o));
	return err ? err : ceph_conf_set(cm, "client_mount_timeout", timeout);
}

/*
 * The library logs each of its steps for the case that it crashes, which takes
 * longer than the steps.  Turn that off, unless the cluster or a file asks for
 * it.
 */
static int stop_notes(struct ceph_mount_info *cm)
{
	static const char *const of[] = { "debug_client",
					  "debug_objectcacher" };
	char level[16];
	int err = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(of) && err == 0; i++)
		if (ceph_conf_get(cm, of[i], level, sizeof(level)) == 0 &&
		    strcmp(level, "0/5") == 0)		/* the default */
			err = ceph_conf_set(cm, of[i], "0/0");
	return err;
}

/*
 * Has the cluster shut out the previous client of @c's name: 0, or -ENOENT if
 * no client had it.
 *
 * A restarted metadata server does not know whose the session is.  It ends the
 * session, but answers -EPERM (Ceph 16.2).  The next request then finds no
 * session.
 */
static int shut_out_before(struct cfs_client *c, struct ceph_mount_info *cm)
{
	uint64_t end = clock_ms() + cfs_timeout(c->fs->options) * 1000;
	bool was = false;
	int err;

	for (;;) {
		err = ceph_start_reclaim(cm, c->name, CEPH_RECLAIM_RESET);
		ceph_finish_reclaim(cm);
		/* The latter is a second answer to the call before. */
		if ((err != -EPERM && err != -ENOTRECOVERABLE) ||
		    clock_ms() >= end)
			break;
		was = true;
		usleep(AGAIN_MS * 1000);
	}
	return err == -ENOENT && was ? 0 : err;
}

static int reclaim_session(struct cfs_client *c, struct ceph_mount_info *cm)
{
	int err = shut_out_before(c, cm);

	if (err == 0)
		vfs_log(VFS_LOG_INFO, "%s: replaced client %s of the file "
			"system, which ended without notice", c->fs->path,
			c->name);
	return err == 0 || err == -ENOENT ?
	       cfs_grace_taken_over(c, err == 0) : err;
}

static int choose_fs(struct cfs_client *c, struct ceph_mount_info *cm,
		     const char **step)
{
	*step = "choose the file system";
	return ceph_select_filesystem(cm, c->fs->store.name);
}

/* Takes over the session of @c's name, by a client that is not mounted yet. */
static int take_session(struct cfs_client *c, struct ceph_mount_info *cm,
		     const char **step)
{
	int err = choose_fs(c, cm, step);

	if (err < 0)
		return err;
	*step = "tell the other servers";
	err = cfs_grace_take_over(c);
	if (err < 0)
		return err;
	*step = "reclaim the session of before";
	return reclaim_session(c, cm);
}

static int configure(const struct cfs_options *o, struct ceph_mount_info **out,
		     const char **step)
{
	struct ceph_mount_info *cm;
	int err;

	*step = "make a client";
	err = ceph_create(&cm, cfs_id(o));
	if (err < 0)
		return err;
	*step = "read the configuration";
	err = ceph_conf_read_file(cm, *o->conf ? o->conf : NULL);
	if (err == 0) {
		*step = "configure a client";
		err = set_conf(cm, o);
	}
	if (err == 0) {
		*step = "reach a monitor";
		err = ceph_init(cm);
	}
	/* Now it knows what the cluster says. */
	if (err == 0)
		err = stop_notes(cm);
	if (err < 0)
		ceph_release(cm);
	else
		*out = cm;
	return err;
}

/* The session that @cm is to have gets @c's name. */
static int begin_session(struct cfs_client *c, struct ceph_mount_info *cm,
			 const char **step)
{
	uint64_t timeout = c->fs->options->session;
	int err;

	begin_taking(c->fs);
	err = take_session(c, cm, step);
	end_taking(c->fs);
	if (err < 0)
		return err;
	ceph_set_uuid(cm, c->name);
	if (timeout)
		ceph_set_session_timeout(cm, (unsigned)timeout);
	return 0;
}

/* @step: the part that failed. */
static int connect_client(struct cfs_client *c, const char **step)
{
	struct ceph_mount_info *cm;
	int err = configure(c->fs->options, &cm, step);

	if (err < 0)
		return err;
	/* Names that it does not remember are not wrong. */
	if (c->nodeless)
		err = ceph_conf_set(cm, "client_cache_size", "0");
	if (err == 0)
		err = c->slot >= 0 ? begin_session(c, cm, step) :
				     choose_fs(c, cm, step);
	if (err == 0) {
		*step = "mount";
		err = ceph_mount(cm, c->fs->path);
	}
	if (err < 0) {
		ceph_abort_conn(cm);
		ceph_release(cm);
		return err;
	}
	ceph_umask(cm, 0);		/* else 022 */
	c->cm = cm;
	c->generation++;
	return 0;
}

int cfs_client_make(struct cfs_client *c)
{
	const char *step;
	int err;

	if (!c->fs->check)
		cfs_client_take_name(c);
	err = connect_client(c, &step);
	if (err == 0)
		return 0;
	cfs_client_give_name(c);
	return vfs_fail(c->fs->config, "CephFS %s, as client.%s: can't %s: %s",
			c->fs->path, cfs_id(c->fs->options), step,
			strerror(-err));
}

/* Ends the session of @r. */
static int end_left_over(struct cfs_fs *fs, const struct cfs_record *r,
			 const char **step)
{
	struct cfs_client c = {
		.fs = fs, .record_lock = PTHREAD_MUTEX_INITIALIZER,
	};
	struct ceph_mount_info *cm;
	int err = configure(fs->options, &cm, step);

	if (err < 0)
		return err;
	strcpy(c.name, r->name);
	err = take_session(&c, cm, step);
	/* No other server has to know. */
	if (err == 0)
		cfs_grace_forget(&c);
	ceph_release(cm);
	return err;
}

int cfs_client_end_left_over(struct cfs_fs *fs)
{
	const char *step = "read what the servers share";
	struct cfs_record r;
	int err;

	begin_taking(fs);
	while ((err = cfs_grace_left_over(fs, &r)) == 0) {
		err = end_left_over(fs, &r, &step);
		if (err < 0)
			break;
	}
	end_taking(fs);
	if (err == -ENOENT && !*r.name)
		return 0;
	return vfs_fail(fs->config, "CephFS %s, as client.%s: can't %s: %s",
			fs->path, cfs_id(fs->options), step, strerror(-err));
}

void cfs_client_end(struct cfs_client *c)
{
	if (c->cm) {
		cfs_grace_forget(c);
		/* Another server must not wait for a client that is shut
		 * out. */
		if (atomic_load(&c->lost))
			ceph_abort_conn(c->cm);
		else
			ceph_unmount(c->cm);
		ceph_release(c->cm);
		c->cm = NULL;
	}
	cfs_client_give_name(c);
}

/* False: a call that the client had when it was lost does not end.  The other
 * clients also need the keeper. */
static bool lock_alone(struct cfs_client *c)
{
	const struct timespec until = cfs_time_in(c->hung ? 0 : RENEW_WAIT_S);

	if (pthread_rwlock_clockwrlock(&c->lock, CLOCK_MONOTONIC,
				       &until) == 0) {
		c->hung = false;
		return true;
	}
	if (!c->hung)
		vfs_log(VFS_LOG_WARN, "%s: the cluster has shut this server "
			"out, and a call from before hangs; if it goes on, "
			"restart the server", c->fs->path);
	c->hung = true;
	return false;
}

void cfs_client_renew(struct cfs_client *c)
{
	const char *step;
	int err;

	if (!lock_alone(c))
		return;
	if (c->cm) {
		vfs_log(VFS_LOG_WARN, "%s: the cluster has shut this server "
			"out; making a new client", c->fs->path);
		ceph_abort_conn(c->cm);
		ceph_release(c->cm);
		c->cm = NULL;
	}
	/* Before any call can use the new one. */
	if (!c->nodeless)
		cfs_verf_change(c->fs);
	err = connect_client(c, &step);
	if (err == 0)
		atomic_store(&c->lost, false);
	pthread_rwlock_unlock(&c->lock);
	if (atomic_load(&c->succeeded))
		vfs_log(VFS_LOG_ERR, "%s: another server has this one's place "
			"(%s), so this one has stopped serving: end "
			"it", c->fs->path,
			c->name);
	else if (err < 0)
		vfs_log(VFS_LOG_WARN, "%s: no new client: can't %s: %s",
			c->fs->path, step, strerror(-err));
	else
		vfs_log(VFS_LOG_INFO, "%s: there is a new client",
			c->fs->path);
}
