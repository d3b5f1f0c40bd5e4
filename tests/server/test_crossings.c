/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths of MNT and rquota that lead from one file system into another: a call
 * takes the workers of the one that it waits for, and of no other.
 *
 * The export is "e"; "child" and file systems below it are mounted there.  A
 * look-up of "hang" hangs, and so does the mount of "late".
 */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exports/export_priv.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/xdr.h"
#include "rpc/share.h"
#include "rquota/rquota.h"
#include "tests/server/daemon_run.h"
#include "tests/server/mount_space.h"
#include "tests/server/nfs_names.h"
#include "tests/server/record_stream.h"
#include "tests/server/shares.h"
#include "tests/unit/runner.h"
#include "transport/stream/stream.h"

#define THREADS		4u		/* of each share */
#define SHARE		(THREADS * 3 / 4)	/* of them, for one client */
#define CALLS		(4 * THREADS)
#define MAX_SHARES	1000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool held, silent;		/* look-ups and mounts; names */
static unsigned hanging, asking;
static struct rpc_share shares[MAX_SHARES];
static unsigned nshares;

/* "a/b" in the test's directory. */
static const char *local(const char *path)
{
	static char text[4][256];
	static unsigned turn;

	turn = (turn + 1) % 4;
	snprintf(text[turn], sizeof(text[turn]), "%s/%s", space_base, path);
	return text[turn];
}

/* ---- hanging calls */

static void wait_while(const bool *flag, unsigned *count)
{
	mutex_lock(&lock);
	__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
	while (*flag)
		pthread_cond_wait(&changed, &lock);
	mutex_unlock(&lock);
}

static void set_flag(bool *flag, bool value)
{
	mutex_lock(&lock);
	*flag = value;
	pthread_cond_broadcast(&changed);
	mutex_unlock(&lock);
}

static unsigned count_of(const unsigned *count)
{
	return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

static int hung_lookup(struct vfs_op *op)
{
	if (op->name.len == 4 && memcmp(op->name.s, "hang", 4) == 0)
		wait_while(&held, &hanging);
	return posix_vfs_ops.lookup(op);
}

static int some_quota(struct vfs_op *op)
{
	return 0;
}

static struct vfs_ops hung_ops;

static int hung_mount(const struct vfs_config *c, struct vfs_fs **out)
{
	size_t len = strlen(c->path);
	int err;

	if (len > 5 && strcmp(c->path + len - 5, "/late") == 0)
		wait_while(&held, &hanging);
	err = posix_vfs_ops.mount(c, out);
	if (err == 0)
		(*out)->ops = &hung_ops;
	return err;
}

static int silent_name(const char *name, const struct addr *a)
{
	wait_while(&silent, &asking);
	return strcmp(name, "other.example") != 0;
}

/* ---- shares */

/* As the daemon does, but the names are short enough to be seen whole. */
static void give_share(void *arg, struct export_tree *e)
{
	size_t base = strlen(space_base);
	struct work_class *class;

	class = work_class_create(srv.server, strlen(e->path) > base ?
				  e->path + base : e->path, THREADS);
	mutex_lock(&lock);
	ck_assert_uint_lt(nshares, MAX_SHARES);
	shares[nshares].class = class;
	e->user = &shares[nshares++];
	mutex_unlock(&lock);
}

/* ---- the server */

static char state[64], exports_text[1024];
static nfs_fh3 outer;

/* Has "e" exported with @options (NULL: not), and @more lines, in which %s is
 * the directory, once. */
static void publish(const char *options, const char *more)
{
	char lines[512];

	snprintf(lines, sizeof(lines), more, space_base);
	snprintf(exports_text, sizeof(exports_text),
		 "mem:/mem 127.0.0.1(rw,insecure)\n%s%s%s/e "
		 "127.0.0.1(rw,insecure,no_root_squash%s)\n", lines,
		 options ? "" : "#", space_base, options ? options : "");
	harness_publish(&srv, exports_text);
}

static void begin(const char *options, const char *more)
{
	publish(options, more);
	ck_assert_int_eq(nfs_mnt(local("e"), &outer), MNT3_OK);
	outer = space_keep(outer);
}

static void run(const char *cmd)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && %s", space_base, cmd);
	ck_assert_int_eq(system(line), 0);
}

