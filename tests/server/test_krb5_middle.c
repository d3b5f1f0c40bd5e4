/* SPDX-License-Identifier: BSD-2-Clause */
/* A man in the middle between ./gannet-nfs and ./gannetd with tickets. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "rpc/rpc.h"
#include "tests/krb5/kdc.h"
#include "tests/server/call_relay.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"
#include "wire/gss.h"
#include "wire/nfs3.h"

TEST_CASE(.timeout = 120);

enum { MOUNT = 100005, MNT = 1, AT_DENIED = 12, AT_VERF = 20, AT_RESULTS = 28,
       MANY = 3 };

static struct kdc kdc;
static struct calls c;

/* Of the file "f" in the export, by way of the relay. */
static const char *target;

/* Of all calls of NFS but NULL: */
static bool in_clear;		/* some came without privacy, */
static bool served_so;		/* and were answered, beyond mounting */

static void note_call(struct calls *m, const struct record *call,
		      struct record *reply)
{
	uint32_t proc = record_word(call, AT_PROC);
	bool mounts = proc == NFSPROC3_GETATTR || proc == NFSPROC3_FSINFO;

	if (record_word(call, AT_PROG) != NFS3_PROGRAM || proc == 0 ||
	    (record_word(call, AT_FLAVOR) == RPCSEC_GSS &&
	     record_word(call, AT_SERVICE) == GSS_PRIVACY))
		return;
	in_clear = true;
	served_so |= !mounts && record_word(reply, AT_DENIED) == 0;
}

typedef void change_fn(struct calls *m, const struct record *call,
		       struct record *reply);

/* The ticket is for a name, and MNT is to go through the relay, too.  What
 * @change uses is set before: the relay's threads run from then on. */
static void start_middle(const char *sec, change_fn *change)
{
	char settings[400], opts[80];
	static char text[400];
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	kdc_start(&kdc, "aes256-cts-hmac-sha1-96");
	kdc_settings(&kdc, "server.keytab", settings, sizeof(settings));
	snprintf(opts, sizeof(opts), "rw,insecure,no_root_squash,sec=%s", sec);
	start_both(WAY_TCP, opts, settings);
	kdc_login(&kdc, "host/localhost");
	make_file(path(export, "f"), 2000);
	in_clear = served_so = false;
	c.change = change;
	c.n = 0;
	call_relay_start(&c);
	getsockname(c.relay.fd, (struct sockaddr *)&sin, &len);
	snprintf(text, sizeof(text), "tcp://localhost:%u%s/f?mountport=%u",
		 ntohs(sin.sin_port), export, ntohs(sin.sin_port));
	target = text;
}

static void stop_middle(void)
{
	stop();
	kdc_stop(&kdc);
}

/* Reads the file, and ends the relay, whose threads have then noted all calls.
 * The exit code; the file is out if that is 0. */
static int cat(const char *sec)
{
	int code = sec ? TOOL("cat", "--sec", sec, "--retries=1", "-b", "512",
			      target) :
			 TOOL("cat", "--retries=1", "-b", "512", target);

	relay_stop(&c.relay);
	if (code == 0)
		same(path(export, "f"), outfile);
	return code;
}

/* ---- MNT, which has no checksum */

/* The list that takes the place of the server's. */
static const uint32_t *list;
static unsigned nlist;

static void change_list(struct calls *m, const struct record *call,
			struct record *reply)
{
	size_t at = AT_RESULTS + 4;	/* behind the status */

	note_call(m, call, reply);
	if (record_word(call, AT_PROG) != MOUNT ||
	    record_word(call, AT_PROC) != MNT)
		return;
	at += 4 + ALIGN_UP(record_word(reply, at), 4u);
	xdr_set_word(reply->data + at, nlist);
	for (unsigned i = 0; i < nlist; i++)
		xdr_set_word(reply->data + at + 4 + 4 * i, list[i]);
	reply->len = at + 4 + 4 * nlist;
	xdr_set_word(reply->data, 0x80000000u | (uint32_t)(reply->len - 4));
	m->n++;
}

/* Lists for an export with sec=krb5p. */
static const struct {
	const char *sec;		/* of the client; NULL: sys */
	uint32_t list[MANY];		/* 0: the end */
	const char *why;		/* it ends; NULL: it reads the file */
} lists[] = {
	{ "krb5p", { RPC_AUTH_SYS }, "takes only sec=sys for" },
	{ "krb5p", { RPC_AUTH_KRB5, RPC_AUTH_KRB5I },
	  "takes only sec=krb5:krb5i for" },
	{ "krb5p", { 0 }, NULL },
	{ "krb5p", { RPC_AUTH_SYS, RPC_AUTH_KRB5P }, NULL },
	{ "krb5i", { RPC_AUTH_KRB5I }, "the server denies the call" },
	{ "krb5", { RPC_AUTH_KRB5, RPC_AUTH_SYS },
	  "the server denies the call" },
	{ NULL, { RPC_AUTH_SYS }, "the server denies the call" },
	{ NULL, { 0 }, "the server denies the call" },
};

