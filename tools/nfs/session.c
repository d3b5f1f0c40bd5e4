/* SPDX-License-Identifier: BSD-2-Clause */
/* session - the part that both transports share, and URLs. */
#include "tools/nfs/nfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"
#include "transport/fabric/fabrics.h"

enum { PATIENCE = 10 };

/* The schemes of URLs.  "rdma" can have "+" and the name of a fabric behind
 * it. */
static const struct {
	const char	    *name;
	enum nfsc_transport transport;
} schemes[] = {
	{ "tcp", NFS_TCP },
	{ "nfs", NFS_TCP },
	{ "rdma", NFS_RDMA },
};

void nfsc_config_user(struct nfsc_config *c)
{
	int n = getgroups(0, NULL);
	gid_t *groups = n > 0 ? calloc((size_t)n, sizeof(*groups)) : NULL;

	c->uid = geteuid();
	c->gid = getegid();
	/* getgroups() gives all of them or none.  AUTH_SYS has room for 16
	 * (RFC 5531 appendix A). */
	n = groups ? getgroups(n, groups) : 0;
	for (int i = 0; i < n && c->ngroups < ARRAY_SIZE(c->groups); i++)
		c->groups[c->ngroups++] = groups[i];
	free(groups);
}

int nfsc_session_open(const struct nfsc_url *url, const struct nfsc_config *c,
		     struct nfsc_session **out)
{
	struct nfsc_config full = *c;

	if (full.timeout_ms == 0)
		full.timeout_ms = 60000;
	if (full.retries == 0)
		full.retries = 10;
	if (full.tls && url->transport != NFS_TCP)
		return -EOPNOTSUPP;
	if (full.sec)
		return full.sec->open(url, &full, out);
	if (url->transport == NFS_TCP)
		return nfsc_tcp_open(url, &full, out);
	return nfsc_rdma_open(url, &full, out);
}

int session_do(struct nfsc_session *s, struct nfsc_op *op)
{
	struct timespec nap = { .tv_nsec = 100000000 };

	for (int i = 0;; i++) {
		int err = session_submit(s, op);

		if (err < 0) {
			op->err = err;
			return err;
		}
		session_wait(s);
		if (op->err < 0 || op->status != NFS_JUKEBOX || i == PATIENCE)
			return op->err;
		session_leave(s);
		nanosleep(&nap, NULL);
		session_enter(s);
		nap.tv_sec = MIN(2 * nap.tv_sec + 1, 5);
	}
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copies with %xx undone.  NULL, or its mistake. */
static const char *unescape(char *to, size_t size, const char *from, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = from[i];

		if (c == '%') {
			if (i + 2 >= len || hex(from[i + 1]) < 0 ||
			    hex(from[i + 2]) < 0)
				return "after % come two hexadecimal digits "
				       "(% itself is %25)";
			c = (char)(hex(from[i + 1]) << 4 | hex(from[i + 2]));
			i += 2;
		}
		if (c == '\0')
			return "%00 is in no name";
		if (n + 1 >= size)
			return "it is too long";
		to[n++] = c;
	}
	to[n] = '\0';
	return NULL;
}

static bool get_port(const char *from, size_t len, uint16_t *port)
{
	unsigned long n = 0;

	for (size_t i = 0; i < len; i++) {
		if (from[i] < '0' || from[i] > '9')
			return false;
		n = 10 * n + (unsigned long)(from[i] - '0');
		if (n > UINT16_MAX)
			return false;
	}
	*port = (uint16_t)n;
	return n > 0;
}

static const char *get_authority(struct nfsc_url *url, const char *at,
				 const char *end)
{
	const char *close = NULL, *colon, *why;

	if (*at == '[') {			/* an IPv6 address */
		at++;
		close = memchr(at, ']', (size_t)(end - at));
		if (!close)
			return "there is no ] after the address";
		colon = close + 1;
		if (colon != end && *colon != ':')
			return "what follows ] is no port";
	} else {
		colon = memchr(at, ':', (size_t)(end - at));
		colon = close = colon ? colon : end;
	}
	if (close == at)
		return "there is no host";
	why = unescape(url->host, sizeof(url->host), at, (size_t)(close - at));
	if (why)
		return why;
	if (colon != end &&
	    !get_port(colon + 1, (size_t)(end - colon - 1), &url->port))
		return "the port is not a number from 1 to 65535";
	return NULL;
}

