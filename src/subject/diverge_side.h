/* SPDX-License-Identifier: MIT
 * diverge_side.h - one of the two models of a comparison: its graph, its inputs, and inner values fetched on demand in
 * a session of their own that is gone afterwards, so that memory never holds both models. For diverge.c. */
#ifndef SUBJECT_DIVERGE_SIDE_H
#define SUBJECT_DIVERGE_SIDE_H

#include "core/map.h"
#include "subject/onnx_model.h"

struct diverge_side {
    struct onnx_subject *subject;
    struct onnx_model model;
    struct map_str producers; /* value -> number of the node that makes it */
    struct map_str outputs;   /* names of the graph's outputs */
    struct tensor_set inputs;
    VEC(struct ort_value *) values; /* over the inputs */
    VEC(const char *) names;        /* theirs */
    VEC(const char *) config;       /* of sessions: what the user asked for, and `folder` */
    char *folder;                   /* "session.model_external..=DIR" */
    struct ort_memory_info *cpu;
    const char *provider;
    int64_t threads;
};
#define DIVERGE_SIDE_INIT                                                                                    \
    {                                                                                                        \
        .model = ONNX_MODEL_INIT, .producers = MAP_STR_INIT, .outputs = MAP_STR_INIT,                        \
        .inputs = TENSOR_SET_INIT                                                                            \
    }

tare_status diverge_side_open(struct diverge_side *s, const struct onnx_options *o,
                              const struct case_params *p, tare_error *err);
void diverge_side_close(struct diverge_side *s);

/* Inputs as for a bench of this case, from files or made up. */
tare_status diverge_side_make_inputs(struct diverge_side *s, const struct case_params *p, tare_error *err);
/* The same numbers as the other side's, by name; another width of the same kind is converted. */
tare_status diverge_side_share_inputs(struct diverge_side *s, const struct diverge_side *with,
                                      tare_error *err);

/* One run that gives these values, as copies in out[0 .. n-1]; a value that is no array of numbers leaves its place
 * with data NULL. On failure nothing is left to release. */
tare_status diverge_side_fetch(const struct diverge_side *s, const char *const *names, size_t n,
                               struct tensor *out, tare_error *err);

#endif
