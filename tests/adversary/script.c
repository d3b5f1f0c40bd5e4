/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * script - the language of the attacks.
 *
 * A script is messages with ";" between them.  A message is words, which stand
 * for what goes on the wire, in order:
 *
 *	msg nomsg msgp done error	the four words that begin a header
 *	proc:N				the same, with any procedure
 *	N				a word: so 1 begins an entry of a list,
 *					and 0 ends the list
 *	KIND:LEN KIND:LEN@N KIND:LEN=N	a segment: handle, length, and an offset
 *					N bytes into the memory, or N itself;
 *					KIND is r, w, gone, other or wild
 *	segs:N KIND:...			the segment behind it, N times
 *	entries:N POSITION KIND:...	entries of a Read list, N times
 *	chunks:N COUNT KIND:...		chunks of a Write list, N times
 *	null getattr write:N read:N readdir:N
 *					an RPC call, here
 *	head:N				WRITE of N bytes without its data
 *	badproc badprog badargs		calls that no program has, or can take
 *	reply				an RPC reply, no call
 *
 * These words change the message that they stand in:
 *
 *	xid:N vers:N credits:N		fields of the header
 *	body-xid:N			the RPC call's xid, if it is another
 *	long				the RPC call lies at the start of r
 *	cut:N grow:N			the message ends after N bytes
 *	times:N				N of them, each with a separate xid
 *	invalidate:N			a Send With Invalidate of this handle
 *
 *	private:KIND			the private data: garbage, cut, zeros,
 *					most, none; or invalidate, which lets
 *					the server invalidate our handles
 *
 * And these are no messages:
 *
 *	wait				all answers have come
 *	close				the connection ends
 *	free:r free:w			the memory is deregistered
 *
 * N is a number; data, the offset of a WRITE's data in its call; body, the
 * length of the call; inline, the size of the server's Receives; or granted,
 * the credits; with "+N" or "-N" behind it.
 */
#include "tests/adversary/adversary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"

enum { NOT_SET = -1, WORDS_MAX = 64 };
enum { NULL_PROC = 0, GETATTR = 1, READ = 6, WRITE = 7, READDIR = 16 };

struct message {
	int64_t	 xid, vers, credits, body_xid, cut, grow, times, invalidate;
	bool	 far;		/* the body lies in memory */
	uint32_t body_len, data_at;
	uint8_t	 body[PEER_INLINE * 2];
	char	*word[WORDS_MAX];
	unsigned nwords;
};

static bool starts(const char *word, const char *with, const char **rest)
{
	size_t n = strlen(with);

	if (strncmp(word, with, n) != 0)
		return false;
	*rest = word + n;
	return true;
}

static uint64_t number(const struct attack *a, const struct message *m,
		       const char *s, char **end)
{
	const struct { const char *name; uint64_t value; } names[] = {
		{ "data", m->data_at }, { "body", m->body_len },
		{ "inline", a->threshold }, { "granted", a->granted },
	};
	const char *rest;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!starts(s, names[i].name, &rest))
			continue;
		if (*rest == '+' || *rest == '-')
			return names[i].value +
			       (uint64_t)strtoll(rest, end, 0);
		*end = (char *)(uintptr_t)rest;
		return names[i].value;
	}
	return strtoull(s, end, 0);
}

/* ---- bodies */

static void put_rpc(struct xdr_out *x, uint32_t xid, uint32_t program,
		    uint32_t proc)
{
	/* AUTH_SYS: root, of no machine and no groups; no verifier. */
	static const uint32_t cred[] = { 1, 20, 0, 0, 0, 0, 0, 0, 0 };

	xdr_put_u32(x, xid);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 2);
	xdr_put_u32(x, program);
	xdr_put_u32(x, 3);
	xdr_put_u32(x, proc);
	for (size_t i = 0; i < ARRAY_SIZE(cred); i++)
		xdr_put_u32(x, cred[i]);
}

