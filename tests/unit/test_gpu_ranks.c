/* SPDX-License-Identifier: MIT
 * test_gpu_ranks.c - processes of a job beside each other, holes of the record, graphs without records: made-up
 * timelines whose answer is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu_fixture.h"

enum { STEP = 1000, STEPS = 40, COMPUTE = 1, COLLECTIVE = 2, LAUNCH = 3, HERE = 77, THERE = 78 };

static void tell_rank(struct making *m, uint64_t rank, uint64_t size, uint64_t boot, const char *host)
{
    struct gpu_record r = {.kind = GPU_RANK, .text = host, .text_bytes = strlen(host)};
    r.RANK.rank = r.RANK.local_rank = rank + 1;
    r.RANK.size = size + 1;
    r.RANK.boot = boot;
    put(m, r);
}

/* Steps of 1 ms: computes `us`, then is in a collective until 900 us; transferred are the last 100, or what a rank that
 * computes longer leaves. `late`: it computes so much longer in each of those steps (a bit for each, repeating). */
struct work {
    uint64_t us, late_us, late_in;
    unsigned missing;  /* its first so many collectives are not recorded */
    unsigned jitter;   /* us: ends of collectives are up to so much apart */
    unsigned in_range; /* so many steps are in an NVTX range; 0: none is */
    unsigned steps;    /* recorded; 0: all */
    bool twice;        /* computes again 500 us later: its kernels repeat twice as often */
};

static void do_work(struct making *m, struct work w)
{
    uint64_t id = 1, seed = 5;
    for (uint64_t i = 0; i < (w.steps ? w.steps : STEPS); i++) {
        uint64_t at = 100 + i * STEP, us = w.us + (w.late_in >> i % 8 & 1 ? w.late_us : 0);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t end = at + 900 + (w.jitter ? (seed >> 40) % w.jitter : 0);
        if (w.in_range && i % w.in_range == 0) range(m, i + 1, 7, at - 20, 0);
        call(m, id, at - 10, at - 5, LAUNCH);
        kernel(m, id++, at, at + us, 10 + COMPUTE);
        if (w.twice) kernel(m, id++, at + 500, at + 500 + us, 10 + COMPUTE);
        if (w.in_range && i % w.in_range == w.in_range - 1) range(m, i + 2 - w.in_range, 0, 0, at + 950);
        if (i >= w.missing) kernel(m, id, at + us, end, 20 + COLLECTIVE);
        id++;
    }
}

static struct trace *open_trace(const char *path)
{
    struct trace *t = NULL;
    assert_int_equal(trace_open(&t, path, NULL), TARE_OK);
    return t;
}

/* Two ranks that do this, each with a machine (boot) and a clock that is `ahead` ns; in one trace, or in two. */
struct two {
    struct work work[2];
    uint64_t boot[2];
    uint64_t ahead;
    bool one_trace;
};

static void make_two(struct making *m, const struct two *x, struct gpu_profile *p)
{
    uint64_t base = clock_raw_ns() + 1000000000;
    struct appender first;
    struct trace *all[2] = {NULL, NULL};
    char other[300];
    snprintf(other, sizeof other, "%s/u.tare", m->at.path);
    for (int i = 0; i < 2; i++) {
        if (i) {
            write_records(m);
            first = m->to; /* as long as it is there, others join its trace */
            join(m, x->one_trace ? m->at.trace : other);
        }
        begin_at(m, base + (i ? x->ahead : 0));
        tell_rank(m, (uint64_t)!i, 2, x->boot[i], i ? "here" : "there"); /* rank 1 comes first */
        do_work(m, x->work[!i]);
    }
    leave(m);
    assert_int_equal(appender_close(&first, 0, NULL), TARE_OK);
    all[0] = open_trace(m->at.trace);
    if (!x->one_trace) all[1] = open_trace(other);
    assert_int_equal(gpu_sum(all, x->one_trace ? 1 : 2, p, NULL), TARE_OK);
    trace_close(all[0]);
    trace_close(all[1]);
}

static void check_two(const struct gpu_job *j)
{
    assert_true(j->known);
    assert_int_equal(j->ranks.n, 2);
    assert_int_equal(j->world_size.v, 2);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(j->ranks.at[i]->rank.v, i);
        assert_string_equal(j->ranks.at[i]->host, i ? "there" : "here");
    }
    assert_string_equal(j->ranks.at[0]->aligned_by, "reference");
}

