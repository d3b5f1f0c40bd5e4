/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an errno of a backend (VFS_ERRORS) to a status that the procedure can
 * answer with.
 *
 * RFC 1813 lists statuses for each procedure, "not intended to be the
 * definitive statement" (section 3).  Clients turn a status back into an errno
 * for an application, so an unlisted status goes out as the listed one with the
 * nearest meaning (instead[]).  These exceptions are sent although they are not
 * listed:
 *
 * 	JUKEBOX	by all: section 2.6 defines it for any procedure
 * 	ACCES	by all: the export can be closed to this client
 * 	PERM	by what changes a directory or a file: MKNOD of a device, or
 * 		REMOVE from a sticky directory, by the wrong user; LINK of a
 * 		directory
 * 	INVAL	by what makes a file, and COMMIT: arguments that no other
 * 		status fits (a time with 2^32 - 1 nanoseconds)
 * 	ISDIR	by REMOVE of a directory, and LINK where a backend says so
 * 	NOSPC, DQUOT by COMMIT: where the file system learns of it late, the
 * 		application has to learn of it all the same
 */
#include "nfs3/proc.h"

#include <errno.h>

#include "lib/stats.h"

/* The statuses, numbered without gaps. */
#define STATUSES(X) \
	X(PERM) X(NOENT) X(IO) X(NXIO) X(ACCES) X(EXIST) X(XDEV) X(NODEV) \
	X(NOTDIR) X(ISDIR) X(INVAL) X(FBIG) X(NOSPC) X(ROFS) X(MLINK) \
	X(NAMETOOLONG) X(NOTEMPTY) X(DQUOT) X(STALE) X(REMOTE) X(BADHANDLE) \
	X(NOT_SYNC) X(BAD_COOKIE) X(NOTSUPP) X(TOOSMALL) X(SERVERFAULT) \
	X(BADTYPE) X(JUKEBOX)

#define NUMBER(s) S_##s,
#define WIRE(s) [S_##s] = NFS3ERR_##s,
#define BIT(s) B_##s = 1u << S_##s,

enum { STATUSES(NUMBER) S_COUNT, S_NONE = 0xff };
enum { STATUSES(BIT) };

static const uint16_t wire[S_COUNT] = { STATUSES(WIRE) };

/* Every procedure but NULL. */
#define ANY	(B_STALE | B_BADHANDLE | B_SERVERFAULT | B_JUKEBOX | B_ACCES)
/* CREATE, MKDIR, SYMLINK and MKNOD list the same. */
#define MAKE	(ANY | B_IO | B_EXIST | B_NOTDIR | B_NOSPC | B_ROFS | \
		 B_NAMETOOLONG | B_DQUOT | B_NOTSUPP | B_PERM | B_INVAL)

static const uint32_t allowed[NFSACL_STATUS + NFSACL_NPROC] = {
	[NFSPROC3_GETATTR] = ANY | B_IO,
	[NFSPROC3_SETATTR] = ANY | B_PERM | B_IO | B_INVAL | B_NOSPC |
			     B_ROFS | B_DQUOT | B_NOT_SYNC,
	[NFSPROC3_LOOKUP] = ANY | B_IO | B_NOENT | B_NOTDIR | B_NAMETOOLONG,
	[NFSPROC3_ACCESS] = ANY | B_IO,
	[NFSPROC3_READLINK] = ANY | B_IO | B_INVAL | B_NOTSUPP,
	[NFSPROC3_READ] = ANY | B_IO | B_NXIO | B_INVAL,
	[NFSPROC3_WRITE] = ANY | B_IO | B_FBIG | B_DQUOT | B_NOSPC | B_ROFS |
			   B_INVAL | B_PERM,
	[NFSPROC3_CREATE] = MAKE,
	[NFSPROC3_MKDIR] = MAKE,
	[NFSPROC3_SYMLINK] = MAKE,
	[NFSPROC3_MKNOD] = MAKE | B_BADTYPE,
	[NFSPROC3_REMOVE] = ANY | B_NOENT | B_IO | B_NOTDIR | B_NAMETOOLONG |
			    B_ROFS | B_PERM | B_ISDIR,
	[NFSPROC3_RMDIR] = ANY | B_NOENT | B_IO | B_INVAL | B_EXIST |
			   B_NOTDIR | B_NAMETOOLONG | B_ROFS | B_NOTEMPTY |
			   B_NOTSUPP | B_PERM,
	[NFSPROC3_RENAME] = ANY | B_NOENT | B_IO | B_EXIST | B_XDEV |
			    B_NOTDIR | B_ISDIR | B_INVAL | B_NOSPC | B_ROFS |
			    B_MLINK | B_NAMETOOLONG | B_NOTEMPTY | B_DQUOT |
			    B_NOTSUPP | B_PERM,
	[NFSPROC3_LINK] = ANY | B_IO | B_EXIST | B_XDEV | B_NOTDIR | B_INVAL |
			  B_NOSPC | B_ROFS | B_MLINK | B_NAMETOOLONG |
			  B_DQUOT | B_NOTSUPP | B_PERM | B_ISDIR,
	[NFSPROC3_READDIR] = ANY | B_IO | B_NOTDIR | B_BAD_COOKIE |
			     B_TOOSMALL,
	[NFSPROC3_READDIRPLUS] = ANY | B_IO | B_NOTDIR | B_BAD_COOKIE |
				 B_TOOSMALL | B_NOTSUPP,
	[NFSPROC3_FSSTAT] = ANY | B_IO,
	[NFSPROC3_FSINFO] = ANY,
	[NFSPROC3_PATHCONF] = ANY,
	[NFSPROC3_COMMIT] = ANY | B_IO | B_INVAL | B_NOSPC | B_DQUOT,
	/* No document lists these: clients know them. */
	[NFSACL_STATUS + NFSACLPROC3_GETACL] = ANY | B_IO | B_INVAL | B_FBIG |
					       B_NOTSUPP,
	[NFSACL_STATUS + NFSACLPROC3_SETACL] = ANY | B_PERM | B_IO | B_INVAL |
					       B_NOSPC | B_ROFS | B_DQUOT |
					       B_NOTSUPP,
};

