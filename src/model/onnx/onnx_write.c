/* SPDX-License-Identifier: MIT
 * onnx_write.c - the graph that is being built; see onnx_write.h. Writes nothing: onnx_encode.c does. */
#include "model/onnx/onnx_write.h"

#include <stdio.h>
#include <string.h>

#include "core/wire.h"

void ow_init(struct ow *w, int64_t opset, uint64_t seed, tare_error *err)
{
    *w = (struct ow){.opset = opset,
                     .seed = seed,
                     .err = err,
                     .text = BUF_INIT,
                     .attrs = BUF_INIT,
                     .bytes = BUF_INIT,
                     .scope = BUF_INIT,
                     .graph_name = "main_graph",
                     .producer_version = ""};
    buf_add_char(&w->text, '\0');
    w->status = vec_push(&w->values, (size_t)0, err); /* value 0: "" */
    if (w->status == TARE_OK) w->status = buf_status(&w->text, err);
}

void ow_release(struct ow *w)
{
    vec_release(&w->values);
    vec_release(&w->nodes);
    vec_release(&w->edges);
    vec_release(&w->tensors);
    vec_release(&w->inputs);
    vec_release(&w->outputs);
    buf_release(&w->text);
    buf_release(&w->attrs);
    buf_release(&w->bytes);
    buf_release(&w->scope);
    map_str_release(&w->taken);
    map_str_release(&w->constants);
}

const char *ow_name(const struct ow *w, ow_val v)
{
    return v < w->values.n ? w->text.data + w->values.items[v] : "";
}

/* Keep the first failure. */
static bool good(struct ow *w, tare_status s)
{
    if (w->status == TARE_OK) w->status = s;
    return w->status == TARE_OK;
}

static bool good_buf(struct ow *w, const struct buf *b)
{
    return w->status == TARE_OK && good(w, buf_status(b, w->err));
}

/* ---- names ---- */

size_t ow_enter(struct ow *w, const char *part)
{
    size_t mark = w->scope.len;
    if (!*part) return mark;
    buf_add_char(&w->scope, '/');
    buf_add_str(&w->scope, part);
    good_buf(w, &w->scope);
    return mark;
}

size_t ow_enter_index(struct ow *w, const char *part, unsigned i)
{
    size_t mark = w->scope.len;
    buf_printf(&w->scope, "/%s.%u", part, i);
    good_buf(w, &w->scope);
    return mark;
}

void ow_leave(struct ow *w, size_t mark)
{
    if (w->scope.len <= mark) return;
    w->scope.len = mark;
    w->scope.data[mark] = '\0';
}

static size_t add_text(struct ow *w, const char *s)
{
    size_t at = w->text.len;
    buf_add(&w->text, s, strlen(s) + 1);
    return good_buf(w, &w->text) ? at : 0;
}

static ow_val add_value(struct ow *w, const char *name)
{
    size_t at = add_text(w, name);
    if (w->status != TARE_OK || !good(w, vec_push(&w->values, at, w->err))) return 0;
    return (ow_val)(w->values.n - 1);
}

/* "name", or "name_1", "name_2" where it is taken: as exporters number them. */
static void make_unique(struct ow *w, struct buf *name)
{
    uint64_t *count = NULL;
    if (!good_buf(w, name) || !good(w, map_str_ref(&w->taken, name->data, name->len, &count, w->err))) return;
    if ((*count)++ > 0) buf_printf(name, "_%llu", (unsigned long long)(*count - 1));
    good_buf(w, name);
}

/* ---- inputs and outputs ---- */

struct ow_port ow_port(ow_val v, int type, unsigned rank, const struct onnx_dim *dims)
{
    struct ow_port p = {.value = v, .type = type, .rank = rank};
    for (unsigned i = 0; i < rank; i++) p.dims[i] = dims[i];
    return p;
}

