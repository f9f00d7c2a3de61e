/* SPDX-License-Identifier: MIT
 * dimname.h - what a free dimension is by its name: exporters call the batch "batch_size", "N" or nothing at all. Names
 * only; which value it gets is for others to say. Pure functions. */
#ifndef MODEL_DIMNAME_H
#define MODEL_DIMNAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dim_class {
    DIM_OTHER, /* default 1 */
    DIM_BATCH, /* batch, batch_size, N, ...; a first dimension without a name, or with a made-up one (unk__7, s18) */
    DIM_SEQ, /* sequence, seq_len, ...; without a name the second of input_ids and its kin (masks, embeddings), and
                  of any integers in two dimensions */
    DIM_PAST, /* past_sequence_length; without a name the third of past_key_values: default 0 */
    DIM_TOTAL /* total_sequence_length: past + sequence. So are sums in a name: "past_sequence_length + 1" */
};

enum dim_class dimname_class(const char *name);

/* Of one axis of a graph input, by its name, else by where it stands; `type` is an enum onnx_type. */
enum dim_class dimname_class_at(const char *input, const char *name, size_t axis, size_t rank, int type);

/* What a dimension is taken as that nobody set: nothing in the cache, a text of DIMNAME_SEQ tokens (one token for
 * models with a cache), else 1. */
enum { DIMNAME_SEQ = 128 };
int64_t dimname_default(enum dim_class class, bool has_cache);

/* The value of a DIM_TOTAL: the parts of "past_sequence_length + 1" added up, numbers as they are, names by `value`;
 * of a name without a sum in it, past and sequence length. */
typedef int64_t dimname_value(void *ctx, const char *name);
int64_t dimname_total(const char *name, dimname_value *value, void *ctx);

#endif
