/* SPDX-License-Identifier: BSD-2-Clause */
/* addr - socket addresses: how long, whose, in words.  Pure. */
#ifndef GANNET_TRANSPORT_ADDR_H
#define GANNET_TRANSPORT_ADDR_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Bytes of an address; of another family than IPv4's and IPv6's, its family. */
socklen_t xprt_addr_len(const struct sockaddr *sa);
/* All of it, zeros behind it. */
void xprt_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from);

/* Room for any address in words. */
#define XPRT_ADDR_TEXT	64u
/* "192.0.2.7:801" or "[2001:db8::1]:801"; returns @out. */
char *xprt_addr_text(const struct sockaddr *sa, char *out, size_t size);

/* The host alone, IPv4 as ::ffff:a.b.c.d; zeros for other families. */
struct in6_addr xprt_addr_host(const struct sockaddr *sa);
/* Hosts of one network differ in it, most often. */
uint32_t xprt_addr_hash(const struct in6_addr *host);

#endif
