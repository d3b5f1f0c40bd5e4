/* SPDX-License-Identifier: BSD-2-Clause */
/* change - has the server change its settings and exports. */
#include "tools/ctl/ctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A reload gives file systems some seconds. */
#define PATIENCE	30

static void show_changes(const json_t *r)
{
	const json_t *settings = json_object_get(r, "settings");
	const json_t *rules = json_object_get(r, "rules"), *e;
	size_t i;

	json_array_foreach(json_object_get(r, "warnings"), i, e)
		fprintf(stderr, "warning: %s\n", json_string_value(e));
	json_array_foreach(settings, i, e)
		printf("[%s] %s: '%s' becomes '%s'%s\n", text_of(e, "section"),
		       text_of(e, "key"), text_of(e, "old"),
		       text_of(e, "new"),
		       json_is_true(json_object_get(e, "holds")) ? "" :
		       " at the next start");
	json_array_foreach(rules, i, e)
		printf("%s: %s\n", strcmp(text_of(e, "change"), "new") ?
		       "no more" : "new", text_of(e, "rule"));
	if (!json_array_size(settings) && !json_array_size(rules))
		printf("nothing has changed\n");
}

int ctl_reload(const struct ctl *c, int n, char **words)
{
	(void)words;
	return n > 0 ? -1 : ctl_print(c, ctl_ask(c, "reload", NULL, NULL,
						 PATIENCE), show_changes);
}

/* A success is silent: logrotate(8) mails the output of its hooks. */
static void show_nothing(const json_t *r)
{
	(void)r;
}

int ctl_reopen(const struct ctl *c, int n, char **words)
{
	(void)words;
	return n > 0 ? -1 : ctl_print(c, ctl_ask(c, "reopen", NULL, NULL,
						 PATIENCE), show_nothing);
}

/* ---- exports */

/* @text for exports(5), in UTF-8; with @is_word as one word.  Malloced. */
static char *escape(const char *text, bool is_word)
{
	json_t *whole = json_string(text);
	char *out = malloc(4 * strlen(text) + 1), *at = out;

	for (; out && *text; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c >= 0x80 && !whole) ||
		    (is_word && (c <= ' ' || c == 0x7f || strchr("\\\"#", c))))
			at += sprintf(at, "\\%03o", c);
		else
			*at++ = *text;
	}
	if (out)
		*at = '\0';
	json_decref(whole);
	return out;
}

static int ask_change(const struct ctl *c, const char *command,
			  const char *key, char *text, char *client)
{
	json_t *options = text ? json_pack("{s:s, s:s*, s:b}", key, text,
					   "client", client, "keep",
					   c->keep) : NULL;
	int status = options ?
		ctl_print(c, ctl_ask(c, command, NULL, options, PATIENCE),
			  show_changes) : complain("out of memory");

	free(text);
	free(client);
	return status;
}

int ctl_exports(const struct ctl *c, int n, char **words)
{
	if (n == 0 && !c->keep)
		return ctl_print(c, ctl_ask(c, "exports", NULL, NULL,
					    CTL_PATIENCE), show_exports);
	if (n == 2 && !strcmp(words[0], "add"))
		return ask_change(c, "exports-add", "line",
				      escape(words[1], false), NULL);
	if ((n == 2 || n == 3) && !strcmp(words[0], "remove"))
		return ask_change(c, "exports-remove", "path",
				      escape(words[1], true), n == 3 ?
				      escape(words[2], false) : NULL);
	if (n == 3 && !strcmp(words[0], "set"))
		return ask_change(c, "exports-set", "path",
				      escape(words[1], true),
				      escape(words[2], false));
	return -1;
}
