/* SPDX-License-Identifier: BSD-2-Clause */
/* outcome - the outcome of a reload or of a change of the exports. */
#include "daemon/change/change.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/watch/report.h"
#include "lib/log.h"

void outcome_init(struct outcome *o)
{
	*o = (struct outcome){ json_array(), json_array(), json_array(),
			       NULL };
}

void outcome_fini(struct outcome *o)
{
	json_decref(o->settings);
	json_decref(o->rules);
	json_decref(o->warnings);
	free(o->error);
}

void outcome_error(struct outcome *o, const char *text)
{
	log_lines(LOG_LEVEL_ERR, text);
	if (!o)
		return;
	free(o->error);
	o->error = strdup(text);
}

void outcome_logged(struct outcome *o, const char *text)
{
	char *all = o && text ? strdup(text) : NULL, *rest = all, *line;

	while ((line = strsep(&rest, "\n")))
		json_array_append_new(o->warnings, json_text(line));
	free(all);
}

void outcome_warn(struct outcome *o, const char *text)
{
	log_lines(LOG_LEVEL_WARN, text);
	outcome_logged(o, text);
}

void outcome_setting(struct outcome *o, const struct option_row *row,
		     const char *old, const char *new)
{
	enum log_level level = row->live ? LOG_LEVEL_INFO : LOG_LEVEL_WARN;

	log_at(level, "[%s] %s: '%s' becomes '%s'%s", row->section, row->key,
	       old, new, row->live ? "" : " at the next start");
	if (o)
		json_array_append_new(o->settings, json_pack(
			"{s:s, s:s, s:o, s:o, s:b}", "section", row->section,
			"key", row->key, "old", json_text(old), "new",
			json_text(new), "holds", row->live));
}

void outcome_rule(struct outcome *o, const char *rule, bool is_new)
{
	log_info("exports: %s: %s", is_new ? "new" : "no more", rule);
	if (o)
		json_array_append_new(o->rules, json_pack("{s:s, s:o}",
			"change", is_new ? "new" : "gone", "rule",
			json_text(rule)));
}

json_t *outcome_json(const struct outcome *o)
{
	return json_pack("{s:O, s:O, s:O}", "settings", o->settings, "rules",
			 o->rules, "warnings", o->warnings);
}
