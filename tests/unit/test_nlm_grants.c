/* SPDX-License-Identifier: BSD-2-Clause */
/* Grants whose clients have not answered, hosts and their ends, and keys that
 * peers choose, in the table of locks. */
#include "nlm/table.h"

#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "tests/unit/collision.h"
#include "tests/unit/runner.h"

#define MANY		2000u
#define ADDRESSES	64u
/* Nodes that two searches in a tree of so many look at. */
#define FEW		128u
#define ID(i)		(((uint64_t)(i) + 1) * 256)

static struct nlm_table table;
static struct nlm_file *file;
static struct nlm_owner *owner;
static struct vfs_fs fs;

static void setup(void)
{
	static const struct nlm_limits limits = {
		.hosts = 8, .client_hosts = 2, .waits = 2 * MANY,
		.client_waits = MANY, .file_waits = MANY,
	};
	const struct vfs_handle h = { .len = 1 };
	const struct nlm_who who = {
		.addr.s6_addr = { 0xfd, [15] = 1 },
		.name = (const uint8_t *)"host", .name_len = 4,
		.oh = (const uint8_t *)"",
	};

	nlm_table_init(&table, &limits);
	file = nlm_file_add(&table, &fs, &h);
	owner = nlm_owner_get(&table, &who);
}

TEST_CASE(.setup = setup);

TEST(an_answer_finds_its_grant_among_many)
{
	struct nlm_node *grants = NULL;
	struct nlm_wait *w[MANY];
	uint64_t before;

	for (unsigned i = 0; i < MANY; i++) {
		const struct nlm_span at = { 2 * i, 2 * i, true };

		w[i] = nlm_wait_add(&table, file, owner, &at);
		ck_assert_ptr_nonnull(w[i]);
		nlm_wait_put(w[i], NULL);
		w[i]->granted = true;
		w[i]->id = ID(i);
		nlm_wait_put(w[i], &grants);
	}
	for (unsigned i = 0; i < MANY; i++) {
		before = nlm_steps;
		ck_assert_ptr_eq(nlm_grant_find(grants, ID(i)), w[i]);
		ck_assert_ptr_null(nlm_grant_find(grants, ID(i) + 1));
		ck_assert_uint_le(nlm_steps - before, FEW);
	}
	/* A wait that has ended is not found. */
	nlm_wait_free(&table, w[7]);
	ck_assert_ptr_null(nlm_grant_find(grants, ID(7)));
	ck_assert_ptr_eq(nlm_grant_find(grants, ID(8)), w[8]);
}

static struct nlm_wait *wait_at(unsigned i)
{
	const struct nlm_span at = { 2 * i, 2 * i, true };
	struct nlm_wait *w = nlm_wait_add(&table, file, owner, &at);

	ck_assert_ptr_nonnull(w);
	return w;
}

TEST(the_call_back_that_is_due_first_is_found_among_many)
{
	struct nlm_node *due = NULL;
	struct nlm_wait *w;
	uint64_t before;

	for (unsigned i = 0; i < MANY; i++) {
		w = wait_at(i);
		/* In another order than their bytes. */
		w->next_ms = 1 + (i * 7) % MANY;
		nlm_due_put(w, &due);
	}
	for (unsigned ms = 1; ms <= MANY; ms++) {
		before = nlm_steps;
		ck_assert_ptr_null(nlm_due_first(due, ms - 1));
		w = nlm_due_first(due, UINT64_MAX - 1);
		ck_assert_ptr_eq(w, nlm_due_first(due, ms));
		ck_assert_uint_le(nlm_steps - before, FEW);
		ck_assert_uint_eq(w->next_ms, ms);
		nlm_wait_free(&table, w);
	}
	ck_assert_ptr_null(due);
}

