/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files - the files of a job: found or made before it runs, with the data that
 * it will read.
 */
#include "tools/fio/job.h"

enum { FILL_BLOCK = 1 << 20, NAMES_TRIED = 4 };

/* ---- names */

/* An operation with nothing else under way.  Its errno. */
static int do_op(struct job *j, struct nfsc_op *op)
{
	session_do(j->links[0].s, op);
	return job_errno(op);
}

static int look_up_in(struct job *j, const struct nfs3_fh *dir,
		      const char *name, struct nfsc_op *op)
{
	*op = (struct nfsc_op){ .kind = NFS_OP_LOOKUP, .fh = *dir,
				.name = name };
	return do_op(j, op);
}

/* Copies the next component of *@path; "" at its end.  0 or an errno. */
static int next_component(const char **path, char name[NFS_NAME_MAX + 1])
{
	const char *at = *path + strspn(*path, "/");
	size_t len = strcspn(at, "/");

	*path = at + len;
	if (len > NFS_NAME_MAX)
		return ENAMETOOLONG;
	snprintf(name, NFS_NAME_MAX + 1, "%.*s", (int)len, at);
	return len == 0 || nfsc_name_is_good(at, (uint32_t)len) ? 0 : EINVAL;
}

/* The directory of a file, and its name in it. */
static int find_above(struct job *j, const char *file, struct nfs3_fh *dir,
		      char last[NFS_NAME_MAX + 1], struct nfsc_op *op)
{
	char whole[2 * NFS_PATH_MAX], name[NFS_NAME_MAX + 1];
	const char *path = whole;
	int err;

	if (snprintf(whole, sizeof(whole), "%s/%s", j->mount.rest, file) >=
	    (int)sizeof(whole))
		return ENAMETOOLONG;
	*dir = j->mount.root;
	*op = (struct nfsc_op){ .err = 0 };
	err = next_component(&path, last);
	while (!err && !(err = next_component(&path, name)) && name[0]) {
		err = look_up_in(j, dir, last, op);
		*dir = op->obj;
		strcpy(last, name);
	}
	return err || last[0] ? err : EINVAL;
}

/* ---- finding and making */

static int create_name(struct job *j, const struct nfs3_fh *dir,
		       const char *name, struct nfsc_op *op)
{
	*op = (struct nfsc_op){ .kind = NFS_OP_CREATE, .fh = *dir,
				.name = name, .mode = 0644, .guarded = true };
	return do_op(j, op);
}

/* Another job can make it meanwhile, or remove it. */
static int find_or_create(struct job *j, const struct nfs3_fh *dir,
			  const char *name, bool make, struct nfsc_op *op)
{
	int err = look_up_in(j, dir, name, op);

	for (int i = 0; i < NAMES_TRIED && err == ENOENT && make; i++) {
		err = create_name(j, dir, name, op);
		/* The reply to CREATE can lack the handle. */
		if (err == EEXIST || (!err && !op->obj.len))
			err = look_up_in(j, dir, name, op);
	}
	return err;
}

static int learn_size(struct job *j, const struct nfs3_fh *fh, uint64_t *size,
		      struct nfsc_op *op)
{
	int err;

	*op = (struct nfsc_op){ .kind = NFS_OP_GETATTR, .fh = *fh };
	err = do_op(j, op);
	if (!err && op->attr.attr.type != VFS_REG)
		err = op->attr.attr.type == VFS_DIR ? EISDIR : EINVAL;
	*size = op->attr.attr.size;
	return err;
}

static bool may_make(const struct thread_data *td)
{
	return td->o.allow_create && !read_only &&
	       (td->o.size || td->o.file_size_low || td->o.fill_device);
}

static int find_file(struct thread_data *td, struct fio_file *f)
{
	struct job *j = td->io_ops_data;
	struct job_file *file = &j->files[f->fileno];
	char name[NFS_NAME_MAX + 1];
	struct nfs3_fh dir;
	struct nfsc_op op;
	uint64_t size;
	int err = find_above(j, f->file_name, &dir, name, &op);

	if (!err)
		err = find_or_create(j, &dir, name, may_make(td), &op);
	if (!err) {
		*file = (struct job_file){ .name = f->file_name,
					   .fh = op.obj };
		err = learn_size(j, &file->fh, &size, &op);
	}
	if (err)
		return job_complain(td, f->file_name, &op, err);
	f->engine_data = file;
	f->real_file_size = size;
	fio_file_set_size_known(f);
	return 0;
}

