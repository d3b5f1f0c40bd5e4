/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sec= of exports, asked of the whole server: which calls are served with
 * which flavor, and as whom they run.
 *
 * claim_flavor.h has the flavors of Kerberos.
 */
#include <stdio.h>

#include "lib/stats.h"
#include "mountd/mountd.h"
#include "tests/server/claim_flavor.h"
#include "tests/server/nfs_ops.h"
#include "tests/unit/runner.h"
#include "wire/nlm.h"

#define DENIED	(CALLER_DENIED + RPC_AUTH_TOOWEAK)
#define OWNER	1000
#define RULE	"127.0.0.1(insecure,rw,no_root_squash,"

enum { E_KRB, E_SYS, E_BOTH, E_NONE, E_TLS, NEXPORTS };

static const char *const paths[NEXPORTS] = {
	"/krb", "/sys", "/both", "/none", "/tls",
};
static const char exports_text[] =
	"/krb " RULE "sec=krb5p:krb5i:krb5)\n"
	"/sys 127.0.0.1(insecure,rw,no_root_squash)\n"
	"/both " RULE "sec=krb5,rw,sec=sys,ro,root_squash)\n"
	"/none " RULE "sec=none)\n"
	"/tls " RULE "sec=sys:krb5,xprtsec=tls)\n";

static const struct rpc_flavor *flavors[6];
static struct doors d;
static struct caller c;
static struct nfs3_fh tops[NEXPORTS];

static const struct caller_cred by_none = { .none = true };
static const struct caller_cred by_sys = { .uid = 0 };
static const struct caller_cred by_krb5 = { .flavor = RPC_AUTH_KRB5 };
static const struct caller_cred by_krb5i = { .flavor = RPC_AUTH_KRB5I };
static const struct caller_cred by_krb5p = { .flavor = RPC_AUTH_KRB5P };

static void setup(void)
{
	struct harness_config hc = { .exports = exports_text, .krb5 = true,
				     .flavors = flavors,
				     .protection = RPC_TLS };

	flavors[0] = rpc_flavors[0];
	flavors[1] = rpc_flavors[1];
	flavors[2] = &claim_krb5;
	flavors[3] = &claim_krb5i;
	flavors[4] = &claim_krb5p;
	doors_open(&d, &hc);
	for (unsigned e = 0; e < NEXPORTS; e++)
		harness_root(&d.srv, paths[e], &tops[e]);
	caller_open(&c, &d, DOOR_TCP, false);
}

