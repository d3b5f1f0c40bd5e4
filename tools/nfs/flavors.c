/* SPDX-License-Identifier: BSD-2-Clause */
/* flavors - the flavors of authentication that MNT lists. */
#include "tools/nfs/nfs.h"

#include <stdio.h>

#include "wire/header.h"

static const struct {
	uint32_t    number;
	const char *name;	/* as mount(8) and exports(5) know it */
} flavors[] = {
	{ RPC_AUTH_NONE, "none" }, { RPC_AUTH_SYS, "sys" },
	{ RPC_AUTH_KRB5, "krb5" }, { RPC_AUTH_KRB5I, "krb5i" },
	{ RPC_AUTH_KRB5P, "krb5p" },
};

const char *nfsc_flavor_name(uint32_t flavor)
{
	for (unsigned i = 0; i < sizeof(flavors) / sizeof(flavors[0]); i++)
		if (flavors[i].number == flavor)
			return flavors[i].name;
	return NULL;
}

void nfsc_flavors_text(const struct nfsc_mount *m, char out[NFS_FLAVORS_TEXT])
{
	size_t len = 0;
	const char *name;

	out[0] = '\0';
	for (unsigned i = 0; i < m->nflavors; i++) {
		name = nfsc_flavor_name(m->flavors[i]);
		if (i > 0)
			out[len++] = ':';
		len += (size_t)(name ? sprintf(out + len, "%s", name) :
				sprintf(out + len, "%u", m->flavors[i]));
	}
}

bool nfsc_takes(const struct nfsc_mount *m, const struct nfsc_config *c)
{
	for (unsigned i = 0; i < m->nflavors; i++)
		if (c->sec ? m->flavors[i] == c->sec->flavor :
		    m->flavors[i] == RPC_AUTH_SYS ||
		    m->flavors[i] == RPC_AUTH_NONE)
			return true;
	return m->nflavors == 0;
}
