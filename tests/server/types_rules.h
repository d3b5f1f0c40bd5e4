/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types_rules - a rule has a directory, with "local" for a local process and
 * "client" for a client in it.
 */
#pragma once

#include <sys/stat.h>

#include "tests/server/types_step.h"

/* Of the rule that runs. */
extern const struct type *type;
extern char local[340], client[340];
extern nfs_fh3 dir;			/* "client" */

/* A path in "client"; four at a time. */
const char *at(const char *path);
/* The handle of @name, which is there. */
nfs_fh3 find(nfs_fh3 in, const char *name);
/* False: @in has no @name. */
bool lstat_of(const char *in, const char *name, struct stat *st);
/* Takes the step in "local" and in "client", which must be alike then; the
 * status. */
int take(const struct step *s);

void a_client_may_what_a_local_process_may(void);
void names_go_as_a_local_process_has_them_go(void);
void odd_names_are_as_for_a_local_process(void);
void names_that_differ_in_case_are_as_for_a_local_process(void);
