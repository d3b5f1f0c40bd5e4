/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop fabric under seeds (tests/loop/chance.c): each event that RDMA
 * allows happens, none that it forbids does, and a seed repeats it all.
 *
 * Both ends are on one loop.  The active one sends CALLS messages; the passive
 * one reads some memory of the active end's for each, and answers with a Write
 * and a Send.  Each event adds a letter and the number of its call to a log:
 * E and e are established(), S and s a Send that completed, R and r a Receive,
 * d a Read, C and c closed(), large ones of the active end.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "lib/log.h"
#include "lib/util.h"
#include "tests/unit/runner.h"
#include "tests/loop/loop.h"

enum { CALLS = 6, AREA = 300, SEEDS = 80 };

/* An operation of a call, and its letter in the log. */
struct step {
	struct fabric_op   op;
	struct fabric_recv recv;
	struct fabric_wr   wr[2];
	struct fabric_sge  sge[2];
	char		   letter;
	int		   call;
	struct end	  *end;
};

struct end {
	struct fabric_conn *c;		/* NULL: no connection */
	struct fabric_mr   *local, *remote, *sink;
	struct step	    send[CALLS], recv[CALLS], read[CALLS];
	uint8_t		    mem[3 * CALLS * AREA];
	uint8_t		    seen[CALLS * AREA];	/* by the peer's Writes */
	uint8_t		    got[CALLS * AREA];	/* by Reads */
	bool		    up;
	int		    waiting;	/* messages that came before that */
	int		    answers;
};

static struct fabric fabric;
static struct fabric_listener *listener;
static struct loop *loop;
static struct end active, passive;
static char text[1024];
static unsigned partly;		/* times that part of a Write was seen */
static sem_t over;
static int open_ends;

static void note(char letter, int call)
{
	size_t at = strlen(text);

	snprintf(text + at, sizeof(text) - at, "%c%d ", letter, call);
}

static uint8_t byte_of(int call, int i)
{
	return (uint8_t)(1 + (call * 31 + i) % 255);
}

/* The bytes of the answer to @call that are there. */
static int written(int call)
{
	int n = 0;

	for (int i = 0; i < AREA; i++)
		n += active.seen[call * AREA + i] == byte_of(call, i);
	return n;
}

static void look(void)
{
	for (int call = active.answers; call < CALLS; call++)
		partly += written(call) > 0 && written(call) < AREA;
}

/* Answers a message: a Read, then a Write and a Send. */
static void answer(int call)
{
	struct step *r = &passive.read[call], *s = &passive.send[call];
	uint8_t *from = passive.mem + call * AREA;

	for (int i = 0; i < AREA; i++)
		from[i] = byte_of(call, i);
	r->sge[0] = (struct fabric_sge){ passive.got + call * AREA, AREA,
					 passive.sink->lkey };
	r->wr[0] = (struct fabric_wr){ .opcode = FABRIC_READ, .op = &r->op,
		.sge = r->sge, .nsge = 1, .handle = active.local->rkey,
		.offset = (uintptr_t)(active.mem + call * AREA) };
	s->sge[0] = (struct fabric_sge){ from, AREA, passive.local->lkey };
	s->sge[1] = s->sge[0];
	s->wr[0] = (struct fabric_wr){ .opcode = FABRIC_WRITE, .sge = s->sge,
		.nsge = 1, .next = &s->wr[1], .handle = active.remote->rkey,
		.offset = (uintptr_t)(active.seen + call * AREA) };
	s->wr[1] = (struct fabric_wr){ .opcode = FABRIC_SEND, .op = &s->op,
		.sge = &s->sge[1], .nsge = 1 };
	if (fabric_post(passive.c, r->wr) < 0 ||
	    fabric_post(passive.c, s->wr) < 0)
		fabric_close(passive.c);
}

static void done(struct fabric_op *op, int status, uint32_t len)
{
	struct step *s = container_of(op, struct step, op);

	look();
	note(status < 0 ? '-' : s->letter, s->call);
	if (status < 0)
		return;
	if (s->letter == 'r' && passive.up)
		answer(s->call);
	else if (s->letter == 'r')
		passive.waiting++;
	if (s->letter == 'R') {
		/* A Send comes after the Writes before it. */
		ck_assert_int_eq(written(s->call), AREA);
		active.answers++;
	}
	if (s->letter == 'd')
		ck_assert_mem_eq(passive.got + s->call * AREA,
				 active.mem + s->call * AREA, AREA);
	if (s->letter == 'd' && s->call == CALLS - 1)
		fabric_close(passive.c);
}

static void closed(struct fabric_conn *c, int err)
{
	struct end *e = c->upper;

	note(e == &active ? 'C' : 'c', 0);
	if (--open_ends == 0)
		sem_post(&over);
}

static void established(struct fabric_conn *c)
{
	struct end *e = c->upper;

	note(e == &active ? 'E' : 'e', 0);
	e->up = true;
	for (int i = 0; i < CALLS && e == &active; i++) {
		struct step *s = &e->send[i];

		s->sge[0] = (struct fabric_sge){ e->mem + i * AREA, AREA,
						 e->local->lkey };
		s->wr[0] = (struct fabric_wr){ .opcode = FABRIC_SEND,
			.op = &s->op, .sge = s->sge, .nsge = 1 };
		if (fabric_post(e->c, s->wr) < 0)
			fabric_close(e->c);
	}
	for (int i = 0; i < e->waiting; i++)
		answer(i);
}

static void step_init(struct step *s, struct end *e, char letter, int call)
{
	s->op.done = done;
	s->letter = letter;
	s->call = call;
	s->end = e;
}

