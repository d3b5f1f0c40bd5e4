/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hosts - the list of hosts, in memory and as the text of its file.  Pure.
 *
 * The file: a line "state NUMBER", a line "boot ID" of the machine's start, and
 * a line for each host:
 *
 *	host ADDRESS NAME [LOCAL]	it has locks here
 *	tell ADDRESS NAME [LOCAL]	it had, and was not told yet, or can
 *					still claim them again
 *	user ADDRESS NAME VERSION PROCEDURE PRIV
 *					a lock manager of this machine asked
 *
 * LOCAL is the address of this machine that the host calls.  A host that uses
 * two is listed twice.
 *
 * One thread at a time.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include <urcu/list.h>

#include "rpc/host.h"
#include "wire/nsm.h"

#define NSM_NAME_MAX	255
#define NSM_BOOT_MAX	64
/* Only lock managers are called back. */
#define NSM_USER_PROG	100021u

/* The bounds that a host shares with others, besides that of its address. */
enum nsm_bound { NSM_OF_ALL, NSM_OF_NETWORK, NSM_OF_SITE, NSM_BOUNDS };

/* All hosts, or the hosts of a network or a site: lives as long as they do. */
struct nsm_group {
	struct cds_list_head link;	/* in its bucket */
	enum nsm_bound	 kind;
	struct in6_addr	 addr;
	unsigned	 count;
	struct cds_list_head spare;	/* hosts that can go, the first one
					 * first, and some that can't */
};

struct nsm_host {
	struct cds_list_head link;
	struct cds_list_head near;	/* in its address's chain */
	struct sockaddr_storage addr;	/* without a port */
	/* The address of this machine that it calls; family 0: not known. */
	struct sockaddr_storage local;
	bool	 monitored;
	bool	 untold;	/* of our start */
	bool	 claims;	/* it had locks, and can still claim them */
	bool	 saved;		/* monitored, in the file */
	bool	 ready;		/* and rpc.statd has it, where it runs */
	bool	 telling;	/* a call is on its way */
	unsigned calls;		/* that have a pointer to it, */
	unsigned waiters;	/* and how many of them wait for the file */
	uint32_t last_state;	/* the host's, as it last told us; 0: none */
	unsigned tries;		/* to tell it, */
	uint64_t due, until;	/* the next one, and the last; ms */
	struct cds_list_head due_link;	/* with others of that pause */
	struct {
		struct nsm_group *of;	/* NULL: it shares none */
		struct cds_list_head spare;
	} in[NSM_BOUNDS];
	/* A lock manager of this machine asked: it is called back. */
	bool	 user;
	uint32_t vers, proc;
	uint8_t	 priv[SM_PRIV_SIZE];
	char	 name[];
};

static inline const struct sockaddr *nsm_addr(const struct nsm_host *host)
{
	return (const struct sockaddr *)&host->addr;
}

#define NSM_CHAINS	1024u
/* The pauses before attempts to tell a host: the first one, doubled up to eight
 * times, and no pause. */
#define NSM_PAUSES	10u
#define NSM_AT_ONCE	(NSM_PAUSES - 1)

struct nsm_hosts {
	struct cds_list_head list;	/* oldest first */
	struct cds_list_head chain[NSM_CHAINS];	/* by address */
	struct cds_list_head group[NSM_CHAINS];	/* of networks and sites */
	struct nsm_group all;
	/* The hosts to be told after each pause, in the order in which they
	 * began it. */
	struct cds_list_head due[NSM_PAUSES];
	unsigned max, max_addr;		/* of them, and of one address; those
					 * in a network of IPv6 (/64) have
					 * three quarters of all, those in a
					 * site (/48) seven eighths */
};

void nsm_hosts_init(struct nsm_hosts *h, unsigned max, unsigned max_addr);
void nsm_hosts_fini(struct nsm_hosts *h);

