/* SPDX-License-Identifier: BSD-2-Clause */
/* xor_flavor - a flavor with every feature that one can have. */
#include "tests/server/xor_flavor.h"

#include <stdatomic.h>

static atomic_uint session_key, last_seq, held;

/* In call->guard_state. */
struct state {
	uint32_t key, seq;
};

static struct state *state_of(struct rpc_call *call)
{
	return (struct state *)call->guard_state;
}

void xor_run(struct xor_stream *s, void *bytes, size_t n, bool hide)
{
	uint8_t *p = bytes;

	for (; n-- > 0; p++) {
		uint8_t k = (uint8_t)(s->key >> 8 * (s->at++ & 3));

		s->sum = s->sum * 31 + (hide ? *p : *p ^ k);
		*p ^= k;
	}
}

uint32_t xor_sign(uint32_t key, struct xdr_view head)
{
	for (uint32_t i = 0; i < head.len; i++)
		key = key * 31 + head.data[i];
	return key;
}

uint32_t xor_answer(uint32_t key, uint32_t seq)
{
	return xor_sign(key, (struct xdr_view){ (void *)&seq, 4 });
}

unsigned xor_held(void)
{
	return atomic_load(&held);
}

static void put_verf(struct rpc_call *call, struct xdr_out *x)
{
	const struct state *s = state_of(call);

	xdr_put_u32(x, XOR_FLAVOR);
	xdr_put_u32(x, 4);
	xdr_put_u32(x, xor_answer(s->key, s->seq));
	x->bad |= s->key == xor_key(XOR_NONCE_NO_SIGN);
}

static int unwrap(struct rpc_call *call, struct xdr_in *x,
		  struct xdr_seg *segs)
{
	struct xor_stream s = { .key = state_of(call)->key };
	struct iovec iov[MSG_MAX_SEGS];
	int n = MSG_MAX_SEGS;
	uint32_t len = xdr_get_iov(x, MSG_MAX_LEN, iov, &n);
	uint32_t sum = xdr_get_u32(x), seq;

	if (!xdr_ok(x) || len < 4 || iov[0].iov_len < 4)
		return -1;
	for (int i = 0; i < n; i++) {
		xor_run(&s, iov[i].iov_base, iov[i].iov_len, false);
		segs[i] = (struct xdr_seg){ iov[i].iov_base,
					    (uint32_t)iov[i].iov_len };
	}
	memcpy(&seq, segs[0].data, 4);
	segs[0].data += 4;
	segs[0].len -= 4;
	return s.sum == sum && be32toh(seq) == state_of(call)->seq ? n : -1;
}

static bool wrap(struct rpc_call *call, struct rpc_wrapping *w)
{
	struct xor_stream s = { .key = state_of(call)->key };
	uint32_t len = 4;
	uint8_t *seq;

	for (unsigned i = 0; i < ARRAY_SIZE(w->iov); i++)
		len += (uint32_t)w->iov[i].iov_len;
	xdr_put_u32(&w->before, len);
	seq = w->before.p;
	xdr_put_u32(&w->before, state_of(call)->seq);
	xor_run(&s, seq, 4, true);
	for (unsigned i = 0; i < ARRAY_SIZE(w->iov); i++)
		xor_run(&s, w->iov[i].iov_base, w->iov[i].iov_len, true);
	xdr_put_u32(&w->after, s.sum);
	return len % 4 == 0 && s.key != xor_key(XOR_NONCE_NO_WRAP);
}

static void release(struct rpc_call *call)
{
	atomic_fetch_sub(&held, 1);
}

static bool get_nonce(struct xdr_in *x, void *args)
{
	*(uint32_t *)args = xdr_get_u32(x);
	return xdr_ok(x);
}

static int do_init(struct rpc_call *call)
{
	uint32_t *session = rpc_res(call);

	atomic_store(&session_key, xor_key(*(uint32_t *)rpc_args(call)));
	atomic_store(&last_seq, 0);
	state_of(call)->key = atomic_load(&session_key);
	*session = XOR_SESSION;
	return 0;
}

static void put_session(struct xdr_out *x, const void *res)
{
	xdr_put_u32(x, *(const uint32_t *)res);
}

static const struct rpc_program control = {
	.name = "xor", .nversions = 1,
	.versions = &(const struct rpc_version){
		.nproc = 1,
		.procs = &(const struct rpc_proc){
			.name = "INIT", .decode = get_nonce,
			.steps = { rpc_need_worker, do_init },
			.encode = put_session, .args_size = 4, .res_size = 4,
		},
	},
};

static const struct rpc_guard control_guard = {
	.program = &control, .put_verf = put_verf,
};
static const struct rpc_guard data_guard = {
	.unwrap = unwrap, .put_verf = put_verf, .wrap = wrap,
	.release = release,
};

static bool is_signed(const struct rpc_header *h, uint32_t key)
{
	uint32_t sum;

	if (h->verf_flavor != XOR_FLAVOR || h->verf.len != 4)
		return false;
	memcpy(&sum, h->verf.data, 4);
	return be32toh(sum) == xor_sign(key, rpc_header_signed(h));
}

static enum rpc_auth_stat verify(const struct rpc_flavor *self,
				 const struct rpc_header *h,
				 struct rpc_call *call)
{
	struct state *s = state_of(call);
	uint32_t kind, session;
	struct xdr_in x;

	xdr_in_init(&x, h->cred.data, h->cred.len);
	kind = xdr_get_u32(&x);
	session = xdr_get_u32(&x);
	*s = (struct state){ atomic_load(&session_key), xdr_get_u32(&x) };
	call->cred = (struct rpc_cred){ .flavor = RPC_AUTH_KRB5 };
	if (!xdr_ok(&x))
		return RPC_AUTH_BADCRED;
	if (kind == XOR_INIT) {
		call->guard = &control_guard;
		return h->proc == 0 ? RPC_AUTH_OK : RPC_AUTH_BADCRED;
	}
	if (session != XOR_SESSION)
		return RPC_AUTH_REJECTEDCRED;
	if (!is_signed(h, s->key))
		return RPC_AUTH_REJECTEDVERF;
	if (s->seq <= atomic_load(&last_seq))
		return RPC_AUTH_DROP;
	atomic_store(&last_seq, s->seq);
	atomic_fetch_add(&held, 1);
	call->guard = &data_guard;
	return RPC_AUTH_OK;
}

static bool is_wrapped(const struct rpc_header *h)
{
	return h->cred.len >= 4 && xdr_word(h->cred.data) == XOR_DATA;
}

const struct rpc_flavor xor_flavor = {
	.flavor = XOR_FLAVOR, .mnt = { RPC_AUTH_KRB5, RPC_AUTH_KRB5I },
	.verify = verify, .wraps = is_wrapped,
};
