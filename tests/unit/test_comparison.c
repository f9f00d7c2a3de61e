/* SPDX-License-Identifier: MIT
 * test_comparison.c - the comparison document: made from pairs, written, read back, broken; and what the cases say
 * together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/compare/compare_pairs.h"
#include "core/mem.h"
#include "core/rng.h"
#include "report/compare/comparison_report.h"

enum { PAIRS = 64 };

struct world {
    double slower; /* 1.05: new takes 5 % longer */
    double noise;  /* of wall time */
    double cpu_noise;
    bool own_launch;
    bool busy; /* preempted */
};

static void make_pairs(struct pair_set *set, struct pair *at, struct pair_epoch *epochs,
                       const struct world *w)
{
    struct rng rng;
    rng_seed(&rng, 7);
    *set = (struct pair_set){.at = at,
                             .n = PAIRS,
                             .epochs = epochs,
                             .n_epochs = w->own_launch ? 1 : 8,
                             .own_launch = w->own_launch,
                             .repeats = 1};
    for (size_t i = 0; i < PAIRS; i++) {
        at[i] = (struct pair){.epoch = w->own_launch ? 0 : (uint32_t)(i / 8), .b_first = i % 2};
        for (int side = 0; side < PAIR_SIDES; side++) {
            double cpu = 5e6 * (side ? w->slower : 1) * exp(w->cpu_noise * (rng_unit(&rng) - 0.5));
            double wall = cpu * exp(w->noise * rng_unit(&rng));
            at[i].side[side] = (struct pair_side){.wall_ns = (uint64_t)wall,
                                                  .cpu_ns = (uint64_t)cpu,
                                                  .involuntary = w->busy,
                                                  .rss_peak = w->own_launch ? 4 << 20 : 0,
                                                  .env_pad = (uint32_t)i};
        }
    }
    for (size_t i = 0; i < 8; i++)
        epochs[i] = (struct pair_epoch){
            {{.load_ns = 1000, .rss_peak = 10 << 20}, {.load_ns = 1000, .rss_peak = 11 << 20}}};
}

/* A document of one case per world. */
static tare_status build(struct comparison *c, const struct world *w, size_t n, tare_error *err)
{
    static struct pair at[PAIRS];
    static struct pair_epoch epochs[8];
    struct paired_rule r = PAIRED_RULE_INIT;
    tare_status s = comparison_init(c, "interleaved", err);
    if (s < 0) return s;
    c->base = (struct comparison_side){.name = "old", .type = "command"};
    c->new_ = (struct comparison_side){.name = "new", .type = "command"};
    for (size_t i = 0; s == TARE_OK && i < n; i++) {
        struct pair_set set;
        make_pairs(&set, at, epochs, &w[i]);
        struct compare_pairs in = {.name = "case",
                                   .set = &set,
                                   .stopped = "precise",
                                   .spent_s = 1.5,
                                   .units = 2,
                                   .unit = "texts",
                                   .failure = "",
                                   .keep_samples = true};
        s = compare_pairs_add(c, &in, &r, err);
    }
    if (s == TARE_OK) s = compare_finish(c, r.alpha, err);
    return s;
}

static const struct comparison_metric *metric(const struct comparison *c, size_t i, const char *name)
{
    for (size_t k = 0; k < c->cases.at[i]->metrics.n; k++)
        if (strcmp(c->cases.at[i]->metrics.at[k]->metric, name) == 0) return c->cases.at[i]->metrics.at[k];
    fail_msg("no metric %s", name);
    return NULL;
}

static const struct world slower = {1.05, 0.02, 0.02, true, false};
static const struct world same = {1, 0.02, 0.02, false, false};

