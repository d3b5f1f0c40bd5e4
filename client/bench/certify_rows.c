/* SPDX-License-Identifier: BSD-2-Clause */
/* certify_rows - the list.  Its rows are numbered as those of the list are. */
#include "client/bench/certify.h"

static const char cluster[] =
	"it is about objects of Kubernetes: ask the cluster";
static const char mounted[] =
	"it is about mounts, and the kernel, of the worker nodes";
static const char managed[] =
	"it is about the storage's management interface, not NFS";
static const char unpublished[] =
	"the published list leaves this row out";

const struct certify_row certify_rows[] = {
	{ "N-001", "the pods of the CSI driver run", NULL, cluster },
	{ "N-002", "the CSI driver is registered", NULL, cluster },
	{ "N-003", "a storage class uses it", NULL, cluster },
	{ "N-004", "a volume claim is bound within 10 minutes", NULL, cluster },
	{ "N-005", "the volume is as large as was asked for", NULL, cluster },
	{ "N-006", "what is written is read back the same",
	  certify_write_read, NULL },
	{ "N-007", "claims at the same time get different volumes", NULL,
	  cluster },
	{ "N-008", "a volume grows when its claim does", NULL, cluster },
	{ "N-009", "pjdfstest runs, with its results", NULL,
	  "it needs pjdfstest, on a mount" },
	{ "N-010", "a lock of one client keeps another one out",
	  certify_locks, NULL },
	{ "N-011", "what one client wrote another reads within a second",
	  certify_seen, NULL },
	{ "N-012", "another client sees a file's new size and time",
	  certify_attributes, NULL },
	{ "N-013a", "a directory of 1,000,000 files is listed",
	  certify_many_files, NULL },
	{ "N-013b", "a directory of 500,000 directories is listed",
	  certify_many_dirs, NULL },
	{ "N-014", "mounts have the expected version of NFS", NULL,
	  "it is about mounts of the worker nodes; of the server's versions "
	  "this client speaks 3" },
	{ "N-015", "mounts have the expected nconnect", NULL, mounted },
	{ "N-016", "NFS goes over the expected transport", certify_transport,
	  NULL },
	{ "N-017", "readahead is as expected", NULL, mounted },
	{ "N-018", "the kernel modules of the vendor are there", NULL,
	  mounted },
	{ "N-019", "the management interface takes the credential", NULL,
	  managed },
	{ "N-020", "it makes a volume", NULL, managed },
	{ "N-021", "it reports the tenant's use and quota", NULL, managed },
	{ "N-022", "it lists quotas", NULL, managed },
	{ "N-023", "it reports the use of one quota", NULL, managed },
	{ "N-024", "a quota shows what was written", NULL, managed },
	{ "N-025", "a tenant sees no quotas of others", NULL, managed },
	{ "N-026 to N-033", "quotas are enforced, access is controlled", NULL,
	  unpublished },
};
const unsigned certify_nrows = ARRAY_SIZE(certify_rows);
