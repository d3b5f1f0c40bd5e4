/* SPDX-License-Identifier: BSD-2-Clause */
/* main - gannet-nfs: options and commands. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/nfs/tool.h"
#include "lib/log.h"
#include "lib/standard.h"
#include "lib/util.h"

static const char help[] =
"usage: gannet-nfs COMMAND [OPTION]... ARGUMENT...\n"
"\n"
"A small NFSv3 client, for looking at a server without mounting it.\n"
"\n"
"  ls URL               list a directory\n"
"  stat URL             show the attributes of a file\n"
"  cat URL              copy a file to standard output\n"
"  get URL [FILE]       copy a file from the server; - is standard output\n"
"  put FILE URL         copy a file to the server; - is standard input\n"
"  mount-check URL      connect and show what was negotiated\n"
"\n"
"A URL is TRANSPORT://HOST[:PORT]/PATH[?mountport=N].  TRANSPORT is tcp;\n"
"rdma+verbs, by an RDMA device; rdma+iwarp, which needs none; or rdma, with\n"
"the device if there is one.  nfs is tcp.  In a URL, %xx stands for a byte.\n"
"\n"
"  -a, --all            ls: names that begin with a dot too\n"
"  -l, --long           ls: with attributes\n"
"  -m, --mountport N    port of the MOUNT service, instead of asking rpcbind\n"
"  -d, --depth N        READs and WRITEs at a time (16)\n"
"  -b, --block N        bytes of each (as the server allows, at most 1 MiB)\n"
"  -i, --inline N       longest RDMA message without chunks (4096)\n"
"  -P, --no-private     RDMA: as a client before RFC 8797, which offers 1 KiB\n"
"  -u, --uid N          act as this user (your own)\n"
"  -g, --gid N          act as this group (your own)\n"
"  -t, --timeout SECS   wait so long for a reply (60) before connecting anew,\n"
"                       and for a connection (10)\n"
"  -r, --retries N      connect anew so many times in a row (10)\n"
"  -p, --progress       show progress even when there is no terminal\n"
"  -q, --quiet          show no progress\n"
"  -v, --verbose        log what the transports do\n"
"  -h, --help           print this text\n"
"      --version        print the version\n"
"\n"
"Exit status: 0 success, 1 the server or this system refused, 2 wrong usage,\n"
"3 the server can't be reached.\n";

static const struct option options[] = {
	{ "all", no_argument, NULL, 'a' },
	{ "long", no_argument, NULL, 'l' },
	{ "mountport", required_argument, NULL, 'm' },
	{ "depth", required_argument, NULL, 'd' },
	{ "block", required_argument, NULL, 'b' },
	{ "inline", required_argument, NULL, 'i' },
	{ "no-private", no_argument, NULL, 'P' },
	{ "uid", required_argument, NULL, 'u' },
	{ "gid", required_argument, NULL, 'g' },
	{ "timeout", required_argument, NULL, 't' },
	{ "retries", required_argument, NULL, 'r' },
	{ "progress", no_argument, NULL, 'p' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static int cat(const char *url, const struct tool_options *o)
{
	return tool_get(url, "-", o);
}

static const struct {
	const char *name;
	int	    min, max;
	int	    (*run)(const char *url, const struct tool_options *o);
} commands[] = {
	{ "ls", 1, 1, tool_ls },
	{ "stat", 1, 1, tool_stat },
	{ "cat", 1, 1, cat },
	{ "mount-check", 1, 1, tool_mount_check },
	{ "get", 1, 2, NULL },
	{ "put", 2, 2, NULL },
};

static int wrong(const char *what, const char *which)
{
	fprintf(stderr, "gannet-nfs: %s%s%s; --help tells how it is used\n",
		what, which ? ": " : "", which ? which : "");
	return TOOL_USAGE;
}

/* The options that take a number, and which. */
static const struct range {
	int	    option;
	const char *name;
	unsigned    min, max;
} ranges[] = {
	{ 'm', "mountport", 1, 65535 },
	{ 'd', "depth", 1, 1024 },
	{ 'b', "block", 512, 1u << 20 },
	{ 'i', "inline", 1024, 65536 },
	{ 'r', "retries", 1, 1000000 },
	{ 't', "timeout", 1, 86400 },
	{ 'u', "uid", 0, UINT32_MAX },
	{ 'g', "gid", 0, UINT32_MAX },
};

