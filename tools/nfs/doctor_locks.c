/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor_locks - the lock manager (NLM version 4, of X/Open's XNFS). */
#include <errno.h>
#include <string.h>

#include "tools/nfs/doctor.h"
#include "wire/nlm.h"

enum { NLM_VERSION = 4 };

static int try_lock(struct doctor *d, uint32_t *status)
{
	const struct nfsc_config *c = &d->t.o->config;
	const struct nlm_args whole_file = {
		.name = xdr_text("gannet-nfs"), .oh = xdr_text("doctor"),
		.fh = { d->file.fh.data, d->file.fh.len }, .svid = 1,
	};
	const struct rpc_procedure null = { RPC_NLM, NLM_VERSION, 0 };
	struct nfsc_wire *w;
	int err = wire_dial(d->at, d->lock_port, (int)c->connect_ms, true, &w);

	if (err < 0)
		return err;
	err = wire_secure(w, &null, c, d->t.url.host);
	if (err == 0)
		err = wire_call_locks(w, c, NLM_TEST, &whole_file, status);
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
	else if (status == NLM4_GRANTED || status == NLM4_DENIED ||
		 status == NLM4_DENIED_GRACE_PERIOD)
		doctor_note(d, GOOD, "locks", "the lock manager tests a lock: "
			    "%s", status == NLM4_GRANTED ?
			    "it would be granted" :
			    status == NLM4_DENIED ? "somebody has it" :
			    "it waits for its clients after a start");
	else
		doctor_note(d, POOR, "locks", "the lock manager fails to test "
			    "a lock (status %u)", status);
}