TEST(a_call_back_behind_others_of_its_host_takes_the_place_of_one_that_ends)
{
	struct nlm_node *due = NULL;
	struct nlm_wait *w[4];

	for (unsigned i = 0; i < 4; i++) {
		w[i] = wait_at(i);
		nlm_due_put(w[i], &due);
	}
	nlm_due_behind(w[1]);
	nlm_due_behind(w[2]);
	nlm_due_behind(w[3]);
	ck_assert_ptr_eq(nlm_due_first(due, 0), w[0]);
	/* A call-back of the host ended. */
	nlm_due_next(w[0]->owner->host, &due);
	nlm_due_end(w[0]);
	nlm_due_end(w[1]);
	ck_assert_ptr_eq(nlm_due_first(due, 0), w[2]);
	/* A waiter that ends behind others is not called. */
	nlm_wait_free(&table, w[3]);
	nlm_wait_free(&table, w[2]);
	ck_assert_ptr_null(due);
}

/* All want the end of the file, from other bytes on, or its start, up to other
 * bytes. */
TEST(a_wait_is_found_among_many_of_its_owner)
{
	struct nlm_wait *w[MANY];
	uint64_t before;

	for (uint64_t i = 0; i < MANY; i++)
		w[i] = nlm_wait_add(&table, file, owner, &(struct nlm_span){
			i % 2 ? i : 0, i % 2 ? NLM_EOF : i, i % 4 < 2 });
	for (unsigned i = 0; i < MANY; i++) {
		struct nlm_span at = w[i]->at;

		before = nlm_steps;
		ck_assert_ptr_eq(nlm_wait_find(file, owner, &at), w[i]);
		at.exclusive = !at.exclusive;
		ck_assert_ptr_null(nlm_wait_find(file, owner, &at));
		ck_assert_uint_le(nlm_steps - before, FEW);
	}
	nlm_wait_free(&table, w[8]);
	ck_assert_ptr_null(nlm_wait_find(file, owner, &(struct nlm_span){
		0, 8, true }));
	ck_assert_ptr_eq(nlm_wait_find(file, owner, &w[9]->at), w[9]);
}

TEST(a_grant_is_found_however_many_of_its_owner_want_its_bytes)
{
	struct nlm_node *grants = NULL;
	const struct nlm_span at = { 7, 7, true };
	struct nlm_wait *w;
	uint64_t before;

	for (uint64_t i = 0; i < MANY - 1; i++)
		nlm_wait_add(&table, file, owner, &(struct nlm_span){
			i % 7, NLM_EOF - i, true });
	w = nlm_wait_add(&table, file, owner, &at);
	before = nlm_steps;
	ck_assert_ptr_null(nlm_grant_next(file, owner, &at, NULL));
	w->granted = true;
	w->id = ID(1);
	nlm_wait_put(w, &grants);
	ck_assert_ptr_eq(nlm_grant_next(file, owner, &at, NULL), w);
	ck_assert_ptr_null(nlm_grant_next(file, owner, &at, w));
	/* It waits again. */
	nlm_wait_put(w, NULL);
	w->granted = false;
	nlm_wait_put(w, &file->asleep);
	ck_assert_ptr_null(nlm_grant_next(file, owner, &at, NULL));
	ck_assert_uint_le(nlm_steps - before, 4 * FEW);
}

TEST(an_unlock_looks_at_those_waits_of_its_owner_that_want_its_bytes)
{
	struct nlm_wait *w[MANY];
	uint64_t before;

	for (unsigned i = 0; i < MANY; i++)
		w[i] = wait_at(i);
	for (unsigned i = 0; i < MANY; i++) {
		const struct nlm_span at = w[i]->at;

		before = nlm_steps;
		ck_assert_ptr_eq(nlm_asleep_next(file, owner, &at, NULL), w[i]);
		ck_assert_ptr_null(nlm_asleep_next(file, owner, &at, w[i]));
		nlm_wait_free(&table, w[i]);
		ck_assert_uint_le(nlm_steps - before, 4 * FEW);
	}
	ck_assert_ptr_null(file->queues);
}

/* A wait is granted when no other grant of its owner for these bytes awaits an
 * answer, or was cut. */
TEST_LOOP(the_end_of_a_grant_has_its_owners_waits_tried, 0, 3)
{
	struct nlm_wait *grant = wait_at(0), *behind = wait_at(0);

	grant->granted = _i == 0;
	grant->cut = _i == 1;
	nlm_wait_put(grant, NULL);
	nlm_queue_move(grant);
	nlm_wait_put(behind, &file->asleep);
	nlm_wait_free(&table, grant);
	ck_assert_ptr_eq(nlm_next_ready(file), _i == 2 ? NULL : behind);
}

