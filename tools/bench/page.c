/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page - a page of results that needs nothing else: its plots are SVG in it.
 */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench/bench.h"

enum { BAR = 12, HEIGHT = 160, BARS_MAX = 160, PER_OCTAVE = 4 };

static const char style[] =
"body{font:16px/1.4 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;"
"background:#fff;color:#222}\n"
"table{border-collapse:collapse}\n"
"td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ccc}\n"
"td.text,th.text{text-align:left}\n"
"svg{max-width:100%;height:auto;font-size:12px}\n"
"svg rect{fill:#3465a4}svg line{stroke:#888}svg text{fill:#222}\n"
".pass{color:#2a7d2a}.fail{color:#b00020;font-weight:bold}\n"
"@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}"
"svg text{fill:#ddd}svg rect{fill:#729fcf}.pass{color:#7c7}"
".fail{color:#f88}}\n";

static long without_results;	/* the length of the page */
/* A page is written here, and takes the place of an earlier one at its end.
 * "": it is written there. */
static char aside[PATH_MAX];

void page_put(FILE *f, const char *text)
{
	for (const char *s = text; *s; s++) {
		switch (*s) {
		case '&': fputs("&amp;", f); break;
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '"': fputs("&quot;", f); break;
		default:
			/* A URL can have any byte. */
			if ((uint8_t)*s < ' ' || (uint8_t)*s >= 0x7f)
				fprintf(f, "\\%03o", (uint8_t)*s);
			else
				putc(*s, f);
		}
	}
}

/* False: @path is a device or a link (/dev/stdout), or too long. */
static bool name_aside(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return false;
	return snprintf(aside, sizeof(aside), "%s.%d.part", path,
			(int)getpid()) < (int)sizeof(aside);
}

/* Also where no file can be made beside it; or there is one, of another run
 * with the number of this process. */
static FILE *open_page(const char *path)
{
	FILE *f = name_aside(path) ? fopen(aside, "wex") : NULL;

	if (f)
		return f;
	*aside = '\0';
	return fopen(path, "we");
}

int page_open(const char *path, const char *title, const char *about,
	      FILE **out)
{
	time_t now = time(NULL);
	char when[40];
	struct tm tm;
	FILE *f;

	*out = NULL;
	if (!path)
		return TOOL_OK;
	f = open_page(path);
	if (!f)
		return tool_complain(path, -errno, 0);
	strftime(when, sizeof(when), "%F %T %z", localtime_r(&now, &tm));
	fprintf(f, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
		"charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width="
		"device-width\">\n<title>%s</title>\n<style>\n%s</style>"
		"</head><body>\n<h1>%s</h1>\n<p>", title, style, title);
	page_put(f, about);
	fprintf(f, "<br>\n%s, gannet-nfs %s</p>\n", when, PACKAGE_VERSION);
	without_results = ftell(f);
	*out = f;
	return TOOL_OK;
}

int page_close(FILE *f, const char *path)
{
	bool is_empty = f && ftell(f) == without_results;
	int err = 0;

	if (!f)
		return TOOL_OK;
	fputs("</body></html>\n", f);
	if (ferror(f))
		err = -EIO;
	if (fclose(f) != 0)
		err = -errno;
	if (*aside && (err || is_empty))
		unlink(aside);
	else if (*aside && rename(aside, path) < 0)
		err = -errno;
	return err ? tool_complain_here(path, err) : TOOL_OK;
}

/* ---- the works of bench */

/* The end of a bar, in ns: the first one's is a microsecond. */
static uint64_t bound(int i)
{
	static const uint64_t within[PER_OCTAVE] = { 1000, 1189, 1414, 1682 };

	return i < 0 ? 0 : within[i % PER_OCTAVE] << i / PER_OCTAVE;
}

static uint64_t in_bar(const struct hist *h, int i)
{
	return hist_below(h, bound(i)) - hist_below(h, bound(i - 1));
}

static void put_axis(FILE *f, int first, int last)
{
	char text[16];

	for (int i = first; i <= last; i++) {
		int x = (i - first + 1) * BAR;

		if (i % (2 * PER_OCTAVE))
			continue;
		fprintf(f, "<line x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>"
			"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s"
			"</text>\n", x, x, HEIGHT, HEIGHT + 5, x, HEIGHT + 18,
			bench_time(bound(i), text));
	}
}

static void put_plot(FILE *f, const struct hist *h)
{
	int first = 0, last = 30 * PER_OCTAVE;
	uint64_t most = 1;

	while (first < last && in_bar(h, first) == 0)
		first++;
	while (last > first && in_bar(h, last) == 0)
		last--;
	last = MIN(last, first + BARS_MAX);
	for (int i = first; i <= last; i++)
		most = MAX(most, in_bar(h, i));
	fprintf(f, "<svg role=\"img\" aria-label=\"latencies\" viewBox=\"-20 "
		"-5 %d %d\" width=\"%d\">\n", (last - first + 1) * BAR + 60,
		HEIGHT + 30, (last - first + 1) * BAR + 60);
	for (int i = first; i <= last; i++) {
		uint64_t n = in_bar(h, i);
		double high = (double)n * HEIGHT / (double)most;

		fprintf(f, "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height="
			"\"%.1f\"><title>%llu calls</title></rect>\n",
			(i - first) * BAR, HEIGHT - high, BAR - 1, high,
			(unsigned long long)n);
	}
	put_axis(f, first, last);
	fputs("</svg>\n", f);
}

void page_work(FILE *f, const struct target *t, const struct load_result *r)
{
	const struct load_options *o = t->opt;
	static const double q[] = { .5, .99, .999 };
	double secs = r->seconds > 0 ? r->seconds : 1;
	char text[16];

	fprintf(f, "<h2>%s</h2>\n<p>%s, connections: %u, depth: %u",
		workload_name(o->work), t->transport, o->b.connections,
		o->depth);
	if (workload_needs(o->work) & NEED_DATA)
		fprintf(f, ", blocks of %u bytes", o->block);
	fprintf(f, "; calls: %llu, errors: %llu</p>\n<table><tr><th>calls/s"
		"<th>MiB/s<th>p50<th>p99<th>p99.9<th>max</tr>\n<tr><td>%.0f"
		"<td>%.1f", (unsigned long long)r->counts.ops,
		(unsigned long long)r->counts.errors,
		(double)r->counts.ops / secs,
		(double)r->counts.bytes / secs / (1 << 20));
	for (size_t i = 0; i < ARRAY_SIZE(q); i++)
		fprintf(f, "<td>%s",
			bench_time(hist_quantile(&r->hist, q[i]), text));
	fprintf(f, "<td>%s</tr></table>\n<p>Calls by their time from the call "
		"to its reply:</p>\n", bench_time(r->hist.max, text));
	put_plot(f, &r->hist);
}
