/* SPDX-License-Identifier: MIT
 * sample.c - which allocations are noted: a Poisson process over bytes, so that one of s bytes is noted with
 * probability 1 - exp(-s / every), whatever came before. And those that are noted and not yet freed: a table of
 * fixed size without locks, behind a filter of one byte for each 512 bytes of memory that a free looks at first. */
#include "agent/hot.h"

/* -ln(u) without libm: ln(m) = 2 atanh((m - 1) / (m + 1)) for m near 1; good to nine digits. */
static double minus_log(double u)
{
    int exponent = 0;
    while (u < 0.70710678118654752) {
        u *= 2;
        exponent++;
    }
    double z = (u - 1) / (u + 1), zz = z * z;
    double series = 1 + zz * (1.0 / 3 + zz * (1.0 / 5 + zz * (1.0 / 7 + zz * (1.0 / 9))));
    return exponent * 0.69314718055994531 - 2 * z * series;
}

double sample_gap(struct rng *r, double mean)
{
    double gap = minus_log(1 - rng_unit(r)) * mean;
    return gap < 1e18 ? gap : 1e18;
}

/* `left` is already less by `size`. The point that was drawn lies in this allocation if nothing is left; the next is
 * counted from its end, as the process has no memory. A thread that has just begun draws its first here. */
bool sample_due(struct self *me, uint64_t size)
{
    if (me->drawn != agent->uid) { /* its numbers must differ from its parent's */
        uint64_t seed = agent->uid ^ (uint64_t)(uintptr_t)me ^ agent_ticks();
        rng_seed(&me->rng, seed);
        me->drawn = agent->uid;
        me->left = (int64_t)sample_gap(&me->rng, (double)settings.every) - (int64_t)size;
    }
    if (me->left > 0) return false;
    me->left = (int64_t)sample_gap(&me->rng, (double)settings.every) + 1;
    return true;
}

/* ---- the set ---- */

/* The filter is raised before the place is taken and lowered after it is given back: it never says no wrongly. At 254
 * it stays, as nobody knows then how many there are. */
static void filter_add(uint64_t address, int by)
{
    uint8_t *f = &set_filter[filter_place(address)], was = __atomic_load_n(f, __ATOMIC_RELAXED);
    do {
        if (was >= 254) return;
    } while (
        !__atomic_compare_exchange_n(f, &was, (uint8_t)(was + by), true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

bool sample_keep(uint64_t address)
{
    unsigned bucket = set_place(address);
    filter_add(address, 1);
    for (unsigned i = 0; i < 2 * SET_WAYS; i++) {
        uint64_t none = 0, *at = &agent->set[bucket ^ i / SET_WAYS][i % SET_WAYS];
        if (__atomic_compare_exchange_n(at, &none, address, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return true;
    }
    filter_add(address, -1);
    __atomic_fetch_add(&agent->lost_samples, 1, __ATOMIC_RELAXED);
    return false;
}

bool sample_forget(uint64_t address)
{
    unsigned bucket = set_place(address);
    for (unsigned i = 0; i < 2 * SET_WAYS; i++) {
        uint64_t it = address, *at = &agent->set[bucket ^ i / SET_WAYS][i % SET_WAYS];
        if (__atomic_load_n(at, __ATOMIC_RELAXED) != address) continue;
        if (!__atomic_compare_exchange_n(at, &it, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
        filter_add(address, -1);
        return true;
    }
    return false;
}
