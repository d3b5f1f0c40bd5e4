/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics_clients - chooses the clients that metrics name, and sums the rest.
 *
 * Only so many are named, the busiest.  Each update adds the increase since the
 * last one: to a client's own numbers if it has a name, else to the rest.  So
 * no reported number decreases, clients that are forgotten take nothing back,
 * and each call is reported once.  Pure except for memory; the thread that
 * scrapes.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum metrics_client_number {
	CLIENT_CALLS, CLIENT_FAILED, CLIENT_READ, CLIENT_WRITTEN, CLIENT_NS,
	CLIENT_NUMBERS
};

struct metrics_client {
	struct in6_addr host;
	uint64_t	first;		/* clock_ns() when it came */
	uint64_t	n[CLIENT_NUMBERS];
};

struct metrics_clients;

/* At most @max names.  NULL: no memory. */
struct metrics_clients *metrics_clients_create(unsigned max);
/* NULL is fine. */
void metrics_clients_destroy(struct metrics_clients *t);
/*
 * Takes the @n present clients, of different hosts, and the numbers of @others,
 * which only grow.  Without memory nothing changes: the increase comes with the
 * next update.
 */
void metrics_clients_update(struct metrics_clients *t,
			    const struct metrics_client *clients, unsigned n,
			    const uint64_t others[CLIENT_NUMBERS]);
/* The numbers to tell of the client @i, or NULL: @i is behind the last. */
const struct metrics_client *metrics_clients_named(
	const struct metrics_clients *t, unsigned i);
/* ... and of all others together. */
const uint64_t *metrics_clients_rest(const struct metrics_clients *t);
