/* SPDX-License-Identifier: BSD-2-Clause */
/* mount - MOUNT version 3 over TCP (RFC 1813 section 5). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nfs/wire.h"
#include "lib/util.h"
#include "lib/xdr.h"
#include "transport/addr.h"
#include "wire/mount.h"

enum {
	MOUNT_VERSION = 3, NFS_PORT = 2049,
	REPLY_MS = 10000, GOODBYE_MS = 1000, LOCKS_MS = 2000,
	NLM_VERSION = 4, NFS_VERSION = 3,
};

/*
 * At the port that was given.  Else at NFS's port, which tells instances of a
 * server apart; where its rpcbind says; or, unless the URL names a port of TCP,
 * where a server without rpcbind can have it.
 */
static int connect_mount(const struct nfsc_url *url,
			 const struct nfsc_config *c, uint16_t *port,
			 struct nfsc_wire **w)
{
	bool tcp = url->transport == NFS_TCP && url->port;
	const uint16_t ports[] = { tcp ? url->port : 0, 0, NFS_PORT };
	unsigned n = url->mountport ? 1 : tcp ? 2 : ARRAY_SIZE(ports);
	int err = -ECONNREFUSED, first = 0;

	for (unsigned i = 0; i < n && err < 0 && err != -ETIMEDOUT &&
	     err != -ENOKEY; i++) {
		*port = url->mountport ? url->mountport : ports[i];
		if (i == 0 && *port == 0)
			continue;
		err = wire_open(url->host, *port, RPC_MOUNT, MOUNT_VERSION, c,
				w);
		if (i == 0)
			first = err;
	}
	/* Of a port that was given the reason counts, unless a server is there
	 * that has MOUNT elsewhere. */
	return err < 0 && first && first != -EPROTONOSUPPORT ? first : err;
}

/* Moves the last component of m->dir to the front of m->rest. */
static bool shorten(struct nfsc_mount *m)
{
	char *slash = strrchr(m->dir, '/');
	size_t len, have = strlen(m->rest);

	if (m->dir[1] == '\0')
		return false;
	len = strlen(slash + 1);
	memmove(m->rest + len + (have > 0), m->rest, have + 1);
	memcpy(m->rest, slash + 1, len);
	if (have > 0)
		m->rest[len] = '/';
	slash[slash == m->dir] = '\0';
	return true;
}

/* Calls a procedure whose argument is a directory. */
static int call(struct nfsc_wire *w, uint32_t procedure, const char *dir,
		const struct nfsc_config *c, int ms, struct xdr_in *x)
{
	const struct rpc_procedure p = { RPC_MOUNT, MOUNT_VERSION, procedure };
	uint8_t args[NFS_PATH_MAX + 8];
	struct xdr_out out;

	xdr_out_init(&out, args, sizeof(args));
	xdr_put_opaque(&out, dir, (uint32_t)strlen(dir));
	return wire_call(w, &p, c, args, (uint32_t)xdr_out_len(&out), ms, x);
}

_Static_assert(NFS_FLAVORS_MAX == MOUNT_MAX_FLAVORS, "as many");

static int mount_one(struct nfsc_wire *w, const struct nfsc_config *c,
		     struct nfsc_mount *m)
{
	int ms = c->connect_ms ? (int)c->connect_ms : REPLY_MS;
	struct mount_result r;
	struct xdr_in x;
	int err = call(w, MOUNTPROC_MNT, m->dir, c, ms, &x);

	/* -EACCES is for a status of MOUNT's own. */
	if (err < 0)
		return err == -EACCES ? -EPERM : err == -ETIMEDOUT ? -ETIME :
		       err;
	if (!mount_get_mnt3(&x, &r))
		return -EBADMSG;
	m->status = r.status;
	if (r.status != MNT3_OK)
		return -EACCES;
	m->root.len = r.fh.len;
	memcpy(m->root.data, r.fh.data, r.fh.len);
	m->nflavors = r.nflavors;
	memcpy(m->flavors, r.flavors, r.nflavors * sizeof(r.flavors[0]));
	return 0;
}

int nfsc_mount(const struct nfsc_url *url, const struct nfsc_config *c,
	      struct nfsc_mount *m)
{
	struct nfsc_wire *w;
	uint32_t first = 0;
	uint16_t port;
	int err = connect_mount(url, c, &port, &w);

