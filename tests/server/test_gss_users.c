/* SPDX-License-Identifier: BSD-2-Clause */
/* A user with a good context of RPCSEC_GSS who wants to be another user. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/gss.h"
#include "tests/server/dup_client.h"
#include "tests/server/gss_client.h"
#include "tests/server/gss_xor.h"
#include "tests/unit/runner.h"
#include "wire/nfs3.h"
#include "wire/record.h"

#define RULE		"(rw,insecure,no_root_squash,sec=krb5p:krb5i:krb5)"
#define HOME		INADDR_LOOPBACK
#define ELSEWHERE	(INADDR_LOOPBACK + 1)

struct user {
	struct caller	  c;
	struct gss_client g;
};

static struct doors d;
static struct rpc_gss *gss;
static struct user owner, liar;
static struct nfs3_fh top;

static void open_from(struct caller *c, uint32_t address)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	memset(c, 0, sizeof(*c));
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sin.sin_addr.s_addr = htonl(address);
	ck_assert_int_eq(bind(c->fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sin.sin_port = htons(d.srv.port);
	ck_assert_int_eq(connect(c->fd, (struct sockaddr *)&sin, sizeof(sin)),
			 0);
}

static void make_context(struct user *u, uint32_t uid)
{
	const struct gss_xor_token t = {
		.nonce = 77 + uid, .uid = uid, .gid = 0, .seconds = 100,
	};
	uint8_t token[20];

	gss_client_open(&u->g, &u->c, &gss_xor);
	u->g.prog = NFS3_PROGRAM;
	u->g.vers = NFS3_VERSION;
	ck_assert_uint_eq(gss_client_init(&u->g, GSS_INIT,
					  gss_xor_put(token, &t)), RPC_SUCCESS);
	ck_assert_uint_eq(u->g.init.major, GSS_COMPLETE);
	ck_assert(gss_client_take(&u->g, gss_xor_keys(t.nonce)));
}

/* The owner is root, at home. */
static void setup_for(const char *exports, uint32_t liars_address)
{
	static const struct rpc_flavor *flavors[RPC_FLAVORS_MAX];
	const struct rpc_gss_config config = { .mech = &gss_xor };
	struct harness_config hc = {
		.exports = exports, .krb5 = true, .flavors = flavors,
	};

	ck_assert_int_eq(rpc_gss_create(&config, &hc.gss), 0);
	gss = hc.gss;
	rpc_flavors_with(rpc_gss_flavor(gss), flavors);
	doors_open(&d, &hc);
	harness_root(&d.srv, "/mem", &top);
	open_from(&owner.c, HOME);
	make_context(&owner, 0);
	open_from(&liar.c, liars_address);
	make_context(&liar, 2000);
}

static void setup(uint32_t liars_address)
{
	setup_for("/mem 127.0.0.1" RULE " 127.0.0.2" RULE "\n", liars_address);
}

static void teardown(void)
{
	gss_xor.free(owner.g.keys);
	gss_xor.free(liar.g.keys);
	close(owner.c.fd);
	close(liar.c.fd);
	doors_close(&d);
	rpc_gss_destroy(gss);
	ck_assert_uint_eq(gss_xor_count(), 0);
}

/* GETATTR of the root, where that is run: its status. */
static uint32_t getattr(struct gss_client *g)
{
	uint32_t stat;

	gss_client_begin(g, NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_GETATTR);
	xdr_put_opaque(&g->args, top.data, top.len);
	stat = gss_client_send(g);
	return stat == RPC_SUCCESS ? xdr_get_u32(&g->res) : stat;
}

/* Where the liar calls from: a process of the owner's host, which can also have
 * the owner's connection, or another host. */
enum { SAME_HOST, SAME_CONNECTION, OTHER_HOST, PLACES };

static void setup_at(int place)
{
	setup(place == OTHER_HOST ? ELSEWHERE : HOME);
	if (place == SAME_CONNECTION)
		liar.g.c = &owner.c;
}

