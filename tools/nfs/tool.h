/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tool - the parts of gannet-nfs.
 *
 * Errors: a function that can fail says on standard error what went wrong
 * and returns an exit code.
 */
#pragma once

#include <stdio.h>

#include "tools/nfs/nfs.h"

enum {
	TOOL_OK = 0,
	TOOL_FAILED = 1,	/* the server, or the local system, said no */
	TOOL_USAGE = 2,
	TOOL_UNREACHABLE = 3,	/* no connection, or it was lost for good */
};

/* Options of bench; 0: the default. */
struct bench_options {
	unsigned connections;
	unsigned threads;	/* that share the connections */
	unsigned entries;	/* of the directory that is listed */
	uint64_t size;		/* bytes of each connection's file */
	uint64_t ops;		/* calls, instead of a time */
	uint64_t rate;		/* calls a second; 0: as many as there can be */
	double	 seconds;	/* measured, */
	double	 warmup;	/* after so many */
	bool	 stable;	/* WRITEs are FILE_SYNC */
	bool	 verify;	/* READs are compared with the written data */
	bool	 discard;	/* data of long READs stays in the kernel */
	int	 server_pid;	/* a process of this machine; 0: none */
	bool	 memory;	/* report the memory of its connections */
};

enum { EXCLUDES_MAX = 64 };

struct tool_options {
	struct nfsc_config config;
	uint32_t block;		/* of READ and WRITE: 0, the server's */
	uint64_t commit_every;	/* bytes: 0, a GiB */
	bool	 all;		/* ls -a */
	bool	 lengthy;	/* ls -l */
	bool	 human;		/* ls -h: 1.5K for 1536 */
	bool	 itself;	/* ls -d: the directory, not its names */
	bool	 recursive;	/* rm -r, cp -r */
	bool	 force;		/* rm -f */
	bool	 parents;	/* mkdir -p */
	bool	 preserve;	/* cp -p */
	bool	 resume;	/* cp --continue */
	bool	 checksum;	/* cp: compare copies with their sources */
	unsigned parallel;	/* cp: files at a time; 0: as it fits */
	bool	 symbolic;	/* ln -s */
	bool	 summary;	/* du -s: of the whole alone */
	bool	 dry_run;	/* cp: only name the files */
	const char *exclude[EXCLUDES_MAX];	/* cp: patterns, then NULLs */
	bool	 json;		/* of the commands that have it */
	const char *html;	/* bench, certify: a page to write, or NULL */
	bool	 write;		/* doctor: write a test file */
	bool	 into;		/* cp: its target is a directory, */
	bool	 as;		/* or cp -T: the name of the copy */
	const char *name;	/* find -name: a pattern, or NULL */
	char	 type;		/* find -type: one of its letters, or 0 */
	unsigned levels;	/* find -maxdepth, and 1; 0: all */
	unsigned mindepth;	/* find -mindepth */
	uint16_t mountport;	/* of URLs that name none; 0: not given */
	bool	 tls;		/* also with any of these files, or NULL */
	const char *tls_ca, *tls_cert, *tls_key;
	struct bench_options bench;
	bool	 quiet;
	bool	 progress;	/* even without a terminal */
	FILE	*out;
};

/* An export that is mounted, and an object in it. */
struct tool {
	const struct tool_options *o;
	const char	   *text;	/* the URL as it was given */
	struct nfsc_url	    url;
	struct nfsc_mount    mount;
	struct nfsc_session *s;
	struct nfs3_fsinfo_res   limits;
	uint64_t	    rtt_us;	/* of the first call */
	struct jobs	    *jobs;	/* NULL: it does one thing at a time */
	struct progress	    *whole;	/* of many files; NULL: of each */
	bool		     silent;	/* about lists */
};

/* Reports an error of @what: -errno @err, or if that is 0 the status. */
int tool_complain(const char *what, int err, uint32_t status);
/* The end of such a line, behind the name. */
int tool_reason(int err, uint32_t status);
/* The same for an error of this system, -errno @err, which no server is to
 * blame for: a disk can say EBADMSG, and a file system ETIMEDOUT. */
int tool_complain_here(const char *what, int err);
int tool_reason_here(int err);
/* A name is bytes: characters that a terminal would obey are shown as \ooo, and
 * so are bytes that aren't UTF-8. */
void tool_put_name(FILE *f, const char *name);
void tool_put_bytes(FILE *f, const char *name, size_t len);
/* Bytes of the UTF-8 character at @s that begins with no ASCII, at most @left;
 * 0: no valid one, or a control one. */
size_t text_utf8_len(const uint8_t *s, size_t left);

/* Takes the URL, with nothing else done. */
int tool_parse(struct tool *t, const char *url, const struct tool_options *o);
/* The same of a URL, or of HOST or HOST: alone, whose path is "/". */
int tool_parse_host(struct tool *t, const char *text,
		    const struct tool_options *o);
