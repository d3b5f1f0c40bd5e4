/* SPDX-License-Identifier: BSD-2-Clause */
/* lock_calls - what clients whose owners lock say, and what they are told. */
#include "tests/crash/lock_calls.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "nlm/proto.h"
#include "tests/unit/runner.h"
#include "wire/getport.h"
#include "wire/header.h"
#include "wire/record.h"

#define NSM_PROGRAM	100024u
#define SM_NOTIFY	6u
#define SVID		100u		/* of the first owner */

/* ---- messages */

static void begin_letter(struct letter *l)
{
	xdr_out_init(&l->x, l->data + 4, LC_ROOM - 4);
}

static void begin_call(struct lock_wire *w, struct letter *l, uint32_t xid,
		       const uint32_t proc[3])
{
	const struct rpc_header h = { .xid = xid, .prog = proc[0],
				      .vers = proc[1], .proc = proc[2] };
	const struct rpc_auth_sys sys = { .machine = "", .uid = w->uid,
					  .gid = w->uid };

	begin_letter(l);
	rpc_header_call(&l->x, &h, &sys);
}

/* A server that has just ended hears nothing. */
void lc_send(struct letter *l, int fd, bool stream,
	     const struct sockaddr_in *to)
{
	size_t len = xdr_out_len(&l->x);
	ssize_t n;

	ck_assert(!l->x.bad);
	record_put_mark(l->data, len);
	if (stream)
		n = send(fd, l->data, len + 4, MSG_NOSIGNAL);
	else
		n = sendto(fd, l->data + 4, len, 0,
			   (const struct sockaddr *)to, to ? sizeof(*to) : 0);
	(void)n;
}

static void send_to_server(const struct lw_client *c, struct letter *l)
{
	lc_send(l, c->s.fd, !c->udp, NULL);
}

/* ---- what owners ask for */

static void put_range(struct xdr_out *x, const struct lm_op *op, bool wide)
{
	uint64_t off = op->first * LW_SCALE;
	uint64_t len = (op->last - op->first + 1) * LW_SCALE;

	if (op->last == LM_BYTES - 1)
		len = 0;
	if (wide) {
		xdr_put_u64(x, off);
		xdr_put_u64(x, len);
	} else {
		xdr_put_u32(x, (uint32_t)off);
		xdr_put_u32(x, (uint32_t)len);
	}
}

static void put_owner(struct lock_wire *w, struct xdr_out *x, unsigned i)
{
	const struct lm_owner *o = &w->m->owner[i];
	const struct model_fh *fh = &w->fh[o->op.file];
	char text[16];

	snprintf(text, sizeof(text), "c%u", o->host);
	xdr_put_string(x, text);
	xdr_put_opaque(x, fh->data, fh->len);
	snprintf(text, sizeof(text), "o%u", i);
	xdr_put_string(x, text);
}

static void put_args(struct lock_wire *w, struct xdr_out *x, unsigned i)
{
	const struct lm_owner *o = &w->m->owner[i];
	const struct lw_client *c = &w->client[o->host];
	const struct lm_op *op = &o->op;
	const uint32_t cookie[] = { i, w->sent[i].seq };
	bool locks = op->kind == LM_LOCK || op->kind == LM_NM_LOCK;

	xdr_put_opaque(x, cookie, sizeof(cookie));
	if (locks || op->kind == LM_CANCEL)
		xdr_put_bool(x, op->block);
	if (locks || op->kind == LM_CANCEL || op->kind == LM_TEST)
		xdr_put_bool(x, op->exclusive);
	put_owner(w, x, i);
	if (op->kind == LM_SHARE || op->kind == LM_UNSHARE) {
		xdr_put_u32(x, op->mode);
		xdr_put_u32(x, op->access);
		xdr_put_bool(x, op->reclaim);
		return;
	}
	xdr_put_u32(x, SVID + i);
	put_range(x, op, c->vers == 4);
	if (locks) {
		xdr_put_bool(x, op->reclaim);
		xdr_put_u32(x, c->state);
	}
}

static uint32_t proc_of(const struct lw_client *c, const struct lm_op *op)
{
	static const uint32_t procs[] = {
		[LM_LOCK] = NLM_LOCK, [LM_NM_LOCK] = NLM_NM_LOCK,
		[LM_UNLOCK] = NLM_UNLOCK, [LM_CANCEL] = NLM_CANCEL,
		[LM_TEST] = NLM_TEST, [LM_SHARE] = NLM_SHARE,
		[LM_UNSHARE] = NLM_UNSHARE,
	};
	uint32_t proc = procs[op->kind];

	if (c->by_message && proc <= NLM_UNLOCK)
		proc += NLM_TEST_MSG - NLM_TEST;
	return proc;
}

