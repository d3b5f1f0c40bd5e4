/* SPDX-License-Identifier: BSD-2-Clause */
/* ./gannet-nfs on trees of directories: of ./gannetd, and of a liar. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/liar.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

TEST_CASE(.timeout = 120);

static bool there(const char *name)
{
	struct stat st;

	return lstat(path(export, name), &st) == 0;
}

static void make_dir(const char *name)
{
	ck_assert_int_eq(mkdir(path(export, name), 0777), 0);
}

/* a/, a/b/, a/b/file, a/link, file */
static void make_tree(void)
{
	make_dir("a");
	make_dir("a/b");
	make_file(path(export, "a/b/file"), 100);
	make_file(path(export, "file"), 10);
	ck_assert_int_eq(symlink("b", path(export, "a/link")), 0);
}

static void has(const char *text, const char *want)
{
	ck_assert_msg(strstr(text, want), "no '%s' in %s", want, text);
}

TEST_LOOP(directories_are_made_and_removed, 0, WAYS)
{
	start(_i);
	ck_assert_msg(TOOL("mkdir", url("a"), url("b")) == 0, "%s", err);
	ck_assert(there("a") && there("b"));
	ck_assert_int_eq(TOOL("mkdir", url("a")), 1);
	has(err, "it is there already (NFS3ERR_EXIST)");
	ck_assert_int_eq(TOOL("mkdir", url("x/y")), 1);
	has(err, "NFS3ERR_NOENT");
	ck_assert_msg(TOOL("mkdir", "-p", url("x/y/z")) == 0, "%s", err);
	ck_assert_int_eq(TOOL("mkdir", "--parents", url("x/y/z")), 0);
	ck_assert(there("x/y/z"));
	ck_assert_int_eq(TOOL("mkdir", "-p", url("")), 0);
	ck_assert_int_eq(TOOL("rm", url("a")), 1);
	has(err, "a directory, which goes with -r only");
	ck_assert_int_eq(TOOL("rm", "-r", url("a"), url("x")), 0);
	ck_assert(!there("a") && !there("x") && there("b"));
	stop();
}

TEST_LOOP(only_what_is_named_is_removed, 0, WAYS)
{
	start(_i);
	make_tree();
	make_dir("outside");
	make_file(path(export, "outside/kept"), 1);
	ck_assert_int_eq(symlink("../outside", path(export, "a/away")), 0);
	ck_assert_int_eq(symlink("outside", path(export, "short")), 0);
	make_file(path(export, "a/.hidden"), 1);
	ck_assert_int_eq(TOOL("rm", url("file")), 0);
	ck_assert(!there("file"));
	ck_assert_int_eq(TOOL("rm", url("file")), 1);
	has(err, "no such file or directory (NFS3ERR_NOENT)");
	ck_assert_int_eq(TOOL("rm", "-f", url("file")), 0);
	ck_assert_int_eq(TOOL("rm", "-r", url("short")), 0);
	ck_assert(!there("short") && there("outside/kept"));
	ck_assert_msg(TOOL("rm", "-rf", url("a")) == 0, "%s", err);
	ck_assert(!there("a") && there("outside/kept"));
	ck_assert_int_eq(TOOL("rm", "-r", url("outside/..")), 2);
	ck_assert_int_eq(TOOL("rm", "-r", url("")), 1);
	ck_assert(there("outside/kept"));
	stop();
}

TEST_LOOP(a_tree_is_drawn, 0, WAYS)
{
	char want[1024];

	start(_i);
	make_tree();
	make_file(path(export, "a/\033x"), 1);
	make_file(path(export, ".hidden"), 1);
	ck_assert_msg(TOOL("tree", url("")) == 0, "%s", err);
	snprintf(want, sizeof(want), "%s\n"
		 "|-- a/\n"
		 "|   |-- \\033x\n"
		 "|   |-- b/\n"
		 "|   |   `-- file\n"
		 "|   `-- link\n"
		 "`-- file\n"
		 "\n2 directories, 4 files\n", export);
	ck_assert_str_eq(out, want);
	ck_assert_int_eq(TOOL("tree", "-a", url("")), 0);
	has(out, "|-- .hidden\n");
	stop();
}

