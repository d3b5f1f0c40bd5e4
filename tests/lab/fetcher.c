/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fetcher - read a file by long replies that lie in the server's memory, the
 * Read-Read transfer model (RFC 5666 section 3.8).
 *
 *	fetcher verbs|iwarp ADDRESS PORT FILEHANDLE SIZE [windows|dmabuf]
 *
 * Writes the file to standard output.  Each call is a READ of at most 128 KiB
 * that offers no memory, and eight are in progress.  With windows, each offers
 * a memory window of it instead, and the number of registrations goes to
 * standard error.  With dmabuf, the answer to the registration of a dma-buf
 * goes there first; the calls offer memory that is registered for each, as a
 * program does without a dma-buf.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gannet/rpcrdma.h>

enum { COUNT = 128 << 10, CALLS = 8, HEAD = 256, NFS_READ = 6 };

struct fetch {
	struct gannet_rpcrdma_call call;
	uint32_t msg[64];
	/* As the reply was read from the server, or as it came. */
	uint8_t reply[COUNT + HEAD];
	sem_t done;
};

static struct gannet_rpcrdma *client;
static struct fetch fetches[CALLS];
static uint8_t fh[64];
static uint32_t fh_len;
static unsigned long long size;

static void fail(const char *what, int err)
{
	fprintf(stderr, "fetcher: %s: %s\n", what, strerror(err));
	exit(1);
}

static void is_done(struct gannet_rpcrdma_call *call)
{
	struct fetch *f = call->arg;

	/* It is gone when we return, unless it was fetched. */
	if (call->status == 0 && call->reply != f->reply) {
		if (call->reply_len > sizeof(f->reply))
			call->status = -EMSGSIZE;
		else
			memcpy(f->reply, call->reply, call->reply_len);
	}
	sem_post(&f->done);
}

/* NFSv3, without credentials. */
static void start(struct fetch *f, unsigned long long offset)
{
	const uint32_t head[10] = { gannet_rpcrdma_xid(client), 0, 2, 100003,
				    3, NFS_READ };
	uint32_t n = 0;
	int err;

	for (n = 0; n < 10; n++)
		f->msg[n] = htonl(head[n]);
	f->msg[n++] = htonl(fh_len);
	memset(&f->msg[n], 0, sizeof(fh));
	memcpy(&f->msg[n], fh, fh_len);
	n += (fh_len + 3) / 4;
	f->msg[n++] = htonl((uint32_t)(offset >> 32));
	f->msg[n++] = htonl((uint32_t)offset);
	f->msg[n++] = htonl(COUNT);
	f->call = (struct gannet_rpcrdma_call){
		.size = sizeof(f->call),
		.msg = f->msg, .msg_len = n * 4, .done = is_done, .arg = f,
		.reply_mem.addr = f->reply, .reply_mem.len = sizeof(f->reply),
	};
	err = gannet_rpcrdma_call(client, &f->call);
	if (err < 0)
		fail("READ", -err);
}

static uint32_t word(const struct fetch *f, unsigned i)
{
	uint32_t v;

	memcpy(&v, f->reply + 4 * i, sizeof(v));
	return ntohl(v);
}

/* Writes the data of a reply; returns its length. */
static uint32_t finish(struct fetch *f)
{
	unsigned at;
	uint32_t len;

	while (sem_wait(&f->done) != 0)
		;
	/* RPC, the status, attributes, count, end, the data's length. */
	at = 6 + 1 + (word(f, 7) ? 22 : 1) + 3;
	if (f->call.status < 0)
		fail("READ", -f->call.status);
	if (f->call.reply_len < at * 4 || word(f, 1) != 1 || word(f, 2) != 0 ||
	    word(f, 5) != 0 || word(f, 6) != 0)
		fail("READ", EBADMSG);
	len = word(f, at - 1);
	if (f->call.reply_len < at * 4 + len)
		fail("READ", EBADMSG);
	if (fwrite(f->reply + 4 * at, 1, len, stdout) != len)
		fail("standard output", errno);
	return len;
}

static void fetch_all(void)
{
	unsigned long long asked = 0, got = 0;
	unsigned next = 0, last = 0;

	while (got < size) {
		while (asked < size && next - last < CALLS) {
			start(&fetches[next++ % CALLS], asked);
			asked += COUNT;
		}
		got += finish(&fetches[last++ % CALLS]);
		if (got < size && got < (unsigned long long)last * COUNT)
			fail("READ", ENODATA);
	}
}

static void take_arguments(char *argv[], struct sockaddr_in *sin,
			   struct gannet_rpcrdma_options *o)
{
	const char *hex = argv[4];

	o->fabric = strcmp(argv[1], "iwarp") == 0 ? GANNET_RPCRDMA_IWARP :
						    GANNET_RPCRDMA_VERBS;
	o->flags = GANNET_RPCRDMA_NO_RECONNECT;
	if (!argv[6])
		o->flags |= GANNET_RPCRDMA_READ_READ;
	else if (strcmp(argv[6], "windows") == 0)
		o->registration = GANNET_RPCRDMA_WINDOWS;
	sin->sin_family = AF_INET;
	if (inet_pton(AF_INET, argv[2], &sin->sin_addr) != 1)
		fail(argv[2], EINVAL);
	sin->sin_port = htons((uint16_t)atoi(argv[3]));
	while (fh_len < sizeof(fh) && sscanf(hex, "%2hhx", &fh[fh_len]) == 1) {
		fh_len++;
		hex += 2;
	}
	size = strtoull(argv[5], NULL, 10);
}

/* A kernel without drivers that export dma-bufs has only descriptors of other
 * files, but a device that takes none does not look at it. */
static void try_dmabuf(void)
{
	struct gannet_rpcrdma_dmabuf d = {
		.size = sizeof(d), .len = COUNT, .use = GANNET_RPCRDMA_SINK,
		.fd = memfd_create("dma-buf", MFD_CLOEXEC),
	};
	struct gannet_rpcrdma_region *region;
	int err;

	if (d.fd < 0 || ftruncate(d.fd, COUNT) < 0)
		fail("memfd", errno);
	err = gannet_rpcrdma_register_dmabuf(client, &d, &region);
	fprintf(stderr, "fetcher: a dma-buf: %s\n",
		err == -EOPNOTSUPP ? "not supported" : strerror(-err));
	close(d.fd);
}

int main(int argc, char *argv[])
{
	struct gannet_rpcrdma_options o = { .size = sizeof(o) };
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };
	struct sockaddr_in sin = { 0 };
	int err;

	if (argc != 6 && (argc != 7 || (strcmp(argv[6], "windows") != 0 &&
					strcmp(argv[6], "dmabuf") != 0))) {
		fprintf(stderr, "usage: fetcher verbs|iwarp ADDRESS PORT "
			"FILEHANDLE SIZE [windows|dmabuf]\n");
		return 2;
	}
	take_arguments(argv, &sin, &o);
	for (unsigned i = 0; i < CALLS; i++)
		sem_init(&fetches[i].done, 0, 0);
	err = gannet_rpcrdma_connect((struct sockaddr *)&sin, &o, &client);
	if (err < 0)
		fail("connect", -err);
	if (argv[6] && strcmp(argv[6], "dmabuf") == 0)
		try_dmabuf();
	fetch_all();
	gannet_rpcrdma_info(client, &info);
	if (argv[6])
		fprintf(stderr, "fetcher: %llu registrations\n",
			(unsigned long long)info.registered);
	gannet_rpcrdma_close(client);
	return fflush(stdout) == 0 ? 0 : 1;
}
