/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ./gannet-nfs doctor: on ./gannetd, and on servers that are broken, each in
 * one way.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "wire/header.h"
#include "tests/server/ctl_run.h"
#include "tests/server/liar.h"
#include "tests/server/net_space.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

TEST_CASE(.timeout = 120);

static void has(const char *want)
{
	ck_assert_msg(strstr(out, want), "no '%s' in %s%s", want, out, err);
}

/* The URL of something at a port of TCP, which has MOUNT too. */
static const char *at(uint16_t port)
{
	static char text[128];

	snprintf(text, sizeof(text), "tcp://127.0.0.1:%u/e?mountport=%u", port,
		 port);
	return text;
}

/* A listener whose queue is full: to connect to it gets no answer. */
struct silence {
	int	 fd, filler[8];
	uint16_t port;
};

static void silence_start(struct silence *s)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(s->fd, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(listen(s->fd, 0), 0);
	getsockname(s->fd, (struct sockaddr *)&addr, &len);
	s->port = ntohs(addr.sin_port);
	for (size_t i = 0; i < ARRAY_SIZE(s->filler); i++) {
		s->filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK |
				      SOCK_CLOEXEC, 0);
		connect(s->filler[i], (struct sockaddr *)&addr, len);
	}
}

static void silence_stop(struct silence *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->filler); i++)
		close(s->filler[i]);
	close(s->fd);
}

TEST_LOOP(a_good_server_gets_a_command_that_mounts_it, 0, WAYS)
{
	char want[512];

	start(_i);
	make_file(path(export, "file"), 100000);
	ck_assert_msg(TOOL("doctor", url("")) == 0, "%s%s", out, err);
	snprintf(want, sizeof(want), "\nMount with: mount -t nfs -o vers=3,"
		 "proto=%s,port=%u,mountport=%u,mountproto=tcp,nolock "
		 "127.0.0.1:%s DIR\n", _i == WAY_TCP ? "tcp" : "rdma",
		 _i == WAY_TCP ? d.tcp_port : d.rdma_port, d.tcp_port, export);
	has(want);
	has("ok    name         127.0.0.1 is 127.0.0.1\n");
	snprintf(want, sizeof(want), "exports      %s to 127.0.0.1\n", export);
	has(want);
	has("may be mounted: a handle of ");
	if (_i == WAY_TCP) {
		has("calls from any port are taken (insecure)");
		has("ok    tcp          1 names listed\n");
		has("ok    tcp          65536 bytes read\n");
		has("a call takes ");
	} else {
		has("rdma+iwarp   private data of RFC 8797; 4096 bytes inline "
		    "out, 4096 in; ");
		has("1 names listed, with a Reply chunk offered\n");
		has("65536 bytes read through a Write chunk");
	}
	ck_assert_ptr_null(strstr(out, "poor"));
	stop();
}

TEST_LOOP(data_make_the_round_trip_only_when_asked, 0, WAYS)
{
	start(_i);
	ck_assert_int_eq(TOOL("doctor", url("")), 0);
	has("no data was read: there is no file (--write makes one)");
	ck_assert_msg(TOOL("doctor", "--write", url("")) == 0, "%s", err);
	has(_i == WAY_TCP ? "ok    tcp          what was written came back\n" :
	    "ok    rdma+iwarp   what was written through a Read chunk came "
	    "back\n");
	has("ok    clock        the server's is ");
	has("ok    users        a file made by user ");
	/* It leaves nothing behind. */
	ck_assert_int_eq(rmdir(export), 0);
	ck_assert_int_eq(mkdir(export, 0777), 0);
	stop();
}

/* A counter of the server's. */
static unsigned counted(const char *name)
{
	const char *at;

	ck_assert_int_eq(ctl(&d, "stats"), 0);
	at = strstr(ctl_out, name);
	return at ? (unsigned)strtoul(at + strlen(name), NULL, 10) : 0;
}

