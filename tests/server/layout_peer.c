/* SPDX-License-Identifier: BSD-2-Clause */
/* layout_peer - the server, its files, and peers with one call at a time. */
#include "tests/server/layout_peer.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/log.h"
#include "lib/util.h"
#include "wire/nfs3.h"
#include "tests/server/harness.h"
#include "tests/server/rdma_rig.h"

/* Behind the area: the memory of plain calls. */
enum { PLAIN_DATA = LAYOUT_AREA, PLAIN_REPLY = PLAIN_DATA + (2 << 20),
       REPLY_ROOM = 1 << 18, ALL = PLAIN_REPLY + REPLY_ROOM,
       RECVS = 2, SECONDS = 20 };

struct peer_recv {
	struct fabric_op   op;
	struct fabric_recv wr;
	struct peer	  *peer;
};

struct peer {
	struct fabric_conn *fc;		/* NULL: down */
	struct fabric_mr   *mr;
	struct fabric_op    sent;
	struct fabric_wr    wr;
	struct fabric_sge   sge;
	struct peer_recv    recv[RECVS];
	uint8_t		    mem[(RECVS + 1) * LAYOUT_INLINE];
	sem_t		    event;	/* each of these changes */
	atomic_bool	    up, down, answered, send_done;
	uint8_t		    answer[LAYOUT_INLINE];
	uint32_t	    answer_len;
	bool		    has_invalidated;
	uint32_t	    invalidated;
};

/* 0: no private data, so RFC 8166's default. */
static const struct kind {
	uint32_t size;
	bool	 remote_inv;
} kinds[LAYOUT_PEERS] = {
	{ 4096, false }, { 0, false }, { 4096, true }, { 2048, true },
};

struct layout_world world;

static struct harness srv;
static struct fabric fabric;
static struct xprt_listener *listener;
static struct peer peers[LAYOUT_PEERS];
static struct fabric_mr *handles[LAYOUT_HANDLES];
static uint32_t last_xid;
static struct {
	struct xdr_out out;
	struct xdr_in in;
	uint8_t call[LAYOUT_INLINE];
	uint32_t read_len, write_len;	/* chunks in PLAIN_DATA */
} plain;

uint8_t layout_letter(uint32_t i)
{
	return (uint8_t)('a' + (i * 7 + (i >> 8) * 13) % 26);
}

uint8_t layout_byte(uint32_t i, uint32_t salt)
{
	return (uint8_t)(i * 11 + (i >> 8) + salt * 37);
}

uint32_t layout_xid(void)
{
	return ++last_xid;
}

/* ---- peers */

static void happened(struct peer *p, atomic_bool *what)
{
	atomic_store(what, true);
	sem_post(&p->event);
}

static void peer_established(struct fabric_conn *fc)
{
	struct peer *p = fc->upper;

	happened(p, &p->up);
}

static void peer_closed(struct fabric_conn *fc, int err)
{
	struct peer *p = fc->upper;

	happened(p, &p->down);
}

static void peer_send_done(struct fabric_op *op, int status, uint32_t len)
{
	struct peer *p = container_of(op, struct peer, sent);

	happened(p, &p->send_done);
}

static void peer_recv_done(struct fabric_op *op, int status, uint32_t len)
{
	struct peer_recv *r = container_of(op, struct peer_recv, op);
	struct peer *p = r->peer;

	if (status < 0)
		return;
	memcpy(p->answer, r->wr.sge.addr, len);
	p->answer_len = len;
	p->has_invalidated = r->wr.has_invalidated;
	p->invalidated = r->wr.invalidated;
	fabric_post_recv(p->fc, &r->wr);
	happened(p, &p->answered);
}

/* False: not within SECONDS. */
static bool await(struct peer *p, atomic_bool *a, atomic_bool *b)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SECONDS;
	while (!(atomic_load(a) && atomic_load(b)))
		if (sem_timedwait(&p->event, &until) < 0 && errno != EINTR)
			return false;
	return true;
}

static void bring_up(void *arg)
{
	struct peer *p = arg;
	const struct kind *k = &kinds[p - peers];
	struct rpcrdma_private mine = { .remote_inv = k->remote_inv,
					.send_size = LAYOUT_INLINE,
					.recv_size = k->size };
	struct fabric_queues q = { 4, RECVS, 1 };
	uint8_t data[RPCRDMA_PRIVATE_LEN];

	require(fabric_setup(p->fc, srv.loops[0], &q) == 0);
	for (int i = 0; i < RECVS; i++)
		require(fabric_post_recv(p->fc, &p->recv[i].wr) == 0);
	rpcrdma_private_encode(&mine, data);
	require(fabric_start(p->fc, data, k->size ? sizeof(data) : 0, 16) ==
		0);
}

