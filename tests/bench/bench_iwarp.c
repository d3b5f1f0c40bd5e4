/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The iWARP fabric over loopback against plain TCP, in one run: 1 MiB
 * messages one way, and calls of 164 bytes that are answered with 4 KiB and
 * 148 bytes, 32 at a time.
 *
 *	bench_iwarp [seconds for each line [options of iwarp_options.h]]
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "tests/fabric/iwarp_options.h"

#define MESSAGE	(1u << 20)
#define CALL	164u
#define DATA	4096u
#define ANSWER	148u
enum { WINDOW = 4, DEPTH = 32, RECVS = 64 };

static double seconds = 2;
static uint8_t *memory;			/* WINDOW messages */
static atomic_bool stop;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double begin_time, begin_cpu;

static void begin(void)
{
	atomic_store(&stop, false);
	begin_time = now(CLOCK_MONOTONIC);
	begin_cpu = now(CLOCK_PROCESS_CPUTIME_ID);
}

static bool over(void)
{
	return now(CLOCK_MONOTONIC) - begin_time > seconds;
}

static double report(const char *what, double count, double unit,
		     const char *name)
{
	double t = now(CLOCK_MONOTONIC) - begin_time;
	double cpu = now(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu;

	printf("%-34s %8.2f %s/s %8.2f %s/CPU-s\n", what, count / unit / t,
	       name, count / unit / cpu, name);
	return count / t;
}

/* ---- plain TCP */

static void tcp_pair(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int lfd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (lfd < 0 || bind(lfd, (struct sockaddr *)&a, len) ||
	    listen(lfd, 1) || getsockname(lfd, (struct sockaddr *)&a, &len) ||
	    connect(fd[0], (struct sockaddr *)&a, len))
		die("tcp");
	fd[1] = accept(lfd, NULL, NULL);
	for (int i = 0; i < 2; i++)
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(lfd);
}

static void send_messages(void *arg)
{
	int fd = *(int *)arg;

	while (!atomic_load(&stop) &&
	       send(fd, memory, MESSAGE, MSG_NOSIGNAL) > 0)
		;
	shutdown(fd, SHUT_WR);
}

static double tcp_stream(void)
{
	uint8_t *in = malloc(MESSAGE);
	pthread_t thread;
	uint64_t got = 0;
	ssize_t n;
	int fd[2];

	tcp_pair(fd);
	begin();
	thread_start(&thread, "sender", send_messages, &fd[0]);
	while ((n = recv(fd[1], in, MESSAGE, 0)) > 0) {
		got += (uint64_t)n;
		if (over())
			atomic_store(&stop, true);
	}
	pthread_join(thread, NULL);
	close(fd[0]);
	close(fd[1]);
	free(in);
	return report("tcp, 1 MiB send/recv", (double)got, 1e9, "GB");
}

/* Answers as many calls at a time as came. */
static void answer_calls(void *arg)
{
	int fd = *(int *)arg;
	uint8_t in[CALL * DEPTH];
	size_t have = 0;
	ssize_t n;

	while ((n = recv(fd, in, sizeof(in), 0)) > 0) {
		size_t calls = (have + (size_t)n) / CALL;

		have = (have + (size_t)n) % CALL;
		if (calls > 0 && send(fd, memory, calls * (DATA + ANSWER),
				      MSG_NOSIGNAL) < 0)
			break;
	}
	shutdown(fd, SHUT_WR);
}

static double tcp_calls(void)
{
	static uint8_t in[DEPTH * (DATA + ANSWER)];
	pthread_t thread;
	uint64_t done = 0;
	size_t have = 0, n;
	ssize_t got;
	int fd[2];

	tcp_pair(fd);
	begin();
	thread_start(&thread, "server", answer_calls, &fd[0]);
	n = DEPTH;
	while (!over()) {
		if (n > 0 && send(fd[1], memory, n * CALL, MSG_NOSIGNAL) < 0)
			die("send");
		got = recv(fd[1], in, sizeof(in), 0);
		if (got <= 0)
			die("recv");
		have += (size_t)got;
		n = have / (DATA + ANSWER);
		have %= DATA + ANSWER;
		done += n;
	}
	close(fd[1]);
	pthread_join(thread, NULL);
	close(fd[0]);
	return report("tcp, 4 KiB calls, 32 at a time", (double)done, 1e3,
		      "k");
}

/* ---- the fabric */

struct receive {
	struct fabric_op   op;
	struct fabric_recv recv;
	struct end	  *end;
};

struct step {
	struct fabric_op   op;
	struct fabric_wr   wr[2];
	struct fabric_sge  sge[2];
	struct end	  *end;
	bool		   busy;
};

struct end {
	struct fabric_conn *conn;
	struct loop	   *loop;
	struct receive	    recvs[RECVS];
	struct step	    steps[RECVS];
	uint8_t		   *bufs;
	void (*arrived)(struct end *e, uint32_t len);
	void (*sent)(struct step *s);
	sem_t		    up, down;
};

static struct end passive, active;
static struct fabric fabric;
static struct fabric_mr *open_mr;
static uint8_t *open_memory;
static uint64_t count;			/* the loop's that counts */

static void recv_done(struct fabric_op *op, int status, uint32_t len)
{
	struct receive *r = container_of(op, struct receive, op);

	if (status < 0)
		return;
	fabric_post_recv(r->end->conn, &r->recv);
	if (r->end->arrived)
		r->end->arrived(r->end, len);
}

static void step_done(struct fabric_op *op, int status, uint32_t len)
{
	struct step *s = container_of(op, struct step, op);

	s->busy = false;
	if (status == 0 && s->end->sent && !atomic_load(&stop))
		s->end->sent(s);
}

static void established(struct fabric_conn *c)
{
	sem_post(&((struct end *)c->upper)->up);
}

static void closed(struct fabric_conn *c, int err)
{
	fabric_free(c);
	sem_post(&((struct end *)c->upper)->down);
}

static void bring_up(struct end *e)
{
	struct fabric_queues q = { 4 * RECVS, RECVS, 4 };

	e->conn->upper = e;
	e->conn->established = established;
	e->conn->closed = closed;
	if (fabric_setup(e->conn, e->loop, &q))
		die("setup");
	for (unsigned i = 0; i < RECVS; i++) {
		struct receive *r = &e->recvs[i];

		r->end = e;
		r->op.done = recv_done;
		r->recv.op = &r->op;
		r->recv.sge = (struct fabric_sge){ e->bufs + i * DATA, DATA,
						   0 };
		fabric_post_recv(e->conn, &r->recv);
		e->steps[i].end = e;
		e->steps[i].op.done = step_done;
	}
	if (fabric_start(e->conn, NULL, 0, 16))
		die("start");
}

static void bring_up_here(void *arg)
{
	bring_up(arg);
}

static void request(struct fabric_listener *l, struct fabric_conn *c)
{
	passive.conn = c;
	bring_up(&passive);
}

static struct step *free_step(struct end *e)
{
	for (unsigned i = 0; i < RECVS; i++)
		if (!e->steps[i].busy)
			return &e->steps[i];
	die("completions are late: no step is free");
	return NULL;
}

static void post(struct step *s)
{
	s->busy = true;
	if (fabric_post(s->end->conn, &s->wr[0]))
		s->busy = false;
}

/* One step of @len bytes that moves the i-th message. */
static void set_step(struct step *s, unsigned i, enum fabric_opcode opcode,
		     uint8_t *local, uint32_t len)
{
	s->sge[i] = (struct fabric_sge){ local, len, 0 };
	s->wr[i] = (struct fabric_wr){
		.opcode = opcode, .sge = &s->sge[i], .nsge = 1,
		.handle = open_mr->rkey, .offset = (uintptr_t)open_memory };
}

static void say(struct end *e, uint32_t len)
{
	struct step *s = free_step(e);

	set_step(s, 0, FABRIC_SEND, memory, len);
	s->wr[0].op = &s->op;
	post(s);
}

/* The passive end writes 1 MiB and says so; the active one asks again. */
static void write_message(struct end *e, uint32_t len)
{
	struct step *s = free_step(e);

	set_step(s, 0, FABRIC_WRITE, memory, MESSAGE);
	set_step(s, 1, FABRIC_SEND, memory, ANSWER);
	s->wr[0].next = &s->wr[1];
	s->wr[1].op = &s->op;
	post(s);
}

static void ask_again(struct end *e, uint32_t len)
{
	count++;
	if (over())
		atomic_store(&stop, true);
	else
		say(e, CALL);
}

static void answer(struct end *e, uint32_t len)
{
	struct step *s = free_step(e);

	set_step(s, 0, FABRIC_WRITE, memory, DATA);
	set_step(s, 1, FABRIC_SEND, memory, ANSWER);
	s->wr[0].next = &s->wr[1];
	s->wr[1].op = &s->op;
	post(s);
}

static void read_message(struct step *s)
{
	set_step(s, 0, FABRIC_READ, memory, MESSAGE);
	s->wr[0].op = &s->op;
	post(s);
}

static void read_again(struct step *s)
{
	count++;
	if (over())
		atomic_store(&stop, true);
	else
		read_message(s);
}

static void begin_asking(void *arg)
{
	for (unsigned i = 0; i < *(unsigned *)arg; i++)
		say(&active, CALL);
}

static void begin_reading(void *arg)
{
	for (unsigned i = 0; i < WINDOW; i++)
		read_message(&passive.steps[i]);
}

static void nothing(void *arg)
{
}

static void wait_stop(struct loop *loop)
{
	struct timespec nap = { .tv_nsec = 10000000 };

	while (!atomic_load(&stop))
		nanosleep(&nap, NULL);
	loop_call(loop, nothing, NULL);
}

static void connect_ends(const struct iwarp_options *o)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct fabric_listener *l;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (iwarp_fabric_create(o, &fabric) ||
	    loop_create("passive", &passive.loop) ||
	    loop_create("active", &active.loop) ||
	    loop_start(passive.loop) || loop_start(active.loop))
		die("loops");
	passive.bufs = calloc(RECVS, DATA);
	active.bufs = calloc(RECVS, DATA);
	sem_init(&passive.up, 0, 0);
	sem_init(&passive.down, 0, 0);
	sem_init(&active.up, 0, 0);
	sem_init(&active.down, 0, 0);
	if (fabric_listen(&fabric, (struct sockaddr *)&a, passive.loop,
			  request, NULL, &l) ||
	    fabric_connect(&fabric, (struct sockaddr *)&l->local,
			   &active.conn) ||
	    fabric_mr_create(active.conn->dev, open_memory, MESSAGE,
			     FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE,
			     &open_mr))
		die("connect");
	loop_call(active.loop, bring_up_here, &active);
	sem_wait(&active.up);
	sem_wait(&passive.up);
	/* The active end speaks first. */
	loop_call(active.loop, begin_asking, &(unsigned){ 1 });
	fabric_unlisten(l);
}

