/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks of a gannetd on the local file system, together with locks of this
 * process, and after it was killed.  In a private network: gannetd asks port
 * 111 for the lock manager of a client that waits, and this machine's rpcbind,
 * or another gannetd, would name one that refuses the lock.
 */
#include "tests/server/nlm_client.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/daemon_run.h"
#include "tests/server/net_space.h"
#include "tests/unit/runner.h"

static struct daemon_run d;
static char dir[96], path[112];
static char handle[64];
static struct nlm_process one, two;
static int file;			/* this process's descriptor */

static const struct nlm_bytes head = { 0, 10, true };
static const struct nlm_bytes head_shared = { 0, 10, false };
static const struct nlm_bytes all = { 0, 0, true };

static int uid(void)
{
	return geteuid() ? (int)geteuid() : USER_UID;
}

static void start_daemon(void)
{
	char export[160];

	snprintf(export, sizeof(export),
		 "%s 127.0.0.1(rw,insecure,no_root_squash)", dir);
	ck_assert(daemon_start(&d, (const char *const[]){
		"--export", export, "--grace", "2", NULL }));
	nlmc_open(d.tcp_port);
}

static void start_as(uid_t as)
{
	daemon_prepare(&d);
	snprintf(dir, sizeof(dir), "%s/export", d.dir);
	snprintf(path, sizeof(path), "%s/file", dir);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	ck_assert_int_ge(file, 0);
	if (as) {
		d.uid = as;
		ck_assert_int_eq(chown(d.dir, as, as) | chown(dir, as, as) |
				 chown(path, as, as), 0);
	}
	start_daemon();
	one = (struct nlm_process){ "c1", 11, 4, IPPROTO_TCP,
		nlmc_file(d.tcp_port, uid(), dir, handle) };
	two = one;
	two.host = "c2";
	two.svid = 22;
}

static void start(void)
{
	start_as(0);
}

/* As a user who owns the files. */
static void start_unprivileged(void)
{
	start_as(geteuid() ? 0 : USER_UID);
}

static void stop(void)
{
	nlmc_close();
	daemon_end(&d, SIGTERM);
	close(file);
	daemon_clean(&d);
}

/* Locks as a local program would.  0 or -errno. */
static int local_lock(short type, off_t off, off_t len)
{
	struct flock f = { .l_type = type, .l_whence = SEEK_SET,
			   .l_start = off, .l_len = len };

	return fcntl(file, F_SETLK, &f) < 0 ? -errno : 0;
}

static unsigned count_fds(void)
{
	char name[64];
	unsigned n = 0;
	DIR *fds;

	snprintf(name, sizeof(name), "/proc/%d/fd", (int)d.pid);
	fds = opendir(name);
	while (fds && readdir(fds))
		n++;
	if (fds)
		closedir(fds);
	return n;
}

#define SEEN_TESTS(world) \
TEST(local_processes_are_kept_out_##world) \
{ \
	ck_assert_uint_eq(nlmc_lock(&one, all, false), NLM4_GRANTED); \
	ck_assert_int_eq(local_lock(F_RDLCK, 5, 1), -EAGAIN); \
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED); \
	ck_assert_int_eq(local_lock(F_WRLCK, 0, 10), 0); \
	ck_assert_int_eq(local_lock(F_WRLCK, 10, 1), -EAGAIN); \
}

TEST_CASE(.setup = start, .teardown = stop);
SEEN_TESTS(by_root)

TEST(a_local_lock_is_in_the_way_and_a_waiter_gets_it_later)
{
	struct nlm_holder h;

	ck_assert_int_eq(local_lock(F_WRLCK, 4, 3), 0);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_test(&one, all, &h), NLM4_DENIED);
	ck_assert_uint_eq(h.bytes.off, 4);
	ck_assert_uint_eq(h.bytes.len, 3);
	ck_assert_uint_eq(h.svid, (uint32_t)getpid());
	ck_assert_uint_eq(nlmc_lock(&one, head, true), NLM4_BLOCKED);
	ck_assert_int_eq(local_lock(F_UNLCK, 0, 0), 0);
	EVENTUALLY(nlmc_test(&two, head, NULL) == NLM4_DENIED);
	ck_assert_int_eq(local_lock(F_RDLCK, 0, 1), -EAGAIN);
	ck_assert_uint_eq(nlmc_lock(&one, head, true), NLM4_GRANTED);
}

