/* SPDX-License-Identifier: MIT
 * test_inspect.c - whole models without running them: free dimensions and their values, layers, totals, parameters,
 * memory, what goes into the document; and models of known architectures against the numbers that are known of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "analyze/layers/inspect.h"
#include "graph_fixture.h"
#include "model/onnx/dimname.h"
#include "model/synth/synth.h"

static struct inspected inspect(const struct onnx_model *m, const struct poly_binding *dims, size_t n)
{
    tare_error err = TARE_ERROR_INIT;
    struct inspected i = INSPECTED_INIT;
    const struct inspect_options o = {.dims = dims, .n_dims = n};
    if (inspect_model(&i, m, &o, &err) < 0) fail_msg("%s", err.text);
    return i;
}

static uint64_t number(const struct inspected *i, const struct poly *p)
{
    struct known_u64 v = inspect_number(i, p);
    assert_true(v.known);
    return v.v;
}

/* ids -> embedding -> a product with weights, twice the same ones. */
static void add_small(struct graph *g)
{
    graph_values(g, "ids=int64[batch_size,seq_len] table=*float[100,8] w=*float[8,8] b=*float[8]");
    graph_node(g, "Gather", "table,ids", "x", "");
    graph_node(g, "MatMul", "x,w", "y", "");
    graph_node(g, "Add", "y,b", "z", "");
    graph_node(g, "MatMul", "z,w", "u", "");
    graph_output(g, "u");
}

/* ---- dimensions ---- */

static void test_dims(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    add_small(&g);
    graph_read(&g, 17);
    const struct poly_binding none = {"", 0}, by_class[] = {{"batch", 4}, {"seq", 16}},
                              exact = {"seq_len", 5};
    struct inspected i = inspect(&g.model, &none, 0);
    assert_int_equal(i.dims.n, 2);
    assert_string_equal(i.dims.items[0].name, "batch_size");
    assert_int_equal(i.dims.items[0].value, 1);
    assert_false(i.asked.items[0]);
    assert_int_equal(i.dims.items[1].value, DIMNAME_SEQ);
    assert_int_equal(number(&i, i.total.macs), 2 * DIMNAME_SEQ * 64);
    inspected_release(&i);
    i = inspect(&g.model, by_class, 2);
    assert_int_equal(i.dims.items[0].value, 4);
    assert_int_equal(i.dims.items[1].value, 16);
    assert_true(i.asked.items[0] && i.asked.items[1]);
    assert_int_equal(number(&i, i.total.macs), 2 * 4 * 16 * 64);
    inspected_release(&i);
    i = inspect(&g.model, &exact, 1);
    assert_int_equal(i.dims.items[1].value, 5);
    assert_false(i.asked.items[0]);
    inspected_release(&i);
    graph_release(&g);
}

static void refused(const struct onnx_model *m, const char *name, int64_t value, const char *says)
{
    tare_error err = TARE_ERROR_INIT;
    struct inspected i = INSPECTED_INIT;
    const struct poly_binding dim = {name, value};
    const struct inspect_options o = {.dims = &dim, .n_dims = 1};
    assert_int_equal(inspect_model(&i, m, &o, &err), TARE_INVALID);
    if (!strstr(err.text, says)) fail_msg("%s", err.text);
    assert_int_equal(i.layers.n, 0);
}

static void test_dims_refused(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    add_small(&g);
    graph_read(&g, 17);
    refused(&g.model, "height", 3,
            "no free dimension 'height'; its free dimensions are: batch_size, seq_len");
    refused(&g.model, "seq", -1, "'seq' cannot be -1");
    graph_release(&g);
}

