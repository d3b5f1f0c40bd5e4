/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor_locks - the lock manager (NLM version 4, of X/Open's XNFS). */
#include <errno.h>
#include <string.h>

#include "tools/nfs/doctor.h"
#include "lib/xdr.h"

enum { NLM_VERSION = 4, NLM_TEST = 1, GRANTED = 0, DENIED = 1, GRACE = 4 };

static int try_lock(struct doctor *d, uint32_t *status)
{
	const struct rpc_procedure p = { RPC_NLM, NLM_VERSION, NLM_TEST };
	int ms = (int)d->t.o->config.connect_ms;
	uint8_t args[NFS_FH_MAX + 128];
	struct nfsc_wire *w;
	struct xdr_out out;
	struct xdr_in x;
	int err = wire_dial(d->at, d->lock_port, ms, true, &w);

	if (err < 0)
		return err;
	xdr_out_init(&out, args, sizeof(args));
	xdr_put_string(&out, "test");		/* cookie */
	xdr_put_bool(&out, false);		/* shared */
	xdr_put_string(&out, "gannet-nfs");	/* the caller */
	xdr_put_opaque(&out, d->file.fh.data, d->file.fh.len);
	xdr_put_string(&out, "doctor");		/* the owner */
	xdr_put_u32(&out, 1);
	xdr_put_u64(&out, 0);			/* the whole file */
	xdr_put_u64(&out, 0);
	err = wire_call(w, &p, &d->t.o->config, args,
			(uint32_t)xdr_out_len(&out), ms, &x);
	if (err == 0) {
		xdr_get_opaque(&x, 1024);
		*status = xdr_get_u32(&x);
		err = xdr_ok(&x) ? 0 : -EBADMSG;
	}
	wire_close(w);
	return err;
}

void doctor_locks(struct doctor *d)
{
	uint32_t status = 0;
	struct probe p;
	int err;

	if (d->lock_port == 0) {
		doctor_note(d, FACT, "locks", "no lock manager was found: "
			    "mount with nolock, and locks stay on each "
			    "machine");
		return;
	}
	doctor_probe(d, d->lock_port, RPC_NLM, NLM_VERSION, &p);
	if (p.err < 0) {
		doctor_note(d, POOR, "locks", "the lock manager at TCP port "
			    "%u: %s; locks of files will hang", d->lock_port,
			    doctor_reason(p.err));
		return;
	}
	if (d->file.fh.len == 0) {
		doctor_note(d, GOOD, "locks", "the lock manager answers at TCP "
			    "port %u", d->lock_port);
		return;
	}
	err = try_lock(d, &status);
	if (err < 0)
		doctor_note(d, POOR, "locks", "a test of a lock failed: %s",
			    doctor_reason(err));
	else if (status == GRANTED || status == DENIED || status == GRACE)
		doctor_note(d, GOOD, "locks", "the lock manager tests a lock: "
			    "%s", status == GRANTED ? "it would be granted" :
			    status == DENIED ? "somebody has it" :
			    "it waits for its clients after a start");
	else
		doctor_note(d, POOR, "locks", "the lock manager fails to test "
			    "a lock (status %u)", status);
}
