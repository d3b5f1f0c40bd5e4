/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rmtab - the list of mounts, for DUMP (RFC 1813 section 5.2.2).
 *
 * It tells an administrator which client mounted which path; nothing depends on
 * it.  So it is bounded: a new entry replaces the oldest one, or the oldest of
 * the same host, network or site if that has its share.  A job of the crew
 * replaces the whole file when the list has changed: a worker must not wait for
 * the disk, and can't write there while it acts as a caller.
 *
 * One line an entry: address, space, path with octal escapes.
 */
#include "mountd/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "lib/crew.h"
#include "lib/file.h"
#include "lib/log.h"
#include "lib/network.h"
#include "lib/stats.h"
#include "lib/util.h"

STAT(rmtab_dropped, "entries dropped from a full list of mounts");
STAT(rmtab_bad_line, "malformed lines of the list of mounts");
STAT(rmtab_save_failed, "failures to write the list of mounts");

struct entry {
	struct cds_list_head link;
	struct in6_addr addr;		/* the host's */
	char	*path;			/* in the same memory */
	char	 host[];
};

struct rmtab {
	char		*file;		/* NULL: not kept */
	unsigned	 max;
	unsigned	 max_host;
	struct crew_job	 saver;		/* with file */

	pthread_mutex_t	 lock;		/* guards all below */
	struct cds_list_head entries;	/* oldest first */
	unsigned	 count;
	bool		 dirty;
};

static void drop_entry(struct rmtab *t, struct entry *e)
{
	cds_list_del(&e->link);
	free(e);
	t->count--;
}

/* The caller holds the lock from here on, or is alone with the table. */
static void touch(struct rmtab *t)
{
	t->dirty = true;
	if (t->file)
		crew_run(&t->saver);
}

/* A host with a name, which older files can have, is in no network. */
static struct in6_addr addr_of(const char *host)
{
	struct in6_addr addr = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
	char text[INET6_ADDRSTRLEN];

	/* Without its interface, "%eth0". */
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(host, "%"), host);
	if (inet_pton(AF_INET, text, &addr.s6_addr[12]) != 1)
		inet_pton(AF_INET6, text, &addr);
	return addr;
}

/* Entries that share a bound, and the oldest of them. */
struct share {
	unsigned      n, max;
	struct entry *oldest;
};

static void count_entry(struct share *s, struct entry *e)
{
	if (s->n++ == 0)
		s->oldest = e;
}

/* Makes room for @new; returns false if it is listed already. */
static bool make_entry_room(struct rmtab *t, const struct entry *new)
{
	/* Of the host, its network, its site, and all. */
	struct share share[] = {
		{ .max = t->max_host }, { .max = network_share(t->max) },
		{ .max = site_share(t->max) }, { .max = t->max },
	};
	bool v6 = !IN6_IS_ADDR_V4MAPPED(&new->addr);
	struct entry *e;

	cds_list_for_each_entry(e, &t->entries, link) {
		bool same = strcmp(e->host, new->host) == 0;

		if (same && strcmp(e->path, new->path) == 0)
			return false;
		if (same)
			count_entry(&share[0], e);
		if (v6 && memcmp(&e->addr, &new->addr, NETWORK_BYTES) == 0)
			count_entry(&share[1], e);
		if (v6 && memcmp(&e->addr, &new->addr, SITE_BYTES) == 0)
			count_entry(&share[2], e);
		count_entry(&share[3], e);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(share); i++)
		if (share[i].n >= share[i].max) {
			drop_entry(t, share[i].oldest);
			stat_inc(rmtab_dropped);
			break;
		}
	return true;
}

static void add_entry(struct rmtab *t, const char *host, const char *path)
{
	size_t host_size = strlen(host) + 1;
	size_t path_size = strlen(path) + 1;
	struct entry *e = malloc(sizeof(*e) + host_size + path_size);

	if (!e)
		return;
	memcpy(e->host, host, host_size);
	e->path = e->host + host_size;
	memcpy(e->path, path, path_size);
	e->addr = addr_of(host);
	if (!make_entry_room(t, e)) {
		free(e);
		return;
	}
	cds_list_add_tail(&e->link, &t->entries);
	t->count++;
	touch(t);
}

void rmtab_add(struct rmtab *t, const char *host, const char *path)
{
	mutex_lock(&t->lock);
	add_entry(t, host, path);
	mutex_unlock(&t->lock);
}

/* Removes one entry of the host, or with @path NULL all. */
static void remove_some(struct rmtab *t, const char *host, const char *path)
{
	struct entry *e, *next;

	mutex_lock(&t->lock);
	cds_list_for_each_entry_safe(e, next, &t->entries, link) {
		if (strcmp(e->host, host) != 0 ||
		    (path && strcmp(e->path, path) != 0))
			continue;
		drop_entry(t, e);
		touch(t);
	}
	mutex_unlock(&t->lock);
}

