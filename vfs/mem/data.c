/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of a file: pages in a radix tree that is as high as the
 * highest page needs.  A page that is missing is a hole.
 *
 * The node's lock guards it; readers only read.  Pages and inner nodes are
 * charged to the file system.
 */
#include "vfs/mem/mem.h"

#include <stdlib.h>
#include <string.h>

/* The power of two of the pages in a tree of @height. */
static unsigned span_bits(unsigned height)
{
	return height * MEM_FAN_BITS;
}

static bool covers(const struct mem_data *d, uint64_t index)
{
	return index >> span_bits(d->height) == 0;
}

static void *find_page(const struct mem_data *d, uint64_t index)
{
	void *p = d->root;

	if (!covers(d, index))
		return NULL;
	for (unsigned h = d->height; h > 0 && p; h--)
		p = ((void **)p)[index >> span_bits(h - 1) & (MEM_FAN - 1)];
	return p;
}

static void *inner_alloc(struct mem_fs *fs)
{
	void *p;

	if (mem_charge(fs, MEM_FAN * sizeof(void *)) < 0)
		return NULL;
	p = calloc(MEM_FAN, sizeof(void *));
	if (!p)
		mem_uncharge(fs, MEM_FAN * sizeof(void *));
	return p;
}

static void *page_alloc(struct mem_fs *fs)
{
	void *p;

	if (mem_charge(fs, MEM_PAGE) < 0)
		return NULL;
	p = malloc(MEM_PAGE);
	if (!p)
		mem_uncharge(fs, MEM_PAGE);
	return p;
}

static bool grow_tree(struct mem_fs *fs, struct mem_data *d, uint64_t index)
{
	while (!covers(d, index)) {
		if (d->root) {
			void **p = inner_alloc(fs);

			if (!p)
				return false;
			p[0] = d->root;
			d->root = p;
		}
		d->height++;
	}
	return true;
}

/* The page, made when it is missing; *@fresh: its bytes are not set. */
static uint8_t *find_or_make(struct mem_fs *fs, struct mem_data *d,
			     uint64_t index, bool *fresh)
{
	void **at = &d->root;

	*fresh = false;
	if (!grow_tree(fs, d, index))
		return NULL;
	for (unsigned h = d->height; h > 0; h--) {
		if (!*at && !(*at = inner_alloc(fs)))
			return NULL;
		at = (void **)*at +
		     (index >> span_bits(h - 1) & (MEM_FAN - 1));
	}
	if (!*at) {
		*at = page_alloc(fs);
		if (!*at)
			return NULL;
		d->npages++;
		*fresh = true;
	}
	return *at;
}

void mem_data_read(const struct mem_data *d, uint64_t off, uint8_t *to,
		   size_t len)
{
	while (len > 0) {
		uint32_t in = off & (MEM_PAGE - 1);
		size_t n = MIN(len, (size_t)(MEM_PAGE - in));
		const uint8_t *page = find_page(d, off >> MEM_PAGE_BITS);

		if (page)
			memcpy(to, page + in, n);
		else
			memset(to, 0, n);
		to += n;
		off += n;
		len -= n;
	}
}

size_t mem_data_write(struct mem_fs *fs, struct mem_data *d, uint64_t off,
		      const uint8_t *from, size_t len)
{
	size_t done = 0;

	while (done < len) {
		uint32_t in = off & (MEM_PAGE - 1);
		size_t n = MIN(len - done, (size_t)(MEM_PAGE - in));
		bool fresh;
		uint8_t *page = find_or_make(fs, d, off >> MEM_PAGE_BITS,
					     &fresh);

		if (!page)
			break;
		if (fresh) {
			memset(page, 0, in);
			memset(page + in + n, 0, MEM_PAGE - in - n);
		}
		memcpy(page + in, from + done, n);
		off += n;
		done += n;
	}
	return done;
}

/* Frees the pages from @first on below *@at; true when nothing is left. */
static bool prune(struct mem_fs *fs, struct mem_data *d, void **at,
		  unsigned height, uint64_t first)
{
	void **inner = *at;
	bool empty = true;

	if (!*at)
		return true;
	if (height == 0) {
		if (first > 0)
			return false;
		free(*at);
		*at = NULL;
		mem_uncharge(fs, MEM_PAGE);
		d->npages--;
		return true;
	}
	for (uint64_t i = 0; i < MEM_FAN; i++) {
		uint64_t base = i << span_bits(height - 1);

		if (base + ((uint64_t)1 << span_bits(height - 1)) <= first)
			empty = empty && !inner[i];
		else if (!prune(fs, d, &inner[i], height - 1,
				first > base ? first - base : 0))
			empty = false;
	}
	if (!empty)
		return false;
	free(inner);
	*at = NULL;
	mem_uncharge(fs, MEM_FAN * sizeof(void *));
	return true;
}

void mem_data_truncate(struct mem_fs *fs, struct mem_data *d, uint64_t size)
{
	uint32_t in = size & (MEM_PAGE - 1);
	uint8_t *page = in ? find_page(d, size >> MEM_PAGE_BITS) : NULL;

	/* Bytes past the end in the last page must read as zeros when the file
	 * grows again. */
	if (page)
		memset(page + in, 0, MEM_PAGE - in);
	if (prune(fs, d, &d->root, d->height,
		  (size + MEM_PAGE - 1) >> MEM_PAGE_BITS))
		d->height = 0;
}
