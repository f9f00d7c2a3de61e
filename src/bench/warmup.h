/* SPDX-License-Identifier: MIT
 * warmup.h - has a case become steady? A pure function of its run times so far (MSER: White 1997). */
#ifndef BENCH_WARMUP_H
#define BENCH_WARMUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum { WARMUP_LEAST = 10 }; /* of fewer runs nothing can be said */

struct warmup_verdict {
    bool judged; /* false: too few runs */
    bool steady;
    size_t cut; /* so many runs at the beginning were the transient */
};

/* ns: times in the order they were taken. Works on ln x, clipped to the median +/- 5 * 1.4826 MAD; means of
 * 5 neighbours (of 1 below 50 runs) are cut at the beginning so that the variance of the mean of the rest is
 * least, looking as far as three quarters. A best cut at half of them or later means that
 * the end is not steady yet. */
tare_status warmup_judge(const uint64_t *ns, size_t n, struct warmup_verdict *out, tare_error *err);

#endif
