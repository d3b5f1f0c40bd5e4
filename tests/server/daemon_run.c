/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon_run - gannetd as a separate process, for tests. */
#include "tests/server/daemon_run.h"

#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/pause.h"
#include "tests/unit/spread.h"

#define MAX_ARGS	32

void daemon_prepare(struct daemon_run *d)
{
	memset(d, 0, sizeof(*d));
	d->kept_port = -1;
	strcpy(d->dir, "/tmp/gannet-test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(d->dir));
	spread_subdirectories(d->dir);
}

void daemon_keep_port(struct daemon_run *d)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int one = 1;

	/* Bound and not listening: it lets a listener that reuses addresses
	 * have the port, and keeps it from all that ask for any port. */
	d->kept_port = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(d->kept_port, 0);
	setsockopt(d->kept_port, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	ck_assert_int_eq(bind(d->kept_port, (struct sockaddr *)&at, len), 0);
	getsockname(d->kept_port, (struct sockaddr *)&at, &len);
	d->tcp_port = ntohs(at.sin_port);
}

static void child(struct daemon_run *d, const char *const args[], int out)
{
	char state[96], log[96], conf[96];
	const char *argv[MAX_ARGS] = { "gannetd", "--foreground", "--port",
		"0", "--rdma", "iwarp", "--rdma-port", "0", "--no-rpcbind",
		"--state-dir", state };
	int n = d->no_state_dir ? 9 : 11, fd;

	snprintf(state, sizeof(state), "%s/state", d->dir);
	snprintf(log, sizeof(log), "%s/log", d->dir);
	if (*d->settings) {
		snprintf(conf, sizeof(conf), "%s/gannet.conf", d->dir);
		argv[n++] = "--config";
		argv[n++] = conf;
	}
	while (*args && n < MAX_ARGS - 1)
		argv[n++] = *args++;
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(out, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (d->no_override) {
		prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE);
		prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH);
	}
	if (d->uid && (setgroups(0, NULL) < 0 || setgid(d->uid) < 0 ||
		       setuid(d->uid) < 0))
		_exit(126);
	execv("./gannetd", (char *const *)(uintptr_t)argv);
	_exit(127);
}

static void write_settings(const struct daemon_run *d)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "%s/gannet.conf", d->dir);
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	fputs(d->settings, f);
	ck_assert_int_eq(fclose(f), 0);
}

bool daemon_start(struct daemon_run *d, const char *const args[])
{
	char line[128];
	bool ready = false;
	int fds[2];
	FILE *f;

	if (*d->settings)
		write_settings(d);
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	d->pid = fork();
	ck_assert_int_ge(d->pid, 0);
	if (d->pid == 0)
		child(d, args, fds[1]);
	close(fds[1]);
	f = fdopen(fds[0], "r");
	while (!ready && fgets(line, sizeof(line), f)) {
		sscanf(line, "ready: tcp %hu", &d->tcp_port);
		sscanf(line, "ready: udp %hu", &d->udp_port);
		sscanf(line, "ready: iwarp %hu", &d->rdma_port);
		ready = !strcmp(line, "ready\n");
	}
	fclose(f);
	if (!ready)
		waitpid(d->pid, &d->status, 0);
	return ready;
}

bool daemon_alive(struct daemon_run *d)
{
	return waitpid(d->pid, &d->status, WNOHANG) == 0;
}

void daemon_end(struct daemon_run *d, int sig)
{
	kill(d->pid, sig);
	if (AWAIT(waitpid(d->pid, &d->status, WNOHANG) == d->pid))
		return;
	kill(d->pid, SIGKILL);
	waitpid(d->pid, &d->status, 0);
	ck_abort_msg("gannetd did not end");
}

pid_t daemon_thread(struct daemon_run *d, const char *name, char state)
{
	char path[320], comm[17], is;
	struct dirent *e;
	pid_t tid = 0;
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task", d->pid);
	dir = opendir(path);
	while (dir && !tid && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", d->pid,
			 e->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%*d (%16[^)]) %c", comm, &is) == 2 &&
		    !strncmp(comm, name, strlen(name)) &&
		    (!state || is == state))
			tid = atoi(e->d_name);
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return tid;
}

bool daemon_has_logged(struct daemon_run *d, const char *text)
{
	char path[96], line[2048];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", d->dir);
	f = fopen(path, "r");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return found;
}

bool daemon_logged(struct daemon_run *d, const char *text)
{
	return AWAIT_EACH(5000, daemon_has_logged(d, text));
}

void daemon_clean(struct daemon_run *d)
{
	char command[96];

	if (d->kept_port >= 0)
		close(d->kept_port);
	snprintf(command, sizeof(command), "rm -rf %s", d->dir);
	ck_assert_int_eq(system(command), 0);
}

int daemon_connect(uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval timeout = { 60, 0 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (struct sockaddr *)&sin, sizeof(sin))) {
		close(fd);
		return -1;
	}
	return fd;
}

bool daemon_answers(struct daemon_run *d)
{
	/* Record mark, xid, CALL, version 2, NFS 3 NULL, two empty auths. */
	static const uint32_t call[] = { 0x80000028, 0x67616e6e, 0, 2, 100003,
					 3, 0, 0, 0, 0, 0 };
	uint32_t wire[11], reply[7];
	int fd = daemon_connect(d->tcp_port);
	ssize_t n = 0;

	if (fd < 0)
		return false;
	for (int i = 0; i < 11; i++)
		wire[i] = htonl(call[i]);
	if (send(fd, wire, sizeof(wire), MSG_NOSIGNAL) == sizeof(wire))
		n = recv(fd, reply, sizeof(reply), MSG_WAITALL);
	close(fd);
	return n == sizeof(reply) && ntohl(reply[1]) == call[1] &&
		reply[6] == 0;
}

uint16_t daemon_web_port(struct daemon_run *d)
{
	char name[96], line[512];
	uint16_t port = 0;
	FILE *f;

	ck_assert(daemon_logged(d, "metrics are at"));
	snprintf(name, sizeof(name), "%s/log", d->dir);
	f = fopen(name, "r");
	while (f && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, "metrics are at http://");

		if (at)
			sscanf(at, "metrics are at http://%*[0-9.]:%hu",
			       &port);
	}
	if (f)
		fclose(f);
	ck_assert_uint_ne(port, 0);
	return port;
}

void daemon_fetch(uint16_t port, const char *bytes, size_t len, char *out,
		  size_t size)
{
	int fd = daemon_connect(port);
	size_t at = 0;
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	send(fd, bytes, len, MSG_NOSIGNAL);
	while ((n = recv(fd, out + at, size - 1 - at, 0)) > 0)
		at += (size_t)n;
	out[at] = '\0';
	close(fd);
}
