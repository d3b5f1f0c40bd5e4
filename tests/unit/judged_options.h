/* SPDX-License-Identifier: BSD-2-Clause */
/* judged_options - lines of exports whose options nfs-utils is asked about. */
#pragma once

/* The text behind the paths of further exports, for HOST alone. */
#define HOST	"10.9.9.9"
static const char *const options[] = {
	HOST, HOST "()", HOST "(rw)", HOST "(rw,ro)", "-rw " HOST,
	"-rw " HOST "(ro)", "-ro,insecure " HOST "(rw,secure)",
	HOST "(insecure,all_squash,no_root_squash)",
	HOST "(no_root_squash,root_squash,all_squash,no_all_squash)",
	HOST "(anonuid=7,anongid=8)", "-anonuid=7 " HOST "(anongid=-2)",
	HOST "(anonuid=-2,async,wdelay,subtree_check,crossmnt,nohide)",
	HOST "(sec=sys)", HOST "(sec=unix,rw)", HOST "(rw,sec=krb5:sys)",
	HOST "(sec=krb5,rw,sec=sys,ro)", HOST "(sec=sys,ro,sec=krb5,rw)",
	HOST "(sec=sys,sec=krb5,rw,insecure,no_root_squash)",
	HOST "(rw,sec=sys,sec=krb5,ro,all_squash)",
	HOST "(sec=krb5,rw,sec=sys)", HOST "(sec=krb5,all_squash,sec=sys:none)",
	HOST "(sec=sys,ro,sec=krb5,rw,sec=sys,insecure)",
	HOST "(sec=sys,rw,sec=krb5i,ro,sec=krb5p:sys,no_root_squash)",
	"-sec=sys,ro " HOST "(rw)", "-sec=sys,rw " HOST "(ro)",
	"-sec=sys,rw " HOST "(sec=sys,ro)", "-sec=krb5 " HOST "(sec=sys)",
	"-sec=krb5,rw " HOST "(sec=sys,insecure)", HOST "(sec=krb5)",
	HOST "(sec=krb5p:krb5i:krb5:sys,rw)", HOST "(sec=krb5i:krb5p,ro)",
	HOST "(sec=none)", HOST "(sec=sys,all_squash,sec=krb5:krb5p,rw)",
	HOST "(sec=krb5,rw,all_squash,sec=krb5p,ro,no_all_squash)",
	HOST "(sec=krb5p,rw,sec=krb5:krb5p,insecure,no_root_squash)",
	HOST "(sec=null:unix,rw,sec=krb5i)", "-sec=krb5,rw " HOST "(sec=krb5)",
	"-sec=krb5:krb5p,rw " HOST "(sec=krb5p,insecure)", HOST "(rw,)",
	HOST "(nordirplus,no_acl,pnfs,security_label,insecure_locks,rw)",
};

/* The same, since nfs-utils 2.6.3: without TLS the server here must let in
 * exactly the same clients. */
static const char *const transports[] = {
	HOST "(rw)", HOST "(xprtsec=none)", HOST "(xprtsec=tls)",
	HOST "(xprtsec=mtls)", HOST "(xprtsec=tls:mtls)",
	HOST "(xprtsec=mtls:none)", HOST "(xprtsec=none:tls:mtls)",
	HOST "(xprtsec=tls,xprtsec=none)", HOST "(xprtsec=none,xprtsec=tls)",
	"-xprtsec=none " HOST "(xprtsec=tls)", "-xprtsec=tls " HOST "(rw)",
	"-xprtsec=tls " HOST "(xprtsec=none)", HOST "(xprtsec=mtls,sec=sys)",
};
