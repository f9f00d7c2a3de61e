/* SPDX-License-Identifier: MIT
 * synth_block.h - the pieces that architectures are made of, each in the three precisions. In fp16 weights
 * and arithmetic are half; in int8 matrix products and convolutions with weights are dynamically quantised,
 * as onnxruntime.quantization.quantize_dynamic writes them, and embeddings are stored in 8 bits. */
#ifndef MODEL_SYNTH_BLOCK_H
#define MODEL_SYNTH_BLOCK_H

#include "model/synth/synth.h"

enum { SYNTH_SEEN = 16 };

struct synth {
    struct ow *w;
    const struct synth_config *c;
    int real;   /* the type of activations: ONNX_FLOAT or ONNX_FLOAT16 */
    double std; /* of the weights of products and tables */
    struct {
        ow_val of, q;   /* scale and zero point follow q */
    } seen[SYNTH_SEEN]; /* values quantised already: inputs shared by several products */
    unsigned n_seen;
};

/* ---- dimensions of ports ---- */

#define SYNTH_BATCH {-1, "batch_size"}
#define SYNTH_SEQ {-1, "sequence_length"}
#define SYNTH_FIXED(n) {(int64_t)(n), ""}

/* ---- elementary ---- */

ow_val block_const(struct synth *s, double v); /* a scalar of the activations' type */
ow_val block_cast(struct synth *s, ow_val x, int type);
ow_val block_unsqueeze(struct synth *s, ow_val x, int64_t axis);
ow_val block_transpose(struct synth *s, ow_val x);         /* [0, 2, 1, 3] */
ow_val block_dim(struct synth *s, ow_val x, int64_t axis); /* a size of x, as a scalar int64 */
ow_val block_gelu(struct synth *s, ow_val x);              /* by Erf */
double block_lowest(const struct synth *s);                /* the lowest finite number of the type */
ow_val block_weight(struct synth *s, const char *leaf, uint64_t rows,
                    uint64_t cols); /* a table, not quantised */

/* An output in float32, whatever the activations are. Returns what the output is. */
ow_val block_output(struct synth *s, ow_val x, const char *name, unsigned rank, const struct onnx_dim *dims);
ow_val block_real_input(struct synth *s, const char *name, unsigned rank, const struct onnx_dim *dims);

/* ---- layers: `scope` is entered; their weights are called scope.weight and scope.bias ---- */

struct linear {          /* the weights of a product, which may be used several times */
    ow_val weight, bias; /* quantised: weight is q; scale and zero point follow it */
};
struct linear block_linear_new(struct synth *s, const char *scope, uint64_t in, uint64_t out);
ow_val block_linear_use(struct synth *s, const char *scope, const struct linear *l, ow_val x);
ow_val block_linear(struct synth *s, const char *scope, ow_val x, uint64_t in, uint64_t out);
/* The same of a matrix [n, in], as exporters write it: one Gemm, the weight stored as [out, in]. */
ow_val block_gemm(struct synth *s, const char *scope, ow_val x, uint64_t in, uint64_t out);
ow_val block_layer_norm(struct synth *s, const char *scope, ow_val x, uint64_t width, double eps);

struct embedding {
    ow_val table, scale, zero; /* scale 0: not quantised */
};
struct embedding block_embedding_new(struct synth *s, const char *scope, uint64_t rows, uint64_t cols);
ow_val block_embedding_use(struct synth *s, const char *scope, const struct embedding *e, ow_val ids);
ow_val block_embedding(struct synth *s, const char *scope, ow_val ids, uint64_t rows, uint64_t cols);

/* x times a weight that is quantised already: the nodes of one dynamically quantised product. */
ow_val block_integer_product(struct synth *s, const struct ow_call *op, ow_val x,
                             const struct ow_quantized *k);

struct conv {
    uint64_t in, out, kernel, stride, groups, padding;
    double std;
    bool bias;
};
ow_val block_conv(struct synth *s, const char *scope, ow_val x, const struct conv *c);

/* ---- encoder layers ---- */

struct encoder_names {
    const char *query, *key, *value, *attention, *out, *attention_norm, *up, *down, *ffn_norm;
};

struct encoder {
    const struct encoder_names *names;
    bool norm_first;
    double eps;
    ow_val mask; /* added to the scores; 0: none */
    /* [batch, sequence, hidden] of x attending to itself, before the output projection. */
    ow_val (*attend)(struct synth *s, const struct encoder *e, ow_val x);
    void *ctx;
};

ow_val block_split_heads(struct synth *s, ow_val x);                     /* [b, s, h*d] -> [b, s, h, d] */
ow_val block_merge_heads(struct synth *s, ow_val x);                     /* [b, h, s, d] -> [b, s, h*d] */
ow_val block_attend(struct synth *s, const struct encoder *e, ow_val x); /* scaled dot products */
ow_val block_encoder_layer(struct synth *s, const struct encoder *e, ow_val x);

/* ---- synth_head.c: what transformers answer ---- */

ow_val head_first_token(struct synth *s, ow_val x);   /* [batch, hidden] */
ow_val head_hidden_states(struct synth *s, ow_val x); /* output last_hidden_state; returns it, in float32 */
void head_sentence_embedding(struct synth *s, ow_val hidden, ow_val mask); /* output sentence_embedding */
void head_classify(struct synth *s, ow_val pooled);                        /* output logits */

#endif
