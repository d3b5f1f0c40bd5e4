/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The promises of fabric.h, tested on a provider with both ends in one process.
 *
 * 	fabric_pair [loop[,SEED] | iwarp[OPTIONS] | verbs [ADDRESS [TEST]]]
 *
 * ADDRESS belongs to an RDMA device.  The default is the loop fabric, which
 * needs none.  With TEST, only tests whose names contain it run.
 * tests/fabric/iwarp_options.h has the OPTIONS.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <time.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "tests/fabric/iwarp_options.h"
#include "tests/fabric/pair.h"
#include "transport/fabric/iwarp/iwarp.h"
#include "tests/loop/loop.h"
#include "transport/fabric/verbs/verbs.h"

static struct fabric fabric;

static void fill(uint8_t *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)((i * 2654435761u + seed) >> 8);
}

static void private_data_goes_both_ways(void)
{
	struct pair p = { .fabric = &fabric };

	pair_open(&p);
	CHECK(p.active.conn->info.private_len >= 7);
	CHECK(memcmp(p.active.conn->info.private_data, "gannet", 7) == 0);
	CHECK(p.active.conn->info.read_depth > 0);
	CHECK(p.active.conn->info.read_depth <= 16);
	CHECK(p.passive.conn->info.read_depth <= 16);
	pair_close(&p);
	CHECK(p.active.err == 0);
	CHECK(p.passive.err != 0);
}

static void sends_arrive_in_order(void)
{
	struct pair p = { .fabric = &fabric };

	pair_open(&p);
	for (unsigned i = 0; i < 3 * RECVS; i++) {
		struct pair_end *from = i & 1 ? &p.active : &p.passive;
		struct pair_end *to = i & 1 ? &p.passive : &p.active;
		uint8_t out[RECV_SIZE];
		uint32_t len = 1 + i * 21 % RECV_SIZE;
		struct pair_recv *r;

		fill(out, len, i);
		CHECK(pair_send(from, out, len) == 0);
		r = pair_next(to);
		CHECK(r->len == len);
		CHECK(memcmp(r->data, out, len) == 0);
		CHECK(!r->recv.has_invalidated);
		pair_again(r);
	}
	pair_close(&p);
}

/* @n Writes of @len bytes each, from two pieces, then a Send. */
static void write_and_send(struct pair *p, unsigned n, uint32_t len)
{
	struct pair_end *e = &p->passive;
	struct fabric_wr *wr = calloc(n + 1, sizeof(*wr));
	struct fabric_sge *sge = calloc(2 * n + 1, sizeof(*sge));
	struct pair_op op;
	struct pair_recv *r;

	memset(p->active.area, 0xee, AREA);
	fill(e->area, AREA, n + len);
	for (unsigned i = 0; i < n; i++) {
		uint8_t *src = e->area + i * len;
		uint32_t first = len / 3;

		sge[2 * i] = (struct fabric_sge){ src, first,
						  e->source_mr->lkey };
		sge[2 * i + 1] = (struct fabric_sge){ src + first, len - first,
						      e->source_mr->lkey };
		wr[i] = (struct fabric_wr){
			.next = &wr[i + 1], .opcode = FABRIC_WRITE,
			.sge = &sge[2 * i], .nsge = 2,
			.handle = e->handle, .offset = e->offset + i * len,
		};
	}
	sge[2 * n] = (struct fabric_sge){ e->area, 77, e->source_mr->lkey };
	wr[n] = (struct fabric_wr){ .opcode = FABRIC_SEND, .op = &op.op,
				    .sge = &sge[2 * n], .nsge = 1 };
	pair_op_init(&op);
	CHECK(fabric_post(e->conn, &wr[0]) == 0);
	/* All of it is there when the Send is. */
	r = pair_next(&p->active);
	CHECK(r->len == 77);
	CHECK(memcmp(p->active.area, e->area, n * len) == 0);
	CHECK(n * len == AREA || p->active.area[n * len] == 0xee);
	CHECK(pair_op_wait(&op) == 0);
	pair_again(r);
	free(wr);
	free(sge);
}

static void a_send_comes_after_the_writes_before_it(void)
{
	struct pair p = { .fabric = &fabric };

	pair_open(&p);
	write_and_send(&p, 1, 5);
	write_and_send(&p, 9, 120 << 10);
	write_and_send(&p, 3, 333333);
	pair_close(&p);
}

static void chains_may_be_long(void)
{
	struct pair p = { .fabric = &fabric };

	pair_open(&p);
	for (unsigned n = 30; n < 37; n++)
		write_and_send(&p, n, 1000 + n);
	write_and_send(&p, 127, 5001);
	pair_close(&p);
}

