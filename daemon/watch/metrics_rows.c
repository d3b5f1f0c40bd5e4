/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics_rows - the counters that form one family with labels. */
#include "daemon/watch/metrics_text.h"

#include <string.h>

static const struct metrics_row errors[] = {
	{ "nfs3err_", { NULL } },
	{ NULL, { NULL } }
};

static const struct metrics_row received[] = {
	{ "tcp_bytes_in", { "tcp" } },
	{ "udp_bytes_in", { "udp" } },
	{ "iwarp_bytes_in", { "iwarp" } },
	{ NULL, { NULL } }
};

static const struct metrics_row sent[] = {
	{ "tcp_bytes_out", { "tcp" } },
	{ "udp_bytes_out", { "udp" } },
	{ "iwarp_bytes_out", { "iwarp" } },
	{ NULL, { NULL } }
};

static const struct metrics_row moved[] = {
	{ "rdma_read_bytes", { "read" } },
	{ "rdma_write_bytes", { "write" } },
	{ "rdma_reply_bytes", { "reply" } },
	{ "rdma_exposed_bytes", { "exposed" } },
	{ NULL, { NULL } }
};

static const struct metrics_row accepted[] = {
	{ "tcp_accepted", { "tcp" } },
	{ "rdma_accepts", { "rdma" } },
	{ NULL, { NULL } }
};

static const struct metrics_row refused[] = {
	{ "tcp_refused", { "tcp", "too many" } },
	{ "tcp_refused_peer", { "tcp", "too many of one peer" } },
	{ "tcp_accept_failed", { "tcp", "no resources" } },
	{ "rdma_refused_full", { "rdma", "too many" } },
	{ "rdma_refused_peer", { "rdma", "too many of one peer" } },
	{ "rdma_refused_memory", { "rdma", "no memory" } },
	{ "rdma_refused_depth", { "rdma", "no RDMA Reads" } },
	{ "rdma_refused_stopping", { "rdma", "stopping" } },
	{ "rdma_accept_failures", { "rdma", "no resources" } },
	{ NULL, { NULL } }
};

static const struct metrics_row grants[] = {
	{ "rdma_grants_grown", { "grown" } },
	{ "rdma_grants_shrunk", { "lowered" } },
	{ NULL, { NULL } }
};

static const struct metrics_row rdma_errors[] = {
	{ "rdma_errors", { "connection" } },
	{ "rdma_stalled", { "stalled" } },
	{ "rdma_read_failures", { "read" } },
	{ "rdma_overruns", { "credits overrun" } },
	{ "rdma_short_messages", { "short message" } },
	{ "rdma_bad_version", { "version" } },
	{ "rdma_bad_headers", { "header" } },
	{ "rdma_bad_chunks", { "chunks" } },
	{ "rdma_wide_lists", { "wide lists" } },
	{ "rdma_bad_xids", { "xids" } },
	{ "rdma_not_eligible", { "not eligible" } },
	{ "rdma_not_readable", { "not readable" } },
	{ "rdma_hopeless", { "hopeless" } },
	{ "rdma_no_calls", { "no call" } },
	{ "rdma_small_write_chunks", { "small Write chunk" } },
	{ "rdma_small_reply_chunks", { "small Reply chunk" } },
	{ "rdma_errors_sent", { "sent" } },
	{ "rdma_error_messages", { "received" } },
	{ NULL, { NULL } }
};

const struct metrics_row_family metrics_row_families[] = {
	{ "gannet_nfs_errors", NULL, "Replies of NFS and NFSACL by their "
	  "status, without those of NFS3_OK.", { "status" }, errors },
	{ "gannet_received_bytes", "bytes", "Bytes received from sockets.",
	  { "transport" }, received },
	{ "gannet_sent_bytes", "bytes", "Bytes sent to sockets.",
	  { "transport" }, sent },
	{ "gannet_rdma_bytes", "bytes", "Bytes moved by RDMA: read from "
	  "clients' chunks, written to Write and Reply chunks, or exposed for "
	  "clients to read.", { "operation" }, moved },
	{ "gannet_connections_accepted", NULL, "Connections accepted.",
	  { "transport" }, accepted },
	{ "gannet_connections_refused", NULL, "Connections refused.",
	  { "transport", "reason" }, refused },
	{ "gannet_rdma_grant_changes", NULL, "Changes of the credits that "
	  "RDMA connections are granted.", { "change" }, grants },
	{ "gannet_rdma_errors", NULL, "Errors of RPC-over-RDMA; one may count "
	  "as several kinds.", { "kind" }, rdma_errors },
	{ NULL, NULL, NULL, { NULL }, NULL }
};

bool metrics_row_has(const struct metrics_row *row, const char *counter)
{
	size_t len = strlen(row->counter);

	return row->counter[len - 1] == '_' ?
	       !strncmp(row->counter, counter, len) :
	       !strcmp(row->counter, counter);
}

bool metrics_rows_have(const char *counter)
{
	const struct metrics_row_family *f = metrics_row_families;

	for (; f->name; f++)
		for (const struct metrics_row *r = f->rows; r->counter; r++)
			if (metrics_row_has(r, counter))
				return true;
	return false;
}
