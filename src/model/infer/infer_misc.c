/* SPDX-License-Identifier: MIT
 * infer_misc.c - rules of shape inference: signals, text, images, random numbers, classic machine learning, training.
 * Never guesses a size. */
#include <string.h>

#include "model/infer/infer_rule.h"

static const struct poly *half_and_one(struct rule_call *c, const struct poly *n)
{
    return poly_add(c->space, poly_div_floor(c->space, n, rule_number(c, 2)), rule_number(c, 1));
}

/* ---- signals ---- */

/* The axis of a DFT: an attribute, since opset 20 an input. false: it is contents that are not followed. */
static bool dft_axis(const struct rule_call *c, int64_t *axis)
{
    *axis = c->opset < 20 ? rule_int(c, "axis", 1) : -2;
    return c->opset < 20 || !rule_has_input(c, 2) || poly_constant(rule_int_at(c, 2, 0), axis);
}

/* One-sided, half of a spectrum stands for a real signal, in one direction or the other. */
bool shape_dft(struct rule_call *c)
{
    struct rule_dims d;
    int64_t given;
    size_t axis;
    bool one_sided = rule_int(c, "onesided", 0) != 0, inverse = rule_int(c, "inverse", 0) != 0;
    if (!rule_ranked(c, 0, &d)) return false;
    if (!dft_axis(c, &given)) return rule_data_dependent(c, 0, "the axis is the contents of an input");
    if (!rule_axis(c, given, d.n, &axis)) return false;
    const struct poly *length = rule_has_input(c, 1) ? rule_int_at(c, 1, 0) : d.at[axis];
    if (rule_has_input(c, 1) && !length) rule_data_dependent(c, 0, "the length is the contents of an input");
    if (one_sided && inverse && !rule_has_input(c, 1))
        length = poly_mul(c->space, poly_sub(c->space, length, rule_number(c, 1)), rule_number(c, 2));
    d.at[axis] = one_sided && !inverse ? half_and_one(c, length) : length;
    d.at[d.n - 1] = rule_number(c, one_sided && inverse ? 1 : 2);
    return rule_state(c, 0, &d);
}

/* [batch, frames, length of a spectrum, 2] */
bool shape_stft(struct rule_call *c)
{
    const struct poly *step = rule_int_at(c, 1, 0);
    const struct poly *length = rule_has_input(c, 3) ? rule_int_at(c, 3, 0) : rule_input_dim(c, 2, 0);
    const struct poly *room = poly_sub(c->space, rule_input_dim(c, 0, 1), length);
    const struct poly *steps = poly_is(step, 0) ? NULL : poly_div_floor(c->space, room, step);
    if (!step || !length) rule_data_dependent(c, 0, "step and length of a frame are contents of inputs");
    return rule_shape_is(c, 0, rule_input_dim(c, 0, 0), poly_add(c->space, steps, rule_number(c, 1)),
                         rule_int(c, "onesided", 1) ? half_and_one(c, length) : length, rule_number(c, 2));
}

bool shape_mel(struct rule_call *c)
{
    const struct poly *rows = half_and_one(c, rule_int_at(c, 1, 0)), *columns = rule_int_at(c, 0, 0);
    if (!rows || !columns) rule_data_dependent(c, 0, "its size is the contents of inputs");
    return rule_shape_is(c, 0, rows, columns);
}

bool shape_window(struct rule_call *c)
{
    const struct poly *size = rule_int_at(c, 0, 0);
    if (!size) rule_data_dependent(c, 0, "its size is the contents of an input");
    return rule_shape_is(c, 0, size);
}

/* ---- text and images ---- */

bool shape_string_split(struct rule_call *c)
{
    struct rule_dims d;
    rule_type(c, 1, ONNX_INT64);
    if (!rule_ranked(c, 0, &d) || !rule_state(c, 1, &d)) return false;
    rule_push(&d, NULL);
    rule_data_dependent(c, 0, "how many pieces there are hangs on the text");
    return rule_state(c, 0, &d);
}

bool shape_string_normalizer(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) return false;
    if (d.n > 0 && rule_attribute_of(c, "stopwords")) {
        d.at[d.n - 1] = NULL;
        rule_data_dependent(c, 0, "how many words are left out hangs on the text");
    }
    return rule_state(c, 0, &d);
}

bool shape_tf_idf(struct rule_call *c)
{
    const struct onnx_attribute *at = rule_attribute_of(c, "ngram_indexes");
    struct rule_dims d;
    int64_t most = -1;
    if (!at || at->ints.n == 0 || !rule_ranked(c, 0, &d) || d.n == 0) return false;
    for (size_t i = 0; i < at->ints.n; i++)
        if (at->ints.items[i] > most) most = at->ints.items[i];
    d.at[d.n - 1] = poly_add(c->space, rule_number(c, most), rule_number(c, 1));
    return rule_state(c, 0, &d);
}

bool shape_image_decoder(struct rule_call *c)
{
    const char *format = rule_text(c, "pixel_format");
    bool grey = format && !strcmp(format, "Grayscale");
    rule_data_dependent(c, 0, "its size is that of the image");
    return rule_shape_is(c, 0, NULL, NULL, rule_number(c, grey ? 1 : 3));
}

/* ---- random numbers ---- */

