/* SPDX-License-Identifier: BSD-2-Clause */
/* tcp_msg - messages, kept by pollers between uses. */
#include <stdlib.h>
#include <string.h>

#include "transport/stream/tcp.h"

/* A poller keeps at most this many free messages. */
#define FREE_MAX	1024

static struct tcp_msg *tcp_msg_make(size_t upper)
{
	size_t size = ALIGN_UP(sizeof(struct tcp_msg) + upper, (size_t)64);
	struct tcp_msg *m = aligned_alloc(64, size);

	if (!m)
		return NULL;
	memset(m, 0, size);
	m->msg.head = m->head;
	m->msg.upper = m->upper;
	return m;
}

/* Takes over the messages that other threads gave back. */
static void collect(struct tcp_poller *p)
{
	/* Pairs with the release in tcp_msg_free(). */
	p->free = atomic_exchange_explicit(&p->returned, NULL,
					   memory_order_acquire);
	for (struct tcp_msg *m = p->free; m; m = m->next)
		p->nfree++;
}

struct tcp_msg *tcp_msg_alloc(struct tcp_poller *p)
{
	struct tcp_msg *m;

	if (!p->free)
		collect(p);
	m = p->free;
	if (!m)
		return tcp_msg_make(p->listener->env.sink->msg_upper);
	p->free = m->next;
	p->nfree--;
	return m;
}

void tcp_msg_free(struct tcp_poller *p, struct tcp_msg *m)
{
	buf_put(m->msg.body);
	m->msg.body = NULL;
	if (unlikely(m->msg.pipe)) {
		pipe_put(m->msg.pipe);
		m->msg.pipe = NULL;
	}
	if (p->loop != loop_current) {
		m->next = atomic_load_explicit(&p->returned,
					       memory_order_relaxed);
		while (!atomic_compare_exchange_weak_explicit(&p->returned,
				&m->next, m, memory_order_release,
				memory_order_relaxed))
			;
	} else if (p->nfree < FREE_MAX) {
		m->next = p->free;
		p->free = m;
		p->nfree++;
	} else {
		free(m);
	}
}

static void tcp_msg_free_all(struct tcp_msg *m)
{
	struct tcp_msg *next;

	for (; m; m = next) {
		next = m->next;
		free(m);
	}
}

void tcp_msg_fini(struct tcp_poller *p)
{
	tcp_msg_free_all(p->free);
	p->free = NULL;
	p->nfree = 0;
	tcp_msg_free_all(atomic_exchange(&p->returned, NULL));
}
