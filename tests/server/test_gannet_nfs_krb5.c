/* SPDX-License-Identifier: BSD-2-Clause */
/* ./gannet-nfs with tickets, against ./gannetd with a keytab. */
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/krb5/kdc.h"
#include "tests/server/call_relay.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"
#include "wire/gss.h"
#include "wire/nfs3.h"

TEST_CASE(.timeout = 120);

static const char *const secs[] = { "krb5", "krb5i", "krb5p" };
static struct kdc kdc;

/* The ticket is for a name. */
static void name_host(void)
{
	char *at = strstr(base, "127.0.0.1");

	ck_assert_ptr_nonnull(at);
	memcpy(at, "localhost", 9);
}

/* With a realm that is made. */
static void start_server(int way, const char *sec)
{
	char opts[80], settings[400];

	kdc_settings(&kdc, "server.keytab", settings, sizeof(settings));
	snprintf(opts, sizeof(opts), "rw,insecure,no_root_squash,sec=%s", sec);
	start_both(way, opts, settings);
	name_host();
	kdc_login(&kdc, "host/localhost");
}

static void start_krb5(int way, const char *sec)
{
	kdc_start(&kdc, "aes256-cts-hmac-sha1-96");
	start_server(way, sec);
}

static void stop_krb5(void)
{
	stop();
	kdc_stop(&kdc);
}

/* Each flavor over each transport. */
TEST_LOOP(each_flavor_moves_files, 0, WAYS * ARRAY_SIZE(secs))
{
	static const size_t sizes[] = { 0, 1, 4097, 1048576, 5000003 };
	const char *sec = secs[_i / WAYS], *from, *back;

	start_krb5(_i % WAYS, sec);
	from = path(d.dir, "from");
	back = path(d.dir, "back");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		make_file(from, sizes[i]);
		ck_assert_msg(TOOL("put", "--sec", sec, from, url("f")) == 0,
			      "%s", err);
		same(from, path(export, "f"));
		ck_assert_msg(TOOL("get", "--sec", sec, url("f"), back) == 0,
			      "%s", err);
		same(from, back);
		ck_assert_str_eq(err, "");
	}
	ck_assert_int_eq(TOOL("mkdir", "--sec", sec, url("dir")), 0);
	ck_assert_msg(TOOL("ls", "--sec", sec, url("")) == 0, "%s", err);
	ck_assert_str_eq(out, "dir\nf\n");
	ck_assert_int_eq(TOOL("cat", "--sec", sec, url("f")), 0);
	same(from, outfile);
	ck_assert_msg(TOOL("cp", "-r", "--sec", sec, "--checksum", from,
			   url("copy")) == 0, "%s", err);
	same(from, path(export, "copy"));
	ck_assert_int_eq(TOOL("ls", url("")), 1);
	ck_assert_ptr_nonnull(strstr(err, "and calls from here have sec=sys"));
	stop_krb5();
}

TEST(a_file_belongs_to_the_user_of_the_ticket)
{
	const struct passwd *user = getpwnam("daemon");
	struct stat st;

	/* Only root can give files away. */
	if (!user || geteuid() != 0)
		return;
	start_krb5(WAY_TCP, "krb5p");
	ck_assert_int_eq(chmod(export, 0777), 0);
	kdc_login(&kdc, "alice");
	ck_assert_int_eq(TOOL("touch", "--sec=krb5p", "-u", "0", url("f")), 0);
	ck_assert_int_eq(stat(path(export, "f"), &st), 0);
	ck_assert_uint_eq(st.st_uid, user->pw_uid);
	stop_krb5();
}

/* Has the server read the realm's file through another one's directory.  The
 * other one names all that libkrb5 would open, look up or load. */
