/* SPDX-License-Identifier: MIT
 * joined.h - the ranks of a job, in one trace or in several, as one source of events: times on one axis, processes
 * called by their rank, and what each waited for the others. */
#ifndef REPORT_JOINED_H
#define REPORT_JOINED_H

#include "analyze/gpu/gpu_sum.h"
#include "core/arena.h"
#include "report/trace/source.h"

struct joined_part {
    struct trace *t;
    int64_t shift;                      /* ns: added to its times; none is below 0 */
    uint32_t sites, processes, threads; /* of those before it */
};

struct joined {
    struct arena memory;
    struct event_source source;
    struct joined_part *parts;
    size_t n;
    struct trace_process *processes; /* rank in the command; a number that two hosts gave is made another */
    struct trace_thread *threads;
    struct trace_loss loss;
    struct source_idle *idle;
};

/* Are these the ranks of one job? Each tells its rank, of as many as the others say, and no rank is in two of them. */
bool joined_is_job(struct trace *const *traces, size_t n);

/* Of what gpu_sum_over_time() said of the same traces; both are borrowed, the courses only where they have gaps.
 * Nothing to release after a failure. */
struct joined_of {
    struct trace *const *traces;
    size_t n;
    const struct gpu_job *job;
    const struct gpu_courses *courses;
};
tare_status joined_open(struct joined *out, const struct joined_of *of, tare_error *err);
void joined_release(struct joined *j);

#endif
