/* SPDX-License-Identifier: BSD-2-Clause */
/* nlm_client - a lock manager's client, of any version. */
#include "tests/server/nlm_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <semaphore.h>

#include "tests/server/fault_vfs.h"
#include "tests/unit/runner.h"
#include "transport/stream/stream.h"
#include "wire/getport.h"
#include "wire/header.h"

#define MAX_ARGS	1024u

_Atomic uint32_t nlmc_answer;
const char *nlmc_from, *nlmc_to;
uint32_t nlmc_resend_ms;
uint32_t nlmc_state;
bool nlmc_is_bare;
bool nlmc_notes_first;

/* ---- the server's peer: a lock manager, and its rpcbind */

static struct pool *pool;
static struct loop *loop;
static struct rpc_server *beside;
static struct xprt_listener *tcp, *udp, *server_udp, *second_udp;
static struct rpc_client *caller;
static uint16_t port, server_port;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock: */
static struct nlm_came came[NLM_CAME_MAX + 1];
static unsigned ncame;
static uint64_t last_cookie;

union came_args {
	struct nlm_args granted;
	struct nlm_res_args res;
};

static int note_call(struct rpc_call *call)
{
	const union came_args *a = rpc_args(call);
	struct xdr_view cookie = a->granted.cookie;	/* first in both */
	struct nlm_came *c;

	pthread_mutex_lock(&lock);
	ck_assert(ncame < NLM_CAME_MAX || nlmc_notes_first);
	c = &came[ncame];
	ncame += ncame < NLM_CAME_MAX;
	*c = (struct nlm_came){
		.vers = call->version->vers, .proc = call->procnum,
		.from = xprt_addr_host(rpc_call_peer(call)).s6_addr[15],
	};
	if (call->procnum >= NLM_TEST_RES) {
		c->status = a->res.status;
	} else {
		c->svid = a->granted.svid;
		c->off = a->granted.off;
		c->len = a->granted.len;
	}
	if (cookie.len == sizeof(last_cookie)) {
		memcpy(&last_cookie, cookie.data, cookie.len);
		c->cookie = last_cookie;
	}
	pthread_mutex_unlock(&lock);
	*(uint32_t *)rpc_res(call) = nlmc_answer;
	return nlmc_answer == NLM_SILENT ? -ECANCELED : 0;
}

static int end_call(struct rpc_call *call, int err)
{
	return err;
}

static void put_granted(struct xdr_out *x, const void *res)
{
	xdr_put_opaque(x, "", 0);
	xdr_put_u32(x, *(const uint32_t *)res);
}

static bool get_question(struct xdr_in *x, void *args)
{
	for (int i = 0; i < 4; i++)
		xdr_get_u32(x);
	return xdr_ok(x);
}

static int tell_port(struct rpc_call *call)
{
	*(uint32_t *)rpc_res(call) = nlmc_answer == NLM_DEAF ? 0 : port;
	return 0;
}

static void put_port(struct xdr_out *x, const void *res)
{
	xdr_put_u32(x, *(const uint32_t *)res);
}

#define CAME(n, get, put) { \
	.name = n, .decode = get, .encode = put, .steps = { note_call }, \
	.end = end_call, \
	.args_size = sizeof(union came_args), .res_size = 4 }
