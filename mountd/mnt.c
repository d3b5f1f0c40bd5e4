/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MNT, UMNT, UMNTALL.
 *
 * MNT turns a path into a filehandle: the export it lies in, then one look-up a
 * component from the export's root, as the caller: so MNT grants no path that
 * LOOKUP would refuse.  Symbolic links are followed as far as they stay in the
 * export.
 *
 * These run on workers: names of hosts and netgroups may have to be looked
 * up, and directories read.  Only MNT's first step runs on the poller.
 */
#include "mountd/mount.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>

#include "lib/log.h"
#include "lib/stats.h"

#define LINKS_MAX	40		/* as the kernel does */

STAT(mount_refused, "MNT calls that failed");

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

/* @view as a string without the slashes at its end, into MNTPATHLEN + 1. */
static int path_of(struct xdr_view view, char *path)
{
	uint32_t len = view.len;

	if (len > MNTPATHLEN)
		return -ENAMETOOLONG;
	if (len == 0 || view.data[0] != '/' || memchr(view.data, '\0', len))
		return -EINVAL;
	while (len > 1 && view.data[len - 1] == '/')
		len--;
	memcpy(path, view.data, len);
	path[len] = '\0';
	return 0;
}

/* On the way to a directory of an export. */
struct walk {
	const struct vfs_cred *cred;
	const struct export *exp;
	struct vfs_node	*root;		/* counted */
	struct vfs_node	*node;		/* counted: so far */
	unsigned	 links;		/* followed */
	const char	*left;		/* in @text */
	char		 text[2 * VFS_PATH_MAX + 2];
};

static void walk_to(struct walk *w, struct vfs_node *n)
{
	vfs_node_put(w->node);
	w->node = n;
}

/* A link's @text comes before what is left.  An absolute one is a path of the
 * server, and has to lie in the export's. */
static int enter_link(struct walk *w, const char *text)
{
	char next[sizeof(w->text)];
	size_t skip = strlen(w->exp->path);

	if (*text == '/') {
		/* The export "/" is the only one with a slash at its end. */
		skip -= w->exp->path[skip - 1] == '/';
		if (strncmp(text, w->exp->path, skip) != 0 ||
		    (text[skip] != '/' && text[skip] != '\0'))
			return -EACCES;
		text += skip;
		vfs_node_get(w->root);
		walk_to(w, w->root);
	}
	if (strlen(text) + 1 + strlen(w->left) >= sizeof(next))
		return -ENAMETOOLONG;
	strcpy(next, text);
	strcat(next, "/");
	strcat(next, w->left);
	strcpy(w->text, next);
	w->left = w->text;
	return 0;
}

/* @link is in w->node, and gone afterwards. */
static int follow(struct walk *w, struct vfs_node *link)
{
	char text[VFS_PATH_MAX + 1];
	struct vfs_op op = { .cred = w->cred, .node = link, .text = text,
			     .size = VFS_PATH_MAX };
	int len = -ELOOP;

	if (w->links++ < LINKS_MAX)
		len = link->fs->ops->readlink(&op);
	vfs_node_put(link);
	if (len < 0)
		return len;
	text[len] = '\0';
	if (len == 0 || strlen(text) != (size_t)len)
		return -EINVAL;
	return enter_link(w, text);
}

static int walk_name(struct walk *w, struct vfs_name name)
{
	bool up = name.len == 2 && memcmp(name.s, "..", 2) == 0;
	struct vfs_attr attr;
	struct vfs_op op = { .cred = w->cred, .node = w->node, .name = name,
			     .attr = &attr };
	int err;

	err = vfs_name_check(name.s, name.len);
	/* The client's own ".." of the root is the root; a link's would be a
	 * directory outside of the export. */
	if (err == 0 && up && w->links && w->node == w->root)
		err = -EACCES;
	if (err < 0)
		return err;
	err = w->node->fs->ops->lookup(&op);
	if (err < 0)
		return err;
	if (attr.type == VFS_LNK)
		return follow(w, op.out);
	walk_to(w, op.out);
	return 0;
}

/* Walks all of w->left, from w->node. */
static int walk_all(struct walk *w)
{
	struct vfs_attr attr;
	struct vfs_op op = { .cred = w->cred, .attr = &attr };
	int err = 0;

	while (err == 0 && *w->left) {
		struct vfs_name name = { w->left, strcspn(w->left, "/") };

		w->left += name.len;
		w->left += *w->left == '/';
		if (name.len && !(name.len == 1 && *name.s == '.'))
			err = walk_name(w, name);
	}
	op.node = w->node;
	if (err == 0)
		err = op.node->fs->ops->getattr(&op);
	return err == 0 && attr.type != VFS_DIR ? -ENOTDIR : err;
}

