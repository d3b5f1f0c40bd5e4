/* SPDX-License-Identifier: BSD-2-Clause */
/* why - why the server, or this user, is not proven. */
#include "tools/nfs/why.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/thread.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char why[900];

int nfsc_why_set(const char *fmt, ...)
{
	char text[sizeof(why)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* The peer can have chosen them. */
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	mutex_lock(&lock);
	memcpy(why, text, sizeof(why));
	mutex_unlock(&lock);
	return -ENOKEY;
}

const char *nfsc_why(void)
{
	static _Thread_local char copy[sizeof(why)];

	mutex_lock(&lock);
	memcpy(copy, why, sizeof(copy));
	mutex_unlock(&lock);
	return copy;
}
