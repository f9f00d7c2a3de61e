/* SPDX-License-Identifier: MIT
 * gpu_work.h - what GPUs did, as arrays: gathered from a trace by gpu_work.c, looked at by gpu_idle.c and gpu_sum.c. */
#ifndef ANALYZE_GPU_WORK_H
#define ANALYZE_GPU_WORK_H

#include "analyze/gpu/gpu_sum.h"
#include "analyze/gpu/gpu_tables.h"
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
    uint32_t name;       /* of a kernel: index of names; of a copy or fill: of copied */
    uint32_t id;         /* of the call that launched it, in its process */
    uint32_t call;       /* index of that call, or NO_CALL */
    uint32_t card : 12, kind : 3,
        shape : 17; /* index; a bit of enum work_kind; of a kernel: index + 1, 0: unknown */
};
enum { MANY_CARDS = 4095, MANY_SHAPES = 131071 };
enum { JUDGED_CARDS_MOST = 256 }; /* all events are walked for each, and a damaged file may claim thousands */

struct gpu_copied {
    uint64_t bytes;
    uint32_t row; /* of gpu_work.copies: which way, from what memory */
};

struct gpu_host_call {
    uint64_t start;
    uint64_t duration : 47, class : 4, name : 12; /* enum call_class; index of call_names */
    uint64_t graph : 1;                           /* it launches one, and nothing of that was recorded */
    uint32_t id;
    uint16_t process, thread; /* thread: index of gpu_work.threads, which is less than MANY_THREADS */
};

struct gpu_host_thread { /* that called or was looked at */
    uint32_t process, thread;
    bool calls;                            /* the program's own, or a helper's of CUDA */
    const char *name;                      /* NULL: not told */
    uint64_t operations, gpu_ns, in_range; /* that it launched; in_range: of the operations */
};
enum { MANY_THREADS = 65535 }; /* all further ones go by this number: they are not told apart */

struct gpu_host_state { /* of a thread that launches, looked at now and then */
    uint64_t at;
    uint32_t thread;                  /* index, as above */
    uint32_t state;                   /* enum gpu_host_does */
    uint32_t before[GPU_HOST_STATES]; /* looks that stand before this one, of all threads, by state */
};

struct gpu_launched_in { /* what was launched with that number was in that range */
    uint32_t id, range;
    uint16_t process;
};

struct gpu_name {
    const char *text;
    struct gpu_kernel sum; /* of a kernel: name, full and group are not set yet */
    struct gpu_call calls; /* of a call, likewise */
    uint64_t longest_shape_ns;
    uint16_t call;       /* of a call: index of call_names + 1 */
    uint8_t kind, class; /* of a kernel: enum work_kind; of a call: enum call_class + 1; 0: not asked yet */
    bool graph;          /* of a call: it launches one */
};
enum { MANY_CALL_NAMES = 4095 }; /* all further ones go by this number */

/* What CUPTI says that recording, or the driver beside the program's work, took; `what`: its number of the kind. */
struct gpu_overhead {
    uint64_t start, ns;
    uint32_t what;
    uint16_t process, thread; /* index; MANY_THREADS: one that made no call */
};

/* Device memory taken from the driver, or given back. */
struct gpu_memory_event {
    uint64_t at, bytes;
    uint32_t id;    /* of the call */
    uint32_t taken; /* given back: index of the event that took it, before sorting; TAKES: it takes */
    uint16_t card, process;
};
#define TAKES UINT32_MAX
enum gpu_phase { GPU_PHASE_NONE, GPU_PHASE_BACKWARD, GPU_PHASE_OPTIMIZER };

struct gpu_open_range {
    uint64_t start, end, gpu_ns, operations;
    uint32_t name, domain, process, thread, parent; /* parent: index + 1, 0: none */
    uint32_t sequence;                              /* of PyTorch + 1, 0: none */
    uint32_t module, op; /* names of what it is in or of itself, index + 1, 0: none: gpu_origin.c */
    uint8_t phase;
};

