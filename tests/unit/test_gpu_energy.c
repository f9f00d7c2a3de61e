/* SPDX-License-Identifier: MIT
 * test_gpu_energy.c - the power of groups of kernels, of made-up timelines whose watts are known: a counter that is
 * refreshed every 100 ms is read every second. And the fit itself. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/fit.h"
#include "core/rng.h"
#include "gpu_fixture.h"
#include "report/gpu/gpu_report.h"
#include "report/text.h"
#include "trace/samples.h"

/* ---- made-up timelines ---- */

enum { IDLE, MATMUL, ATTENTION, ELEMENTWISE, GROUPS };
static const char *const group_names[GROUPS] = {"idle", "matmul", "attention", "elementwise"};
static const double truth[GROUPS] = {120, 600, 450, 300}; /* W */

/* In units of 50 ms: how a second is divided, and what else is there. */
enum { UNIT_US = 50000, PART_US = UNIT_US / 2, UNITS = 20, SECONDS = 60 };
struct plan {
    double (*weight)(unsigned second, unsigned group, struct rng *r);
    double jitter;     /* of the power of a single kernel */
    unsigned every_us; /* a reading */
    bool beat;         /* the readings drift slowly through the time between two refreshes */
    bool shared;       /* with another process */
    bool overlap;      /* an element-wise kernel beside every matmul, on a stream of its own, at 50 W more */
    bool pair;         /* matmul and attention always come together */
};

struct card {
    struct making *m;
    struct rng r;
    uint64_t ids;
    double joules[SECONDS * UNITS + 1]; /* at the end of each unit */
};

static void ran(struct card *c, uint64_t from_us, uint64_t name, uint64_t lane)
{
    struct gpu_record r = {.kind = GPU_KERNEL};
    r.KERNEL.start = STAMP + from_us * US;
    r.KERNEL.duration = (uint64_t)PART_US * US;
    r.KERNEL.lane = lane;
    r.KERNEL.name = name;
    r.KERNEL.id = ++c->ids;
    put(c->m, r);
}

/* One unit, in two parts: of one group, or of a pair that always comes together. */
static void draw_unit(struct card *c, const struct plan *p, unsigned g, uint64_t unit)
{
    static const uint64_t names[GROUPS] = {0, 1, 40, 41};
    const bool beside = p->overlap && g == MATMUL, pair = p->pair && g == MATMUL;
    double watts = 0;
    for (unsigned part = 0; part < 2; part++) {
        unsigned now = pair && part ? (unsigned)ATTENTION : g;
        uint64_t at = unit * UNIT_US + part * PART_US;
        if (now != IDLE) ran(c, at, names[now], 1);
        if (beside) ran(c, at, names[ELEMENTWISE], 2);
        watts += (truth[now] + (beside ? 50 : 0)) / 2;
    }
    watts *= 1 + p->jitter * (2 * rng_unit(&c->r) - 1);
    c->joules[unit + 1] = c->joules[unit] + watts * UNIT_US / 1e6;
}

static void draw_timeline(struct card *c, const struct plan *p)
{
    begin(c->m);
    name(c->m, 40, "flash_fwd_kernel");
    name(c->m, 41, "vectorized_elementwise_kernel");
    for (unsigned s = 0; s < SECONDS; s++) {
        double w[GROUPS], all = 0, share = 0;
        unsigned g = 0;
        for (unsigned i = 0; i < GROUPS; i++)
            all += w[i] = p->pair && i == ATTENTION ? 0 : p->weight(s, i, &c->r);
        for (unsigned u = 0; u < UNITS; u++) {
            while (g + 1 < GROUPS && share + w[g] / all * UNITS <= u + 0.5) share += w[g++] / all * UNITS;
            draw_unit(c, p, g, s * UNITS + u);
        }
    }
}

/* What the counter says: the energy at its last refresh, in whole mJ. */
static double counter(const struct card *c, double us, double phase, double period)
{
    double at = fmax(0, floor((us - phase) / period) * period + phase) / UNIT_US;
    size_t i = (size_t)at;
    if (i >= SECONDS * UNITS) i = SECONDS * UNITS - 1;
    return floor((c->joules[i] + (c->joules[i + 1] - c->joules[i]) * (at - (double)i)) * 1e3) / 1e3;
}

static void put_sample(struct samples_writer *w, struct series_set *set, struct sample *s, const double v[3])
{
    static const enum metric_id metrics[] = {METRIC_GPU_MEM_TOTAL, METRIC_GPU_ENERGY, METRIC_GPU_OTHERS};
    for (int k = 0; k < 3; k++) {
        size_t at;
        assert_int_equal(series_find(set, metrics[k], "gpu0", &at, NULL), TARE_OK);
        assert_int_equal(sample_set(s, at, v[k], NULL), TARE_OK);
    }
    assert_int_equal(samples_append(w, set, s, NULL), TARE_OK);
}

