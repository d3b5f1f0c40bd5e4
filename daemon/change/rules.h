/* SPDX-License-Identifier: BSD-2-Clause */
/* rules - the rules of the exports before and after a change.  The publisher's
 * thread. */
#ifndef GANNET_DAEMON_RULES_H
#define GANNET_DAEMON_RULES_H

#include "daemon/change/outcome.h"
#include "exports/export.h"

/* Rules as gannetd --check prints them, in order; v is NULL without memory. */
struct rules {
	char	 *text;
	char	**v;
	size_t	  n;
};

/* Asks no file system.  The changer's thread. */
struct rules rules_of(struct export_table *t);
void rules_free(struct rules *r);
/* Tells @out, or the log alone for NULL, which rules of @t are new since @old,
 * and which are no more. */
void rules_tell(const struct rules *old, struct export_table *t,
		struct outcome *out);

#endif
