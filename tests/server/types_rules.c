/* SPDX-License-Identifier: BSD-2-Clause */
/* types_rules - the rights and answers of a client, against a local
 * process's. */
#include "tests/server/types_rules.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "tests/server/nfs_names.h"
#include "tests/unit/runner.h"

#define OWNER	USER_UID
#define OTHER	OTHER_UID

const struct type *type;
char local[340], client[340];
nfs_fh3 dir;

const char *at(const char *path)
{
	static char text[4][640];
	static unsigned turn;

	turn = (turn + 1) % 4;
	snprintf(text[turn], sizeof(text[turn]), "%s/%s", client, path);
	return text[turn];
}

nfs_fh3 find(nfs_fh3 in, const char *name)
{
	nfs_fh3 fh;

	ck_assert_int_eq(try_lookup(in, name, &fh), NFS3_OK);
	return fh;
}

bool lstat_of(const char *in, const char *name, struct stat *st)
{
	char path[1600];

	snprintf(path, sizeof(path), "%s/%s", in, name);
	return lstat(path, st) == 0;
}

/* The two files are alike, or neither is there. */
static void compare(const char *name)
{
	struct stat x, y;
	bool is = lstat_of(local, name, &x);

	ck_assert_int_eq(is, lstat_of(client, name, &y));
	if (!is)
		return;
	ck_assert_msg(x.st_mode == y.st_mode && x.st_uid == y.st_uid &&
		      x.st_gid == y.st_gid && x.st_nlink == y.st_nlink &&
		      (S_ISDIR(x.st_mode) || x.st_size == y.st_size),
		      "%s: '%s' is %o %u:%u %u %ld, by a client %o %u:%u %u "
		      "%ld", type->name, name, x.st_mode, x.st_uid, x.st_gid,
		      (unsigned)x.st_nlink, (long)x.st_size, y.st_mode,
		      y.st_uid, y.st_gid, (unsigned)y.st_nlink,
		      (long)y.st_size);
}

/* GETATTR agrees with stat(). */
static void compare_attributes(const char *name)
{
	nfs_fh3 file;
	fattr3 now;
	struct stat st;

	if (!lstat_of(client, name, &st) ||
	    try_lookup(dir, name, &file) != NFS3_OK)
		return;
	now = nfs_attr(file);
	ck_assert_uint_eq(now.mode, st.st_mode & 07777);
	ck_assert_uint_eq(now.nlink, st.st_nlink);
	ck_assert_uint_eq(now.uid, st.st_uid);
	ck_assert_uint_eq(now.gid, st.st_gid);
	ck_assert_uint_eq(now.size, (uint64_t)st.st_size);
	ck_assert_uint_eq(now.fileid, st.st_ino);
	ck_assert_uint_eq(now.mtime.seconds, (uint32_t)st.st_mtim.tv_sec);
	ck_assert_uint_eq(now.mtime.nseconds, (uint32_t)st.st_mtim.tv_nsec);
}

/*
 * The owner may always read and write (RFC 1813 section 4.4), and a user with
 * execute permission may read.  Where the file system decides, this takes a
 * descriptor from the file's creation.
 */
static bool may_more(const struct step *s)
{
	struct stat st;

	if (s->verb > CUT || !lstat_of(local, s->name, &st) ||
	    !S_ISREG(st.st_mode))
		return false;
	return st.st_uid == (uid_t)s->uid ||
	       (s->verb == LOOK && st.st_mode & S_IXOTH);
}

int take(const struct step *s)
{
	bool more = may_more(s);
	int want = step_local(s, local), is = step_client(s, dir);
	struct step alike = *s;

	if (more && want == NFS3ERR_ACCES &&
	    (is == NFS3_OK || !(type->has & TYPE_BY_OPEN))) {
		alike.uid = 0;
		want = step_local(&alike, local);
	}
	ck_assert_msg(is == want, "%s: %s: %d, not %d", type->name,
		      step_text(s), is, want);
	compare(s->name);
	if (s->to && s->verb != SYMLINK)
		compare(s->to);
	return is;
}

static void take_all(const struct step *steps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		take(&steps[i]);
}

#define TAKE(steps)	take_all(steps, ARRAY_SIZE(steps))

/* ---- the rules */

static const struct { enum verb verb; unsigned n; } acts[] = {
	{ LOOK, 0 }, { EDIT, 0 }, { CUT, 7 }, { TOUCH, 0 }, { MODE, 0444 },
	{ LOOK, 0 }, { EDIT, 0 }, { CUT, 3 }, { MODE, 0666 }, { MODE, 02711 },
	{ GROUP, 100 }, { GROUP, 200 }, { OWN, OWNER }, { OWN, OTHER },
	{ TOUCH, 0 },
};

/* Only a file has data, and a symbolic link has no mode. */
static bool is_sensible(const char *name, enum verb verb)
{
	if (strcmp(name, "symlink") == 0)
		return verb == GROUP || verb == OWN;
	return verb > CUT || (strcmp(name, "dir") && strcmp(name, "fifo"));
}