static void peer_up(struct peer *p)
{
	atomic_bool *up = &p->up;
	uint8_t *at = p->mem;

	memset(p, 0, offsetof(struct peer, mem));
	sem_init(&p->event, 0, 0);
	atomic_store(&p->up, false);
	atomic_store(&p->down, false);
	require(fabric_connect(&fabric, (struct sockaddr *)&listener->local,
			       &p->fc) == 0);
	p->fc->upper = p;
	p->fc->established = peer_established;
	p->fc->closed = peer_closed;
	require(fabric_mr_create(p->fc->dev, p->mem, sizeof(p->mem),
				 FABRIC_LOCAL, &p->mr) == 0);
	for (int i = 0; i < RECVS; i++, at += LAYOUT_INLINE) {
		struct peer_recv *r = &p->recv[i];

		r->peer = p;
		r->op.done = peer_recv_done;
		r->wr.op = &r->op;
		r->wr.sge = (struct fabric_sge){ at, LAYOUT_INLINE,
						 p->mr->lkey };
	}
	p->sent.done = peer_send_done;
	p->sge = (struct fabric_sge){ at, 0, p->mr->lkey };
	p->wr = (struct fabric_wr){ .opcode = FABRIC_SEND, .op = &p->sent,
				    .sge = &p->sge, .nsge = 1 };
	loop_call(srv.loops[0], bring_up, p);
	require(await(p, up, up));
}

static void free_fc(void *arg)
{
	struct peer *p = arg;

	fabric_free(p->fc);
}

static void peer_end(struct peer *p)
{
	if (!p->fc)
		return;
	fabric_close(p->fc);
	require(await(p, &p->down, &p->down));
	loop_call(srv.loops[0], free_fc, p);
	fabric_mr_destroy(p->mr);
	sem_destroy(&p->event);
	p->fc = NULL;
}

static bool is_over(struct peer *p)
{
	return atomic_load(&p->down) ||
	       (atomic_load(&p->answered) && atomic_load(&p->send_done));
}

int layout_ask(unsigned peer, const void *msg, uint32_t len,
	       const uint8_t **answer)
{
	struct peer *p = &peers[peer];
	struct timespec until;

	if (!p->fc)
		peer_up(p);
	atomic_store(&p->answered, false);
	atomic_store(&p->send_done, false);
	memcpy(p->sge.addr, msg, len);
	p->sge.len = len;
	if (fabric_post(p->fc, &p->wr) < 0) {
		peer_end(p);
		return -ENOTCONN;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SECONDS;
	while (!is_over(p)) {
		if (sem_timedwait(&p->event, &until) == 0 || errno == EINTR)
			continue;
		peer_end(p);
		return -ETIMEDOUT;
	}
	*answer = p->answer;
	if (!atomic_load(&p->down))
		return (int)p->answer_len;
	peer_end(p);
	return -ENOTCONN;
}

/* ---- handles */

static void register_area(unsigned i)
{
	require(fabric_mr_create(peers[0].fc->dev, world.area, ALL,
				 FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE,
				 &handles[i]) == 0);
}

uint32_t layout_handle(unsigned i)
{
	return handles[i]->rkey;
}

int layout_invalidated(unsigned peer)
{
	struct peer *p = &peers[peer];

	if (!p->has_invalidated)
		return -1;
	for (unsigned i = 0; i < LAYOUT_HANDLES; i++) {
		if (handles[i]->rkey != p->invalidated)
			continue;
		fabric_mr_destroy(handles[i]);
		register_area(i);
		return (int)i;
	}
	return -2;
}

bool layout_may_invalidate(unsigned peer)
{
	return kinds[peer].remote_inv;
}

/* ---- plain calls */

void layout_put_header(struct xdr_out *x, uint32_t xid, uint32_t proc)
{
	static const uint32_t cred[] = { 1, 20, 0, 0, 0, 0, 0, 0, 0 };

	xdr_put_u32(x, xid);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 2);
	xdr_put_u32(x, NFS3_PROGRAM);
	xdr_put_u32(x, NFS3_VERSION);
	xdr_put_u32(x, proc);
	for (size_t i = 0; i < ARRAY_SIZE(cred); i++)
		xdr_put_u32(x, cred[i]);
}

struct xdr_out *plain_begin(uint32_t proc, const struct nfs3_fh *fh)
{
	plain.read_len = plain.write_len = 0;
	xdr_out_init(&plain.out, plain.call, sizeof(plain.call));
	layout_put_header(&plain.out, layout_xid(), proc);
	xdr_put_opaque(&plain.out, fh->data, fh->len);
	return &plain.out;
}

static void put_plain_chunk(struct xdr_out *x, uint32_t at, uint32_t len)
{
	xdr_put_u32(x, layout_handle(0));
	xdr_put_u32(x, len);
	xdr_put_u64(x, (uintptr_t)world.area + at);
}

