/* SPDX-License-Identifier: BSD-2-Clause */
/* crash - gannetd at work, and its sudden end. */
#include "tests/crash/crash.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct crash *current;

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

unsigned crash_setting(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text && *text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

/* An error that can mean just that the call has to come again. */
#define TRY_LATER	NFS3ERR_JUKEBOX

bool crash_may_refuse(struct crash *c, int status)
{
	for (int i = 0; i < 4; i++)
		if (status != NFS3_OK && c->may[i] == status) {
			c->refused++;
			return true;
		}
	return false;
}

static void op_over(struct slot *slot, int status, const struct ack *ack)
{
	struct crash *c = current;

	model_remember(slot, status);
	slot->busy = false;
	if (status == NFS3_OK) {
		model_apply(&slot->s, &slot->op, ack);
		c->acks++;
		/* Made, but without a handle: to be looked up. */
		if (slot->op.kind <= OP_SYMLINK || slot->op.kind == OP_CHILD)
			slot->frozen = !ack->fh.len;
		if (slot->frozen)
			slot->op.kind = OP_COMMIT;
	} else if (status == TRY_LATER) {
		c->later++;
	} else if (status == -1 || status == -2 || c->errors ||
		   crash_may_refuse(c, status)) {
		/* It stays in slot->op for crash_check(). */
		slot->frozen = true;
		slot->unanswered = status == -1;
		c->doubts++;
	} else {
		model_print(slot);
		ck_abort_msg("status %d, seed %llu", status,
			     (unsigned long long)c->seed);
	}
}

void crash_prepare(struct crash *c, const char *dir)
{
	char path[128];

	c->seed = getenv("GANNET_CRASH_SEED") ?
		strtoull(getenv("GANNET_CRASH_SEED"), NULL, 10) : now_us();
	model_seed(c->seed);
	for (unsigned i = 0; i < CRASH_SLOTS; i++)
		model_init(&c->slots[i], i);
	for (unsigned i = 0; i < CRASH_WIRES; i++)
		c->wire[i].broken = true;
	snprintf(c->dir, sizeof(c->dir), "%s", dir ? dir : c->d.dir);
	snprintf(path, sizeof(path), "%s/export", c->dir);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	if (c->d.uid) {
		ck_assert_int_eq(chown(path, c->d.uid, c->d.uid), 0);
		ck_assert_int_eq(chown(c->dir, c->d.uid, c->d.uid), 0);
	}
	wire_done = op_over;
	current = c;
}

/* A port of loopback that leads to gannetd's iWARP. */
static uint16_t relay_start(struct crash *c)
{
	char port[8], text[16] = "";
	int in[2], out[2];

	ck_assert_int_eq(pipe2(in, 0), 0);
	ck_assert_int_eq(pipe2(out, 0), 0);
	snprintf(port, sizeof(port), "%u", c->d.rdma_port);
	c->relay = fork();
	ck_assert_int_ge(c->relay, 0);
	if (c->relay == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("tests/server/rdma_relay", "rdma_relay", port, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->relay_in = in[1];
	ck_assert_int_gt(read(out[0], text, sizeof(text) - 1), 0);
	close(out[0]);
	return (uint16_t)atoi(text);
}

static void relay_end(struct crash *c)
{
	if (!c->relay)
		return;
	close(c->relay_in);
	waitpid(c->relay, NULL, 0);
	c->relay = 0;
}

void crash_make_dirs(struct crash *c)
{
	ck_assert(wire_mkdir(&c->wire[0], &c->root, "a", &wire_dirs[0]));
	ck_assert(wire_mkdir(&c->wire[0], &c->root, "b", &wire_dirs[1]));
}

void crash_connect(struct crash *c, uint16_t port)
{
	for (unsigned i = 0; i < CRASH_WIRES; i++)
		ck_assert(wire_open(&c->wire[i], port, NFS_PROGRAM));
}

static void mount_root(struct crash *c, const char *path)
{
	struct wire w;

	ck_assert(wire_open(&w, c->d.tcp_port, MOUNT_PROGRAM));
	ck_assert(wire_mount(&w, path, &c->root));
	wire_close(&w);
	crash_make_dirs(c);
}

void crash_start(struct crash *c)
{
	char path[128], state[128], export[256];
	const char *const args[] = { "--state-dir", state, "--export", export,
				     NULL };

	snprintf(path, sizeof(path), "%s/export", c->dir);
	snprintf(state, sizeof(state), "%s/state",
		 c->state_apart ? c->d.dir : c->dir);
	/* Files are let go of while the work goes on. */
	snprintf(export, sizeof(export),
		 "posix,idle=200%s%s:%s 127.0.0.1(rw,insecure,no_root_squash)",
		 c->table ? ",table" : "", c->options ? c->options : "", path);
	ck_assert(daemon_start(&c->d, args));
	crash_connect(c, c->iwarp ? relay_start(c) : c->d.tcp_port);
	/* A client mounts once, if its handles hold. */
	if (!c->root.len || c->handles_may_go)
		mount_root(c, path);
}

static void start_idle(struct crash *c)
{
	for (unsigned i = 0; i < CRASH_SLOTS; i++) {
		struct slot *slot = &c->slots[i];
		struct wire *w = &c->wire[i % CRASH_WIRES];

		if (slot->busy || slot->frozen || w->broken)
			continue;
		model_choose(slot);
		wire_start(w, slot);
	}
}

void crash_work(struct crash *c, unsigned us)
{
	uint64_t end = now_us() + us, now;

	while ((now = now_us()) < end) {
		start_idle(c);
		wire_serve(c->wire, CRASH_WIRES,
			   (int)((end - now + 999) / 1000));
	}
}

static bool any_busy(const struct crash *c)
{
	for (unsigned i = 0; i < CRASH_SLOTS; i++)
		if (c->slots[i].busy && !c->wire[i % CRASH_WIRES].broken)
			return true;
	return false;
}

void crash_settle(struct crash *c, unsigned us)
{
	uint64_t end = now_us() + us, now;

	while (any_busy(c) && (now = now_us()) < end)
		wire_serve(c->wire, CRASH_WIRES,
			   (int)((end - now + 999) / 1000));
}

void crash_pause(struct crash *c)
{
	crash_settle(c, 30000000);
	ck_assert(!any_busy(c));
	crash_check(c);
}

void crash_kill(struct crash *c)
{
	ck_assert_int_eq(kill(c->d.pid, SIGKILL), 0);
	c->ends++;
	/* Replies on their way arrive before the connections' ends. */
	crash_settle(c, 10000);
}

void crash_disconnect(struct crash *c)
{
	for (unsigned i = 0; i < CRASH_WIRES; i++)
		wire_close(&c->wire[i]);
	relay_end(c);
	ck_assert_int_eq(waitpid(c->d.pid, &c->d.status, 0), c->d.pid);
	ck_assert(WIFSIGNALED(c->d.status));
	ck_assert_int_eq(WTERMSIG(c->d.status), SIGKILL);
	for (unsigned i = 0; i < CRASH_SLOTS; i++)
		ck_assert(!c->slots[i].busy);
}

void crash_report(const struct crash *c, const char *what)
{
	printf("# %s: %lu ends, %lu acknowledged, %lu in doubt, "
	       "%lu refused, %lu put off, %lu looked for, %lu handles gone, "
	       "%lu created again, %lu half renamed, seed %llu\n", what,
	       c->ends, c->acks, c->doubts, c->refused, c->later, c->checked,
	       c->lost_handles, c->again, c->both,
	       (unsigned long long)c->seed);
}
