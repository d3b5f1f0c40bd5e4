/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of exports(5), all of them, in one table.  Pure.
 *
 * An option that the server does not support is refused if serving without it
 * would grant more than its writer meant to, and else accepted with a warning.
 * An unknown option is an error: its writer counts on it.
 */
#include "exports/export_priv.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alike.h"
#include "lib/fail.h"
#include "lib/util.h"

/* nobody, nogroup */
#define ANON_ID	65534

const struct export_opts export_opts_default = {
	.root_squash = true,
	.secure = true,
	.auth_nlm = true,
	.anonuid = ANON_ID,
	.anongid = ANON_ID,
};

bool export_parse_number(const char *s, uint32_t max, uint32_t *out)
{
	uint64_t v = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (!isdigit((unsigned char)*s))
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
		if (v > max)
			return false;
	}
	*out = (uint32_t)v;
	return true;
}

struct option_row {
	const char *name;	/* ends in '=' where a value follows */
	enum option_kind kind;
	/* Reads the value.  NULL: the option sets nothing. */
	int (*set)(const struct option_row *row, const char *value,
		   struct option_target *t, char **err);
	size_t	    offset;	/* of a member of export_opts */
	bool	    on;		/* set_flag() */
	const char *why;	/* of OPTION_WARNED and OPTION_REFUSED */
};

