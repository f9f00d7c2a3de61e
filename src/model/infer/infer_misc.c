/* SPDX-License-Identifier: MIT
 * infer_misc.c - rules of shape inference: signals, text, images, random numbers, classic machine learning, training.
 * Never guesses a size. */
#include <string.h>

#include "model/infer/infer_rule.h"

static const struct poly *half_and_one(struct poly_space *s, const struct poly *n)
{
    return poly_add(s, poly_div_floor(s, n, poly_int(s, 2)), poly_int(s, 1));
}

/* ---- signals ---- */

/* The axis of a DFT: an attribute, since opset 20 an input. false: it is contents that are not followed. */
static bool dft_axis(const struct rule_call *c, int64_t *axis)
{
    if (c->opset < 20) {
        *axis = rule_int(c, "axis", 1);
        return true;
    }
    *axis = -2;
    return !rule_has_input(c, 2) || poly_constant(rule_int_at(c, 2, 0), axis);
}

tare_status shape_dft(struct rule_call *c)
{
    struct rule_dims d;
    int64_t given;
    size_t axis;
    bool one_sided = rule_int(c, "onesided", 0) != 0;
    bool inverse = rule_int(c, "inverse", 0) != 0;
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    if (!dft_axis(c, &given)) {
        rule_data_dependent(c, 0, "the axis is the contents of an input");
        return TARE_OK;
    }
    tare_status s = rule_axis(c, given, d.n, &axis);
    if (s < 0) return s;
    const struct poly *length = rule_has_input(c, 1) ? rule_int_at(c, 1, 0) : d.at[axis];
    if (rule_has_input(c, 1) && !length) rule_data_dependent(c, 0, "the length is the contents of an input");
    if (one_sided && inverse && !rule_has_input(c, 1)) /* half of a spectrum gives all of a real signal */
        length = poly_mul(c->space, poly_sub(c->space, length, poly_int(c->space, 1)), poly_int(c->space, 2));
    d.at[axis] = one_sided && !inverse ? half_and_one(c->space, length) : length;
    d.at[d.n - 1] = poly_int(c->space, one_sided && inverse ? 1 : 2);
    return rule_state(c, 0, &d);
}

tare_status shape_stft(struct rule_call *c)
{
    struct poly_space *p = c->space;
    bool one_sided = rule_int(c, "onesided", 1) != 0;
    const struct poly *step = rule_int_at(c, 1, 0);
    const struct poly *length = rule_has_input(c, 3) ? rule_int_at(c, 3, 0) : rule_input_dim(c, 2, 0);
    const struct poly *room = poly_sub(p, rule_input_dim(c, 0, 1), length);
    const struct poly *dims[] = {
        rule_input_dim(c, 0, 0),
        poly_is(step, 0) ? NULL : poly_add(p, poly_div_floor(p, room, step), poly_int(p, 1)),
        one_sided ? half_and_one(p, length) : length,
        poly_int(p, 2),
    };
    if (!step || !length) rule_data_dependent(c, 0, "step and length of a frame are contents of inputs");
    return rule_shape(c, 0, dims, 4);
}

tare_status shape_mel(struct rule_call *c)
{
    const struct poly *dims[] = {half_and_one(c->space, rule_int_at(c, 1, 0)), rule_int_at(c, 0, 0)};
    rule_type(c, 0, (int)rule_int(c, "output_datatype", ONNX_FLOAT));
    if (!dims[0] || !dims[1]) rule_data_dependent(c, 0, "its size is the contents of inputs");
    return rule_shape(c, 0, dims, 2);
}

tare_status shape_window(struct rule_call *c)
{
    const struct poly *size = rule_int_at(c, 0, 0);
    rule_type(c, 0, (int)rule_int(c, "output_datatype", ONNX_FLOAT));
    if (!size) rule_data_dependent(c, 0, "its size is the contents of an input");
    return rule_shape(c, 0, &size, 1);
}

/* ---- text and images ---- */

tare_status shape_string_split(struct rule_call *c)
{
    struct rule_dims d;
    rule_type(c, 1, ONNX_INT64);
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    tare_status s = rule_state(c, 1, &d);
    if (s < 0) return s;
    rule_push(&d, NULL);
    rule_data_dependent(c, 0, "how many pieces there are hangs on the text");
    return rule_state(c, 0, &d);
}

tare_status shape_string_normalizer(struct rule_call *c)
{
    struct rule_dims d;
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    if (d.n > 0 && rule_attribute_of(c, "stopwords")) {
        d.at[d.n - 1] = NULL;
        rule_data_dependent(c, 0, "how many words are left out hangs on the text");
    }
    return rule_state(c, 0, &d);
}

tare_status shape_tf_idf(struct rule_call *c)
{
    const struct onnx_attribute *at = rule_attribute_of(c, "ngram_indexes");
    struct rule_dims d;
    int64_t most = -1;
    if (!at || at->ints.n == 0 || !rule_ranked(c, 0, &d) || d.n == 0) return TARE_OK;
    for (size_t i = 0; i < at->ints.n; i++)
        if (at->ints.items[i] > most) most = at->ints.items[i];
    d.at[d.n - 1] = poly_add(c->space, poly_int(c->space, most), poly_int(c->space, 1));
    return rule_state(c, 0, &d);
}

tare_status shape_image_decoder(struct rule_call *c)
{
    const char *format = rule_text(c, "pixel_format");
    bool grey = format && !strcmp(format, "Grayscale");
    const struct poly *dims[] = {NULL, NULL, poly_int(c->space, grey ? 1 : 3)};
    rule_data_dependent(c, 0, "its size is that of the image");
    return rule_shape(c, 0, dims, 3);
}

