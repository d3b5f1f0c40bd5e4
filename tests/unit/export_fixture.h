/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of exports in memory, and peers to ask it for. */
#pragma once

#include <check.h>
#include <sys/socket.h>

#include "exports/export.h"

extern struct export_table *table;

/* Its resolver: 192.x.y.N is called hN.example; h7 and 192.0.2.8 are in the
 * netgroup "trusted"; of deadN nothing can be told, and noneN is not known. */
extern _Atomic unsigned dns_asked;	/* questions so far */
extern int dns_error;			/* an EAI_ code for every question */
extern bool dns_forged;			/* names don't lead back */
/* The answer of reverse look-ups.  The peer owns the zone, and can write any
 * name. */
extern const char *dns_alias;
extern void (*dns_meanwhile)(void);	/* done before an address is told */

/* A table with the mem backend that keeps nothing. */
void table_begin(void);
void table_end(void);

/* Parses @text, of @len bytes, as the file "exports". */
int parse_bytes(const char *text, size_t len, struct export_set **set,
		char **err);
int parse(const char *text, struct export_set **set, char **err);
/* Parses and publishes; insists. */
void publish(const char *text);
/* "192.0.2.1" or "2001:db8::1", from @port. */
struct sockaddr_storage peer(const char *addr, uint16_t port);
/* The caller there, with AUTH_SYS. */
#define BY_SYS(address, any) (&(const struct export_peer){ \
		.addr = (const struct sockaddr *)(address), .any_port = any, \
		.flavor = RPC_AUTH_SYS })
/* Asks for @path from @addr, port 1000: 0 and *@opts, or -errno. */
int ask(const char *path, const char *addr, struct export_opts *opts);

/* For export_set_notes(): appends @text to the string @arg. */
void take_note(void *arg, const char *text);
struct client;
/* The client's options that do something, "rw,secure,root_squash". */
void effect_of(const struct client *c, char *out, size_t size);
