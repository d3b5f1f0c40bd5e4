/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_run - gannetctl as a separate process, for tests. */
#pragma once

#include "tests/server/daemon_run.h"

/* The output of gannetctl(), standard error with it. */
extern char ctl_out[65536];

/* Runs gannetctl with @arguments, of a shell, for the server @d.  Returns its
 * exit status. */
int ctl(const struct daemon_run *d, const char *arguments);
/* Runs it, expects the exit status @status and @text in its output. */
void ctl_says(const struct daemon_run *d, const char *arguments, int status,
	      const char *text);
