/* SPDX-License-Identifier: MIT
 * interval.h - a number with the interval it is known to, lo <= value <= hi, at a level that its user states (0.95
 * unless said). NAN: not known, the number or only its bounds; infinite: an open end. The one type for computing with
 * such numbers. Documents have their own (run/value.h: struct run_estimate), because there a zeroed struct must mean
 * "unknown", and an open end is null. */
#ifndef CORE_INTERVAL_H
#define CORE_INTERVAL_H

#include <math.h>

struct interval {
    double value, lo, hi;
};

/* The wider of its two halves; NAN: unknown. */
static inline double interval_half(struct interval i)
{
    return fmax(i.hi - i.value, i.value - i.lo);
}

#endif
