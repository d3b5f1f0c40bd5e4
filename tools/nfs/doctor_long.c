/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor_long - calls and replies of RDMA that are too long to go inline.
 *
 * This client gives a symbolic link's target no separate chunk, in the call or
 * the reply.  So with the smallest inline size, the SYMLINK of a long target
 * has to go as a Position-Zero Read chunk, and the READLINK has to come through
 * the Reply chunk (RFC 8166 section 3.5).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/nfs/doctor.h"
#include "lib/clock.h"

enum {
	INLINE_MIN = 1024,
	TARGET = 1000,		/* some file systems take 1023 bytes */
};

static void fill_target(char target[TARGET + 1])
{
	for (int i = 0; i < TARGET; i++)
		target[i] = i % 50 == 49 ? '/' : (char)('a' + i % 26);
	target[TARGET] = '\0';
}

/* The reply can lack the handle. */
static void look_up(struct nfsc_session *s, const struct nfs3_fh *dir,
		    struct nfsc_op *op)
{
	const char *name = op->name;

	*op = (struct nfsc_op){ .kind = NFS_OP_LOOKUP, .fh = *dir,
				.name = name };
	session_do(s, op);
}

static void read_back(struct doctor *d, const char *way,
		      struct nfsc_session *s, struct nfsc_op *op,
		      const char *target)
{
	char got[TARGET + 1];

	*op = (struct nfsc_op){ .kind = NFS_OP_READLINK, .fh = op->obj,
				.data = got, .count = TARGET };
	if (session_do(s, op) < 0 || op->status != 0)
		doctor_failed(d, way, "a long reply (Reply chunk) failed",
			      op->err, op->status);
	else if (op->got != TARGET || memcmp(got, target, TARGET) != 0)
		doctor_note(d, POOR, way, "another link came back through a "
			    "Reply chunk than went through a Position-Zero "
			    "chunk");
	else
		doctor_note(d, GOOD, way, "a link of %d bytes went through a "
			    "Position-Zero chunk, and came back through a "
			    "Reply chunk", TARGET);
}

void doctor_long(struct doctor *d, const char *way, const struct tool *t,
		 const struct nfs3_fh *dir)
{
	struct nfsc_config config = t->o->config;
	char name[40], target[TARGET + 1];
	struct nfsc_op op = { .kind = NFS_OP_SYMLINK, .fh = *dir,
			      .name = name, .target = target };
	struct nfsc_session *s;
	int err;

	config.inline_size = INLINE_MIN;
	err = nfsc_session_open(&t->url, &config, &s);
	if (err < 0) {
		doctor_failed(d, way, "a connection with the smallest inline "
			      "size failed", err, 0);
		return;
	}
	fill_target(target);
	snprintf(name, sizeof(name), ".gannet-doctor-%08x-%u-link",
		 (unsigned)clock_ns(), (unsigned)getpid());
	if (session_do(s, &op) == 0 && op.status == 0 && op.obj.len == 0)
		look_up(s, dir, &op);
	if (op.err < 0)
		doctor_failed(d, way, "a long call (Position-Zero chunk) "
			      "failed", op.err, 0);
	else if (op.status != 0)
		doctor_note(d, FACT, way, "a long call was answered, but makes "
			    "no link: %s", nfsc_status_words(op.status));
	else
		read_back(d, way, s, &op, target);
	session_close(s);
	/* It can exist although its call failed. */
	op = (struct nfsc_op){ .kind = NFS_OP_REMOVE, .fh = *dir,
			       .name = name };
	if (session_do(t->s, &op) < 0 ||
	    (op.status != 0 && op.status != NFS_NOENT))
		doctor_note(d, POOR, way, "%s could not be removed", name);
}
