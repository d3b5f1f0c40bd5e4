/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_relay - lets clients that speak TCP try a server on the loop fabric.
 *
 * Each connection to its port becomes one over the fabric.  The data of an NFS
 * WRITE goes in a Read chunk, that of a READ comes in a Write chunk; calls and
 * replies that are too long for a Send go by special chunks.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "transport/fabric/fabric.h"

struct loop_relay;

/* Relays to @addr of @fabric; both are borrowed.  Aborts when it can't. */
struct loop_relay *loop_relay_start(const struct fabric *fabric,
				    const struct sockaddr *addr);
uint16_t loop_relay_port(const struct loop_relay *relay);
/* Ends all its connections, waits, and frees it. */
void loop_relay_stop(struct loop_relay *relay);
