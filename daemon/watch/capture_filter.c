/* SPDX-License-Identifier: BSD-2-Clause */
/* capture_filter - see capture_filter.h. */
#include "daemon/watch/capture_filter.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "transport/addr.h"

#define NFS_PROGRAM	100003u
#define MOUNT_PROGRAM	100005u
#define NFSACL_PROGRAM	100227u
enum { MNTPATHLEN = 1024 };

/* ---- clients */

/* "ADDRESS" or "ADDRESS/BITS". */
static bool parse_client(struct capture_filter *f, const char *text)
{
	char host[INET6_ADDRSTRLEN];
	const char *slash = strchrnul(text, '/');
	size_t len = (size_t)(slash - text);
	unsigned before = 0;
	unsigned long bits = 128;
	char *end = NULL;

	if (len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	memset(&f->client, 0, sizeof(f->client));
	if (inet_pton(AF_INET, host, &f->client.s6_addr[12]) == 1) {
		memset(&f->client.s6_addr[10], 0xff, 2);
		before = 96;
	} else if (inet_pton(AF_INET6, host, &f->client) != 1) {
		return false;
	}
	if (*slash) {
		if (slash[1] < '0' || slash[1] > '9')
			return false;
		bits = before + strtoul(slash + 1, &end, 10);
		if (*end || bits < before || bits > 128)
			return false;
	}
	f->bits = (unsigned)bits;
	return true;
}

static bool has_client(const struct capture_filter *f, const struct msg *m)
{
	struct in6_addr host;
	unsigned bytes = f->bits / 8, rest = f->bits % 8;

	if (!f->bits)
		return true;
	host = xprt_addr_host((const struct sockaddr *)&m->xprt->peer);
	if (memcmp(&host, &f->client, bytes))
		return false;
	return !rest || (host.s6_addr[bytes] ^ f->client.s6_addr[bytes]) >>
			(8 - rest) == 0;
}

/* ---- procedures */

struct proc_search {
	struct capture_filter *f;
	const char *name;
	size_t len;
};

static void match_proc(const struct rpc_program *prog,
		       const struct rpc_version *version, uint32_t proc,
		       struct rpc_proc_counts *n, void *arg)
{
	const struct proc_search *s = arg;
	struct capture_filter *f = s->f;
	const char *name = version->procs[proc].name;

	if (strlen(name) != s->len || strncasecmp(name, s->name, s->len) ||
	    f->nprocs == CAPTURE_PROCS)
		return;
	f->procs[f->nprocs].prog = prog->prog;
	f->procs[f->nprocs].vers = version->vers;
	f->procs[f->nprocs].proc = proc;
	f->nprocs++;
}

/* "READ,WRITE" */
static bool parse_procs(struct capture_filter *f, struct rpc_server *rpc,
			const char *text)
{
	struct proc_search s = { .f = f, .name = text };

	for (;; s.name += s.len + 1) {
		unsigned before = f->nprocs;

		s.len = strcspn(s.name, ",");
		rpc_server_walk_procs(rpc, match_proc, &s);
		if (f->nprocs == before)
			return false;
		if (!s.name[s.len])
			return true;
	}
}

static bool has_proc(const struct capture_filter *f, const struct rpc_header *h)
{
	if (!f->nprocs)
		return true;
	for (unsigned i = 0; h && i < f->nprocs; i++)
		if (f->procs[i].prog == h->prog &&
		    f->procs[i].vers == h->vers && f->procs[i].proc == h->proc)
			return true;
	return false;
}

/* ---- exports */

struct export_search {
	struct capture_filter *f;
	bool found;
};

static void match_export(void *arg, struct export_tree *e)
{
	struct export_search *s = arg;

	if (!strcmp(e->path, s->f->path)) {
		s->f->export_id = e->id;
		s->found = true;
	}
}

/* True if the handle is of the export, or of a file system below that has its
 * rules. */
static bool has_handle(const struct capture_filter *f, const struct msg *m,
		       struct xdr_view fh)
{
	const struct export_peer peer = {
		.addr = (const struct sockaddr *)&m->xprt->peer,
		.any_port = true, .need = EXPORT_LOCKS,
		.protection = RPC_MTLS,
	};
	struct export_opts opts;
	struct vfs_handle handle;
	struct export_tree *e;
	uint32_t id;

	if (!fh.data || export_fh_parse(f->exports, fh.data, fh.len, &id,
					&handle) < 0)
		return false;
	if (id == f->export_id)
		return true;
	return export_borrow(f->exports, id, &peer, &e, &opts) == 0 &&
	       e->top == f->export_id;
}

/* True if @path is the export's, or below. */
static bool has_path(const struct capture_filter *f, struct xdr_view path)
{
	size_t len = strlen(f->path);

	while (len > 1 && f->path[len - 1] == '/')
		len--;
	return path.len >= len && !memcmp(path.data, f->path, len) &&
	       (path.len == len || path.data[len] == '/' || len == 1);
}

static bool has_export(const struct capture_filter *f, const struct msg *m,
		       const struct rpc_header *h, struct xdr_in args)
{
	if (!f->path)
		return true;
	if (!h || h->proc == 0)
		return false;
	switch (h->prog) {
	case NFS_PROGRAM:	/* each begins with a handle */
	case NFSACL_PROGRAM:
		return has_handle(f, m, xdr_get_opaque(&args, NFS3_FHSIZE));
	case MOUNT_PROGRAM:
		return has_path(f, xdr_get_opaque(&args, MNTPATHLEN));
	default:
		return false;
	}
}

/* ---- all of it */

int capture_filter_init(struct capture_filter *f, struct rpc_server *rpc,
			struct export_table *exports,
			const char *const texts[3], const char **wrong)
{
	struct export_search s = { .f = f };

	memset(f, 0, sizeof(*f));
	f->exports = exports;
	if (texts[0] && !parse_client(f, texts[0])) {
		*wrong = "client: expected an address, or a network as "
			 "ADDRESS/BITS";
		return -1;
	}
	if (texts[1] && !parse_procs(f, rpc, texts[1])) {
		*wrong = "proc: expected names of procedures with commas "
			 "between, as stats has them: READ,WRITE";
		return -1;
	}
	if (!texts[2])
		return 0;
	f->path = strdup(texts[2]);
	if (f->path)
		export_each(exports, match_export, &s);
	if (s.found)
		return 0;
	capture_filter_fini(f);
	*wrong = "export: no export has this path, see exports";
	return -1;
}

void capture_filter_fini(struct capture_filter *f)
{
	free(f->path);
	f->path = NULL;
}

bool capture_filter_takes(const struct capture_filter *f, const struct msg *m,
			  const struct rpc_header *h,
			  const struct xdr_in *args)
{
	return has_client(f, m) && has_proc(f, h) && has_export(f, m, h, *args);
}
