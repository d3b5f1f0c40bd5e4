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

/* Options without a letter, or whose letter has two meanings. */
enum {
	OPT_RETRIES = 256, OPT_PROGRESS, OPT_RECURSIVE, OPT_PARENTS,
	OPT_PRESERVE, OPT_NAME, OPT_TYPE, OPT_JSON, OPT_WRITE,
	MANY = 1 << 20,		/* arguments */
};

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
	{ "retries", required_argument, NULL, OPT_RETRIES },
	{ "progress", no_argument, NULL, OPT_PROGRESS },
	{ "recursive", no_argument, NULL, OPT_RECURSIVE },
	{ "force", no_argument, NULL, 'f' },
	{ "preserve", no_argument, NULL, OPT_PRESERVE },
	{ "parents", no_argument, NULL, OPT_PARENTS },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "type", required_argument, NULL, OPT_TYPE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "write", no_argument, NULL, OPT_WRITE },
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

static int get_command(int n, char *const args[], const struct tool_options *o)
{
	return tool_get(args[0], n == 2 ? args[1] : NULL, o);
}

static int put_command(int n, char *const args[], const struct tool_options *o)
{
	return tool_put(args[0], args[1], o);
}

/*
 * A command has a function for each of its URLs, or for all arguments.  -r and
 * -p mean what its letters say (R, recursive; M, make parents; K, keep modes
 * and times); without them they are --retries and --progress.
 */
static const struct command {
	const char *name;
	int	    min, max;
	int	    (*run)(const char *url, const struct tool_options *o);
	const char *letters;
	int	    (*run_all)(int n, char *const args[],
			       const struct tool_options *o);
} commands[] = {
	{ "ls", 1, 1, tool_ls, "", NULL },
	{ "tree", 1, 1, tool_tree, "", NULL },
	{ "find", 1, 1, tool_search, "", NULL },
	{ "stat", 1, 1, tool_stat, "", NULL },
	{ "df", 1, 1, tool_df, "", NULL },
	{ "cat", 1, 1, cat, "", NULL },
	{ "exports", 1, 1, tool_exports, "", NULL },
	{ "mkdir", 1, MANY, tool_mkdir, "M", NULL },
	{ "rm", 1, MANY, tool_rm, "R", NULL },
	{ "mount-check", 1, 1, tool_mount_check, "", NULL },
	{ "doctor", 1, 1, tool_doctor, "", NULL },
	{ "get", 1, 2, NULL, "", get_command },
	{ "put", 2, 2, NULL, "", put_command },
	{ "cp", 2, MANY, NULL, "RK", tool_cp },
};

/* The first argument that is a command; NULL: none is. */
static const struct command *named_command(int argc, char *argv[])
{
	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < ARRAY_SIZE(commands); k++)
			if (strcmp(argv[i], commands[k].name) == 0)
				return &commands[k];
	return NULL;
}

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
	{ OPT_RETRIES, "retries", 1, 1000000 },
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
	const struct command *command;
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
		p->o.mountport = (uint16_t)n;
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
	case OPT_RETRIES:
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

static int take_type(struct parsed *p, const char *text)
{
	if (!*text || text[1] || !strchr("fdl", *text)) {
		fprintf(stderr, "gannet-nfs: --type %s: expected f, d or l\n",
			text);
		return TOOL_USAGE;
	}
	p->o.type = *text;
	return TOOL_OK;
}

/* The command's own meaning of -r and -p. */
static int own_meaning(const struct command *c, int option)
{
	const char *letters = c ? c->letters : "";

	if (option == 'r')
		return strchr(letters, 'R') ? OPT_RECURSIVE : OPT_RETRIES;
	if (option == 'p')
		return strchr(letters, 'M') ? OPT_PARENTS :
		       strchr(letters, 'K') ? OPT_PRESERVE : OPT_PROGRESS;
	return option;
}

/* find(1) has words behind one dash. */
static void lengthen_dashes(int argc, char *argv[])
{
	static char name[] = "--name", type[] = "--type";

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "-name") == 0)
			argv[i] = name;
		else if (strcmp(argv[i], "-type") == 0)
			argv[i] = type;
	}
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
	case 'f':
		p->o.force = true;
		break;
	case OPT_RECURSIVE:
		p->o.recursive = true;
		break;
	case OPT_PARENTS:
		p->o.parents = true;
		break;
	case OPT_PRESERVE:
		p->o.preserve = true;
		break;
	case OPT_PROGRESS:
		p->o.progress = true;
		break;
	case OPT_JSON:
		p->o.json = true;
		break;
	case OPT_WRITE:
		p->o.write = true;
		break;
	case OPT_NAME:
		p->o.name = optarg;
		break;
	case OPT_TYPE:
		return take_type(p, optarg);
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
		fputs(tool_usage, stdout);
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

static int run_command(const struct parsed *p, int argc, char *argv[])
{
	const struct command *c = p->command;
	int worst = TOOL_OK;

	if (!c || strcmp(argv[0], c->name) != 0)
		return wrong("no such command", argv[0]);
	argc--;
	argv++;
	if (argc < c->min || argc > c->max)
		return wrong("wrong number of arguments", c->name);
	if (c->run_all)
		return c->run_all(argc, argv, &p->o);
	for (int i = 0; i < argc; i++) {
		int err = c->run(argv[i], &p->o);

		worst = err > worst ? err : worst;
	}
	return worst;
}

int main(int argc, char *argv[])
{
	struct parsed p = { .o = { .out = stdout, .config.depth = 16 } };
	static char name[] = "gannet-nfs";
	bool recursive;
	int option, err;

	standard_open();
	argv[0] = name;			/* in what getopt says */
	log_threshold = LOG_LEVEL_ERR;
	fill_user(&p.o.config);
	lengthen_dashes(argc, argv);
	p.command = named_command(argc, argv);
	recursive = own_meaning(p.command, 'r') == OPT_RECURSIVE;
	while ((option = getopt_long(argc, argv, recursive ?
				     "alfm:d:b:i:Pu:g:t:rpqvh" :
				     "alfm:d:b:i:Pu:g:t:r:pqvh",
				     options, NULL)) != -1) {
		err = take_option(&p, own_meaning(p.command, option));
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
