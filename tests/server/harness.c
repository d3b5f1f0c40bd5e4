/* SPDX-License-Identifier: BSD-2-Clause */
/* harness - the whole server in this process. */
#include "tests/server/harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mountd/mountd.h"
#include "rquota/rquota.h"
#include "rpc/rdma_config.h"
#include "tests/fabric/iwarp_options.h"
#include "tests/server/loop_relay.h"
#include "tests/loop/loop.h"
#include "tests/unit/pause.h"
#include "transport/rpcrdma/rpcrdma.h"
#include "transport/stream/stream.h"

#define DEFAULT_EXPORTS	"/mem 127.0.0.1(rw,insecure,no_root_squash)\n"

/* Fuzzers use this too: so no ck_assert(), which is for tests only. */
static void fail(const char *what, const char *why)
{
	fprintf(stderr, "harness: %s: %s\n", what, why);
	abort();
}

static void must(int err, const char *what)
{
	if (err != 0)
		fail(what, strerror(-err));
}

struct publish {
	struct harness	*h;
	const char	*text;
	int		 err;
	char		*why;
};

static void publish_run(void *arg)
{
	struct publish *p = arg;
	size_t len = strlen(p->text);
	struct export_set *set = NULL;
	FILE *in;

	/* fmemopen() has no empty files. */
	in = len ? fmemopen((char *)(uintptr_t)p->text, len, "r") :
		   fopen("/dev/null", "r");
	if (!in)
		fail("exports", strerror(errno));
	p->err = export_set_parse(p->h->exports, "exports", in, &set, &p->why);
	fclose(in);
	if (p->err == 0)
		p->err = export_table_publish(p->h->exports, set, &p->why);
}

int harness_try_publish(struct harness *h, const char *exports, char **why)
{
	struct publish p = { .h = h, .text = exports };
	pthread_t thread;

	must(thread_start(&thread, "publish", publish_run, &p), "thread");
	pthread_join(thread, NULL);
	*why = p.why;
	return p.err;
}

void harness_publish(struct harness *h, const char *exports)
{
	char *why;
	int err = harness_try_publish(h, exports, &why);

	if (err != 0)
		fail(exports, why ? why : strerror(-err));
}

static void start_programs(struct harness *h, const struct harness_config *c)
{
	struct rpc_server_config sc = {
		.nworkers = c->nworkers ? c->nworkers : 4,
		.drc_bytes = c->reply_bytes ? c->reply_bytes : 1 << 20,
		.pool = h->pool, .flavors = c->flavors,
	};
	struct rpc_client_config cc = { .rpcbind_port = c->rpcbind_port };
	struct program_env env = c->nfs3;
	struct nlm_config lc = c->nlm;

	must(rpc_server_create(&sc, &h->server), "rpc server");
	h->gss = c->gss;
	if (h->gss)
		must(rpc_gss_start(h->gss, h->server), "gss");
	h->names = work_class_create(h->server, "names", 1);
	if (!h->names)
		fail("names", "no memory");
	env.exports = h->exports;
	env.names = h->names;
	env.state_dir = c->state_dir;
	env.rdma_mount = c->rdma_mount;
	must(nfs3_row.create(&env, &h->nfs), "nfs3");
	must(nfs3_acl_row.create(&env, &h->acl), "nfsacl");
	must(mountd_row.create(&env, &h->mount), "mountd");
	must(rquota_row.create(&env, &h->rquota), "rquota");
	must(rpc_client_create(&cc, &h->client), "rpc client");
	lc.exports = h->exports;
	lc.names = h->names;
	lc.server = h->server;
	lc.client = h->client;
	must(nlm_create(&lc, &h->nlm), "nlm");
	must(rpc_server_add(h->server, h->nlm), "add nlm");
	must(rpc_server_add(h->server, h->nfs), "add nfs3");
	must(rpc_server_add(h->server, h->acl), "add nfsacl");
	must(rpc_server_add(h->server, h->mount), "add mountd");
	must(rpc_server_add(h->server, h->rquota), "add rquota");
	must(rpc_server_add(h->server, &rdma_config_program), "add rdmaconfig");
}

static void start_tls(struct harness *h, const struct harness_config *c,
		      struct tcp_tls *tls)
{
	struct tls_config *config;
	char *why;

