/* SPDX-License-Identifier: MIT
 * test_gpu_rules.c - every rule about GPUs: a made-up timeline that fires it, and one like it that must not. Times are
 * in microseconds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analyze/gpu/gpu_facts.h"
#include "gpu_fixture.h"
#include "trace/samples.h"

/* ---- what timelines are made of ---- */

enum { GEMM = 11, NCCL = 12, LAUNCH = 3, SYNC = 4, COPY = 5, MALLOC = 6, LOAD = 8 };
enum { PLAIN = 40, ADD, ORT }; /* names of kernels, see names_more() */

static void names_more(struct making *m)
{
    name(m, PLAIN, "ampere_sgemm_128x64_tn");
    name(m, ADD, "vectorized_elementwise_kernel");
    name(m, ORT, "void onnxruntime::cuda::_BinaryElementWise<float>(..)");
}

static void device(struct making *m, uint64_t sms, uint64_t capability)
{
    struct gpu_record r = {.kind = GPU_DEVICE, .text = "Made-up", .text_bytes = 7};
    r.DEVICE.sms = sms;
    r.DEVICE.warps = 64;
    r.DEVICE.memory = 1000000;
    r.DEVICE.capability = capability;
    r.DEVICE.uuid_high = 0x1111111122223333;
    r.DEVICE.uuid_low = 0x4444555555555555;
    put(m, r);
}

static void shape(struct making *m, uint64_t number, uint64_t blocks)
{
    struct gpu_record r = {.kind = GPU_SHAPE};
    r.SHAPE.number = number;
    r.SHAPE.grid_x = blocks;
    r.SHAPE.grid_y = r.SHAPE.grid_z = r.SHAPE.block_y = r.SHAPE.block_z = 1;
    r.SHAPE.block_x = 128;
    put(m, r);
}

struct ran {
    uint64_t id, from, to, name, shape, lane;
};

static void ran(struct making *m, struct ran k)
{
    struct gpu_record r = {.kind = GPU_KERNEL};
    r.KERNEL.start = STAMP + k.from * US;
    r.KERNEL.duration = (k.to - k.from) * US;
    r.KERNEL.lane = k.lane ? k.lane : 1;
    r.KERNEL.name = k.name;
    r.KERNEL.shape = k.shape;
    r.KERNEL.id = k.id;
    put(m, r);
}

struct moved {
    uint64_t id, from, to, bytes, what;
};

static void moved(struct making *m, struct moved c)
{
    struct gpu_record r = {.kind = GPU_COPY};
    r.COPY.start = STAMP + c.from * US;
    r.COPY.duration = (c.to - c.from) * US;
    r.COPY.lane = 2;
    r.COPY.what = c.what;
    r.COPY.bytes = c.bytes;
    r.COPY.id = c.id;
    put(m, r);
}
#define PINNED (GPU_TO_DEVICE | GPU_PINNED << 8 | GPU_DEVICE_MEMORY << 16)
#define PAGEABLE (GPU_TO_DEVICE | GPU_PAGEABLE << 8 | GPU_DEVICE_MEMORY << 16)
#define ON_CARD (GPU_ON_DEVICE | GPU_DEVICE_MEMORY << 8 | GPU_DEVICE_MEMORY << 16)

static void overhead(struct making *m, uint64_t from, uint64_t to, uint64_t what, uint64_t thread)
{
    struct gpu_record r = {.kind = GPU_OVERHEAD};
    r.OVERHEAD.start = STAMP + from * US;
    r.OVERHEAD.duration = (to - from) * US;
    r.OVERHEAD.what = what;
    r.OVERHEAD.thread = thread;
    put(m, r);
}

/* A step every so often: a call, then its kernel. */
struct beat {
    uint64_t every, kernel, call, name;
};

static void beats(struct making *m, uint64_t n, struct beat b)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = i * b.every;
        call(m, i + 1, at, at + b.call, LAUNCH);
        ran(m, (struct ran){i + 1, at + b.call, at + b.call + b.kernel, b.name ? b.name : 1, .lane = 1});
    }
}

/* ---- what is asked ---- */

static const struct run_finding *found(const struct gpu_profile *p, const char *id)
{
    for (size_t i = 0; i < p->findings.n; i++)
        if (strcmp(p->findings.at[i]->id, id) == 0) return p->findings.at[i];
    return NULL;
}

