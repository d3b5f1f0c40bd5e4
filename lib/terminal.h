/* SPDX-License-Identifier: BSD-2-Clause */
/* terminal - characters that a terminal obeys, or hides, instead of showing
 * them.  Others name clients, directories and files as they like. */
#pragma once

/*
 * How many bytes at @text make up such a character of UTF-8: a control (U+0000
 * to U+001F, U+007F to U+009F), or one that begins a line or turns the writing
 * around (U+2028 to U+202E, U+2066 to U+2069).  0: the first byte is part of
 * none.  @text is not necessarily UTF-8; it ends with a zero.  Any thread.
 */
static inline unsigned terminal_obeys(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;

	if (*c < ' ' || *c == 0x7f)
		return 1;
	if (*c == 0xc2)
		return c[1] >= 0x80 && c[1] < 0xa0 ? 2 : 0;
	if (*c != 0xe2)
		return 0;
	return (c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) ||
	       (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9) ? 3 : 0;
}
