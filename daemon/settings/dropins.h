/* SPDX-License-Identifier: BSD-2-Clause */
/* dropins - the files of a directory whose names end alike. */
#ifndef GANNET_DAEMON_DROPINS_H
#define GANNET_DAEMON_DROPINS_H

/*
 * Calls @fn with the path of each file in @dir whose name ends in @suffix and
 * does not begin with a dot, in the order of their names.  The number of
 * files, or -errno: of the directory, or the first that @fn returns, which
 * ends the walk.  Any thread; waits for the disk.
 */
int drop_ins(const char *dir, const char *suffix,
	     int (*fn)(void *arg, const char *path), void *arg);

#endif
