/* SPDX-License-Identifier: BSD-2-Clause */
/* check - mount-check: the facts to know before mounting. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/nfs/tool.h"
#include "lib/clock.h"

enum { ROUNDS = 100 };

static int compare_times(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int round_trips(struct tool *t, double us[ROUNDS])
{
	for (int i = 0; i < ROUNDS; i++) {
		struct nfsc_op op = { .kind = NFS_OP_NULL };
		uint64_t start = clock_ns();

		if (session_do(t->s, &op) < 0)
			return tool_complain(t->text, op.err, 0);
		us[i] = (double)(clock_ns() - start) / 1e3;
	}
	qsort(us, ROUNDS, sizeof(*us), compare_times);
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
	fprintf(f, "memory handles:  each for one call; remote invalidation "
		"%s\n", i->invalidates ? "known to the server" : "not used");
}

static void put_server(struct tool *t)
{
	const struct nfs3_fsinfo_res *l = &t->limits;
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
		progress_size((double)l->limits.max_file_size, a));
}

/* mount.nfs has a name for each protocol and address family. */
static bool has_ipv4(const char *host)
{
	struct addrinfo hints = { .ai_family = AF_INET }, *list;

	if (getaddrinfo(host, NULL, &hints, &list) != 0)
		return false;
	freeaddrinfo(list);
	return true;
}

/* As one word of a shell. */
static void put_quoted(FILE *f, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ/._-+,:@%=";

	if (s[strspn(s, plain)] == '\0') {
		fputs(s, f);
		return;
	}
	putc('\'', f);
	for (; *s; s++)
		if (*s == '\'')
			fputs("'\\''", f);
		else
			putc(*s, f);
	putc('\'', f);
}

static bool is_loopback(const struct sockaddr_storage *ss)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;

	if (ss->ss_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return ss->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

void tool_put_mount_line(FILE *f, const struct tool *t)
{
	const struct nfsc_config *c = &t->o->config;
	const struct nfsc_url *u = &t->url;
	const char *six = has_ipv4(u->host) ? "" : "6";
	uint16_t port = u->port ? u->port :
			u->transport == NFS_RDMA ? 20049 : 2049;

	fprintf(f, "mount -t nfs -o vers=3,proto=%s%s,port=%u",
		u->transport == NFS_RDMA ? "rdma" : "tcp", six, port);
	if (t->mount.port)
		fprintf(f, ",mountport=%u", t->mount.port);
	fprintf(f, ",mountproto=tcp%s%s%s", six,
		nfsc_has_locks(u, c) ? "" : ",nolock",
		!c->tls ? "" : c->tls->mutual ? ",xprtsec=mtls" :
		",xprtsec=tls");
	if (c->sec)
		fprintf(f, ",sec=%s", nfsc_flavor_name(c->sec->flavor));
	putc(' ', f);
	fprintf(f, strchr(u->host, ':') ? "[%s]:" : "%s:", u->host);
	put_quoted(f, t->mount.dir);
	fputs(" DIR", f);
}

void tool_put_security(FILE *f, const struct tool_options *o)
{
	const struct nfsc_sec *sec = o->config.sec;
	const struct {
		const char *name, *value;
	} all[] = {
		{ "sec", sec ? nfsc_flavor_name(sec->flavor) : NULL },
		{ "tls-ca", o->tls_ca },
		{ "tls-cert", o->tls_cert },
		{ "tls-key", o->tls_key },
	};

	if (o->tls)
		fputs(" --tls", f);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].value) {
			fprintf(f, " --%s=", all[i].name);
			put_quoted(f, all[i].value);
		}
}

int tool_mount_check(const char *url, const struct tool_options *o)
{
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };
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
		fprintf(o->out, "transport:       TCP%s\n",
			o->config.tls ? " with TLS" : "");
	}
	if (err == TOOL_OK) {
		put_server(&t);
		fprintf(o->out, "round trip:      %.1f us best, %.1f median, "
			"%.1f worst of %d\n", us[0], us[ROUNDS / 2],
			us[ROUNDS - 1], ROUNDS);
		fputs("mount with:      ", o->out);
		tool_put_mount_line(o->out, &t);
		putc('\n', o->out);
		if (t.s->ops->rdma && is_loopback(&info.peer))
			fputs("                 (at another address of this "
			      "machine: the kernel has no RDMA over "
			      "loopback)\n", o->out);
	}
	tool_close(&t);
	return err;
}
