/* SPDX-License-Identifier: MIT
 * preset.c - see bench.h. */
#include "bench/bench.h"

#include <string.h>

#include "core/buf.h"

const struct bench_preset bench_presets[] = {
    {"single-stream", "one query after the other, judged by p90", BENCH_CLOSED, BENCH_POISSON, 0.90, 0, false},
    {"multi-stream", "queries of 8 units one after the other, judged by p99", BENCH_CLOSED, BENCH_POISSON, 0.99,
     8, false},
    {"server", "queries at random moments at a given rate, judged by p99", BENCH_OPEN, BENCH_POISSON, 0.99, 0,
     true},
    {"offline", "large batches back to back, judged by throughput", BENCH_CLOSED, BENCH_POISSON, 0, 32, false},
    {NULL, NULL, BENCH_CLOSED, BENCH_POISSON, 0, 0, false},
};

tare_status bench_preset_apply(struct bench_plan *plan, const char *name, const struct bench_preset **out,
                               tare_error *err)
{
    struct buf names = BUF_INIT;
    for (const struct bench_preset *p = bench_presets; p->name; p++) {
        if (strcmp(p->name, name) != 0) {
            buf_printf(&names, "%s%s", names.len ? ", " : "", p->name);
            continue;
        }
        buf_release(&names);
        plan->load = p->load;
        plan->arrivals = p->arrivals;
        plan->percentile = p->percentile;
        if (p->load == BENCH_CLOSED) plan->concurrency = 1;
        if (out) *out = p;
        return TARE_OK;
    }
    tare_status s = buf_status(&names, err);
    if (s == TARE_OK) s = error_set(err, TARE_INVALID, "no scenario '%s': choose %s", name, names.data);
    buf_release(&names);
    return s;
}
