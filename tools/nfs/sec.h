/* SPDX-License-Identifier: BSD-2-Clause */
/* sec - the flavors of --sec=. */
#pragma once

#include "tools/nfs/nfs.h"

/* Sets *@sec to what @name names; NULL for sys.  0; -EINVAL, no such flavor; or
 * -EOPNOTSUPP, this program was built without it. */
int nfsc_sec_find(const char *name, const struct nfsc_sec **sec);
