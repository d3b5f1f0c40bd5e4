/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cp - copies of trees, in both directions.
 *
 * A file is written aside, in its directory, and gets its name when it is
 * complete.  The name aside is made of the identity of the file at its source,
 * so a later copy finds the part that an earlier one has left.
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include <sodium.h>

#include "tools/nfs/tool.h"

int cp_get(const char *url, const char *to, const struct tool_options *o);
/* Of @n files. */
int cp_put(int n, char *const from[], const char *url,
	   const struct tool_options *o);

/* These are said about a source, and about its copy. */
extern const char cp_changed[], cp_differs[], cp_again[];

/* Tells a user of --continue that no earlier copy of a directory exists below
 * @into; it can be @into itself. */
void cp_nothing_to_continue(const struct tool_options *o, const char *name,
			    const char *into);

/* True if objects of this name below the copied directory are left out. */
bool cp_is_excluded(const struct tool_options *o, const char *name);

enum { ASIDE_NAME = 32 };

/* A file at its source, or its copy. */
struct cp_file {
	uint64_t fsid, fileid, size;
	struct timespec mtime, ctime;
};

/* False: it has a time that NFS can't express. */
bool cp_file_here(const struct stat *st, struct cp_file *out);
void cp_file_there(const struct nfs3_attr *a, struct cp_file *out);
/*
 * True if @copy is a complete copy of the present @source.  Its mtime is then
 * the source's, or without @preserve a time after the source's last change.
 */
bool cp_is_done(const struct cp_file *source, const struct cp_file *copy,
		bool preserve);

/* The name aside of the copy @name of @source. */
void cp_aside_name(const struct cp_file *source, const char *name,
		   char out[ASIDE_NAME]);

/* A local file, while it is written. */
struct aside {
	int	    dir;	/* the caller's */
	const char *name;	/* that it gets, the caller's */
	int	    fd;		/* behind the bytes it has, */
	uint64_t    have;	/* so many bytes */
	bool	    there;	/* a file of that name is replaced, */
	mode_t	    mode;	/* which has this mode */
	char	    aside[ASIDE_NAME];
};

/*
 * Opens the file aside for @name in the directory @dir: with @resume behind the
 * existing part, else empty.  0 or -errno: -EBUSY, another process writes it;
 * -EEXIST or -ELOOP, the name belongs to something other than a file.
 */
int aside_open(struct aside *a, int dir, const char *name,
	       const struct cp_file *source, bool resume);
/* All is written: asks whether the disk had room for it.  0; or -errno, and it
 * is removed, since its contents are unknown. */
int aside_settle(struct aside *a);
/* Gives it its name.  0 or -errno. */
int aside_place(struct aside *a);
/* Removes it. */
void aside_drop(struct aside *a);
/* Ends the writing; without @keep a file still aside is removed. */
int aside_close(struct aside *a, bool keep);

/* ---- objects to be sent */

/* Directories in one another; each has a descriptor. */
enum { HERE_LEVELS_MAX = 256 };

/* A local object, by its directory. */
struct here {
	const struct here *up;
	int		 dir;
	const char	*name;
	unsigned	 depth;
};

extern const char here_no_copy[];	/* is said about others */

void here_put(FILE *f, const struct here *h);
/* tool_complain() of this object, and tool_complain_here(). */
int here_complain(const struct here *h, int err, uint32_t status);
int here_fail(const struct here *h, int err);
/* Says why it is left out; returns TOOL_FAILED. */
int here_leave_out(const struct here *h, const char *why);
/* The last part of a path, without slashes behind it, in @path; NULL: "." and
 * the like have none. */
const char *here_name(const char *from, char path[PATH_MAX]);
/* The bytes of a local tree, as far as it can be read. */
uint64_t here_sum(const struct tool_options *o, int dir, const char *name,
		  unsigned depth);

/* To the directory @dir of the server, under the name. */
int send_file(struct tool *t, const struct here *h,
	      const struct nfs3_fh *dir, const char *name);
int send_link(struct tool *t, const struct here *h,
	      const struct nfs3_fh *dir, const char *name);
/* The mode and the time of the last change. */
int send_attributes(struct tool *t, const struct here *h,
		    const struct nfs3_fh *fh, const struct stat *st);
/* True with --continue, if @at is complete. */
bool send_is_done(const struct tool *t, const struct tool_object *at,
		  const struct cp_file *source);

/* ---- comparing, cp_verify.c */

struct cp_hash {
	struct copy_end		 end;	/* for copy_get() and copy_put() */
	crypto_generichash_state state;
	uint64_t		 bytes;
};

/* Begins with no bytes. */
void hash_begin(struct cp_hash *h, struct copy_end end);
/* True if the same bytes went into both, which are over. */
bool hash_is_same(struct cp_hash *a, struct cp_hash *b);
/* The hash of a local file, from its disk. */
int hash_here(struct tool *t, struct cp_hash *h, int fd, const char *name);
/* The hash of a file of the server, from byte @from on. */
int hash_there(struct tool *t, const struct tool_object *obj, uint64_t from,
	       struct cp_hash *h);
/* Whether two files have the same bytes. */
int cp_compare(struct tool *t, const struct tool_object *there, int fd,
	       bool *same);
/* With how many bytes both begin, or more. */
int cp_same_beginning(struct tool *t, const struct tool_object *part, int fd,
		      uint64_t *same);

/* A file of the server, while it is written: makes it, empty, with @mode. */
int there_make(struct tool *t, const struct nfs3_fh *dir, const char *aside,
	       uint32_t mode, struct tool_object *made);
/*
 * Finds the part of a file of @size bytes that an earlier copy has left, if it
 * is this user's: all of it is on the server's disk then.  made->fh.len is 0
 * without such a part.
 */
int there_find(struct tool *t, const struct nfs3_fh *dir, const char *aside,
	       uint64_t size, struct tool_object *made);
int there_place(struct tool *t, const struct tool_object *made,
		const char *name);
void there_drop(struct tool *t, const struct tool_object *made);
