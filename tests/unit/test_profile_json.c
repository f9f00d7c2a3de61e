/* SPDX-License-Identifier: MIT
 * tare.profile/1 from call trees: order, numbers, unknown values, threads, a base, limits, hostile names. */
#include "report_fixture.h"

#include "page_fixture.h"
#include "report/export/profile_json.h"

static struct buf write_profile(const struct profile_input *in)
{
    struct buf got = BUF_INIT;
    struct stream s;
    tare_error err = TARE_ERROR_INIT;
    stream_init(&s, sink_to_buf(&got), &err);
    profile_json_write(&s, in);
    assert_int_equal(stream_finish(&s), TARE_OK);
    return got;
}

static json_t *column(json_t *doc, const char *group, const char *key)
{
    json_t *c = json_object_get(json_object_get(doc, group), key);
    assert_true(json_is_array(c));
    return c;
}

static void check_column(json_t *doc, const char *key, const json_int_t *want, size_t n)
{
    json_t *c = column(doc, "nodes", key);
    assert_int_equal(json_array_size(c), n);
    for (size_t i = 0; i < n; i++) assert_int_equal(json_integer_value(json_array_get(c, i)), want[i]);
}

static void nodes_are_in_preorder_with_their_times(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct profile_input in = {.of = {&f->source, &tree}};
    (void)state;
    struct buf got = write_profile(&in);
    json_t *j = fix_json(&got);
    assert_string_equal(json_string_value(json_object_get(j, "schema")), "tare.profile/1");
    assert_string_equal(json_string_value(json_object_get(j, "name")), "./app --n 3");
    assert_string_equal(json_string_value(json_object_get(j, "unit")), "ns");
    check_column(j, "parent", (json_int_t[]){-1, 0, 1, -1, 3}, 5);
    check_column(j, "frame", (json_int_t[]){SITE_MAIN, SITE_STEP, SITE_STEP, SITE_HOSTILE, SITE_STEP}, 5);
    check_column(j, "total", (json_int_t[]){8000, 7000, 3000, 2000, 500}, 5);
    check_column(j, "self", (json_int_t[]){1000, 4000, 3000, 1500, 500}, 5);
    check_column(j, "total_error", (json_int_t[]){80, 70, 30, 20, 5}, 5);
    check_column(j, "calls", (json_int_t[]){1, 10, 5, 3, 2}, 5);
    assert_int_equal(json_array_size(column(j, "frames", "name")), FIX_SITES);
    assert_int_equal(json_integer_value(json_array_get(column(j, "frames", "line"), SITE_STEP)), 20);
    assert_true(json_is_null(json_array_get(column(j, "frames", "file"), SITE_HOSTILE)));
    assert_true(json_is_null(json_array_get(column(j, "frames", "line"), SITE_HOSTILE)));
    assert_null(json_object_get(j, "base"));
    assert_null(json_object_get(j, "threads"));
    json_t *m = json_object_get(j, "measured");
    assert_int_equal(json_integer_value(json_object_get(m, "threads")), f->source.n_threads);
    assert_int_equal(json_integer_value(json_object_get(m, "processes")), f->source.n_processes);
    assert_int_equal(json_integer_value(json_object_get(m, "lost")), f->source.loss->dropped);
    double share = json_number_value(json_object_get(m, "own_share")), read = nodes[0].gross_total_ns;
    assert_true(share > 0 && fabs(share * read - (read - nodes[0].total_ns.value)) < read * 1e-5);
    assert_true(fabs((double)json_integer_value(json_object_get(m, "own_ns")) - share * read) <
                read * 1e-5 + 1);
    json_decref(j);
    buf_release(&got);
    free(f);
}

static void as_read_has_no_interval(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct profile_input in = {.of = {&f->source, &tree}, .gross = true};
    (void)state;
    struct buf got = write_profile(&in);
    json_t *j = fix_json(&got);
    check_column(j, "total", (json_int_t[]){8100, 7100, 3100, 2100, 600}, 5);
    check_column(j, "self", (json_int_t[]){1050, 4050, 3050, 1550, 550}, 5);
    assert_true(json_is_null(json_array_get(column(j, "nodes", "total_error"), 0)));
    assert_non_null(strstr(got.data, "Times are as read"));
    json_decref(j);
    buf_release(&got);
    free(f);
}

