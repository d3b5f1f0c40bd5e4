/* SPDX-License-Identifier: BSD-2-Clause */
/* option_row - the table of gannetd's options, and the kinds of their
 * values. */
#include "daemon/settings/settings.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/watch/audit.h"
#include "lib/util.h"
#include "transport/addr.h"

#define MIB	((size_t)1 << 20)
#define MAX_MIB	(1ul << 24)

static const char *const yes[] = { "yes", "true", "on", "1", NULL };
static const char *const no[] = { "no", "false", "off", "0", NULL };
static const char *const seccomp_words[] = {
	[CONFINE_KILL] = "kill", [CONFINE_LOG] = "log", [CONFINE_OFF] = "off",
	NULL
};
static const char *const log_words[] = {
	[LOG_LEVEL_ERR] = "err", [LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info", [LOG_LEVEL_DEBUG] = "debug", NULL
};

static const char *const log_targets[] = {
	[LOG_TO_AUTO] = "auto", [LOG_TO_STDERR] = "stderr",
	[LOG_TO_JOURNAL] = "journal", [LOG_TO_SYSLOG] = "syslog", NULL
};

static const char *check_backend_dir(const char *value)
{
	if (*value != '/')
		return "expected an absolute path";
	/* dlopen() expands $LIB and others. */
	return strchr(value, '$') ? "expected a path without '$'" : NULL;
}

static const char *check_keytab(const char *value)
{
	return *value == '/' || strcmp(value, "off") == 0 ? NULL :
	       "expected off, or an absolute path";
}

bool options_address(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };

	memset(out, 0, sizeof(*out));
	if (text && inet_pton(AF_INET, text, &sin.sin_addr) == 1) {
		memcpy(out, &sin, sizeof(sin));
		return true;
	}
	if (text && inet_pton(AF_INET6, text, &sin6.sin6_addr) != 1)
		return false;
	memcpy(out, &sin6, sizeof(sin6));
	return true;
}

static const char *check_bind(const char *value)
{
	struct sockaddr_storage address;

	return options_address(value, &address) ? NULL :
	       "expected an IPv4 or IPv6 address of this machine";
}

/* Splits "ADDRESS:PORT" or "[ADDRESS]:PORT".  False: no valid port. */
static bool split_port(const char *text, char address[INET6_ADDRSTRLEN],
		       unsigned *port)
{
	const char *colon = strrchr(text, ':');
	bool brackets = *text == '[';
	size_t len = strlen(text);
	char *end;

	/* That of a bare IPv6 address belongs to it. */
	if (colon && (brackets ? colon[-1] == ']' :
				 colon == strchr(text, ':'))) {
		unsigned long n = strtoul(colon + 1, &end, 10);

		if (colon[1] < '0' || colon[1] > '9' || *end || n > 65535)
			return false;
		*port = (unsigned)n;
		len = (size_t)(colon - text);
	}
	if (brackets && (len < 2 || text[len - 1] != ']'))
		return false;
	text += brackets;
	len -= 2u * brackets;
	if (len >= INET6_ADDRSTRLEN)
		return false;
	memcpy(address, text, len);
	address[len] = '\0';
	return true;
}

const char *options_metrics(const char *text, struct sockaddr_storage *out)
{
	char address[INET6_ADDRSTRLEN] = "127.0.0.1";
	unsigned port = METRICS_PORT;

	memset(out, 0, sizeof(*out));
	if (!text || !strcasecmp(text, "off"))
		return NULL;
	if (!HAVE_MICROHTTPD)
		return "this gannetd was built without libmicrohttpd";
	if (strcasecmp(text, "on") != 0 &&
	    (!split_port(text, address, &port) || !*address ||
	     !options_address(address, out)))
		return "expected off, on, or an address as 127.0.0.1:20490 or "
		       "[::1]:20490";
	options_address(address, out);
	xprt_addr_set_port(out, (uint16_t)port);
	return NULL;
}

static const char *check_metrics(const char *value)
{
	struct sockaddr_storage at;

	return options_metrics(value, &at);
}

static const char *check_state_dir(const char *value)
{
	return *value ? NULL : "expected a directory";
}

