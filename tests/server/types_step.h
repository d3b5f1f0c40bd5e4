/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types_step - a change that a local process makes in one directory, and a
 * client in another.
 */
#pragma once

#include "tests/server/types_disk.h"

enum verb { MAKE, EDIT, LOOK, CUT, MODE, OWN, GROUP, TOUCH, DIRECTORY, FIFO,
	    SYMLINK, LINK, RENAME, REMOVE, RMDIR };

struct step {
	enum verb verb;
	int	 uid;
	const char *name, *to;
	unsigned n;		/* a mode, an id, a size */
};

/* Both return the status; step_local() the one that a server would give. */
int step_local(const struct step *s, const char *dir);
int step_client(const struct step *s, nfs_fh3 dir);
/* As text, for a failed test. */
const char *step_text(const struct step *s);
