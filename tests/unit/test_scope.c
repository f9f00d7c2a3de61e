/* SPDX-License-Identifier: MIT
 * test_scope.c - what one thread records: structure, counts and values in every mode, weighed or not; depth, width,
 * marks, counters, names; and scopes that are left without an end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include "trace_fixture.h"
#include "analyze/calls/calltree.h"
#include "tare/tare.h"

#include <cmocka.h>

static struct folder here;

static void start(uint32_t mode, uint32_t weigh_one_in)
{
    tare_options o = TARE_OPTIONS_INIT;
    tare_error err = TARE_ERROR_INIT;
    o.path = here.trace;
    o.mode = mode;
    o.weigh_one_in = weigh_one_in;
    if (tare_start(&o, &err) != TARE_OK) fail_msg("%s", err.text);
}

static struct trace *stop(void)
{
    struct trace *t = NULL;
    tare_error err = TARE_ERROR_INIT;
    if (tare_stop(&err) != TARE_OK || trace_open(&t, here.trace, &err) != TARE_OK) fail_msg("%s", err.text);
    assert_string_equal(trace_loss(t)->first, "");
    folder_empty(here.path);
    return t;
}

static void done(struct trace *t, struct calltree *tree)
{
    calltree_release(tree);
    trace_close(t);
}

static struct calltree tree_of(struct trace *t)
{
    struct calltree tree = CALLTREE_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (calltree_build(&tree, t, -1, &err) != TARE_OK) fail_msg("%s", err.text);
    return tree;
}

/* The node at a path of names, or 0. */
static uint32_t node_at(const struct trace *t, const struct calltree *tree, const char *const *path)
{
    uint32_t at = 0;
    for (; *path; path++) {
        uint32_t c = tree->nodes[at].child;
        while (c && strcmp(trace_site(t, tree->nodes[c].site)->name, *path) != 0) c = tree->nodes[c].next;
        if (!c) return 0;
        at = c;
    }
    return at;
}

#define NODE(t, tree, ...) (&(tree)->nodes[node_at(t, tree, (const char *const[]){__VA_ARGS__, NULL})])

/* ---- structure and counts ---- */

enum { STEPS = 3000 };

static void leaf(void)
{
    TARE_SCOPE("leaf");
    tare_count("bytes", -2);
}

static void layer(void)
{
    TARE_SCOPE("layer");
    leaf();
    leaf();
    leaf();
}

static void script(int steps)
{
    for (int i = 0; i < steps; i++) {
        TARE_SCOPE("step");
        layer();
        leaf();
        if (i % 1000 == 0) tare_mark("epoch", "%d", i);
    }
}

static void check_script(struct trace *t, const struct calltree *tree)
{
    assert_int_equal(NODE(t, tree, "step")->count, STEPS);
    assert_int_equal(NODE(t, tree, "step", "layer")->count, STEPS);
    assert_int_equal(NODE(t, tree, "step", "layer", "leaf")->count, 3 * STEPS);
    assert_int_equal(NODE(t, tree, "step", "leaf")->count, STEPS);
    assert_int_equal(NODE(t, tree, "step", "epoch")->count, STEPS / 1000);
    int64_t value = 0;
    for (uint32_t i = 1; i < tree->n_nodes; i++) value += tree->nodes[i].value;
    assert_int_equal(value, -2 * 4 * STEPS);
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct call_node *n = &tree->nodes[i];
        assert_int_equal(n->abandoned, 0);
        assert_int_equal(n->flags & CALL_COUNT_ESTIMATED, 0);
        if (n->kind == TARE_SITE_SCOPE)
            assert_true(n->gross_total_ns > 0 && n->min_ns <= n->max_ns && n->threads == 1);
    }
}

