/* SPDX-License-Identifier: MIT
 * layers.h - from a profiled pass to layers: events of the runtime's profiler, joined node by node with the graph as
 * the runtime optimised it, mapped back to the layers of the file the user knows, with time, cost and share; then
 * grouped. Pure; the profile and both graphs come from elsewhere. */
#ifndef ANALYZE_LAYERS_H
#define ANALYZE_LAYERS_H

#include "analyze/layers/inspect.h"
#include "core/vec.h"
#include "model/profile/ort_profile.h"

struct layers_times { /* of whole runs, ns, by one clock */
    const uint64_t *ns;
    size_t n;
};

/* ---- what a GPU did in those runs; all times on one axis, in ns. Filled from a trace by layers_gpu_read() ---- */

struct layers_op {            /* a kernel, copy or fill */
    uint64_t launched;        /* the call that gave it to the GPU began; 0: not recorded */
    uint64_t start, duration; /* on the GPU */
    uint64_t bytes;           /* of copies and fills */
    uint32_t name;            /* equal ones do the same */
    bool copy;                /* or fill */
    bool fill;
};

struct layers_window { /* a run */
    uint64_t start, end;
    bool profiled; /* by the runtime */
};

struct layers_gpu {
    VEC(struct layers_op) ops;         /* by launch */
    VEC(struct layers_window) windows; /* by start; no warm-ups */
    VEC(uint64_t) events;              /* when each event of the profile began */
    uint64_t lost;                     /* records that are missing; and times in which nothing was recorded */
    char notes[200];                   /* what the recorder had to say; "": nothing */
};
#define LAYERS_GPU_INIT {.ops = VEC_INIT, .windows = VEC_INIT, .events = VEC_INIT}
void layers_gpu_release(struct layers_gpu *g);

struct trace;
/* Windows are of the wall clock (CLOCK_REALTIME) here, as is the start of the profile. */
struct layers_gpu_source {
    struct trace *trace;
    const struct ort_profile *profile;
    uint64_t profile_start;
    const struct layers_window *windows;
    size_t n_windows;
};
tare_status layers_gpu_read(struct layers_gpu *out, const struct layers_gpu_source *from, tare_error *err);

struct layers_input {
    const struct ort_profile *profile;
    const struct onnx_model *source_model,
        *optimized_model;                       /* the file's graph, that which ran; NULL: not at hand */
    const struct inspected *source, *optimized; /* what they cost; NULL: not known */
    struct layers_times
        profiled; /* with the profiler on; n 0: the profile's own times of whole runs are taken */
    struct layers_times plain; /* without it, taken in turns with those; n 0: unknown, nothing is corrected */
    const struct layers_gpu *gpu; /* NULL: not recorded; times of nodes are the host's */
    uint64_t skip_runs;           /* profiled runs at the start that were warm-up */
};

/* What no node accounts for: the runtime between nodes, and the call itself. */
#define LAYERS_RUNTIME "(runtime)"
/* On a GPU: operations that no node launched, mostly inputs and outputs copied there and back. */
#define LAYERS_OUTSIDE "(inputs and outputs)"

/* Appends the case's layers (times from the profile, costs from the graphs, greatest time first) and fills
 * c->profile. The time of a layer is the mean of its own time (without events nested in it, which are layers of their
 * own) over the fifth of the runs nearest to the median, less what the profiler costs: (a run with it - one without) /
 * nodes. Of that cost each node bears as much as the cheapest nodes show, the rest lies between nodes. LAYERS_RUNTIME
 * is a layer, so that nothing is hidden. Shares are of the corrected sum.
 * With a record of the GPU the time of a layer that ran there is that of its operations on the GPU, and LAYERS_RUNTIME
 * is the time of a run in which the GPU did nothing for it. */
tare_status layers_join(struct run *run, struct run_case *c, const struct layers_input *in, tare_error *err);

struct layers_shapes {
    struct infer_seen *items;
    size_t n;
};
/* Shapes the profile saw, for infer_options; in `into`. Nodes of the main graph only. */
tare_status layers_seen(const struct ort_profile *p, const struct onnx_model *graph, struct arena *into,
                        struct layers_shapes *out, tare_error *err);

/* Does an input have this free dimension? One without a name is "input.axis". */
bool layers_has_dim(const struct onnx_model *m, const char *name);
/* The value of a free dimension as the profile saw it, where some value's shape has it alone. false: not seen. */
bool layers_dim_seen(const struct inspected *i, const char *name, const struct layers_shapes *seen,
                     int64_t *value);

/* Each timed layer against the measured roof: intensity, rate reached, bound by compute or memory, share of what the
 * roof allows, and the most that the whole could gain were this layer free (Amdahl). Fills fields of the case's layers
 * from what is there already and run->roof. */
void roofline_apply(struct run *run, struct run_case *c);

/* Set `group` of each layer: the first pattern (case-insensitive part of its name, or a glob when it has * or ?) that
 * fits its name or the group it has by its name's structure, else "other"; docs/layers.md has the exceptions. Patterns
 * NULL: by the structure alone ("/encoder/layer.3/attention/..." -> "attention"). */
void layers_group(struct run *run, struct run_case *c, const char *const *patterns, size_t n);
/* The group by structure: docs/layers.md. `op` may be NULL. A literal, or copied into `a`. */
const char *layers_group_of(struct arena *a, const char *name, const char *op);
/* The same as far as a word in the name or the operator tells it: a literal. NULL: only its place in the path is
 * left. */
const char *layers_group_told(const char *name, const char *op);

#endif
