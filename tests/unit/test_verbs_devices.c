/* SPDX-License-Identifier: BSD-2-Clause */
/* Several devices, which go and come; over fake ones. */
#include "tests/unit/verbs_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stats.h"
#include "tests/unit/runner.h"

static void free_conn(void *arg)
{
	fabric_free(conn);
}

static void listen_anywhere(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };

	ck_assert_int_eq(fabric_listen(&fabric, (struct sockaddr *)&any, loop,
				       on_request, NULL, &listener), 0);
}

/* A peer asks through the device in @slot: its connection. */
static struct fabric_conn *asked(unsigned slot, bool use6)
{
	fake.slot = slot;
	fake.use6 = use6;
	fake_request("", 0, 4, 4);
	wait_sem(&requested);
	return conn;
}

static struct fabric_mr *registered(struct fabric_device *dev)
{
	static uint8_t memory[4096];
	struct fabric_mr *mr;

	ck_assert_int_eq(fabric_mr_create(dev, memory, sizeof(memory),
					  FABRIC_LOCAL, &mr), 0);
	ck_assert_ptr_eq(mr->addr, memory);
	ck_assert_uint_eq(mr->len, sizeof(memory));
	return mr;
}

TEST(a_listener_takes_peers_of_all_devices_and_both_families)
{
	struct fabric_conn *c[4];
	struct fabric_mr *mr[2];
	char first[64];

	begin();
	listen_anywhere();
	for (unsigned i = 0; i < 4; i++) {
		c[i] = asked(i % 2, i / 2);
		ck_assert_int_eq(c[i]->info.local.ss_family,
				 i / 2 ? AF_INET6 : AF_INET);
	}
	ck_assert_ptr_eq(c[0]->dev, c[2]->dev);
	ck_assert_ptr_eq(c[1]->dev, c[3]->dev);
	ck_assert_ptr_ne(c[0]->dev, c[1]->dev);
	snprintf(first, sizeof(first), "%s", c[0]->dev->name);
	ck_assert_str_ne(first, c[1]->dev->name);
	ck_assert_uint_eq(fake.pds, 2);
	/* Memory has a key for each. */
	for (unsigned i = 0; i < 2; i++)
		mr[i] = registered(c[i]->dev);
	ck_assert_uint_ne(mr[0]->lkey, mr[1]->lkey);
	for (unsigned i = 0; i < 2; i++)
		fabric_mr_destroy(mr[i]);
	for (unsigned i = 0; i < 4; i++)
		fabric_reject(c[i]);
	end();
}

