/* SPDX-License-Identifier: MIT
 * test_run.c - the run document: filled in, written, read back (wrong ones: test_run_refuse.c). Two more uses, for the
 * Python tests:
 *   test_run --dump DIR   write the documents these tests make into DIR
 *   test_run --check      read paths from stdin, print "ok" or the refusal of run_load(), a line each */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/mem.h"
#include "run/run.h"
#include "run_documents.h"

/* ---- writing and reading ---- */

static void check_round_trip(void (*fill)(struct run *))
{
    struct run r, again;
    struct buf a = BUF_INIT, b = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    make(&r, fill);
    text_of(&r, &a);
    if (run_read(&again, "a", a.data, a.len, &err) < 0) fail_msg("%s", err.text);
    text_of(&again, &b);
    assert_string_equal(a.data, b.data);
    run_release(&again);
    run_release(&r);
    buf_release(&a);
    buf_release(&b);
}

static void test_round_trip(void **state)
{
    (void)state;
    check_round_trip(fill_minimal);
    check_round_trip(fill_full);
}

static void test_values_are_taken_out(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct run_map m = {0};
    static const char *const keys[] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++) run_map_int(&a, &m, keys[i], i);
    run_map_drop(&m, "b");
    run_map_drop(&m, "e");
    run_map_drop(&m, "nothing");
    assert_int_equal(m.n, 3);
    assert_null(run_map_get(&m, "b"));
    for (int i = 5; i < 9; i++) run_map_int(&a, &m, (char[]){(char)('a' + i), 0}, i);
    assert_int_equal(m.n, 7);
    assert_int_equal(run_map_get(&m, "a")->i, 0);
    assert_int_equal(run_map_get(&m, "c")->i, 2);
    assert_int_equal(run_map_get(&m, "d")->i, 3);
    assert_int_equal(run_map_get(&m, "i")->i, 8);
    arena_release(&a);
}

static void test_values_survive(void **state)
{
    (void)state;
    struct run r, again;
    struct buf b = BUF_INIT;
    make(&r, fill_full);
    text_of(&r, &b);
    assert_int_equal(run_read(&again, "a", b.data, b.len, NULL), TARE_OK);
    assert_int_equal(again.cases.n, 6);
    struct run_case *c = again.cases.at[0];
    assert_int_equal(c->latency_ns.p50.hi.v, 1010);
    assert_true(c->latency_ns.p90.known && !c->latency_ns.p90.lo.known && !c->latency_ns.p99.known);
    assert_string_equal(run_reason(&c->unknown, "latency_ns.p99"), "200 samples are too few");
    assert_int_equal(c->samples_raw.n, 7);
    assert_memory_equal(c->samples_raw.ns, r.cases.at[0]->samples_raw.ns, 7 * sizeof(uint64_t));
    assert_int_equal(c->latency_ns.histogram.counts[2], 5);
    assert_int_equal(c->memory.delta.v, -7);
    assert_false(c->memory.rss_mean.known);
    assert_true(c->throughput.rate.value == 1341.25);
    assert_true(again.host.is_virtual.known && again.host.is_virtual.v);
    assert_string_equal(again.subject.name, "models/Mini LM\xEF\xBF\xBD.onnx");
    assert_true(run_map_get(&again.config, "budget_s")->d == 12.5);
    assert_int_equal(run_map_get(&again.config, "batch")->items.n, 6);
    assert_int_equal(again.cases.at[1]->layers.n, 0);
    assert_false(again.cases.at[1]->gpu.known);
    run_release(&again);
    run_release(&r);
    buf_release(&b);
}

static void test_reasons(void **state)
{
    (void)state;
    struct run r;
    struct buf b = BUF_INIT;
    make(&r, fill_minimal);
    struct run_case *c = run_add_case(&r, "x");
    c->gpu.known = true;
    run_unknown(&r, &c->unknown, "gpu", "driver too old");
    run_unknown(&r, &c->unknown, "gpu.copy_ns", "no tracing");
    assert_string_equal(run_reason(&c->unknown, "gpu.copy_ns"), "no tracing");
    assert_string_equal(run_reason(&c->unknown, "gpu.devices[0].power_w"), "driver too old");
    assert_null(run_reason(&c->unknown, "gp"));
    assert_null(run_reason(&c->unknown, "gpux.y"));
    assert_int_equal(run_unexplained(&r, &b, NULL), TARE_OK);
    assert_non_null(strstr(b.data, "cases[0].latency_ns\n"));
    assert_non_null(strstr(b.data, "host.governor\n"));
    assert_null(strstr(b.data, "gpu."));
    run_release(&r);
    buf_release(&b);
}

