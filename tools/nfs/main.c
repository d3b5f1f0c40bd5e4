/* SPDX-License-Identifier: BSD-2-Clause */
/* main - gannet-nfs: options and commands. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/nfs/sec.h"
#include "tools/nfs/tls.h"
#include "tools/nfs/tool.h"
#include "lib/log.h"
#include "lib/standard.h"
#include "lib/util.h"

/* How an option is read.  The kinds up to NO_ARGUMENT have none. */
enum kind {
	FLAG, VERBOSE, HELP, VERS, NO_ARGUMENT,
	ALIAS,			/* as the row before */
	TEXT, SECONDS, TYPE, EXCLUDE, SEC,
	/* Numbers: of 32 bits, of 64, and those with a rule. */
	NUMBER, BIG, ID, PORT, LEVELS, TIMEOUT,
};

#define RANGE(name, letter, kind, field, min, max, bytes) \
	{ name, letter, kind, offsetof(struct tool_options, field), min, max, \
	  bytes }
#define ROW(name, letter, kind, field) \
	RANGE(name, letter, kind, field, 0, 0, false)
#define BARE(name, letter, kind) { name, letter, kind, 0, 0, 0, false }

static const struct row {
	const char *name;
	char	    letter;	/* 0: none; or it has two meanings */
	enum kind   kind;
	size_t	    at;		/* of its field in struct tool_options */
	uint64_t    min, max;
	bool	    bytes;	/* K, M or G can follow */
} rows[] = {
	ROW("all", 'a', FLAG, all),
	ROW("long", 'l', FLAG, lengthy),
	ROW("human-readable", 0, FLAG, human),
	ROW("directory", 0, FLAG, itself),
	RANGE("mountport", 'm', PORT, mountport, 1, 65535, false),
	RANGE("depth", 0, NUMBER, config.depth, 1, 1024, false),
	RANGE("block", 'b', NUMBER, block, 512, 1u << 20, true),
	RANGE("inline", 'i', NUMBER, config.inline_size, 1024, 65536, false),
	ROW("no-private", 'P', FLAG, config.no_private),
	ROW("sec", 0, SEC, config.sec),
	ROW("tls", 0, FLAG, tls),
	ROW("tls-ca", 0, TEXT, tls_ca),
	ROW("tls-cert", 0, TEXT, tls_cert),
	ROW("tls-key", 0, TEXT, tls_key),
	RANGE("uid", 'u', ID, config.uid, 0, UINT32_MAX, false),
	RANGE("gid", 'g', ID, config.gid, 0, UINT32_MAX, false),
	RANGE("timeout", 't', TIMEOUT, config.timeout_ms, 1, 86400, false),
	RANGE("retries", 0, NUMBER, config.retries, 1, 1000000, false),
	ROW("progress", 0, FLAG, progress),
	ROW("recursive", 0, FLAG, recursive),
	ROW("force", 'f', FLAG, force),
	ROW("symbolic", 0, FLAG, symbolic),
	ROW("summarize", 0, FLAG, summary),
	ROW("preserve", 0, FLAG, preserve),
	ROW("continue", 0, FLAG, resume),
	ROW("checksum", 0, FLAG, checksum),
	ROW("no-target-directory", 'T', FLAG, as),
	ROW("dry-run", 0, FLAG, dry_run),
	ROW("exclude", 0, EXCLUDE, exclude),
	RANGE("parallel", 0, NUMBER, parallel, 1, 256, false),
	ROW("parents", 0, FLAG, parents),
	ROW("name", 0, TEXT, name),
	ROW("type", 0, TYPE, type),
	RANGE("maxdepth", 0, LEVELS, levels, 0, 1000000, false),
	BARE("max-depth", 0, ALIAS),
	RANGE("mindepth", 0, NUMBER, mindepth, 0, 1000000, false),
	ROW("json", 0, FLAG, json),
	ROW("html", 0, TEXT, html),
	ROW("write", 0, FLAG, write),
	RANGE("connections", 0, NUMBER, bench.connections, 1, 65536, false),
	RANGE("threads", 0, NUMBER, bench.threads, 1, 1024, false),
	RANGE("entries", 0, NUMBER, bench.entries, 1, 1000000, false),
	RANGE("size", 0, BIG, bench.size, 512, 1ull << 50, true),
	RANGE("ops", 0, BIG, bench.ops, 1, 1ull << 50, false),
	RANGE("rate", 0, BIG, bench.rate, 1, 1000000000, false),
	ROW("time", 0, SECONDS, bench.seconds),
	ROW("warmup", 0, SECONDS, bench.warmup),
	ROW("stable", 0, FLAG, bench.stable),
	ROW("verify", 0, FLAG, bench.verify),
	ROW("discard", 0, FLAG, bench.discard),
	RANGE("server-pid", 0, NUMBER, bench.server_pid, 1, INT32_MAX, false),
	ROW("memory", 0, FLAG, bench.memory),
	ROW("quiet", 'q', FLAG, quiet),
	BARE("verbose", 'v', VERBOSE),
	BARE("help", 0, HELP),
	BARE("version", 0, VERS),
};

