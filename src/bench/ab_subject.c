/* SPDX-License-Identifier: MIT
 * ab_subject.c - a side that this process runs itself: a command, each measurement a launch of its own with an
 * environment of another length, or any other subject. Keeps nothing between launches but the subject. */
#include <string.h>

#include "bench/ab.h"
#include "bench/engine.h"
#include "core/clock.h"
#include "core/mem.h"

struct subject_lane {
    struct ab_lane base;
    struct ab_subject_options o;
    struct instance *instance;
    struct run scratch; /* prepare() writes what it chose into a document */
    struct run_map chosen;
};

static void set_pad(char *pad, uint32_t n)
{
    if (!pad) return;
    memset(pad, 'x', n);
    pad[n] = 0;
}

static void lane_stop(struct ab_lane *base, uint64_t *rss_peak)
{
    struct subject_lane *l = (struct subject_lane *)base;
    (void)rss_peak; /* told with each measurement */
    if (l->instance) l->o.subject->ops->finish(l->instance);
    l->instance = NULL;
}

/* What kept the run from going on without being its own: tare's thread waits for a processor as well, before it starts
 * a command and after one has ended. */
static void add_others(struct pair_side *to, struct known_u64 before, const struct subject_cost *cost,
                       uint64_t own)
{
    struct known_u64 after = procstat_run_delay(NULL, 0);
    bool known = before.known && after.known && (!cost->known || cost->run_delay.known);
    uint64_t ns = after.v - before.v + (cost->known ? cost->run_delay.v + own : 0);
    to->others = known ? known_u64(to->others.v + ns) : (struct known_u64){0};
}

static tare_status run_once(struct subject_lane *l, struct pair_side *out, tare_error *err)
{
    const struct subject_ops *ops = l->o.subject->ops;
    struct subject_cost cost = {0};
    tare_status s = ops->before_run ? ops->before_run(l->instance, 0, err) : TARE_OK;
    if (s < 0) return s;
    struct known_u64 delay = procstat_run_delay(NULL, 0);
    uint64_t cpu = clock_cpu_ns(CLOCK_PROCESS_CPUTIME_ID), start = bench_machine.now();
    s = ops->run(l->instance, 0, &cost, err);
    uint64_t end = bench_machine.now();
    if (s < 0) return s;
    out->wall_ns += end - start;
    cpu = clock_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    out->cpu_ns += cost.known ? cost.used.user_ns + cost.used.system_ns : cpu;
    add_others(out, delay, &cost, cpu);
    out->involuntary += cost.used.involuntary_switches;
    out->voluntary += cost.used.voluntary_switches;
    if (cost.rss_peak > out->rss_peak) out->rss_peak = cost.rss_peak;
    return TARE_OK;
}

static tare_status lane_launch(struct ab_lane *base, const struct ab_layout *layout, tare_error *err)
{
    (void)err;
    set_pad(((struct subject_lane *)base)->o.pad, layout->env_pad);
    return TARE_OK;
}

/* One run that does not count brings files into memory. */
static tare_status lane_ready(struct ab_lane *base, struct ab_launched *out, tare_error *err)
{
    struct subject_lane *l = (struct subject_lane *)base;
    struct case_record record = {.run = &l->scratch, .params = &l->chosen};
    struct pair_side first = {0};
    uint64_t start = bench_machine.now();
    tare_status s = l->o.subject->ops->prepare(l->o.subject, &l->o.params, &record, &l->instance, err);
    if (s < 0) {
        l->instance = NULL;
        return s;
    }
    out->load_ns = bench_machine.now() - start;
    if ((s = run_once(l, &first, err)) < 0) return s;
    out->warmup_runs = 1;
    out->typical_ns = first.wall_ns;
    return TARE_OK;
}

static tare_status lane_measure(struct ab_lane *base, uint64_t repeats, const struct ab_layout *layout,
                                struct pair_side *out, tare_error *err)
{
    struct subject_lane *l = (struct subject_lane *)base;
    tare_status s = TARE_OK;
    *out = (struct pair_side){.env_pad = l->o.pad ? layout->env_pad : 0};
    set_pad(l->o.pad, layout->env_pad);
    for (uint64_t i = 0; s == TARE_OK && i < repeats; i++) s = run_once(l, out, err);
    return s;
}

static void lane_close(struct ab_lane *base)
{
    struct subject_lane *l = (struct subject_lane *)base;
    lane_stop(base, NULL);
    run_release(&l->scratch);
    mem_free(l);
}

static const struct ab_lane_ops subject_ops = {lane_launch, lane_ready, lane_measure, lane_stop, lane_close};

tare_status ab_lane_subject(struct ab_lane **out, const struct ab_subject_options *o, tare_error *err)
{
    struct subject_lane *l = mem_new(1, sizeof *l);
    if (!l) return error_nomem(err, "one side");
    tare_status s = run_init(&l->scratch, "compare", err);
    if (s < 0) {
        mem_free(l);
        return s;
    }
    l->base = (struct ab_lane){&subject_ops, o->name, o->subject->ops->runs_in_child};
    l->o = *o;
    *out = &l->base;
    return TARE_OK;
}
