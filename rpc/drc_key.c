/* SPDX-License-Identifier: BSD-2-Clause */
/* drc_key - the keys of the duplicate request cache.  Pure. */
#include <netinet/in.h>

#include "lib/hash.h"
#include "rpc/drc_store.h"

void drc_key_addr(struct drc_key *key, const struct sockaddr *peer,
		  bool datagram)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)peer;
	struct in6_addr host = xprt_addr_host(peer);

	memcpy(key->addr, &host, sizeof(key->addr));
	key->scope = IN6_IS_ADDR_LINKLOCAL(&host) ? in6->sin6_scope_id : 0;
	/* Both families have the port at the same place. */
	key->port = datagram ? in6->sin6_port : 0;
}

static uint64_t load_word(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, p, n);
	return le64toh(v);
}

/* Four at a time: the processor multiplies them side by side. */
static uint64_t sum_bytes(const uint8_t *p, size_t n)
{
	uint64_t h[4] = { n, 1, 2, 3 };

	for (; n >= 32; n -= 32, p += 32) {
		h[0] = hash_mix(h[0], load_word(p, 8));
		h[1] = hash_mix(h[1], load_word(p + 8, 8));
		h[2] = hash_mix(h[2], load_word(p + 16, 8));
		h[3] = hash_mix(h[3], load_word(p + 24, 8));
	}
	for (; n >= 8; n -= 8, p += 8)
		h[0] = hash_mix(h[0], load_word(p, 8));
	h[1] = hash_mix(h[1], load_word(p, n));
	return hash_mix(hash_mix(h[0], h[1]), hash_mix(h[2], h[3]));
}

uint64_t drc_sum(const struct xdr_in *args, uint32_t max)
{
	size_t have = (size_t)(args->end - args->p), n;
	uint8_t all[DRC_SUM_MAX];

	if (have >= max || args->nnext == 0)
		return sum_bytes(args->p, MIN(have, (size_t)max));
	memcpy(all, args->p, have);
	for (uint32_t i = 0; i < args->nnext; i++) {
		n = MIN((size_t)args->next[i].len, max - have);
		memcpy(all + have, args->next[i].data, n);
		have += n;
	}
	return sum_bytes(all, have);
}

static void hash_addr_of(struct xprt_hashes *h)
{
	const struct in6_addr network = xprt_addr_network(&h->addr);

	h->host = xprt_addr_hash(&h->addr);
	h->network = xprt_addr_hash(&network);
}

/* The caller chooses all of the key but its address. */
void drc_hash(struct drc_call *call)
{
	const struct drc_key *key = &call->key;
	const struct xprt_hashes *h = call->fate ? call->fate->hashes : NULL;
	struct xprt_hashes own;

	if (!h || memcmp(&h->addr, key->addr, sizeof(h->addr)) != 0) {
		memcpy(&own.addr, key->addr, sizeof(own.addr));
		hash_addr_of(&own);
		h = &own;
	}
	call->share = (uint16_t)(h->network % DRC_NETWORKS * DRC_HOSTS +
				 (h->host >> 32) % DRC_HOSTS);
	call->hash = hash_words((const uint32_t[HASH_WORDS]){
		(uint32_t)h->host, (uint32_t)(h->host >> 32), key->uid,
		key->gid, (uint32_t)key->sum, (uint32_t)(key->sum >> 32),
		key->xid, key->proc });
}
