/* SPDX-License-Identifier: MIT
 * record.c - what was measured -> the run document: one case with the numbers of its samples, and the settings that the
 * harness worked by. What was not measured gets its reason. Judges nothing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/engine.h"
#include "core/fmt.h"

/* ---- samples: latency, throughput and their intervals ----
 * A percentile q of n samples is the sample of rank ceil(n q) (nearest rank). Its interval is of order statistics with
 * binomial ranks for n_eff samples (autocorrelation taken off); that of the median also not narrower than how batch
 * medians wander says. A percentile above the median is null when even n independent samples could not bound it; an
 * end that n_eff samples cannot bound is null. Runs that were due and not served count as longer than all others: a
 * percentile that falls on one is null, and only what it exceeds is known. */

enum { BATCHES = 10 };

uint64_t summary_samples_needed(double q)
{
    double side =
        (1 - BENCH_CONFIDENCE) / 2; /* all n are below the quantile with chance q^n: that must be <= side */
    return (uint64_t)ceil(log(side) / log(q) - 1e-9);
}

struct work {
    struct run *run;
    struct run_case *c;
    const struct sampled *s;
    size_t n;                    /* samples and waits */
    double *time_order, *sorted; /* a wait as long as it was */
    double *upper;               /* sorted; a wait is infinite */
    double n_eff;
};

/* ---- latency ---- */

static uint64_t whole_ns(double ns)
{
    return ns <= 0 ? 0 : (uint64_t)(ns + 0.5);
}

static double nearest_rank(const double *sorted, size_t n, double q)
{
    double rank = ceil((double)n * q - 1e-9);
    size_t at = rank < 1 ? 1 : (size_t)rank;
    return sorted[(at > n ? n : at) - 1];
}

/* Of the runs that have no time. */
static const char *what_became(const struct sampled *s)
{
    if (s->n_failed == s->n_waits) return "failed";
    return s->n_failed ? "that were due failed or were not served" : "that were due were not served";
}

/* "latency_ns.p95" is not known, but that it is above `ns`. */
static void put_bound(struct work *w, const char *path, double ns)
{
    run_map_int(&w->run->arena, &w->c->latency_ns.at_least, strchr(path, '.') + 1, (int64_t)whole_ns(ns));
    run_unknown(w->run, &w->c->unknown, path, "more than %s: %zu of %zu runs %s", show_time(ns).s,
                w->s->n_waits, w->n, what_became(w->s));
}

/* Into the document, never narrower than the value itself; an open end stays null with a reason. */
static void put_time(struct work *w, struct run_estimate *out, const char *path, struct interval i)
{
    char end[64];
    out->known = true;
    out->value = (double)whole_ns(i.value);
    if (i.lo > -INFINITY) out->lo = known_f64((double)whole_ns(fmin(i.lo, i.value)));
    if (i.hi < INFINITY) out->hi = known_f64((double)whole_ns(fmax(i.hi, i.value)));
    const char *const name[] = {"lo", "hi"};
    const bool known[] = {out->lo.known, out->hi.known};
    for (int k = 0; k < 2; k++) {
        if (known[k]) continue;
        snprintf(end, sizeof end, "%s.%s", path, name[k]);
        run_unknown(w->run, &w->c->unknown, end, "%zu samples, worth %.0f independent ones, do not bound it",
                    w->n, floor(w->n_eff));
    }
}

static const struct percentile {
    const char *path;
    size_t offset;
    double q;
} percentiles[] = {
    {"latency_ns.p90", offsetof(struct run_latency, p90), 0.90},
    {"latency_ns.p95", offsetof(struct run_latency, p95), 0.95},
    {"latency_ns.p99", offsetof(struct run_latency, p99), 0.99},
    {"latency_ns.p999", offsetof(struct run_latency, p999), 0.999},
};

