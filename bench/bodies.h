/* SPDX-License-Identifier: MIT
 * bodies.h - pieces of known work, each hard for a profiler in its own way. */
#ifndef BENCH_BODIES_H
#define BENCH_BODIES_H

#include <stdint.h>
#include <stdlib.h>

#include "core/rng.h"

enum { CHASE_SLOTS = 1 << 23 }; /* x 8 bytes: larger than the caches */

static uint64_t *bodies_chain; /* a random cycle through memory: each load needs the one before */
static uint64_t bodies_at, bodies_mul = 3;
static float bodies_floats[512];

static inline int bodies_init(void)
{
    bodies_chain = calloc(CHASE_SLOTS, sizeof *bodies_chain);
    if (!bodies_chain) return -1;
    struct rng r;
    rng_seed(&r, 7);
    for (uint64_t i = 0; i < CHASE_SLOTS; i++) bodies_chain[i] = i;
    for (uint64_t i = CHASE_SLOTS - 1; i > 0; i--) { /* Sattolo: one single cycle */
        uint64_t k = rng_below(&r, i), swap = bodies_chain[i];
        bodies_chain[i] = bodies_chain[k];
        bodies_chain[k] = swap;
    }
    return 0;
}

static inline void body_chase(unsigned loads) /* latency of memory */
{
    uint64_t at = bodies_at;
    for (unsigned i = 0; i < loads; i++) at = bodies_chain[at];
    bodies_at = at;
}

static inline void body_multiply(unsigned n) /* latency of the ALU */
{
    uint64_t v = bodies_mul;
    for (unsigned i = 0; i < n; i++) {
        v *= UINT64_C(0x9E3779B97F4A7C15);
        __asm__ volatile("" : "+r"(v));
    }
    bodies_mul = v | 1;
}

static inline void body_floats(unsigned rounds) /* throughput, in the first cache */
{
    for (unsigned k = 0; k < rounds; k++)
        for (unsigned i = 0; i < 512; i++) bodies_floats[i] = bodies_floats[i] * 0.999f + 0.5f;
    __asm__ volatile("" : : : "memory");
}

static inline void body_mixed(unsigned n) /* some of each */
{
    body_chase(n);
    body_multiply(n * 40);
    body_floats(n);
}

#endif
