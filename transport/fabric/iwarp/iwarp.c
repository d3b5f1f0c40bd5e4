/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp - the provider: its options and its device. */
#include "transport/fabric/iwarp/iwarp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/fabric/fabrics.h"
#include "transport/fabric/iwarp/internal.h"

#define MAX_WR		16384u
/* siw accepts at most 256 bytes of private data, 4 of which are MPA's. */
#define MAX_PRIVATE	248u

static const struct fabric_ops fabric_ops = {
	.name = "iwarp",
	.listen = iwarp_listen,
	.unlisten = iwarp_unlisten,
	.connect = iwarp_connect,
	.setup = iwarp_setup,
	.conn_bytes = iwarp_conn_bytes,
	.start = iwarp_start,
	.reject = iwarp_reject,
	.post = iwarp_post,
	.post_recv = iwarp_post_recv,
	.close = iwarp_close,
	.free = iwarp_free,
	.sent = iwarp_sent,
	.look = iwarp_look,
	.mr_create = iwarp_mr_create,
	.mr_bind = iwarp_mr_bind,
	.mr_destroy = iwarp_mr_destroy,
};

static bool fill_options(struct iwarp_options *o)
{
	set_default(&o->read_depth, 128);
	set_default(&o->max_handshakes, 128);
	set_default(&o->handshake_ms, 10000);
	set_default(&o->first_ms, 60000);
	set_default(&o->linger_ms, 2000);
	set_default(&o->user_timeout_ms, 60000);
	set_default(&o->revision, 2);
	if (o->fpdu_size && (o->fpdu_size < IWARP_MIN_FPDU ||
			     o->fpdu_size > IWARP_MAX_FPDU))
		return false;
	o->fpdu_size &= ~3u;
	return o->read_depth < MPA_DEPTH_ANY && o->revision <= 2;
}

static void iwarp_device_init(struct iwarp_device *d,
			      const struct iwarp_options *o)
{
	d->dev.ops = &fabric_ops;
	strcpy(d->dev.name, "iwarp");
	d->dev.limits = (struct fabric_limits){
		.max_sge = IWARP_MAX_SGE,
		.max_wr = MAX_WR,
		.max_recv = MAX_WR,
		.max_read_depth = o->read_depth,
		.max_resp_depth = o->read_depth,
		.max_private = MAX_PRIVATE,
		.unacknowledged = true,
		.invalidates = true,
	};
	pthread_mutex_init(&d->dev.lock, NULL);
	pthread_rwlock_init(&d->mr_lock, NULL);
}

int iwarp_fabric_create(const struct iwarp_options *options,
			struct fabric *out)
{
	struct iwarp_provider *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	if (options)
		p->options = *options;
	if (!fill_options(&p->options)) {
		free(p);
		return -EINVAL;
	}
	iwarp_device_init(&p->device, &p->options);
	pthread_mutex_init(&p->lock, NULL);
	CDS_INIT_LIST_HEAD(&p->loops);
	out->ops = &fabric_ops;
	out->provider = p;
	return 0;
}

void iwarp_fabric_destroy(struct fabric *f)
{
	struct iwarp_provider *p = f->provider;

	free(p->device.mrs);
	pthread_rwlock_destroy(&p->device.mr_lock);
	pthread_mutex_destroy(&p->device.dev.lock);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Flags of the row, in order. */
enum { IWARP_NO_CRC, IWARP_LARGE };

static int create_iwarp(const struct fabric_options *o, struct fabric *out)
{
	const struct iwarp_options options = {
		.no_crc = o->given & 1u << IWARP_NO_CRC,
		.fpdu_size = o->given & 1u << IWARP_LARGE ? IWARP_MAX_FPDU : 0,
		.v4_too = true,
		.handshake_ms = o->connect_ms,
		.reserved_port = o->reserved_port,
	};

	return iwarp_fabric_create(&options, out);
}

static bool always(void)
{
	return true;
}

const struct fabric_row iwarp_row = {
	.name = "iwarp",
	.help = "in user space over TCP, no device needed",
	.title = "iWARP in user space",
	.listener = "iwarp",
	.available = always,
	.flags = {
		{ "crc", true },
		{ "large-fpdu", false },
	},
	.port = 20050,
	.create = create_iwarp, .destroy = iwarp_fabric_destroy,
};
