/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rcu - liburcu (memb flavour) with its order made visible to TSan.
 *
 * liburcu's library is not instrumented and its atomics are assembly, so
 * ThreadSanitizer can't see that a reader's section ends before a grace
 * period does, or that a node was filled in before it was published.  These
 * wrappers say so; without TSan they are the plain operations.
 *
 * Pointers that are published are C11 atomics: store with release, load
 * with acquire.  Nodes in a cds_lfht: rcu_published() before the add,
 * rcu_seen() after a look-up, with the table as the tag.
 */
#pragma once

#include <stdint.h>

#include <urcu.h>
#include <urcu/static/urcu-memb.h>

#if defined(__SANITIZE_THREAD__)
#define GANNET_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GANNET_TSAN 1
#endif
#endif

#ifdef GANNET_TSAN
#include <sanitizer/tsan_interface.h>
#define rcu_published(tag)	__tsan_release((void *)(uintptr_t)(tag))
#define rcu_seen(tag)		__tsan_acquire((void *)(uintptr_t)(tag))
#else
#define rcu_published(tag)	((void)(tag))
#define rcu_seen(tag)		((void)(tag))
#endif

/*
 * The begin of a section is inlined, which saves two calls into libraries.  It
 * and its callees have at most ten lines each, and liburcu's header permits
 * programs of any licence to inline these.  The end stays a call, since it can
 * wake a thread, by longer functions.  Rebuild the program for each release of
 * liburcu, as that header requires.  TSan must not see the accesses, whose
 * other side is the library's.
 */
static inline void rcu_enter(void)
{
#ifdef GANNET_TSAN
	rcu_read_lock();
#else
	_urcu_memb_read_lock();
#endif
}

static inline void rcu_exit(void)
{
#ifdef GANNET_TSAN
	rcu_published(&synchronize_rcu);
#endif
	rcu_read_unlock();
}

/* Waits until every section that runs now has ended.  Not in one. */
static inline void rcu_wait(void)
{
	synchronize_rcu();
	rcu_seen(&synchronize_rcu);
}

/* Starts the thread of rcu_later().  Else the first call does, which ends the
 * process if it fails.  0 or -errno. */
int rcu_later_start(void);

/* Calls @fn(@head) on the thread "rcu" when every section that runs now has
 * ended.  Any thread, also in a section. */
void rcu_later(struct rcu_head *head, void (*fn)(struct rcu_head *head));
