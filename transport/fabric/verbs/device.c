/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA devices: their limits, and their end.
 *
 * librdmacm opens a device when an id is bound to it, and can close it when the
 * last id goes after the device was unplugged.  We keep a protection domain and
 * registrations for longer than any connection, so each device holds a separate
 * id that is bound to it and does nothing else.
 *
 * Ownership: the id of the first request holds the device while the struct is
 * made, then the separate id does.  The watcher destroys that last, after the
 * registrations, the domains and its reading of the device's events.
 */
#include "transport/fabric/verbs/internal.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/addr.h"

/* A larger limit would only cost memory: no connection asks for as much. */
#define MAX_WR		8192u
#define MAX_SGE		64u
/* The CM's messages carry a depth in one byte. */
#define MAX_DEPTH	255u

/*
 * Bytes of a Send that an adapter gets with its work request, which saves it a
 * read of our memory.  The replies to most calls but READDIR fit, and on mlx5
 * a work request of this size has 512 bytes, the next power of two.
 */
#define INLINE_MAX	312u

/* The numbers of the kernel's drivers. */
#define SIW_VENDOR	0x626d74	/* sw/siw/siw.h */
#define RXE_VENDOR	0xffffff	/* sw/rxe/rxe_param.h; 0 before 5.8 */
#define RVT_VENDOR	0x1175		/* hw/hfi1, hw/qib */
/* Of 32 bytes each: 1 MiB from offset 0 on. */
#define SIW_FILL	32768

/* Binds another id to the device of @id.  NULL: its address leads elsewhere,
 * because another device has it, it is link-local, or the device is going. */
static struct rdma_cm_id *hold_device(struct rdma_cm_id *id)
{
	struct sockaddr_storage addr;
	struct rdma_cm_id *hold;

	xprt_addr_copy(&addr, rdma_get_local_addr(id));
	/* The port is at the same place in both families. */
	((struct sockaddr_in *)&addr)->sin_port = 0;
	if (rdma_create_id(NULL, &hold, NULL, RDMA_PS_TCP))
		return NULL;
	if (!rdma_bind_addr(hold, (struct sockaddr *)&addr) &&
	    hold->verbs == id->verbs)
		return hold;
	rdma_destroy_id(hold);
	return NULL;
}

/* Rejects a peer, to hold the device by the id of its request.  0 or -errno,
 * with the id still the caller's. */
static int hold_by_request(struct rdma_cm_id *id)
{
	rdma_reject(id, NULL, 0);
	/* To a channel of the id's own. */
	return rdma_migrate_id(id, NULL) ? verbs_errno() : 0;
}

/* Has an id hold the device.  0 or -errno. */
static int hold(struct verbs_dev *dev, struct rdma_cm_id *id,
		enum verbs_id_use use)
{
	int err = 0;

	dev->hold = hold_device(id);
	if (dev->hold)
		return 0;
	if (use == VERBS_ID_LISTENS)
		return -ENODEV;
	if (use == VERBS_ID_REQUEST)
		err = hold_by_request(id);
	if (!err)
		dev->hold = id;
	return err;
}

/*
 * Drivers without a doorbell that user space can ring write to the device's
 * file instead.  The kernel refuses that to a thread whose credentials have
 * changed since the file was opened: a worker's do, a loop's never.  Each post
 * is a system call, so the loop posts as many steps together as it can.
 */
static bool posts_by_system_call(const struct ibv_device_attr *attr)
{
	return attr->vendor_id == SIW_VENDOR || attr->vendor_id == RXE_VENDOR ||
	       attr->vendor_id == 0 || attr->vendor_id == RVT_VENDOR;
}

/* The device's @v, at least 1 and at most @max. */
static unsigned clamp(int v, unsigned max)
{
	return v < 1 ? 1 : MIN((unsigned)v, max);
}

/* The same, of a number that can be 0: such a device carries out, or answers,
 * no Reads. */
static unsigned clamp_depth(int v)
{
	return v < 0 ? 0 : MIN((unsigned)v, MAX_DEPTH);
}