#define MAX_INSTEAD	3

/* The substitutes for a status that is not allowed: the first allowed one goes
 * out, else IO, else SERVERFAULT. */
static const uint8_t instead[S_COUNT][MAX_INSTEAD] = {
	[S_PERM]	= { S_ACCES, S_NONE },
	[S_NOENT]	= { S_STALE, S_NONE },
	[S_IO]		= { S_NONE },
	[S_NXIO]	= { S_NONE },
	[S_ACCES]	= { S_NONE },
	[S_EXIST]	= { S_INVAL, S_NONE },
	[S_XDEV]	= { S_INVAL, S_NONE },
	[S_NODEV]	= { S_NXIO, S_NONE },
	[S_NOTDIR]	= { S_INVAL, S_ACCES, S_NONE },
	[S_ISDIR]	= { S_EXIST, S_INVAL, S_NONE },
	[S_INVAL]	= { S_ACCES, S_NONE },
	[S_FBIG]	= { S_INVAL, S_NOSPC, S_NONE },
	[S_NOSPC]	= { S_NONE },
	[S_ROFS]	= { S_NONE },
	[S_MLINK]	= { S_NOSPC, S_NONE },
	[S_NAMETOOLONG]	= { S_INVAL, S_NONE },
	[S_NOTEMPTY]	= { S_EXIST, S_NONE },
	[S_DQUOT]	= { S_NOSPC, S_NONE },
	[S_STALE]	= { S_NONE },
	[S_REMOTE]	= { S_STALE, S_NONE },
	[S_BADHANDLE]	= { S_NONE },
	[S_NOT_SYNC]	= { S_NONE },
	[S_BAD_COOKIE]	= { S_INVAL, S_NONE },
	[S_NOTSUPP]	= { S_INVAL, S_NONE },
	[S_TOOSMALL]	= { S_INVAL, S_NONE },
	[S_SERVERFAULT]	= { S_NONE },
	[S_BADTYPE]	= { S_NOTSUPP, S_INVAL, S_NONE },
	[S_JUKEBOX]	= { S_NONE },
};

#define ERRNO(err, status) { err, S_##status },

static const struct { int err; uint8_t status; } errnos[] = {
	VFS_ERRORS(ERRNO)
};

static unsigned number_of(enum nfsstat3 status)
{
	unsigned s;

	for (s = 0; s < S_COUNT; s++)
		if (wire[s] == status)
			break;
	return s;
}

static unsigned fit(unsigned proc, unsigned status)
{
	uint32_t may = allowed[proc];
	const uint8_t *alt = instead[status];

	if (may & 1u << status)
		return status;
	for (int i = 0; i < MAX_INSTEAD && alt[i] != S_NONE; i++)
		if (may & 1u << alt[i])
			return alt[i];
	return may & B_IO ? S_IO : S_SERVERFAULT;
}

enum nfsstat3 nfs3_status(unsigned proc, int err)
{
	unsigned status = S_SERVERFAULT;

	if (err == 0)
		return NFS3_OK;
	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++)
		if (errnos[i].err == -err) {
			status = errnos[i].status;
			break;
		}
	return wire[fit(proc, status)];
}

bool nfs3_status_allowed(unsigned proc, enum nfsstat3 status)
{
	unsigned s = number_of(status);

	return status == NFS3_OK ||
	       (s < S_COUNT && (allowed[proc] & 1u << s));
}

#define NAME(s) [S_##s] = "NFS3ERR_" #s,

const char *nfs3_status_name(enum nfsstat3 status)
{
	static const char *const by_number[S_COUNT] = { STATUSES(NAME) };
	unsigned s = number_of(status);

	return status == NFS3_OK ? "NFS3_OK" : s < S_COUNT ? by_number[s] :
							     "ERROR";
}

#define COUNT_STATUS(s) STAT(nfs3err_##s, "replies with NFS3ERR_" #s);
#define COUNTER(s) [S_##s] = &stat_nfs3err_##s,

STATUSES(COUNT_STATUS)

static const struct stat_counter *const by_status[S_COUNT] = {
	STATUSES(COUNTER)
};

void nfs3_status_count(enum nfsstat3 status)
{
	stats_add(by_status[number_of(status)], 1);
}
