/* SPDX-License-Identifier: BSD-2-Clause */
/* nfs_client - libnfs's raw calls, one at a time. */
#include "tests/server/nfs_client.h"

#include <netdb.h>
#include <poll.h>
#include <sys/mman.h>

#include "lib/log.h"
#include "tests/server/fault_vfs.h"

/* A name service that is not there takes its time to say nothing. */
#define WAIT_MS		120000
#define USER_GID	100

struct harness srv;
struct nfs_client root, user;
nfs_fh3 top;
static struct nfs3_fh top_fh;

/* For each connection libnfs tries the ports below 1024 that have no name, of
 * which most are taken while many tests run, and would read the list of names
 * for each. */
__attribute__((visibility("default")))
struct servent *getservbyport(int port, const char *proto)
{
	return NULL;
}

static void *keep(struct nfs_client *c, const void *data, size_t len)
{
	char *p = c->kept + c->used;

	c->used += (len + 7) & ~(size_t)7;
	ck_assert_uint_le(c->used, NFS_CLIENT_KEEP);
	if (len)
		memcpy(p, data, len);
	return p;
}

static char *keep_string(struct nfs_client *c, const char *s)
{
	return keep(c, s, strlen(s) + 1);
}

static void keep_fh(struct nfs_client *c, nfs_fh3 *fh)
{
	fh->data.data_val = keep(c, fh->data.data_val, fh->data.data_len);
}

static void keep_post_fh(struct nfs_client *c, post_op_fh3 *fh)
{
	if (fh->handle_follows)
		keep_fh(c, &fh->post_op_fh3_u.handle);
}

void nfs_keep_none(struct nfs_client *c, void *res)
{
}

void nfs_keep_lookup(struct nfs_client *c, void *res)
{
	LOOKUP3res *r = res;

	if (r->status == NFS3_OK)
		keep_fh(c, &r->LOOKUP3res_u.resok.object);
}

