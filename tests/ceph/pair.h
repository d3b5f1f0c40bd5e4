/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair - two gannetds of one CephFS, in the cluster that CEPH_CONF names, and
 * the work of tests/crash by them.
 */
#pragma once

#include "tests/crash/crash.h"

/* The server c->d is the first one. */
extern struct crash *pair_crash;
extern struct daemon_run pair_second;

/* Both run, the work's root is a new directory, and no client is connected. */
void pair_start(void);
void pair_stop(void);
/* Starts one of them, or its successor with the same state and port. */
void pair_start_server(struct daemon_run *d);
/* Connects all of the work to @d, in place of where it was connected. */
void pair_connect(struct daemon_run *d);
void pair_disconnect(void);
/* The root of the export @path of @d. */
struct model_fh pair_mount(struct daemon_run *d, const char *path);
/* libnfs's mount of the root of @d, which remembers no directories. */
struct nfs_context *pair_nfs(const struct daemon_run *d);
/* tests/ceph/cluster @verb for one of its daemons. */
void pair_cluster(const char *verb, const char *daemon);
