/* SPDX-License-Identifier: BSD-2-Clause */
/* doors - a server with all its doors, and callers who choose everything. */
#include "tests/server/doors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/log.h"
#include "tests/server/net_space.h"
#include "tests/server/rdma_rig.h"
#include "tests/server/record_stream.h"
#include "transport/fabric/iwarp/iwarp.h"
#include "tests/loop/loop.h"
#include "transport/rpcrdma/rpcrdma.h"

const char *const door_names[NDOORS] = { "TCP", "iWARP", "RDMA device" };

/* ---- ports */

/* Root of a namespace, with a separate network. */
static bool become_root(void)
{
	char uids[64], gids[64];

	snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
	snprintf(gids, sizeof(gids), "0 %u 1", getegid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
		net_space_write("/proc/self/uid_map", uids) &&
		net_space_write("/proc/self/setgroups", "deny") &&
		net_space_write("/proc/self/gid_map", gids) &&
		net_space_raise_loopback();
}

/* Binds @fd to a free port of loopback on the wanted side of 1024. */
static bool bind_port(int fd, bool reserved)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!reserved)
		return bind(fd, (struct sockaddr *)&sin, sizeof(sin)) == 0;
	for (uint16_t port = 1023; port > 511; port--) {
		sin.sin_port = htons(port);
		if (bind(fd, (struct sockaddr *)&sin, sizeof(sin)) == 0)
			return true;
	}
	return false;
}

static bool can_bind(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool can = bind_port(fd, true);

	close(fd);
	return can;
}

/* In a separate network: connections of other tests also take such ports, and
 * block them for a minute. */
bool doors_may_bind_reserved(void)
{
	if (geteuid() != 0)
		return become_root() && can_bind();
	if (unshare(CLONE_NEWNET) == 0 && !net_space_raise_loopback())
		return false;
	return can_bind();
}

/* ---- the server */

static void listen_on(struct doors *d, enum door door, bool read_read)
{
	const struct rpcrdma_options o = { .read_read = read_read };
	struct sockaddr_in addr = { .sin_family = AF_INET };

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	require(rpcrdma_listen(&d->fabric[door], &d->srv.env,
			       (struct sockaddr *)&addr, &o,
			       &d->listener[door]) == 0);
}

void doors_open(struct doors *d, const struct harness_config *config)
{
	const struct iwarp_options reserved = { .reserved_port = true };
	const struct loop_fabric_options in_order = {
		.passive.max_resp_depth = config ? config->resp_depth : 0 };

	memset(d, 0, sizeof(*d));
	log_threshold = LOG_LEVEL_ERR;
	harness_start(&d->srv, config);
	require(loop_create("client", &d->client) == 0);
	require(loop_start(d->client) == 0);
	require(iwarp_fabric_create(NULL, &d->fabric[DOOR_IWARP]) == 0);
	require(iwarp_fabric_create(&reserved, &d->iwarp_reserved) == 0);
	require(loop_fabric_create(&in_order, &d->fabric[DOOR_LOOP]) == 0);
	listen_on(d, DOOR_IWARP, config && config->read_read);
	listen_on(d, DOOR_LOOP, config && config->read_read);
}

void doors_close(struct doors *d)
{
	for (int i = DOOR_IWARP; i < NDOORS; i++) {
		d->listener[i]->ops->stop(d->listener[i]);
		d->listener[i]->ops->free(d->listener[i]);
	}
	harness_stop(&d->srv);
	loop_stop(d->client);
	loop_destroy(d->client);
	iwarp_fabric_destroy(&d->iwarp_reserved);
	iwarp_fabric_destroy(&d->fabric[DOOR_IWARP]);
	loop_fabric_destroy(&d->fabric[DOOR_LOOP]);
}

/* ---- callers */

static void wait_for(sem_t *sem)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 60;
	while (sem_timedwait(sem, &t) < 0)
		require(errno == EINTR);
}

static void is_connected(void *arg)
{
	struct caller *c = arg;

	sem_post(&c->connected);
}

static void is_done(struct rpcrdma_request *r)
{
	struct caller *c = container_of(r, struct caller, req);

	if (r->status == 0) {
		require(r->reply_len <= c->room);
		memmove(c->into, r->reply_data, r->reply_len);
	}
	sem_post(&c->done);
}

static int connect_tcp(const struct doors *d, bool reserved)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(d->srv.port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	require(fd >= 0 && bind_port(fd, reserved));
	require(connect(fd, (struct sockaddr *)&sin, sizeof(sin)) == 0);
	return fd;
}

