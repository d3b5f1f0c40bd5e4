/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of gannetd: one table of options, from which the parser
 * and --help are made. */
#include "daemon/options.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/loop.h"
#include "lib/util.h"

#define MIB	((size_t)1 << 20)
/* As the kernel's lock manager. */
#define GRACE_S	50u

struct option_row {
	const char *name;
	const char *arg;	/* NULL: takes none */
	/* Returns NULL, or the text of @value's error. */
	const char *(*set)(struct options *o, char *value);
	const char *help;
};

static const char *number(const char *value, unsigned long min,
			  unsigned long max, unsigned long *out)
{
	static char text[80];
	char *end;
	unsigned long n;

	n = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || n < min || n > max) {
		snprintf(text, sizeof(text),
			 "expected a number from %lu to %lu", min, max);
		return text;
	}
	*out = n;
	return NULL;
}

static const char *set_unsigned(const char *value, unsigned min, unsigned max,
				unsigned *out)
{
	unsigned long n = 0;
	const char *wrong = number(value, min, max, &n);

	if (!wrong)
		*out = (unsigned)n;
	return wrong;
}

static const char *set_export(struct options *o, char *value)
{
	o->exports[o->nexports++] = value;
	return NULL;
}

static const char *set_exports_file(struct options *o, char *value)
{
	o->exports_files[o->nexports_files++] = value;
	return NULL;
}

static const char *set_backend(struct options *o, char *value)
{
	o->backends[o->nbackends++] = value;
	return NULL;
}

static const char *set_backend_dir(struct options *o, char *value)
{
	o->backend_dir = value;
	if (*value != '/')
		return "expected an absolute path";
	/* dlopen() expands $LIB and others. */
	return strchr(value, '$') ? "expected a path without '$'" : NULL;
}

bool options_address(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };

	memset(out, 0, sizeof(*out));
	if (text && inet_pton(AF_INET, text, &sin.sin_addr) == 1) {
		memcpy(out, &sin, sizeof(sin));
		return true;
	}
	if (text && inet_pton(AF_INET6, text, &sin6.sin6_addr) != 1)
		return false;
	memcpy(out, &sin6, sizeof(sin6));
	return true;
}

static const char *set_bind(struct options *o, char *value)
{
	struct sockaddr_storage address;

	o->bind = value;
	return options_address(value, &address) ? NULL :
	       "expected an IPv4 or IPv6 address of this machine";
}

static const char *set_port(struct options *o, char *value)
{
	return set_unsigned(value, 0, 65535, &o->port);
}

static const char *set_rdma_port(struct options *o, char *value)
{
	return set_unsigned(value, 0, 65535, &o->rdma_port);
}

static const char *wrong_rdma(void)
{
	static char text[120];
	int n = snprintf(text, sizeof(text), "expected auto, off, or one or "
			 "more of ");

	for (unsigned i = 0; i < fabrics_count(); i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s",
			      i ? "," : "", fabric_rows[i]->name);
	return text;
}

static const char *set_rdma(struct options *o, char *value)
{
	const char *p = value;
	size_t len;

	o->rdma = !strcmp(value, "auto") ? RDMA_AUTO : RDMA_OFF;
	if (o->rdma == RDMA_AUTO || !strcmp(value, "off"))
		return NULL;
	for (;; p += len + 1) {
		unsigned at = fabrics_find(p, len = strcspn(p, ","));

		if (at == fabrics_count() || o->rdma & 1u << at)
			return wrong_rdma();
		o->rdma |= 1u << at;
		if (!p[len])
			return NULL;
	}
}

static const char *set_rdma_read_read(struct options *o, char *value)
{
	o->rdma_read_read = true;
	return NULL;
}

static const char *set_rdma_mount(struct options *o, char *value)
{
	o->rdma_mount = true;
	return NULL;
}

static const char *set_threads(struct options *o, char *value)
{
	return set_unsigned(value, 1, 1024, &o->threads);
}

static const char *set_pollers(struct options *o, char *value)
{
	return set_unsigned(value, 1, 256, &o->pollers);
}

static const char *set_spin(struct options *o, char *value)
{
	return set_unsigned(value, 0, 1000, &o->spin);
}

static const char *set_grace(struct options *o, char *value)
{
	return set_unsigned(value, 0, 3600, &o->grace);
}

static const char *set_max_conns(struct options *o, char *value)
{
	return set_unsigned(value, 1, 1000000, &o->max_conns);
}

static const char *set_max_client_conns(struct options *o, char *value)
{
	return set_unsigned(value, 1, 1000000, &o->max_client_conns);
}