static double gross_of_run(uint32_t mode, uint32_t weigh)
{
    start(mode, weigh);
    script(STEPS);
    struct trace *t = stop();
    struct calltree tree = tree_of(t);
    assert_int_equal(trace_has_events(t), (mode & TARE_EVENTS) != 0);
    assert_int_equal(trace_has_tree(t), (mode & TARE_AGGREGATE) != 0);
    check_script(t, &tree);
    if (!weigh) { /* nothing is left out: counters sit under the very scope that counted */
        assert_int_equal(NODE(t, &tree, "step", "layer", "leaf", "bytes")->value, -2 * 3 * STEPS);
        assert_int_equal(NODE(t, &tree, "step", "leaf", "bytes")->value, -2 * STEPS);
        assert_int_equal(tree.n_nodes, 8);
    }
    double gross = NODE(t, &tree, "step")->gross_total_ns;
    done(t, &tree);
    return gross;
}

static void counts_are_exact_in_every_mode(void **state)
{
    (void)state;
    gross_of_run(TARE_AGGREGATE, 0);
    gross_of_run(TARE_EVENTS, 0);
    gross_of_run(TARE_AGGREGATE | TARE_EVENTS, 0);
}

static void counts_are_exact_while_weighing(void **state)
{
    (void)state;
    static const uint32_t one_in[] = {1, 2, 3, 16, 64};
    for (size_t i = 0; i < sizeof one_in / sizeof *one_in; i++) {
        gross_of_run(TARE_AGGREGATE, one_in[i]);
        gross_of_run(TARE_AGGREGATE | TARE_EVENTS, one_in[i]);
    }
    gross_of_run(TARE_EVENTS, 64);
}

struct totals {
    struct trace *t;
    uint64_t start[64], calls[64];
    uint32_t site[64], depth;
    double ns[64]; /* by site */
};

static int add_event(void *ctx, const struct trace_event *e)
{
    struct totals *s = ctx;
    assert_true(e->site < 64 && s->depth < 64);
    if (e->kind == TRACE_BEGIN) {
        s->site[s->depth] = e->site;
        s->start[s->depth++] = e->time_ns;
    } else if (e->kind == TRACE_END) {
        s->depth--;
        assert_int_equal(s->site[s->depth], e->site);
        s->ns[e->site] += (double)(e->time_ns - s->start[s->depth]);
        s->calls[e->site]++;
    }
    return 0;
}

/* One recording, two ways to sum it up: they differ by the unit of packed times and no more. */
static void tree_and_events_agree(void **state)
{
    (void)state;
    start(TARE_AGGREGATE | TARE_EVENTS, 0);
    script(STEPS);
    struct trace *t = stop();
    struct calltree tree = tree_of(t);
    struct totals s = {.t = t};
    assert_int_equal(trace_n_threads(t), 1);
    assert_int_equal(trace_events(t, 0, add_event, &s, NULL), TARE_OK);
    double tree_ns[64] = {0};
    uint64_t tree_calls[64] = {0};
    for (uint32_t i = 1; i < tree.n_nodes; i++) {
        if (tree.nodes[i].kind != TARE_SITE_SCOPE) continue;
        tree_ns[tree.nodes[i].site] += tree.nodes[i].gross_total_ns;
        tree_calls[tree.nodes[i].site] += tree.nodes[i].count;
    }
    for (uint32_t i = 0; i < trace_n_sites(t); i++) {
        assert_int_equal(s.calls[i], tree_calls[i]);
        double off = s.ns[i] - tree_ns[i], room = 2.0 * (double)s.calls[i] + 1e-3 * tree_ns[i] + 1;
        assert_true(off < room && off > -room);
    }
    assert_int_equal(trace_thread(t, 0)->events, 2 * (STEPS * 6) + STEPS * 4 + STEPS / 1000);
    done(t, &tree);
}

/* Scopes begun by hand lie on the same stack as those of the macros, around and within them. What a scope weighs was
 * found with the code that recorded it. */
