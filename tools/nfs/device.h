/* SPDX-License-Identifier: BSD-2-Clause */
/* device - data of sysfs about an RDMA device. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

enum { DEVICE_TEXT = 64 };

struct device {
	unsigned port;			/* of the device, from 1 */
	unsigned index;			/* of the GID in its table */
	/* As sysfs has them; empty: it does not.  The type is RoCE's. */
	char	 state[DEVICE_TEXT], layer[DEVICE_TEXT];
	char	 gid[DEVICE_TEXT], type[DEVICE_TEXT];
	char	 netdev[DEVICE_TEXT], mtu[DEVICE_TEXT];
};

/*
 * Reads about the device @name below @sys, which is "/sys/class": of its ports
 * and their GIDs the one of the address @local.  On RoCE that is the address
 * itself, a GID of RoCE v2 before one of v1.  Where no GID is like that, as on
 * InfiniBand and iWARP, it is the first one of the first port.  False: no such
 * device.
 */
bool device_read(const char *sys, const char *name,
		 const struct sockaddr_storage *local, struct device *out);
