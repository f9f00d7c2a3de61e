/* SPDX-License-Identifier: MIT
 * record.c - what was measured -> the run document: one case, and the settings that the harness worked by.
 * What was not measured gets its reason. Judges nothing. */
#include <math.h>
#include <string.h>

#include "bench/engine.h"
#include "bench/summary.h"

/* ---- how it went ---- */

static const char *const stop_names[] = {
    [STOP_NOT] = "unfinished",     [STOP_PRECISE] = "precise",         [STOP_BUDGET] = "budget",
    [STOP_MAX_RUNS] = "max runs", [STOP_ENOUGH] = "room for samples", [STOP_INTERRUPTED] = "interrupted",
};

static struct known_f64 if_finite(double v)
{
    return isfinite(v) ? known_f64(v) : (struct known_f64){0};
}

static void put_stability(struct bench *b, struct run_case *c, const struct case_work *w)
{
    c->stability = (struct run_stability){.known = true,
                                          .stopped = stop_names[w->stopped],
                                          .half_width = if_finite(w->half_width),
                                          .unstable = known_bool(w->stopped == STOP_BUDGET && !w->open.known),
                                          .migrations = w->disturbed.process.migrations};
    if (b->plan->percentile > 0) c->stability.half_width_percentile = if_finite(w->half_width_percentile);
    if (w->judged) c->stability.steady = known_bool(w->steady);
}

static void put_open_loop(struct run_case *c, const struct case_work *w)
{
    const struct open_result *o = &w->open;
    double seconds = (double)o->window_ns / 1e9;
    if (!o->known) return;
    c->open_loop =
        (struct run_open_loop){.known = true,
                               .offered = known_f64(seconds > 0 ? (double)o->due / seconds : 0),
                               .achieved = known_f64(seconds > 0 ? (double)o->served / seconds : 0),
                               .due = known_u64(o->due),
                               .served = known_u64(o->served),
                               .queued = known_u64(o->queued),
                               .late_starts = known_u64(o->late),
                               .longest_delay_ns = known_u64(o->longest_delay_ns),
                               .overloaded = known_bool(o->overloaded)};
}

/* ---- parts of a case ---- */

/* What the runs used: of processes of their own, else of this one. */
static const struct procstat *used_by(const struct case_work *w)
{
    return w->usage.runs ? &w->usage.sum.used : &w->disturbed.process;
}

static uint64_t not_below_zero(int64_t v)
{
    return v > 0 ? (uint64_t)v : 0;
}

static tare_status put_growth(struct bench *b, struct run_case *c, const struct case_work *w, tare_error *err)
{
    struct interval slope;
    bool known = false;
    tare_status s = w->open.known ? TARE_OK : memory_slope(&w->slices, &slope, &known, err);
    if (s < 0) return s;
    if (known && isfinite(slope.lo) && isfinite(slope.hi))
        c->memory.growth = run_estimate(slope.value, slope.lo, slope.hi);
    else
        run_unknown(b->run, &c->unknown, "memory.growth", "%s",
                    w->open.known ? "an open loop is measured in one piece" : "too few slices of time");
    return TARE_OK;
}

/* Of a subject that runs in a process of its own. */
static void put_child_memory(struct bench *b, struct run_case *c, const struct case_work *w)
{
    const struct subject_cost *sum = &w->usage.sum;
    static const char *const none[] = {"memory.rss_before", "memory.rss_mean", "memory.delta",
                                       "memory.per_unit", "memory.growth"};
    struct known_u64 own = procstat_rss_peak("");
    if (!own.known || sum->rss_peak > own.v) /* the kernel counts the starting process's memory in */
        c->memory.rss_peak = known_u64(sum->rss_peak);
    else
        run_unknown(b->run, &c->unknown, "memory.rss_peak", "not above the %.1f MiB of tare itself",
                    (double)own.v / 0x1p20);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        run_unknown(b->run, &c->unknown, none[i], "each run is a new process");
}

