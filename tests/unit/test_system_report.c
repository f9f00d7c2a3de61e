/* SPDX-License-Identifier: MIT
 * test_system_report.c - averages, peaks and percentiles of known series; carbon; that the document keeps them. */
#include <math.h>
#include <string.h>

#include "analyze/watch/carbon.h"
#include "analyze/watch/system_report.h"
#include "analyze/watch/watched.h"
#include "core/mem.h"
#include "course_fixture.h"

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-6 * (1 + fabs((double)(b))))

/* Memory rises by 1 per step, a counter grows by 10 a second, one sensor is hottest at step 50. */
static void feed(struct made *m, struct system_report *r, int steps)
{
    for (int t = 0; t < steps; t++) {
        made_put(m, METRIC_PROC_RSS, "", t);
        made_put(m, METRIC_PROC_READ_CALLS, "", 10);
        made_put(m, METRIC_TEMPERATURE, "chip", t == 50 ? 90 : 40);
        made_put(m, METRIC_PROC_RSS, "pid 7 child", 1);
        uint64_t at = m->at_ns;
        made_step(m);
        assert_int_equal(system_report_feed(r, m->deriver, &m->set, at, NULL), TARE_OK);
    }
}

static void fill(struct run *run, struct run_watch **watch, int steps)
{
    struct made m;
    struct system_report *r = NULL;
    made_init(&m);
    uint64_t start = m.at_ns;
    assert_int_equal(system_report_new(&r, NULL), TARE_OK);
    feed(&m, r, steps);
    assert_int_equal(run_init(run, "run", NULL), TARE_OK);
    run->subject.type = "command";
    run->subject.name = "x";
    struct run_case *c = run_add_case(run, "");
    assert_non_null(c);
    c->watch.known = true;
    struct system_source from = {m.deriver, &m.set, start};
    assert_int_equal(system_report_fill(r, &from, run, &c->watch, NULL), TARE_OK);
    *watch = &c->watch;
    system_report_free(r);
    made_release(&m);
}

/* A program that ends right after a sample: a tick of 10 ms within 1 ms is no ten processors. */
static void a_brief_step_makes_no_peak(void **state)
{
    struct made m;
    struct system_report *r = NULL;
    struct run run;
    made_init(&m);
    assert_int_equal(system_report_new(&r, NULL), TARE_OK);
    for (int t = 0; t <= 12; t++) {
        bool last = t == 12, stopped = t == 5; /* stopped for an hour: what follows is as usual */
        if (last) m.at_ns = m.now.at_ns = m.at_ns - m.step_ns + 1000000;
        if (stopped) m.at_ns = m.now.at_ns = m.at_ns + UINT64_C(3600000000000);
        made_put(&m, METRIC_PROC_CPU_USER, "",
                 stopped ? 0
                 : last  ? 0.1
                 : t % 2 ? 1
                         : 0.5); /* last: one tick */
        made_put(&m, METRIC_PROC_CPU_SYSTEM, "", 0);
        uint64_t at = m.at_ns;
        made_step(&m);
        assert_int_equal(derived_brief(m.deriver), last);
        assert_int_equal(system_report_feed(r, m.deriver, &m.set, at, NULL), TARE_OK);
    }
    assert_int_equal(m.course.steps.n, 11); /* the brief one is part of the step before */
    assert_int_equal(run_init(&run, "run", NULL), TARE_OK);
    struct run_case *c = run_add_case(&run, "");
    struct system_source from = {m.deriver, &m.set, 0};
    assert_int_equal(system_report_fill(r, &from, &run, &c->watch, NULL), TARE_OK);
    const struct run_metric *cpu = system_report_find(&c->watch, "process.cpu", "");
    assert_near(cpu->max.v, 1);
    assert_near(system_report_find(&c->watch, "process.cpu.user", "")->total.v, 0.76);
    run_release(&run);
    system_report_free(r);
    made_release(&m);
    (void)state;
}

/* A counter that is not read at each sample: its rate is that of all the time since. */
static void a_gap_weighs_what_it_lasts(void **state)
{
    struct made m;
    struct system_report *r = NULL;
    struct run run;
    double joules[] = {0, 1, NAN, NAN, NAN, 1.8}; /* 10 W for a step of 0.1 s, 2 W for four */
    made_init(&m);
    assert_int_equal(system_report_new(&r, NULL), TARE_OK);
    for (size_t t = 0; t < sizeof joules / sizeof *joules; t++) {
        size_t i;
        assert_int_equal(series_find(&m.set, METRIC_GPU_ENERGY, "gpu0", &i, NULL), TARE_OK);
        assert_int_equal(sample_set(&m.now, i, joules[t], NULL), TARE_OK);
        uint64_t at = m.at_ns;
        made_step(&m);
        assert_int_equal(system_report_feed(r, m.deriver, &m.set, at, NULL), TARE_OK);
    }
    assert_int_equal(run_init(&run, "run", NULL), TARE_OK);
    struct run_case *c = run_add_case(&run, "");
    struct system_source from = {m.deriver, &m.set, 0};
    assert_int_equal(system_report_fill(r, &from, &run, &c->watch, NULL), TARE_OK);
    const struct run_metric *power = system_report_find(&c->watch, "gpu.energy", "gpu0");
    assert_near(power->mean.v, 3.6);
    assert_near(power->total.v, 1.8);
    run_release(&run);
    system_report_free(r);
    made_release(&m);
    (void)state;
}

