/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two gannetds of one CephFS, in the cluster that CEPH_CONF names
 * (tests/ceph/run): what a client of one has is good at the other.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/server/daemon_run.h"
#include "tests/server/nlm_client.h"
#include "tests/unit/runner.h"

/* Seconds: for a restart and a few calls. */
#define GRACE		"10"

struct server {
	struct daemon_run d;
	struct nfs_client c;
	nfs_fh3 top;
	char handle[64];
};

static struct server a, b;

static nfs_fh3 mount_top(struct server *s)
{
	nfs_fh3 fh = { .data.data_val = s->handle };
	char top_dir[] = "/";
	struct nfs_client m;
	mountres3 r;

	nfs_client_open(&m, s->d.tcp_port, MOUNT_PROGRAM, MOUNT_V3, 0);
	ck_assert_int_eq(nfs_try(&m, rpc_mount3_mnt_async, top_dir, &r), 0);
	ck_assert_int_eq(r.fhs_status, MNT3_OK);
	fh.data.data_len = r.mountres3_u.mountinfo.fhandle.fhandle3_len;
	memcpy(s->handle, r.mountres3_u.mountinfo.fhandle.fhandle3_val,
	       fh.data.data_len);
	nfs_client_close(&m);
	return fh;
}

static void start_server(struct server *s)
{
	char modules[512], cwd[400];

	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	snprintf(modules, sizeof(modules), "%s/vfs/ceph", cwd);
	ck_assert(daemon_start(&s->d, (const char *const[]){
		"--backend-dir", modules, "--backend", "ceph", "--export",
		"ceph,grace=" GRACE ":/ 127.0.0.1(rw,insecure,no_root_squash)",
		"--grace", GRACE, NULL }));
	s->top = mount_top(s);
	nfs_client_open(&s->c, s->d.tcp_port, NFS_PROGRAM, NFS_V3, 0);
}

static void end_server(struct server *s, int sig)
{
	nfs_client_close(&s->c);
	daemon_end(&s->d, sig);
}

static void start(void)
{
	/* Servers of a test that failed do not come back. */
	ck_assert_int_eq(system("rados -p meta -N gannet rm servers "
				"2>/dev/null || :"), 0);
	daemon_prepare(&a.d);
	daemon_prepare(&b.d);
	start_server(&a);
	start_server(&b);
}

static void stop(void)
{
	end_server(&a, SIGTERM);
	end_server(&b, SIGTERM);
	daemon_clean(&a.d);
	daemon_clean(&b.d);
}

TEST_CASE(.setup = start, .teardown = stop, .timeout = 120);

/* ---- calls, each to the server that is named */

