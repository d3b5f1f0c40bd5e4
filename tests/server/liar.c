/* SPDX-License-Identifier: BSD-2-Clause */
/* liar - a server that gives the answers that a test chooses. */
#include "tests/server/liar.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "lib/xdr.h"
#include "tests/server/record_stream.h"
#include "wire/header.h"
#include "wire/mount.h"
#include "wire/record.h"

enum {
	MOUNT = 100005, NFS = 100003,
	REG = 1, DIR = 2, LNK = 5, NOENT = 2, ACCES = 13, DATA = 4,
	MADE = 999,
	CALL_MAX = 65536, THREADS_MAX = 200,
};

struct talk {
	struct liar *l;
	int	     fd;
	unsigned     nheld;
	struct { uint32_t len; uint8_t reply[1024]; } held[LIAR_HOLD_MAX];
};

static void put_attr(struct xdr_out *x, uint32_t object, uint32_t type)
{
	xdr_put_u32(x, type);
	xdr_put_u32(x, 07777);
	xdr_put_u32(x, 1);
	xdr_put_u64(x, 0);		/* uid, gid */
	xdr_put_u64(x, type == REG ? DATA : 4096);
	xdr_put_u64(x, 4096);
	xdr_put_u64(x, 0);		/* rdev */
	xdr_put_u64(x, 1);		/* fsid */
	xdr_put_u64(x, object);
	for (int i = 0; i < 6; i++)
		xdr_put_u32(x, 1000000000);
}

static void put_post_attr(struct xdr_out *x, uint32_t object, uint32_t type)
{
	xdr_put_bool(x, true);
	put_attr(x, object, type);
}

static void put_handle(struct xdr_out *x, uint32_t object)
{
	xdr_put_u32(x, 4);
	xdr_put_u32(x, object);
}

static uint32_t name_len(const struct liar_name *n)
{
	return n->len ? n->len : (uint32_t)strlen(n->name);
}

static const struct liar_name *find_object(const struct liar *l, uint32_t o)
{
	static const struct liar_name directory = { .type = DIR },
				      made = { .type = REG, .object = MADE };

	for (unsigned i = 0; i < l->nnames; i++)
		if (l->names[i].object == o)
			return &l->names[i];
	return o == MADE && l->finds ? &made : &directory;
}

static const struct liar_name *find_name(const struct liar *l, uint32_t dir,
					 const struct xdr_view *v)
{
	for (unsigned i = 0; i < l->nnames; i++)
		if (l->names[i].dir == dir &&
		    name_len(&l->names[i]) == v->len &&
		    memcmp(l->names[i].name, v->data, v->len) == 0)
			return &l->names[i];
	return NULL;
}

static void put_listed(struct xdr_out *x, const struct liar_name *n,
		       uint64_t cookie)
{
	xdr_put_bool(x, true);
	xdr_put_u64(x, n->object);
	xdr_put_opaque(x, n->name, name_len(n));
	xdr_put_u64(x, cookie);
	put_post_attr(x, n->object, n->type);
	xdr_put_bool(x, true);
	put_handle(x, n->object);
}

static void list(const struct liar *l, uint32_t dir, uint64_t cookie,
		 struct xdr_out *x)
{
	const struct liar_name next = {
		.name = "d", .object = dir + 1, .type = DIR,
	};

	bool full = false;

	put_post_attr(x, dir, DIR);
	xdr_put_u64(x, 0);		/* cookieverf */
	if (dir >= LIAR_DEEP && cookie == 0)
		put_listed(x, &next, 1);
	if (l->circles && cookie == l->nnames)
		cookie = 0;
	for (unsigned i = (unsigned)cookie; i < l->nnames && !full; i++) {
		if (l->names[i].dir != dir)
			continue;
		put_listed(x, &l->names[i], i + 1);
		full = l->circles;
	}
	xdr_put_bool(x, false);
	xdr_put_bool(x, !l->stops && !l->circles);
}

static void put_fsinfo(struct xdr_out *x)
{
	put_post_attr(x, 0, DIR);
	for (int i = 0; i < 7; i++)
		xdr_put_u32(x, 65536);
	xdr_put_u64(x, UINT32_MAX);
	xdr_put_u64(x, 1);
	xdr_put_u32(x, 0);
}

