/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * matrix MOUNT-AT BACK SOURCE LOG ROWS CLIENTS < CELLS: mounts the export in
 * each way that a line of CELLS says, works in it, and looks at the data on the
 * server, whose directory is BACK and whose log is LOG.  The command CLIENTS
 * prints the server's clients as JSON.  CELLS are lines of
 *
 *	TRANSPORT ADDRESS OPTIONS SIZE INLINE SLOTS SERVER-INLINE
 *
 * A result is a line on standard output, and a row of the table in ROWS.
 */
#include "tests/lab/matrix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lab/fscheck/fscheck.h"

static const char *mount_at, *path, *source, *log_path, *clients;

struct line {
	char	 transport[32], address[64], options[256];
	unsigned size, inline_size, slots, server_inline;
};

/* Of the client's RPC-over-RDMA: /proc/self/mountstats. */
struct counters {
	unsigned long connects, bad_xids;
	unsigned long reads, writes, replies;	/* chunk lists of calls */
	unsigned long long sent, received, pulled;
	unsigned long fixed, hardway;
	unsigned long unsent;	/* for lack of memory regions: sent later */
	unsigned long bad_replies, long_calls;
	char agreed[32];	/* inline sizes, as the server says */
};

static bool set_sysctl(const char *name, unsigned value)
{
	char file[128];
	FILE *f;

	snprintf(file, sizeof(file), "/proc/sys/sunrpc/rdma_%s", name);
	f = fopen(file, "w");
	MUST(f);
	fprintf(f, "%u\n", value);
	return fclose(f) == 0;
}

static bool mount_line(const struct line *l)
{
	char what[512], options[1024];

	snprintf(what, sizeof(what), "%s:%s", l->address, source);
	snprintf(options, sizeof(options),
		 "vers=3,nolock,%s,addr=%s,rsize=%u,wsize=%u",
		 l->options, l->address, l->size, l->size);
	MUST(mount(what, mount_at, "nfs", 0, options) == 0);
	return true;
}

/* The sizes that the client has made of the ones that it was told. */
static bool find_sizes(struct cell *c)
{
	char text[2048], at[512];
	FILE *f = fopen("/proc/self/mounts", "r");
	bool found = false;

	MUST(f);
	snprintf(at, sizeof(at), " %s nfs ", mount_at);
	while (!found && fgets(text, sizeof(text), f))
		found = strstr(text, at) &&
			sscanf(strstr(text, "rsize="), "rsize=%u,wsize=%u",
			       &c->rsize, &c->wsize) == 2;
	fclose(f);
	MUST(found);
	return true;
}

/* Adds the mount's counts. */
static bool add_counters(struct counters *sum)
{
	char text[4096], at[512];
	FILE *f = fopen("/proc/self/mountstats", "r");
	bool here = false, found = false;
	struct counters n = { 0 };

	MUST(f);
	snprintf(at, sizeof(at), " mounted on %s ", mount_at);
	while (!found && fgets(text, sizeof(text), f)) {
		if (strncmp(text, "device ", 7) == 0)
			here = strstr(text, at);
		found = here && sscanf(text, " xprt: rdma %*u %*u %lu %*u %*u "
			"%*u %*u %lu %*u %*u %lu %lu %lu %llu %llu %llu %lu "
			"%lu %lu %lu %lu", &n.connects, &n.bad_xids, &n.reads,
			&n.writes, &n.replies, &n.sent, &n.received, &n.pulled,
			&n.fixed, &n.hardway, &n.unsent,
			&n.bad_replies, &n.long_calls) == 13;
	}
	fclose(f);
	MUST(found);
	if (n.connects != 1)
		printf("# it connected %lu times\n", n.connects);
	MUST(n.connects == 1);
	sum->reads += n.reads;
	sum->writes += n.writes;
	sum->replies += n.replies;
	sum->long_calls += n.long_calls;
	sum->bad_xids += n.bad_xids;
	sum->bad_replies += n.bad_replies;
	return true;
}

static bool is_rdma(const struct line *l) { return l->inline_size > 0; }

static bool counters_are_good(const struct counters *n)
{
	MUST(n->bad_xids == 0);
	MUST(n->bad_replies == 0);
	return true;
}

static int open_at(const char *dir, const char *name)
{
	char file[1024];

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	return open(file, O_RDONLY | O_DIRECTORY);
}

/* Finds the inline sizes of the server's RDMA connections.  False: no
 * connections, or different sizes. */
static bool ask_sizes(unsigned *to, unsigned *from)
{
	char text[1024];
	bool same = true;
	FILE *f = popen(clients, "r");

	MUST(f);
	*to = *from = 0;
	while (fgets(text, sizeof(text), f)) {
		unsigned n, *of = NULL;

		if (sscanf(text, " \"inline_to_client\": %u", &n) == 1)
			of = to;
		else if (sscanf(text, " \"inline_from_client\": %u", &n) == 1)
			of = from;
		if (!of)
			continue;
		same = same && (*of == 0 || *of == n);
		*of = n;
	}
	return pclose(f) == 0 && same && *to && *from;
}