/* What producers say by default leaves no null of an empty case without a reason, but for what they always know. */
static void test_default_reasons(void **state)
{
    (void)state;
    static const char *const always[RUN_PRODUCERS] = {
        [RUN_BY_BENCH] =
            "samples\nwarmup_runs\nunit\nunits_per_run\nconfidence\nload_ns\nfirst_run_ns\nfailed_runs\nlatency_ns\n"
            "samples_raw\nthroughput\nmemory\ncpu\noutliers\nio\nstability\nself\n",
        [RUN_BY_WATCH] = "samples\ncpu\nio\n",
        [RUN_BY_INSPECT] = "cost\nlayers\ngraph\n",
        [RUN_BY_IMPORT] = "layers\n",
    };
    for (int by = 0; by < RUN_PRODUCERS; by++) {
        struct run r;
        struct buf got = BUF_INIT, want = BUF_INIT;
        assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
        struct run_case *c = run_add_case(&r, "x");
        run_unknown(&r, &c->unknown, "gpu", "a better reason");
        run_explain_case(&r, c, by);
        run_explain_host(&r, by);
        assert_string_equal(run_reason(&c->unknown, "gpu"), "a better reason");
        for (const char *at = always[by]; *at; at = strchr(at, '\n') + 1)
            buf_printf(&want, "cases[0].%.*s\n", (int)(strchr(at, '\n') - at), at);
        assert_int_equal(run_unexplained(&r, &got, NULL), TARE_OK);
        const char *cases = strstr(got.data, "cases[0]");
        assert_string_equal(cases ? cases : "", want.data);
        bool told = by == RUN_BY_INSPECT || by == RUN_BY_IMPORT; /* the others have read the host */
        assert_true(told == !strstr(got.data, "host."));
        assert_true(told == (run_reason(&r.host.unknown, "virtual") != NULL));
        buf_release(&got);
        buf_release(&want);
        run_release(&r);
    }
}

/* 0.1.0 kept what is judged of a case in the settings. */
static void test_old_settings(void **state)
{
    (void)state;
    struct run r, again;
    struct run_map notes = {0}, open = {0}, cases = {0};
    struct buf b = BUF_INIT;
    make(&r, fill_minimal);
    run_add_case(&r, "a");
    run_add_case(&r, "b");
    run_map_text(&r.arena, &notes, "b", "still changing after 900 runs");
    run_map_set(&r.arena, &r.config, "never_steady", (struct run_value){.kind = RUN_MAP, .items = notes});
    run_map_int(&r.arena, &r.cases.at[1]->params, "nan_outputs", 12);
    run_map_real(&r.arena, &open, "offered", 20);
    run_map_int(&r.arena, &open, "achieved", 14);
    run_map_bool(&r.arena, &open, "overloaded", true);
    run_map_set(&r.arena, &cases, "a", (struct run_value){.kind = RUN_MAP, .items = open});
    run_map_set(&r.arena, &r.config, "open_loop", (struct run_value){.kind = RUN_MAP, .items = cases});
    assert_int_equal(run_write(&r, &b, NULL), TARE_OK);
    assert_int_equal(run_read(&again, "old.json", b.data, b.len, NULL), TARE_OK);
    const struct run_case *first = again.cases.at[0], *second = again.cases.at[1];
    assert_false(first->stability.steady.known || second->open_loop.known);
    assert_true(second->stability.steady.known && !second->stability.steady.v);
    assert_true(first->open_loop.offered.v == 20 && first->open_loop.achieved.v == 14);
    assert_true(first->open_loop.overloaded.v);
    assert_true(second->nan_outputs.v == 12 && second->params.n == 0);
    run_release(&r);
    run_release(&again);
    buf_release(&b);
}

static void refuse_write(struct run *r, const char *want)
{
    struct buf b = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_write(r, &b, &err), TARE_INVALID);
    assert_string_equal(err.text, want);
    assert_int_equal(b.len, 0);
    buf_release(&b);
}

