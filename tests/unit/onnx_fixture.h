/* SPDX-License-Identifier: MIT
 * onnx_fixture.h - ONNX models made by hand for tests: a few lines of protobuf onto a buf, so that damage
 * can be made exactly where a test wants it. Shares nothing with the writer in src/model. */
#ifndef ONNX_FIXTURE_H
#define ONNX_FIXTURE_H

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "core/buf.h"
#include "core/mem.h"

static inline void pb_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) buf_add_char(b, (char)(v | 0x80));
    buf_add_char(b, (char)v);
}

static inline void pb_int(struct buf *b, unsigned field, int64_t v)
{
    pb_varint(b, field << 3);
    pb_varint(b, (uint64_t)v);
}

static inline void pb_bytes(struct buf *b, unsigned field, const void *bytes, size_t n)
{
    pb_varint(b, field << 3 | 2);
    pb_varint(b, n);
    buf_add(b, bytes, n);
}

static inline void pb_str(struct buf *b, unsigned field, const char *s)
{
    pb_bytes(b, field, s, strlen(s));
}

/* Add a message and empty it. */
static inline void pb_msg(struct buf *b, unsigned field, struct buf *inner)
{
    pb_bytes(b, field, inner->data, inner->len);
    buf_release(inner);
    *inner = (struct buf)BUF_INIT;
}

/* An initializer or constant of any type over raw data of zeros, or of the given bytes. */
static inline struct buf pb_tensor(const char *name, int type, const int64_t *dims, size_t rank, size_t raw)
{
    struct buf t = BUF_INIT, zeros = BUF_INIT;
    for (size_t i = 0; i < rank; i++) pb_int(&t, 1, dims[i]);
    pb_int(&t, 2, type);
    pb_str(&t, 8, name);
    for (size_t i = 0; i < raw; i++) buf_add_char(&zeros, 0);
    pb_bytes(&t, 9, zeros.data, zeros.len);
    buf_release(&zeros);
    return t;
}

static inline struct buf pb_ints(const char *name, const int64_t *values, size_t n)
{
    struct buf t = BUF_INIT;
    pb_int(&t, 1, (int64_t)n);
    pb_int(&t, 2, 7);
    pb_str(&t, 8, name);
    pb_bytes(&t, 9, values, n * sizeof *values);
    return t;
}

/* A value of rank 2: [batch, 4]. */
static inline struct buf pb_value(const char *name, int type)
{
    struct buf v = BUF_INIT, t = BUF_INIT, tensor = BUF_INIT, shape = BUF_INIT, dim = BUF_INIT;
    pb_str(&dim, 2, "batch");
    pb_msg(&shape, 1, &dim);
    pb_int(&dim, 1, 4);
    pb_msg(&shape, 1, &dim);
    pb_int(&tensor, 1, type);
    pb_msg(&tensor, 2, &shape);
    pb_msg(&t, 1, &tensor);
    pb_str(&v, 1, name);
    pb_msg(&v, 2, &t);
    return v;
}

/* pb_node("Gather", "table,ids", "out"): names separated by commas; an empty one is left out. */
static inline struct buf pb_node(const char *op, const char *inputs, const char *outputs)
{
    struct buf n = BUF_INIT;
    const char *lists[2] = {inputs, outputs};
    for (unsigned i = 0; i < 2; i++) {
        for (const char *s = lists[i]; *lists[i] && s;) {
            const char *comma = strchr(s, ',');
            pb_bytes(&n, i + 1, s, comma ? (size_t)(comma - s) : strlen(s));
            s = comma ? comma + 1 : NULL;
        }
    }
    pb_str(&n, 4, op);
    return n;
}

static inline void pb_attr_int(struct buf *node, const char *name, int64_t v)
{
    struct buf a = BUF_INIT;
    pb_str(&a, 1, name);
    pb_int(&a, 3, v);
    pb_int(&a, 20, 2);
    pb_msg(node, 5, &a);
}

static inline void pb_attr_graph(struct buf *node, const char *name, struct buf *graph)
{
    struct buf a = BUF_INIT;
    pb_str(&a, 1, name);
    pb_msg(&a, 6, graph);
    pb_int(&a, 20, 5);
    pb_msg(node, 5, &a);
}

/* ir_version, opset 17, the graph. */
static inline struct buf pb_model(struct buf *graph)
{
    struct buf m = BUF_INIT, opset = BUF_INIT;
    pb_int(&m, 1, 8);
    pb_str(&m, 2, "fixture");
    pb_msg(&m, 7, graph);
    pb_str(&opset, 1, "");
    pb_int(&opset, 2, 17);
    pb_msg(&m, 8, &opset);
    return m;
}

#endif
