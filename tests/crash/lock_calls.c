/* SPDX-License-Identifier: BSD-2-Clause */
/* lock_calls - encodes the requests of lock owners, and takes the replies. */
#include "tests/crash/lock_calls.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/unit/runner.h"
#include "wire/getport.h"
#include "wire/header.h"
#include "wire/nlm.h"
#include "wire/nsm.h"
#include "wire/record.h"

#define NSM_PROGRAM	100024u
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

/* ---- requests of owners */

static struct xdr_view text_of(char text[16], char kind, unsigned number)
{
	snprintf(text, 16, "%c%u", kind, number);
	return xdr_text(text);
}

static void put_args(struct lock_wire *w, struct xdr_out *x, unsigned i,
		     uint32_t proc)
{
	const struct lm_owner *o = &w->m->owner[i];
	const struct lw_client *c = &w->client[o->host];
	const struct lm_op *op = &o->op;
	const struct model_fh *fh = &w->fh[op->file];
	const uint32_t cookie[] = { i, w->sent[i].seq };
	char name[16], oh[16];
	const struct nlm_args a = {
		.cookie = { (const uint8_t *)cookie, sizeof(cookie) },
		.name = text_of(name, 'c', o->host),
		.fh = { fh->data, fh->len }, .oh = text_of(oh, 'o', i),
		.svid = SVID + i, .off = op->first * LW_SCALE,
		.len = op->last == LM_BYTES - 1 ? 0 :
		       (op->last - op->first + 1) * LW_SCALE,
		.block = op->block, .exclusive = op->exclusive,
		.reclaim = op->reclaim, .state = c->state,
		.mode = op->mode, .access = op->access,
	};

	nlm_put_args(x, &a, proc, c->vers == 4);
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
	put_args(w, &l.x, i, proc[2]);
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
	const struct lw_client *c = &w->client[w->m->owner[i].host];
	struct lm_owner *holder = NULL;
	struct nlm_args h = { 0 };
	struct xdr_view oh;
	char name[16];

	if (!nlm_get_holder(x, &h, c->vers == 4))
		lm_defect(w->m, "a short answer");
	oh = text_of(name, 'o', h.svid - SVID);
	if (h.svid - SVID < LM_OWNERS && h.oh.len == oh.len &&
	    memcmp(h.oh.data, oh.data, oh.len) == 0)
		holder = &w->m->owner[h.svid - SVID];
	lm_told_holder(w->m, &w->m->owner[i], holder);
}

/* The results of owner @i's request, behind the status. */
static void take_result(struct lock_wire *w, unsigned i, uint32_t status,
			struct xdr_in *x)
{
	struct lm_owner *o = &w->m->owner[i];

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
	struct nlm_res_args res;
	struct xdr_in x;
	uint32_t xid, i;

	xdr_in_init(&x, data, len);
	if (rpc_header_reply(&x, &xid, NULL) != 0)
		lm_defect(w->m, "a call was not accepted");
	i = xid % 32;
	if (i >= LM_OWNERS + LM_HOSTS)
		return;
	if (i >= LM_OWNERS) {
		take_host_reply(w, i - LM_OWNERS, xid);
		return;
	}
	/* Ignore replies to repeated calls, and to messages. */
	if (w->sent[i].xid != xid || !w->m->owner[i].busy ||
	    proc_of(c, &w->m->owner[i].op) - NLM_TEST_MSG < 5)
		return;
	if (!nlm_get_res(&x, &res))
		lm_defect(w->m, "a short answer");
	if (owner_of(w, res.cookie) != i)
		lm_defect(w->m, "a foreign cookie");
	take_result(w, i, res.status, &x);
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
			     const struct nlm_args *a)
{
	struct lm_op op = { .exclusive = a->exclusive,
			    .file = file_of(w, a->fh) };
	uint32_t i = a->svid - SVID;

	if (i >= LM_OWNERS || op.file == LM_FILES ||
	    w->m->owner[i].host != host)
		lm_defect(w->m, "a call-back for nobody");
	op.first = (unsigned)(a->off / LW_SCALE);
	op.last = a->len ? op.first + (unsigned)(a->len / LW_SCALE) - 1 :
			   LM_BYTES - 1;
	return lm_called_back(w->m, &w->m->owner[i], &op, model_random() % 8);
}

static void answer_by_message(struct lock_wire *w, unsigned host,
			      const struct nlm_res *answer)
{
	const struct lw_client *c = &w->client[host];
	const uint32_t proc[] = { NLM_PROGRAM, c->vers, NLM_GRANTED_RES };
	struct letter l;

	begin_call(w, &l, ++w->seq << 5 | 31, proc);
	nlm_put_res4(&l.x, answer);
	if (c->s.fd >= 0)
		send_to_server(c, &l);
}

static void take_nlm(struct lock_wire *w, unsigned host, uint32_t proc,
		     struct xdr_in *x, struct letter *l)
{
	bool wide = w->client[host].vers == 4;
	struct nlm_res answer = { 0 };
	struct nlm_res_args res;
	struct nlm_args a;
	unsigned i;

	if (proc >= NLM_TEST_RES && proc <= NLM_UNLOCK_RES) {
		if (!nlm_get_res(x, &res))
			lm_defect(w->m, "a short answer");
		i = owner_of(w, res.cookie);
		if (i < LM_OWNERS && w->m->owner[i].host == host)
			take_result(w, i, res.status, x);
		return;
	}
	if (!(wide ? nlm_get_test4 : nlm_get_test1)(x, &a))
		lm_defect(w->m, "a short call-back");
	answer.cookie = a.cookie;
	answer.status = take_granted(w, host, &a);
	if (proc == NLM_GRANTED_MSG)
		answer_by_message(w, host, &answer);
	else
		nlm_put_res4(&l->x, &answer);
}

static void take_notify(struct lock_wire *w, unsigned host, struct xdr_in *x)
{
	struct lw_client *c = &w->client[host];
	struct sm_args a = { 0 };
	uint32_t state;

	sm_get_notify(x, &a);
	state = a.state;
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
