/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's own speed: loopback TCP, memcpy, pread from the page cache, the
 * list of a directory with attributes, and the floor of each kind of call, each
 * for a moment, a line of JSON each.  The work "scatter", which only its name
 * asks for, is no measurement: it leaves a file DIRECTORY/scattered.
 *
 * 	gannet-raw DIRECTORY [SECONDS [WORK]...]
 */
#include "tests/bench/raw.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/*
 * A READ of 4 KiB over iWARP, as frames (RFC 5044, 5041): the call in a Send,
 * the data in a Write, the reply in a Send.  Length, headers, CRC.
 */
#define SEND_HEAD	((size_t)20)
#define WRITE_HEAD	((size_t)16)
#define CRC		((size_t)4)
#define FILES		10000
#define FRAME_CALL	(SEND_HEAD + 164 + CRC)
#define FRAME_DATA	(WRITE_HEAD + 4096 + CRC)
#define FRAME_REPLY	(SEND_HEAD + 148 + CRC)
#define FRAME_DEPTH	32u

double seconds = 0.5;
uint8_t *area, *block;
static char **wanted;			/* works; none: all */

void die(const char *what)
{
	perror(what);
	exit(1);
}

double now(void)
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

int wants(const char *work)
{
	if (!*wanted)
		return 1;
	for (char **w = wanted; *w; w++)
		if (!strcmp(*w, work))
			return 1;
	return 0;
}

void socket_pair(int fds[2])
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

int send_all(int fd, const uint8_t *p, size_t len)
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

	if (!wants("tcp-1m"))
		return;
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

	if (!wants(work))
		return;
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

/* Frames that answer @n calls, in @v; the data lies in the cache. */
static unsigned frame_replies(struct iovec *v, uint8_t *heads, unsigned n)
{
	struct iovec *from = v;

	for (unsigned i = 0; i < n; i++) {
		memset(heads, 1, WRITE_HEAD);
		*v++ = (struct iovec){ heads, WRITE_HEAD };
		*v++ = (struct iovec){ area, 4096 };
		memset(heads + WRITE_HEAD, 1, CRC + FRAME_REPLY);
		*v++ = (struct iovec){ heads + WRITE_HEAD, CRC + FRAME_REPLY };
		heads += WRITE_HEAD + CRC + FRAME_REPLY;
	}
	return (unsigned)(v - from);
}

int send_all_iov(int fd, struct iovec *v, unsigned n)
{
	while (n) {
		struct msghdr mh = { .msg_iov = v, .msg_iovlen = n };
		ssize_t k = sendmsg(fd, &mh, MSG_NOSIGNAL);

		if (k <= 0)
			return -1;
		while (n && (size_t)k >= v->iov_len) {
			k -= (ssize_t)v->iov_len;
			v++;
			n--;
		}
		if (n) {
			v->iov_base = (uint8_t *)v->iov_base + k;
			v->iov_len -= (size_t)k;
		}
	}
	return 0;
}

static void *answer_frames(void *arg)
{
	static uint8_t in[FRAME_DEPTH * FRAME_CALL];
	static uint8_t heads[FRAME_DEPTH * (WRITE_HEAD + CRC + FRAME_REPLY)];
	struct iovec v[3 * FRAME_DEPTH];
	int fd = *(int *)arg;
	size_t have = 0;
	ssize_t n;

	while ((n = recv(fd, in, sizeof(in) - have, 0)) > 0) {
		have += (size_t)n;
		if (send_all_iov(fd, v, frame_replies(v, heads, (unsigned)
						(have / FRAME_CALL))))
			break;
		have %= FRAME_CALL;
	}
	return NULL;
}

/* The most that iWARP in software can do: frames, and one copy of the data that
 * a Write places.  @block has the frames, each followed by its destination. */
