/* SPDX-License-Identifier: MIT
 * compare_gpu_row.h - one row of compare_gpu.c: numbers of each run of both sides, a number a step -> a verdict. */
#ifndef ANALYZE_COMPARE_GPU_ROW_H
#define ANALYZE_COMPARE_GPU_ROW_H

#include "analyze/compare/compare_gpu.h"
#include "analyze/compare/compare_saved.h"
#include "core/vec.h"

struct samples {
    const double *x;
    size_t n;
};

struct gpu_side { /* the card of a case in each run that has it, in order of time */
    const struct gpu_series_card **card;
    struct compare_moment *at; /* when the run was made; y is filled for each row */
    size_t n;
};

struct gpu_row_runs { /* the runs of a row that is not judged yet */
    struct comparison_metric *made;
    struct compare_values base, new_;
    struct paired_rule rule;
    bool kernel; /* that waits for no other rank */
};

struct comparing {
    struct comparison *c;
    struct comparison_case *to;
    const struct compare_gpu *in;
    struct gpu_side side[PAIR_SIDES];
    bool between; /* runs judge, else steps */
    bool doubt; /* of the card: records are missing on one side, so that single runs are compared, no sums */
    VEC(struct gpu_row_runs) rows;          /* of the case */
    VEC(struct comparison_metric *) judged; /* of all cases, with the two p values of each */
    VEC(double) slower;
    VEC(double) faster;
    tare_error *err;
};

struct gpu_row {
    const char *name, *measure;                /* measure NULL: it has the row's name */
    const struct samples *samples[PAIR_SIDES]; /* of each run */
    bool gate;
    bool on_gpu; /* the GPU alone decides it */
    bool steady; /* .. and it is one kernel, that waits for no other rank */
    bool whole;  /* one number a run */
    struct comparison_metric *made;
};

tare_status gpu_row_add(struct comparing *k, struct gpu_row *r);
/* An empty one; NULL: no memory. What --fail-on says of a measure: its role, and how large a change counts as none. */
struct comparison_metric *gpu_row_new(struct comparing *k, const char *name, const char *role);
const char *gpu_row_role(const struct comparing *k, const char *measure, bool gate, struct paired_rule *rule);
/* Those of a case that runs judge. */
tare_status gpu_rows_judge(struct comparing *k);
/* False alarms are held over all rows together, for worse and for better (Holm). */
void gpu_rows_hold(struct comparing *k);

#endif
