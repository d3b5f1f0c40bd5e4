/* SPDX-License-Identifier: BSD-2-Clause */
/* matrix - one cell of the table: a mount, and the work in it. */
#pragma once

#include <stdbool.h>

/* A directory of the cell, as the client has it mounted and as the server has
 * it; and the resulting rsize and wsize. */
struct cell {
	int	 mnt, back;
	unsigned rsize, wsize;
};

/* A step before a remount, or after it.  Its name is a sentence whose subject
 * is the client; it returns whether that holds. */
struct cell_step {
	const char *name;
	bool	    after_remount;
	bool	  (*run)(const struct cell *c);
};

extern const struct cell_step cell_steps[];	/* ends with a NULL name */

enum { CELL_LIST = 300 };	/* names in it */

/* Of all lengths; good until the next call. */
const char *cell_list_name(unsigned i);
/* Makes the directory @name, unless it is there: all cells list it, but only
 * read it. */
bool cell_make_list(int top, const char *name);
