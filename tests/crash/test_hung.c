/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The disk of one export hangs.
 *
 * No call makes the only poller wait for it: after each call of the hung
 * export, a call of a healthy export is answered on another connection.  And no
 * reload waits for it, nor the end of the server.
 *
 * While ext4 commits its journal, changes of inodes wait: see disk.h for how it
 * comes to hang.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/crash/disk.h"
#include "tests/crash/wire.h"
#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"

#define NFILES	6

static struct daemon_run d;
static struct disk disk;
static char mnt[96], well[96];
static struct wire hung, fine;		/* connections */
static struct model_fh hung_root, fine_root, files[NFILES], link_fh;
static unsigned answered;

static char *path_of(const char *dir, const char *name)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void make_file(const char *dir, const char *name)
{
	int fd = open(path_of(dir, name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "data", 4), 4);
	ck_assert_int_eq(fsync(fd), 0);
	close(fd);
}

static char *file_name(int i)
{
	static char name[16];

	snprintf(name, sizeof(name), "f%d", i);
	return name;
}

static void start_server(void)
{
	char a[200], b[200];
	const char *args[] = { "--pollers", "1", "--export", a, "--export", b,
			       NULL };

	snprintf(a, sizeof(a), "posix,idle=600000:%s "
		 "127.0.0.1(rw,insecure,no_root_squash)", mnt);
	snprintf(b, sizeof(b), "%s 127.0.0.1(rw,insecure,no_root_squash)",
		 well);
	ck_assert(daemon_start(&d, args));
}

static void look_up_all(void)
{
	struct wire_attr a;
	uint8_t data[16];
	struct wire m;

	ck_assert(wire_open(&m, d.tcp_port, MOUNT_PROGRAM));
	ck_assert(wire_mount(&m, mnt, &hung_root));
	ck_assert(wire_mount(&m, well, &fine_root));
	wire_close(&m);
	ck_assert(wire_open(&hung, d.tcp_port, NFS_PROGRAM));
	ck_assert(wire_open(&fine, d.tcp_port, NFS_PROGRAM));
	for (int i = 0; i < NFILES; i++) {
		a = wire_lookup(&hung, &hung_root, file_name(i));
		ck_assert_int_eq(a.status, 0);
		files[i] = a.fh;
		ck_assert_int_eq(wire_read(&hung, &a.fh, data, 4), 0);
	}
	a = wire_lookup(&hung, &hung_root, "link");
	ck_assert_int_eq(a.status, 0);
	link_fh = a.fh;
}

static char state_of(pid_t pid)
{
	char path[64], line[256] = "", *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f || !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	at = strrchr(line, ')');
	return at ? at[2] : '?';
}

/* A commit of the journal that does not end, with all inodes in it. */
static pid_t hang(void)
{
	int fd = open(path_of(mnt, file_name(1)), O_WRONLY), other;
	pid_t pid;

	ck_assert_int_ge(fd, 0);
	/* A file that was just written is due for a new time of last access. */
	other = open(path_of(mnt, file_name(0)), O_WRONLY);
	ck_assert_int_eq(pwrite(other, "DATA", 4, 0), 4);
	close(other);
	/* To sync this one means the journal alone. */
	ck_assert_int_eq(fchmod(fd, 0600), 0);
	ck_assert_int_eq(unlink(path_of(mnt, file_name(3))), 0);
	disk_hang(&disk);
	pid = fork();
	if (pid == 0) {
		fsync(fd);
		_exit(0);
	}
	close(fd);
	EVENTUALLY(state_of(pid) == 'D');
	/* Let the kernel's journal reach the disk. */
	pause_on_purpose(200000);
	return pid;
}

static void count(struct rpc_context *rpc, int status, void *data, void *arg)
{
	(void)rpc;
	(void)status;
	(void)data;
	(void)arg;
	answered++;
}

/* Calls of the hung export wait or not; the other export goes on. */
static void others_go_on(const char *what)
{
	struct wire_attr a;

	wire_serve(&hung, 1, 0);
	/* As a client that looks for replies now and then. */
	pause_on_purpose(20000);
	wire_serve(&hung, 1, 0);
	a = wire_getattr(&fine, &fine_root);
	ck_assert_msg(a.status == 0, "%s stopped the poller", what);
}

static nfs_fh3 fh_of(const struct model_fh *fh)
{
	return (nfs_fh3){ .data = { fh->len, (char *)(uintptr_t)fh->data } };
}

#define SEND(proc, ...) do { \
		__VA_ARGS__; \
		ck_assert_int_eq(rpc_nfs3_##proc##_async(hung.rpc, count, &a, \
							 NULL), 0); \
		others_go_on(#proc); \
	} while (0)

static void send_all(void)
{
	for (int i = 0; i < NFILES; i++) {
		nfs_fh3 fh = fh_of(&files[i]);

		SEND(getattr, GETATTR3args a = { fh });
		SEND(access, ACCESS3args a = { fh, 0x3f });
		SEND(read, READ3args a = { fh, 0, 4 });
		SEND(read, READ3args a = { fh, 0, 1u << 20 });
		SEND(lookup, LOOKUP3args a = { { fh_of(&hung_root),
						 file_name(i) } });
	}
	SEND(lookup, LOOKUP3args a = { { fh_of(&hung_root), "sub" } });
	SEND(lookup, LOOKUP3args a = { { fh_of(&hung_root), "none" } });
	SEND(lookup, LOOKUP3args a = { { fh_of(&hung_root), ".." } });
	SEND(readlink, READLINK3args a = { fh_of(&link_fh) });
	SEND(readdirplus, READDIRPLUS3args a = { .dir = fh_of(&hung_root),
		.dircount = 4096, .maxcount = 16384 });
	SEND(fsstat, FSSTAT3args a = { fh_of(&hung_root) });
	SEND(fsinfo, FSINFO3args a = { fh_of(&hung_root) });
	SEND(pathconf, PATHCONF3args a = { fh_of(&hung_root) });
	SEND(write, WRITE3args a = { .file = fh_of(&files[4]), .count = 4,
		.stable = UNSTABLE, .data = { 4, (char *)"abcd" } });
	SEND(commit, COMMIT3args a = { .file = fh_of(&files[4]) });
	SEND(setattr, SETATTR3args a = { .object = fh_of(&files[4]) });
	SEND(create, CREATE3args a = { .where = { fh_of(&hung_root),
						  (char *)"new" } });
}

