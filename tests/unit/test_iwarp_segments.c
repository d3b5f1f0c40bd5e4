/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where FPDUs lie in TCP's segments (RFC 5044 section 5.1): data that is handed
 * to the socket at once begins a segment, so segments end at each multiple of
 * their size from there.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/util.h"
#include "lib/xdr.h"
#include "tests/unit/iwarp_raw.h"
#include "tests/unit/runner.h"

enum { CHAIN = 15, ROUNDS = 20, LONG = 1 << 16, READS = 4,
       SENT = CHAIN * ROUNDS * LONG * 2, MOST_CALLS = 100000 };

static struct raw raw;

/* The bytes that sendmsg() took.  They are the connection's alone: the plain
 * socket uses send(). */
static struct {
	uint8_t	*bytes;
	size_t	 len;
	size_t	 end[MOST_CALLS];
	int	 flags[MOST_CALLS];
	bool	 whole[MOST_CALLS];	/* the socket took all of it */
	unsigned n;
} sent;

ssize_t __real_sendmsg(int fd, const struct msghdr *mh, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *mh, int flags);

ssize_t __wrap_sendmsg(int fd, const struct msghdr *mh, int flags)
{
	ssize_t n = __real_sendmsg(fd, mh, flags);
	size_t left = n > 0 ? (size_t)n : 0, all = 0;

	for (size_t i = 0; i < mh->msg_iovlen; i++)
		all += mh->msg_iov[i].iov_len;

	for (size_t i = 0; left > 0; i++) {
		size_t part = MIN(left, mh->msg_iov[i].iov_len);

		ck_assert_uint_le(sent.len + part, SENT);
		memcpy(sent.bytes + sent.len, mh->msg_iov[i].iov_base, part);
		sent.len += part;
		left -= part;
	}
	if (n > 0) {
		ck_assert_uint_lt(sent.n, MOST_CALLS);
		sent.flags[sent.n] = flags;
		sent.whole[sent.n] = (size_t)n == all;
		sent.end[sent.n++] = sent.len;
	}
	return n;
}

TEST_CASE(.timeout = 60);

static size_t take(int fd, int flags)
{
	static uint8_t in[1 << 16];
	ssize_t n = recv(fd, in, sizeof(in), flags);

	return n > 0 ? (size_t)n : 0;
}

/* Posts Writes and Sends of any length, and reads the stream. */
static void exchange(int fd, int mss)
{
	static struct fabric_sge sge[CHAIN];
	static struct fabric_wr wr[CHAIN];
	size_t taken = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < CHAIN; i++) {
			int most = rand() & 1 ? LONG : 4 * mss;
			unsigned len = (unsigned)(rand() % most);

			sge[i] = (struct fabric_sge){ raw.area, len, 0 };
			wr[i] = (struct fabric_wr){
				.next = i < CHAIN - 1 ? &wr[i + 1] : NULL,
				.opcode = i % 3 == 2 ? FABRIC_SEND :
						       FABRIC_WRITE,
				.sge = &sge[i], .nsge = 1,
			};
		}
		wr[CHAIN - 1].op = &raw.send_op;
		ck_assert_int_eq(fabric_post(raw.conn, wr), 0);
		while (sem_trywait(&raw.sent) < 0)
			taken += take(fd, MSG_DONTWAIT);
		ck_assert_int_eq(raw.sent_status, 0);
	}
	while (taken < sent.len)
		taken += take(fd, 0);
}

/* A Write leaves room in its segment for a Read Request without its CRC. */
static void read_behind_a_write(int fd, int mss, bool crc)
{
	static uint8_t sink[READS][4], in[65536];
	static struct fabric_sge sge[1 + READS];
	static struct fabric_wr wr[1 + READS];
	struct ddp_header h = { .tagged = true, .last = true, .payload = 4,
				.opcode = RDMAP_READ_RESPONSE };
	size_t request = 52, write = ((size_t)mss & ~3u) - request + 4;

	sge[0] = (struct fabric_sge){ raw.area, (uint32_t)write - 20, 0 };
	wr[0] = (struct fabric_wr){ .opcode = FABRIC_WRITE, .next = &wr[1],
				    .sge = &sge[0], .nsge = 1 };
	for (unsigned i = 1; i <= READS; i++) {
		sge[i] = (struct fabric_sge){ sink[i - 1], 4, 0 };
		wr[i] = (struct fabric_wr){ .opcode = FABRIC_READ,
			.next = i < READS ? &wr[i + 1] : NULL,
			.sge = &sge[i], .nsge = 1 };
	}
	wr[READS].op = &raw.send_op;
	ck_assert_int_eq(fabric_post(raw.conn, wr), 0);
	raw_get(fd, in, write);
	for (unsigned i = 0; i < READS; i++) {
		raw_get(fd, in, request);
		/* The sink is right behind the header. */
		h.stag = xdr_word(in + DDP_UNTAGGED_LEN);
		raw_send_fpdu(fd, h, raw.area, crc);
	}
	wait_sem(&raw.sent);
	ck_assert_int_eq(raw.sent_status, 0);
}

/* Looks at the FPDU of @len bytes at @at behind the start of a segment. */
static void check_fpdu(size_t at, size_t len, const uint8_t *fpdu, size_t mss)
{
	size_t payload = (size_t)fpdu[0] << 8 | fpdu[1];
	size_t trailer = len - 2 - payload;
	size_t left = mss - at % mss;

	ck_assert_uint_le(len, mss);
	if (len <= left)
		return;
	/* An FPDU goes into the next segment only if this one has no room for
	 * it, and never with a part of its CRC alone. */
	ck_assert_uint_lt(left, 136);
	ck_assert_uint_le(left, len - trailer);
}

static void check_sent(size_t mss)
{
	size_t begin = 0, at = 0;

	for (unsigned i = 0; i < sent.n; i++) {
		ck_assert(sent.flags[i] & MSG_EOR);
		ck_assert(!(sent.flags[i] & MSG_MORE));
		while (at < sent.end[i]) {
			const uint8_t *p = sent.bytes + at;
			size_t len = ddp_fpdu_len((unsigned)p[0] << 8 | p[1]);

			check_fpdu(at - begin, len, p, mss);
			at += len;
		}
		/* The rest follows in the same segments. */
		if (sent.whole[i])
			begin = sent.end[i];
	}
	ck_assert_uint_eq(at, sent.len);
}

static const int sizes[] = { 548, 1380, 1398, 1448, 8949 };

TEST_LOOP(fpdus_lie_within_segments, 0, (int)ARRAY_SIZE(sizes) * 2)
{
	socklen_t len = sizeof(int);
	int fd, mss;

	srand((unsigned)_i);
	sent.bytes = malloc(SENT);
	ck_assert_ptr_nonnull(sent.bytes);
	raw_open_as(&raw, &(struct iwarp_options){ .no_crc = _i & 1 });
	raw.mss = sizes[_i / 2] + 12;
	fd = raw_hello(&raw, REQ_SIW);
	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len),
			 0);
	sent.len = sent.n = 0;
	exchange(fd, mss);
	read_behind_a_write(fd, mss, !(_i & 1));
	check_sent((size_t)mss);
	close(fd);
	raw_close(&raw);
	free(sent.bytes);
}