static void metrics_of_a_case(void **state)
{
    (void)state;
    struct comparison c;
    assert_int_equal(build(&c, &slower, 1, NULL), TARE_OK);
    const struct comparison_metric *m = metric(&c, 0, "latency.p50");
    assert_true(fabs(m->ratio.value - 1.05) < 0.005 && m->ratio.lo.v < 1.05 && m->ratio.hi.v > 1.045);
    assert_string_equal(m->verdict, "regressed");
    assert_true(m->gate.lo.v <= m->ratio.lo.v && m->mde.v > 0.01 && m->mde.v < 0.05 && m->p_value.v < 0.01);
    assert_true(fabs(m->base.value - 5.05e6) < 1e5 && m->samples.v == PAIRS && !m->needed.known);
    m = metric(&c, 0, "throughput"); /* more is better: the ratio turns round, the verdict does not */
    assert_true(fabs(m->ratio.value * metric(&c, 0, "latency.p50")->ratio.value - 1) < 1e-9);
    assert_string_equal(m->unit, "texts/s");
    assert_true(m->ratio.lo.v <= m->ratio.value && fabs(m->base.value - 2e9 / 5.05e6) < 10);
    assert_string_equal(m->verdict, "regressed");
    m = metric(&c, 0, "memory.peak");
    assert_true(m->ratio.value == 1 && m->samples.v == PAIRS);
    assert_string_equal(m->verdict, "same");
    assert_string_equal(c.verdict, "regressed");
    comparison_release(&c);
}

static void memory_is_judged_by_launches(void **state)
{
    (void)state;
    struct comparison c;
    assert_int_equal(build(&c, &same, 1, NULL), TARE_OK);
    const struct comparison_metric *m = metric(&c, 0, "memory.peak");
    assert_true(fabs(m->ratio.value - 1.1) < 1e-9 && m->samples.v == 8);
    assert_string_equal(m->verdict, "regressed");
    assert_string_equal(m->role, "advisory");
    assert_string_equal(c.verdict, "same"); /* advisory does not count */
    assert_true(metric(&c, 0, "latency.p50")->sd_launch.known);
    comparison_release(&c);
}

/* Wall time that is all waiting: CPU time decides, and the document says why. */
static void cpu_time_is_the_witness_on_a_busy_machine(void **state)
{
    (void)state;
    const struct world w[] = {{1.05, 2.0, 0.02, true, true}, {1, 2.0, 0.02, true, true}};
    const char *const want[] = {"regressed", "same"};
    for (size_t i = 0; i < 2; i++) {
        struct comparison c;
        assert_int_equal(build(&c, &w[i], 1, NULL), TARE_OK);
        assert_string_equal(metric(&c, 0, "latency.p50")->verdict, "inconclusive");
        assert_string_equal(metric(&c, 0, "latency.p50")->role, "advisory");
        assert_string_equal(metric(&c, 0, "cpu.time")->verdict, want[i]);
        assert_string_equal(c.verdict, want[i]);
        assert_true(c.cases.at[0]->interference.contended.v && c.cases.at[0]->notes.n >= 1);
        assert_string_equal(c.cases.at[0]->notes.at[0]->id, "machine.busy");
        comparison_release(&c);
    }
}

/* Every pair is 5 % slower, but for some that stand where the medians of the sides fall: 2 ms, then 1.5 ms, "+5 %". */
static void medians_that_contradict_the_pairs_have_a_word(void **state)
{
    struct pair at[PAIRS];
    struct pair_epoch epochs[8];
    struct pair_set set;
    struct comparison c;
    struct paired_rule r = PAIRED_RULE_INIT;
    (void)state;
    for (int split = 0; split < 2; split++) {
        make_pairs(&set, at, epochs, &slower);
        for (size_t i = 0; i < PAIRS; i++) {
            double level = i % 5 < 2 ? 1e6 : i % 5 == 2 ? 2e6 : 4e6;
            at[i].side[PAIR_A].wall_ns = (uint64_t)level;
            at[i].side[PAIR_B].wall_ns = (uint64_t)(level * (split && i % 5 == 2 ? 0.75 : 1.05));
        }
        assert_int_equal(comparison_init(&c, "interleaved", NULL), TARE_OK);
        struct compare_pairs in = {.name = "case", .set = &set, .failure = ""};
        assert_int_equal(compare_pairs_add(&c, &in, &r, NULL), TARE_OK);
        const struct comparison_metric *m = metric(&c, 0, "latency.p50");
        assert_true(m->ratio.value > 1.04 && (m->new_.value < m->base.value) == split);
        assert_int_equal(c.cases.at[0]->notes.n, split);
        if (split)
            assert_non_null(
                strstr(c.cases.at[0]->notes.at[0]->text, "medians of all runs differ by -25.0 %"));
        comparison_release(&c);
    }
}

