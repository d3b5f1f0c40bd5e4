/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adversary [URL] [NAME]: attacks an NFS server over RPC-over-RDMA and prints
 * a table of the answers.
 *
 * URL is as gannet-nfs takes it, of a directory where root can make a file.
 * Without it the server is in this process, on the loop fabric and over iWARP.
 * With NAME, only rows whose names contain it are run.
 *
 * Succeeds when every answer is one that the texts allow.
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nfs/nfs.h"
#include "tools/rpcrdma/client.h"
#include "lib/log.h"
#include "lib/util.h"
#include "tests/adversary/adversary.h"
#include "tests/server/harness.h"
#include "transport/fabric/iwarp/iwarp.h"
#include "tests/loop/loop.h"
#include "transport/rpcrdma/rpcrdma.h"

static const struct { unsigned bit; const char *name; } answers[] = {
	{ SILENCE, "silence" }, { ERR_VERS, "ERR_VERS" },
	{ ERR_CHUNK, "ERR_CHUNK" }, { RESULTS, "results" },
	{ STATUS, "NFS error" }, { GARBAGE, "GARBAGE_ARGS" },
	{ REFUSED, "RPC error" }, { END, "the end" },
	{ STRANGE, "a strange message" },
};

static const char *answer_names(unsigned bits, char out[120])
{
	*out = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		if (bits & answers[i].bit) {
			if (*out)
				strcat(out, " or ");
			strcat(out, answers[i].name);
		}
	return *out ? out : "nothing";
}

/* True: the answer was one that is allowed. */
static bool run_row(struct attack *a, const struct row *row)
{
	char got[120], want[120];
	bool well = attack_run(a, row);

	printf("%-7s %-12s %-22s %s\n", well ? "ok" : "NOT OK", row->clause,
	       answer_names(a->seen, got), row->name);
	if (!well)
		printf("        %s; allowed: %s\n", a->why,
		       answer_names(a->allowed, want));
	fflush(stdout);
	return well;
}

static unsigned run_rows(struct site *site, const char *name)
{
	static struct attack a;
	unsigned failed = 0;

	printf("over %s:\n", site->name);
	if (!attack_prepare(site)) {
		printf("NOT OK  no file can be made there\n");
		return 1;
	}
	a.site = site;
	for (unsigned i = 0; i < nrows; i++)
		if (rows[i].script && (!name || strstr(rows[i].name, name)))
			failed += !run_row(&a, &rows[i]);
	attack_end(&a);
	return failed;
}

static void print_elsewhere(void)
{
	printf("tested elsewhere:\n");
	for (unsigned i = 0; i < nrows; i++)
		if (!rows[i].script)
			printf("-       %-12s %s\n%22s%s\n", rows[i].clause,
			       rows[i].name, "", rows[i].elsewhere);
}

static void start_loop(struct site *site)
{
	require(loop_create("adversary", &site->loop) == 0);
	require(loop_start(site->loop) == 0);
}

static void stop_loop(struct site *site)
{
	loop_stop(site->loop);
	loop_destroy(site->loop);
}

/* ---- a server in this process */

static unsigned attack_harness(struct harness *h, struct site *site,
			       const char *name)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct xprt_listener *listener;
	struct nfs3_fh top;
	unsigned failed;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	require(rpcrdma_listen(&site->fabric, &h->env,
			       (struct sockaddr *)&addr, NULL,
			       &listener) == 0);
	harness_root(h, "/mem", &top);
	site->addr = listener->local;
	site->own = true;
	site->root_len = top.len;
	memcpy(site->root, top.data, top.len);
	start_loop(site);
	failed = run_rows(site, name);
	listener->ops->stop(listener);
	listener->ops->free(listener);
	stop_loop(site);
	return failed;
}

static int attack_own(const char *name)
{
	/* Clients of RDMA have no privileged ports, so it is not for them. */
	struct harness_config hc = {
		.exports = "/mem 127.0.0.1(rw,insecure,no_root_squash)\n",
	};
	struct site by_loop = { .name = "loop" };
	struct site by_iwarp = { .name = "iwarp" };
	struct loop_fabric_options plain = { .seed = 0 };
	struct loop_fabric_counts counts;
	struct iwarp_options none = { .revision = 2 };
	struct harness h;
	unsigned failed;

	harness_start(&h, &hc);
	require(loop_fabric_create(&plain, &by_loop.fabric) == 0);
	require(iwarp_fabric_create(&none, &by_iwarp.fabric) == 0);
	failed = attack_harness(&h, &by_loop, name);
	failed += attack_harness(&h, &by_iwarp, name);
	print_elsewhere();
	loop_fabric_count(&by_loop.fabric, &counts);
	/* Every buffer came back, or harness_stop() aborts. */
	harness_stop(&h);
	require(counts.violations == 0 && counts.ends == 0 && counts.mrs == 0);
	loop_fabric_destroy(&by_loop.fabric);
	iwarp_fabric_destroy(&by_iwarp.fabric);
	return failed > 0;
}

/* ---- a server elsewhere */

static bool find_address(const struct nfsc_url *url, struct site *site)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	char port[8];

	snprintf(port, sizeof(port), "%u", url->port ? url->port : 20049u);
	if (getaddrinfo(url->host, port, &hints, &list) != 0)
		return false;
	memcpy(&site->addr, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return true;
}

static int attack_url(const char *text, const char *name)
{
	struct gannet_rpcrdma_options o = {
		.flags = GANNET_RPCRDMA_RESERVED_PORT };
	struct nfsc_config config = { 0 };
	struct site site = { .name = text };
	void (*destroy)(struct fabric *f);
	const char *why = "";
	struct nfsc_mount m;
	struct nfsc_url url;
	unsigned failed;

	if (nfsc_url_parse(text, &url, &why) < 0 ||
	    url.transport != NFS_RDMA || !find_address(&url, &site) ||
	    nfsc_mount(&url, &config, &m) < 0) {
		fprintf(stderr, "adversary: %s: can't be mounted %s\n", text,
			why);
		return 2;
	}
	site.root_len = m.root.len;
	memcpy(site.root, m.root.data, m.root.len);
	o.fabric = url.fabric;
	if (client_fabric(&o, &site.fabric, &destroy) < 0) {
		fprintf(stderr, "adversary: there is no such fabric here\n");
		return 2;
	}
	start_loop(&site);
	failed = run_rows(&site, name);
	stop_loop(&site);
	destroy(&site.fabric);
	nfsc_unmount(&url, &config, &m);
	return failed > 0;
}

int main(int argc, char **argv)
{
	log_threshold = LOG_LEVEL_ERR;
	if (argc > 1 && strstr(argv[1], "://"))
		return attack_url(argv[1], argc > 2 ? argv[2] : NULL);
	return attack_own(argc > 1 ? argv[1] : NULL);
}