TEST_LOOP(names_are_found_by_pattern_and_type, 0, WAYS)
{
	char want[1024];

	start(_i);
	make_tree();
	ck_assert_int_eq(TOOL("find", url("")), 0);
	snprintf(want, sizeof(want), "%s\n%s/a\n%s/a/b\n%s/a/b/file\n"
		 "%s/a/link\n%s/file\n", export, export, export, export,
		 export, export);
	ck_assert_str_eq(out, want);
	ck_assert_int_eq(TOOL("find", url(""), "-name", "f*", "-type", "f"), 0);
	snprintf(want, sizeof(want), "%s/a/b/file\n%s/file\n", export, export);
	ck_assert_str_eq(out, want);
	ck_assert_int_eq(TOOL("find", "--type=l", url("")), 0);
	snprintf(want, sizeof(want), "%s/a/link\n", export);
	ck_assert_str_eq(out, want);
	ck_assert_int_eq(TOOL("find", url("a"), "-type", "d"), 0);
	snprintf(want, sizeof(want), "%s/a\n%s/a/b\n", export, export);
	ck_assert_str_eq(out, want);
	ck_assert_int_eq(TOOL("find", url(""), "-type", "x"), 2);
	/* No letters -p -r, and -m with a value. */
	ck_assert_int_eq(TOOL("find", url(""), "-print"), 2);
	ck_assert_ptr_nonnull(strstr(err, "find has no -print, but -name, "));
	ck_assert_int_eq(TOOL("find", url(""), "-print0"), 2);
	ck_assert_ptr_nonnull(strstr(err, "find has no -print0, but -name, "));
	ck_assert_int_eq(TOOL("find", "-mtime", "1", url("")), 2);
	ck_assert_ptr_nonnull(strstr(err, "find has no -mtime, but -name, "));
	ck_assert_int_eq(TOOL("find", url(""), "-name", "-print"), 0);
	ck_assert_str_eq(out, "");
	ck_assert_int_eq(mkfifo(path(export, "pipe"), 0600), 0);
	ck_assert_int_eq(TOOL("find", url(""), "-type", "p"), 0);
	snprintf(want, sizeof(want), "%s/pipe\n", export);
	ck_assert_str_eq(out, want);
	stop();
}

/* As find(1): 0 is the directory alone. */
TEST(find_goes_as_deep_as_it_is_told)
{
	char want[1024];

	start(WAY_TCP);
	make_tree();
	ck_assert_int_eq(TOOL("find", url(""), "-maxdepth", "0"), 0);
	snprintf(want, sizeof(want), "%s\n", export);
	ck_assert_str_eq(out, want);
	/* It reads no directory that is as deep as that. */
	ck_assert_int_eq(chmod(path(export, "a/b"), 0), 0);
	ck_assert_int_eq(TOOL("find", "-maxdepth", "2", "-mindepth", "2", "-u",
			      "65534", url("")), 0);
	snprintf(want, sizeof(want), "%s/a/b\n%s/a/link\n", export, export);
	ck_assert_str_eq(out, want);
	ck_assert_int_eq(TOOL("find", url(""), "-maxdepth", "-1"), 2);
	stop();
}

/* find(1) ends as soon as head(1) does, and not with its last file. */
TEST(a_list_ends_with_its_reader)
{
	char name[128], command[1024];

	start(WAY_TCP);
	memset(name, 'x', sizeof(name));
	for (int i = 0; i < 1000; i++) {
		snprintf(name + 100, 28, "%d", i);
		make_file(path(export, name), 0);
	}
	/* The pipe takes 64 KiB at most. */
	snprintf(command, sizeof(command), "{ env --default-signal=PIPE "
		 "./gannet-nfs find '%s'; echo $? >&2; } 2>%s/status | "
		 "head -n 1", url(""), d.dir);
	ck_assert_int_eq(system(command), 0);
	snprintf(command, sizeof(command), "grep -qx 141 %s/status", d.dir);
	ck_assert_int_eq(system(command), 0);
	stop();
}

TEST_LOOP(room_is_shown, 0, WAYS)
{
	start(_i);
	ck_assert_int_eq(TOOL("df", url("")), 0);
	has(out, "bytes ");
	has(out, "files ");
	has(out, "iB ");
	stop();
}

TEST(exports_are_listed_with_who_may)
{
	char port[8], want[256];

	start(WAY_TCP);
	snprintf(port, sizeof(port), "%u", d.tcp_port);
	ck_assert_msg(TOOL("exports", "-m", port, "127.0.0.1") == 0, "%s", err);
	snprintf(want, sizeof(want), "%s 127.0.0.1\n", export);
	ck_assert_str_eq(out, want);
	ck_assert_int_eq(TOOL("exports", "-m", port, "127.0.0.1:"), 0);
	ck_assert_str_eq(out, want);
	snprintf(base, sizeof(base), "tcp://127.0.0.1:%u", d.tcp_port);
	ck_assert_int_eq(TOOL("exports", base), 0);
	ck_assert_str_eq(out, want);
	ck_assert_int_eq(TOOL("exports", "-m", "1", "127.0.0.1"), 3);
	has(err, "refused");
	ck_assert_int_eq(TOOL("exports", "no-such-host.invalid"), 3);
	has(err, "host 'no-such-host.invalid'");
	stop();
}

