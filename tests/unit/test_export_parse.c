/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of exports(5). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exports/export_priv.h"
#include "lib/util.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/runner.h"

#define UNKNOWN(option) "option '" option "' is not known; " \
	"gannet-exports(5) has a list"
#define LIKE(option, like) "option '" option "' is not known; " \
	"did you mean '" like "'?"

/* "path client ..." for each export, one a line. */
static char said[4096];

static void say(void *arg, const char *path, const char *client, bool everyone)
{
	size_t len = strlen(said);

	snprintf(said + len, sizeof(said) - len, "%s %s\n", path, client);
}

static const char *clients(void)
{
	said[0] = '\0';
	export_walk(table, say, NULL);
	return said;
}

static const struct {
	const char *text;
	const char *clients;
} good[] = {
	{ "", "" },
	{ "\n\n# nothing\n   \t# nor here", "" },
	{ "/a", "/a *\n" },
	{ "/a *", "/a *\n" },
	{ "/a (ro)", "/a *\n" },
	{ "/a -rw", "/a *\n" },
	{ "  /a h # but no more", "/a h\n" },
	{ "/a h#1.example", NULL },
	{ "/a\th1(rw)   h2(ro)\r\n/b h3", "/a h1\n/a h2\n/b h3\n" },
	{ "/a h1 \\\n   h2\n/b h3", "/a h1\n/a h2\n/b h3\n" },
	{ "# a comment \\\n/a that goes on\n/b h", "/b h\n" },
	{ "/a h1\n/b h2\n/a h3", "/a h1\n/a h3\n/b h2\n" },
	{ "\"/a b\" h", "/a b h\n" },
	{ "\"/a#b\" h", "/a#b h\n" },
	{ "/a\" \"b h", "/a b h\n" },
	{ "/a\\040b\\011\\042 h", "/a b\t\" h\n" },
	{ "\"/a\\040b\\134\" h", "/a b\\ h\n" },
	{ "/a/ h\n//b///c// h\n/ h", "/a h\n/b/c h\n/ h\n" },
	{ "/.a/..b/c. h", "/.a/..b/c. h\n" },
	{ "/a h()", "/a h\n" },
	{ "/a 10.0.0.1 10.0.0.0/8 10.1.2.3/255.255.252.0 ::1 fe80::/10",
	  "/a 10.0.0.1\n/a ::1\n/a 10.0.0.0/8\n"
	  "/a 10.1.2.3/255.255.252.0\n/a fe80::/10\n" },
	{ "/a * @g *.x h?-[a-c] 10.0.0.0/8 h 0.0.0.0/0 ::/0",
	  "/a h\n/a 10.0.0.0/8\n/a 0.0.0.0/0\n/a ::/0\n/a *.x\n"
	  "/a h?-[a-c]\n/a @g\n/a *\n" },
	{ "/a h(ro,rw,root_squash,no_root_squash,all_squash,no_all_squash,"
	  "anonuid=0,anongid=4294967294,secure,insecure,sec=sys,fsid=0,sync,"
	  "no_wdelay,no_subtree_check,)", "/a h\n" },
	{ "/a h(fsid=root)\n/b h(fsid=4294967295)", "/a h\n/b h\n" },
	{ "/a h(fsid=01234567-89ab-cdef-0123-456789ABCDEF)", "/a h\n" },
	{ "/a h1(fsid=8) h2(fsid=7) h3\n/b h(fsid=6)",
	  "/a h1\n/a h2\n/a h3\n/b h\n" },
	{ "/a h1(fsid=7) h2(fsid=7) h3", "/a h1\n/a h2\n/a h3\n" },
	{ "mem:/a h\nmem,size=1m,files=10:/b h", "/a h\n/b h\n" },
	{ "mem,size=1m:/a h\nmem,size=1024K:/a g", "/a h\n/a g\n" },
};

TEST_CASE(.setup = table_begin, .teardown = table_end);

