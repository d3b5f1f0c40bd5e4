/* SPDX-License-Identifier: BSD-2-Clause */
/* listen_hint - tells an administrator why a port can't be had. */
#include "daemon/listen_hint.h"

#include <errno.h>
#include <stdio.h>

static bool kernel_serves(void)
{
	FILE *f = fopen("/proc/fs/nfsd/threads", "re");
	unsigned threads = 0;

	if (!f)
		return false;
	if (fscanf(f, "%u", &threads) != 1)
		threads = 0;
	fclose(f);
	return threads > 0;
}

bool listen_kernel_has_port(int err)
{
	return err == -EADDRINUSE && kernel_serves();
}

const char *listen_hint(int err)
{
	switch (err) {
	case -EADDRINUSE:
		if (listen_kernel_has_port(err))
			return " (the kernel's NFS server runs; it is stopped "
			       "by 'systemctl disable --now nfs-server')";
		return " (another NFS server? see --port and --rdma-port)";
	case -EACCES:
		return " (ports below 1024 are for root; see --port)";
	case -EADDRNOTAVAIL:
		return " (this machine has no such address; see --bind)";
	default:
		return "";
	}
}
