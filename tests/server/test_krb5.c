/* SPDX-License-Identifier: BSD-2-Clause */
/* The module gannet-krb5, with a KDC and clients of Kerberos' own library. */
#include "tests/krb5/kdc.h"

#include <dlfcn.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>

#include "rpc/gss.h"
#include "tests/server/daemon_run.h"
#include "tests/server/gss_client.h"
#include "tests/unit/runner.h"
#include "wire/nfs3.h"

static const char *const enctypes[] = {
	"aes128-cts-hmac-sha1-96", "aes256-cts-hmac-sha1-96",
	"aes128-cts-hmac-sha256-128", "aes256-cts-hmac-sha384-192",
};

static const struct gss_mech *mech;
static struct kdc kdc;
static char keytab[64];
static struct rpc_gss *gss;
static struct doors d;
static struct caller c;
static struct gss_client g;
static struct kdc_client client;
static struct nfs3_fh top;
static uint8_t data[GSS_CLIENT_DATA];

static void start_kdc(const char *enctype)
{
	void *module = dlopen("modules/krb5/krb5.so", RTLD_NOW | RTLD_LOCAL);

	ck_assert_msg(module != NULL, "%s", dlerror());
	mech = dlsym(module, "gannet_mechanism");
	ck_assert_ptr_nonnull(mech);
	ck_assert_uint_eq(mech->version, GSS_MECH_VERSION);
	kdc_start(&kdc, enctype);
	snprintf(keytab, sizeof(keytab), "FILE:%s/server.keytab", kdc.dir);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 9));
}

static void setup(const char *enctype, enum door door)
{
	struct rpc_gss_config config = { .arg = keytab };

	start_kdc(enctype);
	config.mech = mech;
	gss = gss_doors_open(&d, &config, "/mem 127.0.0.1(rw,insecure,"
			     "no_root_squash,sec=krb5p:krb5i:krb5)\n");
	harness_root(&d.srv, "/mem", &top);
	caller_open(&c, &d, door, false);
	gss_client_open(&g, &c, &kdc_mech);
}

static void teardown(void)
{
	caller_close(&c);
	doors_close(&d);
	rpc_gss_destroy(gss);
	kdc_stop(&kdc);
}

/* The client's first token.  Returns gss_major. */
static uint32_t init(const char *user, const char *service)
{
	g.prog = NFS3_PROGRAM;
	g.vers = 3;
	g.procnum = 0;
	g.handle_len = 0;
	g.seq = 0;
	kdc_client_open(&client, &kdc, user, service);
	ck_assert_uint_eq(gss_client_init(&g, GSS_INIT, (struct xdr_view){
		client.token.value, (uint32_t)client.token.length }),
		RPC_SUCCESS);
	return g.init.major;
}

static void login(const char *user)
{
	ck_assert_uint_eq(init(user, "nfs@localhost"), GSS_COMPLETE);
	kdc_client_step(&client, g.init.token.data, g.init.token.len);
	ck_assert(client.is_made);
	ck_assert(gss_client_take(&g, &client));
}

static void logout(void)
{
	kdc_client_close(&client);
}

/* Returns the handle of a new file, and its owner. */
static struct nfs3_fh create(const char *name, uint32_t *uid)
{
	struct nfs3_fh fh;

	gss_client_nfs(&g, NFSPROC3_CREATE, &top);
	xdr_put_string(&g.args, name);
	for (int i = 0; i < 7; i++)
		xdr_put_u32(&g.args, 0);
	gss_client_ok(&g);
	ck_assert(xdr_get_bool(&g.res));
	fh = harness_get_fh(&g.res);
	ck_assert(xdr_get_bool(&g.res));
	xdr_get_fixed(&g.res, 12);
	*uid = xdr_get_u32(&g.res);
	return fh;
}

static void write_data(const struct nfs3_fh *fh, uint32_t len)
{
	gss_client_nfs(&g, NFSPROC3_WRITE, fh);
	xdr_put_u64(&g.args, 0);
	xdr_put_u32(&g.args, len);
	xdr_put_u32(&g.args, 0);
	xdr_put_opaque(&g.args, data, len);
	gss_client_ok(&g);
}

