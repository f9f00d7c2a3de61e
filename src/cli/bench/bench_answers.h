/* SPDX-License-Identifier: MIT
 * bench_answers.h - accuracy of a service: each answer against what --expect has for its request, as answers come. None
 * of them is kept, but for how the first wrong ones look. */
#ifndef CLI_BENCH_ANSWERS_H
#define CLI_BENCH_ANSWERS_H

#include "analyze/judge/accuracy.h"
#include "load/json_expect.h"
#include "subject/kserve_load.h"

struct bench_args;
struct bench_expected;

/* A tensor as rows along its first axis. Owned: mem_free(v). */
struct bench_rows {
    double *v;
    size_t rows, columns;
};
tare_status bench_rows_of(struct bench_rows *out, const struct tensor *t, tare_error *err);
/* What array `t` wants of this output, and by which metric. `want` is the caller's to release, on failure too. */
struct bench_wanted {
    struct expected want;
    enum accuracy_metric metric;
};
tare_status bench_want(const struct bench_args *a, const struct tensor *t, const struct tensor *output,
                       struct bench_wanted *out, tare_error *err);

/* What is compared: the value of JSON that the lines speak of, or an output of KServe. */
struct answers_part {
    const struct tensor *array; /* NULL: the lines */
    struct expected own;        /* made of the array */
    const struct expected *want;
    struct accuracy_tally tally;
    bool is_open; /* the metric hangs on the first answer's type */
};

enum { ANSWERS_SHOWN = 3 };
struct answers_wrong {
    uint64_t n;
    double most;                    /* loss of the worst */
    char shown[ANSWERS_SHOWN][200]; /* the first ones; of metrics without right and wrong the worst */
};

/* What became of the window of one case. */
struct answers_case {
    size_t at;
    struct accuracy_result result;
    enum accuracy_metric metric;
    const char *output;
    struct answers_wrong wrong;
};

struct bench_answers {
    const struct bench_args *a;
    const struct bench_expected *given;
    struct json_expect *json; /* what else must stand there; may be empty */
    VEC(struct answers_part) parts;
    struct answers_wrong wrong; /* of the window under way */
    VEC(struct answers_case) cases;
    char why[256];
    bool no_memory;
};

/* TARE_INVALID: what is expected does not go with what is asked. `inputs`: lines of requests; 0: all are the same.
 * Always release. */
tare_status bench_answers_open(struct bench_answers *x, size_t inputs, tare_error *err);
void bench_answers_release(struct bench_answers *x);
struct load_reader bench_answers_reader(struct bench_answers *x); /* of JSON */
struct kserve_look bench_answers_look(struct bench_answers *x);   /* of KServe */
void bench_answers_done(void *x, size_t at);                      /* the window of that case is over */
tare_status bench_answers_record(const struct bench_answers *x, struct run *run, tare_error *err);

#endif