static tare_status put_memory(struct bench *b, struct run_case *c, const struct case_work *w, tare_error *err)
{
    const struct memory_track *m = &w->memory;
    c->memory.known = true;
    run_unknown(b->run, &c->unknown, "memory.fragmentation", "the subject does not tell");
    c->memory.minor_faults = known_u64(used_by(w)->minor_faults);
    c->memory.major_faults = known_u64(used_by(w)->major_faults);
    if (w->usage.runs) {
        put_child_memory(b, c, w);
        return TARE_OK;
    }
    if (!m->known) {
        run_unknown(b->run, &c->unknown, "memory", "the process's memory could not be read");
        return TARE_OK;
    }
    double mean = m->readings ? m->share_sum / (double)m->readings : (double)m->loaded;
    c->memory.rss_before = known_u64(m->base);
    c->memory.rss_peak = known_u64(not_below_zero((int64_t)m->base + m->peak));
    c->memory.rss_mean = known_u64(not_below_zero((int64_t)m->base + (int64_t)mean));
    c->memory.delta = known_i64(m->peak);
    if (w->units >= 1) c->memory.per_unit = known_i64((int64_t)((double)m->peak / w->units));
    return put_growth(b, c, w, err);
}

static void put_cpu(struct bench *b, struct run_case *c, const struct case_work *w)
{
    const struct procstat *used = used_by(w);
    struct run_cpu *cpu = &c->cpu;
    cpu->known = true;
    cpu->user_ns = known_u64(used->user_ns);
    cpu->system_ns = known_u64(used->system_ns);
    cpu->voluntary_switches = known_u64(used->voluntary_switches);
    cpu->involuntary_switches = known_u64(used->involuntary_switches);
    if (w->spent_ns)
        cpu->utilization = known_f64((double)(cpu->user_ns.v + cpu->system_ns.v) / (double)w->spent_ns);
    cpu->throttled_ns = w->disturbed.throttled_ns;
    if (!cpu->throttled_ns.known)
        run_unknown(b->run, &c->unknown, "cpu.throttled_ns", "the control group does not tell");
    const struct cpu_ticks *t = &w->disturbed.ticks;
    if (t->known && t->all > 0)
        cpu->steal = known_f64((double)t->steal / (double)t->all);
    else
        run_unknown(b->run, &c->unknown, "cpu.steal", "%s",
                    t->known ? "too short for the kernel's ticks" : "/proc/stat does not tell");
}

static void put_io(struct bench *b, struct run_case *c, const struct case_work *w)
{
    struct run_io *io = &c->io;
    io->known = true;
    io->read_bytes = used_by(w)->read_bytes;
    io->write_bytes = used_by(w)->write_bytes;
    if (!io->read_bytes.known || !io->write_bytes.known)
        run_unknown(b->run, &c->unknown, "io", "/proc/self/io cannot be read");
}

/* ours: the loop's cost and what the subject's run() does around the work. */
static void put_self(struct bench *b, struct run_case *c, const struct case_work *w)
{
    const struct subject_ops *ops = w->instance->subject->ops;
    bool watching = !w->usage.runs && typical_ns(w) * b->workers >= WATCH_EACH_NS;
    uint64_t loop = watching ? b->self_watching_ns : b->self_ns;
    uint64_t own = (ops->reports_time ? 0 : loop) + (ops->overhead_ns ? ops->overhead_ns(w->instance) : 0);
    double mean = c->latency_ns.mean.known ? (double)c->latency_ns.mean.v : 0;
    c->self.known = true;
    c->self.ns_per_run = known_u64(own);
    if (mean > 0)
        c->self.share = known_f64((double)own / mean);
    else
        run_unknown(b->run, &c->unknown, "self.share", "a run takes no time that the clock can tell");
}

