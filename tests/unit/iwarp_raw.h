/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iwarp_raw - the iWARP fabric against a plain socket that speaks bytes.
 *
 * The fabric's end runs on a loop; the test's thread is the other end.
 */
#pragma once

#include <netinet/in.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "tests/unit/iwarp_world.h"
#include "transport/fabric/iwarp/iwarp.h"

/* Requests and a reply, with the private data of RFC 8797. */
#define REQ_KEY	"4d504120494420526571204672616d65"
#define REP_KEY	"4d504120494420526570204672616d65"
#define REQ_SIW	REQ_KEY "1002000c" "00800000" "f6ab0e1801010303"
#define REP_RAW	REP_KEY "1002000c" "00000010" "f6ab0e1801010303"

enum { RAW_RECVS = 8, RAW_RECV = 1024, RAW_AREA = 1 << 20,
       RAW_TERM = 128 };

struct raw_recv {
	struct fabric_op   op;
	struct fabric_recv recv;
	struct raw	  *raw;
};

/* The fabric's end. */
struct raw {
	struct fabric	 fabric;
	struct loop	*loop;
	struct fabric_listener *listener;
	_Atomic(struct fabric_conn *) conn;
	struct fabric_device	*dev;	/* of the last one, once it is closed */
	struct fabric_info info;	/* as of established() */
	struct iwarp_depths depths;	/* the peer's, then */
	struct iwarp_depths last_depths; /* ... and as of closed() */
	unsigned	 read_depth;	/* for the peer's Reads */
	bool		 reject;	/* connection requests */
	int		 talker;	/* the socket of a peer that sends
					 * more before the answer */
	struct loop_task task;
	bool		 greet;		/* sends when established */
	int		 mss;		/* of the plain socket; 0: any */
	struct raw_recv	 recvs[RAW_RECVS];
	uint8_t		 mem[RAW_RECVS][RAW_RECV];
	uint8_t		 area[RAW_AREA];
	atomic_uint	 got;
	atomic_uint	 flushed;
	uint32_t	 got_len;
	sem_t		 arrived, established, closed, sent;
	int		 err;		/* of closed() */
	int		 sent_status;
	struct fabric_op send_op;
	struct fabric_wr send_wr;
	struct fabric_sge send_sge;
};

/* With a listener on 127.0.0.1; has CRCs only if the peer asks for them. */
void raw_open(struct raw *r, const struct iwarp_options *options);
/* The same, with all @options as they are. */
void raw_open_as(struct raw *r, const struct iwarp_options *options);
/* Closes the connection, if one is open, and ends the fabric. */
void raw_close(struct raw *r);
/* Posts @wr on the loop; its op is raw's and raises sent. */
int raw_post(struct raw *r, struct fabric_wr *wr);

/* The plain socket: blocking, gives up after ten seconds. */
int raw_dial(struct raw *r);
/* The same from this address of the machine. */
int  raw_dial_from(struct raw *r, in_addr_t from);
void raw_put(int fd, const void *data, size_t len);
void raw_put_hex(int fd, const char *hex);
void raw_get(int fd, void *data, size_t len);
void raw_expect_hex(int fd, const char *hex);
/* The other end closes, after no byte more. */
void raw_expect_end(int fd);
/* The end, or a reset. */
void raw_expect_gone(int fd);
/* Dials, asks as siw does, takes the answer, and one message is sent. */
int raw_hello(struct raw *r, const char *request);
/* The next FPDU is a Terminate with @code; then the end. */
void raw_expect_term(int fd, enum term code, bool crc);
void raw_send_fpdu(int fd, struct ddp_header h, const void *payload, bool crc);
/* On a separate connection, an FPDU that breaks a rule: the answer is a
 * Terminate with @code, and @counter counts one more. */
void raw_broken(struct raw *r, struct ddp_header h, const void *payload,
		enum term code, const char *counter);

/* The fabric's end is an active one: it connects here, returns the socket. */
int raw_call(struct raw *r);