/* Rank 1 computes 600 us, rank 0 only 200: it waits 400 of each collective for rank 1, which is always last. */
static void the_straggler_is_named(void **state)
{
    for (int one_trace = 0; one_trace < 2; one_trace++) {
        struct making *m = *state;
        struct gpu_profile p;
        const struct two x = {
            .work = {{.us = 200}, {.us = 600}}, .boot = {HERE, HERE}, .one_trace = one_trace};
        make_two(m, &x, &p);
        const struct gpu_job *j = &p.job;
        check_two(j);
        assert_int_equal(j->hosts.v, 1);
        assert_int_equal(j->collectives, STEPS);
        assert_int_equal(j->unmatched, 0);
        assert_string_equal(j->ranks.at[1]->aligned_by, "one-clock");
        assert_true(fabs(j->ranks.at[1]->offset_ns.value) < 2);
        assert_int_equal(us(j->ranks.at[0]->transfer_ns), STEPS * 300);
        assert_int_equal(us(j->ranks.at[1]->transfer_ns), STEPS * 300);
        assert_int_equal(us(j->transfer_ns), STEPS * 300);
        assert_int_equal(us(j->ranks.at[0]->waiting_ns), STEPS * 400);
        assert_int_equal(us(j->ranks.at[1]->waiting_ns), 0);
        assert_int_equal(us(j->ranks.at[1]->compute_ns), STEPS * 600);
        assert_int_equal(us(j->ranks.at[0]->communication_ns), STEPS * 700);
        assert_float_equal(j->compute_skew.v, 3, 1e-6);
        assert_float_equal(j->step_skew.v, 1, 1e-3);
        assert_true(fabs(j->ranks.at[0]->step_ns.value - STEP * US) < 5);
        assert_int_equal(j->ranks.at[1]->last.v, STEPS);
        assert_true(j->ranks.at[1]->last_share.lo.v > 0.85);
        assert_int_equal(j->slowest.v, 1);
        assert_true(j->slowest.known);
        assert_non_null(strstr(j->evidence, "rank 1 came last into 100.0 %"));
        assert_int_equal(p.devices.n, 2);
        assert_int_equal(p.devices.at[0]->rank.v + p.devices.at[1]->rank.v, 1);
        gpu_profile_release(&p);
        folder_empty(m->at.path);
        join(m, m->at.trace);
    }
    leave(*state);
}

/* Imports do not tell their machine: two files may be of one, or of two. What is in one file is of one. */
static void hosts_may_be_unknown(void **state)
{
    for (int one_trace = 0; one_trace < 2; one_trace++) {
        struct making *m = *state;
        struct gpu_profile p;
        make_two(m, &(struct two){.work = {{.us = 200}, {.us = 600}}, .one_trace = one_trace}, &p);
        assert_true(p.job.known);
        assert_int_equal(p.job.hosts.known, one_trace);
        assert_int_equal(p.job.hosts.v, one_trace);
        assert_int_equal(run_reason(&p.job.unknown, "hosts") != NULL, !one_trace);
        gpu_profile_release(&p);
        folder_empty(m->at.path);
        join(m, m->at.trace);
    }
    leave(*state);
}

/* They take turns: nobody stands out, although somebody was last each time. */
static void none_stands_out(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    const struct two x = {.work = {{200, 300, 0x0f, 0, 0}, {200, 300, 0xf0, 0, 0}}, .boot = {HERE, HERE}};
    make_two(m, &x, &p);
    check_two(&p.job);
    assert_false(p.job.slowest.known);
    assert_non_null(strstr(p.job.evidence, "none stands out"));
    assert_int_equal(p.job.ranks.at[0]->last.v, STEPS / 2);
    assert_true(p.job.ranks.at[0]->last_share.lo.v < 0.4 && p.job.ranks.at[0]->last_share.hi.v > 0.6);
    gpu_profile_release(&p);
}

/* Two machines whose wall clocks are 5 ms apart: collectives know, to a few us. */
static void clocks_by_collectives(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    const struct two x = {
        .work = {{.us = 200}, {.us = 600, .jitter = 5}}, .boot = {HERE, THERE}, .ahead = 5000000};
    make_two(m, &x, &p);
    check_two(&p.job);
    const struct gpu_rank *r = p.job.ranks.at[1];
    assert_int_equal(p.job.hosts.v, 2);
    assert_string_equal(r->aligned_by, "collectives");
    /* rank 1 is told first and is `here` by its clock; rank 0, the reference, is ahead. Wall clocks were read by this
     * machine, some us apart. */
    assert_true(fabs(r->offset_ns.value + 5e6) < 2e6);
    assert_true(r->offset_ns.hi.v - r->offset_ns.lo.v < 10e3);
    assert_true(r->offset_ns.lo.v <= r->offset_ns.value && r->offset_ns.value <= r->offset_ns.hi.v);
    assert_int_equal(p.job.slowest.v, 1);
    gpu_profile_release(&p);
}

