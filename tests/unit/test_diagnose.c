/* SPDX-License-Identifier: MIT
 * test_diagnose.c - made-up runs with known answers: every rule fires where it should and is silent where it should
 * not; phases are found where they were put. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/watch/diagnose.h"
#include "analyze/watch/watched.h"
#include "core/mem.h"
#include "course_fixture.h"

enum { STEPS = 100 };

/* A healthy program on 4 processors: it works with 2 of them, memory stays, nothing else happens. */
struct level {
    enum metric_id metric;
    const char *label;
    double value;
};
static const struct level healthy[] = {
    {METRIC_CPU_COUNT, "", 4},          {METRIC_CPU_BUSY, "", 2.2},      {METRIC_CPU_STEAL, "", 0},
    {METRIC_PROC_CPU_USER, "", 1.9},    {METRIC_PROC_CPU_SYSTEM, "", 0.1}, {METRIC_PROC_RSS, "", 500e6},
    {METRIC_PROC_READ, "", 0},          {METRIC_PROC_WRITE, "", 0},      {METRIC_PROC_RUN_DELAY, "", 0.01},
    {METRIC_MEM_TOTAL, "", 16e9},       {METRIC_MEM_AVAILABLE, "", 12e9}, {METRIC_SWAP_IN, "", 0},
    {METRIC_SWAP_OUT, "", 0},           {METRIC_PRESSURE_MEMORY, "", 0}, {METRIC_PRESSURE_IO, "", 0},
    {METRIC_CG_THROTTLED, "", 0},       {METRIC_DISK_BUSY, "sda", 0.01}, {METRIC_NET_RX, "eth0", 1e4},
    {METRIC_NET_TX, "eth0", 1e4},
};

struct story {
    const char *finding; /* NULL: nothing may be found */
    struct level levels[8];
    int from, to; /* the steps in which they hold; 0, 0: all */
};

static void put_levels(struct made *m, const struct level *levels, size_t n)
{
    for (size_t i = 0; i < n && levels[i].label; i++)
        made_put(m, levels[i].metric, levels[i].label, levels[i].value);
}

static bool is_overridden(const struct story *s, const struct level *l)
{
    for (size_t i = 0; i < 8 && s->levels[i].label; i++)
        if (s->levels[i].metric == l->metric) return true;
    return false;
}

static void tell(struct made *m, const struct story *s)
{
    made_init(m);
    for (int t = 0; t <= STEPS; t++) {
        bool in = s->to == 0 || (t >= s->from && t < s->to);
        for (size_t i = 0; i < sizeof healthy / sizeof *healthy; i++)
            if (!in || !is_overridden(s, &healthy[i])) put_levels(m, &healthy[i], 1);
        if (in) put_levels(m, s->levels, 8);
        made_step(m);
    }
}

static void judge(struct run *run, const struct course *c)
{
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(run, "run", &err), TARE_OK);
    struct run_case *only = run_add_case(run, "");
    assert_non_null(only);
    assert_int_equal(diagnose(run, only, c, &err), TARE_OK);
}

static void check(const struct story *s, size_t number)
{
    struct made m;
    struct run run;
    tell(&m, s);
    judge(&run, &m.course);
    for (size_t i = 0; i < run.findings.n; i++) {
        const struct run_finding *f = run.findings.at[i];
        if (!s->finding || strcmp(f->id, s->finding) != 0)
            fail_msg("story %zu: %s: %s", number, f->id, f->title);
        assert_true(f->action && *f->action);
        const struct run_value *from = run_map_get(&f->evidence, "from_s"),
                               *to = run_map_get(&f->evidence, "to_s");
        assert_non_null(from);
        assert_non_null(to);
    }
    if (s->finding && run.findings.n != 1)
        fail_msg("story %zu: %s: %zu findings", number, s->finding, run.findings.n);
    run_release(&run);
    made_release(&m);
}

