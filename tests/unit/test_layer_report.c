/* SPDX-License-Identifier: MIT
 * test_layer_report.c - layers for people and programs: which columns, what stands in a cell, order, sums, the profile
 * and the roof in words, graphs side by side; that memory may run out at any point. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/fmt.h"
#include "core/mem.h"
#include "report/run/inspect_report.h"

static struct run_case *add_layers(struct run *r)
{
    struct run_case *c = run_add_case(r, "batch=1");
    struct run_layer *a = run_add_layer(r, c, "first"), *b = run_add_layer(r, c, "second"),
                     *odd = run_add_layer(r, c, "third");
    a->op = b->op = "MatMul";
    odd->op = "Secret";
    a->group = "mlp";
    b->group = "attention";
    a->macs = known_u64(250000);
    b->macs = known_u64(750000);
    a->int_macs = b->int_macs = known_u64(0);
    a->bytes = known_u64(4096);
    b->bytes = known_u64(1 << 20);
    c->cost = (struct run_cost){.known = true, .macs = known_u64(1000000), .int_macs = known_u64(0)};
    c->cost.complete = known_bool(false);
    return c;
}

static void add_times(struct run *r, struct run_case *c)
{
    static const double times[] = {2000000, 500000, 100000};
    for (size_t i = 0; i < 3; i++) {
        c->layers.at[i]->time_ns = known_f64(times[i]);
        c->layers.at[i]->share = known_f64(times[i] / 2600000);
    }
    c->layers.at[0]->rate = known_f64(91.2e9);
    c->layers.at[0]->bound = "compute";
    c->layers.at[0]->roof_share = known_f64(0.78);
    c->profile = (struct run_profile){.known = true, .runs = known_u64(12), .overhead = known_f64(0.041)};
    r->roof = (struct run_roof){.known = true, .threads = known_u64(1), .flops = known_f64(117e9)};
}

/* ---- cells ---- */

static void cell_is(const struct run_case *c, size_t layer, const char *column, const char *text)
{
    struct buf b = BUF_INIT;
    const struct layer_column *k = layer_column_find(column);
    assert_non_null(k);
    layer_cell(&b, k, c, c->layers.at[layer]);
    assert_string_equal(b.data, text);
    buf_release(&b);
}

static void cells(void **state)
{
    struct run r;
    (void)state;
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    struct run_case *c = add_layers(&r);
    add_times(&r, c);
    cell_is(c, 0, "macs", "250 k");
    cell_is(c, 0, "mac_share", "25.0 %");
    cell_is(c, 1, "bytes", "1.00 MiB");
    cell_is(c, 2, "macs", "-"); /* unknown is not zero */
    cell_is(c, 2, "mac_share", "-");
    cell_is(c, 2, "group", "-");
    cell_is(c, 0, "time_ns", "2.00 ms");
    cell_is(c, 0, "rate", "91.2 GFLOP/s");
    cell_is(c, 0, "roof_share", "78.0 %");
    c->layers.at[0]->int_macs = known_u64(1);
    cell_is(c, 0, "rate", "91.2 GOP/s"); /* integers are no floating-point operations */
    c->layers.at[0]->name = "/a/very/long/name/that/goes/on/and/on/and/on/\x1b[2J/layer.11/attention/MatMul";
    cell_is(c, 0, "name", ".../goes/on/and/on/and/on/\\x1b[2J/layer.11/attention/MatMul");
    assert_null(layer_column_find("no such column"));
    run_release(&r);
}