struct xdr_in *plain_send(void)
{
	uint32_t len = (uint32_t)xdr_out_len(&plain.out);
	uint8_t msg[LAYOUT_INLINE];
	const uint8_t *answer;
	struct xdr_out x;
	struct rpcrdma_header h;
	int n;

	xdr_out_init(&x, msg, sizeof(msg));
	xdr_put_u32(&x, last_xid);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, RPCRDMA_MSG);
	if (plain.read_len > 0) {
		xdr_put_u32(&x, 1);
		xdr_put_u32(&x, len);
		put_plain_chunk(&x, PLAIN_DATA, plain.read_len);
	}
	xdr_put_u32(&x, 0);
	if (plain.write_len > 0) {
		xdr_put_u32(&x, 1);
		xdr_put_u32(&x, 1);
		put_plain_chunk(&x, PLAIN_DATA, plain.write_len);
	}
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, 1);
	put_plain_chunk(&x, PLAIN_REPLY, REPLY_ROOM);
	memcpy(xdr_reserve(&x, len), plain.call, len);
	n = layout_ask(0, msg, (uint32_t)xdr_out_len(&x), &answer);
	require(n > 0 && rpcrdma_header_decode(answer, (size_t)n, &h) == 0);
	require(h.xid == last_xid);
	if (h.proc == RPCRDMA_NOMSG)
		xdr_in_init(&plain.in, world.area + PLAIN_REPLY,
			    h.reply.length);
	else
		xdr_in_init(&plain.in, answer + h.len, (uint32_t)n - h.len);
	xdr_get_fixed(&plain.in, LAYOUT_RPC_REPLY - 4);
	require(xdr_get_u32(&plain.in) == 0);
	return &plain.in;
}

const uint8_t *plain_read(const struct nfs3_fh *fh, uint32_t offset,
			  uint32_t len)
{
	struct xdr_out *x = plain_begin(NFSPROC3_READ, fh);

	xdr_put_u64(x, offset);
	xdr_put_u32(x, len);
	memset(world.area + PLAIN_DATA, 0xdd, len);
	plain.write_len = len;
	require(xdr_get_u32(plain_send()) == NFS3_OK);
	return world.area + PLAIN_DATA;
}

/* ---- files */

static struct nfs3_fh new_fh(void)
{
	struct xdr_in *in = plain_send();

	require(xdr_get_u32(in) == NFS3_OK && xdr_get_bool(in));
	return harness_get_fh(in);
}

static struct nfs3_fh make(uint32_t proc, const struct nfs3_fh *dir,
			     const char *name, uint32_t len, const char *path)
{
	struct xdr_out *x = plain_begin(proc, dir);

	xdr_put_opaque(x, name, len);
	/* As settable attributes none, behind UNCHECKED for CREATE. */
	for (int i = proc == NFSPROC3_CREATE ? 7 : 6; i > 0; i--)
		xdr_put_u32(x, 0);
	if (path) {
		plain.read_len = (uint32_t)strlen(path);
		xdr_put_u32(x, plain.read_len);
		memcpy(world.area + PLAIN_DATA, path, plain.read_len);
	}
	return new_fh();
}

static void learn_attr(const struct nfs3_fh *fh, uint8_t *attr)
{
	struct xdr_in *in;

	plain_begin(NFSPROC3_GETATTR, fh);
	in = plain_send();
	require(xdr_get_u32(in) == NFS3_OK);
	memcpy(attr, xdr_get_fixed(in, LAYOUT_ATTRS).data, LAYOUT_ATTRS);
}

static void make_file(void)
{
	uint32_t size = LAYOUT_DATA_MAX + (64u << 10) + 3, n;
	struct xdr_out *x;

	world.file = make(NFSPROC3_CREATE, &world.top, "file", 4, NULL);
	world.copy = make(NFSPROC3_CREATE, &world.top, "copy", 4, NULL);
	world.data = malloc(size);
	world.shadow = calloc(1, 2 * LAYOUT_DATA_MAX);
	for (uint32_t i = 0; i < size; i++)
		world.data[i] = layout_byte(i, 0);
	for (uint32_t at = 0; at < size; at += n) {
		n = MIN(size - at, LAYOUT_DATA_MAX);
		x = plain_begin(NFSPROC3_WRITE, &world.file);
		xdr_put_u64(x, at);
		xdr_put_u32(x, n);
		xdr_put_u32(x, 2);
		xdr_put_u32(x, n);
		memcpy(world.area + PLAIN_DATA, world.data + at, n);
		plain.read_len = n;
		require(xdr_get_u32(plain_send()) == NFS3_OK);
	}
	world.facts.file_size = size;
	learn_attr(&world.file, world.file_attr);
}

