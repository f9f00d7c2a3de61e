/* SPDX-License-Identifier: MIT
 * test_layers.c - layers from a profile: which events are one node, what the profiler's cost comes to, which nodes of
 * the file a fused one stands for, groups. Profiles are written here by hand; real ones are tests/python's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/layers/layer_parts.h"
#include "analyze/layers/layers.h"
#include "core/mem.h"

/* ---- profiles by hand ---- */

static void add_node(struct buf *b, const char *name, const char *op, int64_t start, int64_t dur)
{
    buf_printf(b,
               "{\"cat\" : \"Node\",\"pid\" :1,\"tid\" :1,\"dur\" :%lld,\"ts\" :%lld,\"ph\" : \"X\",\"name\" "
               ":\"%s_kernel_time\",\"args\" : {\"op_name\" : \"%s\",\"provider\" : \"CPUExecutionProvider\","
               "\"output_type_shape\" : [{\"float\":[4,%zu]}]}},\n",
               (long long)dur, (long long)start, name, op, strlen(name));
}

static void add_run(struct buf *b, int64_t start, int64_t dur)
{
    buf_printf(
        b,
        "{\"cat\" : \"Session\",\"pid\" :1,\"tid\" :1,\"dur\" :%lld,\"ts\" :%lld,\"ph\" : \"X\",\"name\" "
        ":\"model_run\",\"args\" : {}},\n",
        (long long)dur, (long long)start);
}

/* n runs of: a 10 us, a (the same name) 20, an If of 30 around x 12; 20 us between. Run k takes k us more in x. */
static struct ort_profile make_profile(int n)
{
    struct buf b = BUF_INIT;
    struct ort_profile p = ORT_PROFILE_INIT;
    tare_error err = TARE_ERROR_INIT;
    buf_add_str(&b, "[\n");
    for (int64_t k = 0; k < n; k++) {
        int64_t t = 1000 * k;
        add_node(&b, "a", "MatMul", t + 5, 10);
        add_node(&b, "a", "MatMul", t + 20, 20);
        add_node(&b, "x", "Add", t + 50, 12 + k);
        add_node(&b, "branch", "If", t + 45, 30 + k);
        add_run(&b, t, 80 + k);
    }
    buf_add_str(&b, "]\n");
    if (ort_profile_read(&p, "made", b.data, b.len, &err) < 0) fail_msg("%s", err.text);
    buf_release(&b);
    return p;
}

static const struct run_layer *layer(const struct run_case *c, const char *name, const char *op)
{
    for (size_t i = 0; i < c->layers.n; i++) {
        const struct run_layer *l = c->layers.at[i];
        if (strcmp(l->name, name) == 0 && (!op || strcmp(l->op, op) == 0)) return l;
    }
    fail_msg("no layer %s", name);
    return NULL;
}

struct joined {
    struct run run;
    struct run_case *c;
    double sum, shares;
};

static void join(struct joined *j, const struct layers_input *in)
{
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(&j->run, "bench", &err), TARE_OK);
    j->c = run_add_case(&j->run, "case");
    if (layers_join(&j->run, j->c, in, &err) < 0) fail_msg("%s", err.text);
    j->sum = j->shares = 0;
    for (size_t i = 0; i < j->c->layers.n; i++) {
        const struct run_layer *l = j->c->layers.at[i];
        assert_true(l->time_ns.known && l->time_ns.v >= 0 && l->share.known);
        assert_true(i == 0 || j->c->layers.at[i - 1]->time_ns.v >= l->time_ns.v);
        j->sum += l->time_ns.v;
        j->shares += l->share.v;
    }
}

/* ---- times ---- */