static int cat(const char *url, const struct tool_options *o)
{
	return tool_get(url, "-", o);
}

enum { MANY = 1 << 20 };	/* arguments */

static int get_command(int n, char *const args[], const struct tool_options *o)
{
	return tool_get(args[0], n == 2 ? args[1] : NULL, o);
}

static int put_command(int n, char *const args[], const struct tool_options *o)
{
	return tool_put(args[0], args[1], o);
}

/*
 * A command has a function for each of its URLs, or for all arguments.  The
 * command's letters give some options their meaning (R, -r is recursive; M, -p
 * makes parents; K, -p keeps modes and times; H, -h is human-readable; D, -d is
 * the directory itself; X, -d is --max-depth); without them they are --retries,
 * --progress, --help and --depth.  With J it prints JSON, with G it writes a
 * page, with F it has -f, with L -s is symbolic, and with S it is a summary.
 * One with P only prints.
 */
static const struct command {
	const char *name;
	int	    min, max;
	int	    (*run)(const char *url, const struct tool_options *o);
	const char *letters;
	int	    (*run_all)(int n, char *const args[],
			       const struct tool_options *o);
} commands[] = {
	{ "ls", 1, 1, tool_ls, "HDJP", NULL },
	{ "tree", 1, 1, tool_tree, "P", NULL },
	{ "find", 1, 1, tool_search, "JP", NULL },
	{ "stat", 1, 1, tool_stat, "JP", NULL },
	{ "df", 1, 1, tool_df, "HJP", NULL },
	{ "cat", 1, 1, cat, "P", NULL },
	{ "exports", 1, 1, tool_exports, "P", NULL },
	{ "mkdir", 1, MANY, tool_mkdir, "M", NULL },
	{ "touch", 1, MANY, tool_touch, "", NULL },
	{ "chmod", 2, MANY, NULL, "", tool_chmod },
	{ "mv", 2, MANY, NULL, "F", tool_mv },
	{ "ln", 2, MANY, NULL, "L", tool_ln },
	{ "du", 1, 1, tool_du, "HSXP", NULL },
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

/* The factor that follows a number of bytes; 0: it is not a factor. */
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

static bool read_number(const struct row *r, const char *text, uint64_t *n)
{
	unsigned long long v;
	uint64_t times;
	char *end;

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

static int take_number(struct tool_options *o, const struct row *r,
		       const char *text)
{
	void *at = (char *)o + r->at;
	uint64_t n;

	if (!read_number(r, text, &n))
		return TOOL_USAGE;
	switch (r->kind) {
	case BIG:
		*(uint64_t *)at = n;
		break;
	case PORT:
		o->mountport = (uint16_t)n;
		break;
	case LEVELS:
		o->levels = (unsigned)n + 1;
		break;
	case TIMEOUT:
		o->config.timeout_ms = o->config.connect_ms =
			(unsigned)n * 1000;
		break;
	default:
		*(uint32_t *)at = (uint32_t)n;
	}
	if (r->kind == ID)
		o->config.ngroups = 0;
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

static int take_sec(const struct nfsc_sec **sec, const char *name)
{
	int err = nfsc_sec_find(name, sec);

	if (err == -EOPNOTSUPP)
		fprintf(stderr, "gannet-nfs: --sec %s: this gannet-nfs was "
			"built without Kerberos\n", name);
	else if (err < 0)
		fprintf(stderr, "gannet-nfs: --sec %s: expected sys, krb5, "
			"krb5i or krb5p\n", name);
	return err < 0 ? TOOL_USAGE : TOOL_OK;
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

/* The command's meaning of -r, -p, -h, -d and -s; NULL: another letter. */
static const char *own_meaning(const char *letters, int letter)
{
	switch (letter) {
	case 'r':
		return strchr(letters, 'R') ? "recursive" : "retries";
	case 'p':
		return strchr(letters, 'M') ? "parents" :
		       strchr(letters, 'K') ? "preserve" : "progress";
	case 'h':
		return strchr(letters, 'H') ? "human-readable" : "help";
	case 'd':
		return strchr(letters, 'D') ? "directory" :
		       strchr(letters, 'X') ? "maxdepth" : "depth";
	case 's':
		return strchr(letters, 'S') ? "summarize" : "symbolic";
	}
	return NULL;
}

/* getopt's value of the first row, without a letter. */
#define FIRST_ROW	256

/* The row of getopt's @option; NULL: it has none. */
static const struct row *row_of(const struct command *c, int option)
{
	const char *name = own_meaning(c ? c->letters : "", option);

	if (option >= FIRST_ROW)
		return &rows[option - FIRST_ROW];
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (name ? !strcmp(rows[i].name, name) :
			   rows[i].letter == option)
			return &rows[i];
	return NULL;
}

/* find(1) has words behind one dash, which getopt would take for letters.
 * False, after a message: find has a word of four letters or more, as -exec or
 * -print0, that is not here.  Shorter ones can be letters of ours. */
static bool lengthen_dashes(int argc, char *argv[], bool find)
{
	static char words[][12] = { "--name", "--type", "--maxdepth",
				    "--mindepth" };
	static const char small[] = "abcdefghijklmnopqrstuvwxyz";

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *arg = argv[i];
		size_t k = 0;

		while (k < ARRAY_SIZE(words) && strcmp(arg, words[k]) &&
		       strcmp(arg, words[k] + 1))
			k++;
		if (k < ARRAY_SIZE(words)) {
			argv[i++] = words[k];	/* and its value */
		} else if (find && arg[0] == '-' &&
			   strspn(arg + 1, small) > 3) {
			fprintf(stderr, "gannet-nfs: find has no %s, but "
				"-name, -type, -mindepth and -maxdepth\n",
				arg);
			return false;
		}
	}
	return true;
}

static int take_option(struct parsed *p, const struct row *r)
{
	void *at = (char *)&p->o + r->at;

	switch (r->kind) {
	case FLAG:
		*(bool *)at = true;
		return TOOL_OK;
	case TEXT:
		*(const char **)at = optarg;
		return TOOL_OK;
	case SECONDS:
		return take_seconds(r->name, optarg, at);
	case EXCLUDE:
		return take_exclude(&p->o, optarg);
	case SEC:
		return take_sec(at, optarg);
	case TYPE:
		return take_type(p, optarg);
	case VERBOSE:
		log_threshold = LOG_LEVEL_DEBUG;
		return TOOL_OK;
	case HELP:
		fputs(tool_usage, stdout);
		p->done = 1;
		return TOOL_OK;
	case VERS:
		puts("gannet-nfs " PACKAGE_VERSION);
		p->done = 1;
		return TOOL_OK;
	default:
		return take_number(&p->o, r, optarg);
	}
}

/* Not TOOL_OK, or p->done: it ends here. */
static int parse_arguments(struct parsed *p, int argc, char *argv[])
{
	struct option options[ARRAY_SIZE(rows) + 1] = { 0 };
	char letters[64] = "", *at = letters;
	const struct row *r;
	int option = 0, err = TOOL_OK;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		options[i] = (struct option){
			.name = rows[i].name,
			.has_arg = rows[i].kind > NO_ARGUMENT,
			.val = FIRST_ROW + (int)i - (rows[i].kind == ALIAS),
		};
	for (const char *l = "al1fsTmbiPugtpqvhrd"; *l; l++) {
		r = row_of(p->command, *l);
		*at++ = *l;
		if (r && r->kind > NO_ARGUMENT)
			*at++ = ':';
	}
	while (err == TOOL_OK && !p->done &&
	       (option = getopt_long(argc, argv, letters, options,
				     NULL)) != -1) {
		/* NULL: -1, which ls does anyway; or getopt has said why. */
		r = row_of(p->command, option);
		if (r)
			err = take_option(p, r);
		else if (option == '?')
			err = TOOL_USAGE;
	}
	if (option == '?')
		fputs("gannet-nfs: --help tells how it is used\n", stderr);
	return err;
}

/* A user would believe that an ignored option took effect: rm --dry-run. */
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

/* Makes config.tls, if it is asked for. */
static int take_tls(struct tool_options *o, struct nfsc_tls **tls)
{
	const struct tls_files files = { .cert = o->tls_cert, .key = o->tls_key,
					 .ca = o->tls_ca };
	char *why;
	int err;

	*tls = NULL;
	if (!files.cert != !files.key)
		return wrong("--tls-cert and --tls-key: one needs the other",
			     NULL);
	if (!o->tls && !files.ca && !files.cert)
		return TOOL_OK;
	err = nfsc_tls_create(&files, tls, &why);
	if (err < 0)
		fprintf(stderr, "gannet-nfs: TLS: %s\n",
			why ? why : strerror(-err));
	free(why);
	o->config.tls = *tls;
	return err < 0 ? TOOL_FAILED : TOOL_OK;
}

int main(int argc, char *argv[])
{
	struct parsed p = { .o = { .out = stdout, .config.depth = 16,
				.bench.warmup = -1 } };
	static char name[] = "gannet-nfs";
	struct nfsc_tls *tls;
	int err;

	standard_open();
	argv[0] = name;			/* in what getopt says */
	log_threshold = LOG_LEVEL_ERR;
	nfsc_config_user(&p.o.config);
	p.command = named_command(argc, argv);
	if (!lengthen_dashes(argc, argv, p.command &&
			     p.command->run == tool_search))
		return TOOL_USAGE;
	err = parse_arguments(&p, argc, argv);
	if (err != TOOL_OK || p.done)
		return err;
	if (optind == argc)
		return wrong("no command", NULL);
	err = take_tls(&p.o, &tls);
	if (err != TOOL_OK)
		return err;
	/* A command that only prints ends with its reader, as find(1) does
	 * before head(1).  Others first finish their work at the server. */
	if (!p.command || !strchr(p.command->letters, 'P'))
		signal(SIGPIPE, SIG_IGN);
	err = run_command(&p, argc - optind, argv + optind);
	nfsc_tls_destroy(tls);
	if (fflush(stdout) != 0 && err == TOOL_OK)
		err = tool_complain("standard output", -errno, 0);
	return err;
}