static void teardown(void)
{
	caller_close(&c);
	doors_close(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* A call whose arguments are one handle. */
static uint32_t ask(uint32_t proc, const struct nfs3_fh *fh,
		    const struct caller_cred *cred)
{
	nfs_begin(&c, proc, cred);
	nfs_put_fh(&c, fh);
	return nfs_status(&c);
}

/* CREATE, MKDIR or SYMLINK of @name; its status. */
static uint32_t make(uint32_t proc, const struct nfs3_fh *dir,
		     const char *name, const struct caller_cred *cred)
{
	nfs_begin(&c, proc, cred);
	nfs_put_name(&c, dir, name);
	if (proc == NFSPROC3_CREATE)
		xdr_put_u32(&c.out, GUARDED);
	nfs_put_attr(&c, 0755, -1, -1);
	if (proc == NFSPROC3_SYMLINK)
		xdr_put_opaque(&c.out, "file", 4);
	return nfs_status(&c);
}

static struct nfs3_fh made(uint32_t proc, const struct nfs3_fh *dir,
			   const char *name)
{
	struct nfs3_fh fh;

	ck_assert_uint_eq(make(proc, dir, name, &by_krb5), NFS3_OK);
	ck_assert(nfs_take_fh(&c, &fh));
	return fh;
}

static void change_mode(const struct nfs3_fh *fh, int mode,
			const struct caller_cred *cred)
{
	nfs_begin(&c, NFSPROC3_SETATTR, cred);
	nfs_put_fh(&c, fh);
	nfs_put_attr(&c, mode, -1, -1);
	xdr_put_u32(&c.out, 0);			/* no guard */
	ck_assert_uint_eq(nfs_status(&c), NFS3_OK);
}

/* The owner of a file that @cred makes. */
static uint32_t owner_by(const struct caller_cred *cred, unsigned e,
			 const char *name)
{
	struct nfs3_fh fh;

	ck_assert_uint_eq(make(NFSPROC3_CREATE, &tops[e], name, cred),
			  NFS3_OK);
	ck_assert(nfs_take_fh(&c, &fh));
	ck_assert_uint_eq(ask(NFSPROC3_GETATTR, &fh, cred), NFS3_OK);
	xdr_get_fixed(&c.in, 12);	/* type, mode, links */
	return xdr_get_u32(&c.in);
}

TEST(no_procedure_takes_a_flavor_that_the_rule_does_not_name)
{
	static const struct caller_cred *const weak[] = { &by_none, &by_sys };
	uint64_t count = stats_sum_by_name("rpc_too_weak");
	struct nfs_cell cell;

	cell.dir = made(NFSPROC3_MKDIR, &tops[E_KRB], "d");
	cell.file = made(NFSPROC3_CREATE, &cell.dir, "file");
	cell.link = made(NFSPROC3_SYMLINK, &cell.dir, "link");
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < NFS_OPS; k++) {
			nfs_begin(&c, nfs_ops[k].proc, weak[i]);
			nfs_put_op(&c, &nfs_ops[k], &cell);
			ck_assert_msg(nfs_status(&c) == DENIED, "%s",
				      nfs_ops[k].name);
		}
	ck_assert_uint_eq(stats_sum_by_name("rpc_too_weak"),
			  count + 2 * NFS_OPS);
	/* And nothing came of it. */
	ck_assert_uint_eq(make(NFSPROC3_CREATE, &cell.dir, "new", &by_krb5p),
			  NFS3_OK);
	ck_assert_uint_eq(make(NFSPROC3_MKDIR, &cell.dir, "newdir", &by_krb5i),
			  NFS3_OK);
}

/* RFC 2623 section 2.3.2. */
TEST(a_root_answers_what_a_mount_takes_to_every_flavor_and_nothing_else)
{
	struct nfs3_fh sub = made(NFSPROC3_MKDIR, &tops[E_KRB], "sub");

	ck_assert_uint_eq(ask(NFSPROC3_GETATTR, &tops[E_KRB], &by_none), 0);
	ck_assert_uint_eq(ask(NFSPROC3_GETATTR, &tops[E_KRB], &by_sys), 0);
	ck_assert_uint_eq(ask(NFSPROC3_FSINFO, &tops[E_KRB], &by_none), 0);
	ck_assert_uint_eq(ask(NFSPROC3_FSINFO, &tops[E_KRB], &by_sys), 0);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &tops[E_KRB], &by_sys), DENIED);
	ck_assert_uint_eq(ask(NFSPROC3_PATHCONF, &tops[E_KRB], &by_sys),
			  DENIED);
	ck_assert_uint_eq(ask(NFSPROC3_READLINK, &tops[E_KRB], &by_sys),
			  DENIED);
	ck_assert_uint_eq(ask(NFSPROC3_GETATTR, &sub, &by_sys), DENIED);
	ck_assert_uint_eq(ask(NFSPROC3_FSINFO, &sub, &by_none), DENIED);
	ck_assert_uint_eq(ask(NFSPROC3_GETATTR, &sub, &by_krb5), 0);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &tops[E_KRB], &by_krb5i), 0);
}

TEST(a_client_that_mounted_with_sys_may_not_go_on_as_another_flavor)
{
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &tops[E_SYS], &by_sys), 0);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &tops[E_SYS], &by_krb5p),
			  DENIED);
	change_mode(&tops[E_SYS], 0777, &by_sys);
	/* It claims nothing, and is the anonymous user. */
	ck_assert_uint_eq(owner_by(&by_none, E_SYS, "f"), 65534);
	ck_assert_uint_eq(owner_by(&by_sys, E_SYS, "g"), 0);
}

