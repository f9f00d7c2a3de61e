/* SPDX-License-Identifier: MIT
 * sla_ask.h - what the store knows of a service, put together: any span of time, and the report of an hour or a day. A
 * report is a function of what was received up to the time it was sealed: asked again it is the same, and what comes
 * late makes another revision. Judges by analyze/sla/slo.h alone. */
#ifndef SERVER_SLA_ASK_H
#define SERVER_SLA_ASK_H

#include "run/requests.h"
#include "store/store.h"

enum { SLA_STEPS_MAX = 1000, SLA_HOSTS_SHOWN = 10, SLA_MISSING_SHOWN = 20 };

struct sla_ask {
    const char *project, *service;
    const char *route; /* NULL: all */
    int64_t from_ms, to_ms;
    int64_t step_ms; /* 0: no steps */
};

/* `out` is zeroed; release it in any case. TARE_INVALID: too much for one answer. */
tare_status sla_span_read(struct store *s, const struct sla_ask *a, struct sla *out, tare_error *err);
/* The promises of the six hours before to_ms in out->total, each with its burn rates; the rest is left out. */
tare_status sla_burns_read(struct store *s, const struct sla_ask *a, struct sla *out, tare_error *err);

struct sla_seals {
    int64_t ms[64]; /* of revision i + 1 */
    size_t n;
};
/* The revisions of the report of a span that are sealed by `now_ms`. None: there is no report (yet). */
tare_status sla_seals_read(struct store *s, const struct sla_ask *span, int64_t now_ms, struct sla_seals *out,
                           tare_error *err);

/* The report of a span as it was sealed. */
tare_status sla_report_read(struct store *s, const struct sla_ask *span, int64_t seal_ms, struct sla *out,
                            tare_error *err);

#endif
