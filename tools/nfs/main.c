/* SPDX-License-Identifier: BSD-2-Clause */
/* main - gannet-nfs: options and commands. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/nfs/tool.h"
#include "lib/log.h"
#include "lib/standard.h"
#include "lib/util.h"

/* Options without a letter, or whose letter has two meanings. */
enum {
	OPT_RETRIES = 256, OPT_PROGRESS, OPT_RECURSIVE, OPT_PARENTS,
	OPT_PRESERVE, OPT_NAME, OPT_TYPE, OPT_JSON, OPT_WRITE,
	OPT_CONNECTIONS, OPT_THREADS, OPT_ENTRIES, OPT_SIZE, OPT_OPS, OPT_RATE,
	OPT_TIME, OPT_WARMUP, OPT_STABLE, OPT_VERIFY, OPT_DISCARD,
	OPT_SERVER_PID, OPT_MEMORY, OPT_HELP, OPT_HUMAN, OPT_DEPTH,
	OPT_DIRECTORY, OPT_MAXDEPTH, OPT_MINDEPTH, OPT_CONTINUE,
	OPT_DRY_RUN, OPT_EXCLUDE, OPT_PARALLEL, OPT_CHECKSUM, OPT_HTML,
	OPT_SYMBOLIC, OPT_SUMMARY,
	MANY = 1 << 20,		/* arguments */
};

static const struct option options[] = {
	{ "all", no_argument, NULL, 'a' },
	{ "long", no_argument, NULL, 'l' },
	{ "human-readable", no_argument, NULL, OPT_HUMAN },
	{ "directory", no_argument, NULL, OPT_DIRECTORY },
	{ "mountport", required_argument, NULL, 'm' },
	{ "depth", required_argument, NULL, OPT_DEPTH },
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
	{ "symbolic", no_argument, NULL, OPT_SYMBOLIC },
	{ "summarize", no_argument, NULL, OPT_SUMMARY },
	{ "preserve", no_argument, NULL, OPT_PRESERVE },
	{ "continue", no_argument, NULL, OPT_CONTINUE },
	{ "checksum", no_argument, NULL, OPT_CHECKSUM },
	{ "no-target-directory", no_argument, NULL, 'T' },
	{ "dry-run", no_argument, NULL, OPT_DRY_RUN },
	{ "exclude", required_argument, NULL, OPT_EXCLUDE },
	{ "parallel", required_argument, NULL, OPT_PARALLEL },
	{ "parents", no_argument, NULL, OPT_PARENTS },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "type", required_argument, NULL, OPT_TYPE },
	{ "maxdepth", required_argument, NULL, OPT_MAXDEPTH },
	{ "max-depth", required_argument, NULL, OPT_MAXDEPTH },
	{ "mindepth", required_argument, NULL, OPT_MINDEPTH },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "html", required_argument, NULL, OPT_HTML },
	{ "write", no_argument, NULL, OPT_WRITE },
	{ "connections", required_argument, NULL, OPT_CONNECTIONS },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "entries", required_argument, NULL, OPT_ENTRIES },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "ops", required_argument, NULL, OPT_OPS },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "time", required_argument, NULL, OPT_TIME },
	{ "warmup", required_argument, NULL, OPT_WARMUP },
	{ "stable", no_argument, NULL, OPT_STABLE },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "discard", no_argument, NULL, OPT_DISCARD },
	{ "server-pid", required_argument, NULL, OPT_SERVER_PID },
	{ "memory", no_argument, NULL, OPT_MEMORY },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, OPT_HELP },
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
 * A command has a function for each of its URLs, or for all arguments.  Some
 * letters of options mean what its letters say (R, -r is recursive; M, -p makes
 * parents; K, -p keeps modes and times; H, -h is human-readable; D, -d is the
 * directory itself; X, -d is --max-depth); without them they are --retries,
 * --progress, --help and --depth.  With J it prints JSON, with G it writes a
 * page, with F it has -f, with L -s is symbolic, and with S it is a summary.
 */
