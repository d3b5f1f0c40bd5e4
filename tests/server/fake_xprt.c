/* SPDX-License-Identifier: BSD-2-Clause */
/* A transport without a wire. */
#include "tests/server/fake_xprt.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/thread.h"

/* The last call's bytes of msg->upper: the next one finds them there. */
static pthread_mutex_t stale_lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t stale[16384];

static void save_upper(const struct msg *m)
{
	mutex_lock(&stale_lock);
	memcpy(stale, m->upper, m->xprt->sink->msg_upper);
	mutex_unlock(&stale_lock);
}

static void load_upper(struct msg *m)
{
	size_t size = m->xprt->sink->msg_upper;

	assert(size <= sizeof(stale));
	m->upper = malloc(size);
	mutex_lock(&stale_lock);
	memcpy(m->upper, stale, size);
	mutex_unlock(&stale_lock);
}

static void come_back(struct fake_call *c)
{
	save_upper(&c->m);
	for (uint32_t i = 0; i < c->m.ncall; i++)
		free((void *)(uintptr_t)c->m.call[i].data);
	free(c->m.head);
	free(c->m.upper);
	mutex_lock(&c->lock);
	c->thread = pthread_self();
	c->over = true;
	pthread_cond_broadcast(&c->cond);
	mutex_unlock(&c->lock);
}

static int reply(struct msg *m)
{
	struct fake_call *c = container_of(m, struct fake_call, m);

	assert(m->body || (!m->body_len && !m->body_ddp));
	c->head_len = m->head_len;
	c->tail_len = m->tail_len;
	c->body_len = m->body ? m->body_len : 0;
	c->body_ddp = m->body_ddp;
	c->len = c->head_len + c->body_len + c->tail_len;
	assert(c->len <= FAKE_REPLY_MAX);
	c->reply = malloc(c->len);
	memcpy(c->reply, m->head, m->head_len);
	if (m->body)
		memcpy(c->reply + c->head_len, m->body->data, m->body_len);
	memcpy(c->reply + c->head_len + c->body_len, m->head + m->head_len,
	       m->tail_len);
	buf_put(m->body);
	come_back(c);
	return 0;
}

static void drop(struct msg *m)
{
	struct fake_call *c = container_of(m, struct fake_call, m);

	c->dropped = true;
	come_back(c);
}

static void reject(struct msg *m)
{
	container_of(m, struct fake_call, m)->rejected = true;
	drop(m);
}

static void look(struct xprt *x, struct xprt_view *v)
{
}

static const struct xprt_ops ops = {
	.name = "fake",
	.look = look,
	.reply = reply,
	.drop = drop,
	.reject = reject,
};

void fake_xprt_init(struct fake_xprt *f, struct xprt_sink *sink,
		    struct pool *pool, const char *addr, uint16_t port)
{
	struct sockaddr_in *in = (void *)&f->x.peer;
	struct sockaddr_in6 *in6 = (void *)&f->x.peer;

	memset(f, 0, sizeof(*f));
	f->x.ops = &ops;
	ref_init(&f->x.ref);
	f->x.sink = sink;
	f->x.pool = pool;
	if (inet_pton(AF_INET, addr, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else {
		inet_pton(AF_INET6, addr, &in6->sin6_addr);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	}
	snprintf(f->x.name, sizeof(f->x.name), "fake %s:%u", addr, port);
}

struct fake_call *fake_send_segs(struct fake_xprt *f,
				 const struct xdr_seg *segs, uint32_t n)
{
	struct fake_call *c = calloc(1, sizeof(*c));

	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->cond, NULL);
	c->m.xprt = &f->x;
	c->m.ncall = n;
	c->m.in_pool = f->in_pool;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *copy = malloc(segs[i].len);

		if (segs[i].len)
			memcpy(copy, segs[i].data, segs[i].len);
		c->m.call[i].data = copy;
		c->m.call[i].len = segs[i].len;
		c->m.call_len += segs[i].len;
	}
	c->m.head = malloc(MSG_HEAD_SIZE);
	load_upper(&c->m);
	/* The test's thread stands for the poller. */
	thread_must_not_wait = true;
	f->x.sink->recv(f->x.sink, &c->m);
	thread_must_not_wait = false;
	return c;
}

struct fake_call *fake_send(struct fake_xprt *f, const void *data,
			    uint32_t len)
{
	struct xdr_seg seg = { .data = data, .len = len };

	return fake_send_segs(f, &seg, 1);
}

bool fake_over(struct fake_call *c)
{
	bool over;

	mutex_lock(&c->lock);
	over = c->over;
	mutex_unlock(&c->lock);
	return over;
}

void fake_wait(struct fake_call *c)
{
	mutex_lock(&c->lock);
	while (!c->over)
		pthread_cond_wait(&c->cond, &c->lock);
	mutex_unlock(&c->lock);
}

void fake_free(struct fake_call *c)
{
	fake_wait(c);
	pthread_cond_destroy(&c->cond);
	pthread_mutex_destroy(&c->lock);
	free(c->reply);
	free(c);
}
