/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sec= where one export meets another, or a file system below it: a flavor that
 * a rule refuses reaches no file by a way around.
 *
 * Needs a mount namespace.  claim_flavor.h has the flavors of Kerberos.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "lib/log.h"
#include "tests/server/claim_flavor.h"
#include "tests/server/mount_base.h"
#include "tests/server/nfs_ops.h"
#include "tests/unit/pause.h"
#include "tests/unit/runner.h"
#include "vfs/posix/posix.h"

#define DENIED	(CALLER_DENIED + RPC_AUTH_TOOWEAK)
#define RULE	"127.0.0.1(insecure,rw,no_root_squash"

static const struct rpc_flavor *flavors[4];
static char state[64], text[512];
static struct doors d;
static struct caller c;
static struct nfs3_fh top;

static const struct caller_cred by_none = { .none = true };
static const struct caller_cred by_sys = { .uid = 0 };
static const struct caller_cred by_krb5 = { .flavor = RPC_AUTH_KRB5 };

static void setup(void)
{
	char cmd[256];

	flavors[0] = rpc_flavors[0];
	flavors[1] = rpc_flavors[1];
	flavors[2] = &claim_krb5;
	snprintf(state, sizeof(state), "%s/state", space_base);
	snprintf(cmd, sizeof(cmd), "rm -rf %s/e %s; mkdir -p %s %s/e/child",
		 space_base, state, state, space_base);
	ck_assert_int_eq(system(cmd), 0);
	ck_assert_int_eq(mkdir(space_at("covered"), 0755), 0);
	ck_assert_int_eq(mount("none", space_at("child"), "tmpfs", 0, NULL),
			 0);
	ck_assert_int_eq(mkdir(space_at("child/sub"), 0755), 0);
}

static void teardown(void)
{
	caller_close(&c);
	doors_close(&d);
	umount2(space_at("child"), MNT_DETACH);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* The exports file: /e with @options, and its child unless that is NULL. */
static void write_exports(const char *options, const char *of_child)
{
	int n = snprintf(text, sizeof(text), "posix:%s/e " RULE "%s)\n",
			 space_base, options);

	if (of_child)
		snprintf(text + n, sizeof(text) - (size_t)n,
			 "posix:%s " RULE "%s)\n", space_at("child"), of_child);
}

static void begin(const char *options, const char *of_child)
{
	struct harness_config hc = {
		.backend = &posix_vfs_ops, .state_dir = state, .exports = text,
		.flavors = flavors, .krb5 = true,
	};
	char path[64];

	write_exports(options, of_child);
	doors_open(&d, &hc);
	snprintf(path, sizeof(path), "%s/e", space_base);
	harness_root(&d.srv, path, &top);
	caller_open(&c, &d, DOOR_TCP, false);
}

static void reload(const char *options, const char *of_child)
{
	write_exports(options, of_child);
	harness_publish(&d.srv, text);
}

/* LOOKUP, again while the file system is being opened. */
static uint32_t look_up(const struct nfs3_fh *dir, const char *name,
			const struct caller_cred *cred, struct nfs3_fh *fh)
{
	uint32_t status;

	EVENTUALLY((nfs_begin(&c, NFSPROC3_LOOKUP, cred),
		    nfs_put_name(&c, dir, name),
		    status = nfs_status(&c)) != NFS3ERR_JUKEBOX);
	if (status == NFS3_OK)
		*fh = harness_get_fh(&c.in);
	return status;
}

static uint32_t ask(uint32_t proc, const struct nfs3_fh *fh,
		    const struct caller_cred *cred)
{
	uint32_t status;

	EVENTUALLY((nfs_begin(&c, proc, cred), nfs_put_fh(&c, fh),
		    status = nfs_status(&c)) != NFS3ERR_JUKEBOX);
	return status;
}

TEST(a_file_system_below_has_the_flavors_of_its_export)
{
	struct nfs3_fh child, sub, up;

	begin(",crossmnt,sec=krb5", NULL);
	ck_assert_uint_eq(look_up(&top, "child", &by_sys, &child), DENIED);
	ck_assert_uint_eq(look_up(&top, "child", &by_krb5, &child), NFS3_OK);
	ck_assert_uint_eq(look_up(&child, "sub", &by_krb5, &sub), NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &child, &by_sys), DENIED);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &child, &by_none), DENIED);
	ck_assert_uint_eq(ask(NFSPROC3_GETATTR, &sub, &by_sys), DENIED);
	ck_assert_uint_eq(look_up(&child, "..", &by_sys, &up), DENIED);
	ck_assert_uint_eq(look_up(&child, "..", &by_krb5, &up), NFS3_OK);
	/* Its root is mounted as an export's is. */
	ck_assert_uint_eq(ask(NFSPROC3_GETATTR, &child, &by_sys), NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSINFO, &child, &by_none), NFS3_OK);
}

/* As in the kernel's server: neither the mounted file system nor the directory
 * that it covers. */
TEST(a_name_does_not_lead_into_an_export_that_takes_another_flavor)
{
	struct nfs3_fh child;

	begin(",crossmnt", ",sec=krb5");
	ck_assert_uint_eq(look_up(&top, "child", &by_krb5, &child), DENIED);
	reload(",crossmnt", ",sec=krb5");
	ck_assert_uint_eq(look_up(&top, "child", &by_sys, &child),
			  NFS3ERR_ACCES);
	ck_assert_uint_eq(look_up(&top, "child", &by_none, &child),
			  NFS3ERR_ACCES);
	reload(",crossmnt,sec=sys:krb5", ",sec=krb5");
	ck_assert_uint_eq(look_up(&top, "child", &by_krb5, &child), NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &child, &by_sys), DENIED);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &child, &by_krb5), NFS3_OK);
}

