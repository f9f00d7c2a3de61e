/* SPDX-License-Identifier: MIT
 * test_gpu.c - GPU records: packed and read back; and what the analysis says of made-up timelines whose answer is
 * known: busy time over streams, idle time by cause, kernels, copies, ranges. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analyze/gpu/gpu_sum.h"
#include "analyze/gpu/gpu_name.h"
#include "analyze/gpu/gpu_work.h"
#include "core/buf.h"
#include "gpu_fixture.h"
#include "report/export/gpu_bars.h"
#include "report/gpu/gpu_report.h"
#include "report/sink.h"

/* ---- packing ---- */

static void records_come_back(void **state)
{
    (void)state;
    uint8_t room[4096];
    struct enc e = {room, room + sizeof room, false};
    struct gpu_state out = {{0}}, in = {{0}};
    struct gpu_record r = {0}, back;
    for (int kind = 1; kind < GPU_KINDS; kind++) {
        r = (struct gpu_record){.kind = (enum gpu_kind)kind, .text = "abc", .text_bytes = 3};
        for (int i = 0; i < 12; i++)
            r.v[i] = (uint64_t)kind * 1000003u * (uint64_t)(i + 1) * (kind % 2 ? 1 : 1000000007u);
        assert_true(gpu_pack(&out, &e, &r));
    }
    struct dec d = {room, e.p, false};
    for (int kind = 1; kind < GPU_KINDS; kind++) {
        assert_true(gpu_unpack(&in, &d, &back));
        assert_int_equal(back.kind, kind);
        assert_true(back.v[0] == (uint64_t)kind * 1000003u * (kind % 2 ? 1 : 1000000007u));
        if (kind == GPU_NAME || kind == GPU_DEVICE || kind == GPU_NOTE || kind == GPU_THREAD)
            assert_memory_equal(back.text, "abc", 3);
    }
    assert_false(gpu_unpack(&in, &d, &back));
    assert_false(d.failed);
}

static void a_kernel_takes_few_bytes(void **state)
{
    (void)state;
    uint8_t room[4096];
    struct enc e = {room, room + sizeof room, false};
    struct gpu_state s = {{0}};
    struct gpu_record r = {.kind = GPU_KERNEL};
    for (int i = 0; i < 100; i++) {
        r.KERNEL.start = 1731700000000000000u + (uint64_t)i * 5000;
        r.KERNEL.duration = 2300;
        r.KERNEL.name = 40;
        r.KERNEL.lane = r.KERNEL.shape = 3;
        r.KERNEL.id = 77 + (uint64_t)i;
        assert_true(gpu_pack(&s, &e, &r));
    }
    assert_true(e.p - room <= 100 * 12 + 10);
}

static void no_room_changes_nothing(void **state)
{
    (void)state;
    uint8_t room[64];
    struct enc e = {room, room + 25, false};
    struct gpu_state s = {{0}}, before = s;
    struct gpu_record r = {.kind = GPU_KERNEL};
    r.KERNEL.start = r.KERNEL.duration = INT64_MAX;
    assert_false(gpu_pack(&s, &e, &r));
    assert_memory_equal(&s, &before, sizeof s);
    assert_ptr_equal(e.p, room);
}

static void bytes_that_are_no_record(void **state)
{
    (void)state;
    const uint8_t unknown[] = {GPU_KINDS, 1, 2, 3}, torn[] = {GPU_KERNEL, 0x80}, zero[] = {0};
    const struct dec all[] = {{unknown, unknown + sizeof unknown, false},
                              {torn, torn + sizeof torn, false},
                              {zero, zero + 1, false}};
    for (size_t i = 0; i < 3; i++) {
        struct gpu_state s = {{0}};
        struct gpu_record r;
        struct dec d = all[i];
        assert_false(gpu_unpack(&s, &d, &r));
        assert_true(d.failed);
    }
}

/* ---- made-up timelines ---- */

static void untimed(struct making *m, uint64_t id, uint64_t from, uint64_t lane)
{
    struct gpu_record r = {.kind = GPU_UNTIMED};
    r.UNTIMED.from = STAMP + from * US;
    r.UNTIMED.lane = lane;
    r.UNTIMED.id = id;
    put(m, r);
}

