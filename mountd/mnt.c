/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MNT, UMNT, UMNTALL.
 *
 * MNT turns a path into a filehandle (exports/walk.h).  It runs on workers,
 * because it might have to look up hosts and netgroups, and read directories.
 * Only its first steps run on the poller.
 *
 * UMNT and UMNTALL only change the list of mounts, on the poller.  A client can
 * send them while its MNT still waits for a disk: that mount is then not noted.
 */
#include "mountd/mount.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "rpc/share.h"

STAT(mount_refused, "MNT calls that failed");
STAT(mount_put_off, "MNT calls left unanswered, which clients send again");

/* An address needs no look-up, and no name server can lie about it. */
static void host_of(const struct rpc_call *call, char *host, size_t size)
{
	const struct sockaddr *sa = rpc_call_peer(call);
	socklen_t len = sa->sa_family == AF_INET6 ?
			sizeof(struct sockaddr_in6) :
			sizeof(struct sockaddr_in);

	if (getnameinfo(sa, len, host, (socklen_t)size, NULL, 0,
			NI_NUMERICHOST) != 0)
		snprintf(host, size, "unknown");
	/* IPv4 that came to an IPv6 socket. */
	if (strncmp(host, "::ffff:", 7) == 0 && strchr(host, '.'))
		memmove(host, host + 7, strlen(host + 7) + 1);
}

/* Later calls see that it is in progress. */
int mount_begin(struct rpc_call *call)
{
	struct mountd *m = call->prog->ctx;
	struct mount_state *s = rpc_state(call);

	s->call = call;
	mutex_lock(&m->lock);
	s->begun = true;
	cds_list_add_tail(&s->link, &m->mounting);
	mutex_unlock(&m->lock);
	return 0;
}

static struct walk_client client_of(struct rpc_call *call)
{
	const struct mountd *m = call->prog->ctx;
	const struct rpc_cred *cred = &call->cred;

	return (struct walk_client){
		.exports = m->exports, .may_wait = call->may_wait,
		.peer = {
			.addr = rpc_call_peer(call), .flavor = cred->flavor,
			.any_port = call->msg->xprt->any_port,
			.need = EXPORT_MOUNTS,
			.protection = RPC_MTLS,
		},
		.who = {
			.none = cred->flavor == RPC_AUTH_NONE,
			.uid = cred->uid, .gid = cred->gid,
			.ngids = cred->ngids, .gids = cred->gids,
		},
	};
}

int mount_find_export(struct rpc_call *call)
{
	const struct mount_path_args *a = rpc_args(call);
	const struct walk_client client = client_of(call);
	struct mount_state *s = rpc_state(call);
	int err = walk_begin(&client, a->path, &s->walk);

	if (err == -ETIMEDOUT)
		return mount_wait(call, mount_find_export);
	if (err < 0)
		return err;
	return call->may_wait ? rpc_call_move(call, NULL) : 0;
}

struct work_class *mount_leave(struct rpc_call *call)
{
	const struct mountd *m = call->prog->ctx;
	const struct mount_state *s = rpc_state(call);
	const struct walk *w = &s->walk;

	if (call->procnum != MOUNTPROC_MNT)
		return NULL;
	return walk_opens(w) ? m->names : rpc_share_class(w->exp->user);
}

/* The next export can have other workers.  Returns 0, or as a step. */
static int walk_on(struct rpc_call *call, const struct walk_client *client,
		   struct walk *w, struct vfs_node **node)
{
	const struct mount_path_args *a = rpc_args(call);
	int n;

	/* It has waited, and begins again. */
	if (!w->exp) {
		n = walk_begin(client, a->path, w);
		if (n == 0)
			n = rpc_call_move(call, mount_walk);
		if (n != 0)
			return n;
	}
	while ((n = walk_to(client, a->path, w, node)) == WALK_MOVES) {
		n = rpc_call_move(call, mount_walk);
		if (n != 0)
			return n;
	}
	return n;
}

