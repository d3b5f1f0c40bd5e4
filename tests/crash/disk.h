/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * disk - a block device with a volatile write cache whose power can be cut:
 * a loop device over a file of a FUSE file system that a child process
 * serves.
 *
 * A cut of the power loses each write that no flush followed, or keeps any of
 * its sectors.  A real disk promises nothing else.
 *
 * Needs root.  It mounts in the test's private mount namespace, so nothing
 * stays mounted after the test.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct disk {
	char	 dir[64];		/* the file is below */
	char	 device[32];		/* /dev/loopN, while attached */
	pid_t	 pid;
	int	 command, answer;	/* pipes */
	int	 loop;			/* the device, while attached */
	uint64_t lost, kept;		/* sectors, by all cuts */
};

/* Why there can be no such disk here; NULL: there can. */
const char *disk_missing(void);
/* Gives the test a mount namespace; disk_start() does that as well. */
void disk_own_mounts(void);
/* A new one, attached, with a file system that the command @mkfs made in
 * "$1".  @dir: where that is to be.  Each of these ends the process by a signal
 * when it can't do its work, and says why on standard error. */
void disk_start(struct disk *d, const char *dir, const char *mkfs);
void disk_stop(struct disk *d);

/* From here on no request is answered, and nothing changes. */
void disk_cut(struct disk *d);
/* Fails every request, including requests that wait since disk_cut(). */
void disk_fail(struct disk *d);
/* Every request waits, as on a disk that hangs, until disk_go(). */
void disk_hang(struct disk *d);
void disk_go(struct disk *d);
/* Power is back: some sectors of the unflushed data survived.  A sector has
 * @sector bytes; @seed chooses.  Call between disk_detach() and
 * disk_attach(). */
void disk_power(struct disk *d, uint64_t seed, uint32_t sector);
void disk_attach(struct disk *d);
void disk_detach(struct disk *d);

void disk_mount(struct disk *d, const char *type, const char *where);
void disk_unmount(const char *where);