void lw_send(struct lock_wire *w, unsigned i)
{
	struct lm_owner *o = &w->m->owner[i];
	const struct lw_client *c = &w->client[o->host];
	const uint32_t proc[] = { NLM_PROGRAM, c->vers, proc_of(c, &o->op) };
	struct letter l;

	w->sent[i].seq = ++w->seq;
	w->sent[i].xid = w->seq << 5 | i;
	w->sent[i].sent_ms = runner_now_ms();
	lm_begin(w->m, o);
	begin_call(w, &l, w->sent[i].xid, proc);
	put_args(w, &l.x, i);
	send_to_server(c, &l);
	/* As a client does that has not heard for a while. */
	if (c->udp && !c->by_message && w->seq % 8 == 0)
		send_to_server(c, &l);
}

static void tell_restart(struct lock_wire *w, unsigned host, bool free_all)
{
	static const uint32_t notify[] = { NSM_PROGRAM, 1, SM_NOTIFY };
	struct lw_client *c = &w->client[host];
	const uint32_t free[] = { NLM_PROGRAM, c->vers, NLM_FREE_ALL };
	struct letter l;
	char name[16];

	c->xid = ++w->seq << 5 | (LM_OWNERS + host);
	c->frees = !free_all && c->vers != 1;
	begin_call(w, &l, c->xid, free_all ? free : notify);
	snprintf(name, sizeof(name), "c%u", host);
	xdr_put_string(&l.x, name);
	xdr_put_u32(&l.x, c->state);
	send_to_server(c, &l);
}

void lw_restart_host(struct lock_wire *w, unsigned host)
{
	lm_host_restarts(w->m, host);
	w->client[host].state += 2;
	tell_restart(w, host, false);
}

/* ---- answers */

static enum lm_when when_of(const struct lock_wire *w, unsigned i)
{
	if (w->sent[i].sent_ms > w->grace_max)
		return LM_FREE;
	return w->grace_known && runner_now_ms() < w->grace_min ? LM_GRACE :
								  LM_EITHER;
}

static void check_holder(struct lock_wire *w, unsigned i, struct xdr_in *x)
{
	struct lm_owner *holder = NULL;
	struct xdr_view oh;
	char name[16];
	uint32_t svid;

	xdr_get_bool(x);
	svid = xdr_get_u32(x) - SVID;
	oh = xdr_get_opaque(x, 64);
	snprintf(name, sizeof(name), "o%u", svid);
	if (svid < LM_OWNERS && oh.len == strlen(name) &&
	    memcmp(oh.data, name, oh.len) == 0)
		holder = &w->m->owner[svid];
	lm_told_holder(w->m, &w->m->owner[i], holder);
}

/* The results of owner @i's request, behind the cookie. */
static void take_result(struct lock_wire *w, unsigned i, struct xdr_in *x)
{
	struct lm_owner *o = &w->m->owner[i];
	uint32_t status = xdr_get_u32(x);

	if (!xdr_ok(x))
		lm_defect(w->m, "a short answer");
	if (o->op.kind == LM_TEST && status == NLM4_DENIED)
		check_holder(w, i, x);
	w->sent[i].xid = 0;
	lm_end(w->m, o, status, when_of(w, i));
}

/* The owner whose request @cookie is of, or LM_OWNERS. */
static unsigned owner_of(const struct lock_wire *w, struct xdr_view cookie)
{
	uint32_t v[2];

	if (cookie.len != sizeof(v))
		return LM_OWNERS;
	memcpy(v, cookie.data, sizeof(v));
	return v[0] < LM_OWNERS && w->m->owner[v[0]].busy &&
	       w->sent[v[0]].seq == v[1] ? v[0] : LM_OWNERS;
}

static void take_host_reply(struct lock_wire *w, unsigned host, uint32_t xid)
{
	struct lw_client *c = &w->client[host];

	if (c->xid != xid)
		return;
	if (c->frees) {
		tell_restart(w, host, true);
		return;
	}
	c->xid = 0;
	lm_host_restarted(w->m, host);
}

void lc_take_reply(struct lock_wire *w, const struct lw_client *c,
		   const uint8_t *data, size_t len)
{
	struct xdr_in x;
	uint32_t xid, i;

	xdr_in_init(&x, data, len);
	if (rpc_header_reply(&x, &xid) != 0)
		lm_defect(w->m, "a call was not accepted");
	i = xid % 32;
	if (i >= LM_OWNERS + LM_HOSTS)
		return;
	if (i >= LM_OWNERS) {
		take_host_reply(w, i - LM_OWNERS, xid);
		return;
	}
	/* Not those of calls that were sent twice, nor of messages. */
	if (w->sent[i].xid != xid || !w->m->owner[i].busy ||
	    proc_of(c, &w->m->owner[i].op) - NLM_TEST_MSG < 5)
		return;
	if (owner_of(w, xdr_get_opaque(&x, 64)) != i)
		lm_defect(w->m, "a foreign cookie");
	take_result(w, i, &x);
}