static void numbers_in_powers_of_1000(void **state)
{
    static const struct {
        double v;
        const char *text;
    } rows[] = {
        {0, "0"},        {999, "999"},     {1000, "1 k"},    {37748736, "37.75 M"}, {999949, "999.9 k"},
        {999960, "1 M"}, {1.5e9, "1.5 G"}, {2e21, "2000 E"}, {0.25, "0.25"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf b = BUF_INIT;
        fmt_si(&b, rows[i].v, "");
        assert_string_equal(b.data, rows[i].text);
        buf_release(&b);
    }
}

static bool shown(const struct run_case *c, const char *column)
{
    const struct layer_column *columns[LAYER_COLUMNS_MAX];
    size_t n = layer_columns_shown(c, columns);
    for (size_t i = 0; i < n; i++)
        if (strcmp(columns[i]->column, column) == 0) return true;
    return false;
}

static void columns_fit_what_is_known(void **state)
{
    struct run r;
    (void)state;
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    struct run_case *c = add_layers(&r);
    assert_true(shown(c, "macs") && shown(c, "mac_share") && shown(c, "bytes") && !shown(c, "time_ns"));
    assert_true(!shown(c, "int_macs") && !shown(c, "output")); /* zero everywhere, known of none */
    assert_string_equal(layer_default_order(c)->column, "mac_share");
    add_times(&r, c);
    assert_true(shown(c, "time_ns") && shown(c, "rate") && shown(c, "bound") && !shown(c, "mac_share"));
    assert_string_equal(layer_default_order(c)->column, "time_ns");
    run_release(&r);
}

/* ---- order, sums ---- */

static void order_is(const struct run_case *c, const char *by, size_t top, const char *const names[3])
{
    struct layer_order o;
    assert_int_equal(layer_order_make(&o, c, by ? layer_column_find(by) : NULL, top, NULL), TARE_OK);
    for (size_t i = 0; i < o.items.n; i++) assert_string_equal(o.items.items[i]->name, names[i]);
    assert_int_equal(o.items.n + o.left_out, 3);
    layer_order_release(&o);
}

static void order(void **state)
{
    struct run r;
    (void)state;
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    struct run_case *c = add_layers(&r);
    order_is(c, NULL, 0, (const char *const[]){"first", "second", "third"});
    order_is(c, "macs", 0, (const char *const[]){"second", "first", "third"}); /* unknown ones last */
    order_is(c, "bytes", 1, (const char *const[]){"second", NULL, NULL});
    order_is(c, "group", 0, (const char *const[]){"second", "first", "third"}); /* by the alphabet */
    run_release(&r);
}

static void sums(void **state)
{
    struct run r;
    struct layer_sums s;
    (void)state;
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    struct run_case *c = add_layers(&r);
    assert_int_equal(layer_sums_make(&s, c, layer_column_find("op"), NULL), TARE_OK);
    assert_int_equal(s.items.n, 2);
    assert_string_equal(s.items.items[0].name, "MatMul");
    assert_int_equal(s.items.items[0].nodes.v, 2);
    assert_int_equal(s.items.items[0].macs.v, 1000000);
    assert_false(s.items.items[1].macs.known); /* the sum of unknowns is unknown */
    vec_release(&s.items);
    assert_int_equal(layer_sums_make(&s, c, layer_column_find("group"), NULL), TARE_OK);
    assert_int_equal(s.items.n, 3);
    assert_string_equal(s.items.items[2].name, "-");
    vec_release(&s.items);
    run_release(&r);
}

/* ---- texts ---- */

static void has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("no \"%s\" in:\n%s", part, text);
}

static tare_status render(const struct run *r, struct buf *out, tare_error *err)
{
    const struct inspect_view view = INSPECT_VIEW_INIT;
    struct stream s;
    stream_init(&s, sink_to_buf(out), err);
    report_inspect_text(&s, r, &view);
    return stream_finish(&s);
}

static void fill_static(struct run *r, struct run_static *g, uint64_t nodes)
{
    *g = (struct run_static){.known = true,
                             .nodes = known_u64(nodes),
                             .unknown_nodes = known_u64(1),
                             .parameters = known_u64(1234567),
                             .activation_peak = known_u64(2048),
                             .activation_peak_node = "second"};
    g->cost = r->cases.at[0]->cost;
    g->cost.flops = known_u64(2000000);
    g->cost_per_run = g->cost;
    g->cost_per_run.macs = known_u64(600000);
    run_map_int(&r->arena, &g->dims, "batch", 1);
    run_map_int(&r->arena, &g->unknown_ops, "Secret", 1);
    run_map_int(&r->arena, &g->patterns, "foldable_nodes", 7);
    run_map_text(&r->arena, &g->formulas, "macs", "1000000*batch");
}

static void made(struct run *r)
{
    assert_int_equal(run_init(r, "inspect", NULL), TARE_OK);
    struct run_case *c = add_layers(r);
    add_times(r, c);
    r->subject.name = "model";
    r->subject.type = "onnx";
    fill_static(r, &r->subject.as_file, 10);
    fill_static(r, &r->subject.optimized, 5);
}