bool shape_multinomial(struct rule_call *c)
{
    return rule_shape_is(c, 0, rule_input_dim(c, 0, 0), rule_number(c, rule_int(c, "sample_size", 1)));
}

/* ---- classic machine learning ---- */

static size_t attribute_count(const struct rule_call *c, const char *name)
{
    const struct onnx_attribute *a = rule_attribute_of(c, name);
    if (!a) return 0;
    if (a->ints.n) return a->ints.n;
    return a->floats.n ? a->floats.n : a->strings.n;
}

/* A vector is one row. */
static const struct poly *rows_of(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) return NULL;
    return d.n < 2 ? rule_number(c, 1) : d.at[0];
}

/* Labels of one kind or the other; with fewer than two of them runtimes differ in how many scores they give, and in
 * an SVM pairs of classes vote. */
bool shape_classifier(struct rule_call *c)
{
    size_t strings = attribute_count(c, "classlabels_strings");
    size_t n = strings + attribute_count(c, "classlabels_ints") + attribute_count(c, "classlabels_int64s");
    bool counted = n >= 2 && strcmp(c->node->op, "SVMClassifier") != 0;
    const struct poly *rows = rows_of(c);
    rule_type(c, 0, strings ? ONNX_STRING : ONNX_INT64);
    rule_type(c, 1, ONNX_FLOAT);
    rule_shape_is(c, 0, rows);
    return rule_shape_is(c, 1, rows, counted ? rule_number(c, (int64_t)n) : NULL);
}

bool shape_regressor(struct rule_call *c) /* an SVM's has one target, without the attribute */
{
    return rule_shape_is(c, 0, rows_of(c), rule_number(c, rule_int(c, "targets", 1)));
}

bool shape_trees(struct rule_call *c)
{
    int64_t targets = rule_int(c, "n_targets", 0);
    if (targets <= 0) return rule_unknown(c, "n_targets is not given");
    return rule_shape_is(c, 0, rows_of(c), rule_number(c, targets));
}

bool shape_one_hot_encoder(struct rule_call *c)
{
    struct rule_dims d;
    size_t n = attribute_count(c, "cats_int64s") + attribute_count(c, "cats_strings");
    if (!rule_ranked(c, 0, &d)) return false;
    rule_push(&d, rule_number(c, (int64_t)n));
    return rule_state(c, 0, &d);
}

/* What values are mapped to says the type; the first version maps strings to integers and back. */
bool shape_label_encoder(struct rule_call *c)
{
    static const struct {
        const char *attribute;
        int type;
    } values[] = {
        {"values_int64s", ONNX_INT64}, {"values_strings", ONNX_STRING}, {"values_floats", ONNX_FLOAT}};
    const struct onnx_attribute *tensor = rule_attribute_of(c, "values_tensor");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (rule_attribute_of(c, values[i].attribute)) rule_type(c, 0, values[i].type);
    if (tensor && tensor->t) rule_type(c, 0, tensor->t->type);
    if (rule_attribute_of(c, "classes_strings"))
        rule_type(c, 0, rule_input_type(c, 0) == ONNX_STRING ? ONNX_INT64 : ONNX_STRING);
    return rule_same_shape(c, 0, 0);
}

bool shape_category_mapper(struct rule_call *c)
{
    int in = rule_input_type(c, 0);
    if (in != ONNX_UNDEFINED) rule_type(c, 0, in == ONNX_STRING ? ONNX_INT64 : ONNX_STRING);
    return rule_same_shape(c, 0, 0);
}

/* Columns of a matrix; a vector is one row. */
bool shape_feature_extractor(struct rule_call *c)
{
    struct rule_dims d, ids;
    if (!rule_ranked(c, 0, &d) || !rule_ranked(c, 1, &ids) || d.n == 0) return false;
    if (d.n == 1) rule_insert(&d, 0, rule_number(c, 1));
    d.at[d.n - 1] = poly_product(c->space, ids.at, ids.n);
    return rule_state(c, 0, &d);
}

bool shape_feature_vectorizer(struct rule_call *c)
{
    const struct onnx_attribute *sizes = rule_attribute_of(c, "inputdimensions");
    const struct poly *all = sizes ? rule_number(c, 0) : NULL;
    for (size_t i = 0; sizes && i < sizes->ints.n; i++)
        all = poly_add(c->space, all, rule_number(c, sizes->ints.items[i]));
    return rule_shape_is(c, 0, rows_of(c), all);
}

bool shape_no_tensor(struct rule_call *c)
{
    return rule_unknown(c, "%s works on maps, whose contents are known only when it runs", c->node->op);
}

/* ---- training ---- */

/* Rate and step, then groups of as many tensors as are optimised: their values, gradients, and what is carried from
 * step to step. All but the gradients come out again. */
bool shape_optimised(struct rule_call *c)
{
    size_t groups = rule_second(c, 3), n = c->node->inputs.n > 2 ? (c->node->inputs.n - 2) / groups : 0;
    for (size_t g = 0; g + 1 < groups; g++)
        for (size_t i = 0; i < n; i++) rule_same(c, g * n + i, 2 + (g ? g + 1 : 0) * n + i);
    return true;
}

bool shape_gradient(struct rule_call *c)
{
    for (size_t i = 0; i < c->node->outputs.n; i++) rule_same(c, i, i);
    return true;
}
