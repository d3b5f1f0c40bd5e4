/* SPDX-License-Identifier: BSD-2-Clause */
/* notify - tells the service manager the state of the daemon. */
#include "daemon/serve/serve.h"

#if HAVE_SYSTEMD
#include <systemd/sd-daemon.h>

#include "lib/clock.h"

static const char *const texts[] = {
	[NOTIFY_READY] = "READY=1",
	[NOTIFY_RELOADING] = "RELOADING=1",
	[NOTIFY_STOPPING] = "STOPPING=1",
	[NOTIFY_ALIVE] = "WATCHDOG=1",
	[NOTIFY_DRAINING] =
		("STATUS=Drained: takes no calls until gannetctl resume"),
	[NOTIFY_SERVING] = "STATUS=Serving",
};

void notify(enum notify_state state)
{
	/* A manager that reloads by a signal asks for the time (Type=
	 * notify-reload); others pass over it. */
	if (state == NOTIFY_RELOADING)
		sd_notifyf(0, "%s\nMONOTONIC_USEC=%llu", texts[state],
			   (unsigned long long)(clock_ns() / 1000));
	else
		sd_notify(0, texts[state]);
}

uint64_t notify_alive_ns(void)
{
	uint64_t us;

	return sd_watchdog_enabled(0, &us) > 0 ? us * 1000 / 2 : UINT64_MAX;
}
#else
void notify(enum notify_state state)
{
}

uint64_t notify_alive_ns(void)
{
	return UINT64_MAX;
}
#endif
