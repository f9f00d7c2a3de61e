/* SPDX-License-Identifier: MIT
 * machine.c - the machine while a case runs: its clock, the share of memory of the case while others may be loaded
 * beside it, what else happened (switches against its will, migrations, stolen time, throttling), and whether runs far
 * slower than the others coincide with that. */
#include <math.h>

#include "bench/engine.h"
#include "bench/steady.h"
#include "core/clock.h"

/* ---- the real clock and memory behind bench_machine ---- */

enum { SPIN_NS = 60000 }; /* the kernel wakes a sleeper late by about this: the rest is spun */

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void pause_until(uint64_t ns)
{
    uint64_t now = clock_raw_ns();
    if (now + SPIN_NS < ns) {
        uint64_t left = ns - now - SPIN_NS; /* the sleep knows no CLOCK_MONOTONIC_RAW: go by the difference */
        struct timespec t = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
        return;
    }
    while (clock_raw_ns() < ns) relax();
}

static struct known_u64 rss(void)
{
    return procstat_rss("");
}

static struct known_u64 available(void)
{
    return memory_available("");
}

static void gpu(struct gpu_own *out)
{
    static struct nvml nvml;
    gpu_own_read(&nvml, out, "");
}

static struct known_u64 busy(void)
{
    struct cpu_ticks t = cpu_ticks_read("");
    long hz = sysconf(_SC_CLK_TCK);
    if (!t.known || hz <= 0) return (struct known_u64){0};
    return known_u64((t.all - t.idle) * (NS_PER_S / (uint64_t)hz));
}

const struct bench_machine bench_machine_system = {clock_raw_ns, pause_until, rss,        available,
                                                   gpu,          busy,        places_move};
struct bench_machine bench_machine = {clock_raw_ns, pause_until, rss, available, gpu, busy, places_move};

/* ---- memory: what it grew by from before a case's loading, and during the case's own slices ---- */

enum { SEGMENTS = 12, LEAST_SEGMENTS = 6 };

tare_status memory_before(struct memory_track *m, struct subject *s, struct known_u64 base, tare_error *err)
{
    struct process_state at;
    tare_status status = process_take(s, true, &at, err);
    if (status < 0) return status;
    *m = (struct memory_track){.known = base.known && at.rss.known, .base = base.v, .before = at.rss.v};
    m->reset = at.peak_reset;
    m->old_peak = at.rss_peak.v;
    return status;
}

tare_status memory_loaded(struct memory_track *m, struct subject *s, tare_error *err)
{
    struct process_state at;
    if (!m->known) return TARE_OK;
    tare_status status = process_take(s, false, &at, err);
    if (status < 0) return status;
    struct known_u64 now = at.rss, peak = at.rss_peak;
    m->loaded = now.known ? (int64_t)(now.v - m->before) : 0;
    m->peak = m->loaded;
    /* The mark counts if it was set back, or has been passed since. */
    bool ours = peak.known && (m->reset || peak.v > m->old_peak);
    bool real = bench_machine.rss == bench_machine_system.rss; /* a test's memory has no mark */
    if (ours && real && (int64_t)(peak.v - m->before) > m->peak) m->peak = (int64_t)(peak.v - m->before);
    return status;
}

void memory_slice(struct memory_track *m, struct slice *slice, const struct reading *before,
                  const struct reading *after)
{
    if (!m->known || !before->rss.known || !after->rss.known) return;
    slice->growth = (int64_t)(after->rss.v - before->rss.v);
    m->grown += slice->growth;
    int64_t share = m->loaded + m->grown;
    if (share > m->peak) m->peak = share;
    m->share_sum += (double)share;
    m->readings++;
}

/* ---- growth per run ---- */

/* Does memory grow with every run? Slices are joined to at most 12 segments of about as many runs, and each segment's
 * growth is divided by its runs. The centre of these rates (Hodges-Lehmann), with its signed-rank interval, is not
 * moved by an allocator that grows once, however much, and is by growth that goes on: a leak is an interval above 0. */
tare_status memory_slope(const struct slices *slices, struct interval *out, bool *known, tare_error *err)
{
    double rates[SEGMENTS], runs = 0, growth = 0, all = 0;
    size_t n = 0;
    *known = false;
    for (size_t i = 0; i < slices->n; i++) all += (double)slices->items[i].runs;
    for (size_t i = 0; i < slices->n && n < SEGMENTS; i++) {
        runs += (double)slices->items[i].runs;
        growth += (double)slices->items[i].growth;
        if (runs <= 0 || (runs < all / SEGMENTS && i + 1 < slices->n)) continue;
        rates[n++] = growth / runs;
        runs = growth = 0;
    }
    if (n < LEAST_SEGMENTS) return TARE_OK;
    tare_status s = stats_hodges_lehmann(rates, n, BENCH_CONFIDENCE, out, err);
    *known = s == TARE_OK;
    return s;
}

