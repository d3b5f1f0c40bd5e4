/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two servers of one CephFS are used at once for the same files, each operation
 * by one of them at random, and all is as one model says.
 *
 * GANNET_CEPH_SECONDS is for how long, for each test; GANNET_CRASH_SEED makes
 * the same choices again.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/ceph/pair.h"
#include "tests/unit/runner.h"

#define SECONDS		20
#define ROUND_US	3000000

static uint64_t end_of_test(void)
{
	return runner_now_ms() +
	       1000ull * crash_setting("GANNET_CEPH_SECONDS", SECONDS);
}

/* ---- names, attributes, and data that waits for a COMMIT */

/* The half of the connections goes to each server. */
static void connect_to_both(struct crash *c)
{
	for (unsigned i = 0; i < CRASH_WIRES; i++)
		ck_assert(wire_open(&c->wire[i], i % 2 ? c->d.tcp_port :
				    pair_second.tcp_port, NFS_PROGRAM));
}

static void work_by_both(struct crash *c, unsigned us)
{
	uint64_t end = runner_now_ms() + us / 1000;

	while (runner_now_ms() < end) {
		for (unsigned i = 0; i < CRASH_SLOTS; i++) {
			struct slot *slot = &c->slots[i];

			if (slot->busy || slot->frozen)
				continue;
			model_choose(slot);
			wire_start(&c->wire[model_random() % CRASH_WIRES],
				   slot);
		}
		wire_serve(c->wire, CRASH_WIRES, 100);
	}
}

/* Each slot is looked at by one server, and then by the other. */
static void check_by_both(struct crash *c)
{
	struct wire first = c->wire[0];

	crash_pause(c);
	for (unsigned i = 0; i + 1 < CRASH_WIRES; i++)
		c->wire[i] = c->wire[i + 1];
	c->wire[CRASH_WIRES - 1] = first;
	crash_check(c);
}

TEST_CASE(.setup = pair_start, .teardown = pair_stop,
	  .timeout = 120 + 2 * crash_setting("GANNET_CEPH_SECONDS", SECONDS));

TEST(two_servers_do_what_one_model_does)
{
	struct crash *c = pair_crash;
	uint64_t end = end_of_test();

	connect_to_both(c);
	while (runner_now_ms() < end) {
		work_by_both(c, ROUND_US);
		check_by_both(c);
	}
	ck_assert_uint_eq(c->doubts, 0);
	crash_report(c, "two servers");
}

/* ---- data, each byte of which is known */

#define WRITERS		4
#define FILE_MAX	300000
#define PIECE_MAX	70000
/* Of the shared file: no multiple of a page. */
#define RECORD		3000
#define RECORDS		64

struct writer {
	unsigned index;
	pthread_t thread;
	uint64_t random, until;
	struct nfs_context *nfs[2];	/* one for each server */
	struct nfsfh *own[2], *shared[2];
	size_t	 size;			/* of the writer's file */
	uint8_t	 bytes[FILE_MAX];
	uint8_t	 record[RECORDS][RECORD];
	unsigned long calls;
	const char *wrong;		/* the broken rule */
};

static unsigned pick(struct writer *w, unsigned n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->random >> 33) % n;
}

static void fill(struct writer *w, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)pick(w, 256);
}

/* The bytes of the file from @off on, @n of them at @out, must be the
 * model's. */
static bool reads_as(struct nfs_context *nfs, struct nfsfh *fh, size_t off,
		     const uint8_t *want, size_t n)
{
	uint8_t got[PIECE_MAX];

	return nfs_pread(nfs, fh, off, n, got) == (int)n &&
	       memcmp(got, want, n) == 0;
}

static void read_own(struct writer *w, int at)
{
	size_t off = pick(w, FILE_MAX), n = 1 + pick(w, PIECE_MAX);

	n = off >= w->size ? 0 : n > w->size - off ? w->size - off : n;
	/* Nothing is beyond the end. */
	if (n == 0)
		off = w->size + 1;
	if (!reads_as(w->nfs[at], w->own[at], off, w->bytes + (n ? off : 0),
		      n))
		w->wrong = "a read of its own file";
}

static void write_own(struct writer *w, int at)
{
	size_t off = pick(w, FILE_MAX - 1), n = 1 + pick(w, PIECE_MAX);

	if (n > FILE_MAX - off)
		n = FILE_MAX - off;
	fill(w, w->bytes + off, n);
	if (off + n > w->size)
		w->size = off + n;
	if (nfs_pwrite(w->nfs[at], w->own[at], off, n, w->bytes + off) !=
	    (int)n)
		w->wrong = "a write to its own file";
}

