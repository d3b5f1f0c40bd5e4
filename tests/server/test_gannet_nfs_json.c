/* SPDX-License-Identifier: BSD-2-Clause */
/* ./gannet-nfs: its listings as JSON. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/liar.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

TEST_CASE(.timeout = 120);

enum { LINES_MAX = 16 };

static json_t *lines[LINES_MAX];
static unsigned nlines;

/* Each line of the output has to be an object. */
static void read_lines(void)
{
	char *at = out, *end;

	while (nlines > 0)
		json_decref(lines[--nlines]);
	for (; *at; at = end + 1) {
		end = strchr(at, '\n');
		ck_assert_ptr_nonnull(end);
		ck_assert_uint_lt(nlines, LINES_MAX);
		lines[nlines] = json_loadb(at, (size_t)(end - at),
					   JSON_ALLOW_NUL, NULL);
		ck_assert_msg(json_is_object(lines[nlines]), "%s", at);
		nlines++;
	}
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "(absent)";
}

/* The line with such a value. */
static const json_t *line_of(const char *key, const char *value)
{
	for (unsigned i = 0; i < nlines; i++)
		if (strcmp(text_of(lines[i], key), value) == 0)
			return lines[i];
	ck_abort_msg("no %s is %s in %s", key, value, out);
	return NULL;
}

static json_int_t number_of(const json_t *o, const char *key)
{
	ck_assert_msg(json_is_integer(json_object_get(o, key)), "%s", key);
	return json_integer_value(json_object_get(o, key));
}

/* As gannet-nfs(1) says. */
static void check_file(const json_t *o, const struct stat *st)
{
	char text[40];

	ck_assert_str_eq(text_of(o, "type"), "file");
	snprintf(text, sizeof(text), "%04o", st->st_mode & 07777);
	ck_assert_str_eq(text_of(o, "mode"), text);
	ck_assert_int_eq(number_of(o, "size"), st->st_size);
	ck_assert_int_eq(number_of(o, "used"), st->st_blocks * 512);
	ck_assert_int_eq(number_of(o, "links"), (json_int_t)st->st_nlink);
	ck_assert_int_eq(number_of(o, "uid"), st->st_uid);
	ck_assert_int_eq(number_of(o, "gid"), st->st_gid);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)st->st_ino);
	ck_assert_str_eq(text_of(o, "fileid"), text);
	ck_assert_str_eq(text_of(o, "mtime"), "2001-09-09T01:46:41.000000007Z");
}

static void make_named(void)
{
	const struct timespec times[2] = { { 5, 5 }, { 1000000001, 7 } };

	make_file(path(export, "a"), 1234);
	ck_assert_int_eq(utimensat(AT_FDCWD, path(export, "a"), times, 0), 0);
	make_file(path(export, "a\"b\\\n\177"), 0);
	make_file(path(export, "\303\244\360\237\220\246"), 0);
	make_file(path(export, "no\377utf"), 0);
	ck_assert_int_eq(mkdir(path(export, "dir"), 0750), 0);
	ck_assert_int_eq(symlink("to\200", path(export, "dir/link")), 0);
}

TEST_LOOP(attributes_and_names_are_listed_as_json, 0, WAYS)
{
	const json_t *o;
	struct stat st;

	start(_i);
	make_named();
	ck_assert_int_eq(stat(path(export, "a"), &st), 0);
	ck_assert_msg(TOOL("ls", "--json", url("")) == 0, "%s", err);
	for (const char *p = out; *p; p++)
		ck_assert(*p == '\n' || (*p >= ' ' && *p <= 0x7f));
	read_lines();
	ck_assert_uint_eq(nlines, 5);
	check_file(line_of("name", "a"), &st);
	ck_assert_ptr_null(json_object_get(line_of("name", "a"),
					   "name_base64"));
	line_of("name", "a\"b\\\n\177");
	line_of("name", "\303\244\360\237\220\246");
	/* The bytes, and a readable name with marks for invalid ones. */
	o = line_of("name_base64", "bm//dXRm");
	ck_assert_str_eq(text_of(o, "name"), "no\357\277\275utf");
	ck_assert_str_eq(text_of(line_of("name", "dir"), "type"), "directory");
	ck_assert_msg(TOOL("stat", "--json", url("a")) == 0, "%s", err);
	read_lines();
	check_file(line_of("name", "a"), &st);
	ck_assert_uint_gt(strlen(text_of(lines[0], "handle")), 8);
	stop();
}

TEST_LOOP(found_files_are_listed_as_json, 0, WAYS)
{
	char whole[300];
	const json_t *o;

	start(_i);
	make_named();
	snprintf(whole, sizeof(whole), "%s/dir/link", export);
	ck_assert_msg(TOOL("find", url(""), "-type", "l", "--json") == 0, "%s",
		      err);
	read_lines();
	ck_assert_uint_eq(nlines, 1);
	o = line_of("path", whole);
	ck_assert_str_eq(text_of(o, "name"), "link");
	ck_assert_str_eq(text_of(o, "type"), "link");
	ck_assert_str_eq(text_of(o, "target_base64"), "dG+A");
	ck_assert_int_eq(TOOL("find", url("dir"), "-maxdepth", "0",
			      "--json"), 0);
	read_lines();
	ck_assert_str_eq(text_of(lines[0], "name"), "dir");
	stop();
}

TEST_LOOP(space_is_shown_as_json, 0, WAYS)
{
	start(_i);
	ck_assert_msg(TOOL("df", "--json", url("")) == 0, "%s", err);
	read_lines();
	ck_assert_uint_eq(nlines, 1);
	ck_assert_int_gt(number_of(lines[0], "size"), 0);
	ck_assert_int_le(number_of(lines[0], "available"),
			 number_of(lines[0], "free"));
	ck_assert_int_ge(number_of(lines[0], "files"),
			 number_of(lines[0], "files_free"));
	number_of(lines[0], "files_available");
	stop();
}

static const struct liar_name lies[] = {
	{ 0, "nul\0", 4, 1, 1, NULL },
	{ 0, "two\n{\"name\":\"x\"}", 0, 2, 1, NULL },
};

TEST(a_name_with_any_byte_is_one_line)
{
	struct liar l = { .names = lies, .nnames = ARRAY_SIZE(lies) };
	const json_t *o;
	char at[128];

	liar_start(&l);
	start(WAY_TCP);
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u/e", l.port);
	ck_assert_msg(TOOL("ls", "--json", at) == 0, "%s", err);
	read_lines();
	ck_assert_uint_eq(nlines, 2);
	o = line_of("name", "nul");
	ck_assert_uint_eq(json_string_length(json_object_get(o, "name")), 4);
	line_of("name", "two\n{\"name\":\"x\"}");
	liar_stop(&l);
	stop();
}