ow_val ow_input(struct ow *w, const char *name, int type, unsigned rank, const struct onnx_dim *dims)
{
    ow_val v = add_value(w, name);
    if (v && !good(w, vec_push(&w->inputs, ow_port(v, type, rank, dims), w->err))) return 0;
    return v;
}

void ow_output(struct ow *w, const char *name, struct ow_port p)
{
    size_t at = add_text(w, name);
    if (w->status != TARE_OK || p.value >= w->values.n) return;
    w->values.items[p.value] = at;
    good(w, vec_push(&w->outputs, p, w->err));
}

void ow_output_first(struct ow *w)
{
    if (w->status != TARE_OK || w->outputs.n < 2) return;
    struct ow_port last = vec_pop(&w->outputs);
    memmove(w->outputs.items + 1, w->outputs.items, w->outputs.n * sizeof last);
    w->outputs.items[0] = last;
    w->outputs.n++;
}

/* ---- tensors ---- */

static ow_val add_tensor(struct ow *w, struct ow_tensor *t, const char *name)
{
    t->name = add_value(w, name);
    t->place = UINT64_MAX;
    return t->name && good(w, vec_push(&w->tensors, *t, w->err)) ? t->name : 0;
}

/* The scope with dots, the leaf, the ending: "encoder.layer.0.query.weight_scale". */
static void tensor_name(struct ow *w, struct buf *out, const char *leaf, const char *ending)
{
    for (size_t i = 1; i < w->scope.len; i++)
        buf_add_char(out, w->scope.data[i] == '/' ? '.' : w->scope.data[i]);
    if (w->scope.len > 0) buf_add_char(out, '.');
    buf_add_str(out, leaf);
    buf_add_str(out, ending);
    good_buf(w, out);
}

static uint64_t elements_of(unsigned rank, const int64_t *dims)
{
    uint64_t n = 1;
    for (unsigned i = 0; i < rank; i++) n *= (uint64_t)dims[i];
    return n;
}

/* A tensor beside or instead of that of `spec`: its name with an ending. */
static ow_val add_named(struct ow *w, const struct ow_spec *spec, const char *ending, struct ow_tensor *t)
{
    struct buf name = BUF_INIT;
    tensor_name(w, &name, spec->leaf, ending);
    ow_val v = w->status == TARE_OK ? add_tensor(w, t, name.data) : 0;
    buf_release(&name);
    return v;
}

/* What is drawn depends on the plain name, so that the numbers are the same in every precision. */
static struct ow_tensor make_tensor(struct ow *w, const struct ow_spec *spec)
{
    struct ow_tensor t = {.fill = spec->fill, .type = spec->type, .rank = spec->rank, .value = spec->value};
    struct buf name = BUF_INIT;
    for (unsigned i = 0; i < spec->rank; i++) t.dims[i] = spec->dims[i];
    uint64_t n = elements_of(spec->rank, spec->dims);
    t.bytes = n * (onnx_type_bits(spec->type) / 8);
    tensor_name(w, &name, spec->leaf, "");
    t.weight =
        (struct weight){.key = weight_key(w->seed, name.data), .count = n, .step = weight_step(spec->std)};
    if (spec->transposed) t.weight.rows = (uint64_t)spec->dims[0], t.weight.cols = (uint64_t)spec->dims[1];
    if (!spec->buffer) w->parameters += n;
    buf_release(&name);
    return t;
}

ow_val ow_weight(struct ow *w, const struct ow_spec *spec)
{
    struct ow_tensor t = make_tensor(w, spec);
    return add_named(w, spec, "", &t);
}

struct ow_quantized ow_quantized(struct ow *w, const struct ow_spec *spec)
{
    struct ow_quantized out = {0};
    struct ow_tensor q = make_tensor(w, spec);
    q.weight.zero = spec->type == ONNX_UINT8 ? 128 : 0;
    out.q = add_named(w, spec, "_quantized", &q);
    struct ow_tensor scale = {.fill = OW_SCALE, .type = ONNX_FLOAT, .bytes = 4, .of = w->tensors.n - 1};
    out.scale = add_named(w, spec, "_scale", &scale);
    struct ow_tensor zero = {.fill = OW_SAME, .type = spec->type, .bytes = 1, .value = q.weight.zero};
    out.zero = add_named(w, spec, "_zero_point", &zero);
    return out;
}

