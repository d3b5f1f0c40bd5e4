/* SPDX-License-Identifier: BSD-2-Clause */
/* manage_gids: calls run with the groups of this system's name service. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "exports/export_priv.h"
#include "lib/clock.h"
#include "tests/server/daemon_run.h"
#include "tests/server/nfs_client.h"
#include "tests/server/nlm_raw.h"
#include "tests/unit/runner.h"

/* A user is in groups 2000 to 2019; its calls name the first 16. */
#define FIRST	2000
#define LAST	2019
#define WIRE	16

#define PLAIN	"/mem 127.0.0.1(rw,insecure,no_root_squash)"
#define MANAGED	"/mem 127.0.0.1(rw,insecure,no_root_squash,manage_gids)"

static _Atomic bool is_hung, is_down;
static _Atomic unsigned asked;

static int fake_groups(uint32_t uid, uint32_t **gids, uint32_t *n)
{
	asked++;
	WAIT_WHILE(is_hung);
	if (is_down)
		return -1;
	*n = LAST - FIRST + 1;
	*gids = calloc(*n, sizeof(**gids));
	for (uint32_t i = 0; i < *n; i++)
		(*gids)[i] = FIRST + i;
	return 1;
}

static void claim_groups(struct nfs_client *c, uint32_t uid)
{
	uint32_t gids[WIRE];

	for (uint32_t i = 0; i < WIRE; i++)
		gids[i] = FIRST + i;
	rpc_set_auth(c->rpc, libnfs_authunix_create("client", uid, 100, WIRE,
						    gids));
}

static void setup(void)
{
	nfs_setup();
	srv.exports->resolver.groups = fake_groups;
	is_hung = false;
	asked = 0;
	claim_groups(&user, USER_UID);
}

/* Only group LAST gets rights on @fh. */
static void give_to_last(nfs_fh3 fh)
{
	SETATTR3args a = { .object = fh };
	SETATTR3res r;

	a.new_attributes.mode.set_it = 1;
	a.new_attributes.mode.set_mode3_u.mode = 0070;
	a.new_attributes.gid.set_it = 1;
	a.new_attributes.gid.set_gid3_u.gid = LAST;
	nfs_call(&root, setattr, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
}

static nfsstat3 read_as(struct nfs_client *c, nfs_fh3 fh)
{
	READ3args a = { .file = fh, .count = 4 };
	READ3res r;

	nfs_call(c, read, &a, &r);
	return r.status;
}

static nfsstat3 read_as_user(nfs_fh3 fh)
{
	return read_as(&user, fh);
}

static mountstat3 mount_as_user(const char *path)
{
	struct nfs_client c;
	mountres3 r;

	nfs_client_open(&c, srv.port, MOUNT_PROGRAM, MOUNT_V3, USER_UID);
	claim_groups(&c, USER_UID);
	ck_assert_int_eq(nfs_try(&c, rpc_mount3_mnt_async,
				 (char *)(uintptr_t)path, &r), 0);
	nfs_client_close(&c);
	return r.fhs_status;
}

TEST_CASE(.setup = setup, .teardown = nfs_teardown);

TEST(a_user_in_20_groups_is_in_the_20th_with_manage_gids_only)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "data");
	nfs_fh3 dir = nfs_make_dir(top, "d");

	nfs_make_dir(dir, "below");
	give_to_last(fh);
	give_to_last(dir);
	ck_assert_int_eq(read_as_user(fh), NFS3ERR_ACCES);
	ck_assert_int_eq(mount_as_user("/mem/d/below"), MNT3ERR_ACCES);
	ck_assert_uint_eq(asked, 0);
	harness_publish(&srv, MANAGED);
	ck_assert_int_eq(read_as_user(fh), NFS3_OK);
	ck_assert_int_eq(read_as_user(fh), NFS3_OK);
	ck_assert_int_eq(mount_as_user("/mem/d/below"), MNT3_OK);
	ck_assert_uint_eq(asked, 1);
	harness_publish(&srv, PLAIN);
	ck_assert_int_eq(read_as_user(fh), NFS3ERR_ACCES);
}

