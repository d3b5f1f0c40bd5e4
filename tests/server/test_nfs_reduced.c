/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannet-nfs and a responder that does not keep to RFC 8267: results that are
 * not where the binding has them fail their call (RFC 8166 section 6.1).
 */
#include <arpa/inet.h>
#include <errno.h>

#include "tools/nfs/nfs.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

enum { COUNT = 700, HALF = COUNT / 2 };

/* Where the data of READ goes. */
enum place { CHUNK, INLINE, HALF_CHUNK, NOWHERE };

static struct rig rig;
static struct nfsc_session *session;
static atomic_int place;
static uint8_t got[COUNT];

/* The body of @len bytes; as a DDP-eligible result, or not. */
static void put_body(struct msg *m, uint32_t len, bool eligible)
{
	m->body = pool_alloc(rig.pool, len);
	for (uint32_t i = 0; i < len; i++)
		m->body->data[i] = pattern(i);
	m->body_len = len;
	m->body_ddp = eligible;
}

/* Answers a READ: COUNT bytes, end of file. */
static void answer_read(struct xprt_sink *sink, struct msg *m)
{
	struct xdr_out x;
	uint32_t xid;

	memcpy(&xid, m->call[0].data, sizeof(xid));
	xdr_out_init(&x, m->head, MSG_HEAD_SIZE);
	xdr_put_u32(&x, be32toh(xid));
	xdr_put_u32(&x, 1);		/* a reply, */
	for (unsigned i = 0; i < 4; i++)
		xdr_put_u32(&x, 0);	/* accepted; no verifier; done */
	xdr_put_u32(&x, 0);		/* NFS3_OK */
	xdr_put_bool(&x, false);	/* no attributes */
	xdr_put_u32(&x, COUNT);
	xdr_put_bool(&x, true);
	xdr_put_u32(&x, COUNT);
	m->body = NULL;
	m->body_len = 0;
	m->tail_len = 0;
	switch (atomic_load(&place)) {
	case CHUNK:
		put_body(m, COUNT, true);
		break;
	case INLINE:
		put_body(m, COUNT, false);
		break;
	case HALF_CHUNK:
		put_body(m, HALF, true);
		break;
	}
	m->head_len = (uint32_t)xdr_out_len(&x);
	xprt_reply(m);
}

static void start(void)
{
	struct nfsc_url url = { .transport = NFS_RDMA, .host = "127.0.0.1" };
	struct nfsc_config c = { .depth = 1 };
	const struct sockaddr_in *at;

	rig_open(&rig, NULL);
	rig.sink.recv = answer_read;
	c.on = &rig.fabric;
	at = (const struct sockaddr_in *)&rig.listener->local;
	url.port = ntohs(at->sin_port);
	ck_assert_int_eq(nfsc_rdma_open(&url, &c, &session), 0);
}

/* Returns the error of a READ whose data goes to @where. */
static int read_from(enum place where)
{
	struct nfsc_op op = { .kind = NFS_OP_READ, .fh.len = 8,
			      .count = COUNT, .data = got };

	atomic_store(&place, where);
	memset(got, 0, sizeof(got));
	return session_do(session, &op);
}

TEST(read_data_that_is_not_in_its_write_chunk_fails_the_call_alone)
{
	static const enum place wrong[] = { INLINE, HALF_CHUNK, NOWHERE };

	start();
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		ck_assert_int_eq(read_from(wrong[i]), -EBADMSG);
		ck_assert_int_eq(read_from(CHUNK), 0);
		ck_assert_uint_eq(got[COUNT - 1], pattern(COUNT - 1));
	}
	session_close(session);
	rig_close(&rig);
}