static void same_names_are_told_apart(void **state)
{
    (void)state;
    struct ort_profile p = make_profile(9);
    struct layer_times t = LAYER_TIMES_INIT;
    assert_int_equal(layer_times_build(&t, &p, 3, NULL), TARE_OK);
    assert_true(t.by_position);
    assert_int_equal(t.n_main, 3);
    assert_int_equal(t.slots.n, 4);
    assert_int_equal(t.runs, 6);
    assert_int_equal(t.events, 24);
    assert_float_equal(t.slots.items[0].time_us, 10, 1e-9);
    assert_float_equal(t.slots.items[1].time_us, 20, 1e-9);
    assert_float_equal(t.slots.items[2].time_us, 18, 1e-9); /* the If without what is in it */
    assert_int_equal(t.slots.items[3].parent, 2);
    assert_float_equal(t.slots.items[3].time_us, 17.5,
                       1e-9); /* of runs 3 .. 8 those nearest to 5.5: 4 to 7 */
    layer_times_release(&t);
    ort_profile_release(&p);
}

/* Runs that differ: nodes are known by name, and one that runs every other time costs half. */
static void runs_that_differ(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    struct ort_profile p = ORT_PROFILE_INIT;
    struct layer_times t = LAYER_TIMES_INIT;
    buf_add_str(&b, "[\n");
    for (int64_t k = 0; k < 4; k++) {
        add_node(&b, "always", "Add", 100 * k + 1, 10);
        if (k % 2) add_node(&b, "sometimes", "Mul", 100 * k + 20, 8);
        add_run(&b, 100 * k, 40);
    }
    buf_add_str(&b, "]\n");
    assert_int_equal(ort_profile_read(&p, "made", b.data, b.len, NULL), TARE_OK);
    assert_int_equal(layer_times_build(&t, &p, 0, NULL), TARE_OK);
    assert_false(t.by_position);
    assert_int_equal(t.slots.n, 2);
    assert_float_equal(t.slots.items[0].time_us, 10, 1e-9);
    assert_float_equal(t.slots.items[1].time_us, 4, 1e-9);
    layer_times_release(&t);
    ort_profile_release(&p);
    buf_release(&b);
}

/* ---- the profiler's cost ---- */

static void nothing_to_compare_with(void **state)
{
    (void)state;
    struct ort_profile p = make_profile(9);
    struct joined j;
    join(&j, &(struct layers_input){.profile = &p, .skip_runs = 3});
    assert_float_equal(j.sum, 85.5e3, 1); /* the median of the runs, as they were */
    assert_float_equal(j.shares, 1, 1e-9);
    assert_float_equal(layer(j.c, LAYERS_RUNTIME, NULL)->time_ns.v, 20e3, 1);
    assert_float_equal(layer(j.c, "branch > x", "Add")->time_ns.v, 17.5e3, 1);
    assert_string_equal(layer(j.c, "branch", "If")->output, "float32[4,6]");
    assert_false(j.c->profile.covered.known);
    assert_non_null(run_reason(&j.c->unknown, "profile.overhead"));
    run_release(&j.run);
    ort_profile_release(&p);
}

/* A plain run takes 61.5 us: 24 us less than a profiled one, so 6 us a node. */
static void what_it_costs_is_taken_off(void **state)
{
    (void)state;
    struct ort_profile p = make_profile(9);
    const uint64_t plain[] = {61500, 61500, 61500}, profiled[] = {85500, 85500, 85500};
    struct joined j;
    join(&j, &(struct layers_input){
                 .profile = &p, .skip_runs = 3, .plain = {plain, 3}, .profiled = {profiled, 3}});
    assert_float_equal(j.sum, 61.5e3, 1);
    assert_float_equal(j.shares, 1, 1e-9);
    assert_int_equal(j.c->profile.node_ns.v, 6000);
    assert_int_equal(j.c->profile.latency_ns.v, 85500);
    assert_float_equal(j.c->profile.overhead.v, 24 / 61.5, 1e-9);
    assert_float_equal(j.c->profile.covered.v, 1, 1e-9);
    assert_float_equal(layer(j.c, "a", "MatMul")->time_ns.v, 14e3, 1); /* the longer of the two comes first */
    run_release(&j.run);
    ort_profile_release(&p);
}

/* A profiler that costs more than the work itself: nothing below zero, and still the same sum. */
static void mostly_profiler(void **state)
{
    (void)state;
    struct ort_profile p = make_profile(9);
    const uint64_t plain[] = {5000}, profiled[] = {85500};
    struct joined j;
    join(&j, &(struct layers_input){
                 .profile = &p, .skip_runs = 3, .plain = {plain, 1}, .profiled = {profiled, 1}});
    assert_float_equal(j.sum, 5e3, 1);
    assert_float_equal(j.shares, 1, 1e-9);
    run_release(&j.run);
    ort_profile_release(&p);
}