#define NONE {0}
static const struct story stories[] = {
    {NULL, {NONE}, 0, 0},
    /* each rule, then just short of it */
    {"memory.swapping", {{METRIC_SWAP_OUT, "", 5e6}}, 20, 40},
    {NULL, {{METRIC_SWAP_OUT, "", 5e6}}, 20, 22},
    {NULL, {{METRIC_SWAP_OUT, "", 5e5}}, 0, 0},
    {"memory.pressure", {{METRIC_PRESSURE_MEMORY, "", 0.3}}, 10, 40},
    {NULL, {{METRIC_PRESSURE_MEMORY, "", 0.05}}, 0, 0},
    {"memory.limit", {{METRIC_CG_MEMORY, "", 99}, {METRIC_CG_MEMORY_LIMIT, "", 100}}, 0, 0},
    {NULL, {{METRIC_CG_MEMORY, "", 80}, {METRIC_CG_MEMORY_LIMIT, "", 100}}, 0, 0},
    {"cpu.throttled", {{METRIC_CG_THROTTLED, "", 0.4}}, 30, 60},
    {NULL, {{METRIC_CG_THROTTLED, "", 0.4}}, 30, 35},
    {"machine.steal", {{METRIC_CPU_STEAL, "", 0.8}}, 30, 60},
    {NULL, {{METRIC_CPU_STEAL, "", 0.1}}, 0, 0},
    {"cpu.oversubscribed",
     {{METRIC_PROC_RUN_DELAY, "", 6}, {METRIC_CPU_BUSY, "", 4}, {METRIC_PROC_CPU_USER, "", 3.2}}, 0, 0},
    {"cpu.contended",
     {{METRIC_PROC_RUN_DELAY, "", 2}, {METRIC_CPU_BUSY, "", 4}, {METRIC_PROC_CPU_USER, "", 1}}, 0, 0},
    {NULL, {{METRIC_PROC_RUN_DELAY, "", 2}, {METRIC_PROC_CPU_USER, "", 1.5}}, 0, 0}, /* the machine is not busy */
    {"gpu.starved", {{METRIC_GPU_UTIL, "gpu0", 0.3}, {METRIC_PROC_CPU_USER, "", 0.1}}, 0, 0},
    {"gpu.starved", {{METRIC_GPU_UTIL, "gpu0", 0.3}, {METRIC_PROC_CPU_USER, "", 2}}, 0, 0},
    {NULL, {{METRIC_GPU_UTIL, "gpu0", 0.95}}, 0, 0},
    {NULL, {{METRIC_GPU_UTIL, "gpu0", 0}}, 0, 0}, /* a card that the program does not use */
    {"gpu.memory-bound", {{METRIC_GPU_UTIL, "gpu0", 0.99}, {METRIC_GPU_DRAM, "gpu0", 0.8}}, 0, 0},
    {NULL, {{METRIC_GPU_UTIL, "gpu0", 0.99}, {METRIC_GPU_DRAM, "gpu0", 0.3}}, 0, 0},
    {"gpu.throttled", {{METRIC_GPU_UTIL, "gpu0", 0.99}, {METRIC_GPU_THROTTLE, "gpu0", 0x20}}, 0, 0},
    {NULL, {{METRIC_GPU_UTIL, "gpu0", 0.99}, {METRIC_GPU_THROTTLE, "gpu0", 0x4}}, 0, 0},
    {"io.bound",
     {{METRIC_PROC_CPU_USER, "", 0.2}, {METRIC_PROC_READ, "", 8e7}, {METRIC_DISK_BUSY, "sda", 0.95}}, 0, 0},
    {"io.bound",
     {{METRIC_PROC_CPU_USER, "", 0.2}, {METRIC_PROC_READ, "", 5e5}, {METRIC_PRESSURE_IO, "", 0.6}}, 0, 0},
    {NULL, {{METRIC_PROC_CPU_USER, "", 0.2}, {METRIC_DISK_BUSY, "sda", 0.95}}, 0, 0}, /* somebody else's disk */
    {NULL, {{METRIC_PROC_READ, "", 8e7}, {METRIC_DISK_BUSY, "sda", 0.95}}, 0, 0},     /* it works meanwhile */
    {"net.bound", {{METRIC_PROC_CPU_USER, "", 0.2}, {METRIC_NET_RX, "eth0", 9e7}}, 0, 0},
    {NULL, {{METRIC_NET_RX, "eth0", 9e7}}, 0, 0},
    {"cpu.bound", {{METRIC_PROC_CPU_USER, "", 3.8}, {METRIC_CPU_BUSY, "", 4}}, 0, 0},
    {NULL, {{METRIC_PROC_CPU_USER, "", 3.8}, {METRIC_CPU_BUSY, "", 4}}, 0, 50},
    {"cpu.one-thread", {{METRIC_PROC_CPU_USER, "", 0.9}, {METRIC_CPU_BUSY, "", 1.1}}, 0, 0},
    {NULL, {{METRIC_PROC_CPU_USER, "", 0.9}, {METRIC_CPU_BUSY, "", 1}, {METRIC_CPU_COUNT, "", 1}}, 0, 20},
};

