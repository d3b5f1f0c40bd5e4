/* SPDX-License-Identifier: BSD-2-Clause */
/* gannetd with keytabs that hang, and that are open to others. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/krb5/kdc.h"
#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"

static struct kdc kdc;
static struct daemon_run run;

/* With the keytab @name in the realm's folder. */
static void start_daemon(const char *name)
{
	char export[96];

	daemon_prepare(&run);
	snprintf(export, sizeof(export), "%s 127.0.0.1(ro)", run.dir);
	kdc_settings(&kdc, name, run.settings, sizeof(run.settings));
	ck_assert(daemon_start(&run, (const char *const[]){
			       "--export", export, NULL }));
}

static void end_daemon(void)
{
	daemon_end(&run, SIGTERM);
	ck_assert_int_eq(run.status, 0);
	daemon_clean(&run);
	kdc_stop(&kdc);
}

static const char *in_realm(char path[64], const char *name)
{
	snprintf(path, 64, "%s/%s", kdc.dir, name);
	return path;
}

static bool open_fifo(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A FIFO stands for a disk that hangs: who opens it waits for a writer. */
TEST(a_keytab_that_hangs_keeps_no_server_from_its_start)
{
	char fifo[64], same[64], real[64];

	kdc_start(&kdc, "aes256-cts-hmac-sha1-96");
	ck_assert_int_eq(mkfifo(in_realm(fifo, "hung.keytab"), 0600), 0);
	ck_assert_int_eq(link(fifo, in_realm(same, "fifo")), 0);
	/* libkrb5 1.20 forgets a name when it can't read a keytab. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	start_daemon("hung.keytab");
	unsetenv("ASAN_OPTIONS");
	ck_assert(daemon_answers(&run));
	/* Then it gets well: a read that hangs ends, and a later one does not
	 * hang. */
	ck_assert_int_eq(rename(in_realm(real, "server.keytab"), fifo), 0);
	EVENTUALLY(open_fifo(same) || daemon_has_logged(&run, "Kerberos"));
	ck_assert(daemon_logged(&run, "Kerberos"));
	end_daemon();
}

static const struct {
	mode_t	    mode;
	const char *what;		/* NULL: nothing is said */
} modes[] = {
	{ 0600, NULL },
	{ 0640, NULL },
	{ 0644, "every user of this machine can read the keytab " },
	{ 0602, "every user of this machine can change the keytab " },
};

TEST_LOOP(a_keytab_that_is_open_to_every_user_is_warned_about, 0,
	  ARRAY_SIZE(modes))
{
	char path[64];

	kdc_start(&kdc, "aes256-cts-hmac-sha1-96");
	in_realm(path, "server.keytab");
	ck_assert_int_eq(chmod(path, modes[_i].mode), 0);
	start_daemon("server.keytab");
	ck_assert(daemon_logged(&run, "Kerberos: serving with the keys"));
	if (modes[_i].what)
		ck_assert(daemon_logged(&run, modes[_i].what));
	else
		ck_assert(!daemon_has_logged(&run, "every user"));
	end_daemon();
}

int main(void)
{
	return kdc_run_tests();
}
