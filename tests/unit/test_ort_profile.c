/* SPDX-License-Identifier: MIT
 * test_ort_profile.c - profiles as ONNX Runtime 1.20 and 1.31 wrote them (the fuzzer's corpus) and as they get damaged:
 * names with quotes, cut ends, other orders, nested bodies, runs of several threads. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "model/onnx/onnx.h"
#include "model/profile/ort_profile.h"

static const char *corpus(const char *name)
{
    static char path[PATH_MAX];
    const char *src = getenv("TARE_SRC");
    snprintf(path, sizeof path, "%s/fuzz/corpus/ort_profile/%s", src ? src : ".", name);
    return path;
}

static struct ort_profile load(const char *name)
{
    struct ort_profile p = ORT_PROFILE_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (ort_profile_load(&p, corpus(name), &err) < 0) fail_msg("%s: %s", name, err.text);
    return p;
}

static struct ort_profile read_text(const char *text)
{
    struct ort_profile p = ORT_PROFILE_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (ort_profile_read(&p, "text", text, strlen(text), &err) < 0) fail_msg("%s", err.text);
    return p;
}

static const struct ort_event *event_of(const struct ort_profile *p, const char *node, uint32_t run)
{
    for (size_t i = 0; i < p->events.n; i++) {
        const struct ort_event *e = &p->events.items[i];
        if (e->run == run && strcmp(e->node, node) == 0) return e;
    }
    fail_msg("no event of %s in run %u", node, run);
    return NULL;
}

static const char *parent_of(const struct ort_profile *p, const struct ort_event *e)
{
    return e->parent == SIZE_MAX ? "" : p->events.items[e->parent].node;
}

/* ---- real files ---- */

/* 1.20 escapes nothing and has fences; 1.31 escapes and has none. The names come out alike. */
static void quotes_and_backslashes(void **state)
{
    (void)state;
    static const char *const files[] = {"quotes-1.20.json", "cut-1.31.json", "rewritten.json"};
    for (size_t i = 0; i < 3; i++) {
        struct ort_profile p = load(files[i]);
        const struct ort_event *e = event_of(&p, "cond \"x\\y\"", 0);
        assert_string_equal(e->op, "Greater");
        assert_string_equal(e->provider, "CPUExecutionProvider");
        assert_string_equal(parent_of(&p, event_of(&p, "loop/\"quoted\\mm", 0)), "the loop");
        assert_int_equal(p.fences, i == 0);
        assert_int_equal(p.truncated, i == 1);
        assert_int_equal(p.unreadable, 0);
        ort_profile_release(&p);
    }
}

static void runs_and_times(void **state)
{
    (void)state;
    struct ort_profile p = load("quotes-1.20.json");
    assert_int_equal(p.runs_us.n, 2);
    assert_int_equal(p.runs_us.items[1], 95);
    assert_int_equal(p.load_us, 378);
    assert_int_equal(p.initialization_us, 10070);
    for (size_t i = 0; i < p.events.n; i++) assert_true(p.events.items[i].run < 2);
    const struct ort_event *sum = event_of(&p, "sum", 0);
    assert_int_equal(sum->start_us, 10604);
    assert_int_equal(sum->duration_us, 21);
    assert_int_equal(sum->activation_bytes, 64);
    assert_int_equal(sum->n_outputs, 1);
    assert_int_equal(sum->outputs[0].type, ONNX_FLOAT);
    assert_int_equal(sum->outputs[0].rank, 0);
    ort_profile_release(&p);
}

static void bodies_are_taken_off(void **state)
{
    (void)state;
    struct ort_profile p = load("quotes-1.20.json");
    const struct ort_event *branch = event_of(&p, "branch", 0);
    int64_t inside = event_of(&p, "then/mm", 0)->duration_us + event_of(&p, "then/relu", 0)->duration_us;
    assert_int_equal(branch->self_us, branch->duration_us - inside);
    assert_string_equal(parent_of(&p, branch), "");
    unsigned trips = 0;
    for (size_t i = 0; i < p.events.n; i++)
        trips += strcmp(p.events.items[i].node, "loop/cond") == 0 && p.events.items[i].run == 0;
    assert_int_equal(trips, 3);
    ort_profile_release(&p);
}

