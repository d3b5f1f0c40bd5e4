/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nfs - calls from gannet-nfs to a server, over either transport.
 *
 * A session carries operations, several at a time; session_wait() gives one
 * that is over.  One thread uses a session.
 *
 * Ownership: an operation and the memory it names are the session's from
 * session_submit() until session_wait() returns it.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <gannet/rpcrdma.h>
#include <urcu/list.h>

#include "transport/fabric/fabric.h"
#include "wire/nfs3.h"

#define NFS_NAME_MAX	255
#define NFS_PATH_MAX	4096

/* The statuses that the client does something about (RFC 1813 2.6). */
enum {
	NFS_NOENT = 2, NFS_ACCES = 13, NFS_EXIST = 17, NFS_NOTDIR = 20,
	NFS_ISDIR = 21, NFS_NAMETOOLONG = 63, NFS_JUKEBOX = 10008,
};

struct nfsc_entry {
	struct nfsc_entry *next;
	uint64_t	 cookie;
	uint64_t	 fileid;
	struct nfs3_attr attr;
	struct nfs3_fh	 fh;
	uint32_t	 len;		/* of the name, */
	char		 name[];	/* which the server chose: it can have
					 * any byte; a NUL is appended */
};

enum nfsc_kind {
	NFS_OP_NULL, NFS_OP_GETATTR, NFS_OP_LOOKUP, NFS_OP_READLINK,
	NFS_OP_READ, NFS_OP_WRITE, NFS_OP_CREATE, NFS_OP_READDIRPLUS,
	NFS_OP_FSINFO, NFS_OP_COMMIT,
	NFS_OP_EMPTY,			/* SETATTR of the size 0 alone */
	NFS_OP_SET,			/* SETATTR of mode and mtime */
	NFS_OP_MKDIR, NFS_OP_SYMLINK, NFS_OP_REMOVE, NFS_OP_RMDIR,
	NFS_OP_FSSTAT, NFS_OP_ACCESS,
	NFS_OP_RENAME,			/* to the name target, in into */
	NFS_OP_LINK,			/* of fh, as the name target in into */
	NFS_OP_TOUCH,			/* SETATTR of both times to now */
	NFS_NOPS,
	/* A flavor's own: it makes its context, and gives it up. */
	NFS_OP_PROVE = NFS_NOPS, NFS_OP_DISOWN,
};

struct nfsc_op {
	enum nfsc_kind kind;
	/* The arguments that the kind has. */
	struct nfs3_fh fh;
	const char   *name;		/* of an object in the directory fh */
	const char   *target;		/* SYMLINK, RENAME, LINK */
	struct nfs3_fh into;
	uint32_t      mode;		/* MKDIR, SET, CREATE, which is */
	bool	      guarded;		/* GUARDED, else UNCHECKED and empty */
	struct timespec mtime;		/* SET, unless */
	bool	      no_mtime;
	uint64_t      offset;
	uint32_t      count;		/* bytes; READDIRPLUS: maxcount;
					 * ACCESS: the rights asked for */
	void	     *data;		/* READ, READLINK to; WRITE from */
	void	     *kept;		/* it lies there: session_keep() */
	bool	      stable;		/* WRITE: FILE_SYNC */
	uint64_t      cookie;		/* READDIRPLUS */
	uint64_t      cookieverf;
	void	     *arg;		/* yours */

	/* The outcome: -errno without an answer, else 0 and the status. */
	int	      err;
	uint32_t      status;
	struct nfs3_attr attr;
	struct nfs3_fh obj;		/* LOOKUP, CREATE, MKDIR; len 0: none */
	uint32_t      got;		/* READ, WRITE, READLINK: bytes; a link
					 * longer than count is NAMETOOLONG;
					 * ACCESS: the granted rights */
	bool	      eof;
	bool	      stored;		/* WRITE: needs no COMMIT */
	uint64_t      verf;		/* WRITE, COMMIT */
	struct nfs3_fsinfo_res limits;
	struct vfs_statfs space;
	struct nfsc_entry *entries;	/* free with nfsc_entries_free() */

	/* The session's. */
	struct cds_list_head link;
	void	     *session;
	void	     *member;	/* of jobs.c */
	void	     *call;
	/* Its flavor's: the context (0: there was none) and the number of the
	 * call, */
	uint32_t      context, number;
	unsigned      refusals;	/* of contexts, */
	unsigned      resends;	/* and calls in vain */
	uint32_t      xid;	/* of its last call; the next one has it again
				 * if it */
	bool	      repeats;	/* a call that was refused */
};

void nfsc_entries_free(struct nfsc_entry *e);
/* True if a name is one that a file can have: not empty, ".", "..", or with a
 * slash or a NUL in it. */
bool nfsc_name_is_good(const char *name, uint32_t len);
/* The name of a status, as in RFC 1813. */
const char *nfsc_status_name(uint32_t status);
/* A few words for it. */
const char *nfsc_status_words(uint32_t status);

/* ---- the server to connect to */

