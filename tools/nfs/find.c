/* SPDX-License-Identifier: BSD-2-Clause */
/* find - from a URL to an object: connect, mount, walk the path. */
#include "tools/nfs/tool.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "tools/nfs/say.h"
#include "tools/nfs/why.h"

enum { MAX_LINKS = 40, NFS_PORT = 2049, NFS_RDMA_PORT = 20049,
       NAMED_MAX = 8 };

static const char *reason(int err)
{
	if (err == -ENOKEY)
		return nfsc_why();
	if (err == -EACCES)
		return "the server denies the call: it can demand TLS (--tls, "
		       "--tls-cert) or Kerberos (--sec)";
	if (err == -EPROTO)
		return "what came is wrong: it was perhaps changed on the way";
	if (err == -EBADMSG)
		return "what came is no reply of an NFS server (is the port "
		       "right?)";
	return strerror(-err);
}

int tool_reason(int err, uint32_t status)
{
	if (err < 0)
		fprintf(say_stream(), ": %s\n", reason(err));
	else
		fprintf(say_stream(), ": %s (%s)\n", nfsc_status_words(status),
			nfsc_status_name(status));
	switch (err) {
	case -ENOTCONN: case -ECONNREFUSED: case -ECONNRESET: case -ETIMEDOUT:
	case -EHOSTUNREACH: case -ENETUNREACH: case -ENODEV: case -ECANCELED:
	case -EPROTONOSUPPORT: case -EBADMSG: case -EPROTO:
		return TOOL_UNREACHABLE;
	default:
		return TOOL_FAILED;
	}
}

int tool_complain(const char *what, int err, uint32_t status)
{
	fputs("gannet-nfs: ", say_stream());
	tool_put_name(say_stream(), what);
	return tool_reason(err, status);
}

int tool_reason_here(int err)
{
	fprintf(say_stream(), ": %s\n", strerror(-err));
	return TOOL_FAILED;
}

int tool_complain_here(const char *what, int err)
{
	fputs("gannet-nfs: ", say_stream());
	tool_put_name(say_stream(), what);
	return tool_reason_here(err);
}

/* The port of NFS, and its answer. */
static int complain_port(const struct tool *t, int err)
{
	const struct nfsc_url *u = &t->url;
	bool tcp = u->transport == NFS_TCP;
	const char *hint = "";

	if (err == -ECONNREFUSED)
		hint = ": nothing listens there";
	else if (err == -ETIMEDOUT)
		hint = ": no answer at all, as from behind a firewall";
	fprintf(stderr, "gannet-nfs: %s: NFS at %s port %u of %s: %s%s\n",
		t->text, tcp ? "TCP" : "RDMA",
		u->port ? u->port : tcp ? NFS_PORT : NFS_RDMA_PORT, u->host,
		reason(err), hint);
	return TOOL_UNREACHABLE;
}

static int open_session(struct tool *t)
{
	struct nfsc_op op = { .kind = NFS_OP_FSINFO };
	uint64_t start;
	int err;

	/* As mount.nfs: ask rpcbind first, unless the user names MOUNT's port,
	 * perhaps because rpcbind can't be reached. */
	if (!t->url.mountport)
		nfsc_find_port(&t->url, &t->o->config);
	err = nfsc_session_open(&t->url, &t->o->config, &t->s);
	if (err < 0 && t->url.mountport &&
	    nfsc_find_port(&t->url, &t->o->config))
		err = nfsc_session_open(&t->url, &t->o->config, &t->s);
	if (err == -ENODEV) {
		fprintf(stderr, "gannet-nfs: %s: there is no RDMA device; "
			"rdma+iwarp:// needs none\n", t->text);
		return TOOL_UNREACHABLE;
	}
	if (err == -ENOKEY)
		return tool_complain(t->text, err, 0);
	if (err < 0)
		return complain_port(t, err);
	op.fh = t->mount.root;
	start = clock_ns();
	if (session_do(t->s, &op) < 0 || op.status != 0) {
		err = tool_complain(t->text, op.err, op.status);
		session_close(t->s);
		return err;
	}
	t->rtt_us = (clock_ns() - start) / 1000;
	t->limits = op.limits;
	return TOOL_OK;
}