/* The link is read through another chunk than it came by. */
TEST(long_calls_and_long_replies_go_through_chunks)
{
	start(WAY_IWARP);
	ck_assert_int_eq(TOOL("doctor", "-i", "65536", url("")), 0);
	ck_assert_ptr_null(strstr(out, "Position-Zero"));
	ck_assert_uint_eq(counted("rdma_long_calls"), 0);
	ck_assert_msg(TOOL("doctor", "--write", "-i", "65536", url("")) == 0,
		      "%s%s", out, err);
	has("ok    rdma+iwarp   a link of 1000 bytes went through a "
	    "Position-Zero chunk, and came back through a Reply chunk\n");
	ck_assert_uint_ge(counted("rdma_long_calls"), 1);
	ck_assert_uint_ge(counted("rdma_replies_chunk"), 1);
	ck_assert_int_eq(rmdir(export), 0);
	ck_assert_int_eq(mkdir(export, 0777), 0);
	stop();
}

TEST(where_nothing_can_be_made_that_is_said_once)
{
	start_with(WAY_IWARP, "ro,insecure");
	ck_assert_int_eq(TOOL("doctor", "--write", url("")), 0);
	has("poor  rdma+iwarp   no file can be made: ");
	ck_assert_ptr_null(strstr(out, "long call"));
	stop();
}

/* AUTH_SYS carries 16; only root can join any number of groups. */
TEST(groups_that_a_call_does_not_carry_are_told)
{
	gid_t groups[70];

	if (geteuid() != 0)
		return;
	start(WAY_TCP);
	for (gid_t i = 0; i < ARRAY_SIZE(groups); i++)
		groups[i] = 1000 + i;
	ck_assert_int_eq(setgroups(16, groups), 0);
	ck_assert_int_eq(TOOL("doctor", url("")), 0);
	ck_assert_ptr_null(strstr(out, "groups"));
	ck_assert_int_eq(setgroups(ARRAY_SIZE(groups), groups), 0);
	ck_assert_int_eq(TOOL("doctor", url("")), 0);
	has("poor  groups       this user is in 70 groups, and a call carries "
	    "16: ");
	ck_assert_int_eq(TOOL("doctor", "-u", "77", url("")), 0);
	ck_assert_ptr_null(strstr(out, "groups"));
	stop();
}

TEST(squashed_users_are_told_whose_their_files_are)
{
	start_with(WAY_TCP, "rw,insecure,all_squash,anonuid=4321");
	chmod(export, 0777);
	ck_assert_int_eq(TOOL("doctor", "--write", "-u", "77", url("")), 0);
	if (geteuid() == 0)
		has("a file made by user 77 belongs to user 4321: squashed");
	stop();
}

TEST(an_export_for_low_ports_is_told)
{
	start_with(WAY_TCP, "rw,secure");
	ck_assert_msg(TOOL("doctor", url("")) == (geteuid() ? 1 : 0), "%s%s",
		      out, err);
	if (geteuid() == 0)
		has("only calls from ports below 1024 are taken (secure)");
	else
		has("`insecure`");
	stop();
}

TEST(the_findings_are_json_too)
{
	json_t *all, *one;
	json_error_t why;

	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", "--json", url("")), 0);
	all = json_loads(out, 0, &why);
	ck_assert_msg(all != NULL, "%s in %s", why.text, out);
	ck_assert_int_eq(json_integer_value(json_object_get(all, "version")),
			 1);
	ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(all,
				     "mount")), "mount -t nfs -o vers=3"));
	ck_assert_ptr_null(json_object_get(all, "mend"));
	one = json_array_get(json_object_get(all, "findings"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(one, "about")),
			 "name");
	ck_assert_str_eq(json_string_value(json_object_get(one, "verdict")),
			 "good");
	json_decref(all);
	ck_assert_int_eq(TOOL("doctor", "--json", "no-such-host.invalid:/\351"),
			 3);
	all = json_loads(out, 0, &why);
	ck_assert_msg(all != NULL, "%s in %s", why.text, out);
	ck_assert_ptr_nonnull(json_object_get(all, "mend"));
	ck_assert_ptr_null(json_object_get(all, "mount"));
	json_decref(all);
	stop();
}

