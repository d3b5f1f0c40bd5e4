/* SPDX-License-Identifier: BSD-2-Clause */
/* who - who does what, in JSON for gannetctl(8): its commands clients, latency
 * and disconnect.  The control thread. */
#ifndef GANNET_DAEMON_WHO_H
#define GANNET_DAEMON_WHO_H

#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>

/* For struct control_command, with a struct report. */
json_t *who_clients(void *report, const char *argument, const char **wrong);
json_t *who_latency(void *report, const char *argument, const char **wrong);
json_t *who_disconnect(void *report, const char *argument, const char **wrong);

/* The address as text, IPv4 in its own form; null for NULL.  Any thread. */
json_t *who_host(const struct in6_addr *host);

/* An address of a client, IPv4 as ::ffff:a.b.c.d; false: @text is none. */
bool who_parse_host(const char *text, struct in6_addr *out);

#endif
