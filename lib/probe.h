/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe - places where a tracer of the kernel can look at a running server:
 * USDT probes of the provider "gannet", as <sys/sdt.h> makes them.
 *
 * A probe is a no-op in the code, and a note in the program's file that tells
 * where its arguments are: in which registers, or where in memory.  So an
 * argument costs a call nothing if it is in a register anyway, or a field of
 * the struct that a register points to; a sum, or a field two pointers away, is
 * computed even without a tracer.  doc/tracing.md has the probes and the
 * meaning of their arguments; tests/probes.sh holds it to the program.
 *
 * PROBE(name, argument, ...), with one argument at least: integers, pointers.
 * Any thread.  Without <sys/sdt.h> it is nothing.
 */
#pragma once

#if HAVE_SDT
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define PROBE(name, ...) STAP_PROBEV(gannet, name, __VA_ARGS__)
#else
/* The arguments count as used. */
static inline void probe_nothing(int first, ...)
{
}
#define PROBE(name, ...) do { if (0) probe_nothing(0, __VA_ARGS__); } while (0)
#endif
