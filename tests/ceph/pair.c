/* SPDX-License-Identifier: BSD-2-Clause */
/* pair - two gannetds of one CephFS. */
#include "tests/ceph/pair.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct crash *pair_crash;
struct daemon_run pair_second;

void pair_start_server(struct daemon_run *d)
{
	char cwd[400], port[8], show[96];

	snprintf(port, sizeof(port), "%u", d->tcp_port);
	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	snprintf(d->settings, sizeof(d->settings), "[exports]\n"
		 "backend-dir = %s/modules/ceph\n", cwd);
	if (daemon_start(d, (const char *const[]){
		"--port", port, "--backend", "ceph", "--export",
		"ceph:/ 127.0.0.1(rw,insecure,no_root_squash)", "--export",
		"mem:/other 127.0.0.1(rw,insecure,no_root_squash)", NULL }))
		return;
	snprintf(show, sizeof(show), "cat %s/log", d->dir);
	ck_assert_msg(system(show) < 0, "the server did not start");
}

struct model_fh pair_mount(struct daemon_run *d, const char *path)
{
	struct model_fh fh;
	struct wire w;

	ck_assert(wire_open(&w, d->tcp_port, MOUNT_PROGRAM));
	ck_assert(wire_mount(&w, path, &fh));
	wire_close(&w);
	return fh;
}

struct nfs_context *pair_nfs(const struct daemon_run *d)
{
	struct nfs_context *nfs = nfs_init_context();
	struct nfs_url *url;
	char text[100];

	snprintf(text, sizeof(text),
		 "nfs://127.0.0.1/?nfsport=%u&mountport=%u&dircache=0",
		 d->tcp_port, d->tcp_port);
	ck_assert_ptr_nonnull(nfs);
	url = nfs_parse_url_dir(nfs, text);
	ck_assert_ptr_nonnull(url);
	ck_assert_int_eq(nfs_mount(nfs, url->server, url->path), 0);
	nfs_destroy_url(url);
	return nfs;
}

void pair_disconnect(void)
{
	for (unsigned i = 0; i < CRASH_WIRES; i++)
		wire_close(&pair_crash->wire[i]);
}

void pair_connect(struct daemon_run *d)
{
	pair_disconnect();
	crash_connect(pair_crash, d->tcp_port);
}

void pair_start(void)
{
	struct crash *c = calloc(1, sizeof(*c));
	struct model_fh top;
	char name[32];

	ck_assert_ptr_nonnull(c);
	pair_crash = c;
	/* A test that failed has left servers, and daemons that are dead. */
	pair_cluster("mend", "");
	daemon_prepare(&c->d);
	daemon_prepare(&pair_second);
	daemon_keep_port(&c->d);
	daemon_keep_port(&pair_second);
	crash_prepare(c, NULL);
	pair_start_server(&c->d);
	pair_start_server(&pair_second);
	top = pair_mount(&c->d, "/");
	pair_connect(&c->d);
	snprintf(name, sizeof(name), "work%d", (int)getpid());
	ck_assert(wire_mkdir(&c->wire[0], &top, name, &c->root));
	crash_make_dirs(c);
	pair_disconnect();
}

void pair_stop(void)
{
	pair_disconnect();
	daemon_end(&pair_crash->d, SIGTERM);
	daemon_end(&pair_second, SIGTERM);
	daemon_clean(&pair_crash->d);
	daemon_clean(&pair_second);
	free(pair_crash);
}

void pair_cluster(const char *verb, const char *daemon)
{
	const char *srcdir = getenv("srcdir"), *conf = getenv("CEPH_CONF");
	char command[1024];

	ck_assert_ptr_nonnull(srcdir);
	ck_assert_ptr_nonnull(conf);
	snprintf(command, sizeof(command),
		 "'%s/tests/ceph/cluster' %s \"$(dirname '%s')\" %s",
		 srcdir, verb, conf, daemon);
	ck_assert_int_eq(system(command), 0);
}
