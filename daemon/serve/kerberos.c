/* SPDX-License-Identifier: BSD-2-Clause */
/* kerberos - RPCSEC_GSS by the module krb5. */
#include "daemon/serve/kerberos.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/crew.h"
#include "lib/log.h"
#include "vfs/backends.h"

/* Of keytabs: the library knows others. */
#define FILE_TYPE	"FILE:"

struct kerberos {
	const struct gss_mech *module;	/* stays loaded */
	struct gss_mech	 mech;		/* the server's copy of it */
	char		*keytab;	/* "FILE:/..." */
	struct rpc_gss	*gss;
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

/* Outlives the server, if it hangs. */
struct probe {
	struct crew_job	       job;
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

static uint64_t run_probe(struct crew_job *job)
{
	struct probe *p = container_of(job, struct probe, job);
	char why[GSS_WHY_MAX];

	warn_of_mode(p->keytab + strlen(FILE_TYPE));
	if (p->module->probe(p->keytab, why))
		log_info("Kerberos: serving with the keys in %s", p->keytab);
	else
		log_warn("%s: sec=krb5, krb5i and krb5p do not work until that "
			 "is mended", why);
	free(p);
	return CREW_GONE;
}

/* Logs the keytab's faults.  On a crew, since its disk, or the name service
 * that is asked for this machine's name, can hang, and other exports must
 * not wait for that. */
static void probe_keytab(const struct kerberos *k)
{
	size_t size = strlen(k->keytab) + 1;
	struct probe *p = calloc(1, sizeof(*p) + size);

	if (!p)
		return;
	p->module = k->module;
	memcpy(p->keytab, k->keytab, size);
	if (crew_job_init(&p->job, run_probe, "keytab") < 0)
		run_probe(&p->job);
	else
		crew_run(&p->job);
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
	probe_keytab(k);
	return rpc_gss_start(k->gss, *out);
}

void kerberos_end(struct kerberos *k, struct rpc_server *server)
{
	if (k)
		rpc_gss_stop(k->gss);
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
