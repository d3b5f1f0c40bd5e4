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
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "lib/util.h"

#define SUPPORTED "ro, rw, root_squash, no_root_squash, all_squash, " \
	"no_all_squash, anonuid=, anongid=, secure, insecure, sec=sys, " \
	"fsid=, sync, no_wdelay, no_subtree_check"

#define OPTION_MAX	256

/* nobody, nogroup */
#define ANON_ID	65534

const struct export_opts export_opts_default = {
	.root_squash = true,
	.secure = true,
	.anonuid = ANON_ID,
	.anongid = ANON_ID,
};

/* Takes a field of export_opts to a value. */
struct flag {
	const char *name;
	int	    offset;	/* -1: it is how things are anyway */
	bool	    value;
};

#define FIELD(name)	offsetof(struct export_opts, name)

static const struct flag flags[] = {
	{ "ro",			FIELD(rw),		false },
	{ "rw",			FIELD(rw),		true },
	{ "root_squash",	FIELD(root_squash),	true },
	{ "no_root_squash",	FIELD(root_squash),	false },
	{ "all_squash",		FIELD(all_squash),	true },
	{ "no_all_squash",	FIELD(all_squash),	false },
	{ "secure",		FIELD(secure),		true },
	{ "insecure",		FIELD(secure),		false },
	{ "sec=sys",		-1,			false },
	{ "sync",		-1,			false },
	{ "no_wdelay",		-1,			false },
	{ "no_subtree_check",	-1,			false },
};

static const char *value_of(const char *opt, const char *name)
{
	size_t len = strlen(name);

	return strncmp(opt, name, len) == 0 ? opt + len : NULL;
}

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

static int parse_id(const char *opt, const char *what, const char *value,
		    uint32_t *id, char **err)
{
	if (export_parse_number(value, UINT32_MAX - 1, id))
		return 0;
	return export_fail(err, "%s: expected a %s id, 0 to 4294967294", opt,
			   what);
}

static int parse_one(const char *opt, struct export_opts *opts,
		     struct fsid_option *fsid, char **err)
{
	const char *value;

	for (unsigned i = 0; i < ARRAY_SIZE(flags); i++) {
		if (strcmp(opt, flags[i].name) != 0)
			continue;
		if (flags[i].offset >= 0)
			*(bool *)((char *)opts + flags[i].offset) =
				flags[i].value;
		return 0;
	}
	if ((value = value_of(opt, "anonuid=")))
		return parse_id(opt, "user", value, &opts->anonuid, err);
	if ((value = value_of(opt, "anongid=")))
		return parse_id(opt, "group", value, &opts->anongid, err);
	if ((value = value_of(opt, "fsid=")))
		return parse_fsid(value, fsid) ? 0 :
		       export_fail(err, "fsid=%s: expected a number, 0 to "
				   "2147483647, or a UUID", value);
	if ((value = value_of(opt, "sec=")))
		return export_fail(err, "sec=%s is not supported; supported "
				   "is sec=sys", value);
	if (!*opt)
		return export_fail(err, "an option is empty; supported are "
				   SUPPORTED);
	return export_fail(err, "option '%s' is not supported; supported are "
			   SUPPORTED, opt);
}

int export_opts_parse(const char *text, struct export_opts *opts,
		      struct fsid_option *fsid, char **err)
{
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
		ret = parse_one(opt, opts, fsid, err);
		if (ret < 0 || !*end)
			return ret;
	}
}
