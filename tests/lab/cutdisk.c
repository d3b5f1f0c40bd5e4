/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cutdisk DIR MKFS: a disk whose power can be cut, for a shell; see
 * tests/crash/disk.h.  MKFS makes the file system in "$1".
 *
 * Prints the name of the device, then takes orders, a line each on standard
 * input, and answers each by a line when it is done:
 *
 *   cut		no request is answered from here on
 *   fail		every request fails
 *   power SEED SECTOR	the device is gone; the answer names the new one, which
 *			has the flushed data, and of the rest some sectors of
 *			SECTOR bytes, chosen by SEED
 *   quit		it ends, and the disk with it
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/crash/disk.h"

static struct disk disk;

static const char *obey(const char *line)
{
	unsigned long long seed;
	unsigned sector;

	if (!strcmp(line, "cut\n")) {
		disk_cut(&disk);
		return "cut";
	}
	if (!strcmp(line, "fail\n")) {
		disk_fail(&disk);
		return "fails";
	}
	if (sscanf(line, "power %llu %u", &seed, &sector) == 2) {
		disk_detach(&disk);
		disk_power(&disk, seed, sector);
		disk_attach(&disk);
		fprintf(stderr, "# %llu sectors lost so far, %llu kept\n",
			(unsigned long long)disk.lost,
			(unsigned long long)disk.kept);
		return disk.device;
	}
	return "what?";
}

int main(int argc, char **argv)
{
	const char *missing = disk_missing();
	char line[100];

	if (argc != 3 || missing) {
		fprintf(stderr, "cutdisk DIR MKFS: %s\n",
			missing ? missing : "two arguments");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	disk_start(&disk, argv[1], argv[2]);
	puts(disk.device);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "quit\n"))
		puts(obey(line));
	disk_stop(&disk);
	puts("ended");
	return 0;
}
