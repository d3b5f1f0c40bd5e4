/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table - locks, waiters and shares: who holds which bytes of which file.
 * Pure, except for the time at which each began.
 *
 * A client is an address; a host is a name that a client gives itself, so
 * clients which are all called "localhost" are different hosts; and it belongs
 * to the address of the server that it calls, since a client numbers its
 * processes separately for each server that it knows.  An owner is a process of
 * a host; a hold is all that one owner has locked of one file.  A hold's ranges
 * are sorted, don't overlap, and adjacent ones of one kind and state are
 * joined.  Waiters of a file are in the order in which they came.
 *
 * Ownership: hosts, owners, files and holds belong to the table and go with the
 * last thing that is in them.  A file that is counted (refs), and a host, stay.
 * Nothing here locks or waits: the caller holds nlm->lock.
 */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <urcu/list.h>

#include <gannet/vfs.h>
#include "nlm/tree.h"
#include "rpc/rpc.h"
#include "rpc/work.h"
#include "wire/nlm.h"

#define NLM_NAME_MAX	255	/* of caller_name */

/* The LOCKs by which an owner has its bytes. */
struct nlm_origin {
	uint64_t since_ms;	/* of the oldest bytes */
	/* The newest state of the host's status monitor that one of them was
	 * in, and the newest one before that; 0: unknown, or none. */
	uint32_t state, older;
};

struct nlm_part {
	struct nlm_span		 at;
	struct nlm_origin	 from;
};

struct nlm_range {
	struct nlm_span		 at;
	struct nlm_origin	 from;
	struct nlm_hold		*hold;
	struct cds_list_head	 link;	/* hold->ranges */
	struct nlm_node		 of_file, of_hold;	/* in their trees */
};

/* The things that are counted.  NLM_HELD are holds for which a backend keeps
 * something. */
enum nlm_kind {
	NLM_HOSTS, NLM_RANGES, NLM_WAITS, NLM_SHARES, NLM_HELD, NLM_KINDS
};

/* All hosts of an address, or of a network: lives as long as they do. */
struct nlm_group {
	struct cds_list_head	 link;	/* in its bucket */
	struct in6_addr		 addr;
	unsigned		 n[NLM_KINDS];
};

struct nlm_host {
	struct cds_list_head	 link;	/* in its address's bucket */
	struct cds_list_head	 owners;
	unsigned		 n[NLM_KINDS];
	struct nlm_group	*client, *network;
	unsigned		 calling;	/* call-backs under way */
	struct cds_list_head	 behind;	/* waiters whose call-backs are
						 * due after those */
	unsigned		 locking;	/* calls that want a lock */
	uint64_t		 used_ms;	/* when it last locked */
	struct in6_addr		 addr;	/* it calls from there, */
	struct in6_addr		 local;	/* and this address of ours */
	bool			 monitored;
	uint32_t		 state;	/* its monitor's, as far as known; 0:
					 * not */
	uint32_t		 newest;	/* that it was ever in; differs
						 * since the state went back */
	uint64_t		 heard_ns;	/* when the last LOCK came */
	bool			 unsure;	/* a LOCK had another one than
						 * state since */
	bool			 doubt;	/* a notice can be late, or the state
					 * went back; */
	uint64_t		 doubt_ns;	/* ... when it came */
	uint32_t		 restart_state;	/* its monitor's since then */
	uint64_t		 restart_ns;	/* when its locks were ended */
	char			 name[NLM_NAME_MAX + 1];
};

struct nlm_owner {
	struct nlm_host		*host;
	struct cds_list_head	 link;	/* in its bucket */
	struct cds_list_head	 on_host;
	struct cds_list_head	 holds;
	struct cds_list_head	 waits;
	struct cds_list_head	 shares;
	unsigned		 pins;	/* of calls that use it */
	struct nlm_owner	*next;	/* of a search for deadlocks, */
	uint64_t		 seen;	/* ... the last one that was here */
	uint32_t		 svid;
	uint32_t		 oh_len;
	uint8_t			 oh[];
};

/* True if bytes of @from stay when their host restarts in @state; 0: none
 * do. */
static inline bool nlm_is_kept(const struct nlm_origin *from, uint32_t state)
{
	return state && (from->state == state || from->older == state);
}

/* True if the state @a of a host's monitor came after @b.  They grow. */
static inline bool nlm_is_newer(uint32_t a, uint32_t b)
{
	return a && (!b || (int32_t)(a - b) > 0);
}

/* The key of @o in those trees of a file that are sorted by owner. */
static inline struct nlm_span nlm_owner_key(const struct nlm_owner *o)
{
	return (struct nlm_span){ (uintptr_t)o, (uintptr_t)o, true };
}