void rmtab_remove(struct rmtab *t, const char *host, const char *path)
{
	remove_some(t, host, path);
}

void rmtab_remove_host(struct rmtab *t, const char *host)
{
	remove_some(t, host, NULL);
}

void rmtab_walk(struct rmtab *t,
		void (*fn)(void *arg, const char *host, const char *path),
		void *arg)
{
	struct entry *e;

	mutex_lock(&t->lock);
	cds_list_for_each_entry(e, &t->entries, link)
		fn(arg, e->host, e->path);
	mutex_unlock(&t->lock);
}

static void put_escaped(FILE *f, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c <= ' ' || c == '\\' || c == 0x7f)
			fprintf(f, "\\%03o", c);
		else
			fputc(c, f);
	}
}

/* Decodes in place.  False: put_escaped() did not write this. */
static bool unescape_name(char *s)
{
	char *to = s;

	while (*s) {
		unsigned c = (unsigned char)*s++;

		if (c == '\\') {
			c = 0;
			for (int i = 0; i < 3; i++, s++) {
				if (*s < '0' || *s > '7')
					return false;
				c = c << 3 | (unsigned)(*s - '0');
			}
			if (c == 0 || c > 0xff)
				return false;
		}
		*to++ = (char)c;
	}
	*to = '\0';
	return true;
}

static void load_line(struct rmtab *t, char *line)
{
	char *path = strchr(line, ' ');

	if (path) {
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
	}
	if (!path || !*line || strlen(line) > MNTNAMLEN || *path != '/' ||
	    !unescape_name(path) || strlen(path) > MNTPATHLEN) {
		stat_inc(rmtab_bad_line);
		return;
	}
	add_entry(t, line, path);
}

static int load_entries(struct rmtab *t, const char *file)
{
	FILE *f = fopen(file, "re");
	char *line = NULL;
	size_t size = 0;
	int err = 0;

	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while (getline(&line, &size, f) > 0)
		load_line(t, line);
	if (ferror(f))
		err = -EIO;
	free(line);
	fclose(f);
	t->dirty = false;
	return err;
}

/* The file's new content, malloced; the caller holds the lock. */
static char *format(struct rmtab *t, size_t *len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, len);
	struct entry *e;

	if (!f)
		return NULL;
	cds_list_for_each_entry(e, &t->entries, link) {
		fputs(e->host, f);
		fputc(' ', f);
		put_escaped(f, e->path);
		fputc('\n', f);
	}
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void save(struct rmtab *t)
{
	size_t len = 0;
	int err = -ENOMEM;
	char *text;

	mutex_lock(&t->lock);
	text = format(t, &len);
	t->dirty = false;
	mutex_unlock(&t->lock);
	if (text)
		err = file_replace(AT_FDCWD, t->file, text, len);
	if (err < 0) {
		stat_inc(rmtab_save_failed);
		log_limited(LOG_LEVEL_ERR, "can't write %s: %s", t->file,
			    strerror(-err));
	}
	free(text);
}

static uint64_t saver_run(struct crew_job *job)
{
	save(container_of(job, struct rmtab, saver));
	return CREW_IDLE;
}

static void clear(struct rmtab *t)
{
	struct entry *e, *next;

	cds_list_for_each_entry_safe(e, next, &t->entries, link)
		drop_entry(t, e);
	pthread_mutex_destroy(&t->lock);
	free(t->file);
	free(t);
}

static int open_file(struct rmtab *t, const char *file)
{
	int err = load_entries(t, file);

	if (err < 0) {
		log_err("can't read %s: %s", file, strerror(-err));
		return err;
	}
	t->file = strdup(file);
	return t->file ? crew_job_init(&t->saver, saver_run, "rmtab") : -ENOMEM;
}

int rmtab_open(const struct rmtab_config *config, struct rmtab **out)
{
	struct rmtab *t = calloc(1, sizeof(*t));
	int err = 0;

	if (!t)
		return -ENOMEM;
	t->max = config->max;
	t->max_host = config->max_host;
	CDS_INIT_LIST_HEAD(&t->entries);
	pthread_mutex_init(&t->lock, NULL);
	if (config->path)
		err = open_file(t, config->path);
	if (err < 0) {
		clear(t);
		return err;
	}
	*out = t;
	return 0;
}

void rmtab_close(struct rmtab *t)
{
	if (t->file) {
		crew_cancel(&t->saver);
		if (t->dirty)
			save(t);
	}
	clear(t);
}
