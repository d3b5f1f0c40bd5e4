/* SPDX-License-Identifier: BSD-2-Clause */
/* rules - the rules of the exports before and after a change. */
#include "daemon/change/change.h"

#include <stdlib.h>
#include <string.h>

static int rule_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct rules rules_of(struct export_table *t)
{
	struct rules r = { NULL, NULL, 0 };
	struct export_set *set = NULL;
	char *line, *rest, *tab, **v;
	size_t len;
	FILE *f = NULL;

	if (export_set_copy(t, &set) == 0)
		f = open_memstream(&r.text, &len);
	if (f)
		export_set_print(set, f);
	if (set)
		export_set_free(set);
	if (!f || fclose(f) < 0)
		return r;
	r.v = malloc((len + 1) * sizeof(*r.v));
	for (rest = r.text; r.v && (line = strsep(&rest, "\n"));) {
		if (!*line)
			continue;
		tab = strchr(line, '\t');
		if (tab)
			*tab = ' ';	/* a log has none */
		r.v[r.n++] = line;
	}
	v = r.n ? realloc(r.v, r.n * sizeof(*r.v)) : NULL;
	r.v = v ? v : r.v;
	if (r.v)
		qsort(r.v, r.n, sizeof(*r.v), rule_order);
	return r;
}

void rules_free(struct rules *r)
{
	free(r->text);
	free(r->v);
}

void rules_tell(const struct rules *old, struct export_table *t,
		struct outcome *out)
{
	struct rules new = rules_of(t);
	size_t a = 0, b = 0;

	while (old->v && new.v && (a < old->n || b < new.n)) {
		int order = a == old->n ? 1 : b == new.n ? -1 :
			    strcmp(old->v[a], new.v[b]);

		if (order < 0)
			outcome_rule(out, old->v[a], false);
		else if (order > 0)
			outcome_rule(out, new.v[b], true);
		a += order <= 0;
		b += order >= 0;
	}
	rules_free(&new);
}