static const char *check_file_name(const char *value)
{
	return *value ? NULL : "expected a file";
}

static const char *check_audit(const char *value)
{
	if (!strcasecmp(value, "journal") && !HAVE_SYSTEMD)
		return "this gannetd was built without libsystemd";
	return *value == '/' || !strcasecmp(value, "off") ||
	       !strcasecmp(value, "journal") || !strcasecmp(value, "syslog") ?
	       NULL : "expected off, journal, syslog or an absolute path";
}

static const char *check_audit_procs(const char *value)
{
	uint64_t procs;

	return audit_procs_parse(value, &procs) ? NULL :
	       "expected changes, all, or names of procedures with commas "
	       "between, as write,create";
}

#define AT(field)	.at = offsetof(struct options, field)
#define NUMBER(field, from, to) \
	.kind = OPTION_NUMBER, AT(field), .min = (from), .max = (to)
#define MEMORY(field) \
	.kind = OPTION_MIB, AT(field), .min = 8, .max = MAX_MIB
#define FLAG(field)		.kind = OPTION_FLAG, AT(field)
#define LIST(field)		.kind = OPTION_LIST, AT(field)
#define WORD(field, list)	.kind = OPTION_WORD, AT(field), .words = (list)
#define TEXT(field, how)	.kind = OPTION_TEXT, AT(field), .check = (how)

