/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exports files as users of the kernel's server have them: from its manual,
 * from distributions, storage appliances and tools that write such files.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exports/export_priv.h"
#include "lib/util.h"
#include "tests/unit/export_fixture.h"
#include "tests/unit/runner.h"

#define ASYNC "async: not done: what was answered as stable is on stable " \
	"storage all the same"
#define SUBTREE "subtree_check: not done: signed filehandles keep clients " \
	"inside the export, but a file that was moved out of it stays in " \
	"reach of those that had its handle"
#define S	"secure,root_squash\n"
#define I	"insecure,root_squash\n"

static const struct {
	const char *text;
	const char *effect;	/* NULL: refused */
	const char *told;	/* warnings, or the error */
} files[] = {
	/* The example of exports(5). */
	{ "# sample /etc/exports file\n"
	  "/               master(rw) trusty(rw,no_root_squash)\n"
	  "/projects       proj*.local.domain(rw)\n"
	  "/usr            *.local.domain(ro) @trusted(rw)\n"
	  "/home/joe       pc001(rw,all_squash,anonuid=150,anongid=100)\n"
	  "/pub            *(ro,insecure,all_squash)\n"
	  "/srv/www        -sync,rw server @trusted @external(ro)\n"
	  "/foo            2001:db8:9:e54::/64(rw) 192.0.2.0/24(rw)\n"
	  "/build          buildhost[0-9].local.domain(rw)\n",
	  "/ master rw," S
	  "/ trusty rw,secure\n"
	  "/projects proj*.local.domain rw," S
	  "/usr *.local.domain ro," S
	  "/usr @trusted rw," S
	  "/home/joe pc001 rw,secure,root_squash,all_squash\n"
	  "/pub * ro,insecure,root_squash,all_squash\n"
	  "/srv/www server rw," S
	  "/srv/www @trusted rw," S
	  "/srv/www @external ro," S
	  "/foo 2001:db8:9:e54::/64 rw," S
	  "/foo 192.0.2.0/24 rw," S
	  "/build buildhost[0-9].local.domain rw," S, "" },
	/* The file of Debian and Ubuntu, and its examples taken in. */
	{ "# /etc/exports: the access control list for filesystems which may "
	  "be exported\n#\t\tto NFS clients.  See exports(5).\n#\n"
	  "# Example for NFSv2 and NFSv3:\n# /srv/homes       "
	  "hostname1(rw,sync,no_subtree_check) "
	  "hostname2(ro,sync,no_subtree_check)\n#\n", "", "" },
	{ "/srv/homes       hostname1(rw,sync,no_subtree_check) "
	  "hostname2(ro,sync,no_subtree_check)\n",
	  "/srv/homes hostname1 rw," S "/srv/homes hostname2 ro," S, "" },
	{ "/srv/nfs4        gss/krb5i(rw,sync,fsid=0,crossmnt,"
	  "no_subtree_check)\n", NULL, "exports:1: client 'gss/krb5i' is not "
	  "supported: there is no Kerberos" },
	/* Wikis of distributions: the root of NFSv4 and the exports below. */
	{ "/srv/nfs        192.168.1.0/24(rw,fsid=root)\n"
	  "/srv/nfs/music  192.168.1.0/24(rw,sync)\n"
	  "/srv/nfs/public 192.168.1.0/24(ro,all_squash,insecure) "
	  "desktop(rw,sync,all_squash,anonuid=99,anongid=99) # map to "
	  "user/group - in this case nobody\n",
	  "/srv/nfs 192.168.1.0/24 rw," S
	  "/srv/nfs/music 192.168.1.0/24 rw," S
	  "/srv/nfs/public desktop rw,secure,root_squash,all_squash\n"
	  "/srv/nfs/public 192.168.1.0/24 ro,insecure,root_squash,"
	  "all_squash\n", "" },
	{ "/exports/data 192.168.0.3(rw,async)\n"
	  "/exports/obj *.example.com(rw,wdelay,root_squash)\n",
	  "/exports/data 192.168.0.3 rw," S
	  "/exports/obj *.example.com rw," S, "exports:1: " ASYNC },
	/* Appliances. */
	{ "/export/share 192.168.1.0/24(fsid=1,rw,subtree_check,insecure)\n"
	  "# NFSv4 - pseudo filesystem root\n"
	  "/export 192.168.1.0/24(ro,fsid=0,root_squash,no_subtree_check,"
	  "hide)\n",
	  "/export/share 192.168.1.0/24 rw," I
	  "/export 192.168.1.0/24 ro," S, "exports:1: " SUBTREE },
	{ "\"/mnt/tank/my data\"\\\n\t192.168.0.0/24(sec=sys,rw,anonuid=1000,"
	  "anongid=1000,no_subtree_check)\\\n\t10.0.0.7(sec=sys,rw,"
	  "no_root_squash,no_subtree_check)\n",
	  "/mnt/tank/my data 10.0.0.7 rw,secure\n"
	  "/mnt/tank/my data 192.168.0.0/24 rw," S, "" },
	{ "\"/mnt/user/data\" -fsid=100,async,no_subtree_check "
	  "*(rw,sec=sys,insecure,anongid=100,anonuid=99,all_squash)\n",
	  "/mnt/user/data * rw,insecure,root_squash,all_squash\n",
	  "exports:1: " ASYNC },
	{ "/volume1/nfs\t192.168.1.0/24(rw,async,no_wdelay,insecure,"
	  "all_squash,insecure_locks,sec=sys,anonuid=1025,anongid=100)\n",
	  "/volume1/nfs 192.168.1.0/24 rw,insecure,root_squash,all_squash\n",
	  "exports:1: " ASYNC },
	{ "\"/share/CACHEDEV1_DATA/Public\" *(rw,async,no_subtree_check,"
	  "insecure,no_root_squash,fsid=8f2c4e0d7d2d4b7ba8b55c9c0e2b9f11)\n"
	  "\"/share/NFSv=4\" *(no_subtree_check,no_root_squash,insecure,"
	  "fsid=0)\n",
	  "/share/CACHEDEV1_DATA/Public * rw,insecure\n"
	  "/share/NFSv=4 * ro,insecure\n", "exports:1: " ASYNC },
	/* Tools. */
	{ "# VAGRANT-BEGIN: 1000 0f3c\n\"/home/u/project\" 172.28.128.3(rw,"
	  "no_subtree_check,all_squash,anonuid=1000,anongid=1000,"
	  "fsid=3811567190)\n# VAGRANT-END: 1000 0f3c\n",
	  "/home/u/project 172.28.128.3 rw,secure,root_squash,all_squash\n",
	  "" },
	{ "/nfsshare *(rw,fsid=0,async,no_subtree_check,no_auth_nlm,insecure,"
	  "no_root_squash)\n", "/nfsshare * rw,insecure\n",
	  "exports:1: " ASYNC },
	{ "/home *(rw,no_subtree_check,fsid=10,no_root_squash)\n"
	  "/opt/pub *(ro,no_subtree_check,fsid=11)\n"
	  "/install *(rw,no_root_squash,sync,no_subtree_check)\n",
	  "/home * rw,secure\n/opt/pub * ro," S "/install * rw,secure\n", "" },
	{ "/srv/krb -sec=krb5p:krb5i:krb5:sys,rw *.example.org(ro) admin\n",
	  "/srv/krb admin rw," S "/srv/krb *.example.org rw," S,
	  "exports:1: ro: no effect, because sec= stands in the defaults of "
	  "the line; write sec=krb5p:krb5i:krb5:sys,ro"
	  "exports:1: sec=krb5p:krb5i:krb5:sys: there is no Kerberos, which "
	  "needs gannet-krb5 and a keytab: only callers with sys are served "
	  "(and 1 more)" },
	/* Mistakes that give more than was meant, and other systems' files. */
	{ "/data 192.168.1.7 (rw,sync)\n", NULL, "exports:1: a space stands "
	  "before '(rw,sync)': these options would be everyone's; write "
	  "CLIENT(rw,sync), or *(rw,sync) if you mean that" },
	{ "/data 192.168.1.7(rw, sync)\n", NULL, "exports:1: '192.168.1.7(rw,'"
	  " has a '(' without a ')'; there is no space between options" },
	{ "/data 192.168.1.*(rw)\n", NULL, "exports:1: client '192.168.1.*' "
	  "is not understood: addresses have no wildcards; write a network "
	  "such as 192.0.2.0/24" },
	{ "/pub =public\n", NULL, "exports:1: client '=public' is neither a "
	  "host name, an address, a network, a wildcard nor a netgroup" },
	{ "/data -network 192.168.1.0 -mask 255.255.255.0\n", NULL, NULL },
	{ "/data -maproot=root client\n", NULL, NULL },
	{ "/data -access=host1:host2\n", NULL, NULL },
	{ "/ok *(ro)\n/data *(rw,no_such)\n/later *(ro)\n", NULL, NULL },
};

