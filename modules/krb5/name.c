/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * name - maps a principal to a user.
 *
 * krb5.conf(5) says which local name a principal has (auth_to_local, by default
 * that of its only component in the default realm), and the name service which
 * user has that name.  Principals of machines, which Linux clients use for
 * root, map to user 0, which exports squash unless they say no_root_squash.
 */
#include "modules/krb5/krb5.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <krb5.h>

/* A user who is created later is found after this time. */
#define UNKNOWN_SECONDS	300u

static bool in_default_realm(const char *realm)
{
	krb5_context ctx;
	char *own = NULL;
	bool same;

	if (krb5_init_context(&ctx) != 0)
		return false;
	same = krb5_get_default_realm(ctx, &own) == 0 &&
	       strcmp(own, realm) == 0;
	krb5_free_default_realm(ctx, own);
	krb5_free_context(ctx);
	return same;
}

/* "host/NAME@REALM", "nfs/...", "root/...", or "NAME$@REALM" as Active
 * Directory names machines.  The name is not quoted. */
static bool is_machine(const char *name)
{
	static const char *const services[] = { "host/", "nfs/", "root/" };
	const char *realm = strrchr(name, '@');

	if (!realm || realm == name)
		return false;
	for (unsigned i = 0; i < ARRAY_SIZE(services); i++) {
		size_t len = strlen(services[i]);

		if (strncmp(name, services[i], len) == 0 &&
		    !memchr(name + len, '/', (size_t)(realm - name) - len))
			return in_default_realm(realm + 1);
	}
	return realm[-1] == '$' && !memchr(name, '/', (size_t)(realm - name)) &&
	       in_default_realm(realm + 1);
}

/* 1; 0: no such user; -errno. */
static int find_local(const char *local, struct gss_accept *a)
{
	size_t size = 1024;
	struct passwd pw, *found = NULL;
	char *buf = NULL;
	int err;

	do {
		char *grown = realloc(buf, size *= 2);

		if (!grown) {
			free(buf);
			return -ENOMEM;
		}
		buf = grown;
		err = getpwnam_r(local, &pw, buf, size, &found);
	} while (err == ERANGE && size < (1u << 20));
	/* The group of a user without an id is not taken either. */
	if (found && pw.pw_uid == GSS_NO_USER)
		found = NULL;
	if (found) {
		a->uid = pw.pw_uid;
		a->gid = pw.pw_gid;
	}
	free(buf);
	if (found)
		return 1;
	/* getpwnam(3) has these for names that are not there. */
	return err == ENOENT || err == ESRCH || err == EBADF || err == EPERM ?
	       0 : -err;
}

/* Such a name has no user: libkrb5 ends a local name at a zero byte, and name
 * services read text behind an '@' as a domain. */
static bool is_quoted(const char *name)
{
	return strchr(name, '\\') != NULL;
}

static int find_local_user(gss_name_t name, struct gss_accept *a)
{
	gss_buffer_desc local = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;
	char *text;
	int ret;

	if (gss_localname(&minor, name, GSS_C_NO_OID, &local) != GSS_S_COMPLETE)
		return 0;		/* it has no local name */
	text = strndup(local.value, local.length);
	gss_release_buffer(&minor, &local);
	if (!text)
		return -ENOMEM;
	ret = find_local(text, a);
	free(text);
	return ret;
}

/* As find_local(). */
static int find_any(gss_name_t name, const char *text, struct gss_accept *a)
{
	int found = find_local_user(name, a);

	if (found != 0 || !is_machine(text))
		return found;
	a->uid = a->gid = 0;
	return 1;
}

bool cfx_find_user(gss_name_t name, struct gss_accept *a)
{
	gss_buffer_desc buf = GSS_C_EMPTY_BUFFER;
	OM_uint32 major, minor;
	char *text;
	int found;

	a->uid = a->gid = GSS_NO_USER;
	major = gss_display_name(&minor, name, &buf, NULL);
	if (major != GSS_S_COMPLETE) {
		cfx_fail(a, major, minor, "to read the client's name");
		return false;
	}
	text = strndup(buf.value, buf.length);
	gss_release_buffer(&minor, &buf);
	if (!text)
		found = -ENOMEM;
	else
		found = is_quoted(text) ? 0 : find_any(name, text, a);
	if (found < 0) {
		a->major = GSS_FAILURE;
		snprintf(a->why, sizeof(a->why), "the name service does not "
			 "say which user %.100s is: %s", text ? text : "",
			 strerror(-found));
	}
	if (found == 0)
		a->seconds = MIN(a->seconds, UNKNOWN_SECONDS);
	free(text);
	return found >= 0;
}
