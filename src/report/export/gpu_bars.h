/* SPDX-License-Identifier: MIT
 * gpu_bars.h - what GPUs did, as bars on tracks, for the timelines of other tools: a track a stream with its kernels
 * and copies, one a thread with its CUDA calls and one with its NVTX ranges, one a rank with its waiting for others,
 * one a GPU with its gaps by cause, and one with the memory that the process has from the driver.
 * Bars of a track lie beside or within each other: what would overlap in part is put on a further track of the same
 * name. Bars are streamed; the causes of idle time are found before, by an analysis of all of it. */
#ifndef REPORT_EXPORT_GPU_BARS_H
#define REPORT_EXPORT_GPU_BARS_H

#include "core/buf.h"
#include "core/error.h"
#include "report/trace/source.h"
#include "trace/gpu.h"

enum gpu_track_kind { GPU_TRACK_STREAM, GPU_TRACK_CALLS, GPU_TRACK_RANGES, GPU_TRACK_MEMORY, GPU_TRACK_IDLE };
struct gpu_track {
    uint32_t number; /* from 0 up */
    enum gpu_track_kind kind;
    uint32_t process, thread; /* thread: as the system has it; of what is a GPU's 0 */
    const char *name;
};

enum gpu_bar_kind {
    GPU_BAR_KERNEL,
    GPU_BAR_COPY,
    GPU_BAR_FILL,
    GPU_BAR_GRAPH,
    GPU_BAR_CALL,
    GPU_BAR_RANGE,
    GPU_BAR_MARK,
    GPU_BAR_IDLE,
    GPU_BAR_MEMORY /* from its start on, the process has so many bytes */
};
struct gpu_bar {
    enum gpu_bar_kind kind;
    uint32_t track, name;    /* their numbers, from 0 up; the same name has the same number */
    const char *text, *full; /* the name; full: as the compiler has it, or NULL where that is no more */
    const char *detail;      /* of this bar alone, or NULL */
    uint64_t start, end;     /* ns of the trace */
    uint64_t flow;  /* an arrow goes from the call to what it launched: both have this number; 0: none */
    bool launches;  /* this is the call */
    uint64_t bytes; /* of a copy or fill; held */
    uint32_t shape_number;          /* of a kernel: a number for its launch shape, from 1 up; 0: not known */
    const struct gpu_record *shape; /* that SHAPE, during the call */
};

struct gpu_bars_to {
    void *ctx;
    tare_status (*track)(void *ctx, const struct gpu_track *t); /* before its bars */
    tare_status (*bar)(void *ctx, const struct gpu_bar *b);
};

/* The launch of a kernel in words, for those who show it: "grid 64x1x1, block 256x1x1, 32 registers, 1024 B shared". */
void gpu_bar_shape(struct buf *b, const struct gpu_bar *bar);

tare_status gpu_bars(const struct event_source *source, const struct gpu_bars_to *to, tare_error *err);

#endif