struct gpu_origin_sum { /* runs of one kernel from one place */
    uint64_t count, total_ns;
    uint32_t kernel, module, op;
    uint8_t phase;
};

struct gpu_window { /* a step */
    uint64_t start, end;
    uint32_t card;
};

struct gpu_hole {
    uint64_t start, end;
    uint32_t process;
    bool is_void; /* an operation ran in it */
};
struct gpu_untimed { /* an operation that had not ended when the record did, and did not run before `from` */
    uint64_t from;
    uint32_t id, card;
};
struct gpu_seen_process {
    const char *trace, *host;              /* host NULL: not told */
    uint64_t rank, local_rank, size, boot; /* as in RANK: + 1, 0: not told */
    uint64_t raw_ns, unix_ns;              /* its machine's clocks at time 0 of its trace */
    uint64_t absurd, damaged,
        cut;              /* records with times that cannot be; pieces of its file; untimed behind cut_at */
    struct gpu_lost lost; /* the latest that it told; graphs: launches without a record */
    uint32_t pid;
};

struct gpu_seen_card {
    uint32_t process;           /* ranks each call their card 0 */
    uint32_t warps, capability; /* most per multiprocessor; 0: not told. major << 8 | minor */
    uint32_t streams;           /* that kernels ran on */
    size_t first_op, n_ops;     /* in gpu_work.ops, once they are in order */
    uint64_t cut_at;            /* from here on an operation may have run that is not recorded; 0: none */
    struct gpu_card out;
    struct gpu_course course; /* filled where gpu_work.over_time is set */
};

struct gpu_work {
    VEC(struct gpu_op) ops;            /* by card, then start */
    VEC(struct gpu_host_call) calls;   /* by process, then id */
    VEC(struct gpu_host_state) states; /* by thread, then time; one more at the end that only counts */
    VEC(struct gpu_host_thread) threads;
    VEC(struct gpu_launched_in) in_range; /* by process, then id */
    struct gpu_tables tables;
    VEC(struct gpu_name) names; /* by their indices in the tables */
    VEC(uint16_t) lane_cards;   /* likewise of lanes: index of the card */
    VEC(struct gpu_open_range) ranges;
    VEC(struct gpu_seen_card) cards;
    VEC(struct gpu_origin_sum) origins;
    VEC(uint32_t) late;                     /* processes whose recording began while they ran */
    VEC(struct gpu_seen_process) processes; /* of all traces, one after the other */
    VEC(struct gpu_hole) holes;             /* by process, then start */
    VEC(struct gpu_untimed) untimed;
    VEC(struct gpu_copied) copied;
    VEC(uint32_t) call_names; /* indices of names */
    VEC(struct gpu_overhead) overheads;
    VEC(struct gpu_memory_event) memory;                        /* in the order of the file */
    VEC(struct gpu_window) windows;                             /* steps, by card, then time */
    struct map_u64 range_numbers, card_numbers, thread_numbers; /* gpu_key() -> index + 1 */
    struct map_u64 open_range; /* process << 32 | thread -> innermost, index + 1 */
    struct map_u64 held;       /* card << 48 ^ address -> index + 1 of the event that took it */
    struct map_u64 origin_places, origin_rows; /* gpu_origin.c */
    struct gpu_copy copies[32];
    struct gpu_profile *out;
    bool over_time;
    struct gpu_courses *courses; /* NULL: not asked for */
    tare_error *err;
};

/* All GPU records of the traces, joined: operations to calls, calls to ranges. Processes of later traces are numbered
 * on; every trace keeps its own time. */
tare_status gpu_work_gather(struct gpu_work *w, struct trace *const *traces, size_t n,
                            struct gpu_profile *out, tare_error *err);
/* Adds how often the thread (an index) was looked at within that time, by enum gpu_host_does. */
void gpu_work_looks(const struct gpu_work *w, uint32_t thread, uint64_t from, uint64_t to, uint64_t looks[]);
/* NULL: not recorded. The call with that number; the innermost range in which it was made. */
const struct gpu_host_call *gpu_work_call(const struct gpu_work *w, uint32_t process, uint32_t id);
const struct gpu_open_range *gpu_work_range(const struct gpu_work *w, uint32_t process, uint32_t id);
void gpu_work_release(struct gpu_work *w);
const char *gpu_copy_direction(uint64_t what); /* of COPY.what, as the document has it */
enum call_class gpu_call_class(const char *name);

