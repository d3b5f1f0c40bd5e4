/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * claim_flavor - flavors that exports take for Kerberos, and that prove
 * nothing: the credential has the pseudo flavor's number and the body of
 * AUTH_SYS.
 */
#pragma once

#include "rpc/auth.h"

extern const struct rpc_flavor claim_krb5, claim_krb5i, claim_krb5p;
