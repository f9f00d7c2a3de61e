/* SPDX-License-Identifier: MIT
 * sampler.h - one thread of the process that reads the probes again and again, for all who watch: what
 * happened while a block of code ran is folded into that block's watch, in memory that does not grow with
 * time. The thread never takes the GIL, sleeps while nobody watches, and is started anew after a fork.
 * Knows nothing of Python. */
#ifndef PYTHON_SAMPLER_H
#define PYTHON_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "probe/probe.h"

/* ---- what is watched ---- */

/* Probe, and with what it is read: with the memory of the process, with that of all it started, or with the
 * machine. "self" is no probe of src/probe but one file: it costs a tenth of the cheapest of them. "sharing" goes
 * with "process": memory split by sharing as often as a 200th of the time allows, not a 5,000th. */
#define SAMPLER_PROBES(X) \
    X(self, FAST) X(sharing, TREE) X(gpu, FAST) X(process, TREE) X(system, SLOW) X(cgroup, SLOW) \
    X(disk, SLOW) X(net, SLOW) X(temperature, SLOW) X(energy, SLOW)
enum sampler_probe {
#define X(name, pace) SAMPLER_##name,
    SAMPLER_PROBES(X)
#undef X
        SAMPLER_PROBE_COUNT
};
enum sampler_pace { SAMPLER_FAST, SAMPLER_TREE, SAMPLER_SLOW, SAMPLER_PACES };

/* Quantity: its name, the probe that tells it, its metric, and how the series of several labels become one. */
#define SAMPLER_QUANTITIES(X)                                    \
    X(TREE_RSS, process, PROC_RSS, WHOLE)                        \
    X(PSS, process, PROC_PSS, WHOLE)                             \
    X(SWAP, process, PROC_SWAP, WHOLE)                           \
    X(CPU_BUSY, system, CPU_BUSY, WHOLE)                         \
    X(CPU_IOWAIT, system, CPU_IOWAIT, WHOLE)                     \
    X(CPU_STEAL, system, CPU_STEAL, WHOLE)                       \
    X(CPU_COUNT, system, CPU_COUNT, WHOLE)                       \
    X(MEM_TOTAL, system, MEM_TOTAL, WHOLE)                       \
    X(MEM_AVAILABLE, system, MEM_AVAILABLE, WHOLE)               \
    X(LOAD, system, LOAD1, WHOLE)                                \
    X(PRESSURE_CPU, system, PRESSURE_CPU, WHOLE)                 \
    X(PRESSURE_MEMORY, system, PRESSURE_MEMORY, WHOLE)           \
    X(PRESSURE_IO, system, PRESSURE_IO, WHOLE)                   \
    X(THROTTLED, cgroup, CG_THROTTLED, WHOLE)                    \
    X(GROUP_MEMORY, cgroup, CG_MEMORY, WHOLE)                    \
    X(GROUP_LIMIT, cgroup, CG_MEMORY_LIMIT, WHOLE)               \
    X(DISK_READ, disk, DISK_READ, WHOLE)                         \
    X(DISK_WRITE, disk, DISK_WRITE, WHOLE)                       \
    X(DISK_BUSY, disk, DISK_BUSY, MOST)                          \
    X(NET_RX, net, NET_RX, WHOLE)                                \
    X(NET_TX, net, NET_TX, WHOLE)                                \
    X(TEMPERATURE, temperature, TEMPERATURE, MOST)               \
    X(ENERGY, energy, ENERGY, WHOLE)                             \
    X(GPU_UTIL, gpu, GPU_UTIL, MOST)                             \
    X(GPU_MEM_USED, gpu, GPU_MEM_USED, SUM)                      \
    X(GPU_MEM_PROCESS, gpu, GPU_MEM_PROCESS, SUM)                \
    X(GPU_POWER, gpu, GPU_POWER, SUM)                            \
    X(GPU_ENERGY, gpu, GPU_ENERGY, SUM)                          \
    X(GPU_TEMPERATURE, gpu, GPU_TEMP, MOST)                      \
    X(GPU_SM_ACTIVE, gpu, GPU_SM_ACTIVE, MOST)

