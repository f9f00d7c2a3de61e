/* SPDX-License-Identifier: MIT
 * plausible.h - how far two runs of one thing may plausibly lie apart where no spread between runs is known. What lies
 * beyond is a verdict with one run, too: of gates (compare_saved.c) and of targets (target.c). docs/comparing.md has
 * the numbers and where they come from. */
#ifndef ANALYZE_PLAUSIBLE_H
#define ANALYZE_PLAUSIBLE_H

#include "analyze/judge/measure.h"

/* How much other work disturbed a case: involuntary switches a run, share of time that the hypervisor took (0 where it
 * does not tell). False: not known. */
bool plausible_disturbed(const struct run_case *c, double *interrupted, double *steal);
bool plausible_is_busy(double interrupted, double steal); /* so much that times are not to be trusted */
/* All its runs took so little together that one interruption is a part of them. */
bool plausible_is_brief(const struct run_case *c);

/* sd of ln of a run's number that no machine exceeds; 0: there is no such number. */
double plausible_sd(const struct measure *m, bool busy, bool brief);
/* The same of the fastest run of one side over the middle of the other, however busy the machine; of times
 * of runs, and of throughput. */
double plausible_fastest_sd(const struct measure *m, bool brief);
/* The ratio of two single runs that no such sd explains: exp(ln(1 + min_effect) + z(1 - alpha) sd sqrt 2). */
double plausible_ratio(double sd, double min_effect, double alpha);

#endif
