/* SPDX-License-Identifier: BSD-2-Clause */
/* gannet-nfs: URLs, and its reading of results. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nfs/nfs.h"
#include "tools/nfs/tool.h"
#include "lib/xdr.h"
#include "tests/unit/runner.h"

static struct nfsc_url url;
static const char *why;

static int parse(const char *text)
{
	return nfsc_url_parse(text, &url, &why);
}

TEST(a_url_names_transport_host_ports_and_path)
{
	ck_assert_int_eq(parse("rdma://server.example/export/a"), 0);
	ck_assert_int_eq(url.transport, NFS_RDMA);
	ck_assert_uint_eq(url.fabric, GANNET_RPCRDMA_ANY);
	ck_assert_str_eq(url.host, "server.example");
	ck_assert_str_eq(url.path, "/export/a");
	ck_assert_uint_eq(url.port, 0);
	ck_assert_uint_eq(url.mountport, 0);
	ck_assert_int_eq(parse("rdma+iwarp://10.0.0.1:20049/e?mountport=2049"),
			 0);
	ck_assert_uint_eq(url.fabric, GANNET_RPCRDMA_IWARP);
	ck_assert_uint_eq(url.port, 20049);
	ck_assert_uint_eq(url.mountport, 2049);
	ck_assert_int_eq(parse("RDMA+VERBS://h/e"), 0);
	ck_assert_uint_eq(url.fabric, GANNET_RPCRDMA_VERBS);
	ck_assert_int_eq(parse("tcp://[fe80::1%25eth0]:65535/"), 0);
	ck_assert_int_eq(url.transport, NFS_TCP);
	ck_assert_str_eq(url.host, "fe80::1%eth0");
	ck_assert_uint_eq(url.port, 65535);
	ck_assert_str_eq(url.path, "/");
	ck_assert_int_eq(parse("tcp://[::1]/a%20b%3fc///"), 0);
	ck_assert_str_eq(url.path, "/a b?c");
}

TEST(malformed_urls_are_refused_with_a_reason)
{
	static const char *const bad[] = {
		"", "/export", "http://h/e", "rdma+://h/e",
		"rdma+none://h/e", "tcp+iwarp://h/e",
		"tcp:/h/e", "tcp://", "tcp:///e",
		"tcp://h", "tcp://h?mountport=1", "tcp://h:/e", "tcp://h:0/e",
		"tcp://h:65536/e", "tcp://h:12x/e", "tcp://h:-1/e",
		"tcp://[::1/e", "tcp://[::1]x/e", "tcp://[]/e",
		"tcp://h/%", "tcp://h/%1", "tcp://h/%zz", "tcp://h/%00",
		"tcp://h/e?port=1", "tcp://h/e?mountport=",
		"tcp://h/e?mountport=70000", "tcp://h/e?",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ck_assert_msg(parse(bad[i]) == -EINVAL, "%s", bad[i]);
		ck_assert_ptr_nonnull(why);
	}
}

TEST(a_host_and_a_path_are_enough)
{
	ck_assert_int_eq(parse("server:/export/a//"), 0);
	ck_assert_int_eq(url.transport, NFS_TCP);
	ck_assert_str_eq(url.host, "server");
	ck_assert_str_eq(url.path, "/export/a");
	ck_assert_uint_eq(url.port, 0);
	ck_assert_int_eq(parse("[fe80::1%eth0]:/100%?x"), 0);
	ck_assert_str_eq(url.host, "fe80::1%eth0");
	ck_assert_str_eq(url.path, "/100%?x");
	ck_assert_int_eq(parse("rdma:/e"), -EINVAL);
	ck_assert_str_eq(why, "after this come two slashes and the host");
	ck_assert(nfsc_url_is("h:/"));
	ck_assert(nfsc_url_is("[::1]:/e"));
	ck_assert(nfsc_url_is("what://h"));
	ck_assert(!nfsc_url_is("./h:/e"));
	ck_assert(!nfsc_url_is("./tcp://h/e"));
	ck_assert(!nfsc_url_is("a/b://c"));
	ck_assert_int_eq(parse("h:/a://b"), 0);
	ck_assert_str_eq(url.host, "h");
	ck_assert_str_eq(url.path, "/a://b");
	ck_assert(!nfsc_url_is(":/e"));
	ck_assert(!nfsc_url_is("h:e"));
	ck_assert(!nfsc_url_is("/a/b"));
}

TEST(a_name_is_not_a_path)
{
	ck_assert(nfsc_name_is_good("a", 1));
	ck_assert(nfsc_name_is_good("...", 3));
	ck_assert(nfsc_name_is_good(".a", 2));
	ck_assert(!nfsc_name_is_good("", 0));
	ck_assert(!nfsc_name_is_good(".", 1));
	ck_assert(!nfsc_name_is_good("..", 2));
	ck_assert(!nfsc_name_is_good("a/b", 3));
	ck_assert(!nfsc_name_is_good("a\0b", 3));
}

static void shows(const char *name, const char *want)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	tool_put_name(f, name);
	fclose(f);
	ck_assert_str_eq(text, want);
	free(text);
}

TEST(a_name_does_nothing_to_a_terminal)
{
	shows("plain \303\244 \342\202\254", "plain \303\244 \342\202\254");
	shows("\033[2J\n\\", "\\033[2J\\012\\134");
	/* CSI, in UTF-8 and as one byte. */
	shows("\302\23331m", "\\302\\23331m");
	shows("\23331m", "\\23331m");
	shows("\342\202", "\\342\\202");
	shows("\300\233", "\\300\\233");
}

