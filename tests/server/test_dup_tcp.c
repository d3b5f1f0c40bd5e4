/* SPDX-License-Identifier: BSD-2-Clause */
/* Which calls are run and which are answered from the cache, over TCP.  Each
 * test looks at the directory to see which ran. */
#include "rpc/drc_rule.h"
#include "tests/server/dup_fixture.h"

#include <netinet/tcp.h>
#include <poll.h>

/* Runs c, RENAME of a to b, on a new connection that never hears of it; only
 * TCP knows. */
static int rename_unheard(uint32_t xid)
{
	int fd = open_one();

	dup_make(ctl, "a");
	dup_rename(&c, xid, "a", "b");
	dup_deafen(fd);
	dup_send(fd, &c);
	EVENTUALLY(dup_exists(ctl, "b"));
	return fd;
}

/* c again, on another connection: it must not run. */
static void is_not_run_again(const char *counter)
{
	int fd = open_one();

	ck_assert_uint_eq(dup_do(fd, &c), NFS3_OK);
	ck_assert_uint_eq(counted(counter), 1);
	close(fd);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* ---- calls that are sent again */

TEST_LOOP(sent_again_on_the_connection_that_did_not_get_it, 0, 2)
{
	uint64_t before = counted("drc_again_same");
	static const int idle;
	int fd;

	pick_family(_i);
	dup_make(ctl, "a");
	dup_rename(&c, 9, "a", "b");
	fd = open_one();
	dup_deafen(fd);
	dup_send(fd, &c);
	EVENTUALLY(dup_exists(ctl, "b"));
	dup_send(fd, &c);
	EVENTUALLY(counted("drc_again_same") == before + 1);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &idle,
				    sizeof(idle)), 0);
	ck_assert_uint_eq(dup_status(fd, &c), NFS3_OK);
	ck_assert_uint_eq(dup_status(fd, &c), NFS3_OK);
	close(fd);
}

TEST_LOOP(sent_again_after_a_reset, 0, 2)
{
	pick_family(_i);
	dup_reset(rename_unheard(9));
	is_not_run_again("drc_again_broken");
}

/* As Linux does, from the port that the first connection had. */
TEST_LOOP(sent_again_from_the_same_port, 0, 2)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	int fd;

	pick_family(_i);
	fd = rename_unheard(9);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&own, &len), 0);
	dup_reset(fd);
	fd = dup_connect_from(&own, port());
	ck_assert_uint_eq(dup_do(fd, &c), NFS3_OK);
	ck_assert_uint_eq(counted("drc_again_broken"), 1);
	/* It has the answer now. */
	ck_assert_uint_eq(dup_do(fd, &c), NFS3ERR_NOENT);
	close(fd);
}

TEST_LOOP(sent_again_after_the_client_gave_up_and_closed, 0, 2)
{
	pick_family(_i);
	close(rename_unheard(9));
	is_not_run_again("drc_again_closed");
}

/* The client lost its side, and the server has not heard of it. */
TEST_LOOP(sent_again_while_the_first_connection_is_half_open, 0, 2)
{
	int fd;

	pick_family(_i);
	fd = rename_unheard(9);
	is_not_run_again("drc_again_silent");
	close(fd);
}

TEST_LOOP(sent_again_as_the_reply_was_not_read_before_a_reset, 0, 2)
{
	int fd;
	char byte;

	pick_family(_i);
	atomic_store(&drc_recent_ms, 60000);
	dup_make(ctl, "a");
	dup_rename(&c, 9, "a", "b");
	fd = open_one();
	dup_send(fd, &c);
	ck_assert_int_eq(recv(fd, &byte, 1, MSG_PEEK), 1);
	close(fd);		/* with bytes unread */
	is_not_run_again("drc_again_unread");
}

static bool has_ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0;
}

/* After our FIN the peer's system would forget unread data. */
TEST(sent_again_as_the_reply_was_not_read_before_a_shutdown_and_a_close)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct tcp_options o = { .unread_ms = 60000,
				 .reply_ms = 60000 };
	struct xprt_listener *l;
	char byte;
	int fd;

	pick_family(0);
	atomic_store(&drc_recent_ms, 60000);
	ck_assert_int_eq(tcp_listen(&srv.env, (struct sockaddr *)&a, &o, &l),
			 0);
	memcpy(&a, &l->local, sizeof(a));
	fd = dup_connect(AF_INET, ntohs(a.sin_port), NULL);
	dup_make(ctl, "a");
	dup_rename(&c, 9, "a", "b");
	dup_send(fd, &c);
	ck_assert_int_eq(recv(fd, &byte, 1, MSG_PEEK), 1);
	shutdown(fd, SHUT_WR);
	/* The FIN would come within microseconds. */
	ck_assert(HOLDS_FOR(50, !has_ended(fd)));
	close(fd);
	is_not_run_again("drc_again_unread");
	l->ops->stop(l);
	l->ops->free(l);
}

