/* SPDX-License-Identifier: BSD-2-Clause */
/* tls - TLS of the server, with a certificate once the settings name one. */
#include "daemon/serve/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/util.h"
#include "transport/tls/tls.h"

int tls_part_start(struct tls_part *t, const struct options *o,
		   struct rpc_server *rpc)
{
	struct tls_config *config = NULL;
	char *why = NULL;
	int err = -ENOMEM;

	t->server = tls_server_create();
	t->handshakes = rpc_handshakes_create(rpc, MAX(1u, o->threads / 4));
	if (t->server && t->handshakes)
		err = options_tls(o, UINT64_MAX, &config, &why);
	if (err)
		log_err("%s", why ? why : strerror(-err));
	else if (config)
		log_info("TLS: serving with the certificate in %s",
			 o->tls_cert);
	if (!err && why)
		log_lines(LOG_LEVEL_WARN, why);
	free(why);
	if (err)
		return err;
	tls_server_use(t->server, config);
	tls_server_limit(t->server, tls_part_memory(o));
	t->options = (struct tcp_tls){ .server = t->server,
		.submit = rpc_handshakes_submit, .arg = t->handshakes };
	t->tcp.tls = &t->options;
	return 0;
}

void tls_part_stop(struct tls_part *t)
{
	rpc_handshakes_destroy(t->handshakes);
	tls_server_destroy(t->server);
}
