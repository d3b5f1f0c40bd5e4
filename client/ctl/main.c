/* SPDX-License-Identifier: BSD-2-Clause */
/* gannetctl - asks a gannetd of this machine for its state, gannetctl(8). */
#include "client/ctl/ctl.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* The unit's, and that of a server that root started otherwise. */
#define UNIT_SOCKET	"/run/gannet/control"
#define DEFAULT_SOCKET	LOCALSTATEDIR "/lib/gannet/control"
#define PATIENCE_S	10

int complain(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "gannetctl: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	return EXIT_FAILURE;
}

/* ---- the server */

int ctl_connect(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (strlen(path) >= sizeof(at.sun_path)) {
		errno = ENAMETOOLONG;
	} else if (fd >= 0) {
		strcpy(at.sun_path, path);
		if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
			return fd;
	}
	complain("%s: %s%s", path, strerror(errno), errno == ENOENT ||
		 errno == ECONNREFUSED ? " (does gannetd run with this state "
		 "directory? see --socket)" : "");
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The result of a command, or NULL after a message. */
static json_t *ctl_ask(const char *path, const char *command,
		       const char *argument)
{
	json_t *request = json_pack("{s:i, s:s, s:s*}", "v", SPOKEN,
				    "command", command, "argument", argument);
	json_t *reply = NULL, *result = NULL;
	int fd = request ? ctl_connect(path) : -1;
	FILE *f = fd >= 0 ? fdopen(fd, "r+") : NULL;
	json_error_t error;

	if (f) {
		if (json_dumpf(request, f, JSON_COMPACT) == 0 &&
		    fputc('\n', f) != EOF && fflush(f) == 0)
			reply = json_loadf(f, 0, &error);
		fclose(f);
		result = json_incref(json_object_get(reply, "result"));
		if (!result)
			complain("%s", json_string_value(
				 json_object_get(reply, "error")) ? :
				 "the server does not answer");
	}
	json_decref(request);
	json_decref(reply);
	return result;
}

/* ---- text for people */

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key)) ? : "?";
}

