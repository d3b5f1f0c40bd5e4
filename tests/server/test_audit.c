/* SPDX-License-Identifier: BSD-2-Clause */
/* The audit stream: its records, their selection, and streams that can't be
 * written. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <nfsc/libnfs.h>

#include "tests/server/ctl_run.h"
#include "tests/server/daemon_run.h"
#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"

#define ARGS(...)	((const char *const[]){ __VA_ARGS__, NULL })
#define LINES		8192u
#define BYTES		(16u << 20)

static struct daemon_run d;
static char dir[96], file[96], export[160], conf[96];

static void setup(void)
{
	daemon_prepare(&d);
	snprintf(dir, sizeof(dir), "%s/tree", d.dir);
	snprintf(file, sizeof(file), "%s/audit", d.dir);
	snprintf(conf, sizeof(conf), "%s/conf", d.dir);
	snprintf(export, sizeof(export), "%s *(rw,insecure,no_root_squash)",
		 dir);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
}

static void teardown(void)
{
	if (d.pid && daemon_alive(&d)) {
		daemon_end(&d, SIGTERM);
		ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	}
	daemon_clean(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* ---- the stream */

static json_t *line[LINES];
static unsigned nlines;

static void forgets(void)
{
	while (nlines)
		json_decref(line[--nlines]);
}

/* Reads the lines of @path that are whole. */
static void reads(const char *path)
{
	static char text[BYTES];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	json_error_t error;
	char *p = text, *end;

	if (f)
		fclose(f);
	text[n] = '\0';
	forgets();
	for (; (end = strchr(p, '\n')); p = end + 1) {
		*end = '\0';
		line[nlines] = json_loads(p, 0, &error);
		ck_assert_msg(line[nlines] != NULL, "%s: %s", error.text, p);
		nlines++;
	}
}

/* Waits until @path has @n lines. */
static void waits(const char *path, unsigned n)
{
	if (!AWAIT_EACH(20000, (reads(path), nlines >= n)))
		ck_abort_msg("%s: %u lines, not %u", path, nlines, n);
}

static const char *text_of(unsigned i, const char *key)
{
	return json_string_value(json_object_get(line[i], key));
}

/* The line without its variable parts is @want. */
static void is(unsigned i, const char *fmt, ...)
{
	static const char *const each[] = { "time", "port", "xid", "us" };
	char want[1024], *got;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	ck_assert_uint_lt(i, nlines);
	for (unsigned k = 0; k < 4; k++)
		ck_assert_msg(json_object_del(line[i], each[k]) == 0,
			      "no %s", each[k]);
	got = json_dumps(line[i], JSON_COMPACT);
	ck_assert_str_eq(got, want);
	free(got);
}

/* ---- calls */

/* False: that was refused. */
static bool tries(bool iwarp, const char *name)
{
	char url[300];

	if (iwarp)
		snprintf(url, sizeof(url), "./gannet-nfs mkdir "
			 "'rdma+iwarp://127.0.0.1:%u%s?mountport=%u'",
			 d.rdma_port, name, d.tcp_port);
	else
		snprintf(url, sizeof(url), "./gannet-nfs mkdir "
			 "'tcp://127.0.0.1:%u%s'", d.tcp_port, name);
	return system(url) == 0;
}

static void makes_in_tree(bool iwarp, const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	ck_assert(tries(iwarp, path));
}

/* The members that tell of the caller and the export. */
static const char *caller(const char *via, const char *proc)
{
	static char text[400];

	snprintf(text, sizeof(text), "{\"client\":\"127.0.0.1\","
		 "\"transport\":\"%s\",\"sec\":\"sys\",\"uid\":%u,"
		 "\"gid\":%u,\"as_uid\":%u,\"as_gid\":%u,"
		 "\"proc\":\"%s\",\"export\":\"%s\"", via,
		 geteuid(), getegid(), geteuid(), getegid(), proc, dir);
	return text;
}

