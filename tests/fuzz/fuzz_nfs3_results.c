/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of NFS version 3, of any bytes, as a server can send them to
 * gannet-nfs.  The first byte selects the procedure, the second where the rest
 * is cut in two segments.  Every byte of the result is read, so a sanitizer
 * finds one that is out of bounds.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/nfs/nfs.h"
#include "lib/util.h"

enum { ROOM = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static volatile uint8_t sink;

static void read_all(const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		sink ^= p[i];
}

static void check_handle(const struct nfs3_fh *fh)
{
	if (fh->len > NFS3_FHSIZE)
		abort();
	read_all(fh->data, fh->len);
}

/* Checks the results, and the entries after the first of a listing. */
static void check_results(struct xdr_in x, enum nfs3_procnum proc)
{
	bool plus = proc == NFSPROC3_READDIRPLUS;
	union nfs3_res r = { 0 };
	struct nfs3_entry e = { 0 };

	if (!nfs3_get_res(&x, proc, &r) || r.status != NFS3_OK)
		return;
	if (proc == NFSPROC3_LOOKUP)
		check_handle(&r.lookup.fh);
	else if (proc == NFSPROC3_WRITE && r.write.committed > VFS_FILE_SYNC)
		abort();
	else if (proc == NFSPROC3_CREATE || proc == NFSPROC3_MKDIR ||
		 proc == NFSPROC3_SYMLINK || proc == NFSPROC3_MKNOD)
		check_handle(&r.create.fh);
	if (proc != NFSPROC3_READDIR && !plus)
		return;
	while (nfs3_get_entry(&x, plus, &e)) {
		read_all(e.name.data, e.name.len);
		check_handle(&e.fh);
	}
}

/* The tool takes at most as many bytes as it requested. */
static void check_op(struct xdr_in x, enum nfsc_kind kind)
{
	struct nfsc_op op = { .kind = kind, .count = ROOM,
			      .data = malloc(ROOM) };
	bool bytes = kind == NFS_OP_READ || kind == NFS_OP_WRITE ||
		     kind == NFS_OP_READLINK;
	int err = nfsc_get_results(&x, &op);

	if (err == 0 && op.status == 0 && bytes && op.got > ROOM)
		abort();
	if (err == 0 && op.status == 0 && kind == NFS_OP_READLINK)
		read_all(op.data, op.got);
	check_handle(&op.obj);
	for (const struct nfsc_entry *e = op.entries; e; e = e->next) {
		read_all(e->name, e->len + 1);
		check_handle(&e->fh);
	}
	if (err < 0 && op.entries)
		abort();
	nfsc_entries_free(op.entries);
	free(op.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	enum nfs3_procnum proc;
	struct xdr_seg segs[2];
	struct xdr_in x;
	uint32_t cut;

	if (len < 2 || len > 1 << 20)
		return 0;
	proc = data[0] % (NFS3_NPROC - 1) + 1;
	cut = MIN((uint32_t)data[1] * 4, (uint32_t)(len - 2) & ~3u);
	data += 2;
	len -= 2;
	segs[0] = (struct xdr_seg){ data, cut };
	segs[1] = (struct xdr_seg){ data + cut, (uint32_t)len - cut };
	xdr_in_init_segs(&x, segs, 2);
	check_results(x, proc);
	for (unsigned kind = 0; kind < NFS_NOPS; kind++)
		if (nfsc_procedure(kind) == proc)
			check_op(x, kind);
	return 0;
}
