/* SPDX-License-Identifier: BSD-2-Clause */
/* alike - guesses the word that a mistyped one stands for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * True if the words @a and @b of @alen and @blen bytes are so alike that one is
 * likely the other with a slip of a key or two.  Sets *@far to the number of
 * slips.  '-' and '_' are the same,
 * and so are 'A' and 'a'.
 */
bool alike(const char *a, size_t alen, const char *b, size_t blen,
	   unsigned *far);
