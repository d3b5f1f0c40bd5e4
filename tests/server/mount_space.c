/* SPDX-License-Identifier: BSD-2-Clause */
/* mount_space - a mount name space of the test's own. */
#include "tests/server/mount_space.h"

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/runner.h"
#include "vfs/helper.h"

char space_base[] = "/tmp/gannet-mounts-XXXXXX";

const char *space_at(const char *path)
{
	static char text[2][256];
	static unsigned turn;

	turn = !turn;
	snprintf(text[turn], sizeof(text[turn]), "%s/e/%s", space_base, path);
	return text[turn];
}

void space_serve(const struct harness_config *config)
{
	static struct nfs3_fh handle;
	char path[64];

	nfs_setup_with(config);
	snprintf(path, sizeof(path), "%s/e", space_base);
	harness_root(&srv, path, &handle);
	top.data.data_val = (char *)handle.data;
	top.data.data_len = handle.len;
}

nfs_fh3 space_keep(nfs_fh3 fh)
{
	static char bytes[4][NFS3_FHSIZE];
	static unsigned turn;

	turn = (turn + 1) % 4;
	memcpy(bytes[turn], fh.data.data_val, fh.data.data_len);
	fh.data.data_val = bytes[turn];
	return fh;
}

int space_status_once(nfs_fh3 fh)
{
	GETATTR3args a = { .object = fh };
	GETATTR3res r;

	nfs_call(&root, getattr, &a, &r);
	return r.status;
}

int space_status(nfs_fh3 fh)
{
	int status;

	EVENTUALLY((status = space_status_once(fh)) != NFS3ERR_JUKEBOX);
	return status;
}

static bool write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	bool done = f && fputs(text, f) >= 0;

	return f && fclose(f) == 0 && done;
}

/* Becomes root of a user name space, without which no user there has a name. */
static bool enter_users(void)
{
	char uids[32], gids[32];

	snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
	snprintf(gids, sizeof(gids), "0 %u 1", getegid());
	return unshare(CLONE_NEWUSER) == 0 &&
	       write_file("/proc/self/setgroups", "deny") &&
	       write_file("/proc/self/uid_map", uids) &&
	       write_file("/proc/self/gid_map", gids);
}

static bool enter_space(void)
{
	return (geteuid() == 0 || enter_users()) &&
	       unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mkdtemp(space_base) &&
	       mount("none", space_base, "tmpfs", 0, NULL) == 0;
}

int space_run_tests(void)
{
	int rc;

	if (!enter_space()) {
		printf("skipped: may not mount\n");
		return 77;
	}
	rc = run_tests();
	umount2(space_base, MNT_DETACH);
	rmdir(space_base);
	return rc;
}

pid_t space_helper(void)
{
	pid_t helper;
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				    ends), 0);
	helper = fork();
	ck_assert_int_ge(helper, 0);
	if (helper == 0) {
		close(ends[0]);
		helper_serve(HELPER_BARE, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	helper_use(HELPER_BARE, ends[0], 60000);
	return helper;
}
