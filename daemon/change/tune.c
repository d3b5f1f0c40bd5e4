/* SPDX-License-Identifier: BSD-2-Clause */
/* tune - applies a changed gannet.conf to a server that runs. */
#include "daemon/change/change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/serve/tls.h"
#include "daemon/watch/audit_sink.h"
#include "lib/errand.h"
#include "lib/fail.h"
#include "lib/fds.h"
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

void tune_connections(struct xprt_env *env, const struct options *o)
{
	unsigned fit = (unsigned)fds_alone(FDS_CONNS);

	env->max_conns = o->max_conns;
	env->max_peer_conns = o->max_client_conns;
	if (fit >= env->max_conns)
		return;
	log_warn("%u connections at most, not %u: this process may open only "
		 "%ld files", fit, env->max_conns, fds_limit());
	env->max_conns = fit;
	fit = MAX(fit / 4, 1u);
	env->max_peer_conns = MIN(env->max_peer_conns, fit);
}

struct options tune_exports(const struct options *start,
			    const struct options *now)
{
	struct options o = now ? *now : *start;

	/* A reload does not change these. */
	o.state_dir = start->state_dir;
	o.pid_file = start->pid_file;
	o.control = start->control;
	return o;
}

void tune_free(struct options *o)
{
	if (o)
		options_fini(o);
	free(o);
}

/* Whether the audit stream can be opened; it changes when all else does.  While
 * the disk of its file does not answer, the one of @old goes on. */
static int try_audit(const struct options *old, const struct options *o,
		     char **why)
{
	struct audit_sink sink;
	int err = audit_sink_open(o->audit, &sink);

	if (err == -ETIMEDOUT && strcmp(old->audit, o->audit) == 0)
		return 0;
	if (!err)
		audit_sink_close(&sink);
	else if (asprintf(why, "audit: %s: %s", o->audit, strerror(-err)) < 0)
		*why = NULL;
	return err;
}

/* Reads the files of TLS.  If their disk does not answer, and @old names the
 * same files, this sets *@keeps and returns 0: the one in use stays, and
 * *@why (NULL: no memory) says so. */
static int read_tls(const struct options *old, const struct options *o,
		    struct tls_config **config, bool *keeps, char **why)
{
	int err = options_tls(o, errand_deadline(), config, why);
	char *what = *why;

	*keeps = err == -ETIMEDOUT && options_tls_same(old, o);
	if (!*keeps)
		return err;
	fail_with(why, "%s: TLS goes on with what was read before",
		  what ? : "TLS");
	free(what);
	return 0;
}

int tune_reload(const struct options *start, struct options **now,
		struct export_table *exports, struct tls_server *tls,
		struct outcome *out)
{
	struct tls_config *config = NULL;
	const struct options *old = *now ? : start;
	struct options *o = calloc(1, sizeof(*o));
	struct rules before = rules_of(exports);
	struct options by;
	bool keeps = false;
	char *why = NULL, *late = NULL;
	int err = o ? options_again(start, o, &why) : -ENOMEM;

	if (!err)
		err = try_audit(old, o, &why);
	if (!err)
		err = read_tls(old, o, &config, &keeps, &why);
	if (err) {
		outcome_error(out, why ? why : strerror(-err));
	} else {
		if (keeps || why)
			outcome_warn(out, why ? : "TLS goes on as before");
		export_table_manage_gids(exports, o->manage_gids);
		export_table_protection(exports, options_protection(o));
		by = tune_exports(start, o);
		err = own_files_keep_too(&by, &late);
		outcome_logged(out, late);
		if (err)
			outcome_error(out, err == -ETIMEDOUT ? "a new file of "
				      "the server's is on a file system that "
				      "does not answer" : strerror(-err));
		else
			err = exports_publish(&by, exports, out);
	}
	free(why);
	free(late);
	if (err) {
		tls_config_free(config);
		export_table_manage_gids(exports, old->manage_gids);
		export_table_protection(exports, options_protection(old));
		by = tune_exports(start, old);
		own_files_keep(&by);
		log_warn("configuration and exports unchanged");
		rules_free(&before);
		tune_free(o);
		return err;
	}
	own_files_keep(&by);
	if (!keeps)
		tls_server_use(tls, config);
	tls_server_limit(tls, tls_part_memory(o));
	/* A lower level must not hide the lines about it, nor one that
	 * gannetctl set. */
	if (log_threshold < old->log_level)
		log_threshold = old->log_level;
	if (log_threshold < o->log_level)
		log_threshold = o->log_level;
	tell_changes(old, o, out);
	rules_tell(&before, exports, out);
	rules_free(&before);
	tune_free(*now);
	*now = o;
	return 0;
}