/* It is not secret with krb5 and krb5i, nor are numbers. */
TEST_LOOP(the_handle_of_another_user_is_of_no_use, 0, PLACES)
{
	struct gss_client *g = &liar.g;

	setup_at(_i);
	ck_assert_uint_eq(getattr(&owner.g), NFS3_OK);
	memcpy(g->handle, owner.g.handle, sizeof(g->handle));
	for (uint32_t s = GSS_NONE; s <= GSS_PRIVACY; s++) {
		g->service = s;
		g->seq = 1000000 * s;
		ck_assert_uint_eq(getattr(g),
				  CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	}
	ck_assert_uint_eq(gss_client_destroy(g),
			  CALLER_DENIED + RPC_GSS_CREDPROBLEM);
	ck_assert_uint_eq(stats_sum_by_name("gss_bad_sum"), 4);
	/* Nor is a step, since the context is made. */
	ck_assert_uint_eq(gss_client_init(g, GSS_CONTINUE,
			  (struct xdr_view){ top.data, 4 }), RPC_SUCCESS);
	ck_assert_uint_eq(g->init.major, GSS_NO_CONTEXT);
	ck_assert_uint_eq(rpc_gss_contexts(gss), 2);
	/* The numbers did not count. */
	ck_assert_uint_eq(owner.g.seq, 1);
	ck_assert_uint_eq(getattr(&owner.g), NFS3_OK);
	teardown();
}

TEST_LOOP(a_call_that_another_user_repeats_gets_no_reply, 0, PLACES)
{
	uint32_t len;

	setup_at(_i);
	owner.g.service = GSS_PRIVACY;
	ck_assert_uint_eq(getattr(&owner.g), NFS3_OK);
	len = (xdr_word(owner.g.call) & ~RECORD_LAST) + 4;
	ck_assert_int_eq(send(liar.g.c->fd, owner.g.call, len, 0),
			 (ssize_t)len);
	EVENTUALLY(stats_sum_by_name("gss_old_seq") == 1);
	/* This is the next reply. */
	ck_assert_uint_eq(getattr(&liar.g), NFS3_OK);
	teardown();
}

/* The export looks at the address of each call, and a context has none. */
TEST(a_context_opens_no_export_to_another_address)
{
	setup_for("/mem 127.0.0.1" RULE "\n", ELSEWHERE);
	ck_assert_uint_eq(getattr(&owner.g), NFS3_OK);
	owner.g.c = &liar.c;
	ck_assert_uint_eq(getattr(&owner.g), NFS3ERR_ACCES);
	ck_assert_uint_eq(stats_sum_by_name("export_denied"), 1);
	owner.g.c = &owner.c;
	ck_assert_uint_eq(getattr(&owner.g), NFS3_OK);
	teardown();
}

/* Nor does the number of a service pass for its flavor. */
TEST(a_connection_lends_its_context_to_no_call)
{
	static const uint32_t services[] = {
		RPC_AUTH_KRB5, RPC_AUTH_KRB5I, RPC_AUTH_KRB5P,
	};
	struct caller_cred cred = { .uid = 0 };

	setup(HOME);
	ck_assert_uint_eq(getattr(&owner.g), NFS3_OK);
	for (unsigned i = 0; i <= ARRAY_SIZE(services); i++) {
		caller_begin(&owner.c, NFS3_PROGRAM, NFS3_VERSION,
			     NFSPROC3_FSSTAT, &cred);
		xdr_put_opaque(&owner.c.out, top.data, top.len);
		ck_assert_uint_eq(caller_send(&owner.c), CALLER_DENIED +
				  (i ? RPC_AUTH_REJECTEDCRED :
				   RPC_AUTH_TOOWEAK));
		if (i < ARRAY_SIZE(services))
			cred.flavor = services[i];
	}
	teardown();
}

static void begin_create(struct gss_client *g)
{
	gss_client_begin(g, NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_CREATE);
	xdr_put_opaque(&g->args, top.data, top.len);
	xdr_put_string(&g->args, "f");
	xdr_put_u32(&g->args, 1);		/* GUARDED */
	for (int i = 0; i < 6; i++)
		xdr_put_u32(&g->args, 0);
}

static uint32_t create(struct gss_client *g)
{
	uint32_t stat;

	begin_create(g);
	stat = gss_client_send(g);
	return stat == RPC_SUCCESS ? xdr_get_u32(&g->res) : stat;
}

/* The owner's connection breaks before the reply comes; another is there. */
static void lose_reply(void)
{
	uint64_t calls = stats_sum_by_name("rpc_calls");
	uint32_t len;

	begin_create(&owner.g);
	dup_deafen(owner.c.fd);
	len = gss_client_make(&owner.g);
	record_put_mark(owner.g.call, len);
	ck_assert_int_eq(send(owner.c.fd, owner.g.call, len + 4, 0),
			 (ssize_t)len + 4);
	EVENTUALLY(stats_sum_by_name("rpc_calls") == calls + 1 &&
		   rpc_busy() == 0);
	dup_reset(owner.c.fd);
	open_from(&owner.c, HOME);
}

/* It has the handle of a file.  The same call with the same number runs, as the
 * liar's. */
TEST_LOOP(a_reply_is_repeated_to_its_user_alone, SAME_HOST, SAME_CONNECTION + 1)
{
	uint32_t xid;

	setup_at(_i);
	xid = owner.c.xid;
	lose_reply();
	liar.g.c->xid = xid;
	ck_assert_uint_eq(create(&liar.g), NFS3ERR_EXIST);
	ck_assert_uint_eq(stats_sum_by_name("drc_hits"), 0);
	owner.c.xid = xid;
	ck_assert_uint_eq(create(&owner.g), NFS3_OK);
	ck_assert_uint_eq(stats_sum_by_name("drc_hits"), 1);
	teardown();
}