/* Another one, from now on; its MOUNT is at @port. */
static void lie_on(struct liar *l, uint32_t mount_status, const char *exported,
		   char port[8])
{
	if (l->port)
		liar_stop(l);
	l->mount_status = mount_status;
	l->exported = exported;
	liar_start(l);
	snprintf(port, 8, "%u", l->port);
}

TEST(a_host_and_a_path_are_a_url_too)
{
	struct liar l = { 0 };
	char port[8];

	start(WAY_TCP);
	/* MOUNT is there, and NFS at 2049, if anything. */
	lie_on(&l, 13, NULL, port);
	ck_assert_int_eq(TOOL("ls", "-m", port, "127.0.0.1:/e"), 1);
	has(err, "127.0.0.1 exports no /e (MNT3ERR_ACCES: access denied); it "
	    "exports nothing\n");
	lie_on(&l, 13, "/f", port);
	ck_assert_int_eq(TOOL("ls", "-m", port, "127.0.0.1:/e"), 1);
	has(err, "; what it exports: /f\n");
	lie_on(&l, 13, "/", port);
	ck_assert_int_eq(TOOL("ls", "-m", port, "127.0.0.1:/e"), 1);
	has(err, "127.0.0.1 refuses to export /e to this machine "
	    "(MNT3ERR_ACCES: access denied): see its exports file\n");
	lie_on(&l, 2, "/", port);
	ck_assert_int_eq(TOOL("ls", "-m", port, "127.0.0.1:/e"), 1);
	has(err, "can not mount /e (MNT3ERR_NOENT: no such file");
	/* Bytes from the server do nothing to the terminal. */
	ck_assert_int_eq(TOOL("exports", "-m", port, "127.0.0.1"), 0);
	ck_assert_str_eq(out, "/ 192.0.2.1, \\033[2J\n");
	liar_stop(&l);
	stop();
}

/* A second server at port 2049 would be a surprise. */
TEST(a_port_of_tcp_in_a_url_is_the_only_one)
{
	start(WAY_TCP);
	/* Unless this machine has an rpcbind. */
	if (TOOL("ls", "tcp://127.0.0.1:1/x") == 3)
		has(err, "(asked were rpcbind and port 1; ?mountport=N names "
		    "its port)");
	ck_assert_int_eq(TOOL("ls", "-m", "1", "tcp://127.0.0.1:1/x"), 3);
	has(err, "Connection refused\n");
	snprintf(base, sizeof(base), "tcp://127.0.0.1:1%s", export);
	ck_assert_int_eq(TOOL("ls", url("")), 3);
	has(err, "NFS at TCP port 1 of 127.0.0.1: Connection refused: nothing "
	    "listens there\n");
	stop();
}

/* ---- a server's lies */

static const struct liar_name lies[] = {
	{ 0, "../up", 0, 1, 1, NULL },
	{ 0, "a/b", 0, 2, 1, NULL },
	{ 0, "x\0y", 3, 3, 1, NULL },
	{ 0, "..", 0, 4, 1, NULL },
	{ 0, "good", 0, 5, 1, NULL },
	{ 0, "loop", 0, 0, 2, NULL },
	{ 0, "deep", 0, LIAR_DEEP, 2, NULL },
};

static const char *lie(const struct liar *l, const char *name)
{
	static char text[256];

	snprintf(text, sizeof(text), "tcp://127.0.0.1:%u/e%s%s", l->port,
		 *name ? "/" : "", name);
	return text;
}

TEST(a_walk_passes_lies_by)
{
	struct liar l = { .names = lies, .nnames = ARRAY_SIZE(lies) };

	liar_start(&l);
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("find", lie(&l, "")), 1);
	has(out, "/e/good\n");
	ck_assert_ptr_null(strstr(out, "up"));
	has(err, "/e/../up: the server lists a name that no file can have");
	has(err, "/e/a/b: the server lists a name");
	has(err, "/e/x\\000y: the server lists a name");
	has(err, "/e/loop: the server has this directory in itself");
	has(err, ": too many directories below another");
	ck_assert_int_eq(TOOL("ls", lie(&l, "")), 0);
	has(out, "x\\000y\n");
	liar_stop(&l);
	stop();
}

/* NTFS and FUSE have such names: 300 bytes. */
#define TEN	"0123456789"
#define HUNDRED	TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define LONG	HUNDRED HUNDRED HUNDRED

static const struct liar_name lengthy[] = {
	{ 0, LONG, 0, 1, 1, NULL },
	{ 0, "short", 0, 2, 1, NULL },
};