static void test_write_refuses(void **state)
{
    (void)state;
    struct run r;
    make(&r, fill_minimal);
    struct run_case *c = run_add_case(&r, "x");
    c->load_ns = known_u64(UINT64_MAX);
    refuse_write(&r, "run document: cases[0].load_ns: above 9223372036854775807");
    c->load_ns.known = false;
    c->throughput.rate = run_estimate(NAN, 0, 1);
    c->throughput.unit = "/s";
    refuse_write(&r, "run document: cases[0].throughput.value: not a finite number");
    c->throughput.rate = run_estimate(3, 4, 5);
    refuse_write(&r, "run document: cases[0].throughput: lo is above value");
    c->throughput.rate.known = false;
    run_map_real(&r.arena, &c->params, "lr", INFINITY);
    refuse_write(&r, "run document: cases[0].params.lr: not a finite number");
    run_map_real(&r.arena, &c->params, "lr", 1);
    r.subject.name = NULL;
    refuse_write(&r, "run document: subject.name: must be set");
    run_release(&r);
}

/* ---- files ---- */

static void test_save_and_load(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_run_XXXXXX", out[256], path[512], second[512], name[128];
    struct run r, again;
    assert_non_null(mkdtemp(dir));
    snprintf(out, sizeof out, "%s/a/b", dir);
    make(&r, fill_full);
    r.created = "2026-11-15T02:17:21.123Z";
    assert_int_equal(run_save(&r, out, path, sizeof path, NULL), TARE_OK);
    assert_int_equal(run_save(&r, out, second, sizeof second, NULL), TARE_OK);
    snprintf(name, sizeof name, "%s", path + strlen(out) + 1);
    assert_string_equal(name, "bench_models-Mini-LM-.onnx_20261115-021721.json");
    snprintf(name, sizeof name, "%s", second + strlen(out) + 1);
    assert_string_equal(name, "bench_models-Mini-LM-.onnx_20261115-021721-2.json");
    assert_int_equal(run_load(&again, second, NULL), TARE_OK);
    assert_string_equal(again.id, r.id);
    run_release(&again);
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_save(&r, path, NULL, 0, &err), TARE_IO); /* a file where the folder should be */
    assert_int_equal(run_load(&again, out, &err), TARE_IO);
    assert_int_equal(run_load(&again, "/nonexistent.json", &err), TARE_IO);
    unlink(path);
    unlink(second);
    rmdir(out);
    snprintf(out, sizeof out, "%s/a", dir);
    rmdir(out);
    assert_int_equal(rmdir(dir), 0); /* nothing else was left behind */
    run_release(&r);
}

static void test_hostile_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"../../etc/passwd", "bench_etc-passwd_20261115-021721.json"},
                                           {"///", "bench_unnamed_20261115-021721.json"},
                                           {".hidden\n", "bench_hidden-_20261115-021721.json"}};
    char dir[] = "/tmp/test_run_XXXXXX", path[512];
    struct run r;
    assert_non_null(mkdtemp(dir));
    make(&r, fill_minimal);
    r.created = "2026-11-15T02:17:21.123Z";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        r.subject.name = names[i][0];
        assert_int_equal(run_save(&r, dir, path, sizeof path, NULL), TARE_OK);
        assert_string_equal(path + strlen(dir) + 1, names[i][1]);
        unlink(path);
    }
    rmdir(dir);
    run_release(&r);
}

/* ---- fingerprint and memory ---- */

static void test_fingerprint(void **state)
{
    (void)state;
    struct run r;
    char a[RUN_FINGERPRINT_SIZE], b[RUN_FINGERPRINT_SIZE];
    make(&r, fill_full);
    run_host_fingerprint(&r.host, a);
    assert_int_equal(strlen(a), RUN_FINGERPRINT_SIZE - 1);
    r.host.hostname = "other";
    r.host.kernel = "6.2";
    r.host.load1 = known_f64(9);
    r.host.memory_bytes.v -= 300 << 20;
    run_host_fingerprint(&r.host, b);
    assert_string_equal(a, b);
    r.host.cpu.usable = known_f64(1);
    run_host_fingerprint(&r.host, b);
    assert_string_not_equal(a, b);
    run_release(&r);
}

