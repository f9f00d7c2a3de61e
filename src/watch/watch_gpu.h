/* SPDX-License-Identifier: MIT
 * watch_gpu.h - what makes a CUDA program load libtare-gpu.so: the driver and NVTX look into the environment. */
#ifndef WATCH_WATCH_GPU_H
#define WATCH_WATCH_GPU_H

#include <limits.h>
#include <stdbool.h>

#include "core/error.h"

/* How CUDA graphs are recorded: each kernel of them; one record a launch; the first, until it costs too much. */
enum watch_graphs { GRAPHS_NODE, GRAPHS_GRAPH, GRAPHS_AUTO };

struct watch_gpu {
    bool on;
    bool no_calls;          /* kernels and copies alone */
    int graphs;             /* enum watch_graphs */
    char library[PATH_MAX]; /* "" until watch_gpu_find() */
};

/* If it is wanted: where the library is. TARE_INVALID: it cannot be done. */
tare_status watch_gpu_find(struct watch_gpu *g, tare_error *err);
/* In the child: `trace` is its file, as it is. */
void watch_gpu_environment(const struct watch_gpu *g, const char *trace);

#endif