static void by_hand_and_inlined(void **state)
{
    (void)state;
    tare_site *site = tare_site_new(TARE_SITE_SCOPE, "hand", "h.c", 1);
    for (uint32_t mode = 1; mode <= 3; mode++) {
        start(mode, 0);
        for (int i = 0; i < STEPS; i++) {
            tare_scope outer, inner;
            tare_begin(&outer, site);
            {
                TARE_SCOPE("macro");
                tare_begin(&inner, site);
                leaf();
                tare_end(&inner);
                tare_end(&inner); /* again: nothing */
            }
            tare_end(&outer);
        }
        struct trace *t = stop();
        struct calltree tree = tree_of(t);
        assert_int_equal(NODE(t, &tree, "hand", "macro", "hand", "leaf")->count, STEPS);
        assert_int_equal(tree.n_nodes, 6);
        const struct trace_loss *l = trace_loss(t);
        assert_int_equal(l->foreign_scopes + l->abandoned_scopes + l->unclosed_scopes + l->dropped, 0);
        assert_true(trace_process(t, 0)->inside.value + trace_process(t, 0)->outside.value > 0);
        done(t, &tree);
    }
}

/* ---- depth and width ---- */

static void recurse(int n)
{
    TARE_SCOPE("recurse");
    if (n > 1) recurse(n - 1);
}

static void recursion_nests(void **state)
{
    (void)state;
    start(3, 0);
    recurse(500);
    recurse(200);
    struct trace *t = stop();
    struct calltree tree = tree_of(t);
    struct seen s;
    assert_int_equal(see_events(t, &s, NULL), TARE_OK);
    assert_int_equal(s.begins, 700);
    assert_int_equal(s.deepest, 500);
    assert_int_equal(tree.n_nodes, 501);
    uint32_t at = 0, depth = 0;
    while ((at = tree.nodes[at].child)) assert_int_equal(tree.nodes[at].count, ++depth <= 200 ? 2 : 1);
    assert_int_equal(depth, 500);
    done(t, &tree);
}

static void too_deep_is_counted_as_lost(void **state)
{
    (void)state;
    for (uint32_t mode = 1; mode <= 3; mode++) {
        start(mode, 0);
        recurse(1500);
        recurse(3);
        struct trace *t = stop();
        struct calltree tree = tree_of(t);
        uint64_t calls = 0;
        for (uint32_t i = 1; i < tree.n_nodes; i++) calls += tree.nodes[i].count;
        assert_int_equal(calls + trace_loss(t)->dropped, 1503);
        assert_int_equal(trace_loss(t)->dropped, 1500 - 999);
        assert_int_equal(trace_loss(t)->foreign_scopes + trace_loss(t)->unclosed_scopes, 0);
        done(t, &tree);
    }
}

enum { WIDE = 10000 };

static void ten_thousand_paths(void **state)
{
    (void)state;
    start(3, 0);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < WIDE; i++) {
            char name[32];
            snprintf(name, sizeof name, "wide %d", i / 100);
            tare_site *outer = tare_site_new(TARE_SITE_SCOPE, name, "w.c", 1);
            snprintf(name, sizeof name, "narrow %d", i);
            tare_site *inner = tare_site_new(TARE_SITE_SCOPE, name, "w.c", 2);
            tare_scope a, b;
            tare_begin(&a, outer);
            tare_begin(&b, inner);
            tare_end(&b);
            tare_end(&a);
        }
    struct trace *t = stop();
    struct calltree tree = tree_of(t);
    assert_int_equal(tree.n_nodes, 1 + WIDE / 100 + WIDE);
    for (uint32_t i = 1; i < tree.n_nodes; i++)
        assert_int_equal(tree.nodes[i].count, tree.nodes[i].parent ? 2 : 200);
    assert_int_equal(trace_loss(t)->dropped, 0);
    done(t, &tree);
}

/* ---- marks and counters ---- */

static void marks_of_every_length(void **state)
{
    (void)state;
    char text[256];
    for (int n = 0; n <= 200; n++) {
        start(3, 0);
        memset(text, 'm', sizeof text);
        for (int i = 0; i < n; i++) text[i] = (char)('a' + i % 26);
        text[n] = 0;
        {
            TARE_SCOPE("around");
            tare_mark("text", "%s", text);
        }
        struct trace *t = stop();
        struct seen s;
        assert_int_equal(see_events(t, &s, NULL), TARE_OK);
        assert_int_equal(s.marks, 1);
        assert_int_equal(strlen(s.text), n < TARE_MARK_MAX ? n : TARE_MARK_MAX);
        assert_memory_equal(s.text, text, strlen(s.text));
        trace_close(t);
    }
}

