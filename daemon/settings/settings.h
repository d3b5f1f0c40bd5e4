/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settings - the settings of gannetd, from gannet.conf(5) and the command line.
 *
 * Start-up and the changer's thread; an object is one thread's, until it is
 * complete and no longer changes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>

#include "daemon/confine/confine.h"
#include "exports/export.h"
#include "lib/log.h"
#include "transport/fabric/fabrics.h"
#include "transport/tls/tls.h"

/* Read unless options name others; also directories of their names and ".d". */
#define SYSTEM_CONFIG	SYSCONFDIR "/gannet/gannet.conf"
#define SYSTEM_EXPORTS	SYSCONFDIR "/gannet/exports"
/* Kerberos' own, whatever the prefix of this build. */
#define SYSTEM_KEYTAB	"/etc/krb5.keytab"

/* options.rdma: a bit for each row of fabrics.h, or one of these. */
#define RDMA_OFF	0u
#define RDMA_AUTO	(~0u)

/* Room for all rows of the table. */
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
	bool		  rdma_mount;	/* also MOUNT over RDMA */
	bool		  rdma_read_read;	/* clients can read replies */
	unsigned	  threads;	/* workers */
	unsigned	  pollers;
	unsigned	  spin;			/* microseconds */
	unsigned	  grace;		/* seconds */
	unsigned	  max_conns;
	unsigned	  max_client_conns;
	size_t		  memory;	/* bytes of payload buffers */
	unsigned	  rdma_credits;	/* most of an RDMA connection */
	size_t		  rdma_memory;	/* bytes of RDMA connections */
	const char	 *krb5_keytab;	/* "off"; NULL: the system's, if any */
	const char	 *tls_cert;	/* NULL: no TLS */
	const char	 *tls_key;
	const char	 *tls_ca;	/* NULL: clients prove no identity */
	const char	 *tls_crl;
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
	const char	 *audit_procs;	/* NULL: "changes" */
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
 * @text is not an address. */
bool options_address(const char *text, struct sockaddr_storage *out);

/* The port of "on" and of addresses without one: unassigned at IANA, outside
 * of 9100 to 9999, which Prometheus' exporters share out. */
#define METRICS_PORT	20490
/*
 * Parses the value of --metrics: "off" or NULL, which sets the family to 0;
 * "on", that is METRICS_PORT of 127.0.0.1; or an address with or without a
 * port, where that of IPv6 stands in brackets.  NULL, or the text of an error.
 */
const char *options_metrics(const char *text, struct sockaddr_storage *out);

/*
 * option_row - the table of gannetd's settings: each is a key of
 * gannet.conf(5), an option of the command line, or both.  The parsers, --help
 * and --print-config are made from it.
 */

#define MAX_POLLERS	256u

enum option_kind {
	OPTION_NUMBER,		/* unsigned, from min to max */
	OPTION_MIB,		/* size_t in bytes, given in MiB */
	OPTION_FLAG,		/* bool: yes or no */
	OPTION_BIT,		/* yes or no; bit @min of an unsigned says that
				 * it is @bare */
	OPTION_WORD,		/* unsigned: the place in @words */
	OPTION_TEXT,		/* const char *, that @check looked at */
	OPTION_LIST,		/* const struct option_texts * */
	OPTION_RDMA,		/* options.rdma */
};

struct option_row {
	const char *section;	/* of gannet.conf; NULL: not for it */
	const char *key;
	const char *name;	/* --NAME; NULL: gannet.conf alone has it */
	const char *arg;	/* NULL: --NAME stands for @bare */
	const char *help;	/* with @name */
	enum option_kind kind;
	size_t at;		/* in struct options */
	unsigned long min, max;
	bool live;		/* a reload applies it */
	const char *bare;	/* NULL: "yes" */
	const char *const *words;	/* NULL after the last */
	/* Returns NULL, or the text of an error. */
	const char *(*check)(const char *value);
};

/* Counts the rows; the rows of the fabrics are the last. */
unsigned options_count(void);
const struct option_row *option_row(unsigned i);
/* The row of a key, in which '-' and '_' are the same, in @section, or in any
 * if that is NULL.  NULL: no such row. */
const struct option_row *option_of_key(const char *section, const char *key);
/* True if some row has the section. */
bool option_section(const char *section);

/*
 * Gives the option of @row one more value; of the command line if @told, whose
 * values override other ones.  NULL, or the text of an error, which is good
 * until the next call.
 */
const char *option_give(struct options *o, const struct option_row *row,
			const char *value, bool told);

/* The texts that were given for @row. */
const struct option_texts *option_given(const struct options *o,
					const struct option_row *row);

/* Prints the value that @row has in @o, as gannet.conf takes it. */
void option_print(const struct options *o, const struct option_row *row,
		  FILE *out);

/* config - reads gannet.conf(5).  Start-up and the changer's thread. */

/*
 * Gives @o the values of the file o->config and of the files *.conf in the
 * directory of its name with ".d", in the order of their names.  NULL stands
 * for the system's file, which can be missing, as the directory can.  0, or
 * -errno with "FILE:LINE: ..." in *@why (malloced; NULL: no memory for it).
 */
int config_read(struct options *o, char **why);

/*
 * own_files - files that clients must not see or change, besides the state
 * directory.
 */

/* Keeps all files that @o has the server read or write out of every tree of
 * posix, and its log, if that is a file.  0 or an error of posix_keep_out().
 * Blocks at the start; later for two seconds. */
int own_files_keep(const struct options *o);
/* The same, but the present files stay kept as well, until own_files_keep().
 * *@late: as posix_keep_out_too(). */
int own_files_keep_too(const struct options *o, char **late);
/* The module krb5 is in the directory of modules. */
bool options_has_krb5(const struct options *o);

/* tls_files - the files of TLS. */

/* Reads the files of TLS; *@out is NULL if @o names none.  0, with warnings
 * about them in *@why, a line each (malloced; NULL: none); or -errno with the
 * reason there (NULL: no memory for it).  -ETIMEDOUT: their file system had not
 * answered at @until (clock_ns(); UINT64_MAX: it waits). */
int options_tls(const struct options *o, uint64_t until,
		struct tls_config **out, char **why);
/* Both name the same files. */
bool options_tls_same(const struct options *a, const struct options *b);
/* The most that connections can have with @o. */
enum rpc_protection options_protection(const struct options *o);

/* dropins - the files of a directory whose names end alike. */

/*
 * Calls @fn with the path of each file in @dir whose name ends in @suffix and
 * does not begin with a dot, in the order of their names.  The number of
 * files, or -errno: of the directory, or the first that @fn returns, which
 * ends the walk.  Any thread; waits for the disk.
 */
int drop_ins(const char *dir, const char *suffix,
	     int (*fn)(void *arg, const char *path), void *arg);
