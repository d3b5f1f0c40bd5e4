/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dup_client - a client that can send anything twice: it chooses xids, ports
 * and addresses, when it reads, and how a connection ends.
 *
 * Calls are NFS's, with AUTH_SYS of root, on names in one directory.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "exports/export.h"
#include "lib/xdr.h"
#include "wire/nfs3.h"

#define DUP_CALL_MAX	4096

/* A call with its record mark; sent as often as one likes. */
struct dup_call {
	uint32_t	 xid;
	struct xdr_out	 out;
	uint8_t		 buf[DUP_CALL_MAX];
};

enum dup_create { DUP_UNCHECKED, DUP_GUARDED };

/* The directory that names are in.  Set by the test. */
extern struct nfs3_fh dup_dir;

/* REMOVE, RMDIR, LOOKUP. */
void dup_name(struct dup_call *c, uint32_t xid, uint32_t proc,
	      const char *name);
void dup_create(struct dup_call *c, uint32_t xid, const char *name,
		enum dup_create how);
void dup_mkdir(struct dup_call *c, uint32_t xid, const char *name);
void dup_rename(struct dup_call *c, uint32_t xid, const char *from,
		const char *to);
/* Of @file under a new name. */
void dup_link(struct dup_call *c, uint32_t xid, const struct nfs3_fh *file,
	      const char *name);
/* Of @len bytes at 0. */
void dup_write(struct dup_call *c, uint32_t xid, const struct nfs3_fh *file,
	       const void *data, uint32_t len);
void dup_getattr(struct dup_call *c, uint32_t xid,
		 const struct nfs3_fh *file);
void dup_read(struct dup_call *c, uint32_t xid, const struct nfs3_fh *file,
	      uint32_t len);

/* A socket that is connected to loopback; @family AF_INET or AF_INET6.  @from
 * is an IPv4 address to come from, or NULL. */
int dup_connect(int family, uint16_t port, const char *from);
/* The same from the address and port of @own, which are free now. */
int dup_connect_from(const struct sockaddr_storage *own, uint16_t port);
void dup_send(int fd, const struct dup_call *c);

struct dup_reply {
	uint32_t	 xid;
	uint32_t	 status;	/* NFS's */
	struct xdr_in	 in;		/* behind it */
	uint8_t		 buf[DUP_CALL_MAX];
};

/* Takes the next reply. */
void dup_take(int fd, struct dup_reply *r);
/* Takes the next reply, which must be @c's; its status. */
uint32_t dup_status(int fd, const struct dup_call *c);
/* Sends and takes. */
uint32_t dup_do(int fd, const struct dup_call *c);
/* Looks @name up over @fd, and returns the status; @fh can be NULL. */
uint32_t dup_lookup(int fd, const char *name, struct nfs3_fh *fh);

bool dup_exists(int fd, const char *name);
/* Makes a file, with an xid that no other call has. */
void dup_make(int fd, const char *name);

/* The kernel drops the data that come, as if the cable were cut: nothing is
 * read, nothing is acknowledged.  Data that is sent goes out, and its
 * acknowledgement comes in: else the kernel would send it again, and be heard
 * by that. */
void dup_deafen(int fd);
/* Closes with a reset. */
void dup_reset(int fd);
