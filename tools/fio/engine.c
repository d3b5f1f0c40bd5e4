/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine - fio's I/O engine: its READs and WRITEs are calls of NFSv3, as many
 * at a time as its iodepth, over the sessions of gannet-nfs.
 *
 * Operation: queue() sends a call, over one connection after the other;
 * getevents() takes the replies.  A READ or WRITE that the server did in part
 * goes on with the rest, and is one for fio.  The rest of the work of an NFS
 * client, such as sending calls again after a lost connection, is a session's.
 */
#include "tools/fio/job.h"

#include <optgroup.h>

/* An operation of fio; owned by its io_u. */
struct unit {
	struct nfsc_op	 op;
	struct io_u	*io_u;
	struct job_link	*link;
	uint64_t	 at;		/* bytes that are done */
	unsigned	 patience;	/* how often the server can ask for
					 * it */
};

enum { PATIENCE = 300, PAUSE_MS = 100 };

/* ---- an operation */

static void set_call(const struct thread_data *td, struct unit *u)
{
	const struct job *j = td->io_ops_data;
	const struct io_u *io_u = u->io_u;
	struct job_file *f = io_u->file->engine_data;
	bool reads = io_u->ddir == DDIR_READ;
	uint32_t most = reads ? j->limits.rtmax : j->limits.wtmax;

	if (!ddir_rw(io_u->ddir)) {
		u->op = job_commit(f);
		return;
	}
	u->op = (struct nfsc_op){ .kind = reads ? NFS_OP_READ : NFS_OP_WRITE,
				  .fh = f->fh };
	u->op.stable = td->o.sync_io;
	u->op.offset = io_u->offset + u->at;
	u->op.data = (char *)io_u->xfer_buf + u->at;
	u->op.count = (uint32_t)MIN(io_u->xfer_buflen - u->at,
				    (unsigned long long)most);
}

/* Sends the call for the rest. */
static int send_unit(const struct thread_data *td, struct unit *u)
{
	int err;

	set_call(td, u);
	err = session_submit(u->link->s, &u->op);
	u->link->flying += err == 0;
	return -err;
}

/* Takes a READ or WRITE that went well. */
static int take_bytes(struct unit *u)
{
	const struct nfsc_op *op = &u->op;
	bool ends = op->kind == NFS_OP_READ && op->eof && op->got < op->count;

	if (op->got > op->count || (!op->got && !ends))
		return EIO;
	if (op->kind == NFS_OP_WRITE)
		job_note_write(u->io_u->file->engine_data, op);
	u->at += op->got;
	if (!ends)
		return 0;
	log_err("gannet: %s: it ends at %llu, in a READ of %llu bytes at "
		"%llu\n", u->io_u->file->file_name,
		(unsigned long long)(op->offset + op->got),
		u->io_u->xfer_buflen, u->io_u->offset);
	return EIO;
}

/* The first error is reported; fio counts all. */
static void complain_op(struct job *j, const struct unit *u)
{
	char what[NFS_PATH_MAX + 64];

	if (j->complained)
		return;
	j->complained = true;
	snprintf(what, sizeof(what), "%s: %s at %llu",
		 u->io_u->file->file_name, io_ddir_name(u->io_u->ddir),
		 (unsigned long long)u->op.offset);
	job_say(what, &u->op, job_errno(&u->op));
}

/* Takes a reply.  True: fio's operation is over. */
static bool take_unit(struct thread_data *td, struct unit *u)
{
	struct job *j = td->io_ops_data;
	struct io_u *io_u = u->io_u;
	const struct nfsc_op *op = &u->op;
	int err = job_errno(op);

	u->link->flying--;
	j->gone = op->err < 0;
	if (err && op->err == 0 && op->status == NFS_JUKEBOX && u->patience) {
		u->patience--;
		usleep(PAUSE_MS * 1000);
		err = send_unit(td, u);
		if (!err)
			return false;
	} else if (err) {
		complain_op(j, u);
	} else if (op->kind == NFS_OP_COMMIT) {
		err = job_note_commit(io_u->file->engine_data, op);
	} else {
		err = take_bytes(u);
		if (!err && u->at < io_u->xfer_buflen) {
			err = send_unit(td, u);
			if (!err)
				return false;
		}
	}
	/* fio does not look at the error of an fsync that was queued. */
	if (err && op->kind == NFS_OP_COMMIT)
		td_verror(td, err, "fsync");
	io_u->error = (unsigned)err;
	io_u->resid = err && ddir_rw(io_u->ddir) ? io_u->xfer_buflen - u->at :
		      0;
	return true;
}

static enum fio_q_status queue_unit(struct thread_data *td, struct io_u *io_u)
{
	struct job *j = td->io_ops_data;
	struct unit *u = io_u->engine_data;

	switch (io_u->ddir) {
	case DDIR_READ:
	case DDIR_WRITE:
	case DDIR_SYNC:
	case DDIR_DATASYNC:
		u->link = &j->links[j->turn++ % j->nlinks];
		u->at = 0;
		u->patience = PATIENCE;
		io_u->error = (unsigned)send_unit(td, u);
		break;
	default:
		io_u->error = EOPNOTSUPP;
		break;
	}
	return io_u->error ? FIO_Q_COMPLETED : FIO_Q_QUEUED;
}

/* ---- replies */

/* Nothing came over any link for as long as a server can be silent. */
static void redial_links(struct job *j)
{
	for (unsigned i = 0; i < j->nlinks; i++)
		if (j->links[i].flying)
			session_redial(j->links[i].s);
}

