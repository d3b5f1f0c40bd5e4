/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp - RPC over UDP: a datagram is a call, a datagram is its reply.
 *
 * Operation: datagrams are received on the listener's loop, one system call
 * each, into one buffer, and copied next to their message.  Each call has a
 * separate peer, and so a separate xprt.  Any thread sends its reply at once;
 * if that fails the reply is lost, and the peer asks again.
 *
 * Ownership: the references of its xprt own a call; the last put makes it free.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "transport/clients.h"
#include "transport/gate.h"
#include "transport/socket/socket.h"
#include "transport/stream/stream.h"

STAT(udp_calls, "RPC calls received over UDP");
STAT(udp_bad_calls, "UDP datagrams dropped: empty, or longer than allowed");
STAT(udp_dropped_calls, "UDP datagrams dropped for lack of memory");
STAT(udp_lost_replies, "UDP replies that could not be sent");
STAT(udp_greedy, "UDP datagrams dropped because their host or network has too "
     "many calls in progress");
STAT(udp_read_pauses, "times a UDP socket was not read for a while");
STAT(udp_bytes_in, "bytes received over UDP");
STAT(udp_bytes_out, "bytes sent over UDP");

#define CALL_SMALL	1024
/* Datagrams that a stopped listener has at its start, at most. */
#define DISCARD_MAX	1000000
#define RECV_BATCH	32
/* The most bytes of a datagram, over IPv4 or IPv6. */
#define DATAGRAM_MAX	65536u

struct udp_listener;

