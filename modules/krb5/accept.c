/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accept - contexts of clients, by libgssapi-krb5.
 *
 * The keytab is read for each context: keys that an administrator adds or
 * removes count at once, or a second after a failed read of the keytab.  No
 * replay cache is needed: whoever repeats a token gets a context without
 * knowing its keys (RFC 2203 section 7.2).
 */
#include "modules/krb5/krb5.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"

/* Sets *@out to the service nfs of any host.  It is made only once: making it
 * asks the resolver for this machine's name, which is slow where DNS does not
 * answer, and every host can send tokens. */
static OM_uint32 find_service(OM_uint32 *minor, gss_name_t *out)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static gss_name_t service;
	gss_buffer_desc text = { 3, "nfs" };
	gss_name_t name = GSS_C_NO_NAME;
	OM_uint32 major = GSS_S_COMPLETE, ignored;

	pthread_mutex_lock(&lock);
	if (!service)
		major = gss_import_name(minor, &text,
					GSS_C_NT_HOSTBASED_SERVICE, &name);
	if (name) {
		/* The library's own form: that of import is only text. */
		major = gss_canonicalize_name(minor, name,
					      (gss_OID)gss_mech_krb5, &service);
		gss_release_name(&ignored, &name);
	}
	*out = service;
	pthread_mutex_unlock(&lock);
	return major;
}

/* The keys of any nfs/ principal in the keytab. */
static bool get_keytab(const char *keytab, struct gss_accept *a,
		       gss_cred_id_t *cred)
{
	gss_key_value_element_desc pairs[] = {
		{ "keytab", keytab }, { "rcache", "none:" },
	};
	const gss_key_value_set_desc store = { ARRAY_SIZE(pairs), pairs };
	gss_OID_set_desc mechs = { 1, (gss_OID)gss_mech_krb5 };
	OM_uint32 major, minor = 0;
	gss_name_t name;

	major = find_service(&minor, &name);
	if (major == GSS_S_COMPLETE)
		major = gss_acquire_cred_from(&minor, name, GSS_C_INDEFINITE,
					      &mechs, GSS_C_ACCEPT, &store,
					      cred, NULL, NULL);
	if (major == GSS_S_COMPLETE)
		return true;
	cfx_fail(a, major, minor, "to read its keytab");
	return false;
}

static void take_keys(gss_ctx_id_t *ctx, struct gss_accept *a)
{
	OM_uint32 major, minor;
	void *lucid = NULL;

	major = gss_krb5_export_lucid_sec_context(&minor, ctx, 1, &lucid);
	if (major != GSS_S_COMPLETE) {
		cfx_fail(a, major, minor, "to give the keys of a context");
		return;
	}
	a->keys = cfx_keys_create(lucid);
	gss_krb5_free_lucid_sec_context(&minor, lucid);
	if (a->keys)
		return;
	a->major = GSS_FAILURE;
	snprintf(a->why, sizeof(a->why), "the context's enctype is not one of "
		 "the AES types that this server has");
}

static void take_context(gss_ctx_id_t *ctx, gss_name_t client, OM_uint32 left,
			 struct gss_accept *a)
{
	a->seconds = left;
	if (cfx_find_user(client, a))
		take_keys(ctx, a);
}

static void keep_token(gss_buffer_t answer, struct gss_accept *a)
{
	OM_uint32 minor;

	if (answer->length > sizeof(a->answer)) {
		a->major = GSS_FAILURE;
		snprintf(a->why, sizeof(a->why), "the answer is too long");
	} else if (answer->length) {
		memcpy(a->answer, answer->value, answer->length);
		a->answer_len = (uint32_t)answer->length;
	}
	gss_release_buffer(&minor, answer);
}

static void cfx_abandon(void *making)
{
	gss_ctx_id_t ctx = making;
	OM_uint32 minor;

	gss_delete_sec_context(&minor, &ctx, NULL);
}

