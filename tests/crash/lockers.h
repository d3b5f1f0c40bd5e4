/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lockers - owners of locks, and the locks that a lock manager owes them.  A
 * model.
 *
 * Of each owner and byte the model has two bounds.  A lock is *sure* when a
 * reply said that the owner has it, and the owner has asked for nothing less
 * since.  An owner *may* have a lock that the server may have given, and not
 * taken back yet.  So a grant of a byte that another owner is sure of is a
 * defect; so is a refusal, unless another owner may have had a conflicting lock
 * since the request was sent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LM_HOSTS	6u
#define LM_OWNERS	20u
#define LM_FILES	3u
#define LM_BYTES	48u	/* the last one stands for all that follow */
#define LM_STEPS	240u	/* that are printed after a defect */

enum lm_kind {
	LM_LOCK, LM_NM_LOCK, LM_UNLOCK, LM_CANCEL, LM_TEST, LM_SHARE,
	LM_UNSHARE,
};

struct lm_op {
	enum lm_kind kind;
	unsigned file;
	unsigned first, last;		/* bytes */
	bool	 exclusive, block, reclaim;
	uint32_t mode, access;
};

/* Whether the server refused all but reclaims while a call was under way. */
enum lm_when { LM_FREE, LM_GRACE, LM_EITHER };

enum lm_lock { LM_NONE, LM_SHARED, LM_EXCLUSIVE };

struct lm_deny {
	uint32_t mode, access;		/* both 0: no share */
};

struct lm_owner {
	unsigned host;
	uint8_t	 sure[LM_FILES][LM_BYTES], may[LM_FILES][LM_BYTES];
	/* It had these when the server ended, and has not claimed them yet. */
	uint8_t	 had[LM_FILES][LM_BYTES];
	struct lm_deny share[LM_FILES], share_next[LM_FILES];
	bool	 reshares;		/* nothing is sure of its shares */

	struct lm_op op;
	bool	 busy;			/* op is under way */
	bool	 waits;			/* its LOCK is BLOCKED */
	bool	 cancels;		/* ... and op is the CANCEL */
	bool	 early;			/* granted before the reply came */
	struct lm_op wait;
	bool	 refused;		/* it refused a lock: unlocks it */
	bool	 excused;		/* a refusal is no defect */
	int	 sure_other;		/* an owner in the way, or -1, */
	unsigned sure_changes;		/* ... and its changes then */
	unsigned changes;		/* that made less sure */
	uint8_t	 sure_before[LM_BYTES], may_before[LM_BYTES];
};

struct lm_host {
	bool	 restarts;		/* it is about to tell so */
	bool	 claims;		/* its owners reclaim now */
	bool	 owed;			/* it is to be told of the start */
};

struct lockers {
	uint64_t seed;
	struct lm_owner owner[LM_OWNERS];
	struct lm_host	host[LM_HOSTS];
	char	 step[LM_STEPS][96];
	unsigned nsteps;

	unsigned long granted, refused, blocked, called, crossed, reclaimed;
	unsigned long in_grace, late, deadlocks, restarts;
};

void lm_init(struct lockers *m, uint64_t seed);
/* Prints the last steps and the seed, and fails the test. */
void lm_defect(struct lockers *m, const char *what)
	__attribute__((noreturn));
void lm_step(struct lockers *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The owner sends o->op. */
void lm_begin(struct lockers *m, struct lm_owner *o);
/* The answer to o->op. */
void lm_end(struct lockers *m, struct lm_owner *o, uint32_t status,
	    enum lm_when when);
/* The answer to TEST was that @holder, or NULL if the model does not know it,
 * has a lock. */
void lm_told_holder(struct lockers *m, struct lm_owner *o,
		    const struct lm_owner *holder);
/* The server says that @op is granted; the owner would take it if @want.
 * Returns the status to answer. */
uint32_t lm_called_back(struct lockers *m, struct lm_owner *o,
			const struct lm_op *op, bool want);
/* The host restarts: before it tells the server, and after that was
 * answered. */
void lm_host_restarts(struct lockers *m, unsigned host);
void lm_host_restarted(struct lockers *m, unsigned host);

/* The server has ended: it owes the owners the locks that they were sure of. */
void lm_server_ended(struct lockers *m);
/* The next bytes that the owner had, as a reclaim in *op; false: none. */
bool lm_next_claim(const struct lm_owner *o, struct lm_op *op);
/* The grace period is over: unclaimed locks are lost. */
void lm_grace_ended(struct lockers *m);
bool lm_owes(const struct lockers *m);
/* Checks that no circle of owners waits, when nothing is under way. */
void lm_check_circles(struct lockers *m);
/* True if nothing is in the way of a waiter. */
bool lm_may_be_granted(const struct lockers *m, const struct lm_owner *o);
/* True if the owner may hold some of the bytes of @op. */
bool lm_is_held(const struct lm_owner *o, const struct lm_op *op);
