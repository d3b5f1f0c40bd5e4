/* SPDX-License-Identifier: BSD-2-Clause */
/* check - mount-check: what one wants to know before mounting. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/nfs/tool.h"

enum { ROUNDS = 100 };

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int round_trips(struct tool *t, double us[ROUNDS])
{
	for (int i = 0; i < ROUNDS; i++) {
		struct nfsc_op op = { .kind = NFS_OP_NULL };
		double start = now_us();

		if (session_do(t->s, &op) < 0)
			return tool_complain(t->text, op.err, 0);
		us[i] = now_us() - start;
	}
	qsort(us, ROUNDS, sizeof(*us), compare);
	return TOOL_OK;
}

static void put_address(FILE *f, const struct sockaddr_storage *ss)
{
	char host[64], port[8];

	if (getnameinfo((const struct sockaddr *)ss, sizeof(*ss), host,
			sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		fprintf(f, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host,
			port);
}

static void put_rdma(FILE *f, const struct gannet_rpcrdma_info *i)
{
	bool iwarp = strcmp(i->fabric, "iwarp") == 0;

	fprintf(f, "transport:       RPC-over-RDMA version 1 on %s",
		i->fabric);
	if (i->device[0])
		fprintf(f, ", device %s", i->device);
	fputs("\naddresses:       ", f);
	put_address(f, &i->local);
	fputs(" to ", f);
	put_address(f, &i->peer);
	fprintf(f, "\nprivate data:    %s\n", i->private_data ?
		"RFC 8797" : "none: the defaults of RFC 8166 hold");
	fprintf(f, "inline size:     %u bytes sent, %u received\n",
		i->send_inline, i->recv_inline);
	fprintf(f, "credits:         %u granted\n", i->credits);
	fprintf(f, "read depth:      %u RDMA Reads by the server at a time\n",
		i->read_depth);
	fprintf(f, "memory handles:  %s, each for one call; remote "
		"invalidation %s\n", iwarp ? "STags" : "rkeys",
		i->invalidates ? "known to the server" : "not used");
}

static void put_server(struct tool *t)
{
	const struct nfsc_limits *l = &t->limits;
	char a[16], b[16];
	FILE *f = t->o->out;

	fprintf(f, "export:          %s\n", t->mount.dir);
	fprintf(f, "filehandle:      %u bytes\n", t->mount.root.len);
	fprintf(f, "read size:       %s at most, %s preferred\n",
		progress_size(l->rtmax, a), progress_size(l->rtpref, b));
	fprintf(f, "write size:      %s at most, %s preferred\n",
		progress_size(l->wtmax, a), progress_size(l->wtpref, b));
	fprintf(f, "directory size:  %s preferred\n",
		progress_size(l->dtpref, a));
	fprintf(f, "largest file:    %s\n",
		progress_size((double)l->maxfilesize, a));
}

static void put_advice(struct tool *t)
{
	const struct nfsc_url *u = &t->url;
	uint16_t port = u->port ? u->port :
			u->transport == NFS_RDMA ? 20049 : 2049;
	FILE *f = t->o->out;

	fprintf(f, "mount with:      mount -t nfs -o vers=3,proto=%s,port=%u",
		u->transport == NFS_RDMA ? "rdma" : "tcp", port);
	if (u->mountport)
		fprintf(f, ",mountport=%u,mountproto=tcp", u->mountport);
	else if (u->transport == NFS_TCP && u->port)
		fprintf(f, ",mountport=%u", u->port);
	fprintf(f, ",nolock %s:%s DIR\n", u->host, t->mount.dir);
}

int tool_mount_check(const char *url, const struct tool_options *o)
{
	struct gannet_rpcrdma_info info;
	struct tool_object obj;
	double us[ROUNDS];
	struct tool t;
	int err = tool_open(&t, url, o);

	if (err != TOOL_OK)
		return err;
	err = tool_find(&t, &obj, true, false);
	if (err == TOOL_OK)
		err = round_trips(&t, us);
	if (err == TOOL_OK && t.s->ops->rdma) {
		t.s->ops->rdma(t.s, &info);
		put_rdma(o->out, &info);
	} else if (err == TOOL_OK) {
		fprintf(o->out, "transport:       TCP\n");
	}
	if (err == TOOL_OK) {
		put_server(&t);
		fprintf(o->out, "round trip:      %.1f us best, %.1f median, "
			"%.1f worst of %d\n", us[0], us[ROUNDS / 2],
			us[ROUNDS - 1], ROUNDS);
		put_advice(&t);
	}
	tool_close(&t);
	return err;
}