/* The flavors of the rule that the server has, in the rule's order. */
static uint32_t list_flavors(const struct rpc_server *server,
			     const struct export_opts *opts,
			     uint32_t out[MOUNT_MAX_FLAVORS])
{
	uint32_t wanted[EXPORT_FLAVORS], served[MOUNT_MAX_FLAVORS], n = 0;
	unsigned nserved = rpc_server_mnt_flavors(server, served,
						  MOUNT_MAX_FLAVORS);
	unsigned nwanted = export_flavors(opts, wanted);

	for (unsigned i = 0; i < nwanted; i++) {
		bool has = wanted[i] == RPC_AUTH_NONE;

		for (unsigned k = 0; k < nserved; k++)
			has |= served[k] == wanted[i];
		if (has)
			out[n++] = wanted[i];
	}
	return n;
}

int mount_walk(struct rpc_call *call)
{
	const struct walk_client client = client_of(call);
	struct mount_mnt_res *r = rpc_res(call);
	struct mount_state *s = rpc_state(call);
	struct walk *w = &s->walk;
	struct vfs_handle handle;
	struct vfs_node *node;
	int n = walk_on(call, &client, w, &node);

	if (n == -ETIMEDOUT) {
		walk_end(w);
		*w = (struct walk){ .exp = NULL };
		return mount_wait(call, mount_walk);
	}
	if (n != 0)
		return n;
	node->fs->ops->handle(node, &handle);
	export_fh_make(client.exports, w->exp, &w->opts, &handle, &r->fh);
	r->result.fh = (struct xdr_view){ r->fh.data, r->fh.len };
	r->result.nflavors = list_flavors(call->server, &w->opts,
					  r->result.flavors);
	vfs_node_put(node);
	return 0;
}

/* A path off the wire, in a log line. */
static void printable(struct xdr_view view, char *out, size_t size)
{
	size_t n = MIN((size_t)view.len, size - 1);

	for (size_t i = 0; i < n; i++)
		out[i] = isprint(view.data[i]) ? (char)view.data[i] : '?';
	out[n] = '\0';
}

/*
 * A client that has a URL tries all of its path, then shorter and shorter parts
 * of it.  True if @path is such a part of the one that was refused before, and
 * this refusal says nothing new.  Else notes it.
 */
static bool is_told(struct mountd *m, const char *from, const char *path,
		    int err)
{
	struct mount_refusal *last = &m->last;
	bool told;

	mutex_lock(&m->lock);
	told = (err == last->err || err == -ENOENT) &&
	       strncmp(path, last->path, strlen(path)) == 0 &&
	       strlen(path) < strlen(last->path) &&
	       strcmp(from, last->from) == 0;
	if (!told) {
		snprintf(last->from, sizeof(last->from), "%s", from);
		snprintf(last->path, sizeof(last->path), "%s", path);
		last->err = err;
	}
	mutex_unlock(&m->lock);
	return told;
}

/*
 * A path outside every export is only an error, not an attack: clients try a
 * URL's longer prefixes first.  Don't count it against the address.
 */
static void log_refusal(const struct rpc_call *call, const char *shown,
			bool shared, int err)
{
	const char *from = call->msg->xprt->name;
	struct mountd *m = call->prog->ctx;

	if (is_told(m, from, shown, err) ||
	    /* vfs/ has logged these. */
	    (!shared && (err == -EACCES || err == -ENODEV)) ||
	    (!shared && err == -ENOENT &&
	     !export_refusal_is_new(m->exports, rpc_call_peer(call), shown)))
		log_debug("mount of %s refused to %s again: %s", shown, from,
			  strerror(-err));
	else if (!shared && err == -ENOENT)
		log_limited(LOG_LEVEL_WARN, "mount of %s refused to %s: no "
			    "such export", shown, from);
	else if (shared && (err == -ENOENT || err == -ENOTDIR))
		log_limited(LOG_LEVEL_INFO, "mount of %s by %s: %s", shown,
			    from, strerror(-err));
	else
		log_limited(LOG_LEVEL_WARN, "mount of %s refused to %s: %s",
			    shown, from, strerror(-err));
}

/* The call is over; with @path, lists the mount, unless it was unmounted
 * since. */
static void end_mount(struct rpc_call *call, const char *host,
		      const char *path)
{
	struct mountd *m = call->prog->ctx;
	struct mount_state *s = rpc_state(call);

	mutex_lock(&m->lock);
	if (s->begun)
		cds_list_del(&s->link);
	if (path && !s->unmounted)
		rmtab_add(m->rmtab, host, path);
	mutex_unlock(&m->lock);
}

