/* SPDX-License-Identifier: BSD-2-Clause */
/* mount - connections of libnfs, and MOUNT version 3 on one of them. */
#include "client/nfs/tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <nfsc/libnfs-zdr.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-mount.h>

#include "lib/util.h"

enum { MOUNT_TCP_PROGRAM = 100005, MOUNT_TCP_VERSION = 3,
       NFS_PORT = 2049, CONNECT_MS = 10000 };

struct waiting {
	bool	over;
	int	err;
	struct nfsc_mount *m;
};

int nfsc_rpc_service(struct rpc_context *rpc, int timeout_ms)
{
	struct pollfd p = {
		.fd = rpc_get_fd(rpc),
		.events = (short)rpc_which_events(rpc),
	};
	int n;

	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIMEDOUT;
	return rpc_service(rpc, p.revents);
}

static int wait_for(struct rpc_context *rpc, struct waiting *w, int ms)
{
	int err = 0;

	while (!w->over && err >= 0)
		err = nfsc_rpc_service(rpc, ms);
	if (w->over)
		return w->err;
	return err == -ETIMEDOUT ? err : -ECONNRESET;
}

static int connect_ms(const struct nfsc_config *c)
{
	return c->connect_ms ? (int)c->connect_ms : CONNECT_MS;
}

static void connected(struct rpc_context *rpc, int status, void *data,
		      void *arg)
{
	struct waiting *w = arg;

	w->over = true;
	w->err = status == RPC_STATUS_SUCCESS ? 0 : -ECONNREFUSED;
}

int nfsc_rpc_connect(const char *host, uint16_t port, int program, int version,
		    const struct nfsc_config *c, struct rpc_context **out)
{
	/* What libnfs calls back with outlives this when it fails. */
	struct rpc_context *rpc = rpc_init_context();
	struct waiting w = { 0 };
	uint32_t groups[16];
	struct AUTH *auth;
	int err;

	if (!rpc)
		return -ENOMEM;
	memcpy(groups, c->groups, sizeof(groups));
	auth = libnfs_authunix_create("gannet-nfs", c->uid, c->gid,
				      c->ngroups, groups);
	if (auth)
		rpc_set_auth(rpc, auth);
	err = port ? rpc_connect_port_async(rpc, host, port, program, version,
					    connected, &w) :
		     rpc_connect_program_async(rpc, host, program, version,
					       connected, &w);
	err = err ? -EHOSTUNREACH : wait_for(rpc, &w, connect_ms(c));
	if (err < 0) {
		rpc_destroy_context(rpc);
		return err;
	}
	*out = rpc;
	return 0;
}

static void mounted(struct rpc_context *rpc, int status, void *data, void *arg)
{
	struct waiting *w = arg;
	const struct mountres3 *r = data;
	const fhandle3 *fh;

	w->over = true;
	if (status != RPC_STATUS_SUCCESS) {
		w->err = -ECONNRESET;
		return;
	}
	if (!w->m)				/* UMNT */
		return;
	w->m->status = r->fhs_status;
	if (r->fhs_status != MNT3_OK) {
		w->err = -EACCES;
		return;
	}
	fh = &r->mountres3_u.mountinfo.fhandle;
	w->m->root.len = MIN((unsigned)fh->fhandle3_len,
			     (unsigned)NFS_FH_MAX);
	memcpy(w->m->root.data, fh->fhandle3_val, w->m->root.len);
}

/*
 * At the port that was given.  Else at that of NFS, which tells instances of
 * a server apart; where its rpcbind says; or where a server without one may
 * have it.
 */
static int connect_mount(const struct nfsc_url *url,
			 const struct nfsc_config *c, uint16_t *port,
			 struct rpc_context **rpc)
{
	bool tcp = url->transport == NFS_TCP && url->port;
	const uint16_t ports[] = { tcp ? url->port : 0, 0, NFS_PORT };
	unsigned n = url->mountport ? 1 : ARRAY_SIZE(ports);
	int err = -ECONNREFUSED;

	for (unsigned i = 0; i < n && err < 0 && err != -ETIMEDOUT; i++) {
		*port = url->mountport ? url->mountport : ports[i];
		if (i == 0 && *port == 0)
			continue;
		err = nfsc_rpc_connect(url->host, *port, MOUNT_TCP_PROGRAM,
				       MOUNT_TCP_VERSION, c, rpc);
	}
	return err;
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

static int mount_one(struct rpc_context *rpc, const struct nfsc_config *c,
		     struct nfsc_mount *m)
{
	struct waiting w = { .m = m };

	if (rpc_mount3_mnt_async(rpc, mounted, m->dir, &w) != 0)
		return -ENOMEM;
	return wait_for(rpc, &w, connect_ms(c));
}

int nfsc_mount(const struct nfsc_url *url, const struct nfsc_config *c,
	      struct nfsc_mount *m)
{
	struct rpc_context *rpc;
	uint32_t first = 0;
	uint16_t port;
	int err = connect_mount(url, c, &port, &rpc);

	if (err < 0)
		return err;
	memset(m, 0, sizeof(*m));
	m->port = port;
	memcpy(m->dir, url->path, sizeof(m->dir));
	do {
		err = mount_one(rpc, c, m);
		/* "Not for you" says more than "not there". */
		if (err == -EACCES &&
		    (first == 0 || first == (uint32_t)MNT3ERR_NOENT))
			first = m->status;
	} while (err == -EACCES && shorten(m));
	if (err == -EACCES)
		m->status = first;
	rpc_destroy_context(rpc);
	return err;
}

void nfsc_unmount(const struct nfsc_url *url, const struct nfsc_config *c,
		 const struct nfsc_mount *m)
{
	struct waiting w = { 0 };
	struct rpc_context *rpc;
	char dir[NFS_PATH_MAX];
	uint16_t port;

	if (connect_mount(url, c, &port, &rpc) < 0)
		return;
	memcpy(dir, m->dir, sizeof(dir));
	if (rpc_mount3_umnt_async(rpc, mounted, dir, &w) == 0)
		wait_for(rpc, &w, 1000);
	rpc_destroy_context(rpc);
}

const char *nfsc_mount_status_name(uint32_t status)
{
	return mountstat3_to_str((int)status);
}

const char *nfsc_status_name(uint32_t status)
{
	return nfsstat3_to_str((int)status);
}
