/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpcrdma-null - call the NULL procedure of NFS version 3 over RPC-over-RDMA,
 * a few times, and say how long it took.
 *
 *	cc rpcrdma-null.c -o rpcrdma-null \
 *		$(pkg-config --cflags --libs gannet-rpcrdma)
 *	./rpcrdma-null server.example.net 20049
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <gannet/rpcrdma.h>

enum { CALLS = 10 };

struct null_call {
	struct gannet_rpcrdma_call call;
	uint32_t msg[10];
	sem_t done;
};

/* On a thread of the library: the reply is there. */
static void is_done(struct gannet_rpcrdma_call *call)
{
	struct null_call *n = call->arg;

	sem_post(&n->done);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* xid, CALL, RPC version 2, NFS, version 3, NULL, no credentials. */
static int null(struct gannet_rpcrdma *c)
{
	const uint32_t words[10] = { gannet_rpcrdma_xid(c), 0, 2, 100003, 3 };
	struct null_call n = { .call.size = sizeof(n.call) };
	int err;

	for (int i = 0; i < 10; i++)
		n.msg[i] = htonl(words[i]);
	n.call.msg = n.msg;
	n.call.msg_len = sizeof(n.msg);
	n.call.done = is_done;
	n.call.arg = &n;
	sem_init(&n.done, 0, 0);
	err = gannet_rpcrdma_call(c, &n.call);
	if (err == 0) {
		while (sem_wait(&n.done) != 0)
			;
		err = n.call.status;
	}
	sem_destroy(&n.done);
	return err;
}

int main(int argc, char *argv[])
{
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };
	struct addrinfo *ai;
	struct gannet_rpcrdma *c;
	int err;

	if (argc != 3) {
		fprintf(stderr, "usage: rpcrdma-null HOST PORT\n");
		return 2;
	}
	err = getaddrinfo(argv[1], argv[2], NULL, &ai);
	if (err != 0) {
		fprintf(stderr, "%s: %s\n", argv[1], gai_strerror(err));
		return 1;
	}
	err = gannet_rpcrdma_connect(ai->ai_addr, NULL, &c);
	freeaddrinfo(ai);
	if (err < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	for (int i = 0; i < CALLS && err == 0; i++) {
		double start = now();

		err = null(c);
		if (err == 0)
			printf("%.1f us\n", (now() - start) * 1e6);
	}
	gannet_rpcrdma_info(c, &info);
	printf("%s on %s: %u credits, %u bytes inline\n", info.fabric,
	       info.device, info.credits, info.send_inline);
	gannet_rpcrdma_close(c);
	if (err < 0)
		fprintf(stderr, "NULL: %s\n", strerror(-err));
	return err < 0;
}