/* Made anew for each of the two timelines of a rule. */
typedef void make_fn(struct making *m, bool fires);

static void check(make_fn *make, const char *id)
{
    for (int fires = 0; fires < 2; fires++) {
        void *state = NULL;
        struct gpu_profile p;
        set_up(&state);
        struct making *m = state;
        begin(m);
        names_more(m);
        make(m, fires);
        analyse(m, &p);
        const struct run_finding *f = found(&p, id);
        if (fires && !f) fail_msg("%s does not fire", id);
        if (!fires && f) fail_msg("%s must not fire: %s", id, f->title);
        if (f) assert_true(f->basis && f->disproof && f->action && f->evidence.n > 0);
        gpu_profile_release(&p);
        tear_down(&state);
    }
}

/* ---- the rules ---- */

static void idle(struct making *m, bool fires)
{
    beats(m, 40, fires ? (struct beat){1000, 100, 5, 0} : (struct beat){100, 95, 5, 0});
}

static void launch_bound(struct making *m, bool fires)
{
    beats(m, 60, fires ? (struct beat){20, 3, 8, 0} : (struct beat){1000, 100, 8, 0});
}

/* The same gaps, after a wait for the kernel or after none. */
static void waits(struct making *m, bool fires)
{
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t at = i * 150, id = 2 * i + 1;
        call(m, id, at, at + 5, LAUNCH);
        kernel(m, id, at + 5, at + 105, GEMM);
        call(m, id + 1, at + 10, fires ? at + 110 : at + 12, SYNC);
    }
}

static void data(struct making *m, bool fires)
{
    for (uint64_t i = 0; i < 60; i++) {
        uint64_t at = i * 1000;
        call(m, i + 1, at, at + 5, LAUNCH);
        kernel(m, i + 1, at + 5, at + 105, GEMM);
        look(m, at + 500, fires ? GPU_HOST_WAITS : GPU_HOST_RUNS);
    }
}

static void copies(struct making *m, uint64_t what, uint64_t bytes, bool beside)
{
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t at = i * 200, id = 2 * i + 1;
        call(m, id, at, at + 5, COPY);
        moved(m, (struct moved){id, at + (beside ? 110 : 5), at + (beside ? 160 : 55), bytes, what});
        call(m, id + 1, at + 60, at + 65, LAUNCH);
        kernel(m, id + 1, at + 65, at + 195, GEMM);
    }
}

static void pageable(struct making *m, bool fires)
{
    copies(m, fires ? PAGEABLE : PINNED, 4 << 20, false);
}

static void exposed(struct making *m, bool fires)
{
    copies(m, PINNED, 4 << 20, !fires);
}

static void small(struct making *m, bool fires)
{
    for (uint64_t i = 0; i < 12; i++) {
        uint64_t at = i * 2000;
        call(m, 100 * i + 1, at, at + 5, LAUNCH);
        kernel(m, 100 * i + 1, at + 5, at + 200, GEMM);
        for (uint64_t k = 0; k < 60; k++)
            moved(m, (struct moved){100 * i + 2 + k, at + 210 + k * 20, at + 220 + k * 20,
                                    fires ? 4096 : 1 << 20, PINNED});
    }
}

static void communication(struct making *m, bool fires)
{
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t at = i * 200, id = 2 * i + 1;
        call(m, id, at, at + 5, LAUNCH);
        kernel(m, id, at + 5, at + 105, GEMM);
        kernel(m, id + 1, at + (fires ? 105 : 5), at + (fires ? 195 : 95), NCCL + 10);
    }
}

static void tensor(struct making *m, bool fires)
{
    device(m, 100, 0x900);
    beats(m, 40, (struct beat){100, 95, 5, fires ? PLAIN : 1});
}

static void old_card(struct making *m, bool fires)
{
    device(m, 100, fires ? 0x700 : 0x601);
    beats(m, 40, (struct beat){100, 95, 5, PLAIN});
}

static void glue(struct making *m, bool fires)
{
    beats(m, 40, fires ? (struct beat){50, 40, 5, ADD} : (struct beat){200, 180, 5, ADD});
}

