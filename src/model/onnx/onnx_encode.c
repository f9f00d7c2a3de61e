/* SPDX-License-Identifier: MIT
 * onnx_encode.c - a built graph as the bytes of a ModelProto. Lengths come before contents in protobuf: the
 * size of every tensor is known from its dimensions, so the weights are made in one pass, a piece at a
 * time. Never holds more of them than one piece. */
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "core/wire.h"
#include "model/onnx/onnx_write.h"

enum { PIECE = 1 << 18 };   /* bytes of weights made at once */
enum { INSIDE_MAX = 1024 }; /* smaller tensors stay in the model when there is a data file */
enum { DATA_ALIGN = 4096 }; /* so that runtimes can map them */

/* Field numbers of onnx.proto. */
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTR_NAME = 1, ATTR_F = 2, ATTR_I = 3, ATTR_S = 4, ATTR_INTS = 8, ATTR_TYPE = 20 };
enum {
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_EXTERNAL = 13,
    TENSOR_PLACE = 14
};

size_t encode_number(unsigned char *out, int type, double v)
{
    uint64_t bits = 0;
    float f = (float)v;
    unsigned n = onnx_type_bits(type) / 8;
    if (type == ONNX_FLOAT)
        memcpy(&bits, &f, sizeof f);
    else
        bits = type == ONNX_FLOAT16 ? weight_to_half(f) : (uint64_t)(int64_t)v;
    for (unsigned i = 0; i < n; i++) out[i] = (unsigned char)(bits >> 8 * i);
    return n;
}

/* ---- nodes and ports ---- */

void encode_attribute(struct buf *b, const struct ow_attr *a)
{
    struct buf m = BUF_INIT;
    wire_add_str(&m, ATTR_NAME, a->name);
    if (a->kind == 1) {
        unsigned char f[8];
        wire_add_key(&m, ATTR_F, WIRE_FIXED32);
        buf_add(&m, f, encode_number(f, ONNX_FLOAT, a->f));
    }
    if (a->kind == 2) wire_add_uint(&m, ATTR_I, (uint64_t)a->i);
    if (a->kind == 3) wire_add_str(&m, ATTR_S, a->s);
    for (unsigned i = 0; a->kind == 7 && i < a->n; i++) wire_add_uint(&m, ATTR_INTS, (uint64_t)a->ints[i]);
    wire_add_uint(&m, ATTR_TYPE, (uint64_t)a->kind);
    wire_add_message(b, NODE_ATTRIBUTE, &m);
    buf_release(&m);
}

static void encode_nodes(const struct ow *w, struct buf *out)
{
    struct buf m = BUF_INIT;
    for (size_t i = 0; i < w->nodes.n; i++) {
        const struct ow_node *n = &w->nodes.items[i];
        const ow_val *edge = w->edges.items + n->edges;
        for (unsigned k = 0; k < n->n_in; k++) wire_add_str(&m, NODE_INPUT, ow_name(w, *edge++));
        for (unsigned k = 0; k < n->n_out; k++) wire_add_str(&m, NODE_OUTPUT, ow_name(w, *edge++));
        wire_add_str(&m, NODE_NAME, ow_name(w, n->name));
        wire_add_str(&m, NODE_OP, n->op);
        buf_add(&m, w->attrs.data + n->attrs, n->attrs_len);
        wire_add_message(out, GRAPH_NODE, &m);
    }
    buf_release(&m);
}

/* ValueInfoProto: name 1, type 2 { tensor 1 { element 1, shape 2 { dim 1 { value 1, name 2 } } } }. */
static void encode_port(const struct ow *w, struct buf *out, unsigned field, const struct ow_port *p)
{
    struct buf dim = BUF_INIT, shape = BUF_INIT, tensor = BUF_INIT, type = BUF_INIT, info = BUF_INIT;
    for (unsigned i = 0; i < p->rank; i++) {
        if (p->dims[i].value >= 0)
            wire_add_uint(&dim, 1, (uint64_t)p->dims[i].value);
        else
            wire_add_str(&dim, 2, p->dims[i].name);
        wire_add_message(&shape, 1, &dim);
    }
    wire_add_uint(&tensor, 1, (uint64_t)p->type);
    wire_add_message(&tensor, 2, &shape);
    wire_add_message(&type, 1, &tensor);
    wire_add_str(&info, 1, ow_name(w, p->value));
    wire_add_message(&info, 2, &type);
    wire_add_message(out, field, &info);
    buf_release(&dim);
    buf_release(&shape);
    buf_release(&tensor);
    buf_release(&type);
    buf_release(&info);
}

/* ---- tensors ---- */

static void put_pair(struct buf *b, unsigned field, const char *key, const char *value)
{
    struct buf pair = BUF_INIT;
    wire_add_str(&pair, 1, key);
    wire_add_str(&pair, 2, value);
    wire_add_message(b, field, &pair);
    buf_release(&pair);
}

