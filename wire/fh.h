/* SPDX-License-Identifier: BSD-2-Clause */
/* nfs_fh3 (RFC 1813 section 2.3.3), as it lies in memory. */
#pragma once

#include <stdint.h>

#define NFS3_FHSIZE		64

struct nfs3_fh {
	uint32_t len;		/* 0: no filehandle */
	uint8_t	 data[NFS3_FHSIZE];
};
