/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor - finds what prevents a mount, or how to mount.
 *
 * Each examination records findings, in the order in which a mount needs their
 * subjects; the first failure is the one thing to mend.
 */
#pragma once

#include <netdb.h>

#include "tools/nfs/tool.h"
#include "tools/nfs/wire.h"

/* GOOD; a fact; things that work less well; a fault that keeps a mount from
 * working. */
enum verdict { GOOD, FACT, POOR, BAD };

struct json_t;

struct doctor {
	struct tool  t;			/* not connected; only the URL is set */
	struct addrinfo *addresses;	/* owned */
	const struct sockaddr *at;	/* the address that answered, */
	char	     address[64];	/* and its text */
	int	     code;		/* so far */
	char	     mend[600];		/* empty: nothing */
	struct json_t *findings;	/* owned; NULL without --json */
	bool	     mounted;		/* t.mount is filled in */
	bool	     alone;		/* a host was named, without a path */
	/* A path to examine then, or a command with it. */
	char	     next[NFS_PATH_MAX + 400];
	uint16_t     nfs_port;		/* of TCP, */
	bool	     has_tls;		/* which has TLS */
	/* Of TCP, as rpcbind says; 0: it does not. */
	uint16_t     told_nfs, told_mount, lock_port;
	int	     bind_err;		/* 0, or why rpcbind does not say */
	/* A file to read, and whether it is the doctor's own. */
	struct tool_object file;
	bool	     own_file;
	bool	     asked;		/* the URL is for this transport */
	double	     us[3];		/* a round trip over each; 0: none */
};

/* Notes a finding about @about. */
void doctor_note(struct doctor *d, enum verdict v, const char *about,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The remedy of a BAD finding, which is noted right before: the first stays.
 * @code is the tool's exit code. */
void doctor_mend(struct doctor *d, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Notes @what, where short calls pass over this way: -errno @err, or else its
 * status. */
void doctor_failed(struct doctor *d, const char *way, const char *what,
		   int err, uint32_t status);
/* The meaning of an error: "refused: nothing listens there". */
const char *doctor_reason(int err);
/* Reports the remedy, or how to mount; frees the findings. */
void doctor_conclude(struct doctor *d);

/* An answer of a program to its procedure 0. */
struct probe {
	int	 err;		/* 0, or -errno: -ETIMEDOUT to connect, and
				 * -ETIME for an answer */
	bool	 other;		/* it has other versions: */
	uint32_t low, high;
	double	 ms;
};

/* Asks a program at a port of the address that answers. */
void doctor_probe(struct doctor *d, uint16_t port, uint32_t program,
		  uint32_t version, struct probe *p);
/* True if a web server is at the port. */
bool doctor_is_web(struct doctor *d, uint16_t port);

/* The examinations.  False: what follows would find nothing more. */
bool doctor_name(struct doctor *d);
bool doctor_ports(struct doctor *d);
bool doctor_mount(struct doctor *d);
/* Needs the mount. */
bool doctor_secure(struct doctor *d);
bool doctor_path(struct doctor *d);
void doctor_groups(struct doctor *d);
void doctor_transports(struct doctor *d);
/* A part of that: makes a link in @dir, over RDMA, and removes it again. */
void doctor_long(struct doctor *d, const char *way, const struct tool *t,
		 const struct nfs3_fh *dir);
/* Of NFS at nfs_port, where it answers. */
void doctor_tls(struct doctor *d);
void doctor_locks(struct doctor *d);