/* Finds the inline sizes of the connection: the smaller ones of the two sides
 * (RFC 8797), as "client's/server's Sends".  The connection of the previous
 * mount can take time to close. */
static bool agrees(const struct line *l, char out[32])
{
	unsigned to, from, want = l->inline_size;

	for (int i = 0; i < 50 && !ask_sizes(&to, &from); i++)
		usleep(100000);
	snprintf(out, 32, "%u/%u", from, to);
	if (want > l->server_inline)
		want = l->server_inline;
	MUST(to == want && from == want);
	return true;
}

/* Mounts, does the steps of this half, unmounts.  The name of the step that
 * failed, or NULL. */
static const char *half(const struct line *l, struct cell *c,
			struct counters *n, bool second)
{
	const struct cell_step *s;
	const char *failed = NULL;

	if (!mount_line(l))
		return second ? "mounts again" : "mounts";
	if (!find_sizes(c))
		failed = "has sizes";
	c->mnt = open_at(mount_at, "cell");
	for (s = cell_steps; s->name && !failed; s++)
		if (s->after_remount == second && !s->run(c))
			failed = s->name;
	close(c->mnt);
	if (!failed && is_rdma(l) && !add_counters(n))
		failed = "counts";
	if (!failed && is_rdma(l) && !agrees(l, n->agreed))
		failed = "agrees on the inline size";
	if (umount2(mount_at, 0) < 0 && !failed) {
		failed = "unmounts";
		umount2(mount_at, MNT_DETACH | MNT_FORCE);
	}
	return failed;
}

static void put_row(FILE *rows, const struct line *l, const struct cell *c,
		    const struct counters *n, const char *failed)
{
	char asked[32] = "-", chunks[96] = "-";

	if (is_rdma(l)) {
		snprintf(asked, sizeof(asked), "%u:%u", l->inline_size,
			 l->server_inline);
		snprintf(chunks, sizeof(chunks), "%lu/%lu/%lu/%lu", n->reads,
			 n->writes, n->replies, n->long_calls);
	}
	fprintf(rows, "%s\t%u\t%u/%u\t%s\t%s\t%s\t%s\n", l->transport,
		l->size, c->rsize, c->wsize, asked, n->agreed, chunks,
		failed ? failed : "ok");
	fflush(rows);
}

/* The cell's directory, empty. */
static bool renew(struct cell *c)
{
	char name[1024];
	struct dirent *e;
	DIR *dir;

	snprintf(name, sizeof(name), "%s/cell", path);
	MUST(mkdir(name, 0755) == 0 || errno == EEXIST);
	c->back = open(name, O_RDONLY | O_DIRECTORY);
	dir = opendir(name);
	MUST(c->back >= 0 && dir);
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			MUST(unlinkat(c->back, e->d_name, 0) == 0);
	return closedir(dir) == 0;
}

static long log_length(void)
{
	struct stat st;

	return stat(log_path, &st) == 0 ? (long)st.st_size : 0;
}

/* Shows the lines that the server has logged since its log had @from bytes. */
static void show_log(long from)
{
	FILE *f = fopen(log_path, "r");
	char text[1024];

	if (f && fseek(f, from, SEEK_SET) == 0)
		while (fgets(text, sizeof(text), f))
			printf("# %s", text);
	if (f)
		fclose(f);
}

static void run_line(FILE *rows, const struct line *l)
{
	long logged = log_length();
	struct counters n = { .agreed = "-" };
	struct cell c = { 0 };
	const char *failed = NULL;

	if (!renew(&c) ||
	    (is_rdma(l) && !(set_sysctl("max_inline_read", l->inline_size) &&
			     set_sysctl("max_inline_write", l->inline_size) &&
			     set_sysctl("slot_table_entries", l->slots))))
		failed = "starts";
	if (!failed)
		failed = half(l, &c, &n, false);
	if (!failed)
		failed = half(l, &c, &n, true);
	if (!failed && is_rdma(l) && !counters_are_good(&n))
		failed = "counts no error";
	close(c.back);
	printf("%s - %s: %u bytes, inline %u, the server's %u%s%s\n",
	       failed ? "not ok" : "ok", l->transport, l->size, l->inline_size,
	       l->server_inline, failed ? ": it " : "", failed ? failed : "");
	if (failed)
		show_log(logged);
	fflush(stdout);
	put_row(rows, l, &c, &n, failed);
}

int main(int argc, char **argv)
{
	struct line l;
	FILE *rows;

	if (argc != 7) {
		fprintf(stderr,
			"matrix MOUNT-AT BACK SOURCE LOG ROWS CLIENTS\n");
		return 2;
	}
	mount_at = argv[1];
	path = argv[2];
	source = argv[3];
	log_path = argv[4];
	rows = fopen(argv[5], "a");
	clients = argv[6];
	if (!rows || !cell_make_list(open_at(path, "."), "list")) {
		perror("matrix");
		return 2;
	}
	while (scanf("%31s %63s %255s %u %u %u %u", l.transport, l.address,
		     l.options, &l.size, &l.inline_size, &l.slots,
		     &l.server_inline) == 7)
		run_line(rows, &l);
	return 0;
}