static void test_too_many_dims(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    tare_error err = TARE_ERROR_INIT;
    struct inspected i = INSPECTED_INIT;
    const struct inspect_options o = {.n_dims = 0};
    for (int k = 0; k < 1400; k++) {
        char spec[100];
        snprintf(spec, sizeof spec, "x%d=float[a%d,b%d,c%d]", k, k, k, k);
        graph_values(&g, spec);
    }
    graph_node(&g, "Relu", "x0", "y", "");
    graph_output(&g, "y");
    graph_read(&g, 17);
    assert_int_equal(inspect_model(&i, &g.model, &o, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "more than 4096 free dimensions"));
    graph_release(&g);
}

static void test_dims_without_names(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "ids=int64[?,?] table=*float[100,8] past=float[?,past_sequence_length,8] "
                     "mask=float[1,past_sequence_length + sequence_length]");
    graph_node(&g, "Gather", "table,ids", "x", "");
    graph_node(&g, "Relu", "past", "p", "");
    graph_node(&g, "Relu", "mask", "m", "");
    graph_output(&g, "x");
    graph_read(&g, 17);
    const struct poly_binding dims[] = {{"batch", 3}, {"ids.1", 7}, {"past_sequence_length", 4}};
    struct inspected i = inspect(&g.model, dims, 3);
    assert_int_equal(i.dims.n, 5);
    assert_string_equal(i.dims.items[1].name, "ids.1");
    assert_int_equal(i.dims.items[0].value, 3);
    assert_int_equal(i.dims.items[2].value, 3);     /* past.0: a first one without a name */
    assert_int_equal(i.dims.items[4].value, 4 + 7); /* the sum in its name */
    assert_false(i.asked.items[4]);
    inspected_release(&i);
    i = inspect(&g.model, dims, 2);
    assert_int_equal(i.dims.items[3].value, 0); /* nothing in the cache */
    inspected_release(&i);
    graph_release(&g);
}

/* ---- layers ---- */

static void test_layers(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    const struct poly_binding dims[] = {{"batch", 2}, {"seq", 3}};
    add_small(&g);
    graph_read(&g, 17);
    struct inspected i = inspect(&g.model, dims, 2);
    assert_int_equal(i.layers.n, 4);
    assert_string_equal(i.layers.items[0].name, "Gather_x");
    assert_int_equal(number(&i, i.layers.items[0].parameters), 800);
    assert_int_equal(number(&i, i.layers.items[1].parameters), 64);
    assert_int_equal(number(&i, i.layers.items[2].parameters), 8);
    assert_int_equal(number(&i, i.layers.items[3].parameters), 0); /* counted at the first reader */
    assert_int_equal(i.parameters, 872);
    assert_int_equal(i.parameters, g.model.parameters);
    assert_int_equal(i.parameter_bytes, 4 * 872);
    assert_int_equal(i.bytes_by_type[ONNX_FLOAT], 4 * 872);
    assert_int_equal(i.nodes, 4);
    assert_int_equal(i.unknown_nodes, 0);
    assert_int_equal(i.memory.sum, 4 * 6 * 8 * 4);
    assert_false(i.is_bound);
    inspected_release(&i);
    graph_release(&g);
}

/* A product of weights alone is computed once, when a runtime loads the model. */
static void test_folded(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "x=float[batch,8] v=*float[16,8] w=*float[8,8]");
    graph_node(&g, "MatMul", "v,w", "p", "");
    graph_node(&g, "Transpose", "p", "t", "");
    graph_node(&g, "MatMul", "x,t", "y", "");
    graph_output(&g, "y");
    graph_read(&g, 17);
    struct inspected i = inspect(&g.model, NULL, 0);
    assert_int_equal(number(&i, i.total.macs), 16 * 64 + 8 * 16);
    assert_int_equal(number(&i, i.per_run.macs), 8 * 16);
    assert_true(i.layers.items[0].folded && i.layers.items[1].folded);
    assert_false(i.layers.items[2].folded);
    inspected_release(&i);
    graph_release(&g);
}