static void read_data(const struct nfs3_fh *fh, uint32_t len)
{
	gss_client_nfs(&g, NFSPROC3_READ, fh);
	xdr_put_u64(&g.args, 0);
	xdr_put_u32(&g.args, len);
	gss_client_ok(&g);
	xdr_get_fixed(&g.res, 88 + 8);
	ck_assert_uint_eq(xdr_get_u32(&g.res), len);
	ck_assert_mem_eq(xdr_get_fixed(&g.res, len).data, data, len);
}

static void move_data(uint32_t service)
{
	static const uint32_t lens[] = { 1, 15, 700, 5001, GSS_CLIENT_DATA };
	struct nfs3_fh fh;
	uint32_t uid;

	g.service = service;
	fh = create("f", &uid);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		write_data(&fh, lens[i]);
		read_data(&fh, lens[i]);
	}
}

TEST_LOOP(each_service_moves_data_with_each_enctype, 0, ARRAY_SIZE(enctypes))
{
	setup(enctypes[_i], DOOR_TCP);
	login("host/localhost");
	for (uint32_t s = GSS_NONE; s <= GSS_PRIVACY; s++)
		move_data(s);
	ck_assert_uint_eq(gss_client_destroy(&g), RPC_SUCCESS);
	logout();
	teardown();
}

TEST_LOOP(each_service_moves_data_over_rdma, DOOR_IWARP, NDOORS)
{
	setup(enctypes[1], _i);
	login("host/localhost");
	for (uint32_t s = GSS_NONE; s <= GSS_PRIVACY; s++)
		move_data(s);
	logout();
	teardown();
}

static uint32_t owner_of_a_file_of(const char *user)
{
	uint32_t uid;

	login(user);
	g.service = GSS_PRIVACY;
	create(user, &uid);
	logout();
	return uid;
}

/* Machines are user 0, which a rule can squash; a principal without a user is
 * the anonymous one. */
TEST(a_principal_acts_as_its_user)
{
	uint32_t uid;

	setup(enctypes[1], DOOR_TCP);
	login("host/localhost");
	create("f", &uid);
	ck_assert_uint_eq(uid, 0);
	gss_client_nfs(&g, NFSPROC3_SETATTR, &top);
	xdr_put_u32(&g.args, 1);
	xdr_put_u32(&g.args, 0777);
	for (int i = 0; i < 6; i++)
		xdr_put_u32(&g.args, 0);
	gss_client_ok(&g);
	logout();
	ck_assert_uint_eq(owner_of_a_file_of("alice"),
			  getpwnam("daemon")->pw_uid);
	ck_assert_uint_eq(owner_of_a_file_of("bob"), 65534);
	ck_assert_uint_eq(owner_of_a_file_of("carol"), 65534);
	harness_publish(&d.srv, "/mem 127.0.0.1(rw,insecure,sec=krb5p)\n");
	login("host/localhost");
	create("squashed", &uid);
	ck_assert_uint_eq(uid, 65534);
	logout();
	teardown();
}

TEST(a_keytab_that_is_exchanged_counts_at_once)
{
	struct kdc_client before;

	setup(enctypes[1], DOOR_TCP);
	login("alice");
	logout();
	kdc_client_open(&before, &kdc, "alice", "nfs@localhost");
	kdc_new_key(&kdc);
	/* The old ticket's key is gone. */
	g.handle_len = 0;
	ck_assert_uint_eq(gss_client_init(&g, GSS_INIT, (struct xdr_view){
		before.token.value, (uint32_t)before.token.length }),
		RPC_SUCCESS);
	ck_assert_uint_ne(g.init.major, GSS_COMPLETE);
	ck_assert_uint_eq(g.init.handle.len + g.init.token.len, 0);
	kdc_client_close(&before);
	login("alice");
	logout();
	teardown();
}