enum nfsc_transport { NFS_TCP, NFS_RDMA };

/* True if nfsc_url_parse() would take it for one, right or wrong; else it
 * names a local file. */
bool nfsc_url_is(const char *text);

/* rdma://host[:port]/path?mountport=N, and the like. */
struct nfsc_url {
	enum nfsc_transport transport;
	unsigned fabric;	/* GANNET_RPCRDMA_... */
	char	 host[256];
	uint16_t port;		/* 0: not given */
	uint16_t mountport;	/* 0: not given */
	char	 path[NFS_PATH_MAX];
};

/*
 * Takes a URL, or HOST:/PATH, which is TCP and has no escapes.  0 or -EINVAL,
 * with the reason in *@why.
 */
int nfsc_url_parse(const char *text, struct nfsc_url *url, const char **why);

struct nfsc_session;
struct nfsc_flavor;
struct nfsc_config;

/* How a user asks to be proven: sec=. */
struct nfsc_sec {
	uint32_t flavor;	/* as MNT lists it */
	/* Opens a session whose calls have it.  0 or -errno. */
	int (*open)(const struct nfsc_url *url, const struct nfsc_config *c,
		    struct nfsc_session **out);
};

struct nfsc_wire;
struct rpc_procedure;

/* TLS of all connections (RFC 9289), of tls.h. */
struct nfsc_tls {
	/* As wire_secure(), for at most @ms. */
	int (*secure)(const struct nfsc_tls *t, struct nfsc_wire *w,
		      const struct rpc_procedure *null, const char *host,
		      int ms);
	bool mutual;		/* this client has a certificate */
};

struct nfsc_config {
	const struct nfsc_tls *tls;	/* NULL: all is in clear */
	/* NULL: AUTH_SYS, with these: */
	const struct nfsc_sec *sec;
	uint32_t uid, gid;
	unsigned ngroups;
	uint32_t groups[16];
	unsigned depth;		/* operations at a time */
	unsigned timeout_ms;	/* for a reply: 0 is 60000 */
	unsigned connect_ms;	/* for a connection, and MOUNT: 0 is 10000 */
	unsigned retries;	/* to connect again: 0 is 10 */
	unsigned inline_size;	/* of RDMA: 0 is the library's */
	bool	 no_private;	/* RDMA: without RFC 8797 */
	bool	 polled;	/* RDMA: the session's thread takes replies, as
				 * session_poll() requires */
	const struct fabric *on;	/* for tests: in place of the URL's */
	struct nfsc_flavor *flavor;	/* the session's, of sec; or NULL */
};

/* Calls are made as the user and groups of this process. */
void nfsc_config_user(struct nfsc_config *c);

/* ---- a session */

struct nfsc_session_ops {
	/* 0, or -errno and @op is not the session's. */
	int  (*submit)(struct nfsc_session *s, struct nfsc_op *op);
	/* Waits for the next that is over; one must be under way. */
	struct nfsc_op *(*wait)(struct nfsc_session *s);
	struct nfsc_op *(*look)(struct nfsc_session *s);
	bool (*poll)(struct nfsc_session *s, struct pollfd *p);
	/* NULL: wait() knows since when the server is silent. */
	void (*redial)(struct nfsc_session *s);
	void (*close)(struct nfsc_session *s);
	/* Both or neither. */
	void *(*keep)(struct nfsc_session *s, void *mem, size_t len,
		      enum nfsc_kind kind);
	void (*release)(struct nfsc_session *s, void *kept);
	/* Both or neither. */
	void (*leave)(struct nfsc_session *s);
	void (*enter)(struct nfsc_session *s);
	/* The server's end.  0 or -errno. */
	int  (*peer)(struct nfsc_session *s, struct sockaddr_storage *out);
	/* NULL: has none. */
	void (*rdma)(struct nfsc_session *s, struct gannet_rpcrdma_info *info);
};

struct nfsc_session {
	const struct nfsc_session_ops *ops;
	struct nfsc_config config;
};

/* 0; -ENOKEY, as nfsc_why() says; -EOPNOTSUPP, TLS over RDMA; or another
 * -errno. */
int nfsc_session_open(const struct nfsc_url *url, const struct nfsc_config *c,
		     struct nfsc_session **out);
int nfsc_rdma_open(const struct nfsc_url *url, const struct nfsc_config *c,
		  struct nfsc_session **out);
int nfsc_tcp_open(const struct nfsc_url *url, const struct nfsc_config *c,
		 struct nfsc_session **out);

static inline int session_submit(struct nfsc_session *s, struct nfsc_op *op)
{
	return s->ops->submit(s, op);
}

static inline struct nfsc_op *session_wait(struct nfsc_session *s)
{
	return s->ops->wait(s);
}

/* The next that is over, or NULL: none is yet. */
static inline struct nfsc_op *session_look(struct nfsc_session *s)
{
	return s->ops->look(s);
}

/*
 * Sets the descriptor and the events of @p: when they come, session_look() has
 * something to do.  They are valid until the next function of @s.  False: only
 * session_wait() can go on, since it has to connect again, or the session is
 * not polled.
 */
