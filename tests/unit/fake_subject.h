/* SPDX-License-Identifier: MIT
 * fake_subject.h - a machine with virtual time and memory, and a subject whose run times are a script:
 * constant, trending, bimodal, autocorrelated, stalling, leaking memory, failing at run k. Nothing here
 * waits for real time unless asked to. */
#ifndef FAKE_SUBJECT_H
#define FAKE_SUBJECT_H

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "bench/engine.h"
#include "core/rng.h"

/* ---- virtual time and memory: single-threaded ---- */

static uint64_t fake_time;
static uint64_t fake_rss;
static uint64_t fake_available;

static uint64_t fake_now(void)
{
    return fake_time;
}

static void fake_pause_until(uint64_t ns)
{
    if (ns > fake_time) fake_time = ns;
}

static struct known_u64 fake_read_rss(void)
{
    return known_u64(fake_rss);
}

static struct known_u64 fake_read_available(void)
{
    return known_u64(fake_available);
}

static struct gpu_own fake_gpu; /* what the process has on GPUs */

static void fake_read_gpu(struct gpu_own *out)
{
    *out = fake_gpu;
}

static uint64_t fake_busy; /* ns; of all processors */

static struct known_u64 fake_read_busy(void)
{
    return known_u64(fake_busy);
}

static double fake_slowness = 1; /* of the processor that the work is on: runs take so many times as long */

static inline void fake_machine(void)
{
    fake_slowness = 1;
    fake_gpu = (struct gpu_own){0};
    fake_time = UINT64_C(1000000000000);
    fake_rss = 10 << 20;
    fake_available = UINT64_C(8) << 30;
    fake_busy = 0;
    bench_machine = (struct bench_machine){
        fake_now, fake_pause_until, fake_read_rss, fake_read_available, fake_read_gpu, fake_read_busy, NULL};
}

static inline void real_machine(void)
{
    bench_machine = bench_machine_system;
}

/* ---- the subject ---- */

enum fake_shape { FAKE_CONSTANT, FAKE_TREND, FAKE_BIMODAL, FAKE_AUTOCORRELATED, FAKE_NOISE };

struct fake_script {
    enum fake_shape shape;
    uint64_t base_ns;   /* of a run */
    double spread;      /* of NOISE (uniform +-), BIMODAL (distance), AUTOCORRELATED, share of base */
    uint64_t transient; /* so many runs at first take `slow` times as long, falling to 1 */
    double slow;
    double trend;          /* TREND: each run is longer by this share of base */
    uint64_t stall_every;  /* every so many runs ... */
    uint64_t stall_ns;     /* ... one takes so much longer */
    uint64_t fail_at;      /* this run fails, counted from 1; 0: none */
    bool fail_on;          /* and all after it */
    uint64_t interrupt_at; /* this run sets `stop` */
    uint64_t load_ns, load_bytes;
    uint64_t gpu_bytes;           /* taken on a GPU by each loading */
    uint64_t once_bytes;          /* taken by the first loading and never given back */
    uint64_t leak_bytes;          /* per run */
    uint64_t step_at, step_bytes; /* memory that grows once */
    bool fail_prepare, fail_outputs;
    bool real;      /* take real time: sleep */
    bool own_costs; /* tells costs as a command does */
    bool pauses;    /* has work before each run: takes base_ns */
    int64_t units;
};

struct fake_subject {
    struct subject base;
    struct fake_script script;
    volatile sig_atomic_t stop;
    uint64_t runs, befores, prepared, live, finished, most_live;
    uint64_t by_worker[64];
    uint64_t order[4096]; /* which instance ran, for the first runs of all */
    uint64_t n_order;
    uint64_t durations[1 << 16];
};

struct fake_instance {
    struct instance base;
    struct fake_subject *subject;
    uint64_t number, runs;
    double scale; /* batch: run time grows with it */
    struct rng rng;
    double state;
};

static uint64_t fake_duration(struct fake_instance *i, uint64_t k)
{
    const struct fake_script *s = &i->subject->script;
    double base = (double)s->base_ns, x = base;
    if (s->shape == FAKE_TREND) x += (double)k * s->trend * base;
    if (s->shape == FAKE_NOISE) x *= 1 + s->spread * (2 * rng_unit(&i->rng) - 1);
    if (s->shape == FAKE_BIMODAL) x *= rng_unit(&i->rng) < 0.5 ? 1 : 1 + s->spread;
    if (s->shape == FAKE_AUTOCORRELATED) {
        i->state = 0.99 * i->state + 0.14 * (2 * rng_unit(&i->rng) - 1);
        x *= 1 + s->spread * i->state;
    }
    if (k < s->transient) x *= 1 + (s->slow - 1) * (double)(s->transient - k) / (double)s->transient;
    if (s->stall_every && (k + 1) % s->stall_every == 0) x += (double)s->stall_ns;
    return (uint64_t)(x * i->scale * fake_slowness + 0.5);
}

