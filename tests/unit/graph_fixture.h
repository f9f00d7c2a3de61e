/* SPDX-License-Identifier: MIT
 * graph_fixture.h - graphs with shapes in a few words, for tests of what is told of a model without running it:
 *
 *     struct graph g = GRAPH_INIT;
 *     graph_values(&g, "x=float[batch,8] w=*float[8,4]");    // a star: an initializer, its data nowhere
 *     graph_node(&g, "MatMul", "x,w", "y", "");
 *     graph_output(&g, "y");
 *     graph_infer(&g);                                       // g.model, g.shapes
 *     graph_release(&g);
 */
#ifndef GRAPH_FIXTURE_H
#define GRAPH_FIXTURE_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/infer/infer.h"
#include "onnx_fixture.h"

struct graph {
    struct buf body, bytes;
    const char *domain; /* of the nodes added from now on */
    uint64_t data;      /* where the next weight would lie */
    struct onnx_model model;
    struct inferred shapes;
};
#define GRAPH_INIT {BUF_INIT, BUF_INIT, "", 0, ONNX_MODEL_INIT, INFERRED_INIT}

static inline int graph_type(const char *name, size_t n)
{
    for (int t = 1; t < ONNX_TYPES; t++) {
        const char *known = onnx_type_name(t);
        if (strlen(known) == n && memcmp(known, name, n) == 0) return t;
    }
    if (n == 5 && memcmp(name, "float", n) == 0) return ONNX_FLOAT;
    fail_msg("no type %.*s", (int)n, name);
    return 0;
}

/* The dims of "2,batch,]": numbers or names; calls back for each. Returns past the bracket. */
static inline const char *graph_dims(const char *at, struct buf *dims, bool as_tensor)
{
    while (*at != ']') {
        size_t n = strcspn(at, ",]");
        struct buf dim = BUF_INIT;
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)n, at);
        if (as_tensor) {
            pb_int(dims, 1, atoll(text));
        } else {
            if (isdigit((unsigned char)text[0]))
                pb_int(&dim, 1, atoll(text));
            else if (strcmp(text, "?") != 0)
                pb_str(&dim, 2, text);
            pb_msg(dims, 1, &dim);
        }
        at += n + (at[n] == ',');
        buf_release(&dim);
    }
    return at + 1;
}

static inline void graph_external(struct graph *g, struct buf *tensor)
{
    char offset[32];
    struct buf entry = BUF_INIT;
    snprintf(offset, sizeof offset, "%llu", (unsigned long long)g->data);
    g->data += 4096;
    pb_str(&entry, 1, "location");
    pb_str(&entry, 2, "weights");
    pb_msg(tensor, 13, &entry);
    pb_str(&entry, 1, "offset");
    pb_str(&entry, 2, offset);
    pb_msg(tensor, 13, &entry);
    pb_int(tensor, 14, 1);
}

static inline void graph_value(struct graph *g, const char *name, int type, struct buf *shape)
{
    struct buf tensor = BUF_INIT, t = BUF_INIT, v = BUF_INIT;
    pb_int(&tensor, 1, type);
    pb_msg(&tensor, 2, shape);
    pb_msg(&t, 1, &tensor);
    pb_str(&v, 1, name);
    pb_msg(&v, 2, &t);
    pb_msg(&g->body, 11, &v);
}

static inline void graph_values(struct graph *g, const char *spec)
{
    for (const char *at = spec; *at;) {
        size_t n = strcspn(at, "=");
        char name[32];
        struct buf dims = BUF_INIT;
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        at += n + 1;
        bool weight = *at == '*';
        at += weight;
        n = strcspn(at, "[");
        int type = graph_type(at, n);
        at = graph_dims(at + n + 1, &dims, weight);
        if (weight) {
            pb_int(&dims, 2, type);
            pb_str(&dims, 8, name);
            graph_external(g, &dims);
            pb_msg(&g->body, 5, &dims);
        } else {
            graph_value(g, name, type, &dims);
        }
        buf_release(&dims);
        while (*at == ' ') at++;
    }
}

/* A small integer tensor with its contents. */
static inline void graph_ints(struct graph *g, const char *name, const int64_t *v, size_t n)
{
    struct buf t = pb_ints(name, v, n);
    pb_msg(&g->body, 5, &t);
}

/* "axis=1 alpha=2.5 mode='linear' kernel_shape=(2,2)" */
static inline void graph_attributes(struct buf *node, const char *spec)
{
    for (const char *at = spec; *at;) {
        struct buf a = BUF_INIT;
        size_t n = strcspn(at, "="), len = strcspn(at, " ");
        char text[64];
        pb_bytes(&a, 1, at, n);
        snprintf(text, sizeof text, "%.*s", (int)(len - n - 1), at + n + 1);
        if (text[0] == '\'') {
            pb_bytes(&a, 4, text + 1, strlen(text) - 2);
            pb_int(&a, 20, 3);
        } else if (text[0] == '(') {
            for (char *p = text; *p != ')';) pb_int(&a, 8, strtoll(p + 1, &p, 10));
            pb_int(&a, 20, 7);
        } else if (strchr(text, '.')) {
            float f = strtof(text, NULL);
            pb_varint(&a, 2 << 3 | 5);
            buf_add(&a, &f, sizeof f);
            pb_int(&a, 20, 1);
        } else {
            pb_int(&a, 3, atoll(text));
            pb_int(&a, 20, 2);
        }
        pb_msg(node, 5, &a);
        at += len;
        while (*at == ' ') at++;
    }
}

static inline struct buf graph_node_bytes(const struct graph *g, const char *op, const char *in,
                                          const char *out, const char *attributes)
{
    struct buf n = pb_node(op, in, out);
    graph_attributes(&n, attributes);
    if (g->domain[0]) pb_str(&n, 7, g->domain);
    return n;
}

static inline void graph_node(struct graph *g, const char *op, const char *in, const char *out,
                              const char *attributes)
{
    struct buf n = graph_node_bytes(g, op, in, out, attributes);
    pb_msg(&g->body, 1, &n);
}

static inline void graph_output(struct graph *g, const char *name)
{
    struct buf v = BUF_INIT;
    pb_str(&v, 1, name);
    pb_msg(&g->body, 12, &v);
}

/* The model alone, read from its bytes. */
static inline void graph_read(struct graph *g, int64_t opset)
{
    tare_error err = TARE_ERROR_INIT;
    static const char *const domains[] = {"", "com.microsoft", "com.microsoft.nchwc", "local"};
    struct buf set = BUF_INIT;
    pb_int(&g->bytes, 1, 10);
    pb_msg(&g->bytes, 7, &g->body);
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++) {
        pb_str(&set, 1, domains[i]);
        pb_int(&set, 2, i ? 1 : opset);
        pb_msg(&g->bytes, 8, &set);
    }
    if (onnx_read(&g->model, "graph", g->bytes.data, g->bytes.len, &err) < 0) fail_msg("%s", err.text);
}

static inline void graph_infer(struct graph *g)
{
    tare_error err = TARE_ERROR_INIT;
    const struct infer_options o = {.n_dims = 0};
    graph_read(g, 21);
    if (infer_model(&g->shapes, &g->model, &o, &err) < 0) fail_msg("%s", err.text);
}

static inline void graph_release(struct graph *g)
{
    inferred_release(&g->shapes);
    onnx_close(&g->model);
    buf_release(&g->body);
    buf_release(&g->bytes);
}

#endif