/* True if @procedure changes something, which is said to be done then. */
static bool take_change(uint32_t procedure, struct xdr_in *in,
			struct xdr_out *x)
{
	uint32_t count;

	if (procedure != 7 && procedure != 8 && procedure != 9 &&
	    procedure != 12 && procedure != 13 && procedure != 14 &&
	    procedure != 21)
		return false;
	xdr_put_u32(x, 0);
	if (procedure == 8 || procedure == 9) {
		xdr_put_bool(x, true);
		put_handle(x, MADE);
		xdr_put_bool(x, false);
	}
	xdr_put_u64(x, 0);		/* wcc_data */
	if (procedure == 7) {
		xdr_get_u64(in);
		count = xdr_get_u32(in);
		xdr_put_u32(x, count);
		xdr_put_u32(x, 2);	/* FILE_SYNC */
	}
	if (procedure == 7 || procedure == 14 || procedure == 21)
		xdr_put_u64(x, 0);
	return true;
}

static void answer_nfs(const struct liar *l, uint32_t procedure,
		       struct xdr_in *in, struct xdr_out *x)
{
	const struct liar_name *n;
	struct xdr_view v;
	uint32_t object, count;

	xdr_get_u32(in);
	object = xdr_get_u32(in);
	if (l->makes && l->refused != procedure &&
	    take_change(procedure, in, x))
		return;
	n = find_object(l, object);
	if (procedure == 3) {
		v = xdr_get_opaque(in, 255);
		n = find_name(l, object, &v);
		if (!n && l->finds)
			n = find_object(l, MADE);
	}
	if (l->refused == procedure)
		n = NULL;
	xdr_put_u32(x, n ? 0 : l->refused == procedure ? ACCES : NOENT);
	if (!n) {
		xdr_put_bool(x, false);
		return;
	}
	switch (procedure) {
	case 1:
		put_attr(x, object, n->type);
		return;
	case 3:
		put_handle(x, n->object);
		put_post_attr(x, n->object, n->type);
		xdr_put_bool(x, false);
		return;
	case 4:			/* all rights that are asked for */
		put_post_attr(x, object, n->type);
		xdr_put_u32(x, xdr_get_u32(in));
		return;
	case 5:
		put_post_attr(x, object, LNK);
		xdr_put_string(x, n->target);
		return;
	case 6:			/* another size is another file */
		put_post_attr(x, object, l->changes ? DIR : REG);
		xdr_get_u64(in);
		count = MIN(xdr_get_u32(in),
			    (uint32_t)(l->halves ? DATA / 2 : DATA));
		xdr_put_u32(x, count);
		xdr_put_bool(x, l->halves || count == DATA);
		xdr_put_opaque(x, "lie\n", count);
		return;
	case 17:
		list(l, object, xdr_get_u64(in), x);
		return;
	default:
		put_fsinfo(x);
	}
}

static void answer_mount(const struct liar *l, uint32_t procedure,
			 struct xdr_out *x)
{
	const uint8_t handle[4] = { 0, 0, 0, l->mounted };

	if (procedure == 1) {
		mount_put_mnt3(x, &(struct mount_result){
			.status = l->mount_status,
			.fh = { handle, 4 },
			.nflavors = l->flavor ? 1 : 0,
			.flavors = { l->flavor } });
	} else if (procedure == 5) {
		if (l->exported) {
			mount_put_item(x, l->exported, strlen(l->exported));
			mount_put_item(x, "192.0.2.1", 9);
			mount_put_item(x, "\033[2J", 4);
			xdr_put_bool(x, false);
		}
		xdr_put_bool(x, false);
	}
}

/* The reply's header; true if results follow. */
static bool accept_call(const struct liar *l, const struct rpc_header *h,
			struct xdr_out *x)
{
	uint32_t version = l->only_version ? l->only_version : 3;

