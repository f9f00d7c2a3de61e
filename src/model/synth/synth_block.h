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
ow_val block_int(struct synth *s, int64_t v);  /* a scalar int64 */
ow_val block_cast(struct synth *s, ow_val x, int type);
ow_val block_unsqueeze(struct synth *s, ow_val x, int64_t axis);
ow_val block_dim(struct synth *s, ow_val x, int64_t axis); /* a size of x, as a scalar int64 */
ow_val block_gelu(struct synth *s, ow_val x);              /* by Erf */
double block_lowest(const struct synth *s);                /* the lowest finite number of the type */
ow_val block_weight(struct synth *s, struct ow_spec spec); /* of the activations' type, not quantised */

/* An output in float32, whatever the activations are. Returns what the output is. */
ow_val block_output(struct synth *s, ow_val x, const char *name, unsigned rank, const struct onnx_dim *dims);
ow_val block_real_input(struct synth *s, const char *name, unsigned rank, const struct onnx_dim *dims);
ow_val block_text_input(struct synth *s, const char *name);  /* int64 [batch, sequence] */
ow_val block_image_input(struct synth *s, const char *name); /* [batch, 3, image, image] */

/* ---- layers: `scope` is entered; their weights are called scope.weight and scope.bias ---- */

struct linear { /* the weights of a product, which may be used several times */
    struct ow_quantized weight;
    ow_val bias;
};
struct linear block_linear_new(struct synth *s, const char *scope, uint64_t in, uint64_t out);
ow_val block_linear_use(struct synth *s, const char *scope, const struct linear *l, ow_val x);
ow_val block_linear(struct synth *s, const char *scope, ow_val x, uint64_t in, uint64_t out);
/* The same of a matrix [n, in], as exporters write it: one Gemm, the weight stored as [out, in]. */
ow_val block_gemm(struct synth *s, const char *scope, ow_val x, uint64_t in, uint64_t out);
ow_val block_layer_norm(struct synth *s, const char *scope, ow_val x, uint64_t width, double eps);

/* A stored matrix, quantised where its scale is not 0: its product with x, or rows of it. */
ow_val block_product(struct synth *s, ow_val x, const struct ow_quantized *k);
struct ow_quantized block_table(struct synth *s, const char *scope, uint64_t rows, uint64_t cols);
ow_val block_rows_of(struct synth *s, const char *scope, const struct ow_quantized *table, ow_val ids);
ow_val block_embedding(struct synth *s, const char *scope, ow_val ids, uint64_t rows, uint64_t cols);

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

ow_val block_split_heads(struct synth *s, ow_val x);                      /* [b, s, h*d] -> [b, h, s, d] */
ow_val block_merge_heads(struct synth *s, ow_val x);                      /* and back */
ow_val block_scale(struct synth *s, ow_val scores);                       /* by the root of a head's width */
ow_val block_attend(struct synth *s, const struct encoder *e, ow_val x);  /* scaled dot products */
ow_val block_encoder(struct synth *s, const struct encoder *e, ow_val x); /* all layers */

/* ---- what transformers answer ---- */

ow_val head_first_token(struct synth *s, ow_val x); /* [batch, hidden] */
void head_classify(struct synth *s, ow_val pooled); /* output logits */
/* Of a text encoder: logits of what `pool` makes of x; or the hidden states, the pooled ones if they are told too, and
 * the sentence's embedding if that is asked for. */
void head_text(struct synth *s, ow_val x, ow_val mask, ow_val (*pool)(struct synth *, ow_val),
               bool tell_pooled);

#endif
