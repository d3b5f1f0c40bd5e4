/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bundle - gannetctl support-bundle: one text file to send with a question.
 *
 * Its parts are gathered and listed, and written only with -w.  A server that
 * does not answer leaves its parts out.  Keys and filehandles are not in it:
 * nothing reads them, and text that looks like one is crossed out.
 */
#include "tools/ctl/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define PART_MAX	(4u << 20)	/* bytes */
#define HEX_MAX		32		/* digits that are not secret */

/* The server is asked, or else a command of the shell is run. */
static const struct part {
	const char *name, *ask, *argument, *run;
} parts[] = {
	{ "versions", NULL, NULL, "echo gannetctl " PACKAGE_VERSION
	  "; uname -srm; cat /etc/os-release; getconf GNU_LIBC_VERSION" },
	{ "status", "status", NULL, NULL },
	{ "settings", NULL, NULL, "cd " SYSCONFDIR "/gannet && tail -n +1 -v "
	  "gannet.conf gannet.conf.d/*.conf exports exports.d/*.exports" },
	{ "exports", "exports", NULL, NULL },
	{ "counters", "stats", NULL, NULL },
	{ "waits", "waits", NULL, NULL },
	{ "latency", "latency", "export", NULL },
	{ "log", NULL, NULL, "journalctl -u gannetd -n 2000 --no-pager" },
};

#define NPARTS		(sizeof(parts) / sizeof(parts[0]))

/* ---- secrets */

/* Crosses out long runs of hexadecimal digits, as of handles and keys. */
static void hide_hex(char *text)
{
	while (*text) {
		size_t n = strspn(text, "0123456789abcdefABCDEF");

		if (n >= HEX_MAX)
			memset(text, 'x', n);
		text += n ? n : 1;
	}
}

/* Crosses out the text after a word for a secret, and "=" or ":". */
static void hide_values(char *text)
{
	static const char *const words[] = { "key", "secret", "password",
					     "token" };
	char *line, *end;

	for (line = text; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		for (size_t i = 0; i < 4; i++) {
			size_t len = strlen(words[i]);
			char *at = line;

			while (at + len <= end &&
			       strncasecmp(at, words[i], len) != 0)
				at++;
			at += at + len <= end ? strcspn(at, "=:\n") :
						(size_t)(end - at);
			if (at < end)
				memset(at + 1, 'x', (size_t)(end - at - 1));
		}
	}
}

/* ---- parts */

static char *output_of(const char *run)
{
	char *text = calloc(1, PART_MAX + 1), *whole;
	FILE *f = NULL;
	size_t n = 0;

	if (text && asprintf(&whole, "{ %s; } 2>&1", run) >= 0) {
		f = popen(whole, "r");
		free(whole);
	}
	if (f) {
		n = fread(text, 1, PART_MAX, f);
		pclose(f);
	}
	/* A NUL in a log would end the part. */
	for (size_t i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : ' ';
	return text;
}

/* NULL: no memory. */
static char *gather_part(const struct ctl *c, const struct part *p)
{
	char *text;
	json_t *r;

	if (p->run) {
		text = output_of(p->run);
	} else {
		r = ctl_ask(c, p->ask, p->argument, NULL, CTL_PATIENCE);
		text = r ? json_dumps(r, JSON_INDENT(1) | JSON_ENCODE_ANY) :
			   strdup(complaint);
		json_decref(r);
	}
	if (text) {
		hide_hex(text);
		hide_values(text);
	}
	return text;
}

static int write_bundle(const char *name, char *const texts[NPARTS])
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	bool bad;

	if (!f)
		return complain("support-bundle: %s: %s", name,
				strerror(errno));
	for (size_t i = 0; i < NPARTS; i++)
		fprintf(f, "==== %s\n%s\n\n", parts[i].name, texts[i]);
	bad = ferror(f);
	if (fclose(f) != 0 || bad)
		return complain("support-bundle: %s: it could not be written",
				name);
	printf("written to %s; read it before you send it\n", name);
	return EXIT_SUCCESS;
}

/* Lists the parts of the bundle, and writes it if @name is given. */
static int make_bundle(const struct ctl *c, const char *name)
{
	char *texts[NPARTS] = { NULL };
	int status = EXIT_SUCCESS;
	size_t i;

	for (i = 0; i < NPARTS && status == EXIT_SUCCESS; i++) {
		texts[i] = gather_part(c, &parts[i]);
		if (!texts[i])
			status = complain("support-bundle: no memory");
		else
			printf("%-10s %8zu bytes: %s%s\n", parts[i].name,
			       strlen(texts[i]), parts[i].run ? "" :
			       "gannetctl ", parts[i].run ? : parts[i].ask);
	}
	if (status == EXIT_SUCCESS && name)
		status = write_bundle(name, texts);
	else if (status == EXIT_SUCCESS)
		printf("nothing is written without -w FILE\n");
	for (i = 0; i < NPARTS; i++)
		free(texts[i]);
	return status;
}

int run_bundle(const struct ctl *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	struct ctl mine = *c;
	const char *name = NULL;
	int o;

	optind = 0;
	while ((o = getopt_long(argc, argv, "w:", options, NULL)) != -1) {
		if (o == 'w')
			name = optarg;
		else if (o == 's')
			mine.path = optarg;
		else
			return USAGE;
	}
	if (optind != argc) {
		complain("support-bundle: expected -w FILE or nothing: see "
			 "gannetctl --help");
		return USAGE;
	}
	return make_bundle(&mine, name);
}
