/* SPDX-License-Identifier: MIT
 * gpu_sum.h - a trace, or those of a job -> the document about its GPUs. */
#ifndef ANALYZE_GPU_SUM_H
#define ANALYZE_GPU_SUM_H

#include "core/vec.h"
#include "run/gpu_profile.h"
#include "trace/reader.h"

/* Of one trace, or of several, such as those of the hosts of one job. TARE_FORMAT when one has nothing of a GPU.
 * Nothing to release after a failure. */
tare_status gpu_sum(struct trace *const *traces, size_t n, struct gpu_profile *out, tare_error *err);

/* ---- over time: what a page draws and the document has no room for ---- */

enum { GPU_CAUSES = 11 };
const char *gpu_cause_name(unsigned cause); /* as the document has it */

struct gpu_step { /* of gpu_card.steps; busy and idle times make its length */
    uint64_t start, end, busy;
    uint64_t idle[GPU_CAUSES];
};

struct gpu_gap { /* in which the card did nothing; of several causes the one with the most of it */
    uint64_t start;
    uint64_t ns : 48, cause : 8, percent : 8; /* GPU_CAUSES: not recorded; what the cause has of it */
};

struct gpu_course { /* of one card, as in gpu_profile.devices */
    uint32_t number, pid;
    uint32_t process; /* of all traces, one after the other */
    bool doubt;       /* records are missing: busy and idle times of its steps are not known */
    VEC(struct gpu_step) steps;
    VEC(struct gpu_gap) gaps; /* in order; filled where gpu_courses.with_gaps is set and there is no doubt */
};

struct
    gpu_wait { /* of a rank in a collective, until the one that came last was there; times are of its trace */
    uint64_t start, end;
    uint32_t rank, last; /* indices of gpu_job.ranks */
};

struct gpu_rank_place { /* of gpu_job.ranks, one each */
    uint32_t process;   /* of all traces, one after the other */
    int64_t shift;      /* ns: times of its trace + this are those of the first rank's */
};

struct gpu_courses {
    bool with_gaps; /* asked for: 16 bytes each, and there may be one a kernel */
    VEC(struct gpu_course) cards;
    VEC(struct gpu_rank_place) ranks;
    VEC(struct gpu_wait) waits;
};

/* gpu_sum(), and the courses of the cards that worked. */
tare_status gpu_sum_over_time(struct trace *const *traces, size_t n, struct gpu_profile *out,
                              struct gpu_courses *courses, tare_error *err);
void gpu_courses_release(struct gpu_courses *c);

#endif
