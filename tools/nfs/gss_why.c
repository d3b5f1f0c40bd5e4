/* SPDX-License-Identifier: BSD-2-Clause */
/* gss_why - why Kerberos gave no context, in words. */
#include "tools/nfs/gss.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <gssapi/gssapi_krb5.h>
#include <krb5/krb5.h>

#include "lib/util.h"
#include "tools/nfs/why.h"

/* With a %s for the host. */
static const struct { int32_t code; const char *hint; } hints[] = {
	{ KRB5_FCC_NOFILE, "there is no ticket: run kinit" },
	{ KRB5_CC_NOTFOUND, "there is no ticket: run kinit" },
	{ KRB5_CC_END, "there is no ticket: run kinit" },
	{ KRB5KRB_AP_ERR_TKT_EXPIRED, "the ticket has expired: run kinit" },
	{ KRB5KRB_AP_ERR_SKEW, "the clocks of this machine and of %s differ "
			       "by more than krb5.conf(5) allows" },
	{ KRB5KRB_AP_ERR_TKT_NYV, "the ticket is not valid yet: compare the "
				  "clocks" },
	{ KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN, "the realm has no nfs/%s: name the "
		"server as its principal does" },
	{ KRB5_KDC_UNREACH, "the KDC does not answer: see krb5.conf(5)" },
	{ KRB5_REALM_UNKNOWN, "krb5.conf(5) has no KDC for the realm of %s" },
	{ KRB5_CONFIG_NODEFREALM, "krb5.conf(5) has no default realm" },
	{ KRB5KRB_AP_ERR_MODIFIED, "the keytab of %s has an old key" },
};

enum { WHY_MAX = 640 };

static const char *hint_for(OM_uint32 major, OM_uint32 minor)
{
	for (unsigned i = 0; i < ARRAY_SIZE(hints); i++)
		if (hints[i].code == (int32_t)minor)
			return hints[i].hint;
	switch (GSS_ROUTINE_ERROR(major)) {
	case GSS_S_NO_CRED:
		return "there is no ticket: run kinit";
	case GSS_S_CREDENTIALS_EXPIRED:
		return "the ticket has expired: run kinit";
	default:
		return NULL;
	}
}

static void library_text(OM_uint32 major, OM_uint32 minor, char out[300])
{
	gss_buffer_desc text = GSS_C_EMPTY_BUFFER;
	OM_uint32 ignored, next = 0;

	out[0] = '\0';
	if (gss_display_status(&ignored, minor ? minor : major,
			       minor ? GSS_C_MECH_CODE : GSS_C_GSS_CODE,
			       (gss_OID)gss_mech_krb5, &next, &text) !=
	    GSS_S_COMPLETE)
		return;
	snprintf(out, 300, "%.*s", (int)text.length, (const char *)text.value);
	gss_release_buffer(&ignored, &text);
}

static void put_why(char why[WHY_MAX], const char *format, const char *host)
{
	const char *at = strstr(format, "%s");

	if (at)
		snprintf(why, WHY_MAX, "Kerberos: %.*s%.255s%s",
			 (int)(at - format), format, host, at + 2);
	else
		snprintf(why, WHY_MAX, "Kerberos: %s", format);
}

/* Adds the library's message. */
static void add_library_text(char why[WHY_MAX], OM_uint32 major,
			     OM_uint32 minor)
{
	char text[300];
	size_t at = strlen(why);

	library_text(major, minor, text);
	if (text[0])
		snprintf(why + at, WHY_MAX - at, " (%s)", text);
}

int gss_fail(const char *host, OM_uint32 major, OM_uint32 minor,
	     const char *what)
{
	const char *hint = major ? hint_for(major, minor) : NULL;
	char failed[80], why[WHY_MAX];

	snprintf(failed, sizeof(failed), "%s %s", major ? "it failed" :
		 "this is not", what ? what : "");
	if (!what)
		put_why(why, hint ? hint : "%s refuses the ticket; its log "
			"says why", host);
	else
		put_why(why, hint ? hint : failed, host);
	if (major)
		add_library_text(why, major, minor);
	return nfsc_why_set("%s", why);
}
