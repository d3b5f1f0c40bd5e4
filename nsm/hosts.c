/* SPDX-License-Identifier: BSD-2-Clause */
/* hosts - the list of hosts, in memory and as text.  Pure. */
#include "nsm/hosts.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <strings.h>

#include "transport/addr.h"
#include "transport/socket/socket.h"

void nsm_hosts_init(struct nsm_hosts *h, unsigned max, unsigned max_addr)
{
	CDS_INIT_LIST_HEAD(&h->list);
	for (unsigned i = 0; i < NSM_CHAINS; i++)
		CDS_INIT_LIST_HEAD(&h->chain[i]);
	for (unsigned i = 0; i < NSM_CHAINS; i++)
		CDS_INIT_LIST_HEAD(&h->group[i]);
	for (unsigned i = 0; i < NSM_PAUSES; i++)
		CDS_INIT_LIST_HEAD(&h->due[i]);
	h->all = (struct nsm_group){ .kind = NSM_OF_ALL };
	CDS_INIT_LIST_HEAD(&h->all.spare);
	h->max = max;
	h->max_addr = max_addr;
}

void nsm_hosts_fini(struct nsm_hosts *h)
{
	struct nsm_host *host, *next;

	cds_list_for_each_entry_safe(host, next, &h->list, link)
		nsm_hosts_drop(h, host);
}

void nsm_hosts_tidy(struct nsm_hosts *h, struct nsm_host *host)
{
	if (!host->monitored && !host->untold && !host->claims && !host->calls)
		nsm_hosts_drop(h, host);
	else
		nsm_room_note(host);
}

bool nsm_name_ok(const char *name, size_t len)
{
	if (len == 0 || len > NSM_NAME_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
			return false;
	return true;
}

void nsm_addr_text(const struct sockaddr *addr, char *out)
{
	if (getnameinfo(addr, xprt_addr_len(addr), out, NSM_NAME_MAX, NULL, 0,
			NI_NUMERICHOST) != 0)
		snprintf(out, NSM_NAME_MAX, "?");
}

bool nsm_addr_parse(const char *text, struct sockaddr_storage *out)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM,
	};
	struct addrinfo *list;

	if (getaddrinfo(text, NULL, &hints, &list) != 0)
		return false;
	xprt_addr_copy(out, list->ai_addr);
	socket_unmap(out);
	freeaddrinfo(list);
	return true;
}

static bool host_is(const struct nsm_host *host, const struct rpc_host *who)
{
	const struct sockaddr *local = (const struct sockaddr *)&host->local;
	static const struct sockaddr none;

	return nsm_same_addr(host, who->addr) &&
	       xprt_addr_same_host(local, who->local ? who->local : &none) &&
	       strcmp(host->name, who->name) == 0;
}

struct nsm_host *nsm_hosts_find(struct nsm_hosts *h,
				const struct rpc_host *who, bool user)
{
	struct nsm_host *host;

	cds_list_for_each_entry(host, nsm_hosts_chain(h, who->addr), near)
		if (host->user == user && host_is(host, who))
			return host;
	return NULL;
}

/* ---- news */

static bool names_equal(const char *a, const char *b)
{
	return strcasecmp(a, b) == 0;
}

/* "c1" and "c1.example". */
static bool is_short_for(const char *name, const char *full)
{
	size_t len = strcspn(full, ".");

	return full[len] && strlen(name) == len &&
	       strncasecmp(name, full, len) == 0;
}

bool nsm_names_address(const char *name, const struct sockaddr *addr)
{
	struct sockaddr_storage a;

	if (names_equal(name, "localhost") || is_short_for("localhost", name))
		return true;
	return nsm_addr_parse(name, &a) &&
	       xprt_addr_same_host((const struct sockaddr *)&a, addr);
}

/* The one name of several hosts. */
struct one_name {
	const char *name;	/* NULL: no host was found */
	bool	    several;
};

static void note_name(struct one_name *one, const char *name)
{
	one->several |= one->name && !names_equal(one->name, name);
	one->name = name;
}

const char *nsm_hosts_meant(const struct nsm_hosts *h, const char *name,
			    const struct sockaddr *addr)
{
	struct one_name near = { 0 }, any = { 0 };
	const struct nsm_host *host;

	cds_list_for_each_entry(host, nsm_hosts_chain(h, addr), near) {
		if (host->user || !nsm_same_addr(host, addr))
			continue;
		if (names_equal(host->name, name))
			return host->name;
		if (is_short_for(host->name, name) ||
		    is_short_for(name, host->name))
			note_name(&near, host->name);
		note_name(&any, host->name);
	}
	if (near.name)
		return near.several ? NULL : near.name;
	return nsm_names_address(name, addr) && !any.several ? any.name : NULL;
}

bool nsm_state_is_newer(uint32_t state, uint32_t known)
{
	return !state || !known || (int32_t)(state - known) > 0;
}

/* ---- the list */

static void set_addr(struct sockaddr_storage *to, const struct sockaddr *from)
{
	xprt_addr_copy(to, from);
	socket_unmap(to);
	xprt_addr_set_port(to, 0);
}

static struct nsm_host *make_host(const struct rpc_host *who, size_t size)
{
	struct nsm_host *host = calloc(1, sizeof(*host) + size);