/* Which dimensions are 1, and so are squeezed out, only numbers can tell. */
static void test_numbers_where_symbols_fail(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    const struct poly_binding dims[] = {{"n", 1}, {"m", 5}};
    graph_values(&g, "a=float[n,4,m] w=*float[3,4]");
    graph_node(&g, "Squeeze", "a", "r", "");
    graph_node(&g, "Transpose", "r", "t", "");
    graph_node(&g, "Transpose", "t", "s", "");
    graph_node(&g, "MatMul", "w,s", "y", "");
    graph_output(&g, "y");
    graph_read(&g, 17);
    struct inspected i = inspect(&g.model, dims, 2);
    assert_true(i.is_bound);
    assert_true(i.total.known);
    assert_int_equal(number(&i, i.total.macs), 3 * 4 * 5);
    assert_true(i.memory.known);
    assert_int_equal(i.memory.sum, 4 * (20 + 20 + 15));
    inspected_release(&i);
    graph_release(&g);
}

static void test_unknown_nodes(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    graph_values(&g, "x=float[batch,8] w=*float[8,8]");
    graph_node(&g, "MatMul", "x,w", "y", "");
    g.domain = "my.own";
    graph_node(&g, "Secret", "y", "z", "");
    graph_output(&g, "z");
    graph_read(&g, 17);
    struct inspected i = inspect(&g.model, NULL, 0);
    assert_false(i.total.known);
    assert_int_equal(i.unknown_nodes, 1);
    assert_int_equal(number(&i, i.total.macs), 64);
    inspected_release(&i);
    graph_release(&g);
}

/* ---- the document ---- */

static int64_t int_at(const struct run_map *m, const char *key)
{
    const struct run_value *v = run_map_get(m, key);
    if (!v || v->kind != RUN_INT) fail_msg("no number %s", key);
    return v->i;
}

static void test_document(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    struct run run;
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    const struct poly_binding dims[] = {{"batch", 2}, {"seq", 3}};
    add_small(&g);
    graph_read(&g, 17);
    struct inspected i = inspect(&g.model, dims, 2);
    assert_int_equal(run_init(&run, "inspect", &err), TARE_OK);
    run.subject.type = "onnx";
    run.subject.name = "small";
    struct run_static *s = &run.subject.as_file;
    inspect_record_static(&i, &run, s);
    struct run_case *c = run_add_case(&run, "batch=2");
    assert_int_equal(inspect_record_layers(&i, &run, c, &err), TARE_OK);
    assert_int_equal(int_at(&s->dims, "seq_len"), 3);
    assert_int_equal(int_at(&s->ops, "MatMul"), 2);
    assert_int_equal(s->unknown_ops.n, 0);
    assert_int_equal(int_at(&s->bytes_by_type, "float32"), 4 * 872);
    assert_int_equal(s->cost.macs.v, 2 * 6 * 64);
    assert_int_equal(s->cost.useful_macs.v, 2 * 6 * 64);
    assert_int_equal(s->cost_per_run.macs.v, 2 * 6 * 64);
    assert_true(s->cost.complete.v);
    assert_string_equal(run_map_get(&s->formulas, "macs")->s, "128*batch_size*seq_len");
    assert_string_equal(run_map_get(&s->formulas, "parameters")->s, "872");
    assert_string_equal(run_map_get(&s->formulas, "activation_sum")->s, "128*batch_size*seq_len");
    assert_int_equal(c->layers.n, 4);
    assert_string_equal(c->layers.at[1]->output, "float32[2,3,8]");
    assert_int_equal(c->layers.at[1]->macs.v, 6 * 64);
    assert_int_equal(c->layers.at[1]->output_bytes.v, 192);
    assert_int_equal(c->layers.at[1]->bytes.v, 192 + 256 + 192);
    assert_int_equal(c->cost.macs.v, s->cost.macs.v);
    assert_true(c->graph.known);
    assert_int_equal(c->graph.n_from, 3);
    assert_int_equal(c->graph.n_to, 3);
    for (size_t k = 0; k < 3; k++) {
        assert_int_equal(c->graph.from[k], k);
        assert_int_equal(c->graph.to[k], k + 1);
    }
    if (run_write(&run, &text, &err) < 0) fail_msg("%s", err.text);
    buf_release(&text);
    run_release(&run);
    inspected_release(&i);
    graph_release(&g);
}