static struct nfs_context *mounts(void)
{
	struct nfs_context *nfs = nfs_init_context();
	struct nfs_url *url;
	char text[200];

	snprintf(text, sizeof(text), "nfs://127.0.0.1%s?nfsport=%u"
		 "&mountport=%u&uid=%u&gid=%u", dir, d.tcp_port, d.tcp_port,
		 geteuid(), getegid());
	url = nfs_parse_url_dir(nfs, text);
	ck_assert_msg(url && nfs_mount(nfs, url->server, url->path) == 0,
		      "%s", nfs_get_error(nfs));
	nfs_destroy_url(url);
	return nfs;
}

/* ---- records */

TEST(a_change_is_noted_over_each_transport)
{
	ck_assert(daemon_start(&d, ARGS("--export", export, "--audit", file)));
	makes_in_tree(false, "a");
	makes_in_tree(true, "a/b");
	waits(file, 2);
	ck_assert_uint_eq(nlines, 2);
	is(0, "%s,\"path\":\"%s/a\",\"status\":\"NFS3_OK\"}",
	   caller("tcp", "MKDIR"), dir);
	is(1, "%s,\"path\":\"%s/a/b\",\"status\":\"NFS3_OK\"}",
	   caller("iwarp", "MKDIR"), dir);
}

TEST(names_keep_all_their_bytes)
{
	char hex[300] = "";

	ck_assert(daemon_start(&d, ARGS("--export", export, "--audit", file)));
	makes_in_tree(false, "a%22b%5C%0A%C3%A9");
	makes_in_tree(true, "a%22b%0A%FF");
	waits(file, 2);
	is(0, "%s,\"path\":\"%s/a\\\"b\\\\\\n\xc3\xa9\","
	   "\"status\":\"NFS3_OK\"}", caller("tcp", "MKDIR"), dir);
	for (const char *p = dir; *p; p++)
		sprintf(hex + strlen(hex), "%02x", (unsigned char)*p);
	is(1, "%s,\"path_hex\":\"%s2f6122620aff\",\"status\":\"NFS3_OK\"}",
	   caller("iwarp", "MKDIR"), hex);
}

TEST(renames_and_links_have_both_names)
{
	struct nfs_context *nfs;

	ck_assert(daemon_start(&d, ARGS("--export", export, "--audit", file)));
	nfs = mounts();
	ck_assert_int_eq(nfs_mkdir(nfs, "/from"), 0);
	ck_assert_int_eq(nfs_mkdir(nfs, "/to"), 0);
	ck_assert_int_eq(nfs_mknod(nfs, "/from/p", S_IFIFO | 0600, 0), 0);
	ck_assert_int_eq(nfs_rename(nfs, "/from/p", "/to/q"), 0);
	ck_assert_int_eq(nfs_link(nfs, "/to/q", "/from/l"), 0);
	ck_assert_int_eq(nfs_chmod(nfs, "/to", 0700), 0);
	ck_assert_int_eq(nfs_unlink(nfs, "/to/q"), 0);
	ck_assert_int_lt(nfs_rmdir(nfs, "/from"), 0);
	nfs_destroy_context(nfs);
	waits(file, 8);
	ck_assert_uint_eq(nlines, 8);
	is(2, "%s,\"path\":\"%s/from/p\",\"status\":\"NFS3_OK\"}",
	   caller("tcp", "MKNOD"), dir);
	is(3, "%s,\"path\":\"%s/from/p\",\"to\":\"%s/to/q\","
	   "\"status\":\"NFS3_OK\"}", caller("tcp", "RENAME"), dir, dir);
	is(4, "%s,\"path\":\"%s/to/q\",\"to\":\"%s/from/l\","
	   "\"status\":\"NFS3_OK\"}", caller("tcp", "LINK"), dir, dir);
	is(5, "%s,\"path\":\"%s/to\",\"status\":\"NFS3_OK\"}",
	   caller("tcp", "SETATTR"), dir);
	is(6, "%s,\"path\":\"%s/to/q\",\"status\":\"NFS3_OK\"}",
	   caller("tcp", "REMOVE"), dir);
	is(7, "%s,\"path\":\"%s/from\",\"status\":\"NFS3ERR_NOTEMPTY\"}",
	   caller("tcp", "RMDIR"), dir);
}

