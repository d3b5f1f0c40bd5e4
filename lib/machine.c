/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * machine - limits of cgroups, of both versions.
 *
 * /proc/self/cgroup has a line "ID:CONTROLLERS:PATH" for each hierarchy, the
 * one of version 2 without controllers.  /proc/self/mountinfo says where it is
 * mounted, and which of its cgroups that mount begins with: a container sees
 * part of the hierarchy only.  In a name space of cgroups that kept the mount
 * of the machine, that root is "/..", or further up, and the names between are
 * hidden: there the cgroup is looked for.  A limit holds for all cgroups below
 * its own, so each one on the way up counts.
 */
#include "lib/machine.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/mounts.h"
#include "lib/util.h"

#define PATH_SIZE	4096
#define LINE_SIZE	(3 * PATH_SIZE)
#define MAX_PROCESSORS	65536
#define MAX_LOOKS	4096

/* ---- one cgroup */

/* Reads up to two numbers; returns their count.  "max" and -1, which mean no
 * limit, are MACHINE_NO_LIMIT. */
static int read_numbers(const char *dir, const char *name, uint64_t n[2])
{
	char path[PATH_SIZE + 64], word[2][32];
	FILE *f;
	int got;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	got = fscanf(f, "%31s %31s", word[0], word[1]);
	fclose(f);
	for (int i = 0; i < got; i++)
		n[i] = word[i][0] >= '0' && word[i][0] <= '9' ?
		       strtoull(word[i], NULL, 10) : MACHINE_NO_LIMIT;
	return got;
}

static void limit_to(uint64_t *value, const char *dir, const char *name)
{
	uint64_t n[2];

	if (read_numbers(dir, name, n) > 0)
		*value = MIN(*value, n[0]);
}

/* Part of a processor counts as one. */
static void limit_processors(struct machine *m, const char *dir)
{
	uint64_t quota[2], period[2], whole;

	if (read_numbers(dir, "cpu.max", quota) == 2)
		period[0] = quota[1];
	else if (read_numbers(dir, "cpu.cfs_quota_us", quota) < 1 ||
		 read_numbers(dir, "cpu.cfs_period_us", period) < 1)
		return;
	if (quota[0] == MACHINE_NO_LIMIT || quota[0] == 0 || period[0] == 0)
		return;
	whole = (quota[0] - 1) / period[0] + 1;
	m->processors = MIN(m->processors, whole);
}

static void limit_by(struct machine *m, const char *dir)
{
	limit_to(&m->memory, dir, "memory.max");
	limit_to(&m->memory, dir, "memory.high");
	limit_to(&m->memory, dir, "memory.limit_in_bytes");
	limit_to(&m->tasks, dir, "pids.max");
	limit_processors(m, dir);
}

/* ---- finding them */

/* A line of /proc/self/cgroup. */
struct hierarchy {
	const char *controllers;	/* "": version 2 */
	const char *path;
};

static bool has_word(const char *list, const char *word, size_t len)
{
	for (const char *p = list; (p = strstr(p, word)); p++)
		if ((p == list || p[-1] == ',') &&
		    (p[len] == ',' || p[len] == '\0' || p[len] == '\n'))
			return true;
	return false;
}

/* True if a line of mountinfo is a mount of the hierarchy with @controllers;
 * sets its place and the cgroup that is its root. */
static bool parse_mount(char *line, const char *controllers, char *place,
			char *root)
{
	char first[64], type[32], super[PATH_SIZE], *end;

	if (sscanf(line, "%*s %*s %*s %4095s %4095s", root, place) != 2)
		return false;
	mounts_decode(root);
	mounts_decode(place);
	end = strstr(line, " - ");
	if (!end || sscanf(end, " - %31s %*s %4095s", type, super) != 2)
		return false;
	if (!*controllers)
		return strcmp(type, "cgroup2") == 0;
	snprintf(first, sizeof(first), "%.*s",
		 (int)strcspn(controllers, ","), controllers);
	return strcmp(type, "cgroup") == 0 &&
	       has_word(super, first, strlen(first));
}

/* True if @path begins with "..", as a component. */
static bool goes_up(const char *path)
{
	return strncmp(path, "/..", 3) == 0 &&
	       (path[3] == '/' || path[3] == '\0');
}

/* The part of the cgroup's @path below its mount's root, @top.  NULL: it does
 * not lie there, or a name space hides where. */
