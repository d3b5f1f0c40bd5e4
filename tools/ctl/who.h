/* SPDX-License-Identifier: BSD-2-Clause */
/* who - gannetctl's commands about clients and their calls.  One thread. */
#pragma once

#include <stdint.h>

#include "tools/ctl/ctl.h"

/* Commands: clients [ADDRESS], latency, disconnect, top. */
int  run_clients(const struct ctl *c, int argc, char **argv);
int  run_latency(const struct ctl *c, int argc, char **argv);
void show_disconnect(const json_t *r);
int  run_top(const struct ctl *c, int argc, char **argv);

/* The word that the server accepts for --by @by, which can be abbreviated; or
 * NULL after a message. */
const char *who_by(const char *by);

/* Short texts, in @out, which they return. */
#define SHORT_TEXT	16
/* Of bytes, as "12.3M". */
const char *amount_text(double n, char out[SHORT_TEXT]);
/* Of a time, as "45.6us"; "-" for 0. */
const char *time_text(uint64_t ns, char out[SHORT_TEXT]);
/* The name of a row; the null of all others also has one. */
const char *row_name(const json_t *row, const char *key);
