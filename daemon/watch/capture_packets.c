/* SPDX-License-Identifier: BSD-2-Clause */
/* capture_packets - see capture_packets.h. */
#include "daemon/watch/capture_packets.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/util.h"
#include "lib/xdr.h"
#include "wire/record.h"

#define IP4_LEN		20u
#define IP6_LEN		40u
#define TCP_LEN		20u
#define UDP_LEN		8u
#define HOPS		64u

enum { TCP_ACK = 0x10, TCP_PSH = 0x08 };

/* Connections whose sequence numbers are known; one is looked for at NEAR
 * places. */
#define NFLOWS		8192u
#define NEAR		8u

static const struct {
	const char *name, *text;
} vias[CAPTURE_VIAS] = {
	{ "tcp", "RPC over TCP" },
	{ "udp", "RPC over UDP" },
	{ "verbs", "RPC over RDMA (an RDMA device), shown as TCP" },
	{ "iwarp", "RPC over RDMA (iWARP in user space), shown as TCP" },
	{ "loop", "RPC over RDMA (within the process), shown as TCP" },
};
enum { VIA_TCP = 0, VIA_UDP = 1 };

struct flow {
	uint64_t	used;		/* 0: free; else the time of last use */
	struct in6_addr	host[2];
	uint16_t	port[2];
	uint8_t		via;
	uint32_t	seq[2];		/* of the next byte from either side */
};

struct capture_packets {
	uint64_t	now;		/* counts messages */
	uint32_t	sent;		/* bytes of all flows */
	struct flow	flows[NFLOWS];
};

uint8_t capture_via(const char *name)
{
	for (uint8_t i = 0; i < CAPTURE_VIAS; i++)
		if (!strcmp(vias[i].name, name))
			return i;
	return VIA_TCP;
}

struct capture_packets *capture_packets_create(void)
{
	return calloc(1, sizeof(struct capture_packets));
}

void capture_packets_destroy(struct capture_packets *p)
{
	free(p);
}

void capture_begin(struct pcapng *out, const char *program, uint32_t snaplen)
{
	pcapng_section(out, program);
	for (unsigned i = 0; i < CAPTURE_VIAS; i++)
		pcapng_interface(out, vias[i].name, vias[i].text, snaplen);
}

void capture_end(struct pcapng *out, uint64_t ns,
		 const uint64_t received[CAPTURE_VIAS],
		 const uint64_t dropped[CAPTURE_VIAS])
{
	for (unsigned i = 0; i < CAPTURE_VIAS; i++)
		pcapng_statistics(out, i, ns, received[i], dropped[i]);
}

/* ---- connections */

static bool is_flow_of(const struct flow *f, const struct capture_message *m)
{
	return f->via == m->via && !memcmp(f->port, m->port, sizeof(m->port)) &&
	       !memcmp(f->host, m->host, sizeof(m->host));
}

static uint32_t hash_flow(const struct capture_message *m)
{
	return (uint32_t)hash_values(m->via, (uint32_t)m->port[0] << 16 |
				     m->port[1],
				     hash_keyed(m->host, sizeof(m->host)));
}

/*
 * The connection of @m.  One that finds no place takes that of the longest
 * unused; should that one come back, its numbers begin behind all that were
 * there: a gap, but no byte twice.
 */
static struct flow *find_flow(struct capture_packets *p,
			      const struct capture_message *m)
{
	uint32_t at = hash_flow(m);
	struct flow *oldest = &p->flows[at % NFLOWS], *f;

	p->now++;
	for (unsigned i = 0; i < NEAR; i++) {
		f = &p->flows[(at + i) % NFLOWS];
		if (f->used && is_flow_of(f, m)) {
			f->used = p->now;
			return f;
		}
		if (f->used < oldest->used)
			oldest = f;
	}
	f = oldest;
	f->used = p->now;
	f->via = m->via;
	memcpy(f->host, m->host, sizeof(f->host));
	memcpy(f->port, m->port, sizeof(f->port));
	f->seq[0] = f->seq[1] = p->sent + 1;
	return f;
}

/* ---- headers */

static uint8_t *put_be16(uint8_t *p, uint32_t v)
{
	uint16_t be = htobe16((uint16_t)v);

	memcpy(p, &be, 2);
	return p + 2;
}

static uint8_t *put_be32(uint8_t *p, uint32_t v)
{
	xdr_set_word(p, v);
	return p + 4;
}

/* The Internet checksum (RFC 1071), to be folded. */
static uint64_t add_sum(uint64_t sum, const uint8_t *p, size_t len)
{
	for (; len > 1; len -= 2, p += 2)
		sum += (uint32_t)p[0] << 8 | p[1];
	return len ? sum + ((uint32_t)p[0] << 8) : sum;
}

static uint32_t fold_sum(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)~sum & 0xffff;
}

/* A packet to be made. */
struct packet {
	const struct capture_message *m;
	const uint8_t *from, *to;	/* addresses */
	uint32_t addr_len;
	uint32_t ip_len;		/* of the IP header, */
	uint32_t head_len;		/* of that of TCP or UDP, */
	uint32_t len;			/* and of the bytes behind it; */
	uint32_t stored;		/* the first of these are there */
	uint8_t	 protocol;
};