/* gpu_sort.c. Stable. gpu_find: how many items come before `wanted`, looked for around the place `near`. */
typedef int gpu_compare_fn(const void *a, const void *b);
tare_status gpu_sort(void *items, size_t n, size_t size, gpu_compare_fn *compare, tare_error *err);
struct gpu_sorted {
    const void *items;
    size_t n, size;
    gpu_compare_fn *compare;
};
size_t gpu_find(const struct gpu_sorted *in, const void *wanted, size_t near);

/* Sums of what a damaged file may claim: they stop where a document ends. */
static inline void gpu_grow(uint64_t *sum, uint64_t v)
{
    *sum = *sum < INT64_MAX && v < INT64_MAX - *sum ? *sum + v : INT64_MAX;
}

/* gpu_origin.c: module and operator of each range; then of each kernel that was launched in one. */
tare_status gpu_work_origins(struct gpu_work *w);
tare_status gpu_origin_add(struct gpu_work *w, const struct gpu_op *op, const struct gpu_open_range *r);
bool gpu_origin_is_range(const struct gpu_work *w,
                         const struct gpu_open_range *r); /* not the program's own */

/* gpu_idle.c: busy and idle time of each device, by cause. */
tare_status gpu_work_idle(struct gpu_work *w);
tare_status gpu_idle_of(struct gpu_work *w, const struct gpu_op *ops, size_t n, struct gpu_card *out);
struct gpu_spread gpu_spread_of(uint64_t *v, size_t n); /* sorts them; none: not known */

/* gpu_facts.c: what the recording itself cost, by CUPTI's own account. */
tare_status gpu_work_self(struct gpu_work *w);

/* gpu_judge.c: what is said of steady state, and the findings. After all the others. `t`: with samples of the cards;
 * NULL: there are several, and which sampled a card is not known. */
tare_status gpu_work_judge(struct gpu_work *w, struct trace *t);

/* gpu_steps.c: of each device. */
tare_status gpu_work_steps(struct gpu_work *w);

/* gpu_sum.c: a trace with GPU records, or the reason why there is nothing to say; where `over_time` is set, the steps
 * that were found, to be told apart in idle times. */
tare_status gpu_require(const struct trace *t, tare_error *err);
tare_status gpu_work_courses(struct gpu_work *w);

/* Whether it changes what the process has from the driver: pieces of the driver's own pools do not, their size does. */
static inline bool gpu_memory_counts(const struct gpu_record *r)
{
    bool piece = r->MEMORY.what == GPU_POOL_PIECE || r->MEMORY.what == GPU_POOL_RETURN;
    return !piece && (r->MEMORY.kind == GPU_DEVICE_MEMORY || r->MEMORY.kind == GPU_MANAGED);
}
/* What a record takes; 0: it gives back, or tells more than any GPU has. */
static inline uint64_t gpu_memory_taken(const struct gpu_record *r)
{
    return r->MEMORY.what == GPU_FREED || r->MEMORY.bytes >= UINT64_C(1) << 44 ? 0 : r->MEMORY.bytes;
}

/* gpu_held.c: memory of each device over time, its peak, and who held it then. After steps. */
tare_status gpu_work_held(struct gpu_work *w);

/* gpu_missing.c: holes that are none are dropped, graphs without records counted. What else is missing of a process'
 * operations has no time: anywhere between its records it may have been at work. NULL: nothing is; else in words. */
void gpu_work_missing(struct gpu_work *w);
const char *gpu_work_doubt(const struct gpu_work *w, uint32_t process);

/* gpu_ranks.c: processes of a job beside each other; after idle and steps. */
tare_status gpu_work_ranks(struct gpu_work *w);

#endif
