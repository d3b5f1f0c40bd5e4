/* SPDX-License-Identifier: BSD-2-Clause */
/* commands - the table of gannetctl's commands, in the order of the manual. */
#include "tools/ctl/ctl.h"

#include "tools/ctl/who.h"

#define COMMON \
	"  --socket PATH         its socket\n" \
	"  --json                print the answer as JSON\n"

static const struct ctl_command commands[] = {
	{ .name = "status", .arguments = "",
	  .help = "version, listeners, memory", .print = show_status },
	{ .name = "exports",
	  .arguments = "[add LINE | remove PATH [CLIENT] | set PATH "
	  "CLIENT(OPTIONS)]",
	  .help = "exports and their clients; or change them",
	  .words = ctl_exports },
	{ .name = "stats", .arguments = "",
	  .help = "calls of each procedure, and all counters",
	  .print = show_stats },
	{ .name = "waits", .arguments = "",
	  .help = "what calls wait for now", .print = show_waits },
	{ .name = "locks", .arguments = "[N | release ADDRESS [NAME]]",
	  .help = "locks, holders and waiters; or end a client's locks",
	  .words = ctl_locks },
	{ .name = "clients", .arguments = "[ADDRESS]",
	  .help = "clients, their transports and calls",
	  .options = COMMON, .run = run_clients },
	{ .name = "latency", .arguments = "[--by WHAT]",
	  .help = "how long calls took, by procedure, export or client",
	  .options =
	  "  --by WHAT             procedure (the default), export or client\n"
	  COMMON, .run = run_latency },
	{ .name = "top", .arguments = "[OPTION]...",
	  .help = "the busiest clients now, until q",
	  .options =
	  "  --by WHAT             client (the default), export or procedure\n"
	  "  --sort LETTER         o: operations, b: bytes, l: latency\n"
	  "  --interval SECONDS    between updates, 0.1 to 3600\n"
	  "  --count N             end after this many\n"
	  COMMON, .run = run_top },
	{ .name = "disconnect", .arguments = "ADDRESS",
	  .help = "end a client's connections", .print = show_disconnect },
	{ .name = "drain", .arguments = "[--timeout S]",
	  .help = "stop accepting calls, and wait for those in progress",
	  .options =
	  "  --timeout S           seconds to wait\n"
	  COMMON, .run = run_drain },
	{ .name = "resume", .arguments = "",
	  .help = "accept calls again, after drain", .print = show_drain },
	{ .name = "log-level", .arguments = "LEVEL",
	  .help = "err, warn, info or debug, until the next reload",
	  .print = show_level },
	{ .name = "reload", .arguments = "",
	  .help = "apply gannet.conf and the exports, as SIGHUP does",
	  .words = ctl_reload },
	{ .name = "reopen", .arguments = "",
	  .help = "open the audit's file again, after it was renamed",
	  .words = ctl_reopen },
	{ .name = "capture", .arguments = "-w FILE",
	  .help = "calls and replies, for Wireshark: capture --help",
	  .run = ctl_capture },
	{ .name = "trace", .arguments = "[OPTION]...",
	  .help = "how each call spends its time: trace --help",
	  .run = ctl_trace },
	{ .name = "support-bundle", .arguments = "[-w FILE]",
	  .help = "list, or write, what a question about it needs",
	  .options =
	  "  -w FILE               write it; without, it is only listed\n"
	  "  --socket PATH         its socket\n", .run = run_bundle },
};

const struct ctl_command *ctl_command(unsigned i)
{
	return i < sizeof(commands) / sizeof(commands[0]) ? &commands[i] :
	       NULL;
}
