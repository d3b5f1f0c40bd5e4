/* SPDX-License-Identifier: BSD-2-Clause */
/* handshakes - the workers that compute TLS handshakes, before the first
 * call. */
#include "rpc/handshakes.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"
#include "rpc/work.h"

struct rpc_handshakes {
	struct work_class *class;
};

struct item {
	struct work_item work;
	struct tcp_job	*job;
};

struct rpc_handshakes *rpc_handshakes_create(struct rpc_server *server,
					     unsigned max)
{
	struct rpc_handshakes *hs = malloc(sizeof(*hs));

	if (!hs)
		return NULL;
	hs->class = work_class_create(server, "tls", max);
	if (!hs->class) {
		free(hs);
		return NULL;
	}
	return hs;
}

void rpc_handshakes_destroy(struct rpc_handshakes *hs)
{
	if (!hs)
		return;
	work_class_destroy(hs->class);
	free(hs);
}

static void shake_on_worker(struct work_item *work)
{
	struct item *item = container_of(work, struct item, work);
	struct tcp_job *job = item->job;

	free(item);
	job->run(job);
}

int rpc_handshakes_submit(void *arg, struct tcp_job *job)
{
	struct rpc_handshakes *hs = arg;
	struct item *item = calloc(1, sizeof(*item));

	if (!item)
		return -ENOMEM;
	item->job = job;
	item->work.run = shake_on_worker;
	item->work.is_job = true;
	item->work.client = work_client(job->peer);
	work_submit(hs->class, &item->work);
	return 0;
}
