/* SPDX-License-Identifier: BSD-2-Clause */
/* ctl_json - gannetctl's answers in JSON, for tests. */
#include "tests/server/ctl_json.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

json_t *ctl_json(const struct daemon_run *d, const char *arguments)
{
	json_error_t error;
	char line[300];
	json_t *r;
	FILE *f;

	snprintf(line, sizeof(line), "./gannetctl --socket %s/state/control "
		 "--json %s", d->dir, arguments);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	r = json_loadf(f, 0, &error);
	ck_assert_msg(r != NULL, "%s: %s", arguments, error.text);
	ck_assert_int_eq(pclose(f), 0);
	return r;
}

const json_t *ctl_row(const json_t *rows, const char *key, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		const char *is = json_string_value(json_object_get(row, key));

		if (is && !strcmp(is, name))
			return row;
	}
	return NULL;
}

/* True if the manual has this word as a variable. */
static bool has_variable(const char *name)
{
	FILE *f = fopen("doc/gannetctl.8", "r");
	char line[256], *rest, *word;
	bool found = false;

	ck_assert_ptr_nonnull(f);
	while (!found && fgets(line, sizeof(line), f))
		for (rest = *line == '.' ? strstr(line, "Va ") : NULL;
		     (word = strsep(&rest, " \n"));)
			found |= !strcmp(word, name);
	fclose(f);
	return found;
}

void ctl_manual_has(const json_t *answer)
{
	const char *key;
	json_t *value;
	size_t i;

	json_array_foreach(answer, i, value)
		ctl_manual_has(value);
	json_object_foreach((json_t *)(uintptr_t)answer, key, value) {
		ck_assert_msg(has_variable(key), "gannetctl(8) lacks %s", key);
		ctl_manual_has(value);
	}
}