#define KEEP_MADE(proc, PROC) \
	void nfs_keep_##proc(struct nfs_client *c, void *res) \
	{ \
		PROC##3res *r = res; \
		if (r->status == NFS3_OK) \
			keep_post_fh(c, &(r->PROC##3res_u).resok.obj); \
	}
KEEP_MADE(create, CREATE)
KEEP_MADE(mkdir, MKDIR)
KEEP_MADE(symlink, SYMLINK)
KEEP_MADE(mknod, MKNOD)

void nfs_keep_read(struct nfs_client *c, void *res)
{
	READ3res *r = res;
	READ3resok *ok = &r->READ3res_u.resok;

	if (r->status == NFS3_OK)
		ok->data.data_val = keep(c, ok->data.data_val,
					 ok->data.data_len);
}

void nfs_keep_readlink(struct nfs_client *c, void *res)
{
	READLINK3res *r = res;

	if (r->status == NFS3_OK)
		r->READLINK3res_u.resok.data =
			keep_string(c, r->READLINK3res_u.resok.data);
}

void nfs_keep_readdir(struct nfs_client *c, void *res)
{
	READDIR3res *r = res;
	entry3 **p = &r->READDIR3res_u.resok.reply.entries;

	for (; r->status == NFS3_OK && *p; p = &(*p)->nextentry) {
		*p = keep(c, *p, sizeof(**p));
		(*p)->name = keep_string(c, (*p)->name);
	}
}

void nfs_keep_readdirplus(struct nfs_client *c, void *res)
{
	READDIRPLUS3res *r = res;
	entryplus3 **p = &r->READDIRPLUS3res_u.resok.reply.entries;

	for (; r->status == NFS3_OK && *p; p = &(*p)->nextentry) {
		*p = keep(c, *p, sizeof(**p));
		(*p)->name = keep_string(c, (*p)->name);
		keep_post_fh(c, &(*p)->name_handle);
	}
}

void nfs_keep_mnt(struct nfs_client *c, void *res)
{
	mountres3 *r = res;
	mountres3_ok *ok = &r->mountres3_u.mountinfo;

	if (r->fhs_status != MNT3_OK)
		return;
	ok->fhandle.fhandle3_val = keep(c, ok->fhandle.fhandle3_val,
					ok->fhandle.fhandle3_len);
	ok->auth_flavors.auth_flavors_val =
		keep(c, ok->auth_flavors.auth_flavors_val,
		     ok->auth_flavors.auth_flavors_len * sizeof(int));
}

void nfs_keep_dump(struct nfs_client *c, void *res)
{
	for (mountlist *p = res; *p; p = &(*p)->ml_next) {
		*p = keep(c, *p, sizeof(**p));
		(*p)->ml_hostname = keep_string(c, (*p)->ml_hostname);
		(*p)->ml_directory = keep_string(c, (*p)->ml_directory);
	}
}

void nfs_keep_export(struct nfs_client *c, void *res)
{
	for (exports *p = res; *p; p = &(*p)->ex_next) {
		*p = keep(c, *p, sizeof(**p));
		(*p)->ex_dir = keep_string(c, (*p)->ex_dir);
		for (groups *g = &(*p)->ex_groups; *g; g = &(*g)->gr_next) {
			*g = keep(c, *g, sizeof(**g));
			(*g)->gr_name = keep_string(c, (*g)->gr_name);
		}
	}
}

void nfs_done(struct rpc_context *rpc, int status, void *data, void *arg)
{
	struct nfs_wait *w = arg;

	w->status = status;
	w->done = true;
	if (status == RPC_STATUS_SUCCESS && w->size) {
		memcpy(w->res, data, w->size);
		w->keep(w->c, w->res);
	}
}

int nfs_wait(struct nfs_wait *w)
{
	struct rpc_context *rpc = w->c->rpc;

	while (!w->done) {
		struct pollfd p = {
			.fd = rpc_get_fd(rpc),
			.events = (short)rpc_which_events(rpc),
		};

		ck_assert_int_gt(poll(&p, 1, WAIT_MS), 0);
		if (rpc_service(rpc, p.revents) < 0)
			break;
	}
	return w->done ? w->status : RPC_STATUS_ERROR;
}

void nfs_client_open(struct nfs_client *c, uint16_t port, int program,
		     int version, int uid)
{
	struct nfs_wait w = { .c = c };

	c->rpc = rpc_init_context();
	/* ASan would mark malloc's, and LSan read it, for each test. */
	c->kept = mmap(NULL, NFS_CLIENT_KEEP, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	c->used = 0;
	ck_assert(c->rpc && c->kept != MAP_FAILED);
	rpc_set_uid(c->rpc, uid);
	rpc_set_gid(c->rpc, uid ? USER_GID : 0);
	ck_assert_int_eq(rpc_connect_port_async(c->rpc, "127.0.0.1", port,
						program, version, nfs_done,
						&w), 0);
	ck_assert_int_eq(nfs_wait(&w), RPC_STATUS_SUCCESS);
}

void nfs_client_close(struct nfs_client *c)
{
	rpc_destroy_context(c->rpc);
	munmap(c->kept, NFS_CLIENT_KEEP);
}

void nfs_setup_with(const struct harness_config *config)
{
	log_threshold = LOG_LEVEL_ERR;
	harness_start(&srv, config);
	harness_root(&srv, "/mem", &top_fh);
	top.data.data_val = (char *)top_fh.data;
	top.data.data_len = top_fh.len;
	nfs_client_open(&root, srv.port, NFS_PROGRAM, NFS_V3, 0);
	nfs_client_open(&user, srv.port, NFS_PROGRAM, NFS_V3, USER_UID);
}

void nfs_setup(void)
{
	struct harness_config config = { .backend = &fault_vfs_ops };

	fault_init();
	nfs_setup_with(&config);
}

void nfs_teardown(void)
{
	nfs_client_close(&user);
	nfs_client_close(&root);
	harness_stop(&srv);
}

static char *name_arg(const char *name)
{
	return (char *)(uintptr_t)name;
}

nfs_fh3 nfs_make_file(nfs_fh3 dir, const char *name, const char *data)
{
	CREATE3args ca = { .where = { dir, name_arg(name) } };
	CREATE3res cr;
	WRITE3args wa;
	WRITE3res wr;

	nfs_call(&root, create, &ca, &cr);
	ck_assert_int_eq(cr.status, NFS3_OK);
	ck_assert(cr.CREATE3res_u.resok.obj.handle_follows);
	wa = (WRITE3args){
		.file = cr.CREATE3res_u.resok.obj.post_op_fh3_u.handle,
		.count = strlen(data), .stable = FILE_SYNC,
		.data = { strlen(data), name_arg(data) },
	};
	nfs_call(&root, write, &wa, &wr);
	ck_assert_int_eq(wr.status, NFS3_OK);
	ck_assert_uint_eq(wr.WRITE3res_u.resok.count, strlen(data));
	return wa.file;
}

nfs_fh3 nfs_make_dir(nfs_fh3 dir, const char *name)
{
	MKDIR3args a = { .where = { dir, name_arg(name) } };
	MKDIR3res r;

	a.attributes.mode.set_it = 1;
	a.attributes.mode.set_mode3_u.mode = 0755;
	nfs_call(&root, mkdir, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	return r.MKDIR3res_u.resok.obj.post_op_fh3_u.handle;
}

nfs_fh3 nfs_make_link(nfs_fh3 dir, const char *name, const char *target)
{
	SYMLINK3args a = { .where = { dir, name_arg(name) } };
	SYMLINK3res r;

	a.symlink.symlink_data = name_arg(target);
	nfs_call(&root, symlink, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	return r.SYMLINK3res_u.resok.obj.post_op_fh3_u.handle;
}

fattr3 nfs_attr(nfs_fh3 fh)
{
	GETATTR3args a = { .object = fh };
	GETATTR3res r;

	nfs_call(&root, getattr, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	return r.GETATTR3res_u.resok.obj_attributes;
}

int nfs_exists(nfs_fh3 dir, const char *name)
{
	LOOKUP3args a = { .what = { dir, name_arg(name) } };
	LOOKUP3res r;

	nfs_call(&root, lookup, &a, &r);
	return r.status;
}

bool nfs_same_fh(nfs_fh3 a, nfs_fh3 b)
{
	return a.data.data_len == b.data.data_len &&
	       memcmp(a.data.data_val, b.data.data_val, a.data.data_len) == 0;
}

bool nfs_full_wcc(const wcc_data *wcc)
{
	return wcc->before.attributes_follow && wcc->after.attributes_follow;
}

int nfs_mnt(const char *path, nfs_fh3 *fh)
{
	struct nfs_client m;
	static char bytes[NFS3_FHSIZE];
	mountres3 r;

	nfs_client_open(&m, srv.port, MOUNT_PROGRAM, MOUNT_V3, 0);
	ck_assert_int_eq(nfs_try(&m, rpc_mount3_mnt_async,
				 (char *)(uintptr_t)path, &r),
			 RPC_STATUS_SUCCESS);
	if (r.fhs_status == MNT3_OK) {
		fhandle3 *h = &r.mountres3_u.mountinfo.fhandle;

		memcpy(bytes, h->fhandle3_val, h->fhandle3_len);
		fh->data.data_val = bytes;
		fh->data.data_len = h->fhandle3_len;
	}
	nfs_client_close(&m);
	return r.fhs_status;
}