static const char *get_query(struct nfsc_url *url, const char *at)
{
	static const char name[] = "mountport=";

	if (strncmp(at, name, sizeof(name) - 1) != 0)
		return "what follows ? is not mountport=N";
	at += sizeof(name) - 1;
	if (!get_port(at, strlen(at), &url->mountport))
		return "the mountport is not a number from 1 to 65535";
	return NULL;
}

static const char *get_path(struct nfsc_url *url, const char *at, size_t len)
{
	char *p = url->path;
	const char *why;
	size_t n;

	if (len == 0)
		return "there is no path";
	why = unescape(p, sizeof(url->path), at, len);
	if (why)
		return why;
	for (n = strlen(p); n > 1 && p[n - 1] == '/'; n--)
		p[n - 1] = '\0';
	return NULL;
}

/* The "://" behind a scheme, or NULL.  One behind a slash is a path's. */
static const char *find_scheme(const char *text)
{
	const char *at = text + strcspn(text, ":/");

	return strncmp(at, "://", 3) == 0 ? at : NULL;
}

/* Returns what follows "://", or NULL: no such scheme. */
static const char *get_scheme(struct nfsc_url *url, const char *at)
{
	const char *end = find_scheme(at), *plus;
	size_t len, i;

	if (!end)
		return NULL;
	plus = memchr(at, '+', (size_t)(end - at));
	len = (size_t)((plus ? plus : end) - at);
	for (i = 0; i < ARRAY_SIZE(schemes); i++)
		if (strlen(schemes[i].name) == len &&
		    strncasecmp(schemes[i].name, at, len) == 0)
			break;
	if (i == ARRAY_SIZE(schemes))
		return NULL;
	url->transport = schemes[i].transport;
	if (plus) {
		i = fabrics_find(plus + 1, (size_t)(end - plus - 1));
		if (url->transport != NFS_RDMA || i == fabrics_count())
			return NULL;
		url->fabric = (unsigned)i + 1;
	}
	return end + strlen("://");
}

/* The colon of HOST:/PATH, or NULL. */
static const char *find_colon(const char *text)
{
	const char *close = text[0] == '[' ? strstr(text, "]:/") : NULL;
	const char *at = close ? close + 1 : text + strcspn(text, ":/");

	return at != text && at[0] == ':' && at[1] == '/' ? at : NULL;
}

/* As mount(8) has it: its path is the bytes that it is, without escapes. */
static const char *get_plain(struct nfsc_url *url, const char *text,
			     const char *colon)
{
	size_t len = (size_t)(colon - text), n = strlen(colon + 1);

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (strlen(schemes[i].name) == len &&
		    strncasecmp(schemes[i].name, text, len) == 0)
			return "after this come two slashes and the host";
	if (text[0] == '[') {
		text++;
		len -= 2;
	}
	if (len >= sizeof(url->host) || n >= sizeof(url->path))
		return "it is too long";
	memcpy(url->host, text, len);
	memcpy(url->path, colon + 1, n + 1);
	for (; n > 1 && url->path[n - 1] == '/'; n--)
		url->path[n - 1] = '\0';
	return NULL;
}

bool nfsc_url_is(const char *text)
{
	return find_scheme(text) || find_colon(text);
}

int nfsc_url_parse(const char *text, struct nfsc_url *url, const char **why)
{
	const char *at, *path, *query, *colon = find_colon(text);

	memset(url, 0, sizeof(*url));
	if (colon && !find_scheme(text)) {
		*why = get_plain(url, text, colon);
		return *why ? -EINVAL : 0;
	}
	at = get_scheme(url, text);
	*why = "it is not HOST:/PATH, and starts with none of tcp://, "
	       "nfs://, rdma://, rdma+iwarp://, rdma+verbs://";
	if (!at)
		return -EINVAL;
	path = at + strcspn(at, "/?");
	query = path + strcspn(path, "?");
	*why = get_authority(url, at, path);
	if (!*why)
		*why = get_path(url, path, (size_t)(query - path));
	if (!*why && *query)
		*why = get_query(url, query + 1);
	return *why ? -EINVAL : 0;
}