TEST(names_that_are_too_long_here_hide_no_others)
{
	struct liar l = { .names = lengthy, .nnames = ARRAY_SIZE(lengthy) };

	liar_start(&l);
	start(WAY_TCP);
	ck_assert_msg(TOOL("ls", lie(&l, "")) == 0, "%s", err);
	has(out, LONG "\n");
	has(out, "short\n");
	ck_assert_msg(TOOL("find", lie(&l, "")) == 0, "%s", err);
	has(out, LONG "\n");
	ck_assert_int_eq(TOOL("cp", "-r", lie(&l, ""), path(export, "got")), 1);
	has(err, "File name too long");
	ck_assert(there("got/short"));
	liar_stop(&l);
	stop();
}

static const struct liar_name hidden[] = {
	{ 0, ".a", 0, 1, 1, NULL },
	{ 0, ".b", 0, 2, 1, NULL },
	{ 0, ".c", 0, 3, 1, NULL },
};

static const struct liar_name one_link[] = {
	{ 0, "a", 0, 1, 1, NULL },
	{ 0, "link", 0, 2, 5, "to" },
	{ 0, "z", 0, 3, 1, NULL },
};

/* It answers no READLINK, and nothing that comes behind. */
TEST(a_server_lost_after_the_listing_is_an_error)
{
	struct liar l = { .names = one_link, .nnames = ARRAY_SIZE(one_link),
			  .mute_procedure = 5 };
	char at[64];

	liar_start(&l);
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u/e", l.port);
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("ls", "-l", "--retries", "1", "--timeout", "3",
			      at), 3);
	ck_assert_msg(strstr(err, "link: "), "%s", err);
	ck_assert_int_eq(TOOL("ls", "--json", "--retries", "1", "--timeout",
			      "3", at), 3);
	ck_assert_msg(strstr(err, "link: "), "%s", err);
	liar_stop(&l);
	stop();
}

TEST(a_source_that_changes_is_reported_by_get_and_cat)
{
	struct liar l = { .names = one_link, .nnames = 1, .mounted = 1,
			  .changes = true };
	char at[64];

	liar_start(&l);
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u/e/a", l.port);
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("cat", at), 1);
	ck_assert_str_eq(out, "lie\n");
	ck_assert_msg(strstr(err, "a: it changed while it was copied"), "%s",
		      err);
	ck_assert_int_eq(TOOL("get", at, path(d.dir, "a")), 1);
	ck_assert_msg(strstr(err, "a: it changed while it was copied"), "%s",
		      err);
	l.changes = false;
	ck_assert_int_eq(TOOL("get", at, path(d.dir, "a")), 0);
	liar_stop(&l);
	stop();
}

struct change {
	struct liar liar;
	char	    from[600];
};

/* Changes the source of a put when its data is under way, whose answer only
 * then comes. */
static void *change_meanwhile(void *arg)
{
	struct change *c = arg;

	EVENTUALLY(c->liar.most_held > 0);
	/* path() is the other thread's. */
	make_file(c->from, 20);
	c->liar.held_procedure = 0;
	return NULL;
}

TEST(a_source_that_changes_is_reported_by_put)
{
	struct change c = { .liar = {
		.names = one_link, .nnames = 1, .makes = true,
		.held_procedure = 7, .hold = 2 } };
	pthread_t thread;
	char at[64];

	liar_start(&c.liar);
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u/e", c.liar.port);
	start(WAY_TCP);
	snprintf(c.from, sizeof(c.from), "%s", path(d.dir, "from"));
	make_file(c.from, 10);
	pthread_create(&thread, NULL, change_meanwhile, &c);
	ck_assert_msg(TOOL("put", "--timeout", "1", c.from, at) == 1, "%s",
		      err);
	pthread_join(thread, NULL);
	ck_assert_msg(strstr(err, "from: it changed while it was copied"),
		      "%s", err);
	ck_assert_int_eq(TOOL("put", c.from, at), 0);
	liar_stop(&c.liar);
	stop();
}

TEST(a_listing_without_an_end_is_an_error)
{
	struct liar l = { .names = hidden, .nnames = ARRAY_SIZE(hidden),
			  .circles = true };

	liar_start(&l);
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("ls", lie(&l, "")), 1);
	has(err, ": the server's list of names has no end\n");
	liar_stop(&l);
	l.circles = false;
	l.stops = true;
	liar_start(&l);
	ck_assert_int_eq(TOOL("find", lie(&l, "")), 1);
	has(err, ": the server's list of names has no end\n");
	has(out, "/e/.c\n");
	liar_stop(&l);
	stop();
}
