/* SPDX-License-Identifier: BSD-2-Clause */
/* certify - goes through the list, and reports the results. */
#include "tools/bench/certify.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char list_name[] =
	"NVIDIA DGXC Storage Acceptance Test, 2026-07";

/* The rows have the list's numbers. */
static const char cluster[] =
	"it is about objects of Kubernetes: ask the cluster";
static const char mounted[] =
	"it is about mounts, and the kernel, of the worker nodes";
static const char managed[] =
	"it is about the storage's management interface, not NFS";
static const char unpublished[] =
	"the published list leaves this row out";

static const struct certify_row all_rows[] = {
	{ "N-001", "the pods of the CSI driver run", NULL, cluster },
	{ "N-002", "the CSI driver is registered", NULL, cluster },
	{ "N-003", "a storage class uses it", NULL, cluster },
	{ "N-004", "a volume claim is bound within 10 minutes", NULL, cluster },
	{ "N-005", "the volume is as large as was asked for", NULL, cluster },
	{ "N-006", "what is written is read back the same",
	  certify_write_read, NULL },
	{ "N-007", "claims at the same time get different volumes", NULL,
	  cluster },
	{ "N-008", "a volume grows when its claim does", NULL, cluster },
	{ "N-009", "pjdfstest runs, with its results", NULL,
	  "it needs pjdfstest, on a mount" },
	{ "N-010", "a lock of one client keeps another one out",
	  certify_locks, NULL },
	{ "N-011", "what one client wrote another reads within a second",
	  certify_seen, NULL },
	{ "N-012", "another client sees a file's new size and time",
	  certify_attributes, NULL },
	{ "N-013a", "a directory of 1,000,000 files is listed",
	  certify_many_files, NULL },
	{ "N-013b", "a directory of 500,000 directories is listed",
	  certify_many_dirs, NULL },
	{ "N-014", "mounts have the expected version of NFS", NULL,
	  "it is about mounts of the worker nodes; of the server's versions "
	  "this client speaks 3" },
	{ "N-015", "mounts have the expected nconnect", NULL, mounted },
	{ "N-016", "NFS goes over the expected transport", certify_transport,
	  NULL },
	{ "N-017", "readahead is as expected", NULL, mounted },
	{ "N-018", "the kernel modules of the vendor are there", NULL,
	  mounted },
	{ "N-019", "the management interface takes the credential", NULL,
	  managed },
	{ "N-020", "it makes a volume", NULL, managed },
	{ "N-021", "it reports the tenant's use and quota", NULL, managed },
	{ "N-022", "it lists quotas", NULL, managed },
	{ "N-023", "it reports the use of one quota", NULL, managed },
	{ "N-024", "a quota shows what was written", NULL, managed },
	{ "N-025", "a tenant sees no quotas of others", NULL, managed },
	{ "N-026 to N-033", "quotas are enforced, access is controlled", NULL,
	  unpublished },
};

static void put_judgement(FILE *f, json_t *rows, const struct certify_row *r,
		    enum judgement j, const char *text)
{
	static const char *const words[] = { "pass", "fail", "not judged" };
	static const char *const shown[] = { "PASS", "FAIL", "not judged" };

	if (rows)
		json_array_append_new(rows, json_pack(
			"{s:s, s:s, s:s, s:s}", "id", r->id, "requirement",
			r->requirement, "verdict", words[j], "text", text));
	else
		fprintf(f, "%-14s  %-10s  %s: %s\n", r->id, shown[j],
			r->requirement, text);
	/* A row can take minutes. */
	fflush(f);
}

static void show_row(FILE *f, const struct certify_row *r, enum judgement j,
		    const char *text)
{
	static const char *const cells[] = {
		"<td class=\"text pass\">pass", "<td class=\"text fail\">fail",
		"<td class=text>not judged",
	};

	fprintf(f, "<tr><td class=text>%s<td class=text>%s%s<td class=text>",
		r->id, r->requirement, cells[j]);
	page_put(f, text);
	fputs("</tr>\n", f);
}

