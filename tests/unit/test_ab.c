/* SPDX-License-Identifier: MIT
 * test_ab.c - the engine of interleaved comparisons, with made-up lanes in virtual time; and worker processes that
 * behave and misbehave, which are this program itself, started again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/ab.h"
#include "core/mem.h"
#include "fake_subject.h"

/* ---- lanes in virtual time ---- */

struct made_lane {
    struct ab_lane base;
    uint64_t unit_ns, load_ns;
    double spread;
    bool own_launch;
    uint64_t fail_every;   /* every so many measurements one fails; 0: none */
    uint64_t interrupt_at; /* this measurement sets `stop` */
    bool fail_ready;
    uint64_t noisy_every; /* beside every so many measurements others keep a whole processor busy; 0: never */
    struct rng rng;
    uint64_t launched, stopped, measured, runs;
    uint32_t pads[64], heaps[64];
};

static volatile sig_atomic_t stop;
static char turns[4096];
static size_t n_turns;

static tare_status made_launch(struct ab_lane *base, const struct ab_layout *layout, tare_error *err)
{
    struct made_lane *l = (struct made_lane *)base;
    (void)err;
    l->pads[l->launched % 64] = layout->env_pad;
    l->heaps[l->launched++ % 64] = layout->heap_pad;
    return TARE_OK;
}

static tare_status made_ready(struct ab_lane *base, struct ab_launched *out, tare_error *err)
{
    struct made_lane *l = (struct made_lane *)base;
    if (l->fail_ready) return error_set(err, TARE_UNSUPPORTED, "made up: cannot be loaded");
    fake_time += l->load_ns;
    *out = (struct ab_launched){l->load_ns, 2, l->unit_ns};
    return TARE_OK;
}

static tare_status made_measure(struct ab_lane *base, uint64_t repeats, const struct ab_layout *layout,
                                struct pair_side *out, tare_error *err)
{
    struct made_lane *l = (struct made_lane *)base;
    l->measured++;
    l->runs += repeats;
    if (n_turns < sizeof turns) turns[n_turns++] = l->base.name[0];
    if (l->measured == l->interrupt_at) stop = 1;
    if (l->fail_every && l->measured % l->fail_every == 0) return error_set(err, TARE_DENIED, "exit code 7");
    double x = (double)(l->unit_ns * repeats) * (1 + l->spread * (2 * rng_unit(&l->rng) - 1));
    fake_time += (uint64_t)x;
    fake_busy += (uint64_t)(x / 2);
    if (l->noisy_every && l->measured % l->noisy_every == 0) fake_busy += (uint64_t)x;
    *out =
        (struct pair_side){.wall_ns = (uint64_t)x, .cpu_ns = (uint64_t)(x / 2), .env_pad = layout->env_pad};
    return TARE_OK;
}

static void made_stop(struct ab_lane *base, uint64_t *rss_peak)
{
    ((struct made_lane *)base)->stopped++;
    if (rss_peak) *rss_peak = 1 << 20;
}

static void made_close(struct ab_lane *base)
{
    (void)base;
}

static const struct ab_lane_ops made_ops = {made_launch, made_ready, made_measure, made_stop, made_close};

static void make_lanes(struct made_lane *l, bool own_launch, uint64_t unit_ns, uint64_t load_ns)
{
    static const char *const names[] = {"a", "b"};
    stop = 0;
    n_turns = 0;
    fake_machine();
    for (int i = 0; i < PAIR_SIDES; i++) {
        l[i] = (struct made_lane){.base = {&made_ops, names[i], own_launch},
                                  .unit_ns = unit_ns,
                                  .load_ns = load_ns,
                                  .spread = 0.05};
        rng_seed(&l[i].rng, (uint64_t)i);
    }
}

/* ---- looks ---- */

struct looking {
    size_t enough_at; /* pairs; 0: never */
    size_t looks, at[64];
    double launch_share;
};

static tare_status look(void *ctx, const struct pair_set *set, struct ab_advice *out, tare_error *err)
{
    struct looking *l = ctx;
    (void)err;
    l->at[l->looks++ % 64] = set->n;
    *out = (struct ab_advice){l->enough_at && set->n >= l->enough_at, set->n + set->n / 2, l->launch_share};
    return TARE_OK;
}