/* One edge for a value that is read twice, and none at all of a single node. */
static void test_edges(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT, one = GRAPH_INIT;
    struct run run;
    tare_error err = TARE_ERROR_INIT;
    graph_values(&g, "x=float[2] y=float[2]");
    graph_node(&g, "Relu", "x", "a", "");
    graph_node(&g, "Relu", "y", "b", "");
    graph_node(&g, "Mul", "b,b", "c", "");
    graph_node(&g, "Add", "a,c", "d", "");
    graph_output(&g, "d");
    graph_read(&g, 17);
    graph_values(&one, "x=float[2]");
    graph_node(&one, "Relu", "x", "a", "");
    graph_output(&one, "a");
    graph_read(&one, 17);
    struct inspected i = inspect(&g.model, NULL, 0), single = inspect(&one.model, NULL, 0);
    assert_int_equal(run_init(&run, "inspect", &err), TARE_OK);
    struct run_case *c = run_add_case(&run, "four"), *alone = run_add_case(&run, "one");
    assert_int_equal(inspect_record_layers(&i, &run, c, &err), TARE_OK);
    assert_int_equal(inspect_record_layers(&single, &run, alone, &err), TARE_OK);
    static const uint64_t from[] = {1, 0, 2}, to[] = {2, 3, 3};
    assert_int_equal(c->graph.n_from, 3);
    assert_memory_equal(c->graph.from, from, sizeof from);
    assert_memory_equal(c->graph.to, to, sizeof to);
    assert_false(alone->graph.known);
    assert_non_null(run_reason(&alone->unknown, "graph"));
    run_release(&run);
    inspected_release(&i);
    inspected_release(&single);
    graph_release(&g);
    graph_release(&one);
}

static void test_document_of_unknown(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    struct run run;
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    graph_values(&g, "x=float[batch,8] w=*float[8,8]");
    graph_node(&g, "MatMul", "x,w", "y", "");
    g.domain = "my.own";
    graph_node(&g, "Secret", "y", "z", "");
    graph_output(&g, "z");
    graph_read(&g, 17);
    struct inspected i = inspect(&g.model, NULL, 0);
    assert_int_equal(run_init(&run, "inspect", &err), TARE_OK);
    run.subject.type = "onnx";
    run.subject.name = "small";
    struct run_static *s = &run.subject.as_file;
    inspect_record_static(&i, &run, s);
    struct run_case *c = run_add_case(&run, "one");
    assert_int_equal(inspect_record_layers(&i, &run, c, &err), TARE_OK);
    assert_int_equal(int_at(&s->unknown_ops, "my.own.Secret"), 1);
    assert_false(s->cost.complete.v);
    assert_int_equal(s->cost.macs.v, 64);
    assert_string_equal(run_map_get(&s->formulas, "macs")->s, ">= 64*batch");
    assert_false(s->activation_peak.known);
    assert_non_null(run_reason(&s->unknown, "activation_peak"));
    assert_non_null(strstr(run_reason(&s->unknown, "unknown_nodes"), "(Secret): there is no rule"));
    assert_false(c->layers.at[1]->macs.known);
    if (run_write(&run, &text, &err) < 0) fail_msg("%s", err.text);
    buf_release(&text);
    run_release(&run);
    inspected_release(&i);
    graph_release(&g);
}

/* ---- known architectures: the graph is written, its weights are a hole in a file ---- */

struct reference {
    const char *arch;
    int64_t seq; /* 0: images */
    uint64_t parameters, macs, per_run;
};