/* Profiled runs that are faster, or slower beyond all measure, are the machine's doing: seen in `covered`. */
static void unrest_is_not_taken_off(void **state)
{
    (void)state;
    struct ort_profile p = make_profile(9);
    const uint64_t slow[] = {100000}, profiled[] = {85500}, fast[] = {50000}, wild[] = {1050000};
    struct joined j;
    join(&j, &(struct layers_input){
                 .profile = &p, .skip_runs = 3, .plain = {slow, 1}, .profiled = {profiled, 1}});
    assert_int_equal(j.c->profile.node_ns.v, 0);
    assert_float_equal(j.c->profile.covered.v, 0.855, 1e-6);
    run_release(&j.run);
    join(&j,
         &(struct layers_input){.profile = &p, .skip_runs = 3, .plain = {fast, 1}, .profiled = {wild, 1}});
    assert_int_equal(j.c->profile.node_ns.v, 50000);
    assert_true(j.c->profile.covered.v > 1.1);
    run_release(&j.run);
    ort_profile_release(&p);
}

static void no_run_is_left(void **state)
{
    (void)state;
    struct ort_profile p = make_profile(2);
    struct run run;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(&run, "bench", &err), TARE_OK);
    struct run_case *c = run_add_case(&run, "case");
    assert_int_equal(layers_join(&run, c, &(struct layers_input){.profile = &p, .skip_runs = 2}, &err),
                     TARE_INVALID);
    run_release(&run);
    ort_profile_release(&p);
}

/* ---- back to the file ---- */

#define VALUES(...) \
    {.items = (const char *[]){__VA_ARGS__}, .n = sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)}
#define GRAPH(list) {.name = "g", .nodes = {list, sizeof list / sizeof *list}}

#define IN(...) VALUES(__VA_ARGS__)
#define NODE(label, kind, from, made) {.name = label, .op = kind, .domain = "", .inputs = from, .outputs = VALUES(made)}

/* clang-format off */
static struct onnx_node file_nodes[] = {
    NODE("/layer.0/dense/MatMul", "MatMul", IN("in", "w"), "m"),
    NODE("/layer.0/dense/Add", "Add", IN("m", "b"), "s"),
    NODE("/layer.0/Div", "Div", IN("s", "c"), "d"),
    NODE("/layer.0/Erf", "Erf", IN("d"), "e"),
    NODE("/layer.0/Mul", "Mul", IN("s", "e"), "g"),
    NODE("/conv/Conv", "Conv", IN("g", "k"), "v"),
    NODE("/bn/Norm", "BatchNormalization", IN("v"), "n"),
    NODE("/Add", "Add", IN("n", "g"), "r"),
    NODE("/Relu", "Relu", IN("r"), "o"),
    NODE("/last", "Softmax", IN("o"), "out"),
};

static struct onnx_node made_nodes[] = {
    NODE("/layer.0/dense/MatMul", "MatMul", IN("in", "w"), "m"),
    NODE("BiasGelu_token_5", "BiasGelu", IN("m", "b"), "g"),
    NODE("ReorderInput", "ReorderInput", IN("g"), "x0"),
    NODE("n_nchwc", "Conv", IN("x0", "k2"), "x1"),
    NODE("ReorderOutput", "ReorderOutput", IN("x1"), "x2"),
    NODE("/last", "Softmax", IN("x2"), "out"),
};
/* clang-format on */

