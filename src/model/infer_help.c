/* SPDX-License-Identifier: MIT
 * infer_help.c - what several rules of shape inference say in the same words. Must never state what an input does not
 * surely give. */
#include "model/infer_help.h"

#include <string.h>

#include "model/onnx_wire.h"

const struct poly *rule_dim(const struct infer_value *v, int64_t i)
{
    if (!v || !v->has_rank) return NULL;
    if (i < 0) i += (int64_t)v->rank;
    return i < 0 || i >= (int64_t)v->rank ? NULL : v->dims[i];
}

const struct poly *rule_input_dim(const struct rule_call *c, size_t input, int64_t i)
{
    return rule_dim(rule_input(c, input), i);
}

const struct poly *rule_int_at(const struct rule_call *c, size_t input, size_t i)
{
    const struct infer_value *v = rule_input(c, input);
    return v && v->ints && i < v->n_ints ? v->ints[i] : NULL;
}

bool rule_ranked(struct rule_call *c, size_t input, struct rule_dims *out)
{
    const struct infer_value *v = rule_input(c, input);
    *out = (struct rule_dims){.n = 0};
    if (v && v->has_rank) {
        *out = rule_dims_of(v);
        return out->known;
    }
    if (v)
        rule_unknown(c, "the shape of its input '%s' is not known", v->name);
    else
        rule_unknown(c, "its input %zu is not there", input);
    return false;
}

bool rule_ranked_as(struct rule_call *c, size_t input, size_t rank, struct rule_dims *out, tare_status *s)
{
    *s = TARE_OK;
    if (!rule_ranked(c, input, out)) return false;
    if (out->n == rank) return true;
    *s = rule_fault(c, "input '%s' has %zu dimensions, not %zu", rule_input(c, input)->name, out->n, rank);
    return false;
}

int rule_input_type(const struct rule_call *c, size_t input)
{
    const struct infer_value *v = rule_input(c, input);
    return v ? v->type : ONNX_UNDEFINED;
}

tare_status rule_state(struct rule_call *c, size_t output, const struct rule_dims *d)
{
    return d->known ? rule_shape(c, output, d->at, d->n) : TARE_OK;
}

tare_status rule_same_shape(struct rule_call *c, size_t output, size_t input)
{
    struct rule_dims d;
    return rule_ranked(c, input, &d) ? rule_state(c, output, &d) : TARE_OK;
}

void rule_same_type(struct rule_call *c, size_t output, size_t input)
{
    int type = rule_input_type(c, input);
    if (type != ONNX_UNDEFINED) rule_type(c, output, type);
}

tare_status rule_same(struct rule_call *c, size_t output, size_t input)
{
    rule_same_type(c, output, input);
    return rule_same_shape(c, output, input);
}

struct rule_dims rule_dims_none(void)
{
    return (struct rule_dims){.n = 0, .known = true};
}

void rule_push(struct rule_dims *d, const struct poly *dim)
{
    if (d->n >= INFER_RANK_MAX)
        d->known = false;
    else
        d->at[d->n++] = dim;
}

tare_status rule_agree(struct rule_call *c, const struct poly *a, const struct poly *b, const char *what,
                       const struct poly **out)
{
    int64_t x = 0;
    int64_t y = 0;
    bool a_number = poly_constant(a, &x);
    bool b_number = poly_constant(b, &y);
    *out = !a || (b_number && !a_number) ? b : a;
    if (!a_number || !b_number || x == y) return TARE_OK;
    return rule_fault(c, "%s do not match: %lld and %lld", what, (long long)x, (long long)y);
}

int64_t rule_int_of(const struct rule_call *c, const char *name, size_t i, int64_t otherwise)
{
    const struct onnx_attribute *a = rule_attribute_of(c, name);
    return a && i < a->ints.n ? a->ints.items[i] : otherwise;
}

/* ---- floats of a constant: packed bytes, or the typed field of the message ---- */

enum { TENSOR_FLOAT_DATA = 4 };

static bool floats_packed(const uint8_t *bytes, uint64_t n_bytes, float *out, size_t n)
{
    if (n_bytes != n * sizeof(float)) return false;
    memcpy(out, bytes, n_bytes);
    return true;
}

static bool float_push(uint64_t bits, float *out, size_t n, size_t *at)
{
    uint32_t word = (uint32_t)bits;
    if (*at >= n) return false;
    memcpy(&out[(*at)++], &word, sizeof word);
    return true;
}

static bool floats_typed(const struct onnx_tensor *t, float *out, size_t n)
{
    struct wire w = {t->message, t->message + t->message_bytes};
    struct wire_field f;
    const char *why;
    size_t at = 0;
    int got;
    while ((got = wire_next(&w, &f, &why)) > 0) {
        if (f.number != TENSOR_FLOAT_DATA) continue;
        if (f.type == WIRE_FIXED32 && !float_push(f.value, out, n, &at)) return false;
        if (f.type != WIRE_BYTES) continue;
        struct wire run = {f.bytes, f.bytes + f.n};
        uint64_t bits;
        while ((got = wire_packed(&run, WIRE_FIXED32, &bits, &why)) > 0)
            if (!float_push(bits, out, n, &at)) return false;
        if (got < 0) return false;
    }
    return got == 0 && at == n;
}

static bool tensor_floats(const struct onnx_tensor *t, float *out, size_t max, size_t *n)
{
    const uint8_t *bytes;
    uint64_t n_bytes;
    tare_error ignored;
    if (t->type != ONNX_FLOAT || t->elements > max) return false;
    *n = (size_t)t->elements;
    if (onnx_tensor_bytes(t, &bytes, &n_bytes, &ignored) == TARE_OK && n_bytes > 0)
        return floats_packed(bytes, n_bytes, out, *n);
    return t->message && floats_typed(t, out, *n);
}

bool rule_floats(const struct rule_call *c, const char *name, size_t input, float *out, size_t max, size_t *n)
{
    const struct onnx_attribute *a = name ? rule_attribute_of(c, name) : NULL;
    const struct infer_value *v = rule_input(c, input);
    *n = 0;
    if (a && a->floats.n > 0) {
        if (a->floats.n > max) return false;
        memcpy(out, a->floats.items, a->floats.n * sizeof *out);
        *n = a->floats.n;
        return true;
    }
    return v && v->constant && tensor_floats(v->constant, out, max, n);
}

const struct onnx_attribute *rule_attribute_of(const struct rule_call *c, const char *name)
{
    const struct onnx_attribute *a = onnx_attribute(c->node, name);
    return a && a->ref ? NULL : a;
}