static bool host_is_known(const struct tool *t)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	int err = getaddrinfo(t->url.host, NULL, &hints, &list);

	if (err == 0) {
		freeaddrinfo(list);
		return true;
	}
	fprintf(stderr, "gannet-nfs: %s: host '%s': %s\n", t->text,
		t->url.host, gai_strerror(err));
	return false;
}

/* Where MOUNT was looked for, and what helps. */
static void complain_unreachable(const struct tool *t, int err)
{
	const struct nfsc_url *u = &t->url;
	char port[24] = "";

	if (err == -ETIME) {
		fprintf(stderr, "gannet-nfs: %s: the MOUNT service does not "
			"answer for %s: its file system may be away\n",
			t->text, u->path);
		return;
	}
	fprintf(stderr, "gannet-nfs: %s: cannot reach the MOUNT service: %s",
		t->text, reason(err));
	if (err == -EPERM)
		fputs(": it refuses AUTH_SYS, or a call from this port",
		      stderr);
	if (u->transport == NFS_TCP && u->port)
		snprintf(port, sizeof(port), "port %u", u->port);
	else
		snprintf(port, sizeof(port), "port %u", NFS_PORT);
	if (!u->mountport && err != -ETIMEDOUT)
		fprintf(stderr, " (asked were rpcbind and %s; "
			"?mountport=N names its port)", port);
	else if (!u->mountport)
		fputs(" (?mountport=N names its port)", stderr);
	putc('\n', stderr);
}

bool tool_holds(const char *dir, const char *path)
{
	size_t len = strlen(dir);

	while (len > 0 && dir[len - 1] == '/')
		len--;
	return strncmp(dir, path, len) == 0 &&
	       (path[len] == '/' || path[len] == '\0');
}

/* Names the server's exports, if none of them has the path. */
static bool name_exports(const struct tool *t)
{
	struct nfsc_export *list = NULL, *e;
	unsigned n = 0;

	if (nfsc_exports(&t->url, &t->o->config, &list) < 0)
		return false;
	for (e = list; e && !tool_holds(e->dir, t->url.path); e = e->next)
		n++;
	if (e) {
		nfsc_exports_free(list);
		return false;
	}
	fprintf(stderr, "gannet-nfs: %s: %s exports no ", t->text,
		t->url.host);
	tool_put_name(stderr, t->url.path);
	fprintf(stderr, " (%s: %s); %s", nfsc_mount_status_name(
		t->mount.status), nfsc_status_words(t->mount.status),
		n > 0 ? "what it exports:" : "it exports nothing");
	for (e = list, n = 0; e && n < NAMED_MAX; e = e->next, n++) {
		putc(' ', stderr);
		tool_put_name(stderr, e->dir);
	}
	fputs(e ? " ...\n" : "\n", stderr);
	nfsc_exports_free(list);
	return true;
}

static int complain_refused(const struct tool *t)
{
	uint32_t status = t->mount.status;

	if (name_exports(t))
		return TOOL_FAILED;
	fprintf(stderr, "gannet-nfs: %s: %s ", t->text, t->url.host);
	fputs(status == NFS_ACCES || status == 1 ? "refuses to export " :
	      "can not mount ", stderr);
	tool_put_name(stderr, t->url.path);
	fprintf(stderr, "%s (%s: %s)%s\n",
		status == NFS_ACCES || status == 1 ? " to this machine" : "",
		nfsc_mount_status_name(status), nfsc_status_words(status),
		status == NFS_ACCES || status == 1 ?
		": see its exports file" : "");
	return TOOL_FAILED;
}

static int complain_flavors(const struct tool *t)
{
	const struct nfsc_sec *sec = t->o->config.sec;
	char list[NFS_FLAVORS_TEXT];

	nfsc_flavors_text(&t->mount, list);
	fprintf(stderr, "gannet-nfs: %s: %s takes only sec=%s for ", t->text,
		t->url.host, list);
	tool_put_name(stderr, t->mount.dir);
	fprintf(stderr, ", and calls from here have sec=%s%s\n", sec ?
		nfsc_flavor_name(sec->flavor) : "sys", sec ? "" :
		": --sec= names another");
	return TOOL_FAILED;
}

