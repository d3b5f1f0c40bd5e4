/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tls - TLS of a client's TCP connections (RFC 9289).
 *
 * Nothing but the call that asks for TLS goes in clear: a server without it, or
 * that is not proven, gets no other call.
 */
#include "tools/nfs/tls.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "lib/xdr.h"
#include "tools/nfs/why.h"
#include "tools/nfs/wire.h"
#include "wire/header.h"

enum {
	LOOK_MS = 10000,
	AUTH_TLS = 7,
	/* RFC 8446 section 6. */
	ALERT_NO_PROTOCOL = 120, ALERT_CERTIFICATE_REQUIRED = 116,
};

struct tls {
	struct nfsc_tls	   base;
	struct tls_client *client;
	char		  *ca;		/* owned; NULL: the system's */
};

struct guard {
	struct wire_guard  base;
	struct tls_conn	  *conn;
	char		   host[256];
};

/* ---- why it fails */

static const char *date(time_t t, char out[32])
{
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, 32, "%Y-%m-%d %H:%M UTC", &tm);
	return out;
}

static int complain_alert(const char *host, const struct tls_peer *p)
{
	if (p->alert == ALERT_NO_PROTOCOL)
		return nfsc_why_set("TLS: %s has none for NFS (it refuses ALPN "
				    "\"sunrpc\")", host);
	if (p->alert == ALERT_CERTIFICATE_REQUIRED)
		return nfsc_why_set("TLS: %s demands a certificate of this "
				    "client: --tls-cert and --tls-key name "
				    "one", host);
	return nfsc_why_set("TLS: %s refuses this client, perhaps its "
			    "certificate (alert: %s)", host, p->alert_text);
}

/* The certificate is not trusted. */
static int complain_cert(const struct tls *t, const char *host,
			 const struct tls_peer *p)
{
	char when[32];

	switch (p->verdict) {
	case TLS_UNKNOWN_CA:
		return nfsc_why_set("TLS: the certificate of %s is of the CA "
				    "'%s', which %s does not have%s", host,
				    p->issuer, t->ca ? t->ca : "this system",
				    t->ca ? "" : ": --tls-ca names its file");
	case TLS_OTHER_NAME:
		return nfsc_why_set("TLS: the certificate of %s is for other "
				    "names: %s", host, p->names[0] ? p->names :
				    "it has none (SAN)");
	case TLS_EXPIRED:
		return nfsc_why_set("TLS: the certificate of %s has expired "
				    "at %s", host, date(p->until, when));
	case TLS_EARLY:
		return nfsc_why_set("TLS: the certificate of %s is only valid "
				    "from %s: compare the clocks", host,
				    date(p->from, when));
	default:
		return nfsc_why_set("TLS: the certificate of %s is not "
				    "trusted: %s", host, p->why);
	}
}

/* The handshake with @g failed. */
static int complain(const struct tls *t, const struct guard *g, int err,
		    const char *why)
{
	struct tls_peer p;

	tls_conn_peer(g->conn, &p);
	if (p.alert)
		return complain_alert(g->host, &p);
	if (p.verdict > TLS_TRUSTED)
		return complain_cert(t, g->host, &p);
	if (err == -ETIMEDOUT)
		return nfsc_why_set("TLS: %s does not answer the handshake",
				    g->host);
	return nfsc_why_set("TLS: the handshake with %s failed: %s", g->host,
			    err == -ECONNRESET || err == -EPIPE ?
			    "it closed the connection" : why ? why :
			    strerror(-err));
}

/* ---- the bytes */

static struct guard *guard_of(struct wire_guard *base)
{
	return container_of(base, struct guard, base);
}

/* A server judges this client after the client's part of the handshake. */
static ssize_t recv_guarded(struct wire_guard *base, const struct iovec *iov)
{
	struct guard *g = guard_of(base);
	ssize_t n = tls_recv(g->conn, iov, 1);
	struct tls_peer p;

	if (n > 0 || n == -EAGAIN || n == -EBUSY)
		return n;
	tls_conn_peer(g->conn, &p);
	return p.alert ? complain_alert(g->host, &p) : n;
}

static ssize_t send_pieces(struct wire_guard *base, const struct iovec *iov,
			   unsigned n)
{
	return tls_send(guard_of(base)->conn, iov, n, SIZE_MAX, false);
}

static bool is_pending(struct wire_guard *base)
{
	return tls_pending(guard_of(base)->conn);
}

static void close_guard(struct wire_guard *base)
{
	struct guard *g = guard_of(base);

	tls_close(g->conn);
	tls_conn_destroy(g->conn);
	free(g);
}

static struct guard *new_guard(const struct tls *t, int fd, const char *host)
{
	struct guard *g = calloc(1, sizeof(*g));

	if (!g || tls_conn_dial(t->client, fd, host, &g->conn) < 0) {
		free(g);
		return NULL;
	}
	g->base = (struct wire_guard){ recv_guarded, send_pieces, is_pending,
				       close_guard };
	strncpy(g->host, host, sizeof(g->host) - 1);
	return g;
}

