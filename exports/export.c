/* SPDX-License-Identifier: BSD-2-Clause */
/* The export table: snapshots published and read. */
#include "exports/children.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "lib/clock.h"
#include "lib/fail.h"
#include "lib/rcu.h"
#include "lib/stats.h"
#include "lib/util.h"

/* A reload waits so long for all file systems together. */
#define PATIENCE_S	5
/* A mount that failed without a waiting thread is tried again after it. */
#define RETRY_S		5

/* A file system below an export without a call is closed after this time. */
#define IDLE_S		30

STAT(export_denied, "requests refused: not a client of the export");
STAT(export_bad_port, "requests refused: from an unprivileged port");
STAT(export_unprotected, "requests refused: without the export's TLS");
STAT(export_bad_flavor, "requests refused: not with this flavor of "
			"authentication");

int export_table_create(const struct export_config *config,
			struct export_table **out)
{
	struct export_table *t;
	int err;

	if (sodium_init() < 0)
		return -EIO;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->config = *config;
	t->backend = config->backend;
	t->resolver = resolver_system;
	t->patience_s = PATIENCE_S;
	t->retry_s = RETRY_S;
	t->idle_s = IDLE_S;
	err = export_key_load(config->state_dir, t->key);
	if (err < 0)
		goto fail;
	if (config->state_dir) {
		err = -ENOMEM;
		t->state_dir = strdup(config->state_dir);
		if (!t->state_dir)
			goto fail;
	}
	err = peers_create(&t->peers);
	if (err < 0)
		goto fail_dir;
	err = groups_create(&t->groups);
	if (err < 0)
		goto fail_peers;
	err = users_create(&t->users);
	if (err < 0)
		goto fail_groups;
	err = children_create(t, &t->children);
	if (err < 0)
		goto fail_users;
	pthread_mutex_init(&t->publish, NULL);
	trees_init(t);
	*out = t;
	return 0;

fail_users:
	memo_destroy(t->users);
fail_groups:
	groups_destroy(t->groups);
fail_peers:
	memo_destroy(t->peers);
fail_dir:
	free(t->state_dir);
fail:
	free(t);
	return err;
}

void export_table_protection(struct export_table *t, enum rpc_protection most)
{
	t->config.protection = most;
}

void export_table_manage_gids(struct export_table *t, bool yes)
{
	t->config.manage_gids = yes;
}

void export_table_lenient(struct export_table *t, bool yes)
{
	t->lenient = yes;
}

int export_set_create(struct export_table *t, struct export_set **out)
{
	int err = export_set_alloc(out);

	if (err == 0)
		(*out)->lenient = t->lenient;
	return err;
}

void export_table_destroy(struct export_table *t)
{
	struct export_set *set = atomic_load(&t->current);

	atomic_store(&t->current, NULL);
	rcu_wait();
	children_destroy(t->children);
	export_set_put(set);
	trees_fini(t);
	memo_destroy(t->users);
	groups_destroy(t->groups);
	memo_destroy(t->peers);
	pthread_mutex_destroy(&t->publish);
	sodium_memzero(t->key, sizeof(t->key));
	free(t->state_dir);
	free(t);
}

/* True if both ask for the same names, in the same order: then the cached
 * verdicts about peers stay valid. */
static bool same_names(const struct export_set *a, const struct export_set *b)
{
	if (!a || a->nnames != b->nnames)
		return false;
	for (unsigned i = 0; i < a->nnames; i++)
		if (strcmp(a->names[i]->text, b->names[i]->text) != 0)
			return false;
	return true;
}

/* Adds the failure of @e; the others go on, to find further mistakes. */
static void note_failure(struct export *e, int *ret, char **err, int failure,
			 char **why)
{
	if (failure == 0)
		return;
	if (*ret == 0)
		*ret = failure;
	if (*why)
		fail_too(err, *why);
	*why = NULL;
	if (e->tree)
		export_put(e->tree);
	e->tree = NULL;
}

/*
 * Finds or mounts the tree of each export.  All of them begin before any is
 * waited for, so one that hangs takes no time from the others.
 */
