/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decoders of the status monitor, of the port mapper, of answers to our
 * calls, and the text of the list of hosts, of any bytes.  The first byte says
 * which.  A list that was read is read the same again when it was written.
 */
#include <stdlib.h>

#include "nsm/hosts.h"
#include "wire/getport.h"
#include "wire/header.h"
#include "wire/portmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static volatile uint8_t sink;

static void read_view(struct xdr_view v)
{
	for (uint32_t i = 0; i < v.len; i++)
		sink ^= v.data[i];
}

static bool (*const decode[])(struct xdr_in *, void *) = {
	sm_get_name, sm_get_mon, sm_get_mon_id, sm_get_my_id, sm_get_notify,
};

static char *print(const struct nsm_hosts *h, const struct nsm_head *head)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	nsm_hosts_print(h, head, f);
	fclose(f);
	return text;
}

static void try_list(const uint8_t *data, size_t len)
{
	char *text = strndup((const char *)data, len), *first, *again;
	struct nsm_hosts h;
	struct nsm_head head;

	nsm_hosts_init(&h, 100, 100);
	nsm_hosts_parse(&h, text, &head);
	first = print(&h, &head);
	nsm_hosts_fini(&h);
	free(text);
	text = strdup(first);
	nsm_hosts_parse(&h, text, &head);
	again = print(&h, &head);
	if (strcmp(first, again))
		abort();
	nsm_hosts_fini(&h);
	free(first);
	free(again);
	free(text);
}

static void try_portmap(const uint8_t *data, size_t len)
{
	struct portmap_args a = { 0 };
	struct xdr_in x;

	xdr_in_init(&x, data, len);
	portmap_get_pmap(&x, &a);
	xdr_in_init(&x, data, len);
	if (!portmap_get_rpcb(&x, &a))
		return;
	read_view(a.netid);
	read_view(a.addr);
	read_view(a.owner);
}

static void try_answers(const uint8_t *data, size_t len)
{
	const struct getport ip4 = { .family = AF_INET };
	const struct getport ip6 = { .family = AF_INET6 };
	struct sm_stat_res res;
	struct xdr_in x;
	uint16_t port;
	uint32_t xid;

	xdr_in_init(&x, data, len);
	rpc_header_reply(&x, &xid, NULL);
	xdr_in_init(&x, data, len);
	getport_get(&x, &ip4, &port);
	xdr_in_init(&x, data, len);
	getport_get(&x, &ip6, &port);
	xdr_in_init(&x, data, len);
	sm_get_stat_res(&x, &res);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sm_args a = { 0 };
	struct xdr_in x;

	if (len == 0)
		return 0;
	switch (data[0]) {
	case ARRAY_SIZE(decode):
		try_list(data + 1, len - 1);
		return 0;
	case ARRAY_SIZE(decode) + 1:
		try_answers(data + 1, len - 1);
		return 0;
	case ARRAY_SIZE(decode) + 2:
		try_portmap(data + 1, len - 1);
		return 0;
	}
	xdr_in_init(&x, data + 1, len - 1);
	if (!decode[data[0] % ARRAY_SIZE(decode)](&x, &a))
		return 0;
	read_view(a.name);
	read_view(a.my_name);
	read_view(a.priv);
	return 0;
}
