/* SPDX-License-Identifier: BSD-2-Clause */
/* types_step - a change that a local process makes, and a client. */
#include "tests/server/types_step.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/nfs_names.h"
#include "tests/unit/runner.h"

#define GID	100		/* of a user other than root (nfs_client.c) */

static const char *const verbs[] = {
	"make", "edit", "look at", "cut", "chmod", "chown", "chgrp", "touch",
	"mkdir", "mkfifo", "symlink", "link", "rename", "remove", "rmdir",
};

const char *step_text(const struct step *s)
{
	static char text[1200];

	snprintf(text, sizeof(text), "%d: %s '%s' '%s' 0%o", s->uid,
		 verbs[s->verb], s->name, s->to ? s->to : "", s->n);
	return text;
}

/* ---- a local process */

static int open_and(const struct step *s, int flags)
{
	int fd = open(s->name, flags | O_NOFOLLOW | O_NONBLOCK, s->n);
	char byte = 'x';
	int rc = fd;

	if (fd >= 0 && s->verb == EDIT)
		rc = pwrite(fd, &byte, 1, 0) == 1 ? 0 : -1;
	if (fd >= 0 && s->verb == LOOK)
		rc = pread(fd, &byte, 1, 0) >= 0 ? 0 : -1;
	if (fd >= 0)
		close(fd);
	return rc;
}

static int step_do(const struct step *s)
{
	switch (s->verb) {
	case MAKE:
		return open_and(s, O_WRONLY | O_CREAT | O_EXCL);
	case EDIT:
		return open_and(s, O_WRONLY);
	case LOOK:
		return open_and(s, O_RDONLY);
	case CUT:
		return truncate(s->name, s->n);
	case MODE:
		return chmod(s->name, s->n);
	case OWN:
		return lchown(s->name, s->n, (gid_t)-1);
	case GROUP:
		return lchown(s->name, (uid_t)-1, s->n);
	case TOUCH:
		return utimensat(AT_FDCWD, s->name, NULL, AT_SYMLINK_NOFOLLOW);
	case DIRECTORY:
		return mkdir(s->name, s->n);
	case FIFO:
		return mkfifo(s->name, s->n);
	case SYMLINK:
		return symlink(s->to, s->name);
	case LINK:
		return link(s->name, s->to);
	case RENAME:
		return rename(s->name, s->to);
	case REMOVE:
		return unlink(s->name);
	default:
		return rmdir(s->name);
	}
}

static int status_of(enum verb verb, int err)
{
	switch (err) {
	case ENAMETOOLONG:
		return NFS3ERR_NAMETOOLONG;
	case ENOTEMPTY:
		return NFS3ERR_NOTEMPTY;
	case EDQUOT:
		return NFS3ERR_DQUOT;
	case EOPNOTSUPP:
		return NFS3ERR_NOTSUPP;
	case ENOENT:			/* in a directory that is there */
		return verb == MAKE ? NFS3ERR_INVAL : NFS3ERR_NOENT;
	case EILSEQ:
		return verb == MAKE ? NFS3ERR_INVAL : NFS3ERR_NOENT;
	default:
		return err;
	}
}

/* As @uid, and back: the saved ids stay root's. */
static bool become(int uid)
{
	gid_t gid = uid ? GID : 0;

	return seteuid(0) == 0 && setgroups(0, NULL) == 0 &&
	       setegid(gid) == 0 && seteuid((uid_t)uid) == 0;
}

int step_local(const struct step *s, const char *dir)
{
	int back = open(".", O_PATH | O_CLOEXEC), err = 0;

	umask(0);
	ck_assert(back >= 0 && chdir(dir) == 0 && become(s->uid));
	if (step_do(s) < 0)
		err = errno;
	ck_assert(become(0) && fchdir(back) == 0);
	close(back);
	return status_of(s->verb, err);
}

/* ---- a client */

static struct nfs_client *client_of(const struct step *s)
{
	return s->uid == 0 ? &root : s->uid == USER_UID ? &user : &other;
}

static char *arg(const char *text)
{
	return (char *)(uintptr_t)text;
}

static sattr3 mode_set(unsigned mode)
{
	sattr3 a = { .mode.set_it = 1 };

	a.mode.set_mode3_u.mode = mode;
	return a;
}

static int client_make(const struct step *s, nfs_fh3 dir)
{
	CREATE3args a = { .where = { dir, arg(s->name) },
			  .how.mode = GUARDED };
	CREATE3res r;

	a.how.createhow3_u.g_obj_attributes = mode_set(s->n);
	nfs_call(client_of(s), create, &a, &r);
	return r.status;
}