static void setup(void)
{
	static struct harness_config config = {
		.backend = &hung_ops, .state_dir = state,
		.exports = "mem:/mem 127.0.0.1(rw,insecure)\n",
	};

	snprintf(state, sizeof(state), "%s/state", space_base);
	/* A test that fails leaves its mounts. */
	run("{ umount -l e/child/in; umount -l e/child; umount -l e/late; } "
	    "2>&-; rm -rf e state; mkdir -p state e/d e/late e/child/hang && "
	    "mount -t tmpfs none e/child && mkdir -p e/child/hang e/child/sub "
	    "e/child/in && mount -t tmpfs none e/child/in && "
	    "mkdir -p e/child/in/hang");
	hung_ops = posix_vfs_ops;
	hung_ops.mount = hung_mount;
	hung_ops.lookup = hung_lookup;
	hung_ops.quota = some_quota;
	held = silent = false;
	hanging = asking = nshares = 0;
	nfs_setup_with(&config);
	srv.exports->config.attach = give_share;
	srv.exports->resolver.has_addr = silent_name;
}

static void teardown(void)
{
	set_flag(&held, false);
	set_flag(&silent, false);
	nfs_client_close(&user);
	nfs_client_close(&root);
	EVENTUALLY(rpc_busy() == 0);
	while (nshares)
		work_class_destroy(shares[--nshares].class);
	harness_stop(&srv);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* ---- calls by hand */

enum { MNT, QUOTA, PROGRAMS };

#define CALL_MAX	512

/* A call of MNT or GETQUOTA of @path, for its user 0. */
static void make_call(struct xdr_out *x, uint8_t buf[CALL_MAX], int program,
		      const char *path)
{
	static uint32_t xid;
	const struct rpc_header h = {
		.xid = ++xid, .vers = program == QUOTA ? 1 : 3, .proc = 1,
		.prog = program == QUOTA ? RQUOTA_PROGRAM : MOUNT_PROGRAM,
	};

	record_call(x, buf, CALL_MAX, &h);
	xdr_put_string(x, path);
	if (program == QUOTA)
		xdr_put_u32(x, 0);
}

static void send_call(int fd, int program, const char *path)
{
	uint8_t buf[CALL_MAX];
	struct xdr_out x;

	make_call(&x, buf, program, path);
	ck_assert(record_post(fd, &x));
}

/* The status in the next reply. */
static uint32_t take_status(int fd)
{
	uint32_t reply[64];

	ck_assert_uint_ge(record_receive(fd, reply, sizeof(reply)), 28);
	ck_assert_uint_eq(ntohl(reply[5]), 0);
	return ntohl(reply[6]);
}

/* The status of a separate call. */
static uint32_t ask(int program, const char *path)
{
	int fd = daemon_connect(srv.port);
	uint32_t status;

	send_call(fd, program, path);
	status = take_status(fd);
	close(fd);
	return status;
}

static uint32_t ok(int program)
{
	return program == MNT ? MNT3_OK : 1;
}

/* The export around is served, and the same number of look-ups hangs. */
static void check_outer(void)
{
	unsigned n = count_of(&hanging);
	nfs_fh3 d;

	ck_assert_uint_eq(ask(MNT, local("e/d")), ok(MNT));
	ck_assert_uint_eq(ask(QUOTA, local("e/d")), ok(QUOTA));
	ck_assert_int_eq(try_lookup(outer, "d", &d), NFS3_OK);
	ck_assert_int_eq(space_status(d), NFS3_OK);
	ck_assert_int_eq(try_mkdir(&root, outer, "new"), NFS3_OK);
	ck_assert_uint_eq(count_of(&hanging), n);
}

/* Has @path, whose look-up hangs, asked for by one client. */
static int hang_calls(int program, const char *path)
{
	int fd = daemon_connect(srv.port);

	set_flag(&held, true);
	for (unsigned i = 0; i < CALLS; i++)
		send_call(fd, program, path);
	EVENTUALLY(count_of(&hanging) == SHARE);
	return fd;
}

static void end_calls(int fd, int program)
{
	set_flag(&held, false);
	for (unsigned i = 0; i < CALLS; i++)
		ck_assert_uint_eq(take_status(fd), ok(program));
	close(fd);
}

/* Ways into a file system that is mounted below an export. */
static const struct way {
	const char *options, *more;
} ways[] = {
	{ ",crossmnt", "" },
	{ "", "%s/e/child 127.0.0.1(rw,insecure,no_root_squash,nohide)\n" },
	{ ",crossmnt", "%s/e/child *(rw,insecure,no_root_squash,mp)\n" },
};
#define WAYS	((int)(sizeof(ways) / sizeof(ways[0])))

static void begin_way(int i)
{
	begin(ways[i].options, ways[i].more);
}

TEST_LOOP(calls_below_a_hung_child_leave_the_workers_of_the_export_around_it,
	  0, WAYS * PROGRAMS)
{
	int program = _i % PROGRAMS, fd;

	begin_way(_i / PROGRAMS);
	fd = hang_calls(program, local("e/d/../child/hang"));
	EVENTUALLY(is_idle("/e") && is_idle("names"));
	ck_assert_uint_eq(share("/e/child").running, SHARE);
	check_outer();
	end_calls(fd, program);
}

TEST_LOOP(each_of_several_crossings_takes_its_call_along, 0, PROGRAMS)
{
	int fd;

	begin(",crossmnt", "");
	fd = hang_calls(_i, local("e/child/./in//hang"));
	EVENTUALLY(is_idle("/e") && is_idle("/e/child") && is_idle("names"));
	ck_assert_uint_eq(share("/e/child/in").running, SHARE);
	ck_assert_uint_eq(ask(_i, local("e/child/sub")), ok(_i));
	check_outer();
	end_calls(fd, _i);
}

/* The mount of "late" hangs: it is waited for, with the workers for that. */
TEST_LOOP(a_child_that_is_opened_takes_no_workers_of_the_export_around_it, 0,
	  PROGRAMS)
{
	int fd = daemon_connect(srv.port);

	run("mount -t tmpfs none e/late");
	begin(",crossmnt", "");
	set_flag(&held, true);
	for (unsigned i = 0; i < CALLS; i++)
		send_call(fd, _i, local("e/late"));
	EVENTUALLY(count_of(&hanging) == 1 && share("names").running == 1 &&
		   is_idle("/e"));
	check_outer();
	end_calls(fd, _i);
}

#define OTHER(name, more) \
	"%s/e/child " name "(rw,insecure,no_root_squash" more ")\n"

/* The name service is asked for the client of the child, as its entry says. */
TEST_LOOP(a_silent_name_service_takes_no_workers_of_the_export_around_it, 0,
	  PROGRAMS)
{
	int fd = daemon_connect(srv.port);

	begin(",crossmnt", OTHER("host.example", ""));
	set_flag(&silent, true);
	for (unsigned i = 0; i < CALLS; i++)
		send_call(fd, _i, local("e/d/../child/sub"));
	EVENTUALLY(count_of(&asking) == 1 && is_idle("/e"));
	ck_assert_uint_eq(ask(_i, local("e/d")), ok(_i));
	set_flag(&silent, false);
	for (unsigned i = 0; i < CALLS; i++)
		ck_assert_uint_eq(take_status(fd), ok(_i));
	ck_assert_uint_eq(count_of(&asking), 1);
	close(fd);
}

/* Clients that may not enter it go on in the export around. */
TEST(a_child_for_other_clients_is_an_empty_directory)
{
	nfs_fh3 fh;

	begin(",crossmnt", OTHER("other.example", ""));
	ck_assert_int_eq(nfs_mnt(local("e/d/../child"), &fh), MNT3_OK);
	ck_assert_uint_eq(nfs_attr(fh).fsid, nfs_attr(outer).fsid);
	ck_assert_int_eq(nfs_mnt(local("e/d/../child/sub"), &fh),
			 MNT3ERR_NOENT);
	ck_assert_uint_eq(count_of(&asking), 1);
}

/* The rest of a path with links, and their number, cross too. */
TEST(a_path_through_links_is_walked_to_its_end)
{
	nfs_fh3 fh, sub;

	run("ln -s child/in e/door; ln -s child/.. e/out; "
	    "mkdir e/child/in/deep e/child/in/deep/er");
	begin(",crossmnt", "");
	ck_assert_int_eq(nfs_mnt(local("e/child/in/deep/er"), &fh), MNT3_OK);
	fh = space_keep(fh);
	ck_assert_int_eq(nfs_mnt(local("e/door/deep/er"), &sub), MNT3_OK);
	ck_assert(nfs_same_fh(fh, sub));
	ck_assert_int_eq(nfs_mnt(local("e/door/deep/no"), &sub),
			 MNT3ERR_NOENT);
	ck_assert_int_eq(nfs_mnt(local("e/child/.."), &sub), MNT3_OK);
	ck_assert_int_eq(nfs_mnt(local("e/out"), &sub), MNT3_OK);
	ck_assert(nfs_same_fh(outer, sub));
}

/* ---- changes meanwhile */

/* Has the one worker for names wait, and a call behind it. */
static int wait_for_names(int program, const char *path)
{
	int fd = daemon_connect(srv.port);

	begin(",crossmnt", "%s/e/d host.example(rw,insecure)\n");
	set_flag(&silent, true);
	send_call(fd, program, local("e/d"));
	EVENTUALLY(count_of(&asking) == 1);
	send_call(fd, program, path);
	EVENTUALLY(share("names").waiting == 1 && is_idle("/e"));
	return fd;
}

static void check_refused(int fd, int program)
{
	unsigned refused = 0;

	set_flag(&silent, false);
	for (unsigned i = 0; i < 2; i++)
		refused += take_status(fd) != ok(program);
	/* Both, if the export of the first was taken out. */
	ck_assert_uint_ge(refused, 1);
	close(fd);
}

/* The walk comes to the child with the last reference of the export around. */
TEST_LOOP(a_call_goes_on_below_an_export_that_is_gone, 0, PROGRAMS)
{
	int fd = daemon_connect(srv.port);

	run("mkdir -p e/d/hang");
	begin(",crossmnt", OTHER("127.0.0.1", ""));
	set_flag(&held, true);
	send_call(fd, _i, local("e/d/hang/../../child/sub"));
	EVENTUALLY(count_of(&hanging) == 1);
	publish(NULL, OTHER("127.0.0.1", ""));
	set_flag(&held, false);
	ck_assert_uint_eq(take_status(fd), ok(_i));
	close(fd);
	ck_assert_int_eq(space_status(outer), NFS3ERR_STALE);
}

/* Without crossmnt, or without the export. */
TEST_LOOP(a_call_goes_on_by_the_rules_of_that_time, 0, 2 * PROGRAMS)
{
	uint64_t opened = stats_sum_by_name("children_opened");
	int fd = wait_for_names(_i / 2, local("e/child/sub"));

	publish(_i % 2 ? "" : NULL, "%s/e/d host.example(rw,insecure)\n");
	check_refused(fd, _i / 2);
	ck_assert_uint_eq(stats_sum_by_name("children_opened"), opened);
}

TEST_LOOP(a_child_that_is_unmounted_before_it_is_entered_is_not_there, 0,
	  PROGRAMS)
{
	int fd = wait_for_names(_i, local("e/child/sub"));

	run("umount -l e/child");
	check_refused(fd, _i);
}

/* The calls have come to the child; most wait for its workers. */
TEST_LOOP(a_child_that_goes_away_ends_the_calls_below_it, 0, PROGRAMS)
{
	nfs_fh3 child;
	int fd;

	begin(",crossmnt", "");
	ck_assert_int_eq(nfs_mnt(local("e/child"), &child), MNT3_OK);
	child = space_keep(child);
	fd = hang_calls(_i, local("e/child/hang"));
	EVENTUALLY(share("/e/child").waiting == CALLS - SHARE);
	run("umount -l e/child/in; umount -l e/child");
	/* GETATTR needs none of the workers that hang; LOOKUP might. */
	EVENTUALLY((harness_publish(&srv, exports_text),
		    space_status_once(child) != NFS3_OK));
	check_outer();
	end_calls(fd, _i);
	ck_assert_int_eq(space_status(child), NFS3ERR_STALE);
}

TEST_LOOP(calls_whose_connection_is_closed_end, 0, PROGRAMS)
{
	int fd;

	begin(",crossmnt", "");
	fd = hang_calls(_i, local("e/child/hang"));
	close(fd);
	check_outer();
	set_flag(&held, false);
	EVENTUALLY(rpc_busy() == 0);
	fd = wait_for_names(_i, local("e/child/in"));
	close(fd);
	set_flag(&silent, false);
	EVENTUALLY(rpc_busy() == 0);
}

/* ---- datagrams, which are not answered when they wait behind hung ones */

static struct xprt_listener *udp;

static int udp_open(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(udp_listen(&srv.env, (struct sockaddr *)&at, NULL,
				    &udp), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&udp->local,
				 sizeof(at)), 0);
	return fd;
}