/* Room for the one control message that we send or receive. */
union pktinfo {
	size_t		 align;	/* for its alignment */
	uint8_t		 v4[CMSG_SPACE(sizeof(struct in_pktinfo))];
	uint8_t		 v6[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

struct udp_call {
	struct xprt		 xprt;
	struct msg		 msg;
	struct udp_listener	*l;		/* borrowed: its free waits for
						 * us */
	struct udp_call		*next;		/* while free */
	bool			 entered;	/* its listener's gate */
	struct sockaddr_storage	 from;		/* the socket's form of the
						 * peer */
	socklen_t		 from_len;
	union pktinfo		 control;	/* for the reply */
	socklen_t		 control_len;
	void			*mem;		/* memory of a call that is not
						 * small */
	uint8_t			 small[CALL_SMALL];
	uint8_t			 head[MSG_HEAD_SIZE];
	max_align_t		 upper[];
};

struct udp_listener {
	struct xprt_listener	 base;
	struct xprt_env		 env;		/* its pointers are borrowed */
	struct udp_options	 o;
	struct loop		*loop;		/* borrowed */
	struct loop_fd		 fd;
	struct loop_task	 task;
	uint8_t			*buf;		/* max_len + 1 bytes */
	bool			 stopped;	/* the loop's thread */

	pthread_mutex_t		 lock;
	pthread_cond_t		 none;		/* count fell to 0 */
	struct udp_call		*free;
	unsigned		 count;		/* calls in progress */
	struct xprt_gate	 gate;		/* of those with a peer */
	bool			 paused;
};

static struct udp_call *call_of(struct msg *msg)
{
	return container_of(msg, struct udp_call, msg);
}

static void udp_read_on(struct loop_task *t)
{
	struct udp_listener *l = container_of(t, struct udp_listener, task);

	if (!l->stopped)
		loop_fd_mod(l->loop, &l->fd, EPOLLIN);
}

/* The last reference is gone. */
static void udp_last_put(struct xprt *x)
{
	struct udp_call *c = container_of(x, struct udp_call, xprt);
	struct udp_listener *l = c->l;

	xprt_client_leave(x);
	if (c->entered)
		xprt_gate_leave(&l->gate, (struct sockaddr *)&c->from);
	c->entered = false;
	mutex_lock(&l->lock);
	c->next = l->free;
	l->free = c;
	l->count--;
	if (l->paused && l->count <= l->o.max_calls / 2) {
		l->paused = false;
		loop_post(l->loop, &l->task, udp_read_on);
	}
	if (l->count == 0)
		pthread_cond_broadcast(&l->none);
	mutex_unlock(&l->lock);
}

static void udp_drop(struct msg *msg)
{
	struct udp_call *c = call_of(msg);

	free(c->mem);
	c->mem = NULL;
	buf_put(msg->body);
	msg->body = NULL;
	xprt_put(msg->xprt);
}

static int udp_reply(struct msg *msg)
{
	struct udp_call *c = call_of(msg);
	struct iovec iov[3] = { { msg->head, msg->head_len } };
	struct msghdr mh = {
		.msg_name = &c->from, .msg_namelen = c->from_len,
		.msg_iov = iov, .msg_iovlen = 1,
	};
	ssize_t n;
	int err = 0;

	if (c->control_len) {
		mh.msg_control = &c->control;
		mh.msg_controllen = c->control_len;
	}
	if (msg->body_len)
		iov[mh.msg_iovlen++] = (struct iovec){
			msg->body->data, msg->body_len };
	iov[mh.msg_iovlen++] = (struct iovec){ msg->head + msg->head_len,
					       msg->tail_len };
	n = sendmsg(c->l->fd.fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0) {
		err = -errno;
		stat_inc(udp_lost_replies);
		xprt_log_limited(&c->xprt, LOG_LEVEL_INFO,
				 "reply lost: %s",
				 strerrordesc_np(-err));
	} else {
		stat_add(udp_bytes_out, (uint64_t)n);
	}
	udp_drop(msg);
	return err;
}

static bool udp_is_full(struct xprt *x)
{
	struct udp_call *c = container_of(x, struct udp_call, xprt);
	struct udp_listener *l = c->l;
	bool full;

	mutex_lock(&l->lock);
	full = l->paused;
	mutex_unlock(&l->lock);
	return full ||
	       !xprt_gate_has_room(&l->gate, (struct sockaddr *)&c->from);
}

static const struct xprt_ops ops = {
	.name = "udp",
	.reply = udp_reply,
	.drop = udp_drop,
	.free = udp_last_put,
	.is_full = udp_is_full,
};

static struct udp_call *udp_make(struct udp_listener *l)
{
	size_t upper = l->env.sink->msg_upper;
	struct udp_call *c = calloc(1, sizeof(*c) + upper);

	if (c)
		c->l = l;
	return c;
}

/* NULL: too many calls, with *@full set, or no memory. */
static struct udp_call *alloc(struct udp_listener *l, bool *full)
{
	struct udp_call *c;

	mutex_lock(&l->lock);
	*full = l->paused = l->count >= l->o.max_calls;
	c = *full ? NULL : l->free;
	if (c)
		l->free = c->next;
	else if (!*full)
		c = udp_make(l);
	if (c)
		l->count++;
	mutex_unlock(&l->lock);
	return c;
}

/*
 * The datagram of @c has come.  False if its host or network has its share of
 * the calls in progress: if they hang, the others need the rest.
 */
static bool udp_enter(struct udp_listener *l, struct udp_call *c)
{
	const struct sockaddr *from = (const struct sockaddr *)&c->from;

	c->entered = xprt_gate_enter(&l->gate, from) == 0;
	return c->entered;
}

/*
 * Keeps the datagram's destination, for the xprt, and for the reply to leave
 * from (RFC 3542 section 6.1).
 */
static void set_source(struct udp_call *c, struct msghdr *mh,
		       struct sockaddr_storage *local)
{
	struct cmsghdr *cm = CMSG_FIRSTHDR(mh);
	struct sockaddr_in6 sin6;
	struct sockaddr_in sin;
	struct in6_pktinfo v6;
	struct in_pktinfo v4;

	c->control_len = 0;
	if (!cm)
		return;
	if (cm->cmsg_level == IPPROTO_IP && cm->cmsg_type == IP_PKTINFO) {
		memcpy(&v4, CMSG_DATA(cm), sizeof(v4));
		memcpy(&sin, local, sizeof(sin));
		sin.sin_addr = v4.ipi_spec_dst;
		memcpy(local, &sin, sizeof(sin));
		v4.ipi_ifindex = 0;	/* routes can be asymmetric */
		memcpy(CMSG_DATA(cm), &v4, sizeof(v4));
		c->control_len = sizeof(c->control.v4);
	} else if (cm->cmsg_level == IPPROTO_IPV6 &&
		   cm->cmsg_type == IPV6_PKTINFO) {
		memcpy(&v6, CMSG_DATA(cm), sizeof(v6));
		if (IN6_IS_ADDR_MULTICAST(&v6.ipi6_addr))
			return;
		memcpy(&sin6, local, sizeof(sin6));
		sin6.sin6_addr = v6.ipi6_addr;
		if (IN6_IS_ADDR_LINKLOCAL(&v6.ipi6_addr))
			sin6.sin6_scope_id = v6.ipi6_ifindex;
		memcpy(local, &sin6, sizeof(sin6));
		if (!IN6_IS_ADDR_LINKLOCAL(&v6.ipi6_addr))
			v6.ipi6_ifindex = 0;
		memcpy(CMSG_DATA(cm), &v6, sizeof(v6));
		c->control_len = sizeof(c->control.v6);
	}
}

/* Prepares @c with the call of @len bytes at l->buf; false: no memory. */
static bool udp_fill(struct udp_call *c, struct msghdr *mh, uint32_t len)
{
	struct udp_listener *l = c->l;
	struct sockaddr_storage local = l->base.local, peer = c->from;
	struct msg *msg = &c->msg;
	void *data = c->small;

	if (len > CALL_SMALL)
		data = c->mem = malloc(len);
	if (!data)
		return false;
	memcpy(data, l->buf, len);
	c->from_len = mh->msg_namelen;
	set_source(c, mh, &local);
	socket_unmap(&local);
	socket_unmap(&peer);
	xprt_init(&c->xprt, &ops, l->env.sink, l->loop, l->env.pool,
		  (struct sockaddr *)&peer, (struct sockaddr *)&local);
	c->xprt.datagram = true;
	xprt_client_enter(l->env.clients, &c->xprt);
	memset(msg, 0, sizeof(*msg));
	msg->xprt = &c->xprt;
	msg->call[0] = (struct xdr_seg){ data, len };
	msg->ncall = 1;
	msg->call_len = len;
	msg->head = c->head;
	msg->upper = c->upper;
	return true;
}

/* Gives back a call that alloc() gave. */
static void unalloc(struct udp_call *c)
{
	udp_last_put(&c->xprt);
}

/* Receives one datagram; false: no datagram is left now. */
static bool udp_receive(struct udp_listener *l)
{
	struct iovec iov = { l->buf, l->o.max_len + 1 };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct udp_call *c;
	bool full;
	ssize_t n;

	c = alloc(l, &full);
	if (!c) {
		if (!full) {
			/* Take the datagram off the queue, or the loop would
			 * spin. */
			stat_inc(udp_dropped_calls);
			return recv(l->fd.fd, l->buf, 1, 0) >= 0;
		}
		stat_inc(udp_read_pauses);
		loop_fd_mod(l->loop, &l->fd, 0);
		return false;
	}
	mh.msg_name = &c->from;
	mh.msg_namelen = sizeof(c->from);
	mh.msg_control = &c->control;
	mh.msg_controllen = sizeof(c->control);
	n = recvmsg(l->fd.fd, &mh, 0);
	if (n <= 0 || n > l->o.max_len || (mh.msg_flags & MSG_TRUNC)) {
		unalloc(c);
		if (n >= 0)
			stat_inc(udp_bad_calls);
		return n >= 0 || errno == EINTR;
	}
	stat_add(udp_bytes_in, (uint64_t)n);
	if (!udp_enter(l, c)) {
		stat_inc(udp_greedy);
		unalloc(c);
		return true;
	}
	if (udp_fill(c, &mh, (uint32_t)n)) {
		stat_inc(udp_calls);
		l->env.sink->recv(l->env.sink, &c->msg);
	} else {
		stat_inc(udp_dropped_calls);
		unalloc(c);
	}
	return true;
}

static void udp_ready(struct loop_fd *f, uint32_t events)
{
	struct udp_listener *l = container_of(f, struct udp_listener, fd);

	for (int i = 0; i < RECV_BATCH; i++)
		if (!udp_receive(l))
			break;
}

static void stop_reading(void *arg)
{
	struct udp_listener *l = arg;

	if (!l->stopped)
		loop_fd_del(l->loop, &l->fd);
	l->stopped = true;
}

static void udp_stop(struct xprt_listener *base)
{
	struct udp_listener *l = container_of(base, struct udp_listener, base);

	loop_call(l->loop, stop_reading, l);
}

struct start {
	struct udp_listener *l;
	int err;
};

static void udp_start(void *arg)
{
	struct start *s = arg;

	s->l->fd.events = EPOLLIN;	/* perhaps it paused before its stop */
	s->err = loop_fd_add(s->l->loop, &s->l->fd);
	s->l->stopped = s->err;
}

/* The calls that came while the listener was stopped are too old: their clients
 * might have given up, or asked another server. */
static void discard_calls(const struct udp_listener *l)
{
	char byte;

	for (int i = 0; i < DISCARD_MAX; i++)
		if (recv(l->fd.fd, &byte, 1, MSG_DONTWAIT) < 0 &&
		    errno == EAGAIN)
			return;
}

static int udp_start_again(struct xprt_listener *base)
{
	struct udp_listener *l = container_of(base, struct udp_listener, base);
	struct start s = { .l = l };

	discard_calls(l);
	loop_call(l->loop, udp_start, &s);
	return s.err;
}

static unsigned udp_count(struct xprt_listener *base)
{
	struct udp_listener *l = container_of(base, struct udp_listener, base);
	unsigned n;

	mutex_lock(&l->lock);
	n = l->count;
	mutex_unlock(&l->lock);
	return n;
}

static void udp_listener_free(struct udp_listener *l)
{
	struct udp_call *c;

	while ((c = l->free)) {
		l->free = c->next;
		free(c);
	}
	xprt_gate_fini(&l->gate);
	pthread_cond_destroy(&l->none);
	pthread_mutex_destroy(&l->lock);
	free(l->buf);
	free(l);
}

static void udp_listener_end(struct xprt_listener *base)
{
	struct udp_listener *l = container_of(base, struct udp_listener, base);

	udp_stop(base);
	mutex_lock(&l->lock);
	while (l->count > 0)
		pthread_cond_wait(&l->none, &l->lock);
	mutex_unlock(&l->lock);
	/* Runs after a task that can still be on its way. */
	loop_call(l->loop, stop_reading, l);
	close(l->fd.fd);
	udp_listener_free(l);
}

static const struct xprt_listener_ops listener_ops = {
	.stop = udp_stop,
	.start = udp_start_again,
	.count = udp_count,
	.free = udp_listener_end,
};

static struct udp_listener *make_listener(const struct xprt_env *env,
					  const struct udp_options *o)
{
	struct udp_listener *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	if (o)
		l->o = *o;
	if (l->o.max_calls == 0)
		l->o.max_calls = 256;
	if (l->o.max_host_calls == 0)
		l->o.max_host_calls = MAX(16u, l->o.max_calls / 4);
	if (l->o.max_len == 0 || l->o.max_len > DATAGRAM_MAX)
		l->o.max_len = DATAGRAM_MAX;
	l->buf = malloc(l->o.max_len + 1);
	if (!l->buf) {
		free(l);
		return NULL;
	}
	xprt_gate_init(&l->gate, l->o.max_calls, l->o.max_host_calls);
	l->base.ops = &listener_ops;
	l->env = *env;
	l->loop = env->loops[0];
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->none, NULL);
	return l;
}

static int bind_to(struct udp_listener *l, const struct sockaddr *addr)
{
	int fd = socket_bind(addr, SOCK_DGRAM, l->o.v6only);
	int err;

	if (fd < 0)
		return fd;
	if (addr->sa_family == AF_INET6)
		err = socket_set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	else
		err = socket_set(fd, IPPROTO_IP, IP_PKTINFO, 1);
	err = err < 0 ? -errno : socket_local(fd, &l->base.local);
	if (err) {
		close(fd);
		return err;
	}
	l->fd = (struct loop_fd){ udp_ready, fd, EPOLLIN };
	return 0;
}

int udp_listen(const struct xprt_env *env, const struct sockaddr *addr,
	       const struct udp_options *o, struct xprt_listener **out)
{
	struct start s = { .l = make_listener(env, o) };
	int err;

	if (!s.l)
		return -ENOMEM;
	err = bind_to(s.l, addr);
	if (err)
		goto fail;
	loop_call(s.l->loop, udp_start, &s);
	err = s.err;
	if (err)
		goto fail_close;
	*out = &s.l->base;
	return 0;

fail_close:
	close(s.l->fd.fd);
fail:
	udp_listener_free(s.l);
	return err;
}