void caller_open(struct caller *c, struct doors *d, enum door door,
		 bool reserved)
{
	const struct rpcrdma_requester_options o = {
		.connected = is_connected, .arg = c,
	};
	const struct fabric *f = door == DOOR_IWARP && reserved ?
				 &d->iwarp_reserved : &d->fabric[door];

	memset(c, 0, sizeof(*c));
	sem_init(&c->connected, 0, 0);
	sem_init(&c->done, 0, 0);
	c->fd = -1;
	if (door == DOOR_TCP) {
		c->fd = connect_tcp(d, reserved);
		return;
	}
	require(rpcrdma_requester_create(f,
			(struct sockaddr *)&d->listener[door]->local,
			d->client, &o, &c->peer) == 0);
	wait_for(&c->connected);
}

void caller_close(struct caller *c)
{
	if (c->fd >= 0)
		close(c->fd);
	else
		rpcrdma_requester_destroy(c->peer);
	sem_destroy(&c->connected);
	sem_destroy(&c->done);
}

/* A header whose credential has @cred's flavor. */
static void put_flavored(struct caller *c, struct rpc_header *h,
			 const struct caller_cred *cred)
{
	uint8_t body[RPC_MAX_AUTH];
	struct xdr_out x;

	xdr_out_init(&x, body, sizeof(body));
	xdr_put_u32(&x, 0);
	xdr_put_opaque(&x, "", 0);
	xdr_put_u32(&x, cred->uid);
	xdr_put_u32(&x, cred->gid);
	xdr_put_u32(&x, cred->ngids);
	for (unsigned i = 0; i < cred->ngids; i++)
		xdr_put_u32(&x, cred->gids[i]);
	h->flavor = cred->flavor;
	h->cred = (struct xdr_view){ body, (uint32_t)xdr_out_len(&x) };
	rpc_header_call_signed(&c->out, h);
	rpc_auth_put(&c->out, RPC_AUTH_NONE, (struct xdr_view){ NULL, 0 });
}

void caller_begin(struct caller *c, uint32_t prog, uint32_t vers,
		  uint32_t proc, const struct caller_cred *cred)
{
	struct rpc_header h = { .xid = ++c->xid, .prog = prog, .vers = vers,
				.proc = proc };
	const struct rpc_auth_sys sys = { .machine = "", .uid = cred->uid,
		.gid = cred->gid, .ngids = cred->ngids, .gids = cred->gids };

	xdr_out_init(&c->out, c->call + 4, sizeof(c->call) - 4);
	if (cred->flavor)
		put_flavored(c, &h, cred);
	else
		rpc_header_call(&c->out, &h, cred->none ? NULL : &sys);
}

static uint32_t exchange_tcp(struct caller *c, uint8_t *call, uint32_t len)
{
	record_put_mark(call, len);
	require(send(c->fd, call, len + 4, MSG_NOSIGNAL) == (ssize_t)len + 4);
	len = record_receive(c->fd, c->into, c->room);
	require(len > 0);
	return len;
}

int caller_try(struct caller *c, const uint8_t *call, uint32_t len,
	       uint8_t *reply, uint32_t room)
{
	c->into = reply;
	c->room = MAX(room, CALLER_BUF);	/* a reply inline fits, too */
	memset(&c->req, 0, sizeof(c->req));
	c->req.call = call + 4;
	c->req.call_len = len;
	c->req.reply = rpcrdma_memory_at(reply, room);
	if (c->write.addr)
		c->req.write[c->req.nwrites++] = c->write;
	c->req.done = is_done;
	rpcrdma_requester_call(c->peer, &c->req);
	wait_for(&c->done);
	return c->req.status;
}

static uint32_t exchange_rdma(struct caller *c, const uint8_t *call,
			      uint32_t len, uint8_t *reply, uint32_t room)
{
	require(caller_try(c, call, len, reply, room) == 0);
	return c->req.reply_len;
}

uint32_t caller_exchange(struct caller *c, uint8_t *call, uint32_t len,
			 uint8_t *reply, uint32_t room)
{
	c->into = reply;
	c->room = room;
	return c->fd >= 0 ? exchange_tcp(c, call, len) :
	       exchange_rdma(c, call, len, reply, room);
}

uint32_t caller_send(struct caller *c)
{
	uint32_t len = (uint32_t)xdr_out_len(&c->out);
	uint32_t stat;

	require(!c->out.bad);
	len = caller_exchange(c, c->call, len, c->reply, sizeof(c->reply));
	xdr_in_init(&c->in, c->reply, len);
	require(xdr_get_u32(&c->in) == c->xid && xdr_get_u32(&c->in) == 1);
	if (xdr_get_u32(&c->in) != 0) {		/* MSG_DENIED */
		xdr_get_u32(&c->in);		/* AUTH_ERROR */
		return CALLER_DENIED + xdr_get_u32(&c->in);
	}
	xdr_get_u64(&c->in);			/* verifier */
	stat = xdr_get_u32(&c->in);
	require(xdr_ok(&c->in));
	return stat;
}
