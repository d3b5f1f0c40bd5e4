/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats - counters that cost an add in the thread's own memory.
 *
 * A counter is defined where it is counted:
 *
 * 	STAT(tcp_bad_record, "records refused for their length");
 * 	...
 * 	stat_inc(tcp_bad_record);
 *
 * All of them lie in one linker section, which is their table.  Any thread can
 * count, and can call stats_sum() and stats_walk(), which see every earlier
 * count, and perhaps some concurrent ones.  A reader that sees a count also
 * sees everything the thread did before it.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "lib/util.h"

struct stat_counter {
	const char	*name;
	const char	*help;
} __attribute__((aligned(16)));

extern struct stat_counter __start_gannet_stats[];
extern struct stat_counter __stop_gannet_stats[];

#define STAT(id, text) \
	static struct stat_counter stat_##id \
	__attribute__((section("gannet_stats"), used)) = { #id, text }

/* A counter's place in a row: as large as the counter: one addition leads from
 * there to here. */
struct stat_slot {
	_Atomic uint64_t n;
} __attribute__((aligned(sizeof(struct stat_counter))));

/* From the counters to this thread's row, in bytes; 0 until it counts for the
 * first time. */
extern _Thread_local uintptr_t stats_to_row;
void stats_add_first(const struct stat_counter *c, uint64_t n);

static inline void stats_add(const struct stat_counter *c, uint64_t n)
{
	uintptr_t to_row = stats_to_row;
	struct stat_slot *slot;

	if (unlikely(!to_row)) {
		stats_add_first(c, n);
		return;
	}
	slot = (struct stat_slot *)((uintptr_t)c + to_row);
	/* Only this thread writes it, so load and store need no lock prefix. */
	atomic_store_explicit(&slot->n, atomic_load_explicit(&slot->n,
			      memory_order_relaxed) + n, memory_order_release);
}

#define stat_add(id, n)	stats_add(&stat_##id, (n))
#define stat_inc(id)	stats_add(&stat_##id, 1)

/* The sum over all threads, including ended ones. */
uint64_t stats_sum(const struct stat_counter *c);
/* By name; a name that no counter has is 0. */
uint64_t stats_sum_by_name(const char *name);
void stats_walk(void (*fn)(const struct stat_counter *c, uint64_t sum,
			   void *arg), void *arg);