static int bind_exports(struct export_table *t, struct export_set *set,
			char **err)
{
	uint64_t until = clock_ns() + t->patience_s * 1ull * NS_PER_S;
	char *why = NULL;
	int ret = 0;

	for (unsigned i = 0; i < set->nexports; i++)
		if (!set->exports[i]->mountpoint && !set->exports[i]->id_taken)
			note_failure(set->exports[i], &ret, err,
				     tree_bind(t, set->exports[i], &why), &why);
	for (unsigned i = 0; i < set->nexports; i++)
		if (set->exports[i]->tree)
			note_failure(set->exports[i], &ret, err,
				     tree_settle(t, set, set->exports[i],
						 until, &why), &why);
	return ret < 0 ? ret : children_take_exports(t->children, set, err);
}

static bool still_has(const struct export_set *set, const struct export_tree *e)
{
	const struct export *export = export_set_find_id(set, e->id);

	return export && export->tree == e;
}

/* Notes which exports of @old (can be NULL) leave the table. */
static void note_departures(const struct export_set *old,
			    const struct export_set *set)
{
	for (unsigned i = 0; old && i < old->nexports; i++) {
		struct export_tree *e = old->exports[i]->tree;

		if (e && !still_has(set, e))
			atomic_fetch_add(&e->departures, 1);
	}
}

int export_table_publish(struct export_table *t, struct export_set *set,
			 char **err)
{
	struct export_set *old;
	bool renamed;
	int ret;

	*err = NULL;
	mutex_lock(&t->publish);
	/* An entry can name the path of a child: close unused ones first. */
	children_close(t->children, set, false);
	ret = bind_exports(t, set, err);
	if (ret < 0) {
		mutex_unlock(&t->publish);
		export_set_put(set);
		return ret;
	}
	old = atomic_load_explicit(&t->current, memory_order_relaxed);
	renamed = !same_names(old, set);
	set->serial = renamed ? ++t->serial : old->serial;
	for (unsigned i = 0; i < REFUSALS; i++)
		atomic_store_explicit(&t->refusals[i], 0,
				      memory_order_relaxed);
	note_departures(old, set);
	/* Pairs with the load of each reader. */
	atomic_store_explicit(&t->current, set, memory_order_release);
	rcu_wait();
	children_close(t->children, set, true);
	mutex_unlock(&t->publish);
	memo_expire(t->users);
	/* The verdicts are for the old names, which are not used again. */
	if (renamed)
		memo_forget(t->peers);
	export_set_put(old);
	return 0;
}

/* Returns the first client, by precedence, that @a matches.  In an RCU
 * section. */
static int match(struct export_table *t, const struct export_set *set,
		 const struct export *e, const struct addr *a,
		 const struct client **out)
{
	const uint64_t *names = NULL;

	for (unsigned i = 0; i < e->nclients; i++) {
		const struct client *c = &e->clients[i];
		bool is;

		if (c->kind == CLIENT_ANYONE) {
			is = true;
		} else if (c->by_address) {
			is = addr_in_prefix(a, &c->addr, c->bits);
		} else if (a->family == 0) {
			is = false;
		} else {
			if (!names)
				names = peers_find(t->peers, a, set->serial);
			if (!names)
				return -EAGAIN;
			is = names[c->name_index / 64] >>
			     c->name_index % 64 & 1;
		}
		if (is) {
			*out = c;
			return 0;
		}
	}
	return -EACCES;
}

static void refuse_flavor(struct export_table *t, const struct export *e,
			  const struct addr *a, unsigned port, bool served)
{
	stat_inc(export_bad_flavor);
	refusal_log(t, e, a, port, served ?
		    "its sec= does not have the flavor of the call; mount it "
		    "there with sec= and one that it has" :
		    "its sec= allows only Kerberos, which is not there: it "
		    "needs gannet-krb5 and a keytab");
}

static void refuse_clear(struct export_table *t, const struct export *e,
			 const struct addr *a, unsigned port,
			 enum rpc_protection least)
{
	stat_inc(export_unprotected);
	refusal_log(t, e, a, port, least == RPC_MTLS ?
		    "it demands TLS with a certificate of the client's "
		    "(xprtsec=mtls)" : "it demands TLS (xprtsec=tls)");
}

/* Finds the rule of @e for @peer, or refuses.  In an RCU section. */
static int admit_peer(struct export_table *t, const struct export_set *set,
		      const struct export *e, const struct export_peer *peer,
		      struct export_opts *opts)
{
	const struct client *c;
	struct addr a;
	unsigned port;
	int err;