static bool read_number(int option, const char *text, unsigned *n)
{
	const struct range *r = ranges;
	unsigned long v;
	char *end;

	while (r->option != option)
		r++;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || errno || *end || v < r->min ||
	    v > r->max) {
		fprintf(stderr, "gannet-nfs: --%s %s: expected a number from "
			"%u to %u\n", r->name, text, r->min, r->max);
		return false;
	}
	*n = (unsigned)v;
	return true;
}

static void fill_user(struct nfsc_config *c)
{
	gid_t groups[64];
	int n = getgroups(ARRAY_SIZE(groups), groups);

	c->uid = geteuid();
	c->gid = getegid();
	/* AUTH_SYS has room for 16 (RFC 5531 appendix A). */
	for (int i = 0; i < n && c->ngroups < ARRAY_SIZE(c->groups); i++)
		c->groups[c->ngroups++] = groups[i];
}

struct parsed {
	struct tool_options o;
	unsigned	    mountport;
	unsigned	    done;	/* --help or --version */
};

static int take_number(struct parsed *p, int option, const char *text)
{
	struct nfsc_config *c = &p->o.config;
	unsigned n;

	if (!read_number(option, text, &n))
		return TOOL_USAGE;
	switch (option) {
	case 'm':
		p->mountport = n;
		break;
	case 'd':
		c->depth = n;
		break;
	case 'b':
		p->o.block = n;
		break;
	case 'i':
		c->inline_size = n;
		break;
	case 'r':
		c->retries = n;
		break;
	case 't':
		c->timeout_ms = c->connect_ms = n * 1000;
		break;
	case 'u':
		c->ngroups = 0;
		c->uid = n;
		break;
	case 'g':
		c->ngroups = 0;
		c->gid = n;
		break;
	}
	return TOOL_OK;
}

static int take_option(struct parsed *p, int option)
{
	switch (option) {
	case 'a':
		p->o.all = true;
		break;
	case 'l':
		p->o.lengthy = true;
		break;
	case 'p':
		p->o.progress = true;
		break;
	case 'P':
		p->o.config.no_private = true;
		break;
	case 'q':
		p->o.quiet = true;
		break;
	case 'v':
		log_threshold = LOG_LEVEL_DEBUG;
		break;
	case 'h':
		fputs(help, stdout);
		p->done = 1;
		break;
	case 'V':
		puts("gannet-nfs " PACKAGE_VERSION);
		p->done = 1;
		break;
	case '?':		/* getopt has said why */
		fputs("gannet-nfs: --help tells how it is used\n", stderr);
		return TOOL_USAGE;
	default:
		return take_number(p, option, optarg);
	}
	return TOOL_OK;
}

/* --mountport stands in the URL for those below. */
static const char *with_mountport(const char *url, unsigned port)
{
	static char text[2 * NFS_PATH_MAX];

	if (port == 0 || strchr(url, '?'))
		return url;
	snprintf(text, sizeof(text), "%s?mountport=%u", url, port);
	return text;
}

static int run_command(const struct parsed *p, int argc, char *argv[])
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(argv[0], commands[i].name) == 0)
			break;
	if (i == ARRAY_SIZE(commands))
		return wrong("no such command", argv[0]);
	argc--;
	argv++;
	if (argc < commands[i].min || argc > commands[i].max)
		return wrong("wrong number of arguments", commands[i].name);
	if (commands[i].run)
		return commands[i].run(with_mountport(argv[0], p->mountport),
				       &p->o);
	if (commands[i].max == 2 && commands[i].min == 2)
		return tool_put(argv[0],
				with_mountport(argv[1], p->mountport), &p->o);
	return tool_get(with_mountport(argv[0], p->mountport),
			argc == 2 ? argv[1] : NULL, &p->o);
}

int main(int argc, char *argv[])
{
	struct parsed p = { .o = { .out = stdout, .config.depth = 16 } };
	static char name[] = "gannet-nfs";
	int option, err;

	standard_open();
	argv[0] = name;			/* in what getopt says */
	log_threshold = LOG_LEVEL_ERR;
	fill_user(&p.o.config);
	while ((option = getopt_long(argc, argv, "alm:d:b:i:Pu:g:t:r:pqvh",
				     options, NULL)) != -1) {
		err = take_option(&p, option);
		if (err != TOOL_OK || p.done)
			return err;
	}
	if (optind == argc)
		return wrong("no command", NULL);
	/* A reader that has had enough, a server that went away. */
	signal(SIGPIPE, SIG_IGN);
	err = run_command(&p, argc - optind, argv + optind);
	if (fflush(stdout) != 0 && err == TOOL_OK)
		err = tool_complain("standard output", -errno, 0);
	return err;
}
