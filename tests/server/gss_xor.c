/* SPDX-License-Identifier: BSD-2-Clause */
/* gss_xor - a mechanism that keeps no secret. */
#include "tests/server/gss_xor.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MIC = 5, FRONT = 8, BACK = 6 };

static atomic_uint count;

struct keys {
	uint32_t key;
	uint32_t steps;
};

unsigned gss_xor_count(void)
{
	return atomic_load(&count);
}

void *gss_xor_keys(uint32_t nonce)
{
	struct keys *k = calloc(1, sizeof(*k));

	k->key = nonce * 2654435761u;
	atomic_fetch_add(&count, 1);
	return k;
}

static void free_keys(void *keys)
{
	atomic_fetch_sub(&count, 1);
	free(keys);
}

struct xdr_view gss_xor_put(uint8_t out[20], const struct gss_xor_token *t)
{
	xdr_set_word(out, t->nonce);
	xdr_set_word(out + 4, t->uid);
	xdr_set_word(out + 8, t->gid);
	xdr_set_word(out + 12, t->seconds);
	xdr_set_word(out + 16, t->steps);
	return (struct xdr_view){ out, 20 };
}

static void refuse(struct gss_accept *a, const char *why)
{
	a->major = GSS_DEFECTIVE_TOKEN;
	a->minor = 17;
	snprintf(a->why, sizeof(a->why), "%s", why);
}

/* @arg counts calls, if it is not NULL. */
static void accept_token(void *arg, struct gss_accept *a)
{
	struct keys *k = a->making;
	struct gss_xor_token t;
	struct xdr_in x;

	if (arg)
		atomic_fetch_add((atomic_uint *)arg, 1);
	xdr_in_init(&x, a->token.data, a->token.len);
	t.nonce = xdr_get_u32(&x);
	xdr_get_three(&x, &t.uid, &t.gid, &t.seconds);
	t.steps = xdr_get_u32(&x);
	a->making = NULL;
	if (!xdr_ok(&x) || t.nonce == 0) {
		if (k)
			free_keys(k);
		refuse(a, "no nonce");
		return;
	}
	if (!k) {
		k = gss_xor_keys(t.nonce);
		k->steps = t.steps;
	}
	xdr_set_word(a->answer, t.nonce + 1);
	a->answer_len = 4;
	a->major = k->steps ? GSS_CONTINUE_NEEDED : GSS_COMPLETE;
	if (k->steps) {
		k->steps--;
		a->making = k;
		return;
	}
	a->keys = k;
	a->uid = t.uid;
	a->gid = t.gid;
	a->seconds = t.seconds;
}

static uint32_t sum_of(const struct keys *k, const struct iovec *iov, int n)
{
	uint32_t sum = k->key;

	for (int i = 0; i < n; i++)
		for (size_t at = 0; at < iov[i].iov_len; at++)
			sum = sum * 31 + ((uint8_t *)iov[i].iov_base)[at];
	return sum;
}

static int sign(const void *keys, const struct iovec *iov, int n,
		uint8_t mic[GSS_MIC_MAX])
{
	xdr_set_word(mic, sum_of(keys, iov, n));
	mic[4] = 'm';
	return MIC;
}

static bool check(const void *keys, const struct iovec *iov, int n,
		  struct xdr_view mic)
{
	uint8_t want[GSS_MIC_MAX];

	return mic.len == MIC && sign(keys, iov, n, want) == MIC &&
	       memcmp(want, mic.data, MIC) == 0;
}

static void hide(const struct keys *k, const struct iovec *iov, int n)
{
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		uint8_t *p = iov[i].iov_base;

		for (size_t b = 0; b < iov[i].iov_len; b++)
			p[b] ^= (uint8_t)(k->key >> 8 * (at++ & 3));
	}
}

static int wrap(const void *keys, const struct iovec *iov, int n,
		uint8_t *front, uint8_t back[GSS_BACK_MAX])
{
	memset(front, 'f', FRONT);
	memset(back, 'b', BACK);
	xdr_set_word(back + 2, sum_of(keys, iov, n));
	hide(keys, iov, n);
	return BACK;
}

/* Takes @len bytes off the end; copies them to @out. */
static bool cut_end(struct iovec *iov, int *n, uint8_t *out, size_t len)
{
	while (len > 0 && *n > 0) {
		struct iovec *last = &iov[*n - 1];

		if (last->iov_len == 0) {
			--*n;
			continue;
		}
		out[--len] = ((uint8_t *)last->iov_base)[--last->iov_len];
	}
	return len == 0;
}

static int unwrap(const void *keys, struct iovec *iov, int n)
{
	uint8_t back[BACK];

	if (n == 0 || iov->iov_len < FRONT ||
	    memcmp(iov->iov_base, "ffffffff", FRONT) != 0)
		return -1;
	iov->iov_base = (uint8_t *)iov->iov_base + FRONT;
	iov->iov_len -= FRONT;
	if (!cut_end(iov, &n, back, BACK))
		return -1;
	hide(keys, iov, n);
	return sum_of(keys, iov, n) == xdr_word(back + 2) ? n : -1;
}

const struct gss_mech gss_xor = {
	.version = GSS_MECH_VERSION, .name = "xor",
	.pseudo = { 0, RPC_AUTH_KRB5, RPC_AUTH_KRB5I, RPC_AUTH_KRB5P },
	.front = FRONT, .accept = accept_token, .abandon = free_keys,
	.free = free_keys, .sign = sign, .check = check, .wrap = wrap,
	.unwrap = unwrap,
};