#define MANAGER(v) { \
	[NLM_GRANTED] = CAME("GRANTED", nlm_get_test##v, put_granted), \
	[NLM_GRANTED_MSG] = CAME("GRANTED_MSG", nlm_get_test##v, NULL), \
	[NLM_TEST_RES] = CAME("TEST_RES", nlm_get_res, NULL), \
	[NLM_LOCK_RES] = CAME("LOCK_RES", nlm_get_res, NULL), \
	[NLM_CANCEL_RES] = CAME("CANCEL_RES", nlm_get_res, NULL), \
	[NLM_UNLOCK_RES] = CAME("UNLOCK_RES", nlm_get_res, NULL), \
	}

static const struct rpc_proc manager1[16] = MANAGER(1);
static const struct rpc_proc manager4[16] = MANAGER(4);
static const struct rpc_proc binder[4] = {
	[3] = {
		.name = "GETPORT", .decode = get_question, .encode = put_port,
		.steps = { tell_port }, .res_size = 4,
	},
};

static const struct rpc_version manager_versions[] = {
	{ 1, 16, manager1 }, { 3, 16, manager1 }, { 4, 16, manager4 },
};
/* Versions of a lock manager that only knows NULL. */
static const struct rpc_version bare_versions[] = {
	{ 1, 1, manager1 }, { 3, 1, manager1 }, { 4, 1, manager4 },
};
static const struct rpc_version binder_versions[] = {
	{ 2, 4, binder },
};

static struct rpc_program manager_program = {
	.name = "their nlockmgr", .prog = NLM_PROGRAM, .nversions = 3,
};
static struct rpc_program binder_program = {
	.name = "their rpcbind", .prog = 100000, .nversions = 1,
	.versions = binder_versions,
};

static void start_beside(void)
{
	struct rpc_server_config config = { .nworkers = 1 };
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct xprt_env env = { .loops = &loop, .nloops = 1, .max_conns = 9 };
	int err;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(pool_create(16 << 20, &pool), 0);
	ck_assert_int_eq(loop_create("beside", &loop), 0);
	ck_assert_int_eq(loop_start(loop), 0);
	config.pool = env.pool = pool;
	ck_assert_int_eq(rpc_server_create(&config, &beside), 0);
	manager_program.versions = nlmc_is_bare ? bare_versions :
				   manager_versions;
	ck_assert_int_eq(rpc_server_add(beside, &manager_program), 0);
	ck_assert_int_eq(rpc_server_add(beside, &binder_program), 0);
	env.sink = rpc_server_sink(beside);
	do {
		at.sin_port = 0;
		ck_assert_int_eq(tcp_listen(&env, (struct sockaddr *)&at, NULL,
					    &tcp), 0);
		memcpy(&at, &tcp->local, sizeof(at));
		err = udp_listen(&env, (struct sockaddr *)&at, NULL, &udp);
		/* Another test's UDP socket can have the number. */
		if (err == -EADDRINUSE)
			tcp->ops->free(tcp);
	} while (err == -EADDRINUSE);
	ck_assert_int_eq(err, 0);
	port = ntohs(at.sin_port);
}

static void stop_beside(void)
{
	tcp->ops->free(tcp);
	udp->ops->free(udp);
	rpc_server_destroy(beside);
	loop_stop(loop);
	loop_destroy(loop);
	pool_destroy(pool);
}

/* ---- both */

void nlmc_open(uint16_t tcp_port)
{
	server_port = tcp_port;
	ck_assert_int_eq(rpc_client_create(NULL, &caller), 0);
}

void nlmc_close(void)
{
	rpc_client_destroy(caller);
}

void nlmc_start(const struct harness_config *config)
{
	struct harness_config c = { 0 };
	struct sockaddr_in at = { .sin_family = AF_INET };

	if (config)
		c = *config;
	nlmc_answer = NLM4_GRANTED;
	nlmc_state = 7;
	nlmc_from = nlmc_to = NULL;
	ncame = 0;
	start_beside();
	if (c.rpcbind_port == 0)
		c.rpcbind_port = port;
	nfs_setup_with(&c);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(udp_listen(&srv.env, (struct sockaddr *)&at, NULL,
				    &server_udp), 0);
	inet_pton(AF_INET, NLMC_SECOND, &at.sin_addr);
	ck_assert_int_eq(udp_listen(&srv.env, (struct sockaddr *)&at, NULL,
				    &second_udp), 0);
	nlmc_open(srv.port);
}

void nlmc_end(void)
{
	nlmc_close();
	server_udp->ops->stop(server_udp);
	server_udp->ops->free(server_udp);
	second_udp->ops->stop(second_udp);
	second_udp->ops->free(second_udp);
	nfs_teardown();
	stop_beside();
}

uint16_t nlmc_rpcbind(void)
{
	return port;
}

unsigned nlmc_came(struct nlm_came *out)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = ncame;
	memcpy(out, came, n * sizeof(*out));
	pthread_mutex_unlock(&lock);
	return n;
}

unsigned nlmc_count(uint32_t proc)
{
	struct nlm_came all[NLM_CAME_MAX];
	unsigned n = nlmc_came(all), found = 0;

	for (unsigned i = 0; i < n; i++)
		found += all[i].proc == proc;
	return found;
}