static void cut_own(struct writer *w, int at)
{
	size_t size = pick(w, FILE_MAX);

	if (size < w->size)
		memset(w->bytes + size, 0, w->size - size);
	w->size = size;
	if (nfs_ftruncate(w->nfs[at], w->own[at], size) < 0)
		w->wrong = "a new size of its own file";
}

static void stat_own(struct writer *w, int at)
{
	struct nfs_stat_64 st;

	if (nfs_fstat64(w->nfs[at], w->own[at], &st) < 0 ||
	    st.nfs_size != w->size)
		w->wrong = "the size of its own file";
}

static void sync_own(struct writer *w, int at)
{
	if (nfs_fsync(w->nfs[at], w->own[at]) < 0)
		w->wrong = "a sync of its own file";
}

/* Only the writer writes this record; others write to the records around it. */
static void use_record(struct writer *w, int at)
{
	unsigned i = pick(w, RECORDS);
	size_t off = (i * WRITERS + w->index) * (size_t)RECORD;

	if (!reads_as(w->nfs[at], w->shared[at], off, w->record[i], RECORD))
		w->wrong = "a record of the shared file";
	at = (int)pick(w, 2);
	fill(w, w->record[i], RECORD);
	if (nfs_pwrite(w->nfs[at], w->shared[at], off, RECORD,
		       w->record[i]) != RECORD)
		w->wrong = "a write to the shared file";
}

static void *write_and_read(void *arg)
{
	static void (*const often[])(struct writer *, int) = {
		read_own, read_own, read_own, write_own, write_own, cut_own,
		stat_own, sync_own, use_record, use_record,
	};
	struct writer *w = arg;

	while (!w->wrong && runner_now_ms() < w->until) {
		often[pick(w, 10)](w, (int)pick(w, 2));
		w->calls++;
	}
	for (int at = 0; at < 2 && !w->wrong; at++) {
		stat_own(w, at);
		for (size_t off = 0; off < w->size; off += PIECE_MAX)
			if (!reads_as(w->nfs[at], w->own[at], off,
				      w->bytes + off,
				      w->size - off < PIECE_MAX ?
				      w->size - off : PIECE_MAX))
				w->wrong = "its own file at the end";
	}
	return NULL;
}

static void open_files(struct writer *w)
{
	char own[32];

	snprintf(own, sizeof(own), "/own%u", w->index);
	for (int at = 0; at < 2; at++) {
		w->nfs[at] = pair_nfs(at ? &pair_second : &pair_crash->d);
		ck_assert_int_eq(nfs_open2(w->nfs[at], own, O_CREAT | O_RDWR,
					   0644, &w->own[at]), 0);
		ck_assert_int_eq(nfs_open2(w->nfs[at], "/shared",
					   O_CREAT | O_RDWR, 0644,
					   &w->shared[at]), 0);
	}
	ck_assert_int_eq(nfs_ftruncate(w->nfs[0], w->shared[0],
				       WRITERS * RECORDS * RECORD), 0);
}

static void close_files(struct writer *w)
{
	for (int at = 0; at < 2; at++) {
		nfs_close(w->nfs[at], w->own[at]);
		nfs_close(w->nfs[at], w->shared[at]);
		nfs_destroy_context(w->nfs[at]);
	}
}

TEST(bytes_that_one_server_wrote_are_what_the_other_reads)
{
	struct writer *w = calloc(WRITERS, sizeof(*w));
	uint64_t end = end_of_test();
	unsigned long calls = 0;
	bool wrong = false;

	ck_assert_ptr_nonnull(w);
	for (unsigned i = 0; i < WRITERS; i++) {
		w[i].index = i;
		w[i].random = pair_crash->seed + i;
		w[i].until = end;
		open_files(&w[i]);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&w[i].thread, NULL,
						write_and_read, &w[i]), 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_join(w[i].thread, NULL);
		calls += w[i].calls;
		wrong = wrong || w[i].wrong;
		if (w[i].wrong)
			printf("writer %u: not as it has to be: %s: %s %s\n",
			       i, w[i].wrong, nfs_get_error(w[i].nfs[0]),
			       nfs_get_error(w[i].nfs[1]));
		close_files(&w[i]);
	}
	printf("# data by two servers: %lu steps, seed %llu\n", calls,
	       (unsigned long long)pair_crash->seed);
	fflush(stdout);
	ck_assert(!wrong);
	free(w);
}
