/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannet-ceph-limit - what libcephfs alone does, for tests/bench/ceph: one
 * client of the file system that CEPH_CONF names, eight threads, the calls that
 * the module makes for the work of the same name of 'gannet-nfs bench'; and, as
 * "handover", two clients that change a file in turns, so each has to wait for
 * the other's capabilities.
 *
 * Then the bounds of a server: "libcephfs-tcp" only passes each MiB that it
 * read to another process over TCP, or writes each MiB from there;
 * "libcephfs-durable" has each change of a name on disk.
 *
 *	gannet-ceph-limit SECONDS SIZE WORK...
 *
 * SIZE is that of the file, in MiB.  Prints a line of JSON for each work and
 * way of doing it.
 */
#include <cephfs/libcephfs.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"

#define THREADS		32
#define FILES		100
#define MIB		(1u << 20)
#define PAGE		4096u
#define WARM_UP		0.3	/* seconds, as in tests/bench/ceph */
#define WANT		CEPH_STATX_BASIC_STATS

static struct ceph_mount_info *cm, *other;
static struct Inode *here, *there;	/* a file, by each of the two */
static UserPerm *root_user;
static struct Inode *top;
static struct Fh *file;
static uint64_t size;
static atomic_int phase;		/* of a work */
enum { WARMING, COUNTING, ENDING };
static atomic_ulong position;

