/* SPDX-License-Identifier: BSD-2-Clause */
/* tool_run - ./gannet-nfs as a separate process, on a ./gannetd. */
#include "tests/server/tool_run.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct daemon_run d;
char export[128], base[256], outfile[128];
static char errfile[128];
char *out, *err;

void make_file(const char *path, size_t size)
{
	uint32_t x = (uint32_t)size + 1;
	uint8_t *mem = malloc(size + 1);
	int fd;

	for (size_t i = 0; i < size; i++) {
		x = x * 1664525 + 1013904223;
		mem[i] = (uint8_t)(x >> 24);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, mem, size), (ssize_t)size);
	close(fd);
	free(mem);
}

static char *slurp(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *mem;

	ck_assert_msg(fd >= 0, "%s is not there", path);
	fstat(fd, &st);
	mem = malloc((size_t)st.st_size + 1);
	ck_assert_int_eq(read(fd, mem, (size_t)st.st_size), st.st_size);
	mem[st.st_size] = '\0';
	close(fd);
	if (len)
		*len = (size_t)st.st_size;
	return mem;
}

void same(const char *a, const char *b)
{
	size_t n, m;
	char *x = slurp(a, &n), *y = slurp(b, &m);

	ck_assert_uint_eq(n, m);
	ck_assert_int_eq(memcmp(x, y, n), 0);
	free(x);
	free(y);
}

int tool(const char *const args[], const char *in)
{
	const char *argv[32] = { "gannet-nfs" };
	int status, fd;
	pid_t pid;

	for (int i = 0; args[i]; i++)
		argv[i + 1] = args[i];
	pid = fork();
	if (pid == 0) {
		alarm(300);
		fd = open(outfile, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		dup2(fd, STDOUT_FILENO);
		fd = open(errfile, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		dup2(fd, STDERR_FILENO);
		fd = open(in ? in : "/dev/null", O_RDONLY);
		dup2(fd, STDIN_FILENO);
		execv("./gannet-nfs", (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	free(out);
	free(err);
	out = slurp(outfile, NULL);
	err = slurp(errfile, NULL);
	return WEXITSTATUS(status);
}

const char *url(const char *name)
{
	static char text[64][512];
	static unsigned i;
	char *t = text[i++ % 64];

	snprintf(t, sizeof(text[0]), "%s%s%s?mountport=%u", base,
		 *name ? "/" : "", name, d.tcp_port);
	return t;
}

const char *path(const char *dir, const char *name)
{
	static char text[64][512];
	static unsigned i;
	char *t = text[i++ % 64];

	snprintf(t, sizeof(text[0]), "%s/%s", dir, name);
	return t;
}

void set_base(int way, uint16_t port)
{
	if (way == WAY_TCP)
		snprintf(base, sizeof(base), "tcp://127.0.0.1:%u%s",
			 port ? port : d.tcp_port, export);
	else
		snprintf(base, sizeof(base), "rdma+iwarp://127.0.0.1:%u%s",
			 port ? port : d.rdma_port, export);
}

void start_both(int way, const char *opts, const char *settings)
{
	char line[256];

	daemon_prepare(&d);
	strcpy(d.settings, settings);
	snprintf(export, sizeof(export), "%s/export", d.dir);
	snprintf(outfile, sizeof(outfile), "%s/out", d.dir);
	snprintf(errfile, sizeof(errfile), "%s/err", d.dir);
	ck_assert_int_eq(mkdir(export, 0777), 0);
	snprintf(line, sizeof(line), "%s 127.0.0.1(%s)", export, opts);
	ck_assert(daemon_start(&d, (const char *const[]){
		"--rdma", "iwarp", "--export", line, NULL }));
	set_base(way, 0);
}

void start_with(int way, const char *opts)
{
	start_both(way, opts, "");
}

void start_as(int way, const char *settings)
{
	start_both(way, "rw,insecure", settings);
}

void start(int way)
{
	start_with(way, "rw,insecure,no_root_squash");
}

void stop(void)
{
	free(out);
	free(err);
	out = err = NULL;
	daemon_end(&d, SIGTERM);
	daemon_clean(&d);
}
