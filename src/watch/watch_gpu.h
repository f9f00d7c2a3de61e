/* SPDX-License-Identifier: MIT
 * watch_gpu.h - what makes a CUDA program load libtare-gpu.so: the driver and NVTX look into the environment. */
#ifndef WATCH_WATCH_GPU_H
#define WATCH_WATCH_GPU_H

#include <limits.h>
#include <stdbool.h>

#include "core/error.h"

struct watch_gpu {
    bool on;
    bool no_calls;          /* kernels and copies alone */
    bool whole_graphs;      /* one record a graph launch, not one a kernel of it */
    char library[PATH_MAX]; /* "" until watch_gpu_find() */
};

/* If it is wanted: where the library is. TARE_INVALID: it cannot be done. */
tare_status watch_gpu_find(struct watch_gpu *g, tare_error *err);
/* In the child: `named` is its TARE_TRACE. */
void watch_gpu_environment(const struct watch_gpu *g, const char *named);

#endif
