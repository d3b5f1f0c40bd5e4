/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_fake - RDMA devices that the test controls: the CM.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake/verbs_fake_impl.h"
#include "tests/unit/pause.h"

static struct fake_id *ids;

static struct rdma_cm_id *new_id(struct rdma_event_channel *channel,
				 void *context)
{
	struct fake_id *id = calloc(1, sizeof(*id));

	id->id.channel = channel;
	id->id.context = context;
	fake_lock();
	id->next = ids;
	ids = id;
	((struct fake_channel *)channel)->ids++;
	fake_unlock();
	fake_count(1);
	return &id->id;
}

bool fake_listening(void)
{
	bool is;

	fake_lock();
	is = fake.listener != NULL;
	fake_unlock();
	return is;
}

static const uint8_t net6[2][6] = { { 0x20, 1, 0xd, 0xb8, 0, 1 },
				    { 0x20, 1, 0xd, 0xb8, 0, 2 } };

static bool is_any(const struct sockaddr_storage *ss)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)ss;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)ss;

	return ss->ss_family == AF_INET6 ?
		IN6_IS_ADDR_UNSPECIFIED(&sin6->sin6_addr) :
		sin->sin_addr.s_addr == 0;
}

/* A listener at any address is asked at the address of the device in
 * fake.slot. */
static void fill_address(struct sockaddr_storage *ss)
{
	if (!is_any(ss))
		return;
	if (ss->ss_family == AF_INET6)
		memcpy(&((struct sockaddr_in6 *)ss)->sin6_addr,
		       net6[fake.slot], sizeof(net6[0]));
	else
		((struct sockaddr_in *)ss)->sin_addr.s_addr =
			htobe32(fake.slot ? 0xc6336401 : 0xc0000201);
}

/* The device that has the id's address.  False: no device has. */
static bool bind_device(struct rdma_cm_id *id)
{
	const struct sockaddr_in6 *sin6 = &id->route.addr.src_sin6;
	const struct sockaddr_in *sin = &id->route.addr.src_sin;
	struct fake_device *d;
	bool second;

	second = sin->sin_family == AF_INET6 ?
		 !memcmp(&sin6->sin6_addr, net6[1], sizeof(net6[1])) :
		 be32toh(sin->sin_addr.s_addr) >> 8 == 0xc63364;
	fake_lock();
	d = fake_device_in(second);
	if (d)
		d->opened = true;
	id->verbs = d ? &d->context : NULL;
	fake_unlock();
	return d != NULL;
}

void fake_cm_unplugged(const struct fake_device *d)
{
	fake_lock();
	for (struct fake_id *id = ids; id; id = id->next)
		if (id->id.verbs == &d->context)
			fake_event_list(id->id.channel, fake_event_new(&id->id,
					RDMA_CM_EVENT_DEVICE_REMOVAL, 0));
	fake_unlock();
}

/* With the lock: closes a device that is gone, if no id is bound to it. */
static void close_unused(struct fake_device *d)
{
	for (struct fake_id *id = ids; id; id = id->next)
		if (id->id.verbs == &d->context)
			return;
	d->closed = true;
	close(d->context.cmd_fd);
	close(d->context.async_fd);
}

/* With the lock, and another device there. */
static void close_gone(void)
{
	for (unsigned i = 0; i < FAKE_DEVICES; i++) {
		struct fake_device *d = &fake_devices[i];

		if (!d->gone || d->closed)
			continue;
		d->dead = true;
		close_unused(d);
	}
}

struct ibv_context **rdma_get_devices(int *n)
{
	bool some;

	fake_lock();
	fake.looks++;
	some = fake_device_in(0) || fake_device_in(1);
	/* librdmacm keeps its open devices when no device is left. */
	if (some)
		close_gone();
	fake_unlock();
	errno = ENODEV;
	return some ? calloc(1, sizeof(struct ibv_context *)) : NULL;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}