static void make_server_conf(char path[80])
{
	char command[200], cwd[160];
	FILE *f;

	snprintf(command, sizeof(command), "mkdir %s/conf.d && cp %s/krb5.conf "
		 "%s/conf.d/realm.conf", kdc.dir, kdc.dir, kdc.dir);
	ck_assert_int_eq(system(command), 0);
	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	snprintf(path, 80, "%s/server.conf", kdc.dir);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fprintf(f, "includedir %s/conf.d\n[libdefaults]\n"
		" default_ccache_name = KEYRING:persistent:%%{uid}\n"
		" default_rcache_name = dfl:\n"
		" plugin_base_dir = %s/conf.d\n"
		"[plugins]\n localauth = {\n"
		"  module = none:%s/conf.d/none.so\n"
		"  module = odd:%s/modules/krb5/krb5.so\n }\n"
		" ccselect = {\n  module = odd:%s/modules/krb5/krb5.so\n }\n",
		kdc.dir, kdc.dir, kdc.dir, cwd, cwd);
	ck_assert_int_eq(fclose(f), 0);
}

TEST(a_confined_server_reads_what_krb5_conf_names)
{
	char conf[80], client[80];

	kdc_start(&kdc, "aes256-cts-hmac-sha1-96");
	make_server_conf(conf);
	snprintf(client, sizeof(client), "%s", getenv("KRB5_CONFIG"));
	setenv("KRB5_CONFIG", conf, 1);
	start_server(WAY_TCP, "krb5p");
	setenv("KRB5_CONFIG", client, 1);
	for (int i = 0; i < 2; i++)
		ck_assert_msg(TOOL("ls", "--sec=krb5p", url("")) == 0, "%s",
			      err);
	kdc_login(&kdc, "alice");
	ck_assert_msg(TOOL("ls", "--sec=krb5p", url("")) == 0, "%s", err);
	stop_krb5();
}

static void fails(const char *host, const char *why)
{
	char other[512];

	snprintf(other, sizeof(other), "tcp://%s:%u%s?mountport=%u", host,
		 d.tcp_port, export, d.tcp_port);
	ck_assert_int_eq(TOOL("ls", "--sec=krb5p", other), 1);
	ck_assert_msg(strstr(err, why) != NULL, "%s", err);
}

TEST(without_a_context_the_cause_is_named)
{
	start_krb5(WAY_TCP, "krb5p");
	fails("127.0.0.1", "Kerberos: ");
	kdc_login(&kdc, NULL);
	fails("localhost", "there is no ticket: run kinit");
	kdc_login(&kdc, "alice");
	kdc_new_key(&kdc);
	ck_assert_int_eq(TOOL("ls", "--sec=krb5", url("")), 1);
	ck_assert_ptr_nonnull(strstr(err, "takes only sec=krb5p for"));
	ck_assert_int_eq(TOOL("ls", "--sec=krb6", url("")), 2);
	stop_krb5();
}

TEST_LOOP(bench_measures_each_flavor, 0, WAYS * ARRAY_SIZE(secs))
{
	const char *sec = secs[_i / WAYS];

	start_krb5(_i % WAYS, sec);
	ck_assert_msg(TOOL("bench", "--sec", sec, "--ops=40", "--size=2M",
			   "--verify", "--connections=2", "-d", "4",
			   "--entries=100", "seqwrite", "seqread", "getattr",
			   "create", "readdirplus", url("")) == 0, "%s", err);
	stop_krb5();
}

TEST(doctor_tries_the_ticket)
{
	char host[64];

	start_krb5(WAY_TCP, "krb5p");
	ck_assert_msg(TOOL("doctor", "--sec=krb5p", url("")) == 0, "%s", out);
	ck_assert_ptr_nonnull(strstr(out, "localhost proves itself"));
	ck_assert_ptr_nonnull(strstr(out, ",sec=krb5p localhost:"));
	snprintf(host, sizeof(host), "tcp://localhost:%u", d.tcp_port);
	ck_assert_int_eq(TOOL("doctor", "--sec=krb5p", host), 0);
	ck_assert_ptr_nonnull(strstr(out, "\nNext: gannet-nfs doctor tcp://"));
	ck_assert_ptr_nonnull(strstr(out, " --sec=krb5p\n"));
	kdc_login(&kdc, NULL);
	ck_assert_int_eq(TOOL("doctor", "--sec=krb5p", url("")), 1);
	ck_assert_ptr_nonnull(strstr(out, "there is no ticket: run kinit"));
	ck_assert_int_eq(TOOL("doctor", "--sec=krb5i", url("")), 1);
	ck_assert_ptr_nonnull(strstr(out, "--sec=krb5p"));
	stop_krb5();
}

