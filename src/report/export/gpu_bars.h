/* SPDX-License-Identifier: MIT
 * gpu_bars.h - what GPUs did, as bars on tracks, for the timelines of other tools: a track a stream with its kernels
 * and copies, one a thread with its CUDA calls and one with its NVTX ranges. Bars of a track lie beside or within each
 * other: what would overlap in part is put on a further track of the same name. Streams: memory does not grow with the
 * number of bars. */
#ifndef REPORT_EXPORT_GPU_BARS_H
#define REPORT_EXPORT_GPU_BARS_H

#include "core/error.h"
#include "trace/reader.h"

struct gpu_bar {
    uint32_t track, name;    /* their numbers, from 0 up; the same name has the same number */
    const char *text, *full; /* the name; full: as the compiler has it, or NULL where that is no more */
    const char *detail;      /* of this bar alone, or NULL */
    uint64_t start, end;     /* ns of the trace */
    uint64_t flow; /* an arrow goes from the call to what it launched: both have this number; 0: none */
    bool launches; /* this is the call */
};

struct gpu_bars_to {
    void *ctx;
    tare_status (*track)(void *ctx, uint32_t number, uint32_t process,
                         const char *name); /* before its bars */
    tare_status (*bar)(void *ctx, const struct gpu_bar *b);
};

tare_status gpu_bars(struct trace *t, const struct gpu_bars_to *to, tare_error *err);

#endif
