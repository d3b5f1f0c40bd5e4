# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The server ends and starts again while clients write and read over every
# transport at once.
# shellcheck source=tests/lab/load.sh
. "$LAB/load.sh"
load_transports tcp-nconnect tcp6 rxe siw iwarp
restart()
{
	promised
	server_stop
	server_start
	each progress 300 20
}

check 'all are mounted' each load_mount "$SRV/rw"
check 'there is load' load_start
check 'the clients carry on after a restart' restart
check 'and after another one' restart
load_end "$SRV/rw"