/* A gauge of a GPU stands until it is asked again, and other gauges are unknown where they were not read: neither makes
 * a reading more. The greatest of five is no 95th percentile. */
static void only_readings_count(void **state)
{
    struct made m;
    struct system_report *r = NULL;
    struct run run;
    made_init(&m);
    assert_int_equal(system_report_new(&r, NULL), TARE_OK);
    for (int t = 0; t < 50; t++) {
        made_put(&m, METRIC_PROC_RSS, "", 7);
        if (t % 10 == 0) made_put(&m, METRIC_PROC_PSS, "", t);
        if (t % 10 == 0) made_put(&m, METRIC_GPU_UTIL, "gpu0", t / 100.0);
        uint64_t at = m.at_ns;
        made_step(&m);
        assert_int_equal(system_report_feed(r, m.deriver, &m.set, at, NULL), TARE_OK);
        double now = -1;
        assert_true(derived_value(m.deriver, "gpu", "", &now)); /* what it is now, for alerts and screens */
        assert_near(now, t / 10 / 10.0);
    }
    assert_int_equal(run_init(&run, "run", NULL), TARE_OK);
    struct run_case *c = run_add_case(&run, "");
    struct system_source from = {m.deriver, &m.set, 0};
    assert_int_equal(system_report_fill(r, &from, &run, &c->watch, NULL), TARE_OK);
    static const char *const few[][2] = {
        {"process.memory.pss", ""}, {"gpu.utilization", "gpu0"}, {"gpu", ""}};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        const struct run_metric *row = system_report_find(&c->watch, few[i][0], few[i][1]);
        assert_int_equal(row->samples.v, 5);
        assert_true(row->max.known && row->p50.known && !row->p95.known && !row->p99.known);
    }
    const struct run_metric *rss = system_report_find(&c->watch, "process.memory.rss", "");
    assert_true(rss->samples.v == 50 && rss->p95.known && !rss->p99.known);
    run_release(&run);
    system_report_free(r);
    made_release(&m);
    (void)state;
}

static void known_series(void **state)
{
    struct run run;
    struct run_watch *w;
    fill(&run, &w, 101);
    const struct run_metric *rss = system_report_find(w, "process.memory.rss", "");
    assert_non_null(rss);
    assert_near(rss->mean.v, 50.5); /* the first sample has no duration: its weight is a nanosecond */
    assert_near(rss->min.v, 0);
    assert_near(rss->max.v, 100);
    assert_near(rss->p50.v, 50);
    assert_near(rss->p95.v, 95);
    assert_near(rss->at_max_s.v, 10);
    assert_false(rss->total.known);
    const struct run_metric *calls = system_report_find(w, "process.io.read_calls", "");
    assert_near(calls->mean.v, 10);
    assert_near(calls->total.v, 100); /* over 100 steps of 0.1 s */
    assert_int_equal(calls->samples.v, 100);
    assert_string_equal(calls->unit, "1/s");
    const struct run_metric *heat = system_report_find(w, "temperature", "chip");
    assert_near(heat->max.v, 90);
    assert_near(heat->at_max_s.v, 5);
    assert_near(heat->p99.v, 40);
    assert_null(
        system_report_find(w, "process.memory.rss", "pid 7 child")); /* processes are in the trace only */
    run_release(&run);
    (void)state;
}

static void long_runs_keep_their_percentiles(void **state)
{
    struct run run;
    struct run_watch *w;
    fill(&run, &w, 20000);
    const struct run_metric *rss = system_report_find(w, "process.memory.rss", "");
    assert_int_equal(rss->samples.v, 20000);
    assert_true(rss->max.v == 19999 && rss->min.v == 0);
    assert_true(fabs(rss->p50.v - 10000) < 20 && fabs(rss->p99.v - 19800) < 20);
    run_release(&run);
    (void)state;
}

