/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CephFS export of a separate directory in the cluster that CEPH_CONF names
 * (tests/ceph/run), and a second client of libcephfs.  The module's sources are
 * linked into the program.
 */
#pragma once

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/runner.h"
#include "tests/unit/vfs_suite.h"
#include "modules/ceph/servers.h"

static struct cfs_options options;
/* Another client, which is not gannetd's. */
static struct ceph_mount_info *other;
static char dir[32];

static void setup(struct vfs_config *config)
{
	config->path = dir;
	config->options = &options;
}

static void nothing(void)
{
}

static struct vfs_suite_params params = {
	.ops = &gannet_backend, .setup = setup, .teardown = nothing,
	.as_anyone = true,
	.me = { .uid = 1000, .gid = 1000 },
};

static inline const char *below(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void begin(void)
{
	umask(0);
	ck_assert_int_eq(ceph_create(&other, "admin"), 0);
	ck_assert_int_eq(ceph_conf_read_file(other, NULL), 0);
	ck_assert_int_eq(ceph_conf_set(other, "client_acl_type", "posix_acl"),
			 0);
	ck_assert_int_eq(ceph_mount(other, "/"), 0);
	snprintf(dir, sizeof(dir), "/own-%d", (int)getpid());
	ck_assert_int_eq(ceph_mkdir(other, dir, 0777), 0);
	vfs_suite_use(&params);
	vfs_suite_begin();
}

static void end(void)
{
	vfs_suite_end();
	ceph_unmount(other);
	ceph_release(other);
}

static inline void shut_out(const struct cfs_client *c)
{
	char command[100];

	snprintf(command, sizeof(command), "ceph tell mds.a client evict "
		 "id=%llu >/dev/null 2>&1",
		 (unsigned long long)ceph_get_instance_id(c->cm));
	ck_assert_int_eq(system(command), 0);
}

/* Has @daemon of the cluster "kill"ed or "start"ed. */
static inline void cluster(const char *verb, const char *daemon)
{
	char command[300];

	snprintf(command, sizeof(command), "\"$srcdir\"/tests/ceph/cluster %s "
		 "\"$(dirname \"$CEPH_CONF\")\" %s", verb, daemon);
	ck_assert_int_eq(system(command), 0);
}
