/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/parcel.h"
#include "vfs/helper.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* A message with room for one descriptor. */
struct parcel {
	struct iovec  iov;
	struct msghdr head;
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
};

static void parcel_init(struct parcel *p, struct helper_message *m)
{
	memset(p, 0, sizeof(*p));
	p->iov = (struct iovec){ m, sizeof(*m) };
	p->head.msg_iov = &p->iov;
	p->head.msg_iovlen = 1;
	p->head.msg_control = p->room;
	/* The room for two: the second one would not be closed. */
	p->head.msg_controllen = CMSG_LEN(sizeof(int));
}

bool parcel_send(int sock, struct helper_message *m, int fd)
{
	struct cmsghdr *c;
	struct parcel p;

	parcel_init(&p, m);
	if (fd < 0) {
		p.head.msg_control = NULL;
		p.head.msg_controllen = 0;
	} else {
		c = CMSG_FIRSTHDR(&p.head);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &p.head, MSG_NOSIGNAL) == sizeof(*m);
}

ssize_t parcel_recv(int sock, struct helper_message *m, int *fd)
{
	struct cmsghdr *c;
	struct parcel p;
	ssize_t n;

	parcel_init(&p, m);
	do {
		n = recvmsg(sock, &p.head, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	*fd = -1;
	c = n > 0 ? CMSG_FIRSTHDR(&p.head) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return n;
}
