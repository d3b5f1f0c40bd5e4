/* SPDX-License-Identifier: BSD-2-Clause */
/* tls_files - the files of TLS that the settings name. */
#include "daemon/settings/settings.h"

#include <stdlib.h>
#include <string.h>

#include "lib/fail.h"

int options_tls(const struct options *o, struct tls_config **out, char **why)
{
	const struct tls_files files = { .cert = o->tls_cert, .key = o->tls_key,
					 .ca = o->tls_ca, .crl = o->tls_crl };
	char *text = NULL;
	int err;

	*out = NULL;
	*why = NULL;
	if (!files.cert != !files.key)
		return fail_with(why, "tls-cert and tls-key: one needs the "
				 "other");
	if (!files.cert && (files.ca || files.crl))
		return fail_with(why, "tls-ca and tls-crl need tls-cert");
	if (files.crl && !files.ca)
		return fail_with(why, "tls-crl needs tls-ca");
	if (!files.cert)
		return 0;
	err = tls_config_read(&files, out, &text);
	if (err && asprintf(why, "TLS: %s", text ? text : strerror(-err)) < 0)
		*why = NULL;
	free(text);
	return err;
}

enum rpc_protection options_protection(const struct options *o)
{
	return !o->tls_cert ? RPC_CLEAR : o->tls_ca ? RPC_MTLS : RPC_TLS;
}
