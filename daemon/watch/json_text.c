/* SPDX-License-Identifier: BSD-2-Clause */
/* json_text - bytes as text in JSON. */
#include "daemon/watch/report.h"

#include <stdlib.h>
#include <string.h>

json_t *json_text(const char *text)
{
	json_t *o = json_string(text);
	char *out, *at;

	if (o || !(out = malloc(4 * strlen(text) + 1)))
		return o;
	for (at = out; *text; text++)
		if ((unsigned char)*text < 0x80)
			*at++ = *text;
		else
			at += sprintf(at, "\\%03o", (unsigned char)*text);
	*at = '\0';
	o = json_string(out);
	free(out);
	return o;
}