static void warn(struct option_target *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void warn(struct option_target *t, const char *fmt, ...)
{
	char text[OPTION_MAX + 256];
	va_list ap;

	if (!t->warn)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	t->warn(t->arg, text);
}

static void put_flag(struct export_opts *opts, const struct option_row *row)
{
	*(bool *)((char *)opts + row->offset) = row->on;
}

static bool get_flag(const struct export_opts *opts,
		     const struct option_row *row)
{
	return *(const bool *)((const char *)opts + row->offset);
}

static uint32_t get_id(const struct export_opts *opts,
		       const struct option_row *row)
{
	return *(const uint32_t *)(const void *)
		((const char *)opts + row->offset);
}

/* Options of one flavor, behind a sec= that names it. */
static bool is_of_flavor(const struct option_row *row)
{
	return row->offset == offsetof(struct export_opts, rw) ||
	       row->offset == offsetof(struct export_opts, root_squash) ||
	       row->offset == offsetof(struct export_opts, all_squash) ||
	       row->offset == offsetof(struct export_opts, secure);
}

static void set_row(struct export_opts *opts, const void *arg)
{
	put_flag(opts, arg);
}

static int set_flag(const struct option_row *row, const char *value,
		    struct option_target *t, char **err)
{
	char list[SEC_TEXT_MAX];

	put_flag(&t->opts, row);
	if (!is_of_flavor(row) || sec_set(t, set_row, row))
		return 0;
	sec_text(&t->opts.sec, list);
	warn(t, "%s: no effect, because sec= stands in the defaults of the "
	     "line; write sec=%s,%s", row->name, list, row->name);
	return 0;
}

static int set_id(const struct option_row *row, const char *value,
		  struct option_target *t, char **err)
{
	bool is_user = row->offset == offsetof(struct export_opts, anonuid);
	uint32_t *id = (uint32_t *)(void *)((char *)&t->opts + row->offset);
	uint32_t below;

	if (export_parse_number(value, UINT32_MAX - 1, id))
		return 0;
	/* As exports(5) reads it; -1 is no id. */
	if (*value == '-' && export_parse_number(value + 1, 1u << 31, &below) &&
	    below > 1) {
		*id = -below;
		return 0;
	}
	return fail_with(err, "%s%s: expected a %s id, 0 to 4294967294",
			   row->name, value, is_user ? "user" : "group");
}

static bool is_number(const struct fsid_option *fsid)
{
	return fsid->fsid == fsid->id;
}

/* Files for older kernels give both a UUID and a number: the UUID counts. */
static int set_fsid(const struct option_row *row, const char *value,
		    struct option_target *t, char **err)
{
	struct fsid_option fsid = { 0 };

	if (!fsid_parse(value, &fsid))
		return fail_with(err, "fsid=%s: expected a number, 0 to "
				   "4294967295, or a UUID", value);
	if (!t->fsid.given || is_number(&t->fsid) || !is_number(&fsid))
		t->fsid = fsid;
	return 0;
}

/* Reads a number of calls, or of bytes, a second.  JSON can represent as
 * many. */
static int parse_rate(const struct option_row *row, const char *value,
		      uint64_t *v, char **err)
{
	bool is_ops = strstr(row->name, "ops");
	bool has_unit = value[strspn(value, "0123456789")];

	if (backend_parse_size(value, v) && *v <= INT64_MAX &&
	    !(is_ops && has_unit))
		return 0;
	if (is_ops)
		return fail_with(err, "%s%s: expected a number of calls a "
				   "second; 0 is no limit", row->name, value);
	return fail_with(err, "%s%s: expected a number of bytes a second, "
			   "such as 500k or 20m; 0 is no limit", row->name,
			   value);
}

static uint64_t *rate_at(void *p, const struct option_row *row)
{
	return (uint64_t *)(void *)((char *)p + row->offset);
}

static int set_client_rate(const struct option_row *row, const char *value,
			   struct option_target *t, char **err)
{
	return parse_rate(row, value, rate_at(&t->opts, row), err);
}

static int set_rate(const struct option_row *row, const char *value,
		    struct option_target *t, char **err)
{
	return parse_rate(row, value, rate_at(&t->max, row), err);
}

/* Without a path it is the export's own. */
static int set_mountpoint(const struct option_row *row, const char *value,
			  struct option_target *t, char **err)
{
	if (*value && *value != '/')
		return fail_with(err, "%s%s: expected an absolute path",
				   row->name, value);
	t->mountpoint.given = true;
	strcpy(t->mountpoint.path, value);	/* OPTION_MAX at most */
	return 0;
}

/* The words of xprtsec=. */
static const char *const protections[] = {
	[RPC_CLEAR] = "none", [RPC_TLS] = "tls", [RPC_MTLS] = "mtls",
};

/* The least of "a:b:c", or -EINVAL. */
static int read_least(const struct option_row *row, const char *value,
		      char **err)
{
	unsigned least = RPC_MTLS;

	for (const char *list = value;; list++) {
		size_t len = strcspn(list, ":");
		unsigned i = 0;

		while (i < ARRAY_SIZE(protections) &&
		       (strlen(protections[i]) != len ||
			memcmp(protections[i], list, len) != 0))
			i++;
		if (i == ARRAY_SIZE(protections))
			return fail_with(err, "%s%s: expected none, tls, mtls, "
					 "or several with ':' between them",
					 row->name, value);
		least = MIN(least, i);
		list += len;
		if (!*list)
			return (int)least;
	}
}

static int set_sec(const struct option_row *row, const char *value,
		   struct option_target *t, char **err)
{
	return sec_read(value, t, err);
}

/* Of several lists the least counts: all of them are served. */
static int set_xprtsec(const struct option_row *row, const char *value,
		       struct option_target *t, char **err)
{
	int least = read_least(row, value, err);

	if (least < 0)
		return least;
	if (!t->opts.least_given || t->opts.least > (unsigned)least)
		t->opts.least = (unsigned)least;
	t->opts.least_given = true;
	if (t->protection == RPC_CLEAR && strcmp(value, "none") != 0)
		warn(t, "xprtsec=%s: there is no TLS here: only callers "
		     "without it are served", value);
	return 0;
}

/* The number of each file system is made from its path, or given. */
static int accept_reexport(const struct option_row *row, const char *value,
			   struct option_target *t, char **err)
{
	if (strcmp(value, "none") == 0 || strcmp(value, "auto-fsidnum") == 0 ||
	    strcmp(value, "predefined-fsidnum") == 0)
		return 0;
	return fail_with(err, "reexport=%s: expected none, auto-fsidnum or "
			   "predefined-fsidnum", value);
}

#define FLAG(name, field, on) \
	{ name, OPTION_HONOURED, set_flag, \
	  offsetof(struct export_opts, field), on, NULL }
#define ID(name, field) \
	{ name, OPTION_HONOURED, set_id, \
	  offsetof(struct export_opts, field), false, NULL }
#define CLIENT_RATE(name, field) \
	{ name, OPTION_HONOURED, set_client_rate, \
	  offsetof(struct export_opts, client_max.field), false, NULL }
#define RATE(name, field) \
	{ name, OPTION_HONOURED, set_rate, \
	  offsetof(struct rates, field), false, NULL }
#define VALUE(name, set)	{ name, OPTION_HONOURED, set, 0, false, NULL }
#define ACCEPTED(name)		{ name, OPTION_ACCEPTED, NULL, 0, false, NULL }
#define WARNED(name, why)	{ name, OPTION_WARNED, NULL, 0, false, why }
#define REFUSED(name, why)	{ name, OPTION_REFUSED, NULL, 0, false, why }

static const char no_nfs4[] =
	"NFSv4 clients only are told; this is NFSv3, whose clients see the "
	"directory itself";
static const char no_squash_list[] =
	"such users would not be squashed; the kernel's server does not do "
	"it either";

/* The manual has the same table: gannet-exports(5). */
static const struct option_row rows[] = {
	FLAG("ro", rw, false),
	FLAG("rw", rw, true),
	FLAG("root_squash", root_squash, true),
	FLAG("no_root_squash", root_squash, false),
	FLAG("all_squash", all_squash, true),
	FLAG("no_all_squash", all_squash, false),
	FLAG("manage_gids", manage_gids, true),
	FLAG("no_manage_gids", manage_gids, false),
	ID("anonuid=", anonuid),
	ID("anongid=", anongid),
	FLAG("secure", secure, true),
	FLAG("insecure", secure, false),
	FLAG("secure_locks", auth_nlm, true),
	FLAG("auth_nlm", auth_nlm, true),
	FLAG("insecure_locks", auth_nlm, false),
	FLAG("no_auth_nlm", auth_nlm, false),
	VALUE("sec=", set_sec),
	VALUE("xprtsec=", set_xprtsec),
	VALUE("fsid=", set_fsid),

	ACCEPTED("sync"),
	WARNED("async", "not done: what was answered as stable is on stable "
	       "storage all the same"),
	ACCEPTED("wdelay"),
	ACCEPTED("no_wdelay"),
	ACCEPTED("no_subtree_check"),
	WARNED("subtree_check", "not done: signed filehandles keep clients "
	       "inside the export, but a file that was moved out of it stays "
	       "in reach of those that had its handle"),
	ACCEPTED("sign_fh"),
	{ "reexport=", OPTION_ACCEPTED, accept_reexport, 0, false, NULL },

	FLAG("hide", nohide, false),
	FLAG("nohide", nohide, true),
	FLAG("crossmnt", crossmnt, true),
	FLAG("nocrossmnt", crossmnt, false),
	VALUE("mountpoint", set_mountpoint),
	VALUE("mountpoint=", set_mountpoint),
	VALUE("mp", set_mountpoint),
	VALUE("mp=", set_mountpoint),

	FLAG("acl", no_acl, false),
	FLAG("no_acl", no_acl, true),

	FLAG("nordirplus", no_readdirplus, true),
	CLIENT_RATE("client_max_ops=", ops),
	CLIENT_RATE("client_max_bytes=", bytes),
	RATE("max_ops=", ops),
	RATE("max_bytes=", bytes),
	ACCEPTED("pnfs"),
	ACCEPTED("no_pnfs"),
	ACCEPTED("security_label"),
	WARNED("refer=", no_nfs4),
	WARNED("replicas=", no_nfs4),
	REFUSED("squash_uids=", no_squash_list),
	REFUSED("squash_gids=", no_squash_list),
};

const char *export_option_at(unsigned i, enum option_kind *kind)
{
	if (i >= ARRAY_SIZE(rows))
		return NULL;
	*kind = rows[i].kind;
	return rows[i].name;
}

bool export_opts_same(const struct export_opts *a, const struct export_opts *b)
{
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct option_row *row = &rows[i];

		if (row->set == set_flag &&
		    get_flag(a, row) != get_flag(b, row))
			return false;
		if (row->set == set_id && get_id(a, row) != get_id(b, row))
			return false;
	}
	return a->least == b->least && sec_is_same(&a->sec, &b->sec) &&
	       rates_same(&a->client_max, &b->client_max);
}

