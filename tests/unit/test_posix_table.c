/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of files: its records stay, however the server ends. */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/posix_fixture.h"
#include "vfs/posix/table/table.h"

static struct posix_table *table;

static void reopen(void)
{
	if (table)
		posix_table_close(table);
	assert_ok(posix_table_open(w.state, 7, &table));
}

static struct vfs_handle handle_no(unsigned i)
{
	struct vfs_handle h = { .len = 5, .data = { 'g' } };

	memcpy(h.data + 1, &i, sizeof(i));
	return h;
}

static int count_of(unsigned i)
{
	struct vfs_handle h = handle_no(i);
	struct posix_place p[16];

	return posix_table_find(table, &h, p, 16);
}

static bool is_at(unsigned i, unsigned parent, const char *name)
{
	struct vfs_handle h = handle_no(i), ph = handle_no(parent);
	struct posix_place p[16];
	int n = posix_table_find(table, &h, p, 16);

	for (int j = 0; j < n; j++)
		if (posix_handle_same(&p[j].parent, &ph) &&
		    strcmp(p[j].name.s, name) == 0)
			return true;
	return false;
}

static bool may_add(unsigned i, unsigned parent, const char *name, bool only)
{
	struct vfs_handle h = handle_no(i), ph = handle_no(parent);

	return (only ? posix_table_set(table, &h, &ph, name,
				       posix_table_moves(table)) :
		posix_table_add(table, &h, &ph, name)) == 0;
}

static void add(unsigned i, unsigned parent, const char *name, bool only)
{
	ck_assert(may_add(i, parent, name, only));
}

static void del(unsigned i, unsigned parent, const char *name)
{
	struct vfs_handle h = handle_no(i), ph = handle_no(parent);

	assert_ok(posix_table_del(table, &h, &ph, name));
}

static void forget(unsigned i)
{
	struct vfs_handle h = handle_no(i);

	assert_ok(posix_table_forget(table, &h));
}

static void begin(void)
{
	world_prepare(0, NULL);
	table = NULL;
	reopen();
}

static void end(void)
{
	posix_table_close(table);
	world_remove();
}

/* The last thing done to each file. */
static bool all_there(void)
{
	return count_of(1) == 2 && is_at(1, 100, "a") && is_at(1, 101, "b") &&
	       count_of(2) == 1 && is_at(2, 101, "new") && count_of(3) == 0 &&
	       count_of(4) == 1 && is_at(4, 100, "again") && count_of(5) == 0;
}

static void check_all(void)
{
	ck_assert(all_there());
}

static void change_all(void)
{
	add(1, 100, "a", false);
	add(1, 101, "b", false);
	add(1, 101, "b", false);
	add(2, 100, "old", false);
	add(2, 101, "new", true);
	add(3, 100, "x", false);
	forget(3);
	add(4, 100, "y", false);
	forget(4);
	add(4, 100, "again", false);
	add(5, 100, "z", false);
	del(5, 100, "z");
}

TEST_CASE(.setup = begin, .teardown = end);

TEST(changes_count_in_order_before_and_after_they_are_written)
{
	change_all();
	check_all();
	reopen();
	check_all();
	change_all();
	check_all();
	reopen();
	check_all();
}

/* A server that ends as by kill -9. */
static void serve_and_die(void)
{
	if (fork() == 0) {
		assert_ok(posix_table_open(w.state, 7, &table));
		change_all();
		_exit(0);
	}
	wait(NULL);
}

static long journal_size(void)
{
	char path[600];
	long size = 0;

	for (int i = 0; i < 2; i++) {
		struct stat st;

		snprintf(path, sizeof(path), "%s/posix-%016x.journal.%d",
			 w.state, 7, i);
		if (stat(path, &st) == 0)
			size += st.st_size;
	}
	return size;
}

/* The head and change_all()'s records, except the empty one. */
#define FULL	(16 + 11 * 14 + 9 * 10 + 2 * 5 + \
		 6 * 1 + 2 * 3 + 5)

static void wipe(void)
{
	static const char *const end[] = { "journal.0", "journal.1", "table",
					   "table-lock" };
	char path[600];

	for (unsigned i = 0; i < ARRAY_SIZE(end); i++) {
		snprintf(path, sizeof(path), "%s/posix-%016x.%s", w.state, 7,
			 end[i]);
		unlink(path);
	}
}

/* Leaves all records in the journal: again, if the machine is so slow that
 * the server came to write them into the database. */
static void change_and_die(void)
{
	for (int i = 0; i < 20; i++) {
		wipe();
		serve_and_die();
		if (journal_size() == FULL)
			return;
	}
	ck_abort_msg("the journal has %ld bytes", journal_size());
}

static void append(const void *data, size_t len)
{
	char path[600];
	int fd;

	snprintf(path, sizeof(path), "%s/posix-%016x.journal.0", w.state, 7);
	fd = open(path, O_WRONLY | O_APPEND);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, data, len), len);
	close(fd);
}

static size_t load_journal(char *buf, size_t size)
{
	char path[600];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/posix-%016x.journal.0", w.state, 7);
	fd = open(path, O_RDONLY);
	n = read(fd, buf, size);
	ck_assert_int_gt(n, 0);
	close(fd);
	return n;
}

