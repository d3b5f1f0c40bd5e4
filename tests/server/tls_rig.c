/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/server/tls_rig.h"

#include <errno.h>
#include <sys/socket.h>

#include "tests/unit/runner.h"
#include "wire/nfs3.h"

struct tls_rig rig;

static const char exports_text[] =
	"/mem 127.0.0.1(rw,insecure,no_root_squash)\n"
	"/tls 127.0.0.1(rw,insecure,no_root_squash,xprtsec=tls:mtls)\n"
	"/mtls 127.0.0.1(rw,insecure,no_root_squash,xprtsec=mtls)\n"
	"/any 127.0.0.1(rw,insecure,no_root_squash,xprtsec=none:tls)\n";

void tls_rig_setup(void)
{
	tls_pki_make(&rig.pki);
}

void tls_rig_teardown(void)
{
	harness_stop(&rig.srv);
	tls_pki_remove(&rig.pki);
}

void tls_rig_start(const struct tcp_tls *limits, bool trusts)
{
	struct tls_files files = tls_pki_files(&rig.pki);
	struct harness_config c = { .tls = &files, .exports = exports_text,
				    .protection = RPC_MTLS };

	if (!trusts)
		files.ca = files.crl = NULL;
	if (limits)
		c.tls_limits = *limits;
	/* No end comes for a test that is slow. */
	c.linger_ms = 60 * 1000;
	/* No handshake ends for a machine that is slow. */
	if (c.tls_limits.handshake_ms == 0)
		c.tls_limits.handshake_ms = 60 * 1000;
	harness_start(&rig.srv, &c);
	harness_root(&rig.srv, "/mem", &rig.top);
}

void tls_rig_post(struct tls_client *c)
{
	tls_client_begin(c, NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_GETATTR);
	xdr_put_opaque(&c->out, rig.top.data, rig.top.len);
	tls_client_post(c);
}

int tls_rig_status(struct tls_client *c)
{
	int err = tls_client_wait(c);

	return err ? err : (int)xdr_get_u32(&c->in);
}

int tls_rig_ask(struct tls_client *c)
{
	tls_rig_post(c);
	return tls_rig_status(c);
}

struct tls_conn *tls_rig_pair(struct tls_client *c, int *fd, uint64_t clear)
{
	struct tls_conn *conn;
	const char *why;
	uint32_t events;
	int fds[2], err, least = 1;
	bool shaken;

	ck_assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	ck_assert(!tls_conn_create(rig.srv.tls, fds[0], clear, &conn));
	*c = (struct tls_client){ .fd = fds[1] };
	shaken = tls_client_shake(c, NULL);
	do {
		err = tls_handshake(conn, &events, &why);
		shaken = shaken || SSL_connect(c->ssl) == 1;
	} while (err == -EAGAIN);
	ck_assert_int_eq(err, 0);
	ck_assert(shaken);
	*fd = fds[0];
	return conn;
}