/* Also connects and mounts the URL. */
int tool_open(struct tool *t, const char *url, const struct tool_options *o);
/* The same for the directory of the URL's object, which can be absent: *@dir is
 * that directory, with the URL's last name in dir->name. */
struct tool_object;
int tool_open_above(struct tool *t, const char *url,
		    const struct tool_options *o, struct tool_object *dir);
/* Connects and mounts the URL, but never a file itself, as Linux servers allow:
 * so tool_find() knows the directory of the URL's object. */
int tool_connect_above(struct tool *t);
/* The outcome of a call of MOUNT, 0 or -errno, as an exit code. */
int tool_reach(const struct tool *t, int err);
void tool_close(struct tool *t);

struct tool_object {
	struct nfs3_fh	fh;
	struct nfs3_attr attr;
	struct nfs3_fh	parent;			/* when it is not there */
	char		name[NFS_NAME_MAX + 1];	/* its last component */
	bool		changed;		/* while copy_get() read it */
};

/*
 * Finds the URL's object.  Symbolic links are followed, the last one only with
 * @follow.  With @may_miss a missing last component is not an error, and
 * obj->fh.len is 0.
 */
int tool_find(struct tool *t, struct tool_object *obj, bool follow,
	      bool may_miss);
/* Looks a name up in a directory; NFS_NOENT is obj->fh.len 0. */
int tool_lookup(struct tool *t, const struct nfs3_fh *dir, const char *name,
		struct tool_object *obj);

/* ---- directories, dir.c and walk.c */

/* All names of a directory, sorted by their bytes. */
struct listing {
	struct nfsc_entry **e;	/* owned */
	size_t n, room;
	uint64_t listed;	/* by the server */
};

/* Lists a directory, names with a dot only with o->all, "."  and ".."  among
 * them; @what names it in complaints.  After an error @l has the entries that
 * came before; free it with listing_free() in any case. */
int tool_list(struct tool *t, const struct nfs3_fh *dir, const char *what,
	      struct listing *l);
void listing_free(struct listing *l);
/* READDIRPLUS can leave handles and attributes out, as for mount points: gets
 * them by LOOKUP, if the name is valid.  0, also if the server refuses; or
 * -errno: no answer. */
int tool_look_up(struct tool *t, const struct nfs3_fh *dir,
		  struct nfsc_entry *e);

/* The deepest directory that a walk enters; files in it are one below. */
enum { WALK_DEPTH_MAX = 256 };

/* Where a walk is: an object, and the directories that it is in. */
struct walk_at {
	struct walk_at	*up;		/* NULL: the walk's top */
	const char	*name;		/* fit for a file, except the top's */
	uint32_t	 len;		/* of the name */
	unsigned	 depth;		/* below the top */
	bool		 last;		/* of its directory */
	bool		 silent;	/* nothing is said about it */
	struct nfs3_fh	 fh;
	struct nfs3_attr attr;
	void		*own;		/* the visitor's; NULL at first */
};

enum walk_step { WALK_FILE, WALK_ENTER, WALK_LEAVE };

struct walk {
	struct tool *t;
	unsigned levels;	/* as many are visited; 0: all */
	bool	 silent;	/* another walk complains */
	/* True: this one below the top is passed by.  NULL: none is. */
	bool (*skip)(struct walk *w, const struct walk_at *at);
	/* Called for each object, for a directory before and after its
	 * contents.  An exit code; a directory that is not entered well is left
	 * out, without a WALK_LEAVE. */
	int (*visit)(struct walk *w, struct walk_at *at, enum walk_step step);
};

/* Walks through everything below @obj, which is shown as @name; continues after
 * an error, if the server still answers.  Returns the worst exit code. */
int tool_walk(struct walk *w, const struct tool_object *obj, const char *name);
/* Opens @url with @o, walks, and closes it. */
int tool_walk_url(struct walk *w, const char *url, struct tool_options o);
void walk_put_path(FILE *f, const struct walk_at *at);
/* tool_complain() of this object. */
int walk_complain(const struct walk_at *at, int err, uint32_t status);
/* Says why the object is passed by; returns TOOL_FAILED. */
int walk_refuse(const struct walk_at *at, const char *why);

/* ---- JSON, json.c */

struct json_object {
	const char *name;
	size_t	    len;
	const struct walk_at   *path;	/* or NULL */
	const struct nfs3_attr *attr;
	const struct nfs3_fh   *fh;
	bool	    handle;		/* is shown */
};

/* A line of standard output. */
int json_put_object(struct tool *t, const struct json_object *o);
int json_put_space(FILE *f, const struct vfs_statfs *s);

/* ---- commands */

extern const char tool_usage[];
/* The letters of find -type, in the order of ftype3 (RFC 1813 2.6). */
extern const char tool_types[9];