static void prepare(struct end *e, struct fabric_conn *c)
{
	struct fabric_queues q = { 4 * CALLS, CALLS, 1 };
	bool first = e == &active;

	e->c = c;
	c->upper = e;
	c->established = established;
	c->closed = closed;
	open_ends++;
	ck_assert_int_eq(fabric_setup(c, loop, &q), 0);
	ck_assert_int_eq(fabric_mr_create(c->dev, e->mem, sizeof(e->mem),
				FABRIC_REMOTE_READ, &e->local), 0);
	ck_assert_int_eq(fabric_mr_create(c->dev, e->seen, sizeof(e->seen),
				FABRIC_REMOTE_WRITE, &e->remote), 0);
	ck_assert_int_eq(fabric_mr_create(c->dev, e->got, sizeof(e->got),
				FABRIC_READ_SINK, &e->sink), 0);
	for (int i = 0; i < CALLS; i++) {
		step_init(&e->send[i], e, first ? 'S' : 's', i);
		step_init(&e->recv[i], e, first ? 'R' : 'r', i);
		step_init(&e->read[i], e, 'd', i);
		e->recv[i].recv.op = &e->recv[i].op;
		e->recv[i].recv.sge = (struct fabric_sge){
			e->mem + (CALLS + i) * AREA, AREA, e->local->lkey };
		ck_assert_int_eq(fabric_post_recv(c, &e->recv[i].recv), 0);
	}
}

static void request(struct fabric_listener *l, struct fabric_conn *c)
{
	prepare(&passive, c);
	ck_assert_int_eq(fabric_start(c, NULL, 0, 16), 0);
}

static void begin(void *arg)
{
	struct fabric_conn *c = arg;

	prepare(&active, c);
	ck_assert_int_eq(fabric_start(c, NULL, 0, 16), 0);
}

static void end_free(void *arg)
{
	struct end *e = arg;

	if (!e->c)
		return;
	fabric_free(e->c);
	fabric_mr_destroy(e->local);
	fabric_mr_destroy(e->remote);
	fabric_mr_destroy(e->sink);
}

/* Fills in the log. */
static void run(const struct loop_fabric_options *o)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct loop_fabric_counts n;
	struct fabric_conn *c;

	memset(&active, 0, sizeof(active));
	memset(&passive, 0, sizeof(passive));
	text[0] = '\0';
	log_threshold = LOG_LEVEL_ERR;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sem_init(&over, 0, 0);
	ck_assert_int_eq(loop_create("both", &loop), 0);
	ck_assert_int_eq(loop_start(loop), 0);
	ck_assert_int_eq(loop_fabric_create(o, &fabric), 0);
	ck_assert_int_eq(fabric_listen(&fabric, (struct sockaddr *)&addr, loop,
				       request, NULL, &listener), 0);
	ck_assert_int_eq(fabric_connect(&fabric, (struct sockaddr *)
					&listener->local, &c), 0);
	loop_call(loop, begin, c);
	wait_sem(&over);
	loop_call(loop, end_free, &active);
	loop_call(loop, end_free, &passive);
	fabric_unlisten(listener);
	loop_fabric_count(&fabric, &n);
	ck_assert_uint_eq(n.violations + n.ends + n.mrs + n.refused, 0);
	loop_stop(loop);
	loop_destroy(loop);
	loop_fabric_destroy(&fabric);
	sem_destroy(&over);
}

/* Where an event is in the log; the end, if it is not there. */
static size_t at(const char *event)
{
	const char *found = strstr(text, event);

	return found ? (size_t)(found - text) : strlen(text);
}

/* Numbered pairs: how often @a comes before @b. */
static unsigned before(char a, char b)
{
	char first[16], second[16];
	unsigned n = 0;

	for (int i = 0; i < CALLS; i++) {
		snprintf(first, sizeof(first), "%c%d", a, i);
		snprintf(second, sizeof(second), "%c%d", b, i);
		n += at(first) < at(second);
	}
	return n;
}

TEST(without_a_seed_things_come_in_their_usual_order)
{
	struct loop_fabric_options o = { 0 };

	partly = 0;
	run(&o);
	ck_assert_uint_eq(partly, 0);
	ck_assert_uint_lt(at("e0"), at("r0"));
}

TEST(a_seed_brings_all_that_rdma_allows_and_nothing_else)
{
	unsigned answered_first = 0, early = 0, slow_reads = 0;

	partly = 0;
	for (uint32_t seed = 1; seed <= SEEDS; seed++) {
		struct loop_fabric_options o = { .seed = seed };

		run(&o);
		answered_first += before('R', 'S');
		slow_reads += before('R', 'd');
		early += at("r0") < at("e0");
		for (int i = 1; i < CALLS; i++) {
			char one[16], two[16];

			for (const char *l = "SRsrd"; *l; l++) {
				snprintf(one, sizeof(one), "%c%d", *l, i - 1);
				snprintf(two, sizeof(two), "%c%d", *l, i);
				ck_assert_uint_le(at(one), at(two));
			}
		}
	}
	ck_assert_uint_gt(answered_first, 0);
	ck_assert_uint_gt(slow_reads, 0);
	ck_assert_uint_gt(early, 0);
	ck_assert_uint_gt(partly, 0);
}

TEST(a_seed_repeats_what_happens)
{
	char first[sizeof(text)], last[sizeof(text)] = "";
	unsigned others = 0;

	for (uint32_t seed = 1; seed <= SEEDS; seed++) {
		struct loop_fabric_options o = { .seed = seed };

		o.chance.lose = seed % 3 == 1 ? 100 : 0;
		o.chance.fail = seed % 3 == 2 ? 30 : 0;
		run(&o);
		strcpy(first, text);
		run(&o);
		ck_assert_str_eq(first, text);
		others += strcmp(text, last) != 0;
		strcpy(last, text);
	}
	ck_assert_uint_eq(others, SEEDS);
}
