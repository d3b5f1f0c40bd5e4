/* SPDX-License-Identifier: BSD-2-Clause */
/* The log of the export table: refusals, and names that are not known. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/export_fixture.h"
#include "tests/unit/runner.h"

static FILE *file;
static int keep;

/* The log goes to a file from now on. */
static void log_begin(void)
{
	file = tmpfile();
	ck_assert_ptr_nonnull(file);
	keep = dup(STDERR_FILENO);
	dup2(fileno(file), STDERR_FILENO);
}

/* Returns its lines since then, without their times. */
static const char *logged(void)
{
	static char text[8192];
	char line[1024];

	dup2(keep, STDERR_FILENO);
	close(keep);
	rewind(file);
	text[0] = '\0';
	while (fgets(line, sizeof(line), file)) {
		const char *level = strstr(line, "warn: ");

		ck_assert_ptr_nonnull(level);
		strcat(text, level + 6);
	}
	fclose(file);
	return text;
}

static int mount_from(const char *addr, uint16_t port, const char *path)
{
	struct sockaddr_storage ss = peer(addr, port);
	struct export_opts opts;
	struct export_tree *e;
	const char *rest;
	int err = export_find_path(table, path, BY_SYS(&ss, false), &e, &opts,
				   &rest);

	if (err == 0)
		export_put(e);
	return err;
}

TEST_CASE(.setup = table_begin, .teardown = table_end);

#define PORT "the export is 'secure' and the port is above 1023; add " \
	"'insecure' for programs of ordinary users, and for RDMA clients of " \
	"iWARP in user space, such as siw\n"
#define CLIENT "no client of the export matches\n"

TEST(a_refusal_names_its_rule_once)
{
	static const char exports[] = "/a 192.0.2.0/24\n\n/b 192.0.2.7\n";

	publish(exports);
	log_begin();
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(mount_from("192.0.2.7", 40312, "/a"),
				 -EACCES);
		ck_assert_int_eq(mount_from("192.0.2.8", 900, "/b"), -EACCES);
	}
	ck_assert_int_eq(mount_from("192.0.2.8", 901, "/a"), 0);
	ck_assert_int_eq(mount_from("192.0.2.9", 40313, "/a"), -EACCES);
	ck_assert_str_eq(logged(),
		"192.0.2.7 port 40312 refused for /a (exports:1): " PORT
		"192.0.2.8 port 900 refused for /b (exports:3): " CLIENT
		"192.0.2.9 port 40313 refused for /a (exports:1): " PORT);
	/* The change of the exports might be meant to fix this: log again. */
	publish(exports);
	log_begin();
	mount_from("2001:db8::1", 40312, "/a");
	mount_from("192.0.2.7", 40312, "/a");
	ck_assert_str_eq(logged(),
		"2001:db8::1 port 40312 refused for /a (exports:1): " CLIENT
		"192.0.2.7 port 40312 refused for /a (exports:1): " PORT);
}

TEST(a_filehandle_whose_export_is_gone_is_told_once)
{
	struct sockaddr_storage ss = peer("192.0.2.7", 933);
	struct export_opts opts;
	struct export_tree *e;

	publish("/a 192.0.2.0/24(fsid=7)\n");
	log_begin();
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(export_find(table, 8, BY_SYS(&ss, false), &e,
					     &opts), -ESTALE);
	ck_assert_str_eq(logged(), "192.0.2.7 port 933 refused: the export of "
		"its filehandle, with id 0x00000008, was removed; "
		"export it again, or unmount it there\n");
	ck_assert(export_refusal_is_new(table, (struct sockaddr *)&ss, "/x"));
	ck_assert(!export_refusal_is_new(table, (struct sockaddr *)&ss,
					 "/x"));
	publish("/a 192.0.2.0/24(fsid=7)\n");
	ck_assert(export_refusal_is_new(table, (struct sockaddr *)&ss, "/x"));
}

#define UNKNOWN " is not known, so no address matches it\n"

TEST(names_that_are_not_known_are_told)
{
	publish("/a h1.example none2 @trusted 192.0.2.7 *.none\n"
		"/b none1.example @other none2\n/c dead1 @trusted\n");
	log_begin();
	export_check_names(table, true);
	ck_assert_str_eq(logged(), "exports:1: host 'none2'" UNKNOWN
		"exports:2: host 'none1.example'" UNKNOWN
		"exports:2: netgroup '@other'" UNKNOWN
		"exports:3: host 'dead1' can't be looked up now\n");
}

TEST(a_name_service_that_does_not_answer_is_not_asked_for_all_names)
{
	publish("/a dead1 dead2 dead3 dead4 none1 dead5\n");
	log_begin();
	export_check_names(table, true);
	ck_assert_str_eq(logged(),
		"exports:1: host 'dead1' can't be looked up now\n"
		"exports:1: host 'dead2' can't be looked up now\n"
		"exports:1: host 'dead3' can't be looked up now, nor may the "
		"names behind it be\n");
}

static _Atomic bool asked;

static void note_question(void)
{
	asked = true;
}

TEST(nobody_waits_for_the_names)
{
	publish("/a h1.example\n");
	dns_meanwhile = note_question;
	export_check_names(table, false);
	EVENTUALLY(asked);
}
