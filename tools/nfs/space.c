/* SPDX-License-Identifier: BSD-2-Clause */
/* space - exports, which names what a server has, and df. */
#include <errno.h>
#include <string.h>

#include "tools/nfs/tool.h"
#include "lib/util.h"

enum { WIDTH = 50 };	/* of the exports' column */

int tool_parse_host(struct tool *t, const char *text,
		    const struct tool_options *o)
{
	char url[2 * NFS_PATH_MAX];
	const char *scheme = strstr(text, "://");
	const char *host = scheme ? scheme + 3 : text;
	bool path = strchr(host, '/');
	size_t len = strlen(host), end = strcspn(host, "?");
	int err;

	if (len > NFS_PATH_MAX)
		return tool_complain(text, -ENAMETOOLONG, 0);
	if (path)
		return tool_parse(t, text, o);
	if (scheme)
		snprintf(url, sizeof(url), "%.*s/%s", (int)(host + end - text),
			 text, host + end);
	else if (host[0] != '[' && strchr(host, ':') != strrchr(host, ':'))
		snprintf(url, sizeof(url), "[%s]:/", host);
	else
		snprintf(url, sizeof(url), "%s%s", host,
			 len > 0 && host[len - 1] == ':' ? "/" : ":/");
	err = tool_parse(t, url, o);
	t->text = text;
	return err;
}

int tool_exports(const char *host, const struct tool_options *o)
{
	struct nfsc_export *list = NULL, *e;
	struct tool t;
	int err, width = 0;

	err = tool_parse_host(&t, host, o);
	if (err != TOOL_OK)
		return err;
	err = tool_reach(&t, nfsc_exports(&t.url, &o->config, &list));
	for (e = list; e; e = e->next) {
		int len = (int)strlen(e->dir);

		width = MAX(width, len);
	}
	width = MIN(width, WIDTH);
	for (e = list; e; e = e->next) {
		tool_put_name(o->out, e->dir);
		fprintf(o->out, "%*s", MAX(width - (int)strlen(e->dir), 0) + 1,
			"");
		tool_put_name(o->out, e->who[0] ? e->who : "(everyone)");
		putc('\n', o->out);
	}
	nfsc_exports_free(list);
	return err;
}

/* ---- df */

static void put_share(FILE *f, const char *what, const char *unit[3],
		      double used)
{
	fprintf(f, "%-6s %12s %12s %12s", what, unit[0], unit[1], unit[2]);
	if (used >= 0)
		fprintf(f, " %4.0f%%\n", used);
	else
		fputs("    -\n", f);
}

static double percent(uint64_t used, uint64_t left)
{
	double all = (double)used + (double)left;

	return all > 0 ? 100 * (double)used / all : -1;
}

static void put_space(FILE *f, const struct vfs_statfs *s)
{
	uint64_t used = s->tbytes - MIN(s->fbytes, s->tbytes);
	uint64_t files = s->tfiles - MIN(s->ffiles, s->tfiles);
	char a[24], b[24], c[24];
	const char *unit[3] = { progress_size((double)s->tbytes, a),
				progress_size((double)used, b),
				progress_size((double)s->abytes, c) };

	fprintf(f, "%-6s %12s %12s %12s  used\n", "", "size", "used",
		"available");
	put_share(f, "bytes", unit, percent(used, s->abytes));
	snprintf(a, sizeof(a), "%llu", (unsigned long long)s->tfiles);
	snprintf(b, sizeof(b), "%llu", (unsigned long long)files);
	snprintf(c, sizeof(c), "%llu", (unsigned long long)s->ffiles);
	put_share(f, "files", (const char *[3]){ a, b, c },
		  percent(files, s->ffiles));
}

int tool_df(const char *url, const struct tool_options *o)
{
	struct nfsc_op op = { .kind = NFS_OP_FSSTAT };
	struct tool_object obj;
	struct tool t;
	int err = tool_open(&t, url, o);

	if (err != TOOL_OK)
		return err;
	err = tool_find(&t, &obj, true, false);
	op.fh = obj.fh;
	if (err == TOOL_OK && (session_do(t.s, &op) < 0 || op.status != 0))
		err = tool_complain(url, op.err, op.status);
	if (err == TOOL_OK && o->json)
		err = json_put_space(o->out, &op.space);
	else if (err == TOOL_OK)
		put_space(o->out, &op.space);
	tool_close(&t);
	return err;
}