static struct ab_plan plan_of(struct made_lane *l, struct looking *k, uint64_t budget_ns)
{
    k->launch_share = NAN;
    return (struct ab_plan){.lane = {&l[0].base, &l[1].base},
                            .name = "case",
                            .budget_ns = budget_ns,
                            .seed = 5,
                            .look = {look, k, 20, 8},
                            .interrupted = &stop};
}

#define MS UINT64_C(1000000)

static void pairs_alternate_in_random_order(void **state)
{
    (void)state;
    struct made_lane l[2];
    struct looking k = {.enough_at = 200};
    struct pair_set set = {0};
    struct ab_outcome out;
    make_lanes(l, true, 5 * MS, MS);
    struct ab_plan plan = plan_of(l, &k, 60 * NS_PER_S);
    assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
    assert_int_equal(out.stopped, AB_STOP_PRECISE);
    assert_true(set.own_launch && set.n_epochs == 1 && set.n >= 200);
    size_t b_first = 0, changes = 0;
    for (size_t i = 0; i < set.n; i++) {
        b_first += set.at[i].b_first;
        changes += i && set.at[i].b_first != set.at[i - 1].b_first;
    }
    assert_in_range(b_first, set.n / 3, 2 * set.n / 3);
    assert_in_range(changes, set.n / 3, 2 * set.n / 3);
    for (size_t i = 0; i + 1 < n_turns; i += 2) assert_true(turns[i] != turns[i + 1]); /* always both */
    assert_true(l[0].measured == l[1].measured);
    char first[sizeof turns];
    size_t n_first = n_turns;
    memcpy(first, turns, sizeof first);
    ab_pairs_release(&set);
    make_lanes(l, true, 5 * MS, MS);
    k = (struct looking){.enough_at = 200};
    plan = plan_of(l, &k, 60 * NS_PER_S);
    assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
    assert_true(n_turns == n_first && memcmp(first, turns, n_turns) == 0); /* one seed, one order */
    ab_pairs_release(&set);
}

static void workers_are_launched_at_least_eight_times(void **state)
{
    (void)state;
    struct made_lane l[2];
    struct looking k = {.enough_at = 1}; /* says enough at the first look */
    struct pair_set set = {0};
    struct ab_outcome out;
    make_lanes(l, false, 5 * MS, 100 * MS);
    struct ab_plan plan = plan_of(l, &k, 60 * NS_PER_S);
    assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
    assert_int_equal(out.stopped, AB_STOP_PRECISE);
    assert_true(set.n_epochs >= 8 && l[0].launched == set.n_epochs && l[0].stopped == l[0].launched);
    assert_true(set.n >= 20 && k.looks == 1 && !out.few_launches);
    size_t same_pad = 0, odd = 0;
    for (size_t i = 0; i < set.n_epochs; i++) {
        same_pad += i && l[0].pads[i] == l[0].pads[i - 1];
        odd += l[0].heaps[i] % 16 != 0 || l[0].pads[i] >= 4096 || l[0].heaps[i] >= 4096;
        assert_true(set.epochs[i].side[0].env_pad == l[0].pads[i] &&
                    set.epochs[i].side[1].heap_pad == l[1].heaps[i]);
        assert_true(set.epochs[i].side[0].load_ns == 100 * MS && set.epochs[i].side[0].rss_peak == 1 << 20);
    }
    assert_true(same_pad <= 1 && odd == 0);
    ab_pairs_release(&set);
}

static void short_units_are_repeated_alike(void **state)
{
    (void)state;
    struct made_lane l[2];
    struct looking k = {.enough_at = 1};
    struct pair_set set = {0};
    struct ab_outcome out;
    make_lanes(l, false, 50000, MS);
    l[1].unit_ns = 100000;
    struct ab_plan plan = plan_of(l, &k, 10 * NS_PER_S);
    assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
    assert_true(set.repeats >= 40 && set.repeats <= 42); /* 2 ms of the shorter one */
    assert_true(l[0].runs == l[0].measured * set.repeats && l[1].runs == l[1].measured * set.repeats);
    for (size_t i = 0; i < set.n; i++) { /* and told per unit */
        assert_in_range(set.at[i].side[0].wall_ns, 47000, 53000);
        assert_in_range(set.at[i].side[1].cpu_ns, 47000, 53000);
    }
    ab_pairs_release(&set);
}