static inline bool session_poll(struct nfsc_session *s, struct pollfd *p)
{
	return s->ops->poll(s, p);
}

/*
 * The caller has polled for as long as a server can be silent: session_wait(),
 * which comes next, connects again and doesn't wait for as long once more.
 */
static inline void session_redial(struct nfsc_session *s)
{
	if (s->ops->redial)
		s->ops->redial(s);
}

static inline void session_close(struct nfsc_session *s)
{
	s->ops->close(s);
}

/*
 * Keeps memory ready for the data of many operations of a @kind, which name it
 * in op->kept, until session_release(), when none of them is under way.  The
 * server can reach it all the time, so it holds only that data.  NULL: the
 * session can't, or need not.
 */
static inline void *session_keep(struct nfsc_session *s, void *mem, size_t len,
				 enum nfsc_kind kind)
{
	return s->ops->keep ? s->ops->keep(s, mem, len, kind) : NULL;
}

static inline void session_release(struct nfsc_session *s, void *kept)
{
	if (kept)
		s->ops->release(s, kept);
}

/*
 * Between the two the caller does slow work, and uses neither the session nor
 * anything that it shares with its other users: they go on meanwhile.
 */
static inline void session_leave(struct nfsc_session *s)
{
	if (s->ops->leave)
		s->ops->leave(s);
}

static inline void session_enter(struct nfsc_session *s)
{
	if (s->ops->enter)
		s->ops->enter(s);
}

/*
 * One operation, with nothing else under way; a server that asks for
 * patience (NFS3ERR_JUKEBOX) gets it, for a while.  Returns op->err.
 */
int session_do(struct nfsc_session *s, struct nfsc_op *op);

/* ---- MOUNT, over TCP */

#define NFS_FLAVORS_MAX	8
#define NFS_FLAVORS_TEXT (NFS_FLAVORS_MAX * 12)

struct nfsc_mount {
	struct nfs3_fh root;
	char	 dir[NFS_PATH_MAX];	/* the mounted part of url->path, */
	char	 rest[NFS_PATH_MAX];	/* and the rest */
	uint16_t port;			/* of MOUNT; 0: what rpcbind said */
	uint32_t status;		/* mountstat3, when it failed */
	/* As the server lists them, the first is to be preferred; 0: it lists
	 * none. */
	unsigned nflavors;
	uint32_t flavors[NFS_FLAVORS_MAX];
};

/*
 * Mounts the longest leading part of the URL's path that the server lets us.
 * 0; -EACCES with m->status; -ETIME, MOUNT is there and does not answer for the
 * path; or another -errno, MOUNT is not there, or refuses the call itself.
 */
int nfsc_mount(const struct nfsc_url *url, const struct nfsc_config *c,
	      struct nfsc_mount *m);
void nfsc_unmount(const struct nfsc_url *url, const struct nfsc_config *c,
		 const struct nfsc_mount *m);
/* For a URL of TCP without a port: gives it the port where the host's rpcbind
 * says that NFS is, if it is there.  False: it stays as it is. */
bool nfsc_find_port(struct nfsc_url *url, const struct nfsc_config *c);
const char *nfsc_mount_status_name(uint32_t status);
/* "krb5p", as mount(8) knows it, or NULL. */
const char *nfsc_flavor_name(uint32_t flavor);
/* "krb5p:sys"; a flavor without a name is a number. */
void nfsc_flavors_text(const struct nfsc_mount *m, char out[NFS_FLAVORS_TEXT]);
/* True if calls with the configuration's flavor are taken, as far as the server
 * says. */
bool nfsc_takes(const struct nfsc_mount *m, const struct nfsc_config *c);

/* A directory that a server exports. */
struct nfsc_export {
	struct nfsc_export *next;
	char	*who;			/* owned: "a, b"; empty: everybody */
	char	 dir[];
};

/*
 * Asks for all of them (MOUNT's EXPORT).  0, and a list in *@out, which the
 * caller frees by nfsc_exports_free(); or -errno.
 */
int nfsc_exports(const struct nfsc_url *url, const struct nfsc_config *c,
		 struct nfsc_export **out);
void nfsc_exports_free(struct nfsc_export *e);

/* True if the host's rpcbind knows a lock manager, and the host is another
 * machine: the kernel has its own here. */
bool nfsc_has_locks(const struct nfsc_url *url, const struct nfsc_config *c);

/* ---- codecs (RFC 1813), pure */

/* The procedure's number. */
uint32_t nfsc_procedure(enum nfsc_kind kind);
/* The arguments, without the data of WRITE but with its length. */
void nfsc_put_args(struct xdr_out *x, const struct nfsc_op *op);
/*
 * Decodes the results into @op; results of READ end with the length of data
 * that travelled elsewhere.  0, or -EBADMSG, or -ENOMEM.
 */
int nfsc_get_results(struct xdr_in *x, struct nfsc_op *op);
