/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * export - the exported trees, their clients, and the clients' options.
 *
 * The table is an immutable snapshot: parsed aside, then published; readers
 * take a counted reference under RCU.  Trees (struct export_tree) live across
 * snapshots that name the same directory.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "lib/account.h"
#include "lib/bucket.h"
#include "lib/thread.h"
#include "vfs/backends.h"
#include "wire/fh.h"
#include "wire/header.h"

#define EXPORT_FLAVORS	5

/* The flavors of a rule, the one that clients should use first: sec=. */
struct export_sec {
	enum rpc_auth_flavor flavor[EXPORT_FLAVORS];
	uint8_t	 rights[EXPORT_FLAVORS];	/* of each: sec.c */
	uint8_t	 n;		/* 0: it was not finished yet */
	bool	 served;	/* callers can come by one of them */
	bool	 writes;	/* callers by such a flavor may write */
	/* AUTH_SYS if listed, else the first.  A rule's options have the rights
	 * of this flavor; options found for a caller have the rights of the
	 * caller's flavor. */
	enum rpc_auth_flavor main;
	bool	 given;		/* by a sec=; else it is that of AUTH_SYS */
};

/* One client's rights on one export: exports(5) options. */
struct export_opts {
	bool	 rw;
	bool	 root_squash;	/* uid 0 becomes anonuid; gid 0 anongid */
	bool	 all_squash;
	bool	 secure;	/* only ports below 1024 */
	bool	 no_acl;	/* NFSACL is NOTSUPP */
	bool	 no_readdirplus;	/* READDIRPLUS is NOTSUPP */
	bool	 manage_gids;	/* the name service has the groups */
	bool	 auth_nlm;	/* locks need permission to read the file */
	bool	 crossmnt;	/* includes mounts below */
	bool	 nohide;	/* entered from an export that it is below */
	bool	 limited;	/* by one of the rates below */
	bool	 is_weak;	/* the rule lacks the caller's flavor:
				 * EXPORT_MOUNTS */
	bool	 has_id;	/* filehandles that it gets have the id below,
				 * not the export's */
	uint32_t anonuid;
	uint32_t anongid;
	uint32_t id;
	uint64_t fsid;		/* of fattr3.  In a rule: set with has_id alone;
				 * in options that were found for a client:
				 * always set */
	enum rpc_protection least;	/* of its calls of NFS: xprtsec= */
	bool	 least_given;	/* by an xprtsec= */
	struct export_sec sec;
	struct rates client_max;	/* limits for each address */
	struct rates max;	/* limits for all clients together; the same in
				 * all rules of a path */
};

struct export_tree {
	char		*path;		/* as clients name it */
	uint32_t	 id;		/* in filehandles, unless the client's
					 * rule has another; from the path, or
					 * fsid=, the same after a restart */
	uint32_t	 top;		/* that of the export whose rules it
					 * has: another than its own if it is a
					 * file system below that one */
	struct vfs_fs	*fs;		/* of trees that are found */
	/* Set after fs, which is valid from then on. */
	atomic_bool	 mounted;
	/* clock_ms() when it was mounted, if its publisher had stopped waiting
	 * for that; else 0. */
	uint64_t	 late_ms;
	struct ref	 ref;
	/* The number of times that it left the table.  An export that is added
	 * again while still in use is the same object, but its departure ended
	 * whatever depended on it. */
	atomic_uint	 departures;
	void		*user;		/* what attach() set; or NULL */
};

struct export_table;
struct export_set;			/* one snapshot */

struct export_config {
	const struct vfs_ops *backend;	/* of entries that don't say */
	/* Of the other entries; borrowed.  NULL: the built-in list. */
	const struct backends *backends;
	const char *state_dir;		/* NULL: nothing is kept */
	bool manage_gids;		/* of entries that don't say */
	enum rpc_protection protection;	/* the most that connections have */
	bool krb5;			/* callers can come by Kerberos */
	bool check;			/* nothing is served: see vfs_config */
	/* Both functions can be NULL.  @e is new, not mounted, and no reader
	 * can find it yet: e->user can be set here.  It has the path and the
	 * id; a file system below an export has the export's id until it is
	 * open.  Publisher's thread, or a worker. */
	void (*attach)(void *arg, struct export_tree *e);
	/* The last reference to @e is gone: release them.  Called on the
	 * thread that put it, perhaps within a call of that export. */
	void (*release)(void *arg, struct export_tree *e);
	void *arg;
};