static void the_budget_ends_it(void **state)
{
    (void)state;
    const struct {
        bool own_launch;
        uint64_t unit, load, budget;
    } cases[] = {{true, 5 * MS, MS, 2 * NS_PER_S},
                 {false, 5 * MS, 100 * MS, 5 * NS_PER_S},
                 {false, 5 * MS, 700 * MS, 5 * NS_PER_S},
                 {true, 400 * MS, 0, NS_PER_S}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made_lane l[2];
        struct looking k = {0};
        struct pair_set set = {0};
        struct ab_outcome out;
        make_lanes(l, cases[i].own_launch, cases[i].unit, cases[i].load);
        struct ab_plan plan = plan_of(l, &k, cases[i].budget);
        assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
        assert_int_equal(out.stopped, AB_STOP_BUDGET);
        assert_true(set.n >= 2);
        uint64_t slack = 2 * cases[i].unit * 3 + 2 * cases[i].load; /* two pairs are taken whatever it says */
        assert_true(out.spent_ns <= cases[i].budget + slack);
        assert_int_equal(out.few_launches, cases[i].load == 700 * MS);
        ab_pairs_release(&set);
    }
}

/* Launches that differ much are worth more of them. */
static void advice_decides_how_many_pairs_a_launch_gets(void **state)
{
    (void)state;
    size_t epochs[2];
    for (int i = 0; i < 2; i++) {
        struct made_lane l[2];
        struct looking k = {0};
        struct pair_set set = {0};
        struct ab_outcome out;
        make_lanes(l, false, 5 * MS, 100 * MS);
        struct ab_plan plan = plan_of(l, &k, 60 * NS_PER_S);
        k.launch_share = i ? 4.0 : 0.1;
        assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
        epochs[i] = set.n_epochs;
        ab_pairs_release(&set);
    }
    assert_true(epochs[1] > epochs[0] * 3 / 2);
}

static void failed_pairs_are_counted(void **state)
{
    (void)state;
    struct made_lane l[2];
    struct looking k = {.enough_at = 100};
    struct pair_set set = {0};
    struct ab_outcome out;
    make_lanes(l, true, 5 * MS, MS);
    l[1].fail_every = 25;
    struct ab_plan plan = plan_of(l, &k, 60 * NS_PER_S);
    assert_int_equal(ab_run(&plan, &set, &out, &(tare_error)TARE_ERROR_INIT), TARE_OK);
    assert_true(set.failed >= 3 && set.failed_side[PAIR_B] == set.failed && set.failed_side[PAIR_A] == 0);
    assert_true(set.n + set.failed + 1 == l[0].measured); /* one pair warmed up: none disappeared */
    assert_non_null(strstr(out.failure, "case: new (b): exit code 7"));
    for (size_t i = 0; i < set.n; i++) assert_true(set.at[i].side[1].wall_ns > 0);
    ab_pairs_release(&set);
}

static void what_fails_always_is_an_error(void **state)
{
    (void)state;
    for (uint64_t every = 1; every <= 3; every += 2) {
        struct made_lane l[2];
        struct looking k = {.enough_at = 100};
        struct pair_set set = {0};
        struct ab_outcome out;
        tare_error err = TARE_ERROR_INIT;
        make_lanes(l, true, 5 * MS, MS);
        l[0].fail_every = every;
        struct ab_plan plan = plan_of(l, &k, 60 * NS_PER_S);
        assert_int_equal(ab_run(&plan, &set, &out, &err), TARE_DENIED);
        assert_non_null(strstr(err.text, "case: base (a): exit code 7"));
        if (every == 3) assert_non_null(strstr(err.text, "pairs failed"));
        assert_true(l[0].measured < 15);
        ab_pairs_release(&set);
    }
}

