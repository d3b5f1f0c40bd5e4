/* SPDX-License-Identifier: BSD-2-Clause */
/* The main() of every test program without one. */
#include "tests/unit/runner.h"

int main(void)
{
	return run_tests();
}
