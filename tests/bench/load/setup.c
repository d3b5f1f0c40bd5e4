/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of the workloads: a client that does one call after the other
 * mounts, makes and removes them. */
#include "tests/bench/load/load.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PMAP_PROGRAM	100000u
#define PMAP_GETPORT	3u
#define MOUNT_PROGRAM	100005u
#define MOUNT_MNT	1u

struct client {
	const struct target *t;
	int		 fd;
	uint32_t	 xid;
	uint8_t		 out[1024];
	uint8_t		 in[LOAD_REPLY_MAX];
	struct xdr_out	 x;
	struct xdr_in	 reply;
};

static int receive_all(int fd, uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = recv(fd, p, len, 0);

		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int receive_record(struct client *c, size_t *len)
{
	uint32_t mark = 0;
	int err;

	*len = 0;
	do {
		uint32_t n;

		err = receive_all(c->fd, (uint8_t *)&mark, 4);
		if (err)
			return err;
		mark = be32toh(mark);
		n = mark & 0x7fffffff;
		if (n > sizeof(c->in) - *len)
			return -EMSGSIZE;
		err = receive_all(c->fd, c->in + *len, n);
		if (err)
			return err;
		*len += n;
	} while (!(mark & 0x80000000));
	return 0;
}

static void begin(struct client *c, uint32_t proc)
{
	xdr_out_init(&c->x, c->out + 4, sizeof(c->out) - 4);
	load_call_head(c->t, &c->x, ++c->xid, proc);
}

/* A call of another program than NFS. */
static void begin_other(struct client *c, uint32_t prog, uint32_t vers,
			uint32_t proc)
{
	uint32_t v[2] = { htobe32(prog), htobe32(vers) };

	begin(c, proc);
	memcpy(c->out + 4 + 12, v, 8);
}

/* Sends, and reads the reply up to its results. */
static int call(struct client *c)
{
	uint32_t len = (uint32_t)xdr_out_len(&c->x), mark;
	size_t in;
	int err;

	mark = htobe32(0x80000000u | len);
	memcpy(c->out, &mark, 4);
	if (c->x.bad)
		return -ENAMETOOLONG;
	if (send(c->fd, c->out, len + 4, MSG_NOSIGNAL) != (ssize_t)len + 4)
		return -EPIPE;
	err = receive_record(c, &in);
	if (err)
		return err;
	xdr_in_init(&c->reply, c->in, in);
	return load_reply_head(&c->reply);
}

/* An NFS call; its status is 0, -EEXIST, -ENOENT or -EREMOTEIO. */
static int nfs_call(struct client *c)
{
	uint32_t status;
	int err = call(c);

	if (err)
		return err;
	status = xdr_get_u32(&c->reply);
	if (!xdr_ok(&c->reply))
		return -EBADMSG;
	return status == NFS3_OK ? 0 : status == NFS3ERR_EXIST ? -EEXIST :
	       status == NFS3ERR_NOENT ? -ENOENT : -EREMOTEIO;
}

static int resolve(const char *host, struct sockaddr_storage *to)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;

	if (getaddrinfo(host, NULL, &hints, &ai))
		return -EHOSTUNREACH;
	memset(to, 0, sizeof(*to));
	memcpy(to, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(ai);
	return 0;
}

static void set_port(struct sockaddr_storage *to, unsigned port)
{
	/* The port lies at the same place in both families. */
	((struct sockaddr_in *)to)->sin_port = htons((uint16_t)port);
}

static int open_client(struct client *c, unsigned port)
{
	struct sockaddr_storage to = c->t->nfs;

	set_port(&to, port);
	c->fd = load_tcp_connect(c->t->opt, &to);
	return c->fd < 0 ? c->fd : 0;
}

/* Port of @prog over TCP, by rpcbind's version 2. */
static int ask_rpcbind(struct client *c, uint32_t prog, unsigned *port)
{
	int err = open_client(c, 111);

	if (err)
		return err;
	begin_other(c, PMAP_PROGRAM, 2, PMAP_GETPORT);
	xdr_put_u32(&c->x, prog);
	xdr_put_u32(&c->x, 3);
	xdr_put_u32(&c->x, IPPROTO_TCP);
	xdr_put_u32(&c->x, 0);
	err = call(c);
	*port = xdr_get_u32(&c->reply);
	close(c->fd);
	return err ? err : *port ? 0 : -ENOENT;
}

static int mount_root(struct client *c, struct target *t, unsigned port)
{
	const struct load_options *o = t->opt;
	int err = open_client(c, port);

	if (err)
		return err;
	begin_other(c, MOUNT_PROGRAM, 3, MOUNT_MNT);
	xdr_put_opaque(&c->x, o->path, (uint32_t)strlen(o->path));
	err = call(c);
	if (!err && xdr_get_u32(&c->reply))
		err = -EACCES;
	if (!err)
		get_fh(&c->reply, &t->root);
	if (!err && !xdr_ok(&c->reply))
		err = -EBADMSG;
	close(c->fd);
	return err;
}

static void put_mode(struct xdr_out *x, uint32_t mode)
{
	xdr_put_bool(x, true);
	xdr_put_u32(x, mode);
	for (int i = 0; i < 5; i++)
		xdr_put_u32(x, 0);
}

static void put_string(struct xdr_out *x, const char *s)
{
	xdr_put_opaque(x, s, (uint32_t)strlen(s));
}

static int look_up(struct client *c, const struct fh *dir, const char *name,
		   struct fh *out)
{
	int err;

	begin(c, NFSPROC3_LOOKUP);
	put_fh(&c->x, dir);
	put_string(&c->x, name);
	err = nfs_call(c);
	if (!err)
		get_fh(&c->reply, out);
	return err ? err : xdr_ok(&c->reply) ? 0 : -EBADMSG;
}

static int make(struct client *c, const struct fh *dir, const char *name,
		bool is_dir, struct fh *out)
{
	int err;

	begin(c, is_dir ? NFSPROC3_MKDIR : NFSPROC3_CREATE);
	put_fh(&c->x, dir);
	put_string(&c->x, name);
	if (!is_dir)
		xdr_put_u32(&c->x, 0);		/* UNCHECKED */
	put_mode(&c->x, is_dir ? 0777 : 0666);
	err = nfs_call(c);
	if (err && err != -EEXIST)
		return err;
	if (!err && xdr_get_bool(&c->reply)) {
		get_fh(&c->reply, out);
		return xdr_ok(&c->reply) ? 0 : -EBADMSG;
	}
	return look_up(c, dir, name, out);
}

static int make_many(struct client *c, struct target *t, unsigned needs)
{
	const struct load_options *o = t->opt;
	char name[32];
	struct fh fh;
	int err = 0;

	for (unsigned i = 0; i < LOAD_META_FILES && needs & NEED_META &&
	     !err; i++) {
		snprintf(name, sizeof(name), "m%u", i);
		err = make(c, &t->dir, name, false, &t->meta[i]);
	}
	for (unsigned i = 0; i < o->conns && needs & NEED_DATA && !err; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		err = make(c, &t->dir, name, false, &t->data[i]);
	}
	if (!err && needs & NEED_BIG)
		err = make(c, &t->dir, "big", true, &t->big);
	/* The last is there: so are all. */
	snprintf(name, sizeof(name), "entry%06u", o->entries - 1);
	if (err || !(needs & NEED_BIG) || !look_up(c, &t->big, name, &fh))
		return err;
	for (unsigned i = 0; i < o->entries && !err; i++) {
		snprintf(name, sizeof(name), "entry%06u", i);
		err = make(c, &t->big, name, false, &fh);
	}
	return err;
}

static int find_ports(struct client *c, const struct load_options *o,
		      unsigned *nfs, unsigned *mnt)
{
	int err = 0;

	*nfs = o->port;
	*mnt = o->mount_port ? o->mount_port : o->port;
	if (!*nfs)
		err = ask_rpcbind(c, NFS3_PROGRAM, nfs);
	if (!err && !*mnt)
		err = ask_rpcbind(c, MOUNT_PROGRAM, mnt);
	return err;
}

static int prepare(struct client *c, struct target *t)
{
	unsigned nfs = 0, mnt = 0;
	int err;

	err = resolve(t->opt->host, &t->nfs);
	if (!err)
		err = find_ports(c, t->opt, &nfs, &mnt);
	if (!err)
		err = mount_root(c, t, mnt);
	if (err)
		return err;
	set_port(&t->nfs, nfs);
	err = open_client(c, nfs);
	if (err)
		return err;
	err = make(c, &t->root, t->opt->dir, true, &t->dir);
	if (!err)
		err = make_many(c, t, workload_needs(t->opt->work));
	close(c->fd);
	return err;
}

int target_prepare(struct target *t, const struct load_options *opt)
{
	struct client *c = calloc(1, sizeof(*c));
	int err = -ENOMEM;

	memset(t, 0, sizeof(*t));
	t->opt = opt;
	t->data = calloc(opt->conns, sizeof(*t->data));
	if (c && t->data)
		err = load_pattern_create(t);
	if (!err) {
		load_call_init(t);
		c->t = t;
		err = prepare(c, t);
	}
	free(c);
	return err;
}

static int with_client(struct target *t,
		       int (*act)(struct client *c, struct target *t))
{
	struct client *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->t = t;
	err = open_client(c, ntohs(((struct sockaddr_in *)&t->nfs)->sin_port));
	if (!err) {
		err = act(c, t);
		close(c->fd);
	}
	free(c);
	return err;
}

static int commit_all(struct client *c, struct target *t)
{
	int err = 0;

	for (unsigned i = 0; i < t->opt->conns && !err; i++) {
		begin(c, NFSPROC3_COMMIT);
		put_fh(&c->x, &t->data[i]);
		xdr_put_u64(&c->x, 0);
		xdr_put_u32(&c->x, 0);
		err = nfs_call(c);
	}
	return err;
}

int target_commit(struct target *t)
{
	return with_client(t, commit_all);
}

static int unmake(struct client *c, const struct fh *dir, const char *name,
		  bool is_dir)
{
	int err;

	begin(c, is_dir ? NFSPROC3_RMDIR : NFSPROC3_REMOVE);
	put_fh(&c->x, dir);
	put_string(&c->x, name);
	err = nfs_call(c);
	return err == -ENOENT ? 0 : err;
}

static int remove_all(struct client *c, struct target *t)
{
	unsigned needs = workload_needs(t->opt->work);
	char name[32];
	int err = 0;

	for (unsigned i = 0; i < LOAD_META_FILES && needs & NEED_META; i++) {
		snprintf(name, sizeof(name), "m%u", i);
		err |= unmake(c, &t->dir, name, false);
	}
	for (unsigned i = 0; i < t->opt->conns && needs & NEED_DATA; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		err |= unmake(c, &t->dir, name, false);
	}
	for (unsigned i = 0; i < t->opt->entries && needs & NEED_BIG; i++) {
		snprintf(name, sizeof(name), "entry%06u", i);
		err |= unmake(c, &t->big, name, false);
	}
	if (needs & NEED_BIG)
		err |= unmake(c, &t->dir, "big", true);
	for (unsigned i = 0; i < t->opt->conns; i++)
		for (unsigned j = 0; j < t->opt->depth && needs & MAKES;
		     j++) {
			snprintf(name, sizeof(name), "c%u-%u", i, j);
			err |= unmake(c, &t->dir, name, false);
		}
	return err | unmake(c, &t->root, t->opt->dir, true) ? -EREMOTEIO : 0;
}

void target_remove(struct target *t)
{
	if (t->dir.len && !t->opt->keep && with_client(t, remove_all))
		fprintf(stderr, "gannet-load: %s/%s could not be removed\n",
			t->opt->path, t->opt->dir);
	free(t->data);
	free(t->pattern);
}