/* The call looks left over: the connection's end came with it, and the same
 * call ran on a newer connection.  But it can be half closed, and wait. */
TEST_LOOP(a_client_that_is_taken_for_gone_learns_it, 0, 2)
{
	int b, a, one = 1;
	char byte;

	pick_family(_i);
	b = open_one();
	ck_assert_uint_eq(dup_lookup(b, "d", NULL), NFS3ERR_NOENT);
	a = open_one();
	dup_mkdir(&c, 9, "d");
	ck_assert_uint_eq(dup_do(a, &c), NFS3_OK);
	/* Call and FIN in one segment. */
	setsockopt(b, IPPROTO_TCP, TCP_CORK, &one, sizeof(one));
	dup_send(b, &c);
	shutdown(b, SHUT_WR);
	ck_assert_int_eq(recv(b, &byte, 1, 0), 0);
	ck_assert_uint_eq(counted("drc_left_over"), 1);
	close(a);
	close(b);
}

TEST_LOOP(sent_again_twice_over, 0, 2)
{
	int fd;

	pick_family(_i);
	dup_reset(rename_unheard(9));
	for (int i = 0; i < 5; i++) {
		uint64_t n = counted("drc_hits");

		fd = open_one();
		dup_deafen(fd);
		dup_send(fd, &c);
		EVENTUALLY(counted("drc_hits") == n + 1);
		dup_reset(fd);
	}
	fd = open_one();
	ck_assert_uint_eq(dup_do(fd, &c), NFS3_OK);
	/* Now it has the reply, and the next call is new. */
	ck_assert_uint_eq(dup_do(fd, &c), NFS3ERR_NOENT);
	close(fd);
}

/* Sends c, which is held before it has an effect. */
static int send_held(enum fault_op op)
{
	unsigned before = fault_calls(op);
	int fd = open_one();

	fault_hold(op, true);
	dup_send(fd, &c);
	EVENTUALLY(fault_calls(op) > before);
	return fd;
}

/* c again: waits, and is answered when the first is let go. */
static void waits_for_the_first(enum fault_op op, unsigned calls)
{
	uint64_t before = counted("drc_in_progress");
	int fd = open_one();

	dup_send(fd, &c);
	EVENTUALLY(counted("drc_in_progress") == before + 1);
	fault_hold(op, false);
	ck_assert_uint_eq(dup_status(fd, &c), NFS3_OK);
	ck_assert_uint_eq(fault_calls(op), calls);
	close(fd);
}

TEST_LOOP(sent_again_while_it_runs, 0, 6)
{
	int fd;

	pick_family(_i % 2);
	dup_make(ctl, "a");
	dup_rename(&c, 9, "a", "b");
	fd = send_held(FAULT_RENAME);
	switch (_i / 2) {
	case 0:
		dup_reset(fd);
		break;
	case 1:
		close(fd);
		break;
	default:
		dup_deafen(fd);
		break;
	}
	waits_for_the_first(FAULT_RENAME, 1);
	if (_i / 2 == 2)
		close(fd);
	ck_assert(dup_exists(ctl, "b"));
}

static uint64_t waiting_or_beside(void)
{
	return counted("drc_in_progress") + counted("drc_new_sibling");
}

/* Programs of one host that start together use the same xid.  A call that can't
 * be told from a second try also gets the first call's answer. */
TEST_LOOP(identical_calls_at_once_are_all_answered, 0, 2)
{
	uint64_t before = waiting_or_beside();
	uint32_t status;
	int fd[5];

	pick_family(_i);
	dup_make(ctl, "a");
	dup_rename(&c, 11, "a", "b");
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = open_one();
	fault_hold(FAULT_RENAME, true);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		dup_send(fd[i], &c);
	EVENTUALLY(waiting_or_beside() == before + ARRAY_SIZE(fd) - 1);
	fault_hold(FAULT_RENAME, false);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++) {
		status = dup_status(fd[i], &c);
		ck_assert(status == NFS3_OK || status == NFS3ERR_NOENT);
		close(fd[i]);
	}
	ck_assert(dup_exists(ctl, "b"));
}