static void make_links(void)
{
	static const uint32_t lens[LAYOUT_TARGETS] = {
		1, 3, 4, 875, 877, 1901, 3950, 4095 };
	char path[4096], name[] = "link0";

	for (int i = 0; i < LAYOUT_TARGETS; i++, name[4]++) {
		for (uint32_t k = 0; k < lens[i]; k++)
			path[k] = (char)layout_letter(k);
		path[lens[i]] = '\0';
		world.link[i] = make(NFSPROC3_SYMLINK, &world.top, name, 5,
				     path);
		world.facts.link_len[i] = lens[i];
		learn_attr(&world.link[i], world.link_attr[i]);
	}
}

/* Adds entries to a directory until they take @left bytes of a reply. */
static void fill_directory(const struct nfs3_fh *dir, uint32_t left)
{
	enum { ENTRY = 24, LONGEST = 252 };
	char name[256];
	uint32_t n;

	memset(name, 'n', sizeof(name));
	for (int i = 0; left > 0; i++, left -= ENTRY + n) {
		n = MIN(left - ENTRY, (uint32_t)LONGEST);
		if (left - ENTRY - n > 0 && left - ENTRY - n < 2 * ENTRY)
			n = LONGEST / 2 + 2;
		for (int k = 0, v = i; k < 4; k++, v /= 10)
			name[k] = (char)('0' + v % 10);
		make(NFSPROC3_CREATE, dir, name, n, NULL);
	}
}

static void learn_directory(int i)
{
	struct xdr_out *x = plain_begin(NFSPROC3_READDIR, &world.dir[i]);
	struct xdr_in *in;
	uint32_t len;

	for (int k = 0; k < 4; k++)
		xdr_put_u32(x, 0);
	xdr_put_u32(x, 64 << 10);
	in = plain_send();
	len = (uint32_t)xdr_left(in);
	world.facts.dir_reply[i] = LAYOUT_RPC_REPLY + len;
	world.dir_reply[i] = malloc(len);
	memcpy(world.dir_reply[i], xdr_get_fixed(in, len).data, len);
}

static void make_directories(void)
{
	/* The empty one's reply, and thresholds without a header's length. */
	enum { EMPTY = 188, HEADER = 28 };
	static const uint32_t lens[LAYOUT_TARGETS] = {
		EMPTY, 1024 - HEADER, 1028 - HEADER, 2048 - HEADER,
		4096 - HEADER, 4100 - HEADER, 16384, 40000 };
	char name[] = "dir0";

	for (int i = 0; i < LAYOUT_TARGETS; i++, name[3]++) {
		world.dir[i] = make(NFSPROC3_MKDIR, &world.top, name, 4, NULL);
		fill_directory(&world.dir[i], lens[i] - EMPTY);
		learn_directory(i);
		require(world.facts.dir_reply[i] == lens[i]);
	}
}

void layout_open(uint32_t seed)
{
	struct loop_fabric_options fo = { .seed = seed };
	struct harness_config hc = {
		.exports = "/mem 127.0.0.1(rw,secure,no_root_squash)\n",
	};
	struct sockaddr_in addr = { .sin_family = AF_INET };

	log_threshold = LOG_LEVEL_ERR;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	harness_start(&srv, &hc);
	harness_root(&srv, "/mem", &world.top);
	require(loop_fabric_create(&fo, &fabric) == 0);
	require(rpcrdma_listen(&fabric, &srv.env, (struct sockaddr *)&addr,
			       NULL, &listener) == 0);
	world.area = malloc(ALL);
	for (int i = 0; i < LAYOUT_PEERS; i++) {
		world.facts.threshold[i] = kinds[i].size ? kinds[i].size :
					   RPCRDMA_INLINE_MIN;
		peer_up(&peers[i]);
	}
	for (unsigned i = 0; i < LAYOUT_HANDLES; i++)
		register_area(i);
	world.facts.fh_len = world.top.len;
	make_file();
	make_links();
	make_directories();
	require(world.file.len == world.top.len);
	require(world.dir[0].len == world.top.len);
}

void layout_close(void)
{
	struct loop_fabric_counts n;

	for (int i = 0; i < LAYOUT_PEERS; i++)
		peer_end(&peers[i]);
	for (unsigned i = 0; i < LAYOUT_HANDLES; i++)
		fabric_mr_destroy(handles[i]);
	listener->ops->stop(listener);
	listener->ops->free(listener);
	harness_stop(&srv);
	loop_fabric_count(&fabric, &n);
	require(n.violations == 0 && n.refused == 0 && n.rnr == 0);
	require(n.mrs == 0 && n.ends == 0);
	loop_fabric_destroy(&fabric);
	for (int i = 0; i < LAYOUT_TARGETS; i++)
		free(world.dir_reply[i]);
	free(world.area);
	free(world.data);
	free(world.shadow);
}
