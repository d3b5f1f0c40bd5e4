/* SPDX-License-Identifier: BSD-2-Clause */
/* raw - declarations that the parts of gannet-raw share. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define BLOCK	((size_t)1 << 20)
#define AREA	((size_t)64 << 20)
/* A short call and its reply, with marks. */
#define CALL	((size_t)140)
#define REPLY	((size_t)116)

extern double	seconds;		/* for each work */
extern uint8_t *area, *block;		/* of those lengths */

void   die(const char *what);
double now(void);
/* True if this work was asked for. */
int    wants(const char *work);
void   socket_pair(int fds[2]);
/* 0 or -1. */
int    send_all(int fd, const uint8_t *p, size_t len);
int    send_all_iov(int fd, struct iovec *v, unsigned n);

/* floor.c: the floor of each work, on @fd, a file of AREA bytes in @dir. */
void   floors(int dir, int fd);
/* Breaks the free memory of this machine, or some of it, into single pages: a
 * file @in that directory holds the pages between. */
void   scatter(const char *in);
