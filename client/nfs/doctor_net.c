/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor_net - from the host's name to the export. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/nfs/doctor.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "lib/xdr.h"

enum { NFS_PORT = 2049, RPCBIND_PORT = 111, NFS_PERM = 1, GETATTR = 1 };

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
	start = clock_ns();
	p->err = wire_call(w, &null, NULL, NULL, 0, connect_ms(d), &x);
	p->ms = (double)(clock_ns() - start) / 1e6;
	if (p->err == -ETIMEDOUT)
		p->err = -ETIME;
	/* A mismatch has the versions that there are. */
	if (p->err == -EPROTONOSUPPORT && xdr_left(&x) >= 8) {
		p->other = true;
		p->low = xdr_get_u32(&x);
		p->high = xdr_get_u32(&x);
	}
	wire_close(w);
}

/* A host has several addresses: the first whose port answers is taken. */
static void probe_any(struct doctor *d, uint16_t port, struct probe *p)
{
	const struct addrinfo *ai;
	struct probe one;

	memset(p, 0, sizeof(*p));
	for (ai = d->addresses; ai; ai = ai->ai_next) {
		d->at = ai->ai_addr;
		doctor_probe(d, port, RPC_NFS, 3, &one);
		if (ai == d->addresses || one.err == 0)
			*p = one;
		if (one.err == 0)
			break;
	}
	if (!ai)
		d->at = d->addresses->ai_addr;
	ai = ai ? ai : d->addresses;
	getnameinfo(ai->ai_addr, ai->ai_addrlen, d->address,
		    sizeof(d->address), NULL, 0, NI_NUMERICHOST);
}