TEST(a_squashed_caller_is_told_as_who_it_came_and_as_whom_it_acted)
{
	ck_assert(daemon_start(&d, ARGS("--export", "mem:/m "
		"*(rw,insecure,all_squash,anonuid=7,anongid=8)", "--audit",
		file)));
	ck_assert(!tries(false, "/m/x"));
	waits(file, 1);
	ck_assert_str_eq(text_of(0, "status"), "NFS3ERR_ACCES");
	ck_assert_int_eq(json_integer_value(json_object_get(line[0], "uid")),
			 (long)geteuid());
	ck_assert_int_eq(json_integer_value(json_object_get(line[0],
							    "as_uid")), 7);
	ck_assert_int_eq(json_integer_value(json_object_get(line[0],
							    "as_gid")), 8);
	/* This backend knows no paths. */
	ck_assert_ptr_null(text_of(0, "path"));
	ck_assert_ptr_nonnull(text_of(0, "handle"));
	ck_assert_str_eq(text_of(0, "name"), "x");
}

/* ---- selection */

TEST(exports_and_procedures_are_selected)
{
	snprintf(d.settings, sizeof(d.settings), "[audit]\nexport = %s\n"
		 "procs = rename,MKDIR\n", dir);
	ck_assert(daemon_start(&d, ARGS("--export", export, "--export",
		"mem:/m *(rw,insecure)", "--audit", file)));
	tries(false, "/m/x");
	makes_in_tree(false, "a");
	waits(file, 1);
	ck_assert_uint_eq(nlines, 1);
	is(0, "%s,\"path\":\"%s/a\",\"status\":\"NFS3_OK\"}",
	   caller("tcp", "MKDIR"), dir);
}

/* The lines of procedures that change nothing. */
static unsigned lists_thrice(const char *interval)
{
	struct nfs_context *nfs;
	unsigned n;

	snprintf(d.settings, sizeof(d.settings), "[audit]\nprocs = all\n"
		 "interval = %s\n", interval);
	ck_assert(daemon_start(&d, ARGS("--export", export, "--audit", file)));
	nfs = mounts();
	for (int i = 0; i < 3; i++)
		ck_assert_int_lt(nfs_rmdir(nfs, "/not/there"), 0);
	nfs_destroy_context(nfs);
	daemon_end(&d, SIGTERM);
	reads(file);
	n = 0;
	for (unsigned i = 0; i < nlines; i++)
		n += !strcmp(text_of(i, "proc"), "LOOKUP");
	unlink(file);
	return n;
}

TEST(calls_that_change_nothing_are_noted_once_an_interval)
{
	ck_assert_uint_eq(lists_thrice("3600"), 1);
	ck_assert_uint_eq(lists_thrice("0"), 3);
}

TEST(procedures_that_do_not_exist_are_refused)
{
	strcpy(d.settings, "[audit]\nprocs = write,walk\n");
	ck_assert(!daemon_start(&d, ARGS("--export", export, "--audit",
					 file)));
	ck_assert(daemon_logged(&d, "expected changes, all, or names"));
	d.pid = 0;
}

/* ---- streams that can't be written */

static void writes_conf(const char *to)
{
	FILE *f = fopen(conf, "w");

	fprintf(f, "[audit]\nto = %s\n", to);
	fclose(f);
}

static void reloads(void)
{
	kill(d.pid, SIGHUP);
	ck_assert(daemon_logged(&d, "configuration and exports read again"));
}