static void set_limits(struct verbs_dev *dev,
		       const struct ibv_device_attr *attr)
{
	struct fabric_limits *l = &dev->dev.limits;
	/* Both queues of a connection complete into one. */
	unsigned wr = clamp(MIN(attr->max_qp_wr, attr->max_cqe / 2), MAX_WR);

	dev->iwarp = dev->ctx->device->transport_type == IBV_TRANSPORT_IWARP;
	/* RFC 5040 has Send With Invalidate from the beginning. */
	atomic_init(&dev->remote_inv, dev->iwarp || (attr->device_cap_flags &
					IBV_DEVICE_MEM_MGT_EXTENSIONS));
	l->max_wr = wr;
	l->max_recv = wr;
	l->max_sge = clamp(attr->max_sge, MAX_SGE);
	l->open_sinks = dev->iwarp;
	l->pins = true;
	l->domains = true;
	l->windows = attr->device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A |
					       IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	l->unacknowledged = dev->iwarp;
	l->max_read_depth = clamp_depth(attr->max_qp_init_rd_atom);
	l->max_resp_depth = clamp_depth(attr->max_qp_rd_atom);
	l->max_private = VERBS_MAX_PRIVATE;
	dev->post_on_loop = posts_by_system_call(attr);
	atomic_init(&dev->inline_max, INLINE_MAX);
	/* Adapters need not allow it for plain registrations. */
	l->invalidates = false;
}

/* With the provider's lock: ends the registrations of a device that goes, and
 * the domains that they were in. */
static void end_registrations(struct verbs_dev *dev)
{
	struct verbs_domain *d, *next_d;
	struct verbs_mr *mr, *next;

	cds_list_for_each_entry_safe(mr, next, &dev->mrs, link) {
		ibv_dereg_mr(mr->ibv);
		mr->ibv = NULL;
		cds_list_del(&mr->link);
	}
	cds_list_for_each_entry_safe(d, next_d, &dev->domains, link) {
		ibv_dealloc_pd(d->pd);
		d->pd = NULL;
		cds_list_del(&d->link);
	}
}

/*
 * librdmacm closes a device that is gone when it looks for devices and finds
 * another.  Some drivers wait for that before they let the device go.  False:
 * it found none, and keeps the device open.
 */
static bool look_for_devices(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);

	if (list)
		rdma_free_devices(list);
	return list != NULL;
}

/*
 * Replaces each of a device's files by another: otherwise its driver would wait
 * until librdmacm finds another device and closes them.  They are no longer
 * used, except to end a protection domain of the library, which fails; the
 * driver ends it with the file.
 */
static void let_files_go(struct ibv_context *ctx, int fd)
{
	if (dup3(fd, ctx->cmd_fd, O_CLOEXEC) < 0 ||
	    dup3(fd, ctx->async_fd, O_CLOEXEC) < 0)
		log_warn("rdma device %s: its files stay open: %s",
			 ibv_get_device_name(ctx->device), strerror(errno));
}

/*
 * Lets a device go whose id was of no use, for the reason @err: if the device
 * is gone, nothing watches it.  The id still keeps the library's struct.
 */
static void let_go_unheld(struct ibv_context *ctx, int err)
{
	int fd;

	if ((err != -ENXIO && err != -ENODEV && err != -EIO) ||
	    look_for_devices())
		return;
	fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0)
		return;
	let_files_go(ctx, fd);
	close(fd);
}

/* Ends registrations and lets the library close the device, if it has no users
 * and will have none.  True if it did.  The watcher's. */
static bool verbs_dev_release(struct verbs_dev *dev)
{
	struct ibv_context *ctx = dev->ctx;
	bool is_over;

	mutex_lock(&dev->provider->lock);
	is_over = dev->ends || (dev->dev.gone && dev->users == 0);
	if (is_over) {
		dev->ctx = NULL;
		end_registrations(dev);
	}
	mutex_unlock(&dev->provider->lock);
	if (!is_over)
		return false;
	if (dev->filler)
		ibv_destroy_cq(dev->filler);
	ibv_dealloc_pd(dev->pd);
	/* While the id holds it, the library's struct is there. */
	if (dev->dev.gone && !look_for_devices())
		let_files_go(ctx, dev->wake_fd);
	rdma_destroy_id(dev->hold);
	if (dev->dev.gone)
		log_info("rdma device %s: all its resources are freed",
			 dev->dev.name);
	return true;
}