struct nlm_file {
	struct cds_list_head	 link;	/* in its bucket */
	struct vfs_fs		*fs;
	struct vfs_handle	 handle;
	uint64_t		 fileid;
	unsigned		 refs;	/* of calls and jobs */
	struct cds_list_head	 holds;
	struct cds_list_head	 waits;
	struct cds_list_head	 shares;
	struct nlm_node		*ranges;	/* of all holds */
	struct nlm_node		*by_owner;	/* the holds */
	struct nlm_node		*queues;	/* also by owner */
	/* A waiter that is neither granted nor cut is in one of these: */
	struct nlm_node		*asleep;	/* behind a client's lock;
						 * by its bytes */
	struct nlm_node		*ready;	/* to be tried now; in their order */
	struct nlm_node		*foreign;	/* the backend refused it */
	uint64_t		 came;	/* waiters so far */
	unsigned		 nranges, nwaits;
	/* The next turn looks whether it has to end these. */
	struct cds_list_head	 marked_holds;
	struct cds_list_head	 marked_waits;
	bool			 marked_shares;	/* some of the shares are */

	/* The server's.  The turn is held by the one thread that changes the
	 * file's locks, also while the backend works. */
	pthread_mutex_t		 turn;
	struct export_tree	*exp;	/* counted while the file is listed */
	struct vfs_node		*node;	/* counted while the file has holds or
					 * waits; NULL: none */
	struct work_item	 job;
	bool			 queued;	/* the job is */
	bool			 due;	/* ... and another one after it */
	bool			 gone;	/* the export is: the next turn ends all
					 * that is here */
	unsigned		 departures;	/* of the export, that ended the
						 * locks here */
	bool			 again;	/* the next turn tries foreign ones */
	struct nlm		*nlm;
};

struct nlm_hold {
	struct nlm_file		*file;
	struct nlm_owner	*owner;
	struct cds_list_head	 on_file;
	struct cds_list_head	 on_owner;
	struct cds_list_head	 ranges;
	struct nlm_node		*tree;	/* of them */
	struct cds_list_head	 marked;
	struct nlm_span		 key;	/* the owner's address */
	struct nlm_node		 by_owner;	/* in file->by_owner */
	struct vfs_locker	 locker;	/* the backend's */
	bool			 counted;	/* in the host's held */
	bool			 dropped;	/* the host has lost all locks
						 * except */
	uint32_t		 kept;	/* ... locks in this state; 0: none
					 * kept */
};

/* The waiters of an owner in a file: lives as long as they do. */
struct nlm_queue {
	struct nlm_node		*asleep;	/* by their bytes; */
	struct nlm_node		*grants;	/* ... those granted or cut,
						 * which don't overlap */
	unsigned		 count;
	struct nlm_span		 key;	/* the owner's address */
	struct nlm_node		 by_owner;	/* in file->queues */
};

/* The answer of a client to GRANTED. */
enum nlm_wait_answer { NLM_WAIT_NONE, NLM_WAIT_TAKEN, NLM_WAIT_REFUSED };

/* A LOCK that waits; then, during the call-back to its client, a granted
 * one. */
struct nlm_wait {
	struct nlm_file		*file;
	struct nlm_owner	*owner;
	struct cds_list_head	 on_file;
	struct cds_list_head	 on_owner;
	struct cds_list_head	 marked;
	struct nlm_span		 at;
	struct nlm_span		 number;	/* in the order of the file's */
	struct nlm_span		 grant;	/* while granted: the id */
	struct nlm_node		**in;	/* one of the file's trees, that of
					 * grants, or NULL */
	struct nlm_node		 place;	/* there */
	struct nlm_queue	*queue;
	struct nlm_node		**of_queue_in;	/* one of its trees */
	struct nlm_node		 of_queue;	/* there */
	uint64_t		 since_ms;
	bool			 dropped;
	bool			 granted;
	bool			 cut;	/* it was granted, and its owner has
					 * given back a part since: it is
					 * neither told nor granted */
	bool			 kept;	/* it was cut, and waits again; the rest
					 * of the grant is the owner's */
	/* While granted or cut: the parts of the span that the owner held also
	 * without the grant, in order and apart. */
	struct nlm_part		*before;
	unsigned		 nbefore;

