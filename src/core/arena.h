/* SPDX-License-Identifier: MIT
 * arena.h - memory that lives as long as its document or model: allocate freely, release once. Failure is
 * sticky, so that filling a document needs no check per string: its writer reports it. Never shrinks,
 * so it must not be used for anything that grows without bound. */
#ifndef CORE_ARENA_H
#define CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    bool failed;                /* an allocation failed at some time */
};

#define ARENA_INIT {NULL, false}

void arena_release(struct arena *a);

/* Zeroed memory for n items, or NULL and a->failed. Aligned for pointers, doubles and 64-bit numbers. */
void *arena_new(struct arena *a, size_t n, size_t size);

/* Copies; NULL gives NULL. Strings are packed without alignment. */
const char *arena_str(struct arena *a, const char *s);
const char *arena_str_n(struct arena *a, const char *s, size_t n);
const char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `old` with room for item n + 1 of an array that has always grown by this function, one at a time. */
void *arena_grow(struct arena *a, void *old, size_t n, size_t size);

#endif
