/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files - the directory and the files of the workloads.
 *
 * All files lie in one directory with a unique name, which is made here: no
 * other files are touched.
 */
#include "tools/bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { AT_A_TIME = 16, NAMES_TRIED = 8, PATIENCE = 100 };

/* The same done to many files, of which several are under way at a time. */
struct batch {
	struct target	*t;
	enum nfsc_kind	 kind;
	const struct nfs3_fh *dir;	/* that has the names */
	/* Names end in the file's number, up to files / per; COMMIT has only
	 * handles. */
	const char	*prefix;
	unsigned	 per;		/* two numbers; 0: one */
	struct nfs3_fh	*fhs;		/* of CREATE and COMMIT, or NULL */
	bool		 to_the_end;	/* an interruption does not end it */
	unsigned	 patience;
	unsigned	 started;	/* files, from the first on */
	int		 code;
};

struct errand {
	struct nfsc_op	op;
	unsigned	file;
	char		name[40];
};

static void set_errand(const struct batch *b, struct errand *e, unsigned file)
{
	e->file = file;
	e->op = (struct nfsc_op){ .kind = b->kind, .name = e->name,
				  .mode = 0600 };
	if (b->kind == NFS_OP_COMMIT)
		e->op.fh = b->fhs[file];
	else
		e->op.fh = *b->dir;
	if (b->per)
		snprintf(e->name, sizeof(e->name), "%s%u-%u", b->prefix,
			 file / b->per, file % b->per);
	else
		snprintf(e->name, sizeof(e->name), "%s%u", b->prefix, file);
}

static void submit_errand(struct batch *b, struct errand *e, unsigned *flying)
{
	int err = session_submit(b->t->t->s, &e->op);

	if (err < 0)
		b->code = tool_complain(b->t->t->text, err, 0);
	else
		(*flying)++;
}

/* A handle that the reply to CREATE has left out. */
static void look_up_late(struct batch *b, unsigned n)
{
	struct tool_object obj;
	struct errand e;

	for (unsigned i = 0; i < n && b->code == TOOL_OK; i++) {
		if (b->fhs[i].len > 0)
			continue;
		set_errand(b, &e, i);
		b->code = tool_lookup(b->t->t, b->dir, e.name, &obj);
		b->fhs[i] = obj.fh;
	}
}

/* True if it goes out again: the server asks for patience. */
static bool take_errand(struct batch *b, struct errand *e)
{
	struct nfsc_op *op = &e->op;
	bool gone = op->status == NFS_NOENT &&
		    (b->kind == NFS_OP_REMOVE || b->kind == NFS_OP_RMDIR);

	if (op->err == 0 && op->status == NFS_JUKEBOX && b->patience > 0) {
		b->patience--;
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		return true;
	}
	if (op->err < 0 || (op->status != 0 && !gone)) {
		if (b->code == TOOL_OK)
			b->code = tool_complain(b->t->dir_name, op->err,
						op->status);
	} else if (b->kind == NFS_OP_CREATE && b->fhs) {
		b->fhs[e->file] = op->obj;
	}
	return false;
}

static int batch_do(struct batch *b, unsigned n)
{
	struct errand errands[AT_A_TIME], *idle[AT_A_TIME], *e;
	unsigned nidle = AT_A_TIME, flying = 0;

	b->patience = PATIENCE;
	for (unsigned i = 0; i < AT_A_TIME; i++)
		idle[i] = &errands[i];
	for (;;) {
		while (nidle > 0 && b->started < n && b->code == TOOL_OK &&
		       (b->to_the_end || !bench_interrupted())) {
			set_errand(b, idle[--nidle], b->started++);
			submit_errand(b, idle[nidle], &flying);
		}
		if (flying == 0)
			break;
		e = container_of(session_wait(b->t->t->s), struct errand, op);
		flying--;
		if (take_errand(b, e))
			submit_errand(b, e, &flying);
		else
			idle[nidle++] = e;
	}
	if (b->kind == NFS_OP_CREATE && b->fhs && b->started == n)
		look_up_late(b, n);
	return b->code;
}

static int create_files(struct target *t, const char *prefix, unsigned n,
			struct nfs3_fh *fhs)
{
	struct batch b = { .t = t, .kind = NFS_OP_CREATE, .dir = &t->dir,
			   .prefix = prefix, .fhs = fhs };

	return batch_do(&b, n);
}

static int remove_files(struct target *t, const char *prefix, unsigned n,
			unsigned per)
{
	struct batch b = { .t = t, .kind = NFS_OP_REMOVE, .dir = &t->dir,
			   .prefix = prefix, .per = per, .to_the_end = true };

	return batch_do(&b, n);
}

