/* SPDX-License-Identifier: MIT
 * memory_sum.h - what the memory records of a trace mean, process by process: bytes held over time, the peak and who
 * held it, what is still held at the end, what was freed at once, which sites grow. A site is a stack. Exact where
 * every allocation was recorded, else estimates, each with an interval: docs/memory.md. Pure functions of a trace. */
#ifndef ANALYZE_MEMORY_SUM_H
#define ANALYZE_MEMORY_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/watch/growth.h"
#include "core/arena.h"
#include "core/error.h"
#include "core/interval.h"
#include "trace/memory.h"

/* A sum of sizes, each weighted by 1 / p, and its variance: the sum of s^2 (1 - p) / p^2. 0 where all is recorded. */
struct memory_bytes {
    double sum, variance;
};
struct interval memory_interval(struct memory_bytes b); /* 95 %; never below 0 */

/* Freed within this time: churn. */
#define MEMORY_CHURN_NS UINT64_C(1000000)
/* Lifetimes below 1 us, 10 us, .. 10 s, and longer. */
enum { MEMORY_LIFETIMES = 9, MEMORY_MOMENTS = 96 };

enum { MEMORY_FRAMES_MOST = 256 }; /* of a walk to the outermost: who lies may have made a circle */
struct memory_frame_named {
    const struct memory_frame_named *caller; /* NULL: the outermost */
    enum memory_frame kind;
    const char *name; /* Python: the function; a scope; why frames are missing. Native: NULL */
    const char *file; /* Python: its file. Native: the path of its module. NULL: unknown */
    uint64_t line;    /* Python; 0: unknown */
    uint64_t offset;  /* native: in the file, or the address where the module is unknown */
};

struct memory_site {
    const struct memory_frame_named *frame; /* the innermost; NULL: the stack was lost */
    struct memory_bytes at_peak, at_end, allocated, churn;
    double allocations, churned; /* how many; estimates as well */
    bool judged;          /* else it never held enough to be called growing, or the record is too short */
    struct growth growth; /* per second */
};

struct memory_module { /* of innermost frames: a library, or a file of Python */
    const char *name;
    struct memory_bytes at_peak, at_end, allocated;
};

struct memory_process {
    uint32_t pid;
    bool started;   /* how it recorded was told; else nothing was scaled up */
    uint64_t every; /* 0: every allocation */
    uint64_t from_ns, to_ns, peak_ns;
    struct memory_bytes peak, at_end, allocated, churn;
    double allocations, churned, lifetimes[MEMORY_LIFETIMES];
    uint64_t noted;                 /* allocations and mappings in the record */
    uint64_t resident, resident_ns; /* read nearest to the peak, and when; 0: was not told */
    uint64_t lost_records, lost_stacks, lost_samples, unseen_frees;
    const char **notes;
    size_t n_notes;
    double moments[MEMORY_MOMENTS]; /* bytes held at equal steps from from_ns to to_ns */
    struct memory_site *sites;      /* most bytes at the peak first */
    size_t n_sites;
    struct memory_module *modules; /* likewise */
    size_t n_modules;
};

struct memory_profile {
    struct arena arena;
    struct memory_process *processes; /* the highest peak first */
    size_t n;
};

/* TARE_INVALID: the trace has no record of memory. Whatever it returns, release it. */
struct trace;
tare_status memory_sum(struct trace *t, struct memory_profile *out, tare_error *err);
void memory_profile_release(struct memory_profile *p);
bool memory_site_grows(const struct memory_site *s);

#endif
