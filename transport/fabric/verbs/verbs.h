/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs - the fabric provider for RDMA devices: librdmacm and libibverbs.
 *
 * InfiniBand, RoCE and iWARP adapters, and the kernel's rxe and siw.  The
 * libraries are first called by verbs_available(), listen or connect, and
 * must not be used across a fork after that.
 */
#ifndef GANNET_TRANSPORT_FABRIC_VERBS_VERBS_H
#define GANNET_TRANSPORT_FABRIC_VERBS_VERBS_H

#include <stdbool.h>

#include "transport/fabric/fabric.h"

/*
 * 0 or -ENOMEM; opens nothing yet.  Lifts the process's limit of locked
 * memory (RLIMIT_MEMLOCK) as far as it may.
 */
int verbs_fabric_create(struct fabric *out);
/*
 * Every listener and connection must be gone, and every memory region of
 * its devices.  The loops need not exist any more.
 */
void verbs_fabric_destroy(struct fabric *f);
/* How long fabric_connect() may take, before the first: 10 s otherwise. */
void verbs_fabric_set_connect_ms(struct fabric *f, unsigned ms);

/* Is there an RDMA device, and may we use it? */
bool verbs_available(void);

#endif