/* ---- random numbers ---- */

tare_status shape_multinomial(struct rule_call *c)
{
    const struct poly *dims[] = {rule_input_dim(c, 0, 0), poly_int(c->space, rule_int(c, "sample_size", 1))};
    rule_type(c, 0, (int)rule_int(c, "dtype", ONNX_INT32));
    return rule_shape(c, 0, dims, 2);
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
static const struct poly *rows_of(struct rule_call *c, size_t input)
{
    struct rule_dims d;
    if (!rule_ranked(c, input, &d)) return NULL;
    return d.n < 2 ? poly_int(c->space, 1) : d.at[0];
}

/* Labels of one kind or the other; with fewer than two of them runtimes differ in how many scores they give. */
tare_status shape_classifier(struct rule_call *c)
{
    static const char *const ints[] = {"classlabels_ints", "classlabels_int64s"};
    size_t strings = attribute_count(c, "classlabels_strings");
    size_t n = strings;
    for (size_t i = 0; i < 2; i++) n += attribute_count(c, ints[i]);
    const struct poly *rows = rows_of(c, 0);
    bool svm = !strcmp(c->node->op, "SVMClassifier"); /* pairs of classes vote: another number of scores */
    const struct poly *dims[] = {rows, n >= 2 && !svm ? poly_int(c->space, (int64_t)n) : NULL};
    rule_type(c, 0, strings ? ONNX_STRING : ONNX_INT64);
    rule_type(c, 1, ONNX_FLOAT);
    tare_status s = rule_shape(c, 0, &rows, 1);
    return s < 0 ? s : rule_shape(c, 1, dims, 2);
}

static tare_status regression(struct rule_call *c, int64_t targets)
{
    const struct poly *dims[] = {rows_of(c, 0), poly_int(c->space, targets)};
    return rule_shape(c, 0, dims, 2);
}

tare_status shape_linear_regressor(struct rule_call *c)
{
    return regression(c, rule_int(c, "targets", 1));
}

tare_status shape_svm_regressor(struct rule_call *c)
{
    return regression(c, 1);
}

tare_status shape_trees(struct rule_call *c)
{
    int64_t targets = rule_int(c, "n_targets", 0);
    if (strcmp(c->node->op, "TreeEnsemble") != 0)
        rule_type(c, 0, ONNX_FLOAT);
    else
        rule_same_type(c, 0, 0);
    if (targets > 0) return regression(c, targets);
    rule_unknown(c, "n_targets is not given");
    return TARE_OK;
}

tare_status shape_one_hot_encoder(struct rule_call *c)
{
    struct rule_dims d;
    size_t n = attribute_count(c, "cats_int64s") + attribute_count(c, "cats_strings");
    if (!rule_ranked(c, 0, &d)) return TARE_OK;
    rule_push(&d, poly_int(c->space, (int64_t)n));
    return rule_state(c, 0, &d);
}

/* What values are mapped to says the type; the first version maps strings to integers and back. */
tare_status shape_label_encoder(struct rule_call *c)
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

tare_status shape_category_mapper(struct rule_call *c)
{
    int in = rule_input_type(c, 0);
    if (in != ONNX_UNDEFINED) rule_type(c, 0, in == ONNX_STRING ? ONNX_INT64 : ONNX_STRING);
    return rule_same_shape(c, 0, 0);
}

tare_status shape_feature_extractor(struct rule_call *c)
{
    struct rule_dims d;
    struct rule_dims ids;
    if (!rule_ranked(c, 0, &d) || !rule_ranked(c, 1, &ids) || d.n == 0) return TARE_OK;
    const struct poly *n = poly_product(c->space, ids.at, ids.n);
    if (d.n == 1) {
        d.at[0] = poly_int(c->space, 1);
        rule_push(&d, n);
    } else {
        d.at[d.n - 1] = n;
    }
    return rule_state(c, 0, &d);
}

tare_status shape_feature_vectorizer(struct rule_call *c)
{
    const struct onnx_attribute *sizes = rule_attribute_of(c, "inputdimensions");
    const struct poly *all = poly_int(c->space, 0);
    for (size_t i = 0; sizes && i < sizes->ints.n; i++)
        all = poly_add(c->space, all, poly_int(c->space, sizes->ints.items[i]));
    const struct poly *dims[] = {rows_of(c, 0), sizes ? all : NULL};
    return rule_shape(c, 0, dims, 2);
}

tare_status shape_no_tensor(struct rule_call *c)
{
    rule_unknown(c, "%s works on maps, whose contents are known only when it runs", c->node->op);
    return TARE_OK;
}

/* ---- training: rate and step, then groups of as many tensors as are optimised ---- */

static tare_status optimised(struct rule_call *c, size_t groups, const size_t *from, size_t n_out)
{
    size_t n = c->node->inputs.n > 2 ? (c->node->inputs.n - 2) / groups : 0;
    tare_status s = TARE_OK;
    for (size_t g = 0; g < n_out; g++)
        for (size_t i = 0; s == TARE_OK && i < n; i++)
            s = rule_same(c, g * n + i, 2 + from[g] * n + i);
    return s;
}

tare_status shape_adam(struct rule_call *c)
{
    return optimised(c, 4, (const size_t[]){0, 2, 3}, 3);
}

tare_status shape_momentum(struct rule_call *c)
{
    return optimised(c, 3, (const size_t[]){0, 2}, 2);
}

tare_status shape_gradient(struct rule_call *c)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < c->node->outputs.n; i++)
        s = rule_same(c, i, i);
    return s;
}
