/* SPDX-License-Identifier: BSD-2-Clause */
/* refusal - logs which rule refuses a peer: once, since it tries again. */
#include "exports/export_priv.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/log.h"

/* False if this was asked before about @a, @what and @rule, since the exports
 * were read: a refused client tries again, and often. */
static bool refusal_is_new(struct export_table *t, const struct addr *a,
			   uint64_t what, const char *rule)
{
	uint64_t h = hash_values(hash_addr(a->bytes), what, (uintptr_t)rule);

	return atomic_exchange_explicit(&t->refusals[h % REFUSALS], h,
					memory_order_relaxed) != h;
}

void refusal_log(struct export_table *t, const struct export *e,
		 const struct addr *a, unsigned port, const char *rule)
{
	char host[INET6_ADDRSTRLEN] = "?";
	const struct log_fields f = { .client = host, .export = e->path };

	if (!refusal_is_new(t, a, e->id, rule))
		return;
	inet_ntop(a->family, a->bytes, host, sizeof(host));
	log_limited_with(LOG_LEVEL_WARN, &f, "%s port %u refused for %s (%s): "
			 "%s", host, port, e->path, e->where, rule);
}

void refusal_log_gone(struct export_table *t, uint32_t id,
		      const struct sockaddr *peer)
{
	char host[INET6_ADDRSTRLEN] = "?";
	const struct log_fields f = { .client = host };
	struct addr a;
	unsigned port;

	addr_from_sockaddr(peer, &a, &port);
	if (!refusal_is_new(t, &a, id, "gone"))
		return;
	inet_ntop(a.family, a.bytes, host, sizeof(host));
	log_limited_with(LOG_LEVEL_WARN, &f, "%s port %u refused: the export "
			 "of its filehandle, with id 0x%08x, was removed; "
			 "export it again, or unmount it there", host,
			 port, id);
}

bool export_refusal_is_new(struct export_table *t,
			   const struct sockaddr *peer, const char *path)
{
	struct addr a;
	unsigned port;

	addr_from_sockaddr(peer, &a, &port);
	return refusal_is_new(t, &a, hash_keyed(path, strlen(path)), "path");
}