TEST(each_flavor_has_its_rights_and_its_squash)
{
	const struct caller_cred owner = { .flavor = RPC_AUTH_KRB5,
					   .uid = OWNER };
	const struct caller_cred unknown = { .flavor = RPC_AUTH_KRB5,
		.uid = UINT32_MAX, .gid = UINT32_MAX };

	ck_assert_uint_eq(owner_by(&by_krb5, E_BOTH, "machine"), 0);
	change_mode(&tops[E_BOTH], 0777, &by_krb5);
	ck_assert_uint_eq(owner_by(&owner, E_BOTH, "user"), OWNER);
	/* A name of an unknown user. */
	ck_assert_uint_eq(owner_by(&unknown, E_BOTH, "foreign"), 65534);
	ck_assert_uint_eq(make(NFSPROC3_CREATE, &tops[E_BOTH], "x", &by_sys),
			  NFS3ERR_ROFS);
	ck_assert_uint_eq(make(NFSPROC3_CREATE, &tops[E_BOTH], "x",
			       &by_krb5p), DENIED);
	/* All callers of /none are the anonymous user. */
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &tops[E_NONE], &by_none), 0);
	ck_assert_uint_eq(make(NFSPROC3_CREATE, &tops[E_NONE], "x", &by_sys),
			  NFS3ERR_ACCES);
	/* The machine's root is squashed where the rule says so. */
	harness_publish(&d.srv, "/both 127.0.0.1(insecure,rw,sec=krb5)\n");
	ck_assert_uint_eq(owner_by(&by_krb5, E_BOTH, "squashed"), 65534);
}

TEST(a_reload_changes_the_flavors_of_mounted_clients)
{
	static const char krb5[] = "/sys " RULE "sec=krb5)\n";
	static const char sys[] = "/sys " RULE "sec=sys)\n";

	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &tops[E_SYS], &by_sys), 0);
	harness_publish(&d.srv, krb5);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &tops[E_SYS], &by_sys), DENIED);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &tops[E_SYS], &by_krb5), 0);
	harness_publish(&d.srv, sys);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &tops[E_SYS], &by_krb5),
			  DENIED);
	ck_assert_uint_eq(ask(NFSPROC3_FSSTAT, &tops[E_SYS], &by_sys), 0);
}

/* A handle says which export it is of, and can't be made to say another. */
TEST(a_handle_of_one_export_is_not_served_by_the_rule_of_another)
{
	nfs_begin(&c, NFSPROC3_RENAME, &by_sys);
	nfs_put_name(&c, &tops[E_SYS], "a");
	nfs_put_name(&c, &tops[E_KRB], "b");
	ck_assert_uint_eq(nfs_status(&c), NFS3ERR_XDEV);
	nfs_begin(&c, NFSPROC3_RENAME, &by_sys);
	nfs_put_name(&c, &tops[E_KRB], "a");
	nfs_put_name(&c, &tops[E_SYS], "b");
	ck_assert_uint_eq(nfs_status(&c), DENIED);
	nfs_begin(&c, NFSPROC3_LINK, &by_sys);
	nfs_put_fh(&c, &tops[E_KRB]);
	nfs_put_name(&c, &tops[E_SYS], "b");
	ck_assert_uint_eq(nfs_status(&c), DENIED);
}

/* A CREATE that was denied, sent again with a flavor that the rule takes: the
 * reply cache has no entry of the first. */
TEST(a_denied_call_runs_when_it_comes_with_the_right_flavor)
{
	ck_assert_uint_eq(make(NFSPROC3_CREATE, &tops[E_KRB], "f", &by_sys),
			  DENIED);
	c.xid--;
	ck_assert_uint_eq(make(NFSPROC3_CREATE, &tops[E_KRB], "f", &by_sys),
			  DENIED);
	c.xid--;
	ck_assert_uint_eq(make(NFSPROC3_CREATE, &tops[E_KRB], "f", &by_krb5),
			  NFS3_OK);
	/* Nor does its reply go to a caller with another flavor. */
	c.xid--;
	ck_assert_uint_eq(make(NFSPROC3_CREATE, &tops[E_KRB], "f", &by_sys),
			  DENIED);
}

