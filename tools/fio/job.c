/* SPDX-License-Identifier: BSD-2-Clause */
/* job - options, connections and errors of a job. */
#include "tools/fio/job.h"

/* ---- errors */

int job_errno(const struct nfsc_op *op)
{
	/* The others have the numbers of Linux (RFC 1813 2.6). */
	static const struct {
		uint32_t status;
		int	 err;
	} rows[] = {
		{ 63, ENAMETOOLONG }, { 66, ENOTEMPTY }, { 69, EDQUOT },
		{ 70, ESTALE }, { 71, EREMOTE }, { 10001, ESTALE },
		{ 10004, EOPNOTSUPP }, { NFS_JUKEBOX, EAGAIN },
	};

	if (op->err < 0)
		return -op->err;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].status == op->status)
			return rows[i].err;
	return op->status < 32 ? (int)op->status : EIO;
}

void job_say(const char *what, const struct nfsc_op *op, int err)
{
	if (op && op->err == 0 && op->status != 0)
		log_err("gannet: %s: %s, %s\n", what,
			nfsc_status_name(op->status),
			nfsc_status_words(op->status));
	else
		log_err("gannet: %s: %s\n", what, strerror(err));
}

int job_complain(struct thread_data *td, const char *what,
		 const struct nfsc_op *op, int err)
{
	job_say(what, op, err);
	td_verror(td, err, "gannet");
	return err;
}

static int refuse_option(struct thread_data *td, const char *what,
			 const char *why)
{
	log_err("gannet: %s: %s\n", what, why);
	td_verror(td, EINVAL, "options");
	return EINVAL;
}

/* ---- options */

static int take_server(struct thread_data *td, struct job *j)
{
	static const unsigned fabrics[] = {
		[JOB_RDMA] = GANNET_RPCRDMA_ANY,
		[JOB_IWARP] = GANNET_RPCRDMA_IWARP,
		[JOB_VERBS] = GANNET_RPCRDMA_VERBS,
	};
	const struct job_options *o = td->eo;
	char text[sizeof(j->url.host) + NFS_PATH_MAX];
	const char *why;

	if (!o->url == (!o->host && !o->export && o->transport == JOB_TCP))
		return refuse_option(td, "options", "a job needs url= alone, "
				     "or host= and export=");
	if (!o->url && (!o->host || !o->export))
		return refuse_option(td, "options", "host= and export= need "
				     "each other");
	if (!o->url)
		snprintf(text, sizeof(text), strchr(o->host, ':') ?
			 "[%s]:%s" : "%s:%s", o->host, o->export);
	if (nfsc_url_parse(o->url ? o->url : text, &j->url, &why) < 0)
		return refuse_option(td, o->url ? o->url : text, why);
	if (o->transport != JOB_TCP) {
		j->url.transport = NFS_RDMA;
		j->url.fabric = fabrics[o->transport];
	}
	if (o->port)
		j->url.port = (uint16_t)o->port;
	if (o->mountport)
		j->url.mountport = (uint16_t)o->mountport;
	return 0;
}

static int make_job(struct thread_data *td)
{
	const struct job_options *o = td->eo;
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		return ENOMEM;
	td->io_ops_data = j;
	j->files = calloc(td->o.nr_files, sizeof(*j->files));
	j->links = calloc(o->connections, sizeof(*j->links));
	j->fds = calloc(o->connections, sizeof(*j->fds));
	j->over = calloc(td->o.iodepth, sizeof(*j->over));
	if (!j->files || !j->links || !j->fds || !j->over)
		return ENOMEM;
	j->config.depth = td->o.iodepth;
	j->config.timeout_ms = o->reply_s * 1000;
	j->config.connect_ms = MIN(o->reply_s, 10u) * 1000;
	j->config.retries = o->reconnects;
	j->config.polled = true;
	nfsc_config_user(&j->config);
	return take_server(td, j);
}

/* ---- connections */

static int mount_export(struct thread_data *td, struct job *j)
{
	int err = nfsc_mount(&j->url, &j->config, &j->mount);
	char what[sizeof(j->url.host) + NFS_PATH_MAX + 16];

	j->mounted = err == 0;
	if (err == 0)
		return 0;
	snprintf(what, sizeof(what), "MOUNT of %s:%s", j->url.host,
		 j->url.path);
	if (err != -EACCES)
		return job_complain(td, what, NULL, -err);
	log_err("gannet: %s: %s\n", what,
		nfsc_mount_status_name(j->mount.status));
	td_verror(td, EACCES, "MOUNT");
	return EACCES;
}

static int fetch_limits(struct thread_data *td, struct job *j)
{
	struct nfsc_op op = { .kind = NFS_OP_FSINFO, .fh = j->mount.root };
	int err;

	session_do(j->links[0].s, &op);
	err = job_errno(&op);
	if (err)
		return job_complain(td, "FSINFO", &op, err);
	j->limits = op.limits;
	if (!op.limits.rtmax || !op.limits.wtmax)
		return job_complain(td, "FSINFO tells no sizes", NULL, EIO);
	return 0;
}

int job_connect(struct thread_data *td, unsigned n, bool *fresh)
{
	struct job *j = td->io_ops_data;
	int err = j ? 0 : make_job(td);

	j = td->io_ops_data;
	*fresh = !err && !j->nlinks;
	if (err || j->nlinks)
		return err;
	err = mount_export(td, j);
	while (!err && j->nlinks < n) {
		struct job_link *l = &j->links[j->nlinks];

		memset(l, 0, sizeof(*l));
		err = -nfsc_session_open(&j->url, &j->config, &l->s);
		if (err)
			job_complain(td, j->url.host, NULL, err);
		else
			j->nlinks++;
	}
	if (!err)
		err = fetch_limits(td, j);
	if (err)
		job_disconnect(j);
	return err;
}

void job_disconnect(struct job *j)
{
	while (j->nlinks)
		session_close(j->links[--j->nlinks].s);
	if (j->mounted && !j->gone)
		nfsc_unmount(&j->url, &j->config, &j->mount);
	j->mounted = false;
}

void job_free(struct job *j)
{
	if (!j)
		return;
	job_disconnect(j);
	free(j->files);
	free(j->links);
	free(j->fds);
	free(j->over);
	free(j);
}
