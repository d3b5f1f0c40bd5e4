/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by fuzz_server and its mutator. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { KIND_RAW, KIND_MESSAGE, KIND_ANSWER, KINDS };

/* Of an item: a kind and the length of the bytes behind it. */
enum { ITEM_HEAD = 3, ITEMS_MAX = 24 };

/* The bytes of a handle that is to become the root's, of its length. */
enum { HANDLE = 0xab, HANDLE_LEN = 28 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max,
			       unsigned seed);
/* libFuzzer's; not there where a corpus is only replayed. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t len, size_t max)
	__attribute__((weak));
