/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor_mount - MOUNT: its port, the exports, the handle. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/nfs/doctor.h"
#include "tools/nfs/why.h"

enum { NFS_PORT = 2049, NFS_PERM = 1 };

/* ---- its port */

/* The same places as in nfsc_mount(), but a port that never answers does not
 * end the search. */
static bool find_mount_port(struct doctor *d, uint16_t *port, struct probe *why)
{
	const struct nfsc_url *u = &d->t.url;
	bool tcp = u->transport == NFS_TCP;
	const uint16_t ports[] = {
		u->mountport, u->mountport ? 0 : tcp ? u->port : 0,
		u->mountport ? 0 : d->told_mount, u->mountport ? 0 : NFS_PORT,
	};
	struct probe p;

	*port = 0;
	for (unsigned i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		if (ports[i] == 0 || ports[i] == *port)
			continue;
		doctor_probe(d, ports[i], RPC_MOUNT, 3, &p);
		/* A mount takes the port that rpcbind names. */
		if (*port == 0 || p.err == 0 || ports[i] == d->told_mount) {
			*port = ports[i];
			*why = p;
		}
		if (p.err == 0)
			return true;
	}
	return false;
}

static void mend_named(struct doctor *d, uint16_t port, const struct probe *p)
{
	const char *host = d->t.url.host;

	if (p->err == -ENOKEY)
		doctor_mend(d, TOOL_FAILED, "let the MOUNT service (mountd) of "
			    "%s have TLS, which --tls demands of it at TCP "
			    "port %u: %s", host, port, nfsc_why());
	else if (p->err == -ETIMEDOUT)
		doctor_mend(d, TOOL_UNREACHABLE, "let TCP port %u of %s, that "
			    "of MOUNT, through the firewall", port, host);
	else if (p->err == -ETIME && !doctor_is_web(d, port))
		doctor_mend(d, TOOL_UNREACHABLE, "restart the MOUNT service "
			    "(mountd) of %s: it hangs", host);
	else if (p->other)
		doctor_mend(d, TOOL_UNREACHABLE, "have the MOUNT service "
			    "(mountd) of %s serve version 3 (it has %u to %u)",
			    host, p->low, p->high);
	else if (port == d->told_mount)
		doctor_mend(d, TOOL_UNREACHABLE, "restart the MOUNT service "
			    "(mountd) of %s: its rpcbind names TCP port %u for "
			    "it, where %s", host, port,
			    p->err == -ECONNREFUSED ? "nothing listens" :
			    "something else answers");
	else
		doctor_mend(d, TOOL_UNREACHABLE, "start the MOUNT service "
			    "(mountd) of %s, or name its port: --mountport N",
			    host);
}

static void note_no_mount(struct doctor *d, uint16_t port,
			  const struct probe *p)
{
	const struct nfsc_url *u = &d->t.url;

	if (p->other)
		doctor_note(d, BAD, "mount", "MOUNT at TCP port %u: versions "
			    "%u to %u, not 3", port, p->low, p->high);
	else
		doctor_note(d, BAD, "mount", "MOUNT at %s: %s", u->mountport ?
			    "the port given" : port == d->told_mount ?
			    "the port that rpcbind names" : "the port of NFS",
			    doctor_reason(p->err));
	if (!u->mountport && !d->told_mount && d->bind_err == -ETIMEDOUT)
		doctor_mend(d, TOOL_UNREACHABLE, "let TCP port 111 of %s, that "
			    "of rpcbind, through the firewall, or name the "
			    "port of MOUNT: --mountport N", u->host);
	else
		mend_named(d, port, p);
}

/* ---- the exports */

/* The exports, or only such as have the path, and to whom they are exported.
 * Returns how many have it; -1: the server does not say. */
static int note_exports(struct doctor *d, bool *here)
{
	struct nfsc_export *list = NULL, *e;
	int err = nfsc_exports(&d->t.url, &d->t.o->config, &list), any = 0;

	*here = false;
	if (err < 0) {
		doctor_note(d, FACT, "exports", "the server does not list "
			    "them: %s", doctor_reason(err));
		return -1;
	}
	for (e = list; e; e = e->next)
		if (d->alone || tool_holds(e->dir, d->t.url.path)) {
			doctor_note(d, FACT, "exports", "%s to %s", e->dir,
				    e->who[0] ? e->who : "everyone");
			*here |= strcmp(e->dir, d->t.url.path) == 0;
			any++;
		}
	for (e = list; e && any == 0; e = e->next)
		doctor_note(d, FACT, "exports", "%s (which is not above %s)",
			    e->dir, d->t.url.path);
	if (!list)
		doctor_note(d, FACT, "exports", "none");
	if (list)
		snprintf(d->next, sizeof(d->next), "%s", list->dir);
	nfsc_exports_free(list);
	return any;
}

