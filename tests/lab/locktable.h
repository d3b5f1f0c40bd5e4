/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * locktable - the rows of the table of locks: each operation, its process, and
 * its result.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TEXT_MAX	64
#define PENDS		(-1)	/* the lock is not had yet: see ANSWER */

enum lock_op {
	TITLE,			/* of the rows that follow */
	TEST,			/* fcntl(F_GETLK), exclusive */
	TEST_SHARED,
	HOLDER,			/* the only lock is this one, says F_GETLK */
	LOCK,			/* fcntl(F_SETLK), exclusive */
	SHARE,
	UNLOCK,
	WAIT,			/* fcntl(F_SETLKW), exclusive */
	ANSWER,			/* the result of B's pending WAIT */
	STRIPES,		/* LOCK of @len bytes, every other one */
	LOCKF,			/* lockf() at @start: F_TLOCK */
	TESTF,
	UNLOCKF,
	READ,			/* EBADMSG: it is not @text */
	WRITE,
	MAP,			/* the first page, shared */
	MAP_READ,
	MAP_WRITE,
	SIZE,			/* ftruncate() to @len */
	OPEN_SECOND,		/* the file once more */
	CLOSE_SECOND,
	DIE,			/* soon */
};

struct lock_step {
	char	 who;		/* 'A' or 'B' */
	enum lock_op op;
	long long start, len;
	int	 result;	/* 0, an errno, or PENDS */
	char	 text[TEXT_MAX];
	/* Locks of an open file description do otherwise. */
	bool	 posix_only;
};

extern const struct lock_step lock_steps[];
extern const size_t lock_steps_count;
