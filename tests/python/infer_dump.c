/* SPDX-License-Identifier: MIT
 * infer_dump.c - infers the shapes of models and prints what is said of their outputs. Driven by
 * test_onnx_conformance.py, many files per process. One line per output, fields apart by tabs:
 *   FILE out NAME TYPE DIMS data|- WHY     DIMS "2,3"; "" for a scalar, "?" where one is not known, "..." without rank
 *   FILE error TEXT                        the file cannot be read, or the graph is wrong
 * usage: infer_dump [NAME=VALUE ...] FILE...   free dimensions get these values after inference */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "model/infer/infer.h"

enum { BINDINGS_MAX = 1024 };

struct bindings {
    struct poly_binding at[BINDINGS_MAX];
    size_t n;
};

static const char *reason(const struct infer_scope *s, const struct infer_value *v)
{
    for (size_t i = 0; i < s->n_nodes; i++)
        for (size_t k = 0; k < s->nodes[i].node->outputs.n; k++)
            if (s->nodes[i].outputs[k] == v && s->nodes[i].why) return s->nodes[i].why;
    return "";
}

static void print_dims(const struct infer_value *v, const struct bindings *b)
{
    if (!v->has_rank) printf("...");
    for (size_t i = 0; i < v->rank; i++) {
        int64_t size;
        if (poly_eval(v->dims[i], b->at, b->n, &size))
            printf("%s%lld", i ? "," : "", (long long)size);
        else
            printf("%s?", i ? "," : "");
    }
}

static void print_output(const char *file, const struct infer_scope *s, const struct infer_value *v,
                         const struct bindings *b)
{
    printf("%s\tout\t%s\t%d\t", file, v->name, v->type);
    print_dims(v, b);
    printf("\t%s\t%s\n", v->data_dependent ? "data" : "-", reason(s, v));
}

static void dump(const char *file, const struct bindings *b)
{
    struct onnx_model m = ONNX_MODEL_INIT;
    struct inferred i = INFERRED_INIT;
    tare_error err;
    tare_status s = onnx_open(&m, file, &err);
    if (s == TARE_OK) s = infer_model(&i, &m, NULL, &err);
    if (s < 0) printf("%s\terror\t%s\n", file, err.text);
    for (size_t k = 0; s == TARE_OK && k < m.graph.outputs.n; k++) {
        const struct infer_value *v = infer_value(i.main, m.graph.outputs.items[k].name);
        if (v) print_output(file, i.main, v, b);
    }
    inferred_release(&i);
    onnx_close(&m);
}

int main(int argc, char **argv)
{
    static struct bindings b;
    for (int i = 1; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!equals) {
            dump(argv[i], &b);
        } else if (b.n < BINDINGS_MAX) {
            *equals = 0;
            b.at[b.n++] = (struct poly_binding){argv[i], strtoll(equals + 1, NULL, 10)};
        }
    }
    return 0;
}
