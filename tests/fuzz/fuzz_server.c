/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole server, as a byte stream reaches it: over TCP, or over TCP as
 * iWARP, which carries RPC-over-RDMA messages; over files in memory, or over
 * real ones in a private directory.
 *
 * The input is a byte that says which of these, then items: a kind, a length of
 * two bytes, the bytes.  A message gets the framing of its stream, and a handle
 * in it that is all HANDLE becomes that of the export's root.  An answer is a
 * Read Response to the Read that the server asked for last.
 *
 * Whatever comes, the server ends a connection whose peer has ended it, it
 * serves the next one, and all buffers come back.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"
#include "tests/fuzz/fuzz_server.h"
#include "tests/server/harness.h"
#include "transport/fabric/iwarp/ddp.h"
#include "transport/fabric/iwarp/iwarp.h"
#include "transport/rpcrdma/rpcrdma.h"
#include "wire/record.h"

/* Inputs after which the server is checked and recreated. */
enum { SERVER_LIFE = 2000, LOOK = 100, PATIENCE_MS = 20000, MESSAGE = 4096,
       ANSWER = 32768, NOBODY = 65534 };

static const uint8_t hello[] = "MPA ID Req Frame\x10\2\0\14\0\x80\0\x80"
			       "\xf6\xab\x0e\x18\1\1\3\3";

/* A server, and its backend's root. */
struct world {
	struct harness	srv;
	struct fabric	iwarp;
	struct xprt_listener *rdma;
	struct nfs3_fh root;
	char		path[64];
	bool		posix;
};

static struct world worlds[2];		/* mem and posix */
static struct world *w;			/* the input's */

/* The connection of an input. */
static int fd;
static bool over_iwarp;
static uint32_t msn;
/* The server's FPDUs, as far as they came, and the Read that it asked for. */
static uint8_t in[1 << 17];
static size_t have;
static bool asked, may_ask;
static struct rdmap_request wanted;

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

/* Also at the end of the process. */
static void remove_files(void)
{
	if (worlds[1].path[0])
		nftw(worlds[1].path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	worlds[1].path[0] = '\0';
}

/* The unprivileged user owns the real files, and makes the calls. */
static void make_files(struct world *v)
{
	static bool registered;

	strcpy(v->path, "/tmp/gannet-fuzz-XXXXXX");
	if (!mkdtemp(v->path) ||
	    (geteuid() == 0 && chown(v->path, NOBODY, NOBODY) < 0))
		abort();
	if (!registered)
		atexit(remove_files);
	registered = true;
}

static void start(struct world *v)
{
	static const struct iwarp_options options = {
		.linger_ms = 100, .no_crc = true,
	};
	static const struct rpcrdma_options ro = { .credits = 16 };
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char exports[160];
	struct harness_config c = {
		.exports = exports,
		.backend = v->posix ? &posix_vfs_ops : &mem_vfs_ops,
		.nworkers = 2,
		/* Each input waits for the end of its connection. */
		.unread_ms = 1,
		.nfs3 = { .rtmax = 65536, .wtmax = 65536, .dtpref = 65536 },
	};

	log_threshold = LOG_LEVEL_ERR;
	if (v->posix)
		make_files(v);
	else
		strcpy(v->path, "/mem");
	snprintf(exports, sizeof(exports), "%s%s *(rw,insecure,%s)\n",
		 v->posix ? "posix,async:" : "", v->path,
		 v->posix ? "all_squash,anonuid=65534,anongid=65534" :
		 "no_root_squash");
	harness_start(&v->srv, &c);
	harness_root(&v->srv, v->path, &v->root);
	if (!v->posix && v->root.len != HANDLE_LEN)
		abort();
	if (iwarp_fabric_create(&options, &v->iwarp) < 0 ||
	    rpcrdma_listen(&v->iwarp, &v->srv.env, (struct sockaddr *)&sin,
			   &ro, &v->rdma) < 0)
		abort();
}

static void stop(struct world *v)
{
	v->rdma->ops->stop(v->rdma);
	v->rdma->ops->free(v->rdma);
	harness_stop(&v->srv);
	iwarp_fabric_destroy(&v->iwarp);
	if (v->posix)
		remove_files();
}

/* Reads what has arrived, after waiting @ms at most.  False: the server has
 * ended the connection. */
static bool take(int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	/* The fuzzer's own alarm comes every half minute. */
	do
		n = poll(&p, 1, ms);
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		if (ms == PATIENCE_MS)
			abort();
		return true;
	}
	if (have == sizeof(in))
		have = 0;		/* those are not read */
	n = recv(fd, in + have, sizeof(in) - have, MSG_DONTWAIT);
	if (n <= 0)
		return false;
	have += (size_t)n;
	return true;
}

/* Looks through the server's FPDUs for a Read Request. */
static void look_for_read(void)
{
	size_t at = 0;

	while (have - at >= 48) {
		const uint8_t *p = in + at;
		size_t len = ddp_fpdu_len((unsigned)p[0] << 8 | p[1]);

		if (len > have - at)
			break;
		if ((p[3] & 15) == RDMAP_READ_REQUEST) {
			rdmap_request_decode(p + DDP_UNTAGGED_LEN, &wanted);
			asked = true;
		}
		at += len;
	}
	have -= at;
	memmove(in, in + at, have);
}

static void give(const uint8_t *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0) {
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			if (!take(0) || poll(&p, 1, 100) <= 0)
				return;
			continue;
		}
		data += n;
		len -= (size_t)n;
	}
}

