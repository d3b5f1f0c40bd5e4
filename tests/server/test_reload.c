/* SPDX-License-Identifier: BSD-2-Clause */
/* gannet.conf(5) and the daemon: the start, and the options that SIGHUP
 * applies. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/ctl_run.h"
#include "tests/unit/runner.h"

static struct daemon_run d;
static char conf[160];

static void write_conf(const char *text)
{
	FILE *f = fopen(conf, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void setup(void)
{
	daemon_prepare(&d);
	snprintf(conf, sizeof(conf), "%s/g.conf", d.dir);
}

static void teardown(void)
{
	daemon_clean(&d);
}

#define ARGS(...) \
	((const char *const[]){ "--config", conf, __VA_ARGS__, NULL })

static void starts(const char *text)
{
	write_conf(text);
	ck_assert(daemon_start(&d, ARGS("--foreground")));
}

static void reloads(const char *text, const char *line)
{
	write_conf(text);
	kill(d.pid, SIGHUP);
	ck_assert_msg(daemon_logged(&d, line), "no '%s' in the log", line);
}

static bool is_closed(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) == 0;
}

static bool is_open(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) == -1;
}

TEST_CASE(.setup = setup, .teardown = teardown);

#define MEM	"[exports]\nexport = mem:/a *(rw,insecure)\n"

TEST(the_file_is_enough_to_serve)
{
	starts(MEM);
	ck_assert(daemon_answers(&d));
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
}

TEST(an_abbreviation_of_several_options_is_refused)
{
	write_conf(MEM);
	ck_assert(!daemon_start(&d, ARGS("--expor", "/a")));
	ck_assert_int_eq(WEXITSTATUS(d.status), 2);
	ck_assert(daemon_logged(&d, "ambiguous"));
}

TEST(a_mistake_in_the_file_keeps_the_daemon_from_starting)
{
	write_conf("[exports]\nexport = mem:/a *(rw)\nfoo = 1\n");
	ck_assert(!daemon_start(&d, ARGS("--foreground")));
	ck_assert_int_eq(WEXITSTATUS(d.status), 2);
	ck_assert(daemon_logged(&d, "g.conf:3: [exports] foo: there is no "
				"such key"));
}

TEST(a_reload_tells_what_changed_and_when_it_holds)
{
	starts(MEM);
	reloads(MEM "[log]\nlevel = debug\n[server]\npollers = 3\n",
		"exports read again");
	ck_assert(daemon_has_logged(&d, "[log] level: 'info' becomes "
				    "'debug'\n"));
	ck_assert(daemon_has_logged(&d, "becomes '3' at the next start"));
	reloads("[exports]\nexport = mem:/b *(ro)\n[log]\nlevel = debug\n",
		"[exports] export: 'mem:/a *(rw,insecure)' becomes "
		"'mem:/b *(ro)'\n");
	daemon_end(&d, SIGTERM);
}

/* Two of its three exports are not there, one has another's id. */
static void start_without_disks(void)
{
	char text[600];

	snprintf(text, sizeof(text), "[exports]\nexport = mem:/a *(fsid=1)\n"
		 "export = %s/late *(rw)\nexport = %s/log *(rw)\n"
		 "export = mem:/b *(fsid=1)\n", d.dir, d.dir);
	starts(text);
}

TEST(a_start_goes_without_the_exports_that_are_not_there)
{
	char path[100];

	start_without_disks();
	ck_assert(daemon_answers(&d));
	ck_assert(daemon_logged(&d, "/late' can't be exported: there is no "
				"such directory; trying again until it can"));
	ck_assert(daemon_logged(&d, "/log' can't be exported: it is not a "
				"directory; trying again until it can"));
	ck_assert(daemon_logged(&d, "'/b' and '/a' (--export) have the same "
				"file system id; give one of them another "
				"with fsid=, until then '/b' is not "
				"exported"));
	snprintf(path, sizeof(path), "%s/late", d.dir);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	ck_assert(daemon_logged(&d, "/late' is exported now"));
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
}

TEST(a_reload_is_all_or_nothing)
{
	start_without_disks();
	reloads("[exports]\nexport = mem:/c *\nexport = /no/such *\n",
		"'/no/such' can't be exported: there is no such directory\n");
	ck_assert(!daemon_has_logged(&d, "exports read again"));
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
}

TEST(a_reload_tells_which_rules_of_the_exports_changed)
{
	starts("[exports]\nexport = mem:/a *(rw) 192.0.2.1(ro)\n");
	reloads("[exports]\nexport = mem:/a *(rw) 192.0.2.2(ro)\n",
		"exports read again");
	ck_assert(daemon_has_logged(&d, "exports: no more: mem:/a "
				    "192.0.2.1(ro,"));
	ck_assert(daemon_has_logged(&d, "exports: new: mem:/a "
				    "192.0.2.2(ro,"));
	ck_assert(!daemon_has_logged(&d, "*(rw,"));
	daemon_end(&d, SIGTERM);
}