int  export_table_create(const struct export_config *config,
			 struct export_table **out);
void export_table_destroy(struct export_table *t);
/* Changes config.protection, for later parsing.  Publisher's thread. */
void export_table_protection(struct export_table *t, enum rpc_protection most);
/* Changes config.manage_gids, for later parsing.  Publisher's thread. */
void export_table_manage_gids(struct export_table *t, bool yes);

/*
 * While @yes, entries that can't be exported don't stop the others, as at a
 * start.  export_table_publish() then retries failed mounts until they succeed,
 * and logs that.  A new set gets a note about each entry with the file system
 * id of another one; such an entry is not served.  Publisher's thread.
 */
void export_table_lenient(struct export_table *t, bool yes);

/* Makes *@out an empty set.  0 or -ENOMEM.  Publisher's thread. */
int export_set_create(struct export_table *t, struct export_set **out);
/*
 * Text to snapshot: lines of exports(5), see gannet-exports(5).  @name is for
 * messages.  Adds to *@set, creating it if NULL.  After an error, a *@set that
 * is not NULL can only be freed, or used to find more mistakes by parsing other
 * texts or by export_table_publish().  Mistakes return -EINVAL, and *@err
 * (malloced) has a line for each, "NAME:LINE: MISTAKE, EXPECTED"; NULL without
 * memory.
 */
int export_set_parse(struct export_table *t, const char *name, FILE *in,
		     struct export_set **set, char **err);
/* The same for one argument: "DIR" (loopback only) or "DIR CLIENT(opts) ...".
 * Messages begin with "NAME: ". */
int export_set_add(struct export_table *t, const char *name, const char *arg,
		   struct export_set **set, char **err);
void export_set_free(struct export_set *set);
/* Makes *@out a copy of the current set.  0 or -ENOMEM.  Publisher's thread. */
int export_set_copy(struct export_table *t, struct export_set **out);
/*
 * Removes the rule of @client for @path from @set; without a @client, all rules
 * of @path.  @path is a word of exports(5).  -ENOENT and *@err: no such rule;
 * -EINVAL and *@err: a mistake.
 */
int export_set_remove(struct export_set *set, const char *path,
		      const char *client, char **err);
/* Removes from @set the rules whose path and client have a rule in @gone, but
 * not in @stays.  0, or -errno and *@err. */
int export_set_subtract(struct export_set *set, const struct export_set *gone,
			const struct export_set *stays, char **err);
/* Gives a client that @set has for @path other options, as in @text,
 * "CLIENT(OPTIONS)"; the rule comes from @name now.  As export_set_remove(). */
int export_set_change(struct export_table *t, const char *name,
		      const char *path, const char *text,
		      struct export_set *set, char **err);
/* Prints @set as an exports file that says the same, without comments. */
void export_set_print(const struct export_set *set, FILE *out);
/* Calls @fn with each warning about the text, "NAME:LINE: ...", in the order of
 * the text; lines with the same warning share one. */
void export_set_notes(const struct export_set *set,
		      void (*fn)(void *arg, const char *text), void *arg);
/* Has export_table_publish() call @fn with what it logs about an export that
 * does not answer, and is not waited for. */
void export_set_late(struct export_set *set,
		     void (*fn)(void *arg, const char *text), void *arg);
/*
 * Mounts new exports and makes @set the current one.  Takes @set.  On an error
 * (-errno, *@err as above) the old one stays.  A new export has a few seconds
 * to answer; then it is in the table without its file system, and is mounted as
 * soon as that answers.  An export that is taken out is not waited for.
 */
int export_table_publish(struct export_table *t, struct export_set *set,
			 char **err);

/* Must the flavor of a caller be one of the rule's? */
enum export_need {
	EXPORT_CALLS,		/* yes */
	/* No: it mounts (RFC 2623 section 2.3.2).  It then acts as the
	 * anonymous user, read-only, with is_weak. */
	EXPORT_MOUNTS,
	/* No: stock clients lock with AUTH_SYS whatever flavor they mounted
	 * with.  The caller's groups then come from the name service, as with
	 * Kerberos. */
	EXPORT_LOCKS,
};

/* A caller, as rules see it. */
struct export_peer {
	const struct sockaddr *addr;
	bool	    any_port;		/* `secure` is not for its transport */
	enum rpc_auth_flavor flavor;	/* how it said who it is */
	enum export_need need;
	/* Of its connection.  RPC_MTLS where stock clients call in clear
	 * whatever they mounted with: to mount, and for locks. */
	enum rpc_protection protection;
};

