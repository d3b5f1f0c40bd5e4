/* SPDX-License-Identifier: BSD-2-Clause */
/* one_call - a call of the client library to the rig's program, waited for. */
#include "tests/server/one_call.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/util.h"
#include "tests/unit/runner.h"

static void is_done(struct gannet_rpcrdma_call *call)
{
	struct one *o = container_of(call, struct one, call);

	if (call->status == 0)
		memcpy(o->reply, call->reply,
		       MIN(call->reply_len, (uint32_t)sizeof(o->reply)));
	sem_post(&o->done);
}

void one_init(struct one *o, struct gannet_rpcrdma *c, uint32_t op,
	      uint32_t arg)
{
	memset(o, 0, sizeof(*o));
	sem_init(&o->done, 0, 0);
	o->words[0] = htonl(gannet_rpcrdma_xid(c));
	o->words[1] = htonl(op);
	o->words[2] = htonl(arg);
	o->call.size = sizeof(o->call);
	o->call.msg = o->words;
	o->call.msg_len = 12;
	o->call.done = is_done;
}

void one_start(struct one *o, struct gannet_rpcrdma *c)
{
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o->call), 0);
}

int one_wait(struct one *o)
{
	wait_sem(&o->done);
	sem_destroy(&o->done);
	return o->call.status;
}

int one_ping(struct gannet_rpcrdma *c)
{
	struct one o;

	one_init(&o, c, 99, 0);
	one_start(&o, c);
	return one_wait(&o);
}

struct gannet_rpcrdma_info one_info(struct gannet_rpcrdma *c)
{
	struct gannet_rpcrdma_info i = { .size = sizeof(i) };

	gannet_rpcrdma_info(c, &i);
	return i;
}

struct gannet_rpcrdma_memory one_memory(void *addr, uint32_t len)
{
	return (struct gannet_rpcrdma_memory){ .addr = addr, .len = len };
}
