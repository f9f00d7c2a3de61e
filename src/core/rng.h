/* SPDX-License-Identifier: MIT
 * rng.h - a small, fast, repeatable random generator (xoshiro256++, seeded by splitmix64) for sampling,
 * shuffling and tests. One state per thread. Never for secrets or names: those come from the kernel. */
#ifndef CORE_RNG_H
#define CORE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t s[4]; /* never all zero once seeded */
};

/* The next value of a counter-based generator; any start value is good. */
static inline uint64_t rng_splitmix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline void rng_seed(struct rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) r->s[i] = rng_splitmix(&seed);
}

static inline uint64_t rng_rotl(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->s, out = rng_rotl(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rng_rotl(s[3], 45);
    return out;
}

/* Even over 0 .. n-1, without bias (multiply and reject). n == 0 gives 0. */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
    if (n == 0) return 0;
    for (;;) {
        unsigned __int128 wide = (unsigned __int128)rng_next(r) * n;
        if ((uint64_t)wide >= -n % n) return (uint64_t)(wide >> 64);
    }
}

/* Even over [0, 1), 53 random bits. */
static inline double rng_unit(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

#endif