/* ---- new calls */

/* The tool that is started again, with its xids from the start. */
TEST_LOOP(new_calls_with_the_xids_of_old_ones_are_done, 0, 2)
{
	int fd = -1;

	pick_family(_i);
	for (int i = 0; i < 200; i++) {
		if (i % 4 == 0)
			fd = open_one();
		dup_create(&c, 4, "f", DUP_GUARDED);
		ck_assert_uint_eq(dup_do(fd, &c), NFS3_OK);
		dup_name(&c, 5, NFSPROC3_REMOVE, "f");
		ck_assert_uint_eq(dup_do(fd, &c), NFS3_OK);
		ck_assert(!dup_exists(ctl, "f"));
		if (i % 4 == 3)
			close(fd);
	}
	ck_assert_uint_eq(counted("drc_hits"), 0);
	ck_assert_uint_eq(counted("drc_in_progress"), 0);
	ck_assert_uint_gt(counted("drc_new_taken"), 100);
}

/* Locks, as made by programs that are started again and again. */
TEST_LOOP(a_lock_is_given_once, 0, 2)
{
	int fd;

	pick_family(_i);
	for (int i = 0; i < 10; i++) {
		fd = open_one();
		if (i % 2)
			dup_create(&c, 1, "lock", DUP_GUARDED);
		else
			dup_mkdir(&c, 1, "dir");
		ck_assert_uint_eq(dup_do(fd, &c), i < 2 ? NFS3_OK :
							  NFS3ERR_EXIST);
		close(fd);
	}
}

TEST(a_reset_long_after_the_reply_makes_nothing_old)
{
	int fd;

	pick_family(0);
	atomic_store(&drc_recent_ms, 1000);
	fd = open_one();
	dup_create(&c, 4, "f", DUP_GUARDED);
	ck_assert_uint_eq(dup_do(fd, &c), NFS3_OK);
	xprt_age(2);
	dup_reset(fd);
	fd = open_one();
	ck_assert_uint_eq(dup_do(fd, &c), NFS3ERR_EXIST);
	ck_assert_uint_eq(counted("drc_new_broken"), 1);
	close(fd);
}

/* nconnect, or another program of the same address: each waits for itself. */
TEST_LOOP(a_sibling_that_asks_the_same_is_run_beside, 0, 2)
{
	int one, two;

	pick_family(_i);
	two = open_one();
	ck_assert_uint_eq(dup_lookup(two, "lock", NULL), NFS3ERR_NOENT);
	/* The LOOKUP's reply is no longer a recent one. */
	xprt_age(1);
	dup_create(&c, 7, "lock", DUP_GUARDED);
	one = send_held(FAULT_CREATE);
	dup_send(two, &c);
	EVENTUALLY(counted("drc_new_sibling") == 1);
	fault_hold(FAULT_CREATE, false);
	ck_assert_uint_eq(dup_status(one, &c) + dup_status(two, &c),
			  NFS3_OK + NFS3ERR_EXIST);
	close(one);
	close(two);
}

/* The reply arrived, and then the cable was cut. */
TEST_LOOP(an_acknowledged_call_of_a_half_open_connection_is_run, 0, 2)
{
	int one, two;

	pick_family(_i);
	dup_make(ctl, "a");
	dup_rename(&c, 9, "a", "b");
	one = open_one();
	ck_assert_uint_eq(dup_do(one, &c), NFS3_OK);
	dup_deafen(one);
	two = open_one();
	ck_assert_uint_eq(dup_do(two, &c), NFS3ERR_NOENT);
	ck_assert_uint_eq(counted("drc_new_taken"), 1);
	close(one);
	close(two);
}

TEST(another_address_is_another_client)
{
	int fd;

	pick_family(0);
	dup_reset(rename_unheard(9));
	fd = dup_connect(AF_INET, srv.port, "127.0.0.2");
	ck_assert_uint_eq(dup_do(fd, &c), NFS3ERR_NOENT);
	close(fd);
}

/* ---- WRITE */