/* One step of @ctx. */
static void accept_step(gss_cred_id_t cred, gss_ctx_id_t *ctx,
			struct gss_accept *a)
{
	gss_buffer_desc token = { a->token.len, (void *)(uintptr_t)
				  a->token.data };
	gss_buffer_desc answer = GSS_C_EMPTY_BUFFER;
	gss_name_t client = GSS_C_NO_NAME;
	OM_uint32 major, minor, left, ignored;

	major = gss_accept_sec_context(&minor, ctx, cred, &token,
				       GSS_C_NO_CHANNEL_BINDINGS, &client,
				       NULL, &answer, NULL, &left, NULL);
	if (GSS_ERROR(major)) {
		cfx_fail(a, major, minor, "to accept a client's ticket");
		gss_release_buffer(&ignored, &answer);
	} else {
		a->major = major & GSS_S_CONTINUE_NEEDED;
		a->minor = 0;
		keep_token(&answer, a);
		if (a->major == GSS_COMPLETE)
			take_context(ctx, client, left, a);
	}
	if (client)
		gss_release_name(&ignored, &client);
}

/* The last failure to read the keytab. */
static struct {
	pthread_mutex_t lock;		/* guards the rest */
	time_t		at;		/* clock_coarse_s(); 0: none */
	OM_uint32	major, minor;
	char		why[GSS_WHY_MAX];
} failure = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void keep_failure(const struct gss_accept *a)
{
	pthread_mutex_lock(&failure.lock);
	failure.at = clock_coarse_s();
	failure.major = a->major;
	failure.minor = a->minor;
	memcpy(failure.why, a->why, sizeof(failure.why));
	pthread_mutex_unlock(&failure.lock);
}

/* True, and @a fails again, if the keytab could not be read in this second. */
static bool failed_before(struct gss_accept *a)
{
	bool failed;

	pthread_mutex_lock(&failure.lock);
	failed = failure.at && failure.at == clock_coarse_s();
	if (failed) {
		a->major = failure.major;
		a->minor = failure.minor;
		memcpy(a->why, failure.why, sizeof(a->why));
	}
	pthread_mutex_unlock(&failure.lock);
	return failed;
}

/* As get_keytab(), which is not called again in the second of a failure:
 * libkrb5 1.20 leaks a name then, and every host can send tokens. */
static bool try_keytab(const char *keytab, struct gss_accept *a,
		       gss_cred_id_t *cred)
{
	if (failed_before(a))
		return false;
	if (get_keytab(keytab, a, cred))
		return true;
	keep_failure(a);
	return false;
}

static void cfx_accept(void *keytab, struct gss_accept *a)
{
	gss_ctx_id_t ctx = a->making;
	gss_cred_id_t cred = GSS_C_NO_CREDENTIAL;
	OM_uint32 minor;

	a->making = NULL;
	if (try_keytab(keytab, a, &cred)) {
		accept_step(cred, &ctx, a);
		gss_release_cred(&minor, &cred);
	}
	if (a->major == GSS_CONTINUE_NEEDED)
		a->making = ctx;
	else if (ctx)
		gss_delete_sec_context(&minor, &ctx, NULL);
}

static bool cfx_probe(void *keytab, char why[GSS_WHY_MAX])
{
	gss_cred_id_t cred = GSS_C_NO_CREDENTIAL;
	struct gss_accept a = { .major = 0 };
	OM_uint32 minor;

	if (!get_keytab(keytab, &a, &cred)) {
		memcpy(why, a.why, GSS_WHY_MAX);
		return false;
	}
	gss_release_cred(&minor, &cred);
	return true;
}

__attribute__((visibility("default")))
const struct gss_mech gannet_mechanism = {
	.version = GSS_MECH_VERSION, .name = "krb5",
	.pseudo = {
		[GSS_NONE] = RPC_AUTH_KRB5,
		[GSS_INTEGRITY] = RPC_AUTH_KRB5I,
		[GSS_PRIVACY] = RPC_AUTH_KRB5P,
	},
	.front = HEADER + BLOCK, .probe = cfx_probe, .accept = cfx_accept,
	.abandon = cfx_abandon, .free = cfx_keys_free, .sign = cfx_sign,
	.check = cfx_check, .wrap = cfx_wrap, .unwrap = cfx_unwrap,
};
