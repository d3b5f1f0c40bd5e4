/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perm - a caller's permissions on a file that the server has open.
 *
 * Only the kernel knows (access control lists, security modules), so it is
 * asked, as the caller; its answers are kept with the caller's credentials
 * and the file's ctime, which changes with everything they depend on.  An
 * answer about a file that was changed a moment ago is not kept, since the
 * clock that stamps ctime may not have ticked before the next change.
 */
#include "vfs/posix/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/rcu.h"

struct posix_verdict {
	struct rcu_head rcu;
	struct timespec ctime;
	uint8_t known;			/* POSIX_R, _W, _X */
	uint8_t granted;
	struct posix_who who;
};

static bool fits(const struct posix_verdict *v, const struct posix_fs *fs,
		 const struct vfs_cred *cred, const struct stat *st)
{
	return v && posix_same_time(&v->ctime, &st->st_ctim) &&
	       (!fs->privileged || posix_who_is(&v->who, cred));
}

/* Finds the answers for @cred; returns their slot, or -1. */
static int recall(struct posix_node *n, const struct vfs_cred *cred,
		  const struct stat *st, uint8_t *known, uint8_t *granted)
{
	int slot = -1;

	*known = 0;
	*granted = 0;
	rcu_enter();
	for (int i = 0; i < POSIX_VERDICTS && slot < 0; i++) {
		struct posix_verdict *v =
			atomic_load_explicit(&n->verdict[i],
					     memory_order_acquire);

		if (fits(v, posix_fs_of(n), cred, st)) {
			*known = v->known;
			*granted = v->granted;
			slot = i;
		}
	}
	rcu_exit();
	return slot;
}

static void free_verdict(struct rcu_head *head)
{
	rcu_waited();
	rcu_seen(head);
	free(container_of(head, struct posix_verdict, rcu));
}

/* In @slot, or in place of another caller's. */
static void remember(struct posix_node *n, const struct vfs_cred *cred,
		     const struct stat *st, int slot,
		     const uint8_t known_granted[2])
{
	struct posix_verdict *v, *old;

	v = malloc(sizeof(*v));
	if (!v)
		return;
	v->ctime = st->st_ctim;
	v->known = known_granted[0];
	v->granted = known_granted[1];
	v->who = posix_who(cred);
	if (slot < 0)
		slot = (cred->uid + st->st_ctim.tv_nsec) % POSIX_VERDICTS;
	old = atomic_exchange(&n->verdict[slot], v);
	if (old) {
		rcu_published(&old->rcu);
		call_rcu(&old->rcu, free_verdict);
	}
}

void posix_verdicts_free(struct posix_node *n)
{
	for (int i = 0; i < POSIX_VERDICTS; i++)
		free(n->verdict[i]);
}

/* AT_EACCESS means the file system ids here. */
static int ask(int fd, unsigned bit)
{
	if (syscall(SYS_faccessat2, fd, "", (int)bit,
		    AT_EACCESS | AT_EMPTY_PATH) == 0)
		return bit;
	return errno == EACCES || errno == EROFS || errno == EPERM ||
	       errno == ETXTBSY ? 0 : -errno;
}

int posix_granted(const struct vfs_op *op, struct posix_node *n,
		  const struct stat *st, unsigned want)
{
	uint8_t known, granted;
	int slot = recall(n, op->cred, st, &known, &granted);
	bool keep;
	int err;

	if (likely((want & ~known) == 0))
		return granted & want;
	if (!posix_may_block(op, posix_fs_of(n)))
		return -EAGAIN;		/* it may have to read a list */
	err = posix_cred_set(posix_fs_of(n), op);
	if (err < 0)
		return err;
	keep = posix_settled(st);
	for (unsigned bit = 1; bit <= POSIX_R; bit <<= 1) {
		if (!(want & ~known & bit))
			continue;
		err = ask(n->fd, bit);
		if (err < 0)
			return err;
		known |= bit;
		granted |= err;
	}
	if (keep)
		remember(n, op->cred, st, slot,
			 (uint8_t [2]){ known, granted });
	return granted & want;
}

void posix_was_granted(const struct vfs_op *op, struct posix_node *n,
		       const struct stat *st, unsigned what)
{
	uint8_t known, granted;
	int slot = recall(n, op->cred, st, &known, &granted);

	if ((known & granted & what) != what)
		remember(n, op->cred, st, slot,
			 (uint8_t [2]){ known | what, granted | what });
}

int posix_check_io(const struct vfs_op *op, struct posix_node *n,
		   const struct stat *st, unsigned want)
{
	const struct posix_fs *fs = posix_fs_of(n);
	uint32_t uid = fs->privileged ? op->cred->uid : fs->uid;
	int got;

	if (n->type == VFS_REG && (uid == st->st_uid || uid == 0))
		return 0;
	got = posix_granted(op, n, st, want);
	if (got == 0 && want == POSIX_R && n->type == VFS_REG)
		got = posix_granted(op, n, st, POSIX_X);
	if (got < 0)
		return got;
	return got ? 0 : -EACCES;
}

/* Which of the kernel's permissions each ACCESS bit needs (all of them). */
static const struct {
	uint32_t bit;
	unsigned dir, other;		/* 0: never granted */
} needs[] = {
	{ VFS_ACCESS_READ,	POSIX_R,	   POSIX_R },
	{ VFS_ACCESS_LOOKUP,	POSIX_X,	   0 },
	{ VFS_ACCESS_MODIFY,	POSIX_W | POSIX_X, POSIX_W },
	{ VFS_ACCESS_EXTEND,	POSIX_W | POSIX_X, POSIX_W },
	{ VFS_ACCESS_DELETE,	POSIX_W | POSIX_X, 0 },
	{ VFS_ACCESS_EXECUTE,	0,		   POSIX_X },
};

int posix_access(struct vfs_op *op)
{
	struct posix_node *node = to_posix(op->node);
	bool is_dir = node->type == VFS_DIR;
	unsigned ask_for = 0;
	struct stat st;
	int got;

	if (op->nonblock && posix_fs_of(node)->remote)
		return -EAGAIN;
	got = posix_stat(node, &st);
	if (got < 0)
		return got;
	for (unsigned i = 0; i < ARRAY_SIZE(needs); i++)
		if (op->want & needs[i].bit)
			ask_for |= is_dir ? needs[i].dir : needs[i].other;
	got = posix_granted(op, node, &st, ask_for);
	if (got < 0)
		return got;
	op->granted = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(needs); i++) {
		unsigned need = is_dir ? needs[i].dir : needs[i].other;

		if (need && (got & need) == need)
			op->granted |= op->want & needs[i].bit;
	}
	if (op->attr)
		posix_attr(posix_fs_of(node), &st, op->attr);
	return 0;
}
