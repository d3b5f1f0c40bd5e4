/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * harness - the whole server in this process, as the daemon wires it: a
 * pool, two pollers, workers, the NFS, NFSACL, MOUNT, rquota and NLM programs
 * on an export table, and a TCP listener on a port of loopback that the kernel
 * chose.
 *
 * Other transports are listened on with harness.env.
 *
 * With HARNESS_FABRIC in the environment ("iwarp", and options as
 * tests/fabric/iwarp_options.h has them) harness.port is that of a
 * tests/server/rdma_relay: what comes there reaches the server over iWARP.
 * "loop,SEED" is the loop fabric with that seed, and a loop_relay.
 */
#pragma once

#include <netinet/in.h>

#include "exports/export.h"
#include "lib/loop.h"
#include "nfs3/nfs3.h"
#include "nlm/nlm.h"
#include "rpc/client.h"
#include "rpc/gss.h"
#include "rpc/handshakes.h"
#include "rpc/rpc.h"
#include "transport/fabric/fabric.h"
#include "transport/stream/stream.h"
#include "transport/tls/tls.h"
#include "transport/xprt.h"

#define HARNESS_LOOPS	2

/* 0 or NULL is the default of every field. */
struct harness_config {
	/* exports(5); default: "/mem 127.0.0.1(rw,insecure,no_root_squash)" */
	const char	     *exports;
	const struct vfs_ops *backend;	/* mem_vfs_ops */
	const char	     *state_dir;
	unsigned	      nworkers;	/* 4 */
	size_t		      pool_bytes;	/* 64 MiB */
	size_t		      reply_bytes;	/* 1 MiB */
	bool		      rdma_mount;	/* MOUNT also over RDMA */
	bool		      read_read;	/* doors: replies are exposed */
	unsigned	      resp_depth;	/* doors: Reads that the loop
						 * fabric answers */
	const struct rpc_flavor *const *flavors;	/* rpc_flavors */
	struct rpc_gss	     *gss;	/* to start and stop; it is one of the
					 * flavors */
	bool		      krb5;	/* one of the flavors is Kerberos */
	struct program_env    nfs3;	/* its sizes; the rest is set here */
	struct nlm_config     nlm;	/* the same */
	uint16_t	      rpcbind_port;	/* of clients: 111 */
	uint32_t	      unread_ms, linger_ms;	/* struct tcp_options */
	const struct tls_files *tls;	/* NULL: no TLS */
	struct tcp_tls	      tls_limits;	/* the numbers */
	enum rpc_protection protection;	/* of exports */
};

struct harness {
	struct loop		*loops[HARNESS_LOOPS];
	struct pool		*pool;
	struct export_table	*exports;
	struct rpc_server	*server;
	struct rpc_gss		*gss;	/* or NULL */
	struct rpc_program	*nfs;
	struct rpc_program	*acl;
	struct rpc_program	*mount;
	struct rpc_program	*rquota;
	struct rpc_program	*nlm;
	struct rpc_client	*client;
	struct work_class	*names;		/* one worker */
	struct xprt_env		 env;
	struct tls_server	*tls;	/* or NULL */
	struct rpc_handshakes	*handshakes;
	struct xprt_listener	*tcp;
	uint16_t		 port;

	/* With HARNESS_FABRIC: */
	struct fabric		 fabric;
	struct xprt_listener	*rdma;	/* NULL: without */
	struct loop_relay	*loop_relay;	/* NULL: the next one */
	pid_t			 relay;
	int			 relay_in;	/* it ends with this */
};

/* Each aborts when something does not go well. */
void harness_start(struct harness *h, const struct harness_config *config);
/* Stops the listener, waits for all calls, frees everything; aborts when a
 * buffer is still out. */
void harness_stop(struct harness *h);
/* Makes @exports, the text of an exports(5) file, the current one. */
void harness_publish(struct harness *h, const char *exports);
/* The same; an error is returned, with the reason in *@why (malloced). */
int harness_try_publish(struct harness *h, const char *exports, char **why);
/* The filehandle of an export's root, as MNT would give it. */
void harness_root(struct harness *h, const char *path, struct nfs3_fh *fh);
/* Takes a filehandle from the results in @in. */
struct nfs3_fh harness_get_fh(struct xdr_in *in);
/* Calls @fn with the export at @path on a thread that may call backends, and
 * waits. */
void harness_with_export(struct harness *h, const char *path,
			 void (*fn)(struct export_tree *e, void *arg),
			 void *arg);
