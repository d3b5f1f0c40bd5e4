/* SPDX-License-Identifier: BSD-2-Clause */
/* cp_here - local files and directories that are sent. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tools/nfs/cp.h"
#include "tools/nfs/say.h"

const char here_no_copy[] = "it is no file, directory or link";

void here_put(FILE *f, const struct here *h)
{
	if (h->up) {
		here_put(f, h->up);
		putc('/', f);
	}
	tool_put_name(f, h->name);
}

int here_complain(const struct here *h, int err, uint32_t status)
{
	fputs("gannet-nfs: ", say_stream());
	here_put(say_stream(), h);
	return tool_reason(err, status);
}

int here_fail(const struct here *h, int err)
{
	fputs("gannet-nfs: ", say_stream());
	here_put(say_stream(), h);
	return tool_reason_here(err);
}

int here_leave_out(const struct here *h, const char *why)
{
	fputs("gannet-nfs: ", say_stream());
	here_put(say_stream(), h);
	fprintf(say_stream(), ": left out: %s\n", why);
	return TOOL_FAILED;
}

const char *here_name(const char *from, char path[PATH_MAX])
{
	size_t len = strlen(from);
	const char *slash;

	if (len >= PATH_MAX)
		return NULL;
	memcpy(path, from, len + 1);
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	slash = strrchr(path, '/');
	slash = slash ? slash + 1 : path;
	return nfsc_name_is_good(slash, (uint32_t)strlen(slash)) ? slash : NULL;
}

uint64_t here_sum(const struct tool_options *o, int dir, const char *name,
		  unsigned depth)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, fd;
	uint64_t bytes = 0;
	struct dirent *e;
	struct stat st;
	DIR *d;

	st.st_mode = 0;
	if (fstatat(dir, name, &st, depth ? AT_SYMLINK_NOFOLLOW : 0) < 0 ||
	    !S_ISDIR(st.st_mode) || !o->recursive || depth > HERE_LEVELS_MAX)
		return S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	fd = openat(dir, name, depth ? flags | O_NOFOLLOW : flags);
	d = fd < 0 ? NULL : fdopendir(fd);
	while (d && (e = readdir(d)))
		if (nfsc_name_is_good(e->d_name, (uint32_t)strlen(e->d_name)) &&
		    !cp_is_excluded(o, e->d_name))
			bytes += here_sum(o, fd, e->d_name, depth + 1);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	return bytes;
}