/* ---- a server that is started again */

struct feed {
	struct relay relay;
	const char  *fifo, *to, *url;
	int	     way;
	size_t	     half;
	const char  *sec;
	int	     code;
};

static bool arrived(const struct feed *f)
{
	struct stat st;

	return stat(f->to, &st) == 0 && st.st_size > 0;
}

static void restart(struct feed *f)
{
	char line[256];

	daemon_end(&d, SIGKILL);
	snprintf(line, sizeof(line), "%s 127.0.0.1(rw,insecure,"
		 "no_root_squash,sec=krb5:krb5i:krb5p)", export);
	ck_assert(daemon_start(&d, (const char *const[]){
		"--rdma", "iwarp", "--export", line, NULL }));
	f->relay.to = f->way == WAY_TCP ? d.tcp_port : d.rdma_port;
}

/* On the test's own thread: a daemon ends with the thread that started it. */
static void feed(struct feed *f)
{
	int fd = open(f->fifo, O_WRONLY | O_CLOEXEC);
	int from = open(path(d.dir, "from"), O_RDONLY | O_CLOEXEC);
	char buf[65536];
	size_t done = 0;
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0) {
		if (done <= f->half && done + (size_t)n > f->half) {
			EVENTUALLY(arrived(f));
			restart(f);
		}
		ck_assert_int_eq(write(fd, buf, (size_t)n), n);
		done += (size_t)n;
	}
	close(from);
	close(fd);
}

static void *put_fifo(void *arg)
{
	struct feed *f = arg;

	f->code = tool((const char *const[]){ "put", "-b", "262144", "--sec",
			f->sec, "-", f->url, NULL }, f->fifo);
	return NULL;
}

TEST_LOOP(a_copy_goes_on_when_the_server_was_restarted, 0,
	  WAYS * ARRAY_SIZE(secs))
{
	struct feed f = { .way = _i % WAYS, .half = 4 << 20,
			  .sec = secs[_i / WAYS] };
	pthread_t thread;

	start_krb5(f.way, "krb5:krb5i:krb5p");
	make_file(path(d.dir, "from"), 6000001);
	f.fifo = path(d.dir, "fifo");
	f.to = path(export, "f");
	ck_assert_int_eq(mkfifo(f.fifo, 0600), 0);
	relay_start(&f.relay, f.way);
	name_host();
	/* It has the port of a daemon that restart() is to change. */
	f.url = url("f");
	pthread_create(&thread, NULL, put_fifo, &f);
	feed(&f);
	pthread_join(thread, NULL);
	ck_assert_msg(f.code == 0, "%s", err);
	relay_stop(&f.relay);
	same(path(d.dir, "from"), f.to);
	stop_krb5();
}

TEST_LOOP(copies_survive_cut_connections, 0, WAYS * ARRAY_SIZE(secs))
{
	struct relay r = { .cut_after = 3000000, .cuts = 4 };
	const char *from, *back, *sec = secs[_i / WAYS];

	start_krb5(_i % WAYS, sec);
	from = path(d.dir, "from");
	back = path(d.dir, "back");
	make_file(from, 20000001);
	relay_start(&r, _i % WAYS);
	name_host();
	ck_assert_msg(TOOL("put", "--sec", sec, from, url("x")) == 0, "%s",
		      err);
	ck_assert_uint_eq(atomic_load(&r.connections), 5);
	same(from, path(export, "x"));
	atomic_store(&r.connections, 0);
	ck_assert_msg(TOOL("get", "--sec", sec, url("x"), back) == 0, "%s",
		      err);
	same(from, back);
	relay_stop(&r);
	stop_krb5();
}

/* ---- a relay that knows calls */

