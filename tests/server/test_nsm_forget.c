/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers of the status monitor that go while its disk, or the machine's
 * rpc.statd, hangs. */
#include "nsm/nsm.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/stat.h>

#include "nsm/file.h"
#include "nsm/priv.h"
#include "tests/server/record_stream.h"
#include "tests/unit/ports.h"
#include "tests/unit/runner.h"
#include "wire/getport.h"
#include "wire/nsm.h"

static char dir[64], next_file[80];
static struct rpc_client *client;
static struct nsm *nsm;
static atomic_uint ended;
static const struct sockaddr_in host = {
	.sin_family = AF_INET, .sin_addr.s_addr = 0x0b0200c0,
};

static bool is_kept(void)
{
	bool is;

	mutex_lock(&nsm->lock);
	is = nsm->kept;
	mutex_unlock(&nsm->lock);
	return is;
}

static void start_with(const struct rpc_client_config *c)
{
	struct nsm_config config = { .state_dir = dir };

	strcpy(dir, "/tmp/gannet-nsm-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(next_file, sizeof(next_file), "%s/nsm.new", dir);
	ck_assert_int_eq(rpc_client_create(c, &client), 0);
	config.client = client;
	ended = 0;
	ck_assert_int_eq(nsm_create(&config, &nsm), 0);
	/* Its first writing. */
	EVENTUALLY(is_kept());
}

static void start(void)
{
	start_with(NULL);
	ck_assert_int_eq(mkfifo(next_file, 0600), 0);
}

static void stop(void)
{
	char command[96];

	nsm_stop(nsm);
	rpc_client_destroy(client);
	nsm_destroy(nsm);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static void done(void *arg, int err)
{
	ended++;
}

static void monitor(const char *name, int *arg)
{
	nsm_monitor(nsm, &(struct rpc_host){
		name, (const struct sockaddr *)&host, NULL }, done, arg);
}

static bool is_writing(void)
{
	bool is;

	mutex_lock(&nsm->lock);
	is = !cds_list_empty(&nsm->saving);
	mutex_unlock(&nsm->lock);
	return is;
}

/* The writing that hangs at the pipe fails.  The next one can begin at once,
 * and does not find the pipe. */
static void let_the_disk_go_on(void)
{
	char away[96];
	int fd;

	snprintf(away, sizeof(away), "%s/away", dir);
	ck_assert_int_eq(rename(next_file, away), 0);
	fd = open(away, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	EVENTUALLY(!is_writing());
	close(fd);
}

static bool is_in_file(const char *name)
{
	char *text = NULL;
	bool is = nsm_file_read(dir, &text) == 0 && text && strstr(text, name);

	free(text);
	return is;
}

TEST_CASE(.setup = start, .teardown = stop);

TEST(callers_that_go_are_not_called_back_and_leave_no_host)
{
	int saved, waits, stays;

	monitor("saved", &saved);
	EVENTUALLY(is_writing());
	monitor("waits", &waits);
	monitor("stays", &stays);
	ck_assert(nsm_forget(nsm, &saved));
	ck_assert(!nsm_forget(nsm, &saved));
	ck_assert(nsm_forget(nsm, &waits));
	ck_assert(!nsm_forget(nsm, &waits));
	let_the_disk_go_on();
	EVENTUALLY(ended == 1);
	EVENTUALLY(is_in_file(" stays\n"));
	EVENTUALLY(!is_in_file(" saved\n") && !is_in_file(" waits\n"));
	ck_assert(!nsm_forget(nsm, &stays));
	ck_assert_uint_eq(ended, 1);
	mutex_lock(&nsm->lock);
	ck_assert_uint_eq(nsm->hosts.all.count, 1);
	mutex_unlock(&nsm->lock);
}

TEST(a_host_that_two_wait_for_stays_for_the_one_that_does)
{
	int goes, stays;

	monitor("c1", &goes);
	EVENTUALLY(is_writing());
	monitor("c1", &stays);
	ck_assert(nsm_forget(nsm, &goes));
	let_the_disk_go_on();
	EVENTUALLY(ended == 1);
	ck_assert(is_in_file(" c1\n"));
}

/* The call tells it of our start, which takes until it answers. */
TEST(a_host_that_is_called_meanwhile_leaves_the_list_too)
{
	const struct rpc_host who = { "called", (const struct sockaddr *)&host,
				      NULL };
	struct nsm_host *called;
	int saved, goes;

	monitor("saved", &saved);
	EVENTUALLY(is_writing());
	monitor("called", &goes);
	mutex_lock(&nsm->lock);
	called = nsm_hosts_find(&nsm->hosts, &who, false);
	ck_assert_ptr_nonnull(called);
	called->calls++;
	mutex_unlock(&nsm->lock);
	ck_assert(nsm_forget(nsm, &goes));
	mutex_lock(&nsm->lock);
	nsm_host_put(nsm, called);
	called = nsm_hosts_find(&nsm->hosts, &who, false);
	ck_assert_ptr_null(called);
	mutex_unlock(&nsm->lock);
	let_the_disk_go_on();
	EVENTUALLY(ended == 1);
}

/* ---- with an rpc.statd that hangs */

static int silent_udp, silent_tcp;

/* It is asked for by rpcbind, which takes the call and says nothing. */
static void start_beside_statd(void)
{
	const struct rpc_client_config c = {
		.rpcbind_port = ports_bind(&silent_udp, &silent_tcp),
	};

	ck_assert_int_eq(listen(silent_tcp, 8), 0);
	start_with(&c);
	nsm->statd_port = 1;
}

static void stop_beside_statd(void)
{
	stop();
	close(silent_udp);
	close(silent_tcp);
}

static bool is_asking(void)
{
	bool is;

	mutex_lock(&nsm->lock);
	is = !cds_list_empty(&nsm->asking);
	mutex_unlock(&nsm->lock);
	return is;
}

TEST_CASE(.setup = start_beside_statd, .teardown = stop_beside_statd);

TEST(callers_that_go_while_rpc_statd_hangs_are_not_called_back)
{
	int goes, stays;

	/* Its end is not waited out. */
	nsm->config.statd_ms = 1;
	monitor("goes", &goes);
	EVENTUALLY(is_asking());
	ck_assert(nsm_forget(nsm, &goes));
	ck_assert(!nsm_forget(nsm, &goes));
	monitor("stays", &stays);
	/* Its host leaves with the call to rpc.statd. */
	close(accept(silent_tcp, NULL, NULL));
	close(silent_tcp);
	silent_tcp = -1;
	EVENTUALLY(ended == 1);
	EVENTUALLY(!is_in_file(" goes\n"));
	ck_assert_uint_eq(ended, 1);
}

TEST(rpc_statd_forgets_hosts_of_callers_that_went_unless_others_have_them)
{
	int goes, stays, udp, statd, binder, fd;
	uint16_t port = ports_bind(&udp, &statd);

	ck_assert_int_eq(listen(statd, 1), 0);
	monitor("goes", &goes);
	binder = accept(silent_tcp, NULL, NULL);
	record_answer(binder, PMAPPROC_GETPORT, port, 5);
	fd = accept(statd, NULL, NULL);
	ck_assert(nsm_forget(nsm, &goes));
	record_answer(fd, SM_MON, SM_SUCC, 5);
	record_answer(fd, SM_UNMON, SM_SUCC, 5);
	ck_assert_uint_eq(ended, 0);
	/* rpc.statd knows addresses, and another host has this one now. */
	monitor("stays", &stays);
	record_answer(fd, SM_MON, SM_SUCC, 5);
	EVENTUALLY(ended == 1);
	monitor("goes", &goes);
	EVENTUALLY(is_asking());
	ck_assert(nsm_forget(nsm, &goes));
	record_answer(fd, SM_MON, SM_SUCC, 5);
	EVENTUALLY(!is_asking());
	monitor("last", &goes);
	/* Not SM_UNMON. */
	record_answer(fd, SM_MON, SM_SUCC, 5);
	EVENTUALLY(ended == 2);
	close(fd);
	close(binder);
	close(statd);
	close(udp);
}