/* Looks up the directory at @path below the root of @exp. */
static int walk(const struct vfs_cred *cred, const struct export *exp,
		const char *path, struct vfs_node **out)
{
	struct walk w = { .cred = cred, .exp = exp };
	int err;

	err = exp->fs->ops->root(exp->fs, &w.root);
	if (err < 0)
		return err;
	w.node = w.root;
	vfs_node_get(w.root);
	strcpy(w.text, path);		/* MNTPATHLEN at most */
	w.left = w.text;
	err = walk_all(&w);
	vfs_node_put(w.root);
	if (err == 0)
		*out = w.node;
	else
		vfs_node_put(w.node);
	return err;
}

int mount_find_export(struct rpc_call *call)
{
	const struct mount_path_args *a = rpc_args(call);
	struct mount_op *op = rpc_state(call);
	struct mountd *m = call->prog->ctx;
	const struct sockaddr *peer = rpc_call_peer(call);
	char path[MNTPATHLEN + 1];
	const char *rest;
	int err;

	err = path_of(a->path, path);
	if (err < 0)
		return err;
	if (call->may_wait)		/* in the share for that */
		export_resolve(m->exports, peer);
	err = export_find_path(m->exports, path, peer,
			       call->msg->xprt->any_port, &op->exp, &op->opts,
			       &rest);
	if (err < 0)
		return err;
	op->rest = (uint32_t)(rest - path);
	return call->may_wait ? rpc_call_move(call) : 0;
}

struct work_class *mount_leave(struct rpc_call *call)
{
	const struct mountd *m = call->prog->ctx;
	const struct mount_op *op = rpc_state(call);

	if (call->procnum != MOUNTPROC_MNT)
		return NULL;
	return op->exp ? op->exp->upper : m->names;
}

int mount_walk(struct rpc_call *call)
{
	const struct mount_path_args *a = rpc_args(call);
	const struct rpc_cred *who = &call->cred;
	struct mount_mnt_res *r = rpc_res(call);
	struct mount_op *op = rpc_state(call);
	struct mountd *m = call->prog->ctx;
	char path[MNTPATHLEN + 1];
	struct vfs_handle handle;
	const struct export_claim claim = {
		.none = who->flavor == RPC_AUTH_NONE, .uid = who->uid,
		.gid = who->gid, .ngids = who->ngids, .gids = who->gids,
	};
	struct vfs_node *node = NULL;
	struct vfs_cred cred;
	int err;

	err = export_caller_counted(m->exports, &op->opts, &claim, true,
				    &cred);
	if (err < 0)
		return err;
	err = path_of(a->path, path);
	if (err == 0)
		err = walk(&cred, op->exp, path + op->rest, &node);
	export_caller_put(&cred);
	if (err < 0)
		return err;
	op->exp->fs->ops->handle(node, &handle);
	export_fh_make(m->exports, op->exp, &handle, &r->fh);
	r->nflavors = rpc_server_mnt_flavors(call->server, r->flavors,
					     MOUNT_MAX_FLAVORS);
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
		log_debug("mount of %s refused to %s, too: %s", shown, from,
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

static void note_mount(struct rpc_call *call, const char *shown)
{
	const struct mount_path_args *a = rpc_args(call);
	struct mountd *m = call->prog->ctx;
	char path[MNTPATHLEN + 1];
	char host[NI_MAXHOST];

	host_of(call, host, sizeof(host));
	log_limited(LOG_LEVEL_INFO, "%s mounts %s", host, shown);
	if (path_of(a->path, path) == 0)
		rmtab_add(m->rmtab, host, path);
}

int mount_end_mnt3(struct rpc_call *call, int err)
{
	const struct mount_path_args *a = rpc_args(call);
	struct mount_mnt_res *r = rpc_res(call);
	struct mount_op *op = rpc_state(call);
	char shown[MOUNT_SHOWN];

	printable(a->path, shown, sizeof(shown));
	if (err == -ECANCELED) {
		;			/* nobody is told */
	} else if (err < 0) {
		stat_inc(mount_refused);
		log_refusal(call, shown, op->exp != NULL, err);
	} else if (call->version->vers == 3) {
		note_mount(call, shown);
	}
	if (op->exp)
		export_put(op->exp);
	r->status = mount_status(err);
	return 0;
}

/* Version 2's handles are not served: there is no handle to give. */
int mount_end_mnt1(struct rpc_call *call, int err)
{
	struct mount_mnt_res *r = rpc_res(call);

	mount_end_mnt3(call, err);
	if (err == 0)
		r->status = mount_status(-EINVAL);
	return 0;
}

int mount_umnt(struct rpc_call *call)
{
	const struct mount_path_args *a = rpc_args(call);
	struct mountd *m = call->prog->ctx;
	char path[MNTPATHLEN + 1];
	char host[NI_MAXHOST];

	host_of(call, host, sizeof(host));
	if (path_of(a->path, path) == 0)
		rmtab_remove(m->rmtab, host, path);
	return 0;
}

int mount_umntall(struct rpc_call *call)
{
	struct mountd *m = call->prog->ctx;
	char host[NI_MAXHOST];

	host_of(call, host, sizeof(host));
	rmtab_remove_host(m->rmtab, host);
	return 0;
}
