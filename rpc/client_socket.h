/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client_socket - a connected socket of rpc/client: messages out, answers in.
 *
 * All functions and call-backs on the thread of its loop.  A call-back must not
 * free the socket, but can close it, and open it again.
 */
#pragma once

#include "lib/loop.h"
#include "rpc/client.h"
#include "wire/record.h"

enum client_socket_state { CLIENT_CLOSED, CLIENT_CONNECTING, CLIENT_OPEN };

struct client_socket;

struct client_socket_ops {
	/* It is open: messages can be sent. */
	void (*opened)(struct client_socket *s);
	/* An answer of @len bytes, as long as this runs. */
	void (*answer)(struct client_socket *s, const uint8_t *data,
		       uint32_t len);
	/* It was closed with @err; @was is the state before. */
	void (*lost)(struct client_socket *s, int err,
		     enum client_socket_state was);
};

struct client_socket {
	/* Set by the caller before anything else: */
	const struct client_socket_ops *ops;
	struct loop	*loop;			/* borrowed */
	int		 proto;
	struct sockaddr_storage to, from;

	enum client_socket_state state;
	struct loop_fd	 fd;
	/* TCP: bytes that the kernel did not take yet, */
	uint8_t		*out;
	size_t		 nout;
	/* and the record that comes in. */
	struct record_in record;
	uint32_t	 nin;
	uint8_t		 in[RPC_CLIENT_ANSWER_MAX];
};

/* Opens a closed one.  0: it is open now, or will be, or be lost; or -errno. */
int client_socket_open(struct client_socket *s);
/*
 * Sends a message that begins with its record mark, which UDP leaves out.  0,
 * also if the kernel had no room for it: the answer won't come; -errno: the
 * socket was lost, which is not told otherwise.
 */
int client_socket_send(struct client_socket *s, const uint8_t *data,
		       size_t len);
/* Closes it without a word. */
void client_socket_close(struct client_socket *s);

/* True if both are addresses of one host, on one link. */
bool client_same_host(const struct sockaddr_storage *a,
		      const struct sockaddr_storage *b);