TEST(a_percent_sign_is_escaped_itself)
{
	static const char *const bad[] = {
		"tcp://h/100%", "tcp://h/%2", "tcp://h/a%b/c%zz", "tcp://%/e",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ck_assert_int_eq(parse(bad[i]), -EINVAL);
		ck_assert_str_eq(why, "after % come two hexadecimal digits "
				      "(% itself is %25)");
	}
	ck_assert_int_eq(parse("tcp://h/100%25"), 0);
	ck_assert_str_eq(url.path, "/100%");
}

TEST(urls_that_are_too_long_are_refused)
{
	char *text = malloc(10000);

	memset(text, 'a', 10000);
	memcpy(text, "tcp://", 6);
	strcpy(text + 5000, "/e");
	ck_assert_int_eq(parse(text), -EINVAL);
	ck_assert_str_eq(why, "it is too long");
	memset(text, 'a', 9999);
	memcpy(text, "tcp://h/", 8);
	text[9999] = '\0';
	ck_assert_int_eq(parse(text), -EINVAL);
	free(text);
}

static uint8_t wire[4096];
static struct xdr_out out;

static void put_attr(void)
{
	xdr_put_bool(&out, true);
	xdr_put_u32(&out, VFS_REG);
	for (int i = 1; i < 21; i++)
		xdr_put_u32(&out, (uint32_t)i);
}

static void put_entries(void)
{
	for (uint32_t i = 1; i <= 3; i++) {
		xdr_put_bool(&out, true);
		xdr_put_u64(&out, 100 + i);
		xdr_put_opaque(&out, "names", i + 1);
		xdr_put_u64(&out, i);
		put_attr();
		xdr_put_bool(&out, true);
		xdr_put_opaque(&out, "handle", 6);
	}
	xdr_put_bool(&out, false);
	xdr_put_bool(&out, true);
}

static void put_wcc(void)
{
	xdr_put_bool(&out, false);
	put_attr();
}

/* A good result of each kind. */
static void put_result(enum nfsc_kind kind)
{
	xdr_out_init(&out, wire, sizeof(wire));
	xdr_put_u32(&out, 0);
	switch (kind) {
	case NFS_OP_GETATTR:
		xdr_put_u32(&out, VFS_REG);
		for (int i = 1; i < 21; i++)
			xdr_put_u32(&out, (uint32_t)i);
		return;
	case NFS_OP_LOOKUP:
		xdr_put_opaque(&out, "handle", 6);
		put_attr();
		put_attr();		/* of the directory */
		return;
	case NFS_OP_CREATE:
	case NFS_OP_MKDIR:
	case NFS_OP_SYMLINK:
		xdr_put_bool(&out, true);
		xdr_put_opaque(&out, "handle", 6);
		put_attr();
		xdr_put_bool(&out, false);
		xdr_put_bool(&out, false);
		return;
	case NFS_OP_RENAME:
		put_wcc();
		put_wcc();
		return;
	case NFS_OP_LINK:
		put_attr();
		put_wcc();
		return;
	case NFS_OP_EMPTY:
	case NFS_OP_SET:
	case NFS_OP_TOUCH:
	case NFS_OP_REMOVE:
	case NFS_OP_RMDIR:
		put_wcc();
		return;
	case NFS_OP_WRITE:
	case NFS_OP_COMMIT:
		put_wcc();
		if (kind == NFS_OP_WRITE) {
			xdr_put_u32(&out, 50);
			xdr_put_u32(&out, 2);
		}
		xdr_put_u64(&out, 0x1234);
		return;
	default:
		break;
	}
	put_attr();
	if (kind == NFS_OP_READ) {
		xdr_put_u32(&out, 50);
		xdr_put_bool(&out, true);
		xdr_put_u32(&out, 50);
	} else if (kind == NFS_OP_READLINK) {
		xdr_put_opaque(&out, "to/there", 8);
	} else if (kind == NFS_OP_READDIRPLUS) {
		xdr_put_u64(&out, 7);
		put_entries();
	} else {
		int words = kind == NFS_OP_FSSTAT ? 13 :
			    kind == NFS_OP_ACCESS ? 1 : 12;

		for (int i = 0; i < words; i++)
			xdr_put_u32(&out, 4096);
	}
}

