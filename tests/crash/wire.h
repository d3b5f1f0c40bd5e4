/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire - connections of libnfs that carry the operations of slots, and single
 * calls that are waited for.
 */
#pragma once

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

#include "tests/crash/model.h"

struct wire {
	struct nfs_context *nfs;
	struct rpc_context *rpc;
	uint16_t port;			/* of the server, or of the way to it */
	bool	 broken;
};

/* The outcome of a single call. */
struct wire_attr {
	int	 status;		/* nfsstat3; -1: no answer */
	unsigned type, mode;
	uint64_t fileid, size;
	struct model_fh fh;		/* of LOOKUP and CREATE */
};

/* @program of 127.0.0.1: false: no answer. */
bool wire_open(struct wire *w, uint16_t port, int program);
void wire_close(struct wire *w);
/* The root of @path; by a connection to the MOUNT program. */
bool wire_mount(struct wire *w, const char *path, struct model_fh *root);

/* Where the names of slots are. */
extern struct model_fh wire_dirs[SLOT_DIRS];
/* Called when an operation ends: @status is nfsstat3, or -1 without an
 * answer. */
typedef void wire_done_fn(struct slot *slot, int status,
			  const struct ack *ack);
extern wire_done_fn *wire_done;

/* Sends slot->op. */
void wire_start(struct wire *w, struct slot *slot);
/* Waits for replies on @n connections, at most @ms. */
void wire_serve(struct wire *w, unsigned n, int ms);

struct wire_attr wire_getattr(struct wire *w, const struct model_fh *fh);
struct wire_attr wire_lookup(struct wire *w, const struct model_fh *dir,
			     const char *name);
/* CREATE EXCLUSIVE, as an operation of a slot with this @tag sends it. */
struct wire_attr wire_exclusive(struct wire *w, const struct model_fh *dir,
				const char *name, uint32_t tag);
/* MKDIR; an existing one is as good. */
bool wire_mkdir(struct wire *w, const struct model_fh *dir, const char *name,
		struct model_fh *out);
/* Gives the object that @from has as @name to @to, with the same name; a
 * status. */
int wire_move(struct wire *w, const struct model_fh *from, const char *name,
	      const struct model_fh *to);
/* Reads a whole file of at most @size bytes, padded with zeros.  Returns a
 * status. */
int wire_read(struct wire *w, const struct model_fh *fh, uint8_t *data,
	      uint32_t size);
int wire_readlink(struct wire *w, const struct model_fh *fh, char out[1025]);
/* Calls @each for every name but "." and ".."; a status. */
int wire_list(struct wire *w, const struct model_fh *dir,
	      void (*each)(void *arg, const char *name), void *arg);
