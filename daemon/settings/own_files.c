/* SPDX-License-Identifier: BSD-2-Clause */
/* own_files - the files that the settings name, and the defaults where they
 * name no file. */
#include "daemon/settings/settings.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/backends.h"

struct own_list {
	const char **v;
	size_t	n, room;
};

static void own_list_add(struct own_list *l, const char *path)
{
	if (!path)
		return;
	assert(l->n < l->room);
	l->v[l->n++] = path;
}

/* Standard error, if it is a file; then its name is in @path. */
static const char *log_file(char path[PATH_MAX])
{
	struct stat st;
	ssize_t len = fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode) ?
		      readlink("/proc/self/fd/2", path, PATH_MAX - 1) : -1;

	if (len < 0)
		return NULL;
	path[len] = '\0';
	return path;
}

bool options_has_krb5(const struct options *o)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/krb5.so", o->backend_dir) <
	       (int)sizeof(path) && access(path, F_OK) == 0;
}

/* The keytab, which can come later, or NULL without Kerberos. */
static const char *keytab_of(const struct options *o)
{
	if (o->krb5_keytab)
		return *o->krb5_keytab == '/' ? o->krb5_keytab : NULL;
	return options_has_krb5(o) ? SYSTEM_KEYTAB : NULL;
}

/* @late: as own_files_keep_too(), or NULL: as own_files_keep(). */
static int keep_files(const struct options *o, char **late)
{
	/* Fourteen of one path each, at most, and the list. */
	size_t room = 14 + o->exports_files->n;
	struct own_list l = { calloc(room, sizeof(*l.v)), 0, room };
	char log[PATH_MAX], drop_ins[PATH_MAX];
	const char *keytab = keytab_of(o);
	const char *config = o->config ? o->config : SYSTEM_CONFIG;
	size_t len = strlen(config);
	int err;

	if (!l.v)
		return -ENOMEM;
	own_list_add(&l, o->pid_file);
	own_list_add(&l, o->control);
	own_list_add(&l, *o->audit == '/' ? o->audit : NULL);
	own_list_add(&l, log_file(log));
	own_list_add(&l, config);
	if (len + sizeof(".d") <= sizeof(drop_ins)) {
		memcpy(drop_ins, config, len);
		memcpy(drop_ins + len, ".d", sizeof(".d"));
		own_list_add(&l, drop_ins);
	}
	own_list_add(&l, o->tls_cert);
	own_list_add(&l, o->tls_key);
	own_list_add(&l, o->tls_ca);
	own_list_add(&l, o->tls_crl);
	own_list_add(&l, keytab);
	own_list_add(&l, keytab || o->backends->n ? o->backend_dir : NULL);
	for (unsigned i = 0; i < o->exports_files->n; i++)
		own_list_add(&l, o->exports_files->v[i]);
	if (o->exports_files->n == 0 && o->exports->n == 0) {
		own_list_add(&l, SYSTEM_EXPORTS);
		own_list_add(&l, SYSTEM_EXPORTS ".d");
	}
	err = late ? posix_keep_out_too(l.v, l.n, late) :
		     posix_keep_out(l.v, l.n);
	free(l.v);
	return err;
}

int own_files_keep(const struct options *o)
{
	return keep_files(o, NULL);
}

int own_files_keep_too(const struct options *o, char **late)
{
	return keep_files(o, late);
}
