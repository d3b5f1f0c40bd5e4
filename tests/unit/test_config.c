/* SPDX-License-Identifier: BSD-2-Clause */
/* gannet.conf(5): its options, the files it is read from, and the errors. */
#include "daemon/settings/settings.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "transport/addr.h"
#include "tests/unit/runner.h"

static char dir[32], file[64];
static struct options o;
static char *why;

static void write_text(const char *name, const char *text, size_t len)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, len, f), len);
	ck_assert_int_eq(fclose(f), 0);
}

static void write_file(const char *name, const char *text)
{
	write_text(name, text, strlen(text));
}

static void setup(void)
{
	strcpy(dir, "/tmp/config.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/g.conf", dir);
	memset(&o, 0, sizeof(o));
	o.config = file;
	ck_assert_uint_gt(options_count(), 0);
	ck_assert_uint_le(options_count(), OPTIONS_MAX);
}

static int remove_one(const char *path, const struct stat *st, int kind,
		      struct FTW *at)
{
	return remove(path);
}

static void teardown(void)
{
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	options_fini(&o);
	free(why);
	why = NULL;
}

TEST_CASE(.setup = setup, .teardown = teardown);

static void reads(const char *text)
{
	write_file("g.conf", text);
	ck_assert_msg(config_read(&o, &why) == 0, "%s", why);
}

/* The error is "FILE:@error". */
static void fails(const char *text, const char *error)
{
	size_t len = strlen(file);

	write_file("g.conf", text);
	ck_assert_int_eq(config_read(&o, &why), -EINVAL);
	ck_assert_ptr_nonnull(why);
	ck_assert_msg(!strncmp(why, file, len) && why[len] == ':' &&
		      !strncmp(why + len + 1, error, strlen(error)),
		      "%s, not %s", why, error);
	options_fini(&o);
	free(why);
	why = NULL;
	memset(&o, 0, sizeof(o));
	o.config = file;
}

TEST(keys_set_what_the_options_of_their_names_set)
{
	reads("# for a small machine\n"
	      "[server]\n"
	      "port = 3049\n"
	      "\tthreads=4\n"
	      "  max_connections = 12 ; not many\n"
	      "memory = 64\n"
	      "rpcbind = no\n"
	      "[rdma]\n"
	      "mode = verbs,iwarp\n"
	      "read-read = on\n"
	      "[iwarp]\n"
	      "port = 0\n"
	      "crc = no\n"
	      "[log]\n"
	      "level = debug\n");
	ck_assert_uint_eq(o.port, 3049);
	ck_assert_uint_eq(o.threads, 4);
	ck_assert_uint_eq(o.max_conns, 12);
	ck_assert_uint_eq(o.memory, 64u << 20);
	ck_assert(!o.rpcbind);
	ck_assert_uint_eq(o.rdma, 3);
	ck_assert(o.rdma_read_read);
	ck_assert_uint_eq(o.fabrics[1].given, 1);
	ck_assert_uint_eq(o.log_level, LOG_LEVEL_DEBUG);
}

static void write_drop_in(const char *name, const char *text)
{
	char path[80];

	snprintf(path, sizeof(path), "%s.d", file);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "g.conf.d/%s", name);
	write_file(path, text);
}

TEST(a_flag_that_a_later_file_unsets_is_unset)
{
	write_drop_in("1.conf", "[iwarp]\ncrc = yes\n[rdma]\nmount=0\n");
	reads("[iwarp]\ncrc = no\nlarge-fpdu = yes\n[rdma]\nmount=1\n");
	ck_assert_uint_eq(o.fabrics[1].given, 2);
	ck_assert(!o.rdma_mount);
}

TEST(a_key_that_a_file_has_twice_is_an_error)
{
	fails("[server]\nport = 1\n[rdma]\nport = 2\n[server]\nport = 1\n",
	      "6: [server] port: line 2 has this key, too; remove one");
	fails("[server]\nmax-connections = 1\nmax_connections = 2\n",
	      "3: [server] max-connections: line 2 has this key, too");
}

TEST(lists_keep_every_value_and_others_that_of_the_last_file)
{
	const struct option_texts *t;

	write_drop_in("1.conf", "[server]\nbind = ::1\n");
	reads("[exports]\nexport = /a *(rw)\nfile = /f\nexport = /b\n"
	      "[server]\nbind = 127.0.0.1\n");
	t = option_given(&o, option_of_key("exports", "export"));
	ck_assert_uint_eq(t->n, 2);
	ck_assert_str_eq(t->v[0], "/a *(rw)");
	ck_assert_str_eq(t->v[1], "/b");
	ck_assert_str_eq(o.bind, "::1");
}