int tool_ls(const char *url, const struct tool_options *o);
int tool_stat(const char *url, const struct tool_options *o);
/* To the file @to; NULL: the object's name, "-": standard output. */
int tool_get(const char *url, const char *to, const struct tool_options *o);
int tool_put(const char *from, const char *url, const struct tool_options *o);
int tool_exports(const char *host, const struct tool_options *o);
int tool_df(const char *url, const struct tool_options *o);
int tool_tree(const char *url, const struct tool_options *o);
int tool_search(const char *url, const struct tool_options *o);
int tool_mkdir(const char *url, const struct tool_options *o);
int tool_rm(const char *url, const struct tool_options *o);
int tool_touch(const char *url, const struct tool_options *o);
/* A mode, and files. */
int tool_chmod(int n, char *const args[], const struct tool_options *o);
int tool_du(const char *url, const struct tool_options *o);
/* The last argument is where to, or the directory that it goes into. */
int tool_mv(int n, char *const args[], const struct tool_options *o);
int tool_ln(int n, char *const args[], const struct tool_options *o);
/* Does a RENAME or LINK of @from.  If its answer was lost, it is sent again,
 * and meets an error that is not reported.  True, or @op has the error. */
bool tool_give_name(struct tool *t, struct nfsc_op *op,
		    const struct tool_object *from);
/* One MKDIR, into @op; returns op->err. */
int tool_make_dir(struct tool *t, const struct nfs3_fh *dir, const char *name,
		  uint32_t mode, struct nfsc_op *op);
/* Copies each of the @n arguments but the last, which is where to. */
int tool_cp(int n, char *const args[], const struct tool_options *o);
/* Where a symbolic link leads: *@len bytes in @target; 0: no link, or the
 * server refuses.  0, or -errno: no answer. */
int tool_read_link(struct tool *t, const struct nfs3_attr *attr,
		   const struct nfs3_fh *fh, char target[NFS_PATH_MAX],
		   size_t *len);
/* A mount(8) command, without the directory to mount at. */
void tool_put_mount_line(FILE *f, const struct tool *t);
/* The options of Kerberos and of TLS that were given, for another command. */
void tool_put_security(FILE *f, const struct tool_options *o);
/* True if @dir is @path, or above it. */
bool tool_holds(const char *dir, const char *path);
int tool_doctor(const char *url, const struct tool_options *o);
/* Of works and, at last, a URL. */
int tool_bench(int n, char *const args[], const struct tool_options *o);
int tool_certify(const char *url, const struct tool_options *o);
int tool_mount_check(const char *url, const struct tool_options *o);

/* The local end of a copy. */
struct copy_end {
	int	    fd;		/* -1: a get writes nothing, and is silent */
	const char *name;
	uint64_t    from;	/* the first byte, for which @fd is in place */
	uint64_t    size;	/* of a put; the bar goes up to it */
	uint64_t    reached;	/* of a get, when it is over: the file's end */
	/* Gets all bytes, in order, once; or NULL.  False: a get ends here. */
	bool (*take)(struct copy_end *end, const uint8_t *mem, size_t len);
};

/* The blocks for a file of @bytes bytes (UINT64_MAX: unknown) of a server that
 * takes at most @max at once: *@n of *@size bytes each. */
void copy_ring_size(const struct tool *t, uint32_t max, uint64_t bytes,
		    uint32_t *size, unsigned *n);
/* Bytes of a file, both ways. */
int copy_get(struct tool *t, struct tool_object *obj, struct copy_end *to);
int copy_put(struct tool *t, const struct nfs3_fh *fh, struct copy_end *from);

struct progress {
	const char *name;
	bool	    shown;		/* is there anybody to see it? */
	bool	    begun;
	uint64_t    quiet_ms;		/* before it begins */
	uint64_t    total, done;
	uint64_t    skipped;		/* of these, in no time */
	uint64_t    start, last;	/* ms */
	struct progress *whole;		/* shown in its place; or NULL */
};

void progress_init(struct progress *p, const struct tool_options *o,
		   const char *name, uint64_t total);
void progress_move(struct progress *p, uint64_t done);
void progress_fini(struct progress *p, bool good);
/* Whether a line of progress is shown. */
bool progress_is_shown(const struct tool_options *o);
/* One line of progress for all files from here on, which have @total bytes, 0:
 * unknown; @name is shown. */
void progress_begin(struct tool *t, const char *name, uint64_t total);
/* So many bytes are there already. */
void progress_skip(struct tool *t, uint64_t bytes);
void progress_end(struct tool *t, int err);
/* "1.5K", as ls -h and df -h have it: at most three digits, rounded up. */
void tool_human(uint64_t n, char out[24]);
/* "1.5 GiB" */
const char *progress_size(double bytes, char out[16]);
