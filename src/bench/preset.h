/* SPDX-License-Identifier: MIT
 * preset.h - named load patterns after the scenarios of MLPerf Inference, as a table for the command line. A
 * preset only sets fields of a plan; it proves nothing about MLPerf compliance. */
#ifndef BENCH_PRESET_H
#define BENCH_PRESET_H

#include "bench/bench.h"

struct bench_preset {
    const char *name; /* "single-stream" */
    const char *help;
    enum bench_load load;
    enum bench_arrivals arrivals;
    double percentile; /* that the scenario is judged by; 0: throughput */
    int64_t batch;     /* units in one query; 0: the case's own */
    bool needs_rate;
};

extern const struct bench_preset bench_presets[]; /* the last one has name NULL */

/* Set the plan's load, arrivals, percentile and concurrency. The caller sets the batch of the cases, and the
 * rate where needs_rate. Unknown names: TARE_INVALID with the names there are. */
tare_status bench_preset_apply(struct bench_plan *plan, const char *name, const struct bench_preset **out,
                               tare_error *err);

#endif