static const struct command {
	const char *name;
	int	    min, max;
	int	    (*run)(const char *url, const struct tool_options *o);
	const char *letters;
	int	    (*run_all)(int n, char *const args[],
			       const struct tool_options *o);
} commands[] = {
	{ "ls", 1, 1, tool_ls, "HDJ", NULL },
	{ "tree", 1, 1, tool_tree, "", NULL },
	{ "find", 1, 1, tool_search, "J", NULL },
	{ "stat", 1, 1, tool_stat, "J", NULL },
	{ "df", 1, 1, tool_df, "HJ", NULL },
	{ "cat", 1, 1, cat, "", NULL },
	{ "exports", 1, 1, tool_exports, "", NULL },
	{ "mkdir", 1, MANY, tool_mkdir, "M", NULL },
	{ "touch", 1, MANY, tool_touch, "", NULL },
	{ "chmod", 2, MANY, NULL, "", tool_chmod },
	{ "mv", 2, MANY, NULL, "F", tool_mv },
	{ "ln", 2, MANY, NULL, "L", tool_ln },
	{ "du", 1, 1, tool_du, "HSX", NULL },
	{ "rm", 1, MANY, tool_rm, "RF", NULL },
	{ "mount-check", 1, 1, tool_mount_check, "", NULL },
	{ "doctor", 1, 1, tool_doctor, "J", NULL },
	{ "get", 1, 2, NULL, "", get_command },
	{ "put", 2, 2, NULL, "", put_command },
	{ "cp", 2, MANY, NULL, "RKF", tool_cp },
	{ "bench", 1, MANY, NULL, "JG", tool_bench },
	{ "certify", 1, 1, tool_certify, "JG", NULL },
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
	uint64_t    min, max;
	bool	    bytes;	/* K, M or G may follow */
} ranges[] = {
	{ 'm', "mountport", 1, 65535, false },
	{ OPT_DEPTH, "depth", 1, 1024, false },
	{ OPT_MAXDEPTH, "maxdepth", 0, 1000000, false },
	{ OPT_MINDEPTH, "mindepth", 0, 1000000, false },
	{ OPT_PARALLEL, "parallel", 1, 256, false },
	{ 'b', "block", 512, 1u << 20, true },
	{ 'i', "inline", 1024, 65536, false },
	{ OPT_RETRIES, "retries", 1, 1000000, false },
	{ 't', "timeout", 1, 86400, false },
	{ 'u', "uid", 0, UINT32_MAX, false },
	{ 'g', "gid", 0, UINT32_MAX, false },
	{ OPT_CONNECTIONS, "connections", 1, 65536, false },
	{ OPT_THREADS, "threads", 1, 1024, false },
	{ OPT_ENTRIES, "entries", 1, 1000000, false },
	{ OPT_SIZE, "size", 512, 1ull << 50, true },
	{ OPT_OPS, "ops", 1, 1ull << 50, false },
	{ OPT_RATE, "rate", 1, 1000000000, false },
	{ OPT_SERVER_PID, "server-pid", 1, INT32_MAX, false },
};

/* The factor that follows a number of bytes; 0: it is no factor. */
static uint64_t unit(const char *text, bool bytes)
{
	static const char letters[] = "KMG";
	const char *at;

	if (!*text)
		return 1;
	at = strchr(letters, *text & ~0x20);
	return bytes && !text[1] && at && *at ?
	       1024ull << 10 * (at - letters) : 0;
}

static bool read_number(int option, const char *text, uint64_t *n)
{
	const struct range *r = ranges;
	unsigned long long v;
	uint64_t times;
	char *end;

	while (r->option != option)
		r++;
	errno = 0;
	v = strtoull(text, &end, 10);
	times = unit(end, r->bytes);
	if (*text < '0' || *text > '9' || errno || times == 0 ||
	    v > r->max / times || v * times < r->min) {
		fprintf(stderr, "gannet-nfs: --%s %s: expected a number from "
			"%llu to %llu\n", r->name, text,
			(unsigned long long)r->min,
			(unsigned long long)r->max);
		return false;
	}
	*n = v * times;
	return true;
}

static int take_seconds(const char *name, const char *text, double *out)
{
	char *end;
	double v = strtod(text, &end);

	/* No sign, no "inf". */
	if (!*text || !strchr("0123456789.", *text) || *end || !(v <= 86400)) {
		fprintf(stderr, "gannet-nfs: --%s %s: expected seconds, up to "
			"86400\n", name, text);
		return TOOL_USAGE;
	}
	*out = v;
	return TOOL_OK;
}

