/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of gannet-load. */
#include "tests/bench/load/load.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

static const char usage[] =
"usage: gannet-load [OPTION]... WORKLOAD HOST:PATH\n"
"Puts load on an NFSv3 server and reports what it did.\n"
"\n"
"  --port=N          of NFS; else rpcbind is asked\n"
"  --mountport=N     of MOUNT; else the port of NFS, else rpcbind is asked\n"
"  --transport=NAME  (tcp) or iwarp, verbs: NFS/RDMA; the rest goes by TCP\n"
"  --rdma-port=N     (20049) of NFS/RDMA\n"
"  --connections=N   (1)\n"
"  --threads=N       (1) that share the connections\n"
"  --depth=N         (32) calls outstanding on each connection\n"
"  --block=SIZE      (4096) of READ and WRITE\n"
"  --size=SIZE       (64M) of each connection's file\n"
"  --entries=N       (10000) of the directory that is listed\n"
"  --time=SECONDS    (3) measured, after\n"
"  --warmup=SECONDS  (0.3)\n"
"  --ops=N           calls, instead of a time\n"
"  --stable          WRITEs are FILE_SYNC instead of UNSTABLE\n"
"  --verify          files hold a pattern, and READs are held against it\n"
"  --discard         don't copy what long READs bring out of the kernel\n"
"  --server-pid=N    report this process's CPU time too, and\n"
"  --memory          what its memory grew by for each connection; with --ops\n"
"  --dir=NAME        to work in; made, and removed at the end unless\n"
"  --keep\n"
"  --uid=N --gid=N   to be\n"
"  --privileged      bind to reserved ports\n"
"  --json            report one line of JSON\n"
"  --quiet           no progress line\n"
"\n"
"WORKLOAD is one of\n";

static uint64_t size_value(const char *s)
{
	char *end;
	double v = strtod(s, &end);

	switch (*end) {
	case 'k': case 'K':
		return (uint64_t)(v * 1024);
	case 'm': case 'M':
		return (uint64_t)(v * (1 << 20));
	case 'g': case 'G':
		return (uint64_t)(v * (1 << 30));
	}
	return (uint64_t)v;
}

enum {
	OPT_PORT = 256, OPT_MOUNTPORT, OPT_TRANSPORT, OPT_RDMA_PORT,
	OPT_MEMORY, OPT_CONNECTIONS, OPT_THREADS,
	OPT_DEPTH, OPT_BLOCK, OPT_SIZE, OPT_ENTRIES, OPT_TIME, OPT_WARMUP,
	OPT_OPS, OPT_STABLE, OPT_VERIFY, OPT_DISCARD, OPT_SERVER_PID, OPT_DIR,
	OPT_KEEP, OPT_UID, OPT_GID, OPT_PRIVILEGED, OPT_JSON, OPT_QUIET,
	OPT_HELP,
};

