/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl - shared by the files of gannetctl(8).  One thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* The exit status for wrong usage. */
#define USAGE		2
/* The version of the protocol, daemon/change/change.h. */
#define SPOKEN		1

/* The options before or behind the command. */
struct ctl {
	const char *path;	/* of the socket */
	bool	    json;
	bool	    keep;	/* a change of the exports */
};

/* A row of the table of commands. */
struct ctl_command {
	const char *name;
	const char *arguments;	/* for people, as "LEVEL"; "" if none */
	const char *help;
	const char *options;	/* lines about them; NULL: no options, or run()
				 * prints its help itself */
	/* Prints the result of a command that takes an argument for each word
	 * of @arguments, and nothing more; or NULL: */
	void	  (*print)(const json_t *result);
	/* Executes the whole command, with separate options: argv[0] is the
	 * command.  Returns the exit status. */
	int	  (*run)(const struct ctl *c, int argc, char **argv);
	/* Or does it with the @n @words behind the command: the exit status,
	 * or -1: these make no sense. */
	int	  (*words)(const struct ctl *c, int n, char **words);
};

/* commands.c */
/* The row @i, or NULL behind the last. */
const struct ctl_command *ctl_command(unsigned i);

/* ask.c */
/* Prints a message; returns EXIT_FAILURE. */
int complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The last one, or its beginning. */
extern char complaint[512];
/* A connection to the server, which waits @seconds at most for bytes; -1 after
 * a message. */
int ctl_connect(const struct ctl *c, unsigned seconds);
/*
 * Gives the server the @command, with @argument (or NULL) and the object
 * @options (or NULL; taken), and waits @seconds at most.  The result, to be
 * given back, or NULL after a message.
 */
json_t *ctl_ask(const struct ctl *c, const char *command,
		const char *argument, json_t *options, unsigned seconds);
/* Usual patience, in seconds. */
#define CTL_PATIENCE	10
/* Prints @result, which it takes, as JSON or by @print.  Returns the exit
 * status; EXIT_FAILURE for NULL. */
int ctl_print(const struct ctl *c, json_t *result,
	      void (*print)(const json_t *result));

/* plain.c */
/* Escapes characters that terminals obey, in each text of @answer, as
 * gannet-exports(5) does: ESC is \033. */
void ctl_plain(json_t *answer);

/* change.c */
int ctl_exports(const struct ctl *c, int n, char **words);
int ctl_reload(const struct ctl *c, int n, char **words);
int ctl_reopen(const struct ctl *c, int n, char **words);

/* bundle.c */
int run_bundle(const struct ctl *c, int argc, char **argv);

/* drain.c */
int  run_drain(const struct ctl *c, int argc, char **argv);
void show_drain(const json_t *r);

/* locks.c */
int ctl_locks(const struct ctl *c, int n, char **words);

/* stream.c */
/* Asks for the stream @command with @options; the server ends it when a signal
 * comes, or this end of @fd is shut.  False: after a message. */
bool ctl_stream_begin(int fd, const char *command, json_t *options);
enum { STREAM_OPTIONS = 8 };

/* An option of a stream, which goes to the server if it isn't of this side. */
struct stream_option {
	const char *name;
	const char *argument;	/* NULL: it has none */
	const char *help;	/* NULL: not shown */
	enum {
		STREAM_TEXT, STREAM_NUMBER,
		STREAM_SIZE,	/* K, M and G can follow */
		STREAM_MS,	/* sent as us */
		STREAM_FILE, STREAM_JSON,	/* ours */
	} kind;
};

struct stream_command {
	const char *name;
	const char *does;	/* a sentence without its end */
	bool	    has_file;	/* its first option, which it must have */
	struct stream_option options[STREAM_OPTIONS + 1];
};

struct stream_args {
	json_t	   *options;	/* for the server */
	const char *file;
	bool	    json;
};

/* Reads the arguments of @c into @a, whose options is an object.  -1, or the
 * exit status of a program that is done. */
int ctl_stream_arguments(const struct stream_command *c, int argc, char **argv,
			 struct stream_args *a);

/* capture.c */
int ctl_capture(const struct ctl *c, int argc, char **argv);

/* trace.c */
int ctl_trace(const struct ctl *c, int argc, char **argv);

/* show.c: results as text for people */
/* A member of @o; "?", and 0, without such a string or integer. */
const char *text_of(const json_t *o, const char *key);
/* Prints behind @before how often limits held back the calls of @o, if they
 * did. */
void show_held(const json_t *o, const char *before);
long long integer_of(const json_t *o, const char *key);
void show_status(const json_t *r);
void show_exports(const json_t *r);
void show_stats(const json_t *r);
void show_waits(const json_t *r);
void show_level(const json_t *r);
