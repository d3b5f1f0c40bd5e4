/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon from outside: options, messages, signals, exit status. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"

#define MEM	"--export", "mem:/m 127.0.0.1(rw,insecure)"

static struct daemon_run d;

static void setup(void)
{
	daemon_prepare(&d);
}

static void teardown(void)
{
	daemon_clean(&d);
}

static void write_file(const char *name, const char *text)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", d.dir, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void starts(const char *const args[])
{
	ck_assert(daemon_start(&d, args));
}

static void fails(int status, const char *message, const char *const args[])
{
	ck_assert(!daemon_start(&d, args));
	ck_assert(WIFEXITED(d.status));
	ck_assert_int_eq(WEXITSTATUS(d.status), status);
	ck_assert_msg(daemon_logged(&d, message), "no '%s' in the log",
		      message);
}

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(the_daemon_serves_once_ready_and_ends_with_0_on_sigterm)
{
	starts(ARGS(MEM));
	ck_assert(daemon_answers(&d));
	daemon_end(&d, SIGTERM);
	ck_assert(WIFEXITED(d.status));
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
}

TEST(sigint_ends_the_daemon_with_a_client_connected)
{
	int fd;

	starts(ARGS(MEM));
	fd = daemon_connect(d.tcp_port);
	ck_assert_int_ge(fd, 0);
	daemon_end(&d, SIGINT);
	ck_assert(WIFEXITED(d.status) && WEXITSTATUS(d.status) == 0);
	close(fd);
}

TEST(tcp_and_udp_share_a_port)
{
	starts(ARGS(MEM));
	ck_assert_uint_ne(d.tcp_port, 0);
	ck_assert_uint_eq(d.tcp_port, d.udp_port);
	daemon_end(&d, SIGTERM);
}

TEST(a_wrong_option_says_what_was_expected_and_exits_2)
{
	fails(2, "--threads 0: expected a number from 1",
	      ARGS("--threads", "0"));
	fails(2, "--port 70000: expected a number", ARGS("--port", "70000"));
	fails(2, "--port 12x: expected a number", ARGS("--port", "12x"));
	fails(2, "--rdma maybe: expected auto, off, or one or more of verbs,"
	      "iwarp", ARGS("--rdma", "maybe"));
	fails(2, "--rdma iwarp,iwarp: expected", ARGS("--rdma", "iwarp,iwarp"));
	fails(2, "--log-level loud: expected err, warn, info or debug",
	      ARGS("--log-level", "loud"));
	fails(2, "--state-dir : expected a directory", ARGS("--state-dir", ""));
	fails(2, "--bind foo: expected an IPv4 or IPv6 address",
	      ARGS("--bind", "foo"));
	fails(2, "--bind 127.0.0.2: it is given twice",
	      ARGS(MEM, "--bind", "127.0.0.1", "--bind", "127.0.0.2"));
	fails(2, "--bind 127.0.0.1:2049: expected", ARGS("--bind",
	      "127.0.0.1:2049"));
	fails(2, "option '--port' requires", ARGS("--port"));
	fails(2, "is not an option", ARGS("/srv"));
	fails(2, "spin in [server] of gannet.conf(5)", ARGS("--spin", "3"));
	fails(2, "inline in [rdma] of gannet.conf(5)",
	      ARGS("--rdma-inline=4096"));
	fails(2, "crc in [iwarp] of gannet.conf(5)", ARGS("--no-iwarp-crc"));
	fails(2, "unrecognized option", ARGS("--no-such"));
	strcpy(d.settings, "[rdma]\ninline = 1023\n");
	fails(2, "[rdma] inline: expected a number from 1024 to 65536",
	      ARGS(MEM));
}

/* Asks as siw does, which wants no CRCs; true if the answer wants them. */
static bool wants_crcs(void)
{
	static const uint8_t ask[20] = "MPA ID Req Frame\0\1\0\0";
	uint8_t answer[20];
	int fd = daemon_connect(d.rdma_port);

	ck_assert_int_eq(send(fd, ask, sizeof(ask), MSG_NOSIGNAL),
			 sizeof(ask));
	ck_assert_int_eq(recv(fd, answer, sizeof(answer), MSG_WAITALL),
			 sizeof(answer));
	close(fd);
	ck_assert_mem_eq(answer, "MPA ID Rep Frame", 16);
	return answer[16] & 0x40;
}

