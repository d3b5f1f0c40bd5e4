/* SPDX-License-Identifier: BSD-2-Clause */
/* programs - the RPC programs that gannetd serves, a row each. */
#ifndef GANNET_DAEMON_PROGRAMS_H
#define GANNET_DAEMON_PROGRAMS_H

#include "rpc/program.h"

#define PROGRAMS_MAX	16

/* NULL after the last. */
extern const struct program_row *const program_rows[PROGRAMS_MAX];

#endif