/* @n Reads of @len bytes each, at most the agreed number at a time. */
static void read_all(struct pair *p, unsigned n, uint32_t len)
{
	struct pair_end *e = &p->passive;
	unsigned depth = e->conn->info.read_depth;
	struct pair_op *ops = calloc(n, sizeof(*ops));
	struct fabric_sge *sge = calloc(n, sizeof(*sge));
	struct fabric_wr *wr = calloc(n, sizeof(*wr));

	fill(p->active.area, AREA, n + len);
	memset(e->area, 0xee, AREA);
	for (unsigned i = 0; i < n; i++) {
		sge[i] = (struct fabric_sge){ e->area + i * len, len,
					      e->area_mr->lkey };
		wr[i] = (struct fabric_wr){
			.opcode = FABRIC_READ, .op = &ops[i].op,
			.sge = &sge[i], .nsge = 1,
			.handle = e->handle, .offset = e->offset + i * len,
		};
		pair_op_init(&ops[i]);
		if (i >= depth)
			CHECK(pair_op_wait(&ops[i - depth]) == 0);
		CHECK(fabric_post(e->conn, &wr[i]) == 0);
	}
	for (unsigned i = n > depth ? n - depth : 0; i < n; i++)
		CHECK(pair_op_wait(&ops[i]) == 0);
	CHECK(memcmp(p->active.area, e->area, n * len) == 0);
	CHECK(n * len == AREA || e->area[n * len] == 0xee);
	free(ops);
	free(sge);
	free(wr);
}

static void reads_fill_the_depth(void)
{
	struct pair p = { .fabric = &fabric };

	pair_open(&p);
	read_all(&p, 1, 7);
	read_all(&p, 64, 4096);
	read_all(&p, 17, 120001);
	pair_close(&p);
}

/* The Send can be on its way before the Read's data is. */
static void a_send_after_a_read_is_done_after_it(void)
{
	struct pair p = { .fabric = &fabric };
	struct pair_end *e = &p.passive;

	pair_open(&p);
	for (unsigned i = 0; i < RECVS / 2; i++) {
		struct fabric_sge sge[2] = {
			{ e->area, 300000, e->area_mr->lkey },
			{ e->area + (1 << 20), 100, e->source_mr->lkey },
		};
		struct pair_op ops[2];
		struct fabric_wr wr[2] = {
			{ .opcode = FABRIC_READ, .op = &ops[0].op,
			  .sge = &sge[0], .nsge = 1, .handle = e->handle,
			  .offset = e->offset },
			{ .opcode = FABRIC_SEND, .op = &ops[1].op,
			  .sge = &sge[1], .nsge = 1 },
		};

		pair_op_init(&ops[0]);
		pair_op_init(&ops[1]);
		CHECK(fabric_post(e->conn, &wr[0]) == 0);
		CHECK(fabric_post(e->conn, &wr[1]) == 0);
		CHECK(pair_op_wait(&ops[1]) == 0);
		CHECK(atomic_load(&ops[0].calls) == 1);
		CHECK(ops[0].status == 0);
		pair_again(pair_next(&p.active));
	}
	pair_close(&p);
}

static void a_read_begins_at_any_offset(void)
{
	struct pair p = { .fabric = &fabric };
	struct pair_end *e = &p.passive;
	struct fabric_sge sge;
	struct pair_op op;
	struct fabric_wr wr = { .opcode = FABRIC_READ, .op = &op.op,
				.sge = &sge, .nsge = 1 };

	pair_open(&p);
	wr.handle = e->handle;
	wr.offset = e->offset + 3;
	fill(p.active.area, AREA, 5);
	sge = (struct fabric_sge){ e->area, 10001, e->area_mr->lkey };
	pair_op_init(&op);
	CHECK(fabric_post(e->conn, &wr) == 0);
	CHECK(pair_op_wait(&op) == 0);
	CHECK(memcmp(e->area, p.active.area + 3, 10001) == 0);
	pair_close(&p);
}

static void a_send_can_invalidate(void)
{
	struct pair p = { .fabric = &fabric };
	struct pair_end *e = &p.passive;
	struct fabric_sge sge;
	struct pair_op op;
	struct fabric_wr wr = { .opcode = FABRIC_SEND_INV, .op = &op.op,
				.sge = &sge, .nsge = 1 };
	struct pair_recv *r;

	pair_open(&p);
	if (e->conn->info.remote_inv &&
	    p.active.conn->dev->limits.invalidates) {
		sge = (struct fabric_sge){ e->area, 9, e->source_mr->lkey };
		wr.invalidate = e->handle;
		pair_op_init(&op);
		CHECK(fabric_post(e->conn, &wr) == 0);
		CHECK(pair_op_wait(&op) == 0);
		r = pair_next(&p.active);
		CHECK(r->recv.has_invalidated);
		CHECK(r->recv.invalidated == e->handle);
	}
	pair_close(&p);
}