/* The hosts and groups that this thread has looked at so far. */
extern _Thread_local uint64_t nsm_steps;
/* Hosts with @addr are in this chain, by their near, oldest first, with few
 * others: strangers' notices make the server look there. */
const struct cds_list_head *nsm_hosts_chain(const struct nsm_hosts *h,
					    const struct sockaddr *addr);

/* A valid name of a host: printable ASCII without '/'. */
bool nsm_name_ok(const char *name, size_t len);
/* "192.0.2.7", "fe80::1%eth0" into @out of NSM_NAME_MAX bytes. */
void nsm_addr_text(const struct sockaddr *addr, char *out);
/* False: @text is not an address. */
bool nsm_addr_parse(const char *text, struct sockaddr_storage *out);
bool nsm_same_addr(const struct nsm_host *host, const struct sockaddr *addr);

/* The host, or the lock manager of this machine, if @user, that asked for
 * it. */
struct nsm_host *nsm_hosts_find(struct nsm_hosts *h,
				const struct rpc_host *who, bool user);
/*
 * The name on the list that a notice of the host @name from @addr means; NULL:
 * no host has lost its locks for sure.  Many hosts can share an address, behind
 * a NAT or as containers, so the address alone means a host only where the
 * notice names nothing else ("192.0.2.7", "localhost") and all of the list with
 * that address have one name.  A name with a domain and the same name without
 * one mean the same host, unless the list has two such.
 */
const char *nsm_hosts_meant(const struct nsm_hosts *h, const char *name,
			    const struct sockaddr *addr);
/* True if this name only repeats the address of the notice. */
bool nsm_names_address(const char *name, const struct sockaddr *addr);
/* True if a host's @state is newer than @known.  They grow, and 0 says
 * nothing: then the news counts. */
bool nsm_state_is_newer(uint32_t state, uint32_t known);
/*
 * Adds one, neither monitored nor untold.  If the list is full, a host that
 * could not be told goes.  0; -EDQUOT: too many with this address or in its
 * network; -ENOSPC: too many; -EINVAL: no name; -ENOMEM.
 */
int nsm_hosts_add(struct nsm_hosts *h, const struct rpc_host *who,
		  struct nsm_host **out);
/* Monitoring of a host, or one of its calls, has ended.  Frees it if nothing
 * keeps it: it is not monitored, nor to be told, has nothing to claim, and no
 * call has it. */
void nsm_hosts_tidy(struct nsm_hosts *h, struct nsm_host *host);

/* room.c */
/* Makes room for the host, and puts it on the list; or -errno as
 * nsm_hosts_add().  @listed: it was on the list of the last server, which can
 * have had larger bounds, or fewer; it must be told of our start in any
 * case. */
int nsm_room_take(struct nsm_hosts *h, struct nsm_host *host, bool listed);
/* The host leaves the list, and is freed. */
void nsm_hosts_drop(struct nsm_hosts *h, struct nsm_host *host);
/* The host has changed: perhaps it can make room now. */
void nsm_room_note(struct nsm_host *host);
/* The host is to be told of our start at @ms, after the pause @pause. */
void nsm_hosts_tell_at(struct nsm_hosts *h, struct nsm_host *host,
		       uint64_t ms, unsigned pause);
/* The host whose turn it is to be told of our start: the one that has waited
 * longest, so hosts that don't answer delay no others.  NULL: none, except
 * hosts that a call is on its way to. */
struct nsm_host *nsm_hosts_due(struct nsm_hosts *h);

/* The file's first lines. */
struct nsm_head {
	uint32_t state;			/* 0: the file had none */
	char	 boot[NSM_BOOT_MAX];
};

/* Writes the file.  Marks as saved are not touched. */
void nsm_hosts_print(const struct nsm_hosts *h, const struct nsm_head *head,
		     FILE *out);
/* Adds the hosts that @text names, however many they are; returns the number of
 * malformed lines.  Changes @text. */
unsigned nsm_hosts_parse(struct nsm_hosts *h, char *text,
			 struct nsm_head *head);
