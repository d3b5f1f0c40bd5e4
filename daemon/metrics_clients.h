/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics_clients - chooses the clients that metrics name, and sums the rest.
 *
 * Only so many are named, the busiest.  No number that was told ever decreases:
 * a client that comes late to a name keeps what it had before in the sum of the
 * rest, and one that loses its name leaves there only what is new.  Pure but
 * for memory; the thread that scrapes.
 */
#ifndef GANNET_DAEMON_METRICS_CLIENTS_H
#define GANNET_DAEMON_METRICS_CLIENTS_H

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
 * Takes the @n clients that there are @now (clock_ns()), and the numbers of
 * @others, which only grow or take in those of clients that went.
 */
void metrics_clients_update(struct metrics_clients *t,
			    const struct metrics_client *all, unsigned n,
			    const uint64_t others[CLIENT_NUMBERS],
			    uint64_t now);
/* The numbers to tell of the client @i, or NULL: there are no more. */
const struct metrics_client *metrics_clients_named(
	const struct metrics_clients *t, unsigned i);
/* ... and of all others together. */
const uint64_t *metrics_clients_rest(const struct metrics_clients *t);

#endif
