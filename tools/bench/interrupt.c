/* SPDX-License-Identifier: BSD-2-Clause */
/* interrupt - the signal that ends a run early. */
#include <signal.h>

#include "tools/bench/bench.h"

/* The user's signal; 0: none.  Its handler runs on any thread. */
static atomic_int interrupted;
static _Atomic uint64_t interrupted_at;

/* timeout(1) sends a signal to the program and to its group, so twice: a second
 * signal counts only if it comes late enough to be the user's. */
static void note_interruption(int sig)
{
	uint64_t now = clock_ns();

	if (!interrupted) {
		interrupted_at = now;
		interrupted = sig;
	} else if (now - interrupted_at > NS_PER_S / 2) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
}

bool bench_interrupted(void)
{
	return interrupted != 0;
}

/* A second signal ends the program at once. */
void bench_catch(void)
{
	const int all[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction sa = { .sa_handler = note_interruption };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		sigaction(all[i], &sa, NULL);
}

void bench_leave(void)
{
	if (!interrupted)
		return;
	fflush(stdout);
	signal(interrupted, SIG_DFL);
	raise(interrupted);
}