/* The share of the workers for it has one here. */
TEST(a_hung_name_service_stops_no_other_users)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "data");
	GETATTR3args a = { .object = fh };
	GETATTR3res res, r;
	struct nfs_wait w = { .c = &user, .res = &res, .size = sizeof(res),
			      .keep = nfs_keep_none };
	struct nfs_client other;
	uint64_t began;

	srv.exports->resolver.slow_ms = 100;
	srv.exports->resolver.quiet_s = 0;
	harness_publish(&srv, MANAGED);
	is_hung = true;
	ck_assert_int_eq(rpc_nfs3_getattr_async(user.rpc, nfs_done, &a, &w),
			 0);
	nfs_client_open(&other, srv.port, NFS_PROGRAM, NFS_V3, 1001);
	while (asked == 0)
		ck_assert_int_eq(rpc_service(user.rpc,
				 rpc_which_events(user.rpc)), 0);
	/* The answer takes longer than makes the service doubtful. */
	pause_on_purpose(110 * 1000);
	began = clock_ns();
	nfs_call(&other, getattr, &a, &r);
	ck_assert_int_eq(r.status, NFS3ERR_JUKEBOX);
	ck_assert_uint_lt(clock_ns() - began, 2ull * NS_PER_S);
	ck_assert_int_eq(read_as(&root, fh), NFS3_OK);
	ck_assert(!w.done);
	is_hung = false;
	ck_assert_int_eq(nfs_wait(&w), RPC_STATUS_SUCCESS);
	ck_assert_int_eq(res.status, NFS3ERR_JUKEBOX);
	srv.exports->resolver.slow_ms = 60000;
	harness_publish(&srv, MANAGED);
	EVENTUALLY(read_as(&other, fh) != NFS3ERR_JUKEBOX);
	nfs_client_close(&other);
}

static void start_locks(const struct harness_config *config)
{
	SETATTR3args a = { 0 };
	SETATTR3res r;

	nlmr_start(config);
	a.object = nlmr.file;
	a.new_attributes.uid.set_it = 1;
	a.new_attributes.uid.set_uid3_u.uid = nlmr.uid = USER_UID;
	nfs_call(&root, setattr, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	srv.exports->resolver.groups = fake_groups;
	/* Answers about users are forgotten at once. */
	srv.exports->resolver.users_stale_s = -1;
	is_down = false;
	harness_publish(&srv, MANAGED);
}

static void setup_locks(void)
{
	start_locks(NULL);
}

static void setup_grace(void)
{
	const struct harness_config config = { .nlm = { .grace_s = 600 } };

	start_locks(&config);
}

TEST_CASE(.setup = setup_grace, .teardown = nlmc_end);

TEST(an_owner_of_a_file_reclaims_its_lock_while_the_name_service_is_down)
{
	is_down = true;
	nlmr_reclaim(0, 1);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	close(nlmr.fd);
}

TEST_CASE(.setup = setup_locks, .teardown = nlmc_end);

TEST(locks_are_given_back_while_the_name_service_is_down)
{
	nlmr_lock(0, 1);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	is_down = true;
	harness_publish(&srv, MANAGED);
	nlmr_lock(0, 2);
	ck_assert_uint_eq(nlmr_status(), NLM4_DENIED_GRACE_PERIOD);
	nlmr_unlock(0, 1);
	ck_assert_uint_eq(nlmr_status(), NLM4_GRANTED);
	close(nlmr.fd);
}

TEST_CASE(.setup = NULL);

/* The modules of the name service run under the filter of system calls. */
TEST(a_confined_gannetd_asks_the_name_service)
{
	struct daemon_run d;
	struct nfs_client c;
	mountres3 r;

	daemon_prepare(&d);
	ck_assert(daemon_start(&d, (const char *const[]){ "--manage-gids",
		"--export", "mem:/m 127.0.0.1(rw,insecure)", NULL }));
	nfs_client_open(&c, d.tcp_port, MOUNT_PROGRAM, MOUNT_V3, 1);
	ck_assert_int_eq(nfs_try(&c, rpc_mount3_mnt_async, "/m", &r), 0);
	ck_assert_int_eq(r.fhs_status, MNT3_OK);
	nfs_client_close(&c);
	daemon_end(&d, SIGTERM);
	daemon_clean(&d);
}