TEST(a_file_that_was_moved_away_is_made_again)
{
	char old[120];
	struct stat st;

	writes_conf(file);
	ck_assert(daemon_start(&d, ARGS("--export", export, "--config",
					conf)));
	makes_in_tree(false, "a");
	waits(file, 1);
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	snprintf(old, sizeof(old), "%s.1", file);
	ck_assert_int_eq(rename(file, old), 0);
	reloads();
	makes_in_tree(false, "b");
	waits(file, 1);
	is(0, "%s,\"path\":\"%s/b\",\"status\":\"NFS3_OK\"}",
	   caller("tcp", "MKDIR"), dir);
	reads(old);
	ck_assert_uint_eq(nlines, 1);
}

/* The hook of logrotate: not a reload, which would drop rules that were added
 * without --keep and read files that are being edited. */
TEST(a_file_is_opened_again_and_nothing_else_changes)
{
	char old[120], added[160];
	FILE *f;

	writes_conf(file);
	ck_assert(daemon_start(&d, ARGS("--export", export, "--config",
					conf)));
	snprintf(added, sizeof(added), "exports add '%s 192.0.2.77(rw)'", dir);
	ctl_says(&d, added, 0, "new: ");
	f = fopen(conf, "w");
	fprintf(f, "[audit]\nto = %s.other\nprocs = all\n", file);
	fclose(f);
	snprintf(old, sizeof(old), "%s.1", file);
	ck_assert_int_eq(rename(file, old), 0);
	ctl_says(&d, "reopen", 0, "");
	makes_in_tree(false, "a");
	waits(file, 1);
	ck_assert_uint_eq(nlines, 1);
	is(0, "%s,\"path\":\"%s/a\",\"status\":\"NFS3_OK\"}",
	   caller("tcp", "MKDIR"), dir);
	reads(old);
	ck_assert_uint_eq(nlines, 0);
	ctl_says(&d, "exports", 0, "192.0.2.77(rw");
}

TEST(a_file_that_cannot_be_opened_again_stays_in_use)
{
	char old[120];

	writes_conf(file);
	ck_assert(daemon_start(&d, ARGS("--export", export, "--config",
					conf)));
	snprintf(old, sizeof(old), "%s.1", file);
	ck_assert_int_eq(rename(file, old), 0);
	ck_assert_int_eq(mkdir(file, 0700), 0);
	ctl_says(&d, "reopen", 1, "Is a directory (nothing has changed)");
	makes_in_tree(false, "a");
	waits(old, 1);
}

TEST(without_a_file_there_is_nothing_to_open_again)
{
	ck_assert(daemon_start(&d, ARGS("--export", export)));
	ctl_says(&d, "reopen", 0, "");
	ck_assert(!daemon_has_logged(&d, "opened again"));
}

/* So logrotate finds no file that is still written to when it packs it. */
TEST(a_file_that_was_moved_away_is_made_again_after_a_mistake_too)
{
	char old[120];
	FILE *f;

	writes_conf(file);
	ck_assert(daemon_start(&d, ARGS("--export", export, "--config",
					conf)));
	snprintf(old, sizeof(old), "%s.1", file);
	ck_assert_int_eq(rename(file, old), 0);
	f = fopen(conf, "w");
	fprintf(f, "[audit]\nto = %s\n[server]\nthreads = many\n", file);
	fclose(f);
	kill(d.pid, SIGHUP);
	ck_assert(daemon_logged(&d, "configuration and exports unchanged"));
	makes_in_tree(false, "a");
	waits(file, 1);
	reads(old);
	ck_assert_uint_eq(nlines, 0);
}

TEST(a_reload_to_a_file_that_cannot_be_made_changes_nothing)
{
	FILE *f;

	writes_conf(file);
	ck_assert(daemon_start(&d, ARGS("--export", export, "--config",
					conf)));
	f = fopen(conf, "w");
	fprintf(f, "[audit]\nto = /nowhere/audit\n[log]\nlevel = debug\n");
	fclose(f);
	ctl_says(&d, "reload", 1, "audit: /nowhere/audit: No such file or "
		 "directory (nothing has changed)");
	writes_conf(file);
	ctl_says(&d, "reload", 0, "nothing has changed");
	makes_in_tree(false, "a");
	waits(file, 1);
}

