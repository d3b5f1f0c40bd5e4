/* SPDX-License-Identifier: BSD-2-Clause */
/* cut_relay - a relay between ./gannet-nfs and ./gannetd that cuts. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct relay {
	int	    fd;
	_Atomic uint16_t to;
	size_t	    cut_after;	/* bytes of a connection, both ways */
	unsigned    cuts;	/* so many connections; */
	uint16_t    then;	/* the next ones lead there; 0: as before */
	atomic_uint connections;
	void	   *(*run)(void *relay);	/* NULL: one that cuts */
	pthread_t   thread;
};

/* From now on URLs lead through it to the server. */
void relay_start(struct relay *r, int way);
void relay_stop(struct relay *r);
