/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * journal - changes of the table that the database does not have yet.
 *
 * A file is a head (magic, sequence number), then records:
 *	check[8] length[2] what[1] hlen[1] plen[1] nlen[1] h p n
 * all in the machine's byte order.  The first record whose check does not
 * hold is the end.
 */
#include "vfs/posix/table/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/log.h"

#define MAGIC		0x314a54534f504e47u	/* GNPOSTJ1 */
#define RECORD_HEAD	14
#define RECORD_MAX	(RECORD_HEAD + 2 * VFS_HANDLE_MAX + VFS_NAME_MAX)
/* Of each file; some 40,000 changes. */
#define ROOM		(4 << 20)

struct head {
	uint64_t magic;
	uint64_t seq;
};

static uint32_t encode(const struct table_op *op, uint8_t *buf)
{
	uint8_t nlen = strlen(op->place.name.s);
	uint8_t sizes[4] = { op->what, op->h.len, op->place.parent.len, nlen };
	uint16_t len = RECORD_HEAD + sizes[1] + sizes[2] + nlen;
	uint8_t *p = buf + RECORD_HEAD;
	uint64_t check;

	memcpy(buf + 8, &len, sizeof(len));
	memcpy(buf + 10, sizes, sizeof(sizes));
	memcpy(p, op->h.data, sizes[1]);
	memcpy(p + sizes[1], op->place.parent.data, sizes[2]);
	memcpy(p + sizes[1] + sizes[2], op->place.name.s, nlen);
	check = hash_bytes(buf + 8, len - 8);
	memcpy(buf, &check, sizeof(check));
	return len;
}

/* Returns the record's length, or 0 at the end. */
static uint32_t decode(const uint8_t *buf, size_t left, struct table_op *op)
{
	uint8_t sizes[4];
	uint64_t check;
	uint16_t len;

	if (left < RECORD_HEAD)
		return 0;
	memcpy(&check, buf, sizeof(check));
	memcpy(&len, buf + 8, sizeof(len));
	memcpy(sizes, buf + 10, sizeof(sizes));
	if (len > left || len != RECORD_HEAD + sizes[1] + sizes[2] + sizes[3] ||
	    sizes[1] > VFS_HANDLE_MAX || sizes[2] > VFS_HANDLE_MAX ||
	    sizes[0] < TABLE_ADD || sizes[0] > TABLE_SET ||
	    check != hash_bytes(buf + 8, len - 8))
		return 0;
	buf += RECORD_HEAD;
	op->what = sizes[0];
	op->h.len = sizes[1];
	memcpy(op->h.data, buf, sizes[1]);
	op->place.parent.len = sizes[2];
	memcpy(op->place.parent.data, buf + sizes[1], sizes[2]);
	posix_name_set(&op->place.name, (struct vfs_name){
		(const char *)buf + sizes[1] + sizes[2], sizes[3] });
	return len;
}

/* The sequence number, or 0 for an empty or broken file. */
static uint64_t read_seq(int fd)
{
	struct head head;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    head.magic != MAGIC)
		return 0;
	return head.seq;
}

/*
 * A journal holds a few seconds' changes, so it is read as a whole.  Returns
 * the length of its whole records with the head, or -errno.
 */
static off_t replay_file(int fd, bool newest, table_replay_fn *replay,
			 void *arg)
{
	off_t size = lseek(fd, 0, SEEK_END);
	size_t pos = sizeof(struct head);
	struct table_op op;
	uint8_t *buf;
	uint32_t len;
	int err = 0;

	if (size < 0)
		return -errno;
	buf = malloc(size + 1);
	if (!buf)
		return -ENOMEM;
	size = pread(fd, buf, size, 0);
	while (err == 0 && size > 0 && pos < (size_t)size) {
		len = decode(buf + pos, size - pos, &op);
		if (len == 0)
			break;
		err = replay(arg, newest, &op);
		pos += len;
	}
	free(buf);
	return err < 0 ? err : (off_t)pos;
}

/* Cuts a journal to its whole records, and reserves room behind them, for when
 * the disk is full.  Without room now, or on a file system that can't reserve
 * any, the journal does without. */
static int journal_trim(int fd, off_t len)
{
	struct stat st;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0 || (st.st_size != len && ftruncate(fd, len) < 0))
		return -errno;
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, ROOM) < 0)
		log_debug("table of files: no room for its journal: %s",
			  strerror(errno));
	return 0;
}

int table_journal_open(struct table_journal *j, int dir_fd, const char *name)
{
	char path[300];
	int err;

	j->fd[0] = j->fd[1] = -1;
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s.journal.%d", name, i);
		j->fd[i] = openat(dir_fd, path, O_RDWR | O_CREAT | O_APPEND |
				  O_CLOEXEC, 0600);
		if (j->fd[i] < 0)
			goto fail;
	}
	if (flock(j->fd[0], LOCK_EX | LOCK_NB) < 0)
		goto fail;
	return 0;

fail:
	err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	table_journal_close(j);
	return err;
}

int table_journal_replay(struct table_journal *j, uint64_t done,
			 table_replay_fn *replay, void *arg)
{
	uint64_t seq[2] = { read_seq(j->fd[0]), read_seq(j->fd[1]) };
	int err = 0;

	j->active = seq[1] > seq[0];
	j->seq = MAX(seq[j->active], done + 1);
	j->started = seq[j->active] > done;
	j->len = 0;
	for (int i = 1; i >= 0 && err == 0; i--) {
		int which = j->active ^ i;
		off_t len = 0;

		if (seq[which] > done)
			len = replay_file(j->fd[which], i == 0, replay, arg);
		/* The next switch needs it empty if nothing waits in it. */
		if (i == 1 && len == (off_t)sizeof(struct head))
			len = 0;
		err = len < 0 ? (int)len : journal_trim(j->fd[which], len);
		j->len = len;
	}
	return err;
}

void table_journal_close(struct table_journal *j)
{
	for (int i = 0; i < 2; i++) {
		if (j->fd[i] >= 0)
			close(j->fd[i]);
		j->fd[i] = -1;
	}
}

/* A full disk can cut a record short.  Remove the part: a torn record would
 * hide later ones, which are written when space is free again. */
static int journal_append(struct table_journal *j, const void *data,
			  uint32_t len)
{
	int fd = j->fd[j->active];
	ssize_t n = write(fd, data, len);

	if (n == (ssize_t)len) {
		j->len += n;
		return 0;
	}
	if (n > 0 && ftruncate(fd, j->len) < 0)
		log_limited(LOG_LEVEL_ERR, "table of files: journal: %s",
			    strerror(errno));
	if (n >= 0)
		errno = ENOSPC;
	return -EIO;
}

int table_journal_write(struct table_journal *j, const struct table_op *op)
{
	struct head head = { MAGIC, j->seq };
	uint8_t buf[RECORD_MAX];

	if (j->fd[j->active] < 0)
		return 0;
	if (!j->started && journal_append(j, &head, sizeof(head)) < 0)
		return -EIO;
	j->started = true;
	return journal_append(j, buf, encode(op, buf));
}

void table_journal_switch(struct table_journal *j)
{
	j->active ^= 1;
	j->seq++;
	j->started = false;
	j->len = 0;
}

int table_journal_clear(struct table_journal *j, int which)
{
	return journal_trim(j->fd[which], 0);
}
