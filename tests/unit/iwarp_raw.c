/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp_raw - the iWARP fabric against a plain socket that speaks bytes. */
#include "tests/unit/iwarp_raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/unit/runner.h"
#include "transport/fabric/iwarp/crc32c.h"

static const uint8_t private_data[8] = { 0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3 };

static void recv_done(struct fabric_op *op, int status, uint32_t len)
{
	struct raw_recv *rr = container_of(op, struct raw_recv, op);
	struct raw *r = rr->raw;

	if (status < 0) {
		atomic_fetch_add(&r->flushed, 1);
		return;
	}
	r->got_len = len;
	atomic_fetch_add(&r->got, 1);
	fabric_post_recv(r->conn, &rr->recv);
	sem_post(&r->arrived);
}

static void send_done(struct fabric_op *op, int status, uint32_t len)
{
	struct raw *r = container_of(op, struct raw, send_op);

	r->sent_status = status;
	sem_post(&r->sent);
}

static void established(struct fabric_conn *c)
{
	struct raw *r = c->upper;

	r->info = c->info;
	r->depths = iwarp_peer_depths(c);
	if (r->greet) {
		r->send_sge = (struct fabric_sge){ r->area, 5, 0 };
		r->send_wr = (struct fabric_wr){
			.opcode = FABRIC_SEND, .op = &r->send_op,
			.sge = &r->send_sge, .nsge = 1 };
		memcpy(r->area, "hello", 5);
		ck_assert_int_eq(fabric_post(c, &r->send_wr), 0);
	}
	sem_post(&r->established);
}

static void closed(struct fabric_conn *c, int err)
{
	struct raw *r = c->upper;

	r->err = err;
	r->last_depths = iwarp_peer_depths(c);
	r->conn = NULL;
	fabric_free(c);
	sem_post(&r->closed);
}

static void bring_up(struct raw *r, struct fabric_conn *c)
{
	struct fabric_queues q = { 16, RAW_RECVS, 4 };

	r->conn = c;
	r->dev = c->dev;
	c->upper = r;
	c->established = established;
	c->closed = closed;
	ck_assert_int_eq(fabric_setup(c, r->loop, &q), 0);
	for (int i = 0; i < RAW_RECVS; i++) {
		struct raw_recv *rr = &r->recvs[i];

		rr->raw = r;
		rr->op.done = recv_done;
		rr->recv.op = &rr->op;
		rr->recv.sge = (struct fabric_sge){ r->mem[i], RAW_RECV, 0 };
		ck_assert_int_eq(fabric_post_recv(c, &rr->recv), 0);
	}
	/* It fails when the peer has broken a rule; closed() comes then. */
	if (fabric_start(c, private_data, sizeof(private_data), r->read_depth))
		return;
}

/* Sends a byte as the peer, and answers when it has arrived. */
static void answer_talker(struct loop_task *t)
{
	struct raw *r = container_of(t, struct raw, task);
	int left;

	raw_put(r->talker, "", 1);
	EVENTUALLY(ioctl(r->talker, SIOCOUTQ, &left) == 0 && left == 0);
	bring_up(r, r->conn);
}

static void request(struct fabric_listener *l, struct fabric_conn *c)
{
	struct raw *r = l->upper;

	if (r->reject) {
		fabric_reject(c);
	} else if (r->talker) {
		r->conn = c;
		loop_post(r->loop, &r->task, answer_talker);
	} else {
		bring_up(r, c);
	}
}

void raw_open(struct raw *r, const struct iwarp_options *options)
{
	struct iwarp_options plain = { .v4_too = false };

	if (options)
		plain = *options;
	plain.no_crc = true;
	raw_open_as(r, &plain);
}

void raw_open_as(struct raw *r, const struct iwarp_options *options)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };

	memset(r, 0, sizeof(*r));
	sem_init(&r->arrived, 0, 0);
	sem_init(&r->established, 0, 0);
	sem_init(&r->closed, 0, 0);
	sem_init(&r->sent, 0, 0);
	r->send_op.done = send_done;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(iwarp_fabric_create(options, &r->fabric), 0);
	ck_assert_int_eq(loop_create("raw", &r->loop), 0);
	ck_assert_int_eq(loop_start(r->loop), 0);
	ck_assert_int_eq(fabric_listen(&r->fabric, (struct sockaddr *)&addr,
				       r->loop, request, r, &r->listener), 0);
}

static void close_here(void *arg)
{
	struct raw *r = arg;

	if (r->conn)
		fabric_close(r->conn);
	else
		sem_post(&r->closed);
}

void raw_close(struct raw *r)
{
	while (sem_trywait(&r->closed) == 0)
		;
	fabric_unlisten(r->listener);
	loop_call(r->loop, close_here, r);
	wait_sem(&r->closed);
	loop_stop(r->loop);
	loop_destroy(r->loop);
	iwarp_fabric_destroy(&r->fabric);
}