static const struct option_row rows[] = {
	{ NULL, NULL, "config", "FILE",
	  "read FILE, and FILE.d/*.conf, instead of\n"
	  SYSCONFDIR "/gannet/gannet.conf;\n"
	  "see gannet.conf(5)",
	  TEXT(config, check_file_name) },
	{ "exports", "export", "export", "EXPORT",
	  "export a directory: 'DIR' to this machine only, or\n"
	  "'DIR CLIENT(OPTIONS)...' as a line of an exports\n"
	  "file; can be given more than once",
	  LIST(exports), .live = true },
	{ "exports", "file", "exports-file", "FILE",
	  "read exports from FILE, or from the files *.exports in\n"
	  "that directory, see gannet-exports(5); can be given\n"
	  "more than once; without this and --export:\n"
	  SYSCONFDIR "/gannet/exports and\n"
	  SYSCONFDIR "/gannet/exports.d",
	  LIST(exports_files), .live = true },
	{ "exports", "backend", "backend", "NAME",
	  "load the module NAME, for exports as NAME:/PATH; can be\n"
	  "given more than once",
	  LIST(backends) },
	{ "exports", "backend-dir", TEXT(backend_dir, check_backend_dir) },
	{ "server", "port", "port", "N",
	  "TCP and UDP port of all but NFS/RDMA (2049); 0: any",
	  NUMBER(port, 0, 65535) },
	{ "rdma", "port", "rdma-port", "N",
	  "port of NFS/RDMA (20049); 0: any free port",
	  NUMBER(rdma_port, 0, 65535) },
	{ "rdma", "mode", "rdma", "MODE",
	  "kinds of NFS/RDMA, joined by commas; off; auto (the\n"
	  "default): the first of these that this machine has:",
	  .kind = OPTION_RDMA },
	{ "rdma", "inline", NUMBER(rdma_inline, 1024, 65536) },
	{ "rdma", "mount", FLAG(rdma_mount) },
	{ "rdma", "read-read", FLAG(rdma_read_read) },
	{ "server", "bind", "bind", "ADDRESS",
	  "listen on this IPv4 or IPv6 address only",
	  TEXT(bind, check_bind) },
	{ "server", "threads", "threads", "N",
	  "worker threads of each export, which can block in its\n"
	  "file system (16)",
	  NUMBER(threads, 1, 1024) },
	{ "server", "pollers", "pollers", "N",
	  "threads that serve connections (one a processor)",
	  NUMBER(pollers, 1, MAX_POLLERS) },
	{ "server", "grace", "grace", "SECONDS",
	  "after the start, grant for this time only locks that\n"
	  "clients had before (50)",
	  NUMBER(grace, 0, 3600) },
	{ "server", "spin", NUMBER(spin, 0, 1000) },
	{ "server", "max-connections", "max-connections", "N",
	  "most connections of each transport (4096)",
	  NUMBER(max_conns, 1, 1000000), .live = true },
	{ "server", "max-client-connections",
	  NUMBER(max_client_conns, 1, 1000000), .live = true },
	{ "server", "memory", "memory", "MIB",
	  "most memory for data in transit (a quarter of the\n"
	  "machine's, at most 1024)",
	  MEMORY(memory), .live = true },
	{ "rdma", "credits", NUMBER(rdma_credits, 1, 1024) },
	{ "rdma", "memory", MEMORY(rdma_memory), .live = true },
	{ "server", "reply-memory", MEMORY(reply_memory) },
	{ "server", "state-dir", "state-dir", "DIR",
	  "where keys, tables and the lists of mounts and of hosts\n"
	  "with locks are kept (root:\n"
	  LOCALSTATEDIR "/lib/gannet; else $XDG_STATE_HOME/gannet\n"
	  "or ~/.local/state/gannet)",
	  TEXT(state_dir, check_state_dir) },
	{ "server", "krb5-keytab", "krb5-keytab", "FILE",
	  "serve Kerberos with the keys in FILE; off; without\n"
	  "this: those in /etc/krb5.keytab, if it is there and\n"
	  "gannet-krb5 is installed",
	  TEXT(krb5_keytab, check_keytab) },
	{ "server", "tls-cert", "tls-cert", "FILE",
	  "serve TLS over TCP with the certificate in FILE, and\n"
	  "its chain (PEM)",
	  TEXT(tls_cert, check_file_name), .live = true },
	{ "server", "tls-key", "tls-key", "FILE",
	  "the key of the certificate (PEM)",
	  TEXT(tls_key, check_file_name), .live = true },
	{ "server", "tls-ca", "tls-ca", "FILE",
	  "the authorities that clients' certificates are of (PEM)",
	  TEXT(tls_ca, check_file_name), .live = true },
	{ "server", "tls-crl", "tls-crl", "FILE",
	  "their lists of revoked certificates (PEM)",
	  TEXT(tls_crl, check_file_name), .live = true },
	{ "server", "seccomp", "seccomp", "WHAT",
	  "on a system call that serving does not need: kill (the\n"
	  "default) ends the server, log makes the kernel log it,\n"
	  "off does not filter",
	  WORD(seccomp, seccomp_words) },
	{ "exports", "manage-gids", "manage-gids", NULL,
	  "use this system's groups of a caller, unless an export\n"
	  "says no_manage_gids",
	  FLAG(manage_gids), .live = true },
	{ "server", "rpcbind", "no-rpcbind", NULL,
	  "do not register with rpcbind, nor use rpc.statd, nor\n"
	  "answer at port 111; clients then mount with port=,\n"
	  "mountport= and nolock",
	  FLAG(rpcbind), .bare = "no" },
	{ NULL, NULL, "check", NULL,
	  "read the options and the exports, print what would be\n"
	  "exported, and exit",
	  FLAG(check) },
	{ NULL, NULL, "foreground", NULL,
	  "stay in the foreground",
	  FLAG(foreground) },
	{ "server", "pid-file", "pid-file", "FILE",
	  "write the process id to FILE, once ready",
	  TEXT(pid_file, check_file_name) },
	{ "server", "control", "control", "SOCKET",
	  "socket for gannetctl(8) (control in the state\ndirectory)",
	  TEXT(control, check_file_name) },
	{ "metrics", "listen", "metrics", "ADDRESS",
	  "serve metrics and a status page over HTTP:\n"
	  "'on' for 127.0.0.1:20490, ADDRESS:PORT, or 'off'",
	  TEXT(metrics, check_metrics) },
	{ "metrics", "clients", NUMBER(metrics_clients, 0, 10000) },
	{ "log", "level", "log-level", "LEVEL",
	  "err, warn, info (the default) or debug",
	  WORD(log_level, log_words), .live = true },
	{ "log", "to", "log", "WHERE",
	  "stderr, journal, syslog, or auto (the default)",
	  WORD(log_to, log_targets) },
	{ "audit", "to", "audit", "FILE",
	  "record who does what to which path in FILE, a line of\n"
	  "JSON each; or to the 'journal', to 'syslog'; or 'off'",
	  TEXT(audit, check_audit), .live = true },
	{ "audit", "procs",
	  TEXT(audit_procs, check_audit_procs), .live = true },
	{ "audit", "export", LIST(audit_exports), .live = true },
	{ "audit", "interval", NUMBER(audit_interval, 0, 86400), .live = true },
};

