/* SPDX-License-Identifier: BSD-2-Clause */
/* status - names of the statuses of NFS and MOUNT (RFC 1813 2.6, 5.1.5). */
#include "client/nfs/nfs.h"

#include <stddef.h>

#include "lib/util.h"

/* MOUNT takes its statuses from NFS. */
#define STATUS(number, name) { number, "NFS3ERR_" name, "MNT3ERR_" name }

static const struct {
	uint32_t    status;
	const char *nfs, *mount;
} names[] = {
	{ 0, "NFS3_OK", "MNT3_OK" },
	STATUS(1, "PERM"), STATUS(2, "NOENT"), STATUS(5, "IO"),
	STATUS(6, "NXIO"), STATUS(13, "ACCES"), STATUS(17, "EXIST"),
	STATUS(18, "XDEV"), STATUS(19, "NODEV"), STATUS(20, "NOTDIR"),
	STATUS(21, "ISDIR"), STATUS(22, "INVAL"), STATUS(27, "FBIG"),
	STATUS(28, "NOSPC"), STATUS(30, "ROFS"), STATUS(31, "MLINK"),
	STATUS(63, "NAMETOOLONG"), STATUS(66, "NOTEMPTY"),
	STATUS(69, "DQUOT"), STATUS(70, "STALE"), STATUS(71, "REMOTE"),
	STATUS(10001, "BADHANDLE"), STATUS(10002, "NOT_SYNC"),
	STATUS(10003, "BAD_COOKIE"), STATUS(10004, "NOTSUPP"),
	STATUS(10005, "TOOSMALL"), STATUS(10006, "SERVERFAULT"),
	STATUS(10007, "BADTYPE"), STATUS(10008, "JUKEBOX"),
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
