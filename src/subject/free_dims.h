/* SPDX-License-Identifier: MIT
 * free_dims.h - the dimensions that a model leaves open, made numbers: by the name the user gave, by the usual names of
 * batch and sequence length, by the files the inputs come from, else by a default that is told. Pure functions. */
#ifndef SUBJECT_FREE_DIMS_H
#define SUBJECT_FREE_DIMS_H

#include "model/onnx/dimname.h"
#include "subject/ort_session.h"
#include "subject/subject.h"

struct chosen_dim {
    char *name; /* the model's, or "INPUT.AXIS" for one without */
    int64_t value;
    enum dim_class class;
    bool asked; /* by the user, not by a file or default */
};

struct free_dims {
    VEC(struct chosen_dim) chosen; /* in the order the model has them */
    VEC(int64_t) shapes;           /* all inputs' dimensions, one after the other */
    int64_t batch, seq;            /* 0: the model has no such dimension, free or plain to see */
};
#define FREE_DIMS_INIT {VEC_INIT, VEC_INIT, 0, 0}

enum dim_class dim_class_of(const struct ort_io *io, size_t axis);

/* `files` is NULL, or per input NULL or the tensor that was read for it. Errors name the dimension, and list those that
 * there are. */
tare_status free_dims_resolve(struct free_dims *out, const struct ort_ios *inputs,
                              const struct case_params *p, const struct tensor *const *files,
                              tare_error *err);
void free_dims_release(struct free_dims *d);

/* Of input i: its resolved dimensions. */
const int64_t *free_dims_of(const struct free_dims *d, const struct ort_ios *inputs, size_t i);

#endif