static void every_rule(void **state)
{
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) check(&stories[i], i);
    (void)state;
}

static void evidence_names_the_interval(void **state)
{
    struct made m;
    struct run run;
    tell(&m, &(struct story){"", {{METRIC_CG_THROTTLED, "", 0.4}}, 30, 60});
    judge(&run, &m.course);
    assert_int_equal(run.findings.n, 1);
    const struct run_map *e = &run.findings.at[0]->evidence;
    assert_true(fabs(run_map_get(e, "from_s")->d - 2.9) < 0.11); /* steps 30 to 60 end at 3.0 s to 5.9 s */
    assert_true(fabs(run_map_get(e, "to_s")->d - 5.9) < 0.11);
    assert_true(fabs(run_map_get(e, "share_of_time")->d - 0.3) < 0.02);
    assert_true(fabs(run_map_get(e, "throttled")->d - 0.4) < 0.01);
    run_release(&run);
    made_release(&m);
    (void)state;
}

/* It said "100 % of the time" of a card that was busy for half of it: the rule is "below 70 %". */
static void titles_say_what_was_measured(void **state)
{
    struct made m;
    struct run run;
    tell(&m, &(struct story){"", {{METRIC_GPU_UTIL, "gpu0", 0.52}, {METRIC_PROC_CPU_USER, "", 0.1}}, 0, 0});
    judge(&run, &m.course);
    assert_int_equal(run.findings.n, 1);
    const char *title = run.findings.at[0]->title;
    assert_non_null(strstr(title, "gpu 52 % (below 70 %), process.waiting 80 % (above 50 %) from"));
    assert_non_null(strstr(title, "so for 100 % of the time"));
    assert_null(strstr(title, "idle"));
    run_release(&run);
    made_release(&m);
    (void)state;
}

/* ---- leaks ---- */

static double leak(int t)
{
    return 500e6 + 2e6 * t;
}
static double noisy_leak(int t)
{
    return leak(t) + 5e6 * sin(t * 12.9898);
}
static double load_then_flat(int t)
{
    return t < 30 ? 20e6 * t : 600e6;
}
static double late_jump(int t)
{
    return t < 70 ? 500e6 : 900e6;
}
static double filling_cache(int t)
{
    return 1e9 - 500e6 * exp(-t / 12.0);
}
static double saw(int t)
{
    return 500e6 + 10e6 * (t % 20);
}
static double slow(int t)
{
    return 500e6 + 1e4 * t;
}

static size_t leaks_in(double (*memory)(int))
{
    struct made m;
    struct run run;
    size_t n = 0;
    made_init(&m);
    for (int t = 0; t <= STEPS; t++) {
        made_put(&m, METRIC_PROC_RSS, "", memory(t));
        made_step(&m);
    }
    judge(&run, &m.course);
    for (size_t i = 0; i < run.findings.n; i++) n += strcmp(run.findings.at[i]->id, "memory.leak") == 0;
    run_release(&run);
    made_release(&m);
    return n;
}

static void leaks(void **state)
{
    assert_int_equal(leaks_in(leak), 1);
    assert_int_equal(leaks_in(noisy_leak), 1);
    assert_int_equal(leaks_in(load_then_flat), 0);
    assert_int_equal(leaks_in(late_jump), 0);
    assert_int_equal(leaks_in(filling_cache), 0);
    assert_int_equal(leaks_in(saw), 0);
    assert_int_equal(leaks_in(slow), 0);
    (void)state;
}