struct parsed {
	struct tool_options o;
	const struct command *command;
	unsigned	    done;	/* --help or --version */
};

/* Options of bench. */
static void take_amount(struct bench_options *b, int option, uint64_t n)
{
	switch (option) {
	case OPT_CONNECTIONS:	b->connections = (unsigned)n; break;
	case OPT_THREADS:	b->threads = (unsigned)n; break;
	case OPT_ENTRIES:	b->entries = (unsigned)n; break;
	case OPT_SIZE:		b->size = n; break;
	case OPT_OPS:		b->ops = n; break;
	case OPT_RATE:		b->rate = n; break;
	case OPT_SERVER_PID:	b->server_pid = (int)n; break;
	}
}

static int take_number(struct parsed *p, int option, const char *text)
{
	struct nfsc_config *c = &p->o.config;
	uint64_t v;
	unsigned n;

	if (!read_number(option, text, &v))
		return TOOL_USAGE;
	n = (unsigned)v;
	switch (option) {
	case 'm':
		p->o.mountport = (uint16_t)n;
		break;
	case OPT_DEPTH:
		c->depth = n;
		break;
	case OPT_MAXDEPTH:
		p->o.levels = n + 1;
		break;
	case OPT_MINDEPTH:
		p->o.mindepth = n;
		break;
	case OPT_PARALLEL:
		p->o.parallel = n;
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
	default:
		take_amount(&p->o.bench, option, v);
	}
	return TOOL_OK;
}

static int take_type(struct parsed *p, const char *text)
{
	if (!*text || text[1] || !strchr(tool_types + 1, *text)) {
		fprintf(stderr, "gannet-nfs: --type %s: expected one of the "
			"letters %s\n", text, tool_types + 1);
		return TOOL_USAGE;
	}
	p->o.type = *text;
	return TOOL_OK;
}

static int take_exclude(struct tool_options *o, const char *glob)
{
	size_t n = 0;

	while (n < EXCLUDES_MAX && o->exclude[n])
		n++;
	if (n == EXCLUDES_MAX || strchr(glob, '/')) {
		fprintf(stderr, "gannet-nfs: --exclude %s: expected at most %u "
			"patterns of names, without slashes\n", glob,
			EXCLUDES_MAX);
		return TOOL_USAGE;
	}
	o->exclude[n] = glob;
	return TOOL_OK;
}

/* The command's own meaning of -r, -p, -h, -d and -s. */
static int own_meaning(const struct command *c, int option)
{
	const char *letters = c ? c->letters : "";

	if (option == 'r')
		return strchr(letters, 'R') ? OPT_RECURSIVE : OPT_RETRIES;
	if (option == 'p')
		return strchr(letters, 'M') ? OPT_PARENTS :
		       strchr(letters, 'K') ? OPT_PRESERVE : OPT_PROGRESS;
	if (option == 'h')
		return strchr(letters, 'H') ? OPT_HUMAN : OPT_HELP;
	if (option == 'd')
		return strchr(letters, 'D') ? OPT_DIRECTORY :
		       strchr(letters, 'X') ? OPT_MAXDEPTH : OPT_DEPTH;
	if (option == 's')
		return strchr(letters, 'S') ? OPT_SUMMARY : OPT_SYMBOLIC;
	return option;
}

/* find(1) has words behind one dash. */
static void lengthen_dashes(int argc, char *argv[])
{
	static char words[][12] = { "--name", "--type", "--maxdepth",
				    "--mindepth" };

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		for (size_t k = 0; k < ARRAY_SIZE(words); k++)
			if (strcmp(argv[i], words[k] + 1) == 0)
				argv[i] = words[k];
}

/* Options of bench only that take no number; -1: another option. */
static int take_bench(struct bench_options *b, int option)
{
	switch (option) {
	case OPT_TIME:
		return take_seconds("time", optarg, &b->seconds);
	case OPT_WARMUP:
		return take_seconds("warmup", optarg, &b->warmup);
	case OPT_STABLE:
		b->stable = true;
		return TOOL_OK;
	case OPT_VERIFY:
		b->verify = true;
		return TOOL_OK;
	case OPT_DISCARD:
		b->discard = true;
		return TOOL_OK;
	case OPT_MEMORY:
		b->memory = true;
		return TOOL_OK;
	default:
		return -1;
	}
}

