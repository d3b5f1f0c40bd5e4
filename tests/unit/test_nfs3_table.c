/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of procedures: sizes and flags. */
#include "nfs3/proc.h"

#include <errno.h>

#include "tests/unit/runner.h"

static struct rpc_program *prog;

static void setup(void)
{
	struct program_env c = { 0 };

	ck_assert_int_eq(nfs3_row.create(&c, &prog), 0);
}

static void teardown(void)
{
	nfs3_row.destroy(prog);
}

static uint32_t flagged(uint8_t flag)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < NFS3_NPROC; i++)
		if (prog->versions[0].procs[i].flags & flag)
			set |= 1u << i;
	return set;
}

#define P(name)	(1u << NFSPROC3_##name)

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(all_procedures_are_there_and_fit)
{
	ck_assert_uint_eq(prog->prog, 100003);
	ck_assert_uint_eq(prog->nversions, 1);
	ck_assert_uint_eq(prog->versions[0].vers, 3);
	ck_assert_uint_eq(prog->versions[0].nproc, 22);
	for (int i = 0; i < NFS3_NPROC; i++) {
		const struct rpc_proc *p = &prog->versions[0].procs[i];

		ck_assert(p->name && p->decode);
		ck_assert_uint_le(p->args_size, RPC_ARGS_SIZE);
		ck_assert_uint_le(p->res_size, RPC_RES_SIZE);
		ck_assert_uint_le(p->state_zeroed, RPC_STATE_SIZE);
		ck_assert_int_eq(!p->steps[0], i == NFSPROC3_NULL);
		ck_assert_int_eq(!p->end, i == NFSPROC3_NULL);
		ck_assert_int_eq(!p->encode, i == NFSPROC3_NULL);
	}
}

/* RFC 8267 section 4. */
TEST(only_these_are_ddp_eligible)
{
	ck_assert_uint_eq(flagged(RPC_PROC_DDP_ARG), P(WRITE) | P(SYMLINK));
	ck_assert_uint_eq(flagged(RPC_PROC_DDP_RES), P(READ) | P(READLINK));
}

TEST(procedures_that_are_not_idempotent_are_remembered)
{
	ck_assert_uint_eq(flagged(RPC_PROC_CACHED),
			  P(SETATTR) | P(CREATE) | P(MKDIR) | P(SYMLINK) |
			  P(MKNOD) | P(REMOVE) | P(RMDIR) | P(RENAME) |
			  P(LINK));
	ck_assert_uint_eq(flagged(RPC_PROC_ALONE), P(WRITE));
}

TEST(nfsacl_remembers_what_was_set)
{
	struct program_env c = { 0 };
	const struct rpc_version *v;
	struct rpc_program *acl;

	ck_assert_int_eq(nfs3_acl_row.create(&c, &acl), 0);
	v = &acl->versions[0];
	ck_assert_uint_eq(acl->prog, 100227);
	ck_assert_uint_eq(v->vers, 3);
	ck_assert_uint_eq(v->nproc, NFSACL_NPROC);
	ck_assert_uint_eq(v->procs[NFSACLPROC3_GETACL].flags, 0);
	ck_assert_uint_eq(v->procs[NFSACLPROC3_SETACL].flags, RPC_PROC_CACHED);
	nfs3_row.destroy(acl);
}

static uint32_t with_step(rpc_step_fn *step)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < NFS3_NPROC; i++)
		for (unsigned k = 0; k < RPC_STEPS; k++)
			if (prog->versions[0].procs[i].steps[k] == step)
				set |= 1u << i;
	return set;
}

/* The calls that clients make most run where they were received. */
TEST(these_always_need_a_worker)
{
	ck_assert_uint_eq(with_step(rpc_need_worker),
			  P(MKDIR) | P(SYMLINK) | P(MKNOD) | P(RENAME) |
			  P(LINK) | P(READDIR) | P(READDIRPLUS));
}

TEST(these_are_refused_on_a_read_only_export)
{
	ck_assert_uint_eq(with_step(nfs3_check_rw),
			  flagged(RPC_PROC_CACHED) | P(WRITE));
}

TEST(sizes_are_multiples_of_4096_up_to_1_mib)
{
	static const struct { uint32_t size; int err; } sizes[] = {
		{ 4096, 0 }, { 1 << 20, 0 }, { 12288, 0 },
		{ 1, -EINVAL }, { 4097, -EINVAL },
		{ (1 << 20) + 4096, -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct program_env c[3] = { { .rtmax = sizes[i].size },
					    { .wtmax = sizes[i].size },
					    { .dtpref = sizes[i].size } };

		for (int j = 0; j < 3; j++) {
			struct rpc_program *p = NULL;

			ck_assert_int_eq(nfs3_row.create(&c[j], &p),
					 sizes[i].err);
			if (p)
				nfs3_row.destroy(p);
		}
	}
}
