/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tool - the parts of gannet-nfs.
 *
 * Errors: a function that can fail says on standard error what went wrong
 * and returns an exit code.
 */
#ifndef GANNET_CLIENT_NFS_TOOL_H
#define GANNET_CLIENT_NFS_TOOL_H

#include <stdio.h>

#include "client/nfs/nfs.h"

enum {
	TOOL_OK = 0,
	TOOL_FAILED = 1,	/* the server, or the local system, said no */
	TOOL_USAGE = 2,
	TOOL_UNREACHABLE = 3,	/* no connection, or it was lost for good */
};

struct tool_options {
	struct nfsc_config config;
	uint32_t block;		/* of READ and WRITE: 0, what the server has */
	uint64_t commit_every;	/* bytes: 0, a GiB */
	bool	 all;		/* ls -a */
	bool	 lengthy;	/* ls -l */
	bool	 quiet;
	bool	 progress;	/* even where there is no terminal */
	FILE	*out;
};

/* An export that is mounted, and an object in it. */
struct tool {
	const struct tool_options *o;
	const char	   *text;	/* the URL as it was given */
	struct nfsc_url	    url;
	struct nfsc_mount    mount;
	struct nfsc_session *s;
	struct nfsc_limits   limits;
};

int tool_complain(const char *what, int err, uint32_t status);
/* A name is bytes: what would do something to a terminal is shown as \ooo. */
void tool_put_name(FILE *f, const char *name);

/* Connects and mounts. */
int tool_open(struct tool *t, const char *url, const struct tool_options *o);
void tool_close(struct tool *t);

struct tool_object {
	struct nfsc_fh	fh;
	struct nfsc_attr attr;
	struct nfsc_fh	parent;			/* when it is not there */
	char		name[NFS_NAME_MAX + 1];	/* its last component */
};

/*
 * Finds what the URL names.  Symbolic links are followed, the last one only
 * with @follow.  With @may_miss a last component that is not there is no
 * error, and obj->fh.len is 0.
 */
int tool_find(struct tool *t, struct tool_object *obj, bool follow,
	      bool may_miss);
/* Looks a name up in a directory; NFS_NOENT is obj->fh.len 0. */
int tool_lookup(struct tool *t, const struct nfsc_fh *dir, const char *name,
		struct tool_object *obj);

int tool_ls(const char *url, const struct tool_options *o);
int tool_stat(const char *url, const struct tool_options *o);
/* To the file @to; NULL: the object's name, "-": standard output. */
int tool_get(const char *url, const char *to, const struct tool_options *o);
int tool_put(const char *from, const char *url, const struct tool_options *o);
int tool_mount_check(const char *url, const struct tool_options *o);

/* Bytes of a file, both ways.  The size is what the bar goes up to. */
int copy_get(struct tool *t, const struct tool_object *obj, int fd,
	     const char *to);
int copy_put(struct tool *t, const struct nfsc_fh *fh, int fd,
	     const char *from, uint64_t size);

struct progress {
	const char *name;
	bool	    shown;		/* is there anybody to see it? */
	bool	    begun;
	uint64_t    quiet_ms;		/* before it begins */
	uint64_t    total, done;
	uint64_t    start, last;	/* ms */
};

void progress_init(struct progress *p, const struct tool_options *o,
		   const char *name, uint64_t total);
void progress_move(struct progress *p, uint64_t done);
void progress_fini(struct progress *p, bool good);
/* "1.5 GiB" */
const char *progress_size(double bytes, char out[16]);

#endif