/* i: the interval with waits as long as they were. */
static void put_percentile(struct work *w, const struct percentile *p, struct interval i)
{
    struct interval upper = stats_quantile_interval_sorted(w->upper, w->n, w->n_eff, p->q, BENCH_CONFIDENCE);
    i.value = nearest_rank(w->upper, w->n, p->q);
    i.hi = fmax(i.hi, upper.hi);
    if (isinf(i.value))
        put_bound(w, p->path, nearest_rank(w->sorted, w->n, p->q));
    else
        put_time(w, (struct run_estimate *)((char *)&w->c->latency_ns + p->offset), p->path, i);
}

/* The median's interval comes from the samples in the order of time, as neighbours depend on each other. A
 * tail percentile is told only with so many samples that its interval is bounded above: a p99 of 50 runs
 * is just the slowest one. */
static tare_status put_percentiles(struct work *w, tare_error *err)
{
    static const struct percentile median = {"latency_ns.p50", offsetof(struct run_latency, p50), 0.5};
    size_t n = w->n;
    struct interval i;
    tare_status s = stats_median_interval(w->time_order, n, BENCH_CONFIDENCE, &i, err);
    if (s < 0) return s;
    put_percentile(w, &median, i);
    for (size_t k = 0; k < sizeof percentiles / sizeof *percentiles; k++) {
        const struct percentile *p = &percentiles[k];
        uint64_t needed = summary_samples_needed(p->q);
        if (n < needed)
            run_unknown(w->run, &w->c->unknown, p->path, "%zu samples are too few: %llu are needed", n,
                        (unsigned long long)needed);
        else
            put_percentile(w, p,
                           stats_quantile_interval_sorted(w->sorted, n, w->n_eff, p->q, BENCH_CONFIDENCE));
    }
    return TARE_OK;
}

/* Where runs failed, or were due and not served, mean and maximum are bounds only. */
static tare_status put_latency(struct work *w, tare_error *err)
{
    struct run_latency *l = &w->c->latency_ns;
    size_t n = w->n;
    double mean = stats_mean(w->time_order, n), longest = w->sorted[n - 1];
    l->known = true;
    l->min = known_u64(whole_ns(w->upper[0]));
    if (w->s->n_waits) {
        put_bound(w, "latency_ns.mean", mean);
        put_bound(w, "latency_ns.max", longest);
        run_unknown(w->run, &w->c->unknown, "latency_ns.stddev", "runs %s", what_became(w->s));
        return put_percentiles(w, err);
    }
    l->mean = known_u64(whole_ns(mean));
    l->max = known_u64(whole_ns(longest));
    if (n > 1)
        l->stddev = known_u64(whole_ns(stats_stddev(w->time_order, n)));
    else
        run_unknown(w->run, &w->c->unknown, "latency_ns.stddev", "one sample has no spread");
    return put_percentiles(w, err);
}

static tare_status put_histogram(struct work *w, tare_error *err)
{
    struct hist h = HIST_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < w->s->n; i++) s = hist_record(&h, w->s->ns[i], err);
    if (s == TARE_OK) run_set_histogram(w->run, w->c, &h);
    hist_release(&h);
    return s;
}

/* ---- throughput ---- */

/* Rates of at most ten batches of neighbouring slices. Neighbours are alike, so single slices would claim too narrow an
 * interval; ten batches are long enough to be nearly independent, and their mean has Student's t with n - 1. */
static size_t batch_rates(const struct sampled *s, double *rates)
{
    size_t batches = s->n_slices < BATCHES ? s->n_slices : BATCHES, n = 0;
    for (size_t k = 0; k < batches; k++) {
        double runs = 0, wall = 0;
        for (size_t i = k * s->n_slices / batches; i < (k + 1) * s->n_slices / batches; i++) {
            runs += (double)s->slices[i].n;
            wall += (double)s->slices[i].wall_ns;
        }
        if (wall > 0) rates[n++] = runs * s->units / wall * 1e9;
    }
    return n;
}