TEST(tickets_for_other_services_are_refused)
{
	setup(enctypes[1], DOOR_TCP);
	ck_assert_uint_ne(init("alice", "host@localhost"), GSS_COMPLETE);
	logout();
	login("alice");
	logout();
	teardown();
}

/* ---- the whole server */

static struct daemon_run run;

static void start_daemon(void)
{
	static char export[160];
	static const char *const args[] = { "--export", export, NULL };

	start_kdc(enctypes[1]);
	daemon_prepare(&run);
	snprintf(export, sizeof(export), "%s 127.0.0.1(ro,insecure,sec=krb5p)",
		 run.dir);
	kdc_settings(&kdc, "server.keytab", run.settings, sizeof(run.settings));
	ck_assert(daemon_start(&run, args));
	ck_assert(daemon_logged(&run, "Kerberos: serving with the keys"));
	memset(&c, 0, sizeof(c));
	c.fd = daemon_connect(run.tcp_port);
	gss_client_open(&g, &c, &kdc_mech);
}

static void end_daemon(void)
{
	close(c.fd);
	daemon_end(&run, SIGTERM);
	ck_assert_int_eq(run.status, 0);
	daemon_clean(&run);
	kdc_stop(&kdc);
}

static uint32_t fsstat(const struct nfs3_fh *fh)
{
	gss_client_nfs(&g, NFSPROC3_FSSTAT, fh);
	return gss_client_send(&g);
}

/* Behind its filter of system calls, and with its flavors. */
TEST(gannetd_serves_an_export_by_its_flavor)
{
	struct nfs3_fh fh;
	uint32_t n;

	start_daemon();
	login("alice");
	g.service = GSS_PRIVACY;
	gss_client_begin(&g, 100005, 3, 1);
	xdr_put_string(&g.args, run.dir);
	ck_assert_uint_eq(gss_client_send(&g), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&g.res), 0);
	fh = harness_get_fh(&g.res);
	n = xdr_get_u32(&g.res);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(xdr_get_u32(&g.res), RPC_AUTH_KRB5P);
	ck_assert_uint_eq(fsstat(&fh), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&g.res), NFS3_OK);
	g.service = GSS_INTEGRITY;
	ck_assert_uint_eq(fsstat(&fh), CALLER_DENIED + RPC_AUTH_TOOWEAK);
	logout();
	ck_assert_uint_ne(init("alice", "host@localhost"), GSS_COMPLETE);
	logout();
	ck_assert(daemon_logged(&run, "no context of RPCSEC_GSS: Kerberos"));
	end_daemon();
}

/* ---- the mechanism alone */

static void *server_keys(void)
{
	struct gss_accept a = { .major = 0 };

	kdc_client_open(&client, &kdc, "alice", "nfs@localhost");
	a.token = (struct xdr_view){ client.token.value,
				     (uint32_t)client.token.length };
	mech->accept(keytab, &a);
	ck_assert_msg(a.major == GSS_COMPLETE, "%s", a.why);
	ck_assert_uint_eq(a.uid, getpwnam("daemon")->pw_uid);
	ck_assert_uint_gt(a.seconds, 3600);
	kdc_client_step(&client, a.answer, a.answer_len);
	ck_assert(client.is_made);
	return a.keys;
}

/* Of the leak checker, if it is linked. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* libkrb5 1.20 forgets a principal between these. */
static void begin_leak(void)
{
	if (__lsan_disable)
		__lsan_disable();
}

static void end_leak(void)
{
	if (__lsan_enable)
		__lsan_enable();
}

/* True, with the reason in @why. */
static bool probe_fails(char *bad, char why[GSS_WHY_MAX])
{
	bool works;

	begin_leak();
	works = mech->probe(bad, why);
	end_leak();
	return !works;
}

