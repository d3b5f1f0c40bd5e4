/* SPDX-License-Identifier: BSD-2-Clause */
/* options - the command line of gannetd, its defaults and gannet.conf put
 * together. */
#include "daemon/settings/settings.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/loop.h"
#include "lib/machine.h"
#include "lib/util.h"

#define MIB	((size_t)1 << 20)
/* As the kernel's lock manager. */
#define GRACE_S	50u
#define NO_METRICS	"built without libmicrohttpd: no metrics, no status " \
			"page\n"

/* getopt_long() returns this and the number of the row: were they all the same,
 * it would take an abbreviation of several for the first. */
#define FIRST_ROW	0x100

/* An argument of the command line. */
struct argument {
	const struct option_row *row;
	const char *value;
};

/* ---- texts */

static void print_option(const char *name, const char *arg, const char *help)
{
	char left[40];

	snprintf(left, sizeof(left), "--%s%s%s", name, arg ? " " : "",
		 arg ? : "");
	if (strlen(left) > 22) {	/* a separate line */
		printf("  %s\n", left);
		left[0] = '\0';
	}
	while (help) {
		const char *nl = strchr(help, '\n');
		int n = nl ? (int)(nl - help) : (int)strlen(help);

		printf("  %-22s %.*s\n", left, n, help);
		left[0] = '\0';
		help = nl ? nl + 1 : NULL;
	}
}

static void print_options(void)
{
	const struct option_row *row;

	for (unsigned i = 0; (row = option_row(i)); i++) {
		if (row->name)
			print_option(row->name, row->arg, row->help);
		if (row->kind != OPTION_RDMA)
			continue;
		for (unsigned f = 0; f < fabrics_count(); f++)
			printf("  %-22s %s: %s\n", "", fabric_rows[f]->name,
			       fabric_rows[f]->help);
	}
}

static void print_help(void)
{
	printf("Usage: gannetd [OPTION]...\n"
	       "Serves directories over NFSv3, on RPC-over-RDMA and TCP.\n\n");
	print_options();
	printf("  %-22s %s\n  %-22s %s\n  %-22s %s\n", "--print-config",
	       "print all settings as a gannet.conf, and end",
	       "--help", "this text", "--version", "print the version");
	printf("\nExamples:\n"
	       "  gannetd --foreground --export /srv/data\n"
	       "  gannetd --export '/srv/data 192.0.2.0/24(rw,root_squash)'\n"
	       "\nSIGTERM and SIGINT finish the calls in progress and end the "
	       "server; SIGHUP reads\ngannet.conf and the exports again; "
	       "SIGUSR1 logs the counters.\n"
	       "Exit status: 0 ended by a signal, 1 could not start or run, "
	       "2 wrong usage.\n"
	       "\nMore in gannetd(8), gannet.conf(5), which has more settings, "
	       "and\ngannet-exports(5).\n");
}

static void print_key(const struct options *o, const struct option_row *row)
{
	const struct option_texts *given = option_given(o, row);

	for (unsigned i = 0; i < given->n && row->kind == OPTION_LIST; i++)
		printf("%s = %s\n", row->key, given->v[i]);
	if (row->kind == OPTION_LIST && given->n)
		return;
	printf("%s%s = ", given->n ? "" : "#", row->key);
	option_print(o, row, stdout);
	printf("\n");
}

/* Keys that have their default are comments. */
static void print_config(const struct options *o)
{
	const struct option_row *row, *first;

	if (!HAVE_MICROHTTPD)
		printf("# " NO_METRICS);
	for (unsigned i = 0; (first = option_row(i)); i++) {
		unsigned k = 0;

		/* A section comes with its first row. */
		while (first->section && (!option_row(k)->section ||
		       strcmp(option_row(k)->section, first->section)))
			k++;
		if (!first->section || k < i)
			continue;
		printf("%s[%s]\n", i > 1 ? "\n" : "", first->section);
		for (; (row = option_row(k)); k++)
			if (row->section &&
			    !strcmp(row->section, first->section))
				print_key(o, row);
	}
}

/* ---- defaults */

/* The default state directory: for root, the system's place. */
static char *default_state_dir(void)
{
	const char *base = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	const struct passwd *pw = NULL;
	char *dir = NULL;
	int n;

	if (geteuid() == 0)
		return strdup(LOCALSTATEDIR "/lib/gannet");
	/* Never below a directory that others can write to: the key is a
	 * secret. */
	if (!home || *home != '/')
		pw = getpwuid(geteuid());
	if (pw)
		home = pw->pw_dir;
	if (base && *base == '/')
		n = asprintf(&dir, "%s/gannet", base);
	else
		n = asprintf(&dir, "%s/.local/state/gannet",
			     home && *home == '/' ? home : "");
	return n < 0 ? NULL : dir;
}

static void default_memory(struct options *o)
{
	size_t ram = (size_t)machine_share()->memory;

	o->memory = MIN(ram / 4, 1024 * MIB);
	o->memory = MAX(o->memory, 8 * MIB);
	o->rdma_memory = MAX(ram / 8, 8 * MIB);
	o->reply_memory = MIN(ram / 256, 256 * MIB);
	o->reply_memory = MAX(o->reply_memory, 16 * MIB);
}

