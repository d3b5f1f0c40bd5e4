/* SPDX-License-Identifier: BSD-2-Clause */
/* drain - gannetctl's commands drain and resume. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/ctl/ctl.h"

#define DRAIN_PATIENCE	60	/* seconds, unless given */
#define MAX_TIMEOUT	86400

void show_drain(const json_t *r)
{
	printf("%s: %lld connections, %lld calls\n", text_of(r, "state"),
	       integer_of(r, "connections"), integer_of(r, "calls"));
}

static bool is_state(const json_t *r, const char *state)
{
	return !strcmp(text_of(r, "state"), state);
}

/* Asks again until nothing is left or the time is over.  Takes @r, and returns
 * the last answer; NULL after a message. */
static json_t *wait_until_drained(const struct ctl *c, json_t *r,
				  unsigned seconds)
{
	const struct timespec step = { 0, 100 * 1000 * 1000 };

	for (unsigned i = 0; r && is_state(r, "draining") && i < seconds * 10;
	     i++) {
		nanosleep(&step, NULL);
		json_decref(r);
		r = ctl_ask(c, "drain-state", NULL, NULL, CTL_PATIENCE);
	}
	return r;
}

static bool read_seconds(const char *text, unsigned *out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*out = (unsigned)n;
	return *text >= '0' && *text <= '9' && !*end && n <= MAX_TIMEOUT;
}

static bool read_drain_options(struct ctl *c, unsigned *seconds, int argc,
			       char **argv)
{
	static const struct option options[] = {
		{ "timeout", required_argument, NULL, 't' },
		{ "json", no_argument, NULL, 'j' },
		{ "socket", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	int o;

	optind = 0;
	while ((o = getopt_long(argc, argv, "j", options, NULL)) != -1) {
		if (o == 'j')
			c->json = true;
		else if (o == 's')
			c->path = optarg;
		else if (o != 't' || !read_seconds(optarg, seconds))
			return false;
	}
	return optind == argc;
}

int run_drain(const struct ctl *c, int argc, char **argv)
{
	unsigned seconds = DRAIN_PATIENCE;
	struct ctl mine = *c;
	bool drained;
	json_t *r;
	int status;

	if (!read_drain_options(&mine, &seconds, argc, argv)) {
		complain("drain: expected --timeout with seconds up to %d, or "
			 "nothing: see gannetctl --help", MAX_TIMEOUT);
		return USAGE;
	}
	r = ctl_ask(&mine, "drain", NULL, NULL, CTL_PATIENCE);
	r = wait_until_drained(&mine, r, seconds);
	drained = r && is_state(r, "drained");
	if (r && is_state(r, "serving"))
		complain("drain: someone else had the server resume");
	else if (r && !drained)
		complain("drain: not all has ended within %u seconds, and goes "
			 "on ending", seconds);
	status = ctl_print(&mine, r, show_drain);
	return drained ? status : EXIT_FAILURE;
}
