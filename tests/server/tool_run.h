/* SPDX-License-Identifier: BSD-2-Clause */
/* tool_run - ./gannet-nfs as a separate process, on a ./gannetd. */
#pragma once

#include <stddef.h>

#include "tests/server/daemon_run.h"

enum way { WAY_TCP, WAY_IWARP, WAYS };

/* The server and its export. */
extern struct daemon_run d;
extern char export[128];
/* The beginning of the export's URLs. */
extern char base[256];
/* The tool's last output, and its file. */
extern char *out, *err;
extern char outfile[128];

void start(int way);
/* With these options of the export. */
void start_with(int way, const char *opts);
/* With this gannet.conf. */
void start_as(int way, const char *settings);
void start_both(int way, const char *opts, const char *settings);
void stop(void);
/* At this port, of a relay; 0: the server's. */
void set_base(int way, uint16_t port);

/* Runs it with the NULL-terminated @args and standard input from the file
 * @in, or from nowhere; returns its exit code. */
int tool(const char *const args[], const char *in);

#define TOOL(...) tool((const char *const[]){ __VA_ARGS__, NULL }, NULL)

/* The URL of a name in the export. */
const char *url(const char *name);
/* A path in the test's own directory, or in the export. */
const char *path(const char *dir, const char *name);

void make_file(const char *path, size_t size);
/* Asserts that two files hold the same. */
void same(const char *a, const char *b);