static void put_nfs(struct xdr_out *x, uint32_t xid, uint32_t proc)
{
	put_rpc(x, xid, 100003, proc);
}

static void put_write(struct xdr_out *x, const struct site *s, uint32_t len)
{
	xdr_put_opaque(x, s->file, s->file_len);
	xdr_put_u64(x, 0);
	xdr_put_u32(x, len);
	xdr_put_u32(x, 0);		/* UNSTABLE */
	xdr_put_u32(x, len);
}

static void put_reply(struct xdr_out *x, uint32_t xid)
{
	xdr_put_u32(x, xid);
	xdr_put_u32(x, 1);
	for (int i = 0; i < 4; i++)
		xdr_put_u32(x, 0);
}

/* Writes the body that @w names; false: it names no body. */
static bool put_body(const struct attack *a, struct message *m, const char *w,
		     struct xdr_out *x, uint32_t xid)
{
	const struct site *s = a->site;
	const char *n = "";

	if (!strcmp(w, "null")) {
		put_nfs(x, xid, NULL_PROC);
	} else if (!strcmp(w, "getattr")) {
		put_nfs(x, xid, GETATTR);
		xdr_put_opaque(x, s->root, s->root_len);
	} else if (starts(w, "read:", &n)) {
		put_nfs(x, xid, READ);
		xdr_put_opaque(x, s->file, s->file_len);
		xdr_put_u64(x, 0);
		xdr_put_u32(x, (uint32_t)strtoul(n, NULL, 0));
	} else if (starts(w, "write:", &n) || starts(w, "head:", &n)) {
		put_nfs(x, xid, WRITE);
		put_write(x, s, (uint32_t)strtoul(n, NULL, 0));
		m->data_at = (uint32_t)xdr_out_len(x);
		if (*w == 'w')
			xdr_put_fixed(x, a->region[MEMORY_R].bytes,
				      (uint32_t)strtoul(n, NULL, 0));
	} else if (starts(w, "readdir:", &n)) {
		put_nfs(x, xid, READDIR);
		xdr_put_opaque(x, s->root, s->root_len);
		xdr_put_u64(x, 0);
		xdr_put_u64(x, 0);
		xdr_put_u32(x, (uint32_t)strtoul(n, NULL, 0));
	} else if (!strcmp(w, "badproc")) {
		put_nfs(x, xid, 99);
	} else if (!strcmp(w, "badprog")) {
		put_rpc(x, xid, 99, 0);
	} else if (!strcmp(w, "badargs")) {
		put_nfs(x, xid, GETATTR);
		xdr_put_u32(x, 65);	/* longer than any handle */
		xdr_put_u64(x, 0);
	} else if (!strcmp(w, "reply")) {
		put_reply(x, xid);
	} else {
		return false;
	}
	return true;
}

static void make_body(const struct attack *a, struct message *m, uint32_t xid)
{
	struct xdr_out x;

	xdr_out_init(&x, m->body, sizeof(m->body));
	for (unsigned i = 0; i < m->nwords; i++)
		if (put_body(a, m, m->word[i], &x, m->body_xid == NOT_SET ?
				     xid : (uint32_t)m->body_xid))
			break;
	m->body_len = (uint32_t)xdr_out_len(&x);
	if (m->far)
		memcpy(a->region[MEMORY_R].bytes, m->body, m->body_len);
}

/* ---- words */

static bool take_setting(const struct attack *a, struct message *m,
			 const char *w)
{
	const struct { const char *name; int64_t *to; } names[] = {
		{ "xid:", &m->xid }, { "vers:", &m->vers },
		{ "credits:", &m->credits }, { "body-xid:", &m->body_xid },
		{ "cut:", &m->cut }, { "grow:", &m->grow },
		{ "times:", &m->times }, { "invalidate:", &m->invalidate },
	};
	const char *rest;
	char *end;

	if (!strcmp(w, "long"))
		m->far = true;
	if (!strcmp(w, "long") || !strncmp(w, "private:", 8))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!starts(w, names[i].name, &rest))
			continue;
		*names[i].to = (int64_t)number(a, m, rest, &end);
		return *end == '\0';
	}
	return false;
}

