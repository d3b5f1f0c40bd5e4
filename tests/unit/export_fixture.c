/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of exports in memory, and peers to ask it for. */
#include "tests/unit/export_fixture.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include <urcu.h>

#include "exports/export_priv.h"

struct export_table *table;

_Atomic unsigned dns_asked;
int dns_error;
bool dns_forged;
const char *dns_alias;
void (*dns_meanwhile)(void);

static int fake_name(const struct addr *a, char *name, size_t size)
{
	dns_asked++;
	if (dns_error)
		return dns_error;
	if (a->family != AF_INET || a->bytes[0] != 192)
		return EAI_NONAME;
	if (dns_alias)
		snprintf(name, size, "%s", dns_alias);
	else
		snprintf(name, size, "h%u.example", a->bytes[3]);
	return 0;
}

static int fake_has_addr(const char *name, const struct addr *a)
{
	unsigned n;

	dns_asked++;
	if (dns_meanwhile)
		dns_meanwhile();
	if (dns_error || strncmp(name, "dead", 4) == 0)
		return -1;
	if (!a)
		return strncmp(name, "none", 4) != 0;
	if (dns_alias && strcmp(name, dns_alias) == 0)
		return 1;
	return !dns_forged && a->family == AF_INET && a->bytes[0] == 192 &&
	       sscanf(name, "h%u", &n) == 1 && n == a->bytes[3];
}

static bool fake_in_netgroup(const char *group, const char *host)
{
	return strcmp(group, "trusted") == 0 &&
	       (!host || strcmp(host, "h7") == 0 ||
		strcmp(host, "192.0.2.8") == 0);
}

void table_begin(void)
{
	static const struct resolver fake = {
		.name = fake_name,
		.has_addr = fake_has_addr,
		.in_netgroup = fake_in_netgroup,
		.keep_s = 60,
	};
	struct export_config config = { .backend = &mem_vfs_ops };

	rcu_register_thread();
	ck_assert_int_eq(export_table_create(&config, &table), 0);
	table->resolver = fake;
}

void table_end(void)
{
	export_table_destroy(table);
	rcu_unregister_thread();
}

int parse_bytes(const char *text, size_t len, struct export_set **set,
		char **err)
{
	FILE *f = tmpfile();
	int ret;

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, len, f), len);
	rewind(f);
	ret = export_set_parse(table, "exports", f, set, err);
	fclose(f);
	return ret;
}

int parse(const char *text, struct export_set **set, char **err)
{
	return parse_bytes(text, strlen(text), set, err);
}

void publish(const char *text)
{
	struct export_set *set = NULL;
	char *err;

	if (parse(text, &set, &err) < 0)
		ck_abort_msg("%s", err);
	if (export_table_publish(table, set, &err) < 0)
		ck_abort_msg("%s", err);
}

struct sockaddr_storage peer(const char *addr, uint16_t port)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;

	if (strchr(addr, ':')) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		ck_assert_int_eq(inet_pton(AF_INET6, addr, &in6->sin6_addr),
				 1);
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		ck_assert_int_eq(inet_pton(AF_INET, addr, &in->sin_addr), 1);
	}
	return ss;
}

int ask(const char *path, const char *addr, struct export_opts *opts)
{
	struct sockaddr_storage ss = peer(addr, 1000);
	struct export_tree *e;
	const char *rest;
	int err = export_find_path(table, path, BY_SYS(&ss, false), &e, opts,
				   &rest);

	if (err == 0)
		export_put(e);
	return err;
}

void take_note(void *arg, const char *text)
{
	strcat(arg, text);
}

void effect_of(const struct client *c, char *out, size_t size)
{
	const struct export_opts *o = &c->opts;

	snprintf(out, size, "%s,%s%s%s%s%s%s%s%s", o->rw ? "rw" : "ro",
		 o->secure ? "secure" : "insecure",
		 o->root_squash ? ",root_squash" : "",
		 o->all_squash ? ",all_squash" : "",
		 o->crossmnt ? ",crossmnt" : "",
		 o->nohide ? ",nohide" : "",
		 o->no_acl ? ",no_acl" : "",
		 o->manage_gids ? ",manage_gids" : "",
		 o->no_readdirplus ? ",nordirplus" : "");
}
