/* SPDX-License-Identifier: MIT
 * gaps.c - see gaps.h. */
#include "load/gaps.h"

#include <math.h>
#include <string.h>

#include "core/stats.h"

#define LEVEL 0.95

tare_status gap_add(struct gap_list *l, uint64_t ns, tare_error *err)
{
    uint64_t v = (ns + GAP_UNIT_NS / 2) / GAP_UNIT_NS;
    return vec_push(&l->at, v < UINT32_MAX ? (uint32_t)v : UINT32_MAX, err);
}

void gaps_release(struct gaps *g)
{
    vec_release(&g->all);
    vec_release(&g->ends);
}

void gaps_clear(struct gaps *g)
{
    g->all.n = g->ends.n = 0;
    g->left_out = 0;
}

void gaps_take(struct gaps *g, struct gap_list *stream)
{
    size_t n = stream->at.n;
    stream->at.n = 0;
    if (!n) return;
    if (g->all.n + n > GAPS_MOST || vec_reserve(&g->all, g->all.n + n, NULL) < 0 ||
        vec_push(&g->ends, g->all.n + n, NULL) < 0) {
        g->left_out++;
        return;
    }
    memcpy(g->all.items + g->all.n, stream->at.items, n * sizeof *stream->at.items);
    g->all.n += n;
}

double gaps_share_below(const struct gaps *g, uint64_t ns)
{
    size_t below = 0;
    for (size_t i = 0; i < g->all.n; i++) below += (uint64_t)g->all.items[i] * GAP_UNIT_NS < ns;
    return g->all.n ? (double)below / (double)g->all.n : NAN;
}

/* As how many independent gaps these count where the share of those up to `x` is looked at: by how far the streams'
 * own shares are from the whole's. */
static double worth(const struct gaps *g, double x, double q)
{
    double squares = 0, m = (double)g->ends.n, n = (double)g->all.n;
    size_t i = 0;
    for (size_t s = 0; s < g->ends.n; s++) {
        double off = 0;
        for (; i < g->ends.items[s]; i++) off += ((double)g->all.items[i] <= x ? 1 : 0) - q;
        squares += off * off;
    }
    double variance = squares / (n * n) * m / (m - 1);
    double n_eff = variance > 0 ? q * (1 - q) / variance : m;
    return fmin(fmax(n_eff, 1), n);
}

tare_status gaps_quantiles(const struct gaps *g, const double q[], size_t n, struct interval out[],
                           tare_error *err)
{
    for (size_t k = 0; k < n; k++) out[k] = (struct interval){NAN, NAN, NAN};
    if (g->ends.n < 2) return TARE_OK;
    double *x = mem_new(g->all.n, sizeof *x);
    if (!x) return error_nomem(err, "%zu gaps", g->all.n);
    for (size_t i = 0; i < g->all.n; i++) x[i] = g->all.items[i];
    stats_sort(x, g->all.n);
    for (size_t k = 0; k < n; k++) {
        double at = stats_quantile_sorted(x, g->all.n, q[k]);
        struct interval v = stats_quantile_interval_sorted(x, g->all.n, worth(g, at, q[k]), q[k], LEVEL);
        out[k] = (struct interval){v.value * GAP_UNIT_NS, v.lo * GAP_UNIT_NS, v.hi * GAP_UNIT_NS};
    }
    mem_free(x);
    return TARE_OK;
}