/* A peer's request, which is not reported yet. */
static struct fake_event *new_request(const void *private_data, uint8_t len,
				      uint8_t ird, uint8_t ord)
{
	struct rdma_cm_id *l = fake.use6 ? fake.listener6 : fake.listener;
	struct fake_event *ev = calloc(1, sizeof(*ev));
	struct rdma_cm_id *id;

	id = new_id(l->channel, l->context);
	id->route.addr = l->route.addr;
	fill_address(&id->route.addr.src_storage);
	bind_device(id);
	id->route.addr.dst_storage = l->route.addr.src_storage;
	id->route.addr.dst_sin.sin_addr.s_addr ^= htobe32(7);
	/* A thread of the server's can destroy an earlier one now. */
	fake_lock();
	fake.id = id;
	fake_unlock();
	ev->event.id = id;
	ev->event.listen_id = l;
	ev->event.event = RDMA_CM_EVENT_CONNECT_REQUEST;
	memcpy(ev->private_data, private_data, len);
	ev->event.param.conn.private_data = len ? ev->private_data : NULL;
	ev->event.param.conn.private_data_len = len;
	/* As the CM reports: the depth that the peer offers, and the depth it
	 * wants. */
	ev->event.param.conn.initiator_depth = ird;
	ev->event.param.conn.responder_resources = ord;
	return ev;
}

void fake_request(const void *private_data, uint8_t len, uint8_t ird,
		  uint8_t ord)
{
	struct fake_event *ev = new_request(private_data, len, ird, ord);

	fake_event_put(ev->event.listen_id->channel, ev);
}

void fake_answer(const void *private_data, uint8_t len, uint8_t ird)
{
	struct fake_event *ev = calloc(1, sizeof(*ev));

	ev->event.id = fake.id;
	ev->event.event = RDMA_CM_EVENT_ESTABLISHED;
	memcpy(ev->private_data, private_data, len);
	ev->event.param.conn.private_data = ev->private_data;
	ev->event.param.conn.private_data_len = len;
	ev->event.param.conn.initiator_depth = ird;
	fake_event_put(fake.id->channel, ev);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out,
		   void *context, enum rdma_port_space ps)
{
	bool own = !channel;

	if (fake_fails())
		return -1;
	if (own) {
		channel = rdma_create_event_channel();
		if (!channel)
			return -1;
	}
	*out = new_id(channel, context);
	((struct fake_id *)*out)->own_channel = own;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *rid)
{
	struct fake_id *id = (struct fake_id *)rid;
	struct fake_channel *ch = (struct fake_channel *)rid->channel;
	struct fake_device *d = rid->verbs ? fake_device_of(rid->verbs) : NULL;

	FAKE_CHECK(id->unacked == 0);
	FAKE_CHECK(!rid->qp);
	fake_lock();
	fake_event_take(rid, NULL);
	for (struct fake_id **p = &ids; *p; p = &(*p)->next)
		if (*p == id) {
			*p = id->next;
			break;
		}
	if (fake.listener == rid)
		fake.listener = NULL;
	if (fake.listener6 == rid)
		fake.listener6 = NULL;
	if (fake.id == rid)
		fake.id = NULL;
	if (d && d->dead && !d->closed)
		close_unused(d);
	ch->ids--;
	fake_unlock();
	if (id->own_channel)
		rdma_destroy_event_channel(rid->channel);
	free(id);
	fake_count(-1);
	return 0;
}

/* The kernel's part of an id ends with its device; that can take a moment. */
static bool is_removed(const struct rdma_cm_id *id)
{
	bool is;

	fake_lock();
	is = id->verbs && fake_device_of(id->verbs)->gone;
	fake_unlock();
	errno = ENXIO;
	return is;
}