static tare_status put_times(struct bench *b, struct run_case *c, const struct case_work *w, tare_error *err)
{
    struct sampled sampled = {.ns = w->samples.items,
                              .n = w->samples.n,
                              .units = w->units,
                              .unit = b->plan->unit ? b->plan->unit : "runs",
                              .open_loop = w->open.known,
                              .n_slices = w->slices.n};
    struct sampled_slice *slices = mem_new(w->slices.n, sizeof *slices);
    if (!slices) return error_set(err, TARE_NOMEM, "out of memory for %zu slices", w->slices.n);
    for (size_t i = 0; i < w->slices.n; i++)
        slices[i] = (struct sampled_slice){w->slices.items[i].n, w->slices.items[i].wall_ns};
    sampled.slices = slices;
    tare_status s = summarise(b->run, c, &sampled, err);
    mem_free(slices);
    return s;
}

static void give_reasons(struct bench *b, struct run_case *c)
{
    if (!c->outliers.known)
        run_unknown(b->run, &c->unknown, "outliers", "%llu samples are too few",
                    (unsigned long long)c->samples.v);
    else if (!c->outliers.explained.known)
        run_unknown(b->run, &c->unknown, "outliers.explained", "measured in one piece");
    run_explain_case(b->run, c, RUN_BY_BENCH);
}

tare_status record_case(struct bench *b, struct case_work *w, tare_error *err)
{
    const struct subject_ops *ops = w->instance->subject->ops;
    struct run_case *c = run_add_case(b->run, w->what->name);
    if (!c) return error_set(err, TARE_NOMEM, "out of memory for case %s", w->what->name);
    c->params = w->params_used;
    c->warmup_runs = known_u64(w->warmup_runs);
    c->load_ns = known_u64(w->load_ns);
    c->first_run_ns = known_u64(w->first_run_ns);
    tare_status s = put_times(b, c, w, err);
    if (s < 0 || (s = put_memory(b, c, w, err)) < 0 || (s = outliers_explain(w, &c->outliers, err)) < 0)
        return s;
    put_cpu(b, c, w);
    put_io(b, c, w);
    put_self(b, c, w);
    put_stability(b, c, w);
    put_open_loop(c, w);
    tare_error inner = TARE_ERROR_INIT;
    if (ops->report && (s = ops->report(w->instance, b->run, c, &inner)) < 0)
        return error_set(err, s, "case %s: %s", w->what->name, inner.text);
    give_reasons(b, c);
    return TARE_OK;
}

/* ---- settings ---- */

void record_plan(struct bench *b)
{
    const struct bench_plan *p = b->plan;
    struct arena *a = &b->run->arena;
    struct run_map *m = &b->run->config;
    run_map_real(a, m, "budget_s", (double)p->budget_ns / 1e9);
    run_map_real(a, m, "precision", p->precision);
    if (p->percentile > 0) run_map_real(a, m, "percentile", p->percentile);
    if (p->warmup_runs < 0)
        run_map_text(a, m, "warmup", "auto");
    else
        run_map_int(a, m, "warmup", p->warmup_runs);
    run_map_int(a, m, "min_runs", (int64_t)p->min_runs);
    if (p->max_runs) run_map_int(a, m, "max_runs", (int64_t)p->max_runs);
    run_map_int(a, m, "concurrency", b->workers);
    run_map_text(a, m, "load", p->load == BENCH_OPEN ? "open" : "closed");
    if (p->load == BENCH_OPEN) {
        run_map_real(a, m, "rate", p->rate);
        run_map_text(a, m, "arrivals", p->arrivals == BENCH_POISSON ? "poisson" : "constant");
    }
    run_map_int(a, m, "seed", (int64_t)(p->seed & INT64_MAX));
    bool open = p->load == BENCH_OPEN && b->n_cases > 1;
    const char *why = open ? "an open loop needs an unbroken window for each case" : b->split_why;
    run_map_bool(a, m, "interleaved", !why);
    if (why) run_map_text(a, m, "interleaved_why", why);
    if (b->blocks > 1) run_map_int(a, m, "blocks", (int64_t)b->blocks);
    if (bench_interrupted(b)) run_map_bool(a, m, "interrupted", true);
}
