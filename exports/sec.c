/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sec - the flavors of a rule, and the rights of each: sec= of exports(5).
 *
 * Some options can differ between the flavors of one rule: ro, root_squash,
 * all_squash, secure and their opposites.  Options after a sec= belong to its
 * flavors; a flavor starts with the options that precede its first sec=.
 *
 * A call with Kerberos names a user but no groups: these always come from the
 * name service, as with `manage_gids`.
 *
 * A caller of another flavor is refused (RFC 2623 section 2.4), with three
 * exceptions.  AUTH_NONE claims nothing, so it is served where AUTH_SYS is, as
 * the anonymous user.  A rule that names `none` serves all flavors so.  And
 * calls that a client needs to mount are answered with any flavor (section
 * 2.3.2).
 */
#include "exports/export_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/fail.h"

/* The bits of export_sec.rights. */
enum { RW = 1, ROOT_SQUASH = 2, ALL_SQUASH = 4, SECURE = 8 };

/* The words of sec=; the first of a flavor is its name. */
static const struct {
	const char *word;
	enum rpc_auth_flavor flavor;
} words[] = {
	{ "sys", RPC_AUTH_SYS }, { "unix", RPC_AUTH_SYS },
	{ "none", RPC_AUTH_NONE }, { "null", RPC_AUTH_NONE },
	{ "krb5", RPC_AUTH_KRB5 }, { "krb5i", RPC_AUTH_KRB5I },
	{ "krb5p", RPC_AUTH_KRB5P },
};

const char *export_flavor_name(enum rpc_auth_flavor flavor)
{
	for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].flavor == flavor)
			return words[i].word;
	return NULL;
}

static uint8_t rights_of(const struct export_opts *o)
{
	return (uint8_t)((o->rw ? RW : 0) | (o->root_squash ? ROOT_SQUASH : 0) |
			 (o->all_squash ? ALL_SQUASH : 0) |
			 (o->secure ? SECURE : 0));
}

static void set_rights(struct export_opts *o, uint8_t rights)
{
	o->rw = rights & RW;
	o->root_squash = rights & ROOT_SQUASH;
	o->all_squash = rights & ALL_SQUASH;
	o->secure = rights & SECURE;
}

/* The place of @flavor in @s, or -1. */
static int sec_place(const struct export_sec *s, enum rpc_auth_flavor flavor)
{
	for (int i = 0; i < s->n; i++)
		if (s->flavor[i] == flavor)
			return i;
	return -1;
}

static bool is_kerberos(enum rpc_auth_flavor flavor)
{
	return flavor == RPC_AUTH_KRB5 || flavor == RPC_AUTH_KRB5I ||
	       flavor == RPC_AUTH_KRB5P;
}

/* ---- reading */

static int unknown_word(const char *value, char **err)
{
	char text[OPTION_MAX] = "";
	size_t len = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s, ",
					words[i].word);
	return fail_with(err, "sec=%s: expected %sor several with ':' between "
			 "them", value, text);
}

/* Names a flavor. */
static void add_flavor(struct option_target *t, enum rpc_auth_flavor flavor)
{
	struct export_sec *s = &t->opts.sec;
	int i = sec_place(s, flavor);

	if (i < 0) {
		i = s->n++;
		s->flavor[i] = flavor;
		s->rights[i] = rights_of(&t->opts);
	}
	t->sec_active |= 1u << i;
}

int sec_read(const char *value, struct option_target *t, char **err)
{
	t->sec_active = 0;
	t->opts.sec.given = true;
	for (const char *list = value;; list++) {
		size_t len = strcspn(list, ":");
		unsigned i = 0;

		while (i < ARRAY_SIZE(words) &&
		       (strlen(words[i].word) != len ||
			memcmp(words[i].word, list, len) != 0))
			i++;
		if (i == ARRAY_SIZE(words))
			return unknown_word(value, err);
		add_flavor(t, words[i].flavor);
		list += len;
		if (!*list)
			return 0;
	}
}

bool sec_set(struct option_target *t, void (*set)(struct export_opts *opts,
						  const void *arg),
	     const void *arg)
{
	struct export_sec *s = &t->opts.sec;
	bool differs = false;

	for (int i = 0; i < s->n; i++) {
		struct export_opts o = t->opts;

		set_rights(&o, s->rights[i]);
		set(&o, arg);
		if (t->sec_active & 1u << i)
			s->rights[i] = rights_of(&o);
		differs |= s->rights[i] != rights_of(&o);
	}
	return t->sec_active || !differs;
}

