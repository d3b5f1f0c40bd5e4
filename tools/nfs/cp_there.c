/* SPDX-License-Identifier: BSD-2-Clause */
/* cp_there - a file of the server that is written aside. */
#include <string.h>

#include "tools/nfs/cp.h"

static int make_guarded(struct tool *t, const struct nfs3_fh *dir,
			const char *aside, uint32_t mode, struct nfsc_op *op)
{
	*op = (struct nfsc_op){ .kind = NFS_OP_CREATE, .fh = *dir,
				.name = aside, .mode = mode, .guarded = true };
	return session_do(t->s, op);
}

/* Another copy of the same source loses its part here, and gets an error.  If
 * it is about to place its part, it places this one instead, which is
 * incomplete: RENAME has no handle of the file to compare. */
int there_make(struct tool *t, const struct nfs3_fh *dir, const char *aside,
	       uint32_t mode, struct tool_object *made)
{
	struct nfsc_op op, gone = { .kind = NFS_OP_REMOVE, .fh = *dir,
				    .name = aside };
	int err;

	if (make_guarded(t, dir, aside, mode, &op) == 0 &&
	    op.status == NFS_EXIST && session_do(t->s, &gone) == 0)
		make_guarded(t, dir, aside, mode, &op);
	if (op.err < 0 || op.status != 0)
		return tool_complain(t->text, op.err, op.status);
	*made = (struct tool_object){ .fh = op.obj, .attr = op.attr,
				      .parent = *dir };
	memcpy(made->name, aside, strlen(aside) + 1);
	/* The handle is not obligatory (RFC 1813 section 3.3.8). */
	if (made->fh.len > 0 && made->attr.has)
		return TOOL_OK;
	err = tool_lookup(t, dir, aside, made);
	return err == TOOL_OK && made->fh.len == 0 ?
	       tool_complain(t->text, 0, NFS_NOENT) : err;
}

/* Others who may write to the directory can guess the name.  Its data can be in
 * the server's memory, and a restart would lose it: so all of it is committed
 * before it is read. */
int there_find(struct tool *t, const struct nfs3_fh *dir, const char *aside,
	       uint64_t size, struct tool_object *made)
{
	struct nfsc_op op = { .kind = NFS_OP_COMMIT };
	int err = tool_lookup(t, dir, aside, made);
	const struct vfs_attr *a = &made->attr.attr;

	if (err != TOOL_OK || made->fh.len == 0)
		return err;
	op.fh = made->fh;
	if (a->type == VFS_REG && a->nlink == 1 && a->size <= size &&
	    a->uid == t->o->config.uid && session_do(t->s, &op) == 0 &&
	    op.status == 0)
		return TOOL_OK;
	made->fh.len = 0;
	return op.err < 0 ? tool_complain(t->text, op.err, 0) : TOOL_OK;
}

int there_place(struct tool *t, const struct tool_object *made,
		const char *name)
{
	struct nfsc_op op = { .kind = NFS_OP_RENAME, .fh = made->parent,
			      .name = made->name, .into = made->parent,
			      .target = name };

	return tool_give_name(t, &op, made) ? TOOL_OK :
	       tool_complain(t->text, op.err, op.status);
}

/* Another copy of the same source can have a part of that name by now. */
void there_drop(struct tool *t, const struct tool_object *made)
{
	struct nfsc_op op = { .kind = NFS_OP_REMOVE, .fh = made->parent,
			      .name = made->name };
	struct nfsc_op now = { .kind = NFS_OP_LOOKUP, .fh = made->parent,
			       .name = made->name };

	if (session_do(t->s, &now) == 0 && now.status == 0 &&
	    now.obj.len == made->fh.len &&
	    memcmp(now.obj.data, made->fh.data, made->fh.len) == 0)
		session_do(t->s, &op);
}