TEST(an_owner_is_not_in_its_own_way)
{
	struct nlm_holder h;

	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_test(&one, all, NULL), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_test(&two, all, NULL), NLM4_DENIED);
	ck_assert_int_eq(local_lock(F_WRLCK, 20, 3), 0);
	ck_assert_uint_eq(nlmc_test(&one, all, &h), NLM4_DENIED);
	ck_assert_uint_eq(h.bytes.off, 20);
}

TEST(owners_hold_by_themselves_and_their_descriptors_are_closed)
{
	unsigned before;

	ck_assert_uint_eq(nlmc_lock(&one, head_shared, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unlock(&one, all), NLM4_GRANTED);
	before = count_fds();
	ck_assert_uint_eq(nlmc_lock(&one, head_shared, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head_shared, false), NLM4_GRANTED);
	ck_assert_uint_eq(count_fds(), before + 2);
	ck_assert_uint_eq(nlmc_unlock(&one, all), NLM4_GRANTED);
	ck_assert_int_eq(local_lock(F_WRLCK, 0, 1), -EAGAIN);
	ck_assert_uint_eq(nlmc_unlock(&two, all), NLM4_GRANTED);
	ck_assert_int_eq(local_lock(F_WRLCK, 0, 1), 0);
	ck_assert_uint_le(count_fds(), before);
}

TEST(a_killed_server_grants_only_reclaims_for_a_while_and_to_no_two)
{
	const struct nlm_bytes tail = { 100, 10, true };

	/* No client had a lock before the first start, so the server has no
	 * grace period. */
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, tail, false), NLM4_GRANTED);
	nlmc_close();
	daemon_end(&d, SIGKILL);
	start_daemon();
	ck_assert_uint_eq(nlmc_lock(&two, head, false),
			  NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlmc_reclaim(&one, head), NLM4_GRANTED);
	ck_assert_int_eq(local_lock(F_WRLCK, 0, 1), -EAGAIN);
	/* Locks that were not reclaimed are free after the grace period. */
	EVENTUALLY(nlmc_lock(&two, head, false) == NLM4_DENIED);
	ck_assert_uint_eq(nlmc_lock(&one, tail, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_reclaim(&two, tail), NLM4_DENIED_GRACE_PERIOD);
}

TEST_CASE(.setup = start_unprivileged, .teardown = stop);
SEEN_TESTS(by_a_user)

/* Of 16 descriptors for locks, the least that an export has. */
TEST(a_client_with_too_many_descriptors_leaves_some_to_others)
{
	char export[160];

	snprintf(export, sizeof(export), "posix,max-files=16:%s "
		 "127.0.0.0/8(rw,insecure,no_root_squash)", dir);
	nlmc_close();
	daemon_end(&d, SIGTERM);
	ck_assert(daemon_start(&d, (const char *const[]){
		"--export", export, "--grace", "0", NULL }));
	nlmc_open(d.tcp_port);
	one.fh = two.fh = nlmc_file(d.tcp_port, uid(), dir, handle);
	for (one.svid = 1; one.svid <= 8; one.svid++)
		ck_assert_uint_eq(nlmc_lock(&one, head_shared, false),
				  NLM4_GRANTED);
	/* Another name of its address is the same client. */
	ck_assert_uint_eq(nlmc_lock(&one, head_shared, false),
			  NLM4_DENIED_NOLOCKS);
	ck_assert_uint_eq(nlmc_lock(&two, head_shared, false),
			  NLM4_DENIED_NOLOCKS);
	nlmc_from = "127.0.0.2";
	ck_assert_uint_eq(nlmc_lock(&two, head_shared, false), NLM4_GRANTED);
	nlmc_from = NULL;
	/* An owner that has a descriptor needs no other one; one that lets go
	 * makes room. */
	one.svid = 8;
	ck_assert_uint_eq(nlmc_lock(&one, (struct nlm_bytes){ 90, 1, true },
				    false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_unlock(&one, all), NLM4_GRANTED);
	one.svid = 9;
	ck_assert_uint_eq(nlmc_lock(&one, head_shared, false), NLM4_GRANTED);
}

TEST(a_file_that_can_be_opened_no_more_is_locked_among_clients)
{
	ck_assert_int_eq(fchmod(file, 0444), 0);
	ck_assert_uint_eq(nlmc_lock(&one, head, false), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head, false), NLM4_DENIED);
	ck_assert_uint_eq(nlmc_unlock(&one, head), NLM4_GRANTED);
	ck_assert_uint_eq(nlmc_lock(&two, head_shared, false), NLM4_GRANTED);
	ck_assert_int_eq(local_lock(F_WRLCK, 0, 1), -EAGAIN);
}

int main(void)
{
	return net_space_run_tests();
}
