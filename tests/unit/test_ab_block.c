/* SPDX-License-Identifier: MIT
 * test_ab_block.c - blocks of a search with made-up lanes in virtual time: everyone gets its turns, a failure stays one
 * lane's, an interrupt keeps what there is, and documents and earlier ones say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include <cmocka.h>

#include "bench/ab_block.h"
#include "core/mem.h"
#include "fake_subject.h"

#define MS UINT64_C(1000000)
enum { LANES = 3 };

struct made_lane {
    struct ab_lane base;
    uint64_t unit_ns, load_ns, peak;
    bool fail_launch;
    uint64_t fail_at, stop_at; /* measurement that fails; that interrupts; 0: none */
    uint64_t launched, stopped, measured;
    bool at_work;
};

static volatile sig_atomic_t stop;
static char turns[256];
static size_t n_turns, loaded, most_loaded;

static tare_status made_launch(struct ab_lane *base, const struct ab_layout *layout, tare_error *err)
{
    struct made_lane *l = (struct made_lane *)base;
    (void)layout;
    if (l->fail_launch) return error_set(err, TARE_DENIED, "made up: no room");
    l->launched++;
    l->at_work = true;
    if (++loaded > most_loaded) most_loaded = loaded;
    return TARE_OK;
}

static tare_status made_ready(struct ab_lane *base, struct ab_launched *out, tare_error *err)
{
    struct made_lane *l = (struct made_lane *)base;
    (void)err;
    fake_time += l->load_ns;
    *out = (struct ab_launched){l->load_ns, 4, l->unit_ns};
    return TARE_OK;
}

static tare_status made_measure(struct ab_lane *base, uint64_t repeats, const struct ab_layout *layout,
                                struct pair_side *out, tare_error *err)
{
    struct made_lane *l = (struct made_lane *)base;
    (void)layout;
    assert_true(l->at_work && repeats == 1);
    l->measured++;
    if (n_turns == 0 || turns[n_turns - 1] != base->name[0]) turns[n_turns++ % sizeof turns] = base->name[0];
    if (l->measured == l->stop_at) stop = 1;
    if (l->measured == l->fail_at) return error_set(err, TARE_DENIED, "made up: killed by signal 6");
    fake_time += l->unit_ns;
    *out = (struct pair_side){.wall_ns = l->unit_ns + l->measured, .cpu_ns = l->unit_ns / 2};
    return TARE_OK;
}

static void made_stop(struct ab_lane *base, uint64_t *rss_peak)
{
    struct made_lane *l = (struct made_lane *)base;
    l->stopped++;
    loaded -= l->at_work;
    l->at_work = false;
    *rss_peak = l->peak;
}

static void made_close(struct ab_lane *base)
{
    (void)base;
}

static const struct ab_lane_ops made_ops = {made_launch, made_ready, made_measure, made_stop, made_close};

struct made {
    struct made_lane lane[LANES];
    struct ab_member member[LANES], *at[LANES];
    struct ab_block block;
};

static void make(struct made *m)
{
    static const char *const names[] = {"a", "b", "c"};
    *m = (struct made){.block = {.n = LANES, .slice_ns = 60 * MS, .seed = 3, .interrupted = &stop}};
    stop = 0;
    n_turns = loaded = most_loaded = 0;
    fake_machine();
    for (int i = 0; i < LANES; i++) {
        m->lane[i] = (struct made_lane){.base = {&made_ops, names[i], false},
                                        .unit_ns = (uint64_t)(i + 1) * 4 * MS,
                                        .load_ns = 100 * MS,
                                        .peak = (uint64_t)(i + 1) << 20};
        m->member[i] = (struct ab_member){.lane = &m->lane[i].base};
        m->at[i] = &m->member[i];
    }
    m->block.at = m->at;
}

static void release(struct made *m)
{
    for (int i = 0; i < LANES; i++) ab_member_release(&m->member[i]);
}

static size_t count(const struct ab_member *m)
{
    size_t n = 0;
    mem_free(ab_member_sorted(m, &n, NULL));
    return n;
}

static void all_get_their_turns(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    assert_int_equal(ab_block_run(&m.block, NULL), TARE_OK);
    assert_int_equal(most_loaded, LANES);
    assert_in_range(n_turns, 2 * LANES + 1, 3 * LANES); /* three turns each, in any order */
    for (int i = 0; i < LANES; i++) {
        const struct made_lane *l = &m.lane[i];
        assert_true(l->launched == 1 && l->stopped == 1 && !l->at_work);
        assert_in_range(l->measured, 60 / (4 * (i + 1)), 60 / (4 * (i + 1)) + 3);
        assert_true(fabs(m.member[i].median_ns - (double)l->unit_ns) < 100);
        assert_true(count(&m.member[i]) == l->measured && m.member[i].rss_peak == l->peak);
        assert_int_equal(ab_member_load_ns(&m.member[i]), 100 * MS);
    }
    size_t before = count(&m.member[0]);
    m.lane[0].unit_ns = 40 * MS;
    assert_int_equal(ab_block_run(&m.block, NULL), TARE_OK);
    assert_true(count(&m.member[0]) > before && m.member[0].median_ns > 39e6); /* of the latest block alone */
    release(&m);
}

