/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server - everything between the options and the sockets, put together.
 *
 * All functions on one thread, the one that made it.
 */
#pragma once

#include <stdio.h>

#include "daemon/settings/settings.h"
#include "vfs/backends.h"

struct kerberos;
struct server;

/*
 * Makes everything and listens.  @o, @backends and @krb5 are borrowed while the
 * server lives.
 * 0, or -errno after the reason was logged.
 */
int server_start(const struct options *o, const struct backends *backends,
		 struct kerberos *krb5, struct server **out);

/* Logs each listener's address, then "ready"; see gannetd(8). */
void server_print_ready(const struct server *s, FILE *out);

/* Reads gannet.conf and the exports again; on a mistake, logged, nothing
 * changes. */
void server_reload(struct server *s);

/* Logs every counter above zero, and the shares of the workers. */
void server_log_counters(struct server *s);

/* No new connection, no new call.  server_drained() says when the calls
 * that were taken have been answered and the connections are closed. */
void server_drain(struct server *s);
bool server_drained(struct server *s);

/* Closes everything left and frees it. */
void server_stop(struct server *s);

/*
 * To be called every few seconds: sends back calls that wait behind hung ones
 * and hold resources that others need, see rpc_server_relieve().  With @trim it
 * gives back memory for data that was unused since the previous call with
 * @trim; true if it gave some back.
 */
bool server_tidy(struct server *s, bool trim);

/* The descriptor that locks the state directory. */
int server_state_lock(const struct server *s);
