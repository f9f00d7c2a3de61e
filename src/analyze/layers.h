/* SPDX-License-Identifier: MIT
 * layers.h - from a profiled pass to layers: events of the runtime's profiler, joined by node name with the graph as
 * the runtime optimised it, mapped back to the layers of the file the user knows, with time, cost and share; then
 * grouped. Pure; the profile and both graphs come from elsewhere. */
#ifndef ANALYZE_LAYERS_H
#define ANALYZE_LAYERS_H

#include "analyze/inspect.h"
#include "model/ort_profile.h"

struct layers_input {
    const struct ort_profile *profile;
    const struct inspected *source;    /* the file's graph; NULL: not at hand (tare import) */
    const struct inspected *optimized; /* the graph that ran; NULL: not at hand */
    uint64_t plain_median_ns; /* of runs without the profiler; 0: unknown, then nothing is corrected */
    uint64_t skip_runs;       /* profiled runs at the start that were warm-up */
};

/* Appends the case's layers (times from the profile, costs from the graphs, greatest time first) and fills
 * c->profile. A layer's time is the median over runs of its own time (without nested events), less the profiler's
 * measured cost per node. Shares are of the corrected sum. */
tare_status layers_join(struct run *run, struct run_case *c, const struct layers_input *in, tare_error *err);

/* Shapes the profile saw, for infer_options; in `into`'s arena. */
tare_status layers_seen(const struct ort_profile *p, const struct onnx_model *graph, struct arena *into,
                        struct infer_seen **out, size_t *n, tare_error *err);

/* Set `group` of each layer: the first pattern (case-insensitive part of its name, or a glob when it has * or ?) that
 * fits, else "other". Patterns NULL: by the name's own structure ("/encoder/layer.3/attention/..." -> "attention"). */
void layers_group(struct run_case *c, const char *const *patterns, size_t n);

/* One sum per group, greatest first, as layers of their own in a list (names are the groups'). */
tare_status layers_sum_groups(struct run *run, const struct run_case *c, struct run_case *out,
                              tare_error *err);

#endif
