/* SPDX-License-Identifier: BSD-2-Clause */
/* The main() of every test program that has none of its own. */
#include "tests/unit/runner.h"

int main(void)
{
	return run_tests();
}
