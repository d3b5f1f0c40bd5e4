/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor_tls - TLS of NFS over TCP: whether there is any, and its
 * certificate. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "tools/nfs/doctor.h"
#include "tools/nfs/tls.h"
#include "tools/nfs/why.h"

enum { DAY = 86400, SOON = 30 * DAY };

/* 0; or -errno, how far it came is in *@peer. */
static int look_at_tls(struct doctor *d, const struct nfsc_tls *tls,
		       struct tls_peer *peer)
{
	const struct rpc_procedure null = { RPC_NFS, 3, 0 };
	struct nfsc_wire *w;
	int err = wire_dial(d->at, d->nfs_port,
			    (int)d->t.o->config.connect_ms, true, &w);

	if (err < 0)
		return err;
	err = nfsc_tls_look(tls, w, &null, d->t.url.host, peer);
	wire_close(w);
	return err;
}

static void note_certificate(struct doctor *d, const struct tls_peer *p,
			     int err)
{
	long long left = (long long)p->until - (long long)time(NULL);
	struct tm tm;
	char end[32];

	gmtime_r(&p->until, &tm);
	strftime(end, sizeof(end), "%Y-%m-%d %H:%M UTC", &tm);
	doctor_note(d, FACT, "tls", "a certificate for %s, until %s, of the CA "
		    "'%s'", p->names[0] ? p->names : "no name (SAN)", end,
		    p->issuer);
	if (left >= 0 && left < SOON)
		doctor_note(d, POOR, "tls", "the certificate ends in %lld "
			    "days", left / DAY);
	if (!p->alpn)
		doctor_note(d, POOR, "tls", "it does not agree on ALPN "
			    "\"sunrpc\"");
	if (err == 0)
		doctor_note(d, GOOD, "tls", "the server is proven");
	else if (!d->t.o->config.tls)
		doctor_note(d, FACT, "tls", "not proven: %s", nfsc_why());
}

void doctor_tls(struct doctor *d)
{
	const struct nfsc_tls *tls = d->t.o->config.tls;
	struct nfsc_tls *own = NULL;
	struct tls_peer peer = { 0 };
	char *why = NULL;
	int err;

	if (!tls && nfsc_tls_create(&(struct tls_files){ 0 }, &own, &why) < 0) {
		free(why);
		return;
	}
	err = look_at_tls(d, tls ? tls : own, &peer);
	d->has_tls = peer.verdict != TLS_UNSEEN;
	if (d->has_tls)
		note_certificate(d, &peer, err);
	else if (err == -EOPNOTSUPP && !tls)
		doctor_note(d, FACT, "tls", "NFS at TCP port %u has none",
			    d->nfs_port);
	else if (err < 0 && !tls)
		doctor_note(d, FACT, "tls", "no certificate came: %s",
			    doctor_reason(err));
	nfsc_tls_destroy(own);
}
