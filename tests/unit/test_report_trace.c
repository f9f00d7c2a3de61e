/* SPDX-License-Identifier: MIT
 * The views of a call tree, and the reports made of them. */
#include "report_fixture.h"

/* ---- views ---- */

static struct view view_of(struct fixture *f, const struct calltree *tree, struct view_options o)
{
    struct view v = VIEW_INIT;
    assert_int_equal(view_build(&v, tree, &f->source, &o, NULL), TARE_OK);
    return v;
}

static void expect_nodes(struct view *v, const uint32_t *nodes, size_t n)
{
    assert_int_equal(v->n, n);
    for (size_t i = 0; i < n; i++) assert_int_equal(v->rows[i].node, nodes[i]);
    view_release(v);
}

static void rows_are_parents_first_in_the_asked_order(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    (void)state;
    struct view v = view_of(f, &tree, (struct view_options){0});
    assert_int_equal(v.rows[0].depth, 0);
    assert_int_equal(v.rows[2].depth, 2);
    assert_false(v.rows[0].last);
    assert_true(v.rows[1].last);
    assert_int_equal(v.hidden, 0);
    expect_nodes(&v, (uint32_t[]){1, 2, 3, 5, 4}, 5);
    v = view_of(f, &tree, (struct view_options){.sort = TREE_SORT_SELF});
    expect_nodes(&v, (uint32_t[]){5, 4, 1, 2, 3}, 5);
    v = view_of(f, &tree, (struct view_options){.sort = TREE_SORT_COUNT});
    expect_nodes(&v, (uint32_t[]){5, 4, 1, 2, 3}, 5);
    v = view_of(f, &tree, (struct view_options){.sort = TREE_SORT_NAME});
    expect_nodes(&v, (uint32_t[]){1, 2, 3, 5, 4}, 5);
    nodes[1].mean_ns.value = NAN;
    v = view_of(f, &tree, (struct view_options){.sort = TREE_SORT_MEAN});
    expect_nodes(&v, (uint32_t[]){5, 4, 1, 2, 3}, 5); /* unknown comes last */
    free(f);
}

static void depth_and_share_hide_and_count(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    (void)state;
    struct view v = view_of(f, &tree, (struct view_options){.depth = 1});
    assert_int_equal(v.hidden, 3);
    expect_nodes(&v, (uint32_t[]){1, 5}, 2);
    v = view_of(f, &tree, (struct view_options){.min_share = 0.25});
    assert_int_equal(v.hidden, 2);
    assert_float_equal(v.whole_ns, 10000, 0.1);
    assert_float_equal(view_share(&v, &nodes[3], false), 0.3, 1e-9);
    expect_nodes(&v, (uint32_t[]){1, 2, 3}, 3);
    v = view_of(f, &tree, (struct view_options){.all_kinds = true, .depth = 2});
    assert_int_equal(v.n, 6);
    view_release(&v);
    struct calltree nothing = {.nodes = nodes, .n_nodes = 0};
    v = view_of(f, &nothing, (struct view_options){0});
    assert_int_equal(v.n, 0);
    view_release(&v);
    free(f);
}

static void flat_view_counts_recursion_once(void **state)
{
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes), flat = CALLTREE_INIT;
    const struct call_node *step = NULL, *main_ = NULL, *tokens = NULL;
    (void)state;
    assert_int_equal(flat_build(&flat, &tree, FIX_SITES, NULL), TARE_OK);
    assert_int_equal(flat.n_nodes, 6);
    for (uint32_t i = 1; i < flat.n_nodes; i++) {
        if (flat.nodes[i].site == SITE_STEP) step = &flat.nodes[i];
        if (flat.nodes[i].site == SITE_MAIN) main_ = &flat.nodes[i];
        if (flat.nodes[i].site == SITE_TOKENS) tokens = &flat.nodes[i];
    }
    assert_non_null(step);
    assert_int_equal(step->count, 17);
    assert_float_equal(step->total_ns.value, 7500, 1e-6); /* 7000 with the inner 3000 in it, and 500 */
    assert_float_equal(step->self_ns.value, 7500, 1e-6);
    assert_float_equal(step->self_ns.hi, 7515, 1e-6);
    assert_float_equal(step->mean_ns.value, 10500.0 / 17, 1e-6);
    assert_float_equal(step->gross_total_ns, 7700, 1e-6);
    assert_true(isnan(step->p50_ns));
    assert_int_equal(step->threads, 0); /* cannot be known */
    assert_non_null(main_);
    assert_float_equal(main_->p50_ns, 8000, 1e-6); /* one path: kept */
    assert_int_equal(main_->threads, 1);
    assert_non_null(tokens);
    assert_int_equal(tokens->value, -2);
    flat_release(&flat);
}

