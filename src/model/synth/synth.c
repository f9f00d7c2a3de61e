/* SPDX-License-Identifier: MIT
 * synth.c - the table of architectures, and the check of what the user asked of one. A new architecture is
 * a row here and a build function in a synth_*.c file. */
#include "model/synth/synth.h"

#include <inttypes.h>
#include <string.h>

#include "model/synth/synth_block.h"

#define TEXT (SYNTH_LAYERS | SYNTH_HIDDEN | SYNTH_VOCAB | SYNTH_HEAD | SYNTH_CLASSES)
#define BERT(n_layers, width, n_heads) \
    {.layers = (n_layers), .hidden = (width), .heads = (n_heads), .ffn = 4 * (width), .vocab = 30522, \
     .positions = 512, .classes = 2, .head = SYNTH_HEAD_NONE}
#define DEBERTA(which) \
    {.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .vocab = 128100, .classes = 3, .head = (which)}

const struct synth_arch synth_table[] = {
    {"minilm-l6", "sentence encoder, 6 layers of 384 (all-MiniLM-L6-v2)", synth_bert, TEXT, BERT(6, 384, 12), 0},
    {"minilm-l12", "sentence encoder, 12 layers of 384 (MiniLM-L12-H384)", synth_bert, TEXT, BERT(12, 384, 12), 0},
    {"bert-base", "encoder, 12 layers of 768, with pooler", synth_bert, TEXT, BERT(12, 768, 12), 0},
    {"bert-large", "encoder, 24 layers of 1024, with pooler", synth_bert, TEXT, BERT(24, 1024, 16), 0},
    {"distilbert", "encoder, 6 layers of 768", synth_distilbert, TEXT, BERT(6, 768, 12), 0},
    {"deberta-v3-base", "encoder with relative positions, 12 layers of 768", synth_deberta, TEXT,
     DEBERTA(SYNTH_HEAD_NONE), 0},
    {"deberta-v3-nli", "deberta-v3-base that judges pairs of texts: 3 logits", synth_deberta, TEXT,
     DEBERTA(SYNTH_HEAD_CLASSES), 0},
    {"gpt2-small", "decoder, 12 layers of 768; --kv-cache for one that goes on", synth_gpt2,
     SYNTH_LAYERS | SYNTH_HIDDEN | SYNTH_VOCAB | SYNTH_KV,
     {.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .vocab = 50257, .positions = 1024}, 0},
    {"vit-b16", "image encoder, patches of 16, 12 layers of 768", synth_vit,
     SYNTH_LAYERS | SYNTH_HIDDEN | SYNTH_IMAGE | SYNTH_CLASSES,
     {.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .image = 224, .classes = 1000}, 16},
    {"resnet50", "convolutional network, residual, 50 layers (v1.5)", synth_resnet50,
     SYNTH_IMAGE | SYNTH_CLASSES, {.image = 224, .classes = 1000}, 1},
    {"mobilenetv2", "convolutional network for small devices", synth_mobilenetv2,
     SYNTH_IMAGE | SYNTH_CLASSES, {.image = 224, .classes = 1000}, 1},
    {"mlp", "perceptron of any --sizes", synth_mlp, SYNTH_SIZES, {.sizes = {784, 512, 256, 10}, .n_sizes = 4}, 0},
    {.name = NULL},
};

const struct synth_arch *synth_find(const char *name)
{
    for (const struct synth_arch *a = synth_table; a->name; a++)
        if (strcmp(a->name, name) == 0) return a;
    return NULL;
}

const char *synth_dtype_name(enum synth_dtype d)
{
    static const char *const names[] = {"fp32", "fp16", "int8"};
    return names[d];
}

/* One number that may be chosen. */
struct field {
    const char *option;
    unsigned takes;
    size_t offset;
    uint64_t lo, hi;
};
#define FIELD(name, takes, low, high) {"--" #name, takes, offsetof(struct synth_config, name), low, high}
static const struct field fields[] = {
    FIELD(layers, SYNTH_LAYERS, 1, SYNTH_LAYERS_MAX),
    FIELD(hidden, SYNTH_HIDDEN, 1, SYNTH_WIDTH_MAX),
    FIELD(heads, SYNTH_HIDDEN, 1, SYNTH_WIDTH_MAX),
    FIELD(ffn, SYNTH_HIDDEN, 1, SYNTH_WIDTH_MAX),
    FIELD(vocab, SYNTH_VOCAB, 2, SYNTH_VOCAB_MAX),
    FIELD(positions, SYNTH_VOCAB, 1, SYNTH_VOCAB_MAX),
    FIELD(image, SYNTH_IMAGE, 16, 4096),
    FIELD(classes, SYNTH_CLASSES, 1, SYNTH_WIDTH_MAX),
};

