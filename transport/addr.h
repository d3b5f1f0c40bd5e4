/* SPDX-License-Identifier: BSD-2-Clause */
/* addr - socket addresses: their bytes, their text, their network. */
#ifndef GANNET_TRANSPORT_ADDR_H
#define GANNET_TRANSPORT_ADDR_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The bytes of a struct sockaddr_in or _in6; of another family, of
 * sa_family. */
socklen_t xprt_addr_len(const struct sockaddr *sa);
/* Copies all of the address; zeros fill the rest. */
void xprt_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from);

/* Room for the text of any address. */
#define XPRT_ADDR_TEXT	64u
/* "192.0.2.7:801" or "[2001:db8::1]:801"; returns @out. */
char *xprt_addr_text(const struct sockaddr *sa, char *out, size_t size);

/* Writes the host without the port, IPv4 as ::ffff:a.b.c.d; zeros for other
 * families. */
struct in6_addr xprt_addr_host(const struct sockaddr *sa);
/* The part of the host's address that it did not choose by itself: the first 64
 * bits of an IPv6 address, the others zero; all of an IPv4 address. */
struct in6_addr xprt_addr_network(const struct in6_addr *host);
/* A hash with the process's secret, since clients choose IPv6 addresses. */
uint64_t xprt_addr_hash(const struct in6_addr *host);

#endif
