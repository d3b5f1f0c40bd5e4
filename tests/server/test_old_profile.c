/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannetd under a seccomp profile that is older than faccessat2(2) and makes it
 * fail with EPERM, as in some containers.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/server/daemon_run.h"
#include "tests/server/nfs_client.h"
#include "tests/unit/runner.h"

static struct daemon_run d;
static char dir[] = "/tmp/gannet-profile-XXXXXX";

/* From now on this process and its children can't call it. */
static void refuse_faccessat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_faccessat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { ARRAY_SIZE(filter), filter };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

static void setup(void)
{
	daemon_prepare(&d);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	refuse_faccessat2();
}

static void teardown(void)
{
	ck_assert_int_eq(rmdir(dir), 0);
	daemon_clean(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown);

static bool starts(void)
{
	char export[128];

	snprintf(export, sizeof(export), "%s 127.0.0.1(rw,insecure)", dir);
	return daemon_start(&d, (const char *const[]){ "--export", export,
						       NULL });
}

/* The user's rights in the directory. */
static uint32_t granted(int uid)
{
	ACCESS3args a = { .access = ACCESS3_READ | ACCESS3_LOOKUP |
				    ACCESS3_MODIFY };
	struct nfs_client mount, c;
	mountres3 r;
	ACCESS3res got;

	nfs_client_open(&mount, d.tcp_port, MOUNT_PROGRAM, MOUNT_V3, uid);
	ck_assert_int_eq(nfs_try(&mount, rpc_mount3_mnt_async, dir, &r), 0);
	ck_assert_int_eq(r.fhs_status, MNT3_OK);
	a.object.data.data_len = r.mountres3_u.mountinfo.fhandle.fhandle3_len;
	a.object.data.data_val = r.mountres3_u.mountinfo.fhandle.fhandle3_val;
	nfs_client_open(&c, d.tcp_port, NFS_PROGRAM, NFS_V3, uid);
	nfs_call(&c, access, &a, &got);
	ck_assert_int_eq(got.status, NFS3_OK);
	nfs_client_close(&c);
	nfs_client_close(&mount);
	return got.ACCESS3res_u.resok.access;
}

TEST(a_server_without_privileges_asks_in_another_way)
{
	int uid = geteuid() ? (int)geteuid() : USER_UID;

	if (geteuid() == 0) {
		d.uid = USER_UID;
		ck_assert_int_eq(chown(dir, USER_UID, USER_UID), 0);
		ck_assert_int_eq(chown(d.dir, USER_UID, USER_UID), 0);
	}
	ck_assert(starts());
	ck_assert_uint_eq(granted(uid), ACCESS3_READ | ACCESS3_LOOKUP |
					ACCESS3_MODIFY);
	ck_assert_int_eq(chmod(dir, 0555), 0);
	ck_assert_uint_eq(granted(uid), ACCESS3_READ | ACCESS3_LOOKUP);
	ck_assert(!daemon_has_logged(&d, "change its mode"));
	daemon_end(&d, SIGTERM);
}

TEST(a_server_that_acts_as_its_callers_says_what_it_lacks)
{
	if (geteuid() != 0)
		return;
	ck_assert(starts());
	ck_assert(daemon_logged(&d, "refuses the call faccessat2"));
	daemon_end(&d, SIGTERM);
}
