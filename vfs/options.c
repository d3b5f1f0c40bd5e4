/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of exports(5) that this server has.  Pure.
 *
 * An unknown option is an error, even if serving without it seems harmless: its
 * writer counts on it.
 */
#include "vfs/export_priv.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "lib/util.h"

#define OPTION_MAX	256

/* nobody, nogroup */
#define ANON_ID	65534

const struct export_opts export_opts_default = {
	.root_squash = true,
	.secure = true,
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

/* 32 hexadecimal digits, whatever stands between them. */
static bool parse_uuid(const char *s, uint8_t uuid[16])
{
	unsigned n = 0;

	for (; *s; s++) {
		char hex[2] = { *s, '\0' };

		if (ispunct((unsigned char)*s))
			continue;
		if (!isxdigit((unsigned char)*s) || n == 32)
			return false;
		uuid[n / 2] = (uint8_t)(uuid[n / 2] << 4 |
					strtoul(hex, NULL, 16));
		n++;
	}
	return n == 32;
}

/* Ids of numbers and ids of hashes differ in their highest bit. */
static bool parse_fsid(const char *s, struct fsid_option *fsid)
{
	uint8_t uuid[16] = { 0 };
	uint8_t key[crypto_shorthash_KEYBYTES] = { 0 };
	uint64_t hash;

	if (strcmp(s, "root") == 0)
		s = "0";
	if (export_parse_number(s, INT32_MAX, &fsid->id)) {
		fsid->fsid = fsid->id;
	} else if (parse_uuid(s, uuid)) {
		crypto_shorthash((uint8_t *)&hash, uuid, sizeof(uuid), key);
		fsid->fsid = hash;
		fsid->id = (uint32_t)hash | 0x80000000;
	} else {
		return false;
	}
	fsid->given = true;
	return true;
}

/* The options of one client, and of its export. */
struct target {
	struct export_opts *opts;
	struct fsid_option *fsid;
};

struct option_row {
	const char *name;	/* ends in '=' where a value follows */
	int (*set)(const struct option_row *row, const char *value,
		   struct target *t, char **err);
	size_t	    offset;	/* of a member of export_opts */
	bool	    on;		/* set_flag() */
	const char *only;	/* accept_value() */
};

static int set_flag(const struct option_row *row, const char *value,
		    struct target *t, char **err)
{
	*(bool *)((char *)t->opts + row->offset) = row->on;
	return 0;
}

static int set_id(const struct option_row *row, const char *value,
		  struct target *t, char **err)
{
	bool is_user = row->offset == offsetof(struct export_opts, anonuid);

	if (export_parse_number(value, UINT32_MAX - 1, (uint32_t *)(void *)
				((char *)t->opts + row->offset)))
		return 0;
	return export_fail(err, "%s%s: expected a %s id, 0 to 4294967294",
			   row->name, value, is_user ? "user" : "group");
}

static int set_fsid(const struct option_row *row, const char *value,
		    struct target *t, char **err)
{
	if (parse_fsid(value, t->fsid))
		return 0;
	return export_fail(err, "fsid=%s: expected a number, 0 to 2147483647, "
			   "or a UUID", value);
}

/* The server does so anyway. */
static int accept_flag(const struct option_row *row, const char *value,
		  struct target *t, char **err)
{
	return 0;
}

static int accept_value(const struct option_row *row, const char *value,
			struct target *t, char **err)
{
	if (strcmp(value, row->only) == 0)
		return 0;
	return export_fail(err, "%s%s is not supported; supported is %s%s",
			   row->name, value, row->name, row->only);
}

#define FLAG(name, field, on) \
	{ name, set_flag, offsetof(struct export_opts, field), on, NULL }
#define ID(name, field) \
	{ name, set_id, offsetof(struct export_opts, field), false, NULL }

static const struct option_row rows[] = {
	FLAG("ro", rw, false),
	FLAG("rw", rw, true),
	FLAG("root_squash", root_squash, true),
	FLAG("no_root_squash", root_squash, false),
	FLAG("all_squash", all_squash, true),
	FLAG("no_all_squash", all_squash, false),
	ID("anonuid=", anonuid),
	ID("anongid=", anongid),
	FLAG("secure", secure, true),
	FLAG("insecure", secure, false),
	{ "sec=", accept_value, 0, false, "sys" },
	{ "fsid=", set_fsid, 0, false, NULL },
	{ "sync", accept_flag, 0, false, NULL },
	{ "no_wdelay", accept_flag, 0, false, NULL },
	{ "no_subtree_check", accept_flag, 0, false, NULL },
};

/* Returns -EINVAL; *@err lists all options behind @opt's mistake. */
static int no_such_option(const char *opt, char **err)
{
	char all[512] = "";
	size_t len = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(rows) && len < sizeof(all); i++)
		len += (size_t)snprintf(all + len, sizeof(all) - len,
					"%s%s%s", i ? ", " : "", rows[i].name,
					rows[i].only ? rows[i].only : "");
	if (!*opt)
		return export_fail(err, "an option is empty; supported are %s",
				   all);
	return export_fail(err, "option '%s' is not supported; supported are "
			   "%s", opt, all);
}

static int parse_one(const char *opt, struct target *t, char **err)
{
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].name);

		if (strncmp(opt, rows[i].name, len) == 0 &&
		    (rows[i].name[len - 1] == '=' || !opt[len]))
			return rows[i].set(&rows[i], opt + len, t, err);
	}
	return no_such_option(opt, err);
}

int export_opts_parse(const char *text, struct export_opts *opts,
		      struct fsid_option *fsid, char **err)
{
	struct target t = { opts, fsid };
	char opt[OPTION_MAX];
	const char *end;
	int ret;

	if (!*text)
		return 0;
	for (;; text = end + 1) {
		end = strchrnul(text, ',');
		if ((size_t)(end - text) >= sizeof(opt))
			return export_fail(err, "an option is longer than "
					   "%d bytes", OPTION_MAX - 1);
		memcpy(opt, text, (size_t)(end - text));
		opt[end - text] = '\0';
		ret = parse_one(opt, &t, err);
		if (ret < 0 || !*end)
			return ret;
	}
}
