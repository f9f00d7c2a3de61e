/* SPDX-License-Identifier: MIT
 * sampler.h - the stacks of a process and of the children it has, again and again, into a trace. All from outside;
 * threads that did not run since the last look cost one small read. The rate is as asked, or lower where a stated share
 * of a processor would not suffice. */
#ifndef SAMPLE_SAMPLER_H
#define SAMPLE_SAMPLER_H

#include "sample/thread_stack.h"
#include "trace/stacks_write.h"

#define STACKS_HZ 99.0
#define STACKS_BUDGET 0.5 /* percent of a processor */

struct sampler_options {
    pid_t pid;
    const char *trace;
    double hz;
    double budget;        /* share of one processor that looking may take */
    uint64_t duration_ns; /* 0: until it ends, or `stop` */
    bool consistent;      /* threads on a processor are held still while they are read */
    bool native;  /* also native frames, of any process; threads on a processor are held still for it */
    bool patient; /* it need not be Python: it may come to be, or have children that are */
    bool (*stop)(void *ctx);
    void *stop_ctx;
};

struct sampler_totals {
    uint64_t rounds, samples; /* samples: stacks that were read */
    uint64_t moved, broken;   /* of them: the thread went on under the read; a frame was none */
    uint64_t late;            /* rounds that were due but could not be held */
    uint64_t cost_ns, wall_ns;
    struct pauses held;           /* with `consistent` or `native`; its list is not kept */
    uint64_t native[NATIVE_ENDS]; /* stacks with native frames, by how far they came */
    uint64_t unread,
        uneven; /* threads whose native frames could not be read; stacks whose parts do not match */
    uint64_t processes, threads; /* ever seen */
    uint64_t pythons;            /* of the processes: whose frames could be read */
    tare_error no_python;        /* why those of the first could not be, at the last try */
};

/* Until the process ends, the time is over or it is stopped. TARE_UNSUPPORTED and others as py_open(). */
tare_status sampler_run(const struct sampler_options *o, struct sampler_totals *out, tare_error *err);

#endif
