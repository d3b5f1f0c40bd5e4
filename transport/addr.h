/* SPDX-License-Identifier: BSD-2-Clause */
/* addr - socket addresses: their bytes, their text, their network. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The bytes of a struct sockaddr_in or _in6; of another family, of
 * sa_family. */
socklen_t xprt_addr_len(const struct sockaddr *sa);
/* Copies all of the address; zeros fill the rest. */
void xprt_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from);

/* The port of an IPv4 or IPv6 address. */
uint16_t xprt_addr_port(const struct sockaddr_storage *ss);
void xprt_addr_set_port(struct sockaddr_storage *ss, uint16_t port);

/* Room for the text of any address. */
#define XPRT_ADDR_TEXT	64u
/* "192.0.2.7:801" or "[2001:db8::1]:801"; returns @out. */
char *xprt_addr_text(const struct sockaddr *sa, char *out, size_t size);

/* Writes the host without the port, IPv4 as ::ffff:a.b.c.d; zeros for other
 * families. */
struct in6_addr xprt_addr_host(const struct sockaddr *sa);
/* The text of such a host, an IPv4 one as "192.0.2.7"; returns @text. */
const char *xprt_host_text(const struct in6_addr *host,
			   char text[INET6_ADDRSTRLEN]);
/* True if both are of one host, whatever their ports and scopes. */
bool xprt_addr_same_host(const struct sockaddr *a, const struct sockaddr *b);
/* True of ::1 and of 127.0.0.0/8. */
bool xprt_addr_is_loopback(const struct sockaddr *sa);
/* The part of the host's address that it did not choose by itself: the first 64
 * bits of an IPv6 address, the others zero; all of an IPv4 address. */
struct in6_addr xprt_addr_network(const struct in6_addr *host);
/* The part that a provider gives one customer, which can have all networks in
 * it: the first 48 bits of an IPv6 address; all of an IPv4 address. */
struct in6_addr xprt_addr_site(const struct in6_addr *host);
/* True if both hosts are of one such part. */
bool xprt_addr_same_site(const struct in6_addr *a, const struct in6_addr *b);
/* A hash with the process's secret, since clients choose IPv6 addresses. */
uint64_t xprt_addr_hash(const struct in6_addr *host);
