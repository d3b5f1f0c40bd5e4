/* SPDX-License-Identifier: BSD-2-Clause */
/* locks - the programs of locking, and the parts that they share. */
#include "daemon/serve/locks.h"

#include <string.h>

#include "lib/log.h"
#include "nlm/nlm.h"
#include "transport/stream/stream.h"

int locks_start(const struct options *o, struct locks *l)
{
	struct nsm_config config = {
		.state_dir = o->state_dir, .use_statd = o->rpcbind,
		/* The grace period goes on while an export is awaited: until
		 * then hosts might have to be told of another start. */
		.grace_ms = o->grace * 1000 * (NLM_PATIENCE + 1),
	};
	int err = rpc_client_create(NULL, &l->client);

	l->grace_s = o->grace;
	if (!err) {
		if (o->bind)
			options_address(o->bind, &config.from);
		config.client = l->client;
		err = nsm_create(&config, &l->nsm);
	}
	if (err)
		log_err("cannot start the status monitor: %s", strerror(-err));
	return err;
}

void locks_listen(struct locks *l, const struct options *o,
		  const struct xprt_env *env,
		  const struct sockaddr_storage *local)
{
	uint16_t port = xprt_addr_port(local);
	struct sockaddr_storage at;
	int err;

	/* A listener at any of these three addresses hears rpc.statd anyway. */
	if (!o->bind || nsm_is_own(l->nsm) || !strcmp(o->bind, "0.0.0.0") ||
	    !strcmp(o->bind, "::") || !strcmp(o->bind, "127.0.0.1"))
		return;
	options_address("127.0.0.1", &at);
	xprt_addr_set_port(&at, port);
	err = udp_listen(env, (struct sockaddr *)&at, NULL, &l->call_backs);
	if (err)
		log_warn("cannot listen on udp 127.0.0.1:%u: %s: client "
			 "restarts will not be noticed", port, strerror(-err));
}

void locks_unlisten(struct locks *l)
{
	if (l->call_backs)
		l->call_backs->ops->free(l->call_backs);
	l->call_backs = NULL;
}

void locks_stop(struct locks *l)
{
	if (l->nsm)
		nsm_stop(l->nsm);
	if (l->client)
		rpc_client_destroy(l->client);
	l->client = NULL;
}

void locks_free(struct locks *l)
{
	if (l->nsm)
		nsm_destroy(l->nsm);
	l->nsm = NULL;
}

/* ---- the programs */

static int create_nsm(const struct program_env *env, struct rpc_program **out)
{
	const struct locks *l = env->locks;

	*out = nsm_program(l->nsm);
	return 0;
}

/* No client has a lock to reclaim if none had one from the last server. */
static unsigned grace_of(const struct program_env *env)
{
	const struct locks *l = env->locks;

	if (nsm_hosts_before(l->nsm))
		return l->grace_s;
	log_info("no host had locks before: there is no grace period");
	return 0;
}

static void host_restarted(void *nlm, const char *name,
			   const struct sockaddr *addr, uint32_t state)
{
	nlm_restarted(nlm, name, addr, state);
}

static int create_nlm(const struct program_env *env, struct rpc_program **out)
{
	const struct locks *l = env->locks;
	struct nsm *nsm = l->nsm;
	const struct nlm_config config = {
		.exports = env->exports, .names = env->names,
		.server = env->server, .client = l->client,
		.monitor = {
			.nsm = nsm, .monitor = nsm_monitor,
			.forget = nsm_forget,
			.unmonitor = nsm_unmonitor, .notified = nsm_notified,
		},
		.grace_s = grace_of(env),
	};
	int err = nlm_create(&config, out);

	if (!err)
		nsm_on_restart(nsm, host_restarted, *out);
	return err;
}

/* The list of hosts outlives all programs: locks_free() frees it. */
const struct program_row nsm_row = { .create = create_nsm };

const struct program_row nlm_row = {
	.create = create_nlm, .destroy = nlm_destroy, .stop = nlm_stop,
	.list = nlm_list, .locks = nlm_walk, .release = nlm_release,
	.ending = nlm_ending,
};
