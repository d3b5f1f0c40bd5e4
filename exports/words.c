/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words of exports(5).  Pure.
 *
 * Reads as exportfs(8) does: a backslash before the end of a line is white
 * space, in a comment too; a '#' begins a comment where a word could begin.
 */
#include "exports/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exports/export_priv.h"
#include "lib/fail.h"

#define END_OF_TEXT	(-1)

char *words_where(const struct words *w)
{
	char *s;

	if (w->line == 0)
		return strdup(w->name);
	return asprintf(&s, "%s:%u", w->name, w->word_line) < 0 ? NULL : s;
}

int words_fail_msg(const struct words *w, char *msg)
{
	char *at = words_where(w), *rest = msg, *one;

	while (at && (one = strsep(&rest, "\n"))) {
		char *line = NULL;

		fail_with(&line, "%s: %s", at, one);
		fail_too(w->err, line);
	}
	free(at);
	free(msg);
	return -EINVAL;
}

static int next_char(struct words *w)
{
	int c;

	if (w->p == w->end)
		return END_OF_TEXT;
	c = (unsigned char)*w->p++;
	if (c == '\n' && w->line)
		w->line++;
	if (c != '\\' || w->p == w->end || *w->p != '\n')
		return c;
	w->p++;
	if (w->line)
		w->line++;
	while (w->p < w->end && (*w->p == ' ' || *w->p == '\t'))
		w->p++;
	return ' ';
}

static int peek_char(struct words *w)
{
	const char *at = w->p;
	unsigned line = w->line;
	int c = next_char(w);

	w->p = at;
	w->line = line;
	return c;
}

static bool is_end(int c)
{
	return c == '\n' || c == END_OF_TEXT;
}

static bool is_blank(int c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Skips to the next word of the entry.  False: the entry ends. */
static bool skip_blank(struct words *w)
{
	while (is_blank(peek_char(w)))
		next_char(w);
	if (peek_char(w) == '#')
		while (!is_end(peek_char(w)))
			next_char(w);
	return !is_end(peek_char(w));
}

/* Reads three octal digits, after a backslash, as a byte. */
static int read_escape(struct words *w)
{
	int v = 0;

	for (int i = 0; i < 3; i++) {
		int c = next_char(w);

		if (c < '0' || c > '7')
			return words_fail(w, "a backslash stands before three "
					  "octal digits (\\040 is a space) or "
					  "at the end of the line");
		v = v * 8 + c - '0';
	}
	if (v == 0 || v > 255)
		return words_fail(w, "'\\%03o' is not a character: expected "
				  "\\001 to \\377", (unsigned)v);
	return v;
}

int words_next(struct words *w)
{
	bool quoted = false;
	size_t len = 0;
	int c;

	w->word_line = w->line;
	if (!skip_blank(w))
		return 0;
	w->word_line = w->line;
	for (;;) {
		c = peek_char(w);
		if (is_end(c) || (is_blank(c) && !quoted))
			break;
		next_char(w);
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (c == '\\')
			c = read_escape(w);
		if (c < 0)
			return c;
		if (c == 0)
			return words_fail(w, "there is a NUL byte in the text");
		if (len == WORD_MAX - 1)
			return words_fail(w, "a word is longer than %d bytes",
					  WORD_MAX - 1);
		w->word[len++] = (char)c;
	}
	w->word[len] = '\0';
	return quoted ? words_fail(w, "a '\"' is not closed on its line") : 1;
}

void words_skip_entry(struct words *w)
{
	while (!is_end(peek_char(w)))
		next_char(w);
}

bool words_end_line(struct words *w)
{
	return next_char(w) == END_OF_TEXT;
}
