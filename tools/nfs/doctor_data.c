/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor_data - each transport in turn: the negotiated values, whether data
 * returns unchanged, and how long a call takes.
 *
 * Over RDMA a READ has a Write chunk, a READDIRPLUS offers a Reply chunk, a
 * WRITE has a Read chunk, doctor_long.c has the long messages, and the other
 * calls go without.  The data read must be the same over all transports; only
 * --write makes a file, which is removed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/nfs/device.h"
#include "tools/nfs/doctor.h"
#include "lib/clock.h"
#include "lib/util.h"

enum { ROUNDS = 51, SAMPLE = 64 << 10, SKEW_MAX = 5, WAYS = 3 };

static const struct way {
	const char	   *name;
	enum nfsc_transport transport;
	unsigned	    fabric;
} ways[WAYS] = {
	{ "tcp", NFS_TCP, 0 },
	{ "rdma+verbs", NFS_RDMA, GANNET_RPCRDMA_VERBS },
	{ "rdma+iwarp", NFS_RDMA, GANNET_RPCRDMA_IWARP },
};

/* The first transport's data, for the others to compare. */
struct sample {
	bool	 listed, read;
	size_t	 names;
	uint32_t len;
	uint8_t	 first[SAMPLE], now[SAMPLE];
};

/* Does the URL ask for this one?  rdma:// asks for a device if one exists. */
static bool is_asked_for(const struct doctor *d, const struct way *way,
			 bool device)
{
	const struct nfsc_url *u = &d->t.url;

	if (u->transport != way->transport)
		return false;
	if (way->transport == NFS_TCP || u->fabric == way->fabric)
		return true;
	return u->fabric == GANNET_RPCRDMA_ANY &&
	       device == (way->fabric == GANNET_RPCRDMA_VERBS);
}

static void note_closed(struct doctor *d, const struct way *way, bool asked,
			int err)
{
	uint16_t port = d->t.url.transport == way->transport && d->t.url.port ?
		d->t.url.port : way->transport == NFS_TCP ? 2049 : 20049;

	if (err == -ENODEV) {
		doctor_note(d, asked ? BAD : FACT, way->name, "this machine "
			    "has no RDMA device");
		if (asked)
			doctor_mend(d, TOOL_UNREACHABLE, "add an RDMA device "
				    "(`rdma link` lists them), or use "
				    "rdma+iwarp://");
		return;
	}
	doctor_note(d, asked ? BAD : FACT, way->name, "port %u: %s", port,
		    doctor_reason(err));
	if (!asked)
		return;
	if (err == -EACCES)
		doctor_mend(d, TOOL_FAILED, "let this machine in: the exports "
			    "file of %s may want `insecure` for users other "
			    "than root, or another flavor", d->t.url.host);
	else if (err == -ETIMEDOUT)
		doctor_mend(d, TOOL_UNREACHABLE, "let port %u of %s through "
			    "the firewall", port, d->t.url.host);
	else
		doctor_mend(d, TOOL_UNREACHABLE, "have %s serve NFS over %s at "
			    "port %u", d->t.url.host, way->name, port);
}

static int open_way(struct doctor *d, const struct way *way, struct tool *t)
{
	struct nfsc_op op = { .kind = NFS_OP_FSINFO, .fh = d->t.mount.root };
	int err;

	*t = d->t;
	if (t->url.transport != way->transport)
		t->url.port = 0;
	t->url.transport = way->transport;
	t->url.fabric = way->fabric;
	err = nfsc_session_open(&t->url, &t->o->config, &t->s);
	if (err < 0)
		return err;
	if (session_do(t->s, &op) < 0 || op.status != 0) {
		session_close(t->s);
		return op.err < 0 ? op.err : -EACCES;
	}
	t->limits = op.limits;
	return 0;
}

static void note_device(struct doctor *d, const struct way *way,
			const struct gannet_rpcrdma_info *i)
{
	struct device dev;

	if (!device_read("/sys/class", i->device, &i->local, &dev))
		return;
	doctor_note(d, FACT, way->name, "device %s, port %u: %s, %s, GID %u is "
		    "%s%s%s%s%s%s%s", i->device, dev.port, dev.state,
		    dev.layer, dev.index, dev.gid,
		    dev.type[0] ? ", " : "", dev.type,
		    dev.netdev[0] ? ", " : "", dev.netdev,
		    dev.mtu[0] ? " with MTU " : "", dev.mtu);
}

static void note_agreed(struct doctor *d, const struct way *way,
			struct tool *t)
{
	struct gannet_rpcrdma_info i = { .size = sizeof(i) };

