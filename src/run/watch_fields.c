/* SPDX-License-Identifier: MIT
 * watch_fields.c - the rows of watch.h; fields.c says how to add one. */
#include "run/field_rows.h"
#include "run/watch.h"

static const char *check_span(struct known_f64 start, struct known_f64 end)
{
    return start.known && end.known && start.v > end.v ? "start_s is after end_s" : NULL;
}

static const char *check_phase(const void *p)
{
    const struct run_phase *phase = p;
    return check_span(phase->start_s, phase->end_s);
}

static const char *check_alert(const void *p)
{
    const struct run_alert *alert = p;
    return check_span(alert->start_s, alert->end_s);
}

static const char *check_metric(const void *p)
{
    const struct run_metric *m = p;
    return m->min.known && m->max.known && m->min.v > m->max.v ? "min is above max" : NULL;
}

#define HERE run_metric
static const struct run_field metric_rows[] = {
    TEXT("metric", FIELD_REQUIRED, metric, &field_filled),
    TEXT("label", 0, label, NULL),
    TEXT("unit", 0, unit, NULL),
    NUM(samples, U64, 0),
    NUM(mean, F64, 0),
    NUM(min, F64, 0),
    NUM(max, F64, 0),
    NUM(p50, F64, 0),
    NUM(p95, F64, 0),
    NUM(p99, F64, 0),
    NUM(at_max_s, F64, FIELD_POSITIVE),
    NUM(total, F64, 0),
};
TYPE(metric, metric_rows, false, check_metric);
#undef HERE

#define HERE run_phase
static const struct run_field phase_rows[] = {
    TEXT("name", FIELD_REQUIRED, name, &field_word), NUM(start_s, F64, FIELD_POSITIVE),
    NUM(end_s, F64, FIELD_POSITIVE),                 NUM(cpu, F64, FIELD_POSITIVE),
    NUM(gpu, F64, FIELD_POSITIVE),                   NUM(rss, U64, 0),
};
TYPE(phase, phase_rows, false, check_phase);
#undef HERE

#define HERE run_alert
static const struct run_field alert_rows[] = {
    TEXT("rule", FIELD_REQUIRED, rule, &field_filled),
    TEXT("metric", FIELD_REQUIRED, metric, &field_filled),
    NUM(value, F64, 0),
    NUM(threshold, F64, 0),
    NUM(start_s, F64, FIELD_POSITIVE),
    NUM(end_s, F64, FIELD_POSITIVE),
    TEXT("action", 0, action, NULL),
};
TYPE(alert, alert_rows, false, check_alert);
#undef HERE

#define HERE run_carbon
static const struct run_field carbon_rows[] = {
    NUM(grams, F64, FIELD_POSITIVE),
    NUM(measured_joules, F64, FIELD_POSITIVE),
    NUM(estimated_joules, F64, FIELD_POSITIVE),
    NUM(grid_g_per_kwh, F64, FIELD_POSITIVE),
    TEXT("source", 0, source, NULL),
    NUM(lower_bound, BOOL, 0),
    TEXT("absent", 0, absent, NULL),
};
TYPE(carbon, carbon_rows, false, NULL);
#undef HERE

#define HERE run_watch
static const struct run_field watch_rows[] = {
    NUM(interval_s, F64, FIELD_POSITIVE),
    NUM(samples, U64, 0),
    NUM(late, U64, 0),
    NUM(lost, U64, 0),
    NUM(exit_code, U64, 0),
    NUM(signal, U64, 0),
    NUM(still_running, U64, 0),
    NUM(started, U64, 0),
    NUM(tree_rss_peak, U64, 0),
    NUM(rss_peak_at_s, F64, FIELD_POSITIVE),
    NUM(self_cpu_s, F64, FIELD_POSITIVE),
    NUM(hooks, U64, 0),
    NUM(hooks_bad, U64, 0),
    SUB(metrics, LIST, FIELD_REQUIRED, metric),
    SUB(phases, LIST, FIELD_REQUIRED, phase),
    SUB(alerts, LIST, FIELD_REQUIRED, alert),
    SUB(carbon, OBJECT, 0, carbon),
};
TYPE_SHARED(run_type_watch, watch_rows, false, NULL);
#undef HERE

void *run_list_new(struct arena *a, size_t n, size_t size)
{
    char *items = arena_new(a, n ? n : 1, size);
    void **at = items ? arena_new(a, n ? n : 1, sizeof *at) : NULL;
    for (size_t i = 0; at && i < n; i++) at[i] = items + i * size;
    return at;
}
