/* SPDX-License-Identifier: BSD-2-Clause */
/* say - messages of work that is done at the same time. */
#include "tools/nfs/say.h"

#include <stdbool.h>
#include <stdlib.h>

struct say_part {
	struct cds_list_head link;
	FILE	*f;		/* NULL: nothing was said */
	char	*text;		/* owned, once f is closed */
	size_t	 len;
	bool	 over;
};

static _Thread_local struct say_part *current;

FILE *say_stream(void)
{
	if (current && !current->f)
		current->f = open_memstream(&current->text, &current->len);
	return current && current->f ? current->f : stderr;
}

struct say_part *say_begin(struct cds_list_head *text)
{
	struct say_part *part = calloc(1, sizeof(*part));

	if (part)
		cds_list_add_tail(&part->link, text);
	return part;
}

void say_into(struct say_part *part)
{
	current = part;
}

static void drop(struct say_part *part)
{
	cds_list_del(&part->link);
	free(part->text);
	free(part);
}

void say_end(struct cds_list_head *text, struct say_part *part)
{
	struct say_part *next;

	if (!part)
		return;
	if (part == current)
		current = NULL;
	part->over = true;
	if (part->f)
		fclose(part->f);
	/* Silent ones are many behind one that takes its time. */
	if (!part->text)
		drop(part);
	cds_list_for_each_entry_safe(part, next, text, link) {
		if (!part->over)
			break;
		fwrite(part->text, 1, part->len, stderr);
		drop(part);
	}
}