static void fused_nodes_find_their_origin(void **state)
{
    (void)state;
    const struct onnx_graph file = GRAPH(file_nodes), made = GRAPH(made_nodes);
    static const size_t covered[] = {1, 4, 0, 4, 0, 1}, anchors[] = {0, 4, 4, 6, 6, 9};
    struct source_map m = SOURCE_MAP_INIT;
    struct buf path = BUF_INIT;
    assert_int_equal(source_map_build(&m, &file, &made, NULL), TARE_OK);
    assert_int_equal(m.n, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(m.of[i].n, covered[i]);
        assert_int_equal(m.of[i].anchor, anchors[i]);
    }
    assert_int_equal(m.n_covered, 10); /* every node of the file once */
    source_common_path(&m, &file, 1, &path);
    assert_string_equal(path.data, "/layer.0");
    source_common_path(&m, &file, 2, &path);
    assert_string_equal(path.data, "");
    buf_release(&path);
    source_map_release(&m);
}

static void mapping_without_memory(void **state)
{
    (void)state;
    const struct onnx_graph file = GRAPH(file_nodes), made = GRAPH(made_nodes);
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct source_map m = SOURCE_MAP_INIT;
        mem_fail_after(n);
        tare_status s = source_map_build(&m, &file, &made, NULL);
        mem_fail_after(-1);
        source_map_release(&m);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 1000);
    }
}

/* Joined with both graphs: names and counts come from the file, by place in spite of equal names. */
static void joined_with_graphs(void **state)
{
    (void)state;
    static const char *const names[] = {
        "/layer.0/dense/MatMul", "BiasGelu_token_5", "ReorderInput", "n_nchwc", "ReorderOutput", "/last"};
    struct onnx_model file = {.graph = GRAPH(file_nodes)}, made = {.graph = GRAPH(made_nodes)};
    struct buf b = BUF_INIT;
    struct ort_profile p = ORT_PROFILE_INIT;
    struct joined j;
    buf_add_str(&b, "[\n");
    for (int64_t k = 0; k < 6; k++) add_node(&b, names[k], made_nodes[k].op, 10 * k + 1, 9 - k);
    add_run(&b, 0, 70);
    buf_add_str(&b, "]\n");
    assert_int_equal(ort_profile_read(&p, "made", b.data, b.len, NULL), TARE_OK);
    join(&j, &(struct layers_input){.profile = &p, .source_model = &file, .optimized_model = &made});
    assert_int_equal(layer(j.c, "/layer.0/BiasGelu", "BiasGelu")->nodes.v, 4);
    assert_string_equal(layer(j.c, "/layer.0/BiasGelu", NULL)->group, "mlp");
    assert_int_equal(layer(j.c, "/conv/Conv", "Conv")->nodes.v, 4);
    assert_int_equal(layer(j.c, "ReorderInput", NULL)->nodes.v, 0);
    assert_string_equal(layer(j.c, "ReorderInput", NULL)->group, "layout");
    assert_int_equal(layer(j.c, "/last", NULL)->nodes.v, 1);
    assert_int_equal(j.c->graph.n_from, 5); /* by time: (runtime), then as the nodes stand */
    for (size_t k = 0; k < 5; k++) {
        assert_int_equal(j.c->graph.from[k], k + 1);
        assert_int_equal(j.c->graph.to[k], k + 2);
    }
    run_release(&j.run);
    ort_profile_release(&p);
    buf_release(&b);
}

static void shapes_that_were_seen(void **state)
{
    (void)state;
    struct onnx_model made = {.graph = GRAPH(made_nodes)};
    struct ort_profile p = ORT_PROFILE_INIT;
    struct arena a = ARENA_INIT;
    struct layers_shapes seen = {0};
    struct buf b = BUF_INIT;
    buf_add_str(&b, "[\n");
    add_node(&b, "/last", "Softmax", 1, 2);
    add_node(&b, "somewhere", "Add", 4, 2);
    add_run(&b, 0, 7);
    buf_add_str(&b, "]");
    assert_int_equal(ort_profile_read(&p, "made", b.data, b.len, NULL), TARE_OK);
    assert_int_equal(layers_seen(&p, &made, &a, &seen, NULL), TARE_OK);
    assert_int_equal(seen.n, 1);
    assert_string_equal(seen.items[0].value, "out");
    assert_int_equal(seen.items[0].dims[1], 5);
    arena_release(&a);
    ort_profile_release(&p);
    buf_release(&b);
}

/* ---- groups ---- */

