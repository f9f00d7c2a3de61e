/* SPDX-License-Identifier: MIT
 * arena.c - see arena.h. */
#include "run/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"

enum { ARENA_CHUNK = 8192, ARENA_ALIGN = 16 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    _Alignas(ARENA_ALIGN) unsigned char bytes[];
};

void arena_release(struct arena *a)
{
    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;
        mem_free(a->chunks);
        a->chunks = next;
    }
    a->failed = false;
}

static struct arena_chunk *add_chunk(struct arena *a, size_t bytes)
{
    size_t size = bytes > ARENA_CHUNK ? bytes : ARENA_CHUNK;
    struct arena_chunk *c = mem_new(1, sizeof *c + size);
    if (!c) return NULL;
    c->size = size;
    if (a->chunks && bytes > ARENA_CHUNK) { /* a big one does not end the chunk in use */
        c->next = a->chunks->next;
        a->chunks->next = c;
    } else {
        c->next = a->chunks;
        a->chunks = c;
    }
    return c;
}

void *arena_new(struct arena *a, size_t n, size_t size)
{
    struct arena_chunk *c = a->chunks;
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 4) goto fail;
    bytes = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (!c || bytes > c->size - c->used) c = add_chunk(a, bytes);
    if (!c) goto fail;
    void *p = c->bytes + c->used;
    c->used += bytes;
    return p;
fail:
    a->failed = true;
    return NULL;
}

const char *arena_str_n(struct arena *a, const char *s, size_t n)
{
    char *copy = s ? arena_new(a, n + 1, 1) : NULL;
    if (copy) memcpy(copy, s, n);
    return copy;
}

const char *arena_str(struct arena *a, const char *s)
{
    return s ? arena_str_n(a, s, strlen(s)) : NULL;
}

const char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    char *text = n < 0 ? NULL : arena_new(a, (size_t)n + 1, 1);
    if (text) vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

void *arena_grow(struct arena *a, void *old, size_t n, size_t size)
{
    if (n & (n - 1) || n == 1) { /* capacities are 2, 4, 8, ...: full only at a power of two above one */
        return old;
    }
    size_t cap = n ? n * 2 : 2;
    void *grown = arena_new(a, cap, size);
    if (grown && n) memcpy(grown, old, n * size);
    return grown;
}