/* Whatever it believes, it calls with its own flavor, and the server with the
 * export's. */
TEST_LOOP(a_list_of_flavors_that_was_changed_weakens_no_call, 0,
	  ARRAY_SIZE(lists))
{
	list = lists[_i].list;
	for (nlist = 0; nlist < MANY && list[nlist]; nlist++)
		;
	start_middle("krb5p", change_list);
	ck_assert_msg(cat(lists[_i].sec) == (lists[_i].why ? 1 : 0), "%s", err);
	ck_assert_uint_gt(c.n, 0);
	if (lists[_i].why) {
		ck_assert_msg(strstr(err, lists[_i].why) != NULL, "%s", err);
		ck_assert_str_eq(out, "");
	}
	ck_assert(!served_so);
	/* Nor is anything sent that the client wants to be secret. */
	if (lists[_i].sec && strcmp(lists[_i].sec, "krb5p") == 0)
		ck_assert(!in_clear);
	stop_middle();
}

/* ---- the answer to a token */

/* Behind accept_stat come the handle, gss_major, gss_minor and seq_window. */
static void change_window(struct calls *m, const struct record *call,
			  struct record *reply)
{
	size_t at = AT_VERF + 4 + ALIGN_UP(record_word(reply, AT_VERF), 4u) + 4;

	if (record_word(call, AT_FLAVOR) != RPCSEC_GSS ||
	    record_word(call, AT_GSS_PROC) != GSS_INIT)
		return;
	at += 4 + ALIGN_UP(record_word(reply, at), 4u) + 8;
	xdr_set_word(reply->data + at, record_word(reply, at) + 1);
	m->n++;
}

TEST(a_window_that_was_changed_makes_no_context)
{
	start_middle("krb5", change_window);
	ck_assert_int_ne(cat("krb5"), 0);
	ck_assert_msg(strstr(err, "a server that proves itself") && c.n > 0,
		      "%s", err);
	ck_assert_str_eq(out, "");
	stop_middle();
}

/* ---- the end */

static void see_destroy(struct calls *m, const struct record *call,
			struct record *reply)
{
	if (record_word(call, AT_FLAVOR) == RPCSEC_GSS &&
	    record_word(call, AT_GSS_PROC) == GSS_DESTROY) {
		ck_assert_uint_eq(record_word(reply, AT_DENIED), 0);
		m->n++;
	}
}

/* RFC 2203 section 5.4. */
TEST(a_context_is_given_back_at_the_end)
{
	start_middle("krb5p", see_destroy);
	ck_assert_msg(cat("krb5p") == 0, "%s", err);
	ck_assert_uint_eq(c.n, 1);
	stop_middle();
}

/* ---- replies to READ */

enum trick {
	FLIP_VERF,	/* the last bit of the verifier, */
	FLIP_END,	/* of the results or of their checksum */
	DROP_VERF,	/* there is none */
	REPEAT,		/* an earlier reply in place of this one */
	TRICKS,
};

static enum trick trick;

/* Makes the verifier AUTH_NONE's. */
static void drop_verf(struct record *r)
{
	size_t from = AT_VERF + 4 + record_word(r, AT_VERF), to = AT_VERF + 4;

	memset(r->data + AT_VERF - 4, 0, 8);
	memmove(r->data + to, r->data + from, r->len - from);
	r->len -= from - to;
	xdr_set_word(r->data, 0x80000000u | (uint32_t)(r->len - 4));
}

static void change_read(struct calls *m, const struct record *call,
			struct record *reply)
{
	if (record_word(call, AT_PROG) != NFS3_PROGRAM ||
	    record_word(call, AT_PROC) != NFSPROC3_READ)
		return;
	if (m->n++ == 0)
		m->token = *reply;
	switch (trick) {
	case FLIP_VERF:
		reply->data[AT_VERF + 3 + record_word(reply, AT_VERF)] ^= 1;
		break;
	case FLIP_END:
		reply->data[reply->len - 1] ^= 1;
		break;
	case DROP_VERF:
		drop_verf(reply);
		break;
	default:
		*reply = m->token;
		xdr_set_word(reply->data + AT_XID, record_word(call, AT_XID));
		break;
	}
}

/* With krb5 alone the results have no checksum. */
TEST_LOOP(a_reply_that_was_changed_or_repeated_is_not_believed, 0, 3 * TRICKS)
{
	static const char *const secs[] = { "krb5", "krb5i", "krb5p" };
	const char *sec = secs[_i / TRICKS];

	trick = (enum trick)(_i % TRICKS);
	if (_i == FLIP_END)
		return;
	start_middle("krb5:krb5i:krb5p", change_read);
	ck_assert_int_ne(cat(sec), 0);
	/* Of the file's four parts, the first can be as it was. */
	ck_assert_msg(strlen(err) > 0 && c.n > 0, "%s", err);
	if (trick != REPEAT)
		ck_assert_str_eq(out, "");
	stop_middle();
}

int main(void)
{
	return kdc_run_tests();
}
