/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * journal - changes of the table that the database does not have yet.
 *
 * A file is a head (magic, sequence number), then records:
 *	check[8] length[2] what[1] hlen[1] plen[1] nlen[1] h p n
 * all in the machine's byte order.  The first record whose check does not
 * hold is the end.
 */
#include "vfs/posix/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/log.h"

#define MAGIC		0x314a54534f504e47u	/* GNPOSTJ1 */
#define RECORD_HEAD	14
#define RECORD_MAX	(RECORD_HEAD + 2 * VFS_HANDLE_MAX + VFS_NAME_MAX)

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

/* Returns the record's length, or 0 when there is none. */
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

/* A journal holds a few seconds' changes: it is read whole. */
static int replay_file(int fd, int (*replay)(void *, const struct table_op *),
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
		err = replay(arg, &op);
		pos += len;
	}
	free(buf);
	return err;
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
			 int (*replay)(void *arg, const struct table_op *op),
			 void *arg)
{
	uint64_t seq[2] = { read_seq(j->fd[0]), read_seq(j->fd[1]) };
	int first = seq[1] < seq[0], err = 0;

	for (int i = 0; i < 2 && err == 0; i++)
		if (seq[first ^ i] > done)
			err = replay_file(j->fd[first ^ i], replay, arg);
	j->active = 0;
	j->seq = MAX(seq[first ^ 1], done) + 1;
	j->started = false;
	j->len = 0;
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

/* A full disk may have taken a part of the record.  Remove that: a torn record
 * would hide those that follow once there is room again. */
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
	return j->fd[which] >= 0 && ftruncate(j->fd[which], 0) < 0 ?
	       -errno : 0;
}