/* A chain of one good Write, a bad step, and a Send. */
static void fail_with(enum fabric_opcode opcode, uint32_t handle_xor,
		      uint64_t offset)
{
	struct pair p = { .fabric = &fabric };
	struct pair_end *e = &p.passive;
	struct fabric_sge sge[2];
	struct pair_op ops[3];
	struct fabric_wr wr[3] = {
		{ .next = &wr[1], .opcode = FABRIC_WRITE, .op = &ops[0].op,
		  .sge = &sge[0], .nsge = 1 },
		{ .next = &wr[2], .opcode = opcode, .op = &ops[1].op,
		  .sge = &sge[1], .nsge = 1 },
		{ .opcode = FABRIC_SEND, .op = &ops[2].op, .sge = &sge[0],
		  .nsge = 1 },
	};

	pair_open(&p);
	sge[0] = (struct fabric_sge){ e->area, 64, e->source_mr->lkey };
	sge[1] = (struct fabric_sge){ e->area + 4096, 64, e->area_mr->lkey };
	wr[0].handle = e->handle;
	wr[0].offset = e->offset;
	wr[1].handle = e->handle ^ handle_xor;
	wr[1].offset = e->offset + offset;
	for (unsigned i = 0; i < 3; i++)
		pair_op_init(&ops[i]);
	CHECK(fabric_post(e->conn, wr) == 0);
	pair_finish(&p);
	for (unsigned i = 0; i < 3; i++)
		CHECK(atomic_load(&ops[i].calls) == 1);
	/* An iWARP Write is done when it is sent, not when it is placed. */
	if (opcode == FABRIC_READ)
		CHECK(ops[1].status != 0);
	CHECK(p.passive.err != 0);
	CHECK(p.active.err != 0);
}

static void a_bad_handle_ends_the_connection(void)
{
	fail_with(FABRIC_WRITE, 0x00ff00, 0);
	fail_with(FABRIC_READ, 0x00ff00, 0);
}

static void a_bad_offset_ends_the_connection(void)
{
	fail_with(FABRIC_WRITE, 0, AREA - 63);
	fail_with(FABRIC_READ, 0, AREA - 63);
	fail_with(FABRIC_WRITE, 0, 1ull << 40);
}

static void a_send_too_long_ends_the_connection(void)
{
	struct pair p = { .fabric = &fabric };
	struct pair_end *e = &p.passive;
	struct fabric_sge sge;
	struct pair_op op;
	struct fabric_wr wr = { .opcode = FABRIC_SEND, .op = &op.op,
				.sge = &sge, .nsge = 1 };

	pair_open(&p);
	sge = (struct fabric_sge){ e->area, RECV_SIZE + 1,
				   e->source_mr->lkey };
	pair_op_init(&op);
	CHECK(fabric_post(e->conn, &wr) == 0);
	pair_op_wait(&op);
	pair_finish(&p);
	CHECK(atomic_load(&p.active.ngot) == 0);
}

static void closing_flushes_what_is_posted(void)
{
	struct pair p = { .fabric = &fabric };

	pair_open(&p);
	fabric_close(p.passive.conn);
	fabric_close(p.passive.conn);
	pair_finish(&p);
	CHECK(atomic_load(&p.active.nfailed) == RECVS);
	CHECK(atomic_load(&p.passive.nfailed) == RECVS);
	for (unsigned i = 0; i < RECVS; i++)
		CHECK(p.passive.recvs[i].status == -ECANCELED);
	CHECK(p.passive.err == 0);
	CHECK(p.active.err != 0);
}

static void nothing_is_posted_after_the_end(void)
{
	struct pair p = { .fabric = &fabric };

	pair_open(&p);
	fabric_close(p.passive.conn);
	pair_wait(&p.passive.closed);
	CHECK(pair_send(&p.passive, "x", 1) == -ENOTCONN);
	sem_post(&p.passive.closed);
	pair_finish(&p);
}

static void a_rejected_peer_is_told(void)
{
	struct pair p = { .fabric = &fabric };
	struct pair_end *a = &p.active;

	for (unsigned i = 0; i < 2; i++) {
		pair_ask(&p);
		if (i)
			CHECK(pair_setup(&p.passive) == 0);
		pair_reject(&p);
		pair_end_finish(a);
		CHECK(a->err != 0);
		CHECK(atomic_load(&a->nfailed) == RECVS);
		/* A rejected connection is not reported as closed. */
		CHECK(atomic_load(&p.passive.closed_calls) == 0);
	}
}