TEST(a_name_leads_from_kerberos_into_an_export_of_sys_only_with_sys)
{
	struct nfs3_fh child;

	begin(",crossmnt,sec=krb5", "");
	ck_assert_uint_eq(look_up(&top, "child", &by_krb5, &child),
			  NFS3ERR_ACCES);
	ck_assert_uint_eq(look_up(&top, "child", &by_sys, &child), DENIED);
	reload(",crossmnt,sec=krb5:sys", "");
	ck_assert_uint_eq(look_up(&top, "child", &by_sys, &child), NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &child, &by_krb5), DENIED);
}

/* Names that don't lead into it at all show every client the covered
 * directory. */
TEST(a_name_shows_what_an_export_that_is_not_entered_covers)
{
	struct nfs3_fh covered;

	begin("", ",sec=krb5");
	ck_assert_uint_eq(look_up(&top, "child", &by_sys, &covered), NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &covered, &by_sys), NFS3_OK);
	reload("", ",sec=krb5,nohide");
	ck_assert_uint_eq(look_up(&top, "child", &by_sys, &covered),
			  NFS3ERR_ACCES);
}

TEST(a_listing_has_no_handle_of_an_export_that_takes_another_flavor)
{
	struct nfs3_fh child, covered;
	uint32_t status;

	begin(",crossmnt,sec=sys:krb5", ",sec=krb5");
	ck_assert_uint_eq(look_up(&top, "child", &by_krb5, &child), NFS3_OK);
	ck_assert_uint_eq(look_up(&top, "covered", &by_sys, &covered), NFS3_OK);
	EVENTUALLY((nfs_begin(&c, NFSPROC3_READDIRPLUS, &by_sys),
		    nfs_put_fh(&c, &top),
		    xdr_put_u64(&c.out, 0),		/* cookie */
		    xdr_put_u64(&c.out, 0),		/* verifier */
		    xdr_put_u32(&c.out, 4096),
		    xdr_put_u32(&c.out, 16384),
		    status = nfs_status(&c)) != NFS3ERR_JUKEBOX);
	ck_assert_uint_eq(status, NFS3_OK);
	ck_assert_ptr_null(memmem(c.reply, sizeof(c.reply), child.data,
				  child.len));
	ck_assert_ptr_nonnull(memmem(c.reply, sizeof(c.reply), covered.data,
				     covered.len));
}

/* A handle of the file system below an export, by a rule that comes later. */
TEST(a_reload_takes_the_flavor_from_what_is_below_as_well)
{
	struct nfs3_fh child;

	begin(",crossmnt", NULL);
	ck_assert_uint_eq(look_up(&top, "child", &by_sys, &child), NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &child, &by_sys), NFS3_OK);
	reload(",crossmnt,sec=krb5", NULL);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &child, &by_sys), DENIED);
	reload(",crossmnt,sec=sys", NULL);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &child, &by_sys), NFS3_OK);
}

/* An entry that comes later takes over the file systems below. */
TEST(a_new_entry_takes_over_file_systems_below_the_one_that_it_is_for)
{
	struct nfs3_fh child, deep, by_entry;

	ck_assert_int_eq(mount("none", space_at("child/sub"), "tmpfs", 0,
			       NULL), 0);
	begin(",crossmnt,sec=sys:krb5", NULL);
	ck_assert_uint_eq(look_up(&top, "child", &by_sys, &child), NFS3_OK);
	ck_assert_uint_eq(look_up(&child, "sub", &by_sys, &deep), NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &deep, &by_sys), NFS3_OK);
	reload(",crossmnt,sec=sys:krb5", ",crossmnt,sec=krb5");
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &child, &by_sys),
			  NFS3ERR_STALE);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &deep, &by_sys),
			  NFS3ERR_STALE);
	ck_assert_uint_eq(look_up(&top, "child", &by_krb5, &child), NFS3_OK);
	ck_assert_uint_eq(look_up(&child, "sub", &by_krb5, &by_entry),
			  NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &by_entry, &by_krb5), NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &by_entry, &by_sys), DENIED);
	/* Without the entry it is as it was. */
	reload(",crossmnt,sec=sys:krb5", NULL);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &deep, &by_sys), NFS3_OK);
}

/* A separate entry, even for a directory of the same file system. */
TEST(the_handle_of_a_directory_is_of_the_export_that_it_was_found_in)
{
	struct nfs3_fh by_parent, by_entry;
	char path[64];

	begin(",sec=krb5", NULL);
	snprintf(text + strlen(text), sizeof(text) - strlen(text),
		 "posix:%s " RULE ")\n", space_at("covered"));
	harness_publish(&d.srv, text);
	snprintf(path, sizeof(path), "%s", space_at("covered"));
	harness_root(&d.srv, path, &by_entry);
	ck_assert_uint_eq(look_up(&top, "covered", &by_krb5, &by_parent),
			  NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &by_entry, &by_sys), NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &by_parent, &by_sys), DENIED);
	ck_assert_uint_eq(look_up(&by_entry, "..", &by_sys, &by_parent),
			  NFS3_OK);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &by_parent, &by_sys), NFS3_OK);
	/* It is the export's root still, and not the directory above. */
	ck_assert_uint_ne(look_up(&by_parent, "covered", &by_sys, &by_entry),
			  NFS3_OK);
}

int main(void)
{
	log_threshold = LOG_LEVEL_ERR;
	return space_run_tests();
}
