/* SPDX-License-Identifier: BSD-2-Clause */
/* change - mkdir, touch, chmod and rm. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/nfs/tool.h"

/* The mode of what this process makes. */
static uint32_t new_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0777 & ~mask;
}

int tool_make_dir(struct tool *t, const struct nfs3_fh *dir, const char *name,
		  uint32_t mode, struct nfsc_op *op)
{
	*op = (struct nfsc_op){ .kind = NFS_OP_MKDIR, .fh = *dir,
				.name = name, .mode = mode };
	return session_do(t->s, op);
}

static int make_one(struct tool *t, bool parents)
{
	struct tool_object at;
	struct nfsc_op op;
	int err = tool_find(t, &at, true, true);

	if (err != TOOL_OK)
		return err;
	if (at.fh.len > 0 && parents && at.attr.attr.type == VFS_DIR)
		return TOOL_OK;
	if (at.fh.len > 0)
		return tool_complain(t->text, 0, NFS_EXIST);
	if (tool_make_dir(t, &at.parent, at.name, new_mode(), &op) < 0 ||
	    (op.status != 0 && !(parents && op.status == NFS_EXIST)))
		return tool_complain(t->text, op.err, op.status);
	return TOOL_OK;
}

/* Makes each of the directories on the way, from the top. */
static int make_parents(struct tool *t)
{
	char whole[NFS_PATH_MAX];
	size_t len = 0;
	int err;

	memcpy(whole, t->mount.rest, sizeof(whole));
	do {
		len += strspn(whole + len, "/");
		len += strcspn(whole + len, "/");
		snprintf(t->mount.rest, sizeof(t->mount.rest), "%.*s",
			 (int)len, whole);
		err = make_one(t, true);
	} while (err == TOOL_OK && whole[len]);
	return err;
}

int tool_mkdir(const char *url, const struct tool_options *o)
{
	struct tool t;
	int err = tool_open(&t, url, o);

	if (err != TOOL_OK)
		return err;
	err = o->parents ? make_parents(&t) : make_one(&t, false);
	tool_close(&t);
	return err;
}

/* ---- touch and chmod */

/* A file that is made meanwhile is as good. */
static int touch_one(struct tool *t)
{
	struct tool_object at;
	struct nfsc_op op;
	int err = tool_find(t, &at, true, true);

	if (err != TOOL_OK)
		return err;
	op = (struct nfsc_op){ .kind = NFS_OP_CREATE, .fh = at.parent,
			       .name = at.name, .mode = new_mode() & 0666,
			       .guarded = true };
	if (at.fh.len == 0 && session_do(t->s, &op) == 0 &&
	    op.status == NFS_EXIST)
		return TOOL_OK;
	if (at.fh.len > 0) {
		op = (struct nfsc_op){ .kind = NFS_OP_TOUCH, .fh = at.fh };
		session_do(t->s, &op);
	}
	if (op.err < 0 || op.status != 0)
		return tool_complain(t->text, op.err, op.status);
	return TOOL_OK;
}

int tool_touch(const char *url, const struct tool_options *o)
{
	struct tool t;
	int err = tool_open(&t, url, o);

	if (err != TOOL_OK)
		return err;
	err = touch_one(&t);
	tool_close(&t);
	return err;
}

static int chmod_one(const char *url, uint32_t mode,
		    const struct tool_options *o)
{
	struct tool_object obj;
	struct nfsc_op op;
	struct tool t;
	int err = tool_open(&t, url, o);

	if (err != TOOL_OK)
		return err;
	err = tool_find(&t, &obj, true, false);
	op = (struct nfsc_op){ .kind = NFS_OP_SET, .fh = obj.fh, .mode = mode,
			       .no_mtime = true };
	if (err == TOOL_OK && (session_do(t.s, &op) < 0 || op.status != 0))
		err = tool_complain(url, op.err, op.status);
	tool_close(&t);
	return err;
}

int tool_chmod(int n, char *const args[], const struct tool_options *o)
{
	char *end;
	unsigned long mode = strtoul(args[0], &end, 8);
	int err, worst = TOOL_OK;

	if (args[0][strspn(args[0], "01234567")] || end == args[0] ||
	    mode > 07777) {
		fprintf(stderr, "gannet-nfs: chmod %s: expected an octal mode, "
			"0 to 7777\n", args[0]);
		return TOOL_USAGE;
	}
	for (int i = 1; i < n; i++) {
		err = chmod_one(args[i], (uint32_t)mode, o);
		worst = err > worst ? err : worst;
	}
	return worst;
}

/* ---- rm */

static int remove_at(struct tool *t, const struct nfs3_fh *dir,
		     const char *name, bool is_dir, struct nfsc_op *op)
{
	*op = (struct nfsc_op){
		.kind = is_dir ? NFS_OP_RMDIR : NFS_OP_REMOVE,
		.fh = *dir, .name = name,
	};
	if (session_do(t->s, op) < 0)
		return op->err;
	/* Another client has removed it, or the first of two tries has. */
	if (op->status == NFS_NOENT && t->o->force)
		op->status = 0;
	return op->status != 0 ? -EIO : 0;
}

static int remove_visit(struct walk *w, struct walk_at *at, enum walk_step step)
{
	struct nfsc_op op;

	/* The top is in a directory that the walk does not know. */
	if (step == WALK_ENTER || !at->up)
		return TOOL_OK;
	if (remove_at(w->t, &at->up->fh, at->name, step == WALK_LEAVE,
		      &op) < 0)
		return walk_complain(at, op.err, op.status);
	return TOOL_OK;
}

static int remove_one(struct tool *t, const struct tool_object *dir)
{
	struct walk w = { .t = t, .visit = remove_visit };
	struct tool_object obj;
	struct nfsc_op op;
	int err = tool_lookup(t, &dir->fh, dir->name, &obj);
	bool is_dir;

	if (err != TOOL_OK)
		return err;
	if (obj.fh.len == 0)
		return t->o->force ? TOOL_OK :
		       tool_complain(t->text, 0, NFS_NOENT);
	is_dir = obj.attr.attr.type == VFS_DIR;
	if (is_dir && !t->o->recursive) {
		fprintf(stderr, "gannet-nfs: %s: a directory, which goes with "
			"-r only\n", t->text);
		return TOOL_FAILED;
	}
	if (is_dir)
		err = tool_walk(&w, &obj, t->text);
	if (err == TOOL_OK &&
	    remove_at(t, &dir->fh, dir->name, is_dir, &op) < 0)
		err = tool_complain(t->text, op.err, op.status);
	return err;
}

int tool_rm(const char *url, const struct tool_options *given)
{
	struct tool_options o = *given;
	struct tool_object dir;
	struct tool t;
	int err;

	o.all = true;
	err = tool_open_above(&t, url, &o, &dir);
	if (err != TOOL_OK)
		return err;
	err = remove_one(&t, &dir);
	tool_close(&t);
	return err;
}
