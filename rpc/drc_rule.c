/* SPDX-License-Identifier: BSD-2-Clause */
/* drc_rule - is a call with a known key a retransmission?  Pure. */
#include "rpc/drc_rule.h"

enum drc_case drc_rule(const struct drc_facts *f)
{
	bool acked = f->acked && !f->running;

	if (f->same)
		return acked ? DRC_NEW_TAKEN : DRC_AGAIN_SAME;
	if (f->left_over)
		return DRC_LEFT_OVER;
	switch (f->end) {
	case XPRT_ALIVE:
		if (acked)
			return DRC_NEW_TAKEN;
		return f->heard ? DRC_NEW_SIBLING : DRC_AGAIN_SILENT;
	case XPRT_ORDERLY:
		return !acked && (f->running || f->since <= DRC_CLOSED_MS) ?
		       DRC_AGAIN_CLOSED : DRC_NEW_CLOSED;
	case XPRT_BROKEN:
		break;
	}
	if (!acked)
		return f->running || f->since <= DRC_BROKEN_MS ?
		       DRC_AGAIN_BROKEN : DRC_NEW_BROKEN;
	return f->recent && f->since <= DRC_UNREAD_MS ?
	       DRC_AGAIN_UNREAD : DRC_NEW_BROKEN;
}