/* True if a row before @i does the same. */
static bool is_synonym(unsigned i)
{
	for (unsigned j = 0; j < i; j++)
		if (rows[j].set == set_flag && rows[j].on == rows[i].on &&
		    rows[j].offset == rows[i].offset)
			return true;
	return false;
}

/* The kinds that are a limit. */
static void print_rates(const struct rates *r, const char *before, FILE *out)
{
	char text[24];

	if (r->ops)
		fprintf(out, "%smax_ops=%" PRIu64, before, r->ops);
	if (r->bytes)
		fprintf(out, "%smax_bytes=%s", before,
			backend_size_text(text, r->bytes));
}

static bool has_flag(const struct export_opts *opts, unsigned i)
{
	const struct option_row *row = &rows[i];

	return row->set == set_flag && get_flag(opts, row) == row->on &&
	       !is_synonym(i);
}

/* "sec=krb5,rw,secure,sec=sys,ro,secure" */
static void print_mixed(const struct export_opts *opts, FILE *out)
{
	struct export_opts its;
	const char *name;

	for (unsigned f = 0; (name = sec_rule(opts, f, &its)); f++) {
		fprintf(out, "%ssec=%s", f ? "," : "", name);
		for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
			if (is_of_flavor(&rows[i]) && has_flag(&its, i))
				fprintf(out, ",%s", rows[i].name);
	}
}