TEST_LOOP(a_write_is_never_answered_with_anothers_reply, 0, 4)
{
	static uint8_t data[2000];
	struct nfs3_fh fh;
	int fd;

	pick_family(_i % 2);
	dup_make(ctl, "f");
	ck_assert_uint_eq(dup_lookup(ctl, "f", &fh), NFS3_OK);
	dup_write(&c, 9, &fh, data, sizeof(data));
	data[1500] = 'x';
	dup_write(&c2, 9, &fh, data, sizeof(data));
	fd = open_one();
	if (_i / 2) {
		dup_deafen(fd);
		dup_send(fd, &c);
		EVENTUALLY(fault_calls(FAULT_WRITE) > 0);
		dup_reset(fd);
		fd = open_one();
	} else {
		ck_assert_uint_eq(dup_do(fd, &c), NFS3_OK);
	}
	ck_assert_uint_eq(dup_do(fd, &c2), NFS3_OK);
	ck_assert_uint_eq(first_byte_behind(1500, &fh), 'x');
	data[1500] = 0;
	close(fd);
}

/* Else the first would put old data over the client's writes after the second's
 * answer. */
TEST_LOOP(a_write_sent_again_does_not_overtake_the_first, 0, 2)
{
	static const uint8_t data[2000] = { 'x' };
	struct nfs3_fh fh;
	int fd, again;

	pick_family(_i);
	dup_make(ctl, "f");
	ck_assert_uint_eq(dup_lookup(ctl, "f", &fh), NFS3_OK);
	dup_write(&c, 9, &fh, data, sizeof(data));
	fd = send_held(FAULT_WRITE);
	dup_reset(fd);
	again = open_one();
	dup_send(again, &c);
	EVENTUALLY(counted("drc_in_progress") == 1);
	fault_hold(FAULT_WRITE, false);
	ck_assert_uint_eq(dup_status(again, &c), NFS3_OK);
	ck_assert_uint_eq(counted("drc_ran_after"), 1);
	close(again);
}

/* The backend forgets the first WRITE; the second need not wait for it. */
TEST_LOOP(a_late_write_is_cancelled_when_its_connection_is_gone, 0, 2)
{
	static const uint8_t data[2000] = { 'x' };
	struct nfs3_fh fh;
	int fd;

	pick_family(_i);
	dup_make(ctl, "f");
	ck_assert_uint_eq(dup_lookup(ctl, "f", &fh), NFS3_OK);
	dup_write(&c, 9, &fh, data, sizeof(data));
	fault_keep(FAULT_WRITE, 1);
	fd = open_one();
	dup_send(fd, &c);
	EVENTUALLY(fault_keeps());
	rpc_server_relieve(srv.server);
	ck_assert(fault_keeps());
	dup_reset(fd);
	EVENTUALLY((rpc_server_relieve(srv.server), !fault_keeps()));
	ck_assert_uint_eq(counted("rpc_cancelled"), 1);
	fd = open_one();
	ck_assert_uint_eq(dup_do(fd, &c), NFS3_OK);
	ck_assert_uint_eq(first_byte_behind(0, &fh), 'x');
	close(fd);
}

/* ---- load */

static atomic_bool flooding;

/* As many WRITEs as it can, 100 at a time. */
static void flood(void *arg)
{
	static const uint8_t data[16];
	struct nfs3_fh *fh = arg;
	int fd = dup_connect(AF_INET, srv.port, "127.0.0.3");
	struct dup_call w;

	for (uint32_t xid = 0; atomic_load(&flooding);) {
		for (int i = 0; i < 100; i++) {
			dup_write(&w, xid++, fh, data, sizeof(data));
			dup_send(fd, &w);
		}
		for (int i = 0; i < 100; i++) {
			struct dup_reply r;

			dup_take(fd, &r);
			ck_assert_uint_eq(r.status, NFS3_OK);
		}
	}
	close(fd);
}

TEST_LOOP(other_clients_writes_take_nothing_from_a_rename, 0, 2)
{
	struct nfs3_fh fh;
	pthread_t thread;

	pick_family(_i);
	dup_make(ctl, "f");
	ck_assert_uint_eq(dup_lookup(ctl, "f", &fh), NFS3_OK);
	atomic_store(&flooding, true);
	ck_assert_int_eq(thread_start(&thread, "flood", flood, &fh), 0);
	EVENTUALLY(fault_calls(FAULT_WRITE) > 1000);
	dup_reset(rename_unheard(9));
	/* More than the old cache could hold. */
	EVENTUALLY(fault_calls(FAULT_WRITE) > 20000);
	is_not_run_again("drc_again_broken");
	atomic_store(&flooding, false);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(counted("drc_evicted"), 0);
}
