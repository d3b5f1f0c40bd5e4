/* SPDX-License-Identifier: BSD-2-Clause */
/* listen_hint - tells an administrator why a port can't be had. */
#include "daemon/serve/serve.h"

#include <errno.h>
#include <stdio.h>

bool listen_kernel_has_port(int err, unsigned port)
{
	FILE *f = err == -EADDRINUSE ? fopen("/proc/fs/nfsd/portlist", "re") :
				       NULL;
	unsigned its;
	bool has = false;

	if (!f)
		return false;
	/* A line for each listener, as "tcp 2049". */
	while (!has && fscanf(f, "%*s %u", &its) == 1)
		has = its == port;
	fclose(f);
	return has;
}

const char *listen_hint(int err, unsigned port)
{
	switch (err) {
	case -EADDRINUSE:
		if (listen_kernel_has_port(err, port))
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