int rdma_migrate_id(struct rdma_cm_id *rid, struct rdma_event_channel *channel)
{
	struct fake_id *id = (struct fake_id *)rid;
	struct rdma_event_channel *old = rid->channel;
	bool own = !channel;

	if (fake_fails() || (own && is_removed(rid)))
		return -1;
	FAKE_CHECK(!own || !id->own_channel);
	if (own)
		channel = rdma_create_event_channel();
	if (!channel)
		return -1;
	fake_lock();
	fake_event_wait_acked(id);
	fake_event_take(rid, channel);
	((struct fake_channel *)old)->ids--;
	((struct fake_channel *)channel)->ids++;
	rid->channel = channel;
	fake_unlock();
	if (id->own_channel)
		rdma_destroy_event_channel(old);
	id->own_channel = own;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	void (*before)(void);
	bool no_port;

	fake_lock();
	no_port = fake.no_port;
	before = fake.before_bind;
	fake.before_bind = NULL;
	fake_unlock();
	if (before)
		before();
	if (fake_fails())
		return -1;
	if (no_port) {
		errno = ENODEV;
		return -1;
	}
	memcpy(&id->route.addr.src_storage, addr,
	       addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
	if (!id->route.addr.src_sin.sin_port)
		id->route.addr.src_sin.sin_port = htobe16(20049);
	if (is_any(&id->route.addr.src_storage) || bind_device(id))
		return 0;
	errno = ENODEV;
	return -1;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	if (fake_fails())
		return -1;
	fake_lock();
	fake.listens++;
	if (id->route.addr.src_addr.sa_family == AF_INET6)
		fake.listener6 = id;
	else
		fake.listener = id;
	fake_unlock();
	return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value,
		    size_t len)
{
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src,
		      struct sockaddr *dst, int timeout_ms)
{
	fake.addr_ms = timeout_ms;
	/* As a resolver that is slow. */
	pause_on_purpose(fake.resolve_us);
	if (fake_fails())
		return -1;
	memcpy(&id->route.addr.src_sin6, dst, sizeof(struct sockaddr_in6));
	memcpy(&id->route.addr.dst_sin6, dst, sizeof(struct sockaddr_in6));
	if (!bind_device(id)) {
		errno = ENODEV;
		return -1;
	}
	fake.id = id;
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	fake.route_ms = timeout_ms;
	return fake_fails() ? -1 : 0;
}

/* As the CM has it: the depths are the peer's, swapped. */
static void tell(struct rdma_cm_id *id, enum rdma_cm_event_type type,
		 const struct rdma_conn_param *param)
{
	struct fake_event *ev = calloc(1, sizeof(*ev));
	struct rdma_conn_param *to = &ev->event.param.conn;

	ev->event.id = id;
	ev->event.event = type;
	memcpy(ev->private_data, param->private_data,
	       param->private_data_len);
	to->private_data = ev->private_data;
	to->private_data_len = param->private_data_len;
	to->initiator_depth = param->responder_resources;
	to->responder_resources = param->initiator_depth;
	fake_event_put(id->channel, ev);
}

/* True if the device can't do that many Reads. */
static bool too_deep(const struct rdma_conn_param *param)
{
	return param->initiator_depth > fake.attr.max_qp_init_rd_atom ||
	       param->responder_resources > fake.attr.max_qp_rd_atom;
}

/* The peer of @id, an active one, is a new id of the listener. */
static void ask_listener(struct rdma_cm_id *id,
			 const struct rdma_conn_param *param)
{
	struct fake_event *ev = new_request(param->private_data,
					    param->private_data_len,
					    param->responder_resources,
					    param->initiator_depth);
	struct fake_id *from = (struct fake_id *)id;
	struct fake_id *to = (struct fake_id *)ev->event.id;

	to->id.route.addr.dst_storage = id->route.addr.src_storage;
	to->peer = id;
	from->peer = &to->id;
	from->ord = param->initiator_depth;
	fake_event_put(ev->event.listen_id->channel, ev);
}

static void answer_peer(struct rdma_cm_id *id,
			const struct rdma_conn_param *param)
{
	struct fake_id *peer = (struct fake_id *)((struct fake_id *)id)->peer;
	struct fake_qp *a = (struct fake_qp *)id->qp;
	struct fake_qp *b = (struct fake_qp *)peer->id.qp;

	fake_lock();
	a->peer = b;
	b->peer = a;
	a->read_depth = param->initiator_depth;
	b->read_depth = MIN(peer->ord, param->responder_resources);
	fake_unlock();
	tell(&peer->id, RDMA_CM_EVENT_ESTABLISHED, param);
	fake_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static int begin(struct rdma_cm_id *id, const struct rdma_conn_param *param,
		 void (*how)(struct rdma_cm_id *,
			     const struct rdma_conn_param *))
{
	fake_lock();
	fake.param = *param;
	fake_unlock();
	if (fake_fails())
		return -1;
	if (!fake.wired)
		return 0;
	if (too_deep(param)) {
		errno = EINVAL;
		return -1;
	}
	how(id, param);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	return begin(id, param, answer_peer);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	return begin(id, param, ask_listener);
}

/* Both ends hear it, once. */
static void part(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	struct fake_id *from = (struct fake_id *)id;
	struct rdma_cm_id *peer;

	fake_lock();
	peer = from->peer;
	from->peer = NULL;
	if (peer)
		((struct fake_id *)peer)->peer = NULL;
	fake_unlock();
	if (!peer)
		return;
	fake_event(peer, type, 0);
	fake_event(id, type, 0);
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	fake_lock();
	fake.rejects++;
	fake_unlock();
	part(id, RDMA_CM_EVENT_REJECTED);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	fake_lock();
	fake.disconnects++;
	fake_unlock();
	part(id, RDMA_CM_EVENT_DISCONNECTED);
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return "event";
}
