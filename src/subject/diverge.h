/* SPDX-License-Identifier: MIT
 * diverge.h - the first layer at which two variants of a model (fp32 and int8, two exports, two runtimes) give different
 * results for the same inputs. Asks for a few inner values at a time, so that memory stays bounded whatever the size of
 * the model; bisects over values that both graphs have by name. */
#ifndef SUBJECT_DIVERGE_H
#define SUBJECT_DIVERGE_H

#include "run/run.h"
#include "subject/subject.h"

struct diverge_options {
    struct onnx_options a, b;  /* the two files (or one file and two runtimes); same inputs */
    struct case_params params; /* dimensions for made-up inputs */
    double tolerance;          /* relative L2 error beyond which a value differs; default 1e-3 */
    size_t at_once;            /* inner values asked for in one run; default 8 */
    bool all;                  /* compare every common value in order instead of bisecting */
    void (*progress)(void *ctx, const char *what, uint64_t done, uint64_t total); /* may be NULL */
    void *ctx;
    const volatile sig_atomic_t *interrupted; /* may be NULL */
};

struct diverge_point {
    char *value, *node_a, *node_b, *op_a, *op_b; /* value: its name in both */
    double rel_l2, max_abs, cosine;
    bool differs;
};

struct diverged {
    VEC(struct diverge_point) points; /* compared ones, in run order of a */
    size_t first;                     /* index of the first that differs; SIZE_MAX: none */
    size_t common;                    /* inner values both have */
    size_t only_a, only_b;            /* that one has and the other not */
    uint64_t sessions;                /* that were made */
    uint64_t bytes_at_once;           /* most bytes of inner values held at a time */
};
#define DIVERGED_INIT {.points = VEC_INIT, .first = SIZE_MAX}

tare_status diverge_find(struct diverged *out, const struct diverge_options *o, tare_error *err);
void diverged_release(struct diverged *d);

#endif