	if (!t->s->ops->rdma)
		return;
	t->s->ops->rdma(t->s, &i);
	if (i.device[0] && way->fabric == GANNET_RPCRDMA_VERBS)
		note_device(d, way, &i);
	doctor_note(d, FACT, way->name, "%s; %u bytes inline out, %u in; %u "
		    "credits; %u RDMA Reads at a time", i.private_data ?
		    "private data of RFC 8797" : "no private data: the limits "
		    "of RFC 8166", i.send_inline, i.recv_inline, i.credits,
		    i.read_depth);
}

static int compare_us(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median of some NULL calls, in us; 0: one failed. */
static double time_calls(struct tool *t)
{
	double us[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		struct nfsc_op op = { .kind = NFS_OP_NULL };
		uint64_t start = clock_ns();

		if (session_do(t->s, &op) < 0)
			return 0;
		us[i] = (double)(clock_ns() - start) / 1e3;
	}
	qsort(us, ROUNDS, sizeof(*us), compare_us);
	return us[ROUNDS / 2];
}

/* ---- data */

/* Lists the directory, which finds a file to read. */
static void examine_listing(struct doctor *d, const struct way *way,
			    struct tool *t, const struct tool_object *dir,
			    struct sample *s)
{
	struct listing l;
	size_t n;
	int err;

	err = tool_list(t, &dir->fh, d->t.text, &l);
	if (err != TOOL_OK) {
		doctor_failed(d, way->name, "a listing of the directory failed",
			      err == TOOL_UNREACHABLE ? -EIO : 0, NFS_ACCES);
		listing_free(&l);
		return;
	}
	for (size_t i = 0; i < l.n && d->file.fh.len == 0; i++) {
		tool_look_up(t, &dir->fh, l.e[i]);
		if (l.e[i]->attr.has && l.e[i]->attr.attr.type == VFS_REG &&
		    l.e[i]->attr.attr.size > 0) {
			d->file.fh = l.e[i]->fh;
			d->file.attr = l.e[i]->attr;
		}
	}
	n = l.n;
	for (size_t i = 0; i < l.n; i++)
		n -= strcmp(l.e[i]->name, ".") == 0 ||
		     strcmp(l.e[i]->name, "..") == 0;
	listing_free(&l);
	if (s->listed && n != s->names)
		doctor_note(d, POOR, way->name, "lists %zu names, where %zu "
			    "were listed before", n, s->names);
	else
		doctor_note(d, GOOD, way->name, "%zu names listed%s", n,
			    way->transport == NFS_RDMA ?
			    ", with a Reply chunk offered" : "");
	s->listed = true;
	s->names = n;
}

/* As much as the server takes at a time. */
static uint32_t sample_len(uint32_t rtmax, uint32_t wtmax)
{
	uint32_t len = MIN(rtmax, wtmax);

	len = MAX(len, 512u);
	return MIN(len, (uint32_t)SAMPLE);
}

static void examine_read(struct doctor *d, const struct way *way,
			 struct tool *t, struct sample *s)
{
	struct nfsc_op op = { .kind = NFS_OP_READ, .fh = d->file.fh,
			      .data = s->now, .count = SAMPLE };

	if (d->file.fh.len == 0) {
		doctor_note(d, FACT, way->name, "no data was read: there is no "
			    "file (--write makes one)");
		return;
	}
	op.count = sample_len(t->limits.rtmax, t->limits.rtmax);
	if (session_do(t->s, &op) < 0 || op.status != 0) {
		doctor_failed(d, way->name, "a READ of a file failed", op.err,
			      op.status);
		return;
	}
	if (s->read && (s->len != op.got ||
			memcmp(s->first, s->now, op.got) != 0))
		doctor_note(d, POOR, way->name, "the file's data differ from "
			    "what was read before: it changed, or data are "
			    "damaged");
	else
		doctor_note(d, GOOD, way->name, "%u bytes read%s%s", op.got,
			    way->transport == NFS_RDMA ?
			    " through a Write chunk" : "", s->read ?
			    ", as before" : "");
	if (!s->read)
		memcpy(s->first, s->now, op.got);
	s->len = s->read ? s->len : op.got;
	s->read = true;
}

static void note_owner(struct doctor *d, const struct vfs_attr *a)
{
	uint32_t uid = d->t.o->config.uid;
	long long off = (long long)a->mtime.tv_sec - (long long)time(NULL);

	if (a->uid == uid)
		doctor_note(d, GOOD, "users", "a file made by user %u belongs "
			    "to user %u", uid, a->uid);
	else
		doctor_note(d, FACT, "users", "a file made by user %u belongs "
			    "to user %u: squashed", uid, a->uid);
	doctor_note(d, llabs(off) > SKEW_MAX ? POOR : GOOD, "clock",
		    "the server's is %lld s %s this machine's", llabs(off),
		    off < 0 ? "behind" : "before");
}

/* WRITE and READ of a file that is there; true if all came back. */
static bool round_trip(struct tool *t, struct nfsc_op *op, struct sample *s,
		       uint32_t seed)
{
	uint8_t *out = malloc(SAMPLE);
	uint32_t len = sample_len(t->limits.rtmax, t->limits.wtmax);
	bool same = false;
	struct nfs3_fh fh = op->obj;

	if (!out)
		return false;
	for (uint32_t i = 0; i < len; i++)
		out[i] = (uint8_t)((i + seed) * 2654435761u >> 24);
	*op = (struct nfsc_op){ .kind = NFS_OP_WRITE, .fh = fh, .data = out,
				.count = len, .stable = true };
	if (session_do(t->s, op) == 0 && op->status == 0 && op->got > 0) {
		len = op->got;
		*op = (struct nfsc_op){ .kind = NFS_OP_READ, .fh = fh,
					.data = s->now, .count = len };
		same = session_do(t->s, op) == 0 && op->status == 0 &&
		       op->got == len && memcmp(out, s->now, len) == 0;
	}
	free(out);
	return same;
}

/* False: no file can be made there. */
static bool examine_write(struct doctor *d, const struct way *way,
			  struct tool *t, const struct tool_object *dir,
			  struct sample *s)
{
	char name[40];
	struct nfsc_op op = { .kind = NFS_OP_CREATE, .fh = dir->fh,
			      .name = name, .mode = 0600 };
	struct tool_object made;

	snprintf(name, sizeof(name), ".gannet-doctor-%08x-%u",
		 (unsigned)clock_ns(), (unsigned)getpid());
	if (session_do(t->s, &op) < 0 || op.status != 0) {
		doctor_note(d, POOR, way->name, "no file can be made: %s",
			    op.err < 0 ? doctor_reason(op.err) :
			    nfsc_status_words(op.status));
		return false;
	}
	if (tool_lookup(t, &dir->fh, name, &made) == TOOL_OK &&
	    made.fh.len > 0) {
		if (!d->own_file)
			note_owner(d, &made.attr.attr);
		d->own_file = true;
		op.obj = made.fh;
		if (round_trip(t, &op, s, way->fabric + 1))
			doctor_note(d, GOOD, way->name, "what was written%s "
				    "came back", way->transport == NFS_RDMA ?
				    " through a Read chunk" : "");
		else if (op.err < 0 || op.status != 0)
			doctor_failed(d, way->name, "a WRITE or its READ "
				      "failed", op.err, op.status);
		else
			doctor_note(d, POOR, way->name, "other data came back "
				    "than were written");
	}
	op = (struct nfsc_op){ .kind = NFS_OP_REMOVE, .fh = dir->fh,
			       .name = name };
	if (session_do(t->s, &op) < 0 || op.status != 0)
		doctor_note(d, POOR, way->name, "%s could not be removed",
			    name);
	return true;
}

static void examine_data(struct doctor *d, const struct way *way,
			 struct tool *t, struct sample *s)
{
	struct tool_object obj;

	if (tool_find(t, &obj, true, false) != TOOL_OK) {
		doctor_note(d, POOR, way->name, "%s is not found this way",
			    d->t.url.path);
		return;
	}
	examine_listing(d, way, t, &obj, s);
	examine_read(d, way, t, s);
	if (!d->t.o->write)
		return;
	if (examine_write(d, way, t, &obj, s) && way->transport == NFS_RDMA)
		doctor_long(d, way->name, t, &obj.fh);
}

static void note_latency(struct doctor *d)
{
	double best = 0;

	for (int i = 1; i < WAYS; i++)
		if (d->us[i] > 0 && (best == 0 || d->us[i] < best))
			best = d->us[i];
	if (d->us[0] > 0 && best > 0)
		doctor_note(d, FACT, "latency", "a call takes %.0f us over "
			    "TCP, %.0f us over RDMA: %.2f of "
			    "it", d->us[0], best,
			    best / d->us[0]);
	else if (d->us[0] > 0 || best > 0)
		doctor_note(d, FACT, "latency", "a call takes %.0f us over %s",
			    best > 0 ? best : d->us[0],
			    best > 0 ? "RDMA" : "TCP");
}

void doctor_transports(struct doctor *d)
{
	struct sample *s = calloc(1, sizeof(*s));
	bool device = true;
	struct tool t;
	int err;

	/* RDMA has no TLS. */
	for (int i = 0; s && i < (d->t.o->config.tls ? 1 : WAYS); i++) {
		err = open_way(d, &ways[i], &t);
		if (err == -ENODEV)
			device = false;
		d->asked = is_asked_for(d, &ways[i], device);
		if (err < 0) {
			note_closed(d, &ways[i], d->asked, err);
			continue;
		}
		note_agreed(d, &ways[i], &t);
		examine_data(d, &ways[i], &t, s);
		d->us[i] = time_calls(&t);
		session_close(t.s);
	}
	free(s);
	note_latency(d);
}
