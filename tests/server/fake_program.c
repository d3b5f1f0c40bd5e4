/* SPDX-License-Identifier: BSD-2-Clause */
/* A small RPC program with one procedure for each thing that can happen. */
#include "tests/server/fake_program.h"

#include <errno.h>
#include <stdlib.h>

atomic_uint test_acts, test_held, test_put, test_body_fails;
struct work_class *test_class;

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_cond = PTHREAD_COND_INITIALIZER;
static bool gate_shut;
static unsigned gate_standing;

static void set_gate(bool shut)
{
	mutex_lock(&gate_lock);
	gate_shut = shut;
	pthread_cond_broadcast(&gate_cond);
	mutex_unlock(&gate_lock);
}

void test_gate_shut(void)
{
	set_gate(true);
}

void test_gate_open(void)
{
	set_gate(false);
}

void test_gate_wait(unsigned n)
{
	mutex_lock(&gate_lock);
	while (gate_standing < n)
		pthread_cond_wait(&gate_cond, &gate_lock);
	mutex_unlock(&gate_lock);
}

static void pass_gate(void)
{
	mutex_lock(&gate_lock);
	gate_standing++;
	pthread_cond_broadcast(&gate_cond);
	while (gate_shut)
		pthread_cond_wait(&gate_cond, &gate_lock);
	gate_standing--;
	mutex_unlock(&gate_lock);
}

/* Shared by all procedures: the words of arguments and results. */
struct args {
	uint32_t	w[3];
	struct xdr_view	data;
	struct iovec	iov[MSG_MAX_SEGS];
	int		niov;
};

struct res {
	uint32_t	n;
	uint32_t	w[4];
	struct xdr_view	data;
};

static bool get_nothing(struct xdr_in *x, void *args)
{
	return true;
}

static bool get_echo(struct xdr_in *x, void *argp)
{
	struct args *args = argp;

	args->data = xdr_get_opaque(x, 256);
	return xdr_ok(x);
}

static bool get_word(struct xdr_in *x, void *argp)
{
	struct args *args = argp;

	args->w[0] = xdr_get_u32(x);
	return xdr_ok(x);
}

static bool get_body(struct xdr_in *x, void *argp)
{
	struct args *args = argp;

	args->w[0] = xdr_get_count(x, 70000);
	args->w[1] = xdr_get_count(x, 4);
	return xdr_ok(x);
}

/* Arguments that are not DDP-eligible are whole words. */
static bool get_list(struct xdr_in *x, void *argp)
{
	struct args *args = argp;

	return get_body(x, argp) && args->w[0] % 4 == 0;
}

static bool get_write(struct xdr_in *x, void *argp)
{
	struct args *args = argp;

	args->w[0] = xdr_get_u32(x);
	args->niov = MSG_MAX_SEGS;
	xdr_get_iov(x, POOL_PAYLOAD_MAX, args->iov, &args->niov);
	return xdr_ok(x);
}

static void put_echo(struct xdr_out *x, const void *resp)
{
	const struct res *res = resp;

	xdr_put_opaque(x, res->data.data, res->data.len);
}

static void put_words(struct xdr_out *x, const void *resp)
{
	const struct res *res = resp;

	for (uint32_t i = 0; i < res->n; i++)
		xdr_put_u32(x, res->w[i]);
}

static void put_huge(struct xdr_out *x, const void *resp)
{
	for (int i = 0; i < MSG_HEAD_SIZE / 4 - 5; i++)
		xdr_put_u32(x, 0x55555555);
}

static void put_act(struct xdr_out *x, const void *resp)
{
	const struct res *res = resp;

	put_words(x, resp);
	if (res->w[1] == ACT_LARGE)
		for (int i = 0; i < 200; i++)
			xdr_put_u32(x, (uint32_t)i * res->w[0]);
}

/* Held from a step to the end. */
struct state {
	void		*held;
	unsigned	 tried;		/* TEST_BLOCKS */
};