int tool_parse(struct tool *t, const char *url, const struct tool_options *o)
{
	const char *why;

	memset(t, 0, sizeof(*t));
	t->o = o;
	t->text = url;
	if (nfsc_url_parse(url, &t->url, &why) < 0) {
		fprintf(stderr, "gannet-nfs: %s: not a URL: %s\n", url, why);
		return TOOL_USAGE;
	}
	if (o->config.tls && t->url.transport != NFS_TCP) {
		fprintf(stderr, "gannet-nfs: %s: RDMA has no TLS: "
			"--sec=krb5p protects it\n", url);
		return TOOL_USAGE;
	}
	if (!t->url.mountport)
		t->url.mountport = o->mountport;
	return TOOL_OK;
}

int tool_reach(const struct tool *t, int err)
{
	if (err == 0 || (err == -EHOSTUNREACH && !host_is_known(t)))
		return err == 0 ? TOOL_OK : TOOL_UNREACHABLE;
	if (err == -ENOKEY)
		return tool_complain(t->text, err, 0);
	complain_unreachable(t, err);
	return TOOL_UNREACHABLE;
}

static int mount_url(struct tool *t)
{
	int err;

	if (!host_is_known(t))
		return TOOL_UNREACHABLE;
	err = nfsc_mount(&t->url, &t->o->config, &t->mount);
	if (err == -EACCES)
		return complain_refused(t);
	err = tool_reach(t, err);
	if (err != TOOL_OK)
		return err;
	err = nfsc_takes(&t->mount, &t->o->config) ? open_session(t) :
					  complain_flavors(t);
	if (err != TOOL_OK)
		nfsc_unmount(&t->url, &t->o->config, &t->mount);
	return err;
}

int tool_open(struct tool *t, const char *url, const struct tool_options *o)
{
	int err = tool_parse(t, url, o);

	return err == TOOL_OK ? mount_url(t) : err;
}

int tool_open_above(struct tool *t, const char *url,
		    const struct tool_options *o, struct tool_object *dir)
{
	char name[NFS_PATH_MAX], *slash;
	int err = tool_parse(t, url, o);

	if (err != TOOL_OK)
		return err;
	slash = strrchr(t->url.path, '/');
	snprintf(name, sizeof(name), "%s", slash + 1);
	if (strlen(name) > NFS_NAME_MAX)
		return tool_complain(url, -ENAMETOOLONG, 0);
	if (!nfsc_name_is_good(name, (uint32_t)strlen(name))) {
		fprintf(stderr, "gannet-nfs: %s: its last part is no name\n",
			url);
		return TOOL_USAGE;
	}
	slash[slash == t->url.path] = '\0';
	err = mount_url(t);
	if (err != TOOL_OK)
		return err;
	err = tool_find(t, dir, true, false);
	if (err == TOOL_OK && dir->attr.attr.type != VFS_DIR)
		err = tool_complain(url, 0, NFS_NOTDIR);
	memcpy(dir->name, name, strlen(name) + 1);
	if (err != TOOL_OK)
		tool_close(t);
	return err;
}

int tool_connect_above(struct tool *t)
{
	struct tool_object at;
	char *rest = t->mount.rest;
	int err = mount_url(t);
	size_t len;

	if (err != TOOL_OK || rest[0])
		return err;
	err = tool_find(t, &at, false, false);
	if (err == TOOL_OK && at.attr.attr.type == VFS_DIR)
		return TOOL_OK;
	tool_close(t);
	if (err != TOOL_OK)
		return err;
	err = tool_open_above(t, t->text, t->o, &at);
	if (err != TOOL_OK)
		return err;
	len = strlen(rest);
	snprintf(rest + len, sizeof(t->mount.rest) - len, "%s%s",
		 len > 0 ? "/" : "", at.name);
	return TOOL_OK;
}

void tool_close(struct tool *t)
{
	session_close(t->s);
	nfsc_unmount(&t->url, &t->o->config, &t->mount);
}

int tool_lookup(struct tool *t, const struct nfs3_fh *dir, const char *name,
		struct tool_object *obj)
{
	struct nfsc_op op = { .kind = NFS_OP_LOOKUP, .fh = *dir, .name = name };

