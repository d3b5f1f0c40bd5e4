/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * intruder - an iWARP peer that writes to memory it has no right to.
 *
 *	intruder ADDRESS PORT
 *
 * Speaks MPA, DDP and RDMAP by hand, without CRCs, to a server on an RDMA
 * device.  Each connection sends a WRITE with a Read chunk, so the server names
 * its sink in an RDMA Read Request; then it sends an RDMA Write
 *
 *	past the end of that sink,
 *	before its beginning,
 *	into the sink, once the Read was answered and the call too,
 *	into the sink of another connection, while that is open.
 *
 * Succeeds when the server ends the connection each time.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { WRITE = 0, READ_REQUEST = 1, READ_RESPONSE = 2, SEND = 3,
       TERMINATE = 7 };
enum { CHUNK = 65536, PIECE = 8192, TAGGED = 14, UNTAGGED = 18,
       MOST = 65540 };

static const char request[] = "MPA ID Req Frame\x10\2\0\14\0\x80\0\0"
			      "\xf6\xab\x0e\x18\1\1\3\3";

static int fd;
static uint8_t fpdu[MOST + 8];
static unsigned fpdu_len;

/* The server's message about its sink. */
static uint32_t stag;
static uint64_t offset;

static void fail(const char *what)
{
	fprintf(stderr, "intruder: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, 4);
	return p + 4;
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	return put32(put32(p, (uint32_t)(v >> 32)), (uint32_t)v);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return be32toh(v);
}

/* False: the connection is over. */
static bool take(uint8_t *to, size_t len)
{
	while (len > 0) {
		ssize_t n = recv(fd, to, len, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			fail("nothing came");
		if (n <= 0)
			return false;
		to += n;
		len -= (size_t)n;
	}
	return true;
}

/* The next FPDU's opcode, or -1: the connection is over. */
static int next(void)
{
	if (!take(fpdu, 2))
		return -1;
	fpdu_len = (unsigned)fpdu[0] << 8 | fpdu[1];
	/* Pad and CRC. */
	if (!take(fpdu + 2, (fpdu_len + 2 + 3) / 4 * 4 + 4 - 2))
		return -1;
	return fpdu[3] & 15;
}

/* Sends an FPDU: its two control bytes, then the rest of it. */
static void give(uint8_t ddp, uint8_t opcode, const uint8_t *rest, size_t len)
{
	static uint8_t out[PIECE + 64];
	size_t size = (2 + 2 + len + 3) / 4 * 4 + 4;

	memset(out, 0, sizeof(out));
	out[0] = (uint8_t)((len + 2) >> 8);
	out[1] = (uint8_t)(len + 2);
	out[2] = ddp;
	out[3] = 0x40 | opcode;
	memcpy(out + 4, rest, len);
	if (send(fd, out, size, MSG_NOSIGNAL) != (ssize_t)size)
		fail("send");
}

static void give_tagged(int opcode, uint64_t to, uint32_t len, bool last)
{
	uint8_t rest[PIECE + 12], *p = rest;

	p = put64(put32(p, stag), to);
	memset(p, 0x66, len);
	give(last ? 0xc1 : 0x81, (uint8_t)opcode, rest, 12 + len);
}

static void hello(const struct sockaddr_in *sin)
{
	static const struct timeval patience = { .tv_sec = 60 };
	uint8_t reply[20 + 512];
	size_t len;
	int one = 1;

	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)sin, sizeof(*sin)))
		fail("connect");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (send(fd, request, 32, MSG_NOSIGNAL) != 32)
		fail("send");
	if (!take(reply, 20) || reply[16] & 0x20)
		fail("refused");
	len = (size_t)reply[18] << 8 | reply[19];
	if (len > 512 || !take(reply + 20, len))
		fail("a strange reply");
	printf("flags 0x%x, revision %u, %zu bytes of private data\n",
	       reply[16], reply[17], len);
}

/* WRITE of CHUNK bytes to no file, its data in a Read chunk. */
static void call(uint32_t xid)
{
	static const uint32_t head[] = { 1, 8, 0, 1 };
	static const uint32_t rpc[] = { 0, 2, 100003, 3, 7, 0, 0, 0, 0 };
	uint8_t rest[512], *p = rest, *rpc_at, *position;

	p = put32(put32(put32(put32(p, 0), 0), 1), 0);	/* QN, MSN, MO */
	p = put32(p, xid);
	for (size_t i = 0; i < 4; i++)
		p = put32(p, head[i]);
	position = p;
	p = put64(put32(put32(p + 4, 0x12345678), CHUNK), 0x10000);
	p = put64(put32(p, 0), 0);			/* end of the lists */
	rpc_at = p;
	p = put32(p, xid);
	for (size_t i = 0; i < sizeof(rpc) / 4; i++)
		p = put32(p, rpc[i]);
	p = put32(p, 32);				/* a handle */
	memset(p, 7, 32);
	p = put64(p + 32, 0);
	p = put32(put32(put32(p, CHUNK), 0), CHUNK);
	put32(position, (uint32_t)(p - rpc_at));
	give(0x41, SEND, rest, (size_t)(p - rest));
}

/* The server's Read Request. */
static void learn(void)
{
	const uint8_t *p = fpdu + 2 + UNTAGGED;

	if (next() != READ_REQUEST)
		fail("no Read Request");
	stag = get32(p);
	offset = (uint64_t)get32(p + 4) << 32 | get32(p + 8);
	printf("sink 0x%x at 0x%llx, %u bytes\n", stag,
	       (unsigned long long)offset, get32(p + 12));
}

static void answer(void)
{
	for (uint32_t at = 0; at < CHUNK; at += PIECE)
		give_tagged(READ_RESPONSE, offset + at, PIECE,
			    at + PIECE == CHUNK);
	if (next() != SEND && (fpdu[3] & 15) != SEND + 1)
		fail("no reply");
}

/* Our Write was refused: a Terminate, if it got through, and the end. */
static void expect_end(const char *what)
{
	int opcode;

	while ((opcode = next()) >= 0)
		if (opcode != TERMINATE)
			fail(what);
	printf("%s: refused\n", what);
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	int other;

	if (argc != 3 || inet_pton(AF_INET, argv[1], &sin.sin_addr) != 1)
		return 2;
	sin.sin_port = htons((uint16_t)atoi(argv[2]));
	setvbuf(stdout, NULL, _IOLBF, 0);

	hello(&sin);
	call(1);
	learn();
	give_tagged(WRITE, offset + CHUNK, 64, true);
	expect_end("a Write past the sink");

	hello(&sin);
	call(2);
	learn();
	give_tagged(WRITE, offset - 4096, 64, true);
	expect_end("a Write before the sink");

	hello(&sin);
	call(3);
	learn();
	answer();
	give_tagged(WRITE, offset, 64, true);
	expect_end("a Write into the sink after its Read");

	hello(&sin);
	call(4);
	learn();
	other = fd;
	hello(&sin);
	give_tagged(WRITE, offset, 64, true);
	expect_end("a Write into the sink of another");
	fd = other;
	answer();
	close(fd);
	return 0;
}
