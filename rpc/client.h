/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client - outgoing ONC RPC calls (RFC 5531), asynchronous, over UDP and TCP.
 *
 * A client has one thread, with a loop.  It sends calls, sends them again with
 * the same xid until an answer comes or their time is over, and calls back.
 * Calls to one address share a socket, which is connected: the kernel passes on
 * only data from that address and port.  An answer is matched by its xid with
 * the calls of its socket; other answers are counted and dropped.
 *
 * Calls carry an AUTH_SYS credential of this process, and come from a reserved
 * port if the process can bind one: lock managers and status monitors require
 * that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/xdr.h"

/* The most bytes of a call's arguments, and of an answer with its header. */
#define RPC_CLIENT_ARGS_MAX	2048
#define RPC_CLIENT_ANSWER_MAX	4096

struct rpc_client;

/* 0 is the default of every field. */
struct rpc_client_config {
	unsigned max_calls;		/* in progress: 1024, */
	unsigned max_host_calls;	/* and to one address: 64 */
	unsigned max_sockets;		/* 128 */
	uint32_t idle_ms;		/* a socket without calls lives: 10 s */
	uint16_t rpcbind_port;		/* of every host: 111 */
};

/* 0 or -errno; the thread runs when it returns. */
int rpc_client_create(const struct rpc_client_config *config,
		      struct rpc_client **out);
/*
 * Ends every call with -ECANCELED, then the thread.  Not on the client's
 * thread; not while another thread is in rpc_client_call().
 */
void rpc_client_destroy(struct rpc_client *c);

struct rpc_client_to {
	/* The host.  Port 0: the client asks the host's rpcbind for the port of
	 * the program over @proto, and remembers it for half a minute. */
	struct sockaddr_storage addr;
	/* The address to call from, its port is not used; family 0: any. */
	struct sockaddr_storage from;
	int	 proto;			/* IPPROTO_UDP or IPPROTO_TCP */
	uint32_t prog, vers, proc;
	/* Called with the port that rpcbind told, before the call is sent, on
	 * the client's thread: must not wait.  Not 0: the call ends with this
	 * -errno.  NULL: each port is believed. */
	int	 (*check)(uint16_t port);
	/* A one-way call: it ends when it was sent, and is not sent again. */
	bool	 one_way;
	/* The call is sent once: a host that answers it twice would answer
	 * differently. */
	bool	 once;
	uint32_t timeout_ms;		/* for everything; 0: 10 s */
	/* From the first sending to the second; then doubled, up to 8 times as
	 * long.  Over TCP a call is sent again on a new connection only.
	 * 0: 1 s. */
	uint32_t resend_ms;
};

/*
 * Called once for each call, on the client's thread: must not wait.  It can
 * make calls.  @results is valid only with @err 0, while this runs; a one-way
 * call has no results.
 *
 * @err is 0, -ETIMEDOUT (no answer), -ECONNREFUSED (no process listens),
 * -ENOENT (not registered with the host's rpcbind), an error of
 * rpc_header_reply(), -EBUSY (too many calls to this host, or no socket is
 * free), -ECANCELED (the client ends), or another error of a socket or of
 * @to.check().  Of a call that is to be sent once, -EHOSTUNREACH: it was not
 * sent, for another reason than -EBUSY and -ECANCELED; -ECONNRESET: it was, and
 * its socket has failed.
 */
typedef void rpc_client_done(void *arg, int err, struct xdr_in *results);

/*
 * Makes a call with the @len bytes of encoded arguments at @args, which are
 * copied.  @done can be NULL: the answer is not needed.  Any thread; doesn't
 * wait.  0: @done will be called.  Else it won't: -EBUSY: too many calls are in
 * progress; -EMSGSIZE, -EAFNOSUPPORT, -ENOMEM; -ECANCELED: the client ends.
 */
int rpc_client_call(struct rpc_client *c, const struct rpc_client_to *to,
		    const void *args, size_t len, rpc_client_done *done,
		    void *arg);