static void a_chain_as_deep_as_you_like(void **state)
{
    enum { DEEP = 200000 };
    struct call_node *nodes = calloc(DEEP + 1, sizeof *nodes);
    struct fixture *f = fix_new();
    struct calltree flat = CALLTREE_INIT;
    (void)state;
    for (uint32_t i = 0; i <= DEEP; i++) {
        nodes[i] = node_of(i ? SITE_STEP : CALL_NO_SITE, i ? i - 1 : 0, 1, DEEP - i + 1, 1);
        nodes[i].child = i < DEEP ? i + 1 : 0;
    }
    struct calltree tree = {.nodes = nodes, .n_nodes = DEEP + 1};
    assert_int_equal(flat_build(&flat, &tree, FIX_SITES, NULL), TARE_OK);
    assert_int_equal(flat.nodes[1].count, DEEP);
    assert_float_equal(flat.nodes[1].total_ns.value, DEEP, 1e-6);
    struct view v = view_of(f, &tree, (struct view_options){0});
    assert_int_equal(v.n, DEEP);
    assert_int_equal(v.rows[DEEP - 1].depth, DEEP - 1);
    view_release(&v);
    flat_release(&flat);
    struct report_input in = {
        .source = &f->source, .tree = &tree, .options = {.thread = -1}};
    struct buf got = BUF_INIT;
    struct stream s;
    stream_init(&s, sink_to_buf(&got), NULL);
    report_trace_text(&s, &in);
    assert_int_equal(stream_finish(&s), TARE_OK);
    assert_non_null(strstr(got.data, "(depth 199999) step"));
    assert_true(got.len < (size_t)DEEP * 400);
    buf_release(&got);
    free(nodes);
    free(f);
}

/* ---- reports ---- */

typedef tare_status report_fn(struct stream *s, const struct report_input *in);

static struct report_style style = REPORT_STYLE_NONE; /* of report_of() */

static struct buf report_of(report_fn *report, struct fixture *f, const struct calltree *tree,
                            struct report_options o)
{
    struct report_input in = {.source = &f->source, .tree = tree, .options = o};
    struct buf got = BUF_INIT;
    struct stream s;
    tare_error err = TARE_ERROR_INIT;
    stream_init(&s, sink_to_buf(&got), &err);
    s.style = style;
    report(&s, &in);
    assert_int_equal(stream_finish(&s), TARE_OK);
    return got;
}

#define PLAIN                                    \
    {                                            \
        .thread = -1 \
    }

static void expect_lines(const struct buf *b, const char *const *lines)
{
    for (; *lines; lines++)
        if (!strstr(b->data, *lines)) fail_msg("missing: %s\nin:\n%s", *lines, b->data);
}

static void text_says_what_was_measured_and_what_it_weighed(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    (void)state;
    struct buf got = report_of(report_trace_text, f, &tree, (struct report_options)PLAIN);
    expect_lines(&got,
                 (const char *const[]){
                     "trace      app.tare\n", "process    100 ./app --n 3\n",
                     "process    101 ./app child  (killed, or still running)\n",
                     "recorded   2026-11-15 05:42:09 UTC, 2.00 s, 2 processes, 3 threads\n",
                     "contents   call tree and 11 events\n",
                     "clock      ordered, time-stamp counter, 0.5 ns per tick\n", "   `- step\n", "main\n",
                     "`- step\n", "q\"b\\c\\x1b[31m\\n;", "80.0 %  main\n",
                     "one scope costs 36 ns +/- 2 ns, of which 12 ns +/- 1 ns inside its own reading",
                     "found by 1,234 on/off pairs in the running program", "limit      20 ns per call",
                     "lost       nothing\n", "-1.00/s  tokens\n", "0.500/s  epoch (mark)\n", NULL});
    assert_null(strchr(got.data, '\x1b'));
    assert_null(strstr(got.data, "[a]"));
    buf_release(&got);
    struct trace_process *first = (struct trace_process *)(uintptr_t)source_process(&f->source, 0);
    struct trace_process *second = (struct trace_process *)(uintptr_t)source_process(&f->source, 1);
    uint64_t ends[] = {first->end_ns, second->end_ns};
    first->end_ns = second->end_ns = 0; /* a recording without length has no rates */
    got = report_of(report_trace_text, f, &tree, (struct report_options)PLAIN);
    assert_null(strstr(got.data, "-/s"));
    first->end_ns = ends[0];
    second->end_ns = ends[1];
    buf_release(&got);
    nodes[7] = node_of(SITE_HOSTILE, 1, 1, 10, 10); /* a sibling below: the line is drawn on to it */
    got = report_of(report_trace_text, f, &tree, (struct report_options)PLAIN);
    expect_lines(&got, (const char *const[]){"|- step\n", "|  `- step\n", "`- q\"b", NULL});
    buf_release(&got);
    free(f);
}

