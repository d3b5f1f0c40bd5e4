/* SPDX-License-Identifier: BSD-2-Clause */
/* cp - copies of trees, in both directions. */
#ifndef GANNET_TOOLS_NFS_CP_H
#define GANNET_TOOLS_NFS_CP_H

#include "tools/nfs/tool.h"

int cp_get(const char *url, const char *to, const struct tool_options *o);
int cp_put(const char *from, const char *url, const struct tool_options *o);

#endif