/* ---- constants ---- */

/* Equal constants become one initializer: a model made of many layers has the same few shapes and axes in
 * each. Type and rank are part of the key, as the same bytes may mean another value. */
static ow_val constant(struct ow *w, int type, unsigned rank, const void *data, size_t n_bytes)
{
    struct buf key = BUF_INIT;
    uint64_t *known = NULL;
    buf_printf(&key, "%d %u ", type, rank);
    buf_add(&key, data, n_bytes);
    if (!good_buf(w, &key) || !good(w, map_str_ref(&w->constants, key.data, key.len, &known, w->err)))
        goto out;
    if (*known == 0) {
        char name[40];
        snprintf(name, sizeof name, "constant.%zu", w->constants.n - 1);
        struct ow_tensor t = {
            .fill = OW_BYTES, .type = type, .rank = rank, .bytes = n_bytes, .of = w->bytes.len};
        if (rank) t.dims[0] = (int64_t)(8 * n_bytes / onnx_type_bits(type));
        buf_add(&w->bytes, data, n_bytes);
        *known = good_buf(w, &w->bytes) ? add_tensor(w, &t, name) : 0;
    }
out:
    buf_release(&key);
    return w->status == TARE_OK ? (ow_val)*known : 0;
}

ow_val ow_ints(struct ow *w, const int64_t *v, size_t n)
{
    struct buf bytes = BUF_INIT;
    for (size_t i = 0; i < n; i++) wire_add_fixed(&bytes, (uint64_t)v[i], 8);
    ow_val out = good_buf(w, &bytes) ? constant(w, ONNX_INT64, 1, bytes.data, bytes.len) : 0;
    buf_release(&bytes);
    return out;
}

ow_val ow_scalar(struct ow *w, int type, double v)
{
    unsigned char bytes[8];
    size_t n = encode_number(bytes, type, v);
    return w->status == TARE_OK ? constant(w, type, 0, bytes, n) : 0;
}

/* ---- nodes ---- */

static bool add_edges(struct ow *w, const struct ow_call *call, const char *name)
{
    for (unsigned i = 0; i < call->n_in; i++)
        if (!good(w, vec_push(&w->edges, call->in[i], w->err))) return false;
    for (unsigned i = 0; i < call->n_out; i++) {
        struct buf out = BUF_INIT;
        buf_printf(&out, "%s_output_%u", name, i);
        ow_val v = good_buf(w, &out) ? add_value(w, out.data) : 0;
        buf_release(&out);
        if (!v || !good(w, vec_push(&w->edges, v, w->err))) return false;
    }
    return true;
}

/* Outputs get successive values: a caller that made several takes the first and counts up. After a failure
 * everything returns 0 and w->status keeps the cause, so that builders need not check each call. */
ow_val ow_node(struct ow *w, const struct ow_call *call)
{
    struct buf name = BUF_INIT;
    ow_val first = 0;
    struct ow_node node = {.op = call->op, .n_in = call->n_in, .n_out = call->n_out};
    buf_add_str(&name, w->scope.data);
    buf_add_char(&name, '/');
    buf_add_str(&name, call->op);
    make_unique(w, &name);
    node.edges = w->edges.n;
    node.attrs = w->attrs.len;
    for (const struct ow_attr *a = call->attrs; a && a->kind; a++) encode_attribute(&w->attrs, a);
    node.attrs_len = w->attrs.len - node.attrs;
    if (!good_buf(w, &w->attrs)) goto out;
    node.name = add_value(w, name.data);
    if (!node.name || !add_edges(w, call, name.data)) goto out;
    if (good(w, vec_push(&w->nodes, node, w->err))) first = w->edges.items[node.edges + node.n_in];
out:
    buf_release(&name);
    return first;
}