/* Forty kernels, 40 us of each 50 on stream 1, the last ends at 1995. Operations without times take away what lies
 * behind the earliest moment at which they can have run, and no more:
 * 0  on the same stream, behind the last one: nothing is taken away
 * 1  launched at 1000 on stream 2, on which nothing ran before: known up to 1000 alone, in which 800 us were busy
 * 2  the same, launched at 100, but behind an operation on stream 2 that ended at 1500
 * 3  before all that is recorded: nothing is known, as ever
 * 4  one of two has no place: nothing is known */
static void what_the_end_cuts_off(void **state)
{
    static const struct {
        uint64_t launched, from, lane, lost;
        bool known;
        uint64_t wall, unrecorded, busy;
    } ways[] = {{1980, 1995, 1, 1, true, 1990, 0, 1600},
                {1000, 0, 2, 1, true, 1990, 1000, 800},
                {100, 1500, 2, 1, true, 1990, 500, 1200},
                {0, 0, 2, 1, false, 1990, 390, 0},
                {1980, 1995, 1, 2, false, 1990, 390, 0}};
    struct making *m = *state;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        struct gpu_profile p;
        struct gpu_record lost = {.kind = GPU_LOST};
        if (way) join(m, m->at.trace);
        begin(m);
        for (uint64_t i = 0; i < 40; i++) {
            call(m, i + 1, 50 * i, 50 * i + 2, 3);
            kernel(m, i + 1, 50 * i + 5, 50 * i + 45, i % 2 ? 12 : 11);
        }
        call(m, 41, ways[way].launched, ways[way].launched + 2, 3);
        untimed(m, 41, ways[way].from, ways[way].lane);
        lost.LOST.untimed = ways[way].lost;
        put(m, lost);
        struct trace *t = finish(m);
        assert_int_equal(gpu_sum(&t, 1, &p, NULL), TARE_OK);
        trace_close(t);
        remove(m->at.trace);
        const struct gpu_card *d = p.devices.at[0];
        assert_int_equal(d->operations.v, 40);
        assert_int_equal(us(d->wall_ns), ways[way].wall);
        assert_int_equal(d->busy_ns.known, ways[way].known);
        assert_int_equal(d->idle.n > 0, ways[way].known);
        assert_int_equal((d->unrecorded_ns.v + US / 2) / US, ways[way].unrecorded);
        assert_int_equal(p.lost.untimed, ways[way].lost);
        if (ways[way].known) {
            uint64_t idle = 0;
            for (size_t i = 0; i < d->idle.n; i++) idle += d->idle.at[i]->ns;
            assert_int_equal(us(d->busy_ns), ways[way].busy);
            assert_int_equal((idle + US / 2) / US + ways[way].busy + ways[way].unrecorded, ways[way].wall);
            assert_non_null(strstr(p.notes.at[0]->text, "cut off by the end of the record: operations 1,"));
        }
        gpu_profile_release(&p);
    }
}

/* Twenty steps of two kernels, each 40 us of 50: busy 80 %, were it not for one record that is gone. Any way of losing
 * it makes unknown what hangs on it; what was seen is the least that the GPU was busy. */
static void where_records_are_missing_nothing_is_idle(void **state)
{
    struct making *m = *state;
    for (int way = 0; way < 6; way++) {
        struct gpu_profile p;
        struct gpu_record lost = {.kind = GPU_LOST};
        if (way) join(m, m->at.trace);
        begin(m);
        for (uint64_t i = 0; i < 40; i++) {
            call(m, i + 1, 50 * i, 50 * i + 2, 3);
            kernel(m, i + 1, 50 * i + 5, 50 * i + 45, i % 2 ? 12 : 11);
        }
        if (way && way < 5) lost.v[way - 1] = 1; /* dropped, untimed, unread, unwritten */
        put(m, lost);
        if (way == 5) kernel(m, 41, 3000, (uint64_t)1 << 42, 11); /* as long as no kernel is */
        struct gpu_courses courses = {.cards = VEC_INIT};
        struct trace *t = finish(m);
        assert_int_equal(gpu_sum_over_time(&t, 1, &p, &courses, NULL), TARE_OK);
        trace_close(t);
        remove(m->at.trace);
        const struct gpu_card *d = p.devices.at[0];
        assert_int_equal(d->operations.v, 40);
        assert_true(d->steps.known);
        const struct known_u64 times[] = {d->busy_ns,          d->compute_ns,
                                          d->copy_ns,          d->exposed_copy_ns,
                                          d->communication_ns, d->exposed_communication_ns};
        for (size_t i = 0; i < sizeof times / sizeof *times; i++) assert_int_equal(times[i].known, !way);
        assert_int_equal(d->busy.known, !way);
        assert_int_equal(d->steps.busy.known, !way);
        assert_int_equal(d->idle.n > 0, !way);
        assert_int_equal(d->queue_deep.known, !way);
        assert_int_equal(courses.cards.items[0].doubt, way > 0);
        if (way) {
            assert_int_equal(us(d->unrecorded_ns), 390); /* 39 gaps of 10 us */
            assert_non_null(strstr(run_reason(&d->unknown, "busy"), "at least 80.4 % of the time"));
            assert_non_null(run_reason(&d->unknown, "exposed_copy_ns"));
        } else {
            assert_float_equal(d->busy.v, 1600.0 / 1990, 1e-9);
        }
        gpu_courses_release(&courses);
        gpu_profile_release(&p);
    }
    join(m, m->at.trace);
    leave(m);
}

