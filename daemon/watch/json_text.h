/* SPDX-License-Identifier: BSD-2-Clause */
/* json_text - bytes as text in JSON.  Any thread. */
#ifndef GANNET_DAEMON_JSON_TEXT_H
#define GANNET_DAEMON_JSON_TEXT_H

#include <jansson.h>

/* @text, in which each byte that makes it no UTF-8 stands as \ooo.  NULL: no
 * memory. */
json_t *json_text(const char *text);

#endif