/* One machine, and clocks that disagree by far: collectives are believed, and the difference is told. */
static void one_clock_that_disagrees(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    const struct two x = {.work = {{.us = 200}, {.us = 600}}, .boot = {HERE, HERE}, .ahead = 30000000};
    make_two(m, &x, &p);
    assert_string_equal(p.job.ranks.at[1]->aligned_by, "collectives");
    assert_float_equal(p.job.ranks.at[1]->offset_ns.value, -30e6, 10);
    gpu_profile_release(&p);
}

/* Two machines, and five collectives of one are missing: which belongs to which cannot be told. On one machine it can
 * be seen that they do not end together. */
static void missing_records_are_not_guessed(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    const struct two x = {.work = {{.us = 200}, {.us = 600, .missing = 5}}, .boot = {HERE, THERE}};
    make_two(m, &x, &p);
    check_two(&p.job);
    assert_int_equal(p.job.collectives, 0);
    assert_int_equal(p.job.unmatched, 2 * STEPS - 5);
    assert_string_equal(p.job.ranks.at[1]->aligned_by, "wall-clock");
    assert_false(p.job.ranks.at[1]->offset_ns.known || p.job.ranks.at[1]->waiting_ns.known ||
                 p.job.ranks.at[1]->last_share.known || p.job.transfer_ns.known || p.job.slowest.known);
    assert_non_null(run_reason(&p.job.ranks.at[1]->unknown, "waiting_ns"));
    assert_non_null(run_reason(&p.job.ranks.at[1]->unknown, "offset_ns"));
    gpu_profile_release(&p);
}

/* Ends that are anywhere are of other groups of ranks. */
static void other_groups_do_not_match(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    const struct two x = {.work = {{.us = 200}, {.us = 200, .jitter = 900000}}, .boot = {HERE, HERE}};
    make_two(m, &x, &p);
    assert_int_equal(p.job.collectives, 0);
    assert_false(p.job.ranks.at[0]->waiting_ns.known);
    gpu_profile_release(&p);
}

/* One of two, and one that was not told a rank: what is missing is said. */
static void ranks_that_are_missing(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    tell_rank(m, 1, 4, HERE, "here");
    do_work(m, (struct work){.us = 200});
    analyse(m, &p);
    assert_true(p.job.known);
    assert_int_equal(p.job.world_size.v, 4);
    assert_non_null(strstr(run_reason(&p.job.unknown, "ranks"), "1 of 4"));
    gpu_profile_release(&p);
}

static void one_process_is_no_job(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    tell_rank(m, 0, 1, HERE, "here");
    do_work(m, (struct work){.us = 200});
    analyse(m, &p);
    assert_false(p.job.known);
    assert_string_equal(p.devices.at[0]->host, "here");
    gpu_profile_release(&p);
}

/* Two blocks that one process recorded of itself are no job. */
static void two_blocks_of_one_process(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    struct appender first;
    for (int i = 0; i < 2; i++) {
        if (i) {
            write_records(m);
            first = m->to;
            join(m, m->at.trace);
        }
        begin(m);
        tell_rank(m, 0, 1, HERE, "here");
        do_work(m, (struct work){.us = 200});
    }
    analyse(m, &p);
    assert_int_equal(appender_close(&first, 0, NULL), TARE_OK);
    assert_int_equal(p.devices.n, 2);
    assert_false(p.job.known);
    gpu_profile_release(&p);
}

/* More cards than are judged: the last one is told with its kernels, and why it has no findings. */
static void cards_beyond_those_that_are_judged(void **state)
{
    enum { CARDS = 258, FIRST_LANE = 10 };
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    for (uint64_t i = 0; i < CARDS; i++) {
        struct gpu_record r = {.kind = GPU_LANE};
        r.LANE.number = FIRST_LANE + i;
        r.LANE.device = i;
        put(m, r);
        for (uint64_t k = 0; k < 3; k++) kernel(m, i * 3 + k + 1, k * 20, k * 20 + 10, (FIRST_LANE + i) * 10 + COMPUTE);
    }
    analyse(m, &p);
    assert_int_equal(p.devices.n, CARDS);
    assert_int_equal(p.devices.at[CARDS - 1]->operations.v, 3);
    assert_null(run_reason(&p.devices.at[0]->unknown, "steady_ns"));
    assert_non_null(strstr(run_reason(&p.devices.at[CARDS - 1]->unknown, "steady_ns"), "first 256 cards"));
    gpu_profile_release(&p);
}