void export_opts_print(const struct export_opts *opts, FILE *out)
{
	bool mixed = sec_is_mixed(&opts->sec);
	char list[SEC_TEXT_MAX];

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct option_row *row = &rows[i];

		if (has_flag(opts, i) && !(mixed && is_of_flavor(row)))
			fprintf(out, "%s,", row->name);
		else if (row->set == set_id)
			fprintf(out, "%s%u,", row->name, get_id(opts, row));
	}
	sec_text(&opts->sec, list);
	if (mixed)
		print_mixed(opts, out);
	else
		fprintf(out, "sec=%s", list);
	if (opts->least != RPC_CLEAR)
		fprintf(out, ",xprtsec=%s", protections[opts->least]);
	print_rates(&opts->client_max, ",client_", out);
}

void export_max_print(const struct rates *max, FILE *out)
{
	print_rates(max, ",", out);
}

static int apply(const struct option_row *row, const char *opt,
		 struct option_target *t, char **err)
{
	int ret = 0;

	if (row->kind == OPTION_REFUSED)
		return fail_with(err, "%s is refused: %s", opt, row->why);
	if (row->set)
		ret = row->set(row, opt + strlen(row->name), t, err);
	if (row->kind == OPTION_WARNED)
		warn(t, "%s: %s", opt, row->why);
	return ret;
}

/* The option that @opt is most like, or NULL. */
static const char *option_like(const char *opt)
{
	const char *found = NULL;
	unsigned far = UINT_MAX;

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		if (alike(opt, rows[i].name, &far))
			found = rows[i].name;
	return found;
}

static int unknown_option(const char *opt, char **err)
{
	const char *like = option_like(opt);

	if (like)
		return fail_with(err, "option '%s' is not known; did you mean "
				   "'%s'?", opt, like);
	return fail_with(err, "option '%s' is not known; gannet-exports(5) "
			   "has a list", opt);
}

static int parse_one(const char *opt, struct option_target *t, char **err)
{
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].name);

		if (strncmp(opt, rows[i].name, len) == 0 &&
		    (rows[i].name[len - 1] == '=' || !opt[len]))
			return apply(&rows[i], opt, t, err);
	}
	return *opt ? unknown_option(opt, err) :
		      fail_with(err, "an option is empty");
}

int export_opts_parse(const char *text, struct option_target *t, char **err)
{
	char opt[OPTION_MAX], *wrong;
	const char *end;
	int ret = 0;

	t->sec_active = 0;
	/* A comma at the end is taken. */
	for (; *text; text = end + (*end == ',')) {
		wrong = NULL;
		end = strchrnul(text, ',');
		if ((size_t)(end - text) >= sizeof(opt)) {
			fail_with(&wrong, "an option is longer than %d "
				    "bytes", OPTION_MAX - 1);
			ret = fail_too(err, wrong);
			continue;
		}
		memcpy(opt, text, (size_t)(end - text));
		opt[end - text] = '\0';
		/* More of a list behind squash_uids=, which is refused. */
		if (ret < 0 && isdigit((unsigned char)opt[0]))
			continue;
		if (parse_one(opt, t, &wrong) < 0)
			ret = fail_too(err, wrong);
	}
	return ret;
}

/* Warns that callers can't use the flavors of the rule. */
static void warn_of_krb5(struct option_target *t)
{
	char list[SEC_TEXT_MAX], served[SEC_TEXT_MAX];

	if (t->has_krb5 || !sec_lacks_krb5(&t->opts.sec, served))
		return;
	sec_text(&t->opts.sec, list);
	warn(t, "sec=%s: there is no Kerberos, which needs gannet-krb5 and a "
	     "keytab: %s%s%s", list, *served ? "only callers with " : "no "
	     "caller is served", served, *served ? " are served" : "");
}

int export_opts_finish(struct option_target *t, char **err)
{
	if (t->opts.least > t->protection && t->protection == RPC_CLEAR)
		return fail_with(err, "xprtsec= without none is refused: "
				   "there is no TLS here, and calls would go "
				   "unprotected; add none if that is meant");
	if (t->opts.least > t->protection)
		return fail_with(err, "xprtsec=mtls is refused: without the "
				   "setting tls-ca no client can prove which "
				   "host it is");
	sec_finish(&t->opts, t->has_krb5);
	warn_of_krb5(t);
	return 0;
}