static void run_fabric(double tcp, double tcp_rate)
{
	unsigned n = WINDOW;
	double v;

	passive.arrived = write_message;
	active.arrived = ask_again;
	count = 0;
	begin();
	loop_call(active.loop, begin_asking, &n);
	wait_stop(active.loop);
	v = report("iwarp, 1 MiB Writes", (double)count * MESSAGE, 1e9, "GB");
	printf("%34s %8.2f of tcp\n", "", v / tcp);
	loop_call(passive.loop, nothing, NULL);
	sleep(1);

	passive.sent = read_again;
	passive.arrived = NULL;
	active.arrived = NULL;
	count = 0;
	begin();
	loop_call(passive.loop, begin_reading, NULL);
	wait_stop(passive.loop);
	v = report("iwarp, 1 MiB Reads", (double)count * MESSAGE, 1e9, "GB");
	printf("%34s %8.2f of tcp\n", "", v / tcp);
	sleep(1);

	passive.sent = NULL;
	passive.arrived = answer;
	active.arrived = ask_again;
	count = 0;
	n = DEPTH;
	begin();
	loop_call(active.loop, begin_asking, &n);
	wait_stop(active.loop);
	v = report("iwarp, 4 KiB calls, 32 at a time", (double)count, 1e3,
		   "k");
	printf("%34s %8.2f of tcp\n", "", v / tcp_rate);
}

int main(int argc, char **argv)
{
	struct iwarp_options o;
	double tcp, tcp_rate;

	if (argc > 1)
		seconds = atof(argv[1]);
	iwarp_options_parse(argc > 2 ? argv[2] : "", &o);
	memory = aligned_alloc(4096, MESSAGE);
	open_memory = aligned_alloc(4096, MESSAGE);
	memset(memory, 1, MESSAGE);
	memset(open_memory, 2, MESSAGE);
	setvbuf(stdout, NULL, _IOLBF, 0);
	tcp = tcp_stream();
	tcp_rate = tcp_calls();
	connect_ends(&o);
	run_fabric(tcp, tcp_rate);
	fabric_close(active.conn);
	sem_wait(&active.down);
	sem_wait(&passive.down);
	fabric_mr_destroy(open_mr);
	loop_destroy(active.loop);
	loop_destroy(passive.loop);
	iwarp_fabric_destroy(&fabric);
	return 0;
}