/* "krb5p", as exports(5) has it: a literal; NULL: it is no flavor of
 * exports(5). */
const char *export_flavor_name(enum rpc_auth_flavor flavor);
/* Sets @out to the flavors that @opts has, as MNT lists them (RFC 2623 section
 * 2.7).  Returns their number. */
unsigned export_flavors(const struct export_opts *opts,
			uint32_t out[EXPORT_FLAVORS]);
/*
 * Finds the export with this id, and @peer's options for it.  Counted: put it.
 * -ESTALE: no such export; -EACCES: not for this peer, or (with secure) not
 * from this port; -EKEYREJECTED: not with this flavor, or not without TLS;
 * -ETIMEDOUT: it is not mounted yet.  Any registered thread; never blocks:
 * netgroups and host names are resolved into a cache by export_resolve() and
 * -EAGAIN says that a worker must do that first, or export_reach().
 */
int export_find(struct export_table *t, uint32_t id,
		const struct export_peer *peer, struct export_tree **out,
		struct export_opts *opts);
/* The same, not counted: valid only in the caller's RCU section. */
int export_borrow(struct export_table *t, uint32_t id,
		  const struct export_peer *peer, struct export_tree **out,
		  struct export_opts *opts);
/*
 * export_find() on a worker: looks up the names of @peer, and opens the file
 * system below an export that has @id, waiting for it a little.  -ESTALE also:
 * it is gone.
 */
int export_reach(struct export_table *t, uint32_t id,
		 const struct export_peer *peer, struct export_tree **out,
		 struct export_opts *opts);
/*
 * The export of another file system, @at, which a lookup found in the directory
 * @dir of @from.  It needs an entry, or @crosses (crossmnt of the caller's
 * options), or at->is_part.  Counted.  Workers only: waits for it a little.
 * -EXDEV: do not enter it; -EACCES: not with this flavor; -ETIMEDOUT: come
 * again; -EREMCHG: something else was mounted there meanwhile, look up the name
 * again.
 */
int export_enter(struct export_table *t, const struct export_tree *from,
		 bool crosses, const struct vfs_child *at,
		 const struct vfs_handle *dir, const struct export_peer *peer,
		 struct export_tree **out);
/* export_enter() without waiting.  -EAGAIN: it is not open, or a name service
 * has to be asked. */
int export_enter_open(struct export_table *t, const struct export_tree *from,
		      bool crosses, const struct vfs_child *at,
		      const struct export_peer *peer, struct export_tree **out);
/* Sets @opts to the rule of @e for @peer, and returns errors, as export_find()
 * does.  The caller holds a reference to @e. */
int export_rule_for(struct export_table *t, const struct export_tree *e,
		    const struct export_peer *peer, struct export_opts *opts);
/* The directory above the root of a file system below an export: *@dir in the
 * export *@id.  -ENOENT: @e is not below one. */
int export_above(struct export_table *t, const struct export_tree *e,
		 uint32_t *id, struct vfs_handle *dir);
/*
 * The export that @path lies in (the longest match), for MNT; *@rest points at
 * the rest of @path below the export, "" for the export itself.  -ENOENT: not
 * in any export; -EAGAIN: call export_reach_path().
 */
int export_find_path(struct export_table *t, const char *path,
		     const struct export_peer *peer, struct export_tree **out,
		     struct export_opts *opts, const char **rest);
/* export_find_path() on a worker: looks up the names of @peer, and opens an
 * export with a mountpoint, for which it waits a little.  -ENODEV, logged:
 * nothing is mounted there. */
int export_reach_path(struct export_table *t, const char *path,
		      const struct export_peer *peer, struct export_tree **out,
		      struct export_opts *opts, const char **rest);
/* For the log: false if this was asked before about @peer and @path, which lies
 * in no export, or is no path, since the exports were read.  Can forget. */
bool export_refusal_is_new(struct export_table *t,
			   const struct sockaddr *peer, const char *path);
/* Looks up the names of @peer (DNS, netgroups); can block.  The table caches
 * the result for a minute. */
void export_resolve(struct export_table *t, const struct sockaddr *peer);
/*
 * Looks up the hosts and netgroups in the table, and warns about unknown ones:
 * no address matches them.  @wait: do so now, which can block for long; else in
 * a job of the crew, which can outlive the table.
 */
