/* SPDX-License-Identifier: MIT
 * gpu_sum.h - a trace -> the document about its GPUs. */
#ifndef ANALYZE_GPU_SUM_H
#define ANALYZE_GPU_SUM_H

#include "run/gpu_profile.h"
#include "trace/reader.h"

/* TARE_FORMAT when the trace has nothing of a GPU. Nothing to release after a failure. */
tare_status gpu_sum(struct trace *t, struct gpu_profile *out, tare_error *err);

#endif