	addr_from_sockaddr(peer->addr, &a, &port);
	err = match(t, set, e, &a, &c);
	if (err == -EACCES) {
		stat_inc(export_denied);
		refusal_log(t, e, &a, port, "no client of the export matches");
	}
	if (err < 0)
		return err;
	*opts = c->opts;
	if (unlikely(opts->least > peer->protection)) {
		refuse_clear(t, e, &a, port, opts->least);
		return -EKEYREJECTED;
	}
	/* In a rule of AUTH_SYS these are the rights of AUTH_SYS. */
	if (unlikely(peer->flavor != RPC_AUTH_SYS ||
		     opts->sec.main != RPC_AUTH_SYS)) {
		err = sec_admit(opts, peer);
		if (err < 0) {
			refuse_flavor(t, e, &a, port, opts->sec.served);
			return err;
		}
	}
	if (port >= IPPORT_RESERVED && a.family != 0 &&
	    sec_needs_port(opts, peer)) {
		stat_inc(export_bad_port);
		refusal_log(t, e, &a, port, "the export is 'secure' and the "
			    "port is above 1023; add 'insecure' for programs "
			    "of ordinary users, and for RDMA clients of iWARP "
			    "in user space, such as siw");
		return -EACCES;
	}
	return 0;
}

/* Sets the fsid that clients with the rule @opts see of files of @e, which is
 * mounted. */
static void settle_fsid(const struct export_tree *e, struct export_opts *opts)
{
	/* fsid= of a rule is not that of file systems below the export. */
	if (likely(!opts->has_id) || e->id != e->top)
		opts->fsid = e->fs->fsid;
}

int export_admit(struct export_table *t, const struct export_set *set,
		 const struct export *e, const struct export_peer *peer,
		 struct export_opts *opts, struct export_tree **out)
{
	int err = admit_peer(t, set, e, peer, opts);
	struct export_tree *tree;
	struct addr a;
	unsigned port;

	if (err < 0)
		return err;
	if (e->id_taken) {
		addr_from_sockaddr(peer->addr, &a, &port);
		refusal_log(t, e, &a, port, "another export has its file "
			    "system id; give one of them another with fsid=");
		return -EACCES;
	}
	tree = tree_of_export(t, e);
	if (!tree)
		return -EAGAIN;
	if (!tree->mounted)
		return -ETIMEDOUT;
	settle_fsid(tree, opts);
	*out = tree;
	return 0;
}

/* A file system below an export, under the rules of that export; or the tree of
 * an entry with a mountpoint. */
static int borrow_child(struct export_table *t, const struct export_set *set,
			uint32_t id, const struct export_peer *peer,
			struct export_tree **out, struct export_opts *opts)
{
	struct child *child = children_find(t->children, id);
	const struct export *top = child ? export_set_find_id(set, child->top) :
				  NULL;
	int err;

	if (!top) {
		refusal_log_gone(t, id, peer->addr);
		return -ESTALE;
	}
	err = admit_peer(t, set, top, peer, opts);
	if (err < 0)
		return err;
	if (!opts->crossmnt && !child->is_part)
		return -ESTALE;
	/* Pairs with the release in child_adopt(). */
	*out = atomic_load_explicit(&child->tree, memory_order_acquire);
	if (!*out)
		return -EAGAIN;
	settle_fsid(*out, opts);
	child_use(child);
	return 0;
}

int export_borrow(struct export_table *t, uint32_t id,
		  const struct export_peer *peer, struct export_tree **out,
		  struct export_opts *opts)
{
	const struct export_set *set = t->current;
	const struct export *e = export_set_find_id(set, id);
	int err;

	if (likely(e && e->tree)) {
		*out = e->tree;
		err = admit_peer(t, set, e, peer, opts);
		if (err < 0)
			return err;
		if (!(*out)->mounted)
			return -ETIMEDOUT;
		settle_fsid(*out, opts);
		return 0;
	}
	/* @id can belong to one of its rules. */
	if (set)
		return borrow_child(t, set, e ? e->id : id, peer, out, opts);
	refusal_log_gone(t, id, peer->addr);
	return -ESTALE;
}

