/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of mounts: bounded, and kept over a restart. */
#include "mountd/mount.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/stats.h"
#include "tests/unit/runner.h"

static char dir[] = "/tmp/gannet-rmtab-XXXXXX";
static char file[64];
static struct rmtab *tab;
static char seen[4096];

static void open_tab(unsigned max, unsigned max_host)
{
	struct rmtab_config c = { .path = file, .max = max,
				  .max_host = max_host };

	ck_assert_int_eq(rmtab_open(&c, &tab), 0);
}

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/rmtab", dir);
	open_tab(100, 100);
}

static void teardown(void)
{
	if (tab)
		rmtab_close(tab);
	unlink(file);
	rmdir(dir);
}

static void reopen(unsigned max, unsigned max_host)
{
	rmtab_close(tab);
	tab = NULL;
	open_tab(max, max_host);
}

static void see(void *arg, const char *host, const char *path)
{
	size_t n = strlen(seen);

	snprintf(seen + n, sizeof(seen) - n, "%s:%s ", host, path);
}

static const char *list(void)
{
	*seen = '\0';
	rmtab_walk(tab, see, NULL);
	return seen;
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(one_entry_for_a_host_and_path)
{
	rmtab_add(tab, "192.0.2.1", "/a");
	rmtab_add(tab, "192.0.2.1", "/b");
	rmtab_add(tab, "192.0.2.2", "/a");
	rmtab_add(tab, "192.0.2.1", "/a");
	ck_assert_str_eq(list(), "192.0.2.1:/a 192.0.2.1:/b 192.0.2.2:/a ");
}

TEST(entries_go_one_by_one_or_all_of_a_host)
{
	rmtab_add(tab, "h1", "/a");
	rmtab_add(tab, "h1", "/b");
	rmtab_add(tab, "h1", "/c");
	rmtab_add(tab, "h2", "/b");
	rmtab_remove(tab, "h1", "/b");
	rmtab_remove(tab, "h1", "/none");
	ck_assert_str_eq(list(), "h1:/a h1:/c h2:/b ");
	rmtab_remove_host(tab, "h1");
	ck_assert_str_eq(list(), "h2:/b ");
}

TEST(the_list_survives_a_restart)
{
	rmtab_add(tab, "2001:db8::1", "/a b\\c\nd\te");
	rmtab_add(tab, "h2", "/b");
	reopen(100, 100);
	ck_assert_str_eq(list(), "2001:db8::1:/a b\\c\nd\te h2:/b ");
	rmtab_remove(tab, "h2", "/b");
	reopen(100, 100);
	ck_assert_str_eq(list(), "2001:db8::1:/a b\\c\nd\te ");
}

TEST(the_oldest_goes_when_it_is_full)
{
	uint64_t dropped = stats_sum_by_name("rmtab_dropped");

	reopen(3, 2);
	rmtab_add(tab, "h1", "/a");
	rmtab_add(tab, "h2", "/b");
	rmtab_add(tab, "h2", "/c");
	rmtab_add(tab, "h2", "/d");
	ck_assert_str_eq(list(), "h1:/a h2:/c h2:/d ");
	rmtab_add(tab, "h3", "/e");
	ck_assert_str_eq(list(), "h2:/c h2:/d h3:/e ");
	ck_assert_uint_eq(stats_sum_by_name("rmtab_dropped"), dropped + 2);
	reopen(1, 1);
	ck_assert_str_eq(list(), "h3:/e ");
}

static void mount_from(const char *net, unsigned first, unsigned n)
{
	char host[64];

	for (unsigned i = first; i < first + n; i++) {
		snprintf(host, sizeof(host), "%s%x", net, i);
		rmtab_add(tab, host, "/a");
	}
}

/* Three quarters are a network's, seven eighths a site's. */
TEST(addresses_of_one_customer_leave_room_for_others)
{
	reopen(8, 8);
	rmtab_add(tab, "192.0.2.1", "/a");
	mount_from("2001:db8::", 1, 100);
	ck_assert_str_eq(list(), "192.0.2.1:/a 2001:db8::5f:/a "
			 "2001:db8::60:/a 2001:db8::61:/a 2001:db8::62:/a "
			 "2001:db8::63:/a 2001:db8::64:/a ");
	mount_from("2001:db8:0:1::", 1, 2);
	ck_assert_str_eq(list(), "192.0.2.1:/a 2001:db8::60:/a "
			 "2001:db8::61:/a 2001:db8::62:/a 2001:db8::63:/a "
			 "2001:db8::64:/a 2001:db8:0:1::1:/a "
			 "2001:db8:0:1::2:/a ");
	rmtab_add(tab, "2001:db8:1::1%lo", "/a");
	ck_assert_ptr_null(strstr(list(), "192.0.2.1:"));
	ck_assert_ptr_nonnull(strstr(list(), "2001:db8:1::1%lo:/a "));
}

TEST(malformed_lines_are_skipped)
{
	uint64_t bad = stats_sum_by_name("rmtab_bad_line");
	FILE *f;

	rmtab_close(tab);
	f = fopen(file, "w");
	fputs("h1 /a\nnonsense\n /b\nh2 relative\nh3 /c\\9\nh4 /\\000\n\n"
	      "h5 /d", f);
	for (int i = 0; i < 2000; i++)
		fputc('x', f);
	fputs("\nh6 /e", f);
	fclose(f);
	open_tab(100, 100);
	ck_assert_str_eq(list(), "h1:/a h6:/e ");
	ck_assert_uint_eq(stats_sum_by_name("rmtab_bad_line"), bad + 7);
}

TEST(a_file_that_can_not_be_read_is_an_error)
{
	struct rmtab_config c = { .path = dir, .max = 1, .max_host = 1 };

	rmtab_close(tab);
	tab = NULL;
	ck_assert_int_lt(rmtab_open(&c, &tab), 0);
}

TEST(without_a_file_it_is_kept_in_memory)
{
	struct rmtab_config c = { .max = 10, .max_host = 10 };

	rmtab_close(tab);
	ck_assert_int_eq(rmtab_open(&c, &tab), 0);
	rmtab_add(tab, "h", "/a");
	ck_assert_str_eq(list(), "h:/a ");
}
