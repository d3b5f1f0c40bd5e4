/* SPDX-License-Identifier: BSD-2-Clause */
/* audit_record - see audit_record.h. */
#include "daemon/watch/audit_record.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "transport/addr.h"

static const uint8_t *text_of(const struct audit_record *r, unsigned which)
{
	const uint8_t *p = r->text;

	for (unsigned i = 0; i < which; i++)
		if (r->len[i] != AUDIT_NO_TEXT)
			p += r->len[i];
	return p;
}

static void put_hex(json_t *line, const char *key, const uint8_t *p, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	char *hex = malloc(2 * len + 1);

	for (size_t i = 0; hex && i < len; i++) {
		hex[2 * i] = digits[p[i] >> 4];
		hex[2 * i + 1] = digits[p[i] & 15];
	}
	if (hex)
		json_object_set_new(line, key,
				    json_stringn_nocheck(hex, 2 * len));
	free(hex);
}

/* JSON can't hold bytes that aren't UTF-8: they go as "KEY_hex" then. */
static void put_bytes(json_t *line, const char *key, const uint8_t *p,
		      size_t len)
{
	json_t *text = json_stringn((const char *)p, len);
	char key_hex[32];

	if (text) {
		json_object_set_new(line, key, text);
		return;
	}
	snprintf(key_hex, sizeof(key_hex), "%s_hex", key);
	put_hex(line, key_hex, p, len);
}

static void put_piece(json_t *line, const char *key,
		      const struct audit_record *r, unsigned which)
{
	if (r->len[which] != AUDIT_NO_TEXT)
		put_bytes(line, key, text_of(r, which), r->len[which]);
}

/* Appends a part of a path, with a slash before it if need be. */
static size_t add_part(uint8_t *path, size_t len, const struct audit_record *r,
		       unsigned which)
{
	uint16_t n = r->len[which];

	if (n == AUDIT_NO_TEXT || n == 0)
		return len;
	if (len == 0 || path[len - 1] != '/')
		path[len++] = '/';
	memcpy(path + len, text_of(r, which), n);
	return len + n;
}

/* The names of the members about one object; its texts begin at @first. */
struct words { unsigned first; const char *path, *handle, *name; };

static void put_object(json_t *line, const struct audit_record *r,
		       const struct words *w)
{
	uint8_t path[3 * (AUDIT_TEXT_MAX + 1)];
	unsigned handle = w->first + 1, name = w->first + 2;
	size_t len = r->len[AUDIT_EXPORT];

	if (r->len[w->first] != AUDIT_NO_TEXT && len != AUDIT_NO_TEXT) {
		memcpy(path, text_of(r, AUDIT_EXPORT), len);
		len = add_part(path, len, r, w->first);
		len = add_part(path, len, r, name);
		put_bytes(line, w->path, path, len);
		return;
	}
	if (r->len[handle] != AUDIT_NO_TEXT)
		put_hex(line, w->handle, text_of(r, handle), r->len[handle]);
	put_piece(line, w->name, r, name);
}

static void put_integer(json_t *line, const char *key, bool has, uint64_t n)
{
	if (has)
		json_object_set_new(line, key, json_integer((json_int_t)n));
}

static void add_time(json_t *line, uint64_t at)
{
	time_t s = (time_t)(at / NS_PER_S);
	char text[64], day[32];
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(day, sizeof(day), "%FT%T", &tm);
	snprintf(text, sizeof(text), "%s.%09uZ", day,
		 (unsigned)(at % NS_PER_S));
	json_object_set_new(line, "time", json_string(text));
}

static void put_caller(json_t *line, const struct audit_record *r)
{
	char host[INET6_ADDRSTRLEN];

	json_object_set_new(line, "client",
			    json_string(xprt_host_text(&r->host, host)));
	if (r->via) {
		put_integer(line, "port", true, r->port);
		json_object_set_new(line, "transport", json_string(r->via));
		put_integer(line, "xid", true, r->xid);
		if (r->sec)
			json_object_set_new(line, "sec", json_string(r->sec));
	}
	put_integer(line, "uid", r->has_user, r->uid);
	put_integer(line, "gid", r->has_user, r->gid);
	put_integer(line, "as_uid", r->has_actor, r->as_uid);
	put_integer(line, "as_gid", r->has_actor, r->as_gid);
}

static char *finish_line(json_t *line)
{
	char *text = json_dumps(line, JSON_COMPACT);

	json_decref(line);
	return text;
}

static void put_ended(json_t *line, const struct lock_totals *t)
{
	put_integer(line, "hosts", true, t->hosts);
	put_integer(line, "locks", true, t->locks);
	put_integer(line, "waits", true, t->waits);
	put_integer(line, "shares", true, t->shares);
}

char *audit_line(const struct audit_record *r)
{
	static const struct words at = { AUDIT_PATH, "path", "handle", "name" };
	static const struct words to = { AUDIT_TO_PATH, "to", "to_handle",
					 "to_name" };
	json_t *line = json_object();

	add_time(line, r->at);
	put_caller(line, r);
	json_object_set_new(line, "proc", json_string(r->proc));
	if (!r->via) {
		put_piece(line, "host", r, AUDIT_NAME);
		put_ended(line, &r->ended);
		return finish_line(line);
	}
	put_piece(line, "export", r, AUDIT_EXPORT);
	put_object(line, r, &at);
	put_object(line, r, &to);
	json_object_set_new(line, "status", json_string(r->status));
	put_integer(line, "us", true, r->ns / 1000);
	return finish_line(line);
}

char *audit_dropped_line(uint64_t at, uint64_t n)
{
	json_t *line = json_object();

	add_time(line, at);
	put_integer(line, "dropped", true, n);
	return finish_line(line);
}
