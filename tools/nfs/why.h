/* SPDX-License-Identifier: BSD-2-Clause */
/* why - why the server, or this user, is not proven. */
#pragma once

/* Keeps a line for the user that names the cause, and what helps.  Bytes of it
 * that are no text are replaced.  Returns -ENOKEY.  Any thread. */
int nfsc_why_set(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The line of the last -ENOKEY of a session or a call; valid until this
 * thread's next call. */
const char *nfsc_why(void);
