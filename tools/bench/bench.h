/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench - puts load on an NFSv3 server.
 *
 * Operation: each thread drives its connections; each connection has as many
 * slots as its depth, and a slot has one call outstanding.  When its reply
 * came, the workload chooses the slot's next call.  A transport carries calls
 * out and replies in; workloads know nothing of it.  The files are made and
 * removed by an ordinary session (nfs.h).
 *
 * Ownership: threads own connections, connections own slots.  The workloads'
 * files (struct target) and the options are shared and constant while threads
 * run.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "tools/nfs/rpc.h"
#include "tools/nfs/tool.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "lib/xdr.h"

#define LOAD_META_FILES	64u	/* that GETATTR, LOOKUP, ACCESS go round */
#define LOAD_HEAD_MAX	512u	/* a call without its data, with its mark */
/* The replies that are not READs, at most. */
#define LOAD_REPLY_MAX	(72u << 10)
#define LOAD_FILL_BLOCK	(256u << 10)

struct workload;
struct transport;

struct load_options {
	struct bench_options b;		/* with its defaults filled in */
	const struct workload *work;
	const struct transport *transport;
	unsigned	 depth;
	uint32_t	 block;
	int		 timeout_ms;	/* for a reply, and a connection */
	bool		 progress;
	bool		 lines;		/* of it, without a terminal */
	FILE		*page;		/* or NULL */
};

struct target {
	struct tool	*t;
	const struct load_options *opt;
	struct sockaddr_storage at;	/* where the session goes to */
	const char	*transport;	/* "tcp", "iwarp", "verbs" */
	char		 dir_name[40];	/* below the URL's; empty: not made */
	struct nfs3_fh	 above, dir;
	struct nfs3_fh	 meta[LOAD_META_FILES];
	struct nfs3_fh	*data;		/* owned; one a connection */
	struct nfs3_fh	 big;		/* directory of many entries, */
	unsigned	 big_names;	/* so many at most */
	uint8_t		*pattern;	/* owned; see load_pattern() */
	/* The beginning of all calls; see load_call_init(). */
	uint8_t		 head[RPC_HEADER_MAX];
	uint32_t	 head_len;
};

/* Log-linear: 32 buckets for each power of two of nanoseconds. */
#define HIST_SUB	32u
#define HIST_BUCKETS	(40u * HIST_SUB)

struct hist {
	uint64_t	count[HIST_BUCKETS];
	uint64_t	total;
	uint64_t	sum;		/* ns */
	uint64_t	max;
};

void hist_add(struct hist *h, uint64_t ns);
void hist_merge(struct hist *to, const struct hist *from);
/* The number of times that are shorter than @ns, to 3 percent. */
uint64_t hist_below(const struct hist *h, uint64_t ns);
/* Upper bound of the bucket in which the @q quantile lies, in ns. */
uint64_t hist_quantile(const struct hist *h, double q);

/* "12.5 ms" */
const char *bench_time(uint64_t ns, char out[16]);