#define NSENT	(5 * NFILES + 12)

static void make_disk(void)
{
	daemon_prepare(&d);
	snprintf(mnt, sizeof(mnt), "%s/mnt", d.dir);
	snprintf(well, sizeof(well), "%s/well", d.dir);
	ck_assert_int_eq(mkdir(mnt, 0755), 0);
	ck_assert_int_eq(mkdir(well, 0755), 0);
	disk_start(&disk, d.dir, "mke2fs -q -F -t ext4 -E nodiscard $1");
	disk_mount(&disk, "ext4", mnt);
	for (int i = 0; i < NFILES; i++)
		make_file(mnt, file_name(i));
	ck_assert_int_eq(mkdir(path_of(mnt, "sub"), 0755), 0);
	ck_assert_int_eq(symlink("f0", path_of(mnt, "link")), 0);
}

static void remove_disk(void)
{
	disk_unmount(mnt);
	disk_stop(&disk);
	daemon_clean(&d);
}

TEST_CASE(.timeout = 180);

TEST(a_poller_waits_for_no_disk)
{
	pid_t stuck;

	make_disk();
	start_server();
	look_up_all();
	stuck = hang();
	send_all();
	disk_go(&disk);
	while (answered < NSENT)
		wire_serve(&hung, 1, 100);
	ck_assert_int_eq(waitpid(stuck, NULL, 0), stuck);
	wire_close(&hung);
	wire_close(&fine);
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(d.status, 0);
	remove_disk();
}

/* ---- reloads, and the end */

static void write_exports(bool hung_too, const char *more)
{
	FILE *f = fopen(path_of(d.dir, "exports"), "w");

	ck_assert_ptr_nonnull(f);
	if (hung_too)
		fprintf(f, "posix,idle=1000:%s *(rw,insecure)\n", mnt);
	fprintf(f, "%s *(rw,insecure)\n%s\n", well, more);
	ck_assert_int_eq(fclose(f), 0);
}

static bool mounts(const char *path)
{
	struct model_fh root;
	struct wire m;
	bool ok;

	ck_assert(wire_open(&m, d.tcp_port, MOUNT_PROGRAM));
	ok = wire_mount(&m, path, &root);
	wire_close(&m);
	return ok;
}

/* The sweeper closes the file that hang() removed, so it frees blocks. */
static bool sweeper_hangs(void)
{
	return daemon_thread(&d, "posix-sweep", 'D') > 0;
}

/* The sweeper is in the midst of that, so the tree can't be unmounted. */
static void reloads_go_on(void)
{
	write_exports(false, "mem:/one *(rw,insecure)");
	kill(d.pid, SIGHUP);
	EVENTUALLY(mounts("/one"));
	ck_assert(!mounts(mnt));
	write_exports(false, "mem:/two *(rw,insecure)");
	kill(d.pid, SIGHUP);
	EVENTUALLY(mounts("/two"));
	/* The directory is to come back, and can't be mounted twice. */
	write_exports(true, "mem:/three *(rw,insecure)");
	kill(d.pid, SIGHUP);
	EVENTUALLY(mounts("/three"));
	write_exports(true, "mem:/four *(rw,insecure)");
	kill(d.pid, SIGHUP);
	EVENTUALLY(mounts("/four"));
	ck_assert(sweeper_hangs());
}

TEST(no_reload_waits_for_a_disk_and_the_end_is_in_time)
{
	struct daemon_run other;
	pid_t stuck;

	make_disk();
	write_exports(true, "");
	ck_assert(daemon_start(&d, (const char *const[]){ "--exports-file",
			       path_of(d.dir, "exports"), NULL }));
	look_up_all();
	stuck = hang();
	EVENTUALLY(sweeper_hangs());
	reloads_go_on();
	kill(d.pid, SIGTERM);
	ck_assert(daemon_logged(&d, "ending: "));
	kill(d.pid, SIGTERM);
	/* The kernel keeps the process, but another server can start. */
	other = d;
	write_exports(false, "");
	EVENTUALLY(daemon_start(&other, (const char *const[]){
		"--exports-file", path_of(d.dir, "exports"), NULL }));
	ck_assert(daemon_alive(&d));
	daemon_end(&other, SIGTERM);
	disk_go(&disk);
	ck_assert_int_eq(waitpid(stuck, NULL, 0), stuck);
	EVENTUALLY(!daemon_alive(&d));
	wire_close(&hung);
	wire_close(&fine);
	remove_disk();
}

int main(void)
{
	const char *missing = disk_missing();

	if (missing || system("command -v mke2fs >/dev/null") != 0) {
		printf("%s\n", missing ? missing : "needs mke2fs");
		return 77;
	}
	return run_tests();
}