static void udp_send(int fd, int program, const char *path)
{
	uint8_t buf[CALL_MAX];
	struct xdr_out x;
	size_t len;

	make_call(&x, buf, program, path);
	len = xdr_out_len(&x) - RECORD_MARK_SIZE;
	for (unsigned i = 0; i < CALLS; i++)
		ck_assert_int_eq(send(fd, buf + RECORD_MARK_SIZE, len, 0),
				 (ssize_t)len);
}

static void udp_close(int fd)
{
	close(fd);
	udp->ops->stop(udp);
	EVENTUALLY(udp->ops->count(udp) == 0);
	udp->ops->free(udp);
}

/* Sends the waiting calls back. */
static void relieve(unsigned n)
{
	uint64_t before = stats_sum_by_name("rpc_sent_back");

	rpc_server_relieve(srv.server);
	rpc_server_relieve(srv.server);
	ck_assert_uint_eq(stats_sum_by_name("rpc_sent_back") - before, n);
}

TEST_LOOP(datagrams_that_wait_below_a_hung_child_are_dropped, 0, PROGRAMS)
{
	int fd = udp_open();

	begin(",crossmnt", "");
	set_flag(&held, true);
	udp_send(fd, _i, local("e/child/hang"));
	EVENTUALLY(share("/e/child").waiting == CALLS - SHARE);
	relieve(CALLS - SHARE);
	check_outer();
	set_flag(&held, false);
	udp_close(fd);
}

TEST_LOOP(datagrams_that_wait_for_a_child_to_be_opened_are_dropped, 0, PROGRAMS)
{
	int tcp = wait_for_names(_i, local("e/child/sub"));
	int fd = udp_open();

	udp_send(fd, _i, local("e/child/sub"));
	EVENTUALLY(share("names").waiting == 1 + CALLS);
	relieve(CALLS);
	set_flag(&silent, false);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_uint_eq(take_status(tcp), ok(_i));
	close(tcp);
	udp_close(fd);
}

int main(void)
{
	return space_run_tests();
}
