/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_fake - librdmacm and libibverbs with devices that the test controls:
 * functions of the same names, linked instead of the libraries.
 *
 * Each of two slots holds a device.  The device in slot 1 has the addresses
 * 198.51.100.x and 2001:db8:2::x, the device in slot 0 all others.
 *
 * Misuse that the libraries would punish with a hang or a crash (an id
 * destroyed with an event unacknowledged, a queue in use destroyed, ...)
 * aborts.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include <rdma/rdma_cma.h>

#define FAKE_QUEUE	256

/* A work request as it was posted. */
struct fake_wr {
	uint64_t	wr_id;
	unsigned	opcode;
	bool		signaled;
	bool		in_line;	/* its bytes went with it: */
	uint8_t		bytes[1024];
	unsigned	nsge;
	struct ibv_sge	sge[4];
	uint64_t	remote_addr;
	uint32_t	rkey;		/* or the one to invalidate */
	struct ibv_mw	*mw;		/* to bind, */
	struct ibv_mw_bind_info bind;	/* to this, */
	uint32_t	lkey;		/* a registration */
};

struct fake_qp {
	struct ibv_qp	qp;		/* first */
	struct fake_wr	sends[FAKE_QUEUE];
	unsigned	nsends;		/* posted, of all time */
	unsigned	sends_done;	/* completed or flushed */
	uint64_t	recvs[FAKE_QUEUE];
	struct ibv_sge	recv_sge[FAKE_QUEUE];
	unsigned	nrecvs;
	unsigned	recvs_done;
	bool		error;
	int		rnr_timer;	/* -1: not set */
	struct fake_qp	*peer;		/* at the other end of the wire */
	unsigned	read_depth;	/* Reads that were agreed */
	struct ibv_qp_init_attr attr;
};

/* A registration of a dma-buf as it was asked for. */
struct fake_dmabuf {
	uint64_t	offset;
	size_t		len;
	uint64_t	iova;
	int		fd;
	int		access;
};

struct fake {
	pthread_mutex_t	lock;
	/* Set by the test, before or as it goes. */
	struct ibv_device_attr attr;
	enum ibv_transport_type transport;
	unsigned	fail_call;	/* this fallible call fails, from 1 */
	int		post_errno;	/* of post_send and post_recv */
	unsigned	post_at;	/* at this work request, from 1 */
	bool		post_forgets;	/* returns 0 all the same */
	/* The user library is older than the driver: it refuses these opcodes
	 * (1 << IBV_WR_...), and bytes that go along, so. */
	unsigned	lib_lacks;
	bool		lib_no_inline;
	int		lib_errno;
	bool		lib_no_windows;	/* can't make one */
	bool		reg_no_bind;	/* nor register memory for them */
	int		dereg_errno;	/* of ibv_dereg_mr(), from now on, */
	int		dmabuf_errno;	/* and of ibv_reg_dmabuf_mr(), */
	int		dmabuf_most;	/* which takes so many bytes; 0: any */
	bool		keeps_work;	/* flushes nothing in error */
	bool		no_relaxed;	/* refuses relaxed ordering */
	bool		eager;		/* completes while it is armed */
	bool		no_port;	/* can't be bound to */
	void		(*before_bind)(void);	/* called once, as the next id
						 * is being bound, */
	void		(*after_ack)(void);	/* and as the next event of
						 * a connection is
						 * acknowledged */
	unsigned	inline_max;	/* a queue pair that asks for more is
					 * refused */
	unsigned	inline_grant;	/* the most that it is told to have */
	int		vectors;	/* for completions */
	bool		no_qps;		/* makes no queue pair */
	bool		use6;		/* peers ask listener6, */
	unsigned	slot;		/* and through this one's device */
	unsigned	resolve_us;	/* that an address takes */

	/* Counts of events. */
	unsigned	calls;		/* fallible ones */
	unsigned	objects;	/* that exist: all sorts */
	unsigned	posts;		/* calls of post_send */
	pthread_t	poster;		/* the thread that made the last */
	struct rdma_conn_param param;	/* of the last accept or connect */
	int		addr_ms;	/* given to resolve an address */
	int		route_ms;	/* and a route */
	unsigned	disconnects;
	unsigned	rejects;
	unsigned	notified;	/* the CM, that a peer is there */
	unsigned	listens;
	unsigned	qps_destroyed;
	unsigned	cq_depth;	/* of the last one, */
	int		cq_vector;	/* and its completion vector */
	unsigned	qps_refused;
	unsigned	pds, mrs;	/* that exist */
	bool		hold_regs;	/* see fake_hold_regs() */
	unsigned	registering;	/* threads that wait there */
	unsigned	looks;		/* for devices */
	unsigned	rnrs;		/* Sends that waited for a Receive */
	unsigned	inlined;	/* work requests with their bytes */
	unsigned	windows;	/* bound */
	unsigned	dmabufs;	/* registrations of some asked for, */
	struct fake_dmabuf dmabuf;	/* the last */
	bool		wired;		/* fake_wire_start() was called */
	unsigned	mr_access;	/* of the last registration */
	unsigned	open_mrs;	/* registrations that peers can write
					 * to, */
	unsigned	opened;		/* such ones of all time, */
	struct ibv_pd	*open_pd;	/* the last one's domain, */
	void		*open_addr;	/* and where it is */
	size_t		open_len;
	struct rdma_cm_id *listener;	/* the last at an IPv4 address */
	struct rdma_cm_id *listener6;	/* and at an IPv6 one */
	struct rdma_cm_id *id;		/* the last made for a request */
	struct fake_qp	*qp;		/* the last made */
};

extern struct fake fake;

/*
 * From here on two ends in this process reach each other: a connection to the
 * port of a listener is one, and messages and data move, until the second call.
 * The limits in fake.attr hold then, except zeros.
 */
void fake_wire_start(void);
void fake_wire_stop(void);
/* Before each test. */
void fake_init(void);
/* Until it is called with false, registrations take for ever. */
void fake_hold_regs(bool hold);
/* True if an id listens. */
bool fake_listening(void);
/* A peer asks fake.listener. */
void fake_request(const void *private_data, uint8_t len, uint8_t ird,
		  uint8_t ord);
/* The CM reports @type of @id. */
void fake_event(struct rdma_cm_id *id, enum rdma_cm_event_type type,
		int status);
/* The peer accepts fake.id. */
void fake_answer(const void *private_data, uint8_t len, uint8_t ird);
/* Completes everything up to and including the next signaled send. */
void fake_send_done(enum ibv_wc_status status);
/* The next send that is not signaled fails. */
void fake_unsignaled_failed(enum ibv_wc_status status);
void fake_recv_done(enum ibv_wc_status status, uint32_t len,
		    uint32_t invalidated);
/* The device of slot 0 reports @type by itself: of fake.qp, its queue, or port
 * 1. */
void fake_async(enum ibv_event_type type);
/* The device goes: its ids hear it, unless it is @silent.  Its context stops
 * sending events and registering memory. */
void fake_unplug(unsigned slot, bool silent);
/* Files of devices that are gone which the process still has open: their
 * drivers wait for it. */
unsigned fake_held(void);
/* Another device takes its place. */
void fake_plug(unsigned slot);
/* All that was reported was taken and acknowledged. */
bool fake_asyncs_over(void);
/* A completion of something that was never posted. */
void fake_stray_done(uint64_t wr_id);