/* An eighth of the tasks, since a container can have few of them, for pollers,
 * and as many for an export. */
static void default_threads(struct options *o)
{
	const struct machine *m = machine_share();
	uint64_t most = MAX(m->tasks / 8, UINT64_C(1));

	o->threads = (unsigned)MIN(most, UINT64_C(16));
	most = MIN(most, (uint64_t)MAX_POLLERS);
	o->pollers = (unsigned)MIN(most, m->processors);
}

static const struct option_texts *texts_of(struct options *o, size_t at)
{
	const struct option_row *row;

	for (unsigned i = 0; (row = option_row(i)); i++)
		if (row->kind == OPTION_LIST && row->at == at)
			return &o->given[i];
	return NULL;
}

static void set_defaults(struct options *o)
{
	memset(o, 0, sizeof(*o));
	o->exports = texts_of(o, offsetof(struct options, exports));
	o->audit_exports = texts_of(o, offsetof(struct options,
						audit_exports));
	o->exports_files = texts_of(o, offsetof(struct options,
						exports_files));
	o->backends = texts_of(o, offsetof(struct options, backends));
	o->backend_dir = BACKENDDIR;
	o->port = 2049;
	o->rdma_port = 20049;
	o->rdma_credits = 128;
	o->rdma_inline = 4096;
	for (unsigned f = 0; f < fabrics_count(); f++)
		o->fabrics[f].port = fabric_rows[f]->port;
	o->rdma = RDMA_AUTO;
	o->spin = LOOP_SPIN_US;
	o->grace = GRACE_S;
	default_threads(o);
	o->max_conns = 4096;
	default_memory(o);
	o->rpcbind = true;
	o->seccomp = CONFINE_KILL;
	o->metrics = "off";
	o->metrics_clients = 100;
	o->log_level = LOG_LEVEL_INFO;
	o->audit = "off";
	o->audit_procs = "changes";
	o->audit_interval = 60;
}

/* Sets the values that follow from other options.  False: no memory. */
static bool derive(struct options *o)
{
	const char *dir = o->state_dir;
	char *here;

	if (o->max_client_conns == 0)
		o->max_client_conns = MAX(o->max_conns / 4, 16u);
	if (!dir) {
		o->own_state_dir = default_state_dir();
	} else if (*dir != '/') {
		here = getcwd(NULL, 0);
		if (!here || asprintf(&o->own_state_dir, "%s/%s", here,
				      dir) < 0)
			o->own_state_dir = NULL;
		free(here);
	} else {
		return true;
	}
	o->state_dir = o->own_state_dir;
	return o->state_dir;
}

/* ---- the command line */

/* True if a port was given to a fabric that has none before it. */
static bool is_unused(const struct options *o, const struct option_row *row)
{
	for (unsigned f = 0; f < fabrics_count(); f++)
		if (row->at == offsetof(struct options, fabrics[f].port))
			return option_given(o, row)->n &&
			       (o->rdma == RDMA_AUTO ||
				!(o->rdma & 1u << f) ||
				!(o->rdma & ((1u << f) - 1)));
	return false;
}

static void warn_of_unused(const struct options *o)
{
	const struct option_row *row;

	for (unsigned i = 0; (row = option_row(i)); i++)
		if (is_unused(o, row))
			fprintf(stderr, "gannetd: [%s] %s is not used: the "
				"first kind of --rdma has --rdma-port\n",
				row->section, row->key);
}

/* Sets @longopts, which is zeroed, to all options of the command line. */
static void list_options(struct option *longopts)
{
	const struct option_row *row;

	for (unsigned i = 0; (row = option_row(i)); i++)
		if (row->name)
			*longopts++ = (struct option){ row->name, row->arg ?
				required_argument : row->bare ? no_argument :
				optional_argument, NULL, FIRST_ROW + (int)i };
	*longopts++ = (struct option){ "print-config", no_argument, NULL, 'P' };
	*longopts++ = (struct option){ "help", no_argument, NULL, 'h' };
	*longopts = (struct option){ "version", no_argument, NULL, 'V' };
}

/* A setting that only the file has, and which a unit of an earlier version can
 * give as --KEY or --SECTION-KEY. */
static const struct option_row *row_of_file(const char *name)
{
	const char *dash = strchr(name, '-');
	const struct option_row *row;
	char section[32];

	row = option_of_key(NULL, name);
	if (!row && dash) {
		snprintf(section, sizeof(section), "%.*s", (int)(dash - name),
			 name);
		row = option_of_key(section, dash + 1);
	}
	return row && !row->name ? row : NULL;
}

static void explain_unknown(const char *arg)
{
	const struct option_row *row;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg, "="), arg);
	row = strncmp(name, "--", 2) == 0 ? row_of_file(name + 2) : NULL;
	if (!row && strncmp(name, "--no-", 5) == 0)
		row = row_of_file(name + 5);
	if (row)
		fprintf(stderr, "gannetd: %s is a setting of the file alone: "
			"%s in [%s] of gannet.conf(5)\n", name, row->key,
			row->section);
	fprintf(stderr, "gannetd: see gannetd --help\n");
}