	if (l->denies && h->proc != 0) {
		rpc_header_denied(x, h->xid, RPC_AUTH_TOOWEAK);
		return false;
	}
	if ((l->only_program && h->prog != l->only_program) ||
	    (h->prog != MOUNT && h->prog != NFS)) {
		rpc_header_accepted(x, h->xid, RPC_PROG_UNAVAIL);
		return false;
	}
	if (h->vers != version) {
		rpc_header_prog_mismatch(x, h->xid, version, version);
		return false;
	}
	rpc_header_accepted(x, h->xid, RPC_SUCCESS);
	return h->proc != 0;
}

static void send_reply(const struct talk *t, const uint8_t *reply, uint32_t len)
{
	uint32_t most = t->l->fragment ? t->l->fragment : len;
	uint8_t mark[RECORD_MARK_SIZE];

	for (uint32_t n; len > 0; reply += n, len -= n) {
		struct iovec iov[] = { { mark, sizeof(mark) },
				       { (void *)(uintptr_t)reply, 0 } };

		iov[1].iov_len = n = MIN(most, len);
		record_put_mark(mark, n);
		if (n < len)
			mark[0] = 0;	/* more follow */
		record_send(t->fd, iov, 2);
	}
}

static void hold_reply(struct talk *t, const uint8_t *reply, uint32_t len)
{
	struct liar *l = t->l;
	unsigned n = t->nheld++;

	ck_assert(n < LIAR_HOLD_MAX && len <= sizeof(t->held[n].reply));
	memcpy(t->held[n].reply, reply, len);
	t->held[n].len = len;
	if (t->nheld > l->most_held)
		l->most_held = t->nheld;
	while (l->hold <= LIAR_HOLD_MAX && n + 1 >= l->hold && t->nheld > 0) {
		t->nheld--;
		send_reply(t, t->held[t->nheld].reply, t->held[t->nheld].len);
	}
}

static bool answer_one(struct talk *t, uint8_t *call, uint8_t *reply)
{
	uint32_t len = record_receive(t->fd, call, CALL_MAX);
	struct rpc_header h;
	struct xdr_out x;
	struct xdr_in in;

	if (len == 0)
		return false;
	if (t->l->mute)
		return true;
	xdr_in_init(&in, call, len);
	rpc_header_decode(&in, &h);
	if ((t->l->mute_procedure && h.prog == NFS &&
	     h.proc == t->l->mute_procedure) ||
	    (t->l->mute_mount && h.prog == MOUNT && h.proc == 1))
		return true;
	xdr_out_init(&x, reply, CALL_MAX);
	if (accept_call(t->l, &h, &x)) {
		if (h.prog == MOUNT)
			answer_mount(t->l, h.proc, &x);
		else
			answer_nfs(t->l, h.proc, &in, &x);
	}
	if (t->l->held_procedure && h.prog == NFS &&
	    h.proc == t->l->held_procedure)
		hold_reply(t, reply, (uint32_t)xdr_out_len(&x));
	else
		send_reply(t, reply, (uint32_t)xdr_out_len(&x));
	return true;
}

static void *serve(void *arg)
{
	struct talk *t = arg;
	uint8_t *call = malloc(CALL_MAX), *reply = malloc(CALL_MAX);

	while (answer_one(t, call, reply))
		;
	close(t->fd);
	free(call);
	free(reply);
	free(t);
	return NULL;
}

static void *take_connections(void *arg)
{
	struct liar *l = arg;
	pthread_t threads[THREADS_MAX];
	unsigned n = 0;
	int fd;

	while (n < THREADS_MAX &&
	       (fd = accept(l->listener, NULL, NULL)) >= 0) {
		struct talk *t = calloc(1, sizeof(*t));

		t->l = l;
		t->fd = fd;
		pthread_create(&threads[n++], NULL, serve, t);
	}
	while (n > 0)
		pthread_join(threads[--n], NULL);
	return NULL;
}

void liar_start(struct liar *l)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	l->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(l->listener, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(listen(l->listener, 50), 0);
	getsockname(l->listener, (struct sockaddr *)&addr, &len);
	l->port = ntohs(addr.sin_port);
	pthread_create(&l->thread, NULL, take_connections, l);
}

void liar_stop(struct liar *l)
{
	shutdown(l->listener, SHUT_RDWR);
	pthread_join(l->thread, NULL);
	close(l->listener);
}
