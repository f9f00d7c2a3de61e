/* SPDX-License-Identifier: MIT
 * mem.h - the one gate through which tare allocates, so that tests can fail the n-th allocation and
 * count what is still held. Not for the recording path, which never allocates. */
#ifndef CORE_MEM_H
#define CORE_MEM_H

#include <stddef.h>

/* Zeroed memory for n items of `size` bytes, or NULL. n * size may not overflow. n == 0 gives a block. */
void *mem_new(size_t n, size_t size);

/* Grow or shrink to n items; new bytes are not zeroed. On failure NULL, and `p` is still valid. */
void *mem_resize(void *p, size_t n, size_t size);

char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);
void mem_free(void *p);
void mem_free_libc(void *p); /* what libc or a library allocated: scandir's, jansson's */

/* Tests: let `n` allocations succeed, then fail every one after; negative: never fail. */
void mem_fail_after(long n);
long mem_live_blocks(void);

#endif
