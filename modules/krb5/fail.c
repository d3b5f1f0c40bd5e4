/* SPDX-License-Identifier: BSD-2-Clause */
/* fail - the reasons of failures in words, for the log. */
#include "modules/krb5/krb5.h"

#include <stdio.h>
#include <string.h>

#include <krb5.h>

/* Advice for the administrator. */
static const struct { int32_t code; const char *hint; } hints[] = {
	{ KRB5KRB_AP_ERR_SKEW, "the clocks of the client and of this machine "
			       "differ by more than krb5.conf(5) allows" },
	{ KRB5KRB_AP_ERR_TKT_EXPIRED, "the client's ticket has expired" },
	{ KRB5KRB_AP_ERR_TKT_NYV, "the client's ticket is not valid yet: "
				  "compare the clocks" },
	{ KRB5KRB_AP_ERR_MODIFIED, "the keytab's key is not that of the "
				   "ticket: add the key again" },
	{ KRB5KRB_AP_ERR_BAD_INTEGRITY, "the keytab's key is not that of the "
					"ticket: add the key again" },
	{ KRB5KRB_AP_ERR_BADKEYVER, "an old ticket needs kinit, an old keytab "
				    "ktadd" },
	{ KRB5KRB_AP_ERR_NOT_US, "the ticket is for another service or host "
				 "name than the keytab's" },
	{ KRB5KRB_AP_WRONG_PRINC, "the ticket is for another service or host "
				  "name than the keytab's" },
	{ KRB5_KT_NOTFOUND, "the keytab has no nfs/ principal, or not that of "
			    "the host name that clients mount" },
	{ KRB5_BAD_ENCTYPE, "the ticket's enctype is not allowed here: see "
			    "permitted_enctypes in krb5.conf(5)" },
	{ KRB5_NOPERM_ETYPE, "the ticket's enctype is not allowed here: see "
			     "permitted_enctypes in krb5.conf(5)" },
};

static const char *hint_of(OM_uint32 minor)
{
	for (unsigned i = 0; i < ARRAY_SIZE(hints); i++)
		if (hints[i].code == (int32_t)minor)
			return hints[i].hint;
	return NULL;
}

static void add_text(char *why, OM_uint32 code, int type)
{
	gss_buffer_desc text = GSS_C_EMPTY_BUFFER;
	size_t at = strlen(why);
	OM_uint32 minor, next = 0;

	if (gss_display_status(&minor, code, type, (gss_OID)gss_mech_krb5,
			       &next, &text) != GSS_S_COMPLETE)
		return;
	snprintf(why + at, GSS_WHY_MAX - at, ": %.*s", (int)text.length,
		 (const char *)text.value);
	gss_release_buffer(&minor, &text);
}

void cfx_fail(struct gss_accept *a, OM_uint32 major, OM_uint32 minor,
	       const char *what)
{
	const char *hint = hint_of(minor);
	size_t at;

	a->major = major;
	a->minor = minor;
	snprintf(a->why, sizeof(a->why), "Kerberos failed %s", what);
	if (minor)
		add_text(a->why, minor, GSS_C_MECH_CODE);
	else
		add_text(a->why, major, GSS_C_GSS_CODE);
	at = strlen(a->why);
	if (hint)
		snprintf(a->why + at, sizeof(a->why) - at, " (%s)", hint);
}