/* The flag of an option without an argument; NULL: it has none. */
static bool *flag_of(struct tool_options *o, int option)
{
	switch (option) {
	case 'a':		return &o->all;
	case 'l':		return &o->lengthy;
	case OPT_HUMAN:		return &o->human;
	case OPT_DIRECTORY:	return &o->itself;
	case 'f':		return &o->force;
	case OPT_SYMBOLIC:	return &o->symbolic;
	case OPT_SUMMARY:	return &o->summary;
	case OPT_RECURSIVE:	return &o->recursive;
	case OPT_PARENTS:	return &o->parents;
	case OPT_PRESERVE:	return &o->preserve;
	case OPT_CONTINUE:	return &o->resume;
	case OPT_CHECKSUM:	return &o->checksum;
	case 'T':		return &o->as;
	case OPT_DRY_RUN:	return &o->dry_run;
	case OPT_PROGRESS:	return &o->progress;
	case OPT_JSON:		return &o->json;
	case OPT_WRITE:		return &o->write;
	case 'P':		return &o->config.no_private;
	case 'q':		return &o->quiet;
	default:		return NULL;
	}
}

static int take_option(struct parsed *p, int option)
{
	int err = take_bench(&p->o.bench, option);
	bool *flag = flag_of(&p->o, option);

	if (flag)
		*flag = true;
	if (flag || err >= 0)
		return flag ? TOOL_OK : err;
	switch (option) {
	case '1':		/* ls has one name in a line anyway */
		break;
	case OPT_HTML:
		p->o.html = optarg;
		break;
	case OPT_NAME:
		p->o.name = optarg;
		break;
	case OPT_EXCLUDE:
		return take_exclude(&p->o, optarg);
	case OPT_TYPE:
		return take_type(p, optarg);
	case 'v':
		log_threshold = LOG_LEVEL_DEBUG;
		break;
	case OPT_HELP:
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

/* An option that does nothing would be taken for done: rm --dry-run. */
static const char *pointless(const struct parsed *p)
{
	const char *letters = p->command->letters;

	if (p->o.json && !strchr(letters, 'J'))
		return "--json";
	if (p->o.html && !strchr(letters, 'G'))
		return "--html";
	if (p->o.force && !strchr(letters, 'F'))
		return "--force";
	if (p->o.symbolic && !strchr(letters, 'L'))
		return strchr(letters, 'S') ? "--symbolic" : "-s";
	if (p->o.summary && !strchr(letters, 'S'))
		return "--summarize";
	if (strchr(letters, 'K'))
		return NULL;
	return p->o.dry_run ? "--dry-run" : p->o.resume ? "--continue" :
	       p->o.exclude[0] ? "--exclude" :
	       p->o.checksum ? "--checksum" : p->o.as ? "-T" :
	       p->o.parallel ? "--parallel" : NULL;
}

static int run_command(const struct parsed *p, int argc, char *argv[])
{
	const struct command *c = p->command;
	int worst = TOOL_OK;

	if (!c || strcmp(argv[0], c->name) != 0)
		return wrong("no such command", argv[0]);
	if (pointless(p)) {
		fprintf(stderr, "gannet-nfs: %s has no %s\n", c->name,
			pointless(p));
		return TOOL_USAGE;
	}
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
	struct parsed p = { .o = { .out = stdout, .config.depth = 16,
				.bench.warmup = -1 } };
	static char name[] = "gannet-nfs";
	char letters[40];
	int option, err;

	standard_open();
	argv[0] = name;			/* in what getopt says */
	log_threshold = LOG_LEVEL_ERR;
	nfsc_config_user(&p.o.config);
	lengthen_dashes(argc, argv);
	p.command = named_command(argc, argv);
	snprintf(letters, sizeof(letters), "al1fsTm:b:i:Pu:g:t:pqvhr%sd%s",
		 own_meaning(p.command, 'r') == OPT_RECURSIVE ? "" : ":",
		 own_meaning(p.command, 'd') == OPT_DIRECTORY ? "" : ":");
	while ((option = getopt_long(argc, argv, letters, options,
				     NULL)) != -1) {
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
