/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of locks, against a map of the owner of each byte. */
#include "nlm/table.h"

#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "tests/unit/runner.h"

#define OWNERS		20u
#define BYTES		64u
#define OPERATIONS	100000u

static struct nlm_table table;
static struct nlm_file *file;
static struct vfs_fs fs;
static const struct nlm_limits limits = {
	.hosts = 8, .client_hosts = 2, .ranges = 10000, .client_ranges = 10000,
	.waits = 4, .client_waits = 3, .shares = 4, .client_shares = 3,
	.file_ranges = 20000, .file_waits = 10000,
};

static struct nlm_file *add_file(uint8_t number)
{
	struct vfs_handle h = { .len = 1, .data = { number } };

	return nlm_file_add(&table, &fs, &h);
}

static void setup(void)
{
	nlm_table_init(&table, &limits);
	file = add_file(1);
}

/* A client of IPv4. */
static struct in6_addr client_at(uint8_t last)
{
	struct in6_addr a = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	a.s6_addr[15] = last;
	return a;
}

static struct nlm_owner *owner(unsigned n)
{
	char name[16];
	uint8_t oh = (uint8_t)n;
	struct nlm_who who = { .name = (const uint8_t *)name, .oh = &oh,
			       .oh_len = 1, .svid = n / 2 };

	who.addr = client_at((uint8_t)(n % 5));
	who.name_len = (uint32_t)snprintf(name, sizeof(name), "host%u", n % 5);
	return nlm_owner_get(&table, &who);
}

/* Of the status monitors: the LOCKs are in it. */
static uint32_t state = 7;

static void change(struct nlm_file *f, unsigned n, const struct nlm_span *at,
		   bool set)
{
	struct nlm_hold *h = nlm_hold_get(f, owner(n));
	struct nlm_owner *o = h->owner;
	struct nlm_spare spare;

	ck_assert(nlm_spare_get(&table, o->host, set, &spare));
	if (set)
		nlm_range_set(&table, h, at, state, &spare);
	else
		nlm_range_clear(&table, h, at, &spare);
	nlm_spare_put(&spare);
	if (cds_list_empty(&h->ranges)) {
		nlm_hold_free(h);
		nlm_owner_tidy(&table, o);
	}
}

static struct nlm_span span(uint64_t start, uint64_t end, bool exclusive)
{
	return (struct nlm_span){ start, end, exclusive };
}

/* Of each byte and owner: '-', 's' or 'x'.  The last one is all that follow. */
static char map[OWNERS][BYTES];

static bool map_conflict(unsigned n, const struct nlm_span *at)
{
	for (unsigned o = 0; o < OWNERS; o++)
		for (uint64_t b = at->start; b <= MIN(at->end, BYTES - 1); b++)
			if (o != n && (map[o][b] == 'x' ||
				       (map[o][b] == 's' && at->exclusive)))
				return true;
	return false;
}

/* The ranges are sorted, apart, joined, and agree with the map. */
static void check_owner(unsigned n)
{
	struct nlm_owner *o = owner(n);
	struct nlm_hold *h = nlm_hold_find(file, o);
	const struct nlm_range *r, *last = NULL;
	char seen[BYTES];

	memset(seen, '-', BYTES);
	if (h)
		cds_list_for_each_entry(r, &h->ranges, link) {
			ck_assert_uint_le(r->at.start, r->at.end);
			ck_assert(!last || r->at.start > last->at.end);
			ck_assert(!last || r->at.start > last->at.end + 1 ||
				  r->at.exclusive != last->at.exclusive ||
				  r->from.state != last->from.state ||
				  r->from.older != last->from.older);
			memset(seen + r->at.start, r->at.exclusive ? 'x' : 's',
			       MIN(r->at.end, BYTES - 1) - r->at.start + 1);
			last = r;
		}
	nlm_owner_tidy(&table, o);
	ck_assert_mem_eq(seen, map[n], BYTES);
}

/* A restart in the state of a LOCK keeps its bytes. */
static void check_state(unsigned n, const struct nlm_span *at)
{
	struct nlm_hold *h = nlm_hold_find(file, owner(n));
	const struct nlm_range *r;

	cds_list_for_each_entry(r, &h->ranges, link)
		if (nlm_overlap(&r->at, at))
			ck_assert(r->from.state == state ||
				  r->from.older == state);
}

TEST_CASE(.setup = setup);