static void a_side_that_cannot_be_loaded_is_named(void **state)
{
    (void)state;
    struct made_lane l[2];
    struct looking k = {0};
    struct pair_set set = {0};
    struct ab_outcome out;
    tare_error err = TARE_ERROR_INIT;
    make_lanes(l, false, 5 * MS, MS);
    l[1].fail_ready = true;
    struct ab_plan plan = plan_of(l, &k, NS_PER_S);
    assert_int_equal(ab_run(&plan, &set, &out, &err), TARE_UNSUPPORTED);
    assert_string_equal(err.text, "case: new (b): made up: cannot be loaded");
    assert_int_equal(l[0].stopped, 1); /* the other one is let go */
    ab_pairs_release(&set);
}

static void interrupted_it_keeps_what_there_is(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        struct made_lane l[2];
        struct looking k = {0};
        struct pair_set set = {0};
        struct ab_outcome out;
        make_lanes(l, own, 5 * MS, MS);
        l[0].interrupt_at = 12;
        struct ab_plan plan = plan_of(l, &k, 60 * NS_PER_S);
        assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
        assert_int_equal(out.stopped, AB_STOP_INTERRUPTED);
        assert_in_range(set.n, 5, 12);
        assert_int_equal(l[0].launched, l[0].stopped);
        ab_pairs_release(&set);
    }
}

static void no_more_pairs_than_asked_for(void **state)
{
    (void)state;
    struct made_lane l[2];
    struct looking k = {0};
    struct pair_set set = {0};
    struct ab_outcome out;
    make_lanes(l, true, 5 * MS, MS);
    struct ab_plan plan = plan_of(l, &k, 60 * NS_PER_S);
    plan.max_pairs = 33;
    assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
    assert_true(out.stopped == AB_STOP_PAIRS && set.n == 33);
    ab_pairs_release(&set);
}

static void pairs_beside_another_load_are_taken_again(void **state)
{
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        struct made_lane l[2];
        struct looking k = {.enough_at = 0};
        struct pair_set set = {0};
        struct ab_outcome out;
        make_lanes(l, false, 200 * MS, MS);
        l[1].noisy_every = 3;
        struct ab_plan plan = plan_of(l, &k, 3600 * NS_PER_S);
        plan.max_pairs = 30;
        plan.retake = asked;
        assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
        assert_int_equal(set.n, 30);
        assert_int_equal(l[0].measured,
                         30 + set.n_epochs + set.retaken); /* each launch has one that finds cold caches */
        if (asked)
            assert_in_range(set.retaken, 5, 25);
        else
            assert_int_equal(set.retaken, 0);
        ab_pairs_release(&set);
    }
    struct made_lane l[2];
    struct looking k = {.enough_at = 0};
    struct pair_set set = {0};
    struct ab_outcome out;
    make_lanes(l, false, 5 * MS, MS); /* too short for what the kernel counts */
    l[1].noisy_every = 3;
    struct ab_plan plan = plan_of(l, &k, 3600 * NS_PER_S);
    plan.max_pairs = 30;
    plan.retake = true;
    assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
    assert_int_equal(set.retaken, 0);
    ab_pairs_release(&set);
}

static void a_launch_may_have_one_pair_and_none_before(void **state)
{
    (void)state;
    struct made_lane l[2];
    struct looking k = {.enough_at = 8};
    struct pair_set set = {0};
    struct ab_outcome out;
    make_lanes(l, false, 1000 * MS, 500 * MS);
    struct ab_plan plan = plan_of(l, &k, 3600 * NS_PER_S);
    plan.per_launch = 1;
    plan.look = (struct ab_look){look, &k, 8, 8};
    assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
    assert_int_equal(out.stopped, AB_STOP_PRECISE);
    assert_true(set.n == 8 && set.n_epochs == 8 && l[0].measured == 8 && l[1].measured == 8);
    ab_pairs_release(&set);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    long live = mem_live_blocks();
    for (long n = 0;; n++) {
        struct made_lane l[2];
        struct looking k = {.enough_at = 20};
        struct pair_set set = {0};
        struct ab_outcome out;
        make_lanes(l, n % 2, 5 * MS, MS);
        struct ab_plan plan = plan_of(l, &k, NS_PER_S);
        mem_fail_after(n);
        tare_error err = TARE_ERROR_INIT;
        tare_status s = ab_run(&plan, &set, &out, &err);
        mem_fail_after(-1);
        ab_pairs_release(&set);
        assert_int_equal(mem_live_blocks(), live);
        if (s == TARE_OK && n > 8) break;
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        assert_true(n < 100);
    }
}

