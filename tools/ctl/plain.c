/* SPDX-License-Identifier: BSD-2-Clause */
/* plain - text that a terminal shows as it is. */
#include "tools/ctl/ctl.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/terminal.h"

static void plain_string(json_t *string)
{
	const char *from = json_string_value(string);
	char *out = malloc(4 * json_string_length(string) + 1), *at = out;

	if (!out) {
		json_string_set(string, "?");
		return;
	}
	while (*from) {
		unsigned n = terminal_obeys(from);

		if (n == 0)
			*at++ = *from++;
		for (; n > 0; n--)
			at += sprintf(at, "\\%03o", (unsigned char)*from++);
	}
	*at = '\0';
	json_string_set(string, out);
	free(out);
}

void ctl_plain(json_t *answer)
{
	const char *key;
	json_t *value;
	size_t i;

	if (json_is_string(answer))
		plain_string(answer);
	json_array_foreach(answer, i, value)
		ctl_plain(value);
	json_object_foreach(answer, key, value)
		ctl_plain(value);
}
