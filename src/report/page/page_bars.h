/* SPDX-License-Identifier: MIT
 * page_bars.h - all that a trace has on a time axis, gathered for the page: what GPUs did, CUDA calls, NVTX ranges, the
 * program's scopes, and calls that waited. Lanes of bars, each in order of time. Of more bars than a page can hold the
 * longest are kept, and it is told. */
#ifndef REPORT_PAGE_BARS_H
#define REPORT_PAGE_BARS_H

#include "core/arena.h"
#include "core/map.h"
#include "core/vec.h"
#include "report/trace/source.h"

enum { PAGE_BARS_MOST = 3000000 };

/* What a bar is; the same numbers as in the document. */
#define PAGE_BAR_KINDS(X) \
    X(KERNEL, "kernel") X(COPY, "copy") X(FILL, "fill") X(GRAPH, "graph") X(CALL, "call") X(RANGE, "range") \
    X(MARK, "mark") X(SCOPE, "scope") X(TASK, "task")
#define X(name, text) PAGE_BAR_##name,
enum page_bar_kind { PAGE_BAR_KINDS(X) };
#undef X

struct page_bar {
    uint64_t start, length; /* ns of the trace */
    uint64_t flow;          /* of a call and what it launched, as gpu_bar has it; 0: none */
    uint64_t more; /* of a kernel its shape, from 1 up; of a copy its bytes; of a scope enum page_scope */
    uint32_t name;
    uint16_t depth; /* of a lane of tasks; others are nested by their times */
};
enum page_scope { PAGE_WEIGHED = 1, PAGE_UNENDED = 2 };

struct page_name {
    const char *text, *full, *file; /* full, file: NULL where there is none */
    const char *group;              /* of a kernel */
    uint32_t line;
    enum page_bar_kind kind;
};

enum page_lane_kind { PAGE_STREAM, PAGE_CALLS, PAGE_RANGES, PAGE_SCOPES, PAGE_TASKS };
struct page_lane {
    enum page_lane_kind kind;
    uint32_t process, thread; /* thread: as the system has it; of a stream 0 */
    const char *name;
    size_t first; /* how many bars are in lanes before it */
    VEC(struct page_bar) bars;
};

struct page_bars {
    struct arena memory;
    VEC(struct page_lane) lanes;
    VEC(struct page_name) names;
    VEC(struct gpu_record) shapes;
    struct map_u64 calls; /* flow -> number of the calling bar + 1, over all lanes */
    uint64_t seen, kept;  /* bars of the trace, and those here */
    uint64_t end;         /* of the latest */
};

/* `most`: 0 for PAGE_BARS_MOST. Nothing to release after a failure. */
tare_status page_bars_gather(struct page_bars *out, const struct event_source *source, uint64_t most,
                             tare_error *err);
void page_bars_release(struct page_bars *b);

#endif
