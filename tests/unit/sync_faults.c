/* SPDX-License-Identifier: BSD-2-Clause */
/* sync_faults - the system calls of a disk that dies. */
#include "tests/unit/sync_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/unit/pause.h"

#define FDS	4096
#define INODES	64

struct sync_faults sync_faults;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock: */
static struct lost {
	ino_t	 ino;
	unsigned errors;
	bool	 seen;			/* a call was told of the last */
	unsigned written;		/* number of the last write */
	unsigned safe;			/* ... that is synced, or lost */
	uint8_t	 gone[SYNC_FAULTS_WRITES / 8];
} lost[INODES];
/* Errors that a descriptor has reported, or that do not concern it. */
static unsigned told_fd[FDS];
static int told;

static _Thread_local unsigned last_write;

static struct lost *find(ino_t ino)
{
	for (int i = 0; i < INODES; i++)
		if (lost[i].ino == ino || lost[i].ino == 0)
			return &lost[i];
	abort();
}

void sync_faults_lose(ino_t ino)
{
	struct lost *l;

	pthread_mutex_lock(&lock);
	l = find(ino);
	l->ino = ino;
	l->errors++;
	l->seen = false;
	pthread_mutex_unlock(&lock);
}

int sync_faults_told(void)
{
	int n;

	pthread_mutex_lock(&lock);
	n = told;
	pthread_mutex_unlock(&lock);
	return n;
}

unsigned sync_faults_last_write(void)
{
	return last_write;
}

bool sync_faults_lost(ino_t ino, unsigned write)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = find(ino)->gone[write / 8] >> write % 8 & 1;
	pthread_mutex_unlock(&lock);
	return is;
}

/* Under the lock: unsynced data is lost. */
static void lose(struct lost *l)
{
	for (unsigned i = l->safe + 1; i <= l->written; i++)
		l->gone[i / 8] |= (uint8_t)(1 << i % 8);
	l->safe = l->written;
	l->errors++;
}

static bool by_chance(void)
{
	static _Thread_local unsigned seed;
	unsigned one_in = atomic_load(&sync_faults.one_in);

	if (seed == 0)
		seed = (unsigned)syscall(SYS_gettid);
	return one_in && (unsigned)rand_r(&seed) % one_in == 0;
}

static void wrote(int fd)
{
	struct lost *l;
	struct stat st;

	if (fstat(fd, &st) < 0)
		abort();
	pthread_mutex_lock(&lock);
	l = find(st.st_ino);
	l->ino = st.st_ino;
	last_write = l->written = (l->written + 1) % SYNC_FAULTS_WRITES;
	if (by_chance()) {
		lose(l);
		l->seen = false;
	}
	pthread_mutex_unlock(&lock);
}

/* True if this descriptor has to report an error now. */
static bool tell(int fd, ino_t ino)
{
	struct lost *l;
	bool now;

	if (fd >= FDS)
		abort();
	pthread_mutex_lock(&lock);
	l = find(ino);
	if (l->ino == ino && by_chance())
		lose(l);
	l->safe = l->written;
	now = l->ino == ino && l->errors != told_fd[fd];
	told_fd[fd] = l->errors;
	if (now) {
		l->seen = true;
		told++;
	}
	pthread_mutex_unlock(&lock);
	return now;
}

static int fails(int err)
{
	if (atomic_load(&sync_faults.pause_us))
		/* As a slow disk. */
		pause_on_purpose((unsigned)atomic_load(&sync_faults.pause_us));
	errno = err;
	return -1;
}

static int sync_file(int fd, const struct stat *st)
{
	int err = atomic_load(S_ISDIR(st->st_mode) ? &sync_faults.dir_errno :
			      &sync_faults.file_errno);

	if (err)
		return fails(err);
	return tell(fd, st->st_ino) ? fails(EIO) : 0;
}

static int sync_by(int fd)
{
	struct stat st;
	int rc;

	if (fstat(fd, &st) < 0)
		return -1;
	atomic_fetch_add(S_ISDIR(st.st_mode) ? &sync_faults.dirs :
			 &sync_faults.files, 1);
	if (S_ISDIR(st.st_mode) && atomic_load(&sync_faults.hold_dirs)) {
		atomic_fetch_add(&sync_faults.held, 1);
		WAIT_WHILE(atomic_load(&sync_faults.hold_dirs));
	}
	rc = sync_file(fd, &st);
	atomic_fetch_add(&sync_faults.ended, 1);
	return rc;
}

