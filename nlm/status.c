/* SPDX-License-Identifier: BSD-2-Clause */
/* status - the bytes that arguments name; statuses for errors.  Pure. */
#include "nlm/proc.h"

#include <errno.h>

int nlm_span_of(const struct nlm_args *a, struct nlm_span *at)
{
	uint64_t end;

	if (a->off > NLM_EOF)
		return -EFBIG;
	at->start = a->off;
	at->exclusive = a->exclusive;
	if (a->len == 0 || __builtin_add_overflow(a->off, a->len - 1, &end))
		end = NLM_EOF;
	at->end = MIN(end, NLM_EOF);
	return 0;
}

enum nlm_status nlm_status(int err)
{
	switch (-err) {
	case 0:
		return NLM4_GRANTED;
	case ENOLCK:
	case ENOMEM:
	case ENOBUFS:
	case EMFILE:
	case ENFILE:
		return NLM4_DENIED_NOLOCKS;
	case ETIME:			/* a reclaim comes too late */
	case ETIMEDOUT:			/* the client asks again */
	case ECANCELED:			/* ... as it does after JUKEBOX */
		return NLM4_DENIED_GRACE_PERIOD;
	case EDEADLK:
		return NLM4_DEADLCK;
	case EROFS:
		return NLM4_ROFS;
	case ESTALE:
	case EBADMSG:
		return NLM4_STALE_FH;
	case EFBIG:
	case EOVERFLOW:
		return NLM4_FBIG;
	default:
		return NLM4_FAILED;
	}
}
