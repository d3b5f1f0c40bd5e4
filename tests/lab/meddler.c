/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * meddler ADDRESS PORT TARGET: takes iWARP connections at PORT of ADDRESS,
 * passes them on to its port TARGET frame by frame, and does harm to some.
 *
 * Standard input says which, a line each, done one after the other:
 *
 *	to-server|to-client FRAME NTH HARM [VALUE]
 *
 * FRAME is start (of a connection), write, request, response (of RDMA Reads),
 * send or any; NTH counts them from 1, on one connection.  HARM is
 *
 *	crc data		a wrong CRC, a wrong byte
 *	stag to msn mo qn opcode version length
 *				a wrong field, with the right CRC
 *	drop twice		it never arrives, or once more
 *	cut reset		VALUE bytes of it arrive, then the end, or a RST
 *	terminate		a Terminate, layer, type and code VALUE, instead
 *	key reject early	of a start: no key, a refusal, bytes behind it
 *
 * Prints each line when it is done.  A connection gets one of them.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "transport/fabric/iwarp/crc32c.h"
#include "transport/fabric/iwarp/ddp.h"
#include "transport/fabric/iwarp/mpa.h"

#define BUFFER		(256u << 10)
#define FRAME_START	(-1)
#define FRAME_ANY	(-2)

enum harm {
	HARM_CRC, HARM_DATA, HARM_STAG, HARM_TO, HARM_MSN, HARM_MO, HARM_QN,
	HARM_OPCODE, HARM_VERSION, HARM_LENGTH, HARM_DROP, HARM_TWICE,
	HARM_CUT, HARM_RESET, HARM_TERMINATE, HARM_KEY, HARM_REJECT,
	HARM_EARLY, NHARMS
};

static const char *const harms[NHARMS] = {
	"crc", "data", "stag", "to", "msn", "mo", "qn", "opcode", "version",
	"length", "drop", "twice", "cut", "reset", "terminate", "key",
	"reject", "early",
};

struct order {
	bool	 to_server;
	int	 frame;
	unsigned nth;
	int	 harm;
	unsigned value;
	char	 text[80];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct order orders[256];
static unsigned given, done;

/* One direction of a connection. */
struct way {
	int	 from, to;
	bool	 to_server;
	bool	 started;	/* its start-up frame has passed */
	bool	 ended;
	unsigned order;		/* the one whose frames were counted: */
	unsigned count;
	size_t	 len;
	uint8_t	 buf[BUFFER];
};

struct conn {
	struct way way[2];	/* to the server, to the client */
	bool	   crc;
	bool	   harmed;	/* it is going to end: stop using it */
};

static struct sockaddr_in target;

/* ---- orders */

static int frame_named(const char *name)
{
	static const struct { const char *name; int frame; } names[] = {
		{ "start", FRAME_START }, { "any", FRAME_ANY },
		{ "write", RDMAP_WRITE }, { "request", RDMAP_READ_REQUEST },
		{ "response", RDMAP_READ_RESPONSE }, { "send", RDMAP_SEND },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i].name))
			return names[i].frame;
	return -3;
}

static bool parse(const char *line, struct order *o)
{
	char way[16], frame[16], harm[16], value[16] = "0";

	*o = (struct order){ .harm = NHARMS };
	if (sscanf(line, "%15s %15s %u %15s %15s", way, frame, &o->nth, harm,
		   value) < 4)
		return false;
	o->to_server = !strcmp(way, "to-server");
	o->frame = frame_named(frame);
	o->value = (unsigned)strtoul(value, NULL, 0);
	for (int i = 0; i < NHARMS; i++)
		if (!strcmp(harm, harms[i]))
			o->harm = i;
	snprintf(o->text, sizeof(o->text), "%s", line);
	return (o->to_server || !strcmp(way, "to-client")) &&
	       o->frame > -3 && o->harm < NHARMS;
}

