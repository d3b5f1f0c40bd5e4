/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DUMP and EXPORT.
 *
 * The lists are encoded into the reply's body in one walk, of one snapshot:
 * into the largest buffer, because their length is not known yet.  An entry
 * that does not fit is left out whole, and so are all that follow.
 */
#include "mountd/mount.h"

#include "lib/stats.h"

STAT(mount_list_cut, "DUMP and EXPORT replies that left entries out");

struct list {
	struct xdr_out	out;
	bool		cut;
	char		dir[MNTPATHLEN + 1];	/* EXPORT: the open entry */
	bool		has_dir;
};

static size_t string_size(size_t len)
{
	return 4 + ALIGN_UP(len, (size_t)4);
}

/* True if @size bytes fit. */
static bool take_room(struct list *l, size_t size)
{
	/* No entry may follow after one was cut. */
	l->cut = l->cut || (size_t)(l->out.end - l->out.p) < size;
	return !l->cut;
}

int mount_list_room(struct rpc_call *call)
{
	return rpc_body_get(call, POOL_PAYLOAD_MAX);
}

static void begin_list(struct list *l, struct rpc_call *call)
{
	l->cut = l->has_dir = false;
	xdr_out_init(&l->out, rpc_body(call)->data, POOL_PAYLOAD_MAX);
}

static int end_list(struct list *l, struct rpc_call *call)
{
	static const uint32_t ends[2] = { 0, 0 };

	if (l->cut)
		stat_inc(mount_list_cut);
	/* The end of the last entry's groups, the end of the list. */
	rpc_body_set(call, (uint32_t)xdr_out_len(&l->out), ends,
		     l->has_dir ? 2 : 1);
	return 0;
}

/* mountbody, RFC 1813 section 5.2.2. */
static void put_mount(void *arg, const char *host, const char *path)
{
	size_t host_len = MIN(strlen(host), (size_t)MNTNAMLEN);
	size_t path_len = MIN(strlen(path), (size_t)MNTPATHLEN);
	struct list *l = arg;

	if (!take_room(l, 4 + string_size(host_len) + string_size(path_len)))
		return;
	mount_put_item(&l->out, host, host_len);
	xdr_put_opaque(&l->out, path, (uint32_t)path_len);
}

int mount_dump(struct rpc_call *call)
{
	struct mountd *m = call->prog->ctx;
	struct list l;

	begin_list(&l, call);
	rmtab_walk(m->rmtab, put_mount, &l);
	return end_list(&l, call);
}

/*
 * exportnode and groupnode, section 5.2.5: the entry of a directory stays open
 * while clients of the same one come.  A directory for everyone has no groups,
 * as with the kernel's server; one without other clients has "*".
 */
static void put_client(void *arg, const char *path, const char *client,
		       bool everyone)
{
	size_t path_len = MIN(strlen(path), (size_t)MNTPATHLEN);
	size_t name_len = MIN(strlen(client), (size_t)MNTNAMLEN);
	struct list *l = arg;
	bool same = l->has_dir && strlen(l->dir) == path_len &&
		    memcmp(l->dir, path, path_len) == 0;
	size_t size = everyone ? 0 : 4 + string_size(name_len);

	if (!same)
		size += 4 + 4 + string_size(path_len);
	if (size == 0 || !take_room(l, size))
		return;
	if (!same) {
		if (l->has_dir)
			xdr_put_bool(&l->out, false);
		mount_put_item(&l->out, path, path_len);
		memcpy(l->dir, path, path_len);
		l->dir[path_len] = '\0';
		l->has_dir = true;
	}
	if (!everyone)
		mount_put_item(&l->out, client, name_len);
}

int mount_export(struct rpc_call *call)
{
	struct mountd *m = call->prog->ctx;
	struct list l;

	begin_list(&l, call);
	export_walk(m->exports, put_client, &l);
	return end_list(&l, call);
}
