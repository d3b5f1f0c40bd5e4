/* SPDX-License-Identifier: BSD-2-Clause */
/* certify_locks - a lock of one client against another one's (NLM version 4,
 * of X/Open's XNFS). */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "tools/bench/certify.h"
#include "tools/nfs/wire.h"
#include "wire/nlm.h"

enum { NLM_VERSION = 4 };

struct locker {
	struct nfsc_wire *w;
	const struct certify *c;
	/* A name that no machine has: its locks conflict with no other
	 * client's. */
	char		  caller[32];
};

/* A call about the whole file, by an owner, who does not wait and is not
 * monitored.  0 with the status, or -errno. */
static int call_locks(struct locker *l, uint32_t procedure, const char *owner,
		      uint32_t *status)
{
	const struct nlm_args a = {
		.name = xdr_text(l->caller), .oh = xdr_text(owner),
		.fh = { l->c->file.data, l->c->file.len },
		.svid = (uint32_t)owner[0], .exclusive = true,
	};

	return wire_call_locks(l->w, &l->c->target.t->o->config, procedure, &a,
			       status);
}

static int open_locker(struct locker *l, struct certify *c)
{
	const struct tool *t = c->target.t;
	unsigned id = 0;
	int err;

	l->c = c;
	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) < 0)
		id = (unsigned)clock_ns();
	snprintf(l->caller, sizeof(l->caller), "gannet-nfs.%08x", id);
	/* A server can have it at MOUNT's port, unknown to rpcbind. */
	err = wire_open(t->url.host, t->mount.port, RPC_NLM, NLM_VERSION,
			&t->o->config, &l->w);
	return err < 0 && t->mount.port ?
	       wire_open(t->url.host, 0, RPC_NLM, NLM_VERSION,
			 &t->o->config, &l->w) : err;
}

static enum judgement judge_locks(struct certify *c, struct locker *l)
{
	uint32_t first = NLM4_DENIED, second = NLM4_GRANTED;
	uint32_t again = NLM4_DENIED, status;
	int err = call_locks(l, NLM_NM_LOCK, "a", &first);

	if (err == 0 && first == NLM4_DENIED_GRACE_PERIOD)
		return certify_say(c, NOT_JUDGED, "the lock manager waits for "
				   "its clients after a start: try again");
	if (err == 0 && first == NLM4_GRANTED)
		err = call_locks(l, NLM_NM_LOCK, "b", &second);
	if (err == 0 && first == NLM4_GRANTED)
		err = call_locks(l, NLM_UNLOCK, "a", &status);
	if (err == 0)
		err = call_locks(l, NLM_NM_LOCK, "b", &again);
	if (err == 0)
		err = call_locks(l, NLM_UNLOCK, "b", &status);
	if (err < 0)
		return certify_error(c, "the lock manager", err, 0);
	if (first != NLM4_GRANTED || again != NLM4_GRANTED)
		return certify_say(c, FAILED, "a lock of a file that nobody "
				   "has is refused (status %u)",
				   first != NLM4_GRANTED ? first : again);
	if (second == NLM4_GRANTED)
		return certify_say(c, FAILED, "two owners hold it at once");
	return certify_say(c, PASSED, "the second owner is refused until the "
			   "first one unlocks, by two owners of this machine");
}

enum judgement certify_locks(struct certify *c)
{
	struct locker l = { 0 };
	enum judgement j;
	int err = open_locker(&l, c);

	if (err < 0)
		return certify_say(c, NOT_JUDGED, "no lock manager was found: "
				   "%s", strerror(-err));
	j = judge_locks(c, &l);
	wire_close(l.w);
	return j;
}
