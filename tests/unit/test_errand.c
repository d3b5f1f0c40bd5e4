/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks at paths that may hang. */
#include "lib/errand.h"

#include "lib/util.h"
#include "tests/unit/runner.h"

struct look {
	struct errand errand;
	int	 result;
	bool	 hangs;
	sem_t	 answer, dropped;
};

static int run_look(struct errand *e)
{
	struct look *l = container_of(e, struct look, errand);

	if (l->hangs)
		wait_sem(&l->answer);
	return l->result;
}

static void drop_look(struct errand *e)
{
	sem_post(&container_of(e, struct look, errand)->dropped);
}

static int begin(struct look *l, int result, bool hangs)
{
	*l = (struct look){ .result = result, .hangs = hangs };
	l->errand = (struct errand){ .path = "/", .run = run_look,
				     .drop = drop_look };
	sem_init(&l->answer, 0, 0);
	sem_init(&l->dropped, 0, 0);
	return errand_begin(&l->errand);
}

static int await_for_ever(struct look *l)
{
	return errand_await(&l->errand, UINT64_MAX);
}

/* Else its owner would take it for one that it has left. */
TEST(an_errand_that_ends_is_its_owners_whatever_it_says)
{
	struct look l;

	ck_assert_int_eq(begin(&l, -ENOENT, false), 0);
	ck_assert_int_eq(await_for_ever(&l), -ENOENT);
	ck_assert_int_eq(begin(&l, -ETIMEDOUT, false), 0);
	ck_assert_int_eq(await_for_ever(&l), -EIO);
	ck_assert_int_eq(sem_trywait(&l.dropped), -1);
}

TEST(one_that_was_left_keeps_its_like_from_beginning_and_is_dropped)
{
	struct look hung, next;

	ck_assert_int_eq(begin(&hung, 0, true), 0);
	ck_assert_int_eq(errand_await(&hung.errand, 0), -ETIMEDOUT);
	ck_assert_int_eq(begin(&next, 0, false), -ETIMEDOUT);
	sem_post(&hung.answer);
	wait_sem(&hung.dropped);
	ck_assert_int_eq(begin(&next, 0, false), 0);
	ck_assert_int_eq(await_for_ever(&next), 0);
}
