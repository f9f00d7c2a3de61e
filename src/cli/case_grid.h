/* SPDX-License-Identifier: MIT
 * case_grid.h - lists of values -> the cases of a bench: every combination, named by what varies. */
#ifndef CLI_CASE_GRID_H
#define CLI_CASE_GRID_H

#include "bench/bench.h"
#include "cli/opt.h"
#include "core/arena.h"

struct grid_ints {
    VEC(int64_t) values; /* empty: not asked for */
};

struct grid_dim {
    const char *name;
    struct grid_ints values;
};

struct grid_subject {
    struct subject *subject;
    const char *variant, *runtime; /* names; NULL: there is only one */
};

struct grid { /* what was asked for */
    struct grid_ints batch, seq, threads;
    VEC(struct grid_dim) dims;
    VEC(const char *) providers;
    struct arena arena; /* of names */
    unsigned workers;
    uint64_t seed;
};
#define GRID_INIT {.workers = 1}
void grid_release(struct grid *s);

struct grid_cases { /* what that makes */
    VEC(struct bench_case) cases;
    struct arena arena; /* of their names and dimensions */
};
void grid_cases_release(struct grid_cases *c);

/* For OPT_CALLBACK rows: "1,4,16" into a struct grid_ints, "NAME=1,4" into a struct grid, "cpu,cuda" likewise. */
tare_status grid_parse_ints(void *ints, const char *text, tare_error *err);
tare_status grid_parse_dim(void *grid, const char *text, tare_error *err);
tare_status grid_parse_providers(void *grid, const char *text, tare_error *err);

/* Every combination of `n` subjects, providers, threads, dims, seq and, fastest, batch. Borrows from both; release the
 * cases whatever the result. */
tare_status grid_build(const struct grid *asked, const struct grid_subject *subjects, size_t n,
                       struct grid_cases *out, tare_error *err);

#endif