/* ---- the server's calls */

/* The file that has the handle, or LM_FILES. */
static unsigned file_of(const struct lock_wire *w, struct xdr_view fh)
{
	unsigned f = 0;

	while (f < LM_FILES && (fh.len != w->fh[f].len ||
				memcmp(fh.data, w->fh[f].data, fh.len)))
		f++;
	return f;
}

/* Returns the status to answer. */
static uint32_t take_granted(struct lock_wire *w, unsigned host,
			     struct xdr_in *x)
{
	bool wide = w->client[host].vers == 4;
	struct lm_op op = { .exclusive = xdr_get_bool(x) };
	uint64_t off, len;
	uint32_t svid;

	xdr_get_opaque(x, 255);
	op.file = file_of(w, xdr_get_opaque(x, 64));
	xdr_get_opaque(x, 255);
	svid = xdr_get_u32(x) - SVID;
	off = wide ? xdr_get_u64(x) : xdr_get_u32(x);
	len = wide ? xdr_get_u64(x) : xdr_get_u32(x);
	if (!xdr_ok(x) || svid >= LM_OWNERS || op.file == LM_FILES ||
	    w->m->owner[svid].host != host)
		lm_defect(w->m, "a call-back for nobody");
	op.first = (unsigned)(off / LW_SCALE);
	op.last = len ? op.first + (unsigned)(len / LW_SCALE) - 1 :
			LM_BYTES - 1;
	return lm_called_back(w->m, &w->m->owner[svid], &op,
			      model_random() % 8);
}

static void answer_by_message(struct lock_wire *w, unsigned host,
			      struct xdr_view cookie, uint32_t status)
{
	const struct lw_client *c = &w->client[host];
	const uint32_t proc[] = { NLM_PROGRAM, c->vers, NLM_GRANTED_RES };
	struct letter l;

	begin_call(w, &l, ++w->seq << 5 | 31, proc);
	xdr_put_opaque(&l.x, cookie.data, cookie.len);
	xdr_put_u32(&l.x, status);
	if (c->s.fd >= 0)
		send_to_server(c, &l);
}

static void take_nlm(struct lock_wire *w, unsigned host, uint32_t proc,
		     struct xdr_in *x, struct letter *l)
{
	struct xdr_view cookie = xdr_get_opaque(x, 64);
	uint32_t status;
	unsigned i;

	if (proc >= NLM_TEST_RES && proc <= NLM_UNLOCK_RES) {
		i = owner_of(w, cookie);
		if (i < LM_OWNERS && w->m->owner[i].host == host)
			take_result(w, i, x);
		return;
	}
	status = take_granted(w, host, x);
	if (proc == NLM_GRANTED_MSG) {
		answer_by_message(w, host, cookie, status);
		return;
	}
	xdr_put_opaque(&l->x, cookie.data, cookie.len);
	xdr_put_u32(&l->x, status);
}

static void take_notify(struct lock_wire *w, unsigned host, struct xdr_in *x)
{
	struct lw_client *c = &w->client[host];
	uint32_t state;

	xdr_get_opaque(x, 255);
	state = xdr_get_u32(x);
	lm_step(w->m, "host %u is told of state %u", host, state);
	if (state % 2 == 0 || state < c->told)
		lm_defect(w->m, "a state that is even or old");
	c->told = state;
	w->m->host[host].claims = true;
	w->m->host[host].owed = false;
}

void lc_take_call(struct lock_wire *w, unsigned host, const uint8_t *data,
		  size_t len, struct letter *l)
{
	struct rpc_header h;
	struct xdr_in x;

	xdr_in_init(&x, data, len);
	if (rpc_header_decode(&x, &h) != RPC_HEADER_CALL)
		lm_defect(w->m, "a message that is no call");
	begin_letter(l);
	rpc_header_accepted(&l->x, h.xid, RPC_SUCCESS);
	if (h.prog == RPCBIND_PROGRAM)
		xdr_put_u32(&l->x, RPCBIND_PORT);
	else if (h.prog == NSM_PROGRAM && h.proc == SM_NOTIFY)
		take_notify(w, host, &x);
	else if (h.prog == NLM_PROGRAM)
		take_nlm(w, host, h.proc, &x, l);
}