static void blocks(struct making *m, uint64_t count, uint64_t lanes)
{
    device(m, 100, 0x900);
    shape(m, 1, count);
    for (uint64_t i = 0; i < 40; i++) {
        call(m, i + 1, i * 100, i * 100 + 5, LAUNCH);
        ran(m, (struct ran){i + 1, i * 100 + 5, i * 100 + 95, 1, 1, 1 + i % lanes});
    }
}

static void filled(struct making *m, bool fires)
{
    blocks(m, fires ? 20 : 400, 1);
}

static void streams(struct making *m, bool fires)
{
    blocks(m, 20, fires ? 1 : 2);
}

/* In every step, or in the first two alone. */
static void calls_between(struct making *m, uint64_t what, bool always)
{
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t at = i * 200, id = 2 * i + 1;
        call(m, id, at, at + 5, LAUNCH);
        kernel(m, id, at + 5, at + 105, GEMM);
        if (always || i < 2) call(m, id + 1, at + 110, at + 150, what);
    }
}

static void allocation(struct making *m, bool fires)
{
    calls_between(m, MALLOC, fires);
}

static void loading(struct making *m, bool fires)
{
    calls_between(m, LOAD, fires);
}

static void full(struct making *m, bool fires)
{
    device(m, 100, 0x900);
    taken(m, 999, 1, 4096, fires ? 950000 : 500000);
    beats(m, 40, (struct beat){100, 95, 5, 0});
}

static void headroom(struct making *m, bool fires)
{
    device(m, 100, 0x900);
    taken(m, 999, 1, 4096, fires ? 100000 : 600000);
    beats(m, 60, (struct beat){20, 3, 8, 0});
}

static void uneven(struct making *m, bool fires)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < 60; i++) {
        uint64_t length = fires && i % 8 == 7 ? 170 : 100;
        range(m, i + 1, 7, at + 1, 0);
        call(m, i + 1, at + 1, at + 5, LAUNCH);
        kernel(m, i + 1, at + 5, at + 95, GEMM);
        at += length;
        range(m, i + 1, 0, 0, at);
    }
}

static void on_card(struct making *m, bool fires)
{
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t at = i * 200;
        call(m, i + 1, at, at + 5, LAUNCH);
        kernel(m, i + 1, at + 5, at + 105, GEMM);
        moved(m, (struct moved){100 + i, at + 105, at + (fires ? 150 : 107), 1000, ON_CARD});
    }
}

static void onnx(struct making *m, bool fires)
{
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t at = i * 200, id = 2 * i + 1;
        call(m, id, at, at + 5, COPY);
        moved(m, (struct moved){id, at + 5, at + 55, 4096, PINNED});
        call(m, id + 1, at + 60, at + 65, LAUNCH);
        ran(m, (struct ran){id + 1, at + 65, at + 195, fires ? ORT : ADD, .lane = 1});
    }
}

static void own(struct making *m, bool fires)
{
    beats(m, 40, (struct beat){100, 80, 5, 0});
    for (uint64_t i = 0; i < 40; i++) overhead(m, i * 100 + 10, i * 100 + 20, 3 << 16, fires ? 11 : 99);
}

