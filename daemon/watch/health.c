/* SPDX-License-Identifier: BSD-2-Clause */
/* health - whether the server is ready. */
#include "daemon/watch/health.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/clock.h"
#include "lib/crew.h"
#include "lib/mounts.h"
#include "lib/util.h"

#define SLOW_NS		(2 * (uint64_t)NS_PER_S)

/* An exported directory, which a job looks at. */
struct watched {
	struct crew_job	     job;
	struct cds_list_head link;
	bool		     seen;	/* it is exported still */
	pthread_mutex_t	     lock;
	uint64_t	     since;	/* with it: the job is asked; 0: not */
	int		     err;	/* with it: of the last look */
	bool		     gone;	/* with it: the job frees it */
	char		     path[];
};

struct health {
	struct cds_list_head dirs;
	const char	    *away;	/* an export that was not reached, */
	char		     text[512];	/* which is here, with the reason */
};

static void free_watched(struct watched *w)
{
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static uint64_t look_at_dir(struct crew_job *job)
{
	struct watched *w = container_of(job, struct watched, job);
	struct stat st;
	int err = stat(w->path, &st) < 0 ? errno : 0;
	bool gone;

	pthread_mutex_lock(&w->lock);
	w->since = 0;
	w->err = err;
	gone = w->gone;
	pthread_mutex_unlock(&w->lock);
	if (!gone)
		return CREW_IDLE;
	free_watched(w);
	return CREW_GONE;
}

/* A job that hangs keeps it. */
static void retire_watched(struct watched *w)
{
	bool asked;

	cds_list_del(&w->link);
	pthread_mutex_lock(&w->lock);
	w->gone = true;
	asked = w->since;
	pthread_mutex_unlock(&w->lock);
	if (asked)
		return;
	crew_cancel(&w->job);
	free_watched(w);
}

static struct watched *watch_dir(struct health *h, const char *path)
{
	size_t len = strlen(path) + 1;
	struct watched *w;

	cds_list_for_each_entry(w, &h->dirs, link)
		if (strcmp(w->path, path) == 0)
			return w;
	w = calloc(1, sizeof(*w) + len);
	if (!w || crew_job_init(&w->job, look_at_dir, "health") < 0) {
		free(w);
		return NULL;
	}
	w->job.place = mounts_place(path);
	pthread_mutex_init(&w->lock, NULL);
	memcpy(w->path, path, len);
	cds_list_add_tail(&w->link, &h->dirs);
	return w;
}

static void note_export(void *arg, const struct export_rule *rule)
{
	struct health *h = arg;
	struct watched *w;

	if ((rule->is_away || (rule->has_moved && !rule->comes)) && !h->away) {
		snprintf(h->text, sizeof(h->text), "%s: %s", rule->path,
			 !rule->is_away ? "leads to another directory than "
			 "the one that is exported" : rule->why ? rule->why :
			 "was not reached yet");
		h->away = h->text;
	}
	if (rule->is_away || rule->comes || strcmp(rule->kind, "posix") != 0)
		return;
	w = watch_dir(h, rule->path);
	if (w)
		w->seen = true;
}

/* Has it looked at; false: it has not answered yet, or with an error. */
static bool ask_dir(struct watched *w, int *err)
{
	uint64_t now = clock_ns(), since;

	pthread_mutex_lock(&w->lock);
	since = w->since;
	*err = w->err;
	if (!since)
		w->since = now;
	pthread_mutex_unlock(&w->lock);
	if (!since)
		crew_run(&w->job);
	return !*err && (!since || now - since < SLOW_NS);
}

bool health_is_ready(struct health *h, const struct report *r, char *why,
		     size_t size)
{
	struct watched *w, *next;
	bool ready = true;
	int err;

	h->away = NULL;
	export_walk_rules(r->exports, note_export, h);
	cds_list_for_each_entry_safe(w, next, &h->dirs, link) {
		if (!w->seen) {
			retire_watched(w);
			continue;
		}
		w->seen = false;
		if (ask_dir(w, &err))
			continue;
		snprintf(why, size, "%s: %s", w->path, err ? strerror(err) :
			 "does not answer");
		ready = false;
	}
	if (h->away)
		snprintf(why, size, "%s", h->away);
	if (atomic_load(&r->drain.on))
		snprintf(why, size, "the server drains");
	return ready && !h->away && !atomic_load(&r->drain.on);
}

struct health *health_create(void)
{
	struct health *h = calloc(1, sizeof(*h));

	if (h)
		CDS_INIT_LIST_HEAD(&h->dirs);
	return h;
}

void health_destroy(struct health *h)
{
	struct watched *w, *next;

	if (!h)
		return;
	cds_list_for_each_entry_safe(w, next, &h->dirs, link)
		retire_watched(w);
	free(h);
}