/* RFC 5044 section 4.4. */
TEST(iwarp_has_crcs_unless_the_administrator_says_otherwise)
{
	starts(ARGS(MEM));
	ck_assert(wants_crcs());
	daemon_end(&d, SIGTERM);
	strcpy(d.settings, "[iwarp]\ncrc = no\n");
	starts(ARGS(MEM));
	ck_assert(!wants_crcs());
	daemon_end(&d, SIGTERM);
}

TEST(an_unused_port_option_is_logged)
{
	strcpy(d.settings, "[iwarp]\nport = 0\n");
	starts(ARGS(MEM, "--rdma", "iwarp"));
	ck_assert(daemon_logged(&d, "gannetd: [iwarp] port is not used"));
	daemon_end(&d, SIGTERM);
}

/* Without a device it goes no further than the options. */
TEST(both_kinds_of_rdma_are_named_in_any_order)
{
	fails(2, "--port x: expected", ARGS("--rdma", "iwarp,verbs", "--port",
	      "x"));
	fails(2, "--port x: expected", ARGS("--rdma", "verbs,iwarp", "--port",
	      "x"));
}

TEST(a_mistake_in_the_exports_names_file_and_line_and_exits_1)
{
	char file[160];

	snprintf(file, sizeof(file), "%s/exports", d.dir);
	write_file("exports", "# one\nmem:/a *(rw)\nmem:/b *(rw,mp)\n");
	fails(1, "exports:3:", ARGS("--exports-file", file));
	fails(1, "No such file", ARGS("--exports-file", "/no/such/file"));
	fails(1, "--export: option 'foo'", ARGS("--export", "/ *(foo)"));
	fails(1, "--export: posix has no option 'color=red'; expected",
	      ARGS("--export", "posix,async,color=red:/"));
	fails(1, "--export: idle=soon: expected a number",
	      ARGS("--export", "posix,idle=soon:/"));
}

TEST(a_foreign_listen_address_is_reported)
{
	fails(1, "this machine has no such address; see --bind",
	      ARGS(MEM, "--bind", "203.0.113.77"));
}

TEST(a_state_directory_that_others_write_to_is_warned_of)
{
	char dir[160];

	snprintf(dir, sizeof(dir), "%s/state", d.dir);
	starts(ARGS(MEM));
	ck_assert(!daemon_has_logged(&d, "every user of this machine"));
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(chmod(dir, 0777), 0);
	starts(ARGS(MEM));
	ck_assert(daemon_logged(&d, "every user of this machine may write "
				"to it"));
	daemon_end(&d, SIGTERM);
}

TEST(a_bad_exports_file_is_reported)
{
	char file[160];

	snprintf(file, sizeof(file), "%s/exports", d.dir);
	fails(1, "there is no file *.exports in this directory",
	      ARGS("--exports-file", d.dir));
	write_file("exports", "# nothing yet\n");
	starts(ARGS("--exports-file", file));
	ck_assert(daemon_logged(&d, "exports: there is no export in it"));
	daemon_end(&d, SIGTERM);
	write_file("exports", "\nmem,color=red:/m *\n");
	fails(1, "exports:2: mem has no option 'color=red'; expected",
	      ARGS("--exports-file", file));
	snprintf(file, sizeof(file), "%s/closed.d", d.dir);
	ck_assert_int_eq(mkdir(file, 0), 0);
	d.no_override = true;
	fails(1, "closed.d: Permission denied", ARGS("--exports-file", file));
}