/* All of a TensorProto but the raw data, whose key and length come last. */
static void encode_tensor_head(const struct ow *w, struct buf *m, const struct ow_tensor *t,
                               const char *location)
{
    char number[24];
    for (unsigned i = 0; i < t->rank; i++) wire_add_uint(m, TENSOR_DIMS, (uint64_t)t->dims[i]);
    wire_add_uint(m, TENSOR_TYPE, (uint64_t)t->type);
    wire_add_str(m, TENSOR_NAME, ow_name(w, t->name));
    if (t->place == UINT64_MAX) {
        wire_add_key(m, TENSOR_RAW, WIRE_BYTES);
        wire_add_varint(m, t->bytes);
        return;
    }
    put_pair(m, TENSOR_EXTERNAL, "location", location);
    snprintf(number, sizeof number, "%llu", (unsigned long long)t->place);
    put_pair(m, TENSOR_EXTERNAL, "offset", number);
    snprintf(number, sizeof number, "%llu", (unsigned long long)t->bytes);
    put_pair(m, TENSOR_EXTERNAL, "length", number);
    wire_add_uint(m, TENSOR_PLACE, (uint64_t)1);
}

/* Give each large tensor its place in the data file. Returns the data file's size. */
static uint64_t place_tensors(struct ow *w, bool outside)
{
    uint64_t end = 0;
    for (size_t i = 0; i < w->tensors.n; i++) {
        struct ow_tensor *t = &w->tensors.items[i];
        t->place = UINT64_MAX;
        if (!outside || t->bytes < INSIDE_MAX) continue;
        t->place = (end + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
        end = t->place + t->bytes;
    }
    return end;
}

/* A quantised weight whose largest value is known: the whole tensor is looked at once. */
static struct weight *with_peak(struct ow_tensor *t)
{
    if (!t->weight.peak) t->weight.peak = weight_peak(&t->weight);
    return &t->weight;
}

/* `n` elements from number `from` on; returns the bytes. */
static size_t make_values(struct ow *w, struct ow_tensor *t, uint64_t from, size_t n, unsigned char *out)
{
    size_t size = onnx_type_bits(t->type) / 8;
    struct ow_tensor *of = &w->tensors.items[t->fill == OW_SCALE ? t->of : 0];
    if (t->fill == OW_BYTES) {
        memcpy(out, w->bytes.data + t->of + from * size, n * size);
    } else if (t->fill == OW_SCALE) {
        encode_number(out, ONNX_FLOAT, weight_int8_scale(with_peak(of)));
    } else if (t->fill == OW_SAME) {
        for (size_t i = 0; i < n; i++) encode_number(out + i * size, t->type, t->value);
    } else if (t->type == ONNX_FLOAT) {
        weight_float(&t->weight, from, n, (float *)(void *)out);
    } else if (t->type == ONNX_FLOAT16) {
        weight_half(&t->weight, from, n, (uint16_t *)(void *)out);
    } else {
        weight_int8(with_peak(t), from, n, out);
    }
    return n * size;
}

/* ---- the file ---- */

struct output {
    struct ow *w;
    const struct ow_target *to;
    struct buf head;      /* small things on their way to the file */
    unsigned char *piece; /* PIECE bytes */
    uint64_t data_at;
    tare_status status;
};

static void flush_head(struct output *o)
{
    if (o->status == TARE_OK) o->status = buf_status(&o->head, o->w->err);
    if (o->status == TARE_OK && o->head.len > 0)
        o->status = o->to->file.write(o->to->file.ctx, o->head.data, o->head.len, o->w->err);
    buf_clear(&o->head);
}

static void write_values(struct output *o, struct ow_tensor *t, const struct ow_sink *to)
{
    size_t size = onnx_type_bits(t->type) / 8;
    uint64_t count = t->bytes / size;
    for (uint64_t at = 0; at < count && o->status == TARE_OK;) {
        size_t n = count - at < PIECE / size ? (size_t)(count - at) : PIECE / size;
        size_t bytes = make_values(o->w, t, at, n, o->piece);
        o->status = to->write(to->ctx, o->piece, bytes, o->w->err);
        at += n;
    }
}

/* Values are never in memory as a whole: the length of the message is known before, so that the head can
 * be written and the values made piece by piece behind it. In a data file tensors are aligned, and the gap
 * before one is written as zeros. */
static void write_tensor(struct output *o, struct ow_tensor *t)
{
    struct buf m = BUF_INIT;
    bool inside = t->place == UINT64_MAX;
    encode_tensor_head(o->w, &m, t, o->to->location);
    o->head.failed |= m.failed;
    wire_add_key(&o->head, GRAPH_INITIALIZER, WIRE_BYTES);
    wire_add_varint(&o->head, m.len + (inside ? t->bytes : 0));
    buf_add(&o->head, m.data, m.len);
    buf_release(&m);
    if (inside) {
        flush_head(o);
        write_values(o, t, &o->to->file);
        return;
    }
    size_t gap = (size_t)(t->place - o->data_at);
    memset(o->piece, 0, gap);
    if (o->status == TARE_OK && gap > 0)
        o->status = o->to->data.write(o->to->data.ctx, o->piece, gap, o->w->err);
    write_values(o, t, &o->to->data);
    o->data_at = t->place + t->bytes;
}

/* What stands before and after the initializers in the graph. */
static void encode_around(const struct ow *w, struct buf *before, struct buf *after)
{
    encode_nodes(w, before);
    wire_add_str(before, GRAPH_NAME, w->graph_name);
    for (size_t i = 0; i < w->inputs.n; i++) encode_port(w, after, GRAPH_INPUT, &w->inputs.items[i]);
    for (size_t i = 0; i < w->outputs.n; i++) encode_port(w, after, GRAPH_OUTPUT, &w->outputs.items[i]);
}

static uint64_t tensors_size(const struct ow *w, const char *location, struct buf *scratch)
{
    uint64_t total = 0;
    for (size_t i = 0; i < w->tensors.n; i++) {
        const struct ow_tensor *t = &w->tensors.items[i];
        buf_clear(scratch);
        encode_tensor_head(w, scratch, t, location);
        uint64_t body = scratch->len + (t->place == UINT64_MAX ? t->bytes : 0);
        buf_clear(scratch);
        wire_add_key(scratch, GRAPH_INITIALIZER, WIRE_BYTES);
        wire_add_varint(scratch, body);
        total += scratch->len + body;
        if (scratch->failed) break;
    }
    return total;
}

/* The intermediate representation that each operator set came with. */
static int64_t ir_version(int64_t opset)
{
    if (opset <= 14) return 7;
    if (opset <= 18) return 8;
    return opset <= 20 ? 9 : 10;
}

static void encode_model_head(const struct ow *w, struct buf *out, uint64_t graph_bytes)
{
    struct buf opset = BUF_INIT;
    wire_add_uint(out, MODEL_IR, (uint64_t)ir_version(w->opset));
    wire_add_str(out, MODEL_PRODUCER, "tare");
    wire_add_str(out, MODEL_PRODUCER_VERSION, w->producer_version);
    wire_add_str(&opset, 1, "");
    wire_add_uint(&opset, 2, (uint64_t)w->opset);
    wire_add_message(out, MODEL_OPSET, &opset);
    wire_add_key(out, MODEL_GRAPH, WIRE_BYTES);
    wire_add_varint(out, graph_bytes);
    buf_release(&opset);
}

/* Places the tensors and encodes all but them: the head of the model and the graph up to the tensors in
 * `before`. */
static tare_status encode_all_but_tensors(struct ow *w, const char *location, struct buf *before,
                                          struct buf *after, uint64_t *tensors)
{
    struct buf graph = BUF_INIT, scratch = BUF_INIT;
    encode_around(w, &graph, after);
    *tensors = tensors_size(w, location, &scratch);
    encode_model_head(w, before, graph.len + *tensors + after->len);
    before->failed |= graph.failed | scratch.failed;
    buf_add(before, graph.data, graph.len);
    buf_release(&graph);
    buf_release(&scratch);
    tare_status s = buf_status(before, w->err);
    return s == TARE_OK ? buf_status(after, w->err) : s;
}

tare_status ow_size(struct ow *w, const char *location, uint64_t *file, uint64_t *data)
{
    struct buf before = BUF_INIT, after = BUF_INIT;
    uint64_t tensors = 0, outside = place_tensors(w, location != NULL);
    tare_status s =
        w->status == TARE_OK ? encode_all_but_tensors(w, location, &before, &after, &tensors) : w->status;
    if (s == TARE_OK) {
        *file = before.len + tensors + after.len;
        *data = outside;
    }
    buf_release(&before);
    buf_release(&after);
    return s;
}

tare_status ow_write(struct ow *w, const struct ow_target *to)
{
    struct buf after = BUF_INIT;
    struct output o = {.w = w, .to = to, .head = BUF_INIT, .status = w->status};
    uint64_t tensors;
    place_tensors(w, to->location != NULL);
    if (o.status == TARE_OK) o.status = encode_all_but_tensors(w, to->location, &o.head, &after, &tensors);
    o.piece = mem_new(PIECE, 1);
    if (o.status == TARE_OK && !o.piece) o.status = error_nomem(w->err, "weights");
    for (size_t i = 0; i < w->tensors.n && o.status == TARE_OK; i++) write_tensor(&o, &w->tensors.items[i]);
    buf_add(&o.head, after.data, after.len);
    if (o.status == TARE_OK) flush_head(&o);
    mem_free(o.piece);
    buf_release(&o.head);
    buf_release(&after);
    return o.status;
}
