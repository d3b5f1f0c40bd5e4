/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two gannetds of one CephFS, in the cluster that CEPH_CONF names
 * (tests/ceph/run): handles, locks and data of one are good at the other.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/server/daemon_run.h"
#include "tests/server/nlm_client.h"
#include "tests/unit/runner.h"

/* Seconds: for a restart and a few calls.  The others' is longer, since that of
 * the server that starts begins later. */
#define GRACE		"10"
#define ALL_GRACE	"13"

struct server {
	struct daemon_run d;		/* tcp_port 0: it has not run yet */
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

/* Starts it, or its successor: with the same state and address. */
static void start_daemon(struct server *s)
{
	char cwd[400], port[8], show[96];

	snprintf(port, sizeof(port), "%u", s->d.tcp_port);
	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	snprintf(s->d.settings, sizeof(s->d.settings), "[exports]\n"
		 "backend-dir = %s/modules/ceph\n", cwd);
	if (daemon_start(&s->d, (const char *const[]){
		"--port", port, "--backend", "ceph", "--export",
		"ceph,mounts=3,grace=" ALL_GRACE
			":/ 127.0.0.1(rw,insecure,no_root_squash)",
		"--grace", GRACE, NULL }))
		return;
	snprintf(show, sizeof(show), "cat %s/log", s->d.dir);
	ck_assert_msg(system(show) < 0, "the server did not start");
}

static void start_server(struct server *s)
{
	start_daemon(s);
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
	srandom((unsigned)getpid());
	daemon_prepare(&a.d);
	daemon_prepare(&b.d);
	daemon_keep_port(&a.d);
	daemon_keep_port(&b.d);
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

static nfsstat3 rename_file(struct server *s, const char *from, const char *to)
{
	RENAME3args args = { { s->top, (char *)(uintptr_t)from },
			     { s->top, (char *)(uintptr_t)to } };
	RENAME3res r;

	nfs_call(&s->c, rename, &args, &r);
	return r.status;
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
	ck_assert_int_eq(rename_file(&a, "moves", "moved"), NFS3_OK);
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
	/* The other one also learns of it when it starts. */
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
	/* B had no clients with locks, so it has no grace period. */
	ck_assert_uint_eq(lock_at(&b, other, false), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(lock_at(&a, owner, true), NLM4_GRANTED);
	ck_assert_uint_eq(lock_at(&b, other, false), NLM4_DENIED_GRACE_PERIOD);
	EVENTUALLY(lock_at(&b, other, false) == NLM4_DENIED);
	/* A's grace period can end later than B's. */
	EVENTUALLY(unlock_at(&a, owner) == NLM4_GRANTED);
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

TEST(a_lock_of_a_server_that_ended_is_its_owners_alone_too)
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

/* As if the server had been away for longer than its session lasts. */
static void end_sessions(void)
{
	ck_assert_int_eq(system("\"$srcdir\"/tests/ceph/cluster evict "
				"\"$(dirname \"$CEPH_CONF\")\""), 0);
}

static void can_not_be_reclaimed(const struct nlm_process *p)
{
	start_server(&a);
	ck_assert_uint_eq(lock_at(&a, p, true), NLM4_DENIED_NOLOCKS);
	ck_assert(daemon_has_logged(&a.d, "they can't be reclaimed"));
	/* Nor by a successor of that one. */
	end_server(&a, SIGKILL);
	start_server(&a);
	ck_assert_uint_eq(lock_at(&a, p, true), NLM4_DENIED_NOLOCKS);
}

TEST(a_lock_that_another_client_may_have_had_is_not_reclaimed)
{
	nfs_fh3 fh = make_file(&a, "lapsed");
	struct nlm_process one = process("c1", 11, fh);
	struct nlm_process two = process("c2", 22, fh);

	ck_assert_uint_eq(lock_at(&a, &one, false), NLM4_GRANTED);
	end_server(&a, SIGKILL);
	end_sessions();
	EVENTUALLY(lock_at(&b, &two, false) == NLM4_GRANTED);
	ck_assert_uint_eq(unlock_at(&b, &two), NLM4_GRANTED);
	can_not_be_reclaimed(&one);
}

TEST(a_lock_is_not_reclaimed_when_the_others_have_waited_long_enough)
{
	nfs_fh3 fh = make_file(&a, "slow");
	struct nlm_process one = process("c1", 11, fh);
	struct nlm_process two = process("c2", 22, fh);

	ck_assert_uint_eq(lock_at(&a, &one, false), NLM4_GRANTED);
	end_server(&a, SIGTERM);
	EVENTUALLY(lock_at(&b, &two, false) == NLM4_GRANTED);
	ck_assert_uint_eq(unlock_at(&b, &two), NLM4_GRANTED);
	can_not_be_reclaimed(&one);
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

/* ---- data over a failover */

#define BLOCK		4096u
#define BATCH		8u
#define BATCHES		150u
#define KILLS		3

/* Unstable WRITEs and COMMITs, as a client does them that loses nothing. */
struct load {
	pthread_t	thread;
	struct server  *s;
	nfs_fh3		fh;
	uint64_t	verf[BATCH];	/* of the batch's WRITEs */
	atomic_uint	done;		/* batches that are committed */
	sem_t		back;		/* the server is */
};

static int write_block(struct load *l, unsigned i, uint64_t *verf)
{
	char data[BLOCK];
	WRITE3args args = { .file = l->fh, .offset = i * (offset3)BLOCK,
			    .count = BLOCK, .stable = UNSTABLE,
			    .data = { BLOCK, data } };
	WRITE3res r;
	int status;

	memset(data, (int)i + 1, BLOCK);
	status = nfs_try(&l->s->c, rpc_nfs3_write_async, &args, &r);
	if (status != RPC_STATUS_SUCCESS || r.status != NFS3_OK)
		return status != RPC_STATUS_SUCCESS ? -ECONNRESET : -EAGAIN;
	ck_assert_uint_eq(r.WRITE3res_u.resok.count, BLOCK);
	memcpy(verf, r.WRITE3res_u.resok.verf, sizeof(*verf));
	return 0;
}

static int commit_all(struct load *l, uint64_t *verf)
{
	COMMIT3args args = { .file = l->fh };
	COMMIT3res r;
	int status = nfs_try(&l->s->c, rpc_nfs3_commit_async, &args, &r);

	if (status != RPC_STATUS_SUCCESS || r.status != NFS3_OK)
		return status != RPC_STATUS_SUCCESS ? -ECONNRESET : -EAGAIN;
	memcpy(verf, r.COMMIT3res_u.resok.verf, sizeof(*verf));
	return 0;
}

/* After a call that failed. */
static void go_on(struct load *l, int err)
{
	if (err == -EAGAIN) {		/* JUKEBOX */
		/* As a client does that is told to come again. */
		pause_on_purpose(10000);
		return;
	}
	wait_sem(&l->back);
	nfs_client_close(&l->s->c);
	nfs_client_open(&l->s->c, l->s->d.tcp_port, NFS_PROGRAM, NFS_V3, 0);
}

/* False: a server lost written data, and all of it has to be sent again. */
static bool run_batch(struct load *l, unsigned first)
{
	uint64_t verf = 0;
	int err;

	for (unsigned i = 0; i < BATCH; i++)
		while ((err = write_block(l, first + i, &l->verf[i])) < 0)
			go_on(l, err);
	while ((err = commit_all(l, &verf)) < 0)
		go_on(l, err);
	for (unsigned i = 0; i < BATCH; i++)
		if (l->verf[i] != verf)
			return false;
	return true;
}

static void *run_load(void *arg)
{
	struct load *l = arg;

	while (atomic_load(&l->done) < BATCHES)
		if (run_batch(l, atomic_load(&l->done) * BATCH))
			atomic_fetch_add(&l->done, 1);
	return NULL;
}

static bool has_block(struct server *s, nfs_fh3 fh, unsigned i)
{
	READ3args args = { .file = fh, .offset = i * (offset3)BLOCK,
			   .count = BLOCK };
	char want[BLOCK];
	READ3res r;

	s->c.used = 0;
	nfs_call(&s->c, read, &args, &r);
	memset(want, (int)i + 1, BLOCK);
	return r.status == NFS3_OK &&
	       r.READ3res_u.resok.data.data_len == BLOCK &&
	       memcmp(r.READ3res_u.resok.data.data_val, want, BLOCK) == 0;
}

TEST(a_successor_has_another_verifier_and_the_same_handles)
{
	struct load l = { .s = &a, .fh = make_file(&a, "verifier") };
	uint64_t before, after;

	ck_assert_int_eq(write_block(&l, 0, &before), 0);
	ck_assert_int_eq(commit_all(&l, &after), 0);
	ck_assert_uint_eq(before, after);
	ck_assert_int_eq(write_block(&l, 0, &before), 0);
	end_server(&a, SIGKILL);
	start_server(&a);
	ck_assert_int_eq(commit_all(&l, &after), 0);
	ck_assert_uint_ne(before, after);
}

TEST(data_that_was_committed_is_there_after_failovers_under_load)
{
	struct load l = { .s = &a, .fh = make_file(&a, "load") };

	ck_assert_int_eq(sem_init(&l.back, 0, 0), 0);
	ck_assert_int_eq(pthread_create(&l.thread, NULL, run_load, &l), 0);
	for (unsigned i = 1; i <= KILLS; i++) {
		EVENTUALLY(atomic_load(&l.done) >= i * BATCHES / (KILLS + 1));
		daemon_end(&a.d, SIGKILL);
		start_daemon(&a);
		sem_post(&l.back);
	}
	pthread_join(l.thread, NULL);
	for (unsigned i = 0; i < BATCHES * BATCH; i++)
		ck_assert_msg(has_block(&b, l.fh, i), "block %u", i);
	ck_assert_int_eq(remove_file(&b, "load"), NFS3_OK);
}

/* ---- calls that are sent again to the successor */

static nfsstat3 create_file(struct server *s, const char *name,
			    createmode3 mode)
{
	CREATE3args args = { .where = { s->top, (char *)(uintptr_t)name },
			     .how.mode = mode };
	CREATE3res r;

	if (mode == EXCLUSIVE)
		memcpy(args.how.createhow3_u.verf, "verifier", 8);
	nfs_call(&s->c, create, &args, &r);
	return r.status;
}

TEST(a_call_that_comes_again_after_a_failover_has_the_answer_that_is_told)
{
	make_file(&a, "gone");
	make_file(&a, "from");
	ck_assert_int_eq(create_file(&a, "exclusive", EXCLUSIVE), NFS3_OK);
	ck_assert_int_eq(create_file(&a, "guarded", GUARDED), NFS3_OK);
	ck_assert_int_eq(remove_file(&a, "gone"), NFS3_OK);
	ck_assert_int_eq(rename_file(&a, "from", "to"), NFS3_OK);
	end_server(&a, SIGKILL);
	start_server(&a);
	ck_assert_int_eq(create_file(&a, "exclusive", EXCLUSIVE), NFS3_OK);
	ck_assert_int_eq(create_file(&b, "exclusive", EXCLUSIVE), NFS3_OK);
	ck_assert_int_eq(create_file(&a, "guarded", GUARDED), NFS3ERR_EXIST);
	ck_assert_int_eq(remove_file(&a, "gone"), NFS3ERR_NOENT);
	ck_assert_int_eq(rename_file(&a, "from", "to"), NFS3ERR_NOENT);
	ck_assert_int_eq(remove_file(&b, "exclusive"), NFS3_OK);
	ck_assert_int_eq(remove_file(&b, "guarded"), NFS3_OK);
	ck_assert_int_eq(remove_file(&b, "to"), NFS3_OK);
}