static int all_utf8(void *ctx, const struct trace_event *e)
{
    char *kept = ctx;
    if (e->kind == TRACE_MARK) snprintf(kept, 256, "%s", e->text);
    return 0;
}

static void marks_with_hostile_bytes(void **state)
{
    (void)state;
    static const char hostile[] = "\x01\x1b[31m\xff\xfe\xc0\xaf\xed\xa0\x80\r\n%s%n";
    start(3, 0);
    tare_mark("hostile", "%s", hostile);
    struct trace *t = stop();
    char kept[256] = "";
    assert_int_equal(trace_events(t, 0, all_utf8, kept, NULL), TARE_OK);
    assert_int_equal(strncmp(kept, "\x01\x1b[31m", 6), 0);
    assert_non_null(strstr(kept, "%s%n"));
    for (const char *p = kept; *p; p++) /* the reader promises UTF-8 */
        assert_true((unsigned char)*p != 0xff && (unsigned char)*p != 0xfe && (unsigned char)*p != 0xc0);
    trace_close(t);
}

static void counters_of_every_size(void **state)
{
    (void)state;
    static const int64_t values[] = {0,       1,         -1,        127,       -128,
                                     1 << 20, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MAX};
    for (uint32_t mode = 1; mode <= 3; mode++) {
        uint64_t sum = 0;
        start(mode, 0);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            tare_count("value", values[i]);
            sum += (uint64_t)values[i];
        }
        struct trace *t = stop();
        struct calltree tree = tree_of(t);
        assert_int_equal(NODE(t, &tree, "value")->count, sizeof values / sizeof *values);
        assert_int_equal(NODE(t, &tree, "value")->value, (int64_t)sum); /* overflow wraps, and is no crash */
        done(t, &tree);
    }
}

/* ---- names ---- */

static void names_known_at_run_time(void **state)
{
    (void)state;
    assert_null(tare_site_new(TARE_SITE_SCOPE, NULL, "f", 1));
    tare_site *a = tare_site_new(TARE_SITE_SCOPE, "name", NULL, 1);
    assert_non_null(a);
    assert_ptr_equal(a, tare_site_new(TARE_SITE_SCOPE, "name", "", 1));
    assert_ptr_not_equal(a, tare_site_new(TARE_SITE_SCOPE, "name", "", 2));
    assert_ptr_not_equal(a, tare_site_new(TARE_SITE_SCOPE, "name", "f", 1));
    assert_ptr_not_equal(a, tare_site_new(TARE_SITE_COUNTER, "name", "", 1));
    assert_ptr_not_equal(a, tare_site_new(TARE_SITE_SCOPE, "", "name", 1));
    char longest[5000];
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    tare_site *b = tare_site_new(TARE_SITE_SCOPE, longest, longest, 1);
    assert_non_null(b);
    start(3, 0);
    tare_scope s;
    tare_begin(&s, b);
    tare_end(&s);
    struct trace *t = stop();
    assert_int_equal(trace_n_sites(t), 1);
    assert_int_equal(strlen(trace_site(t, 0)->name), 1024); /* cut, not refused */
    trace_close(t);
}

static void a_hundred_thousand_names(void **state)
{
    (void)state;
    enum { NAMES = 100000 };
    tare_site **sites = calloc(NAMES, sizeof *sites);
    char name[32];
    start(3, 0);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "dynamic %d", i);
        assert_non_null(sites[i] = tare_site_new(TARE_SITE_MARK, name, "d.c", 0));
        if (i % 10 == 0) tare_site_mark(sites[i], "%d", i);
    }
    for (int i = 0; i < NAMES; i += 997) {
        snprintf(name, sizeof name, "dynamic %d", i);
        assert_ptr_equal(sites[i], tare_site_new(TARE_SITE_MARK, name, "d.c", 0));
    }
    struct trace *t = stop();
    struct seen s;
    assert_int_equal(see_events(t, &s, NULL), TARE_OK);
    assert_int_equal(s.marks + trace_loss(t)->dropped, NAMES / 10);
    assert_int_equal(trace_n_sites(t), NAMES / 10);
    trace_close(t);
    free(sites);
}

