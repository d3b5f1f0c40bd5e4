/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the machine gives: loopback TCP, memcpy, pread from the page cache,
 * each for a moment, one line of JSON each.
 *
 *	gannet-raw DIRECTORY [SECONDS]
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCK	((size_t)1 << 20)
#define AREA	((size_t)64 << 20)
/* A short call and its reply, with marks. */
#define CALL	((size_t)140)
#define REPLY	((size_t)116)

static double seconds = 0.5;
static uint8_t *area, *block;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void report(const char *work, double count, double bytes, double s)
{
	printf("{\"server\": \"raw\", \"work\": \"%s\", "
	       "\"ops_per_s\": %.1f, \"bytes_per_s\": %.0f}\n", work,
	       count / s, bytes / s);
}

static void socket_pair(int fds[2])
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	int l = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || fds[0] < 0 ||
	    bind(l, (struct sockaddr *)&sin, sizeof(sin)) < 0 ||
	    listen(l, 1) < 0 ||
	    getsockname(l, (struct sockaddr *)&sin, &len) < 0 ||
	    connect(fds[0], (struct sockaddr *)&sin, sizeof(sin)) < 0)
		die("loopback");
	fds[1] = accept(l, NULL, NULL);
	if (fds[1] < 0)
		die("accept");
	close(l);
	for (int i = 0; i < 2; i++)
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one,
			   sizeof(one));
}

static int send_all(int fd, const uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n <= 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static void *pump(void *arg)
{
	size_t at = 0;

	/* Out of a large area, as a file system's data would come. */
	while (!send_all(*(int *)arg, area + at, BLOCK))
		at = (at + BLOCK) % AREA;
	return NULL;
}

static void stream(void)
{
	pthread_t thread;
	double start, bytes = 0;
	int fds[2];

	socket_pair(fds);
	pthread_create(&thread, NULL, pump, &fds[0]);
	start = now();
	while (now() - start < seconds) {
		ssize_t n = recv(fds[1], block, BLOCK, 0);

		if (n <= 0)
			die("recv");
		bytes += (double)n;
	}
	report("tcp-1m", bytes / (double)BLOCK, bytes, now() - start);
	close(fds[1]);
	pthread_join(thread, NULL);
	close(fds[0]);
}

static void *answer(void *arg)
{
	static uint8_t in[64 << 10], out[64 << 10];
	int fd = *(int *)arg;
	size_t have = 0;
	ssize_t n;

	while ((n = recv(fd, in, sizeof(in) / 2, 0)) > 0) {
		have += (size_t)n;
		if (send_all(fd, out, have / CALL * REPLY))
			break;
		have %= CALL;
	}
	return NULL;
}

static void calls(const char *work, unsigned depth)
{
	static uint8_t buf[64 << 10];
	pthread_t thread;
	double start, count = 0;
	size_t have = 0;
	int fds[2];

	socket_pair(fds);
	pthread_create(&thread, NULL, answer, &fds[0]);
	start = now();
	if (send_all(fds[1], buf, depth * CALL))
		die("send");
	while (now() - start < seconds) {
		ssize_t n = recv(fds[1], buf, sizeof(buf), 0);

		if (n <= 0)
			die("recv");
		have += (size_t)n;
		count += (double)(have / REPLY);
		if (send_all(fds[1], buf, have / REPLY * CALL))
			die("send");
		have %= REPLY;
	}
	report(work, count, 0, now() - start);
	close(fds[1]);
	pthread_join(thread, NULL);
	close(fds[0]);
}

static void copies(void)
{
	double start = now(), n = 0;
	size_t at = 0;

	while (now() - start < seconds) {
		memcpy(block, area + at, BLOCK);
		__asm__ volatile("" : : "r"(block) : "memory");
		at = (at + BLOCK) % AREA;
		n++;
	}
	report("memcpy-1m", n, n * (double)BLOCK, now() - start);
}

static void preads(int fd, const char *work, size_t len)
{
	double start = now(), n = 0;
	uint64_t r = 88172645463325252u;

	while (now() - start < seconds) {
		/* So that the clock costs little. */
		for (int i = 0; i < 16; i++) {
			r ^= r << 13;
			r ^= r >> 7;
			r ^= r << 17;
			if (pread(fd, block, len, (off_t)(r % (AREA / len) *
							  len)) < 0)
				die("pread");
		}
		n += 16;
	}
	report(work, n, n * (double)len, now() - start);
}

int main(int argc, char **argv)
{
	char path[4096];
	int fd;

	if (argc < 2) {
		fputs("usage: gannet-raw DIRECTORY [SECONDS]\n", stderr);
		return 2;
	}
	if (argc > 2)
		seconds = atof(argv[2]);
	area = malloc(AREA);
	block = malloc(BLOCK);
	if (!area || !block)
		die("memory");
	memset(area, 1, AREA);
	memset(block, 2, BLOCK);
	snprintf(path, sizeof(path), "%s/raw.XXXXXX", argv[1]);
	fd = mkstemp(path);
	if (fd < 0)
		die(path);
	unlink(path);
	if (write(fd, area, AREA) != (ssize_t)AREA)
		die("write");
	stream();
	calls("tcp-calls-1", 1);
	calls("tcp-calls-32", 32);
	copies();
	preads(fd, "pread-1m", BLOCK);
	preads(fd, "pread-4k", 4096);
	return 0;
}
