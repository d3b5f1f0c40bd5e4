/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the iWARP provider.
 *
 * provider -> listener, loop -> connection.  The listener owns a passive
 * connection until its start-up frame is read.  Then the upper layer has it,
 * until fabric_setup() gives it to its loop.
 */
#pragma once

#include <stdatomic.h>
#include <sys/uio.h>

#include <urcu/list.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "transport/addr.h"
#include "transport/fabric/iwarp/iwarp.h"
#include "transport/fabric/iwarp/marked.h"
#include "transport/fabric/iwarp/rdmap.h"
#include "transport/fabric/iwarp/startup.h"
#include "transport/socket/accept.h"
#include "transport/socket/outbox.h"

#define IWARP_MAX_SGE		16u
/* RFC 5044 section 3: an ULPDU has 64,768 bytes at most, and 128 always fit.
 * With the length and the CRC, in words: */
#define IWARP_MAX_FPDU		64772u
#define IWARP_MIN_FPDU		136u
/* Bytes received at once that have no known place yet. */
#define IWARP_RX_SIZE		(256u << 10)
/* A payload with more than this to come is received at its place. */
#define IWARP_RX_DIRECT		4096u

struct iwarp_mr {
	struct fabric_mr mr;
	unsigned	 access;	/* remote ones; only these have a
					 * slot */
	unsigned	 slot;
	bool		 invalidated;
	const struct fabric_conn *only;	/* NULL: any; never followed */
};

struct iwarp_device {
	struct fabric_device dev;
	/*
	 * Read-locked while a peer's memory access is carried out: memory must
	 * not be touched after it was unregistered.  Taken before a
	 * connection's lock, never after.
	 */
	pthread_rwlock_t  mr_lock;
	struct iwarp_mr	**mrs;		/* by slot */
	unsigned	  nslots;
	unsigned	  next_slot;
	uint16_t	  keys[64];	/* of the system's randomness */
	unsigned	  nkeys;	/* not used yet */
};

struct iwarp_provider {
	struct iwarp_options options;	/* with the defaults */
	struct iwarp_device  device;
	pthread_mutex_t	     lock;	/* guards the list and its counts */
	struct cds_list_head loops;
};

/* The state that the connections of one loop share. */
struct iwarp_loop {
	struct iwarp_provider *provider;	/* borrowed */
	struct loop	      *loop;		/* borrowed */
	struct cds_list_head   link;
	unsigned	       refs;		/* provider's lock */
	uint8_t		       buf[IWARP_RX_SIZE];
};

struct iwarp_conn;

/*
 * sources.c: the unfinished requests of a listener, by network.  The loop's
 * thread only.
 */
struct iwarp_sources {
	struct cds_list_head   list;	/* networks of one site are adjacent */
	unsigned	       n;	/* requests of all of them */
};

/* A network (transport/addr.h) with unfinished requests. */
struct iwarp_source {
	struct iwarp_sources  *all;		/* borrowed */
	struct cds_list_head   link;
	struct in6_addr	       network;
	struct cds_list_head   unfinished;	/* oldest first */
	unsigned	       n;		/* of them */
};

void iwarp_sources_init(struct iwarp_sources *all);
/* @c, whose peer is known, has an unfinished request.  0 or -ENOMEM. */
int  iwarp_sources_add(struct iwarp_sources *all, struct iwarp_conn *c);
/* The request of @c is finished, or given up. */
void iwarp_sources_remove(struct iwarp_conn *c);
/* The oldest request of the network that has most in the site (a /48 of IPv6)
 * that has most; of several, of the one that came first.  The list is not
 * empty. */
struct iwarp_conn *iwarp_sources_pick(const struct iwarp_sources *all);

struct iwarp_listener {
	struct fabric_listener l;
	struct iwarp_provider *provider;	/* borrowed */
	struct acceptor	       accept;
	struct iwarp_sources   sources;
};

/* A message on its way out. */
struct iwarp_out {
	struct ddp_header	 h;	/* of the next segment */
	const struct fabric_sge	*sge;	/* borrowed: the payload's rest */
	uint32_t		 off;	/* in the first */
	uint32_t		 left;
	bool			 busy;
};

/*
 * The sender's: the FPDUs that were built and go to the socket.  Headers lie in
 * heads, a trailer together with the header that follows it.
 */
#define IWARP_TX_IOVS		512
#define IWARP_TX_HEADS		8192
/* FPDUs with markers are copied, to lie in one piece. */
#define IWARP_TX_MARKED		(128u << 10)

struct iwarp_tx_marked {
	struct marked	 stream;
	unsigned	 used;		/* of buf */
	uint8_t		 buf[IWARP_TX_MARKED];
};

