/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpcrdma-read - copy a file of an NFS version 3 server to standard output,
 * with an event loop of its own and with memory that is registered once.
 *
 *	cc rpcrdma-read.c -o rpcrdma-read \
 *		$(pkg-config --cflags --libs gannet-rpcrdma)
 *	./rpcrdma-read server.example.net 20049 HANDLE
 *
 * HANDLE is the file's, in hexadecimal: MOUNT and LOOKUP are left out here.
 * With a fourth word, iwarp, an RDMA device is not looked for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gannet/rpcrdma.h>

enum { BLOCKS = 8, SIZE = 32768, HANDLE_MAX = 64 };

/* A part of the file: it is read, then written out, then the next. */
struct block {
	struct gannet_rpcrdma_call call;
	uint8_t	*data;			/* SIZE bytes of the region */
	uint64_t offset;
	uint32_t have;			/* bytes of it */
	bool	 eof;
	bool	 over;			/* as it should be, or with an err */
	int	 err;
	uint32_t msg[64];
};

static struct gannet_rpcrdma *client;
static struct gannet_rpcrdma_region *region;
static uint8_t memory[BLOCKS][SIZE];
static uint8_t handle[HANDLE_MAX];
static uint32_t handle_len;

static uint32_t *put(uint32_t *at, uint32_t word)
{
	*at = htonl(word);
	return at + 1;
}

/* READ (RFC 1813 section 3.3.6) of what the block lacks, as ourselves. */
static uint32_t put_read(const struct block *b, uint32_t *msg)
{
	const uint32_t head[] = {
		gannet_rpcrdma_xid(client), 0, 2, 100003, 3, 6,
		1, 20, 0, 0, getuid(), getgid(), 0, 0, 0, handle_len,
	};
	uint64_t from = b->offset + b->have;
	uint32_t *at = msg;

	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		at = put(at, head[i]);
	memset(at, 0, HANDLE_MAX);
	memcpy(at, handle, handle_len);
	at += (handle_len + 3) / 4;
	at = put(at, (uint32_t)(from >> 32));
	at = put(at, (uint32_t)from);
	at = put(at, SIZE - b->have);
	return (uint32_t)((at - msg) * 4);
}

/* The reply without its data: an accepted call, NFS3_OK, perhaps attributes,
 * the count, eof, and the length of the data in the sink. */
static int take_reply(struct block *b)
{
	const uint32_t *w = b->call.reply;
	uint32_t n = b->call.reply_len / 4, at;

	if (n < 8 || ntohl(w[2]) != 0 || ntohl(w[4]) != 0 || ntohl(w[5]) != 0)
		return -EACCES;
	if (ntohl(w[6]) != 0)
		return -EIO;
	at = ntohl(w[7]) ? 8 + 21 : 8;
	if (n < at + 3 || ntohl(w[at]) != b->call.written[0])
		return -EPROTO;
	b->have += ntohl(w[at]);
	b->eof = ntohl(w[at + 1]);
	return 0;
}

static int start(struct block *b);

/* In gannet_rpcrdma_dispatch(). */
static void is_done(struct gannet_rpcrdma_call *call)
{
	struct block *b = call->arg;

	b->err = call->status ? call->status : take_reply(b);
	/* A server may read less than it is asked for. */
	if (b->err == 0 && !b->eof && b->have < SIZE && call->written[0] > 0)
		b->err = start(b);
	else
		b->over = true;
	b->over |= b->err != 0;
}

static int start(struct block *b)
{
	b->call = (struct gannet_rpcrdma_call){
		.size = sizeof(b->call),
		.msg = b->msg, .msg_len = put_read(b, b->msg),
		.nsinks = 1,
		.sink[0] = { .addr = b->data + b->have,
			     .len = SIZE - b->have, .region = region },
		.done = is_done, .arg = b,
	};
	b->over = false;
	return gannet_rpcrdma_call(client, &b->call);
}

static int begin(struct block *b, uint64_t offset)
{
	b->offset = offset;
	b->have = 0;
	return start(b);
}

/* An event loop would wait for other things here as well. */
static int wait_and_dispatch(void)
{
	struct pollfd pfd = { gannet_rpcrdma_fd(client), POLLIN, 0 };

	if (poll(&pfd, 1, -1) < 0 && errno != EINTR)
		return -errno;
	return gannet_rpcrdma_dispatch(client);
}

static int copy(void)
{
	static struct block block[BLOCKS];
	uint64_t offset = 0;
	int err = 0;

	for (int i = 0; i < BLOCKS && err == 0; i++, offset += SIZE) {
		block[i].data = memory[i];
		err = begin(&block[i], offset);
	}
	/* Replies come in any order; the blocks go out in theirs. */
	for (int i = 0; err == 0; i = (i + 1) % BLOCKS, offset += SIZE) {
		struct block *b = &block[i];

		while (!b->over && err == 0)
			err = wait_and_dispatch();
		err = err ? err : b->err;
		if (err == 0 && fwrite(b->data, 1, b->have, stdout) != b->have)
			err = -errno;
		if (err || b->eof || b->have < SIZE)
			break;
		err = begin(b, offset);
	}
	return err;
}

static int take_handle(const char *hex)
{
	unsigned byte;

	for (; *hex; hex += 2) {
		if (handle_len == HANDLE_MAX || !hex[1] ||
		    sscanf(hex, "%2x", &byte) != 1)
			return -EINVAL;
		handle[handle_len++] = (uint8_t)byte;
	}
	return handle_len ? 0 : -EINVAL;
}

static int connect_to(const char *host, const char *port, bool iwarp)
{
	const struct gannet_rpcrdma_options options = {
		.size = sizeof(options), .flags = GANNET_RPCRDMA_POLLED,
		.fabric = iwarp ? GANNET_RPCRDMA_IWARP : GANNET_RPCRDMA_ANY,
	};
	struct addrinfo *ai;
	int err;

	if (getaddrinfo(host, port, NULL, &ai) != 0)
		return -EHOSTUNREACH;
	err = gannet_rpcrdma_connect(ai->ai_addr, &options, &client);
	freeaddrinfo(ai);
	return err;
}

int main(int argc, char *argv[])
{
	bool iwarp = argc == 5 && strcmp(argv[4], "iwarp") == 0;
	int err;

	if (argc != 4 + iwarp || take_handle(argv[3]) < 0) {
		fprintf(stderr,
			"usage: rpcrdma-read HOST PORT HANDLE [iwarp]\n");
		return 2;
	}
	err = connect_to(argv[1], argv[2], iwarp);
	if (err < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	err = gannet_rpcrdma_register(client, memory, sizeof(memory),
				      GANNET_RPCRDMA_SINK, &region);
	if (err == 0)
		err = copy();
	/* Ends the calls that are left, and the region. */
	gannet_rpcrdma_close(client);
	if (fflush(stdout) != 0 && err == 0)
		err = -errno;
	if (err < 0)
		fprintf(stderr, "READ: %s\n", strerror(-err));
	return err < 0;
}