static long long integer_of(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void print_status(const json_t *r)
{
	const json_t *memory = json_object_get(r, "memory"), *l;
	long long up = integer_of(r, "uptime_s");
	size_t i;

	printf("gannetd %s, process %lld, up %lld d %02lld:%02lld:%02lld\n",
	       text_of(r, "version"), integer_of(r, "pid"), up / 86400,
	       up / 3600 % 24, up / 60 % 60, up % 60);
	printf("state directory  %s\n", text_of(r, "state_dir"));
	printf("memory for data  %lld MiB taken, %lld KiB in use\n",
	       integer_of(memory, "taken") >> 20,
	       integer_of(memory, "used") >> 10);
	printf("exports          %lld rules\n", integer_of(r, "rules"));
	json_array_foreach(json_object_get(r, "listeners"), i, l)
		printf("%-16s %s, %lld connections\n", text_of(l, "name"),
		       text_of(l, "address"), integer_of(l, "connections"));
}

static void print_exports(const json_t *r)
{
	const json_t *e, *client;
	size_t i, k;

	json_array_foreach(r, i, e) {
		printf("%s", text_of(e, "path"));
		json_array_foreach(json_object_get(e, "clients"), k, client)
			printf("%s%s", k ? " " : "\t",
			       json_string_value(client));
		printf("\n");
	}
}

static void print_stats(const json_t *r)
{
	const json_t *p, *n;
	const char *name;
	size_t i;

	printf("%-10s %-4s %-12s %12s %10s %10s\n", "program", "vers",
	       "procedure", "calls", "failed", "us each");
	json_array_foreach(json_object_get(r, "procedures"), i, p)
		printf("%-10s %-4lld %-12s %12lld %10lld %10lld\n",
		       text_of(p, "program"), integer_of(p, "version"),
		       text_of(p, "procedure"), integer_of(p, "calls"),
		       integer_of(p, "failed"),
		       integer_of(p, "ns") / 1000 /
		       (integer_of(p, "calls") ? : 1));
	json_object_foreach(json_object_get(r, "counters"), name, n)
		if (json_integer_value(n))
			printf("%-40s %lld\n", name,
			       (long long)json_integer_value(n));
}

static void print_waits(const json_t *r)
{
	const json_t *e;
	size_t i;

	json_array_foreach(json_object_get(r, "workers"), i, e)
		printf("workers of %s: %lld of %lld busy, %lld calls wait\n",
		       text_of(e, "workers_of"), integer_of(e, "busy"),
		       integer_of(e, "most"), integer_of(e, "calls_waiting"));
	json_array_foreach(json_object_get(r, "calls"), i, e)
		printf("%s: %s %s has waited %lld ms for %s\n",
		       text_of(e, "client"), text_of(e, "program"),
		       text_of(e, "procedure"), integer_of(e, "ms"),
		       text_of(e, "waits_for"));
}

static void print_level(const json_t *r)
{
	printf("log level %s\n", text_of(r, "level"));
}

static const struct command {
	const char *name;
	const char *argument;	/* NULL: takes none */
	const char *help;
	void	    (*print)(const json_t *result);
} commands[] = {
	{ "status", NULL, "version, listeners, memory", print_status },
	{ "exports", NULL, "what is offered, to whom", print_exports },
	{ "stats", NULL, "calls of each procedure, and all counters",
	  print_stats },
	{ "waits", NULL, "what calls wait for now", print_waits },
	{ "log-level", "LEVEL", "err, warn, info or debug, until the next "
	  "reload", print_level },
};

#define CAPTURE		"capture"
#define NCOMMANDS	(sizeof(commands) / sizeof(commands[0]))

static int help(void)
{
	printf("Usage: gannetctl [OPTION]... COMMAND [ARGUMENT]\n"
	       "Asks the gannetd of this machine.\n\n");
	for (size_t i = 0; i < NCOMMANDS; i++)
		printf("  %-10s %-8s %s\n", commands[i].name,
		       commands[i].argument ? : "", commands[i].help);
	printf("  %-10s %-8s %s\n", CAPTURE, "-w FILE",
	       "calls and replies, for Wireshark: capture --help");
	printf("\n  --socket PATH       its socket (" UNIT_SOCKET ", else\n"
	       "                      " DEFAULT_SOCKET ")\n"
	       "  --json              print the answer as JSON\n"
	       "  --help              this text\n"
	       "  --version           print the version\n"
	       "\nExit status: 0 done, 1 the server refused or is not there, "
	       "2 wrong usage.\n");
	return EXIT_SUCCESS;
}

static int ctl_run(const struct command *command, const char *path, bool json,
	       const char *argument)
{
	json_t *result = ctl_ask(path, command->name, argument);

	if (!result)
		return EXIT_FAILURE;
	if (json) {
		json_dumpf(result, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
		printf("\n");
	} else {
		command->print(result);
	}
	json_decref(result);
	return fflush(stdout) == 0 ? EXIT_SUCCESS :
	       complain("standard output: %s", strerror(errno));
}

/* The options before a command. */
struct arguments {
	const char *path;
	bool	    json;
};

/* Reads the options; -1, or the exit status of a program that is done. */
static int ctl_options(struct arguments *a, int argc, char **argv,
		       const char *shorts)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, shorts, options, NULL)) != -1) {
		switch (c) {
		case 's':
			a->path = optarg;
			break;
		case 'j':
			a->json = true;
			break;
		case 'h':
			return help();
		case 'V':
			printf("gannetctl %s\n", PACKAGE_VERSION);
			return EXIT_SUCCESS;
		default:
			complain("see gannetctl --help");
			return USAGE;
		}
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct arguments a = {
		.path = access(UNIT_SOCKET, F_OK) == 0 ? UNIT_SOCKET :
			DEFAULT_SOCKET,
	};
	const char *name;
	int status;

	signal(SIGPIPE, SIG_IGN);
	/* This command has options of its own. */
	status = ctl_options(&a, argc, argv, "+s:jh");
	if (status < 0 && argv[optind] && !strcmp(argv[optind], CAPTURE))
		return ctl_capture(a.path, argc - optind, argv + optind);
	if (status < 0)
		status = ctl_options(&a, argc, argv, "s:jh");
	if (status >= 0)
		return status;
	name = argv[optind];
	for (size_t i = 0; name && i < NCOMMANDS; i++)
		if (!strcmp(commands[i].name, name) && argc - optind ==
		    1 + (commands[i].argument != NULL))
			return ctl_run(&commands[i], a.path, a.json,
				   argv[optind + 1]);
	complain("%s%s: see gannetctl --help", name ? : "no command", name ?
		 ": no such command, or not with so many arguments" : "");
	return USAGE;
}
