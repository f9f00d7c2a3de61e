/* SPDX-License-Identifier: MIT
 * watch_gpu.c - see watch_gpu.h. */
#include "watch/watch_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/gpu_record.h"

tare_status watch_gpu_find(struct watch_gpu *g, tare_error *err)
{
    static const char *const taken[] = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};
    if (!g->on) return TARE_OK;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        const char *other = secure_getenv(taken[i]);
        if (other && other[0])
            return error_set(err, TARE_INVALID,
                             "--gpu: %s is set already (%s): another tool wants to record; unset it",
                             taken[i], other);
    }
    if (gpu_record_library(g->library)) return TARE_OK;
    return error_set(err, TARE_INVALID, "--gpu: " GPU_RECORD_MISSING ": install tare whole");
}

void watch_gpu_environment(const struct watch_gpu *g, const char *trace)
{
    static const char *const graphs[] = {
        [GRAPHS_NODE] = "node", [GRAPHS_GRAPH] = "graph", [GRAPHS_AUTO] = "auto"};
    if (!g->library[0]) return;
    setenv("CUDA_INJECTION64_PATH", g->library, 1);
    setenv("NVTX_INJECTION64_PATH", g->library, 1);
    setenv("TARE_GPU_TRACE", trace, 1);
    setenv("TARE_GPU_GRAPHS", graphs[g->graphs], 1);
    setenv("TARE_GPU_CALLS", g->no_calls ? "0" : "1", 1);
}