static void the_whole_text(void **state)
{
    struct run r;
    struct buf out = BUF_INIT;
    (void)state;
    made(&r);
    assert_int_equal(render(&r, &out, NULL), TARE_OK);
    has(out.data, "compute    >= 1,000,000 MACs, >= 2,000,000 FLOPs\n"); /* a lower bound says so */
    has(out.data, "folded     >= 600,000 MACs without 7 nodes that are the same in every run");
    has(out.data, "unknown    1 of 10 nodes: Secret 1; totals are lower bounds\n");
    has(out.data, "memory     2.00 KiB of activations at the peak (in second)\n");
    has(out.data, "dimensions batch=1\n");
    has(out.data, "parameters 1,234,567\n");
    has(out.data, "nodes                          10             5  x 0.500\n");
    has(out.data, "timed in a pass of its own: 12 profiled runs, +4.1 % by the profiler\n");
    has(out.data, "this machine's peak: 117 GFLOP/s with 1 thread\n");
    assert_null(strstr(out.data, "formulas")); /* only when asked for */
    buf_release(&out);
    run_release(&r);
}

/* Both medians are named, that of runs beside the profiled ones and the case's own. */
static void sums_against_both_medians(void **state)
{
    static const struct {
        uint64_t p50;
        const char *said;
    } rows[] = {{0, "; layers add up to 99.7 % of the plain median\n"},
                {2600000, "; layers add up to 99.7 % of the plain median beside them, 100.0 % of the case's\n"},
                {2000000, " beside them, 130.0 % of the case's\n"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct run r;
        struct buf out = BUF_INIT;
        made(&r); /* its layers take 2.6 ms */
        struct run_case *c = r.cases.at[0];
        c->profile.covered = known_f64(0.997);
        c->latency_ns.known = c->latency_ns.p50.known = rows[i].p50 > 0;
        c->latency_ns.p50.value = rows[i].p50;
        assert_int_equal(render(&r, &out, NULL), TARE_OK);
        has(out.data, rows[i].said);
        buf_release(&out);
        run_release(&r);
    }
}

/* What is taken off is chosen so that the sum comes out: that it does is no comfort where nearly all is taken off. */
static void mostly_profiler(void **state)
{
    struct run r;
    struct buf out = BUF_INIT;
    (void)state;
    made(&r);
    r.cases.at[0]->profile.covered = known_f64(1);
    r.cases.at[0]->profile.overhead = known_f64(8.5);
    assert_int_equal(render(&r, &out, NULL), TARE_OK);
    has(out.data, "+850.0 % by the profiler; layers add up to 100.0 % of the plain median only after most of the time "
                  "was taken off, take shares as a hint\n");
    buf_release(&out);
    run_release(&r);
}

static void several_side_by_side(void **state)
{
    struct run a, b;
    struct buf out = BUF_INIT;
    struct stream s;
    (void)state;
    made(&a);
    made(&b);
    b.subject.name = "other";
    b.subject.as_file.parameters = known_u64(2469134);
    stream_init(&s, sink_to_buf(&out), NULL);
    report_inspect_compare(&s, (const struct run *const[]){&a, &b}, 2);
    assert_int_equal(stream_finish(&s), TARE_OK);
    has(out.data, "parameters            1,234,567     2,469,134  x 2.00\n");
    has(out.data, "MACs               >= 1,000,000  >= 1,000,000     x 1\n");
    buf_release(&out);
    run_release(&a);
    run_release(&b);
}

static void out_of_memory_at_any_point(void **state)
{
    struct run r;
    (void)state;
    made(&r);
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct buf out = BUF_INIT;
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        tare_status s = render(&r, &out, &err);
        mem_fail_after(-1);
        buf_release(&out);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 10000);
    }
    run_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells),
        cmocka_unit_test(numbers_in_powers_of_1000),
        cmocka_unit_test(columns_fit_what_is_known),
        cmocka_unit_test(order),
        cmocka_unit_test(sums),
        cmocka_unit_test(the_whole_text),
        cmocka_unit_test(sums_against_both_medians),
        cmocka_unit_test(mostly_profiler),
        cmocka_unit_test(several_side_by_side),
        cmocka_unit_test(out_of_memory_at_any_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
