/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics_text - writes metrics as OpenMetrics, or as Prometheus' text. */
#include "daemon/watch/metrics_text.h"

#include <inttypes.h>

#include "lib/clock.h"

static const char *const kinds[] = {
	[METRICS_COUNTER] = "counter", [METRICS_GAUGE] = "gauge",
	[METRICS_HISTOGRAM] = "histogram", [METRICS_INFO] = "info",
};
static const char *const suffixes[] = {
	[METRICS_COUNTER] = "_total", [METRICS_GAUGE] = "",
	[METRICS_HISTOGRAM] = "", [METRICS_INFO] = "_info",
};

/* The bytes of the character at @p, or 0: it is not UTF-8 (RFC 3629). */
static unsigned utf8_length(const unsigned char *p)
{
	unsigned n = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 :
		     *p >= 0xe0 && *p < 0xf0 ? 3 :
		     *p >= 0xf0 && *p < 0xf5 ? 4 : 0;

	for (unsigned i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* Longer than need be, surrogates, beyond the last. */
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
	    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* A byte that is not UTF-8 appears as \ooo, as in all output of the server. */
static void write_escaped(FILE *f, const char *text, bool quotes)
{
	const unsigned char *p = (const unsigned char *)text;

	while (*p) {
		unsigned n = utf8_length(p);

		if (n == 0)
			fprintf(f, "\\\\%03o", *p);
		else if (*p == '\n')
			fputs("\\n", f);
		else if (*p == '\\' || (*p == '"' && quotes))
			fprintf(f, "\\%c", *p);
		else
			fwrite(p, 1, n, f);
		p += n ? n : 1;
	}
}

/* The sample's name and labels, and the label le if @le is not NULL. */
static void put_series(struct metrics_out *m, const char *suffix,
		       const struct metrics_label *labels, const char *le)
{
	const char *before = "{";

	fprintf(m->f, "%s%s", m->name, suffix);
	for (; labels->name; labels++, before = ",") {
		fprintf(m->f, "%s%s=\"", before, labels->name);
		write_escaped(m->f, labels->value, true);
		fputc('"', m->f);
	}
	if (le)
		fprintf(m->f, "%sle=\"%s\"", before, le);
	fputs(*before == '{' && !le ? " " : "} ", m->f);
}

#define SECONDS_TEXT	32

/* As a canonical number of OpenMetrics, which some labels have to be. */
static const char *seconds_text(uint64_t ns, char text[SECONDS_TEXT])
{
	int n = snprintf(text, SECONDS_TEXT, "%" PRIu64 ".%09u", ns / NS_PER_S,
			 (unsigned)(ns % NS_PER_S));

	while (text[n - 1] == '0' && text[n - 2] != '.')
		text[--n] = '\0';
	return text;
}

void metrics_family(struct metrics_out *m, const char *name,
		    enum metrics_kind kind, const char *unit, const char *help)
{
	const char *suffix = m->open ? "" : suffixes[kind];
	const char *type = !m->open && kind == METRICS_INFO ?
			   kinds[METRICS_GAUGE] : kinds[kind];

	m->name = name;
	m->kind = kind;
	fprintf(m->f, "# TYPE %s%s %s\n", name, suffix, type);
	if (m->open && unit)
		fprintf(m->f, "# UNIT %s %s\n", name, unit);
	fprintf(m->f, "# HELP %s%s ", name, suffix);
	/* Only OpenMetrics also escapes quotes here. */
	write_escaped(m->f, help, m->open);
	fputc('\n', m->f);
}

void metrics_sample(struct metrics_out *m, const struct metrics_label *labels,
		    uint64_t value)
{
	put_series(m, suffixes[m->kind], labels, NULL);
	fprintf(m->f, "%" PRIu64 "\n", value);
}

void metrics_seconds(struct metrics_out *m, const struct metrics_label *labels,
		     uint64_t ns)
{
	char text[SECONDS_TEXT];

	put_series(m, suffixes[m->kind], labels, NULL);
	fprintf(m->f, "%s\n", seconds_text(ns, text));
}

void metrics_histogram(struct metrics_out *m,
		       const struct metrics_label *labels,
		       const struct metrics_times *t)
{
	char text[SECONDS_TEXT];
	uint64_t count = 0;

	for (unsigned i = 0; i <= t->n; i++) {
		count += t->counts[i];
		put_series(m, "_bucket", labels, i == t->n ? "+Inf" :
			   seconds_text(t->bounds[i], text));
		fprintf(m->f, "%" PRIu64 "\n", count);
	}
	put_series(m, "_count", labels, NULL);
	fprintf(m->f, "%" PRIu64 "\n", count);
	put_series(m, "_sum", labels, NULL);
	fprintf(m->f, "%s\n", seconds_text(t->sum, text));
}

void metrics_end(struct metrics_out *m)
{
	if (m->open)
		fputs("# EOF\n", m->f);
}
