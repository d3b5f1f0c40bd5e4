/* SPDX-License-Identifier: BSD-2-Clause */
/* kdc - a realm of Kerberos in a folder. */
#include "tests/krb5/kdc.h"

#include <krb5.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "rpc/gss_mech.h"
#include "tests/unit/runner.h"

static const char *const paths[] = { "/usr/sbin", "/usr/bin", "/sbin" };

static bool find(const char *tool, char out[64])
{
	for (unsigned i = 0; i < ARRAY_SIZE(paths); i++) {
		snprintf(out, 64, "%s/%s", paths[i], tool);
		if (access(out, X_OK) == 0)
			return true;
	}
	return false;
}

int kdc_run_tests(void)
{
	char path[64];

	if (find("krb5kdc", path) && find("kadmin.local", path) &&
	    find("kdb5_util", path))
		return run_tests();
	puts("skipped: krb5kdc and kadmin.local are not installed "
	     "(krb5-kdc, krb5-admin-server)");
	return 77;
}

/* Takes a free port.  Returns a socket that is bound to it and does not listen:
 * it keeps the port from all that ask for any, and lets a listener that reuses
 * addresses have it, as krb5kdc does. */
static int keep_port(uint16_t *port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	ck_assert_int_ge(fd, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	getsockname(fd, (struct sockaddr *)&sin, &len);
	*port = ntohs(sin.sin_port);
	return fd;
}

static void run_realm(const struct kdc *k)
{
	const char *srcdir = getenv("srcdir");
	char command[1024];
	int len;

	len = snprintf(command, sizeof(command), "%s/tests/krb5/realm %s %u %s "
		       "localhost %s %s", srcdir ? srcdir : "..", k->dir,
		       k->port, k->enctype, k->realm, k->users);
	ck_assert_int_lt(len, (int)sizeof(command));
	ck_assert_int_eq(system(command), 0);
}

void kdc_new_key(struct kdc *k)
{
	run_realm(k);
}

void kdc_settings(const struct kdc *k, const char *keytab, char *to,
		  size_t size)
{
	char cwd[160];
	int len;

	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	len = snprintf(to, size, "[exports]\nbackend-dir = %s/modules/krb5\n"
		       "[server]\nbind = 127.0.0.1\nkrb5-keytab = %s/%s\n",
		       cwd, k->dir, keytab);
	ck_assert_int_lt(len, (int)size);
}

static bool answers(const struct kdc *k)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(k->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool yes;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	yes = connect(fd, (struct sockaddr *)&sin, sizeof(sin)) == 0;
	close(fd);
	return yes;
}

static bool ended(struct kdc *k)
{
	return waitpid(k->pid, NULL, WNOHANG) == k->pid;
}

/* False: it ended, perhaps since another process has the port of UDP. */
static bool start_daemon(struct kdc *k)
{
	char path[64], pid_file[64];
	bool gone = false;

	ck_assert(find("krb5kdc", path));
	snprintf(pid_file, sizeof(pid_file), "%s/kdc.pid", k->dir);
	k->pid = fork();
	if (k->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		close(STDERR_FILENO);
		execl(path, path, "-n", "-P", pid_file, "-r", k->realm, NULL);
		_exit(127);
	}
	EVENTUALLY((gone = ended(k)) || answers(k));
	return !gone;
}

void kdc_start(struct kdc *k, const char *enctype)
{
	kdc_start_realm(k, enctype, "GANNET.TEST", "");
}

void kdc_start_realm(struct kdc *k, const char *enctype, const char *realm,
		     const char *users)
{
	bool started = false;
	char path[64];
	int kept;

	memset(k, 0, sizeof(*k));
	k->enctype = enctype;
	k->realm = realm;
	k->users = users;
	strcpy(k->dir, "/tmp/gannet-krb5.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(k->dir));
	snprintf(path, sizeof(path), "%s/krb5.conf", k->dir);
	setenv("KRB5_CONFIG", path, 1);
	snprintf(path, sizeof(path), "%s/kdc.conf", k->dir);
	setenv("KRB5_KDC_PROFILE", path, 1);
	for (int i = 0; i < 5 && !started; i++) {
		kept = keep_port(&k->port);
		run_realm(k);
		started = start_daemon(k);
		close(kept);
	}
	ck_assert_msg(started, "the KDC does not start");
}

void kdc_stop(struct kdc *k)
{
	char command[64];

	kill(k->pid, SIGTERM);
	waitpid(k->pid, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf %s", k->dir);
	ck_assert_int_eq(system(command), 0);
}

/* ---- clients */

static void must(OM_uint32 major, OM_uint32 minor, const char *what)
{
	gss_buffer_desc text = GSS_C_EMPTY_BUFFER;
	OM_uint32 ignored, next = 0;

	if (!GSS_ERROR(major))
		return;
	gss_display_status(&ignored, minor, GSS_C_MECH_CODE,
			   (gss_OID)gss_mech_krb5, &next, &text);
	ck_abort_msg("%s: %.*s", what, (int)text.length, (char *)text.value);
}

static gss_name_t name_of(const char *text, gss_OID type)
{
	gss_buffer_desc buf = { strlen(text), (void *)(uintptr_t)text };
	OM_uint32 major, minor;
	gss_name_t name;

	major = gss_import_name(&minor, &buf, type, &name);
	must(major, minor, "name");
	return name;
}

/* Asks the KDC at once, since it refuses names with a zero byte that come with
 * a ticket for tickets.  Writes @cache, for the principal @server, to which it
 * adds the user's realm. */
static void fetch_ticket(const char *user, char server[64],
			 const char *keytab, const char *cache)
{
	krb5_principal client;
	krb5_context ctx;
	krb5_creds creds;
	krb5_keytab keys;
	krb5_ccache to;

	ck_assert_int_eq(krb5_init_context(&ctx), 0);
	ck_assert_int_eq(krb5_parse_name(ctx, user, &client), 0);
	ck_assert_int_eq(krb5_kt_resolve(ctx, keytab, &keys), 0);
	ck_assert_int_eq(krb5_get_init_creds_keytab(ctx, &creds, client, keys,
						    0, server, NULL), 0);
	ck_assert_int_eq(krb5_cc_resolve(ctx, cache, &to), 0);
	ck_assert_int_eq(krb5_cc_initialize(ctx, to, client), 0);
	ck_assert_int_eq(krb5_cc_store_cred(ctx, to, &creds), 0);
	krb5_cc_close(ctx, to);
	krb5_free_cred_contents(ctx, &creds);
	krb5_kt_close(ctx, keys);
	strcat(server, "@");
	strncat(server, client->realm.data, client->realm.length);
	krb5_free_principal(ctx, client);
	krb5_free_context(ctx);
}

void kdc_client_open(struct kdc_client *c, struct kdc *k, const char *user,
		     const char *service)
{
	char keytab[64], cache[80], server[64];
	gss_key_value_element_desc pair = { "ccache", cache };
	gss_key_value_set_desc store = { 1, &pair };
	gss_OID_set_desc mechs = { 1, (gss_OID)gss_mech_krb5 };
	OM_uint32 major, minor;

	memset(c, 0, sizeof(*c));
	snprintf(keytab, sizeof(keytab), "FILE:%s/client.keytab", k->dir);
	snprintf(cache, sizeof(cache), "FILE:%s/cache%u", k->dir,
		 k->ncaches++);
	snprintf(server, sizeof(server), "%s", service);
	*strchr(server, '@') = '/';
	fetch_ticket(user, server, keytab, cache);
	major = gss_acquire_cred_from(&minor, GSS_C_NO_NAME, GSS_C_INDEFINITE,
				      &mechs, GSS_C_INITIATE, &store, &c->cred,
				      NULL, NULL);
	must(major, minor, "credentials");
	c->service = name_of(server, (gss_OID)GSS_KRB5_NT_PRINCIPAL_NAME);
	kdc_client_step(c, NULL, 0);
}

void kdc_login(struct kdc *k, const char *user)
{
	struct kdc_client client;
	char cache[80];

	snprintf(cache, sizeof(cache), "FILE:%s/cache%u", k->dir, k->ncaches);
	if (user) {
		kdc_client_open(&client, k, user, "nfs@localhost");
		kdc_client_close(&client);
	}
	setenv("KRB5CCNAME", cache, 1);
	setenv("KRB5_CLIENT_KTNAME", "FILE:/nonexistent", 1);
}

void kdc_client_step(struct kdc_client *c, const void *token, size_t len)
{
	gss_buffer_desc in = { len, (void *)(uintptr_t)token };
	OM_uint32 major, minor;

	gss_release_buffer(&minor, &c->token);
	major = gss_init_sec_context(&minor, c->cred, &c->ctx, c->service,
				     (gss_OID)gss_mech_krb5, GSS_C_MUTUAL_FLAG |
				     GSS_C_CONF_FLAG | GSS_C_INTEG_FLAG, 0,
				     NULL, &in, NULL, &c->token, NULL, NULL);
	must(major, minor, "a client's context");
	c->is_made = major == GSS_S_COMPLETE;
}

void kdc_client_close(struct kdc_client *c)
{
	OM_uint32 minor;

	gss_release_buffer(&minor, &c->token);
	gss_delete_sec_context(&minor, &c->ctx, NULL);
	gss_release_name(&minor, &c->service);
	gss_release_cred(&minor, &c->cred);
}

/* The bytes in one place, to be freed. */
static gss_buffer_desc flat(const struct iovec *iov, int n)
{
	gss_buffer_desc out = { 0, NULL };
	uint8_t *p;

	for (int i = 0; i < n; i++)
		out.length += iov[i].iov_len;
	out.value = p = malloc(out.length + 1);
	for (int i = 0; i < n; i++) {
		memcpy(p, iov[i].iov_base, iov[i].iov_len);
		p += iov[i].iov_len;
	}
	return out;
}

static int client_sign(const void *keys, const struct iovec *iov, int n,
		       uint8_t mic[GSS_MIC_MAX])
{
	const struct kdc_client *c = keys;
	gss_buffer_desc in = flat(iov, n), out;
	OM_uint32 major, minor;
	int len;

	major = gss_get_mic(&minor, c->ctx, GSS_C_QOP_DEFAULT, &in, &out);
	must(major, minor, "a checksum");
	ck_assert_uint_le(out.length, GSS_MIC_MAX);
	memcpy(mic, out.value, out.length);
	len = (int)out.length;
	gss_release_buffer(&minor, &out);
	free(in.value);
	return len;
}

static bool client_check(const void *keys, const struct iovec *iov, int n,
			 struct xdr_view mic)
{
	const struct kdc_client *c = keys;
	gss_buffer_desc in = flat(iov, n);
	gss_buffer_desc sum = { mic.len, (void *)(uintptr_t)mic.data };
	OM_uint32 major, minor;

	major = gss_verify_mic(&minor, c->ctx, &in, &sum, NULL);
	free(in.value);
	return major == GSS_S_COMPLETE;
}

static int client_wrap(const void *keys, const struct iovec *iov, int n,
		       uint8_t *front, uint8_t back[GSS_BACK_MAX])
{
	const struct kdc_client *c = keys;
	gss_buffer_desc in = flat(iov, n), out;
	OM_uint32 major, minor;
	const uint8_t *p;
	int len;

	major = gss_wrap(&minor, c->ctx, 1, GSS_C_QOP_DEFAULT, &in, NULL, &out);
	must(major, minor, "wrapping");
	p = out.value;
	memcpy(front, p, kdc_mech.front);
	p += kdc_mech.front;
	for (int i = 0; i < n; i++) {
		memcpy(iov[i].iov_base, p, iov[i].iov_len);
		p += iov[i].iov_len;
	}
	len = (int)(out.length - kdc_mech.front - in.length);
	memcpy(back, p, (size_t)len);
	gss_release_buffer(&minor, &out);
	free(in.value);
	return len;
}

/* Into the first piece. */
static int client_unwrap(const void *keys, struct iovec *iov, int n)
{
	const struct kdc_client *c = keys;
	gss_buffer_desc in = flat(iov, n), out = GSS_C_EMPTY_BUFFER;
	OM_uint32 major, minor;
	int private;

	ck_assert_int_eq(n, 1);
	major = gss_unwrap(&minor, c->ctx, &in, &out, &private, NULL);
	free(in.value);
	if (GSS_ERROR(major) || !private)
		return -1;
	memcpy(iov->iov_base, out.value, out.length);
	iov->iov_len = out.length;
	gss_release_buffer(&minor, &out);
	return 1;
}

const struct gss_mech kdc_mech = {
	.name = "krb5", .front = 32, .sign = client_sign,
	.check = client_check, .wrap = client_wrap, .unwrap = client_unwrap,
};
