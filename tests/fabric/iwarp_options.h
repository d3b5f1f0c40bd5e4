/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp_options - options of the iWARP fabric as words, for tests. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "transport/fabric/iwarp/iwarp.h"

/* Any of ",crc", ",fpdu=N", ",rtr=write", ",rtr=read", ",rev=1". */
static inline void iwarp_options_parse(const char *text,
				       struct iwarp_options *o)
{
	const char *fpdu = strstr(text, ",fpdu=");

	memset(o, 0, sizeof(*o));
	o->no_crc = !strstr(text, ",crc");
	o->fpdu_size = fpdu ? (unsigned)atoi(fpdu + 6) : 0;
	if (strstr(text, ",rtr=write"))
		o->rtr = IWARP_RTR_WRITE;
	if (strstr(text, ",rtr=read"))
		o->rtr = IWARP_RTR_READ;
	o->revision = strstr(text, ",rev=1") ? 1 : 2;
}