/* 2000 runs, 0 to 99 us in turn: half are no longer than 49 us, and 95 of 100 than 94. */
static void kernels_have_percentiles(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    for (uint64_t i = 0; i < 2000; i++) kernel(m, i + 1, 100 * i, 100 * i + i % 100, 11);
    kernel(m, 2001, 300000, 300007, 12);
    analyse(m, &p);
    assert_int_equal(p.kernels.at[0]->count, 2000);
    assert_int_equal(p.kernels.at[0]->p50_ns.v, 49 * US);
    assert_int_equal(p.kernels.at[0]->p95_ns.v, 94 * US);
    assert_int_equal(p.kernels.at[1]->p50_ns.v, 7 * US);
    assert_int_equal(p.kernels.at[1]->p95_ns.v, 7 * US);
    gpu_profile_release(&p);
}

static void busy_is_a_union_over_streams(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    call(m, 1, 0, 5, 3);
    kernel(m, 1, 100, 300, 11);
    call(m, 2, 6, 9, 5);
    copy(m, 2, 200, 400, 4000); /* 100 beside the kernel, 100 alone */
    call(m, 3, 10, 12, 3);
    kernel(m, 3, 400, 500, 12); /* communication: 60 of it alone */
    call(m, 4, 13, 15, 3);
    kernel(m, 4, 460, 600, 21);
    analyse(m, &p);
    const struct gpu_card *d = p.devices.at[0];
    assert_int_equal(us(d->wall_ns), 500);
    assert_int_equal(us(d->busy_ns), 500);
    assert_int_equal(us(d->compute_ns), 340);
    assert_int_equal(us(d->copy_ns), 200);
    assert_int_equal(us(d->exposed_copy_ns), 100);
    assert_int_equal(us(d->exposed_communication_ns), 60);
    assert_int_equal(d->idle.n, 0);
    assert_int_equal(p.kernels.n, 2);
    assert_string_equal(p.kernels.at[0]->group, "matmul");
    assert_int_equal(p.kernels.at[0]->count, 2);
    assert_int_equal(p.kernels.at[0]->total_ns, 340 * US);
    assert_string_equal(p.kernels.at[1]->group, GPU_GROUP_COMMUNICATION);
    assert_int_equal(p.copies.n, 1);
    assert_string_equal(p.copies.at[0]->host_memory, "pageable");
    assert_float_equal(p.copies.at[0]->bandwidth.v, 4000 / 200e-6, 1);
    gpu_profile_release(&p);
}