static void note_mount(struct rpc_call *call, const char *shown)
{
	const struct mount_path_args *a = rpc_args(call);
	char path[WALK_PATH_MAX + 1];
	char host[NI_MAXHOST];

	host_of(call, host, sizeof(host));
	log_limited(LOG_LEVEL_INFO, "%s mounts %s", host, shown);
	end_mount(call, host, walk_path(a->path, path) == 0 ? path : NULL);
}

static enum mountstat3 mount_status(int err)
{
	switch (-err) {
	case 0:
		return MNT3_OK;
	case EPERM:
		return MNT3ERR_PERM;
	case ENOENT:
	case ESTALE:			/* no such export, or just removed */
	case ENODEV:			/* nothing is mounted there */
		return MNT3ERR_NOENT;
	case EIO:
		return MNT3ERR_IO;
	case EACCES:
		return MNT3ERR_ACCES;
	case ENOTDIR:
	case ELOOP:			/* symbolic links without end */
		return MNT3ERR_NOTDIR;
	case EINVAL:
		return MNT3ERR_INVAL;
	case ENAMETOOLONG:
		return MNT3ERR_NAMETOOLONG;
	case EOPNOTSUPP:
		return MNT3ERR_NOTSUPP;
	default:
		return MNT3ERR_SERVERFAULT;
	}
}

int mount_end_mnt3(struct rpc_call *call, int err)
{
	const struct mount_path_args *a = rpc_args(call);
	struct mount_mnt_res *r = rpc_res(call);
	struct mount_state *s = rpc_state(call);
	struct walk *w = &s->walk;
	char shown[MOUNT_SHOWN];

	if (err < 0 || call->version->vers != 3)
		end_mount(call, NULL, NULL);
	printable(a->path, shown, sizeof(shown));
	if (err == -ECANCELED) {
		;			/* not reported */
	} else if (err == -ETIMEDOUT) {
		stat_inc(mount_put_off);
		log_limited(LOG_LEVEL_WARN, "mount of %s by %s not answered, "
			    "so the client will retry: its file system or the "
			    "name service does not answer, or the server is "
			    "overloaded", shown, call->msg->xprt->name);
	} else if (err < 0) {
		stat_inc(mount_refused);
		/* A link can lead out of an export, to where none is. */
		log_refusal(call, shown, w->exp || w->path, err);
	} else if (call->version->vers == 3) {
		note_mount(call, shown);
	}
	if (err != -ETIMEDOUT && err != -ECANCELED)
		mount_got_on(call);
	walk_end(w);
	r->result.status = mount_status(err);
	/* MOUNT has no JUKEBOX, and clients take every status for final.  A
	 * client that hears nothing asks again. */
	return err == -ETIMEDOUT ? -ECANCELED : 0;
}

/* Version 2's handles are not served, so it never gets a handle. */
int mount_end_mnt1(struct rpc_call *call, int err)
{
	struct mount_mnt_res *r = rpc_res(call);
	int ret = mount_end_mnt3(call, err);

	if (err == 0)
		r->result.status = mount_status(-EINVAL);
	return ret;
}

/* The call's host has unmounted @path, or with NULL all. */
static void unmount(struct rpc_call *call, const char *path)
{
	const struct sockaddr *peer = rpc_call_peer(call);
	struct mountd *m = call->prog->ctx;
	char host[NI_MAXHOST], other[WALK_PATH_MAX + 1];
	const struct mount_path_args *a;
	struct mount_state *s;

	host_of(call, host, sizeof(host));
	mutex_lock(&m->lock);
	cds_list_for_each_entry(s, &m->mounting, link) {
		a = rpc_args(s->call);
		if (xprt_addr_same_host(rpc_call_peer(s->call), peer) &&
		    (!path || (walk_path(a->path, other) == 0 &&
			       strcmp(path, other) == 0)))
			s->unmounted = true;
	}
	if (path)
		rmtab_remove(m->rmtab, host, path);
	else
		rmtab_remove_host(m->rmtab, host);
	mutex_unlock(&m->lock);
}

int mount_umnt(struct rpc_call *call)
{
	const struct mount_path_args *a = rpc_args(call);
	char path[WALK_PATH_MAX + 1];

	if (walk_path(a->path, path) == 0)
		unmount(call, path);
	return 0;
}

int mount_umntall(struct rpc_call *call)
{
	unmount(call, NULL);
	return 0;
}
