/* SPDX-License-Identifier: BSD-2-Clause */
/* commands - the table of gannetctl's commands, in the order of the manual. */
#include "client/ctl/ctl.h"

#include "client/ctl/who.h"

static const struct ctl_command commands[] = {
	{ "status", "", "version, listeners, memory", show_status, NULL },
	{ "exports", "", "what is offered, to whom", show_exports, NULL },
	{ "stats", "", "calls of each procedure, and all counters", show_stats,
	  NULL },
	{ "waits", "", "what calls wait for now", show_waits, NULL },
	{ "clients", "[ADDRESS]", "who calls, over what, and how much", NULL,
	  run_clients },
	{ "latency", "[--by WHAT]", "how long calls took, by procedure, export "
	  "or client", NULL, run_latency },
	{ "top", "[OPTION]...", "who does how much now, until q", NULL,
	  run_top },
	{ "disconnect", "ADDRESS", "end a client's connections",
	  show_disconnect, NULL },
	{ "log-level", "LEVEL", "err, warn, info or debug, until the next "
	  "reload", show_level, NULL },
	{ "capture", "-w FILE", "calls and replies, for Wireshark: capture "
	  "--help", NULL, ctl_capture },
};

const struct ctl_command *ctl_command(unsigned i)
{
	return i < sizeof(commands) / sizeof(commands[0]) ? &commands[i] :
	       NULL;
}
