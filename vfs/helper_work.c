/* SPDX-License-Identifier: BSD-2-Clause */
/* helper_work - what a helper does. */
#include "vfs/helper.h"
#include "vfs/parcel.h"
#include "vfs/quotas.h"

#include <errno.h>
#include <unistd.h>

/* Of mount_setattr(2). */
#define RDONLY	1u
#define NOSUID	2u
#define NODEV	4u
#define NOEXEC	8u

const char helper_bare_path[] = "";
const struct helper_mount_attr helper_bare_attr = {
	.set = RDONLY | NOSUID | NODEV | NOEXEC,
};

/* True if files there have handles.  With these the server can open any file,
 * covered or not; of other file systems a copy would show it more. */
static bool has_handles(int fd)
{
	struct file_handle none = { .handle_bytes = 0 };
	int mount;

	return name_to_handle_at(fd, helper_bare_path, &none, &mount,
				 AT_EMPTY_PATH) == 0 || errno == EOVERFLOW;
}

/* A descriptor in a read-only copy of the mount that @fd is in, or -errno. */
static int copy_mount(int fd)
{
	int err, bare;

	if (!has_handles(fd))
		return -EOPNOTSUPP;
	bare = (int)syscall(SYS_open_tree, fd, helper_bare_path,
			    HELPER_BARE_FLAGS);
	if (bare < 0)
		return -errno;
	if (syscall(SYS_mount_setattr, bare, helper_bare_path, AT_EMPTY_PATH,
		    &helper_bare_attr, sizeof(helper_bare_attr)) == 0)
		return bare;
	err = -errno;
	close(bare);
	return err;
}

/* Does @task with @m and @fd; returns a descriptor to answer with, or -1.  The
 * helper trusts no field of @m. */
static int do_task(enum helper_task task, struct helper_message *m, int fd)
{
	int bare = -1;

	if (task == HELPER_BARE) {
		bare = copy_mount(fd);
		m->err = bare < 0 ? bare : 0;
	} else {
		m->err = quota_from_kernel(fd, &m->quota);
	}
	return bare;
}

void helper_serve(enum helper_task task, int sock)
{
	struct helper_message m;
	int fd, answer;
	bool sent;

	while (parcel_recv(sock, &m, &fd) == sizeof(m) && fd >= 0) {
		answer = do_task(task, &m, fd);
		close(fd);
		sent = parcel_send(sock, &m, answer);
		if (answer >= 0)
			close(answer);
		if (!sent)
			return;
	}
}
