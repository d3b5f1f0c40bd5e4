/* SPDX-License-Identifier: BSD-2-Clause */
/* config - reads gannet.conf(5).  Start-up and the changer's thread. */
#ifndef GANNET_DAEMON_CONFIG_H
#define GANNET_DAEMON_CONFIG_H

#include "daemon/settings/options.h"

/*
 * Gives @o the values of the file o->config and of the files *.conf in the
 * directory of its name with ".d", in the order of their names.  NULL stands
 * for the system's file, which may be missing, as the directory may.  0, or
 * -errno with "FILE:LINE: ..." in *@why (malloced; NULL: no memory for it).
 */
int config_read(struct options *o, char **why);

#endif
