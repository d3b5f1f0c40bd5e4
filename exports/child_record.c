/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * child_record - a file that says where each file system below an export is.
 *
 * A line for each, the newest last:
 *
 *	ID TOP ABOVE part|mount DIR PATH
 *
 * with the ids in hexadecimal, DIR as hexadecimal bytes, and the rest of the
 * line for PATH.  A later line of an id replaces the ones before.  Opening a
 * file that has grown too long rewrites it.  A full disk or the end of the
 * process can cut the last line short.  Such a line is removed, or the next one
 * would be appended to it.
 */
#include "exports/child_record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "lib/log.h"
#include "lib/thread.h"
#include "lib/util.h"

#define RECORD_FILE	"children"
#define HEX_MAX		80
#define LINE_SIZE	(PATH_MAX + 2 * VFS_HANDLE_MAX + 64)

_Static_assert(2 * VFS_HANDLE_MAX == HEX_MAX, "the length in sscanf()");

struct child_record {
	int fd;				/* to append; -1: no file */
	pthread_mutex_t lock;		/* held while a line is written */
};

/* Takes the newline off @text. */
static bool parse_child(char *text, struct child_line *line)
{
	char hex[HEX_MAX + 1], kind[6];
	size_t len = strlen(text), n;
	int at = 0;

	if (len == 0 || text[len - 1] != '\n')
		return false;		/* cut short by a full disk */
	text[len - 1] = '\0';
	if (sscanf(text, "%8x %8x %8x %5s %80s %n", &line->id, &line->top,
		   &line->above, kind, hex, &at) < 5 || text[at] != '/')
		return false;
	if (sodium_hex2bin(line->dir.data, sizeof(line->dir.data), hex,
			   strlen(hex), NULL, &n, NULL) < 0)
		return false;
	line->dir.len = (uint32_t)n;
	line->is_part = strcmp(kind, "part") == 0;
	line->path = text + at;
	return true;
}

static int format_line(const struct child_line *line, char *text)
{
	char hex[HEX_MAX + 1];

	sodium_bin2hex(hex, sizeof(hex), line->dir.data, line->dir.len);
	return snprintf(text, LINE_SIZE, "%08x %08x %08x %s %s %s\n", line->id,
			line->top, line->above, line->is_part ? "part" :
			"mount", hex, line->path);
}

/* Copies the lines of @in after the first @skip to @out, if that is not NULL,
 * and hands them to @fn. */
static void read_lines(FILE *in, unsigned skip, FILE *out,
		       void (*fn)(void *arg, const struct child_line *line),
		       void *arg)
{
	struct child_line line;
	char *text = NULL;
	size_t size = 0;

	for (unsigned i = 0; getline(&text, &size, in) > 0; i++) {
		if (i < skip)
			continue;
		if (out)
			fputs(text, out);
		if (parse_child(text, &line))
			fn(arg, &line);
	}
	free(text);
}

/* *@len: of the whole lines. */
static unsigned count_lines(FILE *in, off_t *len)
{
	unsigned n = 0;
	off_t at = 0;

	*len = 0;
	for (int c = getc(in); c != EOF; c = getc(in)) {
		at++;
		if (c == '\n') {
			*len = at;
			n++;
		}
	}
	rewind(in);
	return n;
}

static FILE *open_at(int dir, const char *name, int flags, const char *mode)
{
	int fd = openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, mode);

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

/* Replaces the old file by the new one.  On failure, such as a full disk, the
 * old file stays. */
static void replace(int dir, FILE *out)
{
	bool ok = fflush(out) == 0 && fsync(fileno(out)) == 0 &&
		  renameat(dir, RECORD_FILE ".new", dir, RECORD_FILE) == 0;

	if (!ok) {
		log_warn(RECORD_FILE " can't be written anew in the state "
			 "directory: %s", strerror(errno));
		unlinkat(dir, RECORD_FILE ".new", 0);
	}
	fclose(out);
}

/* Reads the file.  If it has more than @max lines, rewrites it without the
 * oldest ones. */
static int load(int dir, unsigned max,
		void (*fn)(void *arg, const struct child_line *line), void *arg)
{
	FILE *in = open_at(dir, RECORD_FILE, O_RDWR | O_CREAT, "r+");
	FILE *out = NULL;
	unsigned n;
	off_t len;
	int err;

	if (!in)
		return -errno;
	n = count_lines(in, &len);
	if (ftruncate(fileno(in), len) < 0) {
		err = -errno;
		fclose(in);
		return err;
	}
	if (n > max)
		out = open_at(dir, RECORD_FILE ".new",
			      O_WRONLY | O_CREAT | O_TRUNC, "w");
	read_lines(in, n > max ? n - max : 0, out, fn, arg);
	fclose(in);
	if (out)
		replace(dir, out);
	return 0;
}

int child_record_open(const char *state_dir, unsigned max,
		      void (*fn)(void *arg, const struct child_line *line),
		      void *arg, struct child_record **out)
{
	struct child_record *r = malloc(sizeof(*r));
	int dir, err = 0;

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	pthread_mutex_init(&r->lock, NULL);
	*out = r;
	if (!state_dir)
		return 0;
	dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		err = load(dir, max, fn, arg);
	if (dir >= 0 && err == 0)
		r->fd = openat(dir, RECORD_FILE, O_WRONLY | O_APPEND |
			       O_CLOEXEC | O_NOFOLLOW);
	if (r->fd < 0) {
		err = err ? err : -errno;
		log_err("%s/" RECORD_FILE ": %s", state_dir, strerror(-err));
		pthread_mutex_destroy(&r->lock);
		free(r);
	}
	if (dir >= 0)
		close(dir);
	return err;
}

void child_record_close(struct child_record *r)
{
	if (r->fd >= 0)
		close(r->fd);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* Writes the whole line, or nothing. */
static int append(struct child_record *r, const char *text, size_t len)
{
	ssize_t n;
	int err = 0;

	mutex_lock(&r->lock);
	n = write(r->fd, text, len);
	if (n != (ssize_t)len)
		err = n < 0 ? -errno : -ENOSPC;
	if (err && n > 0 &&
	    ftruncate(r->fd, lseek(r->fd, 0, SEEK_CUR) - n) < 0)
		err = -errno;
	mutex_unlock(&r->lock);
	return err;
}

void child_record_add(struct child_record *r, const struct child_line *line)
{
	char text[LINE_SIZE];
	int err;

	/* A path with a newline has no line. */
	if (r->fd < 0 || strlen(line->path) >= PATH_MAX ||
	    strchr(line->path, '\n'))
		return;
	err = append(r, text, (size_t)format_line(line, text));
	if (err)
		log_limited(LOG_LEVEL_WARN, "%s: can't be recorded, so its "
			    "handles will be stale after a restart: %s",
			    line->path, strerrordesc_np(-err));
}
