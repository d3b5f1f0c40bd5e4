/* SPDX-License-Identifier: BSD-2-Clause */
/* types_disk - file systems of each type, and a gannetd that exports one. */
#include "tests/server/types_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/mount_base.h"
#include "tests/unit/runner.h"

#define LOOP	"mount -o loop"

/* FAT and exFAT are of whom the mount says, root here. */
const struct type types[] = {
	{ "ext4", "mke2fs -q -F -t ext4 $1", LOOP " $1 $2",
	  TYPE_HANDLES | TYPE_COOKIES | TYPE_VERIFIER },
	/* Its times are whole seconds. */
	{ "ext3", "mke2fs -q -F -t ext3 -I 128 $1", LOOP " $1 $2",
	  TYPE_HANDLES | TYPE_COOKIES },
	{ "ext4-casefold",
	  "mke2fs -q -F -t ext4 -O casefold -E encoding=utf8 $1",
	  LOOP " $1 $2 && mkdir $2/fold && chattr +F $2/fold",
	  TYPE_HANDLES | TYPE_COOKIES | TYPE_VERIFIER | TYPE_CASELESS },
	{ "ext4-quota", "mke2fs -q -F -t ext4 -O quota $1",
	  LOOP ",usrquota $1 $2",
	  TYPE_HANDLES | TYPE_COOKIES | TYPE_VERIFIER | TYPE_QUOTA },
	{ "xfs", "mkfs.xfs -q -f -K $1", LOOP " $1 $2",
	  TYPE_HANDLES | TYPE_COOKIES | TYPE_VERIFIER },
	{ "xfs-quota", "mkfs.xfs -q -f -K $1", LOOP ",uquota $1 $2",
	  TYPE_HANDLES | TYPE_COOKIES | TYPE_VERIFIER | TYPE_QUOTA },
	{ "btrfs", "mkfs.btrfs -q -f -K $1", LOOP " $1 $2",
	  TYPE_HANDLES | TYPE_COOKIES | TYPE_VERIFIER },
	{ "f2fs", "mkfs.f2fs -q -f $1", LOOP " $1 $2",
	  TYPE_HANDLES | TYPE_COOKIES | TYPE_VERIFIER },
	{ "tmpfs", "true", "mount -t tmpfs tmpfs $2",
	  TYPE_HANDLES | TYPE_VERIFIER },
	{ "overlay", "mke2fs -q -F -t ext4 $1",
	  LOOP " $1 $2 && mkdir $2/low $2/up $2/work && "
	  "mount -t overlay -o lowerdir=$2/low,upperdir=$2/up,workdir=$2/work "
	  "overlay $2",
	  TYPE_VERIFIER },
	{ "vfat", "mkfs.vfat -F 32 $1",
	  LOOP ",umask=000,utf8 $1 $2 && mkdir $2/fold", TYPE_CASELESS },
	{ "exfat", "mkfs.exfat $1",
	  LOOP ",umask=000 $1 $2 && mkdir $2/fold", TYPE_CASELESS },
	{ "ntfs3", "mkntfs -Q -F -q $1",
	  "mount -t ntfs3 -o loop $1 $2", 0 },
	/* A FUSE file system on a block device. */
	{ "ntfs-3g", "mkntfs -Q -F -q $1",
	  "ntfs-3g -o permissions $1 $2", TYPE_BY_OPEN },
	{ "nfs", "true", "mount --bind $GANNET_TYPES_NFS $2",
	  TYPE_BY_OPEN },
};
const int ntypes = sizeof(types) / sizeof(types[0]);

char types_top[64];
struct daemon_run types_daemon;
struct nfs_client other;

static bool shell(const char *commands)
{
	char text[600];

	snprintf(text, sizeof(text), "exec >/dev/null 2>&1; "
		 "PATH=$PATH:/sbin:/usr/sbin; set -- %s.image %s; %s",
		 types_top, types_top, commands);
	return system(text) == 0;
}

static bool is_listed(const char *list, const struct type *t)
{
	char word[32];

	snprintf(word, sizeof(word), " %s ", t->name);
	return strstr(list, word);
}

bool types_mount(const struct type *t)
{
	const char *list = getenv("GANNET_TYPES");
	bool there;

	if (list && !is_listed(list, t))
		return false;
	/* A test that failed has left its own. */
	snprintf(types_top, sizeof(types_top), "%s/e%d", space_base, getpid());
	ck_assert_int_eq(mkdir(types_top, 0755), 0);
	there = shell("truncate -s 320M $1") && shell(t->make) &&
		shell(t->mount);
	ck_assert_msg(there || !list, "no %s here", t->name);
	if (there)
		return true;
	printf("# no %s here\n", t->name);
	types_unmount();
	return false;
}

/* An overlay lies on its layers' file system. */
static bool is_unmounted(void)
{
	while (umount(types_top) == 0)
		;
	return errno != EBUSY;
}

void types_unmount(void)
{
	EVENTUALLY(is_unmounted());
	ck_assert(shell("rm -rf $1 $2"));
}

/* ---- the server */

static void mount_top(void)
{
	struct nfs_client m;
	static char bytes[NFS3_FHSIZE];
	fhandle3 *h;
	mountres3 r;

	nfs_client_open(&m, types_daemon.tcp_port, MOUNT_PROGRAM, MOUNT_V3, 0);
	ck_assert_int_eq(nfs_try(&m, rpc_mount3_mnt_async, types_top, &r),
			 RPC_STATUS_SUCCESS);
	ck_assert_int_eq(r.fhs_status, MNT3_OK);
	h = &r.mountres3_u.mountinfo.fhandle;
	memcpy(bytes, h->fhandle3_val, h->fhandle3_len);
	top.data.data_val = bytes;
	top.data.data_len = h->fhandle3_len;
	nfs_client_close(&m);
}

static void start(void)
{
	char export[128];

	snprintf(export, sizeof(export),
		 "%s 127.0.0.1(rw,insecure,no_root_squash,fsid=7)", types_top);
	ck_assert(daemon_start(&types_daemon, (const char *const[]){
		"--bind", "127.0.0.1", "--grace", "0", "--export", export,
		NULL }));
	nfs_client_open(&root, types_daemon.tcp_port, NFS_PROGRAM, NFS_V3, 0);
	nfs_client_open(&user, types_daemon.tcp_port, NFS_PROGRAM, NFS_V3,
			USER_UID);
	nfs_client_open(&other, types_daemon.tcp_port, NFS_PROGRAM, NFS_V3,
			OTHER_UID);
	mount_top();
}

static void stop(void)
{
	nfs_client_close(&other);
	nfs_client_close(&user);
	nfs_client_close(&root);
	daemon_end(&types_daemon, SIGTERM);
}

void types_serve(void)
{
	daemon_prepare(&types_daemon);
	start();
}

void types_end(void)
{
	stop();
	daemon_clean(&types_daemon);
}

void types_restart(void)
{
	stop();
	/* To sync the whole machine could exceed the test's time limit. */
	ck_assert(shell("sync -f $2; echo 3 > /proc/sys/vm/drop_caches"));
	start();
}
