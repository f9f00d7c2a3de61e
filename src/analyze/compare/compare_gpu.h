/* SPDX-License-Identifier: MIT
 * compare_gpu.h - traces of GPUs of two sides -> a comparison document: a case a GPU; length of steps, busy and idle
 * time by cause, copies, and every kernel, judged by what whole runs differ by where the base has three or more, else
 * by pairs of steps (or of single runs of a kernel, where there are no steps). Kernels that only one side has are
 * listed. Pure: opens nothing. */
#ifndef ANALYZE_COMPARE_GPU_H
#define ANALYZE_COMPARE_GPU_H

#include "analyze/compare/paired.h"
#include "analyze/gpu/gpu_series.h"
#include "analyze/judge/judge.h"
#include "run/comparison.h"

struct compare_gpu {
    struct compare_gpu_side {
        const struct gpu_series *runs; /* in order of time */
        size_t n;                      /* at least one */
    } side[PAIR_SIDES];
    int64_t apart_ms; /* runs of a side closer than this count as one; 0: they count */
    struct paired_rule rule;
    const struct compare_limit *limits; /* of gpu_measures; those named alone may fail then */
    size_t n_limits;
};
#define COMPARE_GPU_RULE_INIT \
    {                         \
        .min_effect = 0.02, .detect = 0.05, .alpha = 0.01, .level = 0.95, .least = 20, .least_epochs = 8 \
    }

extern const struct measure gpu_measures[]; /* what --fail-on may name; ends with name NULL */

/* Fills a document that comparison_init() made; it owns all that it has. */
tare_status compare_gpu(struct comparison *c, const struct compare_gpu *in, tare_error *err);

#endif