static void shapes_of_outputs(void **state)
{
    (void)state;
    struct ort_profile p = load("threads-1.31.json");
    const struct ort_event *e = event_of(&p, "/encoder/layer.0/attention/self/key/MatMul", 0);
    assert_int_equal(e->n_outputs, 1);
    assert_int_equal(e->outputs[0].rank, 3);
    assert_int_equal(e->outputs[0].dims[2], 384);
    assert_int_equal(e->output_bytes, 49152);
    ort_profile_release(&p);
}

/* The same events, whoever wrote the file. */
static void rewritten_by_others(void **state)
{
    (void)state;
    struct ort_profile a = load("rewritten.json"), b = load("one-line.json");
    assert_int_equal(a.lines, 22);
    assert_int_equal(b.lines, 22);
    for (size_t i = 0; i < b.events.n; i++) {
        assert_string_equal(a.events.items[i].node, b.events.items[i].node);
        assert_int_equal(a.events.items[i].duration_us, b.events.items[i].duration_us);
    }
    assert_int_equal(a.runs_us.n, 1);
    ort_profile_release(&a);
    ort_profile_release(&b);
}

/* ---- made up ---- */

#define NODE(name, ts, dur, tid, op)                                                               \
    "{\"cat\" : \"Node\",\"pid\" :1,\"tid\" :" #tid ",\"dur\" :" #dur ",\"ts\" :" #ts              \
    ",\"ph\" : \"X\",\"name\" :\"" name "_kernel_time\",\"args\" : {\"op_name\" : \"" op           \
    "\",\"provider\" : \"CPUExecutionProvider\"}},\n"
#define RUN(ts, dur, tid)                                                                          \
    "{\"cat\" : \"Session\",\"pid\" :1,\"tid\" :" #tid ",\"dur\" :" #dur ",\"ts\" :" #ts           \
    ",\"ph\" : \"X\",\"name\" :\"model_run\",\"args\" : {}},\n"

/* A name may look like the file itself. */
static void hostile_names(void **state)
{
    (void)state;
    struct ort_profile p = read_text("[\n" NODE("a\",\"args\" : {\"op_name\" : \"Evil\"},\"x", 5, 7, 1, "Add")
                                         NODE("\"ts\" :99", 20, 1, 1, "Mul") RUN(1, 100, 1) "]\n");
    assert_int_equal(p.events.n, 2);
    assert_string_equal(p.events.items[0].node, "a\",\"args\" : {\"op_name\" : \"Evil\"},\"x");
    assert_string_equal(p.events.items[0].op, "Add");
    assert_int_equal(p.events.items[1].start_us, 20);
    ort_profile_release(&p);
}

/* Two threads run at once: each event belongs to its own thread's run, in spite of both lying around it. */
static void overlapping_runs(void **state)
{
    (void)state;
    struct ort_profile p = read_text("[\n" NODE("a", 10, 5, 1, "Add") NODE("a", 12, 5, 2, "Add") RUN(9, 20, 1)
                                         RUN(11, 20, 2) NODE("late", 500, 1, 1, "Add") "]\n");
    assert_int_equal(p.events.items[0].run, 0);
    assert_int_equal(p.events.items[1].run, 1);
    assert_int_equal(p.events.items[2].run, 2); /* of none */
    ort_profile_release(&p);
}

/* A short node that starts in the same microsecond as its longer neighbour is not inside of it. */
static void only_bodies_nest(void **state)
{
    (void)state;
    struct ort_profile p = read_text("[\n" NODE("a", 10, 0, 1, "Add") NODE("b", 10, 5, 1, "MatMul") NODE(
        "in", 20, 5, 1, "Add") NODE("if", 20, 5, 1, "If") RUN(9, 20, 1) "]");
    assert_int_equal(event_of(&p, "a", 0)->parent, SIZE_MAX);
    assert_string_equal(parent_of(&p, event_of(&p, "in", 0)), "if");
    assert_int_equal(event_of(&p, "if", 0)->self_us, 0);
    ort_profile_release(&p);
}

