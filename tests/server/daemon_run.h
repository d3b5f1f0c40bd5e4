/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon_run - gannetd as a separate process, for tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct daemon_run {
	pid_t	 pid;
	uint16_t tcp_port;
	uint16_t udp_port;
	uint16_t rdma_port;	/* of iWARP in user space */
	bool	 no_override;	/* files' modes also hold for root */
	bool	 no_state_dir;	/* the configuration has it */
	uid_t	 uid;		/* as whom it runs; 0: as we do */
	char	 settings[512];	/* the text of its gannet.conf; "": it has none,
				 * or that of a --config */
	int	 status;	/* as waitpid() gives it, when it has ended */
	int	 kept_port;	/* a socket, or -1 */
	char	 dir[64];	/* its own, with state/ and log below */
};

/* A directory for the test's files, at d->dir. */
void daemon_prepare(struct daemon_run *d);
/* Sets d->tcp_port to a free port, for --port.  It stays free for this daemon,
 * also between an end and the next start, until daemon_clean(). */
void daemon_keep_port(struct daemon_run *d);
/*
 * Starts gannetd with the NULL-terminated @args and a few more (foreground,
 * free ports, state directory).  True: it said it is ready.  False: it ended
 * first, see status.
 */
bool daemon_start(struct daemon_run *d, const char *const args[]);
/* Sends @sig and waits for the end, at most a minute. */
void daemon_end(struct daemon_run *d, int sig);
/* True if the process still runs. */
bool daemon_alive(struct daemon_run *d);
/* True if its log contains @text now. */
bool daemon_has_logged(struct daemon_run *d, const char *text);
/* Returns a thread of the daemon whose name begins with @name and whose state
 * in /proc is @state (0: any), or 0 if none is. */
pid_t daemon_thread(struct daemon_run *d, const char *name, char state);
/* Waits up to a minute for @text in its log; true if it came. */
bool daemon_logged(struct daemon_run *d, const char *text);
/* The port of 127.0.0.1 that --metrics got; waits for it as daemon_logged()
 * does. */
uint16_t daemon_web_port(struct daemon_run *d);
/* Sends @len bytes to @port and puts the answer, up to its end, to @out, which
 * has @size bytes, with a zero. */
void daemon_fetch(uint16_t port, const char *bytes, size_t len, char *out,
		  size_t size);
/* Removes d->dir, and gives the kept port back. */
void daemon_clean(struct daemon_run *d);

/* A connection to @port of 127.0.0.1, with a receive time-out. */
int daemon_connect(uint16_t port);
/* A NULL call of NFS over a separate connection: true when answered. */
bool daemon_answers(struct daemon_run *d);