TEST(arguments_take_the_place_of_what_files_say)
{
	const struct option_row *list = option_of_key("exports", "file");
	const struct option_row *port = option_of_key("server", "port");

	reads("[exports]\nfile = /f\nfile = /g\n[server]\nport = 1\n");
	ck_assert_ptr_null(option_give(&o, list, "/h", true));
	ck_assert_ptr_null(option_give(&o, list, "/i", true));
	ck_assert_ptr_null(option_give(&o, port, "2", true));
	ck_assert_uint_eq(option_given(&o, list)->n, 2);
	ck_assert_str_eq(option_given(&o, list)->v[0], "/h");
	ck_assert_str_eq(option_given(&o, list)->v[1], "/i");
	ck_assert_uint_eq(o.port, 2);
}

TEST(drop_ins_are_read_in_the_order_of_their_names)
{
	char path[80];

	snprintf(path, sizeof(path), "%s.d", file);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	write_file("g.conf.d/20.conf", "[server]\nport = 20\n");
	write_file("g.conf.d/10.conf", "[server]\nport = 10\nspin = 1\n");
	write_file("g.conf.d/30.conf.old", "[server]\nport = 30\n");
	write_file("g.conf.d/.40.conf", "[server]\nport = 40\n");
	reads("[server]\nport = 5\nthreads = 5\n");
	ck_assert_uint_eq(o.port, 20);
	ck_assert_uint_eq(o.spin, 1);
	ck_assert_uint_eq(o.threads, 5);
}

TEST(an_error_in_a_drop_in_names_it)
{
	char path[80];

	snprintf(path, sizeof(path), "%s.d", file);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	write_file("g.conf.d/a.conf", "\n[server]\n\nprot = 20\n");
	write_file("g.conf", "");
	ck_assert_int_eq(config_read(&o, &why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "/g.conf.d/a.conf:4: [server] prot: "
				     "there is no such key"));
}

TEST(a_directory_in_the_place_of_a_drop_in_is_told_as_one)
{
	char path[128];

	write_file("g.conf", "");
	snprintf(path, sizeof(path), "%s/g.conf.d", dir);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/g.conf.d/1.conf", dir);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_lt(config_read(&o, &why), 0);
	ck_assert_ptr_nonnull(why);
	ck_assert_msg(strstr(why, "g.conf.d/1.conf: Is a directory"), "%s",
		      why);
}

TEST(mistakes_are_told_with_their_line)
{
	fails("[server]\nprot = 1\n", "2: [server] prot: there is no such key; "
	      "did you mean 'port'?");
	fails("[server]\nmax_conections = 1\n", "2: [server] max_conections: "
	      "there is no such key; did you mean 'max-connections'?");
	fails("[server]\nx = 1\n", "2: [server] x: there is no such key; see");
	fails("port = 1\n", "1: port: expected a section");
	fails("[sever]\n\nport = 1\n", "1: [sever]: there is no such section");
	fails("[server]\nread-read = yes\n",
	      "2: [server] read-read: there is no such key in this section; "
	      "[rdma] has it");
	fails("[server]\nport\n", "2: expected KEY = VALUE or [SECTION]");
	fails("[server\nport = 1\n", "1: expected KEY = VALUE or [SECTION]");
	fails("[server]\nport = 65536\n",
	      "2: [server] port: expected a number from 0 to 65535");
	fails("[server] port = 1\n", "1: [server]: expected nothing behind");
	fails("[server]\n[exprots]\n", "2: [exprots]: there is no such");
	fails("[server]\nport = 2049 # usual\n", "2: [server] port: expected a "
	      "number from 0 to 65535, not '2049 # usual'");
	fails("[server]\nport = -1\n", "2: [server] port: expected a number");
	fails("[server]\nport =\n", "2: [server] port: expected a number");
	fails("[server]\nmemory = 99999999999999999999\n",
	      "2: [server] memory: expected a number from 8 to 16777216");
	fails("[server]\nbind = host\n", "2: [server] bind: expected an IPv4");
	fails("[server]\nseccomp = maybe\n",
	      "2: [server] seccomp: expected kill, log or off");
	fails("[rdma]\nmount = maybe\n",
	      "2: [rdma] mount: expected yes or no");
	fails("[rdma]\nmode = verbs,verbs\n",
	      "2: [rdma] mode: expected auto, off, or one or more of");
	fails("[server]\ncheck = yes\n", "2: [server] check: there is no such");
	fails("[log]\nto = paper\n",
	      "2: [log] to: expected auto, stderr, journal or syslog");
	fails("[audit]\nto = here\n",
	      "2: [audit] to: expected off, journal, syslog or an absolute");
	fails("[audit]\nprocs = write,walk\n",
	      "2: [audit] procs: expected changes, all, or names");
	fails("[audit]\ninterval = 86401\n",
	      "2: [audit] interval: expected a number from 0 to 86400");
}