static void hold(struct rpc_call *call)
{
	struct state *state = rpc_state(call);

	atomic_fetch_add(&test_held, 1);
	state->held = malloc(1);
}

static int end(struct rpc_call *call, int err)
{
	struct state *state = rpc_state(call);

	if (state->held)
		atomic_fetch_add(&test_put, 1);
	free(state->held);
	return err;
}

static int do_echo(struct rpc_call *call)
{
	const struct args *args = rpc_args(call);
	struct res *res = rpc_res(call);

	res->data = args->data;
	return 0;
}

static int do_room(struct rpc_call *call)
{
	const struct args *args = rpc_args(call);

	return rpc_body_get(call, args->w[0]);
}

static int fill_body(struct rpc_call *call, uint32_t len, uint32_t ntail)
{
	static const uint32_t tail[4] = { 0xaaaa0001, 0xaaaa0002, 0xaaaa0003,
					  0xaaaa0004 };
	struct res *res = rpc_res(call);

	for (uint32_t i = 0; i < len; i++)
		rpc_body(call)->data[i] = (uint8_t)(i * 7 + 1);
	rpc_body_set(call, len, tail, ntail);
	res->w[res->n++] = 0xbbbb;
	if (call->proc->flags & RPC_PROC_DDP_RES)
		res->w[res->n++] = len;
	return 0;
}

static int do_body(struct rpc_call *call)
{
	const struct args *args = rpc_args(call);

	hold(call);
	if (call->may_wait && atomic_load(&test_body_fails)) {
		atomic_fetch_sub(&test_body_fails, 1);
		return -EIO;
	}
	return fill_body(call, args->w[0], args->w[1]);
}

static int do_act(struct rpc_call *call)
{
	const struct args *args = rpc_args(call);
	struct res *res = rpc_res(call);

	if (!call->may_wait)
		abort();
	hold(call);
	res->n = 2;
	res->w[0] = atomic_fetch_add(&test_acts, 1) + 1;
	res->w[1] = args->w[0];
	switch (args->w[0]) {
	case ACT_WAIT_FAIL:
		pass_gate();
		return -EIO;
	case ACT_FAIL:
		return -EIO;
	case ACT_WAIT:
		pass_gate();
		break;
	case ACT_BODY:
		return rpc_body_get(call, 8);
	}
	return RPC_DONE;
}

static int do_act_body(struct rpc_call *call)
{
	return fill_body(call, 8, 0);
}

static int do_slow(struct rpc_call *call)
{
	pass_gate();
	return 0;
}

static int end_slow(struct rpc_call *call, int err)
{
	struct res *res = rpc_res(call);

	if (err < 0) {
		res->n = 1;
		res->w[0] = TEST_SENT_BACK;
	}
	return 0;
}

static int do_before(struct rpc_call *call)
{
	struct state *state = rpc_state(call);

	hold(call);
	return state->tried ? -EIO : 0;
}

static int do_blocks(struct rpc_call *call)
{
	struct state *state = rpc_state(call);
	struct res *res = rpc_res(call);

	if (!state->held || res->n)
		return -EIO;
	state->tried++;
	if (!call->may_wait)
		return -EAGAIN;
	res->n = 1;
	res->w[0] = state->tried;
	return 0;
}

struct test_late test_late = { .lock = PTHREAD_MUTEX_INITIALIZER };

void test_late_resume(void)
{
	struct rpc_call *call;

	mutex_lock(&test_late.lock);
	assert(test_late.n > 0);
	call = test_late.calls[--test_late.n];
	mutex_unlock(&test_late.lock);
	rpc_call_resume(call);
}

static bool cancel_late(struct rpc_call *call)
{
	bool found = false;
	unsigned i;

	mutex_lock(&test_late.lock);
	for (i = 0; i < test_late.n && test_late.calls[i] != call; i++)
		;
	if (i < test_late.n && !test_late.keeps) {
		test_late.calls[i] = test_late.calls[--test_late.n];
		found = true;
	}
	mutex_unlock(&test_late.lock);
	return found;
}

