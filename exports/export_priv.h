/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the export table. */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include <urcu.h>

#include "exports/export.h"
#include "lib/memo.h"
#include "lib/thread.h"

/* MNTPATHLEN, RFC 1813 section 5.1.1. */
#define EXPORT_PATH_MAX	1024
#define EXPORT_KEY_LEN	16

/* An address without its port; an IPv4-mapped one is an IPv4 one. */
struct addr {
	int	family;			/* AF_INET, AF_INET6; 0: another */
	uint8_t	bytes[16];		/* network order, zero padded */
};

/* fsid=. */
struct fsid_option {
	bool	 given;
	uint32_t id;		/* a number as given, or made from: */
	uint8_t	 uuid[16];
	uint64_t fsid;
};

/* The kinds of client names, in order of precedence. */
enum client_kind {
	CLIENT_HOST, CLIENT_NETWORK, CLIENT_WILDCARD, CLIENT_NETGROUP,
	CLIENT_ANYONE,
};

struct client {
	enum client_kind   kind;
	char		  *text;	/* as written */
	bool		   by_address;
	struct addr	   addr;	/* by_address */
	unsigned	   bits;	/* by_address: of addr that count */
	unsigned	   name_index;	/* else: its bit in a peer's verdicts */
	char		  *where;	/* "FILE:LINE" */
	struct fsid_option fsid;	/* opts.has_id: where that is from */
	struct export_opts opts;
};

/* One exported path of a snapshot. */
struct export {
	char			*path;
	char			*prefix;	/* as written: "mem,size=1g:" */
	const struct vfs_ops	*backend;	/* borrowed: static */
	void			*options;	/* the backend's block */
	char			*where;
	bool			 has_fsid;
	char			*fsid_where;	/* with has_fsid */
	/* Another export has one of its ids: it is not served.  ids.c. */
	bool			 id_taken;
	/* Exported only while something is mounted here; NULL: always. */
	char			*mountpoint;
	uint32_t		 id;		/* with has_fsid one of its
						 * clients' ids */
	uint64_t		 fsid;		/* with has_fsid */
	uint8_t			 uuid[16];	/* that it was made from */
	struct client		*clients;	/* by precedence */
	unsigned		 nclients;
	/* Of all clients together; one that no rule has is NO_RATE. */
	struct rates		 max;
	/* Counted, once published.  NULL with a mountpoint: children.h. */
	struct export_tree	*tree;
};

/* A warning about accepted text. */
struct note {
	char	*where;		/* "FILE:LINE" */
	char	*text;
	unsigned more;		/* lines with the same text */
};

struct id_place {
	uint32_t	 id;
	unsigned	 at;		/* the export's place in the text */
	bool		 was_taken;	/* of the export, until now */
	struct export	*export;
};

struct export_set {
	struct ref	  ref;
	bool		  lenient;	/* see export_table_lenient() */
	struct export	**exports;	/* in the order of the text */
	unsigned	  nexports;
	struct note	 *notes;
	unsigned	  nnotes;
	/* See export_set_late(); or NULL. */
	void		(*late)(void *arg, const char *text);
	void		 *late_arg;
	/* From export_set_finish() on: */
	struct id_place	 *by_id;	/* of all that are served */
	unsigned	  nids;
	const struct client **names;	/* clients that need a resolver */
	unsigned	  nnames;
	unsigned	  serial;	/* of its names */
};

/* The source of names; tests supply another.  Each function can block. */
struct resolver {
	/* The name of @a, *not* confirmed.  0 or an EAI_ code. */
	int  (*name)(const struct addr *a, char *name, size_t size);
	/* Does @name have the address @a, or any if that is NULL?  1, 0, or
	 * -1: can't tell now. */
	int  (*has_addr)(const char *name, const struct addr *a);
	/* Is @host in @group, or any if that is NULL? */
	bool (*in_netgroup)(const char *group, const char *host);
	/* The groups of a user, malloced.  1; 0: no such user; -1: can't tell
	 * now. */
	int  (*groups)(uint32_t uid, uint32_t **gids, uint32_t *n);
	/* True if group @gid exists and @uid is known not to be a member.
	 * False also if that is unknown. */
	bool (*has_left)(uint32_t uid, uint32_t gid);
	int  keep_s;		/* lifetime of the answers about peers */
	int  users_keep_s;	/* ... about users */
	int  users_stale_s;	/* ... while the service does not answer */
	int  quiet_s;		/* a pause after it did not answer ... */
	int  slow_ms;		/* ... within this time */
};