static void give_fpdu(struct ddp_header h, const uint8_t *payload)
{
	static uint8_t fpdu[ANSWER + 64];
	unsigned at;

	memset(fpdu, 0, sizeof(fpdu));
	at = ddp_encode(&h, fpdu);
	memcpy(fpdu + at, payload, h.payload);
	give(fpdu, ddp_fpdu_len(at - DDP_LENGTH_LEN + h.payload));
}

/* Puts the root's handle where its place is kept, behind its length.  Returns
 * the new length of all. */
static size_t put_handles(uint8_t *p, size_t len, size_t max)
{
	const struct nfs3_fh *root = &w->root;
	size_t room = (root->len + 3u) & ~3u;

	for (size_t i = 0; i + HANDLE_LEN <= len; i++) {
		size_t n = 0;

		while (n < HANDLE_LEN && p[i + n] == HANDLE)
			n++;
		if (n < HANDLE_LEN || len + room > max)
			continue;
		memmove(p + i + room, p + i + HANDLE_LEN, len - i - HANDLE_LEN);
		memset(p + i, 0, room);
		memcpy(p + i, root->data, root->len);
		if (i >= 4 && p[i - 1] == HANDLE_LEN)
			p[i - 1] = (uint8_t)root->len;
		len += room - HANDLE_LEN;
	}
	return len;
}

static void give_message(const uint8_t *data, size_t len)
{
	static uint8_t msg[65536];
	uint32_t mark;

	memcpy(msg, data, len);
	len = put_handles(msg, len, sizeof(msg));
	record_put_mark(&mark, len);
	may_ask = true;
	if (over_iwarp) {
		len = len < MESSAGE ? len : MESSAGE;
		give_fpdu((struct ddp_header){ .last = true, .msn = ++msn,
			  .opcode = RDMAP_SEND, .payload = (uint32_t)len },
			  msg);
	} else {
		give((uint8_t *)&mark, 4);
		give(msg, len);
	}
}

/* @data again and again, as much as was asked for. */
static void give_answer(const uint8_t *data, size_t len)
{
	static uint8_t payload[ANSWER];
	struct ddp_header h = { .tagged = true, .opcode = RDMAP_READ_RESPONSE };

	for (int i = 0; i < 8 && may_ask && !asked && take(1); i++)
		look_for_read();
	may_ask = false;
	if (!asked)
		return;
	asked = false;
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = len ? data[i % len] : 0;
	h.stag = wanted.sink_stag;
	for (uint32_t at = 0; at < wanted.len; at += h.payload) {
		h.to = wanted.sink_to + at;
		h.payload = wanted.len - at < ANSWER ? wanted.len - at :
			    ANSWER;
		h.last = at + h.payload == wanted.len;
		give_fpdu(h, payload);
	}
}

static int dial(const struct sockaddr_storage *to)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (s < 0 || connect(s, (const struct sockaddr *)to,
			     sizeof(struct sockaddr_in)) < 0)
		abort();
	return s;
}

/* The server no longer waits for anything. */
static void expect_end(void)
{
	shutdown(fd, SHUT_WR);
	while (take(PATIENCE_MS))
		have = 0;
	close(fd);
}

static void run(const uint8_t *data, size_t len)
{
	over_iwarp = data[0] & 1;
	msn = 0;
	have = 0;
	asked = may_ask = false;
	fd = dial(over_iwarp ? &w->rdma->local : &w->srv.tcp->local);
	if (over_iwarp && !(data[0] & 2)) {
		give(hello, 32);
		while (have < 32 && take(PATIENCE_MS))
			;
		have = 0;
	}
	data++;
	len--;
	for (int i = 0; i < ITEMS_MAX && len >= ITEM_HEAD; i++) {
		size_t n = (size_t)data[1] << 8 | data[2];

		n = n < len - ITEM_HEAD ? n : len - ITEM_HEAD;
		if (data[0] % KINDS == KIND_RAW)
			give(data + ITEM_HEAD, n);
		else if (data[0] % KINDS == KIND_MESSAGE)
			give_message(data + ITEM_HEAD, n);
		else if (over_iwarp)
			give_answer(data + ITEM_HEAD, n);
		data += ITEM_HEAD + n;
		len -= ITEM_HEAD + n;
	}
	expect_end();
}

/* NULL over TCP: is anybody there? */
static void look(void)
{
	static const uint32_t call[] = { 1, 0, 2, 100003, 3, 0, 0, 0, 0, 0 };
	uint8_t msg[sizeof(call)];

	for (size_t i = 0; i < sizeof(call) / 4; i++) {
		uint32_t word = htonl(call[i]);

		memcpy(msg + 4 * i, &word, 4);
	}
	over_iwarp = false;
	have = 0;
	fd = dial(&w->srv.tcp->local);
	give_message(msg, sizeof(msg));
	while (have < 28)
		if (!take(PATIENCE_MS))
			abort();
	expect_end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static unsigned age[2];
	bool posix;

	if (len == 0)
		return 0;
	posix = data[0] & 4;
	w = &worlds[posix];
	w->posix = posix;
	if (age[posix] == 0)
		start(w);
	run(data, len);
	if (++age[posix] % LOOK == 0)
		look();
	if (age[posix] == SERVER_LIFE) {
		stop(w);
		age[posix] = 0;
	}
	return 0;
}
