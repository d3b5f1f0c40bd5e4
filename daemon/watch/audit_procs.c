/* SPDX-License-Identifier: BSD-2-Clause */
/* audit_procs - the procedures that the audit can note, by their names. */
#include "daemon/watch/audit.h"

#include <string.h>
#include <strings.h>

#include "lib/util.h"
#include "rpc/audit.h"

/* In the order of their numbers. */
static const struct { const char *name; bool changes; } rows[] = {
	{ NULL, false }, { "getattr", false }, { "setattr", true },
	{ "lookup", false }, { "access", false }, { "readlink", false },
	{ "read", false }, { "write", false }, { "create", true },
	{ "mkdir", true }, { "symlink", true }, { "mknod", true },
	{ "remove", true }, { "rmdir", true }, { "rename", true },
	{ "link", true }, { "readdir", false }, { "readdirplus", false },
	{ "fsstat", false }, { "fsinfo", false }, { "pathconf", false },
	{ "commit", false },
	[RPC_AUDIT_ACL] = { NULL, false }, { "getacl", false },
	{ "setacl", true },
};

uint64_t audit_procs_changes(void)
{
	uint64_t procs = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		procs |= (uint64_t)rows[i].changes << i;
	return procs;
}

static bool is_word(const char *word, const char *text, size_t len)
{
	return strlen(word) == len && strncasecmp(word, text, len) == 0;
}

/* The bits of one name; 0: it is wrong. */
static uint64_t procs_named(const char *name, size_t len)
{
	bool all = is_word("all", name, len);
	uint64_t procs = 0;

	if (is_word("changes", name, len))
		return audit_procs_changes();
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].name && (all || is_word(rows[i].name, name, len)))
			procs |= UINT64_C(1) << i;
	return procs;
}

bool audit_procs_parse(const char *text, uint64_t *procs)
{
	uint64_t found = 0, one;
	size_t len;

	for (;; text += len + 1) {
		len = strcspn(text, ",");
		one = procs_named(text, len);
		if (!one)
			return false;
		found |= one;
		if (!text[len])
			break;
	}
	*procs = found;
	return true;
}
