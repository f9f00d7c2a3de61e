/* SPDX-License-Identifier: MIT
 * ab_spec.h - what a worker process of a comparison loads: a model and one case of it, as JSON text, so that the
 * parent needs no model in its own memory. Reads and writes; opens nothing. */
#ifndef BENCH_AB_SPEC_H
#define BENCH_AB_SPEC_H

#include "core/buf.h"
#include "core/arena.h"
#include "subject/subject.h"

struct ab_spec {
    struct onnx_options model; /* `places` is the worker's own business */
    struct case_params params;
};

/* Append it to `out`. */
tare_status ab_spec_write(const struct ab_spec *s, struct buf *out, tare_error *err);

/* Texts and lists live in the arena. */
tare_status ab_spec_read(struct ab_spec *s, struct arena *a, const char *text, tare_error *err);

#endif
