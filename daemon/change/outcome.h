/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outcome - what came of a reload or of a change of the exports: for the log,
 * and for gannetctl(8) if it asked.
 *
 * Each function logs; an outcome that is NULL has no other reader.  The thread
 * that reloads, or that of the start.
 */
#ifndef GANNET_DAEMON_OUTCOME_H
#define GANNET_DAEMON_OUTCOME_H

#include <jansson.h>

#include "daemon/settings/settings.h"

struct outcome {
	json_t	*settings;
	json_t	*rules;
	json_t	*warnings;
	char	*error;		/* the last; NULL: none, or no memory */
};

void outcome_init(struct outcome *o);
void outcome_fini(struct outcome *o);

/* @text: a line for each. */
void outcome_error(struct outcome *o, const char *text);
void outcome_warn(struct outcome *o, const char *text);
/* The setting of @row was @old and becomes @new: now, or at the next start. */
void outcome_setting(struct outcome *o, const struct option_row *row,
		     const char *old, const char *new);
/* A rule of the exports, as gannetd --check prints it, is new or gone. */
void outcome_rule(struct outcome *o, const char *rule, bool is_new);

/* All of it as gannetctl's result; NULL: no memory. */
json_t *outcome_json(const struct outcome *o);

#endif
