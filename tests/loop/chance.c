/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chance - decides everything that RDMA leaves open, by a seed.
 *
 * Operation: each end has a separate generator: its events depend on its steps,
 * not on the steps of other connections.  The data of a Write is kept until the
 * Receive behind it is delivered, except pieces that show earlier; a Read moves
 * its data piece by piece, while later steps are carried out.
 */
#include "tests/loop/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The data of a peer's Write that is not there yet. */
struct staged {
	struct staged	*next;
	uint32_t	 handle;
	uint64_t	 offset;
	uint32_t	 len;
	unsigned	 before;	/* this Receive of the end, at last */
	uint8_t		 data[];
};

bool loop_chance(struct end *e, unsigned one_in)
{
	return e->random && one_in && loop_roll(&e->random, one_in) == 0;
}

void loop_chance_init(struct end *e)
{
	struct provider *p = e->link->p;

	if (!p->options.seed)
		return;
	mutex_lock(&p->lock);
	e->random = (p->options.seed + 0x9e3779b97f4a7c15ull * ++p->nends) | 1;
	mutex_unlock(&p->lock);
	e->quiet = loop_roll(&e->random, 4);
}

/* ---- Writes */

static void write_piece(struct end *e, const struct staged *s,
			uint32_t from, uint32_t to)
{
	struct device *d = &e->link->p->device[e->side];
	uint8_t *at;

	pthread_rwlock_rdlock(&d->mr_lock);
	/* The memory can be gone with the connection. */
	at = loop_mr_remote(&e->base, s->handle, s->offset, s->len,
			    FABRIC_REMOTE_WRITE);
	if (at && to > from)
		memcpy(at + from, s->data + from, to - from);
	pthread_rwlock_unlock(&d->mr_lock);
}

bool loop_write_stage(struct end *e, const struct fabric_wr *wr, uint32_t len)
{
	struct end *peer = e->link->end[!e->side];
	struct staged *s, **last = &peer->staged;
	uint32_t at = 0;

	if (!e->random || loop_roll(&e->random, 4) == 0)
		return false;
	s = malloc(sizeof(*s) + len);
	if (!s)
		return false;
	*s = (struct staged){ .handle = wr->handle, .offset = wr->offset,
			      .len = len, .before = peer->rq_completed };
	for (unsigned i = 0; i < wr->nsge; i++) {
		if (wr->sge[i].len > 0)
			memcpy(s->data + at, wr->sge[i].addr, wr->sge[i].len);
		at += wr->sge[i].len;
	}
	while (*last)
		last = &(*last)->next;
	*last = s;
	return true;
}

void loop_write_show(struct end *e)
{
	struct staged *s = e->staged;
	uint32_t from;

	if (!s || e->state != END_LIVE)
		return;
	for (unsigned i = loop_roll(&e->random, 4); i > 0 && s->next; i--)
		s = s->next;
	if (s->len == 0)
		return;
	from = loop_roll(&e->random, s->len);
	write_piece(e, s, from,
		    from + 1 + loop_roll(&e->random, s->len - from));
}

void loop_write_finish(struct end *e, unsigned recv)
{
	struct staged *s;

	/* Counts can wrap. */
	while ((s = e->staged) && (int)(s->before - recv) <= 0) {
		write_piece(e, s, 0, s->len);
		e->staged = s->next;
		free(s);
	}
}

void loop_write_forget(struct end *e)
{
	struct staged *s;

	while ((s = e->staged)) {
		e->staged = s->next;
		free(s);
	}
}

/* ---- Reads */

/* Copies the bytes from @from to @to of a Read; false: access is refused. */
static bool fetch(struct end *e, const struct fabric_wr *wr, uint64_t from,
		  uint64_t to)
{
	struct device *d = &e->link->p->device[!e->side];
	uint64_t at = 0;
	uint8_t *remote;

	pthread_rwlock_rdlock(&d->mr_lock);
	remote = loop_mr_remote(&e->link->end[!e->side]->base, wr->handle,
				wr->offset + from, to - from,
				FABRIC_REMOTE_READ);
	for (unsigned i = 0; remote && i < wr->nsge; i++) {
		const struct fabric_sge *s = &wr->sge[i];
		uint64_t first = MAX(at, from), end = MIN(at + s->len, to);

		if (first < end)
			memcpy((uint8_t *)s->addr + (first - at),
			       remote + (first - from), end - first);
		at += s->len;
	}
	pthread_rwlock_unlock(&d->mr_lock);
	return remote;
}

static uint64_t read_len(const struct fabric_wr *wr)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < wr->nsge; i++)
		len += wr->sge[i].len;
	return len;
}

int loop_read_some(struct end *e, struct slot *s)
{
	uint64_t len = read_len(s->wr), to = len;

	if (len > s->moved && !loop_chance(e, 3))
		to = s->moved + 1 + loop_roll(&e->random,
					      (unsigned)(len - s->moved));
	if (!fetch(e, s->wr, s->moved, to))
		return -EREMOTEIO;
	s->moved = to;
	s->reading = to < len;
	return 0;
}
