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

/* TARE_TRACE has %% for %; this name is taken as it is. */
static void plain_name(char out[PATH_MAX], const char *named)
{
    size_t n = 0;
    for (const char *c = named; *c && n + 1 < PATH_MAX; c++) {
        if (c[0] == '%' && c[1] == '%') c++;
        out[n++] = *c;
    }
    out[n] = 0;
}

void watch_gpu_environment(const struct watch_gpu *g, const char *named)
{
    static const char *const graphs[] = {
        [GRAPHS_NODE] = "node", [GRAPHS_GRAPH] = "graph", [GRAPHS_AUTO] = "auto"};
    char trace[PATH_MAX];
    if (!g->library[0] || !named) return;
    plain_name(trace, named);
    setenv("CUDA_INJECTION64_PATH", g->library, 1);
    setenv("NVTX_INJECTION64_PATH", g->library, 1);
    setenv("TARE_GPU_TRACE", trace, 1);
    setenv("TARE_GPU_GRAPHS", graphs[g->graphs], 1);
    setenv("TARE_GPU_CALLS", g->no_calls ? "0" : "1", 1);
}
