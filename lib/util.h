/* SPDX-License-Identifier: BSD-2-Clause */
/* The few macros that every file wants. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <urcu/compiler.h>	/* caa_container_of, caa_likely, caa_unlikely */

#define container_of(p, type, member) caa_container_of(p, type, member)
#define likely(x)	caa_likely(x)
#define unlikely(x)	caa_unlikely(x)

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define MIN(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); \
		     a_ < b_ ? a_ : b_; })
#define MAX(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); \
		     a_ > b_ ? a_ : b_; })

/* Gives an option that was left at zero its value. */
static inline void set_default(unsigned *field, unsigned value)
{
	if (*field == 0)
		*field = value;
}

/* Rounds up to a multiple of @a, a power of two. */
#define ALIGN_UP(x, a)	(((x) + ((a) - 1)) & ~((__typeof__(x))(a) - 1))