static const char *set_mib(const char *value, size_t *out)
{
	unsigned long mib = 0;
	const char *wrong = number(value, 8, 1ul << 24, &mib);

	if (!wrong)
		*out = mib * MIB;
	return wrong;
}

static const char *set_memory(struct options *o, char *value)
{
	return set_mib(value, &o->memory);
}

static const char *set_rdma_memory(struct options *o, char *value)
{
	return set_mib(value, &o->rdma_memory);
}

static const char *set_reply_memory(struct options *o, char *value)
{
	return set_mib(value, &o->reply_memory);
}

static const char *set_check(struct options *o, char *value)
{
	o->check = true;
	return NULL;
}

static const char *set_foreground(struct options *o, char *value)
{
	o->foreground = true;
	return NULL;
}

static const char *set_no_rpcbind(struct options *o, char *value)
{
	o->rpcbind = false;
	return NULL;
}

static const char *set_manage_gids(struct options *o, char *value)
{
	o->manage_gids = true;
	return NULL;
}

static const char *set_state_dir(struct options *o, char *value)
{
	char *here = *value == '/' ? strdup("") : getcwd(NULL, 0);
	char *dir = NULL;

	if (!*value || !here) {
		free(here);
		return "expected a directory";
	}
	if (asprintf(&dir, *here ? "%s/%s" : "%s%s", here, value) < 0)
		dir = NULL;
	free(here);
	free(o->state_dir);
	o->state_dir = dir;
	return dir ? NULL : "out of memory";
}

static const char *set_seccomp(struct options *o, char *value)
{
	static const char *const names[] = {
		[CONFINE_KILL] = "kill", [CONFINE_LOG] = "log",
		[CONFINE_OFF] = "off",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(value, names[i])) {
			o->seccomp = (enum confine_calls)i;
			return NULL;
		}
	return "expected kill, log or off";
}

static const char *set_pid_file(struct options *o, char *value)
{
	o->pid_file = value;
	return NULL;
}

static const char *set_log_level(struct options *o, char *value)
{
	return log_level_parse(value, &o->log_level) ?
		NULL : "expected err, warn, info or debug";
}

static const struct option_row rows[] = {
	{ "export", "EXPORT", set_export,
	  "export a directory: 'DIR' to this machine only, or\n"
	  "'DIR CLIENT(OPTIONS)...' as a line of an exports\n"
	  "file; may be given more than once" },
	{ "exports-file", "FILE", set_exports_file,
	  "export what FILE says, or the files *.exports in that\n"
	  "directory, see gannet-exports(5); may be given more\n"
	  "than once; when there is no --export either:\n"
	  SYSCONFDIR "/gannet/exports" },
	{ "backend", "NAME", set_backend,
	  "load the module NAME, for exports as NAME:/PATH; may be\n"
	  "given more than once" },
	{ "backend-dir", "DIR", set_backend_dir,
	  "where modules are (" BACKENDDIR ")" },
	{ "port", "N", set_port,
	  "TCP and UDP port of all but RDMA (2049); 0: any free" },
	{ "rdma-port", "N", set_rdma_port,
	  "port of NFS/RDMA (20049); 0: any free" },
	{ "rdma", "MODE", set_rdma,
	  "kinds of NFS/RDMA, joined by commas; off; auto (the\n"
	  "default): the first of these that this machine has:" },
	{ "rdma-mount", NULL, set_rdma_mount,
	  "serve MOUNT over RDMA too; clients ask for it over TCP" },
	{ "rdma-read-read", NULL, set_rdma_read_read,
	  "let RDMA clients that offer no memory for a long reply\n"
	  "read it from the server's (gannetd(8) has the risks)" },
	{ "bind", "ADDRESS", set_bind,
	  "listen on this IPv4 or IPv6 address only" },
	{ "threads", "N", set_threads,
	  "worker threads of each export: these may wait for its\n"
	  "file system (16)" },
	{ "pollers", "N", set_pollers,
	  "threads that serve connections (one a processor)" },
	{ "grace", "SECONDS", set_grace,
	  "for so long after the start clients get back the locks\n"
	  "that they had, and nobody gets others (50)" },
	{ "spin", "US", set_spin,
	  "microseconds that a poller spins before it sleeps,\n"
	  "while calls come that fast (40)" },
	{ "max-connections", "N", set_max_conns,
	  "most connections of each transport (4096)" },
	{ "max-client-connections", "N", set_max_client_conns,
	  "most connections from one address (a quarter of\n"
	  "--max-connections, but at least 16)" },
	{ "memory", "MIB", set_memory,
	  "most memory for data in transit (a quarter of the\n"
	  "machine's, at most 1024)" },
	{ "rdma-memory", "MIB", set_rdma_memory,
	  "most memory for RDMA connections; each takes 2\n"
	  "(an eighth of the machine's)" },
	{ "reply-memory", "MIB", set_reply_memory,
	  "most memory for replies kept for retransmitted calls\n"
	  "(1/256 of the machine's, between 16 and 256)" },
	{ "state-dir", "DIR", set_state_dir,
	  "where keys, tables and the lists of mounts and of hosts\n"
	  "with locks are kept (root:\n"
	  LOCALSTATEDIR "/lib/gannet; else $XDG_STATE_HOME/gannet\n"
	  "or ~/.local/state/gannet)" },
	{ "seccomp", "WHAT", set_seccomp,
	  "on a system call that serving does not need: kill (the\n"
	  "default) ends the server, log makes the kernel log it,\n"
	  "off does not filter" },
	{ "manage-gids", NULL, set_manage_gids,
	  "callers' groups are those of this system, unless an\n"
	  "export says no_manage_gids" },
	{ "no-rpcbind", NULL, set_no_rpcbind,
	  "do not register with rpcbind, nor use rpc.statd, nor\n"
	  "answer at port 111; clients then mount with port=,\n"
	  "mountport= and nolock" },
	{ "check", NULL, set_check,
	  "read the options and the exports, print what would be\n"
	  "exported, and end" },
	{ "foreground", NULL, set_foreground,
	  "stay in the foreground" },
	{ "pid-file", "FILE", set_pid_file,
	  "write the process id there, once ready" },
	{ "log-level", "LEVEL", set_log_level,
	  "err, warn, info (the default) or debug" },
};

