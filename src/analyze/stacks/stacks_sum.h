/* SPDX-License-Identifier: MIT
 * stacks_sum.h - what sampled stacks mean: which functions the time went to, own and with all they called, each share
 * with its interval. A pure function of a trace. */
#ifndef ANALYZE_STACKS_SUM_H
#define ANALYZE_STACKS_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"
#include "core/interval.h"
#include "trace/memory.h"

enum stacks_time {
    STACKS_WALL, /* all of it */
    STACKS_CPU,  /* on a processor */
    STACKS_GIL,  /* while holding the interpreter's lock */
    STACKS_IDLE  /* neither on a processor nor waiting for one */
};

struct stacks_wish {
    enum stacks_time time;
    bool no_native;     /* native code counts as part of the function of Python that called it */
    bool lines;         /* a row for each line, not for each function */
    const char *thread; /* its number or name; NULL: all */
};

struct stacks_function {
    const char *name,
        *file; /* of a native function its module; with `lines` its source, where that is known */
    bool native;
    uint64_t line;       /* with `lines`; else 0 */
    uint64_t first_line; /* of the function; 0: unknown */
    uint64_t looks;      /* with it on the stack */
    double own_ns, total_ns;
    struct interval own, total; /* shares of all, 95 % */
};

/* Paths: a function with all its callers. The first is the root of all. */
struct stacks_node {
    size_t parent, function;
    double own_ns, total_ns;
    uint64_t own_looks, looks;
};

struct stacks_profile {
    struct arena arena;
    double sum_ns, wall_ns, cpu_ns; /* of what was asked for; of all threads together */
    double n_eff;                   /* independent samples that they are worth */
    uint64_t processes, threads, noted;
    double waits_ns[STACK_DOINGS];     /* by what threads did at the look */
    struct memory_record rate, held;   /* the last RATE and HELD; kind 0: none */
    struct memory_record ends;         /* .. and NATIVE_ENDS */
    double native_ns;                  /* of sum_ns: in native functions; 0 with no_native */
    struct stacks_function *functions; /* most own time first */
    size_t n;
    struct stacks_node *nodes; /* parents first; `function` is a place in `functions` */
    size_t n_nodes;
};

/* TARE_INVALID: the trace has no stacks, or not that thread. Whatever it returns, release it. */
struct trace;
tare_status stacks_sum(struct trace *t, const struct stacks_wish *wish, struct stacks_profile *out,
                       tare_error *err);
void stacks_profile_release(struct stacks_profile *p);

#endif