/* ---- what else happened ---- */

enum { LEAST_FOR_OUTLIERS = 20 };

tare_status process_take(struct subject *s, bool reset, struct process_state *out, tare_error *err)
{
    *out = (struct process_state){0};
    if (s->ops->process) return s->ops->process(s, reset, out, err);
    out->rss = bench_machine.rss();
    out->rss_peak = procstat_rss_peak("");
    out->peak_reset = reset && procstat_rss_peak_reset("");
    return TARE_OK;
}

tare_status reading_take(struct subject *s, struct reading *out, tare_error *err)
{
    struct process_state state;
    tare_status status = TARE_OK;
    out->pid = 0;
    out->ticks = cpu_ticks_read("");
    out->throttled_ns = cgroup_throttled_ns("");
    if (!s->ops->process) { /* the peak is not asked for: it takes reading one more file */
        procstat_read(&out->process, "");
        out->rss = bench_machine.rss();
        return status;
    }
    if ((status = process_take(s, false, &state, err)) < 0) return status;
    out->pid = state.pid;
    out->process = state.used;
    out->rss = state.rss;
    return status;
}

/* Ticks that ran backwards, as stolen ones may, are left out: a difference that wraps would be a theft
 * without end. Unknown stays unknown and does not become 0. */
void disturbance_add(struct case_work *w, struct slice *slice, const struct reading *before,
                     const struct reading *after)
{
    struct reading *d = &w->disturbed;
    struct procstat used = procstat_since(&after->process, &before->process);
    procstat_add(&d->process, &used);
    if (before->ticks.known && after->ticks.known && after->ticks.all >= before->ticks.all &&
        after->ticks.steal >= before->ticks.steal) {
        d->ticks.known = true;
        d->ticks.steal += after->ticks.steal - before->ticks.steal;
        d->ticks.all += after->ticks.all - before->ticks.all;
        slice->stolen = after->ticks.steal > before->ticks.steal;
    }
    if (before->throttled_ns.known && after->throttled_ns.known &&
        after->throttled_ns.v >= before->throttled_ns.v) {
        uint64_t more = after->throttled_ns.v - before->throttled_ns.v;
        d->throttled_ns = known_u64(d->throttled_ns.v + more);
        slice->throttled = more > 0;
    }
}

/* ---- outliers ---- */

/* From where on a run is an outlier: 5 robust deviations above the median (1.4826 MAD is the deviation of a normal
 * spread, and does not feel the outliers themselves), and at least half the median above it: on a very quiet machine 5
 * deviations are next to nothing, and nobody asks about them. */
static tare_status find_limit(const struct times *t, double *out, tare_error *err)
{
    double middle, mad, *x = stats_doubles(t->items, t->n, err);
    if (!x) return TARE_NOMEM;
    tare_status s = stats_median(x, t->n, &middle, err);
    if (s == TARE_OK) s = stats_mad(x, t->n, &mad, err);
    if (s == TARE_OK) *out = middle + fmax(5 * 1.4826 * mad, 0.5 * middle);
    mem_free(x);
    return s;
}

/* Did something else happen meanwhile? The group was throttled or the machine robbed during its slice, or the system
 * took the processor away during this very run. */
static bool has_excuse(const struct case_work *w, const struct slice *slice, uint64_t sample, size_t *at)
{
    while (*at < w->switched.n && w->switched.items[*at] < sample) ++*at; /* both in rising order */
    return slice->throttled || slice->stolen || (*at < w->switched.n && w->switched.items[*at] == sample);
}

/* An open window is one piece without slices, so that nothing can be placed in it: there the outliers are
 * counted and not explained. `at` moves through the switched runs only forwards, as samples and slices are
 * in the order of time. */
tare_status outliers_explain(const struct case_work *w, struct run_outliers *out, tare_error *err)
{
    *out = (struct run_outliers){0};
    double limit = 0;
    if (w->samples.n < LEAST_FOR_OUTLIERS) return TARE_OK;
    tare_status s = find_limit(&w->samples, &limit, err);
    if (s < 0) return s;
    uint64_t count = 0, explained = 0;
    size_t at = 0;
    for (size_t i = 0; i < w->slices.n && !w->open.known; i++) {
        const struct slice *slice = &w->slices.items[i];
        for (size_t k = slice->first; k < slice->first + slice->n; k++)
            if ((double)w->samples.items[k] > limit) explained += has_excuse(w, slice, k, &at);
    }
    for (size_t i = 0; i < w->samples.n; i++) count += (double)w->samples.items[i] > limit;
    *out = (struct run_outliers){
        .known = true, .count = known_u64(count), .limit_ns = known_u64((uint64_t)limit)};
    if (!w->open.known) out->explained = known_u64(explained); /* in one piece: nothing to place them in */
    return TARE_OK;
}
