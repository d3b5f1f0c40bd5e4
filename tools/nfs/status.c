/* SPDX-License-Identifier: BSD-2-Clause */
/* status - the statuses of NFS and MOUNT (RFC 1813 2.6, 5.1.5), in words. */
#include "tools/nfs/nfs.h"

#include <stddef.h>

#include "lib/util.h"

/* MOUNT takes its statuses from NFS. */
#define STATUS(number, name, words) \
	{ number, "NFS3ERR_" name, "MNT3ERR_" name, words }

static const struct {
	uint32_t    status;
	const char *nfs, *mount, *words;
} names[] = {
	{ 0, "NFS3_OK", "MNT3_OK", "no error" },
	STATUS(1, "PERM", "only its owner may do that"),
	STATUS(2, "NOENT", "no such file or directory"),
	STATUS(5, "IO", "the server could not read or write its disk"),
	STATUS(6, "NXIO", "no such device"),
	STATUS(13, "ACCES", "access denied"),
	STATUS(17, "EXIST", "it is there already"),
	STATUS(18, "XDEV", "on another file system"),
	STATUS(19, "NODEV", "no such device"),
	STATUS(20, "NOTDIR", "not a directory"),
	STATUS(21, "ISDIR", "it is a directory"),
	STATUS(22, "INVAL", "the server calls this an invalid argument"),
	STATUS(27, "FBIG", "the file would be too large"),
	STATUS(28, "NOSPC", "no room left on the server"),
	STATUS(30, "ROFS", "the export is read-only"),
	STATUS(31, "MLINK", "too many hard links"),
	STATUS(63, "NAMETOOLONG", "the name is too long"),
	STATUS(66, "NOTEMPTY", "the directory is not empty"),
	STATUS(69, "DQUOT", "the quota is used up"),
	STATUS(70, "STALE", "it was removed meanwhile"),
	STATUS(71, "REMOTE", "too many levels of remote"),
	STATUS(10001, "BADHANDLE", "the server does not know its own handle"),
	STATUS(10002, "NOT_SYNC", "somebody else changed it"),
	STATUS(10003, "BAD_COOKIE", "the listing can not go on"),
	STATUS(10004, "NOTSUPP", "the server does not have this"),
	STATUS(10005, "TOOSMALL", "the buffer is too small"),
	STATUS(10006, "SERVERFAULT", "a fault of the server"),
	STATUS(10007, "BADTYPE", "the server has no such type of file"),
	STATUS(10008, "JUKEBOX", "the server asks to come back later"),
};

const char *nfsc_status_name(uint32_t status)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].status == status)
			return names[i].nfs;
	return "an unknown status";
}

const char *nfsc_mount_status_name(uint32_t status)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].status == status)
			return names[i].mount;
	return "an unknown status";
}

const char *nfsc_status_words(uint32_t status)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].status == status)
			return names[i].words;
	return "the server sent a status that RFC 1813 does not have";
}