TEST(random_operations_of_20_owners_do_as_a_map_of_bytes)
{
	unsigned granted = 0, seed = 7;

	memset(map, '-', sizeof(map));
	for (unsigned i = 0; i < OPERATIONS; i++) {
		unsigned n = (unsigned)rand_r(&seed) % OWNERS;
		uint64_t start = (uint64_t)rand_r(&seed) % BYTES;
		uint64_t len = (uint64_t)rand_r(&seed) % 12;
		bool exclusive = rand_r(&seed) & 1;
		struct nlm_span at = span(start, start + len, exclusive);
		bool set = rand_r(&seed) % 3;
		struct nlm_owner *o = owner(n);
		bool free;

		if (at.end >= BYTES - 1)
			at.end = NLM_EOF;
		free = !nlm_conflict(file, o, &at);
		ck_assert_int_eq(free, !map_conflict(n, &at));
		nlm_owner_tidy(&table, o);
		if (set && !free)
			continue;
		granted += set;
		state = 5 + (unsigned)rand_r(&seed) % 3;
		change(file, n, &at, set);
		if (set)
			check_state(n, &at);
		memset(map[n] + start, !set ? '-' : at.exclusive ? 'x' : 's',
		       MIN(at.end, BYTES - 1) - start + 1);
		check_owner(n);
	}
	ck_assert_uint_gt(granted, OPERATIONS / 10);
	for (unsigned n = 0; n < OWNERS; n++)
		change(file, n, &(struct nlm_span){ 0, NLM_EOF, false }, false);
	ck_assert_uint_eq(table.ranges, 0);
	ck_assert_uint_eq(table.owners, 0);
}

static void waits_for(unsigned n, struct nlm_file *f, struct nlm_span at)
{
	ck_assert_ptr_nonnull(nlm_wait_add(&table, f, owner(n), &at));
}

TEST(a_circle_over_two_files_and_three_owners_is_a_deadlock)
{
	struct nlm_span one = span(0, 9, true), two = span(20, 29, true);
	struct nlm_file *other = add_file(2);

	change(file, 1, &one, true);
	change(file, 2, &two, true);
	change(other, 3, &one, true);
	waits_for(1, file, two);
	ck_assert(!nlm_deadlock(&table, other, owner(2), &one));
	waits_for(2, other, one);
	ck_assert(nlm_deadlock(&table, file, owner(3), &one));
	/* But not one that shares nothing with them. */
	ck_assert(!nlm_deadlock(&table, file, owner(4), &one));
	/* Nor for unlocked bytes. */
	one = span(100, NLM_EOF, true);
	ck_assert(!nlm_deadlock(&table, file, owner(3), &one));
}

TEST(a_search_for_deadlocks_ends_after_so_many_ranges)
{
	struct nlm_span first = span(0, 0, true);
	struct nlm_span far = span(1u << 20, NLM_EOF, true);
	struct nlm_file *other = add_file(2);

	table.limits.waits = table.limits.client_waits = 100;
	change(file, 1, &first, true);
	change(file, 3, &far, true);
	waits_for(1, file, far);
	ck_assert(nlm_deadlock(&table, file, owner(3), &first));
	for (unsigned i = 0; i < 1000; i++) {
		struct nlm_span at = span(2 * i, 2 * i, true);

		change(other, 2, &at, true);
	}
	/* Looked at before the one that makes the circle. */
	for (unsigned i = 0; i < 99; i++)
		waits_for(1, other, span(0, NLM_EOF - i, true));
	ck_assert(!nlm_deadlock(&table, file, owner(3), &first));
}

TEST(an_owner_does_not_wait_for_itself)
{
	struct nlm_span shared = span(0, 9, false), all = span(0, 9, true);

	change(file, 1, &shared, true);
	change(file, 2, &shared, true);
	waits_for(1, file, all);
	/* Each waits for the other to let go of its shared lock. */
	ck_assert(nlm_deadlock(&table, file, owner(2), &all));
	change(file, 2, &shared, false);
	ck_assert(!nlm_deadlock(&table, file, owner(1), &all));
}

TEST(waiters_shares_and_ranges_are_bounded_for_each_client_and_in_all)
{
	struct nlm_span at = span(0, 1, true);
	struct nlm_spare spare;

	for (unsigned i = 0; i < limits.client_waits; i++)
		waits_for(5 * i, file, at);
	ck_assert_ptr_null(nlm_wait_add(&table, file, owner(100), &at));
	waits_for(1, file, at);
	ck_assert_ptr_null(nlm_wait_add(&table, file, owner(2), &at));
	for (unsigned i = 0; i < limits.client_shares; i++)
		ck_assert_ptr_nonnull(nlm_share_add(&table, file,
						    owner(5 * i)));
	ck_assert_ptr_null(nlm_share_add(&table, file, owner(100)));
	table.limits.client_ranges = 2;
	ck_assert(nlm_spare_get(&table, owner(0)->host, true, &spare));
	nlm_spare_put(&spare);
	change(file, 0, &at, true);
	ck_assert(!nlm_spare_get(&table, owner(0)->host, true, &spare));
	/* To unlock is not refused then. */
	ck_assert(nlm_spare_get(&table, owner(0)->host, false, &spare));
	nlm_spare_put(&spare);
}

