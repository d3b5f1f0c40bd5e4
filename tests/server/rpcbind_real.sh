#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs test_rpcbind against a real rpcbind.
# shellcheck source=tests/server/rpcbind_space.sh
. "$(dirname "$0")/rpcbind_space.sh"
GANNET_RPCBIND=1 tests/server/test_rpcbind || exit 1
# By loopback, when its socket cannot be seen.
rm /run/rpcbind.sock
GANNET_RPCBIND=1 tests/server/test_rpcbind