/* Returns how many failed. */
static unsigned judge_rows(struct certify *c, FILE *f, json_t *rows,
			   unsigned count[3])
{
	for (unsigned i = 0; i < ARRAY_SIZE(all_rows); i++) {
		const struct certify_row *r = &all_rows[i];
		enum judgement j = NOT_JUDGED;
		const char *text = r->why;

		if (bench_interrupted())
			break;
		if (r->judge) {
			j = r->judge(c);
			text = c->text;
		}
		count[j]++;
		put_judgement(f, rows, r, j, text);
		if (c->page)
			show_row(c->page, r, j, text);
	}
	return count[FAILED];
}

static int judge_all(struct certify *c)
{
	const struct tool *t = c->target.t;
	json_t *rows = t->o->json ? json_array() : NULL;
	unsigned count[3] = { 0 };
	unsigned failed;

	if (c->page)
		fputs("<table><tr><th class=text>row<th class=text>requirement"
		      "<th class=text>verdict<th class=text>what was found"
		      "</tr>\n", c->page);
	failed = judge_rows(c, t->o->out, rows, count);
	if (c->page)
		fprintf(c->page, "</table>\n<p>%u passed, %u failed, %u not "
			"judged from here.%s</p>\n", count[PASSED], failed,
			count[NOT_JUDGED], bench_interrupted() ?
			" It was interrupted: rows are missing." : "");
	if (rows) {
		json_t *all = json_pack("{s:i, s:s, s:s, s:o}", "version", 1,
					"url", t->text, "list", list_name,
					"rows", rows);

		/* A URL can have bytes that JSON has not. */
		if (!all)
			return tool_complain(t->text, -EILSEQ, 0);
		json_dumpf(all, t->o->out, JSON_INDENT(2));
		fputc('\n', t->o->out);
		json_decref(all);
	} else {
		fprintf(t->o->out, "\n%s: %u passed, %u failed, %u not judged "
			"from here\n", list_name, count[PASSED], failed,
			count[NOT_JUDGED]);
	}
	return failed ? TOOL_FAILED : TOOL_OK;
}

/* The file, and the second client. */
static int make_ready(struct certify *c)
{
	struct tool *t = c->target.t;
	struct nfsc_op op = { .kind = NFS_OP_CREATE, .fh = c->target.dir,
			      .name = "file", .mode = 0600 };
	struct tool_object obj;
	int err;

	if (session_do(t->s, &op) < 0 || op.status != 0)
		return tool_complain(t->text, op.err, op.status);
	c->file = op.obj;
	if (c->file.len == 0) {
		err = tool_lookup(t, &c->target.dir, "file", &obj);
		c->file = obj.fh;
		if (err != TOOL_OK)
			return err;
	}
	err = nfsc_session_open(&t->url, &t->o->config, &c->other);
	return err < 0 ? tool_complain(t->text, err, 0) : TOOL_OK;
}

static int leave_clean(struct certify *c)
{
	struct tool *t = c->target.t;
	struct nfsc_op op = { .kind = NFS_OP_REMOVE, .fh = c->target.dir,
			      .name = "file" };

	if (c->other)
		session_close(c->other);
	if (c->target.dir_name[0] &&
	    (session_do(t->s, &op) < 0 ||
	     (op.status != 0 && op.status != NFS_NOENT)))
		tool_complain(t->text, op.err, op.status);
	return target_remove(&c->target, 0);
}

int tool_certify(const char *url, const struct tool_options *given)
{
	struct tool_options o = *given;
	struct load_options load = { .b = o.bench, .progress = false };
	struct certify c = { .target.opt = &load };
	struct tool_object dir;
	struct tool t;
	int err, removed;

	bench_bound(&o);
	err = tool_open(&t, url, &o);
	if (err != TOOL_OK)
		return err;
	bench_catch();
	c.target.t = &t;
	err = tool_find(&t, &dir, true, false);
	if (err == TOOL_OK) {
		c.target.above = dir.fh;
		err = target_prepare(&c.target, 0);
	}
	if (err == TOOL_OK)
		err = make_ready(&c);
	if (err == TOOL_OK)
		err = page_open(o.html, list_name, t.text, &c.page);
	if (err == TOOL_OK)
		err = judge_all(&c);
	removed = leave_clean(&c);
	err = MAX(err, removed);
	removed = page_close(c.page, o.html);
	err = MAX(err, removed);
	tool_close(&t);
	bench_leave();
	return err;
}