	if (err < 0)
		return err;
	memset(m, 0, sizeof(*m));
	m->port = port;
	memcpy(m->dir, url->path, sizeof(m->dir));
	do {
		err = mount_one(w, c, m);
		/* "Not for you" says more than "not there". */
		if (err == -EACCES && (first == 0 || first == NFS_NOENT))
			first = m->status;
	} while (err == -EACCES && shorten(m));
	if (err == -EACCES)
		m->status = first;
	wire_close(w);
	return err;
}

void nfsc_unmount(const struct nfsc_url *url, const struct nfsc_config *c,
		 const struct nfsc_mount *m)
{
	struct nfsc_wire *w;
	struct xdr_in x;
	uint16_t port;

	if (connect_mount(url, c, &port, &w) < 0)
		return;
	call(w, MOUNTPROC_UMNT, m->dir, c, GOODBYE_MS, &x);
	wire_close(w);
}

bool nfsc_find_port(struct nfsc_url *url, const struct nfsc_config *c)
{
	struct sockaddr_storage peer;
	struct nfsc_wire *w;
	uint16_t port = 0;

	if (url->transport != NFS_TCP || url->port ||
	    wire_open(url->host, 0, RPC_NFS, NFS_VERSION, c, &w) < 0)
		return false;
	if (wire_peer(w, &peer) == 0)
		port = xprt_addr_port(&peer);
	wire_close(w);
	if (port == NFS_PORT || port == 0)
		return false;
	url->port = port;
	return true;
}

bool nfsc_has_locks(const struct nfsc_url *url, const struct nfsc_config *c)
{
	struct nfsc_config one = *c;
	struct nfsc_wire *w;
	bool has;

	if (c->connect_ms == 0 || c->connect_ms > LOCKS_MS)
		one.connect_ms = LOCKS_MS;
	if (wire_open(url->host, 0, RPC_NLM, NLM_VERSION, &one, &w) < 0)
		return false;
	has = !wire_is_local(w);
	wire_close(w);
	return has;
}

/* ---- EXPORT */

static struct nfsc_export *get_export(struct xdr_in *x, struct xdr_view dir)
{
	struct nfsc_export *e = calloc(1, sizeof(*e) + dir.len + 1);
	struct xdr_view name;
	size_t len = 0;

	if (!e)
		return NULL;
	if (dir.len > 0)
		memcpy(e->dir, dir.data, dir.len);
	e->who = calloc(1, 1);
	while (e->who && mount_get_item(x, &name, MNTNAMLEN)) {
		char *more = realloc(e->who, len + name.len + 3);

		if (!more)
			break;
		e->who = more;
		len += (size_t)snprintf(more + len, name.len + 3, "%s%.*s",
					len > 0 ? ", " : "", (int)name.len,
					(const char *)name.data);
	}
	return e;
}

static int get_exports(struct xdr_in *x, struct nfsc_export **out)
{
	struct nfsc_export **tail = out;
	struct xdr_view dir;

	while (mount_get_item(x, &dir, MNTPATHLEN)) {
		*tail = get_export(x, dir);
		if (!*tail || !(*tail)->who)
			return -ENOMEM;
		tail = &(*tail)->next;
	}
	return xdr_ok(x) ? 0 : -EBADMSG;
}

int nfsc_exports(const struct nfsc_url *url, const struct nfsc_config *c,
		 struct nfsc_export **out)
{
	const struct rpc_procedure p = { RPC_MOUNT, MOUNT_VERSION,
					MOUNTPROC_EXPORT };
	int err, ms = c->connect_ms ? (int)c->connect_ms : REPLY_MS;
	struct nfsc_export *list = NULL;
	struct nfsc_wire *w;
	struct xdr_in x;
	uint16_t port;

	err = connect_mount(url, c, &port, &w);
	if (err < 0)
		return err;
	err = wire_call(w, &p, c, NULL, 0, ms, &x);
	if (err == 0)
		err = get_exports(&x, &list);
	wire_close(w);
	if (err < 0)
		nfsc_exports_free(list);
	else
		*out = list;
	return err;
}

void nfsc_exports_free(struct nfsc_export *e)
{
	struct nfsc_export *next;

	for (; e; e = next) {
		next = e->next;
		free(e->who);
		free(e);
	}
}
