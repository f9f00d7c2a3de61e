/* SPDX-License-Identifier: MIT
 * ring.h - one producer thread, one consumer thread, no locks, no allocation: the caller brings the memory.
 *   head is written by the producer only, tail by the consumer only; both only grow. The words between them
 *   are the content. Full means that push says no: it never waits, because a ring that blocks the program it
 *   measures would falsify every later number. Each side keeps a private copy of the other's index, so that
 *   the shared cache line is read only when the copy says full or empty. */
#ifndef CORE_RING_H
#define CORE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
    uint64_t *words;
    uint64_t mask;
    _Alignas(64) _Atomic uint64_t head; /* producer's line */
    uint64_t tail_seen;
    _Alignas(64) _Atomic uint64_t tail; /* consumer's line */
    uint64_t head_seen;
};

/* `capacity` words of `memory`, a power of two; false when it is not. Before either thread starts. */
static inline bool ring_init(struct ring *r, uint64_t *memory, size_t capacity)
{
    if (capacity == 0 || (capacity & (capacity - 1))) return false;
    r->words = memory;
    r->mask = capacity - 1;
    r->tail_seen = r->head_seen = 0;
    atomic_init(&r->head, 0);
    atomic_init(&r->tail, 0);
    return true;
}

/* Producer: append n words as one, all or nothing. False: not enough room now. */
static inline bool ring_push_n(struct ring *r, const uint64_t *words, size_t n)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    if (r->mask + 1 - (head - r->tail_seen) < n) {
        r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (r->mask + 1 - (head - r->tail_seen) < n) return false;
    }
    for (size_t i = 0; i < n; i++) r->words[(head + i) & r->mask] = words[i];
    atomic_store_explicit(&r->head, head + n, memory_order_release);
    return true;
}

static inline bool ring_push(struct ring *r, uint64_t word)
{
    return ring_push_n(r, &word, 1);
}

/* Consumer: take up to n words, oldest first; returns how many. */
static inline size_t ring_pop_n(struct ring *r, uint64_t *words, size_t n)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (r->head_seen - tail < n) r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
    uint64_t there = r->head_seen - tail;
    if (n > there) n = (size_t)there;
    for (size_t i = 0; i < n; i++) words[i] = r->words[(tail + i) & r->mask];
    if (n) atomic_store_explicit(&r->tail, tail + n, memory_order_release);
    return n;
}

static inline bool ring_pop(struct ring *r, uint64_t *word)
{
    return ring_pop_n(r, word, 1) == 1;
}

/* Words held: exact when called by either side while the other is quiet, else already outdated. */
static inline size_t ring_used(const struct ring *r)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    return (size_t)(atomic_load_explicit(&r->head, memory_order_acquire) - tail);
}

#endif