TEST(nfsacl_takes_the_flavors_of_the_rule)
{
	const struct caller_cred *const creds[] = { &by_sys, &by_none,
						    &by_krb5 };

	for (unsigned i = 0; i < 6; i++) {
		bool sets = i % 2;

		caller_begin(&c, NFSACL_PROGRAM, NFSACL_VERSION,
			     sets ? NFSACLPROC3_SETACL : NFSACLPROC3_GETACL,
			     creds[i / 2]);
		nfs_put_fh(&c, &tops[E_KRB]);
		xdr_put_u32(&c.out, sets ? 0 : 0xf);
		/* Two empty lists. */
		for (unsigned k = 0; sets && k < 4; k++)
			xdr_put_u32(&c.out, 0);
		ck_assert_uint_eq(caller_send(&c), i < 4 ? DENIED :
				  RPC_SUCCESS);
	}
}

/* GETQUOTA or GETACTIVEQUOTA: the server has no procedure that sets a quota. */
static uint32_t quota(uint32_t vers, bool active, const char *path,
		      const struct caller_cred *cred)
{
	caller_begin(&c, 100011, vers, active ? 2 : 1, cred);
	xdr_put_opaque(&c.out, path, (uint32_t)strlen(path));
	if (vers == 2)
		xdr_put_u32(&c.out, 0);		/* of a user */
	xdr_put_u32(&c.out, 0);
	return caller_send(&c);
}

TEST(rquota_takes_the_flavors_of_the_rule)
{
	for (unsigned i = 0; i < 4; i++) {
		uint32_t v = 1 + i / 2;
		bool on = i % 2;

		ck_assert_uint_eq(quota(v, on, "/krb", &by_sys), DENIED);
		ck_assert_uint_eq(quota(v, on, "/krb", &by_none), DENIED);
		ck_assert_uint_eq(quota(v, on, "/krb", &by_krb5i),
				  RPC_SUCCESS);
		ck_assert_uint_eq(quota(v, on, "/sys", &by_sys), RPC_SUCCESS);
	}
}

/* NLM_TEST of version 4; its status. */
static uint32_t test_lock(const struct nfs3_fh *fh, bool exclusive,
			  const struct caller_cred *cred)
{
	caller_begin(&c, NLM_PROGRAM, 4, 1, cred);
	xdr_put_opaque(&c.out, "1", 1);		/* cookie */
	xdr_put_bool(&c.out, exclusive);
	xdr_put_opaque(&c.out, "host", 4);
	nfs_put_fh(&c, fh);
	xdr_put_opaque(&c.out, "1", 1);		/* owner */
	xdr_put_u32(&c.out, 1);			/* process */
	xdr_put_u64(&c.out, 0);
	xdr_put_u64(&c.out, 1);
	ck_assert_uint_eq(caller_send(&c), RPC_SUCCESS);
	xdr_get_opaque(&c.in, 16);
	return xdr_get_u32(&c.in);
}

/* As knfsd: clients lock with AUTH_SYS whatever they mounted with. */
TEST(locks_are_taken_with_sys_beside_kerberos_by_who_may_read)
{
	const struct caller_cred other = { .uid = 2000, .gid = 2000 };
	struct nfs3_fh fh = made(NFSPROC3_CREATE, &tops[E_KRB], "file");

	change_mode(&fh, 0600, &by_krb5);
	ck_assert_uint_eq(test_lock(&fh, false, &by_sys), NLM4_GRANTED);
	ck_assert_uint_ne(test_lock(&fh, false, &other), NLM4_GRANTED);
}

/* A user who may write with Kerberos sends the locks for that with AUTH_SYS. */
TEST(an_exclusive_lock_takes_a_flavor_of_the_rule_that_may_write)
{
	struct nfs3_fh fh = made(NFSPROC3_CREATE, &tops[E_BOTH], "file");

	ck_assert_uint_eq(test_lock(&fh, true, &by_sys), NLM4_GRANTED);
	ck_assert_uint_eq(test_lock(&fh, true, &by_krb5), NLM4_GRANTED);
	harness_publish(&d.srv, "/both " RULE "ro,sec=krb5:sys)\n");
	ck_assert_uint_eq(test_lock(&fh, true, &by_sys), NLM4_ROFS);
	ck_assert_uint_eq(test_lock(&fh, false, &by_sys), NLM4_GRANTED);
}