static void unknown_is_null_and_below_zero_stays(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct profile_input in = {.of = {&f->source, &tree}};
    (void)state;
    nodes[2].self_ns.value = -4;
    nodes[3].self_ns.value = nodes[3].total_ns.value = NAN;
    f->loss.dropped = 1234;
    f->loss.damaged_chunks = 1;
    struct buf got = write_profile(&in);
    json_t *j = fix_json(&got);
    assert_int_equal(json_integer_value(json_array_get(column(j, "nodes", "self"), 1)), -4);
    assert_true(json_is_null(json_array_get(column(j, "nodes", "self"), 2)));
    assert_true(json_is_null(json_array_get(column(j, "nodes", "total"), 2)));
    assert_non_null(strstr(got.data, "1,234 events and scopes were dropped"));
    assert_non_null(strstr(got.data, "damaged"));
    json_decref(j);
    buf_release(&got);
    free(f);
}

static void the_base_has_frames_of_its_own(void **state)
{
    struct fixture *f = fix_new(), *g = fix_new();
    struct call_node nodes[8], older[8];
    struct calltree tree = fix_tree(nodes), base = fix_tree(older);
    struct profile_input in = {.of = {&f->source, &tree}, .base = {&g->source, &base}};
    (void)state;
    g->sites[SITE_STEP].name = "old step";
    g->source.path = "old.tare";
    struct buf got = write_profile(&in);
    json_t *j = fix_json(&got), *b = json_object_get(j, "base");
    json_t *names = column(j, "frames", "name"), *frame = column(b, "nodes", "frame");
    assert_int_equal(json_array_size(names), 2 * FIX_SITES);
    size_t at = (size_t)json_integer_value(json_array_get(frame, 1));
    assert_string_equal(json_string_value(json_array_get(names, at)), "old step");
    assert_string_equal(json_string_value(json_object_get(b, "file")), "old.tare");
    json_decref(j);
    buf_release(&got);
    free(f);
    free(g);
}

/* ---- threads ---- */

static tare_status a_thread(void *ctx, uint32_t thread, struct calltree *out, tare_error *err)
{
    uint32_t *asked = ctx;
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    nodes[1].count = 100 + thread;
    ++*asked;
    struct call_node *copy = mem_new(8, sizeof *copy);
    if (!copy) return error_set(err, TARE_NOMEM, "out of memory");
    memcpy(copy, nodes, sizeof nodes);
    *out = tree;
    out->nodes = copy;
    return TARE_OK;
}

static void threads_have_trees_of_their_own(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    uint32_t asked = 0;
    struct profile_input in = {.of = {&f->source, &tree}, .thread = a_thread, .thread_ctx = &asked};
    (void)state;
    struct buf got = write_profile(&in);
    json_t *j = fix_json(&got), *threads = json_object_get(j, "threads");
    assert_int_equal(asked, 3);
    assert_int_equal(json_array_size(threads), 3);
    json_t *last = json_array_get(threads, 2);
    assert_string_equal(json_string_value(json_object_get(last, "name")), "worker \"x\" (101/101)");
    check_column(last, "calls", (json_int_t[]){102, 10, 5, 3, 2}, 5);
    json_decref(j);
    buf_release(&got);
    f->source.n_threads = 1; /* its tree is that of all threads */
    got = write_profile(&in);
    assert_null(strstr(got.data, "\"threads\":["));
    assert_int_equal(asked, 3);
    buf_release(&got);
    free(f);
}

/* ---- limits ---- */

static void too_many_paths_lose_the_smallest(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct profile_input in = {.of = {&f->source, &tree}, .nodes_max = 3};
    (void)state;
    struct buf got = write_profile(&in);
    json_t *j = fix_json(&got);
    size_t n = json_array_size(column(j, "nodes", "total"));
    assert_true(n <= 3 && n > 0);
    assert_int_equal(json_integer_value(json_object_get(j, "hidden")), 5 - (json_int_t)n);
    assert_int_equal(json_integer_value(json_array_get(column(j, "nodes", "total"), 0)), 8000);
    json_decref(j);
    buf_release(&got);
    free(f);
}

static const char *packed(json_t *doc, const char *key)
{
    json_t *c = json_object_get(json_object_get(doc, "nodes"), key);
    assert_true(json_is_string(c));
    return json_string_value(c);
}

/* The same texts are read in web/test/profile.test.ts. */
static void many_paths_are_packed(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct profile_input in = {.of = {&f->source, &tree}, .plain_max = 4};
    (void)state;
    nodes[2].self_ns.value = -4;
    nodes[3].self_ns.value = NAN;
    struct buf got = write_profile(&in);
    json_t *j = fix_json(&got);
    assert_string_equal(packed(j, "parent"), "CCCIC");
    assert_string_equal(packed(j, "frame"), "ACCEC");
    assert_string_equal(packed(j, "self"), "w-BJB49Cof");
    assert_string_equal(packed(j, "total"), "g0Pw1Nw7Fg9Dof");
    assert_string_equal(packed(j, "calls"), "CUKGE");
    json_decref(j);
    buf_release(&got);
    in.plain_max = 5;
    got = write_profile(&in);
    j = fix_json(&got);
    check_column(j, "parent", (json_int_t[]){-1, 0, 1, -1, 3}, 5);
    json_decref(j);
    buf_release(&got);
    free(f);
}