/* Each gap has one known cause; together with the busy time they make the whole. */
static void idle_time_by_cause(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    call(m, 1, 0, 5, 3);
    kernel(m, 1, 10, 110, 11);
    call(m, 2, 20, 112,
         4); /* waits for the kernel; then 38 of own code and the launch, hidden had it not waited */
    call(m, 3, 150, 155, 3);
    kernel(m, 3, 160, 260, 11); /* gap 50: sync 2 + 38 + 10 */
    call(m, 4, 270, 470, 6);    /* cudaMalloc: 200 */
    call(m, 5, 470, 475, 3);
    kernel(m, 5, 480, 580, 11); /* gap 220: host 10, allocation 200, launch 10 */
    call(m, 6, 590, 700, 8);    /* loading code: 110 */
    call(m, 7, 700, 705, 3);
    kernel(m, 7, 705, 805, 11);  /* gap 125: host 10, loading 110, launch 5 */
    kernel(m, 8, 905, 1000, 11); /* its launch was not recorded: 100 unknown */
    call(m, 9, 900, 990, 3);
    kernel(m, 9, 1004, 1100, 11); /* launched in time: 4 of launch */
    analyse(m, &p);
    assert_int_equal(idle_us(&p, "sync"), 50);
    assert_int_equal(idle_us(&p, "launch"), 10 + 5 + 4);
    assert_int_equal(idle_us(&p, "allocation"), 200);
    assert_int_equal(idle_us(&p, "loading"), 110);
    assert_int_equal(idle_us(&p, "host"), 20);
    assert_int_equal(idle_us(&p, "unknown"), 100);
    uint64_t sum = us(p.devices.at[0]->busy_ns);
    for (size_t i = 0; i < p.devices.at[0]->idle.n; i++) sum += (p.devices.at[0]->idle.at[i]->ns + 500) / US;
    assert_int_equal(sum, us(p.devices.at[0]->wall_ns));
    gpu_profile_release(&p);
}

/* A kernel, a wait for it, then a launch and its kernel, in us. A wait of minutes is one, too. Without the wait the
 * next launch would have been hidden behind the GPU's work: as far as there was any. */
static void a_wait_hides_no_more_than_there_was_work(void **state)
{
    static const struct {
        uint64_t ends, wait, waited, launch, starts, sync, launching;
    } rows[] = {
        {90000000, 20, 90000100, 90000100, 90000110, 110, 0},
        {25, 6, 27, 37, 47, 17, 5}, /* gap 22: sync 2 + 10 + 5 of the launch's 10 */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *made = NULL;
        struct gpu_profile p;
        set_up(&made);
        begin(made);
        call(made, 1, 0, 5, 3);
        kernel(made, 1, 10, rows[i].ends, 11);
        call(made, 2, rows[i].wait, rows[i].waited, 4);
        call(made, 3, rows[i].launch, rows[i].launch + 5, 3);
        kernel(made, 3, rows[i].starts, rows[i].starts + 53, 11);
        analyse(made, &p);
        assert_int_equal(idle_us(&p, "sync"), rows[i].sync);
        assert_int_equal(idle_us(&p, "launch"), rows[i].launching);
        gpu_profile_release(&p);
        tear_down(&made);
    }
}

static void memory(struct making *m, uint64_t device, uint64_t what, uint64_t address, uint64_t bytes)
{
    struct gpu_record r = {.kind = GPU_MEMORY};
    r.MEMORY.at = STAMP;
    r.MEMORY.what = what;
    r.MEMORY.kind = GPU_DEVICE_MEMORY;
    r.MEMORY.address = address;
    r.MEMORY.bytes = bytes;
    r.MEMORY.device = device;
    put(m, r);
}

static void memory_is_of_its_card(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    struct gpu_record r = {.kind = GPU_LANE};
    r.LANE.number = 3;
    r.LANE.device = 1;
    put(m, r);
    memory(m, 0, 1, 4096, 1000);
    memory(m, 1, 1, 8192, 300);
    memory(m, 0, 2, 4096, 1000);
    memory(m, 0, 2, 4096, 1000); /* freed again: nothing is taken away twice */
    memory(m, 0, 1, 4096, 1500);
    kernel(m, 1, 10, 20, 11);
    kernel(m, 2, 10, 20, 31);
    analyse(m, &p);
    assert_int_equal(p.devices.n, 2);
    assert_int_equal(p.devices.at[0]->memory_peak_bytes.v, 1500);
    assert_int_equal(p.devices.at[1]->memory_peak_bytes.v, 300);
    gpu_profile_release(&p);
}

/* A pool has what it has; what is taken out of it comes on top of nothing. */
static void a_pool_counts_by_its_size(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    kernel(m, 1, 0, 10, 11);
    memory(m, 0, GPU_TAKEN, 4096, 1000);
    memory(m, 0, GPU_POOL_PIECE, 8192, 300);
    memory(m, 0, GPU_POOL_SIZE, 65536, 5000);
    memory(m, 0, GPU_POOL_RETURN, 8192, 300);
    memory(m, 0, GPU_POOL_SIZE, 65536, 4000);
    memory(m, 0, GPU_POOL_SIZE, 65536, 0);
    memory(m, 0, GPU_TAKEN, 16384, 4900);
    analyse(m, &p);
    assert_int_equal(p.devices.at[0]->memory_peak_bytes.v, 6000);
    gpu_profile_release(&p);
}