/* The flavors that MNT of @path lists to @cred, as a string. */
static const char *listed(const char *path, const struct caller_cred *cred)
{
	static char text[128];
	uint32_t n;

	caller_begin(&c, MOUNT_PROGRAM, 3, 1, cred);
	xdr_put_opaque(&c.out, path, (uint32_t)strlen(path));
	ck_assert_uint_eq(caller_send(&c), RPC_SUCCESS);
	n = xdr_get_u32(&c.in);
	if (n != 0) {
		snprintf(text, sizeof(text), "error %u", n);
		return text;
	}
	xdr_get_opaque(&c.in, NFS3_FHSIZE);
	*text = '\0';
	for (n = xdr_get_u32(&c.in); n > 0; n--)
		sprintf(text + strlen(text), "%u ", xdr_get_u32(&c.in));
	ck_assert(xdr_ok(&c.in));
	return text;
}

TEST(mnt_lists_the_flavors_of_the_rule_in_its_order_to_every_flavor)
{
	static const struct caller_cred *const all[] = {
		&by_none, &by_sys, &by_krb5, &by_krb5i, &by_krb5p,
	};

	for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
		ck_assert_str_eq(listed("/krb", all[i]),
				 "390005 390004 390003 ");
		ck_assert_str_eq(listed("/sys", all[i]), "1 ");
		ck_assert_str_eq(listed("/both", all[i]), "390003 1 ");
		ck_assert_str_eq(listed("/none", all[i]), "0 ");
	}
}

/* Such a caller is the anonymous user. */
TEST(mnt_in_clear_leads_nowhere_that_the_anonymous_user_may_not_go)
{
	struct nfs3_fh dir = made(NFSPROC3_MKDIR, &tops[E_KRB], "open");

	made(NFSPROC3_MKDIR, &dir, "sub");
	ck_assert_str_eq(listed("/krb/open/sub", &by_sys),
			 "390005 390004 390003 ");
	change_mode(&dir, 0700, &by_krb5);
	ck_assert_str_eq(listed("/krb/open/sub", &by_sys), "error 13");
	ck_assert_str_eq(listed("/krb/open/sub", &by_krb5),
			 "390005 390004 390003 ");
}

TEST_LOOP(a_flavor_is_asked_for_over_each_transport, 0, NDOORS)
{
	static struct caller other;
	const struct caller_cred *const creds[] = { &by_sys, &by_krb5 };

	caller_open(&other, &d, (enum door)_i, false);
	for (unsigned i = 0; i < 2; i++) {
		caller_begin(&other, NFS3_PROGRAM, NFS3_VERSION,
			     NFSPROC3_FSSTAT, creds[i]);
		nfs_put_fh(&other, &tops[E_KRB]);
		ck_assert_uint_eq(caller_send(&other), i ? RPC_SUCCESS :
				  DENIED);
	}
	caller_close(&other);
}

/* RDMA has no TLS, and these connections of TCP are in clear. */
TEST_LOOP(an_export_that_demands_tls_takes_no_call_in_clear, 0, 2 * NDOORS)
{
	const struct caller_cred *cred = _i % 2 ? &by_krb5 : &by_sys;
	static struct caller other;

	caller_open(&other, &d, (enum door)(_i / 2), false);
	caller_begin(&other, NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_GETATTR,
		     cred);
	nfs_put_fh(&other, &tops[E_TLS]);
	ck_assert_uint_eq(caller_send(&other), DENIED);
	caller_begin(&other, NFSACL_PROGRAM, NFSACL_VERSION, NFSACLPROC3_GETACL,
		     cred);
	nfs_put_fh(&other, &tops[E_TLS]);
	xdr_put_u32(&other.out, 0xf);
	ck_assert_uint_eq(caller_send(&other), DENIED);
	ck_assert_uint_eq(stats_sum_by_name("export_unprotected"), 2);
	caller_close(&other);
}