static void a_close_before_the_answer_closes(void)
{
	struct pair p = { .fabric = &fabric };

	pair_ask(&p);
	fabric_close(p.active.conn);
	/* The passive end can learn of it now or later. */
	if (pair_setup(&p.passive)) {
		pair_reject(&p);
	} else {
		pair_start_passive(&p.passive);
		pair_end_finish(&p.passive);
	}
	pair_end_finish(&p.active);
}

static atomic_bool stop_posting;

static void post_all_the_time(void *arg)
{
	struct pair_end *e = arg;

	while (!atomic_load(&stop_posting) && pair_send(e, "ping", 4) == 0)
		;
}

static void posts_may_race_with_the_end(void)
{
	for (unsigned i = 0; i < 10; i++) {
		struct pair p = { .fabric = &fabric };
		pthread_t thread;
		struct pair_recv *r;

		pair_open(&p);
		atomic_store(&stop_posting, false);
		CHECK(thread_start(&thread, "poster", post_all_the_time,
				   &p.active) == 0);
		for (unsigned n = 0; n < 3 * i; n++) {
			r = pair_next(&p.passive);
			pair_again(r);
		}
		fabric_close(i & 1 ? p.active.conn : p.passive.conn);
		atomic_store(&stop_posting, true);
		pthread_join(thread, NULL);
		pair_finish(&p);
	}
}

static void many_connections_live_together(void)
{
	static struct pair p[40];

	for (unsigned i = 0; i < ARRAY_SIZE(p); i++) {
		p[i].fabric = &fabric;
		pair_open(&p[i]);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++) {
		CHECK(pair_send(&p[i].passive, &i, sizeof(i)) == 0);
		CHECK(memcmp(pair_next(&p[i].active)->data, &i,
			     sizeof(i)) == 0);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++)
		fabric_close(p[i].passive.conn);
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++)
		pair_finish(&p[i]);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
#define TEST(fn) { #fn, fn }
	TEST(private_data_goes_both_ways),
	TEST(sends_arrive_in_order),
	TEST(a_send_comes_after_the_writes_before_it),
	TEST(chains_may_be_long),
	TEST(reads_fill_the_depth),
	TEST(a_read_begins_at_any_offset),
	TEST(a_send_after_a_read_is_done_after_it),
	TEST(a_send_can_invalidate),
	TEST(a_bad_handle_ends_the_connection),
	TEST(a_bad_offset_ends_the_connection),
	TEST(a_send_too_long_ends_the_connection),
	TEST(closing_flushes_what_is_posted),
	TEST(nothing_is_posted_after_the_end),
	TEST(a_rejected_peer_is_told),
	TEST(a_close_before_the_answer_closes),
	TEST(posts_may_race_with_the_end),
	TEST(many_connections_live_together),
};

static void parse_addr(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		return;
	}
	in->sin_family = AF_INET;
	CHECK(inet_pton(AF_INET, text, &in->sin_addr) == 1);
}

static unsigned long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long)ts.tv_sec * 1000 +
	       (unsigned long)ts.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	const char *provider = argc > 1 ? argv[1] : "loop";
	struct loop_fabric_options options = { 0 };
	struct iwarp_options iwarp;
	struct sockaddr_storage addr;
	unsigned long begin;

	iwarp_options_parse(provider, &iwarp);
	parse_addr(argc > 2 ? argv[2] : "127.0.0.1", &addr);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(provider, "verbs") == 0) {
		if (!verbs_available())
			return 77;
		CHECK(verbs_fabric_create(&fabric) == 0);
	} else if (strncmp(provider, "loop", 4) == 0) {
		if (provider[4] == ',')
			options.seed = (uint32_t)strtoul(provider + 5, NULL,
							 10);
		CHECK(loop_fabric_create(&options, &fabric) == 0);
	} else if (strncmp(provider, "iwarp", 5) == 0) {
		CHECK(iwarp_fabric_create(&iwarp, &fabric) == 0);
	} else {
		fprintf(stderr, "no provider %s\n", provider);
		return 2;
	}
	pair_start(&fabric, (struct sockaddr *)&addr);
	for (unsigned i = 0; i < ARRAY_SIZE(tests); i++) {
		if (argc > 3 && !strstr(tests[i].name, argv[3]))
			continue;
		begin = now_ms();
		tests[i].run();
		printf("ok %s, %lu ms\n", tests[i].name, now_ms() - begin);
	}
	pair_stop();
	if (strcmp(provider, "verbs") == 0)
		verbs_fabric_destroy(&fabric);
	else if (strncmp(provider, "iwarp", 5) == 0)
		iwarp_fabric_destroy(&fabric);
	else
		loop_fabric_destroy(&fabric);
	return 0;
}