/* ---- left without an end ---- */

static jmp_buf back;

static __attribute__((noinline)) void leave(int levels)
{
    TARE_SCOPE("left");
    volatile char room[64]; /* a frame of its own */
    room[0] = 0;
    if (levels > 1) leave(levels - 1);
    if (levels == 1) longjmp(back, 1);
    (void)room[0];
}

enum { JUMPS = 200, LEVELS = 3 };

static void jump_about(void)
{
    for (volatile int i = 0; i < JUMPS; i++) {
        TARE_SCOPE("whole");
        if (!setjmp(back)) leave(LEVELS);
        TARE_SCOPE("after");
    }
}

static void longjmp_leaves_scopes(void **state)
{
    (void)state;
    for (uint32_t mode = 1; mode <= 3; mode++) {
        start(mode, 0);
        jump_about();
        struct trace *t = stop();
        struct calltree tree = tree_of(t);
        assert_int_equal(NODE(t, &tree, "whole")->count, JUMPS);
        assert_int_equal(NODE(t, &tree, "whole", "after")->count, JUMPS);
        assert_int_equal(NODE(t, &tree, "whole", "left")->abandoned, JUMPS);
        assert_int_equal(NODE(t, &tree, "whole", "left", "left", "left")->abandoned, JUMPS);
        assert_int_equal(trace_loss(t)->abandoned_scopes, JUMPS * LEVELS);
        assert_int_equal(trace_loss(t)->foreign_scopes + trace_loss(t)->unclosed_scopes, 0);
        done(t, &tree);
    }
}

/* Every call weighed: the jump leaves a call whose inner scopes are being left out. */
static void longjmp_out_of_a_weighed_call(void **state)
{
    (void)state;
    enum { CALLS = 2000 };
    start(3, 1);
    volatile int jumped = 0;
    for (volatile int i = 0; i < CALLS; i++) {
        TARE_SCOPE("whole");
        if (!setjmp(back)) {
            TARE_SCOPE("part");
            leaf();
            if (i % 3 == 0) {
                jumped++;
                leave(2);
            }
        }
        leaf();
    }
    {
        TARE_SCOPE("last");
        leaf();
    }
    struct trace *t = stop();
    struct calltree tree = tree_of(t);
    struct seen s;
    assert_int_equal(NODE(t, &tree, "whole")->count, CALLS);
    assert_int_equal(NODE(t, &tree, "last")->count, 1);
    assert_int_equal(NODE(t, &tree, "last", "leaf")->count, 1);
    assert_true(NODE(t, &tree, "whole", "part")->abandoned > 0 &&
                NODE(t, &tree, "whole", "part")->abandoned <= (uint64_t)jumped);
    assert_int_equal(see_events(t, &s, NULL), TARE_OK);
    assert_false(s.unnested || s.unordered);
    assert_int_equal(trace_loss(t)->foreign_scopes + trace_loss(t)->unclosed_scopes + trace_loss(t)->dropped,
                     0);
    assert_true(s.weighed > 0);
    done(t, &tree);
}

/* By hand, unasked: a scope that was not recorded may be ended all the same. */
static void ending_what_was_left_out_is_nobodys_fault(void **state)
{
    (void)state;
    tare_site *outer = tare_site_new(TARE_SITE_SCOPE, "by hand", "", 0),
              *inner = tare_site_new(TARE_SITE_SCOPE, "inside", "", 0);
    start(3, 1);
    for (int i = 0; i < 1000; i++) {
        tare_scope a, b;
        tare_begin(&a, outer);
        tare_begin(&b, inner);
        tare_end(&b);
        tare_end(&a);
    }
    struct trace *t = stop();
    struct calltree tree = tree_of(t);
    assert_int_equal(NODE(t, &tree, "by hand")->count, 1000);
    assert_int_equal(NODE(t, &tree, "by hand", "inside")->count, 1000);
    assert_int_equal(trace_loss(t)->foreign_scopes, 0);
    done(t, &tree);
}

