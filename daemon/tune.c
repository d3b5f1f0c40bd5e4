/* SPDX-License-Identifier: BSD-2-Clause */
/* tune - applies a changed gannet.conf to a server that runs. */
#include "daemon/tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/exports.h"
#include "daemon/option_row.h"
#include "lib/log.h"
#include "lib/util.h"

/* NULL: no memory. */
static char *value_text(const struct options *o, const struct option_row *row)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	option_print(o, row, f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static void tell_changes(const struct options *old, const struct options *new,
			 struct outcome *out)
{
	const struct option_row *row;

	for (unsigned i = 0; (row = option_row(i)); i++) {
		char *a = value_text(old, row), *b = value_text(new, row);

		if (row->section && a && b && strcmp(a, b) != 0)
			outcome_setting(out, row, a, b);
		free(a);
		free(b);
	}
}

/* ---- exports */

/* Rules as gannetd --check prints them, in order; v is NULL without memory. */
struct rules {
	char	 *text;
	char	**v;
	size_t	  n;
};

static int rule_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct rules rules_of(struct export_table *t)
{
	struct rules r = { NULL, NULL, 0 };
	char *line, *rest, *tab, **v;
	size_t len;
	FILE *f = open_memstream(&r.text, &len);

	if (!f)
		return r;
	export_show(t, f);
	if (fclose(f) < 0)
		return r;
	r.v = malloc((len + 1) * sizeof(*r.v));
	for (rest = r.text; r.v && (line = strsep(&rest, "\n"));) {
		if (!*line || *line == '#')
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

static void rules_free(struct rules *r)
{
	free(r->text);
	free(r->v);
}

static void tell_rules(const struct rules *old, const struct rules *new,
		       struct outcome *out)
{
	size_t a = 0, b = 0;

	while (old->v && new->v && (a < old->n || b < new->n)) {
		int order = a == old->n ? 1 : b == new->n ? -1 :
			    strcmp(old->v[a], new->v[b]);

		if (order < 0)
			outcome_rule(out, old->v[a], false);
		else if (order > 0)
			outcome_rule(out, new->v[b], true);
		a += order <= 0;
		b += order >= 0;
	}
}

void tune_connections(struct xprt_env *env, const struct options *o)
{
	struct rlimit lim;
	unsigned fit;

	env->max_conns = o->max_conns;
	env->max_peer_conns = o->max_client_conns;
	if (getrlimit(RLIMIT_NOFILE, &lim) < 0 ||
	    lim.rlim_cur / 4 >= env->max_conns)
		return;
	fit = (unsigned)lim.rlim_cur / 4;
	log_warn("%u connections at most, not %u: this process may open %lu "
		 "files only", fit, env->max_conns,
		 (unsigned long)lim.rlim_cur);
	env->max_conns = MAX(fit, 1u);
	fit = MAX(fit / 4, 1u);
	env->max_peer_conns = MIN(env->max_peer_conns, fit);
}

void tune_free(struct options *o)
{
	if (o)
		options_fini(o);
	free(o);
}

int tune_reload(const struct options *start, struct options **now,
		struct export_table *exports, struct outcome *out)
{
	const struct options *old = *now ? : start;
	struct options *o = calloc(1, sizeof(*o));
	struct rules before = rules_of(exports), after;
	char *why = NULL;
	int err = o ? options_again(start, o, &why) : -ENOMEM;

	if (err) {
		outcome_error(out, why ? why : strerror(-err));
	} else {
		export_table_manage_gids(exports, o->manage_gids);
		err = exports_publish(o, exports, out);
	}
	free(why);
	if (err) {
		export_table_manage_gids(exports, old->manage_gids);
		log_warn("configuration and exports unchanged");
		rules_free(&before);
		tune_free(o);
		return err;
	}
	/* A lower level must not hide the lines about it, nor one that
	 * gannetctl set. */
	if (log_threshold < old->log_level)
		log_threshold = old->log_level;
	if (log_threshold < o->log_level)
		log_threshold = o->log_level;
	tell_changes(old, o, out);
	after = rules_of(exports);
	tell_rules(&before, &after, out);
	rules_free(&before);
	rules_free(&after);
	log_info("configuration and exports read again");
	log_threshold = o->log_level;
	tune_free(*now);
	*now = o;
	return 0;
}
