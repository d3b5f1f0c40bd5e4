/* SPDX-License-Identifier: BSD-2-Clause */
/* shared - what only the shared library does: it is quiet until asked. */
#include "lib/log.h"

static void __attribute__((constructor)) be_quiet(void)
{
	log_threshold = LOG_LEVEL_ERR;
}