void sec_finish(struct export_opts *opts, bool has_krb5)
{
	struct export_sec *s = &opts->sec;
	int main;

	if (s->n == 0) {
		s->n = 1;
		s->flavor[0] = RPC_AUTH_SYS;
		s->rights[0] = rights_of(opts);
	}
	main = sec_place(s, RPC_AUTH_SYS);
	s->main = s->flavor[MAX(main, 0)];
	set_rights(opts, s->rights[MAX(main, 0)]);
	s->served = s->writes = false;
	for (int i = 0; i < s->n; i++) {
		if (!has_krb5 && is_kerberos(s->flavor[i]))
			continue;
		s->served = true;
		s->writes |= (s->rights[i] & RW) != 0;
	}
}

/* ---- telling */

/* Names all flavors, or those without Kerberos. */
static void list_names(const struct export_sec *s, bool all,
		       char text[SEC_TEXT_MAX])
{
	*text = '\0';
	for (int i = 0; i < s->n; i++) {
		if (!all && is_kerberos(s->flavor[i]))
			continue;
		if (*text)
			strcat(text, ":");
		strcat(text, export_flavor_name(s->flavor[i]));
	}
}

void sec_text(const struct export_sec *s, char text[SEC_TEXT_MAX])
{
	list_names(s, true, text);
}

bool sec_lacks_krb5(const struct export_sec *s, char served[SEC_TEXT_MAX])
{
	list_names(s, false, served);
	for (int i = 0; i < s->n; i++)
		if (is_kerberos(s->flavor[i]))
			return true;
	return false;
}

bool sec_is_same(const struct export_sec *a, const struct export_sec *b)
{
	bool same = a->n == b->n;

	for (int i = 0; same && i < a->n; i++)
		same = a->flavor[i] == b->flavor[i] &&
		       a->rights[i] == b->rights[i];
	return same;
}

bool sec_is_mixed(const struct export_sec *s)
{
	for (int i = 1; i < s->n; i++)
		if (s->rights[i] != s->rights[0])
			return true;
	return false;
}

const char *sec_rule(const struct export_opts *opts, unsigned i,
		     struct export_opts *out)
{
	if (i >= opts->sec.n)
		return NULL;
	*out = *opts;
	set_rights(out, opts->sec.rights[i]);
	return export_flavor_name(opts->sec.flavor[i]);
}

unsigned export_flavors(const struct export_opts *opts,
			uint32_t out[EXPORT_FLAVORS])
{
	for (int i = 0; i < opts->sec.n; i++)
		out[i] = opts->sec.flavor[i];
	return opts->sec.n;
}

/* ---- deciding */

/* A port proves nothing that Kerberos doesn't. */
bool sec_needs_port(const struct export_opts *opts,
		    const struct export_peer *peer)
{
	return opts->secure && !peer->any_port && !is_kerberos(peer->flavor);
}

int sec_admit(struct export_opts *opts, const struct export_peer *peer)
{
	const struct export_sec *s = &opts->sec;
	int i = sec_place(s, peer->flavor);

	if (!s->served)
		return peer->need == EXPORT_CALLS ? -EKEYREJECTED : -EACCES;
	if (i < 0 && peer->flavor == RPC_AUTH_NONE)
		i = sec_place(s, RPC_AUTH_SYS);
	if (i >= 0) {
		set_rights(opts, s->rights[i]);
		opts->manage_gids |= is_kerberos(peer->flavor);
		return 0;
	}
	i = sec_place(s, RPC_AUTH_NONE);
	if (i >= 0 && peer->flavor != RPC_AUTH_UNKNOWN) {
		set_rights(opts, s->rights[i] | ALL_SQUASH);
		return 0;
	}
	switch (peer->need) {
	case EXPORT_LOCKS:
		opts->manage_gids = true;
		return 0;
	case EXPORT_MOUNTS:
		opts->is_weak = true;
		opts->all_squash = true;
		opts->rw = false;
		return 0;
	default:
		return -EKEYREJECTED;
	}
}
