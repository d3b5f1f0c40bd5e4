/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net_space - a network of the test's own, with loopback alone: as root, or by
 * a user name space.  No server of this machine is at port 111 there, nor have
 * connections of other tests left ports behind.
 */
#pragma once

#include <stdbool.h>

/* main() of such a test.  It is skipped where it can't have a network. */
int net_space_run_tests(void);

/* Writes a file of /proc, and brings loopback up, in the network of the caller;
 * false: not permitted. */
bool net_space_write(const char *path, const char *text);
bool net_space_raise_loopback(void);
