/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture - writes the calls and replies of a server into a file.
 *
 * The server sends a pcapng file behind its answer, which is written as it
 * comes: block by block: the file has to end with a whole one whatever happens.
 */
#include "tools/ctl/ctl.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/pcapng.h"

/* Above the length of each block that the server makes. */
#define BUFFER		(1u << 20)

struct capturing {
	int	 fd;		/* the server's socket */
	int	 out;
	const char *name;	/* of the file */
	size_t	 len;		/* bytes in the buffer */
	uint8_t	*buffer;
	/* Of the statistics that end the file. */
	bool	 is_whole;
	uint64_t messages;	/* with those dropped */
	uint64_t dropped;
};

/* ---- the file */

static int write_blocks(const struct capturing *c, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = write(c->out, c->buffer + at, len - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

static uint32_t read_le(const uint8_t *p, size_t len)
{
	uint32_t v = 0;

	memcpy(&v, p, len);
	return le32toh(v);
}

/* Sums the statistics of an interface. */
static void note_statistics(struct capturing *c, const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len - 4;
	uint64_t v;

	c->is_whole = true;
	for (p += 20; end - p >= 12; p += 4 + ((read_le(p + 2, 2) + 3) & ~3u)) {
		uint32_t code = read_le(p, 2);

		if (code == 0 || read_le(p + 2, 2) > (size_t)(end - p - 4))
			return;
		memcpy(&v, p + 4, 8);
		if (code == PCAPNG_RECEIVED)
			c->messages += le64toh(v);
		else if (code == PCAPNG_DROPPED)
			c->dropped += le64toh(v);
	}
}

/* The bytes of whole blocks in the buffer; -1: these are not blocks. */
static ssize_t whole_blocks(struct capturing *c)
{
	size_t at = 0;

	while (c->len - at >= 12) {
		uint32_t type = read_le(c->buffer + at, 4);
		uint32_t len = read_le(c->buffer + at + 4, 4);

		if (len < 12 || len % 4 || len > BUFFER)
			return -1;
		if (len > c->len - at)
			break;
		if (type == PCAPNG_STATISTICS && len >= 24)
			note_statistics(c, c->buffer + at, len);
		at += len;
	}
	return (ssize_t)at;
}

/* Copies until the server ends.  Returns the exit status. */
static int copy_blocks(struct capturing *c)
{
	for (;;) {
		ssize_t n = recv(c->fd, c->buffer + c->len, BUFFER - c->len,
				 0), whole;
		int err;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return c->is_whole ? EXIT_SUCCESS :
			       complain("%s: the server ended early: the last "
					"messages are missing", c->name);
		c->len += (size_t)n;
		whole = whole_blocks(c);
		if (whole < 0)
			return complain("the server sends no capture");
		err = write_blocks(c, (size_t)whole);
		if (err)	/* a reader that has seen enough is not an
				 * error */
			return err == -EPIPE ? EXIT_SUCCESS :
			       complain("%s: %s", c->name, strerror(-err));
		c->len -= (size_t)whole;
		memmove(c->buffer, c->buffer + whole, c->len);
	}
}

/* ---- the server */

/* The capture has contents of files, so it is for its owner alone, this user,
 * even if the file existed before.  0 or -errno. */
static int make_private(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_uid != geteuid())
		return -EPERM;
	if (st.st_mode & 077 && fchmod(fd, 0600) < 0)
		return -errno;
	return ftruncate(fd, 0) < 0 ? -errno : 0;
}

/* Others can have made a link there, as in /tmp, to destroy a file of this
 * user.  A link of root's, as /dev/stdout, is trusted. */
static int open_own(const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
	int fd = open(name, flags | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd >= 0 || errno != ELOOP)
		return fd < 0 ? -errno : fd;
	if (lstat(name, &st) < 0)
		return -errno;
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return -EPERM;
	fd = open(name, flags, 0600);
	return fd < 0 ? -errno : fd;
}

static bool open_capture_file(struct capturing *c)
{
	int err;

	if (!strcmp(c->name, "-")) {
		c->name = "standard output";
		c->out = STDOUT_FILENO;
		return true;
	}
	c->out = open_own(c->name);
	err = c->out < 0 ? c->out : make_private(c->out);
	if (err)
		complain("%s: %s%s", c->name, strerror(-err), err == -EPERM ?
			 " (another user made it; give a name that is not "
			 "there)" : "");
	return err == 0;
}

static int run_capturing(struct capturing *c, json_t *options)
{
	int status = EXIT_FAILURE;

	c->buffer = malloc(BUFFER);
	if (!c->buffer || !ctl_stream_begin(c->fd, "capture", options) ||
	    !open_capture_file(c))
		goto out;
	status = copy_blocks(c);
	if (c->is_whole)
		fprintf(stderr, "gannetctl: %llu messages, %llu dropped\n",
			(unsigned long long)(c->messages - c->dropped),
			(unsigned long long)c->dropped);
	if (c->out != STDOUT_FILENO && close(c->out) < 0 && !status)
		status = complain("%s: %s", c->name, strerror(errno));
out:
	free(c->buffer);
	return status;
}

/* ---- usage */

static const struct stream_command capture_command = {
	.name = "capture",
	.does = "Writes calls and replies into FILE, as pcapng",
	.has_file = true,
	.options = {
		{ "write", "FILE", "where to; -: standard output",
		  STREAM_FILE },
		{ "client", "ADDRESS", "of this client, or network, only",
		  STREAM_TEXT },
		{ "export", "PATH", "of this export only", STREAM_TEXT },
		{ "proc", "NAME,...", "calls of these procedures only",
		  STREAM_TEXT },
		{ "snaplen", "N", "keep N bytes of each message",
		  STREAM_NUMBER },
		{ "count", "N", "end after N messages", STREAM_NUMBER },
		{ "duration", "S", "end after S seconds", STREAM_NUMBER },
		{ "size", "BYTES", "end before the file is longer: 100M",
		  STREAM_SIZE },
	},
};

int ctl_capture(const struct ctl *ctl, int argc, char **argv)
{
	struct stream_args a = { .options = json_object() };
	int status = ctl_stream_arguments(&capture_command, argc, argv, &a);
	struct capturing c = { .name = a.file };

	if (status < 0 && !strcmp(c.name, "-") && isatty(STDOUT_FILENO)) {
		complain("standard output is a terminal: see "
			 "gannetctl capture --help");
		status = USAGE;
	}
	if (status < 0) {
		c.fd = ctl_connect(ctl, CTL_PATIENCE);
		status = c.fd < 0 ? EXIT_FAILURE : run_capturing(&c, a.options);
		if (c.fd >= 0)
			close(c.fd);
	}
	json_decref(a.options);
	return status;
}