/* An operation that is over; NULL if none is, and @waits is false. */
static struct nfsc_op *next_over(struct job *j, bool waits)
{
	for (;;) {
		struct job_link *lost = NULL, *busy = NULL;
		unsigned n = 0;

		for (unsigned i = 0; i < j->nlinks; i++) {
			struct job_link *l = &j->links[(j->turn + i) %
						       j->nlinks];
			struct nfsc_op *op = NULL;

			if (!l->flying)
				continue;
			op = session_look(l->s);
			if (op)
				return op;
			busy = l;
			if (!session_poll(l->s, &j->fds[n++]))
				lost = l;
		}
		if (!waits || !busy)
			return NULL;
		if (!lost && poll(j->fds, n, (int)j->config.timeout_ms) == 0) {
			redial_links(j);
			lost = busy;
		}
		if (lost)
			return session_wait(lost->s);
	}
}

static int get_events(struct thread_data *td, unsigned min_events,
		      unsigned max_events, const struct timespec *t)
{
	struct job *j = td->io_ops_data;
	struct nfsc_op *op;

	j->nover = 0;
	while (j->nover < max_events &&
	       (op = next_over(j, j->nover < min_events))) {
		struct unit *u = container_of(op, struct unit, op);

		if (take_unit(td, u))
			j->over[j->nover++] = u->io_u;
	}
	return (int)j->nover;
}

static struct io_u *get_event(struct thread_data *td, int i)
{
	const struct job *j = td->io_ops_data;

	return j->over[i];
}

/* ---- the life of a job */

static int setup_job(struct thread_data *td)
{
	bool fresh;
	int err = job_connect(td, 1, &fresh);

	if (!err)
		err = job_find_files(td);
	if (fresh)
		job_disconnect(td->io_ops_data);
	return err;
}

static int init_job(struct thread_data *td)
{
	const struct job_options *o = td->eo;
	bool fresh;

	return job_connect(td, o->connections, &fresh);
}

static void clean_up_job(struct thread_data *td)
{
	job_free(td->io_ops_data);
	td->io_ops_data = NULL;
}

static int fill_file(struct thread_data *td, struct fio_file *f)
{
	return job_fill_file(td, f, f->file_offset + f->io_size);
}

/* Files are found before a job runs: NFS has no open files. */
static int open_found(struct thread_data *td, struct fio_file *f)
{
	return f->engine_data ? 0 : 1;
}

static int make_unit(struct thread_data *td, struct io_u *io_u)
{
	struct unit *u = calloc(1, sizeof(*u));

	if (!u)
		return ENOMEM;
	u->io_u = io_u;
	io_u->engine_data = u;
	return 0;
}

static void free_unit(struct thread_data *td, struct io_u *io_u)
{
	free(io_u->engine_data);
	io_u->engine_data = NULL;
}

/* ---- options */

#define OPTION(field, kind, text) \
	.name = #field, .lname = #field, .type = kind, \
	.off1 = offsetof(struct job_options, field), .help = text, \
	.category = FIO_OPT_C_ENGINE, .group = FIO_OPT_G_NFS

static struct fio_option options[] = {
	{ OPTION(url, FIO_OPT_STR_STORE, "the directory, in place of host, "
		 "export and transport: nfs://HOST/PATH, rdma://HOST/PATH") },
	{ OPTION(host, FIO_OPT_STR_STORE, "the server") },
	{ OPTION(export, FIO_OPT_STR_STORE, "the directory that has the "
		 "files") },
	{ OPTION(transport, FIO_OPT_STR, "how calls travel"), .def = "tcp",
	  .posval = {
		{ .ival = "tcp", .oval = JOB_TCP, .help = "TCP" },
		{ .ival = "rdma", .oval = JOB_RDMA,
		  .help = "an RDMA device, or iWARP without one" },
		{ .ival = "iwarp", .oval = JOB_IWARP,
		  .help = "iWARP in user space" },
		{ .ival = "verbs", .oval = JOB_VERBS,
		  .help = "an RDMA device" },
	} },
	{ OPTION(port, FIO_OPT_INT, "of NFS"), .minval = 1,
	  .maxval = UINT16_MAX },
	{ OPTION(mountport, FIO_OPT_INT, "of MOUNT"), .minval = 1,
	  .maxval = UINT16_MAX },
	{ OPTION(connections, FIO_OPT_INT, "of each job"), .def = "1",
	  .minval = 1, .maxval = 1024 },
	{ OPTION(reply_s, FIO_OPT_INT, "seconds that a server may be silent"),
	  .def = "60", .minval = 1, .maxval = 86400 },
	{ OPTION(reconnects, FIO_OPT_INT, "attempts to connect again in a row "
		 "before the job ends"), .def = "3", .minval = 1,
	  .maxval = 1000 },
	{ .name = NULL },
};

__attribute__((visibility("default"))) struct ioengine_ops ioengine = {
	.name = "gannet",
	.version = FIO_IOOPS_VERSION,
	.flags = FIO_DISKLESSIO | FIO_NODISKUTIL | FIO_NO_OFFLOAD,
	.setup = setup_job,
	.init = init_job,
	.prepopulate_file = fill_file,
	.queue = queue_unit,
	.getevents = get_events,
	.event = get_event,
	.cleanup = clean_up_job,
	.open_file = open_found,
	.unlink_file = job_remove_file,
	.io_u_init = make_unit,
	.io_u_free = free_unit,
	.options = options,
	.option_struct_size = sizeof(struct job_options),
};