static void document_keeps_it(void **state)
{
    struct run run, back = {0};
    struct run_watch *w;
    struct buf text = BUF_INIT, again = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    fill(&run, &w, 30);
    struct carbon_energy e = {.measured_joules = known_f64(3.6e6), .absent = "fans"};
    carbon_fill(&w->carbon, &e, 400, "given");
    assert_near(w->carbon.grams.v, 400); /* a kWh */
    assert_true(w->carbon.lower_bound.v);
    assert_int_equal(run_write(&run, &text, &err), TARE_OK);
    if (run_read(&back, "text", text.data, text.len, &err) != TARE_OK) fail_msg("%s", err.text);
    assert_int_equal(run_write(&back, &again, &err), TARE_OK);
    assert_string_equal(text.data, again.data);
    assert_int_equal(back.cases.at[0]->watch.metrics.n, w->metrics.n);
    buf_release(&text);
    buf_release(&again);
    run_release(&back);
    run_release(&run);
    (void)state;
}

/* The same run again from what a trace would have kept of it. */
static void again_from_a_trace(void **state)
{
    struct samples s = SAMPLES_INIT;
    struct run run;
    size_t i;
    static double memory[101];
    static char fired[] = "process.memory.rss>50 for 1s", cleared[] = "another";
    for (int t = 0; t <= 100; t++) {
        memory[t] = t;
        assert_int_equal(vec_push(&s.at_ns, UINT64_C(1000000000) + (uint64_t)t * 100000000, NULL), TARE_OK);
    }
    assert_int_equal(series_find(&s.set, METRIC_PROC_RSS, "", &i, NULL), TARE_OK);
    assert_int_equal(vec_push(&s.columns, memory, NULL), TARE_OK);
    struct sample_mark marks[] = {{UINT64_C(7000000000), SAMPLE_ALERT, fired},
                                  {UINT64_C(8000000000), SAMPLE_CLEAR, cleared},
                                  {UINT64_C(9000000000), SAMPLE_CLEAR, fired}};
    for (size_t k = 0; k < 3; k++) assert_int_equal(vec_push(&s.marks, marks[k], NULL), TARE_OK);
    assert_int_equal(run_init(&run, "run", NULL), TARE_OK);
    assert_int_equal(watched_from_samples(&run, &s, NULL), TARE_OK);
    const struct run_watch *w = &run.cases.at[0]->watch;
    const struct run_metric *rss = system_report_find(w, "process.memory.rss", "");
    assert_near(rss->max.v, 100);
    assert_near(rss->at_max_s.v, 10);
    assert_int_equal(w->alerts.n, 1);
    assert_string_equal(w->alerts.at[0]->metric, "process.memory.rss");
    assert_near(w->alerts.at[0]->start_s.v, 6);
    assert_near(w->alerts.at[0]->end_s.v, 8);
    assert_true(w->phases.n >= 1);
    run_release(&run);
    vec_release(&s.marks);
    vec_release(&s.columns);
    vec_release(&s.at_ns);
    series_set_release(&s.set);
    (void)state;
}

static void impossible_documents(void **state)
{
    struct run run;
    struct run_watch *w;
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    fill(&run, &w, 30);
    w->metrics.at[0]->min = known_f64(5);
    w->metrics.at[0]->max = known_f64(4);
    assert_int_equal(run_write(&run, &text, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "min is above max"));
    buf_release(&text);
    run_release(&run);
    (void)state;
}

static void countries(void **state)
{
    const struct carbon_grid *g = NULL;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(carbon_find(&g, "fr", &err), TARE_OK);
    assert_string_equal(g->name, "France");
    assert_int_equal(carbon_find(&g, "Atlantis", &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "WORLD"));
    for (g = carbon_grids; g->code; g++) assert_true(g->g_per_kwh > 10 && g->g_per_kwh < 1000);
    struct run_carbon none;
    carbon_fill(&none, &(struct carbon_energy){.absent = "all"}, 100, "given");
    assert_false(none.known); /* nothing measured is not nothing used */
    (void)state;
}

static void without_memory(void **state)
{
    struct made m;
    made_init(&m);
    made_put(&m, METRIC_PROC_RSS, "", 5);
    made_step(&m);
    long before = mem_live_blocks();
    tare_status s = TARE_NOMEM;
    for (long n = 0; s != TARE_OK && n < 100; n++) {
        struct system_report *r = NULL;
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        s = system_report_new(&r, &err);
        if (s == TARE_OK) s = system_report_feed(r, m.deriver, &m.set, m.at_ns, &err);
        mem_fail_after(-1);
        system_report_free(r);
        assert_int_equal(mem_live_blocks(), before);
    }
    assert_int_equal(s, TARE_OK);
    made_release(&m);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_brief_step_makes_no_peak), cmocka_unit_test(a_gap_weighs_what_it_lasts),
        cmocka_unit_test(only_readings_count),
        cmocka_unit_test(known_series),         cmocka_unit_test(long_runs_keep_their_percentiles),
        cmocka_unit_test(document_keeps_it),
        cmocka_unit_test(again_from_a_trace),    cmocka_unit_test(impossible_documents),
        cmocka_unit_test(countries),            cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
