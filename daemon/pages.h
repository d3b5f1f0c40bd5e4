/* SPDX-License-Identifier: BSD-2-Clause */
/* pages - what --metrics serves over HTTP. */
#ifndef GANNET_DAEMON_PAGES_H
#define GANNET_DAEMON_PAGES_H

#include "daemon/report.h"
#include "daemon/web.h"

/* Serves /metrics of @r, which is borrowed until web_stop(), where the option
 * --metrics says.  NULL: nowhere, or it can't, which was logged and counted; a
 * server without it serves as well. */
struct web *pages_start(struct report *r);

#endif