static int do_late(struct rpc_call *call)
{
	struct state *state = rpc_state(call);
	struct res *res = rpc_res(call);

	if (state->tried++ == 0 &&
	    rpc_call_suspend(call, "the test", cancel_late, do_late)) {
		mutex_lock(&test_late.lock);
		test_late.calls[test_late.n++] = call;
		mutex_unlock(&test_late.lock);
		if (test_late.at_once)
			test_late_resume();
		return RPC_PENDING;
	}
	res->n = 1;
	res->w[0] = state->tried;
	return 0;
}

static int end_late(struct rpc_call *call, int err)
{
	return end(call, end_slow(call, err));
}

static int do_write(struct rpc_call *call)
{
	const struct args *args = rpc_args(call);
	struct res *res = rpc_res(call);

	res->n = 1;
	for (int i = 0; i < args->niov; i++)
		for (size_t k = 0; k < args->iov[i].iov_len; k++)
			res->w[0] += ((uint8_t *)args->iov[i].iov_base)[k];
	return 0;
}

#define ROW(NAME, get, put, done, f, ...) \
	[TEST_##NAME] = { .name = #NAME, .decode = get, \
		.steps = { __VA_ARGS__ }, .end = done, .encode = put, \
		.args_size = sizeof(struct args), \
		.res_size = sizeof(struct res), \
		.state_zeroed = sizeof(struct state), .flags = f }

static const struct rpc_proc procs[TEST_NPROC] = {
	ROW(NULL, NULL, NULL, NULL, 0, NULL),
	ROW(ECHO, get_echo, put_echo, NULL, 0, do_echo),
	ROW(ACT, get_word, put_act, end, RPC_PROC_CACHED,
	    rpc_need_worker, do_act, do_act_body),
	ROW(BODY, get_body, put_words, end, RPC_PROC_DDP_RES,
	    do_room, do_body),
	ROW(LIST, get_list, put_words, end, 0, do_room, do_body),
	ROW(BLOCKS, get_nothing, put_words, end, 0, do_before, do_blocks),
	ROW(LATE, NULL, put_words, end_late, 0, do_before, do_late),
	ROW(LATE_ONCE, NULL, put_words, end_late, RPC_PROC_CACHED,
	    do_before, do_late),
	ROW(HUGE, NULL, put_huge, NULL, 0, rpc_need_worker),
	ROW(WRITE, get_write, put_words, NULL, RPC_PROC_DDP_ARG,
	    rpc_need_worker, do_write),
	ROW(SLOW, NULL, put_words, end_slow, 0, rpc_need_worker, do_slow),
	ROW(SLOW_BODY, get_body, put_words, end_slow, 0,
	    do_room, rpc_need_worker, do_slow),
};

static const struct rpc_version versions[] = {
	{ .vers = 2, .nproc = 1, .procs = procs },
	{ .vers = 4, .nproc = TEST_NPROC, .procs = procs },
};

static struct work_class *leave(struct rpc_call *call)
{
	return test_class;
}

struct rpc_program test_program = {
	.name = "test",
	.prog = TEST_PROG,
	.nversions = ARRAY_SIZE(versions),
	.versions = versions,
	.leave = leave,
};

struct fake_call *send_words(struct fake_xprt *f, const uint32_t *words,
			     unsigned n)
{
	uint32_t wire[512];

	assert(n <= ARRAY_SIZE(wire));
	for (unsigned i = 0; i < n; i++)
		wire[i] = htobe32(words[i]);
	return fake_send(f, wire, n * 4);
}

uint32_t reply_word(const struct fake_call *c, unsigned i)
{
	uint32_t v = 0;

	if (i * 4 + 4 <= c->len)
		memcpy(&v, c->reply + (size_t)i * 4, 4);
	return be32toh(v);
}
