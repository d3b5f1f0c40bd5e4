/* SPDX-License-Identifier: BSD-2-Clause */
/* alike - the distance of Damerau and Levenshtein: letters that are missing,
 * too many, others or swapped with their neighbours. */
#include "lib/alike.h"

#include <ctype.h>
#include <string.h>

#include "lib/util.h"

#define WORD_MAX	40

static bool is_same_char(char a, char b)
{
	return tolower((unsigned char)(a == '-' ? '_' : a)) ==
	       tolower((unsigned char)(b == '-' ? '_' : b));
}

bool alike(const char *a, const char *b, unsigned *far)
{
	unsigned d[WORD_MAX + 1][WORD_MAX + 1];
	size_t alen = strcspn(a, "="), blen = strcspn(b, "=");

	if (alen > WORD_MAX || blen > WORD_MAX)
		return false;
	for (unsigned i = 0; i <= alen; i++)
		for (unsigned j = 0; j <= blen; j++) {
			unsigned other, least;

			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			other = !is_same_char(a[i - 1], b[j - 1]);
			least = MIN(d[i - 1][j], d[i][j - 1]) + 1;
			least = MIN(least, d[i - 1][j - 1] + other);
			if (i > 1 && j > 1 &&
			    is_same_char(a[i - 1], b[j - 2]) &&
			    is_same_char(a[i - 2], b[j - 1]))
				least = MIN(least, d[i - 2][j - 2] + other);
			d[i][j] = least;
		}
	/* A short word is a slip or two from many others. */
	if (d[alen][blen] > 2 || d[alen][blen] > MIN(alen, blen) / 3 ||
	    d[alen][blen] >= *far)
		return false;
	*far = d[alen][blen];
	return true;
}
