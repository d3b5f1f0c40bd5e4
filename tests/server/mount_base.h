/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mount_base - a mount name space of the test's own: as root, or by a user
 * name space.
 */
#pragma once

/* A private tmpfs. */
extern char space_base[];
/* "a/b" below "e" there, the directory that is exported. */
const char *space_at(const char *path);

/* main() of such a test, which is skipped where it can't mount. */
int space_run_tests(void);
