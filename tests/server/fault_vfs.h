/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault_vfs - the mem backend with faults: an operation fails with the errno
 * that it was told to, always or once, hangs, is late, or does less than it was
 * asked; written data is torn, or lost later.
 *
 * With GANNET_TEST_POSIX_DIR in the environment it is the posix backend, on new
 * directories below that one; GANNET_TEST_POSIX_TABLE adds the table of an
 * unprivileged server.  With GANNET_TEST_MODULE it is a module (module_vfs.h).
 *
 * It also aborts on arguments that vfs.h rules out: "." or ".." as the name of
 * something to change, an owner from a caller who may not give one, data past
 * the largest offset.
 *
 * The orders hold for the whole process until they are taken back; tests can
 * change them while a server runs.
 */
#pragma once

#include "lib/thread.h"
#include "vfs/backends.h"

enum fault_op {
	FAULT_OPEN_HANDLE, FAULT_GETATTR, FAULT_SETATTR, FAULT_ACCESS,
	FAULT_LOOKUP, FAULT_READLINK, FAULT_READ, FAULT_WRITE, FAULT_COMMIT,
	FAULT_CREATE, FAULT_MAKE, FAULT_REMOVE, FAULT_RENAME, FAULT_LINK,
	FAULT_READDIR, FAULT_STATFS, FAULT_LIMITS, FAULT_LOCK,
	FAULT_NOPS,
};

extern struct vfs_ops fault_vfs_ops;

bool fault_on_posix(void);
/* Before the first use; takes all orders back. */
void fault_init(void);
/* @op fails with @err (> 0), or goes well again (0). */
void fault_set(enum fault_op op, int err);
/* Only the next @op fails, with @err, before anything is done. */
void fault_once(enum fault_op op, int err);
/* Has @op return -EAGAIN whenever it must not block; false: ends that. */
void fault_blocks(enum fault_op op, bool blocks);
/* A write takes at most @max bytes (0: all), and after @n of them (0: never)
 * one fails with @err. */
void fault_write(uint32_t max, unsigned n, int err);
/* A read brings at most @max bytes (0: all). */
void fault_read(uint32_t max);
/* The next write is torn: it writes the first @bytes, and fails with EIO. */
void fault_tear(uint32_t bytes);
/* Written data is lost on its way to the disk: the next sync, that of a COMMIT
 * or of a stable WRITE, fails with EIO and changes the write verifier.  As the
 * kernel does, it is told once. */
void fault_write_back(void);
/* The stability that the next write reports, and the one that later writes
 * report; callers must not ask for more. */
void fault_committed(enum vfs_stable next, enum vfs_stable then);
/* The next write or commit changes the write verifier while it runs. */
void fault_bump_verf(void);
/* The bytes that the last READ had room for. */
size_t fault_read_room(void);
/* Counts the calls of @op since fault_init(). */
unsigned fault_calls(enum fault_op op);
/* @op waits, once it is called, until this is taken back; -EAGAIN when it
 * must not. */
void fault_hold(enum fault_op op, bool hold);
/* @op takes @us microseconds more; -EAGAIN when it must not wait. */
void fault_delay(enum fault_op op, unsigned us);
/* The next @n <= 256 @op are given away, and end only by being cancelled. */
void fault_keep(enum fault_op op, unsigned n);
/* Counts the waiting operations. */
unsigned fault_keeps(void);
/* Of 1000 operations so many fail at random: with EIO, ENOSPC, EDQUOT or
 * ETIMEDOUT, before anything is done or, where that can't be told from it,
 * after; and as many reads and writes are short, or writes torn: a part is
 * written, and then they fail. */
void fault_storm(unsigned permille);
/* READDIR with @plus knows no attributes and no handles. */
void fault_bare_readdir(bool bare);
/* READDIR gives names that begin with "long" @bytes, and READLINK texts that
 * fill the buffer.  0: ends that. */
void fault_lengthen(unsigned bytes);