TEST(to_unlock_splits_ranges_up_to_twice_the_limit)
{
	const struct nlm_span all = { 0, NLM_EOF, true };
	struct nlm_hold *h;
	unsigned n = 0;

	table.limits.client_ranges = 4;
	change(file, 0, &all, true);
	h = nlm_hold_find(file, owner(0));
	for (; n < 20; n++) {
		struct nlm_span at = span(10 * n + 5, 10 * n + 6, false);

		if (!nlm_may_clear(&table, h, &at))
			break;
		change(file, 0, &at, false);
	}
	ck_assert_uint_eq(n, 7);
	ck_assert(nlm_may_clear(&table, h, &(struct nlm_span){ 0, 4, false }));
	ck_assert(nlm_may_clear(&table, h, &all));
}

TEST(the_waiters_and_ranges_of_a_file_leave_room_in_others)
{
	struct nlm_span at = span(0, 1, true);
	struct nlm_file *other = add_file(2);

	table.limits.file_waits = 2;
	table.limits.file_ranges = 3;
	waits_for(1, file, at);
	waits_for(2, file, at);
	ck_assert_ptr_null(nlm_wait_add(&table, file, owner(3), &at));
	waits_for(3, other, at);
	nlm_wait_free(&table, nlm_wait_find(file, owner(1), &at));
	waits_for(4, file, at);
	change(file, 1, &at, true);
	ck_assert(nlm_file_has_room(&table, file));
	at = span(4, 5, true);
	change(file, 2, &at, true);
	/* A lock can make two ranges of one. */
	ck_assert(!nlm_file_has_room(&table, file));
	ck_assert(nlm_file_has_room(&table, other));
	change(file, 2, &at, false);
	ck_assert(nlm_file_has_room(&table, file));
}

static struct nlm_who host_at(uint8_t last, const char *name)
{
	return (struct nlm_who){
		.addr = client_at(last), .name = (const uint8_t *)name,
		.name_len = (uint32_t)strlen(name),
	};
}

static struct nlm_host *host(uint8_t last, const char *name)
{
	const struct nlm_who who = host_at(last, name);

	return nlm_host_get(&table, &who);
}

TEST(hosts_are_bounded)
{
	struct nlm_who who = host_at(3, "c");

	for (uint8_t i = 0; i < limits.hosts; i++)
		ck_assert_ptr_nonnull(host(i, "c"));
	ck_assert_ptr_null(host(77, "c"));
	nlm_host_free(&table, nlm_host_find(&table, &who));
	ck_assert_ptr_nonnull(host(77, "c"));
}

TEST(a_network_of_ipv6_leaves_room_for_others)
{
	struct nlm_who who = host_at(0, "c");
	struct nlm_spare spare;
	struct nlm_host *h = NULL;

	/* Six of eight, each with a separate address. */
	who.addr = (struct in6_addr){ .s6_addr = { 0x20, 0x01, 0x0d, 0xb8 } };
	for (uint8_t i = 0; i < 6; i++) {
		who.addr.s6_addr[8 + i] = 1;
		h = nlm_host_get(&table, &who);
		ck_assert_ptr_nonnull(h);
		nlm_count(h, NLM_RANGES, 1249);
	}
	who.addr.s6_addr[15] = 1;
	ck_assert_ptr_null(nlm_host_get(&table, &who));
	ck_assert(nlm_spare_get(&table, h, true, &spare));
	nlm_spare_put(&spare);
	nlm_count(h, NLM_RANGES, 6);
	ck_assert(!nlm_spare_get(&table, h, true, &spare));
	who.addr.s6_addr[7] = 1;
	h = nlm_host_get(&table, &who);
	ck_assert_ptr_nonnull(h);
	ck_assert(nlm_spare_get(&table, h, true, &spare));
	nlm_spare_put(&spare);
	ck_assert_ptr_nonnull(host(1, "c"));
}