static void test_no_memory_to_write(void **state)
{
    (void)state;
    struct run r;
    long n = 0, before = mem_live_blocks();
    for (tare_status s = TARE_NOMEM; s != TARE_OK; n++) {
        struct buf b = BUF_INIT;
        mem_fail_after(n);
        s = run_init(&r, "bench", NULL);
        if (s == TARE_OK) {
            fill_full(&r);
            s = run_write(&r, &b, NULL);
            run_release(&r);
        }
        mem_fail_after(-1);
        buf_release(&b);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), before);
    }
    assert_true(n > 3);
}

/* Out of memory at any moment of saving leaves no file at all; loading leaves no block. */
static void test_no_memory_to_save(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_run_XXXXXX", path[512] = "";
    struct run r, again;
    assert_non_null(mkdtemp(dir));
    make(&r, fill_full);
    long n = 0, before = mem_live_blocks();
    for (tare_status s = TARE_NOMEM; s != TARE_OK; n++) {
        mem_fail_after(n);
        s = run_save(&r, dir, path, sizeof path, NULL);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), before);
    }
    assert_true(n > 3);
    n = 0;
    for (tare_status s = TARE_NOMEM; s != TARE_OK; n++) {
        mem_fail_after(n);
        s = run_load(&again, path, NULL);
        mem_fail_after(-1);
        if (s == TARE_OK) run_release(&again);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), before);
    }
    assert_true(n > 3);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
    run_release(&r);
}

static void *gated_malloc(size_t n)
{
    return mem_new(n, 1);
}

/* Returns how many allocations reading made. jansson reports some failed allocations of its own as a syntax error; the
 * user is told the truth. */
static long read_without_memory(const struct buf *text)
{
    struct run r;
    tare_error err = TARE_ERROR_INIT;
    long n = 0, before = mem_live_blocks();
    for (tare_status s = TARE_NOMEM; s != TARE_OK; n++) {
        mem_fail_after(n);
        s = run_read(&r, "x", text->data, text->len, &err);
        mem_fail_after(-1);
        if (s == TARE_OK) run_release(&r);
        if (s != TARE_OK && s != TARE_NOMEM) fail_msg("allocation %ld: %s", n, err.text);
        assert_int_equal(mem_live_blocks(), before);
    }
    return n;
}

static void test_no_memory_to_read(void **state)
{
    (void)state;
    struct run r;
    struct buf text = BUF_INIT;
    make(&r, fill_full);
    text_of(&r, &text);
    run_release(&r);
    assert_true(read_without_memory(&text) > 3);
    buf_release(&text);
}

/* What is refused is read again for its words: without memory for that it is no memory, not another cause. */
static void test_no_memory_to_refuse(void **state)
{
    static const char text[] = "{\"schema\": \"tare.run/1\", \"id\": [1, 2}";
    struct run r;
    tare_error err = TARE_ERROR_INIT;
    long n = 0, before = mem_live_blocks();
    (void)state;
    json_set_alloc_funcs(gated_malloc, mem_free);
    for (tare_status s = TARE_NOMEM; s != TARE_FORMAT; n++) {
        mem_fail_after(n);
        s = run_read(&r, "x", text, sizeof text - 1, &err);
        mem_fail_after(-1);
        if (s != TARE_FORMAT && s != TARE_NOMEM) fail_msg("allocation %ld: %s", n, err.text);
        assert_int_equal(mem_live_blocks(), before);
    }
    json_set_alloc_funcs(malloc, free);
    assert_true(n > 4);
    assert_string_equal(err.text, "x: line 1, column 37: ']' expected near '}'");
}

/* ---- for the Python tests ---- */

