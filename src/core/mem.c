/* SPDX-License-Identifier: MIT
 * mem.c - see mem.h. The counters are relaxed atomics: exact once threads are quiet. */
#include "core/mem.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static atomic_long live_blocks;
static atomic_long allowed = -1; /* allocations left before failing; negative: no limit */

static int may_allocate(void)
{
    long left = atomic_load_explicit(&allowed, memory_order_relaxed);
    if (left < 0) return 1;
    if (left == 0) {
        errno = ENOMEM; /* as malloc does */
        return 0;
    }
    atomic_store_explicit(&allowed, left - 1, memory_order_relaxed);
    return 1;
}

void *mem_new(size_t n, size_t size)
{
    if (!may_allocate()) return NULL;
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (p) atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    return p;
}

void *mem_resize(void *p, size_t n, size_t size)
{
    if (!p) return mem_new(n, size);
    if (size && n > SIZE_MAX / size) return NULL;
    if (!may_allocate()) return NULL;
    return realloc(p, n && size ? n * size : 1);
}

char *mem_strndup(const char *s, size_t n)
{
    char *copy = mem_new(n + 1, 1);
    if (copy) memcpy(copy, s, n);
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

void mem_free(void *p)
{
    if (!p) return;
    atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
    free(p);
}

void mem_free_libc(void *p)
{
    free(p);
}

void mem_fail_after(long n)
{
    atomic_store_explicit(&allowed, n, memory_order_relaxed);
}

long mem_live_blocks(void)
{
    return atomic_load_explicit(&live_blocks, memory_order_relaxed);
}
