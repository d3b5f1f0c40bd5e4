/* SPDX-License-Identifier: BSD-2-Clause */
/* own_list - the paths that the server names as its own.  One thread at a
 * time. */
#include "vfs/backends.h"
#include "vfs/posix/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/errand.h"
#include "lib/fail.h"
#include "lib/log.h"
#include "lib/util.h"

struct own_entry {
	char	*name;			/* as the server has it */
	struct posix_own_path *path;	/* counted */
	/* While it is looked for: */
	struct own_seek *seek;
	int	err;			/* of its start */
};

/* @former is that of before, while a change of it is tried. */
static struct own_list {
	struct own_entry *v;
	size_t	n;
} listed, former;

static void list_fini(struct own_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		posix_own_path_put(l->v[i].path);
		free(l->v[i].name);
	}
	free(l->v);
	*l = (struct own_list){ .v = NULL };
}

/* A look at a path, whose disk can hang. */
struct own_seek {
	struct errand errand;
	struct posix_own_path *found;
	char	name[];
};

static int run_seek(struct errand *e)
{
	struct own_seek *s = container_of(e, struct own_seek, errand);

	return posix_own_path_get(s->name, &s->found);
}

static void drop_seek(struct errand *e)
{
	struct own_seek *s = container_of(e, struct own_seek, errand);

	posix_own_path_put(s->found);
	free(s);
}

/* 0 or -errno, of errand_begin(). */
static int seek_begin(const char *name, struct own_seek **out)
{
	size_t len = strlen(name) + 1;
	struct own_seek *s = calloc(1, sizeof(*s) + len);
	int err;

	if (!s)
		return -ENOMEM;
	memcpy(s->name, name, len);
	s->errand = (struct errand){ .path = s->name, .run = run_seek,
				     .drop = drop_seek };
	err = errand_begin(&s->errand);
	if (err)
		free(s);
	else
		*out = s;
	return err;
}

/* Takes @s. */
static int seek_end(struct own_seek *s, uint64_t until,
		    struct posix_own_path **out)
{
	int err = errand_await(&s->errand, until);

	if (err == -ETIMEDOUT)
		return err;
	*out = s->found;
	free(s);
	return err;
}

static struct posix_own_path *listed_path(const struct own_list *l,
					  const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].name, name) == 0)
			return l->v[i].path;
	return NULL;
}

/* Has the lists before for a path whose file system does not answer.  Adds a
 * line about that to *@late, unless that is NULL. */
static int keep_as_before(struct own_entry *e, char **late)
{
	struct posix_own_path *p = listed_path(&listed, e->name);
	char *text;

	if (!p)
		p = listed_path(&former, e->name);
	if (!p) {
		log_err("%s: its file system does not answer", e->name);
		return -ETIMEDOUT;
	}
	posix_own_path_hold(p);
	e->path = p;
	fail_with(&text, "%s: its file system does not answer; the server "
		  "takes it to be what it was", e->name);
	log_warn("%s", text ? : e->name);
	if (late)
		fail_too(late, text);
	else
		free(text);
	return 0;
}

/* Looks at all at once: any number of hanging disks cost one time-out. */
static int find_all(const struct own_list *l, char **late)
{
	uint64_t until = listed.v ? errand_deadline() : UINT64_MAX;
	struct own_entry *e;
	int err, first = 0;

	for (e = l->v; e < l->v + l->n; e++)
		e->err = seek_begin(e->name, &e->seek);
	for (e = l->v; e < l->v + l->n; e++) {
		err = e->err ? : seek_end(e->seek, until, &e->path);
		if (err == -ETIMEDOUT)
			err = keep_as_before(e, late);
		first = first ? : err;
	}
	return first;
}

static int list_init(struct own_list *l, const char *const *paths, size_t n)
{
	l->v = calloc(n + 1, sizeof(*l->v));
	if (!l->v)
		return -ENOMEM;
	for (; l->n < n; l->n++) {
		l->v[l->n].name = strdup(paths[l->n]);
		if (!l->v[l->n].name)
			return -ENOMEM;
	}
	return 0;
}

static int find_list(const char *const *paths, size_t n, struct own_list *out,
		     char **late)
{
	struct own_list new = { 0 };
	int err = list_init(&new, paths, n);

	if (err == 0)
		err = find_all(&new, late);
	if (err)
		list_fini(&new);
	else
		*out = new;
	return err;
}

int posix_keep_out(const char *const *paths, size_t n)
{
	struct own_list new;
	int err = find_list(paths, n, &new, NULL);

	if (err)
		return err;
	list_fini(&former);
	list_fini(&listed);
	listed = new;
	return 0;
}

int posix_keep_out_too(const char *const *paths, size_t n, char **late)
{
	struct own_list new;
	int err = find_list(paths, n, &new, late);

	if (err)
		return err;
	if (former.v)		/* nothing has come of @listed */
		list_fini(&listed);
	else
		former = listed;
	listed = new;
	return 0;
}