TEST(the_end_of_a_host_is_known_when_it_has_left_the_table)
{
	struct nlm_host *host = owner->host;
	struct nlm_who who = {
		.addr = host->addr, .name = (const uint8_t *)"host",
		.name_len = 4,
	};
	uint64_t came = clock_ns();

	ck_assert(!nlm_table_is_outlived(&table, host, came, 3));
	host->restart_ns = clock_ns();
	nlm_owner_tidy(&table, owner);
	nlm_host_free(&table, host);
	host = nlm_host_get(&table, &who);
	ck_assert(nlm_table_is_outlived(&table, host, came, 3));
	ck_assert(!nlm_table_is_outlived(&table, host, clock_ns() + 1, 3));
	/* One that was never there. */
	came = clock_ns();
	nlm_table_ended(&table, &who, 0);
	ck_assert(nlm_table_is_outlived(&table, host, came, 3));
	/* The host had restarted, and has asked in its new state. */
	nlm_table_ended(&table, &who, 3);
	ck_assert(!nlm_table_is_outlived(&table, host, came, 3));
	ck_assert(nlm_table_is_outlived(&table, host, came, 1));
}

static void end_named(const char *name, uint8_t last_byte)
{
	struct nlm_who who = {
		.addr = owner->host->addr, .name = (const uint8_t *)name,
		.name_len = name ? (uint32_t)strlen(name) : 0,
	};

	who.addr.s6_addr[15] = last_byte;
	nlm_table_ended(&table, &who, 0);
}

TEST(an_end_is_for_hosts_of_its_name_with_or_without_a_domain)
{
	static const char *const same[] = { "host", "HOST", "host.example",
					    NULL };
	uint64_t came;

	for (unsigned i = 0; i < ARRAY_SIZE(same); i++) {
		came = clock_ns();
		end_named(same[i], 1);
		ck_assert(nlm_table_is_outlived(&table, owner->host, came, 3));
	}
}

/* No host has such a name.  From many addresses, as hosts share a place by
 * chance. */
TEST(an_end_of_an_empty_name_is_not_for_all_hosts_of_its_address)
{
	uint64_t came = clock_ns();
	unsigned concerned = 0;

	for (uint8_t i = 1; i <= 64; i++) {
		owner->host->addr.s6_addr[15] = i;
		end_named("", i);
		end_named(".example", i);
		concerned += nlm_table_is_outlived(&table, owner->host, came,
						   3);
	}
	ck_assert_uint_lt(concerned, 32);
}

/* Anybody can send notices with any name, even of hosts that share an address,
 * such as a NAT's.  Hosts share a place by chance.  An address has a place for
 * all its hosts, which one notice in 65,536 takes, so there are many. */
TEST(a_storm_of_ends_of_others_concerns_few_hosts)
{
	uint64_t came = clock_ns(), last;
	unsigned concerned = 0;
	char name[16];

	end_named("host", 1);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "stranger%u", i);
		end_named(name, i % ADDRESSES);
	}
	last = clock_ns();
	ck_assert(nlm_table_is_outlived(&table, owner->host, came, 3));
	/* A call that comes later is not concerned. */
	ck_assert(!nlm_table_is_outlived(&table, owner->host, last + 1, 3));
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(owner->host->name, sizeof(name), "other%u", i);
		owner->host->addr.s6_addr[15] = i % ADDRESSES;
		concerned += nlm_table_is_outlived(&table, owner->host, came,
						   3);
	}
	ck_assert_uint_lt(concerned, MANY / 4);
}