static void draw_readings(struct card *c, const struct plan *p)
{
    struct samples_writer *w = NULL;
    struct series_set set = SERIES_SET_INIT;
    struct sample s = SAMPLE_INIT;
    double phase = 100000 * rng_unit(&c->r), period = p->beat ? 98500 + 3000 * rng_unit(&c->r) : 100000;
    assert_int_equal(samples_create(&w, c->m->at.trace, NULL, NULL), TARE_OK);
    for (uint64_t at = 0; at < (uint64_t)SECONDS * 1000000; at += p->every_us) {
        double late = rng_unit(&c->r) * (p->beat ? 1000 : 100000);
        sample_clear(&s);
        s.at_ns = c->m->begun + (at + (uint64_t)late) * US;
        put_sample(w, &set, &s, (double[]){1000, counter(c, (double)at + late, phase, period), p->shared});
    }
    assert_int_equal(samples_close(w, NULL), TARE_OK);
    series_set_release(&set);
    sample_release(&s);
}

static const struct gpu_energy *energy_of(struct making *m, struct gpu_profile *p, const struct plan *plan,
                                          uint64_t seed)
{
    struct card c = {.m = m};
    rng_seed(&c.r, seed);
    draw_timeline(&c, plan);
    draw_readings(&c, plan);
    analyse(m, p);
    return &p->devices.at[0]->energy;
}

static const struct gpu_energy_group *group(const struct gpu_energy *e, const char *name)
{
    for (size_t i = 0; i < e->groups.n; i++)
        if (strcmp(e->groups.at[i]->group, name) == 0) return e->groups.at[i];
    return NULL;
}

static double any_mix(unsigned second, unsigned group, struct rng *r)
{
    (void)second, (void)group;
    return 0.2 + rng_unit(r);
}

/* Ten seconds of each thing. */
static double phases(unsigned second, unsigned group, struct rng *r)
{
    (void)r;
    return second / 10 % GROUPS == group ? 1 : 0.1;
}

static double same_mix(unsigned second, unsigned group, struct rng *r)
{
    (void)second, (void)group, (void)r;
    return 1;
}

/* ---- tests ---- */

static void the_watts_of_groups(void **state)
{
    static const struct {
        const char *what;
        struct plan plan;
    } rows[] = {
        {"any mix, read at any time", {.weight = any_mix, .jitter = 0.05, .every_us = 1000000}},
        {"any mix, readings that drift",
         {.weight = any_mix, .jitter = 0.05, .every_us = 1000000, .beat = true}},
        {"phases, readings that drift", {.weight = phases, .jitter = 0.2, .every_us = 1000000, .beat = true}},
        {"read faster than it is refreshed",
         {.weight = any_mix, .jitter = 0.05, .every_us = 60000, .beat = true}},
    };
    enum { SEEDS = 200 };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned hit[GROUPS] = {0}, known[GROUPS] = {0};
        double half[GROUPS] = {0};
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            void *made = NULL;
            struct gpu_profile p;
            set_up(&made);
            const struct gpu_energy *e = energy_of(made, &p, &rows[i].plan, seed);
            for (unsigned g = 0; g < GROUPS; g++) {
                const struct gpu_energy_group *x = group(e, group_names[g]);
                if (!x || !x->watts.known) continue;
                known[g]++;
                hit[g] += x->watts.lo.v <= truth[g] && truth[g] <= x->watts.hi.v;
                half[g] += (x->watts.hi.v - x->watts.lo.v) / 2 / SEEDS;
                assert_true(x->watts.lo.v <= x->watts.value && x->watts.value <= x->watts.hi.v);
                assert_float_equal(x->joules.value, x->watts.value * (double)x->time_ns / 1e9, 0.01);
            }
            gpu_profile_release(&p);
            tear_down(&made);
        }
        for (unsigned g = 0; g < GROUPS; g++)
            if (known[g] < SEEDS || hit[g] < SEEDS * 93 / 100 || half[g] > 60)
                fail_msg("%s: %s: known %u, held %u of %d, +- %.1f W", rows[i].what, group_names[g], known[g],
                         hit[g], SEEDS, half[g]);
    }
}

static void all_unknown(const struct gpu_energy *e, const char *why)
{
    assert_true(e->groups.n >= 2);
    for (size_t i = 0; i < e->groups.n; i++) {
        assert_false(e->groups.at[i]->watts.known || e->groups.at[i]->joules.known);
        assert_non_null(e->groups.at[i]->why);
        if (why && !strstr(e->groups.at[i]->why, why))
            fail_msg("%s: %s", e->groups.at[i]->group, e->groups.at[i]->why);
    }
}