int export_open_child(struct export_table *t, struct child *child,
		      const struct export_peer *peer)
{
	int err = children_open(t->children, child);
	struct export_set *set = export_current(t);
	const struct export *e = export_set_find_id(set, child->id);
	struct addr a;
	unsigned port;

	if (err == -ENODEV && e) {
		addr_from_sockaddr(peer->addr, &a, &port);
		refusal_log(t, e, &a, port, "it has 'mountpoint', and nothing "
			    "is mounted there");
	}
	export_set_put(set);
	return err;
}

/* @id can belong to one of an export's rules. */
static struct child *child_of_id(struct export_table *t, uint32_t id)
{
	const struct export *e;

	rcu_enter();
	e = export_set_find_id(t->current, id);
	id = e ? e->id : id;
	rcu_exit();
	return children_find(t->children, id);
}

int export_reach(struct export_table *t, uint32_t id,
		 const struct export_peer *peer, struct export_tree **out,
		 struct export_opts *opts)
{
	struct child *child = child_of_id(t, id);
	int err;

	export_resolve(t, peer->addr);
	err = export_find(t, id, peer, out, opts);
	if (err != -EAGAIN || !child)
		return err;
	err = export_open_child(t, child, peer);
	if (err == 0)
		err = export_find(t, id, peer, out, opts);
	if (err == -ENODEV)
		return -ESTALE;
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

int export_above(struct export_table *t, const struct export_tree *e,
		 uint32_t *id, struct vfs_handle *dir)
{
	struct child *child = children_find(t->children, e->id);

	return e->id != e->top && child ?
	       children_above(t->children, child, id, dir) : -ENOENT;
}

int export_find(struct export_table *t, uint32_t id,
		const struct export_peer *peer, struct export_tree **out,
		struct export_opts *opts)
{
	int err;

	rcu_enter();
	err = export_borrow(t, id, peer, out, opts);
	if (err == 0)
		ref_get(&(*out)->ref);
	rcu_exit();
	return err;
}

int export_rule_for(struct export_table *t, const struct export_tree *e,
		    const struct export_peer *peer, struct export_opts *opts)
{
	struct export_tree *same;
	int err;

	rcu_enter();
	err = export_borrow(t, e->id, peer, &same, opts);
	rcu_exit();
	return err;
}

void export_resolve(struct export_table *t, const struct sockaddr *peer)
{
	struct export_set *set = export_current(t);
	struct addr a;
	unsigned port;

	if (!set)
		return;
	addr_from_sockaddr(peer, &a, &port);
	if (a.family != 0 && set->nnames > 0)
		peers_resolve(t->peers, &t->resolver, set, &a);
	export_set_put(set);
}

/* True if @e is a file system below an export, and is still open. */
static bool child_is_open(struct export_table *t, const struct export_tree *e)
{
	struct child *child = children_find(t->children, e->id);

	return child && atomic_load_explicit(&child->tree,
					     memory_order_relaxed) == e;
}

bool export_is_current(struct export_table *t, const struct export_tree *e)
{
	const struct export *export;
	bool is;

	rcu_enter();
	export = export_set_find_id(t->current, e->top);
	is = export && (export->tree == e || child_is_open(t, e));
	rcu_exit();
	return is;
}

void export_walk(struct export_table *t,
		 void (*fn)(void *arg, const char *path, const char *client,
			    bool everyone), void *arg)
{
	struct export_set *set = export_current(t);

	for (unsigned i = 0; set && i < set->nexports; i++) {
		const struct export *e = set->exports[i];
		/* Everyone is the last by precedence. */
		bool everyone = e->nclients > 1 &&
			e->clients[e->nclients - 1].kind == CLIENT_ANYONE;

		for (unsigned j = 0; j < e->nclients; j++)
			fn(arg, e->path, e->clients[j].text, everyone);
	}
	export_set_put(set);
}

void export_each(struct export_table *t,
		 void (*fn)(void *arg, struct export_tree *e), void *arg)
{
	struct export_set *set = export_current(t);

	for (unsigned i = 0; set && i < set->nexports; i++)
		if (set->exports[i]->tree)
			fn(arg, set->exports[i]->tree);
	export_set_put(set);
}

bool export_show(struct export_table *t, FILE *out)
{
	struct export_set *set = export_current(t);
	bool mounted = !set || export_set_show(t, set, out);

	export_set_put(set);
	return mounted;
}

void export_check_names(struct export_table *t, bool wait)
{
	struct export_set *set = export_current(t);

	if (set && set->nnames > 0)
		names_check(set, &t->resolver, wait);
	export_set_put(set);
}
