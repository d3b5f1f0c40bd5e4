#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every attack on a server in the adversary's own process.
# A peer may have what is sent before sendmsg() returns, and both ends are in
# one process: ThreadSanitizer takes that for a race with the call's reading.
TSAN_OPTIONS="$TSAN_OPTIONS intercept_send=0"
export TSAN_OPTIONS
exec tests/adversary/adversary
