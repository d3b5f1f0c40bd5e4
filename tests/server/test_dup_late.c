/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that are read late: their pollers stand still while the client goes on
 * elsewhere. */
#include "tests/server/dup_fixture.h"

#include <semaphore.h>

struct stall {
	struct loop_task task;
	sem_t		 there, go;
};

static void stand_still(struct loop_task *t)
{
	struct stall *s = container_of(t, struct stall, task);

	sem_post(&s->there);
	sem_wait(&s->go);
	sem_post(&s->there);
}

/* The poller does nothing until move_on(). */
static void stall(struct stall *s, unsigned poller)
{
	sem_init(&s->there, 0, 0);
	sem_init(&s->go, 0, 0);
	loop_post(srv.loops[poller], &s->task, stand_still);
	sem_wait(&s->there);
}

static void move_on(struct stall *s)
{
	sem_post(&s->go);
	sem_wait(&s->there);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* A client writes, gives up, writes the same on a new connection, and goes on.
 * Then the poller of the first reads. */
TEST_LOOP(a_write_left_unread_does_not_overwrite_later_data, 0, 2)
{
	struct nfs3_fh fh;
	struct stall late;
	int left, fd;

	pick_family(0);
	dup_make(ctl, "f");
	ck_assert_uint_eq(dup_lookup(ctl, "f", &fh), NFS3_OK);
	left = open_one();
	ck_assert_uint_eq(dup_lookup(left, "f", NULL), NFS3_OK);
	fd = open_one();
	ck_assert_uint_eq(dup_lookup(fd, "f", NULL), NFS3_OK);
	stall(&late, 1);
	dup_write(&c, 9, &fh, "old", 4);
	dup_send(left, &c);
	if (_i)
		dup_reset(left);
	else
		close(left);
	ck_assert_uint_eq(dup_do(fd, &c), NFS3_OK);
	dup_write(&c2, 10, &fh, "new", 4);
	ck_assert_uint_eq(dup_do(fd, &c2), NFS3_OK);
	move_on(&late);
	EVENTUALLY(srv.tcp->ops->count(srv.tcp) == 2);
	ck_assert_uint_eq(first_byte_behind(0, &fh), 'n');
	ck_assert_uint_eq(fault_calls(FAULT_WRITE), 2);
	close(fd);
}

/* The newer connection was there when the older one called: another program,
 * though accept() came late. */
TEST(a_connection_is_as_old_as_its_handshake)
{
	struct stall listener, reader;
	int older, newer;

	pick_family(0);
	older = open_one();
	ck_assert_uint_eq(dup_lookup(older, "lock", NULL), NFS3ERR_NOENT);
	stall(&listener, 0);
	newer = open_one();
	dup_create(&c, 7, "lock", DUP_GUARDED);
	dup_send(newer, &c);
	/* The ages of connections differ by more than a tick of their clock. */
	pause_on_purpose(100000);
	stall(&reader, 1);
	dup_send(older, &c);
	/* So do their calls. */
	pause_on_purpose(100000);
	move_on(&listener);
	ck_assert_uint_eq(dup_status(newer, &c), NFS3_OK);
	move_on(&reader);
	ck_assert_uint_eq(dup_status(older, &c), NFS3ERR_EXIST);
	ck_assert(dup_exists(ctl, "lock"));
	ck_assert_uint_eq(counted("drc_left_over"), 0);
	close(older);
	close(newer);
}
