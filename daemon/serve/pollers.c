/* SPDX-License-Identifier: BSD-2-Clause */
/* pollers - the threads that own connections (doc/threads.md). */
#include "daemon/serve/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void may_change_cred(void *arg)
{
	thread_changes_cred = true;
}

int pollers_start(struct pollers *p, const char *name, unsigned n,
		  unsigned spin_us, bool changes_cred)
{
	char text[24];
	int err = 0;

	p->loops = calloc(n, sizeof(*p->loops));
	if (!p->loops)
		return -ENOMEM;
	while (p->n < n && !err) {
		snprintf(text, sizeof(text), "%s %u", name, p->n);
		err = loop_create(text, &p->loops[p->n]);
		if (!err)
			loop_spin(p->loops[p->n], spin_us);
		if (!err)
			err = loop_start(p->loops[p->n++]);
		if (!err && changes_cred)
			loop_call(p->loops[p->n - 1], may_change_cred, NULL);
	}
	return err;
}

void pollers_stop(struct pollers *p)
{
	for (unsigned i = 0; i < p->n; i++)
		loop_destroy(p->loops[i]);
	free(p->loops);
}