static void mend_denied(struct doctor *d, int holders, bool here)
{
	const struct nfsc_url *u = &d->t.url;
	uint32_t status = d->t.mount.status;
	bool denied = status == NFS_ACCES || status == NFS_PERM;

	if (holders == 0 && !d->next[0])
		doctor_mend(d, TOOL_FAILED, "export a directory on %s: it "
			    "exports nothing", u->host);
	else if (denied && holders != 0)
		doctor_mend(d, TOOL_FAILED, "export %s to this machine: see "
			    "the exports file of %s%s", u->path, u->host,
			    geteuid() ? ", which may want `insecure` there for "
			    "users other than root" : "");
	else if (status == NFS_NOENT && here)
		doctor_mend(d, TOOL_FAILED, "make the directory %s on %s: it "
			    "is exported, and is not there", u->path, u->host);
	else if (denied || status == NFS_NOENT)
		doctor_mend(d, TOOL_FAILED, "name a directory that is there "
			    "and exported: `gannet-nfs exports %s` lists them",
			    u->host);
	else if (status == NFS_NOTDIR)
		doctor_mend(d, TOOL_FAILED, "name a directory: %s of %s is "
			    "none", u->path, u->host);
	else
		doctor_mend(d, TOOL_FAILED, "find out in the log of %s why it "
			    "can't mount %s (%s)", u->host, u->path,
			    nfsc_mount_status_name(status));
}

static void mend_call(struct doctor *d, int err)
{
	const struct nfsc_url *u = &d->t.url;

	if (err == -EPERM)
		doctor_mend(d, TOOL_UNREACHABLE, "let %s take AUTH_SYS for %s "
			    "(sec=sys)", u->host, u->path);
	else if (err == -ETIME)
		doctor_mend(d, TOOL_UNREACHABLE, "wait, and try again; if it "
			    "goes on, find out in the log of %s why the file "
			    "system of %s does not answer", u->host, u->path);
	else
		doctor_mend(d, TOOL_UNREACHABLE, "find out in the log of %s "
			    "why its MOUNT service (mountd) fails", u->host);
}

/* A URL of the first export is to be examined next, with the port of MOUNT that
 * was given, or 0. */
static void name_next(struct doctor *d, uint16_t mountport)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ/._-+,:@=";
	char dir[NFS_PATH_MAX], port[16] = "", mount[32] = "";
	const struct nfsc_url *u = &d->t.url;
	bool six = strchr(u->host, ':');

	snprintf(dir, sizeof(dir), "%.*s", NFS_PATH_MAX - 1, d->next);
	/* The server chose it: no character of it may have a special meaning,
	 * to a shell or in a URL. */
	if (dir[strspn(dir, plain)]) {
		snprintf(d->next, sizeof(d->next), "gannet-nfs exports %s",
			 u->host);
		return;
	}
	if (u->port)
		snprintf(port, sizeof(port), ":%u", u->port);
	if (mountport)
		snprintf(mount, sizeof(mount), "?mountport=%u", mountport);
	snprintf(d->next, sizeof(d->next), "gannet-nfs doctor %s%s%s%s%s%s%s%s",
		 port[0] || mount[0] ? "tcp://" : "", six ? "[" : "", u->host,
		 six ? "]" : "", port, port[0] || mount[0] ? "" : ":",
		 dir, mount);
}

/* False: no call from here is taken. */
static bool note_flavors(struct doctor *d)
{
	const struct nfsc_sec *sec = d->t.o->config.sec;
	const struct nfsc_mount *m = &d->t.mount;
	char list[NFS_FLAVORS_TEXT];
	const char *first;

	nfsc_flavors_text(m, list);
	if (nfsc_takes(m, &d->t.o->config)) {
		doctor_note(d, FACT, "flavors", "%s%s", m->nflavors ? "sec=" :
			    "the server lists none", list);
		return true;
	}
	first = nfsc_flavor_name(m->flavors[0]);
	doctor_note(d, BAD, "flavors", "only sec=%s is taken, and calls from "
		    "here have sec=%s", list, sec ?
		    nfsc_flavor_name(sec->flavor) : "sys");
	if (sec)
		doctor_mend(d, TOOL_FAILED, "name one that %s takes for %s: "
			    "--sec=%s", d->t.url.host, m->dir,
			    first ? first : "sys");
	doctor_mend(d, TOOL_FAILED, "mount it with Kerberos: mount -t nfs -o "
		    "vers=3,sec=%s, for which this machine needs a key "
		    "(/etc/krb5.keytab) and rpc.gssd; or let %s take sec=sys "
		    "for %s", first ? first : "krb5", d->t.url.host, m->dir);
	return false;
}

bool doctor_mount(struct doctor *d)
{
	struct nfsc_url *u = &d->t.url;
	uint16_t given = u->mountport, port;
	struct probe why = { 0 };
	bool here;
	int err, holders;

	if (!find_mount_port(d, &port, &why)) {
		note_no_mount(d, port, &why);
		return false;
	}
	u->mountport = port;
	err = nfsc_mount(u, &d->t.o->config, &d->t.mount);
	/* A mount learns it from rpcbind as well. */
	d->t.mount.port = given || port != d->told_mount ? port : 0;
	if (err < 0 && err != -EACCES) {
		doctor_note(d, BAD, "mount", "MOUNT%s: %s", given ?
			    " at the port given" : "", doctor_reason(err));
		mend_call(d, err);
		return false;
	}
	holders = note_exports(d, &here);
	if (err == 0) {
		d->next[0] = '\0';
		d->mounted = true;
		doctor_note(d, GOOD, "mount", "%s may be mounted: a handle of "
			    "%u bytes", d->t.mount.dir, d->t.mount.root.len);
		return note_flavors(d);
	}
	if (d->alone && holders > 0) {
		name_next(d, given);
		return false;
	}
	doctor_note(d, BAD, "mount", "%s is refused (%s: %s)", u->path,
		    nfsc_mount_status_name(d->t.mount.status),
		    nfsc_status_words(d->t.mount.status));
	mend_denied(d, holders, here);
	return false;
}
