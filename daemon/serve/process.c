/* SPDX-License-Identifier: BSD-2-Clause */
/* process - the resources that this process uses. */
#include "daemon/serve/serve.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"

static uint64_t clock_of(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	/* ".", "..", and that of the directory itself. */
	return n > 3 ? n - 3 : 0;
}

/* From proc_pid_stat(5): the fields behind the name, which can have spaces. */
static void read_stat(struct process_usage *out)
{
	unsigned long long threads, size, pages;
	FILE *f = fopen("/proc/self/stat", "re");
	char line[1024], *behind;

	if (!f)
		return;
	if (fgets(line, sizeof(line), f) && (behind = strrchr(line, ')')) &&
	    sscanf(behind + 1, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%*s %*s %*s %*s %*s %*s %llu %*s %*s %llu %llu", &threads,
		   &size, &pages) == 3) {
		out->threads = threads;
		out->virtual = size;
		out->resident = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	fclose(f);
}

void process_look(struct process_usage *out)
{
	struct rlimit most;

	memset(out, 0, sizeof(*out));
	out->cpu_ns = clock_of(CLOCK_PROCESS_CPUTIME_ID);
	out->fds = count_fds();
	if (getrlimit(RLIMIT_NOFILE, &most) == 0)
		out->max_fds = most.rlim_cur;
	read_stat(out);
}
