/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options - the settings of gannetd, from gannet.conf(5) and the command line.
 *
 * Start-up and the changer's thread; an object is one thread's, until it is
 * complete and no longer changes.
 */
#ifndef GANNET_DAEMON_OPTIONS_H
#define GANNET_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "daemon/confine/confine.h"
#include "lib/log.h"
#include "transport/fabric/fabrics.h"

/* options.rdma: a bit for each row of fabrics.h, or one of these. */
#define RDMA_OFF	0u
#define RDMA_AUTO	(~0u)

/* Room for all rows of option_row.h. */
#define OPTIONS_MAX	80

/* The values that were given for an option, as they were written. */
struct option_texts {
	char		**v;		/* owned, with the strings */
	unsigned	  n;		/* more than 1: a list */
	bool		  told;		/* by the command line */
};

struct options {
	struct option_texts given[OPTIONS_MAX];

	/* The values, after the defaults.  Strings lie in @given. */
	const struct option_texts *exports;	/* --export */
	const struct option_texts *exports_files;
	const struct option_texts *backends;	/* modules to load */
	const char	 *backend_dir;
	const char	 *bind;		/* address, NULL: all */
	unsigned	  port;		/* 0: any free one */
	unsigned	  rdma_port;
	unsigned	  rdma;		/* fabrics, as bits */
	struct fabric_options fabrics[FABRICS_MAX];
	unsigned	  rdma_inline;	/* bytes */
	bool		  rdma_mount;	/* MOUNT over RDMA, too */
	bool		  rdma_read_read;	/* clients may read replies */
	unsigned	  threads;	/* workers */
	unsigned	  pollers;
	unsigned	  spin;			/* microseconds */
	unsigned	  grace;		/* seconds */
	unsigned	  max_conns;
	unsigned	  max_client_conns;
	size_t		  memory;	/* bytes of payload buffers */
	unsigned	  rdma_credits;	/* most of an RDMA connection */
	size_t		  rdma_memory;	/* bytes of RDMA connections */
	unsigned	  seccomp;	/* enum confine_calls */
	size_t		  reply_memory;	/* bytes of remembered replies */
	const char	 *config;	/* file; NULL: the system's, if any */
	bool		  check;	/* print the exports, serve nothing */
	bool		  foreground;
	bool		  rpcbind;
	bool		  manage_gids;	/* unless an export says */
	const char	 *state_dir;
	const char	 *pid_file;	/* NULL: none */
	const char	 *control;	/* NULL: in the state directory */
	unsigned	  metrics_clients;	/* that are named */
	const char	 *metrics;	/* see options_metrics(); NULL: off */
	unsigned	  log_level;	/* enum log_level */
	unsigned	  log_to;	/* enum log_target */
	const char	 *audit;	/* see gannetd(8); NULL: off */
	const char	 *audit_procs;	/* NULL: those that change something */
	const struct option_texts *audit_exports;
	unsigned	  audit_interval;	/* seconds */
	char		 *own_state_dir;	/* @state_dir, if made here */
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_WRONG };

/*
 * Reads gannet.conf and the arguments, which win.  OPTIONS_DONE: --help,
 * --version or --print-config was answered.  OPTIONS_WRONG: a message was
 * printed to standard error.  Call options_fini() after each of them.
 */
enum options_result options_parse(int argc, char **argv, struct options *o);

/*
 * Reads gannet.conf again, into @o, with the arguments that @old was made of.
 * 0, or -errno with the reason in *@why (malloced; NULL: no memory for it).
 * Call options_fini() after both.
 */
int options_again(const struct options *old, struct options *o, char **why);

/* Frees everything that belongs to @o. */
void options_fini(struct options *o);

/* Parses an IPv4 or IPv6 address without a port; NULL is all of both.  False:
 * @text is no address. */
bool options_address(const char *text, struct sockaddr_storage *out);

/* The port of "on" and of addresses without one: nobody's at IANA, and outside
 * of 9100 to 9999, which Prometheus' exporters share out. */
#define METRICS_PORT	20490
/*
 * Parses the value of --metrics: "off" or NULL, which sets the family to 0;
 * "on", that is METRICS_PORT of 127.0.0.1; or an address with or without a
 * port, where that of IPv6 stands in brackets.  NULL, or the text of an error.
 */
const char *options_metrics(const char *text, struct sockaddr_storage *out);

#endif
