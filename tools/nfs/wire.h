/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire - a TCP connection that carries calls and replies as records (RFC 5531
 * section 11).
 *
 * One thread uses a wire.  After an error a wire can only be closed.
 */
#pragma once

#include "tools/nfs/rpc.h"

struct sockaddr;
struct sockaddr_storage;
struct xdr_in;
struct iovec;
struct nfsc_wire;

/* A message to send: @head, then @data.  Owned by the caller, with the memory
 * that it names; lent until it is sent completely or the wire is closed. */
struct wire_out {
	struct cds_list_head link;
	const void	*head, *data;
	uint32_t	 head_len, data_len;	/* bytes */
	size_t		 sent;			/* the wire's: 0 at first */
};

/*
 * Connects to a program of @host, protects that as wire_secure() does, and
 * calls procedure 0, at the first of the host's addresses that answers; each
 * step can take @c's connect_ms.  Port 0 asks the rpcbind at that address, in
 * clear.  0; -EHOSTUNREACH, no such host; -EPROTONOSUPPORT, no such program; or
 * another -errno.
 */
int wire_open(const char *host, uint16_t port, uint32_t program,
	      uint32_t version, const struct nfsc_config *c,
	      struct nfsc_wire **out);
/*
 * Connects to a port of an address, whose own port does not matter, and says
 * nothing; root connects from a port below 1024 if @reserved.  0; -ETIMEDOUT
 * after @ms; or another -errno.
 */
int wire_dial(const struct sockaddr *host, uint16_t port, int ms, bool reserved,
	      struct nfsc_wire **out);
/*
 * Begins TLS with the server @host, if @c has it, and nothing else.  The
 * program's procedure 0 asks for it.  0; -ENOKEY, the server has no TLS or is
 * not proven, as nfsc_why() says; or another -errno.
 */
int wire_secure(struct nfsc_wire *w, const struct rpc_procedure *null,
		const struct nfsc_config *c, const char *host);
/* Asks the rpcbind of an address where a program is over TCP.  0;
 * -EPROTONOSUPPORT, it knows none; or another -errno. */
int wire_find_port(const struct sockaddr *host, uint32_t program,
		   uint32_t version, int ms, uint16_t *port);
/* The same without the wire: a non-blocking descriptor, or -errno. */
int wire_connect(const struct sockaddr *to, bool reserved, int ms);
/* The other end.  0 or -errno. */
int wire_peer(const struct nfsc_wire *w, struct sockaddr_storage *out);
void wire_close(struct nfsc_wire *w);
/* True if both ends have one address: the host is this machine. */
bool wire_is_local(const struct nfsc_wire *w);

/*
 * The bytes of a wire, in place of its socket: TLS (transport/tls/tls.h).
 */
struct wire_guard {
	/* The bytes; 0: the end; -EAGAIN: nothing has come; -EBUSY: the socket
	 * needs room first; or -errno. */
	ssize_t (*recv)(struct wire_guard *g, const struct iovec *iov);
	/* The bytes; -EAGAIN: there is no room; or -errno. */
	ssize_t (*send)(struct wire_guard *g, const struct iovec *iov,
			unsigned n);
	/* True if recv() has something although the socket has nothing. */
	bool (*pending)(struct wire_guard *g);
	/* Also frees it. */
	void (*close)(struct wire_guard *g);
};

/* Takes @g, with nothing under way, for all bytes from now on.  0; or -EPROTO:
 * bytes have come already. */
int wire_protect(struct nfsc_wire *w, struct wire_guard *g);
/* The bytes of a wire that has no calls of this file, without waiting: how many
 * came or went; 0: none; or -errno. */
ssize_t wire_read(struct nfsc_wire *w, void *to, size_t len);
ssize_t wire_write(struct nfsc_wire *w, struct iovec *iov, unsigned n);
/* True if wire_read() has something although the socket has nothing. */
bool wire_pending(struct nfsc_wire *w);

/* Sends as much as the socket takes; wire_receive() sends the rest. */
void wire_send(struct nfsc_wire *w, struct wire_out *m);
/* True if all of it is sent. */
bool wire_sent(const struct wire_out *m);

/*
 * Waits for a record, which is the wire's and stays until the next call.  0;
 * -ETIMEDOUT, nothing came for @ms; -EBADMSG, bytes that are not a record; or
 * another -errno.
 */
int wire_receive(struct nfsc_wire *w, int ms, struct xdr_in *x);

/* The descriptor, and the events that wire_receive() would wait for. */
void wire_poll(struct nfsc_wire *w, struct pollfd *p);

/*
 * Calls a procedure with @args (RFC 4506) and waits for its results, with
 * nothing else under way.  0, an error of wire_receive() or of
 * rpc_get_reply().
 */
int wire_call(struct nfsc_wire *w, const struct rpc_procedure *p,
	      const struct nfsc_config *c, const void *args, uint32_t len,
	      int ms, struct xdr_in *x);

struct nlm_args;
/* Calls a procedure of the lock manager, version 4.  0 with its status, or as
 * above. */
int wire_call_locks(struct nfsc_wire *w, const struct nfsc_config *c,
		    uint32_t procedure, const struct nlm_args *a,
		    uint32_t *status);
