/* SPDX-License-Identifier: BSD-2-Clause */
/* child_number - the number that identifies a file system below an export.
 * Pure. */
#include "exports/export_priv.h"

#include <string.h>

#include <sodium.h>

uint64_t export_child_number(const uint8_t key[EXPORT_KEY_LEN],
			     const char *path, const uint64_t of[3])
{
	uint64_t all[4] = { of[0], of[1], of[2] }, number;
	uint8_t own[EXPORT_KEY_LEN];

	/* Clients see the number, so it must reveal nothing about a MAC. */
	crypto_generichash(own, sizeof(own), (const uint8_t *)"child", 5, key,
			   EXPORT_KEY_LEN);
	crypto_shorthash((uint8_t *)&all[3], (const uint8_t *)path,
			 strlen(path), own);
	crypto_shorthash((uint8_t *)&number, (const uint8_t *)all, sizeof(all),
			 own);
	return number;
}
