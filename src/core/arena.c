/* SPDX-License-Identifier: MIT
 * arena.c - see arena.h. Chunks double, so that a small document stays small and a large model takes few. In
 * each, structs fill from the front and strings from the back, so that strings need no padding. */
#include "core/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20, ARENA_ALIGN = 8 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, end; /* what is free lies between: bytes[used .. end - 1] */
    size_t size;
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

/* A chunk with room for `bytes`. A large block gets one of its own, which does not end the chunk in use. */
static struct arena_chunk *add_chunk(struct arena *a, size_t bytes)
{
    bool alone = bytes > LARGEST_CHUNK / 4;
    size_t size = a->chunks ? a->chunks->size * 2 : FIRST_CHUNK;
    if (size > LARGEST_CHUNK) size = LARGEST_CHUNK;
    if (alone || size < bytes) size = bytes;
    struct arena_chunk *c = mem_new(1, sizeof *c + size);
    if (!c) return NULL;
    c->size = c->end = size;
    struct arena_chunk **at = alone && a->chunks ? &a->chunks->next : &a->chunks;
    c->next = *at;
    *at = c;
    return c;
}

/* The chunk to take `bytes` from, or NULL and a->failed. */
static struct arena_chunk *chunk_with(struct arena *a, size_t bytes)
{
    struct arena_chunk *c = a->chunks;
    if (!c || bytes > c->end - c->used) c = bytes > SIZE_MAX / 4 ? NULL : add_chunk(a, bytes);
    if (!c) a->failed = true;
    return c;
}

void *arena_new(struct arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 4) {
        a->failed = true;
        return NULL;
    }
    bytes = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    struct arena_chunk *c = chunk_with(a, bytes);
    if (!c) return NULL;
    void *p = c->bytes + c->used;
    c->used += bytes;
    return p;
}

/* Room for a text of n bytes and its NUL. */
static char *new_text(struct arena *a, size_t n)
{
    struct arena_chunk *c = chunk_with(a, n + 1);
    if (!c) return NULL;
    c->end -= n + 1;
    return (char *)c->bytes + c->end;
}

const char *arena_str_n(struct arena *a, const char *s, size_t n)
{
    char *copy = s ? new_text(a, n) : NULL;
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
    char *text = n < 0 ? NULL : new_text(a, (size_t)n);
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
