/* SPDX-License-Identifier: BSD-2-Clause */
/* gannetctl - asks a gannetd of this machine for its state, gannetctl(8). */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/alike.h"
#include "tools/ctl/ctl.h"

/* The unit's, and that of a server that root started otherwise. */
#define UNIT_SOCKET	"/run/gannet/control"
#define DEFAULT_SOCKET	LOCALSTATEDIR "/lib/gannet/control"

static int ctl_help(void)
{
	const struct ctl_command *command;

	printf("Usage: gannetctl [OPTION]... COMMAND [ARGUMENT]...\n"
	       "Asks the gannetd of this machine.\n\n");
	for (unsigned i = 0; (command = ctl_command(i)); i++) {
		int len = printf("  %s %s", command->name, command->arguments);

		if (len > 23)
			len = printf("\n") - 1;
		printf("%*s%s\n", 24 - len, "", command->help);
	}
	printf("\n  --keep                keep a change of the exports over a "
	       "reload and a start\n"
	       "  --socket PATH         its socket (" UNIT_SOCKET ", else\n"
	       "                        " DEFAULT_SOCKET ")\n"
	       "  --json                print the answer as JSON\n"
	       "  --help                this text\n"
	       "  --version             print the version\n"
	       "\nExit status: 0 done, 1 the server refused or is not there, "
	       "2 wrong usage.\n");
	return EXIT_SUCCESS;
}

/* Reads options, in front of the command if @shorts begins with '+'.  -1, or
 * the exit status of a program that is done. */
static int ctl_read_options(struct ctl *c, int argc, char **argv,
			    const char *shorts)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "keep", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int o;

	optind = 0;			/* begin again */
	while ((o = getopt_long(argc, argv, shorts, options, NULL)) != -1) {
		switch (o) {
		case 's':
			c->path = optarg;
			break;
		case 'j':
			c->json = true;
			break;
		case 'k':
			c->keep = true;
			break;
		case 'h':
			return ctl_help();
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

/* For a command that has options. */
static int command_help(const struct ctl_command *command)
{
	printf("Usage: gannetctl %s %s\n%s.\n\n%s"
	       "  --help                this text\n",
	       command->name, command->arguments, command->help,
	       command->options);
	return EXIT_SUCCESS;
}

static bool asks_for_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 ||
		    strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

static const struct ctl_command *find_command(const char *name)
{
	const struct ctl_command *command = NULL;

	for (unsigned i = 0; name && (command = ctl_command(i)); i++)
		if (strcmp(command->name, name) == 0)
			break;
	return command;
}

/* @name: NULL without an argument. */
static int complain_unknown(const char *name)
{
	const struct ctl_command *c;
	const char *like = NULL;
	unsigned far = UINT_MAX;

	for (unsigned i = 0; name && (c = ctl_command(i)); i++)
		if (alike(name, c->name, &far))
			like = c->name;
	if (like)
		complain("%s: there is no such command; did you mean '%s'?",
			 name, like);
	else
		complain("%s%s: see gannetctl --help", name ? : "no command",
			 name ? ": there is no such command" : "");
	return USAGE;
}

/* A command without options. */
static int run_plain(struct ctl *c, const struct ctl_command *command,
		     int argc, char **argv)
{
	int status = ctl_read_options(c, argc, argv, "s:jh"), n;

	if (status >= 0)
		return status;
	n = argc - optind - 1;
	argv += optind + 1;
	if (c->keep && command->words != ctl_exports)
		status = -1;
	else if (command->words)
		status = command->words(c, n, argv);
	else if (n == (*command->arguments != '\0'))
		return ctl_print(c, ctl_ask(c, command->name, argv[0], NULL,
					    CTL_PATIENCE), command->print);
	if (status >= 0)
		return status;
	complain("%s: expected %s: see gannetctl --help", command->name,
		 *command->arguments ? command->arguments : "no argument");
	return USAGE;
}

int main(int argc, char **argv)
{
	struct ctl c = {
		.path = access(UNIT_SOCKET, F_OK) == 0 ? UNIT_SOCKET :
			DEFAULT_SOCKET,
	};
	const struct ctl_command *command;
	int status;

	signal(SIGPIPE, SIG_IGN);
	status = ctl_read_options(&c, argc, argv, "+s:jh");
	if (status >= 0)
		return status;
	command = find_command(argv[optind]);
	if (command && command->options &&
	    asks_for_help(argc - optind, argv + optind))
		return command_help(command);
	if (command && command->run && !c.keep)
		return command->run(&c, argc - optind, argv + optind);
	/* From the program's name on, which getopt passes over. */
	if (command)
		return run_plain(&c, command, argc, argv);
	return complain_unknown(argv[optind]);
}