static const struct option rows[] = {
	{ "port", 1, NULL, OPT_PORT },
	{ "mountport", 1, NULL, OPT_MOUNTPORT },
	{ "transport", 1, NULL, OPT_TRANSPORT },
	{ "rdma-port", 1, NULL, OPT_RDMA_PORT },
	{ "memory", 0, NULL, OPT_MEMORY },
	{ "connections", 1, NULL, OPT_CONNECTIONS },
	{ "threads", 1, NULL, OPT_THREADS },
	{ "depth", 1, NULL, OPT_DEPTH },
	{ "block", 1, NULL, OPT_BLOCK },
	{ "size", 1, NULL, OPT_SIZE },
	{ "entries", 1, NULL, OPT_ENTRIES },
	{ "time", 1, NULL, OPT_TIME },
	{ "warmup", 1, NULL, OPT_WARMUP },
	{ "ops", 1, NULL, OPT_OPS },
	{ "stable", 0, NULL, OPT_STABLE },
	{ "verify", 0, NULL, OPT_VERIFY },
	{ "discard", 0, NULL, OPT_DISCARD },
	{ "server-pid", 1, NULL, OPT_SERVER_PID },
	{ "dir", 1, NULL, OPT_DIR },
	{ "keep", 0, NULL, OPT_KEEP },
	{ "uid", 1, NULL, OPT_UID },
	{ "gid", 1, NULL, OPT_GID },
	{ "privileged", 0, NULL, OPT_PRIVILEGED },
	{ "json", 0, NULL, OPT_JSON },
	{ "quiet", 0, NULL, OPT_QUIET },
	{ "help", 0, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static unsigned number(const char *s)
{
	return (unsigned)strtoul(s, NULL, 10);
}

static const struct transport *transport(const char *name)
{
	static const struct transport *const all[] = {
		&load_tcp, &load_iwarp, &load_verbs,
	};

	for (unsigned i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

/* Options that say how much; false: @c is none of them. */
static bool set_amount(struct load_options *o, int c)
{
	switch (c) {
	case OPT_CONNECTIONS:	o->conns = number(optarg); break;
	case OPT_THREADS:	o->threads = number(optarg); break;
	case OPT_DEPTH:		o->depth = number(optarg); break;
	case OPT_BLOCK:		o->block = (uint32_t)size_value(optarg); break;
	case OPT_SIZE:		o->size = size_value(optarg); break;
	case OPT_ENTRIES:	o->entries = number(optarg); break;
	case OPT_TIME:		o->seconds = atof(optarg); break;
	case OPT_WARMUP:	o->warmup = atof(optarg); break;
	case OPT_OPS:		o->ops = size_value(optarg); break;
	default:
		return false;
	}
	return true;
}

/* The others; false: @c is none of them. */
static bool set_other(struct load_options *o, int c)
{
	switch (c) {
	case OPT_PORT:		o->port = number(optarg); break;
	case OPT_MOUNTPORT:	o->mount_port = number(optarg); break;
	case OPT_RDMA_PORT:	o->rdma_port = number(optarg); break;
	case OPT_TRANSPORT:	o->transport = transport(optarg); break;
	case OPT_MEMORY:	o->memory = true; break;
	case OPT_STABLE:	o->stable = 2; break;
	case OPT_VERIFY:	o->verify = true; break;
	case OPT_DISCARD:	o->discard = true; break;
	case OPT_SERVER_PID:	o->server_pid = (int)number(optarg); break;
	case OPT_DIR:		o->dir = optarg; break;
	case OPT_KEEP:		o->keep = true; break;
	case OPT_UID:		o->uid = number(optarg); break;
	case OPT_GID:		o->gid = number(optarg); break;
	case OPT_PRIVILEGED:	o->privileged = true; break;
	case OPT_JSON:		o->json = true; break;
	case OPT_QUIET:		o->progress = false; break;
	default:
		return false;
	}
	return true;
}

static int refuse(const char *why)
{
	fprintf(stderr, "gannet-load: %s; see --help\n", why);
	return -EINVAL;
}

static int check(struct load_options *o)
{
	o->threads = MIN(o->threads, o->conns);
	if (!o->conns || !o->threads || !o->depth || !o->entries)
		return refuse("a number is missing or 0");
	if (o->depth > 1u << 14 || o->conns > 1u << 16)
		return refuse("depth or connections are too many");
	if (!o->block || o->block > LOAD_BLOCK_MAX || o->size < o->block)
		return refuse("block or size make no sense");
	if (!o->transport)
		return refuse("no such transport");
	if (o->memory && (!o->ops || !o->server_pid))
		return refuse("--memory needs --ops and --server-pid");
	if (o->verify && o->discard)
		return refuse("what is discarded can't be verified");
	return 0;
}

int load_options_parse(struct load_options *o, int argc, char **argv)
{
	static char dir[32];
	char *colon;
	int c;

	snprintf(dir, sizeof(dir), "gannet-load.%d", (int)getpid());
	*o = (struct load_options){
		.dir = dir, .transport = &load_tcp, .rdma_port = 20049,
		.conns = 1, .threads = 1,
		.depth = 32, .block = 4096, .size = 64u << 20,
		.entries = 10000, .seconds = 3, .warmup = .3,
		.progress = isatty(STDERR_FILENO), .uid = getuid(),
		.gid = getgid(),
	};
	while ((c = getopt_long(argc, argv, "", rows, NULL)) != -1) {
		if (c == OPT_HELP) {
			fputs(usage, stdout);
			workload_list(stdout);
			exit(0);
		}
		if (!set_amount(o, c) && !set_other(o, c))
			return -EINVAL;
	}
	if (argc - optind != 2)
		return refuse("expected WORKLOAD HOST:PATH");
	o->work = workload_find(argv[optind]);
	if (!o->work)
		return refuse("no such workload");
	colon = strstr(argv[optind + 1], ":/");
	if (!colon)
		return refuse("expected HOST:PATH");
	*colon = '\0';
	o->host = argv[optind + 1];
	o->path = colon + 1;
	return check(o);
}
