/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannet-load - an NFSv3 load generator.
 *
 * Operation: each thread drives its connections; each connection has as many
 * slots as its depth, and a slot has one call outstanding.  When its reply
 * came, the workload says what the slot calls next.  A transport carries
 * calls out and replies in; workloads know nothing of it.
 *
 * Ownership: threads own connections, connections own slots.  What the
 * workloads work on (struct target) and the options are shared and constant
 * while threads run.
 */
#ifndef GANNET_BENCH_LOAD_H
#define GANNET_BENCH_LOAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "lib/xdr.h"
#include "nfs3/proto.h"

#define LOAD_META_FILES	64u	/* that GETATTR, LOOKUP, ACCESS go round */
#define LOAD_HEAD_MAX	512u	/* a call without its data, with its mark */
/* The replies that are not READs, at most. */
#define LOAD_REPLY_MAX	(72u << 10)
#define LOAD_BLOCK_MAX	(16u << 20)

struct workload;
struct transport;

struct load_options {
	const char	*host;
	const char	*path;
	const char	*dir;		/* below path; made, and removed */
	const struct workload *work;
	unsigned	 port;		/* 0: ask rpcbind */
	unsigned	 mount_port;	/* 0: port, else ask rpcbind */
	unsigned	 rdma_port;
	const struct transport *transport;
	unsigned	 conns;
	unsigned	 threads;
	unsigned	 depth;
	uint32_t	 block;
	uint64_t	 size;		/* of each connection's file */
	unsigned	 entries;	/* of the directory that is listed */
	double		 seconds;
	double		 warmup;
	uint64_t	 ops;		/* 0: bounded by time */
	int		 stable;	/* of WRITE: enum stable_how */
	bool		 verify;
	bool		 discard;	/* replies stay in the kernel */
	bool		 keep;
	bool		 privileged;
	bool		 json;
	bool		 progress;
	int		 server_pid;
	bool		 memory;	/* report what its connections take */
	uint32_t	 uid;
	uint32_t	 gid;
};

struct fh {
	uint32_t	len;
	uint8_t		data[NFS3_FHSIZE];
};

struct target {
	const struct load_options *opt;
	struct sockaddr_storage nfs;	/* TCP */
	struct fh	 root;
	struct fh	 dir;
	struct fh	 meta[LOAD_META_FILES];
	struct fh	*data;		/* owned; one a connection */
	struct fh	 big;		/* directory of many entries */
	uint8_t		*pattern;	/* owned; see load_pattern() */
	/* AUTH_SYS header of every call; see load_call_init(). */
	uint8_t		 head[128];
	uint32_t	 head_len;
};

/* Log-linear: 32 buckets for each power of two of nanoseconds. */
#define HIST_SUB	32u
#define HIST_BUCKETS	(40u * HIST_SUB)

struct hist {
	uint64_t	count[HIST_BUCKETS];
	uint64_t	total;
	uint64_t	max;
};

void hist_add(struct hist *h, uint64_t ns);
void hist_merge(struct hist *to, const struct hist *from);
/* Upper bound of the bucket in which the @q quantile lies, in ns. */
uint64_t hist_quantile(const struct hist *h, double q);

enum call_kind {
	CALL_GETATTR,
	CALL_LOOKUP,
	CALL_ACCESS,
	CALL_READ,
	CALL_WRITE,
	CALL_CREATE,
	CALL_REMOVE,
	CALL_READDIRPLUS,
	CALL_COMMIT,
};

struct slot {
	struct load_conn *conn;
	unsigned	 index;
	uint32_t	 xid;		/* of the call that is out; 0: none */
	uint64_t	 sent;		/* ns */
	enum call_kind	 kind;
	uint64_t	 offset;
	uint32_t	 len;
	uint64_t	 cookie;	/* listing: where to go on */
	uint8_t		 cookieverf[NFS3_COOKIEVERFSIZE];
	bool		 created;	/* its file exists: REMOVE is next */
	const uint8_t	*moved;		/* READ data, when not in the reply */
	void		*wire;		/* the transport's */
};

/* A call to be sent: head, from the xid on, then data and its pad. */
struct call {
	struct xdr_out	 x;
	const uint8_t	*data;		/* borrowed from the target */
	uint32_t	 data_len;
};

struct load_conn {
	struct load_thread *thread;
	unsigned	 index;		/* of all */
	struct slot	*slots;		/* owned */
	unsigned	 outstanding;
	uint64_t	 next;		/* sequential offset, round-robin... */
	uint64_t	 random;
	uint64_t	 budget;	/* calls that may still be started */
	void		*wire;		/* the transport's */
};

struct counts {
	uint64_t	ops;
	uint64_t	bytes;
	uint64_t	entries;
	uint64_t	errors;
};

