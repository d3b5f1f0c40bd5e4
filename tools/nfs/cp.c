/* SPDX-License-Identifier: BSD-2-Clause */
/* cp - which way a copy goes. */
#include "tools/nfs/cp.h"

static int copy_here(const char *from, const char *to,
		     const struct tool_options *o)
{
	bool from_there = nfsc_url_is(from), to_there = nfsc_url_is(to);

	if (from_there == to_there) {
		fputs("gannet-nfs: cp: one of ", stderr);
		tool_put_name(stderr, from);
		fputs(" and ", stderr);
		tool_put_name(stderr, to);
		fputs(" has to be a URL, and one a local file\n", stderr);
		return TOOL_USAGE;
	}
	return from_there ? cp_get(from, to, o) : cp_put(from, to, o);
}

int tool_cp(int n, char *const args[], const struct tool_options *given)
{
	struct tool_options o = *given;
	int err, worst = TOOL_OK;

	o.all = true;
	o.into = n > 2;
	for (int i = 0; i < n - 1; i++) {
		err = copy_here(args[i], args[n - 1], &o);
		worst = err > worst ? err : worst;
	}
	return worst;
}
