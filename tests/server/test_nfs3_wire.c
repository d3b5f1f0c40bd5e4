/* SPDX-License-Identifier: BSD-2-Clause */
/* NFS and MOUNT on a bare socket: messages that libnfs can't or won't send. */
#include "tests/server/harness.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/log.h"
#include "wire/nfs3.h"
#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"
#include "transport/stream/stream.h"

#define NFS		NFS3_PROGRAM
#define MOUNT		100005

static struct harness srv;
static struct nfs3_fh top;
static int fd;

static uint8_t call_buf[256 << 10], reply_buf[256 << 10];
static struct xdr_out out;
static struct xdr_in in;

static void open_conn(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons(srv.port);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

static void setup(void)
{
	log_threshold = LOG_LEVEL_ERR;
	harness_start(&srv, NULL);
	harness_root(&srv, "/mem", &top);
	open_conn();
}

static void teardown(void)
{
	close(fd);
	harness_stop(&srv);
}

/* A record mark, and a call with AUTH_SYS of root. */
static void begin(uint32_t prog, uint32_t vers, uint32_t proc)
{
	static const uint32_t auth[] = { 1, 20, 0, 0, 0, 0, 0, 0, 0 };

	xdr_out_init(&out, call_buf, sizeof(call_buf));
	xdr_put_u32(&out, 0);
	xdr_put_u32(&out, 77);
	xdr_put_u32(&out, 0);
	xdr_put_u32(&out, 2);
	xdr_put_u32(&out, prog);
	xdr_put_u32(&out, vers);
	xdr_put_u32(&out, proc);
	for (size_t i = 0; i < ARRAY_SIZE(auth); i++)
		xdr_put_u32(&out, auth[i]);
}

static void put_fh(void)
{
	xdr_put_opaque(&out, top.data, top.len);
}

static void put_string(const char *s, uint32_t len)
{
	xdr_put_opaque(&out, s, len);
}

/* Sends the first @len bytes of the call; returns accept_stat, with the
 * cursor behind it. */
static uint32_t send_len(size_t len)
{
	ck_assert(!out.bad);
	record_put_mark(call_buf, len - RECORD_MARK_SIZE);
	ck_assert_int_eq(send(fd, call_buf, len, 0), (ssize_t)len);
	len = record_receive(fd, reply_buf, sizeof(reply_buf));
	xdr_in_init(&in, reply_buf, len);
	ck_assert_uint_eq(xdr_get_u32(&in), 77);
	ck_assert_uint_eq(xdr_get_u32(&in), 1);
	ck_assert_uint_eq(xdr_get_u32(&in), 0);
	xdr_get_u64(&in);
	return xdr_get_u32(&in);
}

/* Sends it all, which must be accepted; returns the first word, a status. */
static uint32_t status(void)
{
	ck_assert_uint_eq(send_len(xdr_out_len(&out)), RPC_SUCCESS);
	return xdr_get_u32(&in);
}

/* Arguments of each procedure, as short as they can be. */
static void put_args(uint32_t proc)
{
	static const uint8_t words[NFS3_NPROC] = {
		[NFSPROC3_SETATTR] = 7, [NFSPROC3_ACCESS] = 1,
		[NFSPROC3_READ] = 3, [NFSPROC3_WRITE] = 5,
		[NFSPROC3_CREATE] = 7, [NFSPROC3_MKDIR] = 6,
		[NFSPROC3_SYMLINK] = 7, [NFSPROC3_MKNOD] = 1,
		[NFSPROC3_READDIR] = 5, [NFSPROC3_READDIRPLUS] = 6,
		[NFSPROC3_COMMIT] = 3,
	};

	put_fh();
	switch (proc) {
	case NFSPROC3_LOOKUP:
	case NFSPROC3_CREATE:
	case NFSPROC3_MKDIR:
	case NFSPROC3_SYMLINK:
	case NFSPROC3_MKNOD:
	case NFSPROC3_REMOVE:
	case NFSPROC3_RMDIR:
		put_string("none", 4);
		break;
	case NFSPROC3_RENAME:
		put_string("none", 4);
		put_fh();
		put_string("none", 4);
		break;
	case NFSPROC3_LINK:
		put_fh();
		put_string("none", 4);
		break;
	}
	for (int i = 0; i < words[proc]; i++)
		xdr_put_u32(&out, 0);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST_LOOP(arguments_cut_short_are_garbage, 1, NFS3_NPROC)
{
	size_t head, len;

	begin(NFS, 3, _i);
	head = xdr_out_len(&out);
	put_args(_i);
	len = xdr_out_len(&out);
	for (size_t n = head; n < len; n += 4)
		ck_assert_uint_eq(send_len(n), RPC_GARBAGE_ARGS);
	ck_assert_uint_eq(send_len(len), RPC_SUCCESS);
}

TEST(unserved_programs_versions_and_procedures_are_refused)
{
	begin(NFS, 3, NFS3_NPROC);
	ck_assert_uint_eq(send_len(xdr_out_len(&out)), RPC_PROC_UNAVAIL);
	for (uint32_t vers = 2; vers <= 4; vers += 2) {
		begin(NFS, vers, 0);
		ck_assert_uint_eq(send_len(xdr_out_len(&out)),
				  RPC_PROG_MISMATCH);
		ck_assert_uint_eq(xdr_get_u32(&in), 3);
		ck_assert_uint_eq(xdr_get_u32(&in), 3);
	}
	begin(MOUNT, 4, 0);
	ck_assert_uint_eq(send_len(xdr_out_len(&out)), RPC_PROG_MISMATCH);
	ck_assert_uint_eq(xdr_get_u32(&in), 1);
	ck_assert_uint_eq(xdr_get_u32(&in), 3);
	begin(MOUNT, 3, 6);
	ck_assert_uint_eq(send_len(xdr_out_len(&out)), RPC_PROC_UNAVAIL);
	/* PATHCONF of NFS version 2. */
	begin(MOUNT, 2, 7);
	ck_assert_uint_eq(send_len(xdr_out_len(&out)), RPC_PROC_UNAVAIL);
}

TEST(names_of_more_than_255_bytes_are_too_long)
{
	static const char name[200 << 10];
	static const uint32_t lens[] = { 256, 4096, 65535, sizeof(name) };

	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		begin(NFS, 3, NFSPROC3_LOOKUP);
		put_fh();
		put_string(name, lens[i]);
		ck_assert_uint_eq(status(), NFS3ERR_NAMETOOLONG);
		ck_assert_uint_eq(xdr_get_u32(&in), 1);
	}
}

TEST(a_name_has_no_zero_byte)
{
	begin(NFS, 3, NFSPROC3_LOOKUP);
	put_fh();
	put_string("a\0b", 3);
	ck_assert_uint_eq(status(), NFS3ERR_ACCES);
}

static uint32_t symlink_to(const char *name, const char *target, uint32_t len)
{
	begin(NFS, 3, NFSPROC3_SYMLINK);
	put_fh();
	put_string(name, (uint32_t)strlen(name));
	for (int i = 0; i < 6; i++)
		xdr_put_u32(&out, 0);
	put_string(target, len);
	return status();
}

TEST(a_link_holds_4095_bytes)
{
	static char target[100000];

	memset(target, 'x', sizeof(target));
	ck_assert_uint_eq(symlink_to("l", target, 4095), NFS3_OK);
	ck_assert_uint_eq(symlink_to("m", target, 4096), NFS3ERR_NAMETOOLONG);
	ck_assert_uint_eq(symlink_to("m", target, sizeof(target)),
			  NFS3ERR_NAMETOOLONG);
	ck_assert_uint_eq(symlink_to("m", "a\0b", 3), NFS3ERR_INVAL);
	ck_assert_uint_eq(symlink_to("m", "", 0), NFS3ERR_INVAL);
}

TEST(mknod_of_an_unknown_type_is_a_bad_type)
{
	static const uint32_t types[] = { 0, 1, 2, 5, 8, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		begin(NFS, 3, NFSPROC3_MKNOD);
		put_fh();
		put_string("n", 1);
		xdr_put_u32(&out, types[i]);
		ck_assert_uint_eq(status(), NFS3ERR_BADTYPE);
	}
}

TEST(a_path_to_mount_may_be_too_long_or_no_path)
{
	static char path[60000];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	begin(MOUNT, 3, 1);
	put_string(path, sizeof(path));
	ck_assert_uint_eq(status(), 63);
	begin(MOUNT, 3, 1);
	put_string("/mem\0/x", 7);
	ck_assert_uint_eq(status(), 22);
}

TEST(version_2_of_mount_lists_like_version_1)
{
	for (uint32_t vers = 1; vers <= 2; vers++) {
		/* EXPORT and EXPORTALL. */
		for (uint32_t proc = 5; proc <= 6; proc++) {
			begin(MOUNT, vers, proc);
			ck_assert_uint_eq(status(), 1);
			ck_assert_uint_eq(xdr_get_opaque(&in, 10).len, 4);
		}
		begin(MOUNT, vers, 1);
		put_string("/mem", 4);
		ck_assert_uint_eq(status(), 22);
		ck_assert_uint_eq(xdr_left(&in), 0);
		begin(MOUNT, vers, 2);
		ck_assert_uint_eq(status(), 0);
	}
}

/* Here, because libnfs takes a privileged port when it can. */
TEST(secure_refuses_unprivileged_ports)
{
	harness_publish(&srv, "/mem 127.0.0.1(rw,secure)\n");
	begin(NFS, 3, NFSPROC3_GETATTR);
	put_fh();
	ck_assert_uint_eq(status(), NFS3ERR_ACCES);
	begin(MOUNT, 3, 1);
	put_string("/mem", 4);
	ck_assert_uint_eq(status(), 13);
	harness_publish(&srv, "/mem 127.0.0.1(rw,insecure)\n");
	begin(NFS, 3, NFSPROC3_GETATTR);
	put_fh();
	ck_assert_uint_eq(status(), NFS3_OK);
}

static struct xprt_listener *listen_udp(struct sockaddr_in *a)
{
	struct xprt_listener *l;

	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(udp_listen(&srv.env, (struct sockaddr *)a, NULL, &l),
			 0);
	memcpy(a, &l->local, sizeof(*a));
	return l;
}

/* Sends the call without its record mark; returns reply_stat. */
static uint32_t send_datagram(int udp)
{
	ssize_t len = (ssize_t)xdr_out_len(&out) - 4;

	ck_assert_int_eq(send(udp, call_buf + 4, (size_t)len, 0), len);
	len = recv(udp, reply_buf, sizeof(reply_buf), 0);
	ck_assert_int_gt(len, 0);
	xdr_in_init(&in, reply_buf, (size_t)len);
	xdr_get_u64(&in);
	return xdr_get_u32(&in);
}

TEST(datagrams_are_for_mount)
{
	struct sockaddr_in a;
	struct xprt_listener *l = listen_udp(&a);
	int udp = socket(AF_INET, SOCK_DGRAM, 0);

	ck_assert_int_eq(connect(udp, (struct sockaddr *)&a, sizeof(a)), 0);
	begin(NFS, 3, NFSPROC3_NULL);
	ck_assert_uint_eq(send_datagram(udp), 0);
	begin(NFS, 3, NFSPROC3_GETATTR);
	put_fh();
	ck_assert_uint_eq(send_datagram(udp), 1);
	ck_assert_uint_eq(xdr_get_u32(&in), 1);
	ck_assert_uint_eq(xdr_get_u32(&in), RPC_AUTH_TOOWEAK);
	begin(MOUNT, 3, 1);
	put_string("/mem", 4);
	ck_assert_uint_eq(send_datagram(udp), 0);
	xdr_get_fixed(&in, 12);
	ck_assert_uint_eq(xdr_get_u32(&in), 0);
	close(udp);
	l->ops->stop(l);
	l->ops->free(l);
}

/* A second run would have said EXIST.  For all that the server knows, the
 * client had not read its reply when the connection was reset. */
TEST(a_call_sent_again_is_not_run_again)
{
	struct linger now = { 1, 0 };
	uint8_t first[512];
	size_t len;

	begin(NFS, 3, NFSPROC3_MKDIR);
	put_args(NFSPROC3_MKDIR);
	ck_assert_uint_eq(status(), NFS3_OK);
	len = xdr_left(&in);
	memcpy(first, in.p, len);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
	open_conn();
	ck_assert_uint_eq(status(), NFS3_OK);
	ck_assert_uint_eq(xdr_left(&in), len);
	ck_assert_mem_eq(in.p, first, len);
}