/* Over the time that runs took, not the time between them. */
static void put_throughput(struct work *w)
{
    const struct sampled *s = w->s;
    double wall = 0, rates[BATCHES];
    for (size_t i = 0; i < s->n_slices; i++) wall += (double)s->slices[i].wall_ns;
    w->c->throughput.unit = arena_printf(&w->run->arena, "%s/s", s->unit);
    if (!(wall > 0)) {
        run_unknown(w->run, &w->c->unknown, "throughput", "the runs took no time that the clock can tell");
        return;
    }
    struct run_estimate *rate = &w->c->throughput.rate;
    *rate = (struct run_estimate){.known = true, .value = (double)s->n * s->units / wall * 1e9};
    size_t n = batch_rates(s, rates);
    if (n < 2) {
        run_unknown(w->run, &w->c->unknown, "throughput.lo", "measured in one piece: no spread to go by");
        run_unknown(w->run, &w->c->unknown, "throughput.hi", "measured in one piece: no spread to go by");
        return;
    }
    double half = stats_t_quantile((1 + BENCH_CONFIDENCE) / 2, (double)(n - 1)) * stats_stddev(rates, n) /
                  sqrt((double)n);
    rate->lo = known_f64(fmax(rate->value - half, 0));
    rate->hi = known_f64(rate->value + half);
}

/* ---- all of it ---- */

static tare_status fill(struct work *w, tare_error *err)
{
    size_t n = w->s->n, waited = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct wait *next = waited < w->s->n_waits ? &w->s->waits[waited] : NULL;
        bool waits = next && next->after <= i - waited;
        w->sorted[i] = w->time_order[i] = (double)(waits ? next->ns : w->s->ns[i - waited]);
        w->upper[i] = waits ? INFINITY : w->sorted[i];
        waited += waits;
    }
    stats_sort(w->sorted, w->n);
    stats_sort(w->upper, w->n);
    tare_status s = stats_n_eff(w->time_order, w->n, &w->n_eff, err);
    if (s < 0 || (s = put_latency(w, err)) < 0 || (s = put_histogram(w, err)) < 0) return s;
    run_set_samples(w->run, w->c, w->s->ns, n, n > RUN_SAMPLES_MAX ? "first" : "all");
    put_throughput(w);
    return TARE_OK;
}

tare_status summarise(struct run *run, struct run_case *c, const struct sampled *s, tare_error *err)
{
    c->samples = known_u64(s->n);
    c->confidence = known_f64(BENCH_CONFIDENCE);
    c->unit = arena_str(&run->arena, s->unit);
    if (s->units >= 0) c->units_per_run = known_u64((uint64_t)s->units);
    if (s->n == 0) return error_set(err, TARE_INVALID, "case %s: no samples", c->name);
    size_t n = s->n + s->n_waits;
    double *room = mem_new(n, 3 * sizeof *room);
    struct work w = {run, c, s, n, room, room + n, room + 2 * n, 0};
    tare_status status = room ? fill(&w, err) : error_nomem(err, "%zu samples", n);
    mem_free(room);
    return status;
}

/* ---- how it went ---- */

static const char *const stop_names[] = {
    [STOP_NOT] = "unfinished",     [STOP_PRECISE] = "precise",         [STOP_BUDGET] = "budget",
    [STOP_MAX_RUNS] = "max runs", [STOP_ENOUGH] = "room for samples", [STOP_INTERRUPTED] = "interrupted",
    [STOP_FAILED] = "failed",
};

