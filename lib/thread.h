/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread - threads, mutexes and references, with their errors asserted.
 *
 * Every thread started here is registered with RCU (liburcu, the memb flavour)
 * for its whole life, has all signals blocked except those for its faults, and
 * can't be cancelled.
 */
#pragma once

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Blocked, these would end the process without their handlers. */
#define THREAD_FAULTS	SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL

/* Starts @fn(@arg) under @name (15 bytes are kept).  0 or -errno. */
int thread_start(pthread_t *thread, const char *name, void (*fn)(void *),
		 void *arg);

/* A thread that was started for some work ends once it is idle for so long: ten
 * seconds, or less in tests. */
extern atomic_uint thread_idle_ms;

/* True on the thread of a loop, and while another thread does work that must
 * not wait. */
extern _Thread_local bool thread_must_not_wait;

/*
 * True if operations on this thread that must not wait can change its file
 * system credentials.  Not so if the thread uses an RDMA device: the kernel
 * refuses the device to a thread that has changed them.
 */
extern _Thread_local bool thread_changes_cred;

static inline void mutex_lock(pthread_mutex_t *m)
{
	int err = pthread_mutex_lock(m);

	assert(err == 0);
	(void)err;
}

static inline void mutex_unlock(pthread_mutex_t *m)
{
	int err = pthread_mutex_unlock(m);

	assert(err == 0);
	(void)err;
}

/* A count of references.  The owner of the last one frees the object. */
struct ref {
	atomic_uint count;
};

static inline void ref_init(struct ref *r)
{
	atomic_init(&r->count, 1);
}

static inline void ref_get(struct ref *r)
{
	atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed);
}

/* For look-ups under RCU: false when the last reference is already gone. */
static inline bool ref_get_unless_zero(struct ref *r)
{
	unsigned n = atomic_load_explicit(&r->count, memory_order_relaxed);

	do {
		if (n == 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&r->count, &n, n + 1,
			memory_order_acquire, memory_order_relaxed));
	return true;
}

/* True while other references than the caller's exist.  Only a hint. */
static inline bool ref_is_shared(const struct ref *r)
{
	return atomic_load_explicit(&r->count, memory_order_relaxed) > 1;
}

/* True when this was the last one: the caller now frees the object. */
static inline bool ref_put(struct ref *r)
{
	/* Pairs with itself: the last put sees the writes of other threads
	 * before theirs. */
	return atomic_fetch_sub_explicit(&r->count, 1,
					 memory_order_acq_rel) == 1;
}
