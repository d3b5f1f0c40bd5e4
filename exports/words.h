/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of the text of exports(5), entry by entry. */
#pragma once

#include <stdbool.h>

#define WORD_MAX	4096

struct words {
	const char	*name;		/* of the text, for messages */
	const char	*p;
	const char	*end;
	unsigned	 line;		/* 0: the text is an argument */
	char	       **err;		/* the mistakes so far, a line each */
	/* The last word; words_next() sets both. */
	char		 word[WORD_MAX];
	unsigned	 word_line;
};

/* 1: a word is in w->word; 0: the end of the entry; -EINVAL and *w->err. */
int words_next(struct words *w);
/* Goes on behind the end of the line.  True: that was the end of the text. */
bool words_end_line(struct words *w);

/* The place of the last word, "FILE:LINE", malloced; NULL: out of memory. */
char *words_where(const struct words *w);
/* Skips the rest of the entry. */
void words_skip_entry(struct words *w);
/* Adds the place and @msg to *w->err, for each line of @msg.  Takes @msg, which
 * can be NULL.  Returns -EINVAL. */
int words_fail_msg(const struct words *w, char *msg);

#define words_fail(w, ...) ({ \
		char *msg_; \
		fail_with(&msg_, __VA_ARGS__); \
		words_fail_msg((w), msg_); \
	})