static tare_status fake_prepare(struct subject *base, const struct case_params *p,
                                const struct case_record *to, struct instance **out, tare_error *err)
{
    struct fake_subject *s = (struct fake_subject *)base;
    if (s->script.fail_prepare) return error_set(err, TARE_UNSUPPORTED, "made up: cannot be loaded");
    struct fake_instance *i = mem_new(1, sizeof *i);
    if (!i) return error_set(err, TARE_NOMEM, "out of memory");
    i->base.subject = base;
    i->subject = s;
    i->number = s->prepared++;
    i->scale = p->batch ? (double)p->batch : 1;
    rng_seed(&i->rng, p->seed + 1);
    run_map_int(&to->run->arena, to->params, "batch", p->batch ? p->batch : 1);
    fake_time += s->script.load_ns;
    fake_rss += s->script.load_bytes + (i->number == 0 ? s->script.once_bytes : 0);
    fake_gpu.card[0].bytes += s->script.gpu_bytes;
    if (s->script.gpu_bytes) fake_gpu.n = 1;
    if (++s->live > s->most_live) s->most_live = s->live;
    *out = &i->base;
    return TARE_OK;
}

static void fake_spend(const struct fake_script *s, uint64_t ns)
{
    struct timespec t = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    if (s->real)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    else
        fake_time += ns;
}

static tare_status fake_run(struct instance *base, unsigned worker, struct subject_cost *cost,
                            tare_error *err)
{
    struct fake_instance *i = (struct fake_instance *)base;
    struct fake_subject *s = i->subject;
    uint64_t k = __atomic_fetch_add(&i->runs, 1, __ATOMIC_RELAXED);
    uint64_t all = __atomic_fetch_add(&s->runs, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->by_worker[worker], 1, __ATOMIC_RELAXED);
    if (s->script.interrupt_at && all + 1 == s->script.interrupt_at) s->stop = 1;
    if (s->script.fail_at && (s->script.fail_on ? k + 1 >= s->script.fail_at : k + 1 == s->script.fail_at))
        return error_set(err, TARE_UNSUPPORTED, "made up: this run fails");
    uint64_t ns = s->script.real ? s->script.base_ns : fake_duration(i, k);
    if (!s->script.real && s->n_order < 4096) s->order[s->n_order++] = i->number;
    if (!s->script.real && all < 1 << 16) s->durations[all] = ns;
    fake_spend(&s->script, ns);
    if (!s->script.real)
        fake_rss += s->script.leak_bytes + (k + 1 == s->script.step_at ? s->script.step_bytes : 0);
    if (s->script.own_costs)
        *cost = (struct subject_cost){
            .known = true,
            .rss_peak = UINT64_C(1) << 40,
            .used = {
                .user_ns = 700, .system_ns = 300, .involuntary_switches = 2, .read_bytes = known_u64(512)}};
    return TARE_OK;
}

static tare_status fake_before_run(struct instance *base, unsigned worker, tare_error *err)
{
    struct fake_instance *i = (struct fake_instance *)base;
    (void)worker, (void)err;
    i->subject->befores++;
    fake_time += i->subject->script.base_ns;
    return TARE_OK;
}

static tare_status fake_outputs(struct instance *base, struct tensor_set *out, tare_error *err)
{
    struct fake_instance *i = (struct fake_instance *)base;
    (void)out;
    if (i->subject->script.fail_outputs) return error_set(err, TARE_UNSUPPORTED, "made up: no outputs");
    return TARE_OK;
}

static int64_t fake_units(const struct instance *base)
{
    const struct fake_subject *s = ((const struct fake_instance *)base)->subject;
    return s->script.units ? s->script.units : 1;
}

static void fake_finish(struct instance *base)
{
    struct fake_instance *i = (struct fake_instance *)base;
    fake_rss -= fake_rss > i->subject->script.load_bytes ? i->subject->script.load_bytes : 0;
    i->subject->finished++;
    i->subject->live--;
    mem_free(i);
}

static const struct subject_ops fake_ops = {.type = "fake",
                                            .prepare = fake_prepare,
                                            .run = fake_run,
                                            .outputs = fake_outputs,
                                            .units = fake_units,
                                            .finish = fake_finish};
static const struct subject_ops fake_pausing_ops = {.type = "fake",
                                                    .prepare = fake_prepare,
                                                    .run = fake_run,
                                                    .units = fake_units,
                                                    .finish = fake_finish,
                                                    .before_run = fake_before_run};

static inline void fake_open(struct fake_subject *s, struct fake_script script)
{
    memset(s, 0, sizeof *s);
    s->script = script;
    s->base.ops = script.pauses ? &fake_pausing_ops : &fake_ops;
}

#endif