static void init_packet(struct packet *k, const struct capture_message *m)
{
	const struct in6_addr *from = &m->host[m->is_reply];
	const struct in6_addr *to = &m->host[!m->is_reply];
	bool is_ip4 = IN6_IS_ADDR_V4MAPPED(from) && IN6_IS_ADDR_V4MAPPED(to);

	k->m = m;
	k->from = from->s6_addr + (is_ip4 ? 12 : 0);
	k->to = to->s6_addr + (is_ip4 ? 12 : 0);
	k->addr_len = is_ip4 ? 4 : 16;
	k->ip_len = is_ip4 ? IP4_LEN : IP6_LEN;
	k->protocol = m->via == VIA_UDP ? IPPROTO_UDP : IPPROTO_TCP;
	k->head_len = m->via == VIA_UDP ? UDP_LEN : TCP_LEN;
}

static uint8_t *put_ip(uint8_t *p, const struct packet *k)
{
	uint32_t rest = k->head_len + k->len;
	uint8_t *start = p;

	if (k->ip_len == IP4_LEN) {
		p = put_be16(p, 0x4500);
		p = put_be16(p, IP4_LEN + rest);
		p = put_be32(p, 0x4000);	/* not to be fragmented */
		*p++ = HOPS;
		*p++ = k->protocol;
		p = put_be16(p, 0);
	} else {
		p = put_be32(p, 0x60000000);
		p = put_be16(p, rest);
		*p++ = k->protocol;
		*p++ = HOPS;
	}
	memcpy(p, k->from, k->addr_len);
	memcpy(p + k->addr_len, k->to, k->addr_len);
	if (k->ip_len == IP4_LEN)
		put_be16(start + 10, fold_sum(add_sum(0, start, IP4_LEN)));
	return p + 2 * k->addr_len;
}

/* Puts the checksum at @at of the TCP or UDP header @head.  A packet without
 * all of its bytes has none. */
static void put_sum(const struct packet *k, uint8_t *head, unsigned at)
{
	uint64_t sum = (uint64_t)k->protocol + k->head_len + k->len;
	uint32_t folded;

	if (k->stored < k->len)
		return;
	sum = add_sum(sum, k->from, k->addr_len);
	sum = add_sum(sum, k->to, k->addr_len);
	folded = fold_sum(add_sum(sum, head, k->head_len + k->len));
	/* In UDP, 0 stands for no checksum. */
	put_be16(head + at, folded ? : 0xffff);
}

static uint8_t *put_ports(uint8_t *p, const struct capture_message *m)
{
	p = put_be16(p, m->port[m->is_reply]);
	return put_be16(p, m->port[!m->is_reply]);
}

static uint8_t *start_packet(struct pcapng *out, const struct packet *k)
{
	uint32_t before = k->ip_len + k->head_len;

	return pcapng_packet(out, k->m->via, k->m->ns, before + k->stored,
			     before + k->len);
}

/* ---- messages */

static void add_datagram(struct pcapng *out, const struct capture_message *m,
			 const uint8_t *data)
{
	struct packet k;
	uint8_t *p, *head;

	init_packet(&k, m);
	k.len = MIN(m->len, UINT16_MAX - IP4_LEN - UDP_LEN);
	k.stored = MIN(m->stored, k.len);
	p = start_packet(out, &k);
	if (!p)
		return;
	head = put_ip(p, &k);
	p = put_ports(head, m);
	p = put_be16(p, UDP_LEN + k.len);
	p = put_be16(p, 0);
	memcpy(p, data, k.stored);
	put_sum(&k, head, 6);
}

/* The bytes of the stream from @at on: the record mark, then the message. */
static void copy_stream(uint8_t *p, const struct packet *k, uint32_t at,
			const uint8_t *data)
{
	uint32_t n = k->stored;

	if (at == 0) {
		record_put_mark(p, k->m->len);
		p += RECORD_MARK_SIZE;
		n -= RECORD_MARK_SIZE;
		at += RECORD_MARK_SIZE;
	}
	memcpy(p, data + at - RECORD_MARK_SIZE, n);
}

static void add_segment(struct pcapng *out, const struct packet *k,
			struct flow *f, uint32_t at, const uint8_t *data)
{
	const struct capture_message *m = k->m;
	bool is_last = at + k->len == RECORD_MARK_SIZE + m->len;
	uint8_t *p = start_packet(out, k), *head;

	if (!p)
		return;
	head = put_ip(p, k);
	p = put_ports(head, m);
	p = put_be32(p, f->seq[m->is_reply]);
	p = put_be32(p, f->seq[!m->is_reply]);
	p = put_be16(p, 0x5000 | TCP_ACK | (is_last ? TCP_PSH : 0));
	p = put_be16(p, UINT16_MAX);		/* window */
	p = put_be32(p, 0);			/* checksum, urgent pointer */
	copy_stream(p, k, at, data);
	put_sum(k, head, 16);
}

void capture_add(struct capture_packets *p, struct pcapng *out,
		 const struct capture_message *m, const uint8_t *data)
{
	uint32_t len = RECORD_MARK_SIZE + m->len;
	uint32_t stored = RECORD_MARK_SIZE + m->stored;
	struct flow *f;
	struct packet k;

	if (m->via == VIA_UDP) {
		add_datagram(out, m, data);
		return;
	}
	f = find_flow(p, m);
	init_packet(&k, m);
	for (uint32_t at = 0; at < len; at += k.len) {
		k.len = MIN(len - at, CAPTURE_SEGMENT);
		k.stored = at < stored ? MIN(stored - at, k.len) : 0;
		if (k.stored)
			add_segment(out, &k, f, at, data);
		f->seq[m->is_reply] += k.len;
		p->sent += k.len;
	}
}