TEST(a_closed_directory_is_warned_of_and_the_others_are_served)
{
	char dir[160], file[160], text[512], message[512];

	snprintf(dir, sizeof(dir), "%s/closed", d.dir);
	snprintf(file, sizeof(file), "%s/exports", d.dir);
	snprintf(text, sizeof(text), "mem:/m *\n%s *(rw)\n", dir);
	snprintf(message, sizeof(message), "exports:2: '%s': user %u", dir,
		 geteuid());
	write_file("exports", text);
	ck_assert_int_eq(mkdir(dir, 0), 0);
	d.no_override = true;
	starts(ARGS("--exports-file", file));
	ck_assert(daemon_logged(&d, message));
	ck_assert(daemon_answers(&d));
	daemon_end(&d, SIGTERM);
}

TEST(an_export_without_clients_serves_only_this_machine_and_logs_it)
{
	char message[256];

	snprintf(message, sizeof(message), "%s: no client is named, so only "
		 "this machine may mount it, and only to read", d.dir);
	starts(ARGS("--export", d.dir));
	ck_assert(daemon_logged(&d, message));
	daemon_end(&d, SIGTERM);
}

TEST(a_relative_state_directory_is_made_for_us_alone)
{
	char path[160], relative[320];
	struct stat st;

	/* From here, wherever this is, to the test's directory. */
	ck_assert_ptr_nonnull(getcwd(path, sizeof(path)));
	relative[0] = '\0';
	for (const char *p = path; (p = strchr(p, '/')); p++)
		strcat(relative, "../");
	snprintf(path, sizeof(path), "%s/own", d.dir);
	strcat(relative, path + 1);
	starts(ARGS(MEM, "--state-dir", relative));
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	daemon_end(&d, SIGTERM);
}

/* The home of user "nobody" does not exist; /tmp would, but others write
 * there. */
TEST(without_a_home_the_state_is_not_put_where_others_write)
{
	static const char command[] =
		"s='setpriv --reuid 65534 --regid 65534 --clear-groups';"
		"[ $(id -u) = 0 ] && $s test -x ./gannetd || exit 0;"
		"$s env -u HOME -u XDG_STATE_HOME ./gannetd --foreground "
		"--no-rpcbind --port 0 --rdma off --export '/ *(foo)' 2>&1 | "
		"grep -q 'state directory /nonexistent/.local/state/gannet: '";

	ck_assert_int_eq(system(command), 0);
}

TEST(a_port_in_use_is_reported_and_exits_1)
{
	struct daemon_run other;
	char port[8];

	starts(ARGS(MEM));
	snprintf(port, sizeof(port), "%u", d.tcp_port);
	daemon_prepare(&other);
	ck_assert(!daemon_start(&other, ARGS(MEM, "--port", port)));
	ck_assert_int_eq(WEXITSTATUS(other.status), 1);
	ck_assert(daemon_logged(&other, "Address already in use"));
	daemon_clean(&other);
	daemon_end(&d, SIGTERM);
}

TEST(a_state_directory_in_use_is_refused_until_its_server_is_killed)
{
	struct daemon_run other;

	starts(ARGS(MEM));
	other = d;
	ck_assert(!daemon_start(&other, ARGS(MEM)));
	ck_assert_int_eq(WEXITSTATUS(other.status), 1);
	ck_assert(daemon_logged(&other, "another gannetd uses it"));
	daemon_end(&d, SIGKILL);
	starts(ARGS(MEM));
	daemon_end(&d, SIGTERM);
}

TEST(sighup_reads_the_exports_again_and_keeps_them_after_a_mistake)
{
	char file[160];

	snprintf(file, sizeof(file), "%s/exports", d.dir);
	write_file("exports", "mem:/a *(rw)\n");
	starts(ARGS("--exports-file", file));
	write_file("exports", "mem:/a *(rw)\nmem:/b *(ro)\n");
	kill(d.pid, SIGHUP);
	ck_assert(daemon_logged(&d, "exports read again"));
	write_file("exports", "mem:/a *(nonsense)\n");
	kill(d.pid, SIGHUP);
	ck_assert(daemon_logged(&d, "exports:1:"));
	ck_assert(daemon_logged(&d, "exports unchanged"));
	ck_assert(daemon_answers(&d));
	daemon_end(&d, SIGTERM);
}

/* The file is a pipe without a writer: to open it takes for ever, as a
 * directory can on a disk that hangs. */
