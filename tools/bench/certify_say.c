/* SPDX-License-Identifier: BSD-2-Clause */
/* certify_say - the words of a judgement. */
#include "tools/bench/certify.h"

#include <stdarg.h>
#include <string.h>

enum judgement certify_say(struct certify *c, enum judgement j,
			   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, ap);
	va_end(ap);
	return j;
}

enum judgement certify_error(struct certify *c, const char *what, int err,
			     uint32_t status)
{
	if (err == 0)
		return certify_say(c, FAILED, "%s: %s (%s)", what,
				   nfsc_status_words(status),
				   nfsc_status_name(status));
	return certify_say(c, FAILED, "%s: %s", what, strerror(-err));
}
