/* SPDX-License-Identifier: MIT
 * gpu_work.h - what GPUs did, as arrays: gathered from a trace by gpu_work.c, looked at by gpu_idle.c and gpu_sum.c. */
#ifndef ANALYZE_GPU_WORK_H
#define ANALYZE_GPU_WORK_H

#include "core/buf.h"
#include "core/map.h"
#include "core/vec.h"
#include "run/gpu_profile.h"
#include "trace/gpu.h"
#include "trace/reader.h"

/* What an operation is, as bits: sums are over sets of them. */
enum work_kind { WORK_COMPUTE = 1, WORK_COMMUNICATION = 2, WORK_COPY = 4, WORK_ALL = 7 };

/* What the host does in a call. */
enum call_class { CALL_LAUNCH, CALL_SYNC, CALL_COPY, CALL_ALLOCATE, CALL_LOAD, CALL_OTHER };

#define NO_CALL UINT32_MAX

struct gpu_op {
    uint64_t start, end; /* ns of the trace */
    uint32_t name;       /* index; of kernels */
    uint32_t id;         /* of the call that launched it, in its process */
    uint32_t call;       /* index of that call, or NO_CALL */
    uint16_t card;       /* index */
    uint8_t kind;        /* one bit of enum work_kind */
};

struct gpu_host_call {
    uint64_t start;
    uint32_t duration; /* ns; longer than 4 s is kept as 4 s: nothing launches for so long */
    uint32_t id, thread, name;
    uint32_t process;
    uint8_t class;
};

struct gpu_host_state { /* of a thread that launches, looked at now and then */
    uint64_t at;
    uint32_t thread;
    uint32_t state; /* enum gpu_host_does */
};

struct gpu_name {
    const char *text;
    struct gpu_kernel sum; /* of a kernel: name, full and group are not set yet */
    struct gpu_call calls; /* of a call, likewise */
    uint64_t longest_shape_ns;
};

struct gpu_open_range {
    uint64_t start, end, gpu_ns, operations;
    uint32_t name, domain, thread, parent; /* parent: index + 1, 0: none */
};

struct gpu_seen_card {
    uint32_t process; /* ranks each call their card 0 */
    struct gpu_card out;
};

struct gpu_work {
    VEC(struct gpu_op) ops;            /* by card, then start */
    VEC(struct gpu_host_call) calls;   /* by process, then id */
    VEC(struct gpu_host_state) states; /* by time */
    VEC(struct gpu_name) names;
    VEC(struct gpu_open_range) ranges;
    VEC(struct gpu_seen_card) cards;
    struct map_str name_index;
    struct map_u64 name_numbers, lanes, range_numbers; /* process << 32 | number -> index + 1 */
    struct map_u64 shapes;                             /* likewise -> index + 1 of shape_list */
    struct map_u64 in_range;                           /* process << 32 | id -> range index + 1 */
    struct map_u64 open_range;                         /* process << 32 | thread -> innermost, index + 1 */
    struct map_u64 held;                               /* process << 48 ^ address -> bytes of device memory */
    struct buf text;                                   /* a name being cleaned */
    VEC(struct gpu_record) shape_list;
    struct gpu_copy copies[32];
    uint64_t held_bytes, held_peak;
    struct gpu_profile *out;
    tare_error *err;
};

/* All GPU records of the trace, joined: operations to calls, calls to ranges. */
tare_status gpu_work_gather(struct gpu_work *w, struct trace *t, struct gpu_profile *out, tare_error *err);
void gpu_work_release(struct gpu_work *w);

/* gpu_idle.c: busy and idle time of each device, by cause. */
tare_status gpu_work_idle(struct gpu_work *w);

/* gpu_name.c */
const char *gpu_name_full(struct arena *a, const char *mangled); /* demangled where that can be done here */
const char *gpu_name_short(struct arena *a, const char *full);
const char *gpu_name_group(const char *full);
#define GPU_GROUP_COMMUNICATION "communication"

#endif
