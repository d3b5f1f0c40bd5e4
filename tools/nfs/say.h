/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * say - messages of work that is done at the same time, in the order of the
 * work.
 *
 * A message goes to standard error, or into the part of a text that the thread
 * writes at present.  Parts are shown in their order, each when it and all
 * before it are over.
 *
 * The threads that use one text take turns.
 */
#pragma once

#include <stdio.h>

#include <urcu/list.h>

struct say_part;

/* Where this thread's messages go. */
FILE *say_stream(void);
/* A new part at the end of the text.  NULL: no memory, and its text goes to
 * standard error. */
struct say_part *say_begin(struct cds_list_head *text);
/* This thread's messages go into @part, or with NULL to standard error. */
void say_into(struct say_part *part);
/* The part, which can be NULL, is over; it is no thread's from here on. */
void say_end(struct cds_list_head *text, struct say_part *part);