/* ---- holes, graphs, communication, the queue ---- */

static void hole(struct making *m, uint64_t from, uint64_t to)
{
    struct gpu_record r = {.kind = GPU_HOLE};
    r.HOLE.start = STAMP + from * US;
    r.HOLE.duration = (to - from) * US;
    r.HOLE.launches = 3;
    put(m, r);
}

/* Of 1000 us nothing is known of 600: the rest is half busy. */
static void a_hole_is_not_idle(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    call(m, 1, 0, 5, LAUNCH);
    kernel(m, 1, 10, 110, 11);
    hole(m, 110, 500);
    hole(m, 110, 710); /* it went on */
    call(m, 2, 800, 805, LAUNCH);
    kernel(m, 2, 810, 910, 11);
    call(m, 3, 1005, 1006, LAUNCH);
    kernel(m, 3, 1010, 1011, 11);
    analyse(m, &p);
    const struct gpu_card *d = p.devices.at[0];
    assert_int_equal(us(d->wall_ns), 1001);
    assert_int_equal(us(d->unrecorded_ns), 600);
    assert_int_equal(us(d->busy_ns), 201);
    assert_float_equal(d->busy.v, 201.0 / 401, 1e-3);
    assert_int_equal(idle_us(&p, "unknown"), 100);
    assert_int_equal(idle_us(&p, "host"), 95);
    assert_int_equal(p.lost.holes, 1);
    assert_int_equal((p.lost.hole_ns + 500) / US, 600);
    gpu_profile_release(&p);
}

/* A step with a hole in it is left out: neither its length nor its work is known. */
static void a_step_with_a_hole(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t at = i * 1000 + (i > 5 ? 50000 : 0);
        range(m, 1 + i, 7, at, 0);
        kernel(m, 1 + i, at + 100, at + 600, 11);
        if (i == 5) hole(m, at + 600, at + 50000);
        range(m, 1 + i, 0, 0, i == 5 ? at + 50900 : at + 900);
    }
    analyse(m, &p);
    assert_int_equal(p.devices.at[0]->steps.count, 9);
    assert_int_equal((p.devices.at[0]->steps.step_ns.max + 500) / US, 900);
    assert_float_equal(p.devices.at[0]->steps.busy.v, 500.0 / 900, 1e-3);
    gpu_profile_release(&p);
}

/* A kernel that came late ran all the time: nothing was taken from us. */
static void a_hole_that_was_none(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    call(m, 1, 0, 5, LAUNCH);
    kernel(m, 1, 10, 110, 11);
    hole(m, 110, 500);
    call(m, 2, 111, 112, LAUNCH);
    kernel(m, 2, 115, 910, 11);
    analyse(m, &p);
    assert_int_equal(p.lost.holes, 0);
    assert_false(p.devices.at[0]->unrecorded_ns.known);
    assert_int_equal(idle_us(&p, "launch"), 4);
    gpu_profile_release(&p);
}

/* So it did if it began before, beside the last one that was recorded in time. One that ends where the hole begins, but
 * for the clocks, says nothing. */
static void a_hole_beside_a_long_kernel(void **state)
{
    struct making *m = *state;
    for (int ran_on = 0; ran_on < 2; ran_on++) {
        struct gpu_profile p;
        if (ran_on) {
            assert_int_equal(tear_down(state), 0);
            assert_int_equal(set_up(state), 0);
            m = *state;
        }
        begin(m);
        kernel(m, 1, 10, 110, 11);
        kernel(m, 2, 50, ran_on ? 9000 : 112, 21);
        hole(m, 110, 6000);
        kernel(m, 3, 9100, 9200, 11);
        analyse(m, &p);
        assert_int_equal(p.lost.holes, !ran_on);
        gpu_profile_release(&p);
    }
}

/* The second launch of a graph has no record: how busy the GPU was is not known. The last one was on its way when the
 * record ended. */