TEST_CASE(.setup = table_begin, .teardown = table_end);

static void effect_of_set(const struct export_set *set, char *out, size_t size)
{
	char effect[128];
	size_t len = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < set->nexports; i++) {
		const struct export *e = set->exports[i];

		for (unsigned j = 0; j < e->nclients; j++) {
			effect_of(&e->clients[j], effect, sizeof(effect));
			len += (size_t)snprintf(out + len, size - len,
						"%s %s %s\n", e->path,
						e->clients[j].text, effect);
		}
	}
}

TEST_LOOP(files_of_the_kernels_server_can_be_used, 0, ARRAY_SIZE(files))
{
	char effect[2048], told[2048] = "";
	struct export_set *set = NULL;
	char *err = NULL;
	int ret = parse(files[_i].text, &set, &err);

	if (!files[_i].effect) {
		ck_assert_int_eq(ret, -EINVAL);
		ck_assert_ptr_null(set);
		if (files[_i].told)
			ck_assert_str_eq(err, files[_i].told);
		free(err);
		return;
	}
	if (ret < 0)
		ck_abort_msg("%s", err);
	effect_of_set(set, effect, sizeof(effect));
	export_set_notes(set, take_note, told);
	ck_assert_str_eq(effect, files[_i].effect);
	ck_assert_str_eq(told, files[_i].told);
	export_set_free(set);
}