nfs_fh3 nlmc_file(uint16_t tcp_port, int uid, char *dir, char handle[64])
{
	struct nfs_client c, n;
	mountres3_ok *ok;
	LOOKUP3args la = { .what.name = (char *)"file" };
	LOOKUP3res lr;
	nfs_fh3 fh = { .data.data_val = handle };
	mountres3 r;

	nfs_client_open(&c, tcp_port, MOUNT_PROGRAM, MOUNT_V3, uid);
	ck_assert_int_eq(nfs_try(&c, rpc_mount3_mnt_async, dir, &r), 0);
	ck_assert_int_eq(r.fhs_status, MNT3_OK);
	ok = &r.mountres3_u.mountinfo;
	la.what.dir.data.data_len = ok->fhandle.fhandle3_len;
	la.what.dir.data.data_val = ok->fhandle.fhandle3_val;
	nfs_client_open(&n, tcp_port, NFS_PROGRAM, NFS_V3, uid);
	nfs_call(&n, lookup, &la, &lr);
	ck_assert_int_eq(lr.status, NFS3_OK);
	fh.data.data_len = lr.LOOKUP3res_u.resok.object.data.data_len;
	memcpy(handle, lr.LOOKUP3res_u.resok.object.data.data_val,
	       fh.data.data_len);
	nfs_client_close(&n);
	nfs_client_close(&c);
	return fh;
}

/* ---- calls */

struct answer {
	sem_t	 done;
	int	 err;
	bool	 is_message;
	uint32_t vers, proc;
	uint32_t status;
	struct nlm_holder holder;
};

static void answer_came(void *arg, int err, struct xdr_in *x)
{
	struct answer *a = arg;
	struct nlm_res_args res;
	struct nlm_args h = { 0 };

	a->err = err;
	if (err == 0 && !a->is_message) {
		if (!nlm_get_res(x, &res) || res.cookie.len != 3 ||
		    memcmp(res.cookie.data, "abc", 3) != 0)
			a->err = -EPROTO;
		a->status = res.status;
	}
	if (a->err == 0 && a->proc == NLM_TEST && a->status == NLM4_DENIED) {
		if (!nlm_get_holder(x, &h, a->vers == 4))
			a->err = -EPROTO;
		a->holder = (struct nlm_holder){
			{ h.off, h.len, h.exclusive }, h.svid
		};
	}
	sem_post(&a->done);
}

static struct xdr_out args;
static uint8_t bytes[MAX_ARGS];

static uint32_t send_call(const struct nlm_process *p, struct answer *a)
{
	struct rpc_client_to to = {
		.proto = p->proto, .prog = NLM_PROGRAM, .vers = p->vers,
		.proc = a->proc, .timeout_ms = 60000,
		/* Each call comes once: tests count the answers to it. */
		.resend_ms = nlmc_resend_ms ? nlmc_resend_ms : 60000,
	};
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_port = htons(server_port);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (p->proto == IPPROTO_UDP)
		memcpy(&at, nlmc_to ? &second_udp->local : &server_udp->local,
		       sizeof(at));
	memcpy(&to.addr, &at, sizeof(at));
	at.sin_port = 0;
	inet_pton(AF_INET, nlmc_from ? nlmc_from : "127.0.0.1", &at.sin_addr);
	memcpy(&to.from, &at, sizeof(at));
	a->vers = p->vers;
	sem_init(&a->done, 0, 0);
	ck_assert(!args.bad);
	ck_assert_int_eq(rpc_client_call(caller, &to, bytes,
					 xdr_out_len(&args), answer_came, a),
			 0);
	wait_sem(&a->done);
	sem_destroy(&a->done);
	ck_assert_int_eq(a->err, 0);
	return a->status;
}

/* The arguments of @proc; most procedures only use @p and @b. */
static void put_args(const struct nlm_process *p, uint32_t proc,
		     struct nlm_bytes b, struct nlm_args a)
{
	char oh[32];

	snprintf(oh, sizeof(oh), "%u@%s", p->svid, p->host);
	a.cookie = xdr_text("abc");
	a.name = xdr_text(p->host);
	a.fh = (struct xdr_view){ (const uint8_t *)p->fh.data.data_val,
				  p->fh.data.data_len };
	a.oh = xdr_text(oh);
	a.svid = p->svid;
	a.off = b.off;
	a.len = b.len;
	a.exclusive = b.exclusive;
	a.state = nlmc_state;
	xdr_out_init(&args, bytes, sizeof(bytes));
	nlm_put_args(&args, &a, proc, p->vers == 4);
}

static uint32_t call_with(const struct nlm_process *p, uint32_t proc,
			  struct nlm_bytes b, struct nlm_args a)
{
	put_args(p, proc, b, a);
	return send_call(p, &(struct answer){ .proc = proc });
}

uint32_t nlmc_lock(const struct nlm_process *p, struct nlm_bytes b, bool block)
{
	return call_with(p, NLM_LOCK, b, (struct nlm_args){ .block = block });
}

