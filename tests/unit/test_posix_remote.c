/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend on a file system that another program serves, perhaps late:
 * FUSE, or a network's. */
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/posix_fixture.h"

/* Counts this thread's questions for attributes. */
static _Thread_local int asked;

/* In place of the C library's: vfs/posix/attr.c. */
long syscall(long number, ...)
{
	static long (*next)(long number, ...);
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (unsigned i = 0; i < ARRAY_SIZE(a); i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	asked += number == SYS_fstat;
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void read_later(struct vfs_node *n)
{
	char data[8];
	struct iovec iov = { data, sizeof(data) };

	ck_assert_int_eq(DO(posix_read, &w.who, n,
			    .read = { .iov = &iov, .niov = 1 }), -EAGAIN);
}

TEST_LOOP(a_poller_asks_nothing_of_it, 0, WORLDS)
{
	struct vfs_attr attr;
	struct vfs_node *n;
	char text[64];
	bool eof;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "abc", NULL), 3);
	ck_assert_int_eq(read_str(n, 0, text, &eof), 3);
	to_posix_fs(w.fs)->ram = false;
	to_posix_fs(w.fs)->remote = true;
	to_posix_fs(w.fs)->atime = POSIX_ATIME_RELATIVE;
	w.who.nonblock = true;
	asked = 0;
	read_later(n);
	assert_err(DO(posix_getattr, &w.who, n, .attr = &attr), EAGAIN);
	assert_err(DO(posix_access, &w.who, n, .access.want = 1,
		      .attr = &attr), EAGAIN);
	ck_assert_int_eq(asked, 0);
	w.who.nonblock = false;
	ck_assert_int_eq(read_str(n, 0, text, &eof), 3);
#if defined(__x86_64__) && defined(__LP64__)
	ck_assert_int_gt(asked, 0);	/* elsewhere it is another call */
#endif
	vfs_node_put(n);
	world_close();
}

int main(void)
{
	return world_run();
}
