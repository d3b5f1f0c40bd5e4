/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor_net - from the host's name to the ports of NFS and of rpcbind. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "tools/nfs/doctor.h"
#include "tools/nfs/why.h"
#include "lib/clock.h"
#include "lib/xdr.h"
#include "transport/addr.h"
#include "wire/getport.h"

enum { NFS_PORT = 2049, WEB_MS = 3000 };

bool doctor_name(struct doctor *d)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	const char *host = d->t.url.host;
	int err = getaddrinfo(host, NULL, &hints, &d->addresses);
	char text[500] = "";
	size_t n = 0;

	if (err != 0) {
		d->addresses = NULL;
		doctor_note(d, BAD, "name", "%s: %s", host, gai_strerror(err));
		doctor_mend(d, TOOL_UNREACHABLE, "make the name known: `getent "
			    "hosts %s` has to print an address; or use the "
			    "address in its place", host);
		return false;
	}
	for (ai = d->addresses; ai && n < sizeof(text) - 80; ai = ai->ai_next) {
		char one[64] = "?";

		getnameinfo(ai->ai_addr, ai->ai_addrlen, one, sizeof(one),
			    NULL, 0, NI_NUMERICHOST);
		if (ai == d->addresses)
			memcpy(d->address, one, sizeof(one));
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
				      n ? ", " : "", one);
	}
	d->at = d->addresses->ai_addr;
	doctor_note(d, GOOD, "name", "%s is %s", host, text);
	return true;
}

static int connect_ms(const struct doctor *d)
{
	return (int)d->t.o->config.connect_ms;
}

void doctor_probe(struct doctor *d, uint16_t port, uint32_t program,
		  uint32_t version, struct probe *p)
{
	const struct rpc_procedure null = { program, version, 0 };
	struct nfsc_wire *w;
	struct xdr_in x;
	uint64_t start;

	memset(p, 0, sizeof(*p));
	p->err = wire_dial(d->at, port, connect_ms(d), true, &w);
	if (p->err < 0)
		return;
	p->err = wire_secure(w, &null, &d->t.o->config, d->t.url.host);
	start = clock_ns();
	if (p->err == 0)
		p->err = wire_call(w, &null, NULL, NULL, 0, connect_ms(d), &x);
	p->ms = (double)(clock_ns() - start) / 1e6;
	if (p->err == -ETIMEDOUT)
		p->err = -ETIME;
	/* A mismatch has the versions served. */
	if (p->err == -EPROTONOSUPPORT && xdr_left(&x) >= 8) {
		p->other = true;
		p->low = xdr_get_u32(&x);
		p->high = xdr_get_u32(&x);
	}
	wire_close(w);
}

/* Asks NFS the same at each address of the host, and stays at the first that
 * answers.  A certificate's fault says more than an address without a
 * server. */
static void probe_any(struct doctor *d, uint16_t port, struct probe *p)
{
	const struct addrinfo *ai, *best = d->addresses;
	struct probe one;

	memset(p, 0, sizeof(*p));
	for (ai = d->addresses; ai; ai = ai->ai_next) {
		d->at = ai->ai_addr;
		doctor_probe(d, port, RPC_NFS, 3, &one);
		if (ai == d->addresses || one.err == 0 || one.err == -ENOKEY) {
			*p = one;
			best = ai;
		}
		if (one.err == 0)
			break;
	}
	d->at = best->ai_addr;
	getnameinfo(best->ai_addr, best->ai_addrlen, d->address,
		    sizeof(d->address), NULL, 0, NI_NUMERICHOST);
}

