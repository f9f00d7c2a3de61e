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

/* A sum of sizes, each weighted by 1 / p, and its variance: the sum of s^2 (1 - p) / p^2. 0 where all is recorded. What
 * was seen is the sum of the sizes themselves: the truth is not below it. */
struct memory_bytes {
    double sum, variance, seen;
};
struct interval memory_interval(struct memory_bytes b); /* 95 %; never below what was seen */
void memory_bytes_add(struct memory_bytes *to, struct memory_bytes b);

/* Freed within this time: churn. */
#define MEMORY_CHURN_NS UINT64_C(1000000)
/* Lifetimes below 1 us, 10 us, .. 10 s, and longer. */
enum { MEMORY_LIFETIMES = 9, MEMORY_MOMENTS = 96 };
/* Blocks of at most 64 bytes, 512, 4 KiB, .. 16 MiB, and larger. */
enum { MEMORY_SIZES = 8 };
#define MEMORY_SIZE_MOST(i) (UINT64_C(64) << 3 * (i)) /* of all but the last */

enum { MEMORY_FRAMES_MOST = 256 }; /* of a walk to the outermost: who lies may have made a circle */
struct memory_frame_named {
    const struct memory_frame_named *caller; /* NULL: the outermost */
    enum memory_frame kind;
    const char
        *name; /* Python: the function; a scope; why frames are missing. Native: NULL until it is looked up */
    const char *file;              /* Python: its file. Native: the path of its module. NULL: unknown */
    uint64_t line;                 /* Python, native with a source; 0: unknown */
    uint64_t first_line;           /* Python: of the function; 0: unknown */
    uint64_t offset;               /* native: in the file, or the address where the module is unknown */
    const char *build_id, *source; /* native: of the module, "-" where it has none; where the line is */
    bool inlined;                  /* native: into its caller, at the same offset */
};

/* Blocks of a site that were larger one after another, as of a list or an array that grows: the longest row. */
struct memory_rise {
    uint64_t from, to; /* bytes of the first block and of the last */
    uint32_t steps;
};

struct memory_site {
    const struct memory_frame_named *frame; /* the innermost; NULL: the stack was lost */
    struct memory_bytes at_peak, at_end, allocated, churn;
    struct memory_bytes
        passing; /* of churn and the like: large blocks that lived about as long as a copy of them takes */
    double allocations, churned, passed; /* how many; estimates as well */
    double lifetimes[MEMORY_LIFETIMES];  /* of what was freed */
    uint64_t largest;                    /* block that was noted */
    struct memory_rise rise;
    double *series;       /* held at each moment; NULL: never enough to matter */
    bool judged;          /* else it never held enough to be called growing, or the record is too short */
    struct growth growth; /* per second */
};

/* What the kernel and malloc told nearest to the peak, and what was held by then. */
struct memory_heap {
    bool known;
    uint64_t at_ns, resident, file, held, used, mapped, top;
    struct memory_bytes program; /* estimated: held by the program through malloc and Python's allocator */
    /* Mapped by the program itself; arenas of Python's allocator; mapped by a malloc that is not libc's. */
    uint64_t maps, arenas, pools;
};

struct memory_process {
    uint32_t pid;
    const char *command;
    bool started;   /* how it recorded was told; else nothing was scaled up */
    uint64_t every; /* 0: every allocation */
    uint64_t from_ns, to_ns, peak_ns;
    struct memory_bytes peak, at_end, allocated, churn;
    double allocations, churned, lifetimes[MEMORY_LIFETIMES], sizes[MEMORY_SIZES];
    uint64_t largest;        /* block that was noted */
    uint64_t noted;          /* allocations and mappings in the record */
    struct memory_heap heap; /* read nearest to the peak */
    /* Where malloc kept most that the program had freed, for longer than a moment; where most were pages of files. */
    struct memory_heap idle, cached;
    uint64_t threads; /* that are named in the record */
    bool closed;      /* else it was killed, or was still running when the trace was read */
    uint64_t lost_records, lost_stacks, lost_samples, unseen_frees;
    const char **notes;
    size_t n_notes;
    double moments[MEMORY_MOMENTS]; /* bytes held at equal steps from from_ns to to_ns */
    struct memory_site *sites;      /* most bytes at the peak first */
    size_t n_sites;
};

struct memory_profile {
    struct arena arena;
    struct memory_process *processes; /* the highest peak first */
    size_t n;
};

/* TARE_INVALID: the trace has no record of memory. Whatever it returns, release it. */
struct trace;
tare_status memory_sum(struct trace *t, struct memory_profile *out, tare_error *err);
/* Of these times alone, as if there were no others: what is older and freed then does not count, what is kept is held
 * at the end of the last. In the trace's time; in order, apart. */
struct memory_window {
    uint64_t from_ns, to_ns;
};
struct memory_windows {
    const struct memory_window *at;
    size_t n;
};
tare_status memory_sum_within(struct trace *t, struct memory_windows only, struct memory_profile *out,
                              tare_error *err);
void memory_profile_release(struct memory_profile *p);

/* memory_symbols.c: names of native functions, as far as this machine has the files that were recorded; what it has not
 * is said in the notes. Inlined functions become frames. */
tare_status memory_profile_symbols(struct memory_profile *p, tare_error *err);
bool memory_site_grows(const struct memory_site *s);
/* Does its course grow? For a site, and for what is summed up of several. */
tare_status memory_site_judge(const struct memory_process *p, struct memory_site *s, tare_error *err);
double memory_moment(const struct memory_process *p, size_t i); /* when: seconds of the trace */

#endif