TEST_LOOP(valid_exports_are_parsed, 0, ARRAY_SIZE(good))
{
	if (!good[_i].clients) {
		struct export_set *set = NULL;
		char *err;

		/* '#' is part of a word; such a host name is wrong. */
		ck_assert_int_eq(parse(good[_i].text, &set, &err), -EINVAL);
		free(err);
		return;
	}
	publish(good[_i].text);
	ck_assert_str_eq(clients(), good[_i].clients);
}

#define BOM "exports:1: the file begins with a byte order mark (BOM), three " \
	"bytes that editors hide; save it without"

static const struct {
	const char *text;
	const char *message;
} bad[] = {
	{ "a h", "exports:1: 'a' is not an absolute path" },
	{ "\xef\xbb\xbf/a h", BOM },
	{ "\xef\xbb\xbf# comment\n/a h", BOM },
	{ "\n\n  a/b h", "exports:3: 'a/b' is not an absolute path" },
	{ "\"\" h", "exports:1: the path is empty" },
	{ "-rw /a", "exports:1: '-rw' stands where a path should: an entry "
	  "begins with the directory to export" },
	{ "/a/../b h",
	  "exports:1: '/a/../b' has a component '.' or '..'" },
	{ "/a/. h", "exports:1: '/a/.' has a component '.' or '..'" },
	{ "/.. h", "exports:1: '/..' has a component '.' or '..'" },
	{ "nfs:/a h", "exports:1: 'nfs' is not a kind of file system; "
	  "expected KIND:/PATH, where KIND is one of posix, mem (others are "
	  "loaded at the start, with --backend), or just /PATH" },
	{ "mem,color=red:/a h", "exports:1: mem has no option 'color=red'; "
	  "expected size= or files=" },
	{ "/a h\nmem,size=1,files=2:/b h", "exports:2: size=1: expected a "
	  "number, at least 64k, such as 64m or 2g" },
	{ "mem,files=1g:/a h", "exports:1: files=1g: expected a number from "
	  "1 to 64m" },
	{ "posix,async=1:/a h", "exports:1: posix has no option 'async=1'; "
	  "expected async, table, max-files= or idle=" },
	{ "posix,idle=5s:/a h", "exports:1: idle=5s: expected a number from "
	  "1 to 2147483647" },
	{ "mem:a h", "exports:1: 'a' is not an absolute path" },
	{ "\"/a h\n/b h",
	  "exports:1: a '\"' is not closed on its line" },
	{ "/a\\b h", "exports:1: a backslash stands before three octal "
	  "digits (\\040 is a space) or at the end of the line" },
	{ "/a\\04 h", "exports:1: a backslash stands before three octal "
	  "digits (\\040 is a space) or at the end of the line" },
	{ "/a\\000 h", "exports:1: '\\000' is not a character: expected "
	  "\\001 to \\377" },
	{ "/a\\777 h", "exports:1: '\\777' is not a character: expected "
	  "\\001 to \\377" },
	{ "/a h(rw", "exports:1: 'h(rw' has a '(' without a ')'; there is "
	  "no space between options" },
	{ "/a h(rw, sync)", "exports:1: 'h(rw,' has a '(' without a ')'; "
	  "there is no space between options" },
	{ "/a h rw)", "exports:1: 'rw)' has a ')' without a '('; there is "
	  "no space between options" },
	{ "/a h(rw)x", "exports:1: 'x' follows a ')'; expected a space" },
	{ "/a h(rw)(ro)",
	  "exports:1: '(ro)' follows a ')'; expected a space" },
	{ "/a h (rw)", "exports:1: a space stands before '(rw)': these "
	  "options would be everyone's; write CLIENT(rw), or *(rw) if you "
	  "mean that" },
	{ "/a h(rw)\n\n/b \\\n h(asynch)",
	  "exports:4: " LIKE("asynch", "async") },
	{ "/a h(crosmnt)", "exports:1: " LIKE("crosmnt", "crossmnt") },
	{ "/a h(no-root-sqaush)",
	  "exports:1: " LIKE("no-root-sqaush", "no_root_squash") },
	{ "/a h(fsidd=3)", "exports:1: " LIKE("fsidd=3", "fsid=") },
	{ "/a -maproot=0 h", "exports:1: " UNKNOWN("maproot=0") },
	{ "/a h(RW)", "exports:1: " LIKE("RW", "rw") },
	{ "/a h(,rw)", "exports:1: an option is empty" },
	{ "/a h(anonuid=)",
	  "exports:1: anonuid=: expected a user id, 0 to 4294967294" },
	{ "/a h(anonuid=-1)",
	  "exports:1: anonuid=-1: expected a user id, 0 to 4294967294" },
	{ "/a h(anongid=4294967295)", "exports:1: anongid=4294967295: "
	  "expected a group id, 0 to 4294967294" },
	{ "/a h(anongid=12x)",
	  "exports:1: anongid=12x: expected a group id, 0 to 4294967294" },
	{ "/a h(fsid=4294967296)", "exports:1: fsid=4294967296: expected a "
	  "number, 0 to 4294967295, or a UUID" },
	{ "/a h(fsid=0123456789abcdef)", "exports:1: fsid=0123456789abcdef: "
	  "expected a number, 0 to 4294967295, or a UUID" },
	{ "/a h(fsid=1)\n/a h(fsid=2)", "exports:2: client 'h' of '/a' is "
	  "there already with other options (exports:1)" },
	{ "/a h1(fsid=1) h2(fsid=2)\n/b h(fsid=2)", "exports:2: '/b' and "
	  "'/a' (exports:1) have the same file system id; give one of them "
	  "another with fsid=" },
	{ "/a h(fsid=1)\n/b h(fsid=1)", "exports:2: '/b' and '/a' "
	  "(exports:1) have the same file system id; give one of them "
	  "another with fsid=" },
	{ "/a h\n/b h\n/a h(rw)", "exports:3: client 'h' of '/a' is there "
	  "already with other options (exports:1)" },
	{ "/a 10.1.0.0/8\n/a 10.2.0.0/255.0.0.0(rw)", "exports:2: client "
	  "'10.2.0.0/255.0.0.0' of '/a' is there already with other options "
	  "(exports:1)" },
	{ "/a * 0.0.0.0/0 *.x *.X(anonuid=5)", "exports:1: client '*.X' of "
	  "'/a' is there already with other options (exports:1)" },
	{ "/a\n/a -insecure", "exports:2: client '*' of '/a' is there "
	  "already with other options (exports:1)" },
	{ "/a ::1 0::1(rw)", "exports:1: client '0::1' of '/a' is there "
	  "already with other options (exports:1)" },
	{ "/a h\nmem,size=1m:/a g",
	  "exports:2: '/a' is another file system in exports:1" },
	{ "/a 300.1.1.1", "exports:1: client '300.1.1.1' is not an address: "
	  "expected four numbers, each 0 to 255" },
	{ "/a h!", "exports:1: client 'h!' is neither a host name, an "
	  "address, a network, a wildcard nor a netgroup" },
	{ "/a @", "exports:1: client '@' is not a netgroup: expected "
	  "@NAME" },
	{ "/a gss/krb5(rw)", "exports:1: client 'gss/krb5' is not "
	  "supported: there is no Kerberos" },
	{ "/a [::1](rw)", "exports:1: client '[::1]' is not understood: "
	  "IPv6 addresses are written without brackets" },
	{ "/a h[ab", "exports:1: client 'h[ab' has a '[' without a ']'" },
	{ "/a 10.*/8", "exports:1: client '10.*/8' is not understood: a "
	  "network has no wildcards" },
	{ "/a 192.168.*", "exports:1: client '192.168.*' is not understood: "
	  "addresses have no wildcards; write a network such as "
	  "192.0.2.0/24" },
	{ "/a 10.0.0/8", "exports:1: client '10.0.0/8' is not a network: "
	  "expected ADDRESS/LENGTH or ADDRESS/NETMASK" },
	{ "/a 10.0.0.0/33", "exports:1: client '10.0.0.0/33' has a bad "
	  "prefix length: expected 0 to 32" },
	{ "/a 10.0.0.0/", "exports:1: client '10.0.0.0/' has a bad prefix "
	  "length: expected 0 to 32" },
	{ "/a ::/129", "exports:1: client '::/129' has a bad prefix "
	  "length: expected 0 to 128" },
	{ "/a 10.0.0.0/255.0.255.0", "exports:1: client "
	  "'10.0.0.0/255.0.255.0' has a bad netmask: expected one such as "
	  "255.255.252.0" },
};