void export_check_names(struct export_table *t, bool wait);
/* Never blocks: after the last one a job of the crew unmounts it. */
void export_put(struct export_tree *e);

/* True if @e, which the caller counts, is still exported.  Any registered
 * thread; doesn't block. */
bool export_is_current(struct export_table *t, const struct export_tree *e);

/* For EXPORT: each path with the clients as written, one call a client.
 * @everyone: the path has several clients, and one of them is everyone. */
void export_walk(struct export_table *t,
		 void (*fn)(void *arg, const char *path, const char *client,
			    bool everyone), void *arg);
/*
 * Prints the table as an exports file that says the same: a line for each
 * client with all of its options, in the order in which clients match; before
 * the first of an export, a comment with the kind and the fsid that clients
 * see.  False: some export is not mounted yet, and its fsid not known.
 */
bool export_show(struct export_table *t, FILE *out);
/* A rule: the options of one client of a path. */
struct export_rule {
	const char *path;
	const char *client;	/* as written */
	const char *options;	/* all of them, as "rw,root_squash" */
	const struct export_opts *opts;	/* the same */
	const char *where;	/* "FILE:LINE", or the name of an argument */
	const char *kind;	/* of the path's file system: "posix", ... */
	bool	    is_away;	/* that is not mounted yet, or not at all */
	const char *why;	/* ... and why, or NULL: it does not answer */
	bool	    comes;	/* it has a mountpoint, so it can be missing */
	/* When it was last asked, its path led to another file system or
	 * directory; it is asked again now. */
	bool	    has_moved;
};

/* Calls @fn for each rule, by paths; @rule is borrowed for the call.  Any
 * registered thread. */
void export_walk_rules(struct export_table *t,
		       void (*fn)(void *arg, const struct export_rule *rule),
		       void *arg);
/* Calls @fn for each export that has no mountpoint. */
void export_each(struct export_table *t,
		 void (*fn)(void *arg, struct export_tree *e), void *arg);

/* The caller, as its credential claims it.  Borrowed. */
struct export_claim {
	bool		none;		/* AUTH_NONE: anonymous */
	uint32_t	uid;
	uint32_t	gid;
	uint32_t	ngids;
	const uint32_t *gids;
};

/*
 * Sets *@out to the user and groups that @who acts as, under @opts.  The list
 * of groups is borrowed: valid only in the caller's RCU section, unless
 * export_caller_hold() counts it.  Any registered thread; doesn't block.
 * 0; -ENOMEM; -EAGAIN: a worker has to ask the name service first, by
 * export_caller_counted(); -ETIMEDOUT: that does not answer, so which groups
 * the caller has is not known now.
 */
int  export_caller(struct export_table *t, const struct export_opts *opts,
		   const struct export_claim *who, struct vfs_cred *out);
/* Counts @cred's list, in the RCU section in which export_caller() set it. */
void export_caller_hold(const struct vfs_cred *cred);
/* As export_caller(), but counts the list, outside of an RCU section too.  With
 * @may_wait asks the name service if need be. */
int  export_caller_counted(struct export_table *t,
			   const struct export_opts *opts,
			   const struct export_claim *who, bool may_wait,
			   struct vfs_cred *out);
/* The user or group that a client's @id is under @opts; @anon: anonuid or
 * anongid. */
uint32_t export_squash(const struct export_opts *opts, uint32_t id,
		       uint32_t anon);
/* Gives back a list that is counted. */
void export_caller_put(const struct vfs_cred *cred);

/*
 * Filehandles: version, export id, the backend's handle, and a MAC over all of
 * it, keyed with a secret from the state directory, or with the key of the
 * export's tree, if it has one.
 */
/* For a client whose rule of @e is @opts, with the rule's id. */
void export_fh_make(struct export_table *t, const struct export_tree *e,
		    const struct export_opts *opts,
		    const struct vfs_handle *h, struct nfs3_fh *fh);
/* True if both ids are of one export. */
bool export_same_id(struct export_table *t, uint32_t a, uint32_t b);
/* 0; -EBADMSG: made neither by this server nor by another one of its tree; for
 * handles that need the tree's key also -ETIMEDOUT: the tree is not mounted
 * yet, and -ESTALE: it is not exported.  Any registered thread; never
 * blocks. */
int export_fh_parse(struct export_table *t, const void *fh, uint32_t len,
		    uint32_t *export_id, struct vfs_handle *h);