/* Hosts of one network choose their addresses. */
TEST(a_host_is_found_and_counted_among_few_however_many_its_network_has)
{
	struct nlm_who who = {
		.addr.s6_addr = { 0x20, 0x01, 0x0d, 0xb8 },
		.name = (const uint8_t *)"host", .name_len = 4,
	};
	struct nlm_host *h;
	uint64_t before;

	table.limits.hosts = 2 * MANY;
	table.limits.ranges = table.limits.client_ranges = MANY;
	for (unsigned i = 0; i < MANY; i++) {
		who.addr.s6_addr[14] = (uint8_t)(i >> 8);
		who.addr.s6_addr[15] = (uint8_t)i;
		h = nlm_host_get(&table, &who);
		ck_assert_ptr_nonnull(h);
		nlm_count(h, NLM_RANGES, 1);
	}
	before = nlm_steps;
	ck_assert_ptr_eq(nlm_host_find(&table, &who), h);
	ck_assert_uint_eq(nlm_client_count(&table, &who.addr, NLM_HOSTS), MANY);
	ck_assert_uint_eq(nlm_ranges_of(&table, &who.addr), 1);
	/* Its network has more than three quarters. */
	ck_assert(!nlm_has_room(&table, &who.addr, NLM_RANGES, 1));
	ck_assert_uint_le(nlm_steps - before, FEW);
	for (unsigned i = 0; i < MANY; i++) {
		who.addr.s6_addr[14] = (uint8_t)(i >> 8);
		who.addr.s6_addr[15] = (uint8_t)i;
		h = nlm_host_find(&table, &who);
		nlm_count(h, NLM_RANGES, -1);
		nlm_host_free(&table, h);
	}
	/* The count of a network goes with its last host. */
	ck_assert_uint_eq(nlm_client_count(&table, &who.addr, NLM_HOSTS), 0);
	before = nlm_steps;
	ck_assert_ptr_null(nlm_host_find(&table, &who));
	ck_assert_uint_le(nlm_steps - before, FEW);
}

/* ---- a host that restarts */

static void lock_byte(struct nlm_hold *h, uint64_t byte, uint32_t state)
{
	const struct nlm_span at = { byte, byte, true };
	struct nlm_spare spare;

	ck_assert(nlm_spare_get(&table, owner->host, false, &spare));
	nlm_range_set(&table, h, &at, state, &spare);
	nlm_spare_put(&spare);
}

TEST(ranges_that_a_restart_keeps_are_joined)
{
	struct nlm_hold *h = nlm_hold_get(file, owner);
	struct nlm_range *r, *next;

	lock_byte(h, 1, 5);
	lock_byte(h, 2, 5);
	lock_byte(h, 2, 7);
	lock_byte(h, 3, 5);
	ck_assert_uint_eq(table.ranges, 3);
	cds_list_for_each_entry_safe(r, next, &h->ranges, link)
		nlm_range_keep(&table, h, r, 5);
	ck_assert_uint_eq(table.ranges, 1);
	ck_assert_uint_eq(owner->host->n[NLM_RANGES], 1);
	r = cds_list_first_entry(&h->ranges, struct nlm_range, link);
	ck_assert_uint_eq(r->at.start, 1);
	ck_assert_uint_eq(r->at.end, 3);
	ck_assert_uint_eq(r->from.state, 5);
	ck_assert_uint_eq(r->from.older, 0);
}

/* ---- keys that peers choose */

static unsigned longest_chain(struct cds_list_head *bucket)
{
	unsigned most = 0, n;
	struct cds_list_head *at;

	for (unsigned i = 0; i < NLM_BUCKETS; i++) {
		n = 0;
		cds_list_for_each(at, &bucket[i])
			n++;
		most = MAX(most, n);
	}
	return most;
}

/* By chance a place gets 8, and more than 64 never. */
TEST(crafted_owners_and_files_spread_over_their_tables)
{
	struct nlm_who who = { .name = (const uint8_t *)"host", .name_len = 4,
			       .addr.s6_addr = { 0xfd, [15] = 1 } };
	struct vfs_handle h = { .len = 16 };
	uint64_t text[2];

	for (unsigned i = 0; i < 8 * NLM_BUCKETS; i++) {
		make_collision(i, text);
		who.oh = (const uint8_t *)text;
		who.oh_len = sizeof(text);
		ck_assert_ptr_nonnull(nlm_owner_get(&table, &who));
		memcpy(h.data, text, sizeof(text));
		ck_assert_ptr_nonnull(nlm_file_add(&table, &fs, &h));
	}
	ck_assert_uint_le(longest_chain(table.owner), 64);
	ck_assert_uint_le(longest_chain(table.file), 64);
}
