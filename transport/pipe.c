/* SPDX-License-Identifier: BSD-2-Clause */
/* pipe - payload that stays in the kernel. */
#include "transport/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/fds.h"
#include "lib/thread.h"

/* The descriptors of all pipes of this size that an unprivileged user can have
 * (pipe(7)). */
#define PIPE_FDS_MAX	(2 * 64l)

struct pipes {
	pthread_mutex_t	 lock;		/* guards the rest; innermost */
	struct pipe	*free;
	long		 n;		/* free or not */
	long		 max;
};

int pipes_create(struct pipes **out)
{
	struct pipes *pipes = calloc(1, sizeof(*pipes));

	if (!pipes)
		return -ENOMEM;
	pipes->max = fds_small(PIPE_FDS_MAX) / 2;
	pthread_mutex_init(&pipes->lock, NULL);
	*out = pipes;
	return 0;
}

static void pipe_end(struct pipe *p)
{
	close(p->rd);
	close(p->wr);
	free(p);
}

void pipes_destroy(struct pipes *pipes)
{
	struct pipe *p;

	while ((p = pipes->free)) {
		pipes->free = p->next;
		pipes->n--;
		pipe_end(p);
	}
	assert(pipes->n == 0);
	pthread_mutex_destroy(&pipes->lock);
	free(pipes);
}

static struct pipe *pipe_make(struct pipes *pipes)
{
	struct pipe *p = calloc(1, sizeof(*p));
	int fd[2];

	if (!p)
		return NULL;
	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(p);
		return NULL;
	}
	p->rd = fd[0];
	p->wr = fd[1];
	p->pipes = pipes;
	if (fcntl(p->wr, F_SETPIPE_SZ, PIPE_MAX) >= (int)PIPE_MAX)
		return p;
	pipe_end(p);
	return NULL;
}

static void forget(struct pipes *pipes)
{
	mutex_lock(&pipes->lock);
	pipes->n--;
	mutex_unlock(&pipes->lock);
}

struct pipe *pipe_get(struct pipes *pipes)
{
	struct pipe *p;
	bool room;

	mutex_lock(&pipes->lock);
	p = pipes->free;
	if (p)
		pipes->free = p->next;
	room = !p && pipes->n < pipes->max;
	pipes->n += room;
	mutex_unlock(&pipes->lock);
	if (room) {
		p = pipe_make(pipes);
		if (!p)
			forget(pipes);
	}
	return p;
}

void pipe_put(struct pipe *p)
{
	struct pipes *pipes;

	if (!p)
		return;
	pipes = p->pipes;
	if (p->left) {
		pipe_end(p);
		forget(pipes);
		return;
	}
	mutex_lock(&pipes->lock);
	p->next = pipes->free;
	pipes->free = p;
	mutex_unlock(&pipes->lock);
}