static void nothing_recorded_is_an_empty_profile(void **state)
{
    struct fixture *f = fix_new();
    struct call_node root[1] = {node_of(CALL_NO_SITE, 0, 0, 0, 0)};
    struct calltree tree = {.nodes = root, .n_nodes = 1};
    struct profile_input in = {.of = {&f->source, &tree}};
    (void)state;
    f->source.n_sites = 0;
    struct buf got = write_profile(&in);
    json_t *j = fix_json(&got);
    assert_int_equal(json_array_size(column(j, "nodes", "parent")), 0);
    assert_int_equal(json_array_size(column(j, "frames", "name")), 0);
    json_decref(j);
    buf_release(&got);
    free(f);
}

static void hostile_and_long_names_stay_text(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct profile_input in = {.of = {&f->source, &tree}};
    size_t n = 1u << 20;
    char *name = malloc(n + 1);
    (void)state;
    assert_non_null(name);
    memset(name, 'x', n);
    name[n] = '\0';
    f->sites[SITE_MAIN].name = name;
    f->sites[SITE_STEP].name = "</script><script>alert(1)</script>";
    struct buf got = write_profile(&in);
    json_t *j = fix_json(&got), *names = column(j, "frames", "name");
    assert_int_equal(json_string_length(json_array_get(names, SITE_MAIN)), TEXT_NAME_MAX);
    assert_string_equal(json_string_value(json_array_get(names, SITE_STEP)), f->sites[SITE_STEP].name);
    json_decref(j);
    buf_release(&got);
    free(name);
    free(f);
}

/* ---- failures ---- */

static tare_status write_with(const struct profile_input *in, struct buf *got, tare_error *err)
{
    struct stream s;
    stream_init(&s, sink_to_buf(got), err);
    profile_json_write(&s, in);
    return stream_finish(&s);
}

static void check_named(const struct page_table *t, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (!page_names(t, 0, key)) fail_msg("profile-format.md does not tell of %s", key);
    }
}

/* docs/profile-format.md has every member and every column; of columns none more. */
static void the_page_tells_of_every_member(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct profile_input in = {.of = {&f->source, &tree}, .base = {&f->source, &tree}};
    struct page_table *members = page_table("profile-format.md", "| member |", 0);
    struct page_table *columns = page_table("profile-format.md", "| column |", 0);
    struct buf got = write_profile(&in);
    json_t *j = fix_json(&got);
    (void)state;
    check_named(members, j);
    check_named(members, json_object_get(j, "base"));
    check_named(columns, json_object_get(j, "nodes"));
    assert_int_equal(columns->n, json_object_size(json_object_get(j, "nodes")));
    json_decref(j);
    buf_release(&got);
    free(members);
    free(columns);
    free(f);
}

static void every_allocation_may_fail(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8], older[8];
    struct calltree tree = fix_tree(nodes), base = fix_tree(older);
    uint32_t asked = 0;
    struct profile_input in = {.of = {&f->source, &tree}, .thread = a_thread, .thread_ctx = &asked};
    (void)state;
    for (int with_base = 0; with_base < 2; with_base++) {
        if (with_base) in.base = (struct profile_side){&f->source, &base};
        for (long n = 0;; n++) {
            struct buf got = BUF_INIT;
            tare_error err = TARE_ERROR_INIT;
            long before = mem_live_blocks();
            mem_fail_after(n);
            tare_status status = write_with(&in, &got, &err);
            mem_fail_after(-1);
            buf_release(&got);
            assert_int_equal(mem_live_blocks(), before);
            if (status == TARE_OK) break;
            assert_int_equal(status, TARE_NOMEM);
            assert_true(n < 1000);
        }
    }
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_in_preorder_with_their_times),
        cmocka_unit_test(as_read_has_no_interval),
        cmocka_unit_test(unknown_is_null_and_below_zero_stays),
        cmocka_unit_test(the_base_has_frames_of_its_own),
        cmocka_unit_test(threads_have_trees_of_their_own),
        cmocka_unit_test(too_many_paths_lose_the_smallest),
        cmocka_unit_test(many_paths_are_packed),
        cmocka_unit_test(nothing_recorded_is_an_empty_profile),
        cmocka_unit_test(hostile_and_long_names_stay_text),
        cmocka_unit_test(the_page_tells_of_every_member),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
