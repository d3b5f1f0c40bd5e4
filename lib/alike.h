/* SPDX-License-Identifier: BSD-2-Clause */
/* alike - guesses the word that a mistyped one stands for. */
#pragma once

#include <stdbool.h>

/*
 * True if @a is likely @b, each up to its '=', with a slip of a key or two, and
 * with fewer than *@far slips, which is then set to their number: begin with
 * UINT_MAX to find the nearest word.  '-' equals '_', and 'A' equals 'a'.
 */
bool alike(const char *a, const char *b, unsigned *far);
