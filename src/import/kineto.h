/* SPDX-License-Identifier: MIT
 * kineto.h - what torch.profiler wrote (Kineto's Chrome JSON, plain or gzip) as a trace of tare. In parts:
 * kineto_event.c reads one event, kineto.c walks the file and writes what the GPU did as it comes, kineto_host.c puts
 * what threads did in order and writes it at the end, with the range that each launch was in. Memory does not grow with
 * the file. */
#ifndef IMPORT_KINETO_H
#define IMPORT_KINETO_H

#include "core/buf.h"
#include "core/json_pull.h"
#include "core/map.h"
#include "core/spill_sort.h"
#include "core/vec.h"
#include "import/inflow.h"
#include "import/trace_out.h"

struct kineto_counts {
    uint64_t events; /* in the file, metadata included */
    uint64_t kernels, copies, fills, calls, operators, annotations, frames, memory;
    uint64_t kernel_ns, copy_ns; /* copies and fills */
    uint64_t unusable;           /* events of a kind that is taken, without a time, a length or a name */
    uint64_t unknown;            /* of kinds that are not taken: flows, overheads, .. */
    uint64_t renamed;            /* host events beyond the most names that are told apart */
    uint64_t too_deep;           /* ranges within too many others: left out */
    char first_bad[200];         /* where and what the first unusable one is; "": none */
};

/* TARE_FORMAT: not JSON, damaged, or nothing of torch.profiler in it; then no trace is left. */
tare_status kineto_import(const char *path, const char *to, struct kineto_counts *out, tare_error *err);
tare_status kineto_convert(struct inflow *from, const char *name, const char *to, struct kineto_counts *out,
                           tare_error *err);

/* ---- within ---- */

enum kineto_kind {
    KINETO_OTHER,
    KINETO_KERNEL,
    KINETO_COPY,
    KINETO_FILL,
    KINETO_MEMORY,
    KINETO_CALL, /* from here on of the host */
    KINETO_OPERATOR,
    KINETO_ANNOTATION,
    KINETO_FRAME,
    KINETO_MODULE
};

#define KINETO_ABSENT INT64_MIN

struct kineto_event {
    enum kineto_kind kind;
    char phase;
    struct buf name;
    struct buf meta;  /* args.name of metadata */
    bool host_pid;    /* pid is a number; else the event belongs to no process */
    int64_t ts, dur;  /* ns; KINETO_ABSENT */
    int64_t pid, tid; /* tid of another kind than a number: a hash of it */
    int64_t correlation, device, context, stream, registers, shared, bytes, graph_node; /* of args */
    int64_t device_type, device_id, reserved, address, sequence, grid[3], block[3];
};

void kineto_event_release(struct kineto_event *e);
/* The rest of an object whose '{' was just read. */
tare_status kineto_event_read(struct kineto_event *e, struct json_pull *p, tare_error *err);

struct kineto_host;
tare_status kineto_host_new(struct kineto_host **out, const char *file, const char *folder, tare_error *err);
void kineto_host_free(struct kineto_host *h);
tare_status kineto_host_add(struct kineto_host *h, const struct kineto_event *e, struct kineto_counts *counts,
                            tare_error *err);
tare_status kineto_host_thread(struct kineto_host *h, int64_t tid, const char *name, tare_error *err);
/* All of it into the trace. `offset` is added to times. */
tare_status kineto_host_write(struct kineto_host *h, struct trace_out *to, struct kineto_counts *counts,
                              tare_error *err);

enum { KINETO_OFFSET = 1 }; /* added to all times: 0 is no time in a trace */

#endif
