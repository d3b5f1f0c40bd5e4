/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perm - a caller's permissions on a file that the server has open.
 *
 * Only the kernel knows (access control lists, security modules), so it is
 * asked, as the caller; its answers are kept with the caller's identity and the
 * file's ctime, which changes with everything they depend on.  An answer about
 * a file that was changed a moment ago is not kept, since the clock that stamps
 * ctime might not tick before the next change; nor that the file system is
 * read-only, since a remount ends that without a new ctime.  Where a file
 * system can decide at each open, answers depend on more than the ctime shows,
 * so each call asks.
 *
 * A node has the answers of one ctime for up to CALLERS_MAX callers.  A set of
 * answers is constant once published: another answer makes a new set.  When two
 * threads add one at the same time, the later one is lost, and asked for again.
 */
#include "vfs/posix/attr.h"
#include "vfs/posix/cred.h"
#include "vfs/posix/opened.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/rcu.h"

#define CALLERS_MAX	64

/* The answers for one caller. */
struct verdict {
	struct posix_who who;
	uint8_t known;			/* POSIX_R, _W, _X */
	uint8_t granted;
};

struct posix_verdicts {
	struct rcu_head rcu;
	struct timespec ctime;
	uint32_t n;
	uint32_t oldest;		/* once n is CALLERS_MAX */
	struct verdict of[];
};

/* The place of @cred's answers, or n.  A server that is not privileged acts as
 * itself for all callers. */
static uint32_t perm_place(const struct posix_verdicts *v,
			   const struct posix_fs *fs,
			   const struct vfs_cred *cred)
{
	uint32_t i = 0;

	if (fs->privileged)
		while (i < v->n && !posix_who_is(&v->of[i].who, cred))
			i++;
	return i;
}

/* The answers that the file's ctime leaves valid, or NULL.  In an RCU section.
 */
static struct posix_verdicts *perm_valid(struct posix_node *n,
					 const struct stat *st,
					 struct posix_verdicts **current)
{
	*current = atomic_load_explicit(&n->verdicts, memory_order_acquire);
	return *current && posix_same_time(&(*current)->ctime, &st->st_ctim) ?
	       *current : NULL;
}

static void perm_recall(struct posix_node *n, const struct vfs_cred *cred,
			const struct stat *st, uint8_t *known, uint8_t *granted)
{
	struct posix_verdicts *v, *current;
	uint32_t i;

	*known = 0;
	*granted = 0;
	rcu_enter();
	v = perm_valid(n, st, &current);
	i = v ? perm_place(v, posix_fs_of(n), cred) : 0;
	if (v && i < v->n) {
		*known = v->of[i].known;
		*granted = v->of[i].granted;
	}
	rcu_exit();
}

static void free_verdicts(struct rcu_head *head)
{
	free(container_of(head, struct posix_verdicts, rcu));
}

/* @v with @cred's answers; @v can be NULL. */
static struct posix_verdicts *perm_add(const struct posix_verdicts *v,
				       const struct posix_fs *fs,
				       const struct vfs_cred *cred,
				       const struct verdict *answers)
{
	uint32_t had = v ? v->n : 0, at = v ? perm_place(v, fs, cred) : 0;
	uint32_t n = at < had || had == CALLERS_MAX ? had : had + 1;
	struct posix_verdicts *new;

	new = malloc(sizeof(*new) + n * sizeof(new->of[0]));
	if (!new)
		return NULL;
	new->n = n;
	new->oldest = v ? v->oldest : 0;
	if (had)
		memcpy(new->of, v->of, had * sizeof(new->of[0]));
	if (at == CALLERS_MAX) {
		at = new->oldest;
		new->oldest = (at + 1) % CALLERS_MAX;
	}
	new->of[at] = *answers;
	return new;
}

static void perm_remember(struct posix_node *n, const struct vfs_cred *cred,
			  const struct stat *st, unsigned known,
			  unsigned granted)
{
	const struct verdict answers = { posix_who(cred), (uint8_t)known,
					 (uint8_t)granted };
	struct posix_verdicts *v, *old, *new;

	rcu_enter();
	v = perm_valid(n, st, &old);
	new = perm_add(v, posix_fs_of(n), cred, &answers);
	if (new) {
		new->ctime = st->st_ctim;
		if (!atomic_compare_exchange_strong(&n->verdicts, &old, new)) {
			old = NULL;
			free(new);
		}
	}
	rcu_exit();
	if (new && old) {
		rcu_later(&old->rcu, free_verdicts);
	}
}