/* ---- a subject of this process ---- */

static void a_subject_is_a_lane(void **state)
{
    (void)state;
    static struct fake_subject a, b; /* large */
    struct ab_lane *lane[2];
    struct pair_set set = {0};
    struct ab_outcome out;
    struct looking k = {.enough_at = 20};
    char pad[AB_ENV_PAD_MAX] = "";
    fake_machine();
    stop = 0;
    fake_open(&a, (struct fake_script){.base_ns = 5 * MS, .load_ns = MS, .units = 1, .own_costs = true});
    fake_open(&b, (struct fake_script){.base_ns = 6 * MS, .load_ns = MS, .units = 1, .own_costs = true});
    struct ab_subject_options o = {.name = "a", .subject = &a.base, .params = {.workers = 1}, .pad = pad};
    assert_int_equal(ab_lane_subject(&lane[0], &o, NULL), TARE_OK);
    o.name = "b";
    o.subject = &b.base;
    assert_int_equal(ab_lane_subject(&lane[1], &o, NULL), TARE_OK);
    struct ab_plan plan = {.lane = {lane[0], lane[1]},
                           .name = "case",
                           .budget_ns = NS_PER_S,
                           .seed = 1,
                           .look = {look, &k, 20, 8}};
    assert_int_equal(ab_run(&plan, &set, &out, NULL), TARE_OK);
    assert_true(set.n >= 20 && set.n_epochs >= 8);
    for (size_t i = 0; i < set.n; i++)
        assert_true(set.at[i].side[0].wall_ns == 5 * MS && set.at[i].side[1].wall_ns == 6 * MS);
    assert_true(pad[0] == 'x' && a.live == 0 && b.live == 0);
    ab_pairs_release(&set);
    ab_lane_close(lane[0]);
    ab_lane_close(lane[1]);
    ab_lane_close(NULL);
    real_machine();
}

/* ---- worker processes ---- */

static const char *own_path;

static struct ab_lane *process_lane(char *how, uint64_t timeout_ns)
{
    static char name[] = "worker";
    static char *argv[3];
    struct ab_lane *l = NULL;
    argv[0] = name;
    argv[1] = how;
    argv[2] = NULL;
    struct ab_process_options o = {.name = "w",
                                   .exe = own_path,
                                   .argv = argv,
                                   .spec = "{\"path\": \"model\"}",
                                   .timeout_ns = timeout_ns,
                                   .interrupted = &stop};
    assert_int_equal(ab_lane_process(&l, &o, NULL), TARE_OK);
    return l;
}

static void a_worker_answers(void **state)
{
    (void)state;
    static char how[] = "good";
    struct ab_lane *l = process_lane(how, 0);
    struct ab_layout layout = {123, 48};
    struct ab_launched launched;
    struct pair_side one;
    uint64_t peak = 0;
    stop = 0;
    assert_int_equal(l->ops->launch(l, &layout, NULL), TARE_OK);
    assert_int_equal(l->ops->ready(l, &launched, NULL), TARE_OK);
    assert_true(launched.warmup_runs >= 2 && launched.typical_ns >= MS);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(l->ops->measure(l, 2, &layout, &one, NULL), TARE_OK);
        assert_true(one.wall_ns >= 2 * MS && one.cpu_ns < one.wall_ns); /* it sleeps */
    }
    l->ops->stop(l, &peak);
    assert_true(peak > 0);
    l->ops->stop(l, &peak); /* nothing is under way */
    assert_int_equal(l->ops->measure(l, 1, &layout, &one, NULL), TARE_DENIED);
    ab_lane_close(l);
}

