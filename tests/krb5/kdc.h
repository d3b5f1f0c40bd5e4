/* SPDX-License-Identifier: BSD-2-Clause */
/* kdc - a realm of Kerberos in a folder, with its KDC and its clients. */
#pragma once

#include <gssapi/gssapi_krb5.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct kdc {
	char	    dir[32];
	const char *enctype, *realm, *users;
	uint16_t    port;
	pid_t	    pid;
	unsigned    ncaches;
};

/* As run_tests(); or says that the machine has no KDC, and returns 77. */
int kdc_run_tests(void);
/* Makes the realm, and points the process to it; aborts when it can't. */
void kdc_start(struct kdc *k, const char *enctype);
/* The same for another realm, with more @users, as words of a shell. */
void kdc_start_realm(struct kdc *k, const char *enctype, const char *realm,
		     const char *users);
void kdc_stop(struct kdc *k);
/* The service's key is another one now, in a new keytab. */
void kdc_new_key(struct kdc *k);
/* Writes gannet.conf for a server with the module and the realm's @keytab; it
 * ends in the section [server].  localhost can also be ::1, which exports to
 * 127.0.0.1 are not for: so the server listens there alone. */
void kdc_settings(const struct kdc *k, const char *keytab, char *to,
		  size_t size);
/* Programs have a ticket of @user for nfs@localhost; NULL: none. */
void kdc_login(struct kdc *k, const char *user);

/* A client's context, for the user @name and the service @service, as
 * "nfs@localhost". */
struct kdc_client {
	gss_ctx_id_t	ctx;
	gss_cred_id_t	cred;
	gss_name_t	service;
	gss_buffer_desc	token;		/* to be sent; or empty */
	bool		is_made;
};

void kdc_client_open(struct kdc_client *c, struct kdc *k, const char *name,
		     const char *service);
/* Takes the server's token. */
void kdc_client_step(struct kdc_client *c, const void *token, size_t len);
void kdc_client_close(struct kdc_client *c);

/* The functions of a mechanism, on the client's side: its keys are a struct
 * kdc_client. */
extern const struct gss_mech kdc_mech;
