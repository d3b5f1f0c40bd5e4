/* SPDX-License-Identifier: BSD-2-Clause */
/* locks - gannetctl's commands locks and locks release. */
#include "tools/ctl/who.h"

#include <stdio.h>
#include <string.h>

/* The owner that @o has. */
static void print_owner(const json_t *o)
{
	printf("%s (%s), process %lld", text_of(o, "host"),
	       row_name(o, "client"), integer_of(o, "process"));
}

static void print_range(const json_t *o)
{
	const json_t *last = json_object_get(o, "last");

	printf("bytes %lld to ", integer_of(o, "first"));
	if (json_is_null(last))
		printf("the end");
	else
		printf("%lld", (long long)json_integer_value(last));
	printf("%s", json_is_true(json_object_get(o, "exclusive")) ? "" :
	       ", shared");
}

static void print_verb(const char *kind, const char *since)
{
	if (!strcmp(kind, "wait"))
		printf(" has waited %s for ", since);
	else if (!strcmp(kind, "granted"))
		printf(" has waited %s, and is being told of ", since);
	else
		printf(" has held for %s ", since);
}

static void print_blocker(const json_t *blocker)
{
	if (!blocker)
		return;
	if (json_is_null(blocker)) {
		printf("; in the way: no client's lock, perhaps that of a "
		       "process of this machine");
		return;
	}
	printf("; in the way: ");
	print_owner(blocker);
	printf(", with ");
	print_range(blocker);
}

static void print_lock(const json_t *o)
{
	const char *kind = text_of(o, "kind");
	char since[SHORT_TEXT];

	printf("%s file %s: ", text_of(o, "export"), text_of(o, "fileid"));
	print_owner(o);
	print_verb(kind, time_text((uint64_t)integer_of(o, "ms") * 1000000,
				   since));
	if (!strcmp(kind, "share"))
		printf("a share: access %s, deny %s", text_of(o, "access"),
		       text_of(o, "deny"));
	else
		print_range(o);
	print_blocker(json_object_get(o, "blocked_by"));
	printf("\n");
}

static void show_locks(const json_t *r)
{
	const json_t *rows = json_object_get(r, "rows"), *row;
	long long all = integer_of(r, "locks") + integer_of(r, "waits") +
			integer_of(r, "shares");
	size_t i;

	printf("%lld locks, %lld waits, %lld shares of %lld hosts, %lld of "
	       "them monitored\n", integer_of(r, "locks"),
	       integer_of(r, "waits"), integer_of(r, "shares"),
	       integer_of(r, "hosts"), integer_of(r, "monitored"));
	if (integer_of(r, "grace_ms"))
		printf("only reclaims for %lld s more\n",
		       integer_of(r, "grace_ms") / 1000 + 1);
	json_array_foreach(rows, i, row)
		print_lock(row);
	if (all > (long long)json_array_size(rows))
		printf("%lld more are not shown\n",
		       all - (long long)json_array_size(rows));
}

static void show_release(const json_t *r)
{
	printf("%s: %lld locks, %lld waits, %lld shares of %lld hosts ended\n",
	       text_of(r, "address"), integer_of(r, "locks"),
	       integer_of(r, "waits"), integer_of(r, "shares"),
	       integer_of(r, "hosts"));
}

static int release_locks(const struct ctl *c, int n, char **words)
{
	char *argument = NULL;
	int status;

	if (n < 1 || n > 2)
		return -1;
	if (asprintf(&argument, "%s%s%s", words[0], n == 2 ? " " : "",
		     n == 2 ? words[1] : "") < 0)
		return complain("out of memory");
	status = ctl_print(c, ctl_ask(c, "locks-release", argument, NULL,
				      CTL_PATIENCE), show_release);
	free(argument);
	return status;
}

int ctl_locks(const struct ctl *c, int n, char **words)
{
	if (n > 0 && !strcmp(words[0], "release"))
		return release_locks(c, n - 1, words + 1);
	if (n > 1)
		return -1;
	return ctl_print(c, ctl_ask(c, "locks", words[0], NULL, CTL_PATIENCE),
			 show_locks);
}