static void mend_port(struct doctor *d, uint16_t port, const struct probe *p)
{
	if (p->err == -ETIMEDOUT)
		doctor_mend(d, TOOL_UNREACHABLE, "let TCP port %u of %s "
			    "through the firewall, or start the machine", port,
			    d->address);
	else if (p->err == -ETIME)
		doctor_mend(d, TOOL_UNREACHABLE, "restart the NFS server on "
			    "%s: it hangs", d->address);
	else if (p->err == -ECONNREFUSED)
		doctor_mend(d, TOOL_UNREACHABLE, "start the NFS server on %s, "
			    "or name its port: tcp://%s:PORT/...", d->address,
			    d->t.url.host);
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

/* The port of NFS over TCP, which RDMA can do without. */
static bool examine_nfs(struct doctor *d)
{
	bool rdma = d->t.url.transport == NFS_RDMA;
	uint16_t port = !rdma && d->t.url.port ? d->t.url.port : NFS_PORT;
	struct probe p;

	probe_any(d, port, &p);
	if (p.err == 0) {
		doctor_note(d, GOOD, "nfs", "version 3 answers at TCP port %u "
			    "of %s in %.1f ms", port, d->address, p.ms);
		return true;
	}
	if (p.other)
		doctor_note(d, rdma ? FACT : BAD, "nfs", "TCP port %u of %s: "
			    "NFS versions %u to %u, not 3", port, d->address,
			    p.low, p.high);
	else
		doctor_note(d, rdma ? FACT : BAD, "nfs", "TCP port %u of %s: "
			    "%s",
			    port, d->address, doctor_reason(p.err));
	if (!rdma)
		mend_port(d, port, &p);
	return rdma;
}

/* A program's port over TCP, of rpcbind. */
static void examine_row(struct doctor *d, const char *name, uint32_t program,
			uint32_t version, uint16_t *port)
{
	int err = wire_find_port(d->at, program, version, connect_ms(d), port);

	if (err == -EPROTONOSUPPORT)
		doctor_note(d, FACT, "rpcbind", "knows no %s version %u over "
			    "TCP", name, version);
	else if (err < 0)
		doctor_note(d, FACT, "rpcbind", "asked for %s: %s", name,
			    doctor_reason(err));
	else
		doctor_note(d, GOOD, "rpcbind", "%s version %u is at TCP port "
			    "%u", name, version, *port);
	if (err < 0)
		*port = 0;
}

static void examine_rpcbind(struct doctor *d)
{
	uint16_t port;
	struct probe p;

	doctor_probe(d, RPCBIND_PORT, RPC_PORTMAP, 2, &p);
	if (p.err < 0 && !p.other) {
		doctor_note(d, FACT, "rpcbind", "TCP port 111: %s; a mount has "
			    "to name the ports, and has no locks",
			    doctor_reason(p.err));
		return;
	}
	examine_row(d, "NFS", RPC_NFS, 3, &port);
	examine_row(d, "MOUNT", RPC_MOUNT, 3, &port);
	examine_row(d, "the lock manager", RPC_NLM, 4, &d->lock_port);
}

bool doctor_ports(struct doctor *d)
{
	bool on = examine_nfs(d);

	if (on)
		examine_rpcbind(d);
	return on;
}

/* ---- MOUNT */

/* The export that has the path: to whom it is exported; NULL: there is none. */
static void note_exports(struct doctor *d)
{
	struct nfsc_export *list = NULL, *e;
	int err = nfsc_exports(&d->t.url, &d->t.o->config, &list);
	bool any = false;

	if (err < 0) {
		doctor_note(d, FACT, "exports", "the server does not list "
			    "them: %s", doctor_reason(err));
		return;
	}
	for (e = list; e; e = e->next)
		if (tool_holds(e->dir, d->t.url.path)) {
			doctor_note(d, FACT, "exports", "%s to %s", e->dir,
				    e->who[0] ? e->who : "everyone");
			any = true;
		}
	for (e = list; e && !any; e = e->next)
		doctor_note(d, FACT, "exports", "%s (which is not above %s)",
			    e->dir, d->t.url.path);
	if (!list)
		doctor_note(d, FACT, "exports", "none");
	nfsc_exports_free(list);
}

static void mend_mount(struct doctor *d, int err)
{
	const struct nfsc_url *u = &d->t.url;
	uint32_t status = d->t.mount.status;

	if (err == -EACCES && (status == NFS_ACCES || status == NFS_PERM))
		doctor_mend(d, TOOL_FAILED, "export %s to this machine: see "
			    "the exports file of %s%s", u->path, u->host,
			    geteuid() ? ", which may want `insecure` there for "
			    "users other than root" : "");
	else if (err == -EACCES)
		doctor_mend(d, TOOL_FAILED, "name a directory that is there "
			    "and exported: `gannet-nfs exports %s` lists them",
			    u->host);
	else if (err == -EPERM)
		doctor_mend(d, TOOL_UNREACHABLE, "let %s take AUTH_SYS for %s "
			    "(sec=sys)", u->host, u->path);
	else if (err == -ETIME)
		doctor_mend(d, TOOL_UNREACHABLE, "wait, and try again; if it "
			    "goes on, find out in the log of %s why the file "
			    "system of %s does not answer", u->host, u->path);
	else if (err == -ETIMEDOUT)
		doctor_mend(d, TOOL_UNREACHABLE, "let the TCP port of MOUNT of "
			    "%s through the firewall", u->host);
	else
		doctor_mend(d, TOOL_UNREACHABLE, "start the MOUNT service "
			    "(mountd) of %s, or name its port: --mountport N",
			    u->host);
}

bool doctor_mount(struct doctor *d)
{
	int err = nfsc_mount(&d->t.url, &d->t.o->config, &d->t.mount);

	if (err == 0) {
		d->mounted = true;
		note_exports(d);
		doctor_note(d, GOOD, "mount", "%s may be mounted: a handle of "
			    "%u bytes", d->t.mount.dir, d->t.mount.root.len);
		return true;
	}
	if (err == -EACCES) {
		note_exports(d);
		doctor_note(d, BAD, "mount", "%s is refused (%s: %s)",
			    d->t.url.path,
			    nfsc_mount_status_name(d->t.mount.status),
			    nfsc_status_words(d->t.mount.status));
	} else {
		doctor_note(d, BAD, "mount", "MOUNT%s: %s",
			    d->t.url.mountport ? " at the port given" : "",
			    doctor_reason(err));
	}
	mend_mount(d, err);
	return false;
}

/* ---- from which port */

/* GETATTR of the root: 0, a status, or -errno. */
static int ask_root(struct doctor *d, uint16_t port, bool reserved)
{
	const struct rpc_procedure p = { RPC_NFS, 3, GETATTR };
	uint8_t args[NFS_FH_MAX + 4];
	struct nfsc_wire *w;
	struct xdr_out out;
	struct xdr_in x;
	int err = wire_dial(d->at, port, connect_ms(d), reserved, &w);

	if (err < 0)
		return err;
	xdr_out_init(&out, args, sizeof(args));
	xdr_put_opaque(&out, d->t.mount.root.data, d->t.mount.root.len);
	err = wire_call(w, &p, &d->t.o->config, args,
			(uint32_t)xdr_out_len(&out), connect_ms(d), &x);
	if (err == 0)
		err = (int)xdr_get_u32(&x);
	wire_close(w);
	return err;
}

void doctor_secure(struct doctor *d)
{
	bool rdma = d->t.url.transport == NFS_RDMA;
	uint16_t port = !rdma && d->t.url.port ? d->t.url.port : NFS_PORT;
	int high, low;

	if (rdma)
		return;
	high = ask_root(d, port, false);
	if (high == 0) {
		doctor_note(d, GOOD, "ports", "calls from any port are taken "
			    "(insecure)");
		return;
	}
	low = geteuid() == 0 ? ask_root(d, port, true) : -EPERM;
	if (low == 0) {
		doctor_note(d, GOOD, "ports", "only calls from ports below "
			    "1024 are taken (secure): those of a kernel's "
			    "mount are");
		return;
	}
	if (low == -EPERM) {
		doctor_note(d, POOR, "ports", "calls from ports above 1023 are "
			    "not taken (%s); root is needed to try others",
			    high > 0 ? nfsc_status_name((uint32_t)high) :
			    doctor_reason(high));
		return;
	}
	doctor_note(d, BAD, "ports", "calls are taken from no port (%s)",
		    low > 0 ? nfsc_status_name((uint32_t)low) :
		    doctor_reason(low));
	doctor_mend(d, TOOL_FAILED, "find out in the log of %s why it mounts "
		    "%s and then refuses it", d->t.url.host, d->t.mount.dir);
}

/* ---- as whom */

void doctor_groups(struct doctor *d)
{
	const struct nfsc_config *c = &d->t.o->config;
	int all = getgroups(0, NULL), sent = (int)c->ngroups;

	/* With --uid or --gid none are sent, as is said there. */
	if (sent > 0 && all > sent)
		doctor_note(d, POOR, "groups", "this user is in %d groups, and "
			    "a call carries %d: what the others may do is "
			    "refused, unless the server looks groups up itself "
			    "(manage_gids, of an export of gannetd; "
			    "--manage-gids of mountd)", all, sent);
}
