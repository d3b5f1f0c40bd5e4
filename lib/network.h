/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * network - the part of a bounded table that addresses of one customer have.
 *
 * A host chooses its IPv6 addresses in its network (/64), and a customer of a
 * provider its networks in a site (/48).  So a bound for each address holds no
 * customer back.  One network and one site have these parts at most, and leave
 * the rest to others.  An IPv4 address shares neither.
 */
#pragma once

/* Of an IPv6 address: */
#define NETWORK_BYTES	8u
#define SITE_BYTES	6u

static inline unsigned network_share(unsigned max)
{
	return max - max / 4;
}

static inline unsigned site_share(unsigned max)
{
	return max - max / 8;
}