static void every_rule(void **state)
{
    (void)state;
    const struct {
        make_fn *make;
        const char *id;
    } rows[] = {
        {idle, "gpu.mostly-idle"},
        {launch_bound, "gpu.launch-bound"},
        {waits, "gpu.waits-for-results"},
        {data, "gpu.waits-for-data"},
        {pageable, "gpu.copy-pageable"},
        {exposed, "gpu.copy-exposed"},
        {small, "gpu.copies-small"},
        {communication, "gpu.communication-exposed"},
        {tensor, "gpu.no-tensor-cores"},
        {old_card, "gpu.no-tensor-cores"},
        {glue, "gpu.unfused"},
        {filled, "gpu.underfilled"},
        {streams, "gpu.one-stream"},
        {allocation, "gpu.allocation"},
        {full, "gpu.memory-full"},
        {headroom, "gpu.memory-free"},
        {loading, "gpu.loading"},
        {uneven, "gpu.steps-uneven"},
        {on_card, "gpu.layout"},
        {onnx, "gpu.copies-each-run"},
        {own, "gpu.own-cost"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check(rows[i].make, rows[i].id);
}

/* Two threads that are recorded for 60 of each 100 us: that is 60 % of the time, not 120. */
static void threads_beside_each_other_do_not_add_up(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    beats(m, 40, (struct beat){100, 80, 5, 0});
    struct gpu_record r = {.kind = GPU_CALL};
    r.CALL.start = STAMP + 10 * US;
    r.CALL.duration = US;
    r.CALL.thread = 12;
    r.CALL.name = LAUNCH;
    r.CALL.id = 1000;
    put(m, r);
    for (uint64_t i = 0; i < 40; i++)
        for (uint64_t thread = 11; thread < 13; thread++)
            overhead(m, i * 100 + 10, i * 100 + 70, 3 << 16, thread);
    analyse(m, &p);
    const struct run_finding *x = found(&p, "gpu.own-cost");
    assert_non_null(x);
    assert_true(x->gain.v > 0.58 && x->gain.v < 0.63);
    gpu_profile_release(&p);
}

/* ---- when to be silent ---- */

/* Launched long before they run: whatever the host does, the GPU is what everything waits for. */
static void a_deep_queue_silences_advice_to_the_host(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    for (uint64_t i = 0; i < 60; i++) call(m, i + 1, i * 3, i * 3 + 2, LAUNCH);
    for (uint64_t i = 0; i < 60; i++) {
        kernel(m, i + 1, 10 + i * 100, 10 + i * 100 + 90,
               GEMM); /* 10 of each 100 wait for what we do not see */
        call(m, 100 + i, 300 + i * 95, 300 + i * 95 + 80, SYNC);
    }
    analyse(m, &p);
    assert_true(p.devices.at[0]->queue_deep.v > 0.9);
    const char *const host[] = {"gpu.launch-bound", "gpu.waits-for-results", "gpu.waits-for-data",
                                "gpu.allocation"};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) assert_null(found(&p, host[i]));
    gpu_profile_release(&p);
}

static void gaps_of_a_record_with_holes_are_no_idleness(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    beats(m, 40, (struct beat){1000, 100, 5, 0});
    struct gpu_record lost = {.kind = GPU_LOST};
    lost.LOST.dropped = 30;
    put(m, lost);
    analyse(m, &p);
    assert_null(found(&p, "gpu.mostly-idle"));
    gpu_profile_release(&p);
}

/* The first steps are slow and load code: nothing is said of them. */
static void the_start_does_not_count(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    uint64_t at = 0;
    begin(m);
    for (uint64_t i = 0; i < 60; i++) {
        uint64_t id = 3 * i + 1;
        if (i < 3) {
            call(m, id + 1, at, at + 900, LOAD);
            call(m, id + 2, at + 900, at + 990, MALLOC);
            at += 1000;
        }
        call(m, id, at, at + 5, LAUNCH);
        kernel(m, id, at + 5, at + 98, GEMM);
        at += 100;
    }
    analyse(m, &p);
    assert_int_equal(p.findings.n, 0);
    assert_true(p.devices.at[0]->busy.v < 0.8 && p.devices.at[0]->steady_ns.v < 6000 * US);
    gpu_profile_release(&p);
}

static void the_gravest_comes_first(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    names_more(m);
    device(m, 100, 0x900);
    beats(m, 60, (struct beat){20, 3, 8, PLAIN});
    analyse(m, &p);
    assert_true(p.findings.n >= 2);
    for (size_t i = 1; i < p.findings.n; i++)
        assert_false(strcmp(p.findings.at[i]->severity, "warn") == 0 &&
                     strcmp(p.findings.at[i - 1]->severity, "info") == 0);
    assert_string_equal(p.findings.at[0]->id, "gpu.mostly-idle");
    gpu_profile_release(&p);
}

/* ---- what the card itself told ---- */

struct told {
    double util, tensor, throttle, clock, link, power_busy, power_idle, joules_a_second, others;
};

/* A sample every 100 ms for four seconds. Kernels of 100 ms: 60 of each 100 ms, or all of every second such time. */
static void sampled(struct making *m, struct told t, bool in_turns)
{
    struct samples_writer *w = NULL;
    struct series_set set = SERIES_SET_INIT;
    struct sample s = SAMPLE_INIT;
    const uint64_t tick = 100000;
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t at = i * tick, long_one = in_turns ? (i % 4 < 2 ? tick - 10 : 0) : 60000;
        range(m, i + 1, 7, at + 1, 0);
        for (uint64_t k = 0; k < 5 && long_one; k++) {
            uint64_t id = 5 * i + k + 1, from = at + k * (long_one / 5);
            call(m, id, from, from + 5, LAUNCH);
            ran(m, (struct ran){id, from + 5, from + long_one / 5, PLAIN, .lane = 1});
        }
        range(m, i + 1, 0, 0, at + tick);
    }
    assert_int_equal(samples_create(&w, m->at.trace, NULL, NULL), TARE_OK);
    assert_int_equal(
        samples_mark(w, m->begun, SAMPLE_NOTE, "gpu1 is GPU-11111111-2222-3333-4444-555555555555", NULL),
        TARE_OK);
    for (uint64_t i = 0; i < 40; i++) {
        const struct {
            enum metric_id metric;
            double v;
        } values[] = {
            {METRIC_GPU_MEM_TOTAL, 1000},
            {METRIC_GPU_UTIL, t.util},
            {METRIC_GPU_SM_ACTIVE, i % 2 ? NAN : 0.5}, /* read at every second sample, and equal */
            {METRIC_GPU_TENSOR, i % 2 ? NAN : t.tensor},
            {METRIC_GPU_THROTTLE, t.throttle},
            {METRIC_GPU_CLOCK_SM, t.clock},
            {METRIC_GPU_CLOCK_MAX, 1000},
            {METRIC_GPU_PCIE_LINK, t.link},
            {METRIC_GPU_OTHERS, t.others},
            {METRIC_GPU_POWER, i % 4 < 2 ? t.power_busy : t.power_idle},
            {METRIC_GPU_ENERGY, 5 + t.joules_a_second * (double)i * 0.1},
        };
        size_t at;
        sample_clear(&s);
        s.at_ns = m->begun + i * tick * US;
        for (size_t k = 0; k < sizeof values / sizeof *values; k++)
            for (int card = 0; card < 2; card++) { /* the other card tells nonsense */
                assert_int_equal(series_find(&set, values[k].metric, card ? "gpu1" : "gpu0", &at, NULL),
                                 TARE_OK);
                assert_int_equal(sample_set(&s, at, card ? values[k].v : 0.001, NULL), TARE_OK);
            }
        assert_int_equal(samples_append(w, &set, &s, NULL), TARE_OK);
    }
    assert_int_equal(samples_close(w, NULL), TARE_OK);
    series_set_release(&set);
    sample_release(&s);
}

