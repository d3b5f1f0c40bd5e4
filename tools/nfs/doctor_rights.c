/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor_rights - from the mounted root to the path: from which port, as which
 * user, to which object. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/nfs/doctor.h"
#include "tools/nfs/why.h"
#include "lib/clock.h"
#include "lib/xdr.h"

enum {
	GETATTR = 1, NFS_PERM = 1, NFS_ROFS = 30, NFS_STALE = 70,
	NFS_BADHANDLE = 10001,
	MAY_READ = 1, MAY_LOOKUP = 2, MAY_MODIFY = 4,	/* RFC 1813 3.3.4 */
};

/* ---- from which port */

/* GETATTR of the root: 0, a status, or -errno. */
static int ask_root(struct doctor *d, uint16_t port, bool reserved)
{
	const struct rpc_procedure p = { RPC_NFS, 3, GETATTR };
	const struct rpc_procedure null = { RPC_NFS, 3, 0 };
	uint8_t args[NFS3_FHSIZE + 4];
	struct nfsc_wire *w;
	struct xdr_out out;
	struct xdr_in x;
	int ms = (int)d->t.o->config.connect_ms;
	int err = wire_dial(d->at, port, ms, reserved, &w);

	if (err < 0)
		return err;
	xdr_out_init(&out, args, sizeof(args));
	xdr_put_opaque(&out, d->t.mount.root.data, d->t.mount.root.len);
	err = wire_secure(w, &null, &d->t.o->config, d->t.url.host);
	if (err == 0)
		err = wire_call(w, &p, &d->t.o->config, args,
				(uint32_t)xdr_out_len(&out), ms, &x);
	if (err == 0) {
		err = (int)xdr_get_u32(&x);
		if (!xdr_ok(&x) || err < 0)
			err = -EBADMSG;
	}
	wire_close(w);
	return err;
}

/* The root's handle, or its file system, is bad.  A call that is denied might
 * have come from the wrong port. */
static bool is_bad_root(struct doctor *d, int status)
{
	const char *host = d->t.url.host, *dir = d->t.mount.dir;

	if (status <= 0 || status == NFS_ACCES || status == NFS_PERM)
		return false;
	doctor_note(d, BAD, "handle", "NFS at TCP port %u answers %s to the "
		    "handle that MOUNT gave", d->nfs_port,
		    nfsc_status_name((uint32_t)status));
	if (status == NFS_STALE || status == NFS_BADHANDLE)
		doctor_mend(d, TOOL_FAILED, "restart the NFS server and the "
			    "MOUNT service of %s: NFS does not know what MOUNT "
			    "gives out, as if each were of another server",
			    host);
	else if (status == NFS_JUKEBOX)
		doctor_mend(d, TOOL_FAILED, "wait, and try again; if it goes "
			    "on, find out in the log of %s why the file system "
			    "of %s does not answer", host, dir);
	else
		doctor_mend(d, TOOL_FAILED, "find out in the log of %s why it "
			    "mounts %s and then fails it", host, dir);
	return true;
}

/* The server has denied a call, of any port. */
static void mend_denied_call(struct doctor *d)
{
	const struct nfsc_tls *tls = d->t.o->config.tls;
	const struct nfsc_sec *sec = d->t.o->config.sec;
	const char *flavor = sec ? nfsc_flavor_name(sec->flavor) : "sys";
	const char *host = d->t.url.host, *dir = d->t.mount.dir;

	if (d->has_tls && (!tls || !tls->mutual))
		doctor_mend(d, TOOL_FAILED, "try %s: %s has TLS, and can "
			    "demand %s for %s; or let it take sec=%s there",
			    tls ? "--tls-cert and --tls-key" : "--tls", host,
			    tls ? "a certificate of this client "
			    "(xprtsec=mtls)" : "it (xprtsec=tls)", dir, flavor);
	else
		doctor_mend(d, TOOL_FAILED, "let %s take %s for %s (sec=%s)",
			    host, sec ? "Kerberos" : "AUTH_SYS", dir, flavor);
}