/* ---- broken servers */

TEST(an_unknown_host_is_the_first_thing_to_mend)
{
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", "no-such-host.invalid:/e"), 3);
	has("bad   name ");
	has("To mend: make the name known: ");
	stop();
}

TEST(a_port_where_nothing_listens_is_told_from_a_silent_one)
{
	struct silence s;

	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", at(1)), 3);
	has("bad   nfs          TCP port 1 of 127.0.0.1: refused: nothing "
	    "listens there\n");
	has("\nTo mend: start the NFS server on 127.0.0.1, or name its port");
	silence_start(&s);
	ck_assert_int_eq(TOOL("doctor", "-t", "1", at(s.port)), 3);
	has(": no answer at all, as from behind a firewall\n");
	has("through the firewall, or start the machine\n");
	silence_stop(&s);
	stop();
}

TEST(a_server_that_takes_calls_and_says_nothing_is_silent)
{
	struct liar l = { .mute = true };

	liar_start(&l);
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", "-t", "1", at(l.port)), 3);
	has("it takes the connection, and then answers nothing\n");
	has("To mend: restart the NFS server on 127.0.0.1: it hangs\n");
	liar_stop(&l);
	stop();
}

TEST(a_mount_that_is_not_answered_is_told_from_a_server_that_is_away)
{
	struct liar l = { .mute_mount = true };

	liar_start(&l);
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", "-t", "1", at(l.port)), 3);
	has("bad   mount        MOUNT at the port given: it takes the "
	    "connection, and then answers nothing\n");
	has("To mend: wait, and try again; if it goes on, find out in the log "
	    "of 127.0.0.1 why the file system of /e does not answer\n");
	ck_assert_int_eq(TOOL("ls", "-t", "1", at(l.port)), 3);
	ck_assert_msg(strstr(err, "does not answer for /e: its file system "
			     "may be away\n"), "%s", err);
	liar_stop(&l);
	stop();
}

TEST(other_versions_and_programs_are_told)
{
	struct liar l = { .only_version = 2 };

	liar_start(&l);
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", at(l.port)), 3);
	has("NFS versions 2 to 2, not 3\n");
	has("To mend: have the server serve NFS version 3 (it has 2 to 2)\n");
	liar_stop(&l);
	l.only_version = 0;
	l.only_program = 100005;
	liar_start(&l);
	ck_assert_int_eq(TOOL("doctor", at(l.port)), 3);
	has("the service there is another one\n");
	has("is no NFS server\n");
	/* NFS alone: MOUNT is elsewhere. */
	liar_stop(&l);
	l.only_program = 100003;
	liar_start(&l);
	ck_assert_int_eq(TOOL("doctor", at(l.port)), 3);
	has("bad   mount        MOUNT at the port given: the service there is "
	    "another one\n");
	has("To mend: start the MOUNT service (mountd)");
	liar_stop(&l);
	stop();
}

TEST(a_refused_export_is_told_with_what_there_is)
{
	struct liar l = { .mount_status = 13, .exported = "/e" };

	liar_start(&l);
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", at(l.port)), 1);
	/* Bytes from the server do nothing to the terminal. */
	has("exports      /e to 192.0.2.1, \\033[2J\n");
	has("bad   mount        /e is refused (MNT3ERR_ACCES: access denied)");
	has("To mend: export /e to this machine: see the exports file of ");
	liar_stop(&l);
	l.mount_status = 2;
	l.exported = "/f";
	liar_start(&l);
	ck_assert_int_eq(TOOL("doctor", at(l.port)), 1);
	has("/f (which is not above /e)\n");
	has("To mend: name a directory that is there and exported: ");
	liar_stop(&l);
	stop();
}