	obj->parent = *dir;
	snprintf(obj->name, sizeof(obj->name), "%s", name);
	obj->fh.len = 0;
	if (session_do(t->s, &op) < 0)
		return tool_complain(t->text, op.err, 0);
	if (op.status == NFS_NOENT)
		return TOOL_OK;
	if (op.status != 0)
		return tool_complain(t->text, 0, op.status);
	obj->fh = op.obj;
	obj->attr = op.attr;
	if (op.attr.has)
		return TOOL_OK;
	op = (struct nfsc_op){ .kind = NFS_OP_GETATTR, .fh = obj->fh };
	if (session_do(t->s, &op) < 0 || op.status != 0)
		return tool_complain(t->text, op.err, op.status);
	obj->attr = op.attr;
	return TOOL_OK;
}

static int get_root(struct tool *t, struct tool_object *obj)
{
	struct nfsc_op op = { .kind = NFS_OP_GETATTR, .fh = t->mount.root };
	const char *slash = strrchr(t->mount.dir, '/');

	if (session_do(t->s, &op) < 0 || op.status != 0)
		return tool_complain(t->text, op.err, op.status);
	obj->fh = t->mount.root;
	obj->attr = op.attr;
	snprintf(obj->name, sizeof(obj->name), "%.*s", NFS_NAME_MAX,
		 slash ? slash + 1 : t->mount.dir);
	return TOOL_OK;
}

/* Puts the link's target before the rest of the path. */
static int follow_link(struct tool *t, const struct tool_object *link,
		       char *rest)
{
	char target[NFS_PATH_MAX], whole[NFS_PATH_MAX];
	struct nfsc_op op = {
		.kind = NFS_OP_READLINK, .fh = link->fh, .data = target,
		.count = sizeof(target) - 1,
	};
	int n;

	if (session_do(t->s, &op) < 0 || op.status != 0)
		return tool_complain(t->text, op.err, op.status);
	target[op.got] = '\0';
	if (target[0] == '/') {
		fprintf(stderr, "gannet-nfs: %s: ", t->text);
		tool_put_name(stderr, link->name);
		fputs(" is a symbolic link to ", stderr);
		tool_put_name(stderr, target);
		fputs(", which only a mounted client can follow\n", stderr);
		return TOOL_FAILED;
	}
	n = snprintf(whole, sizeof(whole), "%s/%s", target, rest);
	if (n >= (int)sizeof(whole))
		return tool_complain(t->text, -ENAMETOOLONG, 0);
	memcpy(rest, whole, (size_t)n + 1);
	return TOOL_OK;
}

/* Removes the first component of @rest; false: none is left. */
static bool next_name(char *rest, char name[NFS_PATH_MAX])
{
	size_t skip = strspn(rest, "/"), len = strcspn(rest + skip, "/");

	memcpy(name, rest + skip, len);
	name[len] = '\0';
	len += skip;
	len += strspn(rest + len, "/");
	memmove(rest, rest + len, strlen(rest + len) + 1);
	return name[0] != '\0';
}

int tool_find(struct tool *t, struct tool_object *obj, bool follow,
	      bool may_miss)
{
	char rest[NFS_PATH_MAX], name[NFS_PATH_MAX];
	struct nfs3_fh dir;
	int err, links = 0;

	memset(obj, 0, sizeof(*obj));
	memcpy(rest, t->mount.rest, sizeof(rest));
	err = get_root(t, obj);
	while (err == TOOL_OK && next_name(rest, name)) {
		bool last = rest[0] == '\0';

		if (strlen(name) > NFS_NAME_MAX)
			return tool_complain(t->text, -ENAMETOOLONG, 0);
		dir = obj->fh;
		err = tool_lookup(t, &dir, name, obj);
		if (err != TOOL_OK)
			break;
		if (obj->fh.len == 0)
			return last && may_miss ? TOOL_OK :
			       tool_complain(t->text, 0, NFS_NOENT);
		if (obj->attr.attr.type != VFS_LNK || (last && !follow))
			continue;
		if (++links > MAX_LINKS)
			return tool_complain(t->text, -ELOOP, 0);
		err = follow_link(t, obj, rest);
		obj->fh = dir;
	}
	return err;
}