static int make_folder(void **state)
{
    (void)state;
    folder_new(&here);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(&here);
    return 0;
}

/* ---- scopes that wait ---- */

/* Two coroutines, each with a scope open while the other runs. */
static void take_turns(int turns)
{
    tare_scope a, b;
    tare_site *first = tare_site_new(TARE_SITE_SCOPE, "first", "", 0);
    tare_site *second = tare_site_new(TARE_SITE_SCOPE, "second", "", 0);
    tare_open(&a, first);
    leaf();
    tare_pause(&a);
    tare_open(&b, second);
    for (int i = 0; i < turns; i++) {
        leaf();
        tare_pause(&b);
        tare_resume(&a, 0);
        leaf();
        tare_pause(&a);
        tare_resume(&b, 0);
    }
    tare_pause(&b);
    tare_resume(&a, 0);
    tare_end(&a);
    tare_resume(&b, 0);
    tare_end(&b);
}

static void coroutines_take_turns(void **state)
{
    (void)state;
    for (uint32_t weigh = 0; weigh < 2; weigh++) {
        start(TARE_AGGREGATE | TARE_EVENTS, weigh);
        for (int i = 0; i < 200; i++) {
            TARE_SCOPE("loop");
            take_turns(10);
        }
        struct trace *t = stop();
        struct calltree tree = tree_of(t);
        if (!weigh) {
            assert_int_equal(NODE(t, &tree, "loop", "first")->count, 200);
            assert_int_equal(NODE(t, &tree, "loop", "second")->count, 200);
            assert_int_equal(NODE(t, &tree, "loop", "first", "leaf")->count, 200 * 11);
            assert_int_equal(NODE(t, &tree, "loop", "second", "leaf")->count, 200 * 10);
        }
        assert_int_equal(node_at(t, &tree, (const char *const[]){"loop", "first", "second", NULL}), 0);
        for (uint32_t i = 1; i < tree.n_nodes; i++) assert_int_equal(tree.nodes[i].abandoned, 0);
        done(t, &tree);
    }
}

static void waiting_counts_for_a_task(void **state)
{
    (void)state;
    tare_scope task, other;
    tare_site *site = tare_site_new(TARE_SITE_SCOPE, "task", "", 0);
    start(TARE_AGGREGATE | TARE_EVENTS, 0);
    for (int counts = 0; counts < 2; counts++) {
        tare_open(&other, tare_site_new(TARE_SITE_SCOPE, counts ? "counted" : "left out", "", 0));
        tare_open(&task, site);
        tare_pause(&task);
        usleep(20000);
        tare_resume(&task, counts);
        tare_end(&task);
        tare_end(&other);
    }
    struct trace *t = stop();
    struct calltree tree = tree_of(t);
    assert_true(NODE(t, &tree, "counted", "task")->gross_total_ns >= 20e6);
    assert_true(NODE(t, &tree, "left out", "task")->gross_total_ns < 20e6);
    done(t, &tree);
}

struct waits {
    uint64_t began[2],
        paused; /* when the task began, by its BEGIN and by its last END; number of its pause */
    int pauses, resumes;
};

static int note_waiting(void *ctx, const struct trace_event *e)
{
    struct waits *w = ctx;
    if (e->kind == TRACE_BEGIN && !(e->flags & TRACE_RESUMED) && !w->began[0]) w->began[0] = e->time_ns;
    if (e->kind == TRACE_END && e->flags & TRACE_PAUSED) w->paused = e->pause, w->pauses++;
    if (e->kind == TRACE_BEGIN && e->flags & TRACE_RESUMED) {
        assert_int_equal(e->pause, w->paused);
        assert_true(e->flags & TRACE_WAITED);
        w->resumes++;
    }
    if (e->kind == TRACE_END && !(e->flags & TRACE_PAUSED)) w->began[1] = e->began_ns;
    return 0;
}

/* The event log tells a pause from an end: a call is one call, with what it waited, in every mode, also where a chunk
 * of events is full in between. */
