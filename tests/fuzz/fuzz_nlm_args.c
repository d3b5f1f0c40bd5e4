/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments of the lock manager, of any bytes.  The first byte says of which
 * procedure and version.  Every byte that the result names is read, and a range
 * that is taken does not end before it begins.
 */
#include <stdlib.h>

#include "nlm/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool (*const decode[])(struct xdr_in *, void *) = {
	nlm_get_test1, nlm_get_test4, nlm_get_lock1, nlm_get_lock4,
	nlm_get_cancel1, nlm_get_cancel4, nlm_get_unlock1, nlm_get_unlock4,
	nlm_get_share, nlm_get_res, nlm_get_notify, nlm_get_free_all,
};
#define OF_FILES	9u		/* these fill struct nlm_args */

union all_args {
	struct nlm_args file;
	struct nlm_res_args res;
	struct nlm_notify_args notify;
};

static volatile uint8_t sink;

static void read_view(struct xdr_view v)
{
	for (size_t i = 0; i < v.len; i++)
		sink ^= v.data[i];
}

static void check_file(const struct nlm_args *a)
{
	struct nlm_span at;

	if (a->cookie.len > NLM_OBJ_MAX || a->oh.len > NLM_OBJ_MAX ||
	    a->fh.len > 64 || a->mode > 3 || a->access > 3)
		abort();
	read_view(a->cookie);
	read_view(a->name);
	read_view(a->fh);
	read_view(a->oh);
	if (nlm_span_of(a, &at) == 0 &&
	    (at.start > at.end || at.end > NLM_EOF))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	union all_args args;
	struct xdr_in x;
	unsigned which;

	if (len < 1 || len > 1 << 16)
		return 0;
	which = data[0] % ARRAY_SIZE(decode);
	xdr_in_init(&x, data + 1, len - 1);
	if (!decode[which](&x, &args))
		return 0;
	if (which < OF_FILES)
		check_file(&args.file);
	else if (decode[which] == nlm_get_res)
		read_view(args.res.cookie);
	else
		read_view(args.notify.name);
	return 0;
}
