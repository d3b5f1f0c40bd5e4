/* SPDX-License-Identifier: BSD-2-Clause */
/* web - a few pages over HTTP, by libmicrohttpd. */
#include "daemon/watch/web.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <urcu/list.h>

#include "lib/clock.h"
#include "lib/fds.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "transport/addr.h"

STAT(web_requests, "requests for metrics and the status page answered");
STAT(web_refused, "requests for metrics and the status page refused: of "
     "another page, method or host name");
STAT(web_slow, "connections for metrics and the status page closed because "
     "they took too long");

/* One address has a quarter of them, unless it is this machine's, which has no
 * other. */
#define MAX_CONNS	64
#define BACKLOG		64	/* more that wait for their turn */
/* From a connection's begin to its end. */
#define CONN_MS		5000
/* A request's line and headers, and an answer's. */
#define CONN_BYTES	(size_t)(16 << 10)
#define DENY_ALL	"default-src 'none'; frame-ancestors 'none'"

struct web {
	struct MHD_Daemon     *mhd;
	const struct web_page *pages;
	void		      *arg;
	bool		       local;	/* at a loopback address */
	unsigned	       port;
	int		       stop;	/* an eventfd */
	pthread_t	       thread;
	struct cds_list_head   conns;	/* the oldest first */
	bool		       closed;	/* one, in the last MHD_run() */
};

struct web_conn {
	struct cds_list_head link;
	int	 fd;		/* libmicrohttpd's */
	uint64_t until;		/* clock_ns(); 0: was cut */
};

/* ---- answers */

static enum MHD_Result send_off(struct MHD_Connection *c, unsigned status,
				struct MHD_Response *r)
{
	enum MHD_Result done = MHD_NO;

	if (!r)
		return MHD_NO;
	if (MHD_add_response_header(r, "Connection", "close") == MHD_YES)
		done = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result web_refuse(struct MHD_Connection *c, unsigned status,
				  const char *text)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text),
		(void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);

	stat_inc(web_refused);
	if (r && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, "Allow", "GET, HEAD");
	if (r)
		MHD_add_response_header(r, "Content-Type", "text/plain");
	return send_off(c, status, r);
}

static enum MHD_Result send_page(struct web *w, struct MHD_Connection *c,
				 const struct web_page *page)
{
	const char *accept = MHD_lookup_connection_value(c, MHD_HEADER_KIND,
							 "Accept");
	struct web_answer a = { .policy = DENY_ALL };
	struct MHD_Response *r;

	if (!page->make(w->arg, accept, &a))
		return MHD_NO;
	r = MHD_create_response_from_buffer(a.len, a.text,
					    MHD_RESPMEM_MUST_FREE);
	if (!r) {
		free(a.text);
		return MHD_NO;
	}
	MHD_add_response_header(r, "Content-Type", a.type);
	MHD_add_response_header(r, "Content-Security-Policy", a.policy);
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Cross-Origin-Resource-Policy",
				"same-origin");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "Vary", "Accept");
	stat_inc(web_requests);
	return send_off(c, a.status ? a.status : MHD_HTTP_OK, r);
}

/* True if @host, of a Host header, is an address or "localhost", with or
 * without a port. */
static bool is_nameless(const char *host)
{
	char name[INET6_ADDRSTRLEN + 1];
	struct in6_addr addr;
	bool brackets = *host == '[';
	size_t len;

	host += brackets;
	len = strcspn(host, brackets ? "]" : ":");
	if (len >= sizeof(name) || (brackets && (host[len] != ']' ||
	    (host[len + 1] && host[len + 1] != ':'))))
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	return brackets ? inet_pton(AF_INET6, name, &addr) == 1 :
	       !strcasecmp(name, "localhost") ||
	       inet_pton(AF_INET, name, &addr) == 1;
}

static enum MHD_Result web_answer(void *arg, struct MHD_Connection *c,
				  const char *url, const char *method,
				  const char *version, const char *upload,
				  size_t *nupload, void **request)
{
	const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND,
						       "Host");
	struct web *w = arg;
	const struct web_page *page = w->pages;

	if (w->local && host && !is_nameless(host))
		return web_refuse(c, MHD_HTTP_MISDIRECTED_REQUEST,
				  "Ask for this server by its address or as "
				  "localhost.\n");
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return web_refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED,
				  "GET and HEAD only.\n");
	while (page->path && strcmp(page->path, url) != 0)
		page++;
	if (!page->path)
		return web_refuse(c, MHD_HTTP_NOT_FOUND,
				  "There is no such page.\n");
	return send_page(w, c, page);
}

/* ---- connections */

