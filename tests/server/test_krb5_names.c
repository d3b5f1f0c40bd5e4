/* SPDX-License-Identifier: BSD-2-Clause */
/* The users that principals are, and clocks that differ, by the module
 * gannet-krb5 and a KDC. */
#include "tests/krb5/kdc.h"

#include <dlfcn.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"
#include "rpc/gss_mech.h"
#include "tests/unit/runner.h"

static const char users[] =
	"daemon daemon/admin root/admin nfs/other 'machine$' http/x host/a/b "
	"'root\\@x' 'host\\/x' DAEMON HOST/x nfs 0";
static const char *const machines[] = {
	"host/localhost", "root/admin", "nfs/other", "machine$",
};
static const char *const others[] = {
	"carol", "daemon/admin", "http/x", "host/a/b", "root\\0x", "root\\@x",
	"host\\/x", "DAEMON", "HOST/x", "nfs", "0",
};

static const struct gss_mech *mech;
static struct kdc kdc;
static char keytab[64];

static void start_kdc(const char *realm)
{
	void *module = dlopen("modules/krb5/krb5.so", RTLD_NOW | RTLD_LOCAL);

	ck_assert_msg(module != NULL, "%s", dlerror());
	mech = dlsym(module, "gannet_mechanism");
	ck_assert_ptr_nonnull(mech);
	kdc_start_realm(&kdc, "aes256-cts-hmac-sha1-96", realm, users);
	snprintf(keytab, sizeof(keytab), "FILE:%s/server.keytab", kdc.dir);
}

/* Has the server look at a ticket of @name of the KDC's realm. */
static void ask(const char *name, const char *service, struct gss_accept *a)
{
	struct kdc_client client;
	char principal[80];

	snprintf(principal, sizeof(principal), "%s@%s", name, kdc.realm);
	kdc_client_open(&client, &kdc, principal, service);
	*a = (struct gss_accept){ .token = {
		client.token.value, (uint32_t)client.token.length } };
	mech->accept(keytab, a);
	kdc_client_close(&client);
}

/* The user that the server takes for it. */
static uint32_t user_of(const char *name)
{
	struct gss_accept a;

	ask(name, "nfs@localhost", &a);
	ck_assert_msg(a.major == GSS_COMPLETE, "%s", a.why);
	mech->free(a.keys);
	/* A user who is made later is found soon. */
	if (a.uid == GSS_NO_USER)
		ck_assert_uint_le(a.seconds, 300);
	return a.uid;
}

static void expect(const char *const *names, size_t n, uint32_t uid)
{
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(user_of(names[i]) == uid, "%s", names[i]);
}

TEST(principals_of_the_default_realm_are_local_users_and_machines_are_root)
{
	start_kdc("GANNET.TEST");
	ck_assert_uint_eq(user_of("daemon"), getpwnam("daemon")->pw_uid);
	expect(machines, ARRAY_SIZE(machines), 0);
	expect(others, ARRAY_SIZE(others), GSS_NO_USER);
	kdc_stop(&kdc);
}

