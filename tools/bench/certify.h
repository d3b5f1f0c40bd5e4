/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * certify - the rows of a public acceptance list, as far as a client can judge
 * them: "NVIDIA DGXC Storage Acceptance Test for NCPs and CSPs".
 */
#pragma once

#include "tools/bench/bench.h"

enum judgement { PASSED, FAILED, NOT_JUDGED };

struct certify {
	struct target	target;		/* only its directory is used */
	struct nfsc_session *other;	/* a second client's */
	struct nfs3_fh	file;		/* that is written and read */
	FILE		*page;		/* or NULL */
	char		text[300];	/* of the row: found, or why not */
};

typedef enum judgement certify_judge(struct certify *c);

struct certify_row {
	const char    *id;
	const char    *requirement;
	certify_judge *judge;		/* NULL: no client can, */
	const char    *why;		/* for this reason */
};

/* Sets c->text, and returns @j. */
enum judgement certify_say(struct certify *c, enum judgement j,
			   const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* FAILED, for an operation that did: -errno @err, or if that is 0 the
 * status. */
enum judgement certify_error(struct certify *c, const char *what, int err,
			     uint32_t status);

certify_judge certify_write_read, certify_seen, certify_attributes,
	      certify_many_files, certify_many_dirs, certify_transport,
	      certify_locks;