static uint64_t *number(struct synth_config *c, const struct field *f)
{
    return (uint64_t *)(void *)((char *)c + f->offset);
}

static tare_status resolve_number(const struct synth_arch *a, struct synth_config *c, const struct field *f,
                                  tare_error *err)
{
    struct synth_config defaults = a->defaults;
    uint64_t *v = number(c, f), usual = *number(&defaults, f);
    if (*v && (!(a->takes & f->takes) || !usual))
        return error_set(err, TARE_INVALID, "%s has no %s", a->name, f->option);
    if (*v && (*v < f->lo || *v > f->hi))
        return error_set(err, TARE_INVALID, "%s: %" PRIu64 " is not within %" PRIu64 " .. %" PRIu64,
                         f->option, *v, f->lo, f->hi);
    if (!*v) *v = usual;
    return TARE_OK;
}

/* A width chosen alone keeps the original's width of a head and its ratio of the inner layer. */
static void follow_hidden(const struct synth_arch *a, struct synth_config *c)
{
    const struct synth_config *d = &a->defaults;
    if (!(a->takes & SYNTH_HIDDEN) || !c->hidden || c->hidden > SYNTH_WIDTH_MAX) return;
    uint64_t head = d->hidden / d->heads;
    if (!c->heads && c->hidden % head == 0) c->heads = c->hidden / head;
    if (!c->ffn) c->ffn = c->hidden * (d->ffn / d->hidden);
}

static tare_status resolve_sizes(const struct synth_arch *a, struct synth_config *c, tare_error *err)
{
    if (c->n_sizes && !(a->takes & SYNTH_SIZES))
        return error_set(err, TARE_INVALID, "%s has no --sizes", a->name);
    if (!c->n_sizes) {
        memcpy(c->sizes, a->defaults.sizes, sizeof c->sizes);
        c->n_sizes = a->defaults.n_sizes;
    }
    if (c->n_sizes == 1)
        return error_set(err, TARE_INVALID, "--sizes: at least two are needed, inputs and outputs");
    return TARE_OK;
}

static tare_status resolve_head(const struct synth_arch *a, struct synth_config *c, tare_error *err)
{
    if (c->head != SYNTH_HEAD_DEFAULT && !(a->takes & SYNTH_HEAD))
        return error_set(err, TARE_INVALID, "%s has no --head", a->name);
    if (c->kv_cache && !(a->takes & SYNTH_KV))
        return error_set(err, TARE_INVALID, "%s has no --kv-cache", a->name);
    if (c->head == SYNTH_HEAD_DEFAULT) c->head = a->defaults.head;
    return TARE_OK;
}

/* Heads before numbers: which defaults hold depends on them. What concerns several options is checked last. */
tare_status synth_resolve(const struct synth_arch *a, struct synth_config *c, tare_error *err)
{
    if (c->opset < OW_OPSET_MIN || c->opset > OW_OPSET_MAX)
        return error_set(err, TARE_INVALID, "--opset: %" PRId64 " is not within %d .. %d", c->opset,
                         OW_OPSET_MIN, OW_OPSET_MAX);
    tare_status s = resolve_head(a, c, err);
    bool classes = c->classes != 0;
    follow_hidden(a, c);
    for (size_t i = 0; i < sizeof fields / sizeof *fields && s == TARE_OK; i++)
        s = resolve_number(a, c, &fields[i], err);
    if (s == TARE_OK) s = resolve_sizes(a, c, err);
    if (s < 0) return s;
    if (classes && (a->takes & SYNTH_HEAD) && c->head != SYNTH_HEAD_CLASSES)
        return error_set(err, TARE_INVALID, "--classes needs --head classes");
    if (c->heads && c->hidden % c->heads)
        return error_set(err, TARE_INVALID,
                         "--hidden %" PRIu64 " is not a multiple of %" PRIu64 " heads; choose --heads",
                         c->hidden, c->heads);
    if (a->image_step && c->image % a->image_step)
        return error_set(err, TARE_INVALID, "--image: %" PRIu64 " is not a multiple of %u", c->image,
                         a->image_step);
    return TARE_OK;
}

tare_status synth_build(struct ow *w, const struct synth_arch *a, const struct synth_config *c,
                        tare_error *err)
{
    struct synth s = {.w = w, .c = c, .std = 0.02}; /* as the originals are initialised */
    s.real = c->dtype == SYNTH_FP16 ? ONNX_FLOAT16 : ONNX_FLOAT;
    ow_init(w, c->opset, c->seed, err);
    w->graph_name = a->name;
    w->producer_version = TARE_VERSION;
    if (w->status == TARE_OK) a->build(&s);
    return w->status;
}
