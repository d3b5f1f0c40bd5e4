/* SPDX-License-Identifier: BSD-2-Clause */
/* change - has the server change its settings and exports. */
#include "client/ctl/ctl.h"

#include <stdio.h>
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
