/* SPDX-License-Identifier: BSD-2-Clause */
/* rquota_client - with separate XDR code, like quota(1)'s. */
#include "tests/server/rquota_client.h"

#include <netinet/in.h>
#include <rpc/rpc.h>
#include <stdarg.h>
#include <string.h>

#define PROGRAM		100011u
#define SETQUOTA	3u
#define PATH_MOST	4096u

static bool_t put_set(XDR *x, struct rquota_what *q, char *path)
{
	int word = 0;
	bool_t ok = xdr_int(x, &word) && xdr_string(x, &path, PATH_MOST) &&
		    xdr_int(x, &q->id) &&
		    (q->vers == 1 || xdr_int(x, &q->type));

	for (int i = 0; ok && i < 8; i++)
		ok = xdr_int(x, &word);
	return ok;
}

static bool_t put_question(XDR *x, ...)
{
	struct rquota_what *q;
	char *path;
	va_list ap;

	va_start(ap, x);
	q = va_arg(ap, struct rquota_what *);
	va_end(ap);
	path = (char *)(uintptr_t)q->path;
	if (q->proc >= SETQUOTA)
		return put_set(x, q, path);
	return xdr_string(x, &path, PATH_MOST) &&
	       (q->vers == 1 || xdr_int(x, &q->type)) && xdr_int(x, &q->id);
}

static bool_t get_words(XDR *x, ...)
{
	uint32_t *word;
	va_list ap;
	bool_t ok;

	va_start(ap, x);
	word = va_arg(ap, uint32_t *);
	va_end(ap);
	ok = xdr_u_int(x, &word[0]);
	for (unsigned i = 1; ok && word[0] == 1 && i < RQUOTA_WORDS; i++)
		ok = xdr_u_int(x, &word[i]);
	return ok;
}

enum rquota_end rquota_call(const struct rquota_caller *caller,
			    const struct rquota_what *question,
			    uint32_t word[RQUOTA_WORDS])
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	const struct timeval minute = { 60, 0 };
	const struct timeval again = { caller->again_s, 0 };
	struct rquota_what q = *question;
	struct rquota_caller as = *caller;
	int sock = RPC_ANYSOCK;
	enum clnt_stat stat;
	char host[] = "host";
	CLIENT *c;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons(as.port);
	c = as.udp ? clntudp_create(&to, PROGRAM, q.vers, as.again_s ? again :
				     minute, &sock) :
		     clnttcp_create(&to, PROGRAM, q.vers, &sock, 0, 0);
	if (!c)
		return RQUOTA_FAILED;
	if (!as.anonymous) {
		auth_destroy(c->cl_auth);
		c->cl_auth = authunix_create(host, as.uid, as.gid, 2, as.gids);
	}
	memset(word, 0, RQUOTA_WORDS * sizeof(*word));
	stat = clnt_call(c, q.proc, put_question, (char *)&q, get_words,
			 (char *)word, minute);
	auth_destroy(c->cl_auth);
	clnt_destroy(c);
	return stat == RPC_SUCCESS ? RQUOTA_ANSWERED :
	       stat == RPC_CANTDECODEARGS ? RQUOTA_GARBAGE : RQUOTA_FAILED;
}