static void groups_by_structure(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"/encoder/layer.3/attention/self/query/MatMul", "MatMul", "attention"},
        {"/encoder/layer.3/attention/output/dense/MatMul", "MatMul", "attention"},
        {"/encoder/layer.3/attention/output/LayerNorm/LayerNormalization", "LayerNormalization", "norm"},
        {"/encoder/layer.3/intermediate/dense/MatMul", "MatMul", "mlp"},
        {"/encoder/layer.3/output/dense/MatMul", "MatMul", "mlp"},
        {"/encoder/layer.3/Add_2", "Add", "residual"},
        {"/embeddings/word_embeddings/Gather", "Gather", "embedding"},
        {"model.layers.0.self_attn.q_proj.MatMul", "MatMul", "attention"},
        {"/model/layers.0/mlp/down_proj/MatMul", "MatMul", "mlp"},
        {"/layers.0/linear1/MatMul", "MatMul", "mlp"},
        {"/encoder/block.0/layer.1/DenseReluDense/wi/MatMul", "MatMul", "mlp"},
        {"/lm_head/MatMul", "MatMul", "head"},
        {"/pooler/dense/Gemm", "Gemm", "head"},
        {"/layer1/layer1.0/conv1/Conv", "Conv", "layer1"},
        {"/layer1.0/bn1/BatchNormalization", "BatchNormalization", "norm"},
        {"/layer2.0/downsample/1/BatchNormalization_output_0_nchwc", "Conv", "layer2"},
        {"/features/features.3/Conv", "Conv", "features.3"},
        {"/fc/Gemm", "Gemm", "head"},
        {"Memcpy_token_3", "MemcpyToHost", "copy"},
        {"/h.0/ln_1/Pow", "Pow", "norm"},
        {"outer > /mlp/MatMul", "MatMul", "mlp"},
        {"/encoder/layers/encoder_layer_3/Add_1", "Add", "residual"},
        {"/encoder/layers/encoder_layer_3/Relu", "Relu", "encoder_layer_3"},
        {"MatMul_17", "MatMul", "other"},
        {"", "Add", "other"},
        {LAYERS_RUNTIME, NULL, "runtime"},
    };
    struct arena a = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(layers_group_of(&a, rows[i][0], rows[i][1]), rows[i][2]);
    arena_release(&a);
}

/* A block whose Gelu is written out, and whose products have no telling names. */
/* clang-format off */
static struct onnx_node near_nodes[] = {
    NODE("n0", "Transpose", IN("layer.0.attention.query.weight"), "qw"),
    NODE("n1", "MatMul", IN("x", "qw"), "q"),
    NODE("n2", "MatMul", IN("q", "q"), "scores"),
    NODE("n3", "Reshape", IN("scores", "shape"), "a"),
    NODE("/layer.0/Add", "Add", IN("a", "x"), "r1"),
    NODE("/layer.0/ln/Pow", "Pow", IN("r1"), "l"),
    NODE("/layer.0/Div_0", "Div", IN("l"), "d0"),
    NODE("/layer.0/mlp/MatMul", "MatMul", IN("d0", "w"), "m"),
    NODE("/layer.0/Erf", "Erf", IN("m"), "e"),
    NODE("/layer.0/Mul", "Mul", IN("m", "e"), "g"),
    NODE("/layer.0/MatMul", "MatMul", IN("g", "w"), "o"),
    NODE("/layer.0/Add_1", "Add", IN("g", "r1"), "r2"),
    NODE("n12", "MatMul", IN("r2", "wte.weight"), "logits"),
};
/* clang-format on */
static struct onnx_tensor near_weights[] = {
    {.name = "layer.0.attention.query.weight"}, {.name = "w"}, {.name = "wte.weight"}, {.name = "shape"}};

static struct onnx_graph near_graph(void)
{
    struct onnx_graph g = GRAPH(near_nodes);
    g.initializers.items = near_weights;
    g.initializers.n = sizeof near_weights / sizeof *near_weights;
    return g;
}

