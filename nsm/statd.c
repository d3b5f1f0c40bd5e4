/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * statd - the machine's own status monitor, rpc.statd, as its client.
 *
 * It takes calls from loopback, and calls the lock manager back there, by the
 * port that rpcbind has for it.  We ask rpcbind as well, since rpc.statd can
 * have another port after a restart.  It must be able to look up the name of a
 * host that it is to monitor, and clients' names are often in no directory: so
 * it gets the address instead, as text.
 *
 * Any user of the machine can register a program that is not registered, or
 * take the port of an rpc.statd that was killed.  So the user that listens at
 * the port has to be one that rpc.statd runs as.
 */
#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "nsm/priv.h"
#include "rpc/listener.h"
#include "wire/getport.h"

STAT(nsm_statd_failed, "hosts that rpc.statd refused to monitor");
STAT(nsm_statd_false, "status monitors at rpcbind that are not rpc.statd");
STAT(nsm_user_false, "lock managers at rpcbind that are not this machine's");

#define FIND_MS		1000
#define MON_MS		10000
#define BUSY_MS		100		/* until the next attempt, */
#define GONE_MS		500		/* ... if it was not there */

/* rpc.statd runs as root, or as the user that its directory is of.  This
 * server's own user can do whatever the server can. */
static bool may_be_statd(uid_t uid)
{
	static const char *const dirs[] = { "/var/lib/nfs/sm",
					    "/var/lib/nfs/statd/sm" };
	struct stat st;

	for (unsigned i = 0; i < ARRAY_SIZE(dirs); i++)
		if (stat(dirs[i], &st) == 0 && st.st_uid == uid)
			return true;
	return uid == 0 || uid == geteuid();
}