static void note_conn(void *arg, struct MHD_Connection *c, void **upper,
		      enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct web_conn *conn = *upper;
	struct web *w = arg;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		w->closed = true;
		if (conn)
			cds_list_del(&conn->link);
		free(conn);
		*upper = NULL;
		return;
	}
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	conn = info ? calloc(1, sizeof(*conn)) : NULL;
	*upper = conn;
	if (!conn)
		return;		/* it is closed when it is idle */
	conn->fd = info->connect_fd;
	conn->until = clock_ns() + CONN_MS * (uint64_t)NS_PER_MS;
	cds_list_add_tail(&conn->link, &w->conns);
}

/* libmicrohttpd only knows of idle connections: a client that sends a byte now
 * and then would stay. */
static void cut_slow(struct web *w)
{
	uint64_t now = clock_ns();
	struct web_conn *conn;

	cds_list_for_each_entry(conn, &w->conns, link) {
		if (now < conn->until)
			return;
		if (!conn->until)
			continue;
		conn->until = 0;
		stat_inc(web_slow);
		shutdown(conn->fd, SHUT_RDWR);
	}
}

static int web_timeout(struct web *w)
{
	MHD_UNSIGNED_LONG_LONG ms;
	int most = cds_list_empty(&w->conns) ? -1 : 1000;

	/* If they were too many, it accepts others only in the next run. */
	if (w->closed)
		return 0;
	if (MHD_get_timeout(w->mhd, &ms) == MHD_YES &&
	    (most < 0 || ms < (unsigned)most))
		return ms > 60000 ? 60000 : (int)ms;
	return most;
}

static void run_web(void *arg)
{
	struct web *w = arg;
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(w->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd p[2] = { { .fd = info->epoll_fd, .events = POLLIN },
			       { .fd = w->stop, .events = POLLIN } };

	while (poll(p, 2, web_timeout(w)) < 0 || !p[1].revents) {
		cut_slow(w);
		w->closed = false;
		MHD_run(w->mhd);
	}
}

/* ---- begin and end */

/* The socket, or -errno. */
static int web_listen(struct web *w, const struct sockaddr_storage *at)
{
	socklen_t len = at->ss_family == AF_INET ? sizeof(struct sockaddr_in) :
						   sizeof(struct sockaddr_in6);
	struct sockaddr_storage got;
	const int one = 1;
	int err, fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC |
			     SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)at, len) < 0 ||
	    listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&got, &len) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	w->local = xprt_addr_is_loopback((const struct sockaddr *)at);
	w->port = xprt_addr_port(&got);
	return fd;
}

static void web_log(void *arg, const char *format, va_list ap)
	__attribute__((format(printf, 2, 0)));
static void web_log(void *arg, const char *format, va_list ap)
{
	char text[200];

	vsnprintf(text, sizeof(text), format, ap);
	text[strcspn(text, "\n")] = '\0';
	log_limited(LOG_LEVEL_DEBUG, "metrics: %s", text);
}

int web_start(const struct sockaddr_storage *at, const struct web_page *pages,
	      void *arg, struct web **out)
{
	struct web *w = calloc(1, sizeof(*w));
	int fd, err;

	if (!w)
		return -ENOMEM;
	CDS_INIT_LIST_HEAD(&w->conns);
	w->pages = pages;
	w->arg = arg;
	fd = err = web_listen(w, at);
	if (err < 0)
		goto fail;
	w->stop = eventfd(0, EFD_CLOEXEC);
	err = -errno;
	if (w->stop < 0)
		goto fail_fd;
	err = -ENOMEM;
	w->mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL,
		NULL, web_answer, w,
		MHD_OPTION_EXTERNAL_LOGGER, web_log, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_NOTIFY_CONNECTION, note_conn, w,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)fds_small(MAX_CONNS),
		MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		w->local ? 0u : ((unsigned)fds_small(MAX_CONNS) + 3) / 4,
		MHD_OPTION_CONNECTION_TIMEOUT, CONN_MS / 1000u,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONN_BYTES,
		MHD_OPTION_END);
	if (!w->mhd)
		goto fail_stop;
	err = thread_start(&w->thread, "metrics", run_web, w);
	if (!err) {
		*out = w;
		return 0;
	}
	MHD_stop_daemon(w->mhd);	/* closes fd */
	fd = -1;
fail_stop:
	close(w->stop);
fail_fd:
	if (fd >= 0)
		close(fd);
fail:
	free(w);
	return err;
}

unsigned web_port(const struct web *w)
{
	return w->port;
}

void web_stop(struct web *w)
{
	const uint64_t one = 1;

	if (!w)
		return;
	if (write(w->stop, &one, sizeof(one)) < 0)
		log_debug("metrics: %s", strerror(errno));
	pthread_join(w->thread, NULL);
	MHD_stop_daemon(w->mhd);
	close(w->stop);
	free(w);
}
