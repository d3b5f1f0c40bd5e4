/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cp_verify - compares files there and here.
 *
 * A hash (BLAKE2b) of a source is made while it is copied, and one of the copy
 * when that is read back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"
#include "tools/nfs/cp.h"

enum { PIECE = 64 << 10 };

static bool hash_piece(struct copy_end *end, const uint8_t *mem, size_t len)
{
	struct cp_hash *h = container_of(end, struct cp_hash, end);

	crypto_generichash_update(&h->state, mem, len);
	h->bytes += len;
	return true;
}

void hash_begin(struct cp_hash *h, struct copy_end end)
{
	h->end = end;
	h->end.take = hash_piece;
	h->bytes = 0;
	crypto_generichash_init(&h->state, NULL, 0, crypto_generichash_BYTES);
}

bool hash_is_same(struct cp_hash *a, struct cp_hash *b)
{
	uint8_t x[crypto_generichash_BYTES], y[crypto_generichash_BYTES];

	crypto_generichash_final(&a->state, x, sizeof(x));
	crypto_generichash_final(&b->state, y, sizeof(y));
	return a->bytes == b->bytes && memcmp(x, y, sizeof(x)) == 0;
}

/* The next bytes of a local file.  Bytes, 0 at the end, or -errno. */
static ssize_t read_here(int fd, uint8_t *mem, size_t len, uint64_t at)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = pread(fd, mem + have, len - have,
				  (off_t)(at + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

int hash_here(struct tool *t, struct cp_hash *h, int fd, const char *name)
{
	uint8_t *mem = malloc(PIECE);
	ssize_t n = mem ? 1 : -ENOMEM;

	session_leave(t->s);
	hash_begin(h, (struct copy_end){ .fd = fd, .name = name });
	/* So that it comes from the disk, not from memory.  If the flush fails,
	 * the bytes can still be read from a cache, here or in the disk.
	 * EINVAL: nothing to flush. */
	if (n > 0 && fdatasync(fd) < 0 && errno != EINVAL)
		n = -errno;
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	while (n > 0) {
		n = read_here(fd, mem, PIECE, h->bytes);
		if (n > 0)
			hash_piece(&h->end, mem, (size_t)n);
	}
	free(mem);
	session_enter(t->s);
	return n < 0 ? tool_complain_here(name, (int)n) : TOOL_OK;
}

int hash_there(struct tool *t, const struct tool_object *obj, uint64_t from,
	       struct cp_hash *h)
{
	struct tool_object read = *obj;

	hash_begin(h, (struct copy_end){ .fd = -1, .name = obj->name,
					 .from = from });
	return copy_get(t, &read, &h->end);
}

int cp_compare(struct tool *t, const struct tool_object *there, int fd,
	       bool *same)
{
	struct cp_hash here, read;
	int err = hash_here(t, &here, fd, there->name);

	if (err == TOOL_OK)
		err = hash_there(t, there, 0, &read);
	*same = err == TOOL_OK && hash_is_same(&here, &read);
	return err;
}

/* ---- the beginning of a copy that was cut short */

struct beginning {
	struct copy_end end;
	int	 fd;		/* of the source */
	uint64_t same;		/* bytes */
	uint8_t *mem;
};

static bool compare_piece(struct copy_end *end, const uint8_t *mem, size_t len)
{
	struct beginning *b = container_of(end, struct beginning, end);

	for (size_t i = 0; i < len; i += PIECE) {
		size_t n = MIN(len - i, (size_t)PIECE);

		if (read_here(b->fd, b->mem, n, b->same) != (ssize_t)n ||
		    memcmp(b->mem, mem + i, n) != 0)
			return false;
		b->same += n;
	}
	return true;
}

int cp_same_beginning(struct tool *t, const struct tool_object *part, int fd,
		      uint64_t *same)
{
	struct beginning b = { .end = { .fd = -1, .name = part->name,
					.take = compare_piece },
			       .fd = fd, .mem = malloc(PIECE) };
	struct tool_object read = *part;
	int err = b.mem ? copy_get(t, &read, &b.end) : TOOL_OK;

	*same = b.same;
	free(b.mem);
	return err;
}