static unsigned count(const unsigned *what)
{
	unsigned n;

	pthread_mutex_lock(&fake.lock);
	n = *what;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

static void wait_until(const unsigned *what, unsigned is)
{
	while (count(what) != is)
		settle();
}

static void serve_on_both(void)
{
	int err;

	begin();
	listen_anywhere();
	fabric_reject(asked(1, false));
	asked(0, false);
	loop_call(conn_loop, set_up, &err);
	ck_assert_int_eq(err, 0);
	loop_call(conn_loop, start, &err);
	ck_assert_int_eq(err, 0);
	fake_event(fake.id, RDMA_CM_EVENT_ESTABLISHED, 0);
	wait_sem(&established);
	ck_assert_uint_eq(fake.pds, 2);
}

/* The CM says so, or the device does. */
TEST_LOOP(a_device_that_is_unplugged_is_let_go, 0, 2)
{
	struct fabric_mr *mr[3];
	struct fabric_device *dev;

	serve_on_both();
	dev = conn->dev;
	mr[0] = registered(dev);
	ck_assert_int_eq(fabric_post(conn, chain(2, 2)), 0);
	fake_unplug(0, _i);
	wait_sem(&closed);
	wait_until(&fake.pds, 1);
	wait_until(&fake.mrs, 0);
	wait_until(&fake.looks, 1);
	ck_assert_int_eq(ops[1].status, -ECANCELED);
	ck_assert_uint_eq(stats_sum_by_name("verbs_devices_gone"), 1);
	/* The memory that others still get is no use of it. */
	mr[1] = registered(dev);
	ck_assert_uint_eq(count(&fake.mrs), 0);
	mr[2] = registered(dev);
	for (unsigned i = 0; i < 3; i++)
		fabric_mr_destroy(mr[i]);
	sem_post(&closed);
	finished(-ENODEV);
}

/* The driver can wait until no file of the device is open.  librdmacm only
 * closes it if another device is left. */
TEST_LOOP(the_driver_of_a_device_that_went_waits_for_no_file, 0, 4)
{
	bool alone = _i / 2;

	serve_on_both();
	if (alone) {
		fake_unplug(1, _i % 2);
		wait_until(&fake.pds, 1);
	}
	fake_unplug(0, _i % 2);
	wait_until(&fake.pds, 0 + !alone);
	EVENTUALLY(fake_held() == 0);
	finished(-ENODEV);
}

TEST(the_only_device_serves_again_when_it_is_back)
{
	begin();
	fake_unplug(1, false);
	listen_anywhere();
	for (unsigned i = 0; i < 3; i++) {
		fabric_reject(asked(0, i % 2));
		settle();
		fake_unplug(0, i % 2);
		wait_until(&fake.pds, 0);
		EVENTUALLY(fake_held() == 0);
		if (i < 2)
			fake_plug(0);
	}
	end();
}

static void unplug_and_register(void *dev)
{
	fake_unplug(0, false);
	fabric_mr_destroy(registered(dev));
	ck_assert_uint_eq(count(&fake.mrs), 0);
}

TEST(memory_for_a_device_that_goes_is_taken)
{
	serve_on_both();
	/* The connection can't end meanwhile. */
	loop_call(conn_loop, unplug_and_register, conn->dev);
	finished(-ENODEV);
}

TEST(a_device_that_comes_back_is_a_new_one)
{
	struct fabric_device *dev;
	struct fabric_mr *mr[2];

	serve_on_both();
	dev = conn->dev;
	mr[0] = registered(dev);
	fake_unplug(0, false);
	wait_until(&fake.pds, 1);
	wait_sem(&closed);
	loop_call(conn_loop, free_conn, NULL);
	/* The other one serves on. */
	fabric_reject(asked(1, true));
	fake_plug(0);
	asked(0, false);
	ck_assert_ptr_ne(conn->dev, dev);
	ck_assert_uint_eq(count(&fake.pds), 2);
	mr[1] = registered(conn->dev);
	ck_assert_uint_ne(mr[0]->lkey, mr[1]->lkey);
	fabric_reject(conn);
	for (unsigned i = 0; i < 2; i++)
		fabric_mr_destroy(mr[i]);
	end();
}

TEST(a_device_without_connections_is_let_go_too)
{
	begin();
	listen_anywhere();
	fabric_reject(asked(0, false));
	settle();
	fake_unplug(0, false);
	wait_until(&fake.pds, 0);
	fake_plug(0);
	fabric_reject(asked(0, false));
	end();
}

static void unplug_and_look(void)
{
	fake_unplug(0, false);
	/* As librdmacm does at an id of any other device. */
	rdma_free_devices(rdma_get_devices(NULL));
}

static void unplug_silently_and_look(void)
{
	fake_unplug(0, true);
	rdma_free_devices(rdma_get_devices(NULL));
}

/* A peer asks; true if it is refused, else its connection is rejected. */
static bool is_refused(void)
{
	unsigned rejects = count(&fake.rejects);

	fake.slot = 0;
	fake_request("", 0, 4, 4);
	for (;;) {
		settle();
		if (sem_trywait(&requested) == 0) {
			fabric_reject(conn);
			return false;
		}
		if (count(&fake.rejects) > rejects)
			return true;
	}
}

TEST_LOOP(a_device_that_goes_as_its_first_peer_asks_is_let_go, 0, 2)
{
	begin();
	listen_anywhere();
	fake.before_bind = _i ? unplug_silently_and_look : unplug_and_look;
	is_refused();
	wait_until(&fake.pds, 0);
	EVENTUALLY(fake_held() == 0);
	fake_plug(0);
	ck_assert(!is_refused());
	end();
}

/* Another device has its address, for example, or it is link-local. */
TEST_LOOP(a_device_that_no_other_id_can_hold_is_held_by_a_request, 0, 2)
{
	begin();
	listen_anywhere();
	fake.no_port = true;
	ck_assert(is_refused());
	ck_assert(!is_refused());
	ck_assert_uint_eq(count(&fake.pds), 1);
	asked(0, false);
	if (_i)
		unplug_silently_and_look();
	else
		unplug_and_look();
	settle();
	ck_assert_uint_eq(count(&fake.pds), 1);
	fabric_reject(conn);
	wait_until(&fake.pds, 0);
	EVENTUALLY(fake_held() == 0);
	end();
}

TEST(a_peer_whose_device_goes_before_its_answer_is_refused)
{
	int err;

	begin();
	listen_anywhere();
	asked(0, false);
	fake_unplug(0, true);
	while (stats_sum_by_name("verbs_devices_gone") == 0)
		settle();
	loop_call(conn_loop, set_up, &err);
	ck_assert_int_eq(err, -ENODEV);
	fabric_reject(conn);
	wait_until(&fake.pds, 0);
	EVENTUALLY(fake_held() == 0);
	end();
}

/* No connection has used it, but listening at its address opened it. */
TEST_LOOP(a_device_that_only_a_listener_has_is_let_go, 0, 2)
{
	begin();
	if (_i)
		fake_unplug(1, false);
	ck_assert_int_eq(try_listen(), 0);
	fake_unplug(0, false);
	EVENTUALLY(fake_held() == 0);
	ck_assert_uint_eq(count(&fake.pds), 0);
	end();
}

TEST(a_device_without_a_way_to_the_peer_is_let_go)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr *sa = (struct sockaddr *)&sin;

	begin();
	/* To resolve the address takes all the time, so none is left for the
	 * route. */
	verbs_fabric_set_connect_ms(&fabric, 10);
	fake.resolve_us = 20000;
	ck_assert_int_eq(fabric_connect(&fabric, sa, &conn), -ETIMEDOUT);
	fake_unplug(0, false);
	EVENTUALLY(fake_held() == 0);
	ck_assert_uint_eq(count(&fake.pds), 0);
	end();
}

