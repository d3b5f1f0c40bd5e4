/* SPDX-License-Identifier: BSD-2-Clause */
/* move - mv and ln: a file gets a name on the same server. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "tools/nfs/tool.h"

static bool is_same_server(const struct nfsc_url *a, const struct nfsc_url *b)
{
	return strcasecmp(a->host, b->host) == 0 && a->port == b->port &&
	       a->transport == b->transport;
}

/* The object that the URL names.  A symbolic link is followed only to a
 * directory, as mv(1) does: otherwise the link itself has the new name. */
static int find_last(struct tool *t, struct tool_object *at)
{
	struct tool_object end;
	int err = tool_find(t, at, false, true);

	if (err != TOOL_OK || at->fh.len == 0 || at->attr.attr.type != VFS_LNK)
		return err;
	err = tool_find(t, &end, true, true);
	if (err == TOOL_OK && end.fh.len > 0 && end.attr.attr.type == VFS_DIR)
		*at = end;
	return err;
}

/* The new name: @name below the URL's object if that is a directory, otherwise
 * the name in the URL.  at->fh.len is 0 if nothing has the new name yet. */
static int find_target(struct tool *t, const char *name, struct tool_object *at)
{
	struct nfs3_fh dir;
	int err = find_last(t, at);

	if (err != TOOL_OK)
		return err;
	if (at->fh.len > 0 && at->attr.attr.type == VFS_DIR) {
		dir = at->fh;
		return tool_lookup(t, &dir, name, at);
	}
	if (t->o->into)
		return tool_complain(t->text, 0, at->fh.len > 0 ?
				     NFS_NOTDIR : NFS_NOENT);
	/* The server has let a file itself be mounted. */
	return at->parent.len == 0 ? tool_complain(t->text, 0, NFS_EXIST) :
	       TOOL_OK;
}

static bool is_same_object(const struct tool_object *a,
			   const struct tool_object *b)
{
	return a->fh.len > 0 && b->fh.len > 0 &&
	       a->attr.fsid == b->attr.fsid &&
	       a->attr.attr.fileid == b->attr.attr.fileid;
}

bool tool_give_name(struct tool *t, struct nfsc_op *op,
		    const struct tool_object *from)
{
	uint32_t done = op->kind == NFS_OP_LINK ? NFS_EXIST : NFS_NOENT;
	struct tool_object now = { .fh.len = 0 };

	if (session_do(t->s, op) == 0 && op->status == done &&
	    tool_lookup(t, &op->into, op->target, &now) == TOOL_OK &&
	    is_same_object(&now, from))
		return true;
	return op->err == 0 && op->status == 0;
}

/* Either of the two can be the cause. */
static int complain_both(const char *from, const char *to, int err,
			 uint32_t status)
{
	fputs("gannet-nfs: ", stderr);
	tool_put_name(stderr, from);
	fputs(" to ", stderr);
	tool_put_name(stderr, to);
	return tool_reason(err, status);
}

static int rename_from(struct tool *to, const char *url)
{
	struct tool_object dir, from, at;
	struct nfsc_op op;
	struct tool t;
	int err = tool_open_above(&t, url, to->o, &dir);

	if (err != TOOL_OK)
		return err;
	err = tool_lookup(&t, &dir.fh, dir.name, &from);
	if (err == TOOL_OK && from.fh.len == 0)
		err = tool_complain(url, 0, NFS_NOENT);
	if (err == TOOL_OK)
		err = find_target(to, dir.name, &at);
	/* RENAME between two names of one file does nothing, and succeeds.  One
	 * name can change its case where the server ignores case. */
	if (err == TOOL_OK && is_same_object(&at, &from) &&
	    (from.attr.attr.nlink > 1 || strcmp(at.name, dir.name) == 0)) {
		fprintf(stderr, "gannet-nfs: %s: the same file as %s\n", url,
			to->text);
		err = TOOL_FAILED;
	}
	if (err == TOOL_OK) {
		op = (struct nfsc_op){
			.kind = NFS_OP_RENAME, .fh = dir.fh, .name = dir.name,
			.into = at.parent, .target = at.name };
		if (!tool_give_name(&t, &op, &from))
			err = complain_both(url, to->text, op.err, op.status);
	}
	tool_close(&t);
	return err;
}

static int link_from(struct tool *to, const char *url)
{
	struct tool_object from, at;
	struct nfsc_op op;
	struct tool t;
	int err = tool_open(&t, url, to->o);

	if (err != TOOL_OK)
		return err;
	err = tool_find(&t, &from, false, false);
	if (err == TOOL_OK)
		err = find_target(to, from.name, &at);
	/* An earlier link to the same file would look like a lost answer. */
	if (err == TOOL_OK && at.fh.len > 0)
		err = complain_both(url, to->text, 0, NFS_EXIST);
	if (err == TOOL_OK) {
		op = (struct nfsc_op){
			.kind = NFS_OP_LINK, .fh = from.fh,
			.into = at.parent, .target = at.name };
		if (!tool_give_name(&t, &op, &from))
			err = complain_both(url, to->text, op.err, op.status);
	}
	tool_close(&t);
	return err;
}

/* A symbolic link: its text is any path, and need not lead anywhere.  The name
 * is the path's last part, without the slashes behind it. */
static int link_to(struct tool *to, const char *text)
{
	char name[NFS_NAME_MAX + 1];
	struct tool_object at;
	struct nfsc_op op;
	size_t end = strlen(text), start;
	int err;

	while (end > 1 && text[end - 1] == '/')
		end--;
	for (start = end; start > 0 && text[start - 1] != '/'; start--)
		;
	if (end - start > NFS_NAME_MAX)
		return tool_complain(text, -ENAMETOOLONG, 0);
	memcpy(name, text + start, end - start);
	name[end - start] = '\0';
	err = find_target(to, name, &at);
	if (err != TOOL_OK)
		return err;
	op = (struct nfsc_op){ .kind = NFS_OP_SYMLINK, .fh = at.parent,
			       .name = at.name, .target = text };
	if (session_do(to->s, &op) < 0 || op.status != 0)
		return complain_both(text, to->text, op.err, op.status);
	return TOOL_OK;
}

/* All of @args but the last, which is where to. */
static int name_each(int n, char *const args[], const struct tool_options *o,
		     int (*name)(struct tool *to, const char *from))
{
	struct tool to, from;
	int err, worst;

	worst = tool_parse(&to, args[n - 1], o);
	for (int i = 0; i < n - 1 && !o->symbolic && worst == TOOL_OK; i++) {
		worst = tool_parse(&from, args[i], o);
		if (worst == TOOL_OK && !is_same_server(&from.url, &to.url)) {
			fprintf(stderr, "gannet-nfs: %s: not on the server of "
				"%s\n", args[i], args[n - 1]);
			worst = TOOL_USAGE;
		}
	}
	if (worst == TOOL_OK)
		worst = tool_connect_above(&to);
	if (worst != TOOL_OK)
		return worst;
	for (int i = 0; i < n - 1; i++) {
		err = name(&to, args[i]);
		worst = err > worst ? err : worst;
	}
	tool_close(&to);
	return worst;
}

int tool_mv(int n, char *const args[], const struct tool_options *given)
{
	struct tool_options o = *given;

	o.into = n > 2;
	return name_each(n, args, &o, rename_from);
}

int tool_ln(int n, char *const args[], const struct tool_options *given)
{
	struct tool_options o = *given;

	o.into = n > 2;
	return name_each(n, args, &o, o.symbolic ? link_to : link_from);
}
