/* SPDX-License-Identifier: MIT
 * test_run_report.c - run documents as text, CSV, Markdown and JUnit: what they say, that hostile names
 * break none of them, that memory may run out at any point. `test_run_report --dump FILE` writes the
 * sweep for the CLI tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "core/file.h"
#include "core/fmt.h"
#include "core/mem.h"
#include "report/run/run_report.h"
#include "run_fixture.h"

#include <cmocka.h>

/* ---- helpers ---- */

static void judged_sweep(struct run *r)
{
    struct target t[3];
    tare_error err = TARE_ERROR_INIT;
    struct objective o = {.name = "throughput"};
    fixture_sweep(r);
    if (target_parse(&t[0], "latency.p50<=200ms", &err) < 0 ||
        target_parse(&t[1], "throughput>=45/s", &err) < 0 || target_parse(&t[2], "accuracy>=0.5", &err) < 0 ||
        findings_add(r, &err) < 0 || recommend(r, &o, &err) < 0 || targets_judge(r, t, 3, false, &err) < 0)
        fail_msg("%s", err.text);
}

static tare_status render(const struct run *r, const char *format, struct buf *out, tare_error *err)
{
    const struct run *list[1] = {r};
    struct run_report report = {.runs = list, .n = 1};
    struct stream s;
    for (const struct run_format *f = run_formats; f->name; f++) {
        if (strcmp(f->name, format) != 0) continue;
        stream_init(&s, sink_to_buf(out), err);
        f->write(&s, &report);
        return stream_finish(&s);
    }
    return TARE_INVALID;
}

static char *rendered(const struct run *r, const char *format)
{
    struct buf out = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    if (render(r, format, &out, &err) < 0) fail_msg("%s: %s", format, err.text);
    char *text = buf_take(&out);
    assert_non_null(text);
    return text;
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("no \"%s\" in:\n%s", part, text);
}

static size_t count_of(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part)) n++;
    return n;
}

/* ---- text ---- */

static void test_text(void **state)
{
    struct run r;
    (void)state;
    judged_sweep(&r);
    char *text = rendered(&r, "text");
    has(text, "subject    minilm-l6 (onnx, 86.7 MiB) in onnxruntime 1.30.0\n");
    has(text, "host       box, Some CPU, 2 of 8 processors usable, 16.0 GiB\n");
    has(text, "budget_s=10");
    has(text, "fixed      seq=128, threads=2\n");
    has(text, "batch  texts/s    +/-"); /* batch_size says the same as batch */
    has(text, "within this run");
    has(text, "- p99: 200 samples are too few; 4 more cases lack them, too\n");
    assert_int_equal(count_of(text, "samples are too few"), 1); /* not once per case */
    has(text, "\nfindings\n");
    has(text, "\nrecommended for\n  throughput ");
    has(text, "\n  latency    batch=1,seq=128: ");
    has(text, "\n  memory     batch=1,seq=128: peak ");
    has(text, "margin  verdict");
    has(text, "latency.p50 <= 200 ms");
    has(text, "fail");
    assert_null(strstr(text, "100 %")); /* no verdict is certain */
    mem_free(text);
    run_release(&r);
}

/* `tare tune` varies eight settings, each with its column, beside all that is measured. */
static void test_a_table_with_all_settings_of_a_search(void **state)
{
    static const char *const settings[] = {"threads", "precision", "execution", "optimization",
                                           "arena",   "pattern",   "provider",  "io"};
    struct run r;
    (void)state;
    judged_sweep(&r);
    for (size_t c = 0; c < r.cases.n; c++) {
        struct run_case *of = r.cases.at[c];
        of->accuracy.metric = "top1";
        of->accuracy.score = run_estimate(0.99, 0.98, 1);
        of->self.share = known_f64(0.01);
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
            run_map_int(&r.arena, &of->params, settings[i], (int64_t)(c >> (i % 3) & 1 ? i : 100 + i + c));
    }
    char *text = rendered(&r, "text");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) has(text, settings[i]);
    has(text, "accuracy");
    mem_free(text);
    for (const struct run_format *f = run_formats; f->name; f++) mem_free(rendered(&r, f->name));
    run_release(&r);
}

static void test_text_of_almost_nothing(void **state)
{
    struct run r;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    assert_int_equal(run_init(&r, "bench", &err), TARE_OK);
    r.subject.type = "command";
    r.subject.name = "true";
    char *text = rendered(&r, "text");
    has(text, "no case was measured");
    mem_free(text);
    struct run_case *c = run_add_case(&r, "");
    run_unknown(&r, &c->unknown, "throughput", "it never ran");
    text = rendered(&r, "text");
    has(text, "case  units/s\n-           -\n- units/s: it never ran\n");
    mem_free(text);
    for (const struct run_format *f = run_formats; f->name; f++) mem_free(rendered(&r, f->name));
    run_release(&r);
}