	if (!host)
		return NULL;
	memcpy(host->name, who->name, size);
	set_addr(&host->addr, who->addr);
	if (who->local)
		set_addr(&host->local, who->local);
	CDS_INIT_LIST_HEAD(&host->due_link);
	for (unsigned i = 0; i < NSM_BOUNDS; i++)
		CDS_INIT_LIST_HEAD(&host->in[i].spare);
	return host;
}

static int add_host(struct nsm_hosts *h, const struct rpc_host *who,
		    bool listed, struct nsm_host **out)
{
	size_t size = strlen(who->name) + 1;
	struct nsm_host *host;
	int err;

	if (!nsm_name_ok(who->name, size - 1))
		return -EINVAL;
	host = make_host(who, size);
	if (!host)
		return -ENOMEM;
	err = nsm_room_take(h, host, listed);
	if (err) {
		free(host);
		return err;
	}
	*out = host;
	return 0;
}

int nsm_hosts_add(struct nsm_hosts *h, const struct rpc_host *who,
		  struct nsm_host **out)
{
	return add_host(h, who, false, out);
}

static void print_local(const struct nsm_host *host, FILE *out)
{
	char addr[NSM_NAME_MAX];

	if (host->local.ss_family == AF_UNSPEC)
		return;
	nsm_addr_text((const struct sockaddr *)&host->local, addr);
	fprintf(out, " %s", addr);
}

static void print_user(const struct nsm_host *host, FILE *out)
{
	fprintf(out, " %" PRIu32 " %" PRIu32 " ", host->vers, host->proc);
	for (unsigned i = 0; i < SM_PRIV_SIZE; i++)
		fprintf(out, "%02x", host->priv[i]);
}

static void print_host(const struct nsm_host *host, FILE *out)
{
	bool user = host->user && host->monitored;
	const char *kind = host->monitored ? "host" : "tell";
	char addr[NSM_NAME_MAX];

	nsm_addr_text(nsm_addr(host), addr);
	fprintf(out, "%s %s %s", user ? "user" : kind, addr, host->name);
	if (user)
		print_user(host, out);
	else
		print_local(host, out);
	fputc('\n', out);
}

void nsm_hosts_print(const struct nsm_hosts *h, const struct nsm_head *head,
		     FILE *out)
{
	struct nsm_host *host;

	fprintf(out, "state %" PRIu32 "\nboot %s\n", head->state, head->boot);
	cds_list_for_each_entry(host, &h->list, link)
		if (host->monitored || host->untold || host->claims)
			print_host(host, out);
}

static bool parse_u32(const char *text, uint32_t *out)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n > UINT32_MAX)
		return false;
	*out = (uint32_t)n;
	return true;
}

static bool parse_priv(const char *text, uint8_t *priv)
{
	unsigned byte;

	if (strlen(text) != 2 * SM_PRIV_SIZE ||
	    strspn(text, "0123456789abcdef") != 2 * SM_PRIV_SIZE)
		return false;
	for (unsigned i = 0; i < SM_PRIV_SIZE; i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		priv[i] = (uint8_t)byte;
	}
	return true;
}

#define WORDS_MAX	6

/* The rest of a user's line. */
static bool parse_user(char **word, unsigned n, struct nsm_host *out)
{
	return n == WORDS_MAX && parse_u32(word[3], &out->vers) &&
	       parse_u32(word[4], &out->proc) && parse_priv(word[5], out->priv);
}

/* A line of a host, of @n words. */
static bool parse_host(struct nsm_hosts *h, char **word, unsigned n)
{
	bool user = strcmp(word[0], "user") == 0;
	struct sockaddr_storage addr, local;
	struct nsm_host of = { 0 }, *host;
	struct rpc_host who = { .name = word[2],
				.addr = (const struct sockaddr *)&addr };

	if (n < 3 || !nsm_addr_parse(word[1], &addr) ||
	    (user && !parse_user(word, n, &of)) || (!user && n > 4) ||
	    (n == 4 && !nsm_addr_parse(word[3], &local)))
		return false;
	if (n == 4)
		who.local = (const struct sockaddr *)&local;
	if (nsm_hosts_find(h, &who, user) || add_host(h, &who, true, &host))
		return false;
	host->user = user;
	host->vers = of.vers;
	host->proc = of.proc;
	memcpy(host->priv, of.priv, SM_PRIV_SIZE);
	host->monitored = host->saved = strcmp(word[0], "tell") != 0;
	host->untold = !host->monitored;
	return true;
}

static bool parse_line(struct nsm_hosts *h, char *line, struct nsm_head *head)
{
	char *word[WORDS_MAX + 1];
	unsigned n = 0;

	while (n <= WORDS_MAX && line)
		word[n++] = strsep(&line, " ");
	if (n == 2 && !strcmp(word[0], "state"))
		return parse_u32(word[1], &head->state);
	if (n == 2 && !strcmp(word[0], "boot") &&
	    strlen(word[1]) < sizeof(head->boot)) {
		strcpy(head->boot, word[1]);
		return true;
	}
	if (strcmp(word[0], "host") && strcmp(word[0], "tell") &&
	    strcmp(word[0], "user"))
		return false;
	return parse_host(h, word, n);
}

unsigned nsm_hosts_parse(struct nsm_hosts *h, char *text,
			 struct nsm_head *head)
{
	unsigned bad = 0;
	char *end;

	memset(head, 0, sizeof(*head));
	/* A line without an end was cut off. */
	while ((end = strchr(text, '\n'))) {
		*end = '\0';
		bad += !parse_line(h, text, head);
		text = end + 1;
	}
	return bad + (*text != '\0');
}