TEST(the_first_of_two_mistakes_is_told)
{
	fails("[server]\nport\nspin = x\n", "2: expected KEY");
	fails("[server]\nport = x\nport\n", "2: [server] port: expected a");
}

TEST(a_line_that_does_not_fit_is_refused_and_not_cut)
{
	char text[400] = "[exports]\nexport = /";

	memset(text + strlen(text), 'a', 300);
	strcat(text, "\n[server]\n");
	fails(text, "2: this line is too long");
}

TEST(a_zero_byte_is_refused)
{
	static const char text[] = "[server]\nport = 1\0000\nspin = 1\n";

	write_text("g.conf", text, sizeof(text) - 1);
	ck_assert_int_eq(config_read(&o, &why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, ":2: this line has a zero byte"));
}

TEST(the_file_that_was_named_must_be_there)
{
	ck_assert_int_eq(config_read(&o, &why), -ENOENT);
	ck_assert_ptr_nonnull(strstr(why, "No such file"));
	free(why);
	o.config = NULL;
	ck_assert_int_eq(config_read(&o, &why), 0);
}

TEST(every_value_is_printed_as_it_can_be_read)
{
	const struct option_row *row;
	char *text = NULL;
	size_t len;

	reads("[server]\nseccomp = log\nthreads = 3\n[rdma]\nmode = off\n"
	      "[iwarp]\ncrc = off\n[exports]\nbackend-dir = /b\n");
	for (unsigned i = 0; (row = option_row(i)); i++) {
		FILE *f = open_memstream(&text, &len);

		option_print(&o, row, f);
		fclose(f);
		if (option_given(&o, row)->n)
			ck_assert_ptr_null(option_give(&o, row, text, false));
		free(text);
	}
	ck_assert_uint_eq(o.seccomp, CONFINE_LOG);
	ck_assert_uint_eq(o.threads, 3);
	ck_assert_uint_eq(o.rdma, RDMA_OFF);
	ck_assert_uint_eq(o.fabrics[1].given, 1);
	ck_assert_str_eq(o.backend_dir, "/b");
}

static void metrics_at(const char *text, int family, unsigned port)
{
	struct sockaddr_storage at;

	ck_assert_ptr_null(options_metrics(text, &at));
	ck_assert_int_eq(at.ss_family, family);
	if (family)
		ck_assert_uint_eq(xprt_addr_port(&at), port);
}

TEST(metrics_are_off_on_or_at_an_address)
{
	static const char *const wrong[] = { "", "yes", "host", ":1",
		"127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "[::1",
		"[::1]1", "[127.0.0.1]:-1", "::1:", "[]:1", "127.0.0.1:1:2" };
	struct sockaddr_storage at;

	metrics_at(NULL, 0, 0);
	metrics_at("off", 0, 0);
	if (!HAVE_MICROHTTPD) {
		ck_assert_ptr_nonnull(strstr(options_metrics("on", &at),
					     "built without"));
		return;
	}
	metrics_at("on", AF_INET, METRICS_PORT);
	metrics_at("192.0.2.7", AF_INET, METRICS_PORT);
	metrics_at("192.0.2.7:0", AF_INET, 0);
	metrics_at("::1", AF_INET6, METRICS_PORT);
	metrics_at("[::1]", AF_INET6, METRICS_PORT);
	metrics_at("[2001:db8::1]:80", AF_INET6, 80);
	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++)
		ck_assert_msg(options_metrics(wrong[i], &at), "'%s'",
			      wrong[i]);
}
