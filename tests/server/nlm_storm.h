/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nlm_storm - for test_nlm_storm: a backend that remembers who has which bytes,
 * refuses some at random, and notes if two have one; and checks of the lock
 * manager's table against it.
 *
 * Locks begin at the bytes from 0 to NS_BYTES - 2, and end there too, or never:
 * the byte NS_BYTES - 1 stands for all that follow.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <gannet/vfs.h>

#define NS_BYTES 17u

struct nlm;

const struct vfs_ops *ns_backend(void);
/* Before the first call; afterwards @nlm is what the rest is about. */
void ns_begin(struct nlm *nlm, unsigned seed);
/* A random number below @n. */
unsigned ns_roll(unsigned n);
/* Whether the backend refuses locks at random; it does at first. */
void ns_trouble(bool on);
/* True if the backend has said so since the last time. */
bool ns_is_foreign(void);
/* No call is under way, and no job. */
bool ns_is_quiet(void);
/* Fails the test if table and backend differ then, or contain a mistake. */
void ns_check(void);
/* Notes in @held what the process @svid of the host @name has of each byte, in
 * all files: 0: nothing; 1: shared; 2: exclusive. */
void ns_held(const char *name, unsigned svid, uint8_t held[NS_BYTES]);
/* Nothing is left, in the table and in the backend. */
bool ns_is_empty(void);
/* Prints what has happened. */
void ns_report(void);