/* Held at the peak: what "step" took with cudaMalloc, and what no recorded call took; not what was given back. */
static bool text_says(const struct gpu_profile *p, const char *words)
{
    struct buf text = BUF_INIT;
    struct stream s;
    stream_init(&s, sink_to_buf(&text), NULL);
    gpu_report_text(&s, p);
    assert_int_equal(stream_finish(&s), TARE_OK);
    bool says = strstr(text.data, words);
    buf_release(&text);
    return says;
}

static void memory_at_its_peak_by_who_took_it(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    range(m, 1, 7, 1, 0);
    struct gpu_record in = {.kind = GPU_IN_RANGE};
    in.IN_RANGE.id = in.IN_RANGE.range = 1;
    put(m, in);
    call(m, 1, 10, 20, 6);
    taken(m, 1, 15, 4096, 1000);
    taken(m, 2, 30, 8192, 600);
    taken(m, 3, 40, 8192, 0);
    taken(m, 4, 50, 12288, 700); /* the peak: 1700 */
    taken(m, 5, 60, 4096, 0);
    range(m, 1, 0, 0, 100);
    kernel(m, 6, 110, 120, 11);
    analyse(m, &p);
    const struct gpu_card *d = p.devices.at[0];
    assert_int_equal(d->memory_peak_bytes.v, 1700);
    assert_int_equal(d->memory_peak_at_ns.v, d->memory.at[3]->at_ns);
    assert_int_equal(d->memory_holders.n, 2);
    assert_int_equal(d->memory_holders.at[0]->bytes, 1000);
    assert_string_equal(d->memory_holders.at[0]->call, "cudaMalloc");
    assert_string_equal(d->memory_holders.at[0]->range, "step");
    assert_int_equal(d->memory_holders.at[0]->thread.v, 11);
    assert_int_equal(d->memory_holders.at[1]->bytes, 700);
    assert_null(d->memory_holders.at[1]->call);
    assert_false(d->memory_holders.at[1]->thread.known);
    assert_int_equal(d->memory.n, 5);
    assert_int_equal(d->memory.at[3]->bytes, 1700);
    assert_int_equal(d->memory.at[4]->bytes, 700);
    assert_true(text_says(&p, "1000 B by cudaMalloc in step, 700 B by a call that was not recorded\n"));
    struct gpu_holder *second = d->memory_holders.at[1];
    *second = *d->memory_holders.at[0];
    second->thread.v = 12; /* who differ by the thread alone are told apart by it */
    assert_true(text_says(
        &p, "1000 B by cudaMalloc in step in thread 11, 1000 B by cudaMalloc in step in thread 12\n"));
    gpu_profile_release(&p);
}

static int by_first(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Against a count of what is below: in order, backwards, two runs in turn, and anyhow. Equal ones stay as they were. */
static void sorting_and_finding(void **state)
{
    (void)state;
    enum { N = 3000 };
    static uint32_t a[N][2];
    uint32_t seed = 1;
    for (int how = 0; how < 4; how++) {
        for (uint32_t i = 0; i < N; i++) {
            seed = seed * 1664525u + 1013904223u;
            const uint32_t ways[] = {i, N - i, i / 100 % 2 ? i - 50 : i, seed >> 20};
            a[i][0] = ways[how];
            a[i][1] = i;
        }
        assert_int_equal(gpu_sort(a, N, sizeof *a, by_first, NULL), TARE_OK);
        for (size_t i = 1; i < N; i++)
            assert_true(a[i - 1][0] < a[i][0] || (a[i - 1][0] == a[i][0] && a[i - 1][1] < a[i][1]));
        for (uint32_t i = 0; i < 500; i++) {
            uint32_t wanted[2] = {i * 9, 0};
            size_t at = gpu_find(&(struct gpu_sorted){a, N, sizeof *a, by_first}, wanted, i * 977 % (N + 1));
            assert_true(at == N || a[at][0] >= wanted[0]);
            assert_true(at == 0 || a[at - 1][0] < wanted[0]);
        }
    }
    assert_int_equal(gpu_find(&(struct gpu_sorted){a, 0, sizeof *a, by_first}, a, 0), 0);
}

/* A thread that was seen waiting in three of four looks: so much of its time. */
static void host_time_by_what_the_thread_did(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t at = i * 1000;
        call(m, i + 1, at, at + 5, 3);
        kernel(m, i + 1, at + 5, at + 105, 11);
        look(m, at + 50, GPU_HOST_SLEEPS); /* the GPU worked: does not count */
        look(m, at + 500, i % 4 ? GPU_HOST_WAITS : GPU_HOST_RUNS);
    }
    analyse(m, &p);
    assert_int_equal(idle_us(&p, "launch"), 39 * 5);
    assert_int_equal(idle_us(&p, "host"), 0);
    assert_int_equal(idle_us(&p, "host-sleeping"), 0);
    /* 39 gaps, the last look is after the last kernel */
    assert_true(llabs((long long)idle_us(&p, "host-waiting") - 39 * 895 * 29 / 39) <= 2);
    assert_true(llabs((long long)idle_us(&p, "host-running") - 39 * 895 * 10 / 39) <= 2);
    gpu_profile_release(&p);
}

