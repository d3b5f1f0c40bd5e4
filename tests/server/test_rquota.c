/* SPDX-License-Identifier: BSD-2-Clause */
/* rquota, versions 1 and 2, called by libtirpc: the user or group and the file
 * system that a backend is asked about, and the callers who may ask. */
#include <errno.h>
#include <netinet/in.h>

#include "exports/export_priv.h"
#include "lib/stats.h"
#include "rquota/proc.h"
#include "tests/server/fault_vfs.h"
#include "tests/server/nfs_client.h"
#include "tests/server/rquota_client.h"
#include "tests/unit/runner.h"
#include "transport/addr.h"
#include "transport/stream/stream.h"

#define EXPORTS \
	"/mem 127.0.0.1(rw,insecure,no_root_squash)\n" \
	"/mem/inner 127.0.0.1(rw,insecure,no_root_squash)\n" \
	"/squashed 127.0.0.1(rw,insecure,anonuid=90,anongid=91)\n" \
	"/all 127.0.0.1(rw,insecure,all_squash,anonuid=90,anongid=91)\n" \
	"/secure 127.0.0.1(rw)\n" \
	"/closed 192.0.2.0/24(rw,insecure)\n"

/* USER_UID, with other groups. */
static struct rquota_caller caller;

/* Asked of the backend last. */
static struct vfs_quota asked;
static struct vfs_fs *asked_fs;
static unsigned times_asked;
static int answer;			/* 0 or -errno */

static struct xprt_listener *udp;

static int fake_quota(struct vfs_op *op)
{
	asked = *op->quota;
	asked_fs = op->node->fs;
	times_asked++;
	ck_assert(!op->nonblock);
	op->quota->bytes = (struct vfs_quota_use){ 5000, 4096, 8192, 0 };
	op->quota->files = (struct vfs_quota_use){ 5, 6, 7, 0 };
	return answer;
}

static void setup(void)
{
	const struct harness_config config = {
		.backend = &fault_vfs_ops, .exports = EXPORTS,
	};
	struct sockaddr_in at = { .sin_family = AF_INET };

	fault_init();
	fault_vfs_ops.quota = fake_quota;
	nfs_setup_with(&config);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(udp_listen(&srv.env, (struct sockaddr *)&at, NULL,
				    &udp), 0);
	nfs_make_dir(top, "dir");
	nfs_make_file(top, "file", "");
	caller = (struct rquota_caller){ .uid = USER_UID, .gid = USER_UID,
					 .gids = { 501, 502 } };
	answer = 0;
	times_asked = 0;
}

static void teardown(void)
{
	udp->ops->stop(udp);
	EVENTUALLY(udp->ops->count(udp) == 0);
	udp->ops->free(udp);
	nfs_teardown();
}

/* ---- the client */

static uint32_t last[RQUOTA_WORDS];

static enum rquota_end call(const struct rquota_what *q)
{
	caller.port = caller.udp ? xprt_addr_port(&udp->local) : srv.port;
	return rquota_call(&caller, q, last);
}

/* The status of GETQUOTA. */
static uint32_t of_user(const char *path, int id)
{
	const struct rquota_what q = { 1, RQUOTAPROC_GETQUOTA, 0, id, path };

	ck_assert_int_eq(call(&q), RQUOTA_ANSWERED);
	return last[0];
}