TEST(a_reload_that_hangs_stops_nothing_and_not_the_end)
{
	char file[160];

	snprintf(file, sizeof(file), "%s/exports", d.dir);
	write_file("exports", "mem:/a *(rw)\n");
	starts(ARGS("--exports-file", file));
	ck_assert_int_eq(unlink(file), 0);
	ck_assert_int_eq(mkfifo(file, 0600), 0);
	kill(d.pid, SIGHUP);
	kill(d.pid, SIGHUP);
	ck_assert(daemon_answers(&d));
	kill(d.pid, SIGUSR1);
	ck_assert(daemon_logged(&d, "workers of common: 0 of "));
	kill(d.pid, SIGTERM);
	ck_assert(daemon_logged(&d, "ending: "));
	daemon_end(&d, SIGTERM);
	ck_assert(WIFEXITED(d.status));
	ck_assert_int_eq(WEXITSTATUS(d.status), 1);
	/* Its state directory is free. */
	starts(ARGS(MEM));
	daemon_end(&d, SIGTERM);
}

TEST(sighup_tells_when_an_exported_path_is_another_directory)
{
	char dir[160], away[170], file[160], line[200];

	snprintf(file, sizeof(file), "%s/exports", d.dir);
	snprintf(dir, sizeof(dir), "%s/tree", d.dir);
	snprintf(away, sizeof(away), "%s.away", dir);
	snprintf(line, sizeof(line), "%s *(rw)\n", dir);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	write_file("exports", line);
	starts(ARGS("--exports-file", file));
	kill(d.pid, SIGHUP);
	ck_assert(daemon_logged(&d, "exports read again"));
	ck_assert_int_eq(rename(dir, away), 0);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	kill(d.pid, SIGHUP);
	ck_assert(daemon_logged(&d, "is another directory than the one"));
	ck_assert(daemon_logged(&d, "exports unchanged"));
	write_file("exports", "mem:/a *(rw)\n");
	kill(d.pid, SIGHUP);
	ck_assert(daemon_logged(&d, "exports read again"));
	daemon_end(&d, SIGTERM);
}

TEST(connections_leave_descriptors_for_files)
{
	struct rlimit lim = { 128, 128 };
	int fd[6];
	char c;

	/* For this test's process, and its children. */
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	starts(ARGS(MEM));
	ck_assert(daemon_logged(&d, "20 connections at most, not 4096"));
	for (int i = 0; i < 6; i++)
		fd[i] = daemon_connect(d.tcp_port);
	/* A peer can have a quarter of them. */
	ck_assert_int_eq(recv(fd[5], &c, 1, 0), 0);
	ck_assert_int_eq(recv(fd[4], &c, 1, MSG_DONTWAIT), -1);
	for (int i = 0; i < 6; i++)
		close(fd[i]);
	daemon_end(&d, SIGTERM);
}

TEST(sigusr1_logs_the_counters_at_any_level)
{
	starts(ARGS(MEM, "--log-level", "err"));
	ck_assert(daemon_answers(&d));
	kill(d.pid, SIGUSR1);
	ck_assert(daemon_logged(&d, "nfs v3 NULL: 1 calls, 0 failed"));
	ck_assert(daemon_logged(&d, "workers of common: 0 of "));
	daemon_end(&d, SIGTERM);
}

/* Returns how often a sleeping thread has gone to sleep, by /proc; -1: it is
 * awake or gone. */
static long sleeps_of(int tid)
{
	char path[64], line[128], state = '?';
	long times = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", d.pid, tid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "State: %c", &state);
		sscanf(line, "voluntary_ctxt_switches: %ld", &times);
	}
	if (f)
		fclose(f);
	return state == 'S' ? times : -1;
}

/* The only worker, once it lies asleep and does not stir: at start-up it also
 * waits for locks and memory, and can hold some. */
static int sleeping_worker(void)
{
	int tid, calm = 0;
	long times, before = -1;

	for (int i = 0; i < 6000 && calm < 20; i++) {
		tid = daemon_thread(&d, "worker/", 0);
		times = tid ? sleeps_of(tid) : -1;
		calm = times >= 0 && times == before ? calm + 1 : 0;
		before = times;
		/* It sleeps for a while, however often it is looked at. */
		pause_on_purpose(10000);
	}
	ck_assert_int_eq(calm, 20);
	return tid;
}

