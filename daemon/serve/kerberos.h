/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kerberos - RPCSEC_GSS by the module krb5, if this machine has that and a
 * keytab.
 *
 * A server without Kerberos is NULL: every function takes it.
 */
#pragma once

#include "daemon/settings/settings.h"
#include "rpc/gss.h"

struct kerberos;

/* Loads the module, before the process is confined.  0, with *@out NULL without
 * Kerberos; or -errno after the reason was logged. */
int kerberos_load(const struct options *o, struct kerberos **out);
/* Makes a server of @config with the available flavors.  Before the first
 * listener.  0 or -errno.  Faults of the keytab are logged later, and can be
 * mended while the server runs. */
int kerberos_serve(struct kerberos *k, struct rpc_server_config *config,
		   struct rpc_server **out);
/* Takes @server, of which no listener and no call is left.  Waits for a look at
 * the keytab that has not ended, but not for long. */
void kerberos_end(struct kerberos *k, struct rpc_server *server);
void kerberos_destroy(struct kerberos *k);