TEST(the_names_of_one_address_share_its_bounds)
{
	struct nlm_host *a = host(1, "a"), *b = host(1, "b");
	struct nlm_spare spare;

	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(a, host(1, "a"));
	ck_assert_ptr_null(host(1, "c"));
	ck_assert_ptr_nonnull(host(2, "c"));
	nlm_count(a, NLM_RANGES, (int)limits.client_ranges - 2);
	ck_assert(nlm_spare_get(&table, b, true, &spare));
	nlm_spare_put(&spare);
	nlm_count(b, NLM_RANGES, 1);
	ck_assert(!nlm_spare_get(&table, b, true, &spare));
	ck_assert(nlm_spare_get(&table, host(2, "c"), true, &spare));
	nlm_spare_put(&spare);
}

TEST(a_waiter_remembers_the_parts_that_its_owner_had)
{
	struct nlm_span at = span(10, 30, true);
	struct nlm_wait *w;

	change(file, 1, &(struct nlm_span){ 0, 12, false }, true);
	change(file, 1, &(struct nlm_span){ 20, 40, true }, true);
	w = nlm_wait_add(&table, file, owner(1), &at);
	ck_assert(nlm_wait_note(w, nlm_hold_find(file, owner(1))));
	ck_assert_uint_eq(w->nbefore, 2);
	ck_assert_uint_eq(w->before[0].at.start, 10);
	ck_assert_uint_eq(w->before[0].at.end, 12);
	ck_assert(!w->before[0].at.exclusive);
	ck_assert_uint_eq(w->before[1].at.start, 20);
	ck_assert_uint_eq(w->before[1].at.end, 30);
	ck_assert(w->before[1].at.exclusive);
}

static bool has_any(struct nlm_span at)
{
	return nlm_hold_has_any(file, owner(1), &at);
}

TEST(an_owner_has_a_byte_of_a_range_as_that_or_as_more)
{
	change(file, 1, &(struct nlm_span){ 5, 9, true }, true);
	change(file, 1, &(struct nlm_span){ 10, 19, false }, true);
	ck_assert(has_any(span(0, 5, true)) && has_any(span(9, 30, true)));
	ck_assert(has_any(span(7, 7, false)) && has_any(span(19, 30, false)));
	/* Shared bytes are no part of an exclusive lock. */
	ck_assert(!has_any(span(10, 30, true)) && !has_any(span(0, 4, false)));
}

static unsigned height_of(const struct nlm_node *n)
{
	unsigned left, right;

	if (!n)
		return 0;
	left = height_of(n->left);
	right = height_of(n->right);
	return 1 + MAX(left, right);
}

/* A search takes one path: this is the cost of a lock. */
TEST(a_conflict_among_8000_ranges_lies_on_a_path_of_60)
{
	struct nlm_span all = { 0, NLM_EOF, true };

	/* The worst order for a tree that doesn't balance itself. */
	for (unsigned i = 0; i < 8000; i++)
		change(file, i % 40, &(struct nlm_span){ 2 * i, 2 * i, true },
		       true);
	ck_assert_uint_gt(height_of(file->ranges), 12);
	ck_assert_uint_lt(height_of(file->ranges), 60);
	for (unsigned n = 0; n < 40; n++) {
		struct nlm_hold *h = nlm_hold_find(file, owner(n));

		ck_assert_uint_lt(height_of(h->tree), 40);
	}
	change(file, 1, &(struct nlm_span){ 2, 2, true }, false);
	for (unsigned n = 0; n < 40; n += 2)
		change(file, n, &all, false);
	ck_assert_uint_eq(nlm_conflict(file, NULL, &all)->at.start, 6);
	for (unsigned n = 1; n < 40; n += 2)
		change(file, n, &all, false);
	ck_assert_ptr_null(file->ranges);
}

/* The most ranges, holds and waiters that an operation of a file with
 * thousands of them looks at: some walks down trees of 20 to 40 levels. */
#define FEW		1000u
#define MANY		10000u

static uint64_t looked_at;

static void begin_count(void)
{
	looked_at = nlm_steps;
}

static void ck_assert_few(void)
{
	ck_assert_uint_le(nlm_steps - looked_at, FEW);
}

/* MANY ranges, each second byte, of @owners owners. */
static void hold_many(unsigned owners)
{
	table.limits.ranges = table.limits.client_ranges = 2 * MANY;
	table.limits.waits = table.limits.client_waits = MANY;
	for (uint64_t i = 0; i < MANY; i++) {
		struct nlm_span at = span(2 * i, 2 * i, true);

		change(file, (unsigned)(i % owners), &at, true);
	}
}