/* The KDC's realm is not the server's own. */
static void set_default_realm(const char *realm)
{
	char path[64], list[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/default.conf", kdc.dir);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fprintf(f, "[libdefaults]\n default_realm = %s\n", realm);
	ck_assert_int_eq(fclose(f), 0);
	snprintf(list, sizeof(list), "%s:%s/krb5.conf", path, kdc.dir);
	setenv("KRB5_CONFIG", list, 1);
}

/* Capital letters make another realm. */
TEST_LOOP(principals_of_another_realm_are_neither, 0, 2)
{
	start_kdc(_i ? "gannet.test" : "OTHER.TEST");
	set_default_realm("GANNET.TEST");
	ck_assert_uint_eq(user_of("daemon"), GSS_NO_USER);
	expect(machines, ARRAY_SIZE(machines), GSS_NO_USER);
	expect(others, ARRAY_SIZE(others), GSS_NO_USER);
	kdc_stop(&kdc);
}

/* As in /etc/krb5.keytab, which has the keys of other services. */
TEST(a_ticket_for_another_service_is_refused_though_its_key_is_there)
{
	struct gss_accept a;
	char command[128];

	start_kdc("GANNET.TEST");
	/* Entries follow two bytes. */
	snprintf(command, sizeof(command), "tail -c +3 %s/client.keytab >> "
		 "%s/server.keytab", kdc.dir, kdc.dir);
	ck_assert_int_eq(system(command), 0);
	ask("daemon", "host@localhost", &a);
	ck_assert_uint_ne(a.major, GSS_COMPLETE);
	ck_assert_ptr_null(a.keys);
	ck_assert_uint_ne(user_of("daemon"), GSS_NO_USER);
	kdc_stop(&kdc);
}

/* No replay cache is there, which would keep a file that users of this machine
 * can plant before: a token that comes again makes a context as the first. */
TEST(a_token_that_comes_again_leaves_no_file)
{
	struct kdc_client client;
	struct gss_accept a;
	char dir[64];

	start_kdc("GANNET.TEST");
	snprintf(dir, sizeof(dir), "%s/rcache", kdc.dir);
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	setenv("KRB5RCACHEDIR", dir, 1);
	kdc_client_open(&client, &kdc, "daemon@GANNET.TEST", "nfs@localhost");
	for (int i = 0; i < 2; i++) {
		a = (struct gss_accept){ .token = {
			client.token.value, (uint32_t)client.token.length } };
		mech->accept(keytab, &a);
		ck_assert_msg(a.major == GSS_COMPLETE, "%s", a.why);
		mech->free(a.keys);
	}
	kdc_client_close(&client);
	unsetenv("KRB5RCACHEDIR");
	ck_assert_int_eq(rmdir(dir), 0);	/* it is empty */
	kdc_stop(&kdc);
}

/* ---- what the name service says */

/* Its answer about the next users, if it is not NULL. */
static const struct answer {
	int	 err;
	bool	 has_user;
	uint32_t uid, gid;
	size_t	 needs;			/* bytes for the user, or ERANGE */
	uint32_t want_uid, want_gid;	/* GSS_NO_USER: none */
	const char *why;		/* no context is made */
} *answer;

/* The module takes this one for the C library's. */
__attribute__((visibility("default")))
int getpwnam_r(const char *name, struct passwd *pw, char *buf, size_t size,
	       struct passwd **out)
{
	const struct passwd *real;

	*out = NULL;
	if (!answer) {
		real = getpwnam(name);
		if (real)
			*pw = *real;
		*out = real ? pw : NULL;
		return 0;
	}
	if (size < answer->needs)
		return ERANGE;
	pw->pw_uid = answer->uid;
	pw->pw_gid = answer->gid;
	*out = answer->has_user ? pw : NULL;
	return answer->err;
}

static const struct answer answers[] = {
	{ .has_user = true, .uid = 0, .gid = 0 },
	{ .has_user = true, .uid = 65534, .gid = 65534,
	  .want_uid = 65534, .want_gid = 65534 },
	{ .has_user = true, .uid = 5, .gid = 6, .needs = 500000,
	  .want_uid = 5, .want_gid = 6 },
	{ .has_user = true, .uid = 5, .gid = GSS_NO_USER,
	  .want_uid = 5, .want_gid = GSS_NO_USER },
	/* No id: nor is its group. */
	{ .has_user = true, .uid = GSS_NO_USER, .gid = 0,
	  .want_uid = GSS_NO_USER, .want_gid = GSS_NO_USER },
	{ .err = 0, .want_uid = GSS_NO_USER, .want_gid = GSS_NO_USER },
	{ .err = ENOENT, .want_uid = GSS_NO_USER, .want_gid = GSS_NO_USER },
	{ .err = ESRCH, .want_uid = GSS_NO_USER, .want_gid = GSS_NO_USER },
	/* The user might have other rights than the anonymous one. */
	{ .err = EIO, .why = "the name service does not say" },
	{ .err = ETIMEDOUT, .why = "the name service does not say" },
	{ .err = EMFILE, .why = "the name service does not say" },
	{ .needs = SIZE_MAX, .why = "the name service does not say" },
};

TEST(each_answer_of_the_name_service_makes_a_user_or_none_or_no_context)
{
	struct gss_accept a;

	start_kdc("GANNET.TEST");
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		answer = &answers[i];
		ask("daemon", "nfs@localhost", &a);
		if (answer->why) {
			ck_assert_msg(a.major != GSS_COMPLETE && !a.keys,
				      "row %zu", i);
			ck_assert_msg(strstr(a.why, answer->why) != NULL,
				      "row %zu: %s", i, a.why);
			continue;
		}
		ck_assert_msg(a.major == GSS_COMPLETE, "row %zu: %s", i, a.why);
		mech->free(a.keys);
		ck_assert_msg(a.uid == answer->want_uid &&
			      a.gid == answer->want_gid, "row %zu: %u %u", i,
			      a.uid, a.gid);
		ck_assert_msg((a.seconds <= 300) == (a.uid == GSS_NO_USER),
			      "row %zu", i);
	}
	answer = NULL;
	kdc_stop(&kdc);
}

/* ---- clocks */

static time_t ahead;

/* libkrb5 takes this one for the C library's. */
__attribute__((visibility("default")))
time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += ahead;
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}

/* krb5.conf(5) allows 300 seconds. */
TEST_LOOP(a_clock_that_differs_is_named, 0, 2)
{
	struct kdc_client client;
	struct gss_accept a;

	start_kdc("GANNET.TEST");
	kdc_client_open(&client, &kdc, "daemon@GANNET.TEST", "nfs@localhost");
	a = (struct gss_accept){ .token = {
		client.token.value, (uint32_t)client.token.length } };
	ahead = _i ? 400 : -400;
	mech->accept(keytab, &a);
	ck_assert_uint_ne(a.major, GSS_COMPLETE);
	ck_assert_msg(strstr(a.why, "the clocks") != NULL, "%s", a.why);
	ahead = _i ? 200 : -200;
	mech->accept(keytab, &a);
	ahead = 0;
	ck_assert_msg(a.major == GSS_COMPLETE, "%s", a.why);
	mech->free(a.keys);
	kdc_client_close(&client);
	kdc_stop(&kdc);
}

int main(void)
{
	return kdc_run_tests();
}