/* Inputs of the model have no say, so the first Add is attention's; the second joins mlp with what came before. */
static void groups_by_neighbours(void **state)
{
    (void)state;
    static const char *const wanted[] = {"attention", "attention", "attention", "attention", "attention", "norm", NULL,
                                         "mlp",       "mlp",       "mlp",       NULL,        NULL,        "head"};
    const struct onnx_graph g = near_graph();
    struct layer_near near;
    assert_int_equal(layer_near_build(&near, &g, NULL), TARE_OK);
    for (size_t i = 0; i < g.nodes.n; i++) {
        const char *got = layer_near_group(&near, i), *want = wanted[i];
        if (!want != !got || (want && strcmp(got, want) != 0))
            fail_msg("%s: %s, not %s", g.nodes.items[i].name, got ? got : "none", want ? want : "none");
    }
    assert_null(layer_near_group(&near, g.nodes.n));
    layer_near_release(&near);
    assert_int_equal(layer_near_build(&near, NULL, NULL), TARE_OK);
    assert_null(layer_near_group(&near, 0));
}

static void neighbours_without_memory(void **state)
{
    (void)state;
    const struct onnx_graph g = near_graph();
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct layer_near near;
        mem_fail_after(n);
        tare_status s = layer_near_build(&near, &g, NULL);
        mem_fail_after(-1);
        layer_near_release(&near);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 1000);
    }
}

/* No run in the profile ended: what the profiler adds to one cannot be told, however long a plain one takes. */
static void no_run_ended(void **state)
{
    (void)state;
    const uint64_t plain[] = {1000};
    struct ort_profile p = ORT_PROFILE_INIT;
    struct buf b = BUF_INIT;
    struct joined j;
    buf_add_str(&b, "[\n");
    add_node(&b, "a", "MatMul", 5, 200);
    assert_int_equal(ort_profile_read(&p, "made", b.data, b.len, NULL), TARE_OK);
    join(&j, &(struct layers_input){.profile = &p, .plain = {plain, 1}});
    assert_false(j.c->profile.overhead.known || j.c->profile.node_ns.known || j.c->profile.covered.known);
    assert_non_null(strstr(run_reason(&j.c->unknown, "profile.covered"), "ended"));
    assert_float_equal(layer(j.c, "a", "MatMul")->time_ns.v, 200e3, 1);
    run_release(&j.run);
    ort_profile_release(&p);
    buf_release(&b);
}

static void groups_by_pattern(void **state)
{
    (void)state;
    static const char *const patterns[] = {"ATTENTION", "mlp", "/x?/*"};
    static const char *const rows[][2] = {{"/encoder/layer.0/attention/self/Add", "ATTENTION"},
                                          {"/encoder/layer.0/output/dense/MatMul", "mlp"},
                                          {"/x1/y/Conv", "/x?/*"},
                                          {"/y/Conv", "other"},
                                          {"/layers.0/post_attention_layernorm/Mul", "other"},
                                          {"/encoder/layer.0/attention/output/LayerNorm/Mul", "ATTENTION"},
                                          {LAYERS_RUNTIME, "runtime"}};
    struct run run;
    assert_int_equal(run_init(&run, "bench", NULL), TARE_OK);
    struct run_case *c = run_add_case(&run, "case");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) run_add_layer(&run, c, rows[i][0]);
    layers_group(&run, c, patterns, 3);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_string_equal(c->layers.at[i]->group, rows[i][1]);
    run_release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_names_are_told_apart),
        cmocka_unit_test(runs_that_differ),
        cmocka_unit_test(nothing_to_compare_with),
        cmocka_unit_test(what_it_costs_is_taken_off),
        cmocka_unit_test(mostly_profiler),
        cmocka_unit_test(unrest_is_not_taken_off),
        cmocka_unit_test(no_run_is_left),
        cmocka_unit_test(fused_nodes_find_their_origin),
        cmocka_unit_test(mapping_without_memory),
        cmocka_unit_test(joined_with_graphs),
        cmocka_unit_test(shapes_that_were_seen),
        cmocka_unit_test(groups_by_structure),
        cmocka_unit_test(groups_by_neighbours),
        cmocka_unit_test(neighbours_without_memory),
        cmocka_unit_test(no_run_ended),
        cmocka_unit_test(groups_by_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