static uint32_t of(const char *path, int type, int id)
{
	const struct rquota_what q = { 2, RQUOTAPROC_GETQUOTA, type, id,
				       path };

	ck_assert_int_eq(call(&q), RQUOTA_ANSWERED);
	return last[0];
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(users_and_groups_are_told_their_own)
{
	const uint32_t want[11] = { Q_OK, 1024, 1, 8, 4, 5, 7, 6, 5, 0, 0 };

	for (int i = 0; i < 2; i++, caller.udp = true) {
		ck_assert_uint_eq(of_user("/mem", USER_UID), Q_OK);
		ck_assert_mem_eq(last, want, sizeof(want));
		ck_assert_int_eq(asked.type, VFS_QUOTA_USER);
		ck_assert_uint_eq(asked.id, USER_UID);
		ck_assert_uint_eq(of("/mem", RQUOTA_USER, USER_UID), Q_OK);
		ck_assert_mem_eq(last, want, sizeof(want));
		ck_assert_int_eq(asked.type, VFS_QUOTA_USER);
		ck_assert_uint_eq(of("/mem", RQUOTA_GROUP, USER_UID), Q_OK);
		ck_assert_int_eq(asked.type, VFS_QUOTA_GROUP);
		ck_assert_uint_eq(of("/mem", RQUOTA_GROUP, 502), Q_OK);
		ck_assert_uint_eq(asked.id, 502);
	}
}

TEST(active_quotas_are_the_same)
{
	for (uint32_t vers = 1; vers <= 2; vers++) {
		const struct rquota_what q = { vers, RQUOTAPROC_GETACTIVEQUOTA,
					 RQUOTA_USER, USER_UID, "/mem" };

		ck_assert_int_eq(call(&q), RQUOTA_ANSWERED);
		ck_assert_uint_eq(last[0], Q_OK);
		ck_assert_uint_eq(asked.id, USER_UID);
	}
}

TEST(those_of_others_are_for_user_0)
{
	ck_assert_uint_eq(of_user("/mem", USER_UID + 1), Q_EPERM);
	ck_assert_uint_eq(of("/mem", RQUOTA_USER, 0), Q_EPERM);
	ck_assert_uint_eq(of("/mem", RQUOTA_GROUP, 503), Q_EPERM);
	ck_assert_uint_eq(times_asked, 0);
	caller.uid = 0;
	ck_assert_uint_eq(of_user("/mem", USER_UID + 1), Q_OK);
	ck_assert_uint_eq(asked.id, USER_UID + 1);
	ck_assert_uint_eq(of("/mem", RQUOTA_GROUP, 503), Q_OK);
	ck_assert_uint_eq(asked.id, 503);
}

TEST(there_are_two_types)
{
	caller.uid = 0;
	ck_assert_uint_eq(of("/mem", 2, 7), Q_NOQUOTA);
	ck_assert_uint_eq(times_asked, 0);
}

TEST(a_squashed_user_0_is_the_anonymous_user)
{
	caller.uid = caller.gid = 0;
	ck_assert_uint_eq(of_user("/squashed", USER_UID), Q_EPERM);
	ck_assert_uint_eq(of("/squashed", RQUOTA_GROUP, 7), Q_EPERM);
	ck_assert_uint_eq(times_asked, 0);
	ck_assert_uint_eq(of_user("/squashed", 0), Q_OK);
	ck_assert_uint_eq(asked.id, 90);
	ck_assert_uint_eq(of("/squashed", RQUOTA_GROUP, 0), Q_OK);
	ck_assert_uint_eq(asked.id, 91);
	caller.uid = USER_UID;
	ck_assert_uint_eq(of_user("/squashed", USER_UID), Q_OK);
	ck_assert_uint_eq(asked.id, USER_UID);
}

TEST(where_all_are_squashed_there_is_one_user)
{
	ck_assert_uint_eq(of_user("/all", USER_UID), Q_OK);
	ck_assert_uint_eq(asked.id, 90);
	ck_assert_uint_eq(of("/all", RQUOTA_GROUP, 502), Q_OK);
	ck_assert_uint_eq(asked.id, 91);
}

TEST(a_caller_without_credentials_is_anonymous)
{
	caller.anonymous = true;
	ck_assert_uint_eq(of_user("/mem", USER_UID), Q_EPERM);
	ck_assert_uint_eq(of_user("/squashed", 90), Q_OK);
	ck_assert_uint_eq(asked.id, 90);
}

TEST(the_path_is_a_directory_of_an_export)
{
	struct vfs_fs *outer;

	ck_assert_uint_eq(of_user("/mem/dir", USER_UID), Q_OK);
	outer = asked_fs;
	ck_assert_uint_eq(of_user("/mem/", USER_UID), Q_OK);
	ck_assert_ptr_eq(asked_fs, outer);
	ck_assert_uint_eq(of_user("/mem/inner", USER_UID), Q_OK);
	ck_assert_ptr_ne(asked_fs, outer);
	times_asked = 0;
	ck_assert_uint_eq(of_user("/mem/none", USER_UID), Q_NOQUOTA);
	ck_assert_uint_eq(of_user("/mem/file", USER_UID), Q_NOQUOTA);
	ck_assert_uint_eq(of_user("/none", USER_UID), Q_NOQUOTA);
	ck_assert_uint_eq(of_user("mem", USER_UID), Q_NOQUOTA);
	ck_assert_uint_eq(of_user("", USER_UID), Q_NOQUOTA);
	ck_assert_uint_eq(of_user("/closed", USER_UID), Q_EPERM);
	ck_assert_uint_eq(times_asked, 0);
}

TEST(a_path_of_more_than_1024_bytes_is_garbage)
{
	char path[1026];
	const struct rquota_what q = { 1, RQUOTAPROC_GETQUOTA, 0, 0, path };

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[1025] = '\0';
	ck_assert_int_eq(call(&q), RQUOTA_GARBAGE);
}

static int tells_late(uint32_t uid, uint32_t **gids, uint32_t *n)
{
	static bool told;

	if (!told) {
		told = true;
		return -1;
	}
	*n = 1;
	*gids = malloc(sizeof(**gids));
	**gids = 502;
	return 1;
}

TEST(a_call_has_no_answer_while_its_callers_groups_are_not_known)
{
	uint64_t before = stats_sum_by_name("rquota_put_off");

	srv.exports->resolver.groups = tells_late;
	srv.exports->resolver.quiet_s = 0;
	harness_publish(&srv, "/mem 127.0.0.1(rw,insecure,manage_gids)\n");
	caller.udp = true;
	caller.again_s = 1;
	ck_assert_uint_eq(of("/mem", RQUOTA_GROUP, 502), Q_OK);
	ck_assert_uint_eq(stats_sum_by_name("rquota_put_off"), before + 1);
}

/* quota(1) has no privileges on the client. */
TEST(a_secure_export_answers_any_port)
{
	ck_assert_uint_eq(of_user("/secure", USER_UID), Q_OK);
}

TEST(a_backend_may_have_no_quotas)
{
	answer = -ESRCH;
	ck_assert_uint_eq(of_user("/mem", USER_UID), Q_NOQUOTA);
	answer = -EPERM;
	ck_assert_uint_eq(of_user("/mem", USER_UID), Q_EPERM);
	fault_vfs_ops.quota = NULL;
	ck_assert_uint_eq(of_user("/mem", USER_UID), Q_NOQUOTA);
}

TEST(quotas_are_not_set)
{
	caller.uid = 0;
	for (uint32_t vers = 1; vers <= 2; vers++)
		for (uint32_t proc = RQUOTAPROC_SETQUOTA;
		     proc <= RQUOTAPROC_SETACTIVEQUOTA; proc++) {
			const struct rquota_what q = { vers, proc, RQUOTA_USER,
						 USER_UID, "/mem" };

			ck_assert_int_eq(call(&q), RQUOTA_ANSWERED);
			ck_assert_uint_eq(last[0], Q_EPERM);
		}
	ck_assert_uint_eq(times_asked, 0);
}