struct slot {
	struct load_conn *conn;
	unsigned	 index;
	uint32_t	 xid;		/* of the call that is out; 0: none */
	uint64_t	 sent;		/* ns */
	struct nfsc_op	 op;		/* its arguments */
	bool		 repeats;	/* the call whose context was refused */
	char		 name[24];	/* that op names */
	unsigned	 file;		/* of the target's, that it is about */
	bool		 created;	/* its file exists: REMOVE is next */
	/* READ data that is not in the reply, and how much. */
	const uint8_t	*moved;
	uint32_t	 moved_len;
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
	uint64_t	 budget;	/* calls that can still be started */
	void		*wire;		/* the transport's */
	/* With --sec: has the context of its calls, owned. */
	struct nfsc_session *session;
	struct nfsc_flavor *flavor;	/* of that; or NULL */
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
	uint64_t	 gap;		/* ns between calls; 0: none */
	uint64_t	 due;		/* ns: no call starts before, if gap */
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
	struct load_conn *conns;	/* owned */
	struct load_thread *threads;	/* owned */
	unsigned	 nconns, nthreads, depth;
	uint64_t	 budget;	/* calls of all; 0: by time */
	_Atomic enum phase phase;
	_Atomic unsigned running;	/* threads */
	_Atomic unsigned resting;	/* of them: are done, but connected */
	_Atomic bool	 released;	/* they can go */
	_Atomic uint64_t done_at;	/* clock_ns() when one was done last */
	_Atomic bool	 complained;	/* about a reply with an error */
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

/* Runs @w until its bounds, or an interruption; -errno when a connection was
 * lost. */
int load_run(const struct target *t, const struct workload *w,
	     uint64_t budget, struct load_result *result);
/*
 * For transports.  start_slot() has a slot's next call encoded into @c, whose x
 * is set up by the transport; false: no call is to be started now.
 */
bool load_start_slot(struct slot *s, struct call *c, uint64_t now);
/* True if there will be calls to start when their time comes. */
bool load_waits(const struct load_thread *t);
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

/* bench.c */

/* Bounds how long a server can be silent, unless the user did. */
void bench_bound(struct tool_options *o);
/* True if the user wants it to end, since bench_catch(). */
bool bench_interrupted(void);
void bench_catch(void);
/* Ends the program if so. */
void bench_leave(void);

/* work.c */

const struct workload *workload_find(const char *name);
const struct workload *workload_fill(void);
const char *workload_name(const struct workload *w);
enum { NEED_DATA = 1, NEED_META = 2, NEED_BIG = 4, WRITES = 8, READS = 16,
       MAKES = 32, SEQUENTIAL = 64 };
unsigned workload_needs(const struct workload *w);
void load_call_init(struct target *t);
/* False: the slot has nothing left to do. */
bool workload_next(const struct workload *w, struct slot *s, struct call *c);
/* Encodes the call that the slot has.  False: it has no context. */
bool workload_make(struct slot *s, struct call *c);
/* The reply of a call.  0; -EREMOTEIO, with s->op.status; or another
 * -errno. */
int workload_reply(struct slot *s, struct xdr_in *x, struct counts *n);
const char *workload_call_name(const struct slot *s);

/* pattern.c */

#define PATTERN_PERIOD	((1u << 20) + 4093u * 4)
/* @len bytes that belong at @offset of a file. */
static inline const uint8_t *load_pattern(const struct target *t,
					  uint64_t offset)
{
	return t->pattern + (t->opt->b.verify ? offset % PATTERN_PERIOD : 0);
}
int load_pattern_create(struct target *t);

/* files.c: these complain, and return exit codes. */

/* Makes a directory below @above, and in it the files that works with such
 * @needs work on. */
int target_prepare(struct target *t, unsigned needs);
/* COMMITs the written data. */
int target_commit(struct target *t);
/* Removes the files that a work with MAKES left. */
int target_remove_made(struct target *t);
/* Removes everything. */
int target_remove(struct target *t, unsigned needs);
/* A directory of @n names there, made by CREATE or MKDIR. */
int target_make_big(struct target *t, enum nfsc_kind made, unsigned n);
int target_remove_big(struct target *t, enum nfsc_kind made);

/* Bytes of a call, with its mark, without data that goes behind it. */
static inline size_t load_head_max(const struct target *t)
{
	const struct nfsc_flavor *f = t->t->s->config.flavor;

	return LOAD_HEAD_MAX + (f ? f->extra : 0) +
	       (f && f->wraps ? t->opt->block : 0);
}

/* tcp.c, rdma.c */

struct transport {
	/* Runs the connections of @t until the run stops.  0 or -errno. */
	int (*run)(struct load_thread *t);
};
extern const struct transport load_tcp, load_rdma;
/* Calls come from reserved ports, which servers can require, unless that would
 * use more of them than a mount: other programs need them as well. */
static inline bool load_reserves(const struct target *t)
{
	return t->opt->b.connections <= 16;
}

/* page.c */

/* Begins a page; without @path *@out is NULL.  An older file at @path stays
 * until page_close(), and also then if the run has no results. */
int page_open(const char *path, const char *title, const char *about,
	      FILE **out);
int page_close(FILE *f, const char *path);
/* Text that came from anywhere. */
void page_put(FILE *f, const char *text);
void page_work(FILE *f, const struct target *t, const struct load_result *r);

/* report.c */

void load_report(const struct target *t, const struct load_result *r);
