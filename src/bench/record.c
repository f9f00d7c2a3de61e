/* SPDX-License-Identifier: MIT
 * record.c - what was measured -> the run document: one case with the numbers of its samples, and the settings that the
 * harness worked by. What was not measured gets its reason. Judges nothing. */
#include <math.h>
#include <string.h>

#include "bench/engine.h"
#include "bench/record.h"
#include "bench/spread.h"

/* ---- throughput ---- */

enum { BATCHES = 10, RANGE_FROM = 6 }; /* of six, least and most hold the middle in 97 % */

struct work {
    struct run *run;
    struct run_case *c;
    const struct sampled *s;
};

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
    double wall = 0, runs = 0, rates[BATCHES];
    for (size_t i = 0; i < s->n_slices; i++) {
        wall += (double)s->slices[i].wall_ns;
        runs += (double)s->slices[i].n;
    }
    w->c->throughput.unit = arena_printf(&w->run->arena, "%s/s", s->unit);
    if (!(wall > 0)) {
        run_unknown(w->run, &w->c->unknown, "throughput", "the runs took no time that the clock can tell");
        return;
    }
    struct run_estimate *rate = &w->c->throughput.rate;
    *rate = (struct run_estimate){.known = true, .value = runs * s->units / wall * 1e9};
    size_t n = batch_rates(s, rates);
    if (n < 2) {
        run_unknown(w->run, &w->c->unknown, "throughput.lo", "measured in one piece: no spread to go by");
        run_unknown(w->run, &w->c->unknown, "throughput.hi", "measured in one piece: no spread to go by");
        return;
    }
    double half = stats_t_quantile((1 + BENCH_CONFIDENCE) / 2, (double)(n - 1)) * stats_stddev(rates, n) /
                  sqrt((double)n);
    double lo = rate->value - half, hi = rate->value + half;
    stats_sort(rates, n);
    if (n >= RANGE_FROM) { /* a few batches that stood still make t reach below 0 */
        lo = fmax(lo, rates[0]);
        hi = fmin(hi, rates[n - 1]);
    }
    rate->lo = known_f64(fmax(lo, 0));
    rate->hi = known_f64(hi);
}

/* ---- all of it ---- */

tare_status summarise(struct run *run, struct run_case *c, const struct sampled *s, tare_error *err)
{
    c->samples = known_u64(s->n);
    c->confidence = known_f64(BENCH_CONFIDENCE);
    c->unit = arena_str(&run->arena, s->unit);
    if (s->units >= 0) c->units_per_run = known_u64((uint64_t)s->units);
    if (s->n == 0) return error_set(err, TARE_INVALID, "case %s: no samples", c->name);
    const struct spread latency = {.run = run,
                                   .c = c,
                                   .into = &c->latency_ns,
                                   .path = "latency_ns",
                                   .ns = s->ns,
                                   .n = s->n,
                                   .waits = s->waits,
                                   .n_waits = s->n_waits};
    tare_status status = spread_put(&latency, err);
    if (status < 0) return status;
    const char *all = s->thinned ? "evenly" : "all";
    run_set_samples(run, c, s->ns, s->n, s->n > RUN_SAMPLES_MAX ? "first" : all);
    put_throughput(&(struct work){run, c, s});
    return TARE_OK;
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
    if (w->instance->subject->ops->load)
        run_unknown(b->run, &c->unknown, "stability.moves", "a service runs where it is");
    else if (!w->open.known)
        c->stability.moves = known_u64(w->moves);
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

/* Slices count samples, and only the subject knows how many runs it put into one. */
static void put_growth_of_a_run(struct run_case *c)
{
    struct run_estimate *g = &c->memory.growth;
    if (!g->known || !c->calls_per_sample.known || c->calls_per_sample.v < 2) return;
    double runs = (double)c->calls_per_sample.v;
    *g = run_estimate(g->value / runs, g->lo.v / runs, g->hi.v / runs);
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

static const char of_service[] = "a service runs in a process of its own, which was not looked at";

/* The case's share on top of what the process held before any case was loaded, so that neighbours do not count. */
static tare_status put_memory(struct bench *b, struct run_case *c, const struct case_work *w, tare_error *err)
{
    const struct memory_track *m = &w->memory;
    if (w->instance->subject->ops->load) {
        run_unknown(b->run, &c->unknown, "memory", "%s", of_service);
        return TARE_OK;
    }
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
    if (w->instance->subject->ops->load) {
        run_unknown(b->run, &c->unknown, "cpu", "%s", of_service);
        return;
    }
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
    if (w->instance->subject->ops->load) {
        run_unknown(b->run, &c->unknown, "io", "%s", of_service);
        return;
    }
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
    if (ops->load) { /* while the service works, so that it is no part of its time */
        c->self.known = true;
        c->self.ns_per_run = c->http.client_ns;
        run_unknown(b->run, &c->unknown, "self.share",
                    "the client works beside the service: http.client_busy");
        return;
    }
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
                              .units = w->units,
                              .unit = b->plan->unit ? b->plan->unit : "runs",
                              .slices = w->slices.items,
                              .n_slices = w->slices.n,
                              .thinned = w->requests.one_in > 1};
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
    uint64_t no_answer = ops->load ? w->requests.counts.due - w->requests.counts.answered : w->waits.n;
    c->failed_runs = known_u64(w->open.known ? w->open.failed.v : no_answer);
    c->load_ns = known_u64(w->load_ns);
    c->first_run_ns = known_u64(w->first_run_ns);
    tare_status s = put_times(b, c, w, err);
    if (s < 0 || (s = put_memory(b, c, w, err)) < 0 || (s = put_gpu_memory(b, c, w, err)) < 0 ||
        (s = outliers_explain(w, &c->outliers, err)) < 0)
        return s;
    if (ops->load && (s = record_http(b, c, w, err)) < 0) return s;
    put_cpu(b, c, w);
    put_io(b, c, w);
    put_self(b, c, w);
    put_stability(b, c, w);
    c->open_loop = w->open;
    tare_error inner = TARE_ERROR_INIT;
    if (ops->report && (s = ops->report(w->instance, b->run, c, &inner)) < 0)
        return error_set(err, s, "case %s: %s", w->what->name, inner.text);
    put_growth_of_a_run(c);
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
    bool by_case = p->cases[0].subject->ops->load != NULL; /* rate and concurrency are parameters of each */
    if (!by_case) run_map_int(a, m, "concurrency", b->workers);
    run_map_text(a, m, "load", p->load == BENCH_OPEN ? "open" : "closed");
    if (p->load == BENCH_OPEN) {
        if (!by_case) run_map_real(a, m, "rate", p->rate);
        run_map_text(a, m, "arrivals", p->replay ? "replay" : arrivals_word(p->arrivals));
        if (p->replay) run_map_text(a, m, "replay", p->replay->name);
        if (p->replay) run_map_real(a, m, "replay_speed", p->replay->speed);
    }
    run_map_int(a, m, "seed", (int64_t)(p->seed & INT64_MAX));
    bool open = p->load == BENCH_OPEN && b->n_cases > 1;
    const char *why = open ? "an open loop needs an unbroken window for each case" : b->split_why;
    run_map_bool(a, m, "interleaved", !why);
    if (why) run_map_text(a, m, "interleaved_why", why);
    if (b->blocks > 1) run_map_int(a, m, "blocks", (int64_t)b->blocks);
    if (bench_interrupted(b)) run_map_bool(a, m, "interrupted", true);
}