/* Three digits would print "200 ms" beside "<= 200 ms" and call it missed. */
static void test_an_achieved_value_stands_on_its_side_of_the_target(void **state)
{
    static const struct {
        double achieved;
        const char *text;
    } rows[] = {{200.4e6, "200.4 ms"}, {199.96e6, "199.96 ms"}, {108.64e6, "109 ms"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf b = BUF_INIT;
        struct run_target t = {
            .metric = "latency.p50", .op = "<=", .value = 200e6, .achieved = known_f64(rows[i].achieved)};
        run_achieved_text(&b, &t);
        assert_string_equal(b.data, rows[i].text);
        buf_release(&b);
    }
}

/* ---- the others ---- */

static void test_csv(void **state)
{
    struct run r;
    (void)state;
    judged_sweep(&r);
    r.cases.at[1]->name = "a,\"b\"\nc";
    char *text = rendered(&r, "csv");
    assert_int_equal(count_of(text, "\r\n"), 6);
    has(text, "run_id,created,kind,subject,");
    has(text, ",latency_p95_ns,latency_p95_ns_lo,latency_p95_ns_hi,");
    has(text, "\"a,\"\"b\"\"\\nc\"");
    char *line_end = strstr(text, "\r\n");
    size_t columns = 1;
    for (const char *at = text; at < line_end; at++) columns += *at == ',';
    const char *last = line_end + 2;
    size_t fields = 1;
    for (const char *at = last; *at != '\r'; at++)
        fields += *at == ',' && at[-1] != '8'; /* batch=1,seq=128 is quoted */
    has(last, "\"batch=1,seq=128\"");
    assert_int_equal(count_of(text, "batch=1;seq=128;threads=2;batch_size=1"), 1);
    assert_true(columns > 50 && fields >= columns - 2);
    mem_free(text);
    run_release(&r);
}

static void test_markdown(void **state)
{
    struct run r;
    (void)state;
    judged_sweep(&r);
    r.subject.name = "x|y<script>@someone `code`";
    char *text = rendered(&r, "md");
    assert_int_equal(strncmp(text, "<!-- tare report -->\n", 21), 0);
    has(text, "x\\|y&lt;script&gt;&#64;someone \\`code\\`");
    has(text, "| **fail** | latency.p50 &lt;= 200 ms |");
    has(text, "|---:|---:|");
    has(text, "Recommended for throughput: **batch=");
    assert_null(strstr(text, "<script"));
    mem_free(text);
    run_release(&r);
}

static void test_junit(void **state)
{
    struct run r;
    (void)state;
    judged_sweep(&r);
    struct run_finding *f = run_add_finding(&r, "memory.leak", "critical");
    assert_non_null(f);
    f->title = "a<b>&\"c\"\x01\xff";
    char *text = rendered(&r, "junit"), counted[80];
    size_t failures = targets_missed(&r) + 1;
    snprintf(counted, sizeof counted, "failures=\"%zu\" errors=\"0\" skipped=\"5\"", failures);
    has(text, counted);
    assert_int_equal(count_of(text, "<failure "), failures);
    assert_int_equal(count_of(text, "<skipped "), 5); /* accuracy was never measured */
    has(text, "a&lt;b&gt;&amp;&quot;c&quot;\\x01\xEF\xBF\xBD");
    has(text, "name=\"latency.p50 &lt;= 200 ms [batch=16,seq=128]\"");
    assert_int_equal(count_of(text, "<testcase "), r.targets.n + r.findings.n + r.cases.n);
    mem_free(text);
    run_release(&r);
}

static void test_json_reads_back(void **state)
{
    struct run r, again;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    judged_sweep(&r);
    char *text = rendered(&r, "json");
    assert_int_equal(run_read(&again, "again", text, strlen(text), &err), TARE_OK);
    assert_int_equal(again.findings.n, r.findings.n);
    mem_free(text);
    char *first = rendered(&r, "text"), *second = rendered(&again, "text");
    assert_string_equal(first, second);
    mem_free(first);
    mem_free(second);
    run_release(&again);
    run_release(&r);
}

static void test_no_memory(void **state)
{
    struct run r;
    (void)state;
    judged_sweep(&r);
    for (const struct run_format *f = run_formats; f->name; f++) {
        long held = mem_live_blocks();
        for (long n = 0;; n++) {
            struct buf out = BUF_INIT;
            tare_error err = TARE_ERROR_INIT;
            mem_fail_after(n);
            tare_status s = render(&r, f->name, &out, &err);
            mem_fail_after(-1);
            buf_release(&out);
            assert_int_equal(mem_live_blocks(), held);
            if (s == TARE_OK) break;
            assert_int_equal(s, TARE_NOMEM);
            assert_true(n < 5000);
        }
    }
    run_release(&r);
}

static int dump(const char *path)
{
    struct run r;
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    judged_sweep(&r);
    r.id = "01KA3QZ4M6S1V7W8X9Y0Z1A2B3";
    r.created = "2026-11-15T02:17:21.123Z";
    r.tool = (struct run_tool){"0.1.0", NULL};
    if (run_write(&r, &text, &err) < 0 || file_write_atomic(path, text.data, text.len, 0, &err) < 0)
        fprintf(stderr, "%s\n", err.text);
    buf_release(&text);
    run_release(&r);
    return err.status == TARE_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--dump") == 0) return dump(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_a_table_with_all_settings_of_a_search),
        cmocka_unit_test(test_text_of_almost_nothing),
        cmocka_unit_test(test_an_achieved_value_stands_on_its_side_of_the_target),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_markdown),
        cmocka_unit_test(test_junit),
        cmocka_unit_test(test_json_reads_back),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