/* A web server waits for the end of a line, which no call of RPC has. */
bool doctor_is_web(struct doctor *d, uint16_t port)
{
	static const char ask[] = "GET / HTTP/1.0\r\n\r\n", want[] = "HTTP/";
	struct sockaddr_storage to;
	struct pollfd p = { .events = POLLIN };
	char got[sizeof(want) - 1] = "";

	xprt_addr_copy(&to, d->at);
	xprt_addr_set_port(&to, port);
	p.fd = wire_connect((const struct sockaddr *)&to, false, WEB_MS);
	if (p.fd < 0)
		return false;
	if (send(p.fd, ask, sizeof(ask) - 1, MSG_NOSIGNAL) > 0 &&
	    poll(&p, 1, WEB_MS) > 0 &&
	    recv(p.fd, got, sizeof(got), MSG_WAITALL | MSG_DONTWAIT) < 0)
		got[0] = '\0';
	close(p.fd);
	return memcmp(got, want, sizeof(got)) == 0;
}

/* ---- NFS */

static void mend_refused(struct doctor *d, uint16_t port)
{
	if (d->told_nfs && d->told_nfs == port)
		doctor_mend(d, TOOL_UNREACHABLE, "start the NFS server on %s: "
			    "its rpcbind names TCP port %u for it, where "
			    "nothing listens", d->address, port);
	else if (d->bind_err == -EPROTONOSUPPORT)
		doctor_mend(d, TOOL_UNREACHABLE, "start the NFS server on %s: "
			    "its rpcbind knows no NFS version 3 over TCP",
			    d->address);
	else
		doctor_mend(d, TOOL_UNREACHABLE, "start the NFS server on %s, "
			    "or name its port: tcp://%s:PORT/...", d->address,
			    d->t.url.host);
}

static void mend_port(struct doctor *d, uint16_t port, const struct probe *p,
		      bool web)
{
	if (p->err == -ENOKEY)
		doctor_mend(d, TOOL_FAILED, "mend the TLS of %s, or what this "
			    "machine knows about it: %s", d->t.url.host,
			    nfsc_why());
	else if (web)
		doctor_mend(d, TOOL_UNREACHABLE, "name the port of NFS: at TCP "
			    "port %u of %s is a web server", port, d->address);
	else if (p->err == -ETIMEDOUT)
		doctor_mend(d, TOOL_UNREACHABLE, "let TCP port %u of %s "
			    "through the firewall, or start the machine", port,
			    d->address);
	else if (p->err == -ETIME)
		doctor_mend(d, TOOL_UNREACHABLE, "restart the NFS server on "
			    "%s: it hangs", d->address);
	else if (p->err == -ECONNREFUSED)
		mend_refused(d, port);
	else if (p->other)
		doctor_mend(d, TOOL_UNREACHABLE, "have the server serve NFS "
			    "version 3 (it has %u to %u)", p->low, p->high);
	else if (p->err == -EHOSTUNREACH || p->err == -ENETUNREACH)
		doctor_mend(d, TOOL_UNREACHABLE, "mend the way to %s: `ping "
			    "%s` has to answer", d->address, d->address);
	else
		doctor_mend(d, TOOL_UNREACHABLE, "name the port of NFS: what "
			    "is at port %u of %s is no NFS server", port,
			    d->address);
}

static void note_no_nfs(struct doctor *d, uint16_t port, const struct probe *p)
{
	bool rdma = d->t.url.transport == NFS_RDMA;
	bool web = (p->err == -ETIME || p->err == -EBADMSG) &&
		   doctor_is_web(d, port);

	if (p->other)
		doctor_note(d, rdma ? FACT : BAD, "nfs", "TCP port %u of %s: "
			    "NFS versions %u to %u, not 3", port, d->address,
			    p->low, p->high);
	else
		doctor_note(d, rdma ? FACT : BAD, "nfs", "TCP port %u of %s: "
			    "%s", port, d->address, web ? "a web server answers"
			    : doctor_reason(p->err));
	if (!rdma)
		mend_port(d, port, p, web);
}

