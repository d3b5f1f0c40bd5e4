/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the file systems below exports. */
#pragma once

#include "exports/child_record.h"
#include "exports/children.h"
#include "lib/crew.h"

#define CHILD_SLOTS	4096		/* a power of two */
#define CHILD_OPEN_MAX	256

/* A tree that is not a child yet: its id depends on its file system. */
struct opening {
	struct export_tree	*tree;	/* counted */
	uint32_t	 since;
	struct opening	*next;
};

struct children {
	struct export_table *table;	/* borrowed */
	struct child_record *record;
	/* By id, linear probing; entries stay as long as this. */
	struct child *_Atomic slot[CHILD_SLOTS];

	pthread_mutex_t	 lock;		/* guards the rest, and child->tree */
	unsigned	 known;
	struct opening	*opening;
	struct crew_job	 keeper;
	bool		 has_keeper;
	unsigned	 came;		/* mounts that the keeper knows */
};

/* Exports to put. */
struct closing {
	struct export_tree	*tree[2 * CHILD_OPEN_MAX];
	unsigned	 n;
};

/* child_table.c */
uint32_t children_now(void);		/* in seconds */
/* Frees @c and its children.  All are closed, and the record too. */
void children_free(struct children *c);
/* Under the lock: the one of @top that is open at @path, or NULL. */
struct child *child_at(struct children *c, uint32_t top, const char *path);
/* Under the lock, or while no other thread knows @c: a new child, or NULL. */
struct child *child_add(struct children *c, uint32_t id, uint32_t top);
/* Under the lock: takes @child's export, to be put. */
void child_close(struct child *child, struct closing *closing);
/* Under the lock: ends an opening that did not become a child. */
void opening_close(struct opening **at, struct closing *closing);
/* Without the lock: waits until no poller uses these exports, then puts
 * them. */
void closing_end(struct closing *closing);