/* A kernel counts for the range it was launched in and for those around it, also when it ran after their end. */
static void ranges_have_their_kernels(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    name(m, 9, "forward");
    for (uint64_t i = 0; i < 2; i++) {
        struct gpu_record r = {.kind = GPU_RANGE_BEGIN};
        r.RANGE_BEGIN.at = STAMP + (1 + i) * US;
        r.RANGE_BEGIN.thread = 11;
        r.RANGE_BEGIN.range = 100 + i;
        r.RANGE_BEGIN.name = i ? 9 : 7;
        put(m, r);
    }
    struct gpu_record in = {.kind = GPU_IN_RANGE};
    in.IN_RANGE.id = 1;
    in.IN_RANGE.range = 101;
    put(m, in);
    call(m, 1, 3, 5, 3);
    for (uint64_t i = 2; i-- > 0;) {
        struct gpu_record r = {.kind = GPU_RANGE_END};
        r.RANGE_END.at = STAMP + (8 - i) * US;
        r.RANGE_END.range = 100 + i;
        put(m, r);
    }
    kernel(m, 1, 20, 50, 11);
    kernel(m, 2, 60, 70, 11);
    analyse(m, &p);
    assert_int_equal(p.ranges.n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(p.ranges.at[i]->gpu_ns, 30 * US);
        assert_int_equal(p.ranges.at[i]->operations, 1);
        assert_int_equal(p.ranges.at[i]->count, 1);
    }
    assert_string_equal(p.ranges.at[0]->name, "step"); /* longer on the host */
    gpu_profile_release(&p);
}

/* Two kernels by the thread that opened the range, one of them before it; one by another thread, one by nobody knows
 * whom. */
static void what_is_in_no_range_is_told_by_thread(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    struct gpu_record name = {.kind = GPU_THREAD, .text = "pt_autograd_0", .text_bytes = 13};
    name.THREAD.thread = 78;
    put(m, name);
    struct gpu_record r = {.kind = GPU_RANGE_BEGIN};
    r.RANGE_BEGIN.at = STAMP;
    r.RANGE_BEGIN.thread = 11;
    r.RANGE_BEGIN.range = 100;
    put(m, r);
    struct gpu_record in = {.kind = GPU_IN_RANGE};
    in.IN_RANGE.id = 2;
    in.IN_RANGE.range = 100;
    put(m, in);
    call(m, 1, 3, 5, 3);
    call(m, 2, 6, 8, 3);
    struct gpu_record by = {.kind = GPU_CALL};
    by.CALL.start = STAMP + 9 * US;
    by.CALL.thread = 78;
    by.CALL.name = by.CALL.id = 3;
    put(m, by);
    kernel(m, 1, 20, 30, 11);
    kernel(m, 2, 40, 50, 11);
    kernel(m, 3, 60, 160, 11);
    kernel(m, 4, 200, 205, 11);
    analyse(m, &p);
    assert_int_equal(p.threads.n, 3);
    const struct gpu_thread *other = p.threads.at[0], *own = p.threads.at[1], *unknown = p.threads.at[2];
    assert_string_equal(other->name, "pt_autograd_0");
    assert_true(other->thread.v == 78 && other->in_range.known && other->in_range.v == 0 &&
                other->operations == 1);
    assert_true(own->thread.v == 11 && own->in_range.v == 1 && own->operations == 2 && !own->name);
    assert_true(!unknown->thread.known && unknown->operations == 1 && unknown->gpu_ns == 5 * US);
    gpu_profile_release(&p);
}