/* What commands are called: their words; never two commands by one name; one line; whole characters. */
static void test_commands_have_names(void **state)
{
    (void)state;
    char long_a[400] = "print('", long_b[400];
    memset(long_a + 7, 'x', 300);
    long_a[98] = (char)0xc3, long_a[99] = (char)0xa9; /* an e with an accent across the cut */
    memcpy(long_b, long_a, sizeof long_a);
    strcpy(long_a + 307, "1");
    strcpy(long_b + 307, "2");
    const struct {
        const char *words[4];
        bool shell;
        const char *name;
    } rows[] = {
        {{"/usr/bin/python3", "a.py"}, false, "python3 a.py"},
        {{"sh", "-c", "a \n\t b\n"}, false, "sh -c a b"},
        {{"cd /tmp; ./x"}, true, "cd /tmp; ./x"},
        {{"/"}, false, "/"},
        {{" "}, true, "sh"},
    };
    struct run r, other;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
        run_describe_command(&r, rows[i].words, rows[i].shell);
        assert_string_equal(r.subject.name, rows[i].name);
        run_release(&r);
    }
    const char *a[] = {"python", "-c", long_a, NULL}, *b[] = {"python", "-c", long_b, NULL};
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    assert_int_equal(run_init(&other, "bench", NULL), TARE_OK);
    run_describe_command(&r, a, false);
    run_describe_command(&other, b, false);
    assert_true(strlen(r.subject.name) <= 120 && strcmp(r.subject.name, other.subject.name) != 0);
    assert_null(strstr(r.subject.name, "\xc3.. #"));
    assert_string_equal(run_map_get(&r.config, "command")->items.at[2].value.s, long_a);
    run_release(&other);
    run_release(&r);
}

/* The file as seen from the working folder: two of one file name are two, and one is one however it is written. */
static void two_models_of_one_file_name_are_two_subjects(void **state)
{
    (void)state;
    static const struct {
        const char *path, *name;
    } rows[] = {{"A/m.onnx", "A/m"},         {"B/m.onnx", "B/m"},  {"./A//x/../m.onnx", "A/m"},
                {"/usr/A/m.onnx", "A/m"},    {"m.onnx", "m"},      {"../m.onnx", "/m"},
                {"/usrA/m.onnx", "/usrA/m"}, {"A/m.pt", "A/m.pt"}, {"../../../m", "/m"},
                {".onnx", ".onnx"}};
    char here[4096], far[400];
    struct run r;
    assert_true(getcwd(here, sizeof here) && chdir("/usr") == 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
        run_describe_model(&r, rows[i].path);
        assert_string_equal(r.subject.name, rows[i].name);
        assert_string_equal(r.subject.path, rows[i].path);
        run_release(&r);
    }
    memset(far, 'd', sizeof far);
    strcpy(far + 300, "/m.onnx");
    assert_int_equal(run_init(&r, "bench", NULL), TARE_OK);
    run_describe_model(&r, far);
    assert_true(strlen(r.subject.name) <= 120 && strstr(r.subject.name, ".. #"));
    run_release(&r);
    assert_int_equal(chdir(here), 0);
}

static int dump(const char *dir)
{
    void (*const fills[])(struct run *) = {fill_minimal, fill_full};
    for (size_t i = 0; i < 2; i++) {
        struct run r;
        char path[512];
        tare_error err = TARE_ERROR_INIT;
        if (run_init(&r, "bench", &err) < 0) return 1;
        fills[i](&r);
        if (run_save(&r, dir, path, sizeof path, &err) < 0) return fprintf(stderr, "%s\n", err.text), 1;
        puts(path);
        run_release(&r);
    }
    return 0;
}

static int check(void)
{
    char path[1024];
    while (fgets(path, sizeof path, stdin)) {
        struct run r;
        tare_error err = TARE_ERROR_INIT;
        path[strcspn(path, "\n")] = 0;
        if (run_load(&r, path, &err) == TARE_OK) {
            puts("ok");
            run_release(&r);
        } else {
            puts(err.text);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_values_are_taken_out),
        cmocka_unit_test(test_values_survive),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_default_reasons),
        cmocka_unit_test(test_old_settings),
        cmocka_unit_test(test_write_refuses),
        cmocka_unit_test(test_save_and_load),
        cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_commands_have_names),
        cmocka_unit_test(two_models_of_one_file_name_are_two_subjects),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_no_memory_to_write),
        cmocka_unit_test(test_no_memory_to_read),
        cmocka_unit_test(test_no_memory_to_refuse),
        cmocka_unit_test(test_no_memory_to_save),
    };
    if (argc == 3 && strcmp(argv[1], "--dump") == 0) return dump(argv[2]);
    if (argc == 2 && strcmp(argv[1], "--check") == 0) return check();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
