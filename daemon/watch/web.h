/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * web - a few pages over HTTP, by libmicrohttpd: metrics, the status page and
 * the state for probes.
 *
 * One thread answers GET and HEAD.  A connection has one request; it is closed
 * after some seconds, answered or not, and so many can wait.  A server at a
 * loopback address answers only if it is asked for by an address or as
 * "localhost": otherwise a page of the Web, whose name leads to this machine
 * once it was loaded, could read the answers in the administrator's browser.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct web;

struct web_answer {
	const char	*type;		/* literal: Content-Type */
	const char	*policy;	/* Content-Security-Policy; borrowed
					 * while the web is there; NULL: that
					 * nothing is loaded */
	unsigned	 status;	/* 0: 200 */
	char		*text;		/* malloced */
	size_t		 len;
};

/* A page.  @make fills in the answer; @accept is what the client accepts, or
 * NULL.  False: no memory.  On the web's thread, which is registered with
 * RCU. */
struct web_page {
	const char *path;
	bool (*make)(void *arg, const char *accept, struct web_answer *out);
};

#if HAVE_MICROHTTPD
/*
 * Listens at @at and serves @pages, ended by one without a path, which are
 * called with @arg; both are borrowed.  0 or -errno.
 */
int web_start(const struct sockaddr_storage *at, const struct web_page *pages,
	      void *arg, struct web **out);
/* The port that it got. */
unsigned web_port(const struct web *w);
/* Closes all connections.  NULL is fine. */
void web_stop(struct web *w);
#else
static inline int web_start(const struct sockaddr_storage *at,
			    const struct web_page *pages, void *arg,
			    struct web **out)
{
	return -ENOSYS;
}

static inline unsigned web_port(const struct web *w)
{
	return 0;
}

static inline void web_stop(struct web *w)
{
}
#endif