extern const struct resolver resolver_system;

struct child;
struct children;

/* A cache of the verdicts of names on peers. peer.c. */
int  peers_create(struct memo **out);
/*
 * In an RCU section: the bits of @a under the snapshot @serial, one for
 * each of set->names; NULL: not known now.
 */
const uint64_t *peers_find(struct memo *p, const struct addr *a,
			   unsigned serial);
void peers_resolve(struct memo *p, const struct resolver *r,
		   const struct export_set *set, const struct addr *a);
#define PEERS_MAX	4096

/* A cache of users' groups by the name service. users.c. */
struct groups;

int  users_create(struct memo **out);
/*
 * In an RCU section: the groups of @uid, where group 0 is @zero; NULL: it has
 * none.  0; -EAGAIN: users_ask() first; -ETIMEDOUT: they are not known now.
 * Doesn't block.
 */
int  users_find(struct memo *u, const struct resolver *r, uint32_t uid,
		uint32_t zero, struct groups **out);
/* Asks the name service, unless another thread just did; can block. */
void users_ask(struct memo *u, const struct resolver *r, uint32_t uid,
	       uint32_t zero);
/*
 * A list of groups: immutable, counted.  A thread that finds one in a table
 * under RCU can use it in that section, and can count it: the table drops its
 * reference only after a grace period.  group_list.c.
 */
struct groups {
	struct rcu_head	rcu;
	struct ref	ref;
	uint32_t	n;
	uint64_t	id;
	uint32_t	gids[];
};

/* A list of @n groups, with one reference; the caller fills in gids before any
 * other thread sees it.  NULL: no memory. */
struct groups *groups_alloc(uint32_t n);
void groups_put(struct groups *g);
/* Gives a table's reference back, after a grace period. */
void groups_retire(struct groups *g);

/* The lists that came in calls, each of which has at most 16.  groups.c. */
struct groups_table;

int  groups_create(struct groups_table **out);
void groups_destroy(struct groups_table *t);

/* A number that is no user and no group. */
#define EXPORT_NO_ID	UINT32_MAX

/* Places for refusals that were logged. */
#define REFUSALS	256

struct export_table {
	struct export_config	config;
	const struct vfs_ops   *backend;
	bool			lenient;	/* publisher's thread */
	char		       *state_dir;	/* or NULL */
	uint8_t			key[EXPORT_KEY_LEN];
	struct resolver		resolver;
	struct memo	       *peers;
	struct groups_table    *groups;
	struct memo	       *users;
	_Atomic uint64_t	refusals[REFUSALS];	/* their hashes */
	struct children	       *children;

	/* The snapshot: counted; read under RCU; NULL: none. */
	_Atomic(struct export_set *) current;

	pthread_mutex_t		publish;	/* one publisher at a time */
	unsigned		serial;

	int			patience_s;	/* of a publisher; for tests */
	int			retry_s;	/* of a late mount; for tests */
	atomic_uint		late_mounts;	/* that came */
	/* Unused file systems below exports are closed after it; for tests. */
	_Atomic uint32_t	idle_s;
	pthread_mutex_t		trees_lock;	/* guards trees, and fields of
						 * each: tree.c */
	pthread_cond_t		trees_changed;
	struct tree	       *trees;		/* all, the newest first */
};

/* client.c */
void addr_from_sockaddr(const struct sockaddr *sa, struct addr *a,
			unsigned *port);
bool addr_in_prefix(const struct addr *a, const struct addr *net,
		    unsigned bits);
bool addr_equal(const struct addr *a, const struct addr *b);
/* Parses @c->text.  Returns NULL, or the text of its mistake. */
const char *client_parse(struct client *c);
/* True if both name the same peers, in any spelling. */
bool client_same(const struct client *a, const struct client *b);
/* True if @name, a confirmed host name, matches the client's name or
 * wildcard. */
bool client_match_name(const struct client *c, const char *name);

/* options.c */
/* An option's bytes, and a NUL. */
#define OPTION_MAX	256

