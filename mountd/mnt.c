/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MNT, UMNT, UMNTALL.
 *
 * MNT turns a path into a filehandle: the export it lies in, then one
 * look-up a component from the export's root, as the caller, who may thus
 * not reach by MNT what LOOKUP would refuse.  Symbolic links are not
 * followed.
 *
 * These run on workers: names of hosts and netgroups may have to be looked
 * up, and directories read.
 */
#include "mountd/mount.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>

#include "lib/log.h"
#include "lib/stats.h"

STAT(mount_refused, "MNT calls that failed");

/* Addresses, not names: nothing to look up, nothing to be lied to about. */
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

/* Steps from *@node to @name in it. */
static int step(const struct vfs_ctx *ctx, struct vfs_node **node,
		struct vfs_name name)
{
	struct vfs_attr attr, dir_attr;
	struct vfs_node *next;
	bool has_dir_attr;
	int err;

	err = vfs_name_check(name.s, name.len);
	if (err < 0)
		return err;
	err = (*node)->fs->ops->lookup(ctx, *node, name, &next, &attr,
				       &dir_attr, &has_dir_attr);
	if (err < 0)
		return err;
	vfs_node_put(*node);
	*node = next;
	return 0;
}

/* The directory at @path below the root of @fs. */
static int walk(const struct vfs_ctx *ctx, struct vfs_fs *fs,
		const char *path, struct vfs_node **out)
{
	struct vfs_node *node;
	struct vfs_attr attr;
	int err;

	err = fs->ops->root(fs, &node);
	if (err < 0)
		return err;
	while (err == 0 && *path) {
		struct vfs_name name = { path, strcspn(path, "/") };

		path += name.len;
		path += *path == '/';
		if (name.len && !(name.len == 1 && *name.s == '.'))
			err = step(ctx, &node, name);
	}
	if (err == 0)
		err = fs->ops->getattr(ctx, node, &attr);
	if (err == 0 && attr.type != VFS_DIR)
		err = -ENOTDIR;
	if (err != 0)
		vfs_node_put(node);
	else
		*out = node;
	return err;
}

static int find_export(struct rpc_call *call, const char *path,
		       struct export **exp, struct export_opts *opts,
		       const char **rest)
{
	struct mountd *m = call->prog->ctx;
	struct xprt *x = call->msg->xprt;
	const struct sockaddr *peer = rpc_call_peer(call);
	int err;

	err = export_find_path(m->exports, path, peer, x->any_port, exp, opts,
			       rest);
	if (err != -EAGAIN)
		return err;
	export_resolve(m->exports, peer);
	return export_find_path(m->exports, path, peer, x->any_port, exp, opts,
				rest);
}

/* @shared: does @path lie in an export that the caller may mount? */
static int resolve(struct rpc_call *call, const char *path,
		   struct export_fh *fh, bool *shared)
{
	const struct rpc_cred *who = &call->cred;
	struct mountd *m = call->prog->ctx;
	struct export_opts opts;
	struct vfs_handle handle;
	struct vfs_node *node = NULL;
	struct vfs_cred cred;
	struct vfs_ctx ctx = { .cred = &cred };
	struct export *exp;
	const char *rest;
	int err;

	err = find_export(call, path, &exp, &opts, &rest);
	*shared = err == 0;
	if (err < 0)
		return err;
	export_squash(&opts, who->flavor == RPC_AUTH_NONE, who->uid, who->gid,
		      who->gids, who->ngids, &cred);
	err = walk(&ctx, exp->fs, rest, &node);
	if (err == 0) {
		exp->fs->ops->handle(node, &handle);
		export_fh_make(m->exports, exp, &handle, fh);
		vfs_node_put(node);
	}
	export_put(exp);
	return err;
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
 * Who names no directory of an export, as a client that tries what a URL has
 * before it mounts what is above, is not kept from anything.
 */
static void log_refusal(const struct rpc_call *call, const char *shown,
			bool shared, int err)
{
	const char *from = call->msg->xprt->name;

	if (shared && (err == -ENOENT || err == -ENOTDIR))
		log_limited(LOG_LEVEL_INFO, "mount of %s by %s: %s", shown,
			    from, strerror(-err));
	else
		log_limited(LOG_LEVEL_WARN, "mount of %s refused to %s: %s",
			    shown, from, strerror(-err));
}

static int mnt(struct rpc_call *call, const struct mount_path_args *a,
	       struct export_fh *fh)
{
	struct mountd *m = call->prog->ctx;
	char path[MNTPATHLEN + 1];
	char host[NI_MAXHOST];
	char shown[129];
	bool shared = false;
	int err;

	host_of(call, host, sizeof(host));
	printable(a->path, shown, sizeof(shown));
	err = path_of(a->path, path);
	if (err == 0)
		err = resolve(call, path, fh, &shared);
	if (err < 0) {
		stat_inc(mount_refused);
		log_refusal(call, shown, shared, err);
		return err;
	}
	if (call->version->vers == 3) {
		log_limited(LOG_LEVEL_INFO, "%s mounts %s", host, shown);
		rmtab_add(m->rmtab, host, path);
	}
	return 0;
}

enum rpc_run mount_do_mnt3(struct rpc_call *call, const void *args, void *res)
{
	struct mount_mnt_res *r = res;

	r->status = mount_status(mnt(call, args, &r->fh));
	return RPC_DONE;
}

enum rpc_run mount_do_mnt1(struct rpc_call *call, const void *args, void *res)
{
	struct mount_mnt_res *r = res;
	int err = mnt(call, args, &r->fh);

	/* There is no handle of version 2's to give. */
	r->status = mount_status(err ? err : -EINVAL);
	return RPC_DONE;
}

enum rpc_run mount_do_umnt(struct rpc_call *call, const void *args, void *res)
{
	const struct mount_path_args *a = args;
	struct mountd *m = call->prog->ctx;
	char path[MNTPATHLEN + 1];
	char host[NI_MAXHOST];

	host_of(call, host, sizeof(host));
	if (path_of(a->path, path) == 0)
		rmtab_remove(m->rmtab, host, path);
	return RPC_DONE;
}

enum rpc_run mount_do_umntall(struct rpc_call *call, const void *args,
			      void *res)
{
	struct mountd *m = call->prog->ctx;
	char host[NI_MAXHOST];

	host_of(call, host, sizeof(host));
	rmtab_remove_host(m->rmtab, host);
	return RPC_DONE;
}