#define NROWS	ARRAY_SIZE(rows)

/* The rows above, then the rows of the fabrics. */
static struct option_row all[OPTIONS_MAX];
static unsigned nall;

static void add_fabric(unsigned f)
{
	const struct fabric_row *fabric = fabric_rows[f];
	const struct fabric_flag *flag = fabric->flags;

	if (fabric->port)
		all[nall++] = (struct option_row){
			fabric->name, "port", .kind = OPTION_NUMBER,
			.at = offsetof(struct options, fabrics[f].port),
			.max = 65535,
		};
	for (unsigned k = 0; k < FABRIC_FLAGS && flag[k].key; k++)
		all[nall++] = (struct option_row){
			fabric->name, flag[k].key, .kind = OPTION_BIT,
			.bare = flag[k].on ? "no" : NULL,
			.at = offsetof(struct options, fabrics[f].given),
			.min = k,
		};
}

unsigned options_count(void)
{
	if (nall)
		return nall;
	memcpy(all, rows, sizeof(rows));
	nall = NROWS;
	for (unsigned f = 0; f < fabrics_count(); f++)
		add_fabric(f);
	return nall;
}

const struct option_row *option_row(unsigned i)
{
	return i < options_count() ? &all[i] : NULL;
}

static bool keys_match(const char *a, const char *b)
{
	while (*a && (*a == *b || (*a == '-' && *b == '_')))
		a++, b++;
	return *a == *b;
}

const struct option_row *option_of_key(const char *section, const char *key)
{
	for (unsigned i = 0; i < options_count(); i++)
		if (all[i].section && keys_match(all[i].key, key) &&
		    (!section || !strcmp(all[i].section, section)))
			return &all[i];
	return NULL;
}

bool option_section(const char *section)
{
	for (unsigned i = 0; i < options_count(); i++)
		if (all[i].section && !strcmp(all[i].section, section))
			return true;
	return false;
}

const struct option_texts *option_given(const struct options *o,
					const struct option_row *row)
{
	return &o->given[row - all];
}

/* ---- values */

/* The place of @value in @words; -1: not there. */
static int find_word(const char *const *words, const char *value)
{
	for (int i = 0; words[i]; i++)
		if (!strcasecmp(words[i], value))
			return i;
	return -1;
}

static const char *expected_number(const struct option_row *row)
{
	static char text[80];

	snprintf(text, sizeof(text), "expected a number from %lu to %lu",
		 row->min, row->max);
	return text;
}

static const char *expected_word(const char *const *words)
{
	static char text[80];
	int n = snprintf(text, sizeof(text), "expected ");

	for (unsigned i = 0; words[i]; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s",
			      i == 0 ? "" : words[i + 1] ? ", " : " or ",
			      words[i]);
	return text;
}

static bool parse_option_number(const struct option_row *row,
				const char *value, unsigned long *out)
{
	char *end;

	*out = strtoul(value, &end, 10);
	return *value >= '0' && *value <= '9' && !*end && *out >= row->min &&
	       *out <= row->max;
}

static const char *expected_rdma(void)
{
	static char text[120];
	int n = snprintf(text, sizeof(text), "expected auto, off, or one or "
			 "more of ");

	for (unsigned i = 0; i < fabrics_count(); i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s",
			      i ? "," : "", fabric_rows[i]->name);
	return text;
}

static const char *set_rdma(struct options *o, const char *value)
{
	const char *p = value;
	size_t len;

	o->rdma = !strcmp(value, "auto") ? RDMA_AUTO : RDMA_OFF;
	if (o->rdma == RDMA_AUTO || !strcmp(value, "off"))
		return NULL;
	for (;; p += len + 1) {
		unsigned at = fabrics_find(p, len = strcspn(p, ","));

		if (at == fabrics_count() || o->rdma & 1u << at)
			return expected_rdma();
		o->rdma |= 1u << at;
		if (!p[len])
			return NULL;
	}
}