/* Stops the worker, as if it waited for its file system. */
static bool stop_worker(void)
{
	int tid = sleeping_worker();

	return !ptrace(PTRACE_SEIZE, tid, NULL, NULL) &&
	       !ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) &&
	       waitpid(tid, NULL, __WALL) == tid;
}

/* The end of it and of the threads that we hold. */
static bool ended_by_itself(void)
{
	int status;

	if (AWAIT(waitpid(-1, &status, __WALL | WNOHANG) == d.pid &&
		  (WIFEXITED(status) || WIFSIGNALED(status)))) {
		d.status = status;
		return true;
	}
	kill(d.pid, SIGKILL);
	return false;
}

TEST(a_call_that_hangs_does_not_keep_it)
{
	/* EXPORT of MOUNT, which is for a worker. */
	uint32_t words[] = { 0x80000028, 1, 0, 2, 100005, 3, 5, 0, 0, 0, 0 };
	int fd;

	starts(ARGS(MEM, "--threads", "1"));
	if (!stop_worker()) {		/* not every user may trace */
		daemon_end(&d, SIGTERM);
		return;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = htonl(words[i]);
	fd = daemon_connect(d.tcp_port);
	ck_assert_int_eq(write(fd, words, sizeof(words)), sizeof(words));
	ck_assert(AWAIT_EACH(100000, kill(d.pid, SIGUSR1) == 0 &&
		  daemon_has_logged(&d, "of 1 busy, 1 calls wait")));
	kill(d.pid, SIGTERM);
	ck_assert(daemon_logged(&d, "finishing the calls in progress"));
	kill(d.pid, SIGTERM);
	ck_assert(ended_by_itself());
	ck_assert(WIFEXITED(d.status));
	ck_assert_int_eq(WEXITSTATUS(d.status), 1);
	close(fd);
}

TEST(the_pid_file_is_there_while_it_runs)
{
	char path[160];
	struct stat st;
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/pid", d.dir);
	starts(ARGS(MEM, "--pid-file", path));
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%d", &pid), 1);
	fclose(f);
	ck_assert_int_eq(pid, d.pid);
	/* A user who could write it could have another process killed. */
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0644);
	daemon_end(&d, SIGTERM);
	ck_assert_int_ne(access(path, F_OK), 0);
}

TEST(without_foreground_the_command_returns_when_it_is_ready)
{
	char command[512], path[160];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/pid", d.dir);
	snprintf(command, sizeof(command), "./gannetd --port 0 --rdma-port 0 "
		 "--no-rpcbind --state-dir %s/state --pid-file %s "
		 "--export 'mem:/m 127.0.0.1(rw)' > %s/log 2>&1", d.dir, path,
		 d.dir);
	ck_assert_int_eq(system(command), 0);
	ck_assert(daemon_logged(&d, "ready"));
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%d", &pid), 1);
	fclose(f);
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert(daemon_logged(&d, "ended"));
}

TEST(a_failing_start_in_the_background_exits_1)
{
	char command[512];

	snprintf(command, sizeof(command), "./gannetd --port 0 --state-dir "
		 "%s/state --export '/ *(foo)' > %s/log 2>&1", d.dir, d.dir);
	ck_assert_int_eq(WEXITSTATUS(system(command)), 1);
}

TEST(help_and_version_exit_0)
{
	ck_assert_int_eq(system("./gannetd --help | grep -q -- --export"), 0);
	/* It fits a terminal, wherever files are. */
	ck_assert_int_eq(system("./gannetd --help | grep -v /gannet | "
				"grep -q '.\\{81\\}'") >> 8, 1);
	ck_assert_int_eq(system("./gannetd --version | grep -q ^gannetd"), 0);
	/* Its name, not where it lies. */
	ck_assert_int_eq(system("./gannetd --no-such 2>&1 | "
				"grep -q '^gannetd: unrecognized'"), 0);
}