struct load_thread {
	struct load_run	*run;
	pthread_t	 thread;
	unsigned	 first, nconns;	/* of run->conns */
	bool		 measuring;	/* the counts are from the interval */
	struct counts	 counts;
	struct hist	 hist;
	uint64_t	 cpu;		/* ns, of the interval */
	uint64_t	 cpu_start;
	/* For the progress line; written by the thread, read by all. */
	_Atomic uint64_t seen_ops;
	_Atomic uint64_t seen_bytes;
} __attribute__((aligned(64)));

enum phase { PHASE_WARMUP, PHASE_MEASURE, PHASE_STOP };

struct load_run {
	const struct target *target;
	const struct workload *work;
	const struct transport *transport;
	struct load_conn *conns;	/* owned */
	struct load_thread *threads;	/* owned */
	unsigned	 nconns, nthreads, depth;
	uint64_t	 budget;	/* calls of all; 0: by time */
	_Atomic enum phase phase;
	_Atomic unsigned running;	/* threads */
	_Atomic unsigned resting;	/* of them: are done, but connected */
	_Atomic bool	 released;	/* they may go */
	_Atomic int	 error;		/* first -errno: the run has failed */
};

/* Results of the measured interval. */
struct load_result {
	struct counts	 counts;
	struct hist	 hist;
	double		 seconds;
	double		 client_cpu;	/* seconds */
	double		 server_cpu;	/* < 0: unknown */
	double		 memory;	/* bytes of the server for all
					 * connections; < 0: unknown */
};

/* engine.c */

/* Runs @w until its bounds; -errno when a connection was lost. */
int load_run(const struct target *t, const struct workload *w,
	     uint64_t budget, struct load_result *result);
uint64_t load_now(void);
/*
 * For transports.  start_slot() has a slot's next call encoded into @c,
 * whose x is set up by the transport; false: there is none to start.
 */
bool load_start_slot(struct slot *s, struct call *c, uint64_t now);
/* A reply, from the xid on; @now is when it was seen.  0 or -errno. */
int load_reply(struct slot *s, struct xdr_in *x, uint64_t now);
/* Slot of @xid, or NULL. */
struct slot *load_find_slot(struct load_conn *c, uint32_t xid);
/*
 * For transports, on the thread that does the work: load_begin() before the
 * first call, load_tick() now and then, load_end() after the last reply.
 */
void load_begin(struct load_thread *t);
void load_tick(struct load_thread *t);
void load_end(struct load_thread *t);
/* Waits while the server is looked at.  Connections are idle, but there. */
void load_rest(struct load_thread *t);
bool load_stopping(const struct load_thread *t);
void load_fail(struct load_run *r, int err, const char *what);

/* work.c */

const struct workload *workload_find(const char *name);
const struct workload *workload_fill(void);
const char *workload_name(const struct workload *w);
void workload_list(FILE *out);
enum { NEED_DATA = 1, NEED_META = 2, NEED_BIG = 4, WRITES = 8, READS = 16,
       MAKES = 32 };
unsigned workload_needs(const struct workload *w);
/* False: the slot has nothing left to do. */
bool workload_next(const struct workload *w, struct slot *s, struct call *c);
/* Results of an accepted call.  0, -EREMOTEIO (an NFS error), -EBADMSG. */
int workload_reply(struct slot *s, struct xdr_in *x, struct counts *n);
const struct target *slot_target(const struct slot *s);

/* pattern.c */

#define PATTERN_PERIOD	((1u << 20) + 4093u * 4)
/* @len bytes that belong at @offset of a file. */
static inline const uint8_t *load_pattern(const struct target *t,
					  uint64_t offset)
{
	return t->pattern + (t->opt->verify ? offset % PATTERN_PERIOD : 0);
}
int load_pattern_create(struct target *t);

/* setup.c: a client that does one call after the other */

int target_prepare(struct target *t, const struct load_options *opt);
/* COMMITs what the workload wrote. */
int target_commit(struct target *t);
/* Removes what was made, unless it is to be kept, and frees. */
void target_remove(struct target *t);

/* rpc.c */

void load_call_init(struct target *t);
/* Starts a call: header and credential of @t, patched. */
void load_call_head(const struct target *t, struct xdr_out *x, uint32_t xid,
		    uint32_t proc);
/* Reads a reply up to its results.  0 or -EBADMSG, -EREMOTEIO. */
int load_reply_head(struct xdr_in *x);
void put_fh(struct xdr_out *x, const struct fh *fh);
void get_fh(struct xdr_in *x, struct fh *fh);
/* Both skip post_op_attr, wcc_data. */
void skip_attr(struct xdr_in *x);
void skip_wcc(struct xdr_in *x);

/* tcp.c, rdma.c */

struct transport {
	const char *name;
	/* Runs the connections of @t until the run stops.  0 or -errno. */
	int (*run)(struct load_thread *t);
};
extern const struct transport load_tcp, load_iwarp, load_verbs;
int load_tcp_connect(const struct load_options *opt,
		     const struct sockaddr_storage *to);

/* options.c, report.c */

int load_options_parse(struct load_options *o, int argc, char **argv);
void load_report(const struct target *t, const struct load_result *r);

#endif