#define NROWS	ARRAY_SIZE(rows)

/* Fabrics have so many places for options; some are empty. */
#define NPLACES	(FABRICS_MAX * FABRIC_OPTIONS)
/* getopt_long() returns this and the place. */
#define FABRIC_OPTION	0x100

static const struct fabric_option *option_at(unsigned place)
{
	const struct fabric_row *row = fabric_rows[place / FABRIC_OPTIONS];
	static const struct fabric_option none;

	return row ? &row->options[place % FABRIC_OPTIONS] : &none;
}

static const char *set_at(struct options *o, unsigned place, char *value)
{
	struct fabric_options *f = &o->fabrics[place / FABRIC_OPTIONS];

	f->given |= 1u << place % FABRIC_OPTIONS;
	return option_at(place)->arg ?
	       set_unsigned(value, 0, 65535, &f->port) : NULL;
}

/* True if a port was given to a fabric that has none before it. */
static bool is_unused_at(const struct options *o, unsigned place)
{
	unsigned f = place / FABRIC_OPTIONS, bit = 1u << f;

	return option_at(place)->arg &&
	       o->fabrics[f].given & 1u << place % FABRIC_OPTIONS &&
	       (o->rdma == RDMA_AUTO || !(o->rdma & bit) ||
		!(o->rdma & (bit - 1)));
}

static void print_option(const char *name, const char *arg, const char *help)
{
	char left[40];

	snprintf(left, sizeof(left), "--%s%s%s", name, arg ? " " : "",
		 arg ? : "");
	if (strlen(left) > 22) {	/* a line of its own */
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
	for (unsigned i = 0; i < NROWS; i++) {
		print_option(rows[i].name, rows[i].arg, rows[i].help);
		if (rows[i].set != set_rdma)
			continue;
		for (unsigned f = 0; f < fabrics_count(); f++)
			printf("  %-22s %s: %s\n", "", fabric_rows[f]->name,
			       fabric_rows[f]->help);
	}
	for (unsigned k = 0; k < NPLACES; k++)
		if (option_at(k)->name)
			print_option(option_at(k)->name, option_at(k)->arg,
				     option_at(k)->help);
}

static void print_help(void)
{
	printf("Usage: gannetd [OPTION]...\n"
	       "Serves directories over NFSv3, on RPC-over-RDMA and TCP.\n\n");
	print_options();
	printf("  %-22s %s\n  %-22s %s\n", "--help", "this text", "--version",
	       "print the version");
	printf("\nExamples:\n"
	       "  gannetd --foreground --export /srv/data\n"
	       "  gannetd --export '/srv/data 192.0.2.0/24(rw,root_squash)'\n"
	       "\nSIGTERM and SIGINT finish the calls in progress and end the "
	       "server; SIGHUP reads\nthe exports again; SIGUSR1 logs the "
	       "counters.\n"
	       "Exit status: 0 ended by a signal, 1 could not start or run, "
	       "2 wrong usage.\n"
	       "\nMore in gannetd(8) and gannet-exports(5).\n");
}

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
	size_t ram = (size_t)sysconf(_SC_PHYS_PAGES) *
		     (size_t)sysconf(_SC_PAGESIZE);

	o->memory = MIN(ram / 4, 1024 * MIB);
	o->memory = MAX(o->memory, 64 * MIB);
	o->rdma_memory = MAX(ram / 8, 64 * MIB);
	o->reply_memory = MIN(ram / 256, 256 * MIB);
	o->reply_memory = MAX(o->reply_memory, 16 * MIB);
}