/* When it waits for a disk on an idle machine, wall time stays the judge. */
static void waiting_is_not_contention(void **state)
{
    (void)state;
    struct pair at[PAIRS];
    struct pair_epoch epochs[8];
    struct pair_set set;
    struct comparison c;
    struct paired_rule r = PAIRED_RULE_INIT;
    make_pairs(&set, at, epochs, &slower);
    for (size_t i = 0; i < PAIRS; i++)
        for (int side = 0; side < PAIR_SIDES; side++) at[i].side[side].cpu_ns /= 20;
    assert_int_equal(comparison_init(&c, "interleaved", NULL), TARE_OK);
    struct compare_pairs in = {.name = "case", .set = &set, .failure = ""};
    assert_int_equal(compare_pairs_add(&c, &in, &r, NULL), TARE_OK);
    assert_string_equal(metric(&c, 0, "cpu.time")->role, "advisory");
    assert_string_equal(metric(&c, 0, "latency.p50")->role, "gate");
    assert_false(c.cases.at[0]->interference.contended.v);
    assert_null(c.cases.at[0]->notes.at);
    comparison_release(&c);
}

/* One of very many cases that is barely slower may be chance; one that is much slower is not. */
static void many_cases_are_judged_together(void **state)
{
    (void)state;
    struct comparison c;
    struct world w[12];
    for (size_t i = 0; i < 12; i++) w[i] = same;
    w[5] = slower;
    assert_int_equal(build(&c, w, 12, NULL), TARE_OK);
    assert_string_equal(c.verdict, "regressed");
    assert_string_equal(c.cases.at[5]->verdict, "regressed");
    assert_string_equal(c.cases.at[4]->verdict, "same");
    comparison_release(&c);
    assert_int_equal(build(&c, w, 1, NULL), TARE_OK);
    struct comparison_metric *m = c.cases.at[0]->metrics.at[0];
    m->verdict = "regressed"; /* as if barely: its p is not below alpha / family */
    m->p_value = known_f64(0.006);
    c.cases.at[0]->metrics.at[1]->p_value = known_f64(0.5);
    assert_int_equal(compare_finish(&c, 0.01, NULL), TARE_OK);
    assert_string_equal(m->verdict, "inconclusive");
    assert_non_null(m->why);
    assert_true(fabs(m->p_value.v - 0.012) < 1e-12);
    comparison_release(&c);
}

static void worse_verdicts_win(void **state)
{
    (void)state;
    assert_string_equal(comparison_worse("same", "improved"), "improved");
    assert_string_equal(comparison_worse("regressed", "inconclusive"), "regressed");
    assert_string_equal(comparison_worse("unverified", "same"), "unverified");
    assert_string_equal(comparison_worse(NULL, "same"), "same");
    assert_null(comparison_worse(NULL, NULL));
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct comparison c, got;
    const struct world w[] = {slower, same};
    struct buf text = BUF_INIT, again = BUF_INIT;
    assert_int_equal(build(&c, w, 2, NULL), TARE_OK);
    comparison_add_difference(&c, "host.kernel", "6.1", "6.2")->severity = "warn";
    comparison_add_unmatched(&c, "base", "batch=4");
    comparison_note(&c, NULL, "x.y", "info", "3 things");
    c.reproduce = "tare compare --ab old new";
    assert_int_equal(comparison_write(&c, &text, NULL), TARE_OK);
    tare_error err = TARE_ERROR_INIT;
    if (comparison_read(&got, "it", text.data, text.len, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(comparison_write(&got, &again, NULL), TARE_OK);
    assert_string_equal(text.data, again.data);
    assert_true(got.cases.at[0]->samples.base_wall_ns.n == PAIRS &&
                got.cases.at[1]->samples.launch.ns[63] == 7);
    assert_string_equal(got.notes.at[0]->text, "3 things");
    buf_release(&text);
    buf_release(&again);
    comparison_release(&c);
    comparison_release(&got);
}

static void old_names_of_metrics_are_read(void **state)
{
    (void)state;
    struct comparison c, got;
    struct buf text = BUF_INIT;
    assert_int_equal(build(&c, &slower, 1, NULL), TARE_OK);
    c.cases.at[0]->metrics.at[0]->metric = "latency";
    c.cases.at[0]->metrics.at[1]->metric = "cpu_time";
    assert_int_equal(comparison_write(&c, &text, NULL), TARE_OK);
    assert_int_equal(comparison_read(&got, "old.json", text.data, text.len, NULL), TARE_OK);
    assert_non_null(metric(&got, 0, "latency.p50"));
    assert_non_null(metric(&got, 0, "cpu.time"));
    buf_release(&text);
    comparison_release(&c);
    comparison_release(&got);
}

static void broken_documents_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *text;
    } cases[] = {{"\"verdict\": \"regressed\"", "\"verdict\": \"slow\"", "regressed, improved, same"},
                 {"tare.comparison/1", "tare.comparison/2", "newer than this tare reads"},
                 {"tare.comparison/1", "tare.run/1", "expected tare.comparison/1"},
                 {"\"role\": \"gate\"", "\"role\": \"x\"", "gate or advisory"},
                 {"\"better\": \"less\"", "\"better\": null", "better"},
                 {"\"spent_s\": 1.5", "\"spent_s\": -1", "negative"},
                 {"\"method\": \"interleaved\"", "\"method\": 3", "method"}};
    struct comparison c, got;
    struct buf text = BUF_INIT, bad = BUF_INIT;
    assert_int_equal(build(&c, &slower, 1, NULL), TARE_OK);
    assert_int_equal(comparison_write(&c, &text, NULL), TARE_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tare_error err = TARE_ERROR_INIT;
        const char *at = strstr(text.data, cases[i].from);
        assert_non_null(at);
        buf_clear(&bad);
        buf_add(&bad, text.data, (size_t)(at - text.data));
        buf_add_str(&bad, cases[i].to);
        buf_add_str(&bad, at + strlen(cases[i].from));
        assert_int_equal(comparison_read(&got, "bad.json", bad.data, bad.len, &err), TARE_FORMAT);
        if (!strstr(err.text, cases[i].text) || strncmp(err.text, "bad.json: ", 10) != 0)
            fail_msg("%s", err.text);
    }
    c.cases.at[0]->metrics.at[0]->mde = known_f64(NAN);
    buf_clear(&text);
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(comparison_write(&c, &text, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "comparison document: cases[0].metrics[0].mde"));
    buf_release(&bad);
    buf_release(&text);
    comparison_release(&c);
}

