/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of a mounted file system against the directory that the server
 * exports.  Each check is a sentence, runs in a child and in a separate
 * directory, and returns whether it holds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct fscheck {
	const char *name;
	bool (*run)(void);
	unsigned seconds;	/* its time limit; 0 is the usual one */
};

/* The check's directory: as the client has it mounted, as the server has it. */
extern int mnt, back;
extern char mnt_path[4096], back_path[4096];

/* A check ends, failed, where one of these does not hold. */
#define MUST(cond) do { \
	if (!must(cond, #cond, __FILE__, __LINE__)) \
		return false; \
} while (0)
#define MUST_FAIL(expr, err) MUST(failed_with((long)(expr), (err)))

bool must(bool cond, const char *text, const char *file, int line);
bool failed_with(long result, int err);

/* The bytes of a pattern that depends on the offset alone, then a seed. */
void pattern(void *buf, size_t len, off_t offset, unsigned seed);
bool is_pattern(const void *buf, size_t len, off_t offset, unsigned seed);
bool is_zero(const void *buf, size_t len);

/* Whole file in one go; content is the pattern from offset 0. */
bool put_file(int dir, const char *name, size_t len, unsigned seed);
bool has_file(int dir, const char *name, size_t len, unsigned seed);

/* The attributes of both the client's and the server's stat, if they agree. */
bool both_stat(const char *name, struct stat *st);

/* Runs @run as another user, in a child; returns its result. */
bool as_user(uid_t uid, gid_t gid, const gid_t *groups, size_t n,
	     bool (*run)(void));

extern const struct fscheck tree_checks[], name_checks[], dir_checks[];
extern const struct fscheck io_checks[], sharing_checks[], perm_checks[];
extern const struct fscheck walk_checks[], counted_walks[];
