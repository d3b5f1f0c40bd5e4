/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gannetd without privileges is killed while a client writes a file whose
 * mode forbids that: the answers that the client gets after the restart.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/daemon_run.h"
#include "tests/server/nfs_client.h"
#include "tests/unit/runner.h"

#define SAFE	"stable"
#define SAYS	"can't open it again"

static struct daemon_run d;
static char dir[96], file[112];
static struct nfs_client c;
static nfs_fh3 top_dir, fh;

static int uid(void)
{
	return geteuid() ? (int)geteuid() : USER_UID;
}

/* gannetd and a client that is the same user. */
static void start(void)
{
	char export[160];

	snprintf(export, sizeof(export), "%s 127.0.0.1(rw,insecure)", dir);
	ck_assert(daemon_start(&d, (const char *const[]){
		"--export", export, NULL }));
	nfs_client_open(&c, d.tcp_port, NFS_PROGRAM, NFS_V3, uid());
}

static void stop(int sig)
{
	nfs_client_close(&c);
	daemon_end(&d, sig);
}

static void mount_top(void)
{
	struct nfs_client m;
	mountres3 r;

	nfs_client_open(&m, d.tcp_port, MOUNT_PROGRAM, MOUNT_V3, uid());
	ck_assert_int_eq(nfs_try(&m, rpc_mount3_mnt_async, dir, &r), 0);
	ck_assert_int_eq(r.fhs_status, MNT3_OK);
	top_dir.data.data_len =
		r.mountres3_u.mountinfo.fhandle.fhandle3_len;
	top_dir.data.data_val = malloc(top_dir.data.data_len);
	memcpy(top_dir.data.data_val,
	       r.mountres3_u.mountinfo.fhandle.fhandle3_val,
	       top_dir.data.data_len);
	nfs_client_close(&m);
}

static void create(int mode)
{
	CREATE3args a = { .where = { top_dir, (char *)(uintptr_t)"f" },
			  .how.mode = GUARDED };
	CREATE3res r;
	nfs_fh3 made;

	a.how.createhow3_u.g_obj_attributes.mode.set_it = 1;
	a.how.createhow3_u.g_obj_attributes.mode.set_mode3_u.mode =
		(mode3)mode;
	nfs_call(&c, create, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	made = r.CREATE3res_u.resok.obj.post_op_fh3_u.handle;
	fh.data.data_len = made.data.data_len;
	fh.data.data_val = malloc(made.data.data_len);
	memcpy(fh.data.data_val, made.data.data_val, made.data.data_len);
}

static int write_at(uint64_t off, const char *data, stable_how how,
		    uint64_t *verf)
{
	WRITE3args a = { .file = fh, .offset = off,
			 .count = (count3)strlen(data), .stable = how,
			 .data = { (u_int)strlen(data),
				   (char *)(uintptr_t)data } };
	WRITE3res r;

	nfs_call(&c, write, &a, &r);
	if (r.status == NFS3_OK)
		memcpy(verf, r.WRITE3res_u.resok.verf, sizeof(*verf));
	return r.status;
}

static int commit(uint64_t *verf)
{
	COMMIT3args a = { .file = fh };
	COMMIT3res r;

	nfs_call(&c, commit, &a, &r);
	if (r.status == NFS3_OK)
		memcpy(verf, r.COMMIT3res_u.resok.verf, sizeof(*verf));
	return r.status;
}

static int read_start(char *buf)
{
	READ3args a = { .file = fh, .count = sizeof(SAFE) - 1 };
	READ3res r;

	nfs_call(&c, read, &a, &r);
	if (r.status == NFS3_OK)
		memcpy(buf, r.READ3res_u.resok.data.data_val,
		       r.READ3res_u.resok.count);
	return r.status;
}

static int set_mode(int mode)
{
	SETATTR3args a = { .object = fh };
	SETATTR3res r;

	a.new_attributes.mode.set_it = 1;
	a.new_attributes.mode.set_mode3_u.mode = (mode3)mode;
	nfs_call(&c, setattr, &a, &r);
	return r.status;
}

static int times_logged(const char *text)
{
	char path[96], line[1024];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", d.dir);
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

static void prepare(void)
{
	char state[96];

	daemon_prepare(&d);
	snprintf(dir, sizeof(dir), "%s/export", d.dir);
	snprintf(file, sizeof(file), "%s/f", dir);
	snprintf(state, sizeof(state), "%s/state", d.dir);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	ck_assert_int_eq(mkdir(state, 0700), 0);
	if (geteuid() == 0) {
		d.uid = USER_UID;
		ck_assert_int_eq(chown(d.dir, d.uid, d.uid), 0);
		ck_assert_int_eq(chown(dir, d.uid, d.uid), 0);
		ck_assert_int_eq(chown(state, d.uid, d.uid), 0);
	}
}

static const int modes[] = { 0444, 0 };

TEST_LOOP(a_file_closed_by_its_mode_is_refused_after_a_restart_and_logged,
	  0, (int)ARRAY_SIZE(modes))
{
	uint64_t before, after = 0;
	struct stat was, is;
	char buf[sizeof(SAFE)] = "";

	prepare();
	start();
	mount_top();
	create(modes[_i]);
	ck_assert_int_eq(write_at(0, SAFE, FILE_SYNC, &before), NFS3_OK);
	ck_assert_int_eq(write_at(4096, "more", UNSTABLE, &before), NFS3_OK);
	ck_assert_int_eq(read_start(buf), NFS3_OK);
	stop(SIGKILL);

	ck_assert_int_eq(stat(file, &was), 0);
	start();
	/* The client learns that it has to send unstable data again... */
	ck_assert_int_eq(commit(&after), NFS3_OK);
	ck_assert_uint_ne(after, before);
	/* ... and each time it does, that this fails: so its application
	 * learns of it. */
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(write_at(4096, "more", UNSTABLE, &after),
				 NFS3ERR_ACCES);
		ck_assert_int_eq(write_at(4096, "more", FILE_SYNC, &after),
				 NFS3ERR_ACCES);
	}
	EVENTUALLY(times_logged(SAYS) == 1);
	ck_assert_int_eq(read_start(buf), modes[_i] ? NFS3_OK : NFS3ERR_ACCES);
	/* The mode was never different. */
	ck_assert_int_eq(stat(file, &is), 0);
	ck_assert_int_eq(is.st_ctim.tv_sec, was.st_ctim.tv_sec);
	ck_assert_int_eq(is.st_ctim.tv_nsec, was.st_ctim.tv_nsec);

	/* The log's advice helps; acknowledged data is there. */
	ck_assert_int_eq(set_mode(0644), NFS3_OK);
	ck_assert_int_eq(write_at(4096, "more", FILE_SYNC, &after), NFS3_OK);
	ck_assert_int_eq(read_start(buf), NFS3_OK);
	ck_assert_str_eq(buf, SAFE);
	ck_assert_int_eq(set_mode(modes[_i]), NFS3_OK);
	ck_assert_int_eq(write_at(0, SAFE, FILE_SYNC, &after), NFS3_OK);
	stop(SIGTERM);
	ck_assert_int_eq(times_logged(SAYS), 1);
	free(top_dir.data.data_val);
	free(fh.data.data_val);
	daemon_clean(&d);
}