static char memory[100];

static int get(struct nfsc_op *op, enum nfsc_kind kind, size_t len)
{
	struct xdr_in x;

	*op = (struct nfsc_op){ .kind = kind, .count = 100, .data = memory };
	xdr_in_init(&x, wire, len);
	return nfsc_get_results(&x, op);
}

TEST(results_are_taken_whole)
{
	struct nfsc_op op;
	size_t len;

	for (enum nfsc_kind k = NFS_OP_GETATTR; k < NFS_NOPS; k++) {
		put_result(k);
		len = xdr_out_len(&out);
		ck_assert_msg(get(&op, k, len) == 0, "kind %d", k);
		nfsc_entries_free(op.entries);
		op.entries = NULL;
		for (size_t cut = 0; cut < len; cut++) {
			ck_assert_msg(get(&op, k, cut) == -EBADMSG,
				      "kind %d, %zu of %zu", k, cut, len);
			ck_assert_ptr_null(op.entries);
		}
	}
}

TEST(results_mean_what_they_say)
{
	struct nfsc_op op;
	struct xdr_in x;

	put_result(NFS_OP_WRITE);
	ck_assert_int_eq(get(&op, NFS_OP_WRITE, xdr_out_len(&out)), 0);
	ck_assert_uint_eq(op.got, 50);
	ck_assert(op.stored);
	put_result(NFS_OP_READDIRPLUS);
	ck_assert_int_eq(get(&op, NFS_OP_READDIRPLUS, xdr_out_len(&out)), 0);
	ck_assert_str_eq(op.entries->name, "na");
	ck_assert_str_eq(op.entries->next->next->name, "name");
	ck_assert_uint_eq(op.entries->next->cookie, 2);
	ck_assert_uint_eq(op.entries->fh.len, 6);
	ck_assert(op.eof);
	nfsc_entries_free(op.entries);
	put_result(NFS_OP_READLINK);
	ck_assert_int_eq(get(&op, NFS_OP_READLINK, xdr_out_len(&out)), 0);
	ck_assert_uint_eq(op.got, 8);
	ck_assert_int_eq(memcmp(memory, "to/there", 8), 0);
	/* A longer one is this link's failure, not the connection's. */
	xdr_in_init(&x, wire, xdr_out_len(&out));
	op.count = 7;
	ck_assert_int_eq(nfsc_get_results(&x, &op), 0);
	ck_assert_uint_eq(op.status, NFS_NAMETOOLONG);
	/* More than was asked for. */
	put_result(NFS_OP_READ);
	memcpy(wire + 4 + 88, "\0\0\0\x65", 4);
	ck_assert_int_eq(get(&op, NFS_OP_READ, xdr_out_len(&out)), -EBADMSG);
	/* An error is a status, whatever follows. */
	memcpy(wire, "\0\0\0\x02", 4);
	ck_assert_int_eq(get(&op, NFS_OP_READ, 4), 0);
	ck_assert_uint_eq(op.status, NFS_NOENT);
	ck_assert_str_eq(nfsc_status_name(op.status), "NFS3ERR_NOENT");
}

TEST(sizes_are_told_in_units)
{
	char text[16];

	ck_assert_str_eq(progress_size(0, text), "0 B");
	ck_assert_str_eq(progress_size(1023, text), "1023 B");
	ck_assert_str_eq(progress_size(1536, text), "1.5 KiB");
	ck_assert_str_eq(progress_size(3.0 * (1 << 30), text), "3.0 GiB");
}
