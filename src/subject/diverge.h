/* SPDX-License-Identifier: MIT
 * diverge.h - the first layer at which two variants of a model (fp32 and int8, two exports, two runtimes) give
 * different results for the same inputs. Asks for a few inner values at a time, so that memory stays bounded whatever
 * the size of the model; bisects over values that both graphs have by name.
 *
 * A value is the first to differ when it is beyond the tolerance, while everything its node reads, and the values that
 * run just before it, are not. Bisecting takes it that a difference, once there, reaches an output; `all` does not. */
#ifndef SUBJECT_DIVERGE_H
#define SUBJECT_DIVERGE_H

#include "run/run.h"
#include "subject/subject.h"

struct diverge_options {
    struct onnx_options a, b;  /* the two files (or one file and two runtimes); inputs are those of a */
    struct case_params params; /* dimensions for made-up inputs */
    double tolerance;          /* relative L2 error beyond which a value differs; negative: 1e-3 */
    size_t at_once;            /* inner values asked for in one run; 0: 8 */
    bool all;                  /* compare every common value in order instead of bisecting */
    void (*progress)(void *ctx, const char *what, uint64_t done, uint64_t total); /* may be NULL */
    void *ctx;
    const volatile sig_atomic_t *interrupted; /* may be NULL */
};

struct diverge_point {
    const char *value, *twin; /* its name in a, and in b */
    const char *node_a, *node_b, *op_a, *op_b;
    double rel_l2, max_abs, cosine; /* INFINITY, NAN: see tensor.h */
    const char *why;                /* what is wrong besides numbers ("the shapes are ..."); NULL: nothing */
    bool differs;
};

struct diverged {
    struct arena texts;               /* of the points */
    VEC(struct diverge_point) points; /* compared ones, in run order of a */
    size_t first;                     /* index of the first that differs; SIZE_MAX: none */
    size_t common;                    /* values that both have */
    size_t only_a, only_b;            /* that one has and the other not */
    size_t skipped;                   /* looked at, but of kinds that do not compare */
    uint64_t sessions;                /* that were made */
    uint64_t bytes_at_once;           /* most bytes of inner values held at a time */
    bool cut;                         /* interrupted: `first` is not confirmed */
};
#define DIVERGED_INIT {.points = VEC_INIT, .first = SIZE_MAX}

/* Errors name the model and the cause: a file or runtime that cannot be used, inputs that do not fit, no value in
 * common. */
tare_status diverge_find(struct diverged *out, const struct diverge_options *o, tare_error *err);
void diverged_release(struct diverged *d);

#endif
