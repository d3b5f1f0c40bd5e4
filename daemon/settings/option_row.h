/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * option_row - the table of gannetd's options: each is a key of gannet.conf(5)
 * and an option of the command line.  The parsers of both, --help and
 * --print-config are made from it.
 *
 * Threads as options.h.
 */
#ifndef GANNET_DAEMON_OPTION_ROW_H
#define GANNET_DAEMON_OPTION_ROW_H

#include <stdio.h>

#include "daemon/settings/options.h"

#define MAX_POLLERS	256u

enum option_kind {
	OPTION_NUMBER,		/* unsigned, from min to max */
	OPTION_MIB,		/* size_t in bytes, given in MiB */
	OPTION_FLAG,		/* bool: yes or no */
	OPTION_BIT,		/* yes or no; bit @min of an unsigned says that
				 * it is what --NAME stands for */
	OPTION_WORD,		/* unsigned: the place in @words */
	OPTION_TEXT,		/* const char *, that @check looked at */
	OPTION_LIST,		/* const struct option_texts * */
	OPTION_RDMA,		/* options.rdma */
};

struct option_row {
	const char *section;	/* of gannet.conf; NULL: not for it */
	const char *key;
	const char *name;	/* --NAME */
	const char *arg;	/* NULL: --NAME stands for @bare */
	const char *help;
	enum option_kind kind;
	size_t at;		/* in struct options */
	unsigned long min, max;
	bool live;		/* a reload applies it */
	const char *bare;	/* NULL: "yes" */
	const char *const *words;	/* NULL after the last */
	/* Returns NULL, or the text of an error. */
	const char *(*check)(const char *value);
};

/* Counts the rows; those of the fabrics are the last. */
unsigned options_count(void);
const struct option_row *option_row(unsigned i);
/* The row of a key, in which '-' and '_' are the same, in @section, or in any
 * if that is NULL.  NULL: there is none. */
const struct option_row *option_of_key(const char *section, const char *key);
/* True if some row has the section. */
bool option_section(const char *section);

/*
 * Gives the option of @row one more value; of the command line if @told, whose
 * values take the place of others.  NULL, or the text of an error, which is
 * good until the next call.
 */
const char *option_give(struct options *o, const struct option_row *row,
			const char *value, bool told);

/* The texts that were given for @row. */
const struct option_texts *option_given(const struct options *o,
					const struct option_row *row);

/* Prints the value that @row has in @o, as gannet.conf takes it. */
void option_print(const struct options *o, const struct option_row *row,
		  FILE *out);

#endif
