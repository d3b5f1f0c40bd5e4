/* SPDX-License-Identifier: BSD-2-Clause */
/* standard - opens standard descriptors that the program lacks. */
#pragma once

/*
 * Opens /dev/null as each of the descriptors 0 to 2 that is closed.  Called
 * first in main(): a file or connection that got one of these numbers later
 * would receive the program's output.  To read from 0 or write to 1 fails then,
 * as it does while they are closed; output to 2 is lost.
 */
void standard_open(void);