/* The value, yes or no, whose bit is set: that of the option's name alone. */
static bool bit_means(const struct option_row *row)
{
	return !row->bare;
}

/* Sets the value of an option that takes words or numbers. */
static const char *set_scalar(const struct option_row *row, const char *value,
			      void *at)
{
	bool flag = row->kind == OPTION_FLAG || row->kind == OPTION_BIT;
	unsigned long number = 0;
	int word = -1;

	if (flag)
		word = find_word(yes, value) >= 0 ? 1 :
		       find_word(no, value) >= 0 ? 0 : -1;
	else if (row->kind == OPTION_WORD)
		word = find_word(row->words, value);
	else if (!parse_option_number(row, value, &number))
		return expected_number(row);
	if (flag && word < 0)
		return "expected yes or no";
	if (row->kind == OPTION_WORD && word < 0)
		return expected_word(row->words);
	if (row->kind == OPTION_FLAG)
		*(bool *)at = word;
	else if (row->kind == OPTION_BIT)
		*(unsigned *)at = (*(unsigned *)at & ~(1u << row->min)) |
				  (unsigned)(word == bit_means(row)) <<
				  row->min;
	else if (row->kind == OPTION_WORD)
		*(unsigned *)at = (unsigned)word;
	else if (row->kind == OPTION_MIB)
		*(size_t *)at = number * MIB;
	else
		*(unsigned *)at = (unsigned)number;
	return NULL;
}

static const char *set_value(struct options *o, const struct option_row *row,
			     const char *value)
{
	void *at = (char *)o + row->at;
	const char *wrong;

	switch (row->kind) {
	case OPTION_RDMA:
		return set_rdma(o, value);
	case OPTION_LIST:
		return NULL;
	case OPTION_TEXT:
		wrong = row->check(value);
		if (!wrong)
			*(const char **)at = value;
		return wrong;
	default:
		return set_scalar(row, value, at);
	}
}

static void texts_clear(struct option_texts *t)
{
	for (unsigned i = 0; i < t->n; i++)
		free(t->v[i]);
	t->n = 0;
}

const char *option_give(struct options *o, const struct option_row *row,
			const char *value, bool told)
{
	struct option_texts *t = &o->given[row - all];
	char *text = strdup(value ? value : row->bare ? row->bare : "yes");
	char **v = reallocarray(t->v, t->n + 1, sizeof(*v));
	const char *wrong;

	if (v)
		t->v = v;
	if (!text || !v) {
		free(text);
		return "out of memory";
	}
	wrong = set_value(o, row, text);
	if (wrong) {
		free(text);
		return wrong;
	}
	if (row->kind != OPTION_LIST || (told && !t->told))
		texts_clear(t);
	t->told |= told;
	t->v[t->n++] = text;
	return NULL;
}

void option_print(const struct options *o, const struct option_row *row,
		  FILE *out)
{
	const void *at = (const char *)o + row->at;
	const struct option_texts *given = option_given(o, row);
	unsigned word;

	switch (row->kind) {
	case OPTION_FLAG:
		fputs(*(const bool *)at ? "yes" : "no", out);
		break;
	case OPTION_BIT:
		word = *(const unsigned *)at >> row->min & 1;
		fputs(word == bit_means(row) ? "yes" : "no", out);
		break;
	case OPTION_NUMBER:
		fprintf(out, "%u", *(const unsigned *)at);
		break;
	case OPTION_MIB:
		fprintf(out, "%zu", *(const size_t *)at / MIB);
		break;
	case OPTION_WORD:
		word = *(const unsigned *)at;
		fputs(row->words[word], out);
		break;
	case OPTION_TEXT:
		fputs(*(const char *const *)at ? : "", out);
		break;
	case OPTION_RDMA:
		fputs(given->n ? given->v[0] : "auto", out);
		break;
	case OPTION_LIST:
		for (unsigned i = 0; i < given->n; i++)
			fprintf(out, "%s%s", i ? ", " : "", given->v[i]);
	}
}