static void a_pause_is_no_end(void **state)
{
    (void)state;
    tare_scope task;
    tare_site *site = tare_site_new(TARE_SITE_SCOPE, "task", "", 0);
    for (uint32_t mode = TARE_EVENTS; mode <= (TARE_AGGREGATE | TARE_EVENTS); mode++) {
        start(mode, 0);
        tare_open(&task, site);
        for (int i = 0; i < 3; i++) {
            tare_pause(&task);
            usleep(10000);
            if (i == 1) script(STEPS);
            tare_resume(&task, 1);
        }
        tare_end(&task);
        struct trace *t = stop();
        struct calltree tree = tree_of(t);
        assert_int_equal(NODE(t, &tree, "task")->count, 1);
        assert_true(NODE(t, &tree, "task")->gross_total_ns >= 30e6);
        struct waits w = {0};
        assert_int_equal(trace_events(t, 0, note_waiting, &w, NULL), TARE_OK);
        assert_int_equal(w.pauses, 3);
        assert_int_equal(w.resumes, 3);
        assert_int_equal(w.began[0], w.began[1]);
        done(t, &tree);
    }
}

/* A scope opened deep in the C stack is still there for one that begins further up. */
static __attribute__((noinline)) void open_below(tare_scope *scope, tare_site *site)
{
    volatile char room[4096];
    room[0] = 1;
    tare_open(scope, site);
    (void)room[0];
}

static void a_free_scope_outlives_the_frame_it_began_in(void **state)
{
    (void)state;
    tare_scope outer;
    start(TARE_AGGREGATE | TARE_EVENTS, 0);
    open_below(&outer, tare_site_new(TARE_SITE_SCOPE, "outer", "", 0));
    leaf();
    tare_end(&outer);
    struct trace *t = stop();
    struct calltree tree = tree_of(t);
    assert_int_equal(NODE(t, &tree, "outer")->count, 1);
    assert_int_equal(NODE(t, &tree, "outer", "leaf")->count, 1);
    done(t, &tree);
}

static void pausing_what_does_not_run(void **state)
{
    (void)state;
    tare_scope scope;
    tare_site *site = tare_site_new(TARE_SITE_SCOPE, "x", "", 0);
    tare_open(&scope, site); /* no session: nothing happens */
    tare_pause(&scope);
    tare_resume(&scope, 0);
    tare_end(&scope);
    start(TARE_AGGREGATE | TARE_EVENTS, 0);
    tare_open(&scope, site);
    tare_pause(&scope);
    tare_pause(&scope);
    tare_end(&scope); /* while it waits: nobody's */
    tare_open(&scope, site);
    tare_end(&scope);
    struct trace *t = stop();
    struct calltree tree = tree_of(t);
    assert_int_equal(NODE(t, &tree, "x")->count, 1);
    done(t, &tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_exact_in_every_mode),
        cmocka_unit_test(counts_are_exact_while_weighing),
        cmocka_unit_test(tree_and_events_agree),
        cmocka_unit_test(by_hand_and_inlined),
        cmocka_unit_test(recursion_nests),
        cmocka_unit_test(too_deep_is_counted_as_lost),
        cmocka_unit_test(ten_thousand_paths),
        cmocka_unit_test(marks_of_every_length),
        cmocka_unit_test(marks_with_hostile_bytes),
        cmocka_unit_test(counters_of_every_size),
        cmocka_unit_test(names_known_at_run_time),
        cmocka_unit_test(a_hundred_thousand_names),
        cmocka_unit_test(longjmp_leaves_scopes),
        cmocka_unit_test(longjmp_out_of_a_weighed_call),
        cmocka_unit_test(ending_what_was_left_out_is_nobodys_fault),
        cmocka_unit_test(coroutines_take_turns),
        cmocka_unit_test(waiting_counts_for_a_task),
        cmocka_unit_test(a_pause_is_no_end),
        cmocka_unit_test(a_free_scope_outlives_the_frame_it_began_in),
        cmocka_unit_test(pausing_what_does_not_run),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