TEST(a_full_disk_stops_nothing_and_loses_nothing)
{
	writes_conf("/dev/full");
	ck_assert(daemon_start(&d, ARGS("--export", export, "--config",
					conf)));
	makes_in_tree(false, "a");
	ck_assert(daemon_logged(&d, "audit: /dev/full: No space left"));
	makes_in_tree(false, "b");
	writes_conf(file);
	reloads();
	waits(file, 2);
	is(0, "%s,\"path\":\"%s/a\",\"status\":\"NFS3_OK\"}",
	   caller("tcp", "MKDIR"), dir);
	is(1, "%s,\"path\":\"%s/b\",\"status\":\"NFS3_OK\"}",
	   caller("tcp", "MKDIR"), dir);
}

TEST(a_file_that_cannot_be_made_ends_the_start)
{
	ck_assert(!daemon_start(&d, ARGS("--export", export, "--audit",
					 "/nowhere/audit")));
	ck_assert(daemon_logged(&d, "audit: /nowhere/audit: No such file"));
	d.pid = 0;
}

/* REMOVEs of a name of 4000 bytes, with an invalid handle. */
static void removes(int fd, unsigned n)
{
	struct rpc_header h = { .prog = 100003, .vers = 3, .proc = 12 };
	static uint8_t call[5000];
	char name[4000];
	struct xdr_out x;

	memset(name, 'x', sizeof(name));
	while (h.xid++ < n) {
		record_call(&x, call, sizeof(call), &h);
		xdr_put_string(&x, "none");
		xdr_put_opaque(&x, name, sizeof(name));
		ck_assert(record_post(fd, &x));
		ck_assert_uint_eq(record_receive(fd, call, sizeof(call)), 36);
	}
}

/* Counts noted and dropped records. */
static void counts(FILE *f, unsigned *noted, unsigned *dropped)
{
	static char text[65536];
	json_t *o;

	if (!fgets(text, sizeof(text), f))
		return;
	o = json_loads(text, 0, NULL);
	ck_assert_msg(o != NULL, "%s", text);
	if (json_object_get(o, "dropped"))
		*dropped += (unsigned)json_integer_value(
			json_object_get(o, "dropped"));
	else
		++*noted;
	json_decref(o);
}

#define REMOVES	"[audit]\nprocs = remove\n"

TEST(a_reader_that_reads_nothing_does_not_delay_the_end)
{
	int fd, pipe;

	ck_assert_int_eq(mkfifo(file, 0600), 0);
	pipe = open(file, O_RDONLY | O_NONBLOCK);
	strcpy(d.settings, REMOVES);
	ck_assert(daemon_start(&d, ARGS("--export", export, "--audit", file)));
	fd = daemon_connect(d.tcp_port);
	removes(fd, 50);
	close(fd);
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	ck_assert(!daemon_has_logged(&d, "a write hangs"));
	close(pipe);
	d.pid = 0;
}

TEST(records_that_a_slow_reader_does_not_take_are_dropped_and_counted)
{
	unsigned noted = 0, dropped = 0, n = 3000;
	int fd, pipe;
	FILE *f;

	ck_assert_int_eq(mkfifo(file, 0600), 0);
	pipe = open(file, O_RDONLY | O_NONBLOCK);
	strcpy(d.settings, REMOVES);
	ck_assert(daemon_start(&d, ARGS("--export", export, "--audit", file)));
	fd = daemon_connect(d.tcp_port);
	removes(fd, n);
	close(fd);
	fcntl(pipe, F_SETFL, 0);
	f = fdopen(pipe, "r");
	while (noted + dropped < n)
		counts(f, &noted, &dropped);
	ck_assert_uint_eq(noted + dropped, n);
	ck_assert_uint_gt(dropped, 0);
	ck_assert_uint_gt(noted, 500);
	fclose(f);
}
