/* SPDX-License-Identifier: BSD-2-Clause */
/* gannet-load: prepare, fill, run, report, clean up. */
#include "tests/bench/load/load.h"

#include <errno.h>

#include "lib/standard.h"

static int fill(const struct target *t)
{
	struct load_result result;
	struct load_options o = *t->opt;
	struct target filling = *t;

	/* Data is filled in larger blocks than it may be read in. */
	o.depth = 8;
	o.progress = false;
	filling.opt = &o;
	return load_run(&filling, workload_fill(), UINT64_MAX / 2, &result);
}

static int bench(struct target *t, struct load_result *result)
{
	unsigned needs = workload_needs(t->opt->work);
	int err = 0;

	if (needs & NEED_DATA)
		err = fill(t);
	if (!err && needs & NEED_DATA)
		err = target_commit(t);
	if (err)
		return err;
	err = load_run(t, t->opt->work, t->opt->ops, result);
	if (!err && needs & WRITES) {
		uint64_t begin = load_now();

		err = target_commit(t);
		result->seconds += (double)(load_now() - begin) / 1e9;
	}
	return err;
}

int main(int argc, char **argv)
{
	static struct load_result result;
	struct load_options o;
	struct target t;
	int err;

	standard_open();
	if (load_options_parse(&o, argc, argv) < 0)
		return 2;
	err = target_prepare(&t, &o);
	if (!err)
		err = bench(&t, &result);
	target_remove(&t);
	if (err) {
		fprintf(stderr, "gannet-load: %s:%s: %s\n", o.host, o.path,
			strerror(-err));
		return 1;
	}
	load_report(&t, &result);
	return result.counts.errors ? 1 : 0;
}
