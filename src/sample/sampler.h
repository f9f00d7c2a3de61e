/* SPDX-License-Identifier: MIT
 * sampler.h - the stacks of a process and of the children it has, again and again, into a trace. All from outside;
 * threads that did not run since the last look cost one small read. The rate is as asked, or lower where a stated share
 * of a processor would not suffice. */
#ifndef SAMPLE_SAMPLER_H
#define SAMPLE_SAMPLER_H

#include "sample/py_process.h"
#include "sample/thread_look.h"
#include "trace/stacks_write.h"

struct sampler_options {
    pid_t pid;
    const char *trace;
    double hz;
    double budget;        /* share of one processor that looking may take */
    uint64_t duration_ns; /* 0: until it ends, or `stop` */
    bool (*stop)(void);
};

struct sampler_totals {
    uint64_t rounds, samples; /* samples: stacks that were read */
    uint64_t moved, broken;   /* of them: the thread went on under the read; a frame was none */
    uint64_t late;            /* rounds that were due but could not be held */
    uint64_t cost_ns, wall_ns;
    uint64_t processes, threads; /* ever seen */
};

/* Until the process ends, the time is over or it is stopped. TARE_UNSUPPORTED and others as py_open(). */
tare_status sampler_run(const struct sampler_options *o, struct sampler_totals *out, tare_error *err);

#endif