static const struct told usual = {.util = 1,
                                  .tensor = 0.01,
                                  .clock = 990,
                                  .link = 1,
                                  .power_busy = 300,
                                  .power_idle = 100,
                                  .joules_a_second = 200};

static void card_of(struct making *m, struct gpu_profile *p, struct told t, bool in_turns)
{
    begin(m);
    names_more(m);
    device(m, 100, 0x900);
    sampled(m, t, in_turns);
    analyse(m, p);
}

/* 200 J/s, a step of 100 ms: 20 J; the window is some 3.4 s, so that a refresh at its ends is 3 %. */
static void energy_of_a_step(void **state)
{
    struct gpu_profile p;
    card_of(*state, &p, usual, false);
    const struct gpu_energy *e = &p.devices.at[0]->energy;
    assert_true(e->known && e->per_step.known && e->joules.known && e->window_ns.v > 3000000 * (uint64_t)US);
    assert_float_equal(e->per_step.v, 20, 0.1);
    assert_true(e->per_step_lo.v < e->per_step.v && e->per_step_hi.v > e->per_step.v);
    assert_true(e->per_step_hi.v - e->per_step_lo.v < 0.1 * e->per_step.v);
    assert_true(e->shared.known && !e->shared.v && e->updates.v > 20);
    assert_float_equal(p.devices.at[0]->activity.tensor.v, 0.01, 1e-6);
    gpu_profile_release(&p);
}

static void a_shared_card_is_told(void **state)
{
    struct gpu_profile p;
    struct told t = usual;
    t.others = 2;
    card_of(*state, &p, t, false);
    assert_true(p.devices.at[0]->energy.shared.known && p.devices.at[0]->energy.shared.v);
    gpu_profile_release(&p);
}