TEST(after_a_mistake_nothing_of_the_files_holds)
{
	starts(MEM);
	reloads(MEM "[log]\nlevel = err\n[server]\nthreads = 0\n",
		"g.conf:6: [server] threads: expected a number from 1 to 1024");
	ck_assert(daemon_logged(&d, "configuration and exports unchanged"));
	/* In the exports alone: the level, which is right, must not hold. */
	reloads("[log]\nlevel = err\n[exports]\nexport = mem:/a *(foo)\n",
		"foo");
	reloads(MEM, "exports read again");
	ck_assert(!daemon_has_logged(&d, "becomes"));
	ck_assert(daemon_answers(&d));
	daemon_end(&d, SIGTERM);
}

TEST(a_reload_keeps_what_the_command_line_says)
{
	write_conf(MEM "[log]\nlevel = debug\n");
	ck_assert(daemon_start(&d, ARGS("--log-level", "info")));
	reloads(MEM "[log]\nlevel = err\n", "exports read again");
	ck_assert(!daemon_has_logged(&d, "[log]"));
	daemon_end(&d, SIGTERM);
}

TEST(a_reload_changes_limits_and_closes_no_connection)
{
	int fd[5];

	starts(MEM "[server]\nmax-connections = 16\n"
	       "max-client-connections = 2\n");
	fd[0] = daemon_connect(d.tcp_port);
	fd[1] = daemon_connect(d.tcp_port);
	fd[2] = daemon_connect(d.tcp_port);
	ck_assert(is_closed(fd[2]));
	reloads(MEM "[server]\nmax-connections = 16\n"
		"max-client-connections = 3\n", "exports read again");
	fd[3] = daemon_connect(d.tcp_port);
	fd[4] = daemon_connect(d.tcp_port);
	ck_assert(is_closed(fd[4]));
	for (int i = 0; i < 4; i++)
		if (i != 2)
			ck_assert(is_open(fd[i]));
	for (int i = 0; i < 5; i++)
		close(fd[i]);
	daemon_end(&d, SIGTERM);
}

#if HAVE_SYSTEMD
/* ---- a service manager */

/* Its socket, for gannetd processes that are started after this. */
static int manager(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const struct timeval minute = { .tv_sec = 60 };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/notify", d.dir);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
	setenv("NOTIFY_SOCKET", un.sun_path, 1);
	return fd;
}

/* Waits for @state, past signs of life. */
static void manager_hears(int fd, const char *state)
{
	char text[200];
	ssize_t n;

	do {
		n = recv(fd, text, sizeof(text) - 1, 0);
		ck_assert_int_gt(n, 0);
		text[n] = '\0';
	} while (!strcmp(text, "WATCHDOG=1") && strcmp(state, text) != 0);
	ck_assert_msg(!strncmp(text, state, strlen(state)), "%s, not %s", text,
		      state);
}

TEST(a_service_manager_hears_of_the_start_each_reload_and_the_end)
{
	int fd = manager();

	starts(MEM);
	manager_hears(fd, "READY=1");
	kill(d.pid, SIGHUP);
	manager_hears(fd, "RELOADING=1\nMONOTONIC_USEC=");
	manager_hears(fd, "READY=1");
	/* After a mistake the server serves as before. */
	write_conf("nonsense\n");
	kill(d.pid, SIGHUP);
	manager_hears(fd, "RELOADING=1");
	manager_hears(fd, "READY=1");
	daemon_end(&d, SIGTERM);
	manager_hears(fd, "STOPPING=1");
	close(fd);
}

TEST(a_service_manager_hears_of_a_drain_and_its_end)
{
	int fd = manager();

	starts(MEM);
	manager_hears(fd, "READY=1");
	ctl_says(&d, "drain", 0, "drained");
	manager_hears(fd, "STATUS=Drained: takes no calls until gannetctl "
		      "resume");
	ctl_says(&d, "resume", 0, "serving");
	manager_hears(fd, "STATUS=Serving");
	daemon_end(&d, SIGTERM);
	close(fd);
}

TEST(a_watchdog_hears_signs_of_life)
{
	int fd;

	setenv("WATCHDOG_USEC", "100000", 1);
	fd = manager();
	starts(MEM);
	manager_hears(fd, "READY=1");
	for (int i = 0; i < 5; i++)
		manager_hears(fd, "WATCHDOG=1");
	daemon_end(&d, SIGTERM);
	close(fd);
}

#endif

TEST(groups_of_this_system_can_be_asked_for_by_a_reload)
{
	starts(MEM);
	reloads(MEM "manage_gids = yes\n",
		"[exports] manage-gids: 'no' becomes 'yes'\n");
	daemon_end(&d, SIGTERM);
}
