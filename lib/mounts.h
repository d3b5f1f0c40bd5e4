/* SPDX-License-Identifier: BSD-2-Clause */
/* mounts - the kernel's list of mounts, which is read without asking any file
 * system: also one that hangs. */
#pragma once

#include <stdint.h>
#include <stdio.h>

/* The number of the file system where the absolute @path lies, if no symbolic
 * link leads elsewhere.  File systems of one network server, or of one ZFS
 * pool, have one number.  0: it is not known. */
uint64_t mounts_place(const char *path);
/* The device of that file system, as the list has it: on btrfs, that of no
 * file.  0: it is not known. */
uint64_t mounts_device(const char *path);
/* The same by another list than that of this process. */
uint64_t mounts_place_in(FILE *list, const char *path);
uint64_t mounts_device_in(FILE *list, const char *path);

/* The list separates its words by spaces, so it writes a space, tab, newline or
 * backslash of a name as a backslash and three octal digits.  Puts the names'
 * own bytes there. */
void mounts_decode(char *s);
