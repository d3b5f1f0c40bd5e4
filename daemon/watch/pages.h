/* SPDX-License-Identifier: BSD-2-Clause */
/* pages - what --metrics serves over HTTP. */
#ifndef GANNET_DAEMON_PAGES_H
#define GANNET_DAEMON_PAGES_H

#include "daemon/watch/report.h"

struct pages;

/* Serves metrics and the status page of @r, which is borrowed until
 * pages_stop(), where the option --metrics says.  NULL: nowhere, or it can't,
 * which was logged and counted; a server without it serves as well. */
struct pages *pages_start(struct report *r);
/* NULL is fine. */
void pages_stop(struct pages *p);

#endif
