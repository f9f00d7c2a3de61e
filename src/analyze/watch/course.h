/* SPDX-License-Identifier: MIT
 * course.h - how the quantities that phases and diagnosis rest on went over a run: steps in time, each with the mean of
 * what was known. Bounded whatever the length of the run: when full, neighbours are joined and steps become twice as
 * long. Fed live, sample by sample, or from what a trace kept. Pure. */
#ifndef ANALYZE_COURSE_H
#define ANALYZE_COURSE_H

#include "analyze/watch/derive.h"
#include "core/vec.h"

#define COURSE_MAP(X)                          \
    X(PROCESS_CPU, "process.cpu")              \
    X(PROCESS_SHARE, "process.cpu.share")      \
    X(WAITING, "process.waiting")              \
    X(RSS, "process.memory.rss")               \
    X(IO, "process.io")                        \
    X(READY, "process.ready")                  \
    X(FAULTS_MAJOR, "process.faults.major")    \
    X(CPU, "cpu")                              \
    X(CPUS, "cpu.count")                       \
    X(STEAL, "cpu.steal.share")                \
    X(THROTTLED, "throttled")                  \
    X(MEMORY, "memory")                        \
    X(GROUP_MEMORY, "cgroup.memory.share")     \
    X(SWAP, "swap")                            \
    X(PRESSURE_MEMORY, "pressure.memory")      \
    X(PRESSURE_IO, "pressure.io")              \
    X(GROUP_PRESSURE_IO, "cgroup.pressure.io") \
    X(DISK_BUSY, "disk.busy")                  \
    X(NET, "net")                              \
    X(GPU, "gpu")                              \
    X(GPU_PROCESS, "gpu.memory.process")       \
    X(GPU_DRAM, "gpu.dram.active")             \
    X(GPU_TENSOR, "gpu.tensor.active")         \
    X(GPU_THROTTLED, "gpu.throttled")

enum course_quantity {
#define X(id, name) COURSE_##id,
    COURSE_MAP(X)
#undef X
        COURSE_COUNT
};
extern const char *const course_names[COURSE_COUNT];

enum { COURSE_STEPS_MAX = 4096 };

struct course_step {
    uint64_t start_ns, end_ns;
    double value[COURSE_COUNT]; /* NAN: unknown */
};

struct course {
    uint64_t start_ns, last_ns; /* of what was fed; 0: nothing yet */
    VEC(struct course_step) steps;
    size_t index[COURSE_COUNT]; /* of the quantities, once something was fed */
    unsigned joined, pending;   /* samples in a step; in the last one so far */
};
#define COURSE_INIT {0, 0, VEC_INIT, {0}, 1, 0}

void course_release(struct course *c);
/* The first sample only marks the start. */
tare_status course_feed(struct course *c, const struct deriver *d, uint64_t at_ns, tare_error *err);
/* One moment of what a trace kept, as a sample. */
tare_status course_moment(const struct samples *s, size_t moment, struct sample *out, tare_error *err);

/* ---- asking; steps are [from, to) ---- */

/* From the start of the run to the start of a step; step n: to the end. */
double course_seconds(const struct course *c, size_t step);
double course_mean(const struct course *c, enum course_quantity q, size_t from, size_t to); /* NAN: unknown */

struct course_condition {
    enum course_quantity quantity;
    char op; /* '>' or '<'; 0: none, always holds */
    double threshold;
};
struct course_span {
    double share;    /* of the whole time */
    size_t from, to; /* the longest stretch of it */
};
/* When all n hold at the same time; unknown does not hold. */
struct course_span course_when(const struct course *c, const struct course_condition *all, size_t n);

#endif