static const char *const memories[NMEMORIES] = {
	[MEMORY_R] = "r:", [MEMORY_W] = "w:", [MEMORY_GONE] = "gone:",
	[MEMORY_OTHER] = "other:", [MEMORY_WILD] = "wild:",
};

/* The server may write so many bytes from there on. */
static void note_offer(struct attack *a, uint64_t off, uint64_t len)
{
	uint32_t max = a->region[MEMORY_W].len;

	if (off < max && off + MIN(len, max) > a->written_to)
		a->written_to = (uint32_t)MIN(off + len, (uint64_t)max);
}

static bool put_segment(struct attack *a, const struct message *m,
			const char *w)
{
	struct peer *p = &a->peer;
	const char *rest;
	uint64_t at, len;
	unsigned k = 0;
	char *end;

	while (k < NMEMORIES && !starts(w, memories[k], &rest))
		k++;
	if (k == NMEMORIES)
		return false;
	len = number(a, m, rest, &end);
	at = (uintptr_t)a->region[k].bytes;
	if (*end == '@')
		at += number(a, m, end + 1, &end);
	else if (*end == '=')
		at = number(a, m, end + 1, &end);
	peer_put(p, a->region[k].handle);
	peer_put(p, (uint32_t)len);
	xdr_put_u64(&p->out, at);
	if (k == MEMORY_W)
		note_offer(a, at - (uintptr_t)a->region[k].bytes, len);
	return *end == '\0';
}

static bool put_procedure(struct attack *a, const struct message *m,
			  const char *w, uint32_t xid)
{
	static const char *const names[] = { "msg", "nomsg", "msgp", "done",
					     "error" };
	const char *rest;
	uint32_t proc = 0;
	char *end;

	while (proc < ARRAY_SIZE(names) && strcmp(w, names[proc]) != 0)
		proc++;
	if (proc == ARRAY_SIZE(names)) {
		if (!starts(w, "proc:", &rest))
			return false;
		proc = (uint32_t)number(a, m, rest, &end);
	}
	peer_put(&a->peer, xid);
	peer_put(&a->peer, m->vers == NOT_SET ? 1 : (uint32_t)m->vers);
	peer_put(&a->peer, m->credits == NOT_SET ? 128 : (uint32_t)m->credits);
	peer_put(&a->peer, proc);
	return true;
}

/* segs:, entries: and chunks:, with the words behind them.  Returns the number
 * of words taken; 0: not one of them, or an error in it. */
static unsigned put_many(struct attack *a, const struct message *m,
			 unsigned i)
{
	const char *rest = "", *w = m->word[i];
	bool segs = starts(w, "segs:", &rest);
	bool entries = starts(w, "entries:", &rest);
	bool chunks = starts(w, "chunks:", &rest);
	unsigned used = segs ? 2 : 3;
	uint64_t n, x;
	char *end;

	if ((!segs && !entries && !chunks) || i + used > m->nwords)
		return 0;
	n = number(a, m, rest, &end);
	x = segs ? 0 : number(a, m, m->word[i + 1], &end);
	while (n-- > 0) {
		if (entries || chunks)
			peer_put(&a->peer, 1);
		if (entries || chunks)
			peer_put(&a->peer, (uint32_t)x);
		if (!put_segment(a, m, m->word[i + used - 1]))
			return 0;
	}
	return used;
}

