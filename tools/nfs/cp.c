/* SPDX-License-Identifier: BSD-2-Clause */
/* cp - which way a copy goes. */
#include "tools/nfs/cp.h"

static bool goes_one_way(const char *from, const char *to)
{
	if (nfsc_url_is(from) != nfsc_url_is(to))
		return true;
	fputs("gannet-nfs: cp: one of ", stderr);
	tool_put_name(stderr, from);
	fputs(" and ", stderr);
	tool_put_name(stderr, to);
	fputs(" has to be a URL, and one a local file\n", stderr);
	return false;
}

int tool_cp(int n, char *const args[], const struct tool_options *given)
{
	struct tool_options o = *given;
	const char *to = args[--n];
	int err, worst = TOOL_OK;

	o.all = true;
	if (o.as && n > 1) {
		fputs("gannet-nfs: cp -T: one source has one copy\n", stderr);
		return TOOL_USAGE;
	}
	/* Without this libsodium has its slowest code. */
	if (o.checksum && sodium_init() < 0) {
		fputs("gannet-nfs: cp: libsodium does not start\n", stderr);
		return TOOL_FAILED;
	}
	o.into = n > 1;
	for (int i = 0; i < n; i++)
		if (!goes_one_way(args[i], to))
			return TOOL_USAGE;
	if (nfsc_url_is(to))
		return cp_put(n, args, to, &o);
	for (int i = 0; i < n; i++) {
		err = cp_get(args[i], to, &o);
		worst = err > worst ? err : worst;
	}
	return worst;
}
