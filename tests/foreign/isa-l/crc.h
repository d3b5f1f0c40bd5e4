/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC32C in the place of ISA-L, which Debian has not got for s390x. */
#pragma once

static inline unsigned crc32_iscsi(unsigned char *p, int len, unsigned crc)
{
	while (len-- > 0) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc;
}
