/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_run - gannetctl as a separate process, for tests. */
#include "tests/server/ctl_run.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

char ctl_out[65536];

int ctl(const struct daemon_run *d, const char *arguments)
{
	char line[3000];
	size_t len;
	FILE *f;

	ck_assert_int_lt(snprintf(line, sizeof(line), "./gannetctl --socket "
				  "%s/state/control %s 2>&1", d->dir,
				  arguments), (int)sizeof(line));
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	len = fread(ctl_out, 1, sizeof(ctl_out) - 1, f);
	ctl_out[len] = '\0';
	return WEXITSTATUS(pclose(f));
}

void ctl_says(const struct daemon_run *d, const char *arguments, int status,
	      const char *text)
{
	int got = ctl(d, arguments);

	ck_assert_msg(got == status && strstr(ctl_out, text),
		      "%s: exit status %d, no '%s' in: %s", arguments, got,
		      text, ctl_out);
}
