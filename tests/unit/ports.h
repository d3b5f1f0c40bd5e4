/* SPDX-License-Identifier: BSD-2-Clause */
/* ports - a port of 127.0.0.1 that is the test's, for UDP and for TCP. */
#pragma once

#include <stdint.h>

/*
 * Binds a socket of each protocol to one port, which it returns.  A number that
 * is free for one protocol can be in use for the other, even by a connection
 * that ended a minute ago.  So bind both at once, and keep both.  Calls over
 * TCP are refused until the test listens.
 */
uint16_t ports_bind(int *udp, int *tcp);