static void what_cannot_be_used_is_counted(void **state)
{
    (void)state;
    struct ort_profile p = read_text("[\n" NODE(
        "a", 10, 5, 1,
        "Add") "{\"cat\" : \"Node\",\"dur\" :x,\"ts\" :1,\"name\" :\"b\"},\n"
               "{\"cat\" : \"Node\",\"dur\" :-4,\"ts\" :1,\"name\" :\"b\",\"args\" : {}},\n"
               "{\"cat\" : \"Node\",\"dur\" :99999999999999999999,\"ts\" :1,\"name\" :\"b\"},\nnoise\n"
               "{\"cat\" : \"Node\",\"dur\" :2000000000000,\"ts\" :1,\"name\" :\"b\",\"args\" : {}},\n"
               "{\"cat\" : \"Kernel\",\"dur\" :4,\"ts\" :1,\"name\" :\"gpu\",\"args\" : {}}\n]\n");
    assert_int_equal(p.events.n, 1);
    assert_int_equal(p.lines, 6);
    assert_int_equal(p.unreadable, 4);
    assert_false(p.truncated);
    ort_profile_release(&p);
}

/* A node without its operator and provider still has a time. */
static void texts_may_be_missing(void **state)
{
    (void)state;
    struct ort_profile p =
        read_text("[\n{\"cat\" : \"Node\",\"pid\" :1,\"tid\" :1,\"dur\" :4,\"ts\" :1,\"ph\" : "
                  "\"X\",\"name\" :\"a_kernel_time\",\"args\" : {}},\n]");
    assert_int_equal(p.events.n, 1);
    assert_string_equal(p.events.items[0].node, "a");
    assert_string_equal(p.events.items[0].op, "");
    assert_string_equal(p.events.items[0].provider, "");
    ort_profile_release(&p);
}

static void refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "[\n]\n", "{}", "[{\"name\": 4}]", "hello\n\n", "[[[[{"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ort_profile p = ORT_PROFILE_INIT;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(ort_profile_read(&p, "some.json", texts[i], strlen(texts[i]), &err), TARE_INVALID);
        assert_non_null(strstr(err.text, "some.json: no profile of ONNX Runtime"));
    }
}

/* Cut at every byte: never more events than the whole has, and a cut is always noticed. */
static void cut_anywhere(void **state)
{
    (void)state;
    const char *text = "[\n" NODE("a", 10, 5, 1, "Add") NODE("b", 16, 5, 1, "If") RUN(9, 20, 1) "]";
    for (size_t n = strlen(text); n-- > 0;) {
        struct ort_profile p = ORT_PROFILE_INIT;
        tare_status s = ort_profile_read(&p, "cut", text, n, NULL);
        assert_true(s == TARE_OK || s == TARE_INVALID); /* what is missing is no lack of memory */
        if (s < 0) continue;
        assert_true(p.truncated && p.events.n <= 2);
        ort_profile_release(&p);
    }
}

static void without_memory(void **state)
{
    (void)state;
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        struct ort_profile p = ORT_PROFILE_INIT;
        mem_fail_after(n);
        tare_status s = ort_profile_load(&p, corpus("quotes-1.20.json"), NULL);
        mem_fail_after(-1);
        ort_profile_release(&p);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotes_and_backslashes),
        cmocka_unit_test(runs_and_times),
        cmocka_unit_test(bodies_are_taken_off),
        cmocka_unit_test(shapes_of_outputs),
        cmocka_unit_test(rewritten_by_others),
        cmocka_unit_test(hostile_names),
        cmocka_unit_test(overlapping_runs),
        cmocka_unit_test(only_bodies_nest),
        cmocka_unit_test(what_cannot_be_used_is_counted),
        cmocka_unit_test(texts_may_be_missing),
        cmocka_unit_test(refused),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
