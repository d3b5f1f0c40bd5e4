/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs - the fabric provider for RDMA devices: librdmacm and libibverbs.
 *
 * InfiniBand, RoCE and iWARP adapters, and the kernel's rxe and siw.  The
 * libraries are first called by verbs_available(), listen or connect, and
 * must not be used across a fork after that.
 */
#pragma once

#include <stdbool.h>

#include "transport/fabric/fabric.h"

/*
 * 0 or -ENOMEM; opens nothing yet.  Raises the process's limit of locked memory
 * (RLIMIT_MEMLOCK) as far as permitted.
 */
int verbs_fabric_create(struct fabric *out);
/*
 * Every listener, connection and memory region must be gone.  The loops can be
 * gone by then.
 */
void verbs_fabric_destroy(struct fabric *f);
/* Sets the time limit of fabric_connect(); 10 s by default.  Call it before the
 * first connect. */
void verbs_fabric_set_connect_ms(struct fabric *f, unsigned ms);

/* True if the machine has an RDMA device and the process can use it. */
bool verbs_available(void);
