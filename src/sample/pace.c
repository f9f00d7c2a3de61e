/* SPDX-License-Identifier: MIT
 * pace.c - see pace.h. What looking took is owed until the budget has paid for it, but for that of one second. A round
 * that cost far more than those around it met something new (a program's symbols, another process): it counts as a
 * dear one and no more, or seconds without a look would pay for it; the first of all counts as nothing. */
#include "sample/pace.h"

#include <math.h>
#include <string.h>

#include "core/stats.h"

enum { DEAR = 3 }; /* times the median of the last rounds */
static const double lent_ns = 1e9;

static double counted(struct pace *p, double used)
{
    double sorted[PACE_ROUNDS];
    if (p->rounds++ == 0) return 0;
    p->last[(p->rounds - 2) % PACE_ROUNDS] = used;
    size_t n = p->rounds - 1 < PACE_ROUNDS ? p->rounds - 1 : PACE_ROUNDS;
    memcpy(sorted, p->last, n * sizeof *sorted);
    stats_sort(sorted, n);
    return fmin(used, DEAR * stats_median_sorted(sorted, n));
}

uint64_t pace_step(struct pace *p, uint64_t used_ns, uint64_t now_ns)
{
    double since = p->at_ns ? (double)(now_ns - p->at_ns) : 0;
    p->at_ns = now_ns;
    p->owed = fmax(p->owed - p->budget * since, 0) + counted(p, (double)used_ns);
    return (uint64_t)fmax(1e9 / p->hz, p->owed / p->budget - lent_ns);
}