int job_find_files(struct thread_data *td)
{
	struct fio_file *f;
	unsigned i;
	int err = 0;

	for_each_file(td, f, i) {
		f->fileno = (int)i;
		err = find_file(td, f);
		if (err)
			break;
	}
	return err;
}

int job_remove_file(struct thread_data *td, struct fio_file *f)
{
	struct job *j = td->io_ops_data;
	char name[NFS_NAME_MAX + 1];
	struct nfs3_fh dir;
	struct nfsc_op op;
	int err;

	/* The server might be the reason why the job ends. */
	if (!j || !j->nlinks)
		return ENOTCONN;
	err = find_above(j, f->file_name, &dir, name, &op);
	if (!err) {
		op = (struct nfsc_op){ .kind = NFS_OP_REMOVE, .fh = dir,
				       .name = name };
		err = do_op(j, &op);
	}
	/* Jobs can share a file. */
	return err && err != ENOENT ? job_complain(td, f->file_name, &op, err) :
	       0;
}

/* ---- written and stored data */

void job_note_write(struct job_file *f, const struct nfsc_op *op)
{
	if (op->stored)
		return;
	if (f->writes > f->synced && f->verf != op->verf)
		f->lost = true;
	f->writes++;
	f->verf = op->verf;
}

struct nfsc_op job_commit(const struct job_file *f)
{
	return (struct nfsc_op){
		.kind = NFS_OP_COMMIT, .fh = f->fh,
		.arg = (void *)(uintptr_t)f->writes,
	};
}

int job_note_commit(struct job_file *f, const struct nfsc_op *op)
{
	bool lost = f->lost || (f->writes > f->synced && f->verf != op->verf);

	f->synced = MAX(f->synced, (uint64_t)(uintptr_t)op->arg);
	f->lost = false;
	if (!lost)
		return 0;
	log_err("gannet: %s: the server was started anew, and has lost data "
		"that was not synced\n", f->name);
	return EIO;
}

/* ---- laying out */

static int fill_range(struct thread_data *td, struct fio_file *f,
		      uint64_t size)
{
	struct job *j = td->io_ops_data;
	struct job_file *file = f->engine_data;
	uint32_t block = MIN(j->limits.wtmax, (uint32_t)FILL_BLOCK);
	struct nfsc_op op = { .fh = file->fh };
	char *memory = malloc(block);
	int err = memory ? 0 : ENOMEM;

	for (uint64_t at = f->real_file_size; at < size && !err; at += op.got) {
		op.kind = NFS_OP_WRITE;
		op.data = memory;
		op.offset = at;
		op.count = (uint32_t)MIN(size - at, (uint64_t)block);
		fill_io_buffer(td, memory, op.count, op.count);
		err = do_op(j, &op);
		if (!err && (!op.got || op.got > op.count))
			err = EIO;
		if (!err)
			job_note_write(file, &op);
	}
	if (!err) {
		op = job_commit(file);
		err = do_op(j, &op);
	}
	if (err)
		job_complain(td, f->file_name, &op, err);
	else
		err = job_note_commit(file, &op);
	free(memory);
	return err;
}

int job_fill_file(struct thread_data *td, struct fio_file *f, uint64_t size)
{
	bool reads = td_read(td) || td->o.overwrite;
	bool fresh;
	int err = 0;

	if (f->real_file_size >= size)
		return 0;
	if (reads && !td->o.create_on_open) {
		if (!may_make(td))
			return job_complain(td, f->file_name, NULL, ENODATA);
		err = job_connect(td, 1, &fresh);
		if (!err)
			err = fill_range(td, f, size);
		if (fresh)
			job_disconnect(td->io_ops_data);
	}
	f->real_file_size = size;
	return err;
}