	/* The server's: how to tell the client. */
	/* While granted, unless it is being called back or has its answer: in
	 * the tree of call-backs that are due, or behind others of its host. */
	struct nlm_node		**due_in;
	struct nlm_node		 due;
	struct nlm_span		 due_at;	/* next_ms, as a byte */
	struct cds_list_head	 behind;
	enum nlm_wait_answer	 answer;
	uint64_t		 id;	/* while granted; the cookie of a
					 * call-back is that + its number */
	uint64_t		 next_ms;	/* when to call back again */
	unsigned		 tries;	/* call-backs that are over */
	unsigned		 first;	/* number of the first one that can have
					 * come */
	bool			 told;	/* that one is over */
	bool			 calling;	/* it is being called back */
	bool			 async;	/* by GRANTED_MSG */
	int			 proto;
	uint32_t		 vers;
	uint64_t		 off, len;	/* as the client gave them */
	struct sockaddr_storage	 addr, local;
	uint32_t		 state;	/* of the monitor, in the LOCK */
	uint32_t		 fh_len;
	uint8_t			 fh[NLM_FH_MAX];
};

struct nlm_share {
	struct nlm_file		*file;
	struct nlm_owner	*owner;
	struct cds_list_head	 on_file;
	struct cds_list_head	 on_owner;
	uint64_t		 since_ms;
	uint32_t		 state;	/* of the host's monitor, by an earlier
					 * LOCK; 0: not known */
	uint32_t		 mode;	/* denied to other owners */
	uint32_t		 access;
	bool			 dropped;
};

/* The most of each kind, in all, of one client and of one file.  Hosts of IPv6
 * choose their addresses, so all hosts of one network (/64) have three quarters
 * of all. */
struct nlm_limits {
	unsigned hosts, client_hosts;
	unsigned ranges, client_ranges;
	unsigned waits, client_waits;
	unsigned shares, client_shares;
	unsigned file_ranges, file_waits;
};

#define NLM_BUCKETS	1024u

/*
 * When locks of a host, or of all hosts of an address, were ended.  Earlier
 * calls can be under way, also of hosts that are not in the table.  Another
 * host can take the place: then earlier calls of both have to be repeated.  Any
 * host can send notices, with any name, so the table has many places.
 */
struct nlm_ended {
	uint64_t	 ns;
	uint32_t	 tag;		/* of the name and address */
	uint32_t	 state;		/* its monitor's since then; 0: locks of
					 * all states ended */
};

#define NLM_ENDS	65536u

struct nlm_table {
	struct nlm_limits	 limits;
	struct nlm_ended	 ended[NLM_ENDS];
	unsigned		 hosts, owners, files, ranges, waits, shares;
	unsigned		 monitored;	/* of the hosts */
	uint64_t		 search;	/* for deadlocks, so far */
	struct cds_list_head	 host[NLM_BUCKETS];
	struct cds_list_head	 client[NLM_BUCKETS];	/* groups */
	struct cds_list_head	 network[NLM_BUCKETS];
	struct cds_list_head	 owner[NLM_BUCKETS];
	struct cds_list_head	 file[NLM_BUCKETS];
};

/* An owner, as a call names it; of a host, the first four. */
struct nlm_who {
	struct in6_addr addr;		/* the caller's: xprt_addr_host() */
	struct in6_addr local;		/* that it called */
	const uint8_t *name;
	uint32_t       name_len;
	const uint8_t *oh;
	uint32_t       oh_len;
	uint32_t       svid;
};

void nlm_table_init(struct nlm_table *t, const struct nlm_limits *limits);

/* The host, or NULL. */
struct nlm_host *nlm_host_find(const struct nlm_table *t,
			       const struct nlm_who *who);
/* The host after @h, or with NULL the first, that has the address of @who and
 * its name, unless that is NULL, whichever address of ours it calls.  NULL: no
 * other one. */
struct nlm_host *nlm_host_next(const struct nlm_table *t,
			       const struct nlm_who *who,
			       const struct nlm_host *h);
/* As nlm_host_find(); made if need be; NULL: no memory, or too many. */
struct nlm_host *nlm_host_get(struct nlm_table *t, const struct nlm_who *who);
/* @h has so many more of @kind, or fewer. */
void nlm_count(struct nlm_host *h, enum nlm_kind kind, int n);
/* True if the client at @addr can have @n more of @kind: by the limit that all
 * names of its address share, by that of its network, and by that of all. */
bool nlm_has_room(const struct nlm_table *t, const struct in6_addr *addr,
		  enum nlm_kind kind, unsigned n);
/* Counts the things of @kind of the client at @addr: of all names of its
 * address, or of its network of IPv6. */
unsigned nlm_client_count(const struct nlm_table *t,
			  const struct in6_addr *addr, enum nlm_kind kind);
