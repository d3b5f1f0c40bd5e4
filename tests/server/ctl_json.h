/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_json - gannetctl's answers in JSON, for tests. */
#pragma once

#include <jansson.h>

#include "tests/server/ctl_run.h"

/* Runs gannetctl as ctl() does, with --json; the answer, to be given back. */
json_t *ctl_json(const struct daemon_run *d, const char *arguments);
/* The row whose @key is @name, or NULL. */
const json_t *ctl_row(const json_t *rows, const char *key, const char *name);
/* Expects each member of @answer in the manual, as a variable. */
void ctl_manual_has(const json_t *answer);
