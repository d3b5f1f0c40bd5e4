/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients over iWARP that offer data and never let it be read: each call
 * waits on its connection, none on a worker.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/log.h"
#include "tests/server/fault_vfs.h"
#include "tests/server/nfs_client.h"
#include "tests/unit/iwarp_raw.h"
#include "tests/unit/runner.h"
#include "transport/rpcrdma/rpcrdma.h"

#define STALLED	8
#define LEN	65536

static struct fabric fabric;
static struct xprt_listener *listener;

static void setup(void)
{
	struct harness_config hc = { .backend = &fault_vfs_ops, .nworkers = 1 };
	struct sockaddr_in addr = { .sin_family = AF_INET };

	fault_init();
	nfs_setup_with(&hc);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(iwarp_fabric_create(NULL, &fabric), 0);
	ck_assert_int_eq(rpcrdma_listen(&fabric, &srv.env,
					(struct sockaddr *)&addr, NULL,
					&listener), 0);
}

static void teardown(void)
{
	listener->ops->stop(listener);
	listener->ops->free(listener);
	nfs_teardown();
	iwarp_fabric_destroy(&fabric);
}

static void put_words(struct xdr_out *x, const uint32_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		xdr_put_u32(x, words[i]);
}

/* WRITE to @fh, up to the data, which a Read chunk stands for. */
static uint32_t put_call(uint8_t *buf, size_t size, nfs_fh3 fh)
{
	const uint32_t head[] = { 7, 0, 2, NFS_PROGRAM, NFS_V3,
				  NFS3_WRITE,
				  1, 20, 0, 0, 0, 0, 0, 0, 0 };
	const uint32_t args[] = { 0, 0, LEN, VFS_FILE_SYNC, LEN };
	struct xdr_out x;

	xdr_out_init(&x, buf, size);
	put_words(&x, head, ARRAY_SIZE(head));
	xdr_put_opaque(&x, fh.data.data_val, fh.data.data_len);
	put_words(&x, args, ARRAY_SIZE(args));
	ck_assert(!x.bad);
	return (uint32_t)xdr_out_len(&x);
}

static uint32_t put_message(uint8_t *buf, size_t size, nfs_fh3 fh)
{
	uint8_t call[512];
	uint32_t len = put_call(call, sizeof(call), fh);
	/* RDMA_MSG; one Read segment, no other list. */
	const uint32_t head[] = { 7, 1, 32, 0,
				  1, len, 0x1234, LEN, 0, 0, 0, 0, 0 };
	struct xdr_out x;

	xdr_out_init(&x, buf, size);
	put_words(&x, head, ARRAY_SIZE(head));
	xdr_put_fixed(&x, call, len);
	ck_assert(!x.bad);
	return (uint32_t)xdr_out_len(&x);
}

/* Connects, sends the call, and sees the server ask for the data. */
static int stall(nfs_fh3 fh)
{
	struct ddp_header h = { .last = true, .opcode = RDMAP_SEND, .msn = 1 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval tv = { .tv_sec = 60 };
	uint8_t msg[1024], reply[32];

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&listener->local,
				 sizeof(struct sockaddr_in)), 0);
	raw_put_hex(fd, REQ_SIW);
	raw_get(fd, reply, sizeof(reply));
	h.payload = put_message(msg, sizeof(msg), fh);
	raw_send_fpdu(fd, h, msg, reply[16] & 0x40);
	raw_get(fd, msg, 4);
	ck_assert_uint_eq(msg[3] & 0x0f, RDMAP_READ_REQUEST);
	return fd;
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(reads_that_do_not_end_hold_no_worker)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "before");
	unsigned writes = fault_calls(FAULT_WRITE);
	int fd[STALLED];

	for (int i = 0; i < STALLED; i++)
		fd[i] = stall(fh);
	/* Work that only the one worker does. */
	fault_blocks(FAULT_GETATTR, true);
	ck_assert_uint_eq(nfs_attr(fh).size, 6);
	ck_assert_uint_eq(fault_calls(FAULT_WRITE), writes);
	for (int i = 0; i < STALLED; i++)
		close(fd[i]);
	ck_assert_uint_eq(nfs_attr(fh).size, 6);
}

TEST(a_server_ends_whatever_it_waits_for)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "before");

	for (int i = 0; i < STALLED; i++)
		stall(fh);
	/* teardown() does the rest, with the connections open. */
}