int raw_post(struct raw *r, struct fabric_wr *wr)
{
	wr->op = &r->send_op;
	return fabric_post(r->conn, wr);
}

/* ---- the plain socket */

static void set_timeout(int fd)
{
	struct timeval tv = { .tv_sec = 60 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

int raw_dial(struct raw *r)
{
	return raw_dial_from(r, INADDR_ANY);
}

int raw_dial_from(struct raw *r, in_addr_t from)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(from) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	set_timeout(fd);
	if (r->mss)
		ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG,
					    &r->mss, sizeof(r->mss)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&r->listener->local,
				 sizeof(struct sockaddr_in)), 0);
	return fd;
}

void raw_put(int fd, const void *data, size_t len)
{
	ck_assert_int_eq(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

void raw_put_hex(int fd, const char *hex)
{
	uint8_t data[1024];

	raw_put(fd, data, unhex(hex, data));
}

void raw_get(int fd, void *data, size_t len)
{
	ck_assert_int_eq(recv(fd, data, len, MSG_WAITALL), (ssize_t)len);
}

void raw_expect_hex(int fd, const char *hex)
{
	uint8_t expected[1024], data[1024];
	size_t len = unhex(hex, expected);

	raw_get(fd, data, len);
	ck_assert_mem_eq(data, expected, len);
}

void raw_expect_end(int fd)
{
	uint8_t byte;

	ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
}

void raw_expect_gone(int fd)
{
	uint8_t byte;
	ssize_t n = recv(fd, &byte, 1, 0);

	ck_assert(n == 0 || (n < 0 && errno == ECONNRESET));
}

void raw_send_fpdu(int fd, struct ddp_header h, const void *payload, bool crc)
{
	static uint8_t data[70000];

	raw_put(fd, data, fpdu_put(data, &h, payload, crc));
}

void raw_broken(struct raw *r, struct ddp_header h, const void *payload,
		enum term code, const char *counter)
{
	uint64_t before = stats_sum_by_name(counter);
	int fd = raw_hello(r, REQ_SIW);

	raw_send_fpdu(fd, h, payload, false);
	raw_expect_term(fd, code, false);
	ck_assert_uint_eq(stats_sum_by_name(counter), before + 1);
	close(fd);
	wait_sem(&r->closed);
	ck_assert_int_eq(r->err, -EPROTO);
}

int raw_hello(struct raw *r, const char *request_hex)
{
	struct ddp_header h = { .last = true, .opcode = RDMAP_SEND, .msn = 1,
				.payload = 4 };
	uint8_t reply[32];
	int fd = raw_dial(r);

	raw_put_hex(fd, request_hex);
	raw_get(fd, reply, sizeof(reply));
	wait_sem(&r->established);
	raw_send_fpdu(fd, h, "ping", reply[16] & 0x40);
	wait_sem(&r->arrived);
	return fd;
}

void raw_expect_term(int fd, enum term code, bool crc)
{
	uint8_t fpdu[RAW_TERM];
	unsigned len;
	uint32_t sum;

	raw_get(fd, fpdu, 24);
	ck_assert_uint_eq(fpdu[3], 0x47);
	ck_assert_uint_eq(fpdu[11], DDP_QN_TERMINATE);
	ck_assert_uint_eq(fpdu[15], 1);
	ck_assert_uint_eq(rdmap_term_decode(fpdu + 20), (unsigned)code);
	len = ddp_fpdu_len((unsigned)fpdu[0] << 8 | fpdu[1]);
	ck_assert_uint_le(len, sizeof(fpdu));
	raw_get(fd, fpdu + 24, len - 24);
	sum = crc ? crc32c(0, fpdu, len - 4) : 0;
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(fpdu[len - 4 + i], sum >> 8 * i & 0xff);
	raw_expect_end(fd);
}

/* ---- the fabric's end connects */

struct call {
	struct raw *r;
	struct fabric_conn *c;
};

static void call_here(void *arg)
{
	struct call *call = arg;

	bring_up(call->r, call->c);
}

int raw_call(struct raw *r)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	struct call call = { .r = r };
	int lfd = socket(AF_INET, SOCK_STREAM, 0);
	int fd;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(lfd, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(listen(lfd, 1), 0);
	getsockname(lfd, (struct sockaddr *)&addr, &len);
	ck_assert_int_eq(fabric_connect(&r->fabric, (struct sockaddr *)&addr,
					&call.c), 0);
	fd = accept(lfd, NULL, NULL);
	ck_assert_int_ge(fd, 0);
	set_timeout(fd);
	close(lfd);
	loop_call(r->loop, call_here, &call);
	return fd;
}