/* rpcbind says where NFS is; of several addresses, the first that answers. */
static void ask_for_nfs(struct doctor *d)
{
	const struct addrinfo *ai;
	int err = -ETIMEDOUT;

	for (ai = d->addresses; ai && err < 0 && err != -EPROTONOSUPPORT;
	     ai = ai->ai_next)
		err = wire_find_port(ai->ai_addr, RPC_NFS, 3, connect_ms(d),
				     &d->told_nfs);
	d->bind_err = err;
	if (err < 0)
		d->told_nfs = 0;
}

/* The port of NFS over TCP, which RDMA can do without. */
static bool examine_nfs(struct doctor *d)
{
	struct nfsc_url *u = &d->t.url;
	bool rdma = u->transport == NFS_RDMA, given = !rdma && u->port;
	uint16_t port = given ? u->port : NFS_PORT;
	struct probe p = { .err = -ECONNREFUSED }, other = p;

	ask_for_nfs(d);
	/* Without a port, a mount asks rpcbind first. */
	if (d->told_nfs && !given)
		probe_any(d, d->told_nfs, &p);
	if (p.err == 0)
		port = d->told_nfs;
	else if (!d->told_nfs || d->told_nfs == port || given)
		probe_any(d, port, &p);
	else
		probe_any(d, port, &other);
	if (p.err < 0 && !given && d->told_nfs && other.err < 0)
		port = d->told_nfs;
	else if (other.err == 0)
		p = other;
	d->nfs_port = port;
	if (p.err == 0 || p.err == -ENOKEY)
		doctor_tls(d);
	if (p.err == 0) {
		doctor_note(d, GOOD, "nfs", "version 3 answers at TCP port %u "
			    "of %s in %.1f ms", port, d->address, p.ms);
		if (!rdma && port != NFS_PORT)
			u->port = port;
		return true;
	}
	if (given && d->told_nfs && d->told_nfs != port)
		probe_any(d, d->told_nfs, &other);
	if (given && other.err == 0)
		doctor_mend(d, TOOL_UNREACHABLE, "name TCP port %u in place "
			    "of %u: there NFS version 3 answers, as rpcbind "
			    "of %s says", d->told_nfs, port, d->address);
	note_no_nfs(d, port, &p);
	return rdma;
}

/* ---- rpcbind */

/* A program's port over TCP, of rpcbind; 0: none. */
static uint16_t examine_row(struct doctor *d, const char *name,
			    uint32_t program, uint32_t version)
{
	struct probe p;
	uint16_t port;
	int err = wire_find_port(d->at, program, version, connect_ms(d),
				 &port);

	if (err < 0) {
		if (err == -EPROTONOSUPPORT)
			doctor_note(d, FACT, "rpcbind", "says no port of %s "
				    "version %u over TCP", name, version);
		else
			doctor_note(d, FACT, "rpcbind", "asked for %s: %s",
				    name, doctor_reason(err));
		return 0;
	}
	doctor_probe(d, port, program, version, &p);
	if (p.err < 0)
		doctor_note(d, POOR, "rpcbind", "names TCP port %u for %s "
			    "version %u: %s", port, name, version,
			    doctor_reason(p.err));
	else
		doctor_note(d, GOOD, "rpcbind", "%s version %u is at TCP port "
			    "%u", name, version, port);
	return port;
}

static void examine_rpcbind(struct doctor *d)
{
	if (d->bind_err < 0 && d->bind_err != -EPROTONOSUPPORT) {
		doctor_note(d, FACT, "rpcbind", "TCP port %u: %s; a mount has "
			    "to name the ports, and has no locks",
			    RPCBIND_PORT, doctor_reason(d->bind_err));
		return;
	}
	examine_row(d, "NFS", RPC_NFS, 3);
	d->told_mount = examine_row(d, "MOUNT", RPC_MOUNT, 3);
	d->lock_port = examine_row(d, "the lock manager", RPC_NLM, 4);
}

bool doctor_ports(struct doctor *d)
{
	bool on = examine_nfs(d);

	if (on)
		examine_rpcbind(d);
	return on;
}