struct iwarp_tx {
	struct iovec	 iov[IWARP_TX_IOVS];
	unsigned	 niov;
	unsigned	 at;		/* sent before this one */
	uint8_t		 heads[IWARP_TX_HEADS];
	unsigned	 head;		/* used of heads */
	unsigned	 head_start;	/* no iov names heads from here on */
	uint64_t	 built;		/* bytes */
	uint64_t	 began;		/* of those, before what iov has */
	uint8_t		*bounce;	/* owned: the memory that iov names */
	bool		 locked;	/* iov names exposed memory: mr_lock is
					 * held until it is sent or copied */
	unsigned	 fpdu;		/* bytes, at most, without markers */
	unsigned	 emss;		/* of a segment; 0: not known */
	bool		 crc;		/* not if marked: it has its own */
	struct iwarp_tx_marked *marked;	/* owned; NULL: no markers */
	uint32_t	 msn[DDP_NQUEUES];
	struct iwarp_out step;		/* of the slot at sq.built */
	struct iwarp_out answer;	/* of the response at answers.built */
	struct fabric_sge answer_sge;
	bool		 answer_turn;
};

/* A step that was posted. */
struct iwarp_slot {
	struct fabric_wr *wr;		/* borrowed until it is sent; a Read's
					 * until it is answered */
	struct fabric_op *op;
	uint64_t	  end;		/* of it in the stream */
	uint32_t	  sink;		/* a Read's: our handle for its sink */
	bool		  is_read;
	bool		  answered;
};

enum iwarp_state {
	IWARP_STARTUP,		/* startup.h has the socket */
	IWARP_LIVE,
	IWARP_STOPPING,		/* waits for a thread that sends */
	IWARP_LINGER,		/* all is flushed; waits for the peer's FIN */
	IWARP_CLOSED,		/* waits for the task */
};

/* Posted Receives, a ring.  The loop's thread only. */
struct iwarp_recvs {
	struct fabric_recv	**ring;
	unsigned		cap;
	unsigned		head;
	unsigned		tail;
};

/* Posted steps, a ring: retired <= sent <= built <= claimed <= posted. */
struct iwarp_sq {
	struct iwarp_slot	*ring;
	unsigned		cap;
	unsigned		retired;
	unsigned		sent;
	unsigned		built;		/* the sender's */
	unsigned		claimed;
	unsigned		posted;
	unsigned		read_at;	/* no Read waits before it */
	unsigned		reads;		/* in flight */
	uint32_t		sinks;
};

/* The peer's Reads, a ring. */
struct iwarp_answers {
	struct rdmap_request	*ring;
	unsigned		cap;
	unsigned		depth;		/* that the peer was promised */
	unsigned		head;
	unsigned		built;		/* the sender's */
	unsigned		claimed;
	unsigned		tail;
};

struct iwarp_conn {
	struct fabric_conn	conn;
	struct iwarp_provider	*provider;	/* borrowed */
	struct iwarp_loop	*il;		/* counted, from setup on */
	struct loop_fd		fd;
	struct loop_timer	timer;
	struct iwarp_startup	startup;
	struct fabric_wr	rtr;		/* an active end's first step */
	uint64_t		extra;		/* bytes sent at start-up */

	/* The loop's thread only. */
	enum iwarp_state	state;
	bool			eof;		/* the peer closed, or worse */
	bool			live_due;	/* established() is to come */
	bool			read_blamed;	/* -EREMOTEIO: for a Read */
	struct rdmap		rx;
	struct iwarp_recvs	recvs;

	/* The sender's. */
	struct iwarp_tx		*tx;
	bool			read_refused;	/* our end is for that */

	/* Its lock guards all below.  Held until the peer has spoken. */
	struct outbox		out;
	bool			live;
	bool			over;		/* the socket is no longer
						 * queried */
	struct xprt_view	last;		/* its last answer */
	struct iwarp_sq		sq;
	struct iwarp_answers	answers;
};

static inline struct iwarp_conn *iwarp_conn(struct fabric_conn *c)
{
	return container_of(c, struct iwarp_conn, conn);
}

/* The peer's name for the log. */
static inline const char *iwarp_conn_name(const struct iwarp_conn *c,
					  char name[XPRT_ADDR_TEXT])
{
	return xprt_addr_text((const struct sockaddr *)&c->conn.info.peer,
			      name, XPRT_ADDR_TEXT);
}

/* mr.c */
int iwarp_mr_create(struct fabric_device *dev, void *addr, size_t len,
		    unsigned access, struct fabric_mr **out);
int iwarp_mr_destroy(struct fabric_mr *mr);
void iwarp_mr_bind(struct fabric_mr *mr, struct fabric_conn *c);
enum iwarp_refusal { IWARP_OK, IWARP_NO_STAG, IWARP_BOUNDS, IWARP_ACCESS,
		     IWARP_WRAP };
void iwarp_mr_lock(struct iwarp_device *d);
void iwarp_mr_unlock(struct iwarp_device *d);
/* With the lock: finds the memory of an access by the peer of @c. */
enum iwarp_refusal iwarp_mr_find(const struct iwarp_conn *c, uint32_t stag,
				 uint64_t to, uint64_t len, unsigned access,
				 uint8_t **out);
/* Without it.  False: the peer of @c has no such handle, or shares it with
 * other peers (RFC 5040 section 8.1.1 rule 7). */