enum sampler_quantity {
#define X(id, probe, metric, over) QUANTITY_##id,
    SAMPLER_QUANTITIES(X)
#undef X
    /* not a probe's: */
    QUANTITY_RSS,       /* of this process alone, bytes */
    QUANTITY_GPU_SHARE, /* memory in use over memory there is, of the fullest card */
    QUANTITY_COUNT
};
const char *sampler_name(enum sampler_quantity q); /* "process.memory.rss", as in trace/metric.h */
enum sampler_probe sampler_probe_of(enum sampler_quantity q);
extern const char *const sampler_probe_names[SAMPLER_PROBE_COUNT];
extern const enum sampler_pace sampler_probe_pace[SAMPLER_PROBE_COUNT];

/* Bytes in RAM of this process now, NAN when the kernel does not tell, and the most since it began. */
struct self_memory {
    double rss, most;
};
struct self_memory self_memory(void);

/* ---- one moment, and what many of them come to ---- */

struct moment {
    uint64_t at_ns[SAMPLER_PROBE_COUNT]; /* of each probe; 0: not read this time */
    double value[QUANTITY_COUNT];        /* NAN: unknown, or not read this time */
};
struct sampler_slot { /* a probe; kept open */
    struct probes probes;
    bool open, tried;
    char why[200]; /* it could not be opened; "" else */
};
/* From the slots of `read`, a bit each. */
void moment_take(struct moment *m, const struct sampler_slot *slots, unsigned read);

struct fold { /* one quantity in one block */
    uint64_t n, first_ns, last_ns, before_ns, after_ns;
    double first, last, min, max, sum;
    double before, after; /* the samples around the block; NAN: none */
};
void fold_begin(struct fold *f, double before, uint64_t before_ns);
void fold_add(struct fold *f, double value, uint64_t at_ns);

struct fold_result {
    uint64_t n;            /* samples within the block; 0: what follows is of those around it */
    double min, max, mean; /* NAN: nothing is known */
    double delta, span_s;  /* from the first to the last; where fewer than two were within, of those around */
};
struct fold_result fold_result(const struct fold *f);

enum { COURSE_POINTS = 512 };
/* A series that fits: when it is full every second point goes, and from then on every second one comes. */
struct course {
    double at_s[COURSE_POINTS], value[COURSE_POINTS];
    uint64_t stride, skipped;
    size_t n;
};
void course_add(struct course *c, double at_s, double value);

/* ---- watching ---- */

struct sampler_demand {
    unsigned wants; /* a bit per probe */
    double interval_s[SAMPLER_PACES];
};

enum watch_state { WATCH_OPEN, WATCH_CLOSING, WATCH_DONE };
struct watch {
    struct watch *next, *before; /* in the sampler's list, unless done */
    struct sampler_demand demand;
    enum watch_state state;
    unsigned left; /* paces of which a sample after the end has not come yet, a bit each */
    uint64_t begin_ns, end_ns;
    struct fold folds[QUANTITY_COUNT];
    struct course course; /* of QUANTITY_RSS */
};

tare_status sampler_begin(struct watch *w, const struct sampler_demand *d, tare_error *err);
void sampler_end(struct watch *w); /* the closing samples may come later; twice is fine */
/* `wait` for them, at most a second. Done afterwards, whatever came. */
void sampler_settle(struct watch *w, bool wait);
void sampler_resume(void); /* in the child of a fork: starts the thread again if anybody watches */

/* A sample of `wants` at most `fresh_s` old, taken now if need be; waits for it, at most a second. */
struct sampler_now {
    struct moment now, earlier; /* earlier: of the same quantity the sample before, for rates */
    uint64_t now_ns[QUANTITY_COUNT], earlier_ns[QUANTITY_COUNT];
};
tare_status sampler_look(struct sampler_now *out, const struct sampler_demand *d, double fresh_s,
                         tare_error *err);

struct sampler_cost {
    uint64_t samples;
    double cpu_s; /* of the thread, since it was started */
    bool running, parked;
};
struct sampler_cost sampler_cost(void);
/* What cannot be seen and why: "probe: what: why", a line each. */
void sampler_blind(struct buf *out);
void sampler_stop(void); /* joins the thread; whoever watches next starts it again */

#endif
