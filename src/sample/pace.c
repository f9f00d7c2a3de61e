/* SPDX-License-Identifier: MIT
 * pace.c - see pace.h. What looking took is owed until the budget has paid for it, but for that of one second. A round
 * that cost far more than those around it met something new (a program's symbols, another process): it counts as a
 * dear one and no more, or seconds without a look would pay for it; the first of all counts as nothing. */
#include "sample/pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEAR = 3 }; /* times the median of the last rounds */
static const double lent_ns = 1e9;

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double counted(struct pace *p, uint64_t used)
{
    uint64_t sorted[PACE_ROUNDS];
    if (p->rounds++ == 0) return 0;
    p->last[(p->rounds - 2) % PACE_ROUNDS] = used;
    size_t n = p->rounds - 1 < PACE_ROUNDS ? p->rounds - 1 : PACE_ROUNDS;
    memcpy(sorted, p->last, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_size);
    uint64_t median = sorted[n / 2];
    return fmin((double)used, DEAR * (double)median);
}

uint64_t pace_step(struct pace *p, uint64_t used_ns, uint64_t now_ns)
{
    double since = p->at_ns ? (double)(now_ns - p->at_ns) : 0;
    p->at_ns = now_ns;
    p->owed = fmax(p->owed - p->budget * since, 0) + counted(p, used_ns);
    return (uint64_t)fmax(1e9 / p->hz, p->owed / p->budget - lent_ns);
}