static void start_calls(struct calls *c, const char *sec)
{
	start_krb5(WAY_TCP, sec);
	call_relay_start(c);
	name_host();
	make_file(path(export, "f"), 1);
}

static enum deed lose_first_token(struct calls *c, const struct record *call)
{
	size_t len = call->len - AT_TOKEN;

	if (record_word(call, AT_GSS_PROC) != GSS_INIT)
		return PASS;
	if (c->inits++ == 0) {
		c->token = *call;
		return LOSE;
	}
	c->same_token |= call->len == c->token.len &&
			 memcmp(call->data + AT_TOKEN, c->token.data + AT_TOKEN,
				len) == 0;
	return PASS;
}

/* A server with a replay cache would refuse it. */
TEST(a_token_whose_answer_was_lost_is_not_sent_again)
{
	static struct calls c = { .judge = lose_first_token };

	start_calls(&c, "krb5");
	ck_assert_msg(TOOL("ls", "--sec=krb5", url("")) == 0, "%s", err);
	relay_stop(&c.relay);
	ck_assert_uint_eq(c.inits, 2);
	ck_assert(!c.same_token);
	stop_krb5();
}

static enum deed lose_all_tokens(struct calls *c, const struct record *call)
{
	if (record_word(call, AT_GSS_PROC) != GSS_INIT)
		return PASS;
	c->inits++;
	return LOSE;
}

TEST(a_server_that_answers_no_token_is_left)
{
	static struct calls c = { .judge = lose_all_tokens };

	start_calls(&c, "krb5");
	ck_assert_int_eq(TOOL("ls", "--sec=krb5", "--retries=3", url("")), 3);
	relay_stop(&c.relay);
	ck_assert_uint_eq(c.inits, 4);
	stop_krb5();
}

/* The answer to the first REMOVE is lost, and the context is gone when it comes
 * again. */
static enum deed lose_remove(struct calls *c, const struct record *call)
{
	if (record_word(call, AT_GSS_PROC) != GSS_DATA ||
	    record_word(call, AT_PROC) != NFSPROC3_REMOVE ||
	    c->n == ARRAY_SIZE(c->xids))
		return PASS;
	c->xids[c->n++] = record_word(call, AT_XID);
	return c->n == 1 ? LOSE : c->n == 2 ? DENY : PASS;
}

/* The server knows it by that. */
TEST_LOOP(a_call_that_is_refused_when_it_comes_again_keeps_its_xid, 0,
	  ARRAY_SIZE(secs))
{
	static struct calls c = { .judge = lose_remove };

	start_calls(&c, secs[_i]);
	ck_assert_msg(TOOL("rm", "--sec", secs[_i], url("f")) == 0, "%s", err);
	relay_stop(&c.relay);
	ck_assert_uint_eq(c.n, 3);
	ck_assert_uint_eq(c.xids[0], c.xids[1]);
	ck_assert_uint_eq(c.xids[0], c.xids[2]);
	ck_assert_int_ne(access(path(export, "f"), F_OK), 0);
	stop_krb5();
}

static enum deed deny_ninth_getattr(struct calls *c, const struct record *call)
{
	return record_word(call, AT_GSS_PROC) == GSS_DATA &&
	       record_word(call, AT_PROC) == NFSPROC3_GETATTR && ++c->n == 9 ?
	       DENY : PASS;
}

TEST_LOOP(bench_goes_on_with_another_context, 0, ARRAY_SIZE(secs))
{
	static struct calls c = { .judge = deny_ninth_getattr };

	start_calls(&c, secs[_i]);
	ck_assert_msg(TOOL("bench", "--sec", secs[_i], "--ops=30", "--size=1M",
			   "--connections=1", "-d", "1", "getattr",
			   url("")) == 0, "%s%s", out, err);
	ck_assert_ptr_null(strstr(out, "errors"));
	relay_stop(&c.relay);
	ck_assert_uint_ge(c.n, 31);
	stop_krb5();
}

int main(void)
{
	return kdc_run_tests();
}