	must(tls_config_read(c->tls, &config, &why), "tls");
	free(why);
	h->tls = tls_server_create();
	h->handshakes = rpc_handshakes_create(h->server, 2);
	if (!h->tls || !h->handshakes)
		fail("tls", "no memory");
	tls_server_use(h->tls, config);
	tls->server = h->tls;
	tls->submit = rpc_handshakes_submit;
	tls->arg = h->handshakes;
}

static void start_listener(struct harness *h, const struct harness_config *c)
{
	struct tcp_options o = { .unread_ms = c->unread_ms,
				 .linger_ms = c->linger_ms };
	struct tcp_tls tls = c->tls_limits;
	struct sockaddr_in addr = { .sin_family = AF_INET };

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	h->env.sink = rpc_server_sink(h->server);
	h->env.pool = h->pool;
	h->env.loops = h->loops;
	h->env.nloops = HARNESS_LOOPS;
	h->env.max_conns = 100;
	if (c->tls) {
		start_tls(h, c, &tls);
		o.tls = &tls;
	}
	must(tcp_listen(&h->env, (struct sockaddr *)&addr, &o, &h->tcp),
	     "listen");
	memcpy(&addr, &h->tcp->local, sizeof(addr));
	h->port = ntohs(addr.sin_port);
}

/* Runs the relay to @rdma_port, and learns its port. */
static void start_relay(struct harness *h, uint16_t rdma_port)
{
	char port[8], text[16] = "";
	int in[2], out[2];
	ssize_t n;

	snprintf(port, sizeof(port), "%u", rdma_port);
	must(pipe(in) || pipe(out) ? -errno : 0, "pipe");
	h->relay = fork();
	if (h->relay == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[0]);
		close(in[1]);
		close(out[0]);
		close(out[1]);
		execl("tests/server/rdma_relay", "rdma_relay", port, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	h->relay_in = in[1];
	n = read(out[0], text, sizeof(text) - 1);
	close(out[0]);
	h->port = (uint16_t)atoi(text);
	if (n <= 0 || h->port == 0)
		fail("tests/server/rdma_relay", "says no port");
}

static void start_rdma(struct harness *h, const char *how)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct iwarp_options options;

	struct loop_fabric_options loop = { 0 };
	bool on_loop = strncmp(how, "loop,", 5) == 0;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (on_loop) {
		loop.seed = (uint32_t)strtoul(how + 5, NULL, 10);
		must(loop_fabric_create(&loop, &h->fabric), "loop");
	} else {
		iwarp_options_parse(how, &options);
		must(iwarp_fabric_create(&options, &h->fabric), "iwarp");
	}
	must(rpcrdma_listen(&h->fabric, &h->env, (struct sockaddr *)&addr,
			    NULL, &h->rdma), "rdma listen");
	memcpy(&addr, &h->rdma->local, sizeof(addr));
	if (on_loop) {
		h->loop_relay = loop_relay_start(&h->fabric,
						 (struct sockaddr *)&addr);
		h->port = loop_relay_port(h->loop_relay);
		return;
	}
	start_relay(h, ntohs(addr.sin_port));
}

static void stop_rdma(struct harness *h)
{
	int status;

	if (h->loop_relay) {
		loop_relay_stop(h->loop_relay);
	} else {
		close(h->relay_in);
		must(waitpid(h->relay, &status, 0) < 0 ? -errno : 0, "wait");
		if (status != 0)
			fail("tests/server/rdma_relay", "did not end well");
	}
	h->rdma->ops->stop(h->rdma);
	h->rdma->ops->free(h->rdma);
}

void harness_start(struct harness *h, const struct harness_config *config)
{
	struct harness_config c = { 0 };
	struct export_config ec;

	if (config)
		c = *config;
	ec = (struct export_config){
		.backend = c.backend ? c.backend : &mem_vfs_ops,
		.state_dir = c.state_dir, .krb5 = c.krb5,
		.protection = c.protection,
	};
	memset(h, 0, sizeof(*h));
	must(pool_create(c.pool_bytes ? c.pool_bytes : 64u << 20, &h->pool),
	     "pool");
	for (int i = 0; i < HARNESS_LOOPS; i++) {
		must(loop_create("poller", &h->loops[i]), "loop");
		must(loop_start(h->loops[i]), "loop start");
	}
	must(export_table_create(&ec, &h->exports), "exports");
	harness_publish(h, c.exports ? c.exports : DEFAULT_EXPORTS);
	start_programs(h, &c);
	start_listener(h, &c);
	if (getenv("HARNESS_FABRIC"))
		start_rdma(h, getenv("HARNESS_FABRIC"));
}

