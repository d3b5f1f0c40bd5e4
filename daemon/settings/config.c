/* SPDX-License-Identifier: BSD-2-Clause */
/* config - reads gannet.conf(5): INI files, by libinih. */
#include "daemon/settings/settings.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/alike.h"
#include "lib/util.h"

/* A file that is being read. */
struct config_file {
	struct options	*o;
	const char	*name;
	FILE		*in;
	unsigned	 line;
	char		*text;		/* of the line */
	size_t		 size;		/* of its memory */
	unsigned	 given[OPTIONS_MAX];	/* lines of the keys; 0: none */
	bool		 failed;	/* @why is set, or out of memory */
	char		*why;
};

/* Keeps the first error. */
static int fail_at(struct config_file *f, const char *section, const char *key,
		   const char *wrong)
{
	if (f->failed)
		return 0;
	f->failed = true;
	if (asprintf(&f->why, "%s:%u: %s%s%s%s%s%s%s", f->name, f->line,
		     section ? "[" : "", section ? : "", section ? "]" : "",
		     section && key ? " " : "", key ? : "",
		     key || section ? ": " : "", wrong) < 0)
		f->why = NULL;
	return 0;
}

/* libinih takes any name, and passes over text behind it. */
static bool check_section(struct config_file *f, const char *text)
{
	size_t len = strcspn(++text, "]");
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name)),
		 text);
	if (text[len] != ']') {
		fail_at(f, NULL, NULL, "expected KEY = VALUE or [SECTION]");
		return false;
	}
	text += len + 1;
	text += strspn(text, " \t\r\n");
	if (*text && !strchr(";#", *text))
		fail_at(f, name, NULL, "expected nothing behind the section");
	else if (!option_section(name))
		fail_at(f, name, NULL, "there is no such section; see "
			"gannet.conf(5)");
	return !f->failed;
}

/* A line without the space before it: libinih takes an indented line
 * as more of the value above it. */
static char *read_line(char *out, int size, void *arg)
{
	struct config_file *f = arg;
	ssize_t len = f->failed ? -1 : getline(&f->text, &f->size, f->in);
	const char *text = f->text;

	if (len < 0)
		return NULL;
	f->line++;
	if (memchr(text, '\0', (size_t)len)) {
		fail_at(f, NULL, NULL, "this line has a zero byte");
		return NULL;
	}
	text += strspn(text, " \t\f\v\r");
	if (*text == '[' && !check_section(f, text))
		return NULL;
	if (strlen(text) >= (size_t)size) {
		fail_at(f, NULL, NULL, "this line is too long; a long list of "
			"clients belongs in an exports file");
		return NULL;
	}
	return strcpy(out, text);
}

/* The key of the section that @key is most like, or NULL. */
static const char *key_like(const char *section, const char *key)
{
	const struct option_row *row;
	const char *found = NULL;
	unsigned far = UINT_MAX;

	for (unsigned i = 0; (row = option_row(i)); i++)
		if (row->section && strcmp(row->section, section) == 0 &&
		    alike(key, row->key, &far))
			found = row->key;
	return found;
}

static int unknown_key(struct config_file *f, const char *section,
		       const char *key)
{
	const struct option_row *row = option_of_key(NULL, key);
	const char *like;
	char text[96];

	if (!*section)
		return fail_at(f, NULL, key, "expected a section, as "
			       "[server], before the first key");
	if (row) {
		snprintf(text, sizeof(text), "there is no such key in this "
			 "section; [%s] has it", row->section);
		return fail_at(f, section, key, text);
	}
	like = key_like(section, key);
	snprintf(text, sizeof(text), like ? "there is no such key; did you "
		 "mean '%s'?" : "there is no such key; see gannet.conf(5)",
		 like);
	return fail_at(f, section, key, text);
}

/* Which of two values is meant can't be known; the later one would win in
 * silence.  A list has several. */
static bool is_given_again(struct config_file *f, const struct option_row *row)
{
	unsigned *line = &f->given[option_given(f->o, row) - f->o->given];
	char text[80];

	if (*line && row->kind != OPTION_LIST) {
		snprintf(text, sizeof(text), "line %u has this key, too; "
			 "remove one of them", *line);
		fail_at(f, row->section, row->key, text);
		return true;
	}
	*line = f->line;
	return false;
}

/* As libinih wants it: 1, or 0 after an error. */
static int take_value(void *arg, const char *section, const char *key,
		      const char *value)
{
	struct config_file *f = arg;
	const struct option_row *row = option_of_key(section, key);
	const char *wrong;
	char text[320];

	if (!row)
		return unknown_key(f, section, key);
	if (is_given_again(f, row))
		return 0;
	wrong = option_give(f->o, row, value, false);
	if (!wrong)
		return 1;
	/* A comment behind a value is a part of it. */
	if (strncmp(wrong, "expected ", 9) == 0 && *value) {
		snprintf(text, sizeof(text), "%s, not '%.60s'", wrong, value);
		wrong = text;
	}
	return fail_at(f, section, key, wrong);
}

static int read_file(struct options *o, const char *name, char **why)
{
	struct config_file f = { .o = o, .name = name };
	struct stat st;
	int line;

	f.in = fopen(name, "re");
	/* A directory can be opened, and then not be read. */
	if (!f.in || (fstat(fileno(f.in), &st) == 0 && S_ISDIR(st.st_mode))) {
		line = f.in ? EISDIR : errno;
		if (f.in)
			fclose(f.in);
		if (asprintf(why, "%s: %s", name, strerror(line)) < 0)
			*why = NULL;
		return -line;
	}
	line = ini_parse_stream(read_line, &f, take_value, &f);
	/* Keep the earlier error, libinih's or take_value()'s. */
	if (line > 0 && (!f.failed || (unsigned)line < f.line)) {
		free(f.why);
		f.failed = false;
		f.line = (unsigned)line;
		fail_at(&f, NULL, NULL, "expected KEY = VALUE or [SECTION]");
	} else if (ferror(f.in)) {
		fail_at(&f, NULL, NULL, "this line can't be read");
	}
	fclose(f.in);
	free(f.text);
	*why = f.why;
	return f.failed || line ? -EINVAL : 0;
}

struct drop_in {
	struct options	 *o;
	char		**why;
};

static int read_drop_in(void *arg, const char *name)
{
	struct drop_in *d = arg;

	return read_file(d->o, name, d->why);
}

int config_read(struct options *o, char **why)
{
	const char *name = o->config ? : SYSTEM_CONFIG;
	struct drop_in d = { o, why };
	char *dir = NULL;
	int err;

	*why = NULL;
	if (asprintf(&dir, "%s.d", name) < 0)
		return -ENOMEM;
	err = read_file(o, name, why);
	if (err == -ENOENT && !o->config) {
		free(*why);
		*why = NULL;
		err = 0;
	}
	if (!err)
		err = drop_ins(dir, ".conf", read_drop_in, &d);
	if (err == -ENOENT && !*why)
		err = 0;
	else if (err < 0 && !*why &&
		 asprintf(why, "%s: %s", dir, strerror(-err)) < 0)
		*why = NULL;
	free(dir);
	return MIN(err, 0);
}
