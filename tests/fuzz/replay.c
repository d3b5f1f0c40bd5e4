/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzzer's main() without libFuzzer: runs the inputs named on the command
 * line (files, or directories of them), or else the corpus in the source tree,
 * of which there has to be one: fuzz_x reads tests/fuzz/corpus/x.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INPUT_MAX	(4u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static unsigned replayed;

static void die(const char *path)
{
	perror(path);
	exit(1);
}

static void replay_file(const char *path)
{
	uint8_t *data = malloc(INPUT_MAX), *exact;
	FILE *f = fopen(path, "rb");
	size_t len;

	if (!f || !data)
		die(path);
	len = fread(data, 1, INPUT_MAX, f);
	fclose(f);
	/* As long as the input: a sanitizer finds a read behind its end. */
	exact = malloc(len ? len : 1);
	if (!exact)
		die(path);
	memcpy(exact, data, len);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	free(data);
	replayed++;
}

static void replay(const char *path)
{
	struct dirent *e;
	struct stat st;
	char name[4096];
	DIR *d;

	if (stat(path, &st) < 0)
		die(path);
	if (!S_ISDIR(st.st_mode)) {
		replay_file(path);
		return;
	}
	d = opendir(path);
	if (!d)
		die(path);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
		replay(name);
	}
	closedir(d);
}

int main(int argc, char **argv)
{
	const char *name = program_invocation_short_name;
	const char *srcdir = getenv("srcdir");
	char path[4096];

	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	if (argc == 1) {
		if (strncmp(name, "fuzz_", 5) == 0)
			name += 5;
		snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s",
			 srcdir ? srcdir : ".", name);
		replay(path);
	}
	printf("%u inputs\n", replayed);
	return replayed ? 0 : 1;
}