/* What ends each, and where it shows. */
static void bad_workers_are_explained(void **state)
{
    (void)state;
    struct {
        char how[16];
        const char *text;
    } cases[] = {{"crash", "killed by signal 6"},     {"exit", "ended early with exit code 9"},
                 {"refuse", "no such model at all"},  {"garbage", "no answer"},
                 {"fail", "made up: this run fails"}, {"hang", "no answer after 0.3 s"},
                 {"late", "killed by signal 11"}};
    stop = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ab_lane *l = process_lane(cases[i].how, 300 * MS);
        struct ab_launched launched;
        struct pair_side one;
        tare_error err = TARE_ERROR_INIT;
        struct ab_layout layout = {0};
        tare_status s = l->ops->launch(l, &layout, &err);
        if (s == TARE_OK) s = l->ops->ready(l, &launched, &err);
        for (int k = 0; k < 60 && s == TARE_OK; k++) s = l->ops->measure(l, 1, &layout, &one, &err);
        if (s == TARE_OK || !strstr(err.text, cases[i].text))
            fail_msg("%s: %d, '%s'", cases[i].how, s, err.text);
        l->ops->stop(l, NULL);
        ab_lane_close(l);
    }
}

static void a_missing_worker_is_explained(void **state)
{
    (void)state;
    static char name[] = "x";
    char *argv[] = {name, NULL};
    struct ab_lane *l;
    tare_error err = TARE_ERROR_INIT;
    struct ab_process_options o = {.name = "w", .exe = "/nonexistent/tare", .argv = argv, .spec = "{}"};
    assert_int_equal(ab_lane_process(&l, &o, NULL), TARE_OK);
    assert_true(l->ops->launch(l, &(struct ab_layout){0, 0}, &err) < 0);
    assert_non_null(strstr(err.text, "/nonexistent/tare"));
    ab_lane_close(l);
    static char huge[AB_SPEC_MAX + 10];
    memset(huge, 'x', sizeof huge - 1);
    o.spec = huge;
    assert_int_equal(ab_lane_process(&l, &o, &err), TARE_INVALID);
}

