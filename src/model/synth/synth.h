/* SPDX-License-Identifier: MIT
 * synth.h - models of known architectures with seeded weights, so that everything works without a download.
 * One row per architecture; a build function adds nodes and weights to a writer. Graphs look as exporters
 * write them, and their parameters and multiply-adds are those of the originals. Never opens files. */
#ifndef MODEL_SYNTH_H
#define MODEL_SYNTH_H

#include "model/onnx/onnx_write.h"

enum synth_dtype { SYNTH_FP32, SYNTH_FP16, SYNTH_INT8 };
enum synth_head {
    SYNTH_HEAD_DEFAULT,
    SYNTH_HEAD_NONE,      /* hidden states */
    SYNTH_HEAD_EMBEDDING, /* also the mean over the mask, of length 1 */
    SYNTH_HEAD_CLASSES    /* logits of `classes` */
};

#define SYNTH_SIZES_MAX 32

/* What the user may choose. 0: as the architecture has it. */
struct synth_config {
    enum synth_dtype dtype;
    enum synth_head head;
    int64_t opset;
    uint64_t seed;
    bool kv_cache;
    uint64_t layers, hidden, heads, ffn, vocab, positions, image, classes;
    uint64_t sizes[SYNTH_SIZES_MAX]; /* mlp: inputs, hidden layers, outputs */
    unsigned n_sizes;
};

#define SYNTH_LAYERS_MAX 1000
#define SYNTH_WIDTH_MAX 65536
#define SYNTH_VOCAB_MAX 4000000

/* Which of them an architecture has. */
enum synth_takes {
    SYNTH_LAYERS = 1,
    SYNTH_HIDDEN = 2, /* hidden, heads, ffn */
    SYNTH_VOCAB = 4,  /* vocab, positions */
    SYNTH_HEAD = 8,
    SYNTH_IMAGE = 16,
    SYNTH_CLASSES = 32,
    SYNTH_KV = 64,
    SYNTH_SIZES = 128
};

struct synth;
struct synth_arch {
    const char *name, *summary;
    void (*build)(struct synth *s);
    unsigned takes; /* enum synth_takes */
    struct synth_config defaults;
    unsigned image_step; /* the image's side must be a multiple of this */
};

extern const struct synth_arch synth_table[];          /* ends with name NULL */
const struct synth_arch *synth_find(const char *name); /* NULL: none */

/* Fill what is 0 with the defaults and check the whole: TARE_INVALID names the option that is wrong. */
tare_status synth_resolve(const struct synth_arch *a, struct synth_config *c, tare_error *err);

/* Build the graph of a resolved configuration. `w` is initialised here; ow_release() it in any case. */
tare_status synth_build(struct ow *w, const struct synth_arch *a, const struct synth_config *c,
                        tare_error *err);

const char *synth_dtype_name(enum synth_dtype d);

/* The build functions. */
void synth_bert(struct synth *s);
void synth_distilbert(struct synth *s);
void synth_deberta(struct synth *s);
void synth_gpt2(struct synth *s);
void synth_vit(struct synth *s);
void synth_resnet50(struct synth *s);
void synth_mobilenetv2(struct synth *s);
void synth_mlp(struct synth *s);

#endif
