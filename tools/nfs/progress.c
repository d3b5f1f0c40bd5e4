/* SPDX-License-Identifier: BSD-2-Clause */
/* progress - a bar on the terminal while a copy takes its time. */
#include "tools/nfs/tool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/util.h"

enum { AFTER_MS = 1000, EVERY_MS = 200, WIDTH = 24, NAME_WIDTH = 30 };

const char *progress_size(double bytes, char out[16])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB",
					     "PiB" };
	unsigned i = 0;

	for (; bytes >= 1024 && i + 1 < ARRAY_SIZE(units); i++)
		bytes /= 1024;
	snprintf(out, 16, i ? "%.1f %s" : "%.0f %s", bytes, units[i]);
	return out;
}

bool progress_is_shown(const struct tool_options *o)
{
	return !o->quiet && !o->dry_run &&
	       (o->progress || isatty(STDERR_FILENO));
}

void progress_init(struct progress *p, const struct tool_options *o,
		   const char *name, uint64_t total)
{
	*p = (struct progress){
		.name = name, .total = total, .start = clock_ms(),
		.shown = progress_is_shown(o),
	};
	p->last = p->start;
	/* A user who asks for the line gets it from the start. */
	p->quiet_ms = o->progress ? 0 : AFTER_MS;
}

/* The beginning of the name: NAME_WIDTH bytes, and no half character. */
static void put_name(const char *name)
{
	size_t len = strnlen(name, NAME_WIDTH + 1);

	if (len > NAME_WIDTH)
		for (len = NAME_WIDTH; len > 0 && (name[len] & 0xc0) == 0x80;)
			len--;
	putc('\r', stderr);
	tool_put_bytes(stderr, name, len);
}

static void draw(struct progress *p, uint64_t now)
{
	double secs = (double)(now - p->start + 1) / 1000;
	double rate = (double)(p->done - p->skipped) / secs;
	uint64_t left = rate > 0 && p->total > p->done ?
		(uint64_t)((double)(p->total - p->done) / rate) : 0;
	unsigned full = p->total ?
		(unsigned)(MIN(p->done, p->total) * WIDTH / p->total) : 0;
	char bar[WIDTH + 1], done[16], speed[16];

	for (unsigned i = 0; i < WIDTH; i++)
		bar[i] = i < full ? '=' : i == full ? '>' : ' ';
	bar[WIDTH] = '\0';
	put_name(p->name);
	if (p->total)
		fprintf(stderr, " [%s] %3u%% %s %s/s %02u:%02u ", bar,
			(unsigned)(MIN(p->done, p->total) * 100 / p->total),
			progress_size((double)p->done, done),
			progress_size(rate, speed), (unsigned)(left / 60),
			(unsigned)(left % 60));
	else
		fprintf(stderr, " %s %s/s ",
			progress_size((double)p->done, done),
			progress_size(rate, speed));
	fflush(stderr);
}

void progress_move(struct progress *p, uint64_t done)
{
	uint64_t now;

	if (p->whole) {
		progress_move(p->whole, p->whole->done + (done - p->done));
		p->done = done;
		return;
	}
	p->done = done;
	if (!p->shown)
		return;
	now = clock_ms();
	if (now - p->start < p->quiet_ms ||
	    (p->begun && now - p->last < EVERY_MS))
		return;
	p->begun = true;
	p->last = now;
	draw(p, now);
}

void progress_fini(struct progress *p, bool good)
{
	if (!p->begun)
		return;
	if (good)
		draw(p, clock_ms());
	fputc('\n', stderr);
}

void progress_begin(struct tool *t, const char *name, uint64_t total)
{
	t->whole = malloc(sizeof(*t->whole));
	if (t->whole)		/* else each file has its own line */
		progress_init(t->whole, t->o, name, total);
}

void progress_skip(struct tool *t, uint64_t bytes)
{
	if (!t->whole)
		return;
	t->whole->skipped += bytes;
	progress_move(t->whole, t->whole->done + bytes);
}

void progress_end(struct tool *t, int err)
{
	if (t->whole)
		progress_fini(t->whole, err == TOOL_OK);
	free(t->whole);
	t->whole = NULL;
}