TEST_LOOP(mistakes_are_reported_with_their_place, 0, ARRAY_SIZE(bad))
{
	struct export_set *set = NULL;
	char *err = NULL;

	ck_assert_int_eq(parse(bad[_i].text, &set, &err), -EINVAL);
	ck_assert_ptr_null(set);
	ck_assert_ptr_nonnull(err);
	ck_assert_str_eq(err, bad[_i].message);
	free(err);
}

/* Clients of MOUNT's EXPORT take names of 255 bytes, or else no list. */
TEST(a_client_of_more_than_255_bytes_is_a_mistake)
{
	struct export_set *set = NULL;
	char text[300], *err;

	for (const char *kind = "@*h"; *kind; kind++) {
		memset(text, 'x', sizeof(text));
		memcpy(text, "/a ", 3);
		text[3] = *kind;
		text[3 + 255] = '\0';
		publish(text);
		text[3 + 255] = 'x';
		text[3 + 256] = '\0';
		ck_assert_int_eq(parse(text, &set, &err), -EINVAL);
		ck_assert_ptr_nonnull(strstr(err, "is longer than 255 bytes"));
		free(err);
	}
}

TEST(a_nul_byte_is_an_error)
{
	struct export_set *set = NULL;
	char *err;

	ck_assert_int_eq(parse_bytes("/a\0b h", 7, &set, &err), -EINVAL);
	ck_assert_str_eq(err, "exports:1: there is a NUL byte in the text");
	free(err);
}

