/* SPDX-License-Identifier: BSD-2-Clause */
/* parcel - a helper's message and a descriptor, over a socket of packets. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct helper_message;

/* @fd -1: sends no descriptor. */
bool	parcel_send(int sock, struct helper_message *m, int fd);
/* Returns the bytes that came, 0 at the end, or -1.  *@fd is the receiver's;
 * -1: none came. */
ssize_t parcel_recv(int sock, struct helper_message *m, int *fd);
