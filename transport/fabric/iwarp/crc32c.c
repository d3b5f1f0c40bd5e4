/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crc32c - the CRC of MPA, by instructions where there are any.
 *
 * A bit-reflected register: bit 31 is x^0.  The crc32 instruction has a
 * latency of three cycles but starts every cycle, so three parts of the data
 * are taken through it side by side and their CRCs joined at the end.
 */
#include "transport/fabric/iwarp/crc32c.h"

#include <pthread.h>
#include <string.h>

#include <endian.h>

#define POLY	0x82f63b78u	/* 0x1edc6f41, reflected */

static uint32_t table[8][256];
static bool fast;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* @v times x. */
static uint32_t times_x(uint32_t v)
{
	return v >> 1 ^ (v & 1 ? POLY : 0);
}

static void make_tables(void)
{
	for (unsigned i = 0; i < 256; i++) {
		uint32_t v = i;

		for (unsigned bit = 0; bit < 8; bit++)
			v = times_x(v);
		table[0][i] = v;
	}
	for (unsigned i = 0; i < 256; i++)
		for (unsigned k = 1; k < 8; k++)
			table[k][i] = table[k - 1][i] >> 8 ^
				      table[0][table[k - 1][i] & 0xff];
}

static uint32_t by_table(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t v;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&v, p, 8);
		v = le64toh(v) ^ crc;
		crc = 0;
		for (unsigned k = 0; k < 8; k++)
			crc ^= table[7 - k][v >> 8 * k & 0xff];
	}
	while (len-- > 0)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
	return crc;
}

#ifdef __x86_64__

#include <immintrin.h>

#define FAST __attribute__((target("sse4.2,pclmul")))

/* How long the three parts are; the multipliers that shift a CRC by one and
 * by two of them. */
static struct part {
	size_t	 len;
	uint64_t one, two;
} parts[] = { { .len = 2048 }, { .len = 448 }, { .len = 64 } };

/*
 * Multiplying two reflected values leaves one factor of x, and the crc32
 * instruction that reduces the product adds x^32.
 */
static uint64_t multiplier(size_t bytes)
{
	uint32_t v = 0x80000000u;

	for (size_t i = 0; i < 8 * bytes - 33; i++)
		v = times_x(v);
	return v;
}

static void make_parts(void)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		parts[i].one = multiplier(parts[i].len);
		parts[i].two = multiplier(2 * parts[i].len);
	}
}

FAST static uint64_t load(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

FAST static uint64_t shift(uint64_t crc, uint64_t by)
{
	__m128i v = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
					 _mm_cvtsi64_si128((long long)by), 0);

	return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(v));
}

FAST static uint64_t three_parts(uint64_t a, const uint8_t *p,
				 const struct part *part)
{
	uint64_t b = 0, c = 0;

	for (size_t i = 0; i < part->len; i += 8) {
		a = _mm_crc32_u64(a, load(p + i));
		b = _mm_crc32_u64(b, load(p + part->len + i));
		c = _mm_crc32_u64(c, load(p + 2 * part->len + i));
	}
	return shift(a, part->two) ^ shift(b, part->one) ^ c;
}

FAST static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t v = crc;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t n = 3 * parts[i].len;

		for (; len >= n; len -= n, p += n)
			v = three_parts(v, p, &parts[i]);
	}
	for (; len >= 8; len -= 8, p += 8)
		v = _mm_crc32_u64(v, load(p));
	while (len-- > 0)
		v = _mm_crc32_u8((uint32_t)v, *p++);
	return (uint32_t)v;
}

static void make(void)
{
	make_tables();
	make_parts();
	fast = __builtin_cpu_supports("sse4.2") &&
	       __builtin_cpu_supports("pclmul");
}

#else

static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t len)
{
	return by_table(crc, p, len);
}

static void make(void)
{
	make_tables();
}

#endif

uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len)
{
	pthread_once(&once, make);
	return ~by_table(~crc, data, len);
}

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	pthread_once(&once, make);
	return ~(fast ? by_instruction(~crc, data, len)
		      : by_table(~crc, data, len));
}

bool crc32c_is_fast(void)
{
	pthread_once(&once, make);
	return fast;
}