TEST(long_words_are_errors)
{
	static char text[8192];
	struct export_set *set = NULL;
	char *err;

	memset(text, 'x', sizeof(text) - 1);
	text[0] = '/';
	ck_assert_int_eq(parse(text, &set, &err), -EINVAL);
	ck_assert_str_eq(err, "exports:1: a word is longer than 4095 bytes");
	free(err);
	text[1025] = '\0';
	ck_assert_int_eq(parse(text, &set, &err), -EINVAL);
	ck_assert_str_eq(err, "exports:1: the path is longer than 1024 "
			 "bytes, which clients can't name");
	free(err);
	text[1024] = '\0';
	publish(text);
}

static int add(const char *arg, struct export_set **set)
{
	char *err = NULL;
	int ret = export_set_add(table, "--export", arg, set, &err);

	said[0] = '\0';
	if (err)
		snprintf(said, sizeof(said), "%s", err);
	free(err);
	return ret;
}

static void publish_set(struct export_set *set)
{
	char *err;

	ck_assert_int_eq(export_table_publish(table, set, &err), 0);
}

TEST(an_argument_without_clients_is_for_this_machine)
{
	struct export_set *set = NULL;
	struct export_opts opts;

	ck_assert_int_eq(add("/a", &set), 0);
	ck_assert_int_eq(add("/b\\040b -rw", &set), 0);
	publish_set(set);
	ck_assert_str_eq(clients(), "/a ::1\n/a 127.0.0.0/8\n"
			 "/b b ::1\n/b b 127.0.0.0/8\n");
	ck_assert_int_eq(ask("/a", "127.0.0.1", &opts), 0);
	ck_assert(!opts.rw && opts.root_squash && opts.secure);
	ck_assert_int_eq(ask("/a", "::1", &opts), 0);
	ck_assert_int_eq(ask("/a", "::ffff:127.9.9.9", &opts), 0);
	ck_assert_int_eq(ask("/a", "192.0.2.1", &opts), -EACCES);
	ck_assert_int_eq(ask("/a", "::2", &opts), -EACCES);
	ck_assert_int_eq(ask("/b b", "127.0.0.1", &opts), 0);
	ck_assert(opts.rw);
}