/* The obvious command of a user who does not know the exported paths. */
TEST(a_host_without_a_path_is_told_what_it_exports)
{
	struct liar l = { .mount_status = 2, .exported = "/e" };
	char text[64];

	liar_start(&l);
	start(WAY_TCP);
	snprintf(text, sizeof(text), "tcp://127.0.0.1:%u?mountport=%u", l.port,
		 l.port);
	ck_assert_int_eq(TOOL("doctor", text), 0);
	has("exports      /e to 192.0.2.1, ");
	snprintf(text, sizeof(text), "127.0.0.1:%u/e?mountport=%u\n", l.port,
		 l.port);
	has("\nNext: gannet-nfs doctor tcp://");
	has(text);
	liar_stop(&l);
	ck_assert_int_eq(TOOL("doctor", "no-such-host.invalid"), 3);
	has("bad   name ");
	ck_assert_int_eq(TOOL("doctor", "/no/host"), 2);
	stop();
}

TEST(a_path_that_is_not_there_is_told)
{
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", url("missing")), 1);
	has("/missing is not there\n");
	has("To mend: name a path that is there, below ");
	stop();
}

TEST(calls_that_are_denied_are_told)
{
	struct liar l = { .denies = true };

	liar_start(&l);
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", at(l.port)), 3);
	has("it may ask for another flavor than this one, or for TLS\n");
	has("To mend: let 127.0.0.1 take AUTH_SYS for /e (sec=sys)\n");
	liar_stop(&l);
	stop();
}

TEST(exports_for_kerberos_alone_are_told)
{
	struct liar l = { .flavor = RPC_AUTH_KRB5I };

	liar_start(&l);
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", at(l.port)), 1);
	has("bad   flavors      only sec=krb5i is taken, and calls from here "
	    "have sec=sys\n");
	has("To mend: mount it with Kerberos: mount -t nfs -o vers=3,"
	    "sec=krb5i, for which this machine needs a key "
	    "(/etc/krb5.keytab)");
	ck_assert_int_eq(TOOL("ls", at(l.port)), 1);
	ck_assert_ptr_nonnull(strstr(err, "127.0.0.1 takes only sec=krb5i for "
				     "/e, and calls from here have sec=sys: "
				     "--sec= names another\n"));
	/* A number without a name. */
	liar_stop(&l);
	l.flavor = 390006;
	liar_start(&l);
	ck_assert_int_eq(TOOL("ls", at(l.port)), 1);
	ck_assert_ptr_nonnull(strstr(err, "takes only sec=390006 for /e"));
	liar_stop(&l);
	stop();
}

TEST(the_flavors_that_are_listed_are_told)
{
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", url("")), 0);
	has("      flavors      sec=sys\n");
	stop();
}

TEST(long_calls_that_are_lost_are_told)
{
	static const struct liar_name names[] = {
		{ 0, "file", 0, 1, 1, NULL },
	};
	struct liar l = { .names = names, .nnames = 1, .mute_procedure = 6 };

	liar_start(&l);
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", "-t", "3", at(l.port)), 3);
	has("ok    tcp          1 names listed\n");
	has("bad   tcp          a READ of a file failed: ");
	has("To mend: find out why short calls pass over tcp and long ones "
	    "fail: ");
	liar_stop(&l);
	stop();
}

TEST(rdma_that_is_asked_for_and_absent_is_told)
{
	char text[256];

	start(WAY_TCP);
	snprintf(text, sizeof(text), "rdma+iwarp://127.0.0.1:1%s?mountport=%u",
		 export, d.tcp_port);
	ck_assert_int_eq(TOOL("doctor", text), 3);
	has("bad   rdma+iwarp   port 1: refused: nothing listens there\n");
	has("To mend: have 127.0.0.1 serve NFS over rdma+iwarp at port 1\n");
	/* TCP alone is good enough where it is asked for. */
	ck_assert_int_eq(TOOL("doctor", url("")), 0);
	stop();
}

/* Connections of other tests leave ports below 1024 behind, which are few. */
int main(void)
{
	return net_space_run_tests();
}
