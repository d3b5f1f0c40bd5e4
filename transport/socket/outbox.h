/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outbox - the part of a connection that all threads use: sending, and starting
 * the close.
 *
 * Operation: a user posts messages under the outbox's lock, in its lists, and
 * pushes.  A thread that finds no sender becomes the sender: it claims all
 * posted messages, sends them without the lock, and claims again, until nothing
 * is left or the socket is full.  Then the loop waits for the socket and
 * becomes the sender (outbox_ready()).
 *
 * At any time one thread at most sends, perhaps a worker.  It owns the claimed
 * messages until it leaves.
 *
 * Any thread can start the connection's close (outbox_close()).  Only the loop
 * ends it: update() learns of the end, kills the outbox, and closes the socket
 * when the outbox is over.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "lib/loop.h"
#include "lib/thread.h"
#include "transport/pipe.h"

/* Room for pieces that a fill need not bring with it. */
#define OUTBOX_IOVS	192

/* The next bytes of the stream: from memory, or from a pipe. */
struct outbox_piece {
	struct iovec	*iov;	/* OUTBOX_IOVS of them, or the user's own */
	unsigned	 niov;
	struct pipe	*pipe;	/* borrowed; NULL: from memory */
	size_t		 piped;	/* bytes from there, at most */
	bool		 more;	/* others follow at once */
	bool		 ends;	/* the next bytes begin a TCP segment, if all of
				 * this, in memory, is taken at once */
};

struct outbox;

/*
 * The user's part.  The sender calls it.  "Locked" calls must take no other
 * lock, but can post a task.
 */
struct outbox_ops {
	/* Locked: claims the posted messages.  True if it has anything to
	 * send. */
	bool (*claim)(struct outbox *o);
	/* Supplies the bytes that follow those reported to sent().  0, or
	 * -errno: the supplied bytes are still sent, as the last ones. */
	int  (*fill)(struct outbox *o, struct outbox_piece *p);
	/* After each fill: the socket has taken the next @n bytes, perhaps 0;
	 * @full: the socket is full for now.  0, or -errno: stop
	 * sending. */
	int  (*sent)(struct outbox *o, size_t n, bool full);
	/* Locked: the same, for other threads to see. */
	void (*publish)(struct outbox *o, size_t n);
	/* Sends the pieces that are in memory, in place of sendmsg(2): the
	 * bytes, fewer if the socket is full; -EAGAIN: none; or -errno.  NULL:
	 * they go to the socket as they are. */
	ssize_t (*send)(struct outbox *o, const struct outbox_piece *p);
};

struct outbox {
	const struct outbox_ops *ops;
	int		 fd;		/* borrowed */
	struct loop	*loop;		/* borrowed; NULL: kicks are lost */
	struct loop_task task;
	/* Called on the loop after a kick. */
	void (*update)(struct outbox *o);
	/* The end has begun.  Set under the lock, with err. */
	atomic_bool	 closing;
	bool		 gathering;	/* the loop's: it pushes once, after
					 * many posts */
	/* Guards the fields below and what the user posts.  A leaf, except that
	 * a task can be posted under it. */
	pthread_mutex_t	 lock;
	bool		 kicked;	/* the task is on its way, or the
					 * outbox is over */
	bool		 held;		/* posts stay unclaimed; the loop sets
					 * it */
	bool		 blocked;	/* the socket is full */
	bool		 sending;	/* a thread is the sender */
	bool		 dead;		/* killed, or failed */
	int		 err;		/* the reason to close */
	uint64_t	 sent;		/* bytes that the socket took */
};

void outbox_init(struct outbox *o, const struct outbox_ops *ops,
		 void (*update)(struct outbox *o), int fd, struct loop *loop);
void outbox_fini(struct outbox *o);
/* With the lock, which it releases meanwhile: sends the posted messages, unless
 * another thread does or the socket is full. */
void outbox_push(struct outbox *o);
/* True if the caller is the loop's thread while it gathers: it need not push
 * after posting. */
static inline bool outbox_gathers(const struct outbox *o)
{
	return o->loop == loop_current && o->gathering;
}

/* The loop's: the socket has room again. */
void outbox_ready(struct outbox *o);
/* Begins the end, for the reason @err, unless it has begun, and kicks.  A
 * sender that fails also does so.  Any thread. */
void outbox_close(struct outbox *o, int err);
/* Ends all sending.  True if all threads have left it; otherwise update() will
 * still be called. */
bool outbox_kill(struct outbox *o);
/* With the lock: has the loop call update().  A sender that leaves a full
 * socket or a dead outbox also does so. */
void outbox_kick(struct outbox *o);
/* The loop's, after a kill: true if no thread sends and no task is on its way.
 * No thread will send again; otherwise update() will still be called. */
bool outbox_over(struct outbox *o);