/* Nothing runs half the time, at 100 of 200 W: a quarter of the energy. Busy all the while: none of it. */
static void energy_while_idle(void **state)
{
    struct gpu_profile p;
    card_of(*state, &p, usual, true);
    const struct gpu_card *d = p.devices.at[0];
    assert_float_equal(d->energy.idle_watts.v, 100, 1);
    assert_float_equal(d->energy.idle_share.v, 0.25, 0.03);
    assert_non_null(found(&p, "gpu.idle-energy"));
    gpu_profile_release(&p);
}

static void the_card_s_own_counters(void **state)
{
    const struct {
        struct told t;
        const char *id;
        bool fires;
    } rows[] = {
        {usual, "gpu.no-tensor-cores", true},
        {{1, .5, 0, 990, 1, 300, 100, 200, 0},
         "gpu.no-tensor-cores",
         false}, /* the name says plain, the card does not */
        {usual, "gpu.clock-low", false},
        {{1, .01, 0x40, 990, 1, 300, 100, 200, 0}, "gpu.clock-low", true},
        {{1, .01, 4, 990, 1, 300, 100, 200, 0}, "gpu.clock-low", true},
        {{1, .01, 0, 700, 1, 300, 100, 200, 0}, "gpu.clock-low", true},
        {{0, .01, 0x40, 700, .5, 300, 100, 200, 0}, "gpu.clock-low", false}, /* not under load */
        {usual, "gpu.slow-link", false},
        {{1, .01, 0, 990, .5, 300, 100, 200, 0}, "gpu.slow-link", true},
        {{0, .01, 0, 990, .5, 300, 100, 200, 0}, "gpu.slow-link", false},
        {usual, "gpu.idle-energy", false}, /* it was never seen idle */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *made = NULL;
        struct gpu_profile p;
        set_up(&made);
        card_of(made, &p, rows[i].t, false);
        if (!!found(&p, rows[i].id) != rows[i].fires) fail_msg("row %zu: %s", i, rows[i].id);
        gpu_profile_release(&p);
        tear_down(&made);
    }
}

static void without_samples_nothing_is_made_up(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    beats(m, 40, (struct beat){100, 95, 5, 0});
    analyse(m, &p);
    const struct gpu_card *d = p.devices.at[0];
    assert_false(d->energy.joules.known || d->energy.per_step.known || d->activity.tensor.known ||
                 d->sm_fill.known);
    assert_non_null(d->energy.why);
    assert_non_null(d->activity.why);
    gpu_profile_release(&p);
}

static char *text_of(const char *file)
{
    char path[600];
    struct buf text = BUF_INIT;
    snprintf(path, sizeof path, "%s/%s", getenv("TARE_SRC") ? getenv("TARE_SRC") : ".", file);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (int c; (c = fgetc(f)) != EOF;) buf_add_char(&text, (char)c);
    fclose(f);
    return buf_take(&text);
}

/* docs/gpu.md has a row for every rule of the table. */
static void rules_are_on_the_page(void **state)
{
    char row[80], *page = text_of("docs/gpu.md"), *source = text_of("src/analyze/gpu/gpu_rules.c");
    size_t rules = 0;
    (void)state;
    for (const char *at = source; (at = strstr(at, "{RULE(\"")); rules++) {
        at += strlen("{RULE(\"");
        snprintf(row, sizeof row, "| `%.*s` |", (int)strcspn(at, "\""), at);
        if (!strstr(page, row)) fail_msg("docs/gpu.md has no row %s", row);
    }
    assert_true(rules >= 20);
    mem_free(page);
    mem_free(source);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule),
        TEST(threads_beside_each_other_do_not_add_up),
        TEST(a_deep_queue_silences_advice_to_the_host),
        TEST(gaps_of_a_record_with_holes_are_no_idleness),
        TEST(the_start_does_not_count),
        TEST(the_gravest_comes_first),
        TEST(energy_of_a_step),
        TEST(a_shared_card_is_told),
        TEST(energy_while_idle),
        cmocka_unit_test(the_card_s_own_counters),
        TEST(without_samples_nothing_is_made_up),
        cmocka_unit_test(rules_are_on_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
