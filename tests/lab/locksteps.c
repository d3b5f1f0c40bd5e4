/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of locktable.  Each group leaves the file without locks.
 */
#include <errno.h>
#include <limits.h>

#include "lib/util.h"
#include "tests/lab/locktable.h"

#define LAST	LLONG_MAX	/* the last byte that a file can have */
#define DENIED	EAGAIN
#define TWO31	(1ll << 31)
#define TWO32	(1ll << 32)

#define T(t)			{ .op = TITLE, .text = t }
#define A(o, s, l, r)		{ 'A', o, s, l, r, "", false }
#define B(o, s, l, r)		{ 'B', o, s, l, r, "", false }
/* Not for locks of an open file description. */
#define POSIX(w, o, s, l, r)	{ w, o, s, l, r, "", true }
#define DATA(w, o, s, t)	{ w, o, s, 0, 0, t, false }

const struct lock_step lock_steps[] = {
	T("nothing is locked in an empty file"),
	A(SIZE, 0, 0, 0),
	B(TEST, 0, 1, 0), B(TEST, 0, 0, 0), B(TEST, 0, LAST, 0),
	B(TEST, 1, 1, 0), B(TEST, 1, 0, 0), B(TEST, LAST, 1, 0),
	A(TEST, 0, 0, 0), A(TEST_SHARED, LAST, 0, 0),

	T("a lock of the whole file"),
	A(LOCK, 0, 0, 0),
	B(TEST, 0, 1, DENIED), B(TEST, 0, 0, DENIED),
	B(TEST, 0, LAST, DENIED), B(TEST, 1, 1, DENIED),
	B(TEST, 1, 0, DENIED), B(TEST, LAST, 1, DENIED),
	B(TEST_SHARED, 7, 1, DENIED), B(LOCK, 5, 5, DENIED),
	B(HOLDER, 0, 0, 0), A(TEST, 0, 0, 0),
	B(UNLOCK, 0, 0, 0), B(TEST, 0, 0, DENIED),
	A(UNLOCK, 0, 0, 0), B(LOCK, 0, 0, 0), B(UNLOCK, 0, 0, 0),

	T("a lock of the first byte"),
	A(LOCK, 0, 1, 0),
	B(TEST, 0, 1, DENIED), B(TEST, 0, 0, DENIED), B(TEST, 1, 1, 0),
	B(TEST, 1, 0, 0), B(HOLDER, 0, 1, 0),
	A(UNLOCK, 0, 1, 0),

	T("a lock of the second byte"),
	A(LOCK, 1, 1, 0),
	B(TEST, 0, 1, 0), B(TEST, 0, 0, DENIED), B(TEST, 1, 1, DENIED),
	B(TEST, 1, 0, DENIED), B(TEST, 2, 1, 0), B(TEST, 2, 0, 0),
	A(UNLOCK, 1, 1, 0),

	T("locks of the first and the third byte"),
	A(LOCK, 0, 1, 0), A(LOCK, 2, 1, 0),
	B(TEST, 0, 1, DENIED), B(TEST, 0, 0, DENIED), B(TEST, 1, 1, 0),
	B(TEST, 1, 0, DENIED), B(TEST, 2, 1, DENIED), B(TEST, 2, 0, DENIED),
	B(TEST, 3, 0, 0), B(LOCK, 1, 1, 0), A(LOCK, 0, 3, DENIED),
	B(UNLOCK, 1, 1, 0), A(LOCK, 0, 3, 0), A(UNLOCK, 0, 0, 0),

	T("the last byte that there can be"),
	A(LOCK, LAST, 1, 0),
	B(TEST, LAST, 1, DENIED), B(TEST, LAST, 0, DENIED),
	B(TEST, LAST - 1, 1, 0), B(TEST, LAST - 1, 2, DENIED),
	B(TEST, 0, LAST, 0), B(TEST, 0, 0, DENIED),
	B(LOCK, 0, LAST, 0), A(TEST, LAST - 1, 1, DENIED),
	A(UNLOCK, LAST, 1, 0), B(UNLOCK, 0, LAST, 0), B(TEST, 0, 0, 0),
	A(LOCK, 0, LAST, 0), B(LOCK, LAST, 0, 0), A(TEST, 0, 0, DENIED),
	A(UNLOCK, 0, 0, 0), A(TEST, LAST, 1, DENIED), B(UNLOCK, LAST, 0, 0),

	T("ranges that no file has"),
	A(LOCK, LAST, 2, EOVERFLOW), A(LOCK, 2, LAST, EOVERFLOW),
	A(LOCK, -1, 1, EINVAL), A(LOCK, 3, -5, EINVAL),
	B(TEST, 0, 0, 0),

	T("a length below zero is for what is before"),
	A(LOCK, 10, -5, 0), B(HOLDER, 5, 5, 0), B(TEST, 4, 1, 0),
	B(TEST, 5, 1, DENIED), B(TEST, 9, 1, DENIED), B(TEST, 10, 1, 0),
	A(UNLOCK, 10, -5, 0), B(TEST, 0, 0, 0),

	T("ranges across 2^31 and 2^32"),
	A(LOCK, TWO31 - 1, 2, 0), A(LOCK, TWO32 - 1, 2, 0),
	B(TEST, TWO31 - 2, 1, 0), B(TEST, TWO31 - 1, 1, DENIED),
	B(TEST, TWO31, 1, DENIED), B(TEST, TWO31 + 1, 1, 0),
	B(TEST, TWO32 - 2, 1, 0), B(TEST, TWO32 - 1, 1, DENIED),
	B(TEST, TWO32, 1, DENIED), B(TEST, TWO32 + 1, 0, 0),
	B(TEST, 0, 1, 0), A(UNLOCK, 0, 0, 0),

	T("an unlock in the middle splits the lock"),
	A(LOCK, 0, 0, 0), A(UNLOCK, 10, 1, 0),
	B(LOCK, 10, 1, 0), B(TEST, 9, 1, DENIED), B(TEST, 11, 1, DENIED),
	B(TEST, 11, 0, DENIED), A(LOCK, 0, 0, DENIED), B(UNLOCK, 10, 1, 0),
	A(UNLOCK, LAST, 1, 0), B(TEST, LAST, 1, 0),
	B(TEST, LAST - 1, 1, DENIED), A(UNLOCK, 0, 1, 0), B(TEST, 0, 1, 0),
	B(TEST, 1, 1, DENIED), A(UNLOCK, 0, 0, 0), B(TEST, 0, 0, 0),

	T("locks beside each other join"),
	A(LOCK, 0, 10, 0), A(LOCK, 20, 10, 0), B(HOLDER, 0, 10, 0),
	A(LOCK, 10, 10, 0), B(HOLDER, 0, 30, 0), A(LOCK, 5, 40, 0),
	B(HOLDER, 0, 45, 0), A(LOCK, 45, 0, 0), B(HOLDER, 0, 0, 0),
	A(UNLOCK, 0, 0, 0),

	T("a part of a lock becomes a shared one and is exclusive again"),
	A(LOCK, 0, 30, 0), A(SHARE, 10, 10, 0),
	B(SHARE, 10, 10, 0), B(SHARE, 9, 1, DENIED), B(SHARE, 20, 1, DENIED),
	B(LOCK, 10, 1, DENIED), A(LOCK, 10, 10, DENIED),
	B(UNLOCK, 10, 10, 0), A(LOCK, 10, 10, 0), B(HOLDER, 0, 30, 0),
	A(UNLOCK, 0, 0, 0),

	T("a refused upgrade leaves the shared lock"),
	A(SHARE, 0, 10, 0), B(SHARE, 0, 10, 0), A(LOCK, 0, 10, DENIED),
	B(LOCK, 0, 10, DENIED), B(UNLOCK, 0, 10, 0), B(LOCK, 0, 10, DENIED),
	A(LOCK, 0, 10, 0), A(UNLOCK, 0, 10, 0),

	T("two lock every other byte"),
	A(STRIPES, 0, 24, 0), B(STRIPES, 1, 24, 0), A(STRIPES, 1, 1, DENIED),
	B(LOCK, 30, 1, DENIED), A(UNLOCK, 0, 0, 0), B(LOCK, 30, 1, 0),
	A(LOCK, 31, 1, DENIED), B(UNLOCK, 0, 0, 0), A(LOCK, 0, 0, 0),
	A(UNLOCK, 0, 0, 0),

	T("who waits for the lock reads what the holder wrote"),
	A(LOCK, 0, 0, 0), DATA('A', WRITE, 0, "aaaa eh"),
	B(WAIT, 0, 0, PENDS), A(UNLOCK, 0, 0, 0), B(ANSWER, 0, 0, 0),
	DATA('B', READ, 0, "aaaa eh"), DATA('B', WRITE, 0, "bebebe "),
	B(UNLOCK, 0, 0, 0), A(LOCK, 0, 0, 0), DATA('A', READ, 0, "bebebe "),
	A(UNLOCK, 0, 0, 0),

	T("a lock is no bar to a change of the size"),
	A(LOCK, 4, 10, 0), B(SIZE, 0, 2, 0), B(TEST, 4, 1, DENIED),
	B(SIZE, 0, 4096, 0), B(TEST, 4, 1, DENIED), A(UNLOCK, 4, 10, 0),

	T("what is mapped agrees where locks are taken"),
	A(MAP, 0, 0, 0), B(MAP, 0, 0, 0),
	A(LOCK, 0, 0, 0), DATA('A', MAP_WRITE, 100, "mapped"),
	A(UNLOCK, 0, 0, 0), B(LOCK, 0, 0, 0),
	DATA('B', MAP_READ, 100, "mapped"), DATA('B', READ, 100, "mapped"),
	DATA('B', MAP_WRITE, 100, "again!"), B(UNLOCK, 0, 0, 0),
	A(LOCK, 0, 0, 0), DATA('A', MAP_READ, 100, "again!"),
	A(UNLOCK, 0, 0, 0),

	T("a close ends the locks of the process"),
	POSIX('A', LOCK, 0, 10, 0), POSIX('A', OPEN_SECOND, 0, 0, 0),
	POSIX('B', TEST, 0, 1, DENIED), POSIX('A', CLOSE_SECOND, 0, 0, 0),
	POSIX('B', TEST, 0, 0, 0), A(LOCK, 0, 0, 0),
	DATA('A', WRITE, 0, "after"), A(UNLOCK, 0, 0, 0),
	B(LOCK, 0, 0, 0), DATA('B', READ, 0, "after"), B(UNLOCK, 0, 0, 0),

	T("lockf"),
	POSIX('A', LOCKF, 10, 5, 0), POSIX('B', TESTF, 9, 1, 0),
	POSIX('B', TESTF, 9, 2, DENIED), POSIX('B', TESTF, 15, 0, 0),
	POSIX('B', TESTF, 15, -1, DENIED), POSIX('B', LOCKF, 15, -1, DENIED),
	POSIX('B', LOCKF, 15, 0, 0), POSIX('A', LOCKF, 0, 0, DENIED),
	POSIX('A', LOCKF, 10, -10, 0), POSIX('B', TEST, 0, 1, DENIED),
	POSIX('A', UNLOCKF, 0, 0, 0), POSIX('B', LOCKF, 0, 0, 0),
	POSIX('B', UNLOCKF, 0, 0, 0),

	T("a circle of two is a deadlock"),
	POSIX('A', LOCK, 0, 1, 0), POSIX('B', LOCK, 1, 1, 0),
	POSIX('B', WAIT, 0, 1, PENDS), POSIX('A', WAIT, 1, 1, EDEADLK),
	POSIX('A', UNLOCK, 0, 1, 0), POSIX('B', ANSWER, 0, 0, 0),
	POSIX('B', UNLOCK, 0, 0, 0), POSIX('A', LOCK, 0, 2, 0),
	POSIX('A', UNLOCK, 0, 2, 0),

	T("a killed process loses its locks to the one that waits"),
	B(LOCK, 0, 0, 0), B(DIE, 0, 0, 0), A(WAIT, 0, 10, 0),
	A(UNLOCK, 0, 10, 0), A(LOCK, 0, 0, 0), A(UNLOCK, 0, 0, 0),
};

const size_t lock_steps_count = ARRAY_SIZE(lock_steps);