static void text_names_what_is_below_the_limit_estimated_or_lost(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    (void)state;
    nodes[4].flags = CALL_BELOW_LIMIT | CALL_COUNT_ESTIMATED;
    nodes[4].self_ns = (struct interval){-3, -10, 4};
    nodes[3].flags = CALL_FAST_CLOCK;
    nodes[3].abandoned = 2;
    tree.weighed_pairs = 0;
    f->loss = (struct trace_loss){
        .dropped = 1234, .damaged_chunks = 1, .first = "chunk 7 at byte 4096: bad checksum"};
    struct buf got = report_of(report_trace_text, f, &tree, (struct report_options)PLAIN);
    expect_lines(
        &got, (const char *const[]){"step [a]\n", "step [b] [c]\n", "~2  ", "< 40 ns",
                                    "from the calibration at start-up", "[a]        below the weighing limit",
                                    "[b]        fast clock", "[c]        some calls never reached their end",
                                    "~          estimated", "lost       1,234 events, scopes or samples not recorded",
                                    "1 damaged piece of the file",
                                    "first: chunk 7 at byte 4096: bad checksum\n", NULL});
    buf_release(&got);
    tree.weight_ns = (struct interval){NAN, NAN, NAN};
    got = report_of(report_trace_text, f, &tree, (struct report_options)PLAIN);
    expect_lines(&got, (const char *const[]){"weight     not known", NULL});
    buf_release(&got);
    free(f);
}

static void gross_flat_and_one_thread(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct report_options o = PLAIN;
    (void)state;
    o.view.gross = true;
    struct buf got = report_of(report_trace_text, f, &tree, o);
    expect_lines(&got, (const char *const[]){"8.10 us", "still in the times above", NULL});
    assert_null(strstr(got.data, " +/-  "));
    buf_release(&got);
    o.view.gross = false;
    o.flat = true;
    o.thread = 2;
    style = (struct report_style){"<b>", "<d>", "</>", true, "", "", "", 0};
    got = report_of(report_trace_text, f, &tree, o);
    expect_lines(&got,
                 (const char *const[]){"step  app.c:20\n", "17  ", "101 worker \"x\" only\n", "<b>", NULL});
    assert_null(strstr(got.data, "\xe2\x94\x94"));
    buf_release(&got);
    o.flat = false;
    got = report_of(report_trace_text, f, &tree, o);
    expect_lines(&got, (const char *const[]){"\xe2\x94\x94\xe2\x94\x80 step", NULL});
    style = (struct report_style)REPORT_STYLE_NONE;
    buf_release(&got);
    free(f);
}

static json_int_t number(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    if (!json_is_integer(v)) fail_msg("%s is no integer", key);
    return json_integer_value(v);
}