static int make_directory(struct target *t, const struct nfs3_fh *in,
			  const char *name, struct nfs3_fh *fh,
			  uint32_t *status)
{
	struct tool_object obj;
	struct nfsc_op op;
	int err = tool_make_dir(t->t, in, name, 0700, &op);

	*status = op.status;
	if (err < 0 || op.status != 0)
		return err < 0 ? tool_complain(t->t->text, err, 0) :
		       TOOL_FAILED;
	*fh = op.obj;
	if (fh->len > 0)
		return TOOL_OK;
	err = tool_lookup(t->t, in, name, &obj);
	*fh = obj.fh;
	return err;
}

/* The directory of all. */
static int make_own(struct target *t)
{
	uint32_t status = NFS_EXIST;
	uint64_t random;
	char name[sizeof(t->dir_name)];
	int err = TOOL_OK;

	for (int i = 0; i < NAMES_TRIED && status == NFS_EXIST; i++) {
		if (getrandom(&random, sizeof(random), 0) < 0)
			random = clock_ns() ^ (uint64_t)getpid() << 32;
		snprintf(name, sizeof(name), ".gannet-bench.%016llx",
			 (unsigned long long)random);
		err = make_directory(t, &t->above, name, &t->dir, &status);
	}
	if (status != 0 && err == TOOL_FAILED)
		return tool_complain(t->t->text, 0, status);
	if (err == TOOL_OK)
		memcpy(t->dir_name, name, sizeof(name));
	return err;
}

int target_prepare(struct target *t, unsigned needs)
{
	int err = make_own(t);

	if (err == TOOL_OK && needs & NEED_META)
		err = create_files(t, "m", LOAD_META_FILES, t->meta);
	if (err == TOOL_OK && needs & NEED_DATA)
		err = create_files(t, "d", t->opt->b.connections, t->data);
	if (err == TOOL_OK && needs & NEED_BIG)
		err = target_make_big(t, NFS_OP_CREATE, t->opt->b.entries);
	return err;
}

int target_commit(struct target *t)
{
	struct batch b = { .t = t, .kind = NFS_OP_COMMIT, .fhs = t->data };

	return batch_do(&b, t->opt->b.connections);
}

static int remove_directory(struct target *t, const struct nfs3_fh *in,
			    const char *name)
{
	struct nfsc_op op = { .kind = NFS_OP_RMDIR, .fh = *in, .name = name };

	if (session_do(t->t->s, &op) == 0 &&
	    (op.status == 0 || op.status == NFS_NOENT))
		return TOOL_OK;
	return tool_complain(name, op.err, op.status);
}

int target_make_big(struct target *t, enum nfsc_kind made, unsigned n)
{
	struct batch b = { .t = t, .kind = made, .dir = &t->big,
			   .prefix = "entry" };
	uint32_t status;
	int err = make_directory(t, &t->dir, "big", &t->big, &status);

	if (err == TOOL_FAILED && status != 0)
		tool_complain(t->dir_name, 0, status);
	if (err == TOOL_OK)
		err = batch_do(&b, n);
	t->big_names = b.started;
	return err;
}

int target_remove_big(struct target *t, enum nfsc_kind made)
{
	struct batch b = { .t = t, .dir = &t->big, .prefix = "entry",
			   .kind = made == NFS_OP_MKDIR ? NFS_OP_RMDIR :
				   NFS_OP_REMOVE, .to_the_end = true };
	int err;

	if (t->big.len == 0)
		return TOOL_OK;
	err = batch_do(&b, t->big_names);
	t->big.len = 0;
	return err == TOOL_OK ? remove_directory(t, &t->dir, "big") : err;
}

int target_remove_made(struct target *t)
{
	const struct load_options *o = t->opt;

	return remove_files(t, "c", o->b.connections * o->depth, o->depth);
}

int target_remove(struct target *t, unsigned needs)
{
	const struct load_options *o = t->opt;
	int err = TOOL_OK;

	if (!t->dir_name[0])
		return TOOL_OK;
	if (needs & NEED_META)
		err = remove_files(t, "m", LOAD_META_FILES, 0);
	if (err == TOOL_OK && needs & NEED_DATA)
		err = remove_files(t, "d", o->b.connections, 0);
	if (err == TOOL_OK && needs & MAKES)
		err = target_remove_made(t);
	if (err == TOOL_OK)
		err = target_remove_big(t, NFS_OP_CREATE);
	if (err == TOOL_OK)
		err = remove_directory(t, &t->above, t->dir_name);
	if (err != TOOL_OK)
		fprintf(stderr, "gannet-nfs: %s: the directory %s could not "
			"be removed\n", t->t->text, t->dir_name);
	return err;
}