/* ---- STARTTLS and the handshake */

/* RFC 9289 section 4.1.  0; -EOPNOTSUPP: the server has no TLS; or another
 * -errno. */
static int ask_for_tls(struct nfsc_wire *w, const struct rpc_procedure *null,
		       int ms)
{
	const struct rpc_header h = { .xid = 1, .prog = null->program,
				      .vers = null->version,
				      .flavor = AUTH_TLS };
	struct rpc_opaque_auth verf = { .flavor = AUTH_TLS };
	uint8_t call[RPC_HEADER_MAX];
	struct wire_out m = { .head = call };
	struct xdr_out out;
	struct xdr_in x;
	uint32_t xid;
	int err;

	xdr_out_init(&out, call, sizeof(call));
	rpc_header_call_signed(&out, &h);
	rpc_auth_put(&out, RPC_AUTH_NONE, (struct xdr_view){ NULL, 0 });
	m.head_len = (uint32_t)xdr_out_len(&out);
	wire_send(w, &m);
	err = wire_receive(w, ms, &x);
	if (!wire_sent(&m))
		cds_list_del(&m.link);
	if (err < 0)
		return err;
	err = rpc_header_reply(&x, &xid, &verf);
	if (err == -EBADMSG || xid != h.xid)
		return -EBADMSG;
	/* The verifier alone counts, not how the call ended. */
	if (err != -EACCES && verf.flavor == RPC_AUTH_NONE &&
	    verf.body.len == 8 && memcmp(verf.body.data, "STARTTLS", 8) == 0)
		return 0;
	return -EOPNOTSUPP;
}

static int shake_hands(struct guard *g, struct pollfd *p, int ms,
		       const char **why)
{
	uint64_t now, until = clock_ms() + (uint64_t)ms;
	uint32_t events;
	int n, err;

	while ((err = tls_handshake(g->conn, &events, why)) == -EAGAIN) {
		now = clock_ms();
		p->events = (short)events;
		n = poll(p, 1, now < until ? (int)(until - now) : 0);
		if (n == 0)
			return -ETIMEDOUT;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	return err;
}

/* The server has said STARTTLS.  *@peer is set. */
static int begin_handshake(const struct tls *t, struct nfsc_wire *w,
			   const char *host, int ms, struct tls_peer *peer)
{
	const char *why = NULL;
	struct pollfd p;
	struct guard *g;
	int err;

	wire_poll(w, &p);
	g = new_guard(t, p.fd, host);
	if (!g)
		return -ENOMEM;
	err = wire_protect(w, &g->base);
	if (err < 0) {
		close_guard(&g->base);
		return nfsc_why_set("TLS: %s sends other bytes than TLS behind "
				    "STARTTLS", host);
	}
	/* It is the wire's. */
	err = shake_hands(g, &p, ms, &why);
	tls_conn_peer(g->conn, peer);
	if (err < 0)
		return complain(t, g, err, why);
	return peer->alpn ? 0 :
	       nfsc_why_set("TLS: %s has none for NFS (it does not agree on "
			    "ALPN \"sunrpc\")", host);
}

static int secure(const struct nfsc_tls *base, struct nfsc_wire *w,
		  const struct rpc_procedure *null, const char *host, int ms)
{
	const struct tls *t = container_of(base, struct tls, base);
	struct tls_peer peer;
	int err = ask_for_tls(w, null, ms);

	if (err == -EOPNOTSUPP)
		return nfsc_why_set("TLS: %s offers none, and nothing is sent "
				    "to it in clear", host);
	return err < 0 ? err : begin_handshake(t, w, host, ms, &peer);
}

int nfsc_tls_look(const struct nfsc_tls *base, struct nfsc_wire *w,
		  const struct rpc_procedure *null, const char *host,
		  struct tls_peer *peer)
{
	const struct tls *t = container_of(base, struct tls, base);
	int err = ask_for_tls(w, null, LOOK_MS);

	memset(peer, 0, sizeof(*peer));
	return err < 0 ? err : begin_handshake(t, w, host, LOOK_MS, peer);
}

int nfsc_tls_create(const struct tls_files *files, struct nfsc_tls **out,
		    char **why)
{
	struct tls *t = calloc(1, sizeof(*t));
	int err = -ENOMEM;

	*why = NULL;
	if (!t)
		return err;
	t->base.secure = secure;
	t->base.mutual = files->cert;
	t->ca = files->ca ? strdup(files->ca) : NULL;
	if (!files->ca || t->ca)
		err = tls_client_create(files, &t->client, why);
	if (err < 0)
		nfsc_tls_destroy(&t->base);
	else
		*out = &t->base;
	return err;
}

void nfsc_tls_destroy(struct nfsc_tls *base)
{
	struct tls *t = base ? container_of(base, struct tls, base) : NULL;

	if (!t)
		return;
	tls_client_destroy(t->client);
	free(t->ca);
	free(t);
}