/* The worker's side: fd 3 is the socket. */
static int work(const char *how)
{
    static char spec[AB_SPEC_MAX];
    struct ab_request start;
    static struct fake_subject f;
    struct run run = {.arena = ARENA_INIT};
    struct run_map chosen = {0};
    tare_error err = TARE_ERROR_INIT;
    signal(SIGABRT, SIG_DFL);
    if (strcmp(how, "exit") == 0) return 9;
    if (strcmp(how, "crash") == 0) raise(SIGABRT);
    if (ab_worker_begin(AB_WORKER_FD, &start, spec, sizeof spec, &err) < 0) return 1;
    if (strcmp(how, "refuse") == 0) ab_worker_refuse(AB_WORKER_FD, TARE_INVALID, "no such model at all");
    if (strcmp(how, "garbage") == 0 && send(AB_WORKER_FD, "hello", 5, 0) != 5) return 1;
    if (strcmp(how, "hang") == 0) sleep(5);
    struct fake_script script = {.base_ns = MS, .units = 1, .real = true};
    if (strcmp(how, "fail") == 0) script.fail_at = 40; /* after warming up */
    fake_open(&f, script);
    if (strcmp(how, "late") == 0) {
        struct ab_reply ready = {.magic = AB_MAGIC};
        if (send(AB_WORKER_FD, &ready, sizeof ready, 0) < 0) return 1;
        if (recv(AB_WORKER_FD, &start, sizeof start, 0) < 0) return 1;
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    struct case_params p = {.workers = 1};
    struct case_record record = {.run = &run, .params = &chosen};
    tare_status s = ab_worker_serve(AB_WORKER_FD, &f.base, &p, &record, &err);
    arena_release(&run.arena);
    return s < 0 ? 3 : 0;
}

/* ---- specifications ---- */

static void a_specification_is_read_as_written(void **state)
{
    (void)state;
    const char *config[] = {"a=1", "b=\"2\""};
    struct dim_value dims[] = {{"batch", 3}, {"time \xc3\xa9", 7}};
    struct ab_spec s = {.model = {.path = "m.onnx",
                                  .runtime = "lib.so",
                                  .session_config = config,
                                  .n_session_config = 2,
                                  .optimization = 2,
                                  .no_arena = true,
                                  .parallel = true},
                        .params = {.batch = 4,
                                   .seq = 9,
                                   .threads = 2,
                                   .provider = "cuda",
                                   .io = "gpu",
                                   .dims = dims,
                                   .n_dims = 2,
                                   .seed = UINT64_MAX - 4}};
    struct ab_spec got;
    struct buf text = BUF_INIT;
    struct arena a = ARENA_INIT;
    assert_int_equal(ab_spec_write(&s, &text, NULL), TARE_OK);
    assert_int_equal(ab_spec_read(&got, &a, text.data, NULL), TARE_OK);
    assert_string_equal(got.model.path, "m.onnx");
    assert_string_equal(got.model.runtime, "lib.so");
    assert_null(got.model.inputs);
    assert_true(got.model.n_session_config == 2 && got.model.optimization == 2 && got.model.no_arena);
    assert_true(got.model.parallel && !got.model.no_pattern);
    assert_string_equal(got.model.session_config[1], "b=\"2\"");
    assert_true(got.params.batch == 4 && got.params.seq == 9 && got.params.threads == 2 &&
                got.params.n_dims == 2);
    assert_true(got.params.dims[1].value == 7 && got.params.seed == UINT64_MAX - 4);
    assert_string_equal(got.params.dims[1].name, "time \xc3\xa9");
    assert_string_equal(got.params.provider, "cuda");
    assert_string_equal(got.params.io, "gpu");
    assert_true(got.params.has_neighbours && got.params.workers == 1);
    buf_release(&text);
    arena_release(&a);
}

static void broken_specifications_are_refused(void **state)
{
    (void)state;
    const char *const texts[] = {"",
                                 "[]",
                                 "{}",
                                 "{\"path\": 3}",
                                 "{\"path\": \"m\", \"batch\": \"x\"}",
                                 "{\"path\": \"m\", \"dims\": [[1, 2]]}",
                                 "{\"path\": \"m\", \"session_config\": [1]}",
                                 "{\"path\": \"m\", \"path\": \"n\"}",
                                 "{\"path\": \"m\", \"no_arena\": 1}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ab_spec got;
        struct arena a = ARENA_INIT;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(ab_spec_read(&got, &a, texts[i], &err), TARE_FORMAT);
        assert_non_null(strstr(err.text, "specification of a worker"));
        arena_release(&a);
    }
}

int main(int argc, char **argv)
{
    /* Not by its own name, "worker": qemu gives that of the file, and the tests would start themselves without end. */
    if (argc > 1) return work(argv[argc - 1]);
    own_path = "/proc/self/exe";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_alternate_in_random_order),
        cmocka_unit_test(workers_are_launched_at_least_eight_times),
        cmocka_unit_test(short_units_are_repeated_alike),
        cmocka_unit_test(the_budget_ends_it),
        cmocka_unit_test(advice_decides_how_many_pairs_a_launch_gets),
        cmocka_unit_test(failed_pairs_are_counted),
        cmocka_unit_test(what_fails_always_is_an_error),
        cmocka_unit_test(a_side_that_cannot_be_loaded_is_named),
        cmocka_unit_test(interrupted_it_keeps_what_there_is),
        cmocka_unit_test(no_more_pairs_than_asked_for),
        cmocka_unit_test(pairs_beside_another_load_are_taken_again),
        cmocka_unit_test(a_launch_may_have_one_pair_and_none_before),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(a_subject_is_a_lane),
        cmocka_unit_test(a_worker_answers),
        cmocka_unit_test(bad_workers_are_explained),
        cmocka_unit_test(a_missing_worker_is_explained),
        cmocka_unit_test(a_specification_is_read_as_written),
        cmocka_unit_test(broken_specifications_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
