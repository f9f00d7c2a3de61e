/* SPDX-License-Identifier: MIT
 * memory.c - a case's share of the process's memory, while other cases may be loaded beside it: what memory
 * grew by from before its loading, and by what it grew during its own slices. Growth per run is the evidence
 * for a leak. */
#include "bench/engine.h"

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