static void drain(void)
{
	must(AWAIT(rpc_busy() == 0) ? 0 : -ETIMEDOUT, "drain");
}

/* Backends may only be called on threads like this. */
static void stop_nlm(void *arg)
{
	nlm_stop(arg);
}

static void destroy_exports(void *arg)
{
	export_table_destroy(arg);
}

/* The server kept the rules, and everything came back. */
static void close_loop(struct harness *h)
{
	struct loop_fabric_counts n;

	loop_fabric_count(&h->fabric, &n);
	if (n.violations || n.refused || n.rnr || n.mrs || n.ends)
		fail("loop", "a rule was broken, or something is left");
	loop_fabric_destroy(&h->fabric);
}

void harness_stop(struct harness *h)
{
	size_t taken, out;
	pthread_t thread;

	if (h->rdma)
		stop_rdma(h);
	h->tcp->ops->stop(h->tcp);
	drain();
	h->tcp->ops->free(h->tcp);
	must(thread_start(&thread, "stop", stop_nlm, h->nlm), "thread");
	pthread_join(thread, NULL);
	rpc_client_destroy(h->client);
	work_class_destroy(h->names);
	rpc_handshakes_destroy(h->handshakes);
	tls_server_destroy(h->tls);
	if (h->gss)
		rpc_gss_stop(h->gss);
	rpc_server_destroy(h->server);
	nlm_destroy(h->nlm);
	nfs3_row.destroy(h->nfs);
	nfs3_acl_row.destroy(h->acl);
	mountd_row.destroy(h->mount);
	rquota_row.destroy(h->rquota);
	must(thread_start(&thread, "destroy", destroy_exports, h->exports),
	     "thread");
	pthread_join(thread, NULL);
	for (int i = 0; i < HARNESS_LOOPS; i++) {
		loop_stop(h->loops[i]);
		loop_destroy(h->loops[i]);
	}
	if (h->loop_relay)
		close_loop(h);
	else if (h->rdma)
		iwarp_fabric_destroy(&h->fabric);
	pool_usage(h->pool, &taken, &out);
	if (out)
		fail("pool", "buffers are still out");
	pool_destroy(h->pool);
}

struct with {
	struct harness	*h;
	const char	*path;
	void		(*fn)(struct export_tree *e, void *arg);
	void		*arg;
	unsigned	 found;
};

static void with_each(void *arg, struct export_tree *e)
{
	struct with *w = arg;

	if (strcmp(e->path, w->path) == 0) {
		w->found++;
		w->fn(e, w->arg);
	}
}

static void with_run(void *arg)
{
	struct with *w = arg;

	export_each(w->h->exports, with_each, w);
}

void harness_with_export(struct harness *h, const char *path,
			 void (*fn)(struct export_tree *e, void *arg),
			 void *arg)
{
	struct with w = { .h = h, .path = path, .fn = fn, .arg = arg };
	pthread_t thread;

	must(thread_start(&thread, "with", with_run, &w), "thread");
	pthread_join(thread, NULL);
	if (w.found != 1)
		fail(path, "no such export");
}

struct root {
	struct export_table *table;
	struct nfs3_fh    *fh;
};

static void root_of(struct export_tree *e, void *arg)
{
	struct root *r = arg;
	struct vfs_handle handle;
	struct vfs_node *node;

	must(e->fs->ops->root(e->fs, &node), "root");
	e->fs->ops->handle(node, &handle);
	export_fh_make(r->table, e, &(struct export_opts){ 0 }, &handle, r->fh);
	vfs_node_put(node);
}

void harness_root(struct harness *h, const char *path, struct nfs3_fh *fh)
{
	struct root r = { .table = h->exports, .fh = fh };

	harness_with_export(h, path, root_of, &r);
}

struct nfs3_fh harness_get_fh(struct xdr_in *in)
{
	struct xdr_view v = xdr_get_opaque(in, NFS3_FHSIZE);
	struct nfs3_fh fh = { .len = v.len };

	memcpy(fh.data, v.data, v.len);
	return fh;
}