static void cut(long size)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/posix-%016x.journal.0", w.state, 7);
	assert_ok(truncate(path, size));
}

TEST(a_killed_servers_journal_is_read)
{
	posix_table_close(table);
	table = NULL;
	change_and_die();
	ck_assert_int_gt(journal_size(), 100);
	reopen();
	check_all();
	ck_assert_int_eq(journal_size(), 0);
}

TEST(a_torn_record_ends_the_journal)
{
	static const char garbage[1000] = { 1, 2, 3 };

	posix_table_close(table);
	table = NULL;
	change_and_die();
	append(garbage, sizeof(garbage));
	reopen();
	check_all();

	posix_table_close(table);
	table = NULL;
	change_and_die();
	cut(journal_size() - 1);	/* the last one did not make it */
	reopen();
	ck_assert_int_eq(count_of(1), 2);
	ck_assert_int_eq(count_of(5), 1);

	posix_table_close(table);
	table = NULL;
	append(garbage, sizeof(garbage));
	reopen();
	ck_assert_int_eq(count_of(1), 2);
}

/* As on a full disk, no file grows beyond @size. */
static void allow_files(rlim_t size)
{
	const struct rlimit lim = { size, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	assert_ok(setrlimit(RLIMIT_FSIZE, &lim));
}

/* The disk is full for a while, in the middle of a record. */
static void be_full_and_die(void)
{
	assert_ok(posix_table_open(w.state, 7, &table));
	add(1, 100, "a", false);
	allow_files(journal_size() + 20);
	add(2, 100, "does-not-fit", false);
	allow_files(RLIM_INFINITY);
	add(3, 100, "fits again", false);
	_exit(count_of(2) == 1 ? 0 : 1);
}

TEST(a_journal_that_was_full_goes_on_when_there_is_room)
{
	int status;

	posix_table_close(table);
	table = NULL;
	if (fork() == 0)
		be_full_and_die();
	wait(&status);
	ck_assert_int_eq(status, 0);
	reopen();
	ck_assert(is_at(1, 100, "a"));
	ck_assert(is_at(3, 100, "fits again"));
}

/* A server with files of @size at most does @something, which asserts nothing
 * itself: that would be written to a file. */
static void serve_full(rlim_t size, bool (*something)(void))
{
	int status;

	if (fork() == 0) {
		allow_files(size);
		_exit(posix_table_open(w.state, 7, &table) || !something());
	}
	wait(&status);
	ck_assert_int_eq(status, 0);
}

static bool find_and_add(void)
{
	return is_at(1, 100, "a") && may_add(2, 100, "waits", false) &&
	       is_at(2, 100, "waits");
}

TEST(a_table_can_be_opened_while_its_disk_is_full)
{
	add(1, 100, "a", false);
	posix_table_close(table);
	table = NULL;
	serve_full(0, find_and_add);
	reopen();
	ck_assert(is_at(1, 100, "a"));
}

/* Has room for the journals, not for the database. */
#define JOURNALS_ONLY	4096

static bool find_add_and_die(void)
{
	return all_there() && may_add(6, 100, "later", false);
}

static bool find_add_and_end(void)
{
	bool ok = all_there() && is_at(6, 100, "later") &&
		  may_add(7, 100, "latest", false);

	posix_table_close(table);
	return ok;
}

TEST(a_table_with_changes_in_both_journals_can_be_opened_as_well)
{
	posix_table_close(table);
	table = NULL;
	change_and_die();
	serve_full(JOURNALS_ONLY, find_add_and_die);
	serve_full(JOURNALS_ONLY, find_add_and_end);
	ck_assert_int_gt(journal_size(), FULL);
	reopen();
	check_all();
	ck_assert(is_at(6, 100, "later"));
	ck_assert(is_at(7, 100, "latest"));
	ck_assert_int_eq(journal_size(), 0);
}

/* Journal 1 gets the records of journal 0, which keeps its head: the disk had
 * no room for more, and then it had for the next journal. */
static void move_records(void)
{
	char path[600], records[4096];
	size_t len = load_journal(records, sizeof(records));
	uint64_t seq;
	int fd;

	memcpy(&seq, records + 8, sizeof(seq));
	seq++;
	memcpy(records + 8, &seq, sizeof(seq));
	snprintf(path, sizeof(path), "%s/posix-%016x.journal.1", w.state, 7);
	fd = open(path, O_WRONLY | O_TRUNC);
	ck_assert_int_eq(write(fd, records, len), len);
	close(fd);
	cut(16);
}

TEST(a_journal_without_records_is_cleared_before_it_is_used_again)
{
	posix_table_close(table);
	table = NULL;
	change_and_die();
	move_records();
	serve_full(RLIM_INFINITY, find_add_and_die);
	reopen();
	check_all();
	ck_assert(is_at(6, 100, "later"));
}

static bool add_many(void)
{
	char name[32];
	bool ok = true;

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		ok = ok && may_add(i, 5000, name, false);
	}
	return ok;
}