/* The kernel's sockets are root's. */
static bool may_be_user(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

/* The users trusted to listen where rpcbind has a program, and the warning
 * about other users. */
struct listener {
	bool (*trusts)(uid_t uid);
	const struct stat_counter *wrong;
	const char *text;
};

static int check_listener(uint16_t port, const struct listener *l)
{
	const struct rpc_client_to to = nsm_to_loopback(port, 0, 0, 0);
	uid_t uid;

	switch (rpc_listener_check(IPPROTO_TCP, &to.addr, l->trusts, &uid)) {
	case RPC_LISTENER_TRUSTED:
		return 0;
	case RPC_LISTENER_WRONG:
		stats_add(l->wrong, 1);
		log_limited(LOG_LEVEL_WARN, "user %u listens at port %u, which "
			    "rpcbind has for %s", (unsigned)uid, port, l->text);
		return -EPERM;
	default:
		return -ECONNREFUSED;
	}
}

int nsm_statd_check(uint16_t port)
{
	static const struct listener statd = {
		may_be_statd, &stat_nsm_statd_false, "the status monitor: that "
		"is not rpc.statd, so it is ignored",
	};

	return check_listener(port, &statd);
}

int nsm_user_check(uint16_t port)
{
	static const struct listener user = {
		may_be_user, &stat_nsm_user_false, "this machine's lock "
		"manager: that is not the kernel's, so it is not told that a "
		"host has restarted",
	};

	return check_listener(port, &user);
}

struct rpc_client_to nsm_to_loopback(uint16_t port, uint32_t prog,
				     uint32_t vers, uint32_t proc)
{
	struct rpc_client_to to = {
		.proto = IPPROTO_TCP, .prog = prog, .vers = vers,
		.proc = proc, .timeout_ms = MON_MS,
	};
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	memcpy(&to.addr, &sin, sizeof(sin));
	return to;
}

struct question {
	sem_t	 done;
	struct getport what;
	int	 err;
	uint16_t port;
};

static void port_came(void *arg, int err, struct xdr_in *results)
{
	struct question *q = arg;

	if (!err && !getport_get(results, &q->what, &q->port))
		err = -EBADMSG;
	q->err = err;
	sem_post(&q->done);
}

static void null_came(void *arg, int err, struct xdr_in *results)
{
	struct question *q = arg;

	q->err = err;
	sem_post(&q->done);
}

/* Makes the call, and waits for its end. */
static int call_now(struct rpc_client *client, const struct rpc_client_to *to,
		    const struct xdr_out *args, rpc_client_done *done,
		    struct question *q)
{
	int err = rpc_client_call(client, to, args ? args->start : NULL,
				  args ? xdr_out_len(args) : 0, done, q);

	if (err)
		return err;
	while (sem_wait(&q->done) < 0)
		;
	return q->err;
}

uint16_t nsm_statd_find(struct rpc_client *client)
{
	struct question q = {
		.what = { AF_INET, IPPROTO_TCP, NSM_PROG, 1 },
	};
	struct rpc_client_to to = nsm_to_loopback(RPCBIND_PORT, RPCBIND_PROGRAM,
			getport_version(&q.what), PMAPPROC_GETPORT);
	uint8_t args[64];
	struct xdr_out x;
	int err;

	sem_init(&q.done, 0, 0);
	to.timeout_ms = FIND_MS;
	xdr_out_init(&x, args, sizeof(args));
	getport_put(&x, &q.what);
	err = call_now(client, &to, &x, port_came, &q);
	if (!err && q.port)
		err = nsm_statd_check(q.port);
	if (!err && q.port) {
		/* Perhaps the mapping is left over from a killed server. */
		to = nsm_to_loopback(q.port, NSM_PROG, 1, SM_NULL);
		to.timeout_ms = FIND_MS;
		err = call_now(client, &to, NULL, null_came, &q);
	}
	sem_destroy(&q.done);
	return err ? 0 : q.port;
}

static struct rpc_client_to to_statd(uint32_t proc)
{
	struct rpc_client_to to = nsm_to_loopback(0, NSM_PROG, 1, proc);

	to.check = nsm_statd_check;
	return to;
}

static size_t encode_mon(struct nsm *n, const char *addr, const uint8_t *priv,
			 uint8_t *args, size_t size)
{
	const struct sm_call call = {
		.name = addr, .my_name = n->my_name, .prog = NSM_USER_PROG,
		.vers = NSM_CALL_BACK_VERS, .proc = NSM_CALL_BACK_PROC,
		.priv = priv,
	};
	struct xdr_out x;

	xdr_out_init(&x, args, size);
	sm_put_mon(&x, &call);
	return xdr_out_len(&x);
}

/* True: rpc.statd is not there; perhaps it just restarts. */
static bool statd_is_gone(int err)
{
	return err == -ECONNREFUSED || err == -ECONNRESET || err == -ENOENT;
}

/* rpc.statd has too many calls of ours, or is not there: the waiter comes again
 * after @ms.  False: that took too long, or its caller has forgotten it. */
static bool wait_on(struct nsm_waiter *w, uint32_t ms)
{
	struct nsm *n = w->nsm;
	uint64_t now = clock_ms();
	bool waits;

	if (!w->until)
		w->until = now + n->config.statd_ms;
	if (now >= w->until)
		return false;
	mutex_lock(&n->lock);
	waits = w->done;
	if (waits) {
		cds_list_del(&w->link);
		cds_list_add_tail(&w->link, &n->waiters);
		nsm_save_in(n, ms);
	}
	mutex_unlock(&n->lock);
	return waits;
}

static void unmon(struct nsm *n, const char *addr)
{
	struct rpc_client_to to = to_statd(SM_UNMON);
	uint8_t args[1024];
	size_t len = encode_mon(n, addr, NULL, args, sizeof(args));

	/* Without an answer, an extra host hears of our next start, which does
	 * no harm. */
	rpc_client_call(n->config.client, &to, args, len, NULL, NULL);
}

void nsm_forget_addr(struct nsm *n, const struct sockaddr *addr)
{
	const struct nsm_host *other;
	char text[NSM_NAME_MAX];

	if (!n->statd_port || n->stop)
		return;
	cds_list_for_each_entry(other, nsm_hosts_chain(&n->hosts, addr), near)
		if (other->monitored && !other->user &&
		    nsm_same_addr(other, addr))
			return;
	nsm_addr_text(addr, text);
	unmon(n, text);
}

static void mon_came(void *arg, int err, struct xdr_in *results)
{
	struct nsm_waiter *w = arg;
	const struct sockaddr_storage addr = w->host->addr;
	struct nsm *n = w->nsm;
	struct sm_stat_res res;

	if ((err == -EBUSY && wait_on(w, BUSY_MS)) ||
	    (statd_is_gone(err) && wait_on(w, GONE_MS)))
		return;
	if (!err && !sm_get_stat_res(results, &res))
		err = -EBADMSG;
	if (!err && res.res != SM_SUCC)
		err = -EACCES;
	if (err && err != -ECANCELED) {
		stat_inc(nsm_statd_failed);
		log_limited(LOG_LEVEL_WARN, "rpc.statd does not monitor %s, so "
			    "it gets no locks: %s", w->host->name,
			    strerrordesc_np(-err));
	}
	if (nsm_waiter_end(w, err) || err)
		return;
	mutex_lock(&n->lock);
	nsm_forget_addr(n, (const struct sockaddr *)&addr);
	mutex_unlock(&n->lock);
}

void nsm_statd_mon(struct nsm_waiter *w)
{
	static const uint8_t priv[SM_PRIV_SIZE];
	struct rpc_client_to to = to_statd(SM_MON);
	uint8_t args[1024];
	char addr[NSM_NAME_MAX];
	size_t len;
	int err;

	nsm_addr_text(nsm_addr(w->host), addr);
	len = encode_mon(w->nsm, addr, priv, args, sizeof(args));
	err = rpc_client_call(w->nsm->config.client, &to, args, len, mon_came,
			      w);
	if (err)
		mon_came(w, err, NULL);
}
