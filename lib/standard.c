/* SPDX-License-Identifier: BSD-2-Clause */
/* standard - the standard descriptors of a program that can lack some. */
#include "lib/standard.h"

#include <fcntl.h>
#include <unistd.h>

void standard_open(void)
{
	static const int modes[] = { O_WRONLY, O_RDONLY, O_RDWR };

	/* The lowest free number is that of the file that is opened next. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) < 0)
			return;
}
