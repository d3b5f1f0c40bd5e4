/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * network - the part of a bounded table that addresses of one customer have.
 *
 * A host chooses its IPv6 addresses in its network (/64), and a customer of a
 * provider its networks in a site (/48).  So a limit for each address stops no
 * customer.  Instead, one network and one site get these parts at most, and the
 * rest stays free for other customers.  An IPv4 address shares neither.
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