/* The ranges of the address @addr, all its names together. */
unsigned nlm_ranges_of(const struct nlm_table *t, const struct in6_addr *addr);
/* The backend was asked: notes whether it keeps something for @h. */
void nlm_hold_note(struct nlm_hold *h);
/* The status monitor watches it from now on. */
void nlm_host_monitored(struct nlm_table *t, struct nlm_host *h);
/* The locks of the host @who, which can be absent from the table, end now,
 * unless they were made in @state, which is not 0.  Without a name, the locks
 * of all hosts with the address. */
void nlm_table_ended(struct nlm_table *t, const struct nlm_who *who,
		     uint32_t state);
/* True if a call of @h in @state that came at @ns came before locks were ended,
 * which can be locks of @h. */
bool nlm_table_is_outlived(const struct nlm_table *t, const struct nlm_host *h,
			   uint64_t ns, uint32_t state);
/* The host has no owners. */
void nlm_host_free(struct nlm_table *t, struct nlm_host *h);

struct nlm_owner *nlm_owner_find(const struct nlm_table *t,
				 const struct nlm_who *who);
/* Made if need be, of a new host if need be.  NULL: no memory, or too many. */
struct nlm_owner *nlm_owner_get(struct nlm_table *t, const struct nlm_who *who);
/* Frees the owner unless it holds or waits for something, or is pinned. */
void nlm_owner_tidy(struct nlm_table *t, struct nlm_owner *o);

struct nlm_file *nlm_file_find(const struct nlm_table *t,
			       const struct vfs_fs *fs,
			       const struct vfs_handle *h);
/* A new one, not counted; NULL: no memory. */
struct nlm_file *nlm_file_add(struct nlm_table *t, struct vfs_fs *fs,
			      const struct vfs_handle *h);
bool nlm_file_idle(struct nlm_file *f);
/* The file is idle. */
void nlm_file_free(struct nlm_table *t, struct nlm_file *f);

struct nlm_hold *nlm_hold_find(const struct nlm_file *f,
			       const struct nlm_owner *o);
/* Made if need be; NULL: no memory. */
struct nlm_hold *nlm_hold_get(struct nlm_file *f, struct nlm_owner *o);
/* Frees the hold, which has no ranges. */
void nlm_hold_free(struct nlm_hold *h);

/* The first range of another owner that is in the way of @at for @o; NULL: for
 * anybody. */
const struct nlm_range *nlm_conflict(const struct nlm_file *f,
				     const struct nlm_owner *o,
				     const struct nlm_span *at);
/* True if @o holds a byte of @at, as that or as more. */
bool nlm_hold_has_any(const struct nlm_file *f, const struct nlm_owner *o,
		      const struct nlm_span *at);
/* True if @o would wait, directly or through others, for itself. */
bool nlm_deadlock(struct nlm_table *t, const struct nlm_file *f,
		  struct nlm_owner *o, const struct nlm_span *at);

/*
 * Memory for the next change of a hold, taken before the backend is asked, so
 * that the change itself can't fail.  @limit: unless that makes too many
 * ranges.
 */
struct nlm_spare {
	struct nlm_range *range[2];
};

bool nlm_spare_get(const struct nlm_table *t, const struct nlm_host *h,
		   bool limit, struct nlm_spare *s);
void nlm_spare_put(struct nlm_spare *s);
/* True if @f can have so many more ranges. */
bool nlm_file_has_room(const struct nlm_table *t, const struct nlm_file *f);
/* False: to unlock @at makes two ranges of one, and the client, its file or all
 * together have twice their limit.  Below that, to unlock is never refused. */
bool nlm_may_clear(const struct nlm_table *t, const struct nlm_hold *h,
		   const struct nlm_span *at);
/* Locks and unlocks @at for the hold's owner, whose LOCK was in @state. */
void nlm_range_set(struct nlm_table *t, struct nlm_hold *h,
		   const struct nlm_span *at, uint32_t state,
		   struct nlm_spare *s);
/* As @p was before a LOCK that is undone: with that origin. */
void nlm_range_restore(struct nlm_table *t, struct nlm_hold *h,
		       const struct nlm_part *p, struct nlm_spare *s);
void nlm_range_clear(struct nlm_table *t, struct nlm_hold *h,
		     const struct nlm_span *at, struct nlm_spare *s);
/* The host has restarted in @state, which is one of @r's: forgets the other
 * one.  May free @r, and join its bytes to the range before it. */
void nlm_range_keep(struct nlm_table *t, struct nlm_hold *h,
		    struct nlm_range *r, uint32_t state);

/* A new one, the last, asleep.  NULL: no memory, or too many. */
struct nlm_wait *nlm_wait_add(struct nlm_table *t, struct nlm_file *f,
			      struct nlm_owner *o, const struct nlm_span *at);