/* Returns the words taken; 0: it is not understood. */
static unsigned put_word(struct attack *a, struct message *m, unsigned i,
			 uint32_t xid)
{
	const char *w = m->word[i];
	struct xdr_out none;
	uint8_t scratch[PEER_INLINE * 2];
	uint64_t n;
	char *end;

	if (take_setting(a, m, w) || put_procedure(a, m, w, xid) ||
	    put_segment(a, m, w))
		return 1;
	xdr_out_init(&none, scratch, sizeof(scratch));
	if (put_body(a, m, w, &none, xid)) {
		if (!m->far)
			xdr_put_fixed(&a->peer.out, m->body, m->body_len);
		return 1;
	}
	n = number(a, m, w, &end);
	if (*end == '\0') {
		peer_put(&a->peer, (uint32_t)n);
		return 1;
	}
	return put_many(a, m, i);
}

uint32_t script_xid(void)
{
	static uint32_t last;

	if (last == 0)
		last = (uint32_t)getpid() << 16;
	return ++last;
}

static bool send_one(struct attack *a, struct message *m)
{
	struct peer *p = &a->peer;
	uint32_t len, xid = m->xid == NOT_SET ? script_xid() :
						(uint32_t)m->xid;

	make_body(a, m, xid);
	memset(p->build, 0, sizeof(p->build));
	xdr_out_init(&p->out, p->build, sizeof(p->build));
	for (unsigned i = 0, n; i < m->nwords; i += n) {
		n = put_word(a, m, i, xid);
		if (n == 0) {
			printf("not understood: %s\n", m->word[i]);
			return false;
		}
	}
	require(!p->out.bad);
	len = (uint32_t)xdr_out_len(&p->out);
	if (m->cut != NOT_SET && m->cut < len)
		len = (uint32_t)m->cut;
	if (m->grow > (int64_t)len)
		len = (uint32_t)MIN(m->grow, (int64_t)sizeof(p->build));
	require(a->nsent < ARRAY_SIZE(a->xids));
	a->xids[a->nsent++] = xid;
	if (m->invalidate == NOT_SET)
		peer_send_bytes(p, p->build, len);
	else
		peer_send_invalidate(p, p->build, len,
				     (uint32_t)m->invalidate);
	return true;
}

/* The words that are no messages. */
static bool act(struct attack *a, const char *w)
{
	struct region *r;

	if (!strcmp(w, "close")) {
		a->closed = true;
		fabric_close(a->peer.fc);
		return true;
	}
	if (!strcmp(w, "wait")) {
		attack_wait(a);
		return true;
	}
	if (strcmp(w, "free:r") != 0 && strcmp(w, "free:w") != 0)
		return false;
	r = &a->region[w[5] == 'r' ? MEMORY_R : MEMORY_W];
	fabric_mr_destroy(r->mr);
	r->mr = NULL;
	return true;
}

static bool run_message(struct attack *a, char *text)
{
	struct message m = { NOT_SET, NOT_SET, NOT_SET, NOT_SET, NOT_SET,
			     NOT_SET, NOT_SET, NOT_SET, .nwords = 0 };
	char *save = NULL;

	for (char *w = strtok_r(text, " ", &save); w;
	     w = strtok_r(NULL, " ", &save)) {
		require(m.nwords < WORDS_MAX);
		m.word[m.nwords++] = w;
	}
	if (m.nwords == 0 || (m.nwords == 1 && act(a, m.word[0])))
		return true;
	/* Settings behind the procedure also apply to it. */
	for (unsigned i = 0; i < m.nwords; i++)
		take_setting(a, &m, m.word[i]);
	for (int64_t n = m.times == NOT_SET ? 1 : m.times; n > 0; n--)
		if (!send_one(a, &m))
			return false;
	return true;
}

bool script_run(struct attack *a, const char *script)
{
	char copy[512], *save = NULL;

	require(strlen(script) < sizeof(copy));
	strcpy(copy, script);
	for (char *text = strtok_r(copy, ";", &save); text;
	     text = strtok_r(NULL, ";", &save))
		if (!run_message(a, text))
			return false;
	return true;
}