int fsync(int fd)
{
	return sync_by(fd);
}

int fdatasync(int fd)
{
	return sync_by(fd);
}

int syncfs(int fd)
{
	int err = atomic_exchange(&sync_faults.whole_once, 0);

	if (fcntl(fd, F_GETFL) & O_PATH) {
		errno = EBADF;
		return -1;
	}
	atomic_fetch_add(&sync_faults.wholes, 1);
	if (!err)
		err = atomic_load(&sync_faults.whole_errno);
	if (!err && by_chance())
		err = EIO;
	WAIT_WHILE(err && atomic_load(&sync_faults.hold_failed));
	return err ? fails(err) : 0;
}

int fremovexattr(int fd, const char *name)
{
	int err = atomic_load(&sync_faults.journal_errno);

	(void)fd;
	(void)name;
	errno = err ? err : ENODATA;
	return -1;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	int *arg;

	va_start(ap, request);
	arg = va_arg(ap, int *);
	va_end(ap);
	if (request != FS_IOC_GETFLAGS)
		return (int)syscall(SYS_ioctl, fd, request, arg);
	*arg = atomic_load(&sync_faults.chattr_s) ? FS_SYNC_FL : 0;
	return 0;
}

int utimensat(int dir, const char *path, const struct timespec t[2], int flags)
{
	int err = atomic_load(&sync_faults.times_errno);

	if (!err)
		return (int)syscall(SYS_utimensat, dir, path, t, flags);
	errno = err;
	return -1;
}

int fstatvfs(int fd, struct statvfs *sv)
{
	struct statfs sf;

	if (fstatfs(fd, &sf) < 0)
		return -1;
	*sv = (struct statvfs){ .f_flag = (unsigned long)sf.f_flags & 0xf };
	if (atomic_load(&sync_faults.mount_sync))
		sv->f_flag |= ST_SYNCHRONOUS;
	if (atomic_load(&sync_faults.mount_ro))
		sv->f_flag |= ST_RDONLY;
	return 0;
}

/* One byte, or the error that was ordered. */
static ssize_t write_a_byte(int fd, const struct iovec *iov, off_t off)
{
	int left = atomic_load(&sync_faults.write_bytes);

	if (left == 0) {
		errno = atomic_load(&sync_faults.write_errno);
		return -1;
	}
	atomic_store(&sync_faults.write_bytes, left - 1);
	return pwrite(fd, iov->iov_base, 1, off);
}

ssize_t pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	ssize_t done;

	if (atomic_load(&sync_faults.write_errno))
		done = write_a_byte(fd, iov, off);
	else
		done = syscall(SYS_pwritev2, fd, iov, n, (long)off,
			       (long)(off >> 32), flags &
			       ~(RWF_DSYNC | RWF_SYNC));
	if (done > 0)
		wrote(fd);
	if (done > 0 && flags & (RWF_DSYNC | RWF_SYNC) && sync_by(fd) < 0)
		return -1;
	return done;
}

static int opened(int fd)
{
	struct stat st;
	struct lost *l;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fd;
	if (fd >= FDS)
		abort();
	pthread_mutex_lock(&lock);
	l = find(st.st_ino);
	told_fd[fd] = l->seen || !l->errors ? l->errors : l->errors - 1;
	pthread_mutex_unlock(&lock);
	return fd;
}

static int open_by(int dir, const char *path, int flags, int mode)
{
	int err = atomic_load(&sync_faults.open_errno);

	if (err && strncmp(path, "/proc/self/fd/", 14) == 0) {
		errno = err;
		return -1;
	}
	return opened((int)syscall(SYS_openat, dir, path, flags, mode));
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	return open_by(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	return open_by(dir, path, flags, mode);
}

/* open() and openat() under _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);

int __open_2(const char *path, int flags)
{
	return open_by(AT_FDCWD, path, flags, 0);
}

int __openat_2(int dir, const char *path, int flags)
{
	return open_by(dir, path, flags, 0);
}
