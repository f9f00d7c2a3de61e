/* SPDX-License-Identifier: MIT
 * slo.h - what tallies say: percentiles with their bounds, promises kept, budget burnt. Pure arithmetic, in one place
 * for the API, the hourly reports, the dashboard and alert rules. */
#ifndef ANALYZE_SLA_SLO_H
#define ANALYZE_SLA_SLO_H

#include "analyze/sla/tally.h"

#define SLO_HOUR_MS UINT64_C(3600000)

/* The share of bad ones against the share that the objective allows: 1 spends just the budget. NAN: none at all. */
double slo_burn(uint64_t bad, uint64_t all, double objective);

/* The same of one promise in a tally; NAN also where the tally does not know it. */
double slo_burn_of(const struct tally *t, uint64_t threshold_ns, double objective);

/* Fill in the span of `doc`, whose from_ms and to_ms are set. `heat`: with the histogram for a heat map. What found no
 * memory is told when the document is written. */
void slo_span(struct sla *doc, struct sla_span *to, const struct tally *t, bool heat);

/* Fill in the burn rates of a span's promises over the hour and the six hours before its end. */
void slo_windows(struct sla_span *to, const struct tally *hour, const struct tally *six_hours);

/* The percentile of one against that of another, between what the bounds of both allow. */
struct run_estimate slo_ratio(const struct hist *h, const struct hist *base, double q);

void slo_add_worst(struct sla *doc, const struct tally *t);

#endif