TEST(a_lock_beside_ten_thousand_of_many_owners_looks_at_few)
{
	const unsigned stranger = OWNERS + 1;

	hold_many(OWNERS);
	for (uint64_t b = 0; b < 2 * MANY; b += 2) {
		struct nlm_span free = span(b + 1, b + 1, true);
		struct nlm_span held = span(b, b, false);
		const struct nlm_range *r;

		begin_count();
		ck_assert_ptr_null(nlm_conflict(file, owner(stranger), &free));
		change(file, stranger, &free, true);
		change(file, stranger, &free, false);
		r = nlm_conflict(file, owner(stranger), &held);
		ck_assert_few();
		ck_assert_ptr_nonnull(r);
		ck_assert_uint_eq(r->at.start, b);
		ck_assert_ptr_eq(r->hold->owner, owner(b / 2 % OWNERS));
	}
}

TEST(an_owner_passes_over_its_own_ten_thousand_ranges_at_once)
{
	struct nlm_span last = span(3 * MANY, 3 * MANY, false);
	struct nlm_span all = span(0, NLM_EOF, true);
	struct nlm_span some = span(0, 2 * MANY, true);
	const struct nlm_range *r;

	hold_many(1);
	change(file, 1, &last, true);
	begin_count();
	r = nlm_conflict(file, owner(0), &all);
	ck_assert_ptr_null(nlm_conflict(file, owner(0), &some));
	all.exclusive = false;
	ck_assert_ptr_null(nlm_conflict(file, owner(0), &all));
	ck_assert_few();
	ck_assert_uint_eq(r->at.start, last.start);
}

/* Counts the ready waiters, and puts them to sleep. */
static unsigned take_ready(void)
{
	struct nlm_wait *w;
	uint64_t last = 0;
	unsigned n = 0;

	for (; (w = nlm_next_ready(file)); n++) {
		ck_assert(n == 0 || w->number.start > last);
		last = w->number.start;
		nlm_wait_put(w, &file->asleep);
	}
	return n;
}

TEST(waiters_are_looked_at_only_when_bytes_of_theirs_are_freed)
{
	struct nlm_span free = span(1, 1, true), shared = span(1, 1, false);

	hold_many(OWNERS);
	/* For bytes that are held, none of them for byte 1 or 0. */
	for (uint64_t i = MANY; i > MANY - 2000; i--)
		waits_for((unsigned)i % OWNERS, file,
			  span(2 * i - 3, 2 * i, true));
	for (unsigned i = 0; i < 100; i++) {
		begin_count();
		change(file, 3, &free, true);
		change(file, 3, &shared, true);
		change(file, 3, &free, false);
		ck_assert_few();
		ck_assert_ptr_null(nlm_next_ready(file));
	}
	/* Two wait for a byte in the middle. */
	free = span(2 * MANY - 1000, 2 * MANY - 1000, true);
	begin_count();
	change(file, (unsigned)(free.start / 2 % OWNERS), &free, false);
	ck_assert_few();
	ck_assert_uint_eq(take_ready(), 2);
	/* Bytes that the owner did not hold are not freed. */
	change(file, 4, &(struct nlm_span){ 0, NLM_EOF, false }, false);
	ck_assert_uint_le(take_ready(), 2000);
	change(file, 4, &(struct nlm_span){ 0, NLM_EOF, false }, false);
	ck_assert_uint_eq(take_ready(), 0);
}

TEST(a_lock_that_becomes_shared_or_is_taken_again_wakes_whom_it_was_in_the_way)
{
	struct nlm_span at = span(0, 9, true), half = span(0, 4, false);

	change(file, 1, &at, true);
	waits_for(2, file, span(2, 2, false));
	waits_for(3, file, span(7, 7, false));
	/* Held already: nothing changes. */
	change(file, 1, &at, true);
	change(file, 1, &(struct nlm_span){ 3, 5, true }, true);
	ck_assert_uint_eq(take_ready(), 0);
	change(file, 1, &half, true);
	ck_assert_uint_eq(take_ready(), 1);
	change(file, 1, &half, true);
	ck_assert_uint_eq(take_ready(), 0);
	change(file, 1, &at, false);
	ck_assert_uint_eq(take_ready(), 2);
}

TEST(an_owner_that_holds_nothing_is_in_no_deadlock_whatever_others_hold)
{
	struct nlm_span all = span(0, NLM_EOF, true);

	hold_many(OWNERS);
	begin_count();
	ck_assert(!nlm_deadlock(&table, file, owner(OWNERS + 1), &all));
	ck_assert_few();
}