static void json_nests_and_knows_null(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    (void)state;
    nodes[2].self_ns = (struct interval){-3, -10, 4};
    nodes[3].flags = CALL_BELOW_LIMIT;
    struct buf got = report_of(report_trace_json, f, &tree, (struct report_options)PLAIN);
    json_t *j = fix_json(&got);
    assert_string_equal(json_string_value(json_object_get(j, "schema")), "tare.report/1");
    json_t *top = json_object_get(j, "tree");
    assert_int_equal(json_array_size(top), 2);
    json_t *main_ = json_array_get(top, 0);
    assert_string_equal(json_string_value(json_object_get(main_, "name")), "main");
    assert_int_equal(number(main_, "total_ns"), 8000);
    assert_int_equal(number(main_, "self_ns"), 1000);
    assert_int_equal(number(main_, "line"), 10);
    assert_true(json_is_null(json_object_get(main_, "p99_ns")));
    json_t *children = json_object_get(main_, "children");
    assert_int_equal(json_array_size(children), 3);
    json_t *step = json_array_get(children, 0);
    assert_int_equal(number(step, "self_ns"), -3);
    json_t *inner = json_array_get(json_object_get(step, "children"), 0);
    assert_int_equal(number(inner, "count"), 5);
    assert_string_equal(json_string_value(json_array_get(json_object_get(inner, "flags"), 0)), "below-limit");
    json_t *tokens = json_array_get(children, 1);
    assert_string_equal(json_string_value(json_object_get(tokens, "kind")), "counter");
    assert_int_equal(number(tokens, "sum"), -2);
    assert_null(json_object_get(tokens, "total_ns"));
    json_t *hostile = json_array_get(top, 1);
    assert_non_null(
        strstr(json_string_value(json_object_get(hostile, "name")), "q\"b\\c\x1b[31m\n;\xEF\xBF\xBD"));
    assert_true(json_is_null(json_object_get(hostile, "file")));
    assert_int_equal(number(json_object_get(j, "weight"), "weighed_pairs"), 1234);
    assert_int_equal(json_array_size(json_object_get(json_object_get(j, "trace"), "threads")), 3);
    json_decref(j);
    buf_release(&got);
    free(f);
}

static void json_of_an_empty_tree_and_of_the_flat_view(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct report_options o = PLAIN;
    (void)state;
    o.flat = true;
    struct buf got = report_of(report_trace_json, f, &tree, o);
    json_t *j = fix_json(&got);
    assert_int_equal(json_array_size(json_object_get(j, "tree")), 5);
    json_decref(j);
    buf_release(&got);
    o.flat = false;
    struct calltree nothing = {.nodes = nodes, .n_nodes = 0, .weight_ns = {NAN, NAN, NAN}};
    got = report_of(report_trace_json, f, &nothing, o);
    j = fix_json(&got);
    assert_int_equal(json_array_size(json_object_get(j, "tree")), 0);
    assert_true(json_is_null(json_object_get(json_object_get(j, "weight"), "method")));
    json_decref(j);
    buf_release(&got);
    got = report_of(report_trace_text, f, &nothing, o);
    expect_lines(&got, (const char *const[]){"no scopes recorded\n", NULL});
    buf_release(&got);
    free(f);
}

static void every_allocation_may_fail(void **state)
{
    static report_fn *const reports[] = {report_trace_text, report_trace_json};
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    long before = mem_live_blocks();
    (void)state;
    for (size_t k = 0; k < 4; k++) {
        struct report_input in = {.source = &f->source, .tree = &tree, .options = PLAIN};
        in.options.flat = k >= 2;
        for (long n = 0;; n++) {
            struct buf got = BUF_INIT;
            struct stream s;
            tare_error err = TARE_ERROR_INIT;
            stream_init(&s, sink_to_buf(&got), &err);
            mem_fail_after(n);
            reports[k % 2](&s, &in);
            tare_status status = stream_finish(&s);
            mem_fail_after(-1);
            buf_release(&got);
            assert_int_equal(mem_live_blocks(), before);
            if (status == TARE_OK) break;
            assert_int_equal(status, TARE_NOMEM);
            assert_true(err.text[0] != 0);
            assert_true(n < 1000);
        }
    }
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_parents_first_in_the_asked_order),
        cmocka_unit_test(depth_and_share_hide_and_count),
        cmocka_unit_test(flat_view_counts_recursion_once),
        cmocka_unit_test(a_chain_as_deep_as_you_like),
        cmocka_unit_test(text_says_what_was_measured_and_what_it_weighed),
        cmocka_unit_test(text_names_what_is_below_the_limit_estimated_or_lost),
        cmocka_unit_test(gross_flat_and_one_thread),
        cmocka_unit_test(json_nests_and_knows_null),
        cmocka_unit_test(json_of_an_empty_tree_and_of_the_flat_view),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