static void a_graph_without_records(void **state)
{
    for (int lost = 0; lost < 2; lost++) {
        struct making *m = *state;
        struct gpu_profile p;
        begin(m);
        name(m, 9, "cudaGraphLaunch");
        name(m, 10, "cuGraphLaunch");
        call(m, 1, 0, 5, 9);
        call(m, 1, 1, 4, 10); /* the driver's, within it */
        kernel(m, 1, 10, 110, 11);
        if (lost) call(m, 3, 200, 205, 9);
        call(m, 5, 300, 305, LAUNCH);
        kernel(m, 5, 310, 410, 11);
        call(m, 7, 420, 425, 9);
        analyse(m, &p);
        const struct gpu_card *d = p.devices.at[0];
        assert_int_equal(p.lost.graphs, lost);
        assert_int_equal(d->busy.known, !lost);
        assert_int_equal(d->idle.n != 0, !lost);
        assert_int_equal(d->unrecorded_ns.v / US, lost ? 200 : 0);
        assert_int_equal(run_reason(&d->unknown, "busy") != NULL, lost);
        gpu_profile_release(&p);
        folder_empty(m->at.path);
        join(m, m->at.trace);
    }
    leave(*state);
}

/* Communication beside computing, alone, and a gap before it although it was launched in time. */
static void communication_by_what_hides_it(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    call(m, 1, 0, 2, LAUNCH);
    call(m, 2, 3, 5, LAUNCH);
    call(m, 3, 6, 8, LAUNCH);
    kernel(m, 1, 100, 300, 11);
    kernel(m, 2, 250, 450, 22); /* 50 beside it, 150 alone */
    kernel(m, 3, 550, 600, 22); /* launched in time: 100 for other ranks */
    analyse(m, &p);
    const struct gpu_card *d = p.devices.at[0];
    assert_int_equal(us(d->communication_ns), 250);
    assert_int_equal(us(d->exposed_communication_ns), 200);
    assert_int_equal(us(d->overlapped_communication_ns), 50);
    assert_int_equal(idle_us(&p, "communication"), 100);
    assert_int_equal(idle_us(&p, "unknown"), 0);
    /* at their launches 0, 1 and 2 others waited */
    assert_int_equal(d->queue.p50, 1);
    assert_int_equal(d->queue.max, 2);
    gpu_profile_release(&p);
}

/* Half as many steps were recorded of rank 1: that it computed half as much says nothing. */
static void sums_of_other_lengths_are_not_compared(void **state)
{
    struct gpu_profile p;
    const struct two x = {.work = {{.us = 200}, {.us = 200, .steps = STEPS / 2}}, .boot = {HERE, HERE}};
    make_two(*state, &x, &p);
    const char *why = run_reason(&p.job.unknown, "compute_skew");
    assert_false(p.job.compute_skew.known);
    assert_non_null(why);
    assert_non_null(strstr(why, "rank 1 for 19.9 ms, rank 0 for 39.9 ms"));
    gpu_profile_release(&p);
}

/* Without collectives, steps found by ranges of four in one rank, by kernels in the other: 4 ms beside 1 ms says
 * nothing of who is slow. Nor do twice as many. The same ones do. */
static void steps_that_are_not_the_same_are_not_compared(void **state)
{
    static const struct {
        struct work second;
        const char *why; /* NULL: they may be compared */
    } rows[] = {
        {{.us = 200, .missing = STEPS, .in_range = 4}, "39 by kernels in rank 0, 10 by range in rank 1"},
        {{.us = 200, .missing = STEPS, .twice = true}, "by kernels in rank 1"},
        {{.us = 300, .missing = STEPS}, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gpu_profile p;
        void *made = NULL;
        set_up(&made);
        const struct two x = {.work = {{.us = 200, .missing = STEPS}, rows[i].second}, .boot = {HERE, HERE}};
        make_two(made, &x, &p);
        const char *why = run_reason(&p.job.unknown, "step_skew");
        assert_int_equal(p.job.step_skew.known, !rows[i].why);
        assert_int_equal(why != NULL, rows[i].why != NULL);
        if (why && (!strstr(why, rows[i].why) || !strstr(p.job.evidence, why)))
            fail_msg("%s; %s", why, p.job.evidence);
        assert_false(p.job.slowest.known);
        gpu_profile_release(&p);
        tear_down(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_are_not_the_same_are_not_compared),
        cmocka_unit_test_setup_teardown(sums_of_other_lengths_are_not_compared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_straggler_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hosts_may_be_unknown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(none_stands_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(clocks_by_collectives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_clock_that_disagrees, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_records_are_not_guessed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_groups_do_not_match, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranks_that_are_missing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_process_is_no_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_blocks_of_one_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cards_beyond_those_that_are_judged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hole_is_not_idle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hole_that_was_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hole_beside_a_long_kernel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_step_with_a_hole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_graph_without_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(communication_by_what_hides_it, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