/* The handle lasts as long as the test. */
static nfs_fh3 make_file(struct server *s, const char *name)
{
	static char handle[64];
	nfs_fh3 fh = { .data.data_val = handle };
	CREATE3args args = { .where = { s->top, (char *)(uintptr_t)name } };
	CREATE3res r;

	nfs_call(&s->c, create, &args, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	fh.data.data_len =
		r.CREATE3res_u.resok.obj.post_op_fh3_u.handle.data.data_len;
	memcpy(handle,
	       r.CREATE3res_u.resok.obj.post_op_fh3_u.handle.data.data_val,
	       fh.data.data_len);
	return fh;
}

static nfsstat3 status_of(struct server *s, nfs_fh3 fh)
{
	GETATTR3args args = { fh };
	GETATTR3res r;

	nfs_call(&s->c, getattr, &args, &r);
	return r.status;
}

static void move(struct server *s, const char *from, const char *to)
{
	RENAME3args args = { { s->top, (char *)(uintptr_t)from },
			     { s->top, (char *)(uintptr_t)to } };
	RENAME3res r;

	nfs_call(&s->c, rename, &args, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
}

static nfsstat3 remove_file(struct server *s, const char *name)
{
	REMOVE3args args = { { s->top, (char *)(uintptr_t)name } };
	REMOVE3res r;

	nfs_call(&s->c, remove, &args, &r);
	return r.status;
}

/* ---- handles */

TEST(a_handle_of_one_server_is_good_at_the_other)
{
	nfs_fh3 fh = make_file(&a, "moves");

	ck_assert(nfs_same_fh(a.top, b.top));
	ck_assert_int_eq(status_of(&b, fh), NFS3_OK);
	move(&a, "moves", "moved");
	ck_assert_int_eq(status_of(&b, fh), NFS3_OK);
	ck_assert_int_eq(remove_file(&a, "moved"), NFS3_OK);
	ck_assert_int_eq(status_of(&b, fh), NFS3ERR_STALE);
}

TEST(with_another_key_the_handles_of_before_are_refused)
{
	nfs_fh3 fh = make_file(&a, "before");

	ck_assert_int_eq(system("rados -p meta -N gannet rm handle-key"), 0);
	ck_assert_int_eq(status_of(&b, fh), NFS3_OK);
	end_server(&b, SIGTERM);
	start_server(&b);
	ck_assert_int_eq(status_of(&b, fh), NFS3ERR_BADHANDLE);
	/* The other one learns of it when it starts, too. */
	ck_assert_int_eq(status_of(&a, fh), NFS3_OK);
	end_server(&a, SIGTERM);
	start_server(&a);
	ck_assert(nfs_same_fh(a.top, b.top));
	ck_assert_int_eq(remove_file(&a, "before"), NFS3_OK);
}

/* ---- locks */

static const struct nlm_bytes head = { 0, 10, true };

static struct nlm_process process(const char *host, uint32_t svid, nfs_fh3 fh)
{
	return (struct nlm_process){ host, svid, 4, IPPROTO_TCP, fh };
}

static uint32_t lock_at(struct server *s, const struct nlm_process *p,
			bool reclaim)
{
	uint32_t status;

	nlmc_open(s->d.tcp_port);
	status = reclaim ? nlmc_reclaim(p, head) : nlmc_lock(p, head, false);
	nlmc_close();
	return status;
}

static uint32_t unlock_at(struct server *s, const struct nlm_process *p)
{
	uint32_t status;

	nlmc_open(s->d.tcp_port);
	status = nlmc_unlock(p, head);
	nlmc_close();
	return status;
}

static void only_the_owner_gets_it_again(const struct nlm_process *owner,
					 const struct nlm_process *other)
{
	start_server(&a);
	/* B had no clients with locks: it has no grace period of its own. */
	ck_assert_uint_eq(lock_at(&b, other, false), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(lock_at(&a, owner, true), NLM4_GRANTED);
	ck_assert_uint_eq(lock_at(&b, other, false), NLM4_DENIED_GRACE_PERIOD);
	EVENTUALLY(lock_at(&b, other, false) == NLM4_DENIED);
	ck_assert_uint_eq(unlock_at(&a, owner), NLM4_GRANTED);
	ck_assert_uint_eq(lock_at(&b, other, false), NLM4_GRANTED);
	ck_assert_uint_eq(unlock_at(&b, other), NLM4_GRANTED);
}

TEST(a_lock_of_a_killed_server_is_its_owners_alone_in_the_grace_period)
{
	nfs_fh3 fh = make_file(&a, "killed");
	struct nlm_process one = process("c1", 11, fh);
	struct nlm_process two = process("c2", 22, fh);

	ck_assert_uint_eq(lock_at(&a, &one, false), NLM4_GRANTED);
	ck_assert_uint_eq(lock_at(&b, &two, false), NLM4_DENIED);
	/* The cluster keeps it for the dead one. */
	end_server(&a, SIGKILL);
	only_the_owner_gets_it_again(&one, &two);
}

TEST(so_is_a_lock_of_one_that_was_told_to_end)
{
	nfs_fh3 fh = make_file(&a, "ended");
	struct nlm_process one = process("c1", 11, fh);
	struct nlm_process two = process("c2", 22, fh);

	ck_assert_uint_eq(lock_at(&a, &one, false), NLM4_GRANTED);
	end_server(&a, SIGTERM);
	ck_assert_uint_eq(lock_at(&b, &two, false), NLM4_DENIED_GRACE_PERIOD);
	only_the_owner_gets_it_again(&one, &two);
}

TEST(a_server_that_starts_in_the_grace_period_of_another_knows_of_it)
{
	nfs_fh3 fh = make_file(&a, "late");
	struct nlm_process one = process("c1", 11, fh);
	struct nlm_process two = process("c2", 22, fh);

	ck_assert_uint_eq(lock_at(&a, &one, false), NLM4_GRANTED);
	end_server(&b, SIGTERM);
	end_server(&a, SIGTERM);
	start_server(&b);
	ck_assert(daemon_has_logged(&b.d, "there is no grace period"));
	ck_assert_uint_eq(lock_at(&b, &two, false), NLM4_DENIED_GRACE_PERIOD);
	only_the_owner_gets_it_again(&one, &two);
}

TEST(a_killed_server_without_locks_keeps_nobody_waiting)
{
	nfs_fh3 fh = make_file(&a, "free");
	struct nlm_process two = process("c2", 22, fh);

	end_server(&a, SIGKILL);
	start_server(&a);
	ck_assert_uint_eq(lock_at(&b, &two, false), NLM4_GRANTED);
	ck_assert_uint_eq(unlock_at(&b, &two), NLM4_GRANTED);
}