void nlm_wait_free(struct nlm_table *t, struct nlm_wait *w);
/* Copies the parts of w->at that @h's owner holds to w->before.  False: no
 * memory. */
bool nlm_wait_note(struct nlm_wait *w, const struct nlm_hold *h);
/* Cuts w->before to the bytes that @h's owner still holds.  False: no
 * memory. */
bool nlm_wait_trim(struct nlm_wait *w, const struct nlm_hold *h);
/* True if its owner holds a byte of w->at. */
bool nlm_wait_has_left(const struct nlm_wait *w);
/* Adds the part of @at in w->at to w->before, as of a LOCK in @state.  False:
 * no memory. */
bool nlm_wait_keep(struct nlm_wait *w, const struct nlm_span *at,
		   uint32_t state);
/* The host has restarted in @state: forgets the parts of w->before that end
 * with the restart. */
void nlm_wait_restarted(struct nlm_wait *w, uint32_t state);
/* Forgets w->before. */
void nlm_wait_forget(struct nlm_wait *w);

/* queue.c: the waiters of an owner. */
/* @w, which has a file, an owner and bytes, is in its queue, made if need be.
 * False: no memory. */
bool nlm_queue_join(struct nlm_wait *w);
/* @w was granted, was cut, or waits again. */
void nlm_queue_move(struct nlm_wait *w);
/* The queue goes with the last of its waiters. */
void nlm_queue_leave(struct nlm_wait *w);
/* The waiter of @o for exactly @at, granted or not; or NULL. */
struct nlm_wait *nlm_wait_find(const struct nlm_file *f,
			       const struct nlm_owner *o,
			       const struct nlm_span *at);
/* The waiter of @o after @prev, or with NULL the first, that wants a byte of
 * @at and has no grant; or NULL. */
struct nlm_wait *nlm_asleep_next(const struct nlm_file *f,
				 const struct nlm_owner *o,
				 const struct nlm_span *at,
				 const struct nlm_wait *prev);
/* The same of waiters with a grant that their client has not answered, or has
 * given back in part since. */
struct nlm_wait *nlm_grant_next(const struct nlm_file *f,
				const struct nlm_owner *o,
				const struct nlm_span *at,
				const struct nlm_wait *prev);

/* ready.c: which waiters are tried, and which holds and waiters end. */
/* Puts @w into a tree of its file or, while granted, of grants, or with NULL
 * into none. */
void nlm_wait_put(struct nlm_wait *w, struct nlm_node **to);
/* The bytes @at are free, or can be shared: waiters that slept for some of them
 * are ready. */
void nlm_freed(struct nlm_file *f, const struct nlm_span *at);
/* The owner of @grant can have others of its bytes granted: waiters of that
 * owner that slept for some are ready. */
void nlm_freed_of(const struct nlm_wait *grant);
/* Waiters that the backend refused are ready. */
void nlm_foreign_ready(struct nlm_file *f);
/* A call-back of @w is due at w->next_ms: it is in the tree @due until
 * nlm_due_end(). */
void nlm_due_put(struct nlm_wait *w, struct nlm_node **due);
/* The call-back of @w is no longer due; one of its host that was behind it
 * is. */
void nlm_due_end(struct nlm_wait *w);
/* The call-back of @w, which was due, waits for other call-backs to its
 * host. */
void nlm_due_behind(struct nlm_wait *w);
/* One of the host's that was behind, if any, is due again. */
void nlm_due_next(struct nlm_host *h, struct nlm_node **due);
/* The first one whose call-back is due at @ms, or before; or NULL. */
struct nlm_wait *nlm_due_first(struct nlm_node *due, uint64_t ms);
/* The granted waiter with @id in the tree @grants, or NULL. */
struct nlm_wait *nlm_grant_find(struct nlm_node *grants, uint64_t id);
/* The first waiter to be tried, or NULL. */
struct nlm_wait *nlm_next_ready(const struct nlm_file *f);
/* The next turn of the file looks at it. */
void nlm_hold_mark(struct nlm_hold *h);
void nlm_wait_mark(struct nlm_wait *w);

/* The share of another owner that denies this one, or NULL. */
struct nlm_share *nlm_share_conflict(const struct nlm_file *f,
				     const struct nlm_owner *o, uint32_t mode,
				     uint32_t access);
struct nlm_share *nlm_share_find(const struct nlm_file *f,
				 const struct nlm_owner *o);
struct nlm_share *nlm_share_add(struct nlm_table *t, struct nlm_file *f,
				struct nlm_owner *o);
void nlm_share_free(struct nlm_table *t, struct nlm_share *s);