void a_client_may_what_a_local_process_may(void)
{
	static const struct step makes[] = {
		{ MAKE, 0, "root", NULL, 0644 },
		{ MAKE, OWNER, "own", NULL, 0640 },
		{ MAKE, OWNER, "own", NULL, 0640 },
		{ MAKE, OTHER, "other", NULL, 0666 },
		{ MAKE, OWNER, "set", NULL, 0755 },
		{ MODE, OWNER, "set", NULL, 06755 },
		{ MAKE, OWNER, "none", NULL, 0 },
		{ DIRECTORY, OWNER, "dir", NULL, 0750 },
		{ DIRECTORY, 0, "sticky", NULL, 01777 },
		{ FIFO, OWNER, "fifo", NULL, 0644 },
		{ SYMLINK, OWNER, "symlink", "own", 0 },
		{ LINK, OWNER, "own", "link", 0 },
		{ LINK, OTHER, "own", "link2", 0 },
	};
	static const char *const names[] = { "root", "own", "other", "set",
		"none", "dir", "fifo", "symlink", "link", "gone" };
	static const int uids[] = { OTHER, OWNER, 0 };

	TAKE(makes);
	for (size_t n = 0; n < ARRAY_SIZE(names); n++)
		for (size_t a = 0; a < ARRAY_SIZE(acts); a++)
			for (size_t u = 0; u < ARRAY_SIZE(uids); u++) {
				const struct step s = { acts[a].verb, uids[u],
					names[n], NULL, acts[a].n };

				if (is_sensible(s.name, s.verb))
					take(&s);
				if (a % 5 == 0 && u == 2)
					compare_attributes(s.name);
			}
}

void names_go_as_a_local_process_has_them_go(void)
{
	static const struct step steps[] = {
		{ MAKE, OWNER, "a", NULL, 0644 },
		{ MAKE, OWNER, "b", NULL, 0644 },
		{ RENAME, OTHER, "a", "c", 0 },
		{ RENAME, OWNER, "c", "b", 0 },
		{ RENAME, OWNER, "gone", "b", 0 },
		{ DIRECTORY, OWNER, "d", NULL, 0755 },
		{ DIRECTORY, OWNER, "d", NULL, 0755 },
		{ DIRECTORY, OWNER, "e", NULL, 0755 },
		{ RENAME, OWNER, "b", "d", 0 },
		{ RENAME, OWNER, "d", "b", 0 },
		{ RENAME, OWNER, "e", "d", 0 },
		{ REMOVE, OWNER, "d", NULL, 0 },
		{ RMDIR, OWNER, "b", NULL, 0 },
		{ RMDIR, OWNER, "d", NULL, 0 },
		{ RMDIR, OWNER, "d", NULL, 0 },
		{ REMOVE, OWNER, "b", NULL, 0 },
		{ REMOVE, OWNER, "b", NULL, 0 },
	};

	TAKE(steps);
}

/* The names in @in, sorted; without "." and "..", and names that no client
 * gets. */
static void list_locally(const char *in, char *out, size_t size)
{
	struct dirent **list;
	int n = scandir(in, &list, NULL, alphasort);

	*out = '\0';
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;

		if (strcmp(name, ".") && strcmp(name, "..") &&
		    strlen(name) <= 255)
			snprintf(out + strlen(out), size - strlen(out), "%s\n",
				 name);
		free(list[i]);
	}
	free(list);
}

static void compare_lists(void)
{
	static char a[16384], b[16384];

	list_locally(local, a, sizeof(a));
	list_locally(client, b, sizeof(b));
	ck_assert_str_eq(a, b);
}

void odd_names_are_as_for_a_local_process(void)
{
	static const char *const odd[] = {
		"na\xc3\xafve", "\xe6\x97\xa5\xe6\x9c\xac", "\xff\xfe", "a:b",
		"tab\t", "new\nline", "dot.", "space ", " space", "back\\slash",
		"CON", "a*?<>|\"", "...", "\x01", "e\xcc\x81", "\xc3\xa9",
		"\xf0\x9f\x98\x80",
	};

	for (size_t i = 0; i < ARRAY_SIZE(odd) + 6; i++) {
		char many[600] = "";
		const char *name = i < ARRAY_SIZE(odd) ? odd[i] : many;
		const struct step see = { TOUCH, OWNER, name, NULL, 0 };
		const struct step make = { MAKE, OWNER, name, NULL, 0644 };
		const struct step steps[] = {
			{ MAKE, OWNER, name, NULL, 0644 },
			{ EDIT, OWNER, name, NULL, 0 },
			{ RENAME, OWNER, name, "plain", 0 },
			{ RENAME, OWNER, "plain", name, 0 },
		};

		/* 254 to 256 bytes, and 127 to 129 letters of two. */
		for (size_t j = 0; j < (i % 2 ? 254 : 127) + i / 2 % 3; j++)
			strcat(many, i % 2 ? "x" : "\xc3\xa9");
		/* NTFS and FUSE can have them, and NFS here does not. */
		if (strlen(name) > 255) {
			ck_assert_int_eq(step_client(&make, dir),
					 NFS3ERR_NAMETOOLONG);
			continue;
		}
		take(&see);
		if (take(&make) == NFS3_OK)
			TAKE(steps);
	}
	compare_lists();
}

void names_that_differ_in_case_are_as_for_a_local_process(void)
{
	static const struct step steps[] = {
		{ MAKE, OWNER, "Name", NULL, 0644 },
		{ MAKE, OWNER, "NAME", NULL, 0644 },
		{ EDIT, OWNER, "nAME", NULL, 0 },
		{ RENAME, OWNER, "Name", "name", 0 },
		{ EDIT, OWNER, "Name", NULL, 0 },
		{ DIRECTORY, OWNER, "DIR", NULL, 0755 },
		{ RENAME, OWNER, "dir", "Dir", 0 },
		{ MAKE, OWNER, "\xc3\x89t\xc3\xa9", NULL, 0644 },
		{ MAKE, OWNER, "\xc3\xa9t\xc3\x89", NULL, 0644 },
		{ RENAME, OWNER, "name", "dIR", 0 },
		{ REMOVE, OWNER, "NAME", NULL, 0 },
		{ REMOVE, OWNER, "name", NULL, 0 },
		{ RMDIR, OWNER, "dIr", NULL, 0 },
	};

	TAKE(steps);
	compare_lists();
}
