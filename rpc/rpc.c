/* SPDX-License-Identifier: BSD-2-Clause */
/* The RPC server: made, given its programs, ended. */
#include "rpc/rpc.h"
