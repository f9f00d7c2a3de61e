/* SPDX-License-Identifier: MIT
 * sweep.h - lists of values -> the cases of a bench: every combination, named by what varies. */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include "bench/bench.h"
#include "cli/opt.h"

struct sweep_ints {
    VEC(int64_t) values; /* empty: not asked for */
};

struct sweep_dim {
    char *name;
    struct sweep_ints values;
};

struct sweep_subject {
    struct subject *subject;
    const char *variant, *runtime; /* names; NULL: there is only one */
};

struct sweep {
    /* asked for */
    struct sweep_ints batch, seq, threads;
    VEC(struct sweep_dim) dims;
    VEC(char *) providers;
    VEC(struct sweep_subject) subjects; /* borrowed */
    unsigned workers;
    uint64_t seed;
    /* made by sweep_build */
    VEC(struct bench_case) cases;
    VEC(char *) names;
    VEC(struct dim_value *) dim_values;
};
#define SWEEP_INIT {.workers = 1}

/* For OPT_CALLBACK rows: "1,4,16" into a struct sweep_ints, "NAME=1,4" into a struct sweep, "cpu,cuda" likewise. */
tare_status sweep_parse_ints(void *ints, const char *text, tare_error *err);
tare_status sweep_parse_dim(void *sweep, const char *text, tare_error *err);
tare_status sweep_parse_providers(void *sweep, const char *text, tare_error *err);

/* Fill `cases`: subjects, then providers, threads, dims, seq and, fastest, batch. */
tare_status sweep_build(struct sweep *s, tare_error *err);
void sweep_release(struct sweep *s);

#endif