/*
 * The user library of siw mistakes the mmap offset 0x90000, which the kernel
 * hands out like any other, for a failure (siw-abi.h, SIW_INVAL_UOBJ_KEY), so
 * after some connections the next one always fails.  An unused queue that is
 * large enough to lie across the offset reserves it.
 */
static struct ibv_cq *fill_siw(struct ibv_context *ctx,
			       const struct ibv_device_attr *attr)
{
	if (attr->vendor_id != SIW_VENDOR)
		return NULL;
	return ibv_create_cq(ctx, SIW_FILL, NULL, NULL, 0);
}

static int verbs_device_create(struct verbs_provider *p, struct rdma_cm_id *id,
			       enum verbs_id_use use,
			       struct verbs_dev **out)
{
	struct ibv_device_attr attr;
	struct verbs_dev *dev = calloc(1, sizeof(*dev));
	int err = -ENOMEM;

	if (!dev)
		goto fail;
	dev->provider = p;
	CDS_INIT_LIST_HEAD(&dev->conns);
	CDS_INIT_LIST_HEAD(&dev->mrs);
	CDS_INIT_LIST_HEAD(&dev->domains);
	dev->ctx = id->verbs;
	err = -ibv_query_device(dev->ctx, &attr);
	if (err)
		goto fail_free;
	dev->pd = ibv_alloc_pd(dev->ctx);
	if (!dev->pd) {
		err = verbs_errno();
		goto fail_free;
	}
	dev->dev.ops = p->ops;
	snprintf(dev->dev.name, sizeof(dev->dev.name), "%s",
		 ibv_get_device_name(dev->ctx->device));
	set_limits(dev, &attr);
	err = hold(dev, id, use);
	if (err)
		goto fail_pd;
	err = verbs_watch_start(dev, verbs_dev_release);
	if (err)
		goto fail_pd;
	dev->filler = fill_siw(dev->ctx, &attr);
	pthread_mutex_init(&dev->dev.lock, NULL);
	log_info("rdma device %s: %s, %u segments, %u Reads at a time",
		 dev->dev.name, dev->iwarp ? "iWARP" : "InfiniBand or RoCE",
		 dev->dev.limits.max_sge, dev->dev.limits.max_read_depth);
	*out = dev;
	return 0;

fail_pd:
	ibv_dealloc_pd(dev->pd);
	if (dev->hold && dev->hold != id)
		rdma_destroy_id(dev->hold);
fail_free:
	if (use != VERBS_ID_LISTENS)
		let_go_unheld(dev->ctx, err);
	free(dev);
fail:
	return err;
}

void verbs_dev_destroy(struct verbs_dev *dev)
{
	verbs_watch_stop(dev);
	pthread_mutex_destroy(&dev->dev.lock);
	free(dev);
}

int verbs_dev_get(struct verbs_provider *p, struct rdma_cm_id *id,
		  enum verbs_id_use use, struct verbs_dev **out)
{
	struct verbs_dev *dev;
	int err = 0;

	if (!id->verbs)
		return -ENODEV;
	mutex_lock(&p->lock);
	cds_list_for_each_entry(dev, &p->devices, link)
		if (dev->ctx == id->verbs)
			goto found;
	err = verbs_device_create(p, id, use, &dev);
	if (err)
		goto out;
	cds_list_add_tail(&dev->link, &p->devices);
	if (dev->hold == id) {
		err = -ERESTART;
		goto out;
	}
found:
	if (dev->dev.gone) {
		err = -ENODEV;
		goto out;
	}
	dev->users++;
	*out = dev;
out:
	mutex_unlock(&p->lock);
	return err;
}

void verbs_dev_put(struct verbs_dev *dev)
{
	mutex_lock(&dev->provider->lock);
	if (--dev->users == 0 && dev->dev.gone)
		verbs_watch_wake(dev);
	mutex_unlock(&dev->provider->lock);
}

bool verbs_dev_use(struct verbs_dev *dev)
{
	bool is_there;

	mutex_lock(&dev->provider->lock);
	is_there = dev->ctx != NULL;
	dev->users += is_there;
	mutex_unlock(&dev->provider->lock);
	return is_there;
}
