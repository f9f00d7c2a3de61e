/* SPDX-License-Identifier: MIT
 * interference.c - what else happened while a case ran: switches against its will, migrations, stolen time,
 * throttling; and whether runs far slower than the others coincide with it. */
#include <math.h>

#include "bench/engine.h"
#include "bench/steady.h"

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
    out->ticks = cpu_ticks_read("");
    out->throttled_ns = cgroup_throttled_ns("");
    if (!s->ops->process) { /* the peak is not asked for: it takes reading one more file */
        procstat_read(&out->process, "");
        out->rss = bench_machine.rss();
        return status;
    }
    if ((status = process_take(s, false, &state, err)) < 0) return status;
    out->process = state.used;
    out->rss = state.rss;
    return status;
}

void disturbance_add(struct case_work *w, struct slice *slice, const struct reading *before,
                     const struct reading *after)
{
    struct disturbance *d = &w->disturbed;
    struct procstat used = procstat_since(&after->process, &before->process);
    procstat_add(&d->process, &used);
    if (before->ticks.known && after->ticks.known && after->ticks.all >= before->ticks.all &&
        after->ticks.steal >= before->ticks.steal) {
        d->ticks.known = true;
        d->ticks.steal += after->ticks.steal - before->ticks.steal;
        d->ticks.all += after->ticks.all - before->ticks.all;
        slice->stolen = after->ticks.steal > before->ticks.steal;
    }
    if (before->throttled_ns.known && after->throttled_ns.known) {
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
    double middle, mad, *x = times_copy(t->items, t->n, err);
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