TEST(a_failure_has_its_reason_in_words)
{
	struct gss_accept a = { .token = { (const uint8_t *)"x", 1 } };
	char why[GSS_WHY_MAX], none[96];

	start_kdc(enctypes[1]);
	ck_assert(mech->probe(keytab, why));
	mech->accept(keytab, &a);
	ck_assert_uint_eq(a.major, GSS_DEFECTIVE_TOKEN);
	ck_assert_ptr_nonnull(strstr(a.why, "ticket"));
	ck_assert_ptr_null(a.keys);
	kdc_client_open(&client, &kdc, "alice", "host@localhost");
	a.token = (struct xdr_view){ client.token.value,
				     (uint32_t)client.token.length };
	mech->accept(keytab, &a);
	ck_assert_uint_ne(a.major, GSS_COMPLETE);
	ck_assert_msg(strstr(a.why, "another service") != NULL, "%s", a.why);
	kdc_client_close(&client);
	snprintf(none, sizeof(none), "FILE:%s/none.keytab", kdc.dir);
	ck_assert(probe_fails(none, why));
	ck_assert_msg(strstr(why, "none.keytab") != NULL, "%s", why);
	/* It has no key of nfs/. */
	snprintf(none, sizeof(none), "FILE:%s/client.keytab", kdc.dir);
	ck_assert(probe_fails(none, why));
	ck_assert_msg(strstr(why, "nfs") != NULL, "%s", why);
	kdc_stop(&kdc);
}

/* Has the server answer an invalid token, by @bad: returns the reason. */
static const char *refuse_by(char *bad)
{
	static struct gss_accept a;

	a = (struct gss_accept){ .token = { (const uint8_t *)"x", 1 } };
	begin_leak();
	mech->accept(bad, &a);
	end_leak();
	ck_assert_uint_ne(a.major, GSS_COMPLETE);
	ck_assert_ptr_null(a.keys);
	return a.why;
}

TEST(a_keytab_that_comes_late_counts_soon)
{
	char late[96], path[96];

	start_kdc(enctypes[1]);
	snprintf(late, sizeof(late), "FILE:%s/late.keytab", kdc.dir);
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_nonnull(strstr(refuse_by(late), "late.keytab"));
	snprintf(path, sizeof(path), "%s/server.keytab", kdc.dir);
	ck_assert_int_eq(link(path, late + strlen("FILE:")), 0);
	/* Then it is the token that is wrong. */
	EVENTUALLY(!strstr(refuse_by(late), "late.keytab"));
	kdc_stop(&kdc);
}

/* Cuts @len bytes at @p into pieces: one of @first, one of 16, the rest. */
static int cut(struct iovec iov[3], uint8_t *p, size_t len, size_t first)
{
	size_t at = 0, n[3] = { MIN(first, len), 16, SIZE_MAX };

	for (int i = 0; i < 3; i++) {
		iov[i] = (struct iovec){ p + at, MIN(n[i], len - at) };
		at += iov[i].iov_len;
	}
	return 3;
}

/* The client's token of @len bytes, at @out: its length. */
static size_t wrap_for_server(uint8_t *out, size_t len)
{
	uint8_t back[GSS_BACK_MAX];
	struct iovec iov = { out + kdc_mech.front, len };
	int n;

	memcpy(iov.iov_base, data, len);
	n = kdc_mech.wrap(&client, &iov, 1, out, back);
	memcpy(out + kdc_mech.front + len, back, (size_t)n);
	return kdc_mech.front + len + (size_t)n;
}