/* The report of a person. */
static bool says(const struct gpu_profile *p, const char *text)
{
    struct buf out = BUF_INIT;
    struct stream s;
    stream_init(&s, sink_to_buf(&out), NULL);
    gpu_report_text(&s, p);
    assert_int_equal(stream_finish(&s), TARE_OK);
    bool found = strstr(out.data, text) != NULL;
    buf_release(&out);
    return found;
}

/* A loop that does the same in every second tells nothing of its parts; of a pair that always comes together each is
 * unknown, and the rest is known. */
static void what_comes_together_is_not_told_apart(void **state)
{
    struct gpu_profile p;
    void *made = NULL;
    const struct gpu_energy *e =
        energy_of(*state, &p, &(struct plan){.weight = same_mix, .jitter = 0.05, .every_us = 1000000}, 1);
    all_unknown(e, NULL);
    gpu_profile_release(&p);
    set_up(&made);
    e = energy_of(made, &p,
                  &(struct plan){.weight = any_mix, .jitter = 0.05, .every_us = 1000000, .pair = true}, 2);
    assert_true(says(&p, "unknown") && says(&p, "energy while"));
    assert_false(group(e, "matmul")->watts.known || group(e, "attention")->watts.known);
    assert_true(group(e, "idle")->watts.known && group(e, "elementwise")->watts.known);
    assert_float_equal(group(e, "elementwise")->watts.value, truth[ELEMENTWISE], 30);
    gpu_profile_release(&p);
    tear_down(&made);
}

static void where_nothing_can_be_said(void **state)
{
    struct gpu_profile p;
    void *made = NULL;
    all_unknown(
        energy_of(*state, &p,
                  &(struct plan){.weight = any_mix, .jitter = 0.05, .every_us = 1000000, .shared = true}, 1),
        "other processes");
    gpu_profile_release(&p);
    set_up(&made);
    all_unknown(
        energy_of(made, &p, &(struct plan){.weight = any_mix, .jitter = 0.05, .every_us = 5000000}, 1),
        "too few");
    gpu_profile_release(&p);
    tear_down(&made);
}

/* Time in which two groups ran at once is of neither. */
static void several_at_once(void **state)
{
    struct gpu_profile p;
    const struct gpu_energy *e =
        energy_of(*state, &p,
                  &(struct plan){.weight = any_mix, .jitter = 0.05, .every_us = 1000000, .overlap = true}, 1);
    const struct gpu_energy_group *both = group(e, "several");
    assert_null(group(e, "matmul"));
    assert_non_null(both);
    assert_true(both->watts.lo.v <= 650 && 650 <= both->watts.hi.v);
    assert_float_equal(group(e, "elementwise")->watts.value, truth[ELEMENTWISE], 60);
    assert_true(says(&p, "several"));
    gpu_profile_release(&p);
}

/* Three columns, the third of which no row wants: it would be below 0. One more is the sum of two. */
static void a_fit_by_hand(void **state)
{
    enum { ROWS = 20, COLUMNS = 4 };
    double x[ROWS * COLUMNS], y[ROWS];
    struct interval out[COLUMNS];
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        double *r = &x[i * COLUMNS];
        r[0] = (double)(1 + i % 3);
        r[1] = (double)(1 + i % 5);
        r[2] = (double)(1 + i % 7);
        r[3] = r[0] + r[1];
        y[i] = 3 * r[0] + 2 * r[1] - 0.5 * r[2];
    }
    fit_nonnegative(&(struct fit_rows){y, x, ROWS, COLUMNS, NULL}, 0.95, out);
    assert_true(isnan(out[0].value) && isnan(out[1].value) && isnan(out[3].lo));
    assert_true(out[2].value == 0 && out[2].lo == 0); /* best, where it may not be below */
    for (size_t i = 0; i < ROWS; i++)
        y[i] = 3 * x[i * COLUMNS] + 2 * x[i * COLUMNS + 1] + 7 * x[i * COLUMNS + 2];
    for (size_t i = 0; i < ROWS; i++) x[i * COLUMNS + 3] = 0; /* never ran */
    fit_nonnegative(&(struct fit_rows){y, x, ROWS, COLUMNS, NULL}, 0.95, out);
    assert_float_equal(out[0].value, 3, 1e-6);
    assert_float_equal(out[1].value, 2, 1e-6);
    assert_float_equal(out[2].hi, 7, 1e-6);
    assert_true(isnan(out[3].value));
    fit_nonnegative(&(struct fit_rows){y, x, COLUMNS + FIT_ROWS_MORE - 1, COLUMNS, NULL}, 0.95, out);
    assert_true(isnan(out[0].value) && isnan(out[2].value));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_watts_of_groups),
        TEST(what_comes_together_is_not_told_apart),
        TEST(where_nothing_can_be_said),
        TEST(several_at_once),
        cmocka_unit_test(a_fit_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
