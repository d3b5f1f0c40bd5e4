/* SPDX-License-Identifier: BSD-2-Clause */
/* The window of sequence numbers (RFC 2203 section 5.3.3.1).  Pure. */
#include "rpc/gss_priv.h"

static uint64_t bit_of(uint64_t seq)
{
	return UINT64_C(1) << (seq % 64);
}

static uint64_t *word_of(struct gss_window *w, uint64_t seq)
{
	return &w->seen[seq % GSS_WINDOW / 64];
}

bool gss_window_is_new(const struct gss_window *w, uint32_t seq)
{
	if (seq >= w->next)
		return true;
	return seq + UINT64_C(0) + GSS_WINDOW >= w->next &&
	       !(w->seen[seq % GSS_WINDOW / 64] & bit_of(seq));
}

bool gss_window_take(struct gss_window *w, uint32_t seq)
{
	if (!gss_window_is_new(w, seq))
		return false;
	if (seq >= w->next + GSS_WINDOW)
		memset(w->seen, 0, sizeof(w->seen));
	else
		for (uint64_t k = w->next; k < seq; k++)
			*word_of(w, k) &= ~bit_of(k);
	*word_of(w, seq) |= bit_of(seq);
	w->next = MAX(w->next, (uint64_t)seq + 1);
	return true;
}
