/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * adversary - a client that sends any header, and knows the answer that the
 * texts demand.
 *
 * Each attack is a row: a script of messages to send (script.c has the
 * language), and the answers that the texts allow.  The server must survive
 * each attack: the same connection takes another call or, if it has ended, a
 * new one does.
 *
 * One thread runs the rows, one after the other; the peers' call-backs run on
 * the site's loop.
 */
#pragma once

#include "tests/server/rdma_peer.h"

/* The server under attack.  The struct borrows all that it points to. */
struct site {
	const char	       *name;	/* for the table */
	struct fabric		fabric;
	struct sockaddr_storage addr;
	struct loop	       *loop;
	/* It is in this process, so its counters are ours to see. */
	bool			own;
	uint32_t		root_len, file_len;
	uint8_t			root[64];	/* handles: of a directory, */
	uint8_t			file[64];	/* and a file of SITE_BYTES */
};

#define SITE_BYTES	8192u

/* The kinds of answer to a message, as bits. */
enum answer {
	SILENCE	  = 1,		/* dropped, and the connection goes on */
	ERR_VERS  = 2,		/* RDMA_ERROR, versions 1 to 1 */
	ERR_CHUNK = 4,		/* RDMA_ERROR */
	RESULTS	  = 8,		/* an RPC reply with results, */
	STATUS	  = 16,		/* or with an error of NFS, */
	GARBAGE	  = 32,		/* or GARBAGE_ARGS, */
	REFUSED	  = 64,		/* or another RPC error */
	END	  = 128,	/* of the connection */
	STRANGE	  = 256,	/* no server may send this */
};

/* Answers that are also allowed where the requester's adapter decides, not a
 * fabric of ours. */
#define BY_ADAPTER(answers)	((unsigned)(answers) << 16)

struct row {
	const char *name;
	const char *clause;	/* the text and its section */
	const char *script;	/* NULL: the attack is tested elsewhere, */
	const char *elsewhere;	/* by this test, or does not apply */
	unsigned    answers;	/* those allowed */
	const char *counter;	/* up by one for each message; NULL: none */
};

extern const struct row rows[];
extern const unsigned nrows;

/* Memory that segments name. */
enum memory {
	MEMORY_R,		/* the server may read it */
	MEMORY_W,		/* the server may write it */
	MEMORY_GONE,		/* it is no longer registered */
	MEMORY_OTHER,		/* its handle is another connection's */
	MEMORY_WILD,		/* its handle never was one */
	NMEMORIES
};

struct region {
	uint8_t		 *bytes;
	uint32_t	  len;
	struct fabric_mr *mr;		/* NULL: not registered */
	uint32_t	  handle;
};

/* A connection, and the row that is at work on it.  Set the site, and leave the
 * rest zero. */
struct attack {
	const struct site *site;
	struct peer	   peer;
	struct peer	   other;	/* for MEMORY_OTHER */
	struct region	   region[NMEMORIES];
	uint32_t	   written_to;	/* MEMORY_W is offered up to here */
	uint32_t	   granted;	/* credits */
	uint32_t	   threshold;	/* the server's, for our Sends */
	uint32_t	   xids[2048];	/* of the messages sent */
	unsigned	   nsent;
	unsigned	   allowed;	/* answers */
	bool		   open;	/* connected */
	bool		   closed;	/* by the script */
	unsigned	   seen;	/* the answers that came, as bits */
	unsigned	   answers;	/* and how many */
	char		   why[80];	/* the failure, or "" */
};

/* script.c: sends the messages of @script.  False: it has an error, which is
 * printed. */
bool script_run(struct attack *a, const char *script);
/* Returns an xid that did not come before: a server remembers the calls that it
 * answered, and calls whose chunks failed. */
uint32_t script_xid(void);

/* attack.c: sends a good call and waits for its reply and all answers. */
void attack_wait(struct attack *a);
/* Runs @row, on the connection of the row before if that goes on.  True: the
 * answer was one that is allowed.  a->seen are the answers that came, a->why is
 * the failure or "". */
bool attack_run(struct attack *a, const struct row *row);
/* Makes the file; false: the server does not let us. */
bool attack_prepare(struct site *site);
/* Ends the connection, if it is open. */
void attack_end(struct attack *a);