static void put_stability(struct bench *b, struct run_case *c, const struct case_work *w)
{
    c->stability = (struct run_stability){.known = true,
                                          .stopped = stop_names[w->stopped],
                                          .half_width = known_if_finite(w->half_width),
                                          .unstable = known_bool(w->stopped == STOP_BUDGET && !w->open.known),
                                          .migrations = w->disturbed.process.migrations};
    if (!w->open.known) c->stability.moves = known_u64(w->moves);
    if (b->plan->percentile > 0)
        c->stability.half_width_percentile = known_if_finite(w->half_width_percentile);
    if (w->judged) c->stability.steady = known_bool(w->steady);
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

/* The case's share on top of what the process held before any case was loaded, so that neighbours do not count. */
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

static uint64_t bytes_on(const struct gpu_own *own, unsigned index)
{
    for (unsigned i = 0; i < own->n; i++)
        if (own->card[i].index == index) return own->card[i].bytes;
    return 0;
}

/* By the driver: the runtime's libraries, its context, and the cases loaded before are in both numbers, and what lies
 * between them is the case's own. What its runs free before they end is not seen. */
static tare_status put_gpu_memory(struct bench *b, struct run_case *c, const struct case_work *w,
                                  tare_error *err)
{
    const struct gpu_own *before = &w->memory.gpu_before, *loaded = &w->memory.gpu_loaded;
    if (!w->memory.on_gpu) return TARE_OK;
    for (unsigned i = 0; i < loaded->n; i++) {
        struct run_gpu_device *d = run_add_gpu_device(b->run, c);
        if (!d) return error_nomem(err, "case %s", c->name);
        unsigned index = loaded->card[i].index;
        uint64_t had = bytes_on(before, index), has = loaded->card[i].bytes;
        d->index = known_u64(index);
        for (size_t g = 0; g < b->run->host.gpus.n; g++)
            if (b->run->host.gpus.at[g]->index.v == index) d->name = b->run->host.gpus.at[g]->name;
        d->memory_before = known_u64(had);
        d->memory_peak = known_u64(has > had ? has : had);
    }
    c->gpu.known = loaded->n > 0;
    const char *why = loaded->why[0] ? loaded->why : "NVML finds this process on no GPU";
    if (loaded->why[0] || !loaded->n) run_unknown(b->run, &c->unknown, "gpu.devices", "%s", why);
    return TARE_OK;
}

/* What the machine did not tell gets a reason instead of a 0, which would read as "nothing was stolen". */
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
        run_unknown(b->run, &c->unknown, "self.share", "%s",
                    w->waits.n ? "the mean is not known" : "a run takes no time that the clock can tell");
}

static tare_status put_times(struct bench *b, struct run_case *c, const struct case_work *w, tare_error *err)
{
    struct sampled sampled = {.ns = w->samples.items,
                              .n = w->samples.n,
                              .waits = w->waits.items,
                              .n_waits = w->waits.n,
                              .n_failed = w->open.known ? w->open.failed.v : w->waits.n,
                              .units = w->units,
                              .unit = b->plan->unit ? b->plan->unit : "runs",
                              .slices = w->slices.items,
                              .n_slices = w->slices.n};
    return summarise(b->run, c, &sampled, err);
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

/* A failed case keeps its name, parameters and the failure, and no numbers: half a measurement would be
 * compared with whole ones. The subject reports last, so that it can see what is there. */
tare_status record_case(struct bench *b, struct case_work *w, tare_error *err)
{
    struct run_case *c = run_add_case(b->run, w->what->name);
    if (!c) return error_nomem(err, "case %s", w->what->name);
    c->params = w->params_used;
    c->failure = w->failure;
    if (w->stopped == STOP_FAILED) {
        struct case_record to = {b->run, &c->params};
        if (!c->params.n) case_say_params(&w->what->params, &to);
        run_explain_failed(b->run, c);
        return TARE_OK;
    }
    const struct subject_ops *ops = w->instance->subject->ops;
    c->warmup_runs = known_u64(w->warmup_runs);
    c->failed_runs = known_u64(w->open.known ? w->open.failed.v : w->waits.n);
    c->load_ns = known_u64(w->load_ns);
    c->first_run_ns = known_u64(w->first_run_ns);
    tare_status s = put_times(b, c, w, err);
    if (s < 0 || (s = put_memory(b, c, w, err)) < 0 || (s = put_gpu_memory(b, c, w, err)) < 0 ||
        (s = outliers_explain(w, &c->outliers, err)) < 0)
        return s;
    put_cpu(b, c, w);
    put_io(b, c, w);
    put_self(b, c, w);
    put_stability(b, c, w);
    c->open_loop = w->open;
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