TEST(an_argument_names_clients_as_a_line_does)
{
	struct export_set *set = NULL;
	struct export_opts opts;

	ck_assert_int_eq(add("/a 127.0.0.1(rw,all_squash,anonuid=5,"
			     "anongid=-2,insecure) 10.0.0.0/8", &set), 0);
	publish_set(set);
	ck_assert_int_eq(ask("/a", "127.0.0.1", &opts), 0);
	ck_assert(opts.rw && opts.all_squash && !opts.secure);
	ck_assert_uint_eq(opts.anonuid, 5);
	ck_assert_uint_eq(opts.anongid, 4294967294);
	ck_assert_int_eq(ask("/a", "10.1.2.3", &opts), 0);
	ck_assert(!opts.rw && !opts.all_squash);
	ck_assert_uint_eq(opts.anonuid, 65534);
	ck_assert_int_eq(ask("/a", "127.0.0.2", &opts), -EACCES);
}

TEST(files_and_arguments_add_up)
{
	struct export_set *set = NULL;
	char *err;

	ck_assert_int_eq(parse("/a h\n/b h\n", &set, &err), 0);
	ck_assert_int_eq(parse("/c h\n/a g\n", &set, &err), 0);
	ck_assert_int_eq(add("/d h", &set), 0);
	ck_assert_int_eq(parse("/e h\n\n/b h(rw)\n", &set, &err),
			 -EINVAL);
	ck_assert_str_eq(err, "exports:3: client 'h' of '/b' is there already "
			 "with other options (exports:2)");
	free(err);
	export_set_free(set);
	set = NULL;
	ck_assert_int_eq(parse("/a h\n/b h\n", &set, &err), 0);
	ck_assert_int_eq(add("/a *", &set), 0);
	ck_assert_int_eq(parse("/c h\n/a g\n", &set, &err), 0);
	publish_set(set);
	ck_assert_str_eq(clients(), "/a h\n/a g\n/a *\n/b h\n/c h\n");
}

TEST(bad_arguments_say_so)
{
	struct export_set *set = NULL;

	ck_assert_int_eq(add("", &set), -EINVAL);
	ck_assert_str_eq(said, "--export: expected a directory");
	ck_assert_int_eq(add("a", &set), -EINVAL);
	ck_assert_str_eq(said, "--export: 'a' is not an absolute path");
	ck_assert_int_eq(add("/a (rw)", &set), -EINVAL);
	ck_assert_str_eq(said, "--export: a space stands before '(rw)': these "
			 "options would be everyone's; write CLIENT(rw), or "
			 "*(rw) if you mean that");
	ck_assert_int_eq(add("/a h\n/b h", &set), -EINVAL);
	ck_assert_str_eq(said, "--export: there is more than one line");
	ck_assert_ptr_null(set);
	ck_assert_int_eq(add("/a h", &set), 0);
	ck_assert_int_eq(add("/b h(x)", &set), -EINVAL);
	export_set_free(set);
}

TEST(every_mistake_of_a_file_is_reported)
{
	struct export_set *set = NULL;
	char *err;

	ck_assert_int_eq(parse("/a h(foo,rw,bar=1) g(baz) 300.1.1.1\n"
			       "/b h(rw, sync) x!\n"
			       "\"/c h\n"
			       "d/.. h(anonuid=x)\n"
			       "/e h\n/e h(rw)\n"
			       "nfs:/f h! -x g\n"
			       "/g h(fsid=1)\n"
			       "/h h(fsid=1) i(ro)z \\777\n",
			       &set, &err), -EINVAL);
	ck_assert_ptr_null(set);
	ck_assert_str_eq(err, "exports:1: " UNKNOWN("foo") "\n"
		"exports:1: " UNKNOWN("bar=1") "\n"
		"exports:1: " UNKNOWN("baz") "\n"
		"exports:1: client '300.1.1.1' is not an address: expected "
		"four numbers, each 0 to 255\n"
		"exports:2: 'h(rw,' has a '(' without a ')'; there is no "
		"space between options\n"
		"exports:3: a '\"' is not closed on its line\n"
		"exports:4: 'd/..' is not an absolute path\n"
		"exports:4: anonuid=x: expected a user id, 0 to 4294967294\n"
		"exports:6: client 'h' of '/e' is there already with other "
		"options (exports:5)\n"
		"exports:7: 'nfs' is not a kind of file system; expected "
		"KIND:/PATH, where KIND is one of posix, mem (others are "
		"loaded at the start, with --backend), or just /PATH\n"
		"exports:7: client 'h!' is neither a host name, an address, a "
		"network, a wildcard nor a netgroup\n"
		"exports:7: " UNKNOWN("x") "\n"
		"exports:9: 'z' follows a ')'; expected a space\n"
		"exports:9: '/h' and '/g' (exports:8) have the same file "
		"system id; give one of them another with fsid=");
	free(err);
}