static void reports_say_what_the_document_says(void **state)
{
    (void)state;
    struct comparison c;
    struct buf text = BUF_INIT;
    struct stream s;
    assert_int_equal(build(&c, &slower, 1, NULL), TARE_OK);
    c.base.name = "evil\x1b[2J"; /* cannot steer a terminal */
    stream_init(&s, sink_to_buf(&text), NULL);
    assert_int_equal(comparison_format_find("text")->write(&s, &c), TARE_OK);
    assert_int_equal(stream_finish(&s), TARE_OK);
    assert_non_null(strstr(text.data, "verdict: regressed"));
    assert_non_null(strstr(text.data, "latency"));
    assert_non_null(strstr(text.data, "64 pairs in 64 launches"));
    assert_null(strchr(text.data, 0x1b));
    assert_null(comparison_format_find("pdf"));
    buf_release(&text);
    comparison_release(&c);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    long live = mem_live_blocks();
    for (long n = 0;; n++) {
        struct comparison c = {0};
        tare_error err = TARE_ERROR_INIT;
        struct buf text = BUF_INIT;
        mem_fail_after(n);
        tare_status s = build(&c, &same, 1, &err);
        if (s == TARE_OK) s = comparison_write(&c, &text, &err);
        mem_fail_after(-1);
        buf_release(&text);
        comparison_release(&c);
        assert_int_equal(mem_live_blocks(), live);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 5000);
    }
}

static void no_pair_is_no_comparison(void **state)
{
    (void)state;
    struct comparison c;
    struct pair_set set = {0};
    struct paired_rule r = PAIRED_RULE_INIT;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(comparison_init(&c, "interleaved", NULL), TARE_OK);
    struct compare_pairs in = {.name = "case", .set = &set};
    assert_int_equal(compare_pairs_add(&c, &in, &r, &err), TARE_DENIED);
    assert_string_equal(err.text, "case: no pair was measured");
    comparison_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_of_a_case),
        cmocka_unit_test(memory_is_judged_by_launches),
        cmocka_unit_test(cpu_time_is_the_witness_on_a_busy_machine),
        cmocka_unit_test(medians_that_contradict_the_pairs_have_a_word),
        cmocka_unit_test(waiting_is_not_contention),
        cmocka_unit_test(many_cases_are_judged_together),
        cmocka_unit_test(worse_verdicts_win),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(old_names_of_metrics_are_read),
        cmocka_unit_test(broken_documents_are_refused),
        cmocka_unit_test(reports_say_what_the_document_says),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(no_pair_is_no_comparison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