bool doctor_secure(struct doctor *d)
{
	int high, low;

	/* Without a context a server need not answer. */
	if (d->t.url.transport == NFS_RDMA || d->t.o->config.sec)
		return true;
	high = ask_root(d, d->nfs_port, false);
	if (is_bad_root(d, high))
		return false;
	if (high == 0) {
		doctor_note(d, GOOD, "ports", "calls from any port are taken "
			    "(insecure)");
		return true;
	}
	low = geteuid() == 0 ? ask_root(d, d->nfs_port, true) : -EPERM;
	if (low == 0) {
		doctor_note(d, GOOD, "ports", "only calls from ports below "
			    "1024 are taken (secure): those of a kernel's "
			    "mount are");
		return true;
	}
	if (geteuid() != 0) {
		doctor_note(d, POOR, "ports", "calls from ports above 1023 are "
			    "not taken (%s); root is needed to try others",
			    high > 0 ? nfsc_status_name((uint32_t)high) :
			    doctor_reason(high));
		return true;
	}
	if (is_bad_root(d, low))
		return false;
	doctor_note(d, BAD, "ports", "calls are taken from no port (%s)",
		    low > 0 ? nfsc_status_name((uint32_t)low) :
		    doctor_reason(low));
	if (low == -EACCES || low == -EPERM)
		mend_denied_call(d);
	else
		doctor_mend(d, TOOL_FAILED, "find out in the log of %s why it "
			    "mounts %s and then refuses it", d->t.url.host,
			    d->t.mount.dir);
	return false;
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

/* ---- the path */

/* Takes no link: such a path is left to tool_find().  0, a status, or -errno:
 * no answer came. */
static int walk_down(struct tool *t, struct tool_object *obj)
{
	char rest[NFS_PATH_MAX], *save = NULL, *name;
	struct nfsc_op op = { .kind = NFS_OP_GETATTR, .fh = t->mount.root };

	if (session_do(t->s, &op) < 0 || op.status != 0)
		return op.err < 0 ? op.err : (int)op.status;
	obj->fh = t->mount.root;
	obj->attr = op.attr;
	memcpy(rest, t->mount.rest, sizeof(rest));
	for (name = strtok_r(rest, "/", &save);
	     name && obj->attr.attr.type != VFS_LNK;
	     name = strtok_r(NULL, "/", &save)) {
		op = (struct nfsc_op){ .kind = NFS_OP_LOOKUP, .fh = obj->fh,
				       .name = name };
		if (session_do(t->s, &op) < 0 || op.status != 0)
			return op.err < 0 ? op.err : (int)op.status;
		obj->fh = op.obj;
		op = (struct nfsc_op){ .kind = NFS_OP_GETATTR,
				       .fh = obj->fh };
		if (session_do(t->s, &op) < 0 || op.status != 0)
			return op.err < 0 ? op.err : (int)op.status;
		obj->attr = op.attr;
	}
	if (obj->attr.attr.type == VFS_LNK &&
	    tool_find(t, obj, true, false) != TOOL_OK)
		return NFS_NOENT;
	return 0;
}

static void mend_squashed(struct doctor *d)
{
	doctor_mend(d, TOOL_FAILED, "give the export of %s no_root_squash, or "
		    "let others read it: root of this machine is squashed "
		    "there (root_squash)", d->t.url.path);
}

static void note_denied(struct doctor *d, const struct vfs_attr *a)
{
	unsigned uid = d->t.o->config.uid;

	doctor_note(d, BAD, "users", "user %u may not read %s (mode %04o of "
		    "user %u, group %u)", uid, d->t.url.path, a->mode & 07777,
		    a->uid, a->gid);
	if (uid == 0)
		mend_squashed(d);
	else
		doctor_mend(d, TOOL_FAILED, "let user %u read %s of %s: it has "
			    "mode %04o and belongs to user %u, group %u", uid,
			    d->t.url.path, d->t.url.host, a->mode & 07777,
			    a->uid, a->gid);
}

/*
 * ACCESS does not tell why.  To remove a name that is not there tells a
 * read-only export from a user who may not write; it changes nothing.
 */
static void note_writing(struct doctor *d, struct tool *t,
			 const struct tool_object *obj)
{
	unsigned uid = t->o->config.uid;
	char name[40];
	struct nfsc_op op = { .kind = NFS_OP_REMOVE, .fh = obj->fh,
			      .name = name };

	snprintf(name, sizeof(name), ".gannet-doctor-%08x-%u-none",
		 (unsigned)clock_ns(), (unsigned)getpid());
	if (session_do(t->s, &op) < 0)
		return;
	if (op.status == NFS_ROFS)
		doctor_note(d, FACT, "users", "%s is read-only: exported so "
			    "(ro), or its file system is", d->t.url.path);
	else if (uid == 0)
		doctor_note(d, POOR, "users", "root may read %s and not write "
			    "there: it is squashed (root_squash), unless the "
			    "export has no_root_squash", d->t.url.path);
	else
		doctor_note(d, FACT, "users", "user %u may read %s and not "
			    "write there (mode %04o of user %u, group %u)",
			    uid, d->t.url.path, obj->attr.attr.mode & 07777,
			    obj->attr.attr.uid, obj->attr.attr.gid);
}

static bool examine_rights(struct doctor *d, struct tool *t,
			   const struct tool_object *obj)
{
	struct nfsc_op op = {
		.kind = NFS_OP_ACCESS, .fh = obj->fh,
		.count = MAY_READ | MAY_LOOKUP | MAY_MODIFY,
	};

	if (session_do(t->s, &op) < 0 || op.status != 0)
		return true;	/* other calls tell more */
	if ((op.got & (MAY_READ | MAY_LOOKUP)) != (MAY_READ | MAY_LOOKUP)) {
		note_denied(d, &obj->attr.attr);
		return false;
	}
	if (op.got & MAY_MODIFY)
		doctor_note(d, GOOD, "users", "user %u may read and write %s",
			    t->o->config.uid, d->t.url.path);
	else
		note_writing(d, t, obj);
	return true;
}

static bool refuse_path(struct doctor *d, uint32_t status)
{
	unsigned uid = d->t.o->config.uid;

	if (status == NFS_NOENT || status == NFS_NOTDIR) {
		doctor_note(d, BAD, "path", "%s is not there", d->t.url.path);
		doctor_mend(d, TOOL_FAILED, "name a path that is there, below "
			    "%s", d->t.mount.dir);
	} else if (status == NFS_ACCES || status == NFS_PERM) {
		doctor_note(d, BAD, "path", "user %u may not look at %s", uid,
			    d->t.url.path);
		if (uid == 0)
			mend_squashed(d);
		doctor_mend(d, TOOL_FAILED, "let user %u search the "
			    "directories above %s of %s", uid, d->t.url.path,
			    d->t.url.host);
	} else {
		doctor_note(d, BAD, "path", "%s: %s", d->t.url.path,
			    nfsc_status_words(status));
		doctor_mend(d, TOOL_FAILED, "find out in the log of %s why it "
			    "fails %s", d->t.url.host, d->t.url.path);
	}
	return false;
}

static bool refuse_ticket(struct doctor *d)
{
	doctor_note(d, BAD, "ticket", "%s", nfsc_why());
	doctor_mend(d, TOOL_FAILED, "let this user have a ticket that %s "
		    "takes: %s", d->t.url.host, nfsc_why());
	return false;
}

bool doctor_path(struct doctor *d)
{
	struct tool t = d->t;
	struct tool_object obj = { 0 };
	bool good = true;
	int status;

	/* Where that fails, doctor_transports() says why. */
	status = nfsc_session_open(&t.url, &t.o->config, &t.s);
	if (status < 0)
		return status != -ENOKEY || refuse_ticket(d);
	if (t.o->config.sec)
		doctor_note(d, GOOD, "ticket", "%s proves itself, and takes "
			    "the ticket of this user: calls have sec=%s",
			    t.url.host,
			    nfsc_flavor_name(t.o->config.sec->flavor));
	status = walk_down(&t, &obj);
	if (status == NFS_ACCES && t.mount.rest[0] == '\0') {
		good = true;	/* the root: it is the call that is denied */
	} else if (status < 0) {
		doctor_note(d, BAD, "path", "%s: %s", t.url.path,
			    doctor_reason(status));
		if (status == -EACCES)
			mend_denied_call(d);
		doctor_mend(d, TOOL_UNREACHABLE, "wait, and try again; if it "
			    "goes on, find out in the log of %s why %s does "
			    "not answer", t.url.host, t.url.path);
		good = false;
	} else if (status != 0) {
		good = refuse_path(d, (uint32_t)status);
	} else if (obj.fh.len > 0 && obj.attr.attr.type != VFS_DIR) {
		doctor_note(d, BAD, "path", "%s is a file, and only "
			    "directories are mounted", t.url.path);
		doctor_mend(d, TOOL_FAILED, "name the directory that %s is in",
			    t.url.path);
		good = false;
	} else if (obj.fh.len > 0) {
		good = examine_rights(d, &t, &obj);
	}
	session_close(t.s);
	return good;
}