static int count_found(void)
{
	int n = 0;

	for (int i = 0; i < 1000; i++)
		n += count_of(i);
	return n;
}

static bool add_many_and_end(void)
{
	char path[600];
	bool ok = add_many();

	snprintf(path, sizeof(path), "%s/log", w.state);
	ok = ok && freopen(path, "w", stderr);
	posix_table_close(table);
	return ok;
}

TEST(changes_that_a_full_disk_takes_neither_way_are_counted_at_the_end)
{
	char path[600], line[512] = "";
	unsigned lost = 0;
	FILE *log;

	posix_table_close(table);
	table = NULL;
	serve_full(JOURNALS_ONLY, add_many_and_end);
	snprintf(path, sizeof(path), "%s/log", w.state);
	log = fopen(path, "r");
	while (fgets(line, sizeof(line), log) && lost == 0)
		if (strstr(line, "stale from now on"))
			sscanf(strstr(line, "files: "), "files: %u", &lost);
	fclose(log);
	unlink(path);
	reopen();
	ck_assert_int_gt(lost, 0);
	ck_assert_int_lt(lost, 1000);
	ck_assert_int_eq(count_found(), 1000 - lost);
}

static bool mount_small_tmpfs(void)
{
	if (unshare(CLONE_NEWNS) == 0 &&
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("none", w.state, "tmpfs", 0, "size=16m") == 0)
		return true;
	printf("skipped: no tmpfs can be mounted\n");
	return false;
}

static void fill_disk(const char *path)
{
	static const char page[4096];
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	while (write(fd, page, sizeof(page)) > 0)
		;
	ck_assert_int_eq(errno, ENOSPC);
	close(fd);
}

/* Needs root. */
TEST(a_full_disk_has_room_for_the_journal)
{
	char path[600];

	posix_table_close(table);
	table = NULL;
	if (mount_small_tmpfs()) {
		snprintf(path, sizeof(path), "%s/filler", w.state);
		reopen();
		fill_disk(path);
		ck_assert(add_many());
		reopen();
		ck_assert_int_eq(count_found(), 1000);
		ck_assert_int_gt(journal_size(), 0);
		unlink(path);
		reopen();
		ck_assert_int_eq(count_found(), 1000);
		ck_assert_int_eq(journal_size(), 0);
		posix_table_close(table);
		table = NULL;
		assert_ok(umount2(w.state, MNT_DETACH));
	}
	reopen();
}

TEST(every_length_of_a_journal_is_read_as_far_as_it_goes)
{
	posix_table_close(table);
	table = NULL;
	for (long size = FULL; size >= 0; size -= 13) {
		change_and_die();
		cut(size);
		reopen();
		posix_table_close(table);
		table = NULL;
	}
	reopen();
}

/* In a power cut a file system can keep the synced database, but lose the
 * clearing of the journal after it. */
TEST(an_old_journal_that_comes_back_changes_nothing)
{
	char old[4096];
	size_t len;

	posix_table_close(table);
	table = NULL;
	change_and_die();
	len = load_journal(old, sizeof(old));
	reopen();			/* its records are in the database */
	add(2, 102, "newest", true);
	add(3, 102, "made since", true);
	forget(1);
	for (int i = 0; i < 3; i++) {
		posix_table_close(table);
		table = NULL;
		cut(0);
		append(old, len);
		reopen();
		ck_assert_int_eq(count_of(1), 0);
		ck_assert_int_eq(count_of(2), 1);
		ck_assert(is_at(2, 102, "newest"));
		ck_assert(is_at(3, 102, "made since"));
	}
	/* A killed server's later records count all the same. */
	posix_table_close(table);
	table = NULL;
	serve_and_die();
	reopen();
	ck_assert(is_at(2, 101, "new"));
}

TEST(many_files_and_long_names_fit)
{
	char name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	for (unsigned i = 0; i < 30000; i++) {
		memcpy(name, &(uint32_t){ i | 0x01010101 }, 4);
		add(i, i / 100, name, i % 7 == 0);
	}
	reopen();
	for (unsigned i = 0; i < 30000; i += 1001)
		ck_assert_int_eq(count_of(i), 1);
}

TEST(an_unusable_state_directory_is_named)
{
	const struct posix_options options = { .table = true };
	struct vfs_config c = { .path = w.dir, .state_dir = "/no/such/state",
				.options = &options };
	char *why = NULL;
	struct vfs_fs *fs;

	c.why = &why;
	ck_assert_int_eq(posix_vfs_ops.mount(&c, &fs), -ENOENT);
	ck_assert_ptr_nonnull(why);
	ck_assert_ptr_nonnull(strstr(why, "/no/such/state: No such file"));
	free(why);
}

/* A local process that renames a file again and again leaves old places. */
TEST(the_last_of_many_places_is_kept)
{
	char name[16];

	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "f%d", 99 - i);
		add(1, 2, name, false);
		ck_assert(is_at(1, 2, name));
		if (i % 10 == 0)
			reopen();
	}
	ck_assert_int_eq(count_of(1), 16);
}

int main(void)
{
	return world_run();
}