bool iwarp_mr_invalidate(const struct iwarp_conn *c, uint32_t stag);

/* tx.c: the sender's */
/* Has tx make markers: before iwarp_tx_init().  0 or -ENOMEM. */
int iwarp_tx_mark(struct iwarp_tx *tx);
void iwarp_tx_init(struct iwarp_tx *tx, unsigned fpdu, bool crc);
void iwarp_tx_fini(struct iwarp_tx *tx);
/* FPDUs are to fit TCP segments of @emss bytes, RFC 5044 section 4.5. */
void iwarp_tx_fit(struct iwarp_tx *tx, unsigned emss);
/* Begins a message: of a step, or of an answer. */
void iwarp_tx_begin_step(struct iwarp_tx *tx, const struct fabric_wr *wr);
void iwarp_tx_begin_answer(struct iwarp_tx *tx,
			   const struct rdmap_request *req);
/* Makes FPDUs of the message; true if all of it was built, else tx is full. */
bool iwarp_tx_build(struct iwarp_tx *tx, struct iwarp_out *out);
/* Builds a whole Read Request.  False: tx is full. */
bool iwarp_tx_build_request(struct iwarp_tx *tx, const struct fabric_wr *wr,
			    uint32_t sink);
/* True if built bytes wait to be sent. */
void iwarp_tx_seal(struct iwarp_tx *tx);
/* The socket has taken the next @n bytes. */
void iwarp_tx_forget(struct iwarp_tx *tx, size_t n);
/* Copies the unsent rest, which then refers to no other memory.  0 or
 * -ENOMEM. */
int iwarp_tx_detach(struct iwarp_tx *tx);
static inline bool iwarp_tx_idle(const struct iwarp_tx *tx)
{
	return tx->at == tx->niov;
}
/* Encodes a Terminate's FPDU, the last one, into @out; returns its length. */
#define IWARP_TERM_FPDU		128u
unsigned iwarp_tx_terminate(struct iwarp_tx *tx, const struct rdmap *rx,
			    uint8_t *out);

/* queue.c */
extern const struct outbox_ops iwarp_outbox_ops;
/* As fabric_conn_bytes(): with a segment that comes in pieces, and with a copy
 * of the bytes that go out with markers. */
size_t iwarp_conn_bytes(const struct fabric_conn *c,
			const struct fabric_queues *q);
int iwarp_queues_create(struct iwarp_conn *c, const struct fabric_queues *q);
void iwarp_queues_destroy(struct iwarp_conn *c);
int iwarp_post(struct fabric_conn *conn, struct fabric_wr *chain);
int iwarp_post_recv(struct fabric_conn *conn, struct fabric_recv *chain);
/* Queues an internal step, before the owner can post. */
void iwarp_queue_add(struct iwarp_conn *c, struct fabric_wr *wr);
/* Queues the answer to a peer's Read.  False: it has more than agreed in
 * flight. */
bool iwarp_queue_answer(struct iwarp_conn *c,
			const struct rdmap_request *req);
/* At the end, when no thread sends: the Terminate will name the peer's Read
 * whose memory went away, from where it stopped (RFC 5040 section 4.8). */
void iwarp_note_refused(struct iwarp_conn *c);
/* The loop's thread: does the ops of complete steps. */
void iwarp_retire(struct iwarp_conn *c);
/* The loop's thread, after the last thread stopped sending: completes all other
 * ops. */
void iwarp_flush(struct iwarp_conn *c);

/* recv.c */
/* Counted.  Any thread. */
int iwarp_loop_get(struct iwarp_provider *p, struct loop *loop,
		   struct iwarp_loop **out);
void iwarp_loop_put(struct iwarp_loop *il);
extern const struct rdmap_ops iwarp_rdmap_ops;
/* The loop's thread: receives from the socket, a bounded number of bytes. */
void iwarp_receive(struct iwarp_conn *c);

/* conn.c */
int iwarp_conn_create(struct iwarp_provider *p, int fd,
		      struct iwarp_conn **out);
void iwarp_conn_destroy(struct iwarp_conn *c);
int iwarp_setup(struct fabric_conn *conn, struct loop *loop,
		const struct fabric_queues *q);
void iwarp_close(struct fabric_conn *conn);
void iwarp_free(struct fabric_conn *conn);
uint64_t iwarp_sent(struct fabric_conn *conn);
void iwarp_look(struct fabric_conn *conn, struct xprt_view *v);
/* The loop's thread: start-up is over, with both sides agreed.  @hold: send
 * nothing before the peer has spoken. */
void iwarp_conn_live(struct iwarp_conn *c, const struct mpa_agreed *agreed,
		     bool hold);

/* listen.c */
int iwarp_listen(void *provider, const struct sockaddr *addr,
		 struct loop *loop,
		 void (*request)(struct fabric_listener *,
				 struct fabric_conn *),
		 void *upper, struct fabric_listener **out);
void iwarp_unlisten(struct fabric_listener *l);