static void must(int err, const char *what)
{
	if (err >= 0)
		return;
	fprintf(stderr, "gannet-ceph-limit: %s: %s\n", what, strerror(-err));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the peer: a process that takes a MiB, or gives one, over TCP */

enum { TAKE, GIVE };	/* the first byte that it gets */

static int conns[THREADS], peers[THREADS];

static void must_move(ssize_t moved, size_t len)
{
	must(moved < 0 ? -errno : moved < (ssize_t)len ? -EPIPE : 0, "a peer");
}

static void *answer(void *arg)
{
	char *buf = calloc(1, MIB);
	int fd = *(int *)arg;

	while (recv(fd, buf, 1, 0) == 1) {
		if (buf[0] == GIVE) {
			must_move(send(fd, buf, MIB, 0), MIB);
		} else {
			must_move(recv(fd, buf, MIB - 1, MSG_WAITALL), MIB - 1);
			must_move(send(fd, buf, 1, 0), 1);
		}
	}
	free(buf);
	return NULL;
}

static void connect_one(int listener, int *conn, int *peer)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	const int on = 1;

	*conn = socket(AF_INET, SOCK_STREAM, 0);
	if (getsockname(listener, (struct sockaddr *)&at, &len) < 0 ||
	    connect(*conn, (struct sockaddr *)&at, len) < 0 ||
	    (*peer = accept(listener, NULL, NULL)) < 0 ||
	    setsockopt(*conn, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
	    setsockopt(*peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		must(-errno, "a connection");
}

/* Lives until this process ends, or this one does. */
static void start_peer(void)
{
	const struct sockaddr_in at = {		/* and a port of the kernel's */
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t threads[THREADS];
	pid_t pid;

	if (bind(listener, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(listener, THREADS) < 0)
		must(-errno, "listen");
	for (unsigned i = 0; i < THREADS; i++)
		connect_one(listener, &conns[i], &peers[i]);
	close(listener);
	pid = fork();
	must(pid < 0 ? -errno : 0, "fork");
	for (unsigned i = 0; i < THREADS; i++)
		close(pid ? peers[i] : conns[i]);
	if (pid)
		return;
	for (unsigned i = 0; i < THREADS; i++)
		must(-pthread_create(&threads[i], NULL, answer, &peers[i]),
		     "a thread");
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

/* ---- works: each does one call, and returns its bytes */

struct worker {
	pthread_t	 thread;
	unsigned	 id;
	unsigned	 random;
	uint64_t	 done, bytes;
	struct Inode	*in[FILES];
	uint64_t       (*work)(struct worker *w);
	char		*buf;
};

static uint64_t read_at(struct worker *w, uint64_t off, unsigned len)
{
	int n = ceph_ll_read(cm, file, (int64_t)off, len, w->buf);

	must(n, "read");
	return (uint64_t)n;
}

/* The next one of the file's, over and over. */
static uint64_t next_offset(void)
{
	return atomic_fetch_add(&position, 1) * MIB % size;
}

static uint64_t read_next(struct worker *w)
{
	return read_at(w, next_offset(), MIB);
}

static uint64_t write_next(struct worker *w)
{
	int n = ceph_ll_write(cm, file, (int64_t)next_offset(), MIB, w->buf);

	must(n, "write");
	return (uint64_t)n;
}

static uint64_t read_and_send(struct worker *w)
{
	uint64_t n = read_next(w);

	w->buf[0] = TAKE;
	must_move(send(conns[w->id], w->buf, MIB, MSG_NOSIGNAL), MIB);
	must_move(recv(conns[w->id], w->buf, 1, 0), 1);
	return n;
}

static uint64_t receive_and_write(struct worker *w)
{
	w->buf[0] = GIVE;
	must_move(send(conns[w->id], w->buf, 1, MSG_NOSIGNAL), 1);
	must_move(recv(conns[w->id], w->buf, MIB, MSG_WAITALL), MIB);
	return write_next(w);
}

static uint64_t read_random(struct worker *w)
{
	return read_at(w, (uint64_t)rand_r(&w->random) % (size / PAGE) * PAGE,
		       PAGE);
}

static uint64_t get_attributes(struct worker *w)
{
	struct ceph_statx sx;

	must(ceph_ll_getattr(cm, w->in[rand_r(&w->random) % FILES], &sx, WANT,
			     0, root_user), "getattr");
	return 0;
}

static uint64_t look_up(struct worker *w)
{
	struct ceph_statx sx;
	struct Inode *in;
	char name[32];

	snprintf(name, sizeof(name), "limit.%u", rand_r(&w->random) % FILES);
	must(ceph_ll_lookup(cm, top, name, &in, &sx, WANT, 0, root_user),
	     "lookup");
	ceph_ll_put(cm, in);
	return 0;
}

static struct Inode *make_file(const char *name, bool keep, struct Fh **fh)
{
	struct ceph_statx sx;
	struct Inode *in;

	must(ceph_ll_create(cm, top, name, 0644, O_CREAT | O_RDWR, &in, fh,
			    &sx, WANT, 0, root_user), "create");
	if (!keep)
		ceph_ll_close(cm, *fh);
	return in;
}

static uint64_t create_and_remove(struct worker *w)
{
	char name[32];
	struct Fh *fh;

	snprintf(name, sizeof(name), "made.%u", w->id);
	ceph_ll_put(cm, make_file(name, false, &fh));
	must(ceph_ll_unlink(cm, top, name, root_user), "unlink");
	return 0;
}

static uint64_t create_and_remove_durably(struct worker *w)
{
	char name[32];
	struct Fh *fh;

	snprintf(name, sizeof(name), "made.%u", w->id);
	ceph_ll_put(cm, make_file(name, false, &fh));
	must(ceph_ll_sync_inode(cm, top, 0), "sync");
	must(ceph_ll_unlink(cm, top, name, root_user), "unlink");
	must(ceph_ll_sync_inode(cm, top, 0), "sync");
	return 0;
}

static void change_mode(struct ceph_mount_info *by, struct Inode *in,
			uint16_t mode)
{
	struct ceph_statx sx = { .stx_mode = mode };

	must(ceph_ll_setattr(by, in, &sx, CEPH_SETATTR_MODE, root_user),
	     "setattr");
}

static uint64_t hand_over(struct worker *w)
{
	change_mode(cm, here, 0600);
	change_mode(other, there, 0640);
	return 0;
}

static const struct work {
	const char *name, *server;
	uint64_t (*one)(struct worker *w);
	unsigned threads;
	unsigned calls;			/* that it counts as, by gannet-nfs */
} works[] = {
	{ "seqread", "libcephfs", read_next, 8, 1 },
	{ "seqread", "libcephfs-tcp", read_and_send, 8, 1 },
	{ "seqwrite", "libcephfs", write_next, 8, 1 },
	{ "seqwrite", "libcephfs-tcp", receive_and_write, 8, 1 },
	{ "randread", "libcephfs", read_random, 8, 1 },
	{ "getattr", "libcephfs", get_attributes, 8, 1 },
	{ "lookup", "libcephfs", look_up, 8, 1 },
	{ "create", "libcephfs", create_and_remove, 8, 2 },
	{ "create", "libcephfs-durable", create_and_remove_durably, 32, 2 },
	{ "handover", "libcephfs", hand_over, 1, 2 },	/* in turns */
};

/* ---- running them */

static void *run(void *arg)
{
	struct worker *w = arg;

	while (atomic_load(&phase) != ENDING) {
		uint64_t n = w->work(w);

		if (atomic_load(&phase) == WARMING)
			continue;
		w->bytes += n;
		w->done++;
	}
	return NULL;
}

static void pause_for(double seconds)
{
	const time_t whole = (time_t)seconds;

	nanosleep(&(struct timespec){ .tv_sec = whole,
		  .tv_nsec = (long)((seconds - (double)whole) * 1e9) }, NULL);
}

static void fill_file(void)
{
	char *buf = calloc(1, MIB);

	for (uint64_t off = 0; buf && off < size; off += MIB)
		must(ceph_ll_write(cm, file, (int64_t)off, MIB, buf), "write");
	must(ceph_ll_fsync(cm, file, 0), "fsync");
	free(buf);
}

static void measure(const struct work *what, double seconds)
{
	static struct worker workers[THREADS];
	uint64_t done = 0, bytes = 0;
	double began;

	atomic_store(&phase, WARMING);
	for (unsigned i = 0; i < what->threads; i++) {
		struct worker *w = &workers[i];
		struct ceph_statx sx;
		char name[32];

		*w = (struct worker){ .id = i, .random = i + 1,
				      .work = what->one,
				      .buf = calloc(1, MIB) };
		for (unsigned k = 0; k < FILES; k++) {
			snprintf(name, sizeof(name), "limit.%u", k);
			must(ceph_ll_lookup(cm, top, name, &w->in[k], &sx,
					    WANT, 0, root_user), "lookup");
		}
		must(-pthread_create(&w->thread, NULL, run, w), "a thread");
	}
	pause_for(WARM_UP);
	began = now();
	atomic_store(&phase, COUNTING);
	pause_for(seconds);
	atomic_store(&phase, ENDING);
	for (unsigned i = 0; i < what->threads; i++) {
		pthread_join(workers[i].thread, NULL);
		done += workers[i].done;
		bytes += workers[i].bytes;
		for (unsigned k = 0; k < FILES; k++)
			ceph_ll_put(cm, workers[i].in[k]);
		free(workers[i].buf);
	}
	seconds = now() - began;
	printf("{\"server\": \"%s\", \"work\": \"%s\", "
	       "\"ops_per_s\": %.1f, \"bytes_per_s\": %.0f}\n", what->server,
	       what->name, (double)(done * what->calls) / seconds,
	       (double)bytes / seconds);
	fflush(stdout);
}

static struct ceph_mount_info *mount_client(void)
{
	struct ceph_mount_info *client;

	must(ceph_create(&client, "admin"), "a client");
	must(ceph_conf_read_file(client, NULL), "the configuration");
	/* As the module does. */
	must(ceph_conf_set(client, "debug_client", "0/0"), "no notes");
	must(ceph_conf_set(client, "debug_objectcacher", "0/0"), "no notes");
	must(ceph_mount(client, "/"), "mount");
	return client;
}

static void mount_top(void)
{
	struct ceph_statx sx;
	struct Fh *fh;
	char name[32];

	cm = mount_client();
	other = mount_client();
	root_user = ceph_userperm_new(0, 0, 0, NULL);
	must(ceph_ll_lookup_root(cm, &top), "the root");
	for (unsigned k = 0; k < FILES; k++) {
		snprintf(name, sizeof(name), "limit.%u", k);
		ceph_ll_put(cm, make_file(name, false, &fh));
	}
	ceph_ll_put(cm, make_file("limit", true, &file));
	fill_file();
	must(ceph_ll_walk(cm, "/limit.0", &here, &sx, WANT, 0, root_user),
	     "lookup");
	must(ceph_ll_walk(other, "/limit.0", &there, &sx, WANT, 0, root_user),
	     "lookup");
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: gannet-ceph-limit SECONDS SIZE "
			"WORK...\n");
		return 2;
	}
	size = strtoull(argv[2], NULL, 10) * MIB;
	if (!size)
		return 2;
	start_peer();	/* before the library has threads and memory */
	mount_top();
	for (int i = 3; i < argc; i++)
		for (unsigned k = 0; k < ARRAY_SIZE(works); k++)
			if (strcmp(argv[i], works[k].name) == 0)
				measure(&works[k], strtod(argv[1], NULL));
	ceph_ll_close(cm, file);
	ceph_unlink(cm, "limit");
	ceph_ll_put(cm, here);
	ceph_ll_put(other, there);
	ceph_unmount(other);
	ceph_release(other);
	ceph_unmount(cm);
	ceph_release(cm);
	return 0;
}
