/* SPDX-License-Identifier: BSD-2-Clause */
/* fsid - an export's identity as given by fsid=.  Pure. */
#include "exports/export_priv.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

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

/* As C writes it: hexadecimal behind 0x, octal behind 0. */
static bool parse_c_number(const char *s, uint32_t *out)
{
	char *end;
	unsigned long v;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	v = strtoul(s, &end, 0);
	*out = (uint32_t)v;
	return !*end && errno == 0 && v <= UINT32_MAX;
}

/* The id of a hash has its highest bit set, as few numbers have. */
bool fsid_parse(const char *s, struct fsid_option *fsid)
{
	uint8_t uuid[16] = { 0 };
	uint8_t key[crypto_shorthash_KEYBYTES] = { 0 };
	uint64_t hash;

	if (strcmp(s, "root") == 0)
		s = "0";
	if (parse_c_number(s, &fsid->id)) {
		fsid->fsid = fsid->id;
	} else if (parse_uuid(s, uuid)) {
		memcpy(fsid->uuid, uuid, sizeof(uuid));
		crypto_shorthash((uint8_t *)&hash, uuid, sizeof(uuid), key);
		fsid->fsid = hash;
		fsid->id = (uint32_t)hash | 0x80000000;
	} else {
		return false;
	}
	fsid->given = true;
	return true;
}

void fsid_take(struct export *e, const struct fsid_option *fsid)
{
	e->has_fsid = true;
	e->id = fsid->id;
	e->fsid = fsid->fsid;
	memcpy(e->uuid, fsid->uuid, sizeof(e->uuid));
}

void fsid_prefer(struct export *e, uint32_t id)
{
	for (unsigned i = 0; i < e->nclients; i++)
		if (e->clients[i].opts.has_id && e->clients[i].opts.id == id)
			fsid_take(e, &e->clients[i].fsid);
}
