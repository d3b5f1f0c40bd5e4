/* SPDX-License-Identifier: BSD-2-Clause */
/* standard - the standard descriptors of a program that may lack some. */
#ifndef GANNET_LIB_STANDARD_H
#define GANNET_LIB_STANDARD_H

/*
 * Opens /dev/null as each of the descriptors 0 to 2 that is closed.  Called
 * first in main(): a file or connection that got one of these numbers later
 * would get what the program says.  To read from 0 or write to 1 fails then, as
 * it does while they are closed; what goes to 2 is lost.
 */
void standard_open(void);

#endif