/* ---- bars, for timelines of other tools ---- */

struct drawn {
    char tracks[8][40];
    size_t n_tracks;
    struct gpu_bar bars[16];
    size_t n;
};

static tare_status draw_track(void *ctx, const struct gpu_track *t)
{
    struct drawn *d = ctx;
    assert_int_equal(t->number, d->n_tracks++);
    assert_int_equal(t->process, 0);
    assert_int_equal(t->thread, t->kind == GPU_TRACK_STREAM ? 0 : 11);
    snprintf(d->tracks[t->number], sizeof d->tracks[t->number], "%s", t->name);
    return TARE_OK;
}

static tare_status draw_bar(void *ctx, const struct gpu_bar *b)
{
    struct drawn *d = ctx;
    d->bars[d->n++] = *b;
    return TARE_OK;
}

/* What overlaps in part gets a track of its own, what lies within another does not. A range that never ended ends with
 * the last bar. */
static void bars_on_tracks(void **state)
{
    struct making *m = *state;
    struct drawn d = {.n = 0};
    begin(m);
    range(m, 1, 7, 50, 0);
    call(m, 5, 60, 70, 3);
    call(m, 6, 71, 80, 4); /* a wait launches nothing */
    kernel(m, 5, 100, 200, 11);
    kernel(m, 5, 150, 250, 11); /* a graph's: the same stream, at once */
    kernel(m, 5, 260, 300, 11);
    kernel(m, 5, 270, 280, 11);
    struct trace *t = finish(m);
    struct event_source source;
    event_source_of_trace(&source, t);
    assert_int_equal(gpu_bars(&source, &(struct gpu_bars_to){&d, draw_track, draw_bar}, NULL), TARE_OK);
    trace_close(t);
    assert_int_equal(d.n, 7);
    assert_int_equal(d.n_tracks, 4);
    const char *const tracks[] = {"CUDA calls of thread 11", "GPU 0 stream 1", "GPU 0 stream 1",
                                  "NVTX ranges of thread 11"};
    const uint32_t on[] = {0, 0, 1, 2, 1, 1, 3};
    for (size_t i = 0; i < 4; i++) assert_string_equal(d.tracks[i], tracks[i]);
    for (size_t i = 0; i < 7; i++) assert_int_equal(d.bars[i].track, on[i]);
    assert_int_equal(d.bars[0].kind, GPU_BAR_CALL);
    assert_int_equal(d.bars[2].kind, GPU_BAR_KERNEL);
    assert_int_equal(d.bars[6].kind, GPU_BAR_RANGE);
    assert_true(d.bars[0].launches && d.bars[0].flow && d.bars[0].flow == d.bars[2].flow &&
                !d.bars[2].launches);
    assert_int_equal(d.bars[1].flow, 0);
    assert_int_equal((d.bars[6].end - d.bars[6].start + 500) / US, 250);
}

static void a_trace_without_a_gpu_is_told(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    struct trace *t = NULL;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(appender_close(&m->to, 0, NULL), TARE_OK);
    assert_int_equal(trace_open(&t, m->at.trace, NULL), TARE_OK);
    assert_int_equal(gpu_sum(&t, 1, &p, &err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "tare run --gpu"));
    trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(a_kernel_takes_few_bytes),
        cmocka_unit_test(no_room_changes_nothing),
        cmocka_unit_test(bytes_that_are_no_record),
        cmocka_unit_test(sorting_and_finding),
        cmocka_unit_test(a_wait_hides_no_more_than_there_was_work),
        cmocka_unit_test_setup_teardown(memory_is_of_its_card, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_in_no_range_is_told_by_thread, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pool_counts_by_its_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_at_its_peak_by_who_took_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kernels_have_percentiles, set_up, tear_down),
        cmocka_unit_test_setup_teardown(busy_is_a_union_over_streams, set_up, tear_down),
        cmocka_unit_test_setup_teardown(idle_time_by_cause, set_up, tear_down),
        cmocka_unit_test_setup_teardown(host_time_by_what_the_thread_did, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranges_have_their_kernels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bars_on_tracks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_trace_without_a_gpu_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_end_cuts_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(where_records_are_missing_nothing_is_idle, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