/*
 * The bit if it is granted, 0 if not, or -errno.  -EROFS: not granted, but
 * don't keep that, since a remount ends it without a new ctime.  AT_EACCESS
 * means the file system ids here.
 */
static int perm_ask(const struct posix_fs *fs, int fd, unsigned bit)
{
	char path[32];
	long rc;

	if (likely(!fs->no_faccessat2)) {
		rc = syscall(SYS_faccessat2, fd, "", (int)bit,
			     AT_EACCESS | AT_EMPTY_PATH);
	} else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		rc = syscall(SYS_faccessat, AT_FDCWD, path, (int)bit);
	}
	if (rc == 0)
		return bit;
	return errno == EACCES || errno == EPERM || errno == ETXTBSY ? 0 :
	       -errno;
}

int posix_granted(const struct vfs_op *op, struct posix_node *n,
		  const struct stat *st, unsigned want)
{
	uint8_t known, granted, had;
	bool keep;
	int err;

	known = granted = 0;
	if (likely(!posix_fs_of(n)->as_caller))
		perm_recall(n, op->cred, st, &known, &granted);
	if (likely((want & ~known) == 0))
		return granted & want;
	if (!posix_may_block(op, posix_fs_of(n)))
		return -EAGAIN;		/* a list might have to be read */
	err = posix_cred_set(posix_fs_of(n), op);
	if (err < 0)
		return err;
	keep = !posix_fs_of(n)->as_caller && posix_settled(st);
	had = known;
	for (unsigned bit = 1; bit <= POSIX_R; bit <<= 1) {
		if (!(want & ~known & bit))
			continue;
		err = perm_ask(posix_fs_of(n), n->fd, bit);
		if (err == -EROFS)
			continue;
		if (err < 0)
			return err;
		known |= bit;
		granted |= err;
	}
	if (keep && known != had)
		perm_remember(n, op->cred, st, known, granted);
	return granted & want;
}

void posix_was_granted(const struct vfs_op *op, struct posix_node *n,
		       const struct stat *st, unsigned what)
{
	uint8_t known, granted;

	if (posix_fs_of(n)->as_caller)
		return;
	perm_recall(n, op->cred, st, &known, &granted);
	if ((known & granted & what) != what)
		perm_remember(n, op->cred, st, known | what, granted | what);
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

/* @got without POSIX_R where an open as the caller is refused. */
static int without_open(const struct vfs_op *op, struct posix_node *n, int got)
{
	struct posix_use u;
	int err;

	if (!posix_fs_of(n)->as_caller || n->type != VFS_REG)
		return got;
	err = posix_use_begin(&u, op, n, O_RDONLY);
	if (err == -EACCES || err == -EPERM)
		return got & ~POSIX_R;
	if (err == 0)
		posix_use_end(n, &u);
	return err < 0 ? err : got;
}

int posix_access(struct vfs_op *op)
{
	struct posix_node *node = to_posix(op->node);
	bool is_dir = node->type == VFS_DIR;
	unsigned ask_for = 0;
	struct stat st;
	int got;

	got = posix_begin(posix_fs_of(node), op);
	if (got == 0)
		got = posix_stat(node, &st);
	if (got < 0)
		return got;
	for (unsigned i = 0; i < ARRAY_SIZE(needs); i++)
		if (op->access.want & needs[i].bit)
			ask_for |= is_dir ? needs[i].dir : needs[i].other;
	got = posix_granted(op, node, &st, ask_for);
	if (got >= 0 && op->access.want & VFS_ACCESS_OPEN)
		got = without_open(op, node, got);
	if (got < 0)
		return got;
	op->access.granted = posix_fs_of(node)->as_caller ?
		      op->access.want & VFS_ACCESS_OPEN : 0;
	for (unsigned i = 0; i < ARRAY_SIZE(needs); i++) {
		unsigned need = is_dir ? needs[i].dir : needs[i].other;

		if (need && (got & need) == need)
			op->access.granted |= op->access.want & needs[i].bit;
	}
	if (op->attr)
		posix_attr(posix_fs_of(node), &st, op->attr);
	return 0;
}
