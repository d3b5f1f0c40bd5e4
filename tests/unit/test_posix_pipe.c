/* SPDX-License-Identifier: BSD-2-Clause */
/* READ into a pipe. */
#include "tests/unit/posix_fixture.h"

#include "transport/pipe.h"

static struct pipes *pipes;
static char data[300000], got[sizeof(data)];

static void setup(void)
{
	ck_assert_int_eq(pipes_create(&pipes), 0);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + (i >> 10));
}

static void teardown(void)
{
	pipes_destroy(pipes);
}

/* A file of @data's first bytes. */
static struct vfs_node *make_file(const char *name, size_t len)
{
	struct vfs_node *n = must_create(w.root, name);
	struct iovec iov = { data, len };

	ck_assert_int_eq(DO(posix_write, &w.who, n,
			    .write = { .iov = &iov, .niov = 1 }), (int64_t)len);
	return n;
}

/* Returns the backend's result; checks the bytes against the file. */
static int64_t try_pipe(const struct vfs_op *who, struct vfs_node *n,
			uint64_t off, uint32_t len, bool *eof)
{
	struct pipe *p = pipe_get(pipes);
	struct vfs_attr attr = { 0 };
	int64_t ret;

	ck_assert_ptr_nonnull(p);
	ret = GET(eof, *eof, posix_read_pipe, who, n,
		  .read = { .off = off, .count = len, .pipe = p->wr },
		  .attr = &attr);
	if (ret > 0) {
		ck_assert_int_eq(attr.type, VFS_REG);
		ck_assert_int_eq(read(p->rd, got, sizeof(got)), ret);
		ck_assert_mem_eq(got, data + off, ret);
	}
	ck_assert_int_eq(read(p->rd, got, 1), -1);
	pipe_put(p);
	return ret;
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST_LOOP(a_pipe_gives_the_files_data, 0, WORLDS)
{
	struct vfs_node *n;
	bool eof;

	world_open(_i, NULL);
	n = make_file("f", 250001);
	ck_assert_int_eq(try_pipe(&w.who, n, 0, 131072, &eof), 131072);
	ck_assert(!eof);
	ck_assert_int_eq(try_pipe(&w.who, n, 131072, 131072, &eof),
			 250001 - 131072);
	ck_assert(eof);
	ck_assert_int_eq(try_pipe(&w.who, n, 1 << 20, 131072, &eof), 0);
	ck_assert(eof);
	vfs_node_put(n);
	world_close();
}

TEST_LOOP(only_files_are_read_into_pipes, 0, WORLDS)
{
	bool eof;

	world_open(_i, NULL);
	assert_err(try_pipe(&w.who, w.root, 0, 4096, &eof), EISDIR);
	world_close();
}

TEST_LOOP(without_read_permission_nothing_is_piped, 0, WORLDS)
{
	struct vfs_cred bob = { .uid = 1002, .gid = 1002 };
	struct vfs_node *n;

	world_open(_i, NULL);
	n = make_file("f", 5000);
	if (to_posix_fs(w.fs)->privileged) {
		struct pipe *p = pipe_get(pipes);

		assert_ok(chmod(local("f"), 0600));
		w.who.cred = &bob;
		assert_err(DO(posix_read_pipe, &w.who, n,
			      .read = { .count = 4096, .pipe = p->wr }),
			   EACCES);
		w.who.cred = &w.cred;
		p->left = 1;		/* its bytes reach no other call */
		pipe_put(p);
		p = pipe_get(pipes);
		ck_assert_int_eq(read(p->rd, got, 1), -1);
		pipe_put(p);
	}
	vfs_node_put(n);
	world_close();
}

/* The data can be on the disk: then a worker pipes it, and where that takes
 * longer than a copy, copies it. */
TEST_LOOP(without_waiting_only_memory_is_read_into_pipes, 0, WORLDS)
{
	struct vfs_op now;
	struct vfs_node *n;
	bool eof;

	world_open(_i, NULL);
	now = (struct vfs_op){ .cred = &w.cred, .nonblock = true };
	n = make_file("f", 250001);
	ck_assert_int_eq(try_pipe(&w.who, n, 0, 4096, &eof), 4096);
	ck_assert_int_eq(try_pipe(&now, n, 0, 65536, &eof),
			 world_on_tmpfs() ? 65536 : -EOPNOTSUPP);
	ck_assert_int_eq(try_pipe(&now, n, 0, 131072, &eof),
			 world_on_tmpfs() ? 131072 : -EAGAIN);
	vfs_node_put(n);
	world_close();
}

TEST(pipes_are_bounded_and_kept)
{
	struct pipe *p[200], *again;
	unsigned n = 0;

	while (n < 200 && (p[n] = pipe_get(pipes)))
		n++;
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_lt(n, 200);
	again = p[0];
	pipe_put(p[0]);
	p[0] = pipe_get(pipes);
	ck_assert_ptr_eq(p[0], again);
	for (unsigned i = 0; i < n; i++)
		pipe_put(p[i]);
}

int main(void)
{
	return world_run();
}