/* Options as they are read, of a client and of its export. */
struct option_target {
	struct export_opts opts;
	struct fsid_option fsid;
	struct {
		bool given;
		char path[OPTION_MAX];	/* "": that of the export */
	} mountpoint;
	/* Of the export; one that was not given is NO_RATE. */
	struct rates max;
	unsigned sec_active;		/* bits: flavors of the last sec= in
					 * this list, by their places */
	bool	has_krb5;		/* callers can come by Kerberos */
	enum rpc_protection protection;	/* the most that callers have */
	/* Called for an option that is accepted but ignored; or NULL. */
	void  (*warn)(void *arg, const char *text);
	void   *arg;
};

#define NO_RATE	UINT64_MAX

enum option_kind {
	OPTION_HONOURED,
	OPTION_ACCEPTED,	/* the server does so anyway */
	OPTION_WARNED,		/* not done, and safe to leave out */
	OPTION_REFUSED,		/* not done, and not safe to leave out */
};

extern const struct export_opts export_opts_default;

/* A decimal number up to @max, nothing else. */
bool export_parse_number(const char *s, uint32_t max, uint32_t *out);
/* Applies "a,b,c" to *@t.  0, or -EINVAL and *@err, which was NULL: a line for
 * each mistake. */
int export_opts_parse(const char *text, struct option_target *t, char **err);
/* Completes t->opts after the last list.  0, or -EINVAL and *@err: callers
 * would need a feature that the server lacks. */
int export_opts_finish(struct option_target *t, char **err);
bool export_opts_same(const struct export_opts *a, const struct export_opts *b);
/* Prints all of @opts but the export's own, as options. */
void export_opts_print(const struct export_opts *opts, FILE *out);
/* Prints the limits of an export, each behind a comma. */
void export_max_print(const struct rates *max, FILE *out);
/* The name of the option in row @i, or NULL behind the last. */
const char *export_option_at(unsigned i, enum option_kind *kind);


/* sec.c */
#define SEC_TEXT_MAX	64
/* Reads the value of sec=.  0, or -EINVAL and *@err. */
int  sec_read(const char *value, struct option_target *t, char **err);
/* Calls @set for the flavors of the last sec= in this list.  False: only an
 * earlier list had a sec=, so @set has no effect. */
bool sec_set(struct option_target *t, void (*set)(struct export_opts *opts,
						  const void *arg),
	     const void *arg);
/* All options were read. */
void sec_finish(struct export_opts *opts, bool has_krb5);
/* "krb5p:sys" */
void sec_text(const struct export_sec *s, char text[SEC_TEXT_MAX]);
/* True if @s has a flavor of Kerberos; @served: the others, perhaps "". */
bool sec_lacks_krb5(const struct export_sec *s, char served[SEC_TEXT_MAX]);
bool sec_is_same(const struct export_sec *a, const struct export_sec *b);
/* True if the flavors have different rights. */
bool sec_is_mixed(const struct export_sec *s);
/* The name of the flavor @i, and the options of its callers; NULL: no such
 * flavor. */
const char *sec_rule(const struct export_opts *opts, unsigned i,
		     struct export_opts *out);
/* True if @peer, whose options these are, has to use a port below 1024. */
bool sec_needs_port(const struct export_opts *opts,
		    const struct export_peer *peer);
/* Turns a rule's @opts into @peer's options.  0; -EKEYREJECTED: the rule lacks
 * its flavor; -EACCES: the same for MNT or NLM, because no flavor of the rule
 * is available. */
int  sec_admit(struct export_opts *opts, const struct export_peer *peer);

/* set.c */
int  export_set_alloc(struct export_set **out);
void export_set_put(struct export_set *set);
/* The export of @path, or NULL. */
struct export *export_set_find(const struct export_set *set,
			       const char *path);
/* The export with this id, as the export or one of its clients has it; or
 * NULL.  @set can be NULL. */
struct export *export_set_find_id(const struct export_set *set, uint32_t id);
/* Takes the strings of @e, on failure too. */
int  export_set_append(struct export_set *set, const struct export *e,
		       struct export **out);
/* Takes the strings of @c, on failure too. */
int  export_add_client(struct export *e, const struct client *c);
/* Both free it, and move those behind it. */
void export_drop_client(struct export *e, unsigned i);
void export_set_drop(struct export_set *set, unsigned i);
/* Adds a warning.  Takes @where, which can be NULL: out of memory. */
int export_set_note(struct export_set *set, char *where, const char *text);
/* The snapshot, counted, or NULL. */
struct export_set *export_current(struct export_table *t);