static sem_t is_free, is_acked;

static void wait_until_free(void)
{
	sem_post(&is_acked);
	wait_sem(&is_free);
}

static void set_up_and_reject(void *arg)
{
	int err;

	wait_sem(&is_acked);
	set_up(&err);
	ck_assert_int_eq(err, 0);
	fabric_reject(conn);
	sem_post(&is_free);
}

/* The address sanitizer sees it. */
TEST(an_event_of_a_connection_that_moves_to_another_poller_is_dropped)
{
	begin();
	listen_anywhere();
	asked(0, false);
	sem_init(&is_acked, 0, 0);
	sem_init(&is_free, 0, 0);
	fake.after_ack = wait_until_free;
	fake_event(fake.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	loop_call(conn_loop, set_up_and_reject, NULL);
	end();
}

/* ---- devices go and come at any time */

/* A peer of many, whose connection ends in its own way. */
struct guest {
	struct fabric_conn	*fc;
	struct fabric_mr	*mr[2];
	struct loop_task	task;
	unsigned		fate;	/* which way */
};

/* Of the test, and of the listener's loop. */
static unsigned chance, fates;
static unsigned asked_for;
static atomic_int guests;

static void guest_leaves(struct guest *g)
{
	for (unsigned i = 0; i < ARRAY_SIZE(g->mr); i++)
		if (g->mr[i])
			fabric_mr_destroy(g->mr[i]);
	free(g);
	atomic_fetch_sub(&guests, 1);
}

static void guest_established(struct fabric_conn *fc)
{
}

static void guest_closed(struct fabric_conn *fc, int err)
{
	struct guest *g = fc->upper;

	/* Registrations of a connection can outlive it. */
	if (g->fate & 1) {
		fabric_free(fc);
		guest_leaves(g);
	} else {
		guest_leaves(g);
		fabric_free(fc);
	}
}

static void guest_comes(struct loop_task *t)
{
	static uint8_t memory[64];
	static const struct fabric_queues q = { .send_wr = 4, .recv_wr = 4,
						.send_sge = 1 };
	struct guest *g = container_of(t, struct guest, task);
	struct fabric_conn *fc = g->fc;

	fc->established = guest_established;
	fc->closed = guest_closed;
	fabric_mr_create(fc->dev, memory, sizeof(memory), FABRIC_LOCAL,
			 &g->mr[0]);
	if ((g->fate & 2 && fabric_isolate(fc)) ||
	    fabric_setup(fc, conn_loop, &q)) {
		fabric_reject(fc);
		guest_leaves(g);
		return;
	}
	fabric_mr_create_for(fc, memory, sizeof(memory), FABRIC_READ_SINK,
			     &g->mr[1]);
	if (fabric_start(fc, NULL, 0, 1) == 0 && g->fate & 4)
		fabric_close(fc);
}

static void on_guest(struct fabric_listener *l, struct fabric_conn *fc)
{
	struct guest *g = calloc(1, sizeof(*g));

	g->fc = fc;
	g->fate = (unsigned)rand_r(&fates);
	fc->upper = g;
	atomic_fetch_add(&guests, 1);
	loop_post(conn_loop, &g->task, guest_comes);
}

/* One step; @there: which devices are. */
static void anything(bool there[2])
{
	unsigned what = (unsigned)rand_r(&chance), slot = what >> 4 & 1;

	switch (what & 7) {
	case 0:
		if (there[slot])
			fake_unplug(slot, what & 32);
		else
			fake_plug(slot);
		there[slot] = !there[slot];
		break;
	case 1:
		rdma_free_devices(rdma_get_devices(NULL));
		break;
	case 2:
		pthread_mutex_lock(&fake.lock);
		fake.no_port = !fake.no_port;
		pthread_mutex_unlock(&fake.lock);
		break;
	case 3:
	case 4:
		settle();
		break;
	default:
		fake.slot = slot;
		fake.use6 = what & 64;
		fake_request("", 0, 4, 4);
		asked_for++;
		break;
	}
}

TEST_LOOP(devices_may_go_and_come_at_any_time, 0, 20)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	bool there[2] = { true, true };

	begin();
	chance = fates = (unsigned)_i;
	ck_assert_int_eq(fabric_listen(&fabric, (struct sockaddr *)&any, loop,
				       on_guest, NULL, &listener), 0);
	for (unsigned i = 0; i < 100; i++)
		anything(there);
	for (unsigned slot = 0; slot < 2; slot++)
		if (there[slot])
			fake_unplug(slot, _i & 1);
	EVENTUALLY(stats_sum_by_name("verbs_requests") == asked_for);
	settle();
	EVENTUALLY(atomic_load(&guests) == 0);
	EVENTUALLY(count(&fake.pds) == 0);
	ck_assert_uint_eq(count(&fake.mrs), 0);
	EVENTUALLY(fake_held() == 0);
	end();
}
