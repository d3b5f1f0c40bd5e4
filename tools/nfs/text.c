/* SPDX-License-Identifier: BSD-2-Clause */
/* text - strings of a server, as a terminal can show them, and sizes. */
#include <string.h>

#include "tools/nfs/tool.h"
#include "lib/util.h"

size_t text_utf8_len(const uint8_t *s, size_t left)
{
	size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;

	if (s[0] < 0xc2 || s[0] > 0xf4 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* C1 controls; and overlong forms, surrogates, or beyond Unicode. */
	if ((s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xe0 && s[1] < 0xa0) ||
	    (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void tool_put_bytes(FILE *f, const char *name, size_t len)
{
	const uint8_t *s = (const uint8_t *)name;

	for (size_t i = 0, n; i < len; i += n) {
		n = s[i] < 0x80 ? 1 : text_utf8_len(s + i, len - i);
		if (s[i] < ' ' || s[i] == 0x7f || s[i] == '\\' || n == 0) {
			fprintf(f, "\\%03o", s[i]);
			n = 1;
		} else {
			fwrite(s + i, 1, n, f);
		}
	}
}

void tool_put_name(FILE *f, const char *name)
{
	tool_put_bytes(f, name, strlen(name));
}

void tool_human(uint64_t n, char out[24])
{
	unsigned tenths, i = 0;
	uint64_t unit = 1;

	if (n < 1024) {
		snprintf(out, 24, "%u", (unsigned)n);
		return;
	}
	do {
		unit <<= 10;
		i++;
		tenths = (unsigned)((n % unit * 10 + unit - 1) / unit);
		tenths += (unsigned)MIN(n / unit, 1024u) * 10;
	} while (tenths > 10230);
	if (tenths < 100)
		snprintf(out, 24, "%u.%u%c", tenths / 10, tenths % 10,
			 " KMGTPE"[i]);
	else
		snprintf(out, 24, "%u%c", (tenths + 9) / 10, " KMGTPE"[i]);
}
