/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of gannetctl(8). */
#ifndef GANNET_CLIENT_CTL_H
#define GANNET_CLIENT_CTL_H

#include <jansson.h>

/* The exit status for wrong usage. */
#define USAGE		2
/* The version of the protocol, daemon/control.h. */
#define SPOKEN		1

/* main.c */
/* Prints a message; returns EXIT_FAILURE. */
int complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A connection to the socket @path; -1 after a message. */
int ctl_connect(const char *path);

/* capture.c */
/* The command capture, of the server at @path.  Returns the exit status. */
int ctl_capture(const char *path, int argc, char **argv);

#endif
