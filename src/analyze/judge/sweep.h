/* SPDX-License-Identifier: MIT
 * sweep.h - the cases of a run that differ in one parameter only: "batch" at a fixed length and number of
 * threads. A parameter that merely repeats the swept one (the model's own name for the batch dimension)
 * does not count. */
#ifndef ANALYZE_SWEEP_H
#define ANALYZE_SWEEP_H

#include "run/run.h"

struct sweeps {
    const struct run_case *
        *cases;    /* sweep after sweep, ascending by the parameter (texts: in document order) */
    size_t *start; /* sweep i is cases[start[i]] .. cases[start[i + 1] - 1]; n + 1 of them */
    size_t n;
};
#define SWEEPS_INIT {NULL, NULL, 0}

/* All sweeps over `param` with at least two different values. A case without the parameter is in none,
 * except that it stands for "" where `texts`. More than SWEEP_CASES_MAX cases are not looked at. */
enum { SWEEP_CASES_MAX = 4096 };
tare_status sweeps_find(struct sweeps *out, const struct run *run, const char *param, bool texts,
                        tare_error *err);
void sweeps_release(struct sweeps *s);

const struct run_case *case_named(const struct run *run, const char *name); /* NULL: none */
bool map_number(const struct run_map *m, const char *key, double *out);     /* any map of a document */
/* A parameter as a number, or as a text ("" when absent). */
bool param_number(const struct run_case *c, const char *param, double *out);
const char *param_text(const struct run_case *c, const char *param);
/* Was this entry chosen, and not found out while running? Documents of before kept the placement of nodes there. */
bool param_is_setting(const struct run_entry *e);
/* Do both do the same work? The length of inputs (seq, length, other dimensions of a model) is given with the work;
 * batch, threads, precision, variant and the like are chosen. */
bool is_same_work(const struct run *run, const struct run_case *a, const struct run_case *b);
/* Is it the first case of its work? */
bool is_first_of_work(const struct run *run, size_t i);
bool values_equal(const struct run_value *a, const struct run_value *b); /* NULL equals only NULL */

#endif