static void expect_plain(const struct iovec *iov, int n, size_t len)
{
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		ck_assert_mem_eq(iov[i].iov_base, data + at, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	ck_assert_uint_eq(at, len);
}

TEST_LOOP(tokens_in_pieces_of_any_length_are_opened, 0, ARRAY_SIZE(enctypes))
{
	static uint8_t token[512];
	struct iovec iov[3];
	void *keys;

	start_kdc(enctypes[_i]);
	keys = server_keys();
	for (size_t len = 1; len < 80; len++)
		for (size_t first = 0; first < 90; first += 4) {
			size_t size = wrap_for_server(token, len);
			int n = cut(iov, token, size, first);

			n = mech->unwrap(keys, iov, n);
			ck_assert_int_gt(n, 0);
			expect_plain(iov, n, len);
		}
	mech->free(keys);
	kdc_client_close(&client);
	kdc_stop(&kdc);
}

TEST_LOOP(results_in_pieces_of_any_length_are_wrapped, 0, ARRAY_SIZE(enctypes))
{
	static uint8_t token[512];
	uint8_t *plain = token + kdc_mech.front, mic[GSS_MIC_MAX];
	struct iovec iov[3], whole;
	void *keys;

	start_kdc(enctypes[_i]);
	keys = server_keys();
	for (size_t len = 1; len < 80; len++)
		for (size_t first = 0; first < 70; first += 3) {
			int n = cut(iov, plain, len, first), more;

			memcpy(plain, data, len);
			more = mech->sign(keys, iov, n, mic);
			whole = (struct iovec){ plain, len };
			ck_assert(kdc_mech.check(&client, &whole, 1,
				(struct xdr_view){ mic, (uint32_t)more }));
			more = mech->wrap(keys, iov, n, token, plain + len);
			ck_assert_int_gt(more, 0);
			whole = (struct iovec){ token, kdc_mech.front + len +
						       (size_t)more };
			ck_assert_int_eq(kdc_mech.unwrap(&client, &whole, 1),
					 1);
			expect_plain(&whole, 1, len);
		}
	mech->free(keys);
	kdc_client_close(&client);
	kdc_stop(&kdc);
}

/* RFC 4121 section 4.2.5: as peers send it that put the trailer first. */
TEST(a_rotated_token_is_opened)
{
	static uint8_t token[512], turned[512];
	struct iovec iov[3];
	void *keys;

	start_kdc(enctypes[1]);
	keys = server_keys();
	for (size_t by = 0; by <= 64; by += 4) {
		size_t size = wrap_for_server(token, 100), body = size - 16;
		int n;

		memcpy(turned, token, 16);
		turned[7] = (uint8_t)by;
		memcpy(turned + 16, token + size - by, by);
		memcpy(turned + 16 + by, token + 16, body - by);
		n = mech->unwrap(keys, iov, cut(iov, turned, size, 60));
		ck_assert_int_gt(n, 0);
		expect_plain(iov, n, 100);
	}
	mech->free(keys);
	kdc_client_close(&client);
	kdc_stop(&kdc);
}

TEST_LOOP(a_token_with_any_bit_changed_is_refused, 0, ARRAY_SIZE(enctypes))
{
	static uint8_t token[512], copy[512];
	struct iovec iov[3], text = { data, 50 };
	uint8_t mic[GSS_MIC_MAX];
	size_t size;
	void *keys;
	int n;

	start_kdc(enctypes[_i]);
	keys = server_keys();
	size = wrap_for_server(token, 50);
	for (size_t bit = 0; bit < 8 * size; bit++) {
		memcpy(copy, token, size);
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_eq(mech->unwrap(keys, iov,
					      cut(iov, copy, size, 40)), -1);
	}
	for (size_t len = 0; len < size; len++) {
		memcpy(copy, token, size);
		ck_assert_int_eq(mech->unwrap(keys, iov,
					      cut(iov, copy, len, 40)), -1);
	}
	n = kdc_mech.sign(&client, &text, 1, mic);
	ck_assert(mech->check(keys, &text, 1,
			      (struct xdr_view){ mic, (uint32_t)n }));
	for (int bit = 0; bit < 8 * n; bit++) {
		mic[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert(!mech->check(keys, &text, 1,
				       (struct xdr_view){ mic, (uint32_t)n }));
		mic[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	/* The server's own, sent back to it. */
	n = mech->sign(keys, &text, 1, mic);
	ck_assert(!mech->check(keys, &text, 1,
			       (struct xdr_view){ mic, (uint32_t)n }));
	mech->free(keys);
	kdc_client_close(&client);
	kdc_stop(&kdc);
}

int main(void)
{
	return kdc_run_tests();
}