static void frames(void)
{
	static uint8_t calls_out[FRAME_DEPTH * FRAME_CALL];
	uint8_t *to = block + (BLOCK >> 1);
	size_t have = 0, at = 0, whole = FRAME_DATA + FRAME_REPLY;
	double start, count = 0;
	pthread_t thread;
	int fds[2];

	if (!wants("frames-4k"))
		return;
	socket_pair(fds);
	pthread_create(&thread, NULL, answer_frames, &fds[0]);
	start = now();
	if (send_all(fds[1], calls_out, sizeof(calls_out)))
		die("send");
	while (now() - start < seconds) {
		ssize_t n = recv(fds[1], block + have, (BLOCK >> 1) - have, 0);
		unsigned done = 0;

		if (n <= 0)
			die("recv");
		have += (size_t)n;
		for (at = 0; have - at >= whole; at += whole)
			memcpy(to + done++ % 64 * 4096, block + at + WRITE_HEAD,
			       4096);
		memmove(block, block + at, have - at);
		have -= at;
		count += done;
		if (send_all(fds[1], calls_out, done * FRAME_CALL))
			die("send");
	}
	report("frames-4k", count, count * 4096, now() - start);
	close(fds[1]);
	pthread_join(thread, NULL);
	close(fds[0]);
}

static void copies(void)
{
	double start = now(), n = 0;
	size_t at = 0;

	if (!wants("memcpy-1m"))
		return;
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

	if (!wants(work))
		return;
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

static void name_file(char name[16], unsigned i)
{
	snprintf(name, 16, "file%05u", i);
}

/* Each entry's attributes, as a server that keeps none has to query them. */
static void list_once(int fd)
{
	ssize_t n;

	lseek(fd, 0, SEEK_SET);
	while ((n = getdents64(fd, block, 32768)) > 0)
		for (ssize_t at = 0; at < n;) {
			struct dirent64 *d = (struct dirent64 *)(block + at);
			struct statx sx;

			at += d->d_reclen;
			if (d->d_name[0] != '.' &&
			    statx(fd, d->d_name, AT_SYMLINK_NOFOLLOW |
				  AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &sx) < 0)
				die("statx");
		}
}

static double processor(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The least that READDIRPLUS can cost: getdents, and a statx for each entry. */
static void listing(const char *in)
{
	double start, used, count = 0;
	char path[4096], name[16];
	int fd;

	if (!wants("listing"))
		return;
	snprintf(path, sizeof(path), "%s/listing.XXXXXX", in);
	if (!mkdtemp(path))
		die(path);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		die(path);
	for (unsigned i = 0; i < FILES; i++) {
		name_file(name, i);
		close(openat(fd, name, O_WRONLY | O_CREAT | O_EXCL, 0644));
	}
	list_once(fd);
	start = now();
	used = processor();
	while (now() - start < seconds) {
		list_once(fd);
		count += FILES;
	}
	used = processor() - used;
	printf("{\"server\": \"raw\", \"work\": \"listing\", "
	       "\"ops_per_s\": %.1f, \"server_us_per_entry\": %.3f}\n",
	       count / (now() - start), used * 1e6 / count);
	for (unsigned i = 0; i < FILES; i++) {
		name_file(name, i);
		unlinkat(fd, name, 0);
	}
	close(fd);
	rmdir(path);
}

int main(int argc, char **argv)
{
	char path[4096];
	int fd, dir;

	if (argc < 2) {
		fputs("usage: gannet-raw DIRECTORY [SECONDS [WORK]...]\n",
		      stderr);
		return 2;
	}
	if (argc > 2)
		seconds = atof(argv[2]);
	wanted = argv + (argc > 3 ? 3 : argc);
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
	frames();
	copies();
	preads(fd, "pread-1m", BLOCK);
	preads(fd, "pread-4k", 4096);
	listing(argv[1]);
	dir = open(argv[1], O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		die(argv[1]);
	floors(dir, fd);
	if (*wanted && wants("scatter"))
		scatter(argv[1]);
	return 0;
}
