/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration of programs with an rpcbind that refuses some of them. */
#include "daemon/serve/announce.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/util.h"
#include "rpc/rpcbind.h"
#include "tests/unit/runner.h"

#define VERSIONS	200
#define WHY	" (it is another user's, or port 111 another gannetd's: see " \
	"--no-rpcbind)\n"

/* ---- in the place of rpc/rpcbind.c and lib/log.c */

struct rpcbind {
	unsigned mapped;		/* of all programs */
	unsigned asked;
	uint32_t refused;		/* versions that are divisible by it */
	uint32_t hangs;			/* the version where it stops */
	uint32_t at_work;		/* versions of another server, which
					 * listens, */
	uint32_t killed;		/* which does not, */
	uint32_t foreign;		/* of another user */
	unsigned restored;
	struct rpcbind_other other;
};

static struct rpcbind it;
static char said[8192];

_Atomic(enum log_level) log_threshold = LOG_LEVEL_WARN;

void log_print(enum log_level level, const char *fmt, ...)
{
	size_t len = strlen(said);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said + len, sizeof(said) - len, fmt, ap);
	va_end(ap);
	strncat(said, "\n", sizeof(said) - strlen(said) - 1);
}

int rpcbind_open(const struct sockaddr *at, socklen_t len, struct rpcbind **out)
{
	*out = &it;
	return 0;
}

void rpcbind_close(struct rpcbind *rb)
{
}

int rpcbind_set(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		const char *netid, const struct sockaddr *addr)
{
	rb->asked++;
	if (vers == rb->hangs)
		return -ETIMEDOUT;
	if (rb->refused && vers % rb->refused == 0)
		return -EACCES;
	rb->other = (struct rpcbind_other){ "0.0.0.0.78.32", "superuser",
					    vers != rb->foreign };
	if (vers == rb->at_work)
		return -EEXIST;
	rb->mapped++;
	return vers == rb->killed || vers == rb->foreign ? RPCBIND_REPLACED : 0;
}

const struct rpcbind_other *rpcbind_other(const struct rpcbind *rb)
{
	return &rb->other;
}

int rpcbind_restore(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		    const char *netid, const char *uaddr)
{
	ck_assert_str_eq(uaddr, "0.0.0.0.78.32");
	ck_assert_uint_eq(vers, rb->killed);
	rb->restored++;
	return 0;
}

int rpcbind_unset(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		  const char *netid, const struct sockaddr *addr)
{
	ck_assert_uint_gt(rb->mapped, 0);
	rb->mapped--;
	return 0;
}

/* ---- tests */

static struct rpc_version versions[VERSIONS];
static struct rpc_program prog = {
	.name = "sample", .prog = 0x20000004, .versions = versions,
};

/* Registers the first @n versions, over IPv4 and IPv6. */
static void announce_versions(struct announcements *a, unsigned n)
{
	struct sockaddr_storage at = { .ss_family = AF_INET6 };

	said[0] = '\0';
	for (unsigned i = 0; i < n; i++)
		versions[i].vers = i + 1;
	prog.nversions = n;
	ck_assert_int_eq(announce(a, &prog, RPC_OVER_TCP, &at), 0);
}

TEST(a_refused_mapping_hides_no_other)
{
	struct announcements a = { 0 };

	it = (struct rpcbind){ .refused = 2 };
	announce_versions(&a, 5);
	ck_assert_uint_eq(it.mapped, 6);
	ck_assert_str_eq(said,
		"sample 2 over tcp is not registered with rpcbind: "
		"Permission denied" WHY
		"sample 4 over tcp is not registered with rpcbind: "
		"Permission denied" WHY
		"sample 2 over tcp6 is not registered with rpcbind: "
		"Permission denied" WHY
		"sample 4 over tcp6 is not registered with rpcbind: "
		"Permission denied" WHY);
	announce_withdraw(&a);
	ck_assert_uint_eq(it.mapped, 0);
}

TEST(an_rpcbind_that_does_not_answer_is_not_asked_again)
{
	struct announcements a = { 0 };

	it = (struct rpcbind){ .hangs = 2 };
	announce_versions(&a, 5);
	ck_assert_uint_eq(it.asked, 2);
	ck_assert_str_eq(said, "sample 2 over tcp is not registered with "
			 "rpcbind: Connection timed out\n");
	announce_withdraw(&a);
	ck_assert_uint_eq(it.mapped, 0);
}

TEST(all_that_is_registered_is_withdrawn)
{
	struct announcements a = { 0 };

	it = (struct rpcbind){ 0 };
	announce_versions(&a, VERSIONS);
	ck_assert_uint_eq(it.mapped, 2 * VERSIONS);
	announce_withdraw(&a);
	ck_assert_uint_eq(it.mapped, 0);
	announce_withdraw(&a);
}

static bool has_said(const char *what)
{
	return strstr(said, what);
}

/* Over IPv4 and IPv6 each. */
TEST(another_servers_mapping_is_never_replaced_in_silence)
{
	struct announcements a = { 0 };

	it = (struct rpcbind){ .at_work = 2, .killed = 3, .foreign = 4 };
	announce_versions(&a, 5);
	ck_assert_uint_eq(it.mapped, 2 * 4);
	ck_assert(has_said("sample 2 over tcp: rpcbind has another server at "
			   "0.0.0.0.78.32, registered by superuser, which is "
			   "at work and stays: "));
	ck_assert(has_said("sample 3 over tcp6: rpcbind has another server at "
			   "0.0.0.0.78.32, registered by superuser, where "
			   "nothing listens: replaced until this server ends"));
	ck_assert(has_said("sample 4 over tcp: rpcbind has another server at "
			   "0.0.0.0.78.32, registered by superuser, which is "
			   "another user's: replaced\n"));
	ck_assert(!has_said("sample 1") && !has_said("sample 5"));
	ck_assert(!has_said("not registered"));
	announce_withdraw(&a);
	ck_assert_uint_eq(it.mapped, 0);
	ck_assert_uint_eq(it.restored, 2);
}
