/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor_note - findings and the conclusion, as text or as JSON. */
#include "tools/nfs/doctor.h"
#include "tools/nfs/why.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const verdicts[] = { "good", "fact", "poor", "bad" };

/* Text that came from a server, or from a user, for a terminal or JSON. */
static char *shown(const char *text)
{
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	if (!f)
		return NULL;
	tool_put_name(f, text);
	fclose(f);
	return out;
}

void doctor_note(struct doctor *d, enum verdict v, const char *about,
		 const char *fmt, ...)
{
	char text[1024], *safe;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	safe = shown(text);
	if (d->findings)
		json_array_append_new(d->findings, json_pack(
			"{s:s, s:s, s:s}", "about", about, "verdict",
			verdicts[v], "text", safe ? safe : ""));
	else
		fprintf(d->t.o->out, "%-5s %-12s %s\n", v == GOOD ? "ok" :
			v == FACT ? "" : verdicts[v], about, safe ? safe : "");
	/* A step can take seconds. */
	fflush(d->t.o->out);
	free(safe);
}

void doctor_mend(struct doctor *d, int code, const char *fmt, ...)
{
	char text[sizeof(d->mend)], *safe;
	va_list ap;

	if (d->mend[0])
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	safe = shown(text);
	snprintf(d->mend, sizeof(d->mend), "%s", safe ? safe : "");
	free(safe);
	d->code = code;
}

const char *doctor_reason(int err)
{
	switch (err) {
	case -ECONNREFUSED:
		return "refused: nothing listens there";
	case -ETIMEDOUT:
		return "no answer at all, as from behind a firewall";
	case -ETIME:
		return "it takes the connection, and then answers nothing";
	case -EHOSTUNREACH: case -ENETUNREACH:
		return "there is no way to this address";
	case -EBADMSG: case -EPROTO:
		return "something else than this service answers";
	case -ECONNRESET:
		return "the connection was closed at once";
	case -EPROTONOSUPPORT:
		return "the service there is another one";
	case -EACCES: case -EPERM:
		return "the call was denied: it may ask for another flavor "
		       "than this one, or for TLS";
	case -ENOKEY:
		return nfsc_why();
	default:
		return strerror(-err);
	}
}

void doctor_conclude(struct doctor *d)
{
	char *line = NULL, *url = shown(d->t.text);
	size_t len;
	FILE *f = open_memstream(&line, &len);

	if (f && d->next[0] && !d->mend[0]) {
		tool_put_name(f, d->next);
		tool_put_security(f, d->t.o);
	} else if (f && d->mounted && !d->mend[0]) {
		tool_put_mount_line(f, &d->t);
	}
	if (f)
		fclose(f);
	if (d->findings) {
		json_t *all = json_pack("{s:i, s:s, s:o}", "version", 1, "url",
					url ? url : "", "findings",
					d->findings);

		if (d->mend[0])
			json_object_set_new(all, "mend", json_string(d->mend));
		else if (line)
			json_object_set_new(all, d->next[0] ? "next" :
					    "mount", json_string(line));
		json_dumpf(all, d->t.o->out, JSON_INDENT(2));
		fputc('\n', d->t.o->out);
		json_decref(all);
	} else if (d->mend[0]) {
		fprintf(d->t.o->out, "\nTo mend: %s\n", d->mend);
	} else {
		fprintf(d->t.o->out, "\n%s: %s\n", d->next[0] ? "Next" :
			"Mount with", line ? line : "");
	}
	free(line);
	free(url);
}

void doctor_failed(struct doctor *d, const char *way, const char *what,
		   int err, uint32_t status)
{
	bool lost = d->asked && err < 0;

	doctor_note(d, lost ? BAD : POOR, way, "%s: %s", what, err < 0 ?
		    doctor_reason(err) : nfsc_status_words(status));
	if (lost)
		doctor_mend(d, TOOL_UNREACHABLE, "find out why short calls "
			    "pass over %s and long ones fail: see the MTU of "
			    "each machine on the way to %s, and its log", way,
			    d->t.url.host);
}