static int client_mkdir(const struct step *s, nfs_fh3 dir)
{
	MKDIR3args a = { .where = { dir, arg(s->name) },
			 .attributes = mode_set(s->n) };
	MKDIR3res r;

	nfs_call(client_of(s), mkdir, &a, &r);
	return r.status;
}

static int client_mkfifo(const struct step *s, nfs_fh3 dir)
{
	MKNOD3args a = { .where = { dir, arg(s->name) },
			 .what = { .type = NF3FIFO } };
	MKNOD3res r;

	a.what.mknoddata3_u.pipe_attributes = mode_set(s->n);
	nfs_call(client_of(s), mknod, &a, &r);
	return r.status;
}

static int client_symlink(const struct step *s, nfs_fh3 dir)
{
	SYMLINK3args a = { .where = { dir, arg(s->name) },
			   .symlink.symlink_data = arg(s->to) };
	SYMLINK3res r;

	nfs_call(client_of(s), symlink, &a, &r);
	return r.status;
}

static int client_rename(const struct step *s, nfs_fh3 dir)
{
	RENAME3args a = { .from = { dir, arg(s->name) },
			  .to = { dir, arg(s->to) } };
	RENAME3res r;

	nfs_call(client_of(s), rename, &a, &r);
	return r.status;
}

static int client_rmdir(const struct step *s, nfs_fh3 dir)
{
	RMDIR3args a = { .object = { dir, arg(s->name) } };
	RMDIR3res r;

	nfs_call(client_of(s), rmdir, &a, &r);
	return r.status;
}

/* These need the handle of the file. */

static int client_link(const struct step *s, nfs_fh3 dir, nfs_fh3 fh)
{
	LINK3args a = { .file = fh, .link = { dir, arg(s->to) } };
	LINK3res r;

	nfs_call(client_of(s), link, &a, &r);
	return r.status;
}

static int client_write(const struct step *s, nfs_fh3 fh)
{
	WRITE3args a = { .file = fh, .count = 1, .stable = FILE_SYNC,
			 .data = { 1, arg("x") } };
	WRITE3res r;

	nfs_call(client_of(s), write, &a, &r);
	return r.status;
}

static int client_read(const struct step *s, nfs_fh3 fh)
{
	READ3args a = { .file = fh, .count = 1 };
	READ3res r;

	nfs_call(client_of(s), read, &a, &r);
	return r.status;
}

static int client_set(const struct step *s, nfs_fh3 fh)
{
	SETATTR3args a = { .object = fh };
	SETATTR3res r;

	if (s->verb == MODE)
		a.new_attributes = mode_set(s->n);
	a.new_attributes.size.set_it = s->verb == CUT;
	a.new_attributes.size.set_size3_u.size = s->n;
	a.new_attributes.uid.set_it = s->verb == OWN;
	a.new_attributes.uid.set_uid3_u.uid = s->n;
	a.new_attributes.gid.set_it = s->verb == GROUP;
	a.new_attributes.gid.set_gid3_u.gid = s->n;
	if (s->verb == TOUCH) {
		a.new_attributes.atime.set_it = SET_TO_SERVER_TIME;
		a.new_attributes.mtime.set_it = SET_TO_SERVER_TIME;
	}
	nfs_call(client_of(s), setattr, &a, &r);
	return r.status;
}

static int client_with(const struct step *s, nfs_fh3 dir)
{
	LOOKUP3args a = { .what = { dir, arg(s->name) } };
	LOOKUP3res r;

	nfs_call(client_of(s), lookup, &a, &r);
	if (r.status != NFS3_OK)
		return r.status;
	switch (s->verb) {
	case LINK:
		return client_link(s, dir, r.LOOKUP3res_u.resok.object);
	case EDIT:
		return client_write(s, r.LOOKUP3res_u.resok.object);
	case LOOK:
		return client_read(s, r.LOOKUP3res_u.resok.object);
	default:
		return client_set(s, r.LOOKUP3res_u.resok.object);
	}
}

int step_client(const struct step *s, nfs_fh3 dir)
{
	switch (s->verb) {
	case MAKE:
		return client_make(s, dir);
	case DIRECTORY:
		return client_mkdir(s, dir);
	case FIFO:
		return client_mkfifo(s, dir);
	case SYMLINK:
		return client_symlink(s, dir);
	case RENAME:
		return client_rename(s, dir);
	case REMOVE:
		return try_remove(client_of(s), dir, s->name);
	case RMDIR:
		return client_rmdir(s, dir);
	default:
		return client_with(s, dir);
	}
}