static const struct reference references[] = {
    {"resnet50", 0, 25557032, 4089184256, 4089184256},
    {"mobilenetv2", 0, 3504872, 300774272, 300774272},
    {"vit-b16", 0, 86567656, 17563828224, 17563828224},
    {"bert-base", 128, 109482240, 11174215680, 11174215680},
    {"bert-base", 384, 109482240, 35333406720, 35333406720},
    {"bert-base", 512, 109482240, 48318971904, 48318971904},
    {"bert-large", 384, 335141888, 123212922880, 123212922880},
    {"distilbert", 128, 66362880, 5586812928, 5586812928},
    {"minilm-l6", 128, 22713216, 1434599424, 1434599424},
    {"minilm-l6", 256, 22713216, 3020046336, 3020046336},
    {"minilm-l6", 512, 22713216, 6643924992, 6643924992},
    {"minilm-l12", 128, 33360000, 2869051392, 2869051392},
    {"deberta-v3-base", 128, 183831552, 19629342720, 12381585408},
};

static tare_status to_buf(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    buf_add(ctx, bytes, n);
    return buf_status(ctx, err);
}

static tare_status to_nowhere(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    (void)ctx, (void)bytes, (void)n, (void)err;
    return TARE_OK;
}

/* The graph of an architecture, its weights said to lie in a file that is never looked at. */
static struct buf graph_of(const char *arch)
{
    struct buf out = BUF_INIT;
    struct ow w;
    tare_error err = TARE_ERROR_INIT;
    struct synth_config config = {.opset = 17, .seed = 1};
    const struct synth_arch *a = synth_find(arch);
    const struct ow_target to = {{to_buf, &out}, {to_nowhere, NULL}, "weights"};
    assert_non_null(a);
    assert_int_equal(synth_resolve(a, &config, &err), TARE_OK);
    assert_int_equal(synth_build(&w, a, &config, &err), TARE_OK);
    if (ow_write(&w, &to) < 0) fail_msg("%s", err.text);
    ow_release(&w);
    return out;
}

static void check_reference(const struct reference *r)
{
    tare_error err = TARE_ERROR_INIT;
    struct onnx_model m = ONNX_MODEL_INIT;
    struct buf bytes = graph_of(r->arch);
    const struct poly_binding seq = {"seq", r->seq};
    if (onnx_read(&m, r->arch, bytes.data, bytes.len, &err) < 0) fail_msg("%s", err.text);
    struct inspected i = inspect(&m, &seq, r->seq != 0);
    assert_true(i.total.known && i.memory.known);
    assert_int_equal(i.unknown_nodes, 0);
    assert_int_equal(i.parameters, r->parameters);
    assert_int_equal(number(&i, i.total.macs), r->macs);
    assert_int_equal(number(&i, i.per_run.macs), r->per_run);
    uint64_t sum = 0;
    for (size_t k = 0; k < i.layers.n; k++) sum += number(&i, i.layers.items[k].parameters);
    assert_int_equal(sum, r->parameters);
    assert_true(i.memory.arena >= i.memory.peak && i.memory.sum > i.memory.arena);
    inspected_release(&i);
    onnx_close(&m);
    buf_release(&bytes);
}

static void test_references(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) check_reference(&references[i]);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct graph g = GRAPH_INIT;
    add_small(&g);
    graph_read(&g, 17);
    long held = mem_live_blocks();
    for (long n = 0;; n++) {
        tare_error err = TARE_ERROR_INIT;
        struct inspected i = INSPECTED_INIT;
        const struct inspect_options o = {.n_dims = 0};
        mem_fail_after(n);
        tare_status s = inspect_model(&i, &g.model, &o, &err);
        mem_fail_after(-1);
        inspected_release(&i);
        assert_int_equal(mem_live_blocks(), held);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 100000);
    }
    graph_release(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dims),
        cmocka_unit_test(test_dims_refused),
        cmocka_unit_test(test_too_many_dims),
        cmocka_unit_test(test_dims_without_names),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_folded),
        cmocka_unit_test(test_numbers_where_symbols_fail),
        cmocka_unit_test(test_unknown_nodes),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_document_of_unknown),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