static bool set_defaults(struct options *o, int argc)
{
	memset(o, 0, sizeof(*o));
	o->exports = calloc((size_t)argc, sizeof(*o->exports));
	o->exports_files = calloc((size_t)argc, sizeof(*o->exports_files));
	o->backends = calloc((size_t)argc, sizeof(*o->backends));
	o->backend_dir = BACKENDDIR;
	o->state_dir = default_state_dir();
	o->port = 2049;
	o->rdma_port = 20049;
	for (unsigned f = 0; f < fabrics_count(); f++)
		o->fabrics[f].port = fabric_rows[f]->port;
	o->rdma = RDMA_AUTO;
	o->threads = 16;
	o->spin = LOOP_SPIN_US;
	o->grace = GRACE_S;
	o->pollers = (unsigned)MAX(1, sysconf(_SC_NPROCESSORS_ONLN));
	o->max_conns = 4096;
	default_memory(o);
	o->rpcbind = true;
	o->seccomp = CONFINE_KILL;
	o->log_level = LOG_LEVEL_INFO;
	return o->exports && o->exports_files && o->backends && o->state_dir;
}

/* Sets @longopts, which is zeroed, to all options. */
static void list_options(struct option *longopts)
{
	for (unsigned i = 0; i < NROWS; i++)
		*longopts++ = (struct option){ rows[i].name,
			rows[i].arg ? required_argument : no_argument,
			NULL, 0 };
	for (unsigned k = 0; k < NPLACES; k++)
		if (option_at(k)->name)
			*longopts++ = (struct option){ option_at(k)->name,
				option_at(k)->arg ? required_argument :
						    no_argument,
				NULL, FABRIC_OPTION + (int)k };
	*longopts++ = (struct option){ "help", no_argument, NULL, 'h' };
	*longopts = (struct option){ "version", no_argument, NULL, 'V' };
}

enum options_result options_parse(int argc, char **argv, struct options *o)
{
	static char name[] = "gannetd";
	struct option longopts[NROWS + NPLACES + 3] = { 0 };
	const char *wrong;
	int c, i = 0;

	list_options(longopts);
	if (!set_defaults(o, argc)) {
		fprintf(stderr, "gannetd: out of memory\n");
		return OPTIONS_WRONG;
	}
	argv[0] = name;			/* for getopt's messages */
	while ((c = getopt_long(argc, argv, "h", longopts, &i)) != -1) {
		if (c == 'h') {
			print_help();
			return OPTIONS_DONE;
		}
		if (c == 'V') {
			printf("gannetd %s\n", PACKAGE_VERSION);
			return OPTIONS_DONE;
		}
		if (c != 0 && c < FABRIC_OPTION) {
			fprintf(stderr, "gannetd: see gannetd --help\n");
			return OPTIONS_WRONG;
		}
		wrong = c ? set_at(o, (unsigned)c - FABRIC_OPTION, optarg) :
			rows[i].set(o, optarg);
		if (wrong) {
			fprintf(stderr, "gannetd: --%s %s: %s\n",
				longopts[i].name, optarg, wrong);
			return OPTIONS_WRONG;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "gannetd: '%s' is not an option; a directory "
			"is given with --export; see gannetd --help\n",
			argv[optind]);
		return OPTIONS_WRONG;
	}
	for (unsigned k = 0; k < NPLACES; k++)
		if (is_unused_at(o, k))
			fprintf(stderr, "gannetd: --%s is not used: the first "
				"kind of --rdma has --rdma-port\n",
				option_at(k)->name);
	if (o->max_client_conns == 0)
		o->max_client_conns = MAX(o->max_conns / 4, 16u);
	return OPTIONS_RUN;
}

void options_fini(struct options *o)
{
	free(o->exports);
	free(o->exports_files);
	free(o->backends);
	free(o->state_dir);
}