uint32_t nlmc_reclaim(const struct nlm_process *p, struct nlm_bytes b)
{
	return call_with(p, NLM_LOCK, b, (struct nlm_args){ .reclaim = true });
}

uint32_t nlmc_lock_unwatched(const struct nlm_process *p, struct nlm_bytes b)
{
	return call_with(p, NLM_NM_LOCK, b, (struct nlm_args){ 0 });
}

uint32_t nlmc_unlock(const struct nlm_process *p, struct nlm_bytes b)
{
	return call_with(p, NLM_UNLOCK, b, (struct nlm_args){ 0 });
}

uint32_t nlmc_cancel(const struct nlm_process *p, struct nlm_bytes b)
{
	return call_with(p, NLM_CANCEL, b, (struct nlm_args){ .block = true });
}

uint32_t nlmc_test(const struct nlm_process *p, struct nlm_bytes b,
		   struct nlm_holder *out)
{
	struct answer a = { .proc = NLM_TEST };

	put_args(p, NLM_TEST, b, (struct nlm_args){ 0 });
	send_call(p, &a);
	if (out)
		*out = a.holder;
	return a.status;
}

uint32_t nlmc_granted(const struct nlm_process *p, struct nlm_bytes b)
{
	return call_with(p, NLM_GRANTED, b, (struct nlm_args){ 0 });
}

uint32_t nlmc_share(const struct nlm_process *p, uint32_t mode,
		    uint32_t access)
{
	return call_with(p, NLM_SHARE, (struct nlm_bytes){ 0 },
			 (struct nlm_args){ .mode = mode, .access = access });
}

uint32_t nlmc_unshare(const struct nlm_process *p)
{
	return call_with(p, NLM_UNSHARE, (struct nlm_bytes){ 0 },
			 (struct nlm_args){ 0 });
}

static void send_void(const struct nlm_process *p, uint32_t proc)
{
	send_call(p, &(struct answer){ .proc = proc, .is_message = true });
}

void nlmc_free_all(const struct nlm_process *p)
{
	xdr_out_init(&args, bytes, sizeof(bytes));
	xdr_put_opaque(&args, p->host, (uint32_t)strlen(p->host));
	xdr_put_u32(&args, 9);
	send_void(p, NLM_FREE_ALL);
}

void nlmc_restarted(const char *host, uint32_t state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	nlm_restarted(srv.nlm, host, (struct sockaddr *)&at, state);
}

static void put_notify_call(const char *host)
{
	const struct rpc_header h = { .xid = 4711, .prog = NLM_PROGRAM,
				      .vers = 4, .proc = NLM_SM_NOTIFY };

	xdr_out_init(&args, bytes, sizeof(bytes));
	rpc_header_call(&args, &h, NULL);
	xdr_put_opaque(&args, host, (uint32_t)strlen(host));
	xdr_put_u32(&args, 9);
	xdr_put_fixed(&args, "0123456789abcdef", NLM_NOTIFY_PRIV);
}

bool nlmc_notify(const char *host, bool reserved)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t reply[64];

	if (reserved && bindresvport(fd, NULL) < 0) {
		close(fd);
		return false;
	}
	put_notify_call(host);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&server_udp->local,
				 sizeof(struct sockaddr_in)), 0);
	ck_assert_int_eq(send(fd, bytes, xdr_out_len(&args), 0),
			 (ssize_t)xdr_out_len(&args));
	/* An accepted call without results. */
	ck_assert_int_eq(recv(fd, reply, sizeof(reply), 0), 24);
	close(fd);
	return true;
}

void nlmc_message(const struct nlm_process *p, uint32_t proc,
		  struct nlm_bytes b, bool block)
{
	put_args(p, proc, b, (struct nlm_args){
		.block = block || proc == NLM_CANCEL_MSG });
	send_void(p, proc);
}

void nlmc_granted_res_to(const struct nlm_process *p, uint64_t cookie,
			 uint32_t status)
{
	xdr_out_init(&args, bytes, sizeof(bytes));
	xdr_put_opaque(&args, &cookie, sizeof(cookie));
	xdr_put_u32(&args, status);
	send_void(p, NLM_GRANTED_RES);
}

void nlmc_granted_res(const struct nlm_process *p, uint32_t status)
{
	uint64_t cookie;

	pthread_mutex_lock(&lock);
	cookie = last_cookie;
	pthread_mutex_unlock(&lock);
	nlmc_granted_res_to(p, cookie, status);
}