/*
 * Reads the arguments into @args, which has room for them, and their number
 * into *@n; checks their values.  *@print: --print-config is there.
 */
static enum options_result read_arguments(int argc, char **argv,
					  struct argument *args, unsigned *n,
					  bool *print)
{
	struct option longopts[OPTIONS_MAX + 4] = { 0 };
	int c;

	list_options(longopts);
	while ((c = getopt_long(argc, argv, "h", longopts, NULL)) !=
	       -1) {
		switch (c) {
		case 'h':
			print_help();
			return OPTIONS_DONE;
		case 'V':
			printf("gannetd %s\n%s", PACKAGE_VERSION,
			       HAVE_MICROHTTPD ? "" : NO_METRICS);
			return OPTIONS_DONE;
		case 'P':
			*print = true;
			break;
		default:
			if (c >= FIRST_ROW) {
				args[(*n)++] = (struct argument){ option_row(
					(unsigned)(c - FIRST_ROW)), optarg };
				break;
			}
			explain_unknown(argv[optind - 1]);
			return OPTIONS_WRONG;
		}
	}
	if (optind == argc)
		return OPTIONS_RUN;
	fprintf(stderr, "gannetd: '%s' is not an option; a directory is given "
		"with --export; see gannetd --help\n", argv[optind]);
	return OPTIONS_WRONG;
}

/* True if @args has --bind a second time, before @i: the last one would hide an
 * address where the administrator means to listen. */
static bool is_second_bind(const struct argument *args, unsigned i)
{
	if (strcmp(args[i].row->name, "bind") != 0)
		return false;
	for (unsigned k = 0; k < i; k++)
		if (args[k].row == args[i].row)
			return true;
	return false;
}

/* Gives @o the arguments of options that gannet.conf also has, or the others.
 * 0 or -errno, with the reason in *@why. */
static int give_arguments(struct options *o, const struct argument *args,
			  unsigned n, bool in_files, char **why)
{
	for (unsigned i = 0; i < n; i++) {
		const struct option_row *row = args[i].row;
		const char *value = args[i].value, *wrong;

		if (!row->section == in_files)
			continue;
		wrong = is_second_bind(args, i) ? "it is given twice: the "
			"server listens on one address, or on all without it" :
			option_give(o, row, value, true);
		if (!wrong)
			continue;
		if (asprintf(why, "--%s%s%s: %s", row->name, value ? " " : "",
			     value ? : "", wrong) < 0)
			*why = NULL;
		return -EINVAL;
	}
	return 0;
}

/* Makes @o of the defaults, the files and the arguments.  0 or -errno, with
 * the reason in *@why. */
static int put_together(struct options *o, const struct argument *args,
			unsigned n, char **why)
{
	int err;

	*why = NULL;
	set_defaults(o);
	/* With --config, which gannet.conf does not have. */
	err = give_arguments(o, args, n, false, why);
	if (!err)
		err = config_read(o, why);
	if (!err)
		err = give_arguments(o, args, n, true, why);
	return err ? err : derive(o) ? 0 : -ENOMEM;
}

enum options_result options_parse(int argc, char **argv, struct options *o)
{
	static char name[] = "gannetd";
	struct argument *args = calloc((size_t)argc, sizeof(*args));
	enum options_result result = OPTIONS_WRONG;
	bool print = false;
	char *why = NULL;
	unsigned n = 0;
	int err;

	memset(o, 0, sizeof(*o));
	if (!args)
		goto fail;
	argv[0] = name;			/* for getopt's messages */
	result = read_arguments(argc, argv, args, &n, &print);
	if (result != OPTIONS_RUN)
		goto out;
	err = put_together(o, args, n, &why);
	if (err)
		goto fail;
	warn_of_unused(o);
	if (print) {
		print_config(o);
		result = OPTIONS_DONE;
	}
	goto out;
fail:
	fprintf(stderr, "gannetd: %s\n", why ? why : "out of memory");
	result = OPTIONS_WRONG;
out:
	free(why);
	free(args);
	return result;
}

int options_again(const struct options *old, struct options *o, char **why)
{
	const struct option_row *row;
	struct argument *args;
	unsigned n = 0;
	int err;

	memset(o, 0, sizeof(*o));
	*why = NULL;
	for (unsigned i = 0; (row = option_row(i)); i++)
		n += option_given(old, row)->n;
	args = calloc(n + 1, sizeof(*args));
	if (!args)
		return -ENOMEM;
	n = 0;
	for (unsigned i = 0; (row = option_row(i)); i++) {
		const struct option_texts *t = option_given(old, row);

		for (unsigned k = 0; k < t->n && t->told; k++)
			args[n++] = (struct argument){ row, t->v[k] };
	}
	err = put_together(o, args, n, why);
	free(args);
	return err;
}

void options_fini(struct options *o)
{
	for (unsigned i = 0; i < OPTIONS_MAX; i++) {
		for (unsigned k = 0; k < o->given[i].n; k++)
			free(o->given[i].v[k]);
		free(o->given[i].v);
	}
	free(o->own_state_dir);
}