static void too_short_to_say(void **state)
{
    struct made m;
    struct run run;
    made_init(&m);
    for (int t = 0; t < DIAGNOSE_STEPS_MIN; t++) {
        made_put(&m, METRIC_SWAP_OUT, "", 1e9);
        made_put(&m, METRIC_SWAP_IN, "", 1e9);
        made_step(&m);
    }
    judge(&run, &m.course);
    assert_int_equal(run.findings.n, 0);
    run_release(&run);
    made_release(&m);
    (void)state;
}

/* ---- phases ---- */

struct act {
    int steps;
    double cpu, io, grow; /* per second */
};

static void play(struct made *m, const struct act *acts, size_t n)
{
    double rss = 20e6;
    made_init(m);
    for (size_t a = 0; a < n; a++)
        for (int t = 0; t < acts[a].steps; t++) {
            rss += acts[a].grow / 10;
            made_put(m, METRIC_PROC_CPU_USER, "", acts[a].cpu);
            made_put(m, METRIC_PROC_CPU_SYSTEM, "", 0);
            made_put(m, METRIC_PROC_READ, "", acts[a].io);
            made_put(m, METRIC_PROC_WRITE, "", 0);
            made_put(m, METRIC_PROC_RSS, "", rss);
            made_step(m);
        }
}

static void expect(const struct act *acts, size_t n, const char *want)
{
    struct made m;
    struct phases p = {VEC_INIT};
    char got[200] = "";
    play(&m, acts, n);
    assert_int_equal(phases_find(&p, &m.course, NULL), TARE_OK);
    for (size_t i = 0; i < p.items.n; i++) {
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%s", i ? " " : "", p.items.items[i].name);
        assert_int_equal(p.items.items[i].from, i ? p.items.items[i - 1].to : 0);
    }
    if (p.items.n) assert_int_equal(p.items.items[p.items.n - 1].to, m.course.steps.n);
    assert_string_equal(got, want);
    vec_release(&p.items);
    made_release(&m);
}

static void phases_where_they_were_put(void **state)
{
    expect((struct act[]){{30, 0.5, 1e8, 2e8}, {100, 2, 0, 0}, {40, 0, 0, 0}}, 3, "load steady idle");
    expect((struct act[]){{100, 1, 0, 0}}, 1, "steady");
    expect((struct act[]){{100, 0, 0, 0}}, 1, "idle");
    expect((struct act[]){{100, 1, 0, 0}, {2, 0, 0, 0}, {100, 1, 0, 0}}, 3, "steady"); /* too short */
    expect((struct act[]){{60, 0.5, 0, 0}, {60, 4, 0, 0}}, 2, "steady steady");        /* another level */
    expect((struct act[]){{60, 2, 0, 0}, {60, 2.2, 0, 0}}, 2, "steady");
    expect((struct act[]){{60, 1, 0, 0}, {40, 0, 0, 0}, {60, 1, 0, 0}}, 3, "steady idle steady");
    (void)state;
}

static void no_samples_no_phases(void **state)
{
    struct course c = COURSE_INIT;
    struct phases p = {VEC_INIT};
    assert_int_equal(phases_find(&p, &c, NULL), TARE_OK);
    assert_int_equal(p.items.n, 0);
    (void)state;
}

static void without_memory(void **state)
{
    struct made m;
    play(&m, (struct act[]){{30, 0.5, 1e8, 2e8}, {100, 2, 0, 0}, {40, 0, 0, 0}}, 3);
    long before = mem_live_blocks();
    tare_status s = TARE_NOMEM;
    for (long n = 0; s != TARE_OK && n < 50; n++) {
        struct phases p = {VEC_INIT};
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        s = phases_find(&p, &m.course, &err);
        mem_fail_after(-1);
        vec_release(&p.items);
        assert_int_equal(mem_live_blocks(), before);
    }
    assert_int_equal(s, TARE_OK);
    made_release(&m);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule),       cmocka_unit_test(evidence_names_the_interval),
        cmocka_unit_test(titles_say_what_was_measured),
        cmocka_unit_test(leaks),            cmocka_unit_test(too_short_to_say),
        cmocka_unit_test(phases_where_they_were_put), cmocka_unit_test(no_samples_no_phases),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