static void *read_orders(void *arg)
{
	char line[80];

	while (fgets(line, sizeof(line), stdin)) {
		struct order o;

		if (!parse(line, &o)) {
			printf("not understood: %s", line);
			fflush(stdout);
			continue;
		}
		pthread_mutex_lock(&lock);
		if (given < ARRAY_SIZE(orders))
			orders[given++] = o;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static bool matches(const struct order *o, const struct way *w,
		    const uint8_t *frame)
{
	int opcode;

	if (o->to_server != w->to_server)
		return false;
	if (!w->started)
		return o->frame == FRAME_START;
	opcode = frame[3] & 15;
	if (opcode >= RDMAP_SEND && opcode <= RDMAP_SEND_SE_INV)
		opcode = RDMAP_SEND;
	return o->frame == FRAME_ANY || o->frame == opcode;
}

/* Carries out the next order if it is about @frame. */
static bool ordered(struct way *w, const uint8_t *frame, struct order *out)
{
	bool due = false;

	pthread_mutex_lock(&lock);
	if (done < given && matches(&orders[done], w, frame)) {
		if (w->order != done + 1)
			w->count = 0;
		w->order = done + 1;
		due = ++w->count >= orders[done].nth;
	}
	if (due) {
		*out = orders[done++];
		fputs(out->text, stdout);
		fflush(stdout);
	}
	pthread_mutex_unlock(&lock);
	return due;
}

/* ---- harm */

static void set_crc(const struct conn *c, uint8_t *frame, size_t len)
{
	uint32_t crc = htole32(c->crc ? crc32c(0, frame, len - 4) : 0);

	memcpy(frame + len - 4, &crc, 4);
}

static bool put(struct way *w, const uint8_t *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(w->to, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

/* Bytes that the end does not read are lost with the connection. */
static void end(const struct conn *c, bool reset)
{
	struct linger at_once = { .l_onoff = 1 };

	for (int i = 0; i < 2; i++) {
		if (reset)
			setsockopt(c->way[i].to, SOL_SOCKET, SO_LINGER,
				   &at_once, sizeof(at_once));
		else
			shutdown(c->way[i].to, SHUT_RDWR);
	}
}

static bool put_terminate(struct conn *c, struct way *w, unsigned code)
{
	uint8_t fpdu[DDP_MAX_HEADER + RDMAP_TERM_MAX + 8] = { 0 };
	struct ddp_header h = {
		.last = true, .opcode = RDMAP_TERMINATE,
		.qn = DDP_QN_TERMINATE, .msn = 1,
	};
	size_t len;

	h.payload = rdmap_term_encode((enum term)code, NULL, 0, 0,
				      fpdu + DDP_UNTAGGED_LEN);
	ddp_encode(&h, fpdu);
	len = ddp_fpdu_len((unsigned)fpdu[0] << 8 | fpdu[1]);
	set_crc(c, fpdu, len);
	return put(w, fpdu, len);
}

/* A field, by its last byte, gets another value. */
static bool put_field(struct conn *c, struct way *w, enum harm harm,
		      uint8_t *frame, size_t len)
{
	static const struct { uint8_t at, bit; } fields[NHARMS] = {
		[HARM_STAG] = { 7, 2 }, [HARM_TO] = { 15, 4 },
		[HARM_QN] = { 11, 2 }, [HARM_MSN] = { 15, 2 },
		[HARM_MO] = { 19, 4 }, [HARM_OPCODE] = { 3, 8 },
		[HARM_VERSION] = { 2, 2 },
	};
	unsigned at = fields[harm].at;

	if (harm == HARM_STAG && (frame[3] & 15) == RDMAP_READ_REQUEST)
		at = 39;		/* the source's */
	if (harm == HARM_LENGTH)
		frame[0] = 0, frame[1] = 2;
	else
		frame[at] ^= fields[harm].bit;
	set_crc(c, frame, len);
	return put(w, frame, len);
}

static bool put_start(struct way *w, enum harm harm, uint8_t *frame,
		      size_t len)
{
	if (harm == HARM_KEY)
		frame[0] ^= 1;
	else if (harm == HARM_REJECT)
		frame[16] |= 0x20;
	if (!put(w, frame, len))
		return false;
	return harm != HARM_EARLY || put(w, (const uint8_t *)"early", 5);
}

/* False: that was the connection's end. */
static bool meddle(struct conn *c, struct way *w, const struct order *o,
		   uint8_t *frame, size_t len)
{
	switch (o->harm) {
	case HARM_CRC:
		frame[len - 1] ^= 1;
		return put(w, frame, len);
	case HARM_DATA:
		frame[len - 5] ^= 1;
		return put(w, frame, len);
	case HARM_DROP:
		return true;
	case HARM_TWICE:
		return put(w, frame, len) && put(w, frame, len);
	case HARM_CUT:
	case HARM_RESET:
		put(w, frame, o->value % len);
		end(c, o->harm == HARM_RESET);
		return false;
	case HARM_TERMINATE:
		return put_terminate(c, w, o->value);
	case HARM_KEY:
	case HARM_REJECT:
	case HARM_EARLY:
		return put_start(w, (enum harm)o->harm, frame, len);
	default:
		return put_field(c, w, (enum harm)o->harm, frame, len);
	}
}

/* ---- passing on */

/* The length of the frame at @p; 0: it is not all among the @n bytes. */
static size_t frame_len(const struct way *w, const uint8_t *p, size_t n)
{
	size_t len = 0;

	if (!w->started) {
		int whole = mpa_frame_len(p, n, !w->to_server);

		len = whole < 0 ? n : (size_t)whole;
	} else if (n >= 4) {
		len = ddp_fpdu_len((unsigned)p[0] << 8 | p[1]);
	}
	return len <= n ? len : 0;
}

static bool pass(struct conn *c, struct way *w, uint8_t *frame, size_t len)
{
	struct mpa_frame start;
	struct order o;
	bool due = !c->harmed && ordered(w, frame, &o);

	if (!w->started && !w->to_server &&
	    mpa_decode(frame, len, true, &start) == 0)
		c->crc = start.crc;
	w->started = true;
	c->harmed |= due;
	return due ? meddle(c, w, &o, frame, len) : put(w, frame, len);
}

/* Receives bytes and passes the whole frames on. */
static bool move(struct conn *c, struct way *w)
{
	ssize_t n = recv(w->from, w->buf + w->len, BUFFER - w->len, 0);
	size_t at = 0, len;

	if (n <= 0) {
		put(w, w->buf, w->len);
		shutdown(w->to, SHUT_WR);
		w->ended = true;
		return !c->way[0].ended || !c->way[1].ended;
	}
	w->len += (size_t)n;
	while ((len = frame_len(w, w->buf + at, w->len - at)) > 0) {
		if (!pass(c, w, w->buf + at, len))
			return false;
		at += len;
	}
	memmove(w->buf, w->buf + at, w->len - at);
	w->len -= at;
	return true;
}

static void *serve(void *arg)
{
	struct conn *c = arg;
	struct pollfd p[2];
	bool going = true;

	while (going) {
		for (int i = 0; i < 2; i++)
			p[i] = (struct pollfd){
				.fd = c->way[i].ended ? -1 : c->way[i].from,
				.events = POLLIN,
			};
		if (poll(p, 2, -1) < 0)
			continue;
		for (int i = 0; i < 2 && going; i++)
			if (p[i].revents)
				going = move(c, &c->way[i]);
	}
	close(c->way[0].from);
	close(c->way[0].to);
	free(c);
	return NULL;
}

static void accept_one(int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	int up, one = 1, client = accept(fd, NULL, NULL);
	pthread_t thread;

	up = socket(AF_INET, SOCK_STREAM, 0);
	if (!c || client < 0 || up < 0 ||
	    connect(up, (struct sockaddr *)&target, sizeof(target)) < 0) {
		close(client);
		close(up);
		free(c);
		return;
	}
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(up, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->way[0].from = c->way[1].to = client;
	c->way[0].to = c->way[1].from = up;
	c->way[0].to_server = true;
	if (pthread_create(&thread, NULL, serve, c) != 0)
		exit(1);
	pthread_detach(thread);
}

int main(int argc, char **argv)
{
	struct sockaddr_in here = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	pthread_t thread;

	if (argc != 4 || inet_pton(AF_INET, argv[1], &here.sin_addr) != 1) {
		fprintf(stderr, "meddler ADDRESS PORT TARGET\n");
		return 2;
	}
	target = here;
	here.sin_port = htons((uint16_t)atoi(argv[2]));
	target.sin_port = htons((uint16_t)atoi(argv[3]));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&here, sizeof(here)) < 0 ||
	    listen(fd, 16) < 0 ||
	    pthread_create(&thread, NULL, read_orders, NULL) != 0) {
		perror("meddler");
		return 1;
	}
	for (;;)
		accept_one(fd);
}