TEST(a_list_that_is_refused_is_one_mistake)
{
	struct export_set *set = NULL;
	char *err;

	ck_assert_int_eq(parse("/a h(squash_uids=0-15,20,25-50,foo)",
			       &set, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err, "squash_uids=0-15 is refused"));
	ck_assert_ptr_null(strstr(err, "'20'"));
	ck_assert_ptr_null(strstr(err, "'25-50'"));
	ck_assert_ptr_nonnull(strstr(err, "\nexports:1: " UNKNOWN("foo")));
	free(err);
}

/* A file of the source tree; the caller's. */
static char *slurp(const char *name)
{
	const char *srcdir = getenv("srcdir");
	char path[512], *text = calloc(1, 65536);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", srcdir ? srcdir : ".", name);
	f = fopen(path, "r");
	if (!f)
		ck_abort_msg("%s: %s", path, strerror(errno));
	ck_assert_uint_lt(fread(text, 1, 65535, f), 65535);
	fclose(f);
	return text;
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

TEST(the_example_works_when_its_lines_are_taken_in)
{
	char *text = slurp("etc/exports.example");

	publish(text);
	ck_assert_str_eq(clients(), "");
	for (char *s = text; (s = strstr(s, "\n#")); s += 2)
		if (s[2] == '/' || s[2] == '"')
			s[1] = ' ';
	publish(text);
	ck_assert_uint_eq(count_lines(clients()), 9);
	free(text);
}

TEST(the_manual_and_the_table_have_the_same_options)
{
	static const char *const kinds[] = {
		[OPTION_HONOURED] = "honoured",
		[OPTION_ACCEPTED] = "accepted",
		[OPTION_WARNED] = "warned", [OPTION_REFUSED] = "refused",
	};
	char *text = slurp("doc/gannet-exports.5.in"), line[80];
	enum option_kind kind;
	unsigned rows = 0, lines = 0;
	const char *name;

	while ((name = export_option_at(rows, &kind))) {
		snprintf(line, sizeof(line), "\n.It Cm %s Ta %s Ta", name,
			 kinds[kind]);
		ck_assert_msg(strstr(text, line), "no '%s'", line + 1);
		rows++;
	}
	for (char *s = text; (s = strstr(s, "\n.It Cm ")); s++)
		lines += sscanf(s, "\n.It Cm %*s Ta %79s", line) == 1;
	ck_assert_uint_eq(lines, rows);
	free(text);
}

TEST(the_examples_of_the_manual_work)
{
	char *text = slurp("doc/gannet-exports.5.in"), *from, *to;

	from = strstr(text, ".Sh EXAMPLES\n.Bd -literal -offset indent\n");
	ck_assert_ptr_nonnull(from);
	from = strchr(strchr(from, '\n') + 1, '\n') + 1;
	to = strstr(from, ".Ed\n");
	ck_assert_ptr_nonnull(to);
	*to = '\0';
	while ((to = strstr(from, "\\e")))
		memcpy(to, " \\", 2);
	export_table_protection(table, RPC_MTLS);
	publish(from);
	ck_assert_uint_eq(count_lines(clients()), 9);
	free(text);
}
