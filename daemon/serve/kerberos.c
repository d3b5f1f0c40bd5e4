/* SPDX-License-Identifier: BSD-2-Clause */
/* kerberos - RPCSEC_GSS by the module krb5. */
#include "daemon/serve/kerberos.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/errand.h"
#include "lib/log.h"
#include "lib/util.h"
#include "vfs/backends.h"

/* Of keytabs: the library knows others. */
#define FILE_TYPE	"FILE:"

struct kerberos {
	const struct gss_mech *module;	/* stays loaded */
	struct gss_mech	 mech;		/* the server's copy of it */
	char		*keytab;	/* "FILE:/..." */
	struct rpc_gss	*gss;
	struct probe	*probe;		/* NULL: none runs */
	const struct rpc_flavor *flavors[RPC_FLAVORS_MAX];
};

/* On a worker, which might act as a caller; the keytab is the server's. */
static void accept_as_server(void *arg, struct gss_accept *a)
{
	struct kerberos *k = arg;

	posix_act_as_server();
	k->module->accept(k->keytab, a);
}

/* Without a setting, serve Kerberos if both the module and the system's keytab
 * exist. */
static bool wants_kerberos(const struct options *o)
{
	if (o->krb5_keytab)
		return strcmp(o->krb5_keytab, "off") != 0;
	return options_has_krb5(o) && access(SYSTEM_KEYTAB, F_OK) == 0;
}

static int load_mechanism(const struct options *o, struct kerberos *k)
{
	const void *found = NULL;
	char *why = NULL;
	int err = module_load(o->backend_dir, "krb5", "gannet_mechanism",
			      &found, &why);

	k->module = found;
	if (err == 0 && k->module->version != GSS_MECH_VERSION)
		err = -EINVAL;
	if (err)
		log_err("krb5-keytab: can't load the module krb5, of the "
			"package gannet-krb5: %s", why ? why :
			"it is for another gannetd");
	free(why);
	return err;
}

static int start_flavor(struct kerberos *k)
{
	const struct rpc_gss_config config = { .mech = &k->mech, .arg = k };
	int err;

	k->mech = *k->module;
	k->mech.accept = accept_as_server;
	err = rpc_gss_create(&config, &k->gss);
	if (!err)
		rpc_flavors_with(rpc_gss_flavor(k->gss), k->flavors);
	return err;
}

int kerberos_load(const struct options *o, struct kerberos **out)
{
	struct kerberos *k;
	int err = -ENOMEM;

	*out = NULL;
	if (!wants_kerberos(o))
		return 0;
	k = calloc(1, sizeof(*k));
	if (!k || asprintf(&k->keytab, FILE_TYPE "%s", o->krb5_keytab ?
			   o->krb5_keytab : SYSTEM_KEYTAB) < 0)
		goto fail;
	err = load_mechanism(o, k);
	if (!err)
		err = start_flavor(k);
	if (err)
		goto fail;
	*out = k;
	return 0;

fail:
	kerberos_destroy(k);
	return err;
}

/* A look at the keytab, whose disk can hang.  So can the name service, which
 * libkrb5 asks for this machine's name.  Other exports must not wait for that,
 * and the server can end before. */
struct probe {
	struct errand	       errand;
	const struct gss_mech *module;
	char		       keytab[];
};

static void warn_of_mode(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && st.st_mode & (S_IROTH | S_IWOTH))
		log_warn("every user of this machine can %s the keytab %s, and "
			 "so be any user of Kerberos here: chmod o-rw",
			 st.st_mode & S_IROTH ? "read" : "change", path);
}

static int run_probe(struct errand *e)
{
	struct probe *p = container_of(e, struct probe, errand);
	char why[GSS_WHY_MAX];

	warn_of_mode(e->path);
	if (p->module->probe(p->keytab, why))
		log_info("Kerberos: serving with the keys in %s", p->keytab);
	else
		log_warn("%s: sec=krb5, krb5i and krb5p do not work until that "
			 "is mended", why);
	return 0;
}

static void drop_probe(struct errand *e)
{
	free(container_of(e, struct probe, errand));
}

/* Logs the keytab's faults, later if a thread can be had for that. */
static struct probe *probe_begin(const struct kerberos *k)
{
	size_t size = strlen(k->keytab) + 1;
	struct probe *p = calloc(1, sizeof(*p) + size);

	if (!p)
		return NULL;
	p->module = k->module;
	memcpy(p->keytab, k->keytab, size);
	p->errand = (struct errand){ .path = p->keytab + strlen(FILE_TYPE),
				     .run = run_probe, .drop = drop_probe };
	if (errand_begin(&p->errand) == 0)
		return p;
	run_probe(&p->errand);
	free(p);
	return NULL;
}

/* Waits, since exit() ends libkrb5 under a thread that is in it.  One that
 * hangs is left there.  Takes @p, which can be NULL. */
static void probe_end(struct probe *p)
{
	if (p && errand_await(&p->errand, errand_deadline()) != -ETIMEDOUT)
		free(p);
}

int kerberos_serve(struct kerberos *k, struct rpc_server_config *config,
		   struct rpc_server **out)
{
	int err;

	if (!k)
		return rpc_server_create(config, out);
	config->flavors = k->flavors;
	err = rpc_server_create(config, out);
	if (err)
		return err;
	k->probe = probe_begin(k);
	return rpc_gss_start(k->gss, *out);
}

void kerberos_end(struct kerberos *k, struct rpc_server *server)
{
	if (k) {
		rpc_gss_stop(k->gss);
		probe_end(k->probe);
		k->probe = NULL;
	}
	rpc_server_destroy(server);
}

void kerberos_destroy(struct kerberos *k)
{
	if (!k)
		return;
	rpc_gss_destroy(k->gss);
	free(k->keytab);
	free(k);
}