/* finish.c */
/* Completes the set: ids, order and indices. 0, or -EINVAL and *@err. */
int export_set_finish(struct export_set *set, char **err);

/* fsid.c */
/* Reads the value of fsid=.  False: not a valid one. */
bool fsid_parse(const char *s, struct fsid_option *fsid);
void fsid_take(struct export *e, const struct fsid_option *fsid);
/* Makes @id the export's, if one of its clients has it. */
void fsid_prefer(struct export *e, uint32_t id);

/* ids.c */
/* Indexes the ids of @set.  0; -ENOMEM; -EINVAL and *@err: exports have the
 * same one.  A lenient set gets a note instead, and goes without them. */
int ids_index(struct export_set *set, char **err);

/* names.c */
void names_check(const struct export_set *set, const struct resolver *r,
		 bool wait);

/* show.c */
/* Prints @s as a word of exports(5). */
void export_print_word(const char *s, FILE *out);
/* Prints the rule of the client @i. */
void export_print_rule(const struct export *e, unsigned i, FILE *out);
bool export_set_show(struct export_table *t, const struct export_set *set,
		     FILE *out);

/* tree.c */
void trees_init(struct export_table *t);
/* Waits until all are unmounted.  All were put. */
void trees_fini(struct export_table *t);
/*
 * Sets e->tree, counted, to the existing tree of e->path, or to a new one,
 * whose mount begins.  Waits for no file system.  0, or -errno and *@err;
 * e->tree can be set even then.
 */
int tree_bind(struct export_table *t, struct export *e, char **err);
/*
 * Waits until e->tree is mounted, and its path known to lead there still; no
 * longer than until clock_ns() is @until, and not at all where an earlier call
 * waited in vain.  0, also when neither is known yet: it logs that, and tells
 * @set if that is not NULL; or -errno and *@err.
 */
int tree_settle(struct export_table *t, const struct export_set *set,
		const struct export *e, uint64_t until, char **err);
/* Sets *@out to a new tree, counted, with the backend of @top; its mount
 * begins.  It is at @path, below @top; or, with NULL, the tree of @top, which
 * has a mountpoint. */
int tree_open_child(struct export_table *t, const struct export *top,
		    const char *path, struct export_tree **out);
/* True if @top still has the path that @e, a child, is below; or, for one with
 * a mountpoint, says the same. */
bool tree_belongs(const struct export_tree *e, const struct export *top);
/* True if its path was found to lead elsewhere.  Has its thread look again. */
bool tree_has_moved(const struct export_tree *e);
/* Why @e's last mount failed, in words, or NULL: to be freed. */
char *tree_failure(const struct export_tree *e);

/* export.c */
/*
 * Finds the rule of @e for @peer, or refuses; *@out is the tree, not counted.
 * In an RCU section.  As export_find(), but -EKEYREJECTED also sets *@opts, and
 * -EAGAIN can mean that export_open_child() has to open it.
 */
int export_admit(struct export_table *t, const struct export_set *set,
		 const struct export *e, const struct export_peer *peer,
		 struct export_opts *opts, struct export_tree **out);
/* children_open(), which can wait.  If nothing is mounted on an export's
 * mountpoint (-ENODEV), logs that once for @peer. */
int export_open_child(struct export_table *t, struct child *child,
		      const struct export_peer *peer);

/* child_table.c */
/* The tree of @e, perhaps not mounted yet; NULL: the export has a mountpoint,
 * and is not open.  In an RCU section. */
struct export_tree *tree_of_export(struct export_table *t,
				   const struct export *e);

/* refusal.c */
/* Logs once that @a was refused by a rule of @e.  @rule is a constant. */
void refusal_log(struct export_table *t, const struct export *e,
		 const struct addr *a, unsigned port, const char *rule);
/* Logs once that a filehandle's export was taken out of the file. */
void refusal_log_gone(struct export_table *t, uint32_t id,
		      const struct sockaddr *peer);

/* fh.c */
int export_key_load(const char *state_dir, uint8_t key[EXPORT_KEY_LEN]);

/* child_number.c */
/* A number derived from all of these.  The key makes it unpredictable: a client
 * can rename directories in @path. */
uint64_t export_child_number(const uint8_t key[EXPORT_KEY_LEN],
			     const char *path, const uint64_t of[3]);