static const char *path_below(const char *path, const char *top)
{
	size_t len = strcmp(top, "/") == 0 ? 0 : strlen(top);

	if (strncmp(path, top, len) != 0 || goes_up(path + len) ||
	    (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path + len;
}

/* How far the mount's root @top lies above the root of our name space of
 * cgroups: 2 for "/../..".  0: it does not. */
static unsigned levels_up(const char *top)
{
	unsigned n = 0;

	for (; goes_up(top); top += 3)
		n++;
	return *top ? 0 : n;
}

/* Of the hierarchy's mounts the first that has @path, or else one above our
 * name space, or else any. */
static bool find_hierarchy(const char *root, const struct hierarchy *h,
			   char *place, char *top)
{
	char path[PATH_SIZE], line[LINE_SIZE], at[PATH_SIZE], from[PATH_SIZE];
	int best = 0, is;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
	f = fopen(path, "re");
	while (f && best < 3 && fgets(line, sizeof(line), f)) {
		if (!parse_mount(line, h->controllers, at, from))
			continue;
		is = path_below(h->path, from) ? 3 : levels_up(from) ? 2 : 1;
		if (is <= best)
			continue;
		best = is;
		strcpy(place, at);
		strcpy(top, from);
	}
	if (f)
		fclose(f);
	return best;
}

/* ---- ours, where a name space hides how its root is called */

/* True if we are in the cgroup @dir. */
static bool is_ours(const char *dir)
{
	char path[PATH_SIZE + 64];
	bool found = false;
	int pid;
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "re");
	while (f && !found && fscanf(f, "%d", &pid) == 1)
		found = pid == getpid();
	if (f)
		fclose(f);
	return found;
}

static bool append_name(char *dir, size_t len, const char *name)
{
	return (size_t)snprintf(dir + len, PATH_SIZE - len, "%s", name) <
	       PATH_SIZE - len;
}

/* Looks for our cgroup, which has the name @rest in one @levels below @dir, and
 * puts its path there.  Looks at @most of them. */
static bool find_ours(char *dir, unsigned levels, const char *rest,
		      unsigned *most)
{
	size_t len = strlen(dir);
	bool found = false;
	struct dirent *e;
	DIR *d;

	if (levels == 0)
		return append_name(dir, len, rest) && is_ours(dir);
	d = opendir(dir);
	while (d && !found && *most > 0 && (e = readdir(d))) {
		if (e->d_name[0] == '.' || e->d_type != DT_DIR)
			continue;
		--*most;
		found = append_name(dir, len, "/") &&
			append_name(dir, len + 1, e->d_name) &&
			find_ours(dir, levels - 1, rest, most);
	}
	if (d)
		closedir(d);
	if (!found)
		dir[len] = '\0';
	return found;
}

/* ---- */

/* The path of our cgroup, or of the mount's root if it can't be found. */
static bool find_cgroup(const struct hierarchy *h, const char *top, char *dir)
{
	const char *path = strcmp(h->path, "/") == 0 ? "" : h->path;
	const char *rest = path_below(h->path, top);
	unsigned levels = levels_up(top), most = MAX_LOOKS;

	if (rest)
		return append_name(dir, strlen(dir), rest);
	if (levels && !goes_up(path))
		find_ours(dir, levels, path, &most);
	return true;
}

static void limit_by_all(struct machine *m, const char *root,
			 const struct hierarchy *h)
{
	char place[PATH_SIZE], top[PATH_SIZE], dir[PATH_SIZE];
	size_t first = strlen(root);
	char *end;

	if (!find_hierarchy(root, h, place, top))
		return;
	if (!append_name(dir, 0, root) || !append_name(dir, first, place) ||
	    !find_cgroup(h, top, dir))
		return;
	first += strlen(place);
	do {
		limit_by(m, dir);
		end = strrchr(dir + first, '/');
		if (end)
			*end = '\0';
	} while (end);
}

void machine_limit(const char *root, struct machine *m)
{
	char path[PATH_SIZE], line[LINE_SIZE], *controllers, *cgroup;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		controllers = strchr(line, ':');
		cgroup = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!cgroup)
			continue;
		*cgroup++ = '\0';
		limit_by_all(m, root, &(struct hierarchy){ controllers + 1,
							   cgroup });
	}
	if (f)
		fclose(f);
}

/* ---- this machine */

static struct machine share;

/* The processors that the process is bound to; or all of them. */
static uint64_t count_processors(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t *set = CPU_ALLOC(MAX_PROCESSORS);
	size_t size = CPU_ALLOC_SIZE(MAX_PROCESSORS);
	int n = 0;

	if (set && sched_getaffinity(0, size, set) == 0)
		n = CPU_COUNT_S(size, set);
	if (set)
		CPU_FREE(set);
	return (uint64_t)MAX(n > 0 ? (long)n : online, 1L);
}

static void learn_share(void)
{
	share = (struct machine){
		.memory = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			  (uint64_t)sysconf(_SC_PAGESIZE),
		.processors = count_processors(),
		.tasks = MACHINE_NO_LIMIT,
	};
	machine_limit("", &share);
}

const struct machine *machine_share(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, learn_share);
	return &share;
}