static void one_turn_where_that_is_asked_for(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    m.block.turns = 1;
    m.block.slice_ns = MS; /* shorter than a run: one each */
    assert_int_equal(ab_block_run(&m.block, NULL), TARE_OK);
    for (int i = 0; i < LANES; i++) assert_int_equal(m.lane[i].measured, 1);
    assert_int_equal(n_turns, LANES);
    release(&m);
}

static void alone_means_one_at_a_time(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    m.block.alone = true;
    assert_int_equal(ab_block_run(&m.block, NULL), TARE_OK);
    assert_true(most_loaded == 1 && n_turns == LANES);
    release(&m);
}

static void least_runs_take_longer(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    m.block.least_runs = 90;
    assert_int_equal(ab_block_run(&m.block, NULL), TARE_OK);
    for (int i = 0; i < LANES; i++) assert_in_range(m.lane[i].measured, 90, 92);
    release(&m);
}

static void a_failure_stays_one_lanes(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    m.lane[1].fail_launch = true;
    m.lane[2].fail_at = 2;
    assert_int_equal(ab_block_run(&m.block, NULL), TARE_OK);
    assert_true(m.member[0].failed == TARE_OK && m.member[0].median_ns > 0);
    assert_true(m.member[1].failed == TARE_DENIED && strcmp(m.member[1].failure, "made up: no room") == 0);
    assert_true(m.member[2].failed == TARE_DENIED && strstr(m.member[2].failure, "signal 6") &&
                m.lane[2].measured == 2);
    assert_true(isnan(m.member[1].median_ns) && isnan(m.member[2].median_ns));
    release(&m);
}

static void an_interrupt_keeps_what_there_is(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    m.lane[0].stop_at = 2;
    m.lane[0].fail_at = 2; /* as lanes do when they are interrupted */
    assert_int_equal(ab_block_run(&m.block, NULL), TARE_OK);
    for (int i = 0; i < LANES; i++) assert_true(m.member[i].failed == TARE_OK && !m.lane[i].at_work);
    assert_int_equal(count(&m.member[0]), 1);
    release(&m);
}

/* Into a document and back: the same times, memory, failure. */
static void documents_are_recalled(void **state)
{
    (void)state;
    struct made m;
    struct run run;
    make(&m);
    m.lane[2].fail_at = 1;
    assert_int_equal(ab_block_run(&m.block, NULL), TARE_OK);
    assert_int_equal(run_init(&run, "tune", NULL), TARE_OK);
    for (int i = 0; i < LANES; i++) {
        struct run_case *c = run_add_case(&run, m.lane[i].base.name);
        struct ab_member again = {0};
        assert_int_equal(ab_member_record(&m.member[i], &run, c, 8, NULL), TARE_OK);
        assert_int_equal(ab_member_recall(&again, c, NULL), TARE_OK);
        assert_true(again.failed == m.member[i].failed && count(&again) == count(&m.member[i]));
        if (i < 2) {
            assert_true(fabs(again.median_ns - m.member[i].median_ns) < 1 &&
                        again.rss_peak == m.member[i].rss_peak);
            assert_int_equal(ab_member_load_ns(&again), 100 * MS);
            assert_true(c->load_ns.known && c->warmup_runs.v == 4 && c->units_per_run.v == 8);
            assert_true(fabs(c->cpu.utilization.v - 0.5) < 0.01);
        } else {
            assert_true(strstr(c->failure, "signal 6") && strstr(again.failure, "signal 6"));
        }
        ab_member_release(&again);
    }
    run_release(&run);
    release(&m);
}

/* What nothing of tare launched has no load, and says why. */
static void what_was_told_by_others_has_reasons(void **state)
{
    (void)state;
    uint64_t ns[] = {4 * MS, 5 * MS, 6 * MS};
    struct run_case told = {.samples_raw = {.known = true, .ns = ns, .n = 3}};
    struct ab_member m = {0};
    struct run run;
    assert_int_equal(ab_member_recall(&m, &told, NULL), TARE_OK);
    assert_true(fabs(m.median_ns - 5e6) < 1 && ab_member_load_ns(&m) == 0);
    assert_int_equal(run_init(&run, "tune", NULL), TARE_OK);
    struct run_case *c = run_add_case(&run, "told");
    assert_int_equal(ab_member_record(&m, &run, c, 1, NULL), TARE_OK);
    assert_true(!c->load_ns.known && run_map_get(&c->unknown, "load_ns") &&
                run_map_get(&c->unknown, "warmup_runs"));
    run_release(&run);
    ab_member_release(&m);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        struct made m;
        make(&m);
        mem_fail_after(n);
        tare_status s = ab_block_run(&m.block, NULL);
        mem_fail_after(-1);
        for (int i = 0; i < LANES; i++) assert_false(m.lane[i].at_work);
        release(&m);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_get_their_turns),
        cmocka_unit_test(one_turn_where_that_is_asked_for),
        cmocka_unit_test(alone_means_one_at_a_time),
        cmocka_unit_test(least_runs_take_longer),
        cmocka_unit_test(a_failure_stays_one_lanes),
        cmocka_unit_test(an_interrupt_keeps_what_there_is),
        cmocka_unit_test(documents_are_recalled),
        cmocka_unit_test(what_was_told_by_others_has_reasons),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
