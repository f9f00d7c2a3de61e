/* SPDX-License-Identifier: MIT
 * requests.c - see requests.h. */
#include "run/requests.h"

#include <string.h>

#include "run/fields.h"

void requests_release(struct requests *r)
{
    arena_release(&r->arena);
    memset(r, 0, sizeof *r);
}

tare_status requests_hist(const struct requests_times *t, struct hist *out, tare_error *err)
{
    const struct run_histogram *from = &t->histogram;
    *out = (struct hist)HIST_INIT;
    if (!t->known) return TARE_OK;
    if (from->scale != HIST_SCALE)
        return error_set(err, TARE_FORMAT, "histogram.scale: %lld, only %d is taken", (long long)from->scale,
                         HIST_SCALE);
    *out = (struct hist){.counts = from->counts,
                         .n_counts = (uint32_t)from->n_counts,
                         .first = (int32_t)from->offset,
                         .zeros = from->zero,
                         .min = t->min,
                         .max = t->max,
                         .sum = t->sum};
    const char *fault = hist_fault(out);
    if (!fault && out->count == 0) fault = "counts nothing; null says so";
    return fault ? error_set(err, TARE_FORMAT, "histogram: %s", fault) : TARE_OK;
}

/* What the rows cannot say: counts that must agree. */
static tare_status check_route(const struct requests_route *r, tare_error *err)
{
    struct hist latency, first;
    tare_status s = requests_hist(&r->latency_ns, &latency, err);
    if (s != TARE_OK) return error_wrap(err, "latency_ns");
    if (requests_hist(&r->first_byte_ns, &first, err) != TARE_OK) return error_wrap(err, "first_byte_ns");
    if (r->slo.n > REQUESTS_SLOS)
        return error_set(err, TARE_FORMAT, "slo: %zu items, at most %d are allowed", r->slo.n, REQUESTS_SLOS);
    if (r->worst.n > REQUESTS_WORST)
        return error_set(err, TARE_FORMAT, "worst: %zu items, at most %d are allowed", r->worst.n,
                         REQUESTS_WORST);
    for (size_t i = 0; i < r->slo.n; i++) {
        const struct requests_slo *o = r->slo.at[i];
        if (o->within > latency.count || o->breached != latency.count - o->within)
            return error_set(err, TARE_FORMAT,
                             "slo[%zu]: within and breached are not the %llu requests of latency_ns", i,
                             (unsigned long long)latency.count);
    }
    return TARE_OK;
}

static tare_status check_routes(const struct requests *r, tare_error *err)
{
    if (r->routes.n > REQUESTS_ROUTES)
        return error_set(err, TARE_FORMAT, "routes: %zu items, at most %d are allowed", r->routes.n,
                         REQUESTS_ROUTES);
    for (size_t i = 0; i < r->routes.n; i++) {
        if (check_route(r->routes.at[i], err) != TARE_OK) return error_wrap(err, "routes[%zu]", i);
        for (size_t k = 0; k < i; k++)
            if (strcmp(r->routes.at[k]->route, r->routes.at[i]->route) == 0)
                return error_set(err, TARE_FORMAT, "routes[%zu]: is the same route as routes[%zu]", i, k);
    }
    return TARE_OK;
}

tare_status requests_read(struct requests *r, const char *name, const void *bytes, size_t len,
                          tare_error *err)
{
    *r = (struct requests){0};
    struct fields_text text = {name, bytes, len};
    tare_status s = fields_read(&requests_form, &text, r, &r->arena, err);
    if (s == TARE_OK && check_routes(r, err) != TARE_OK) s = error_wrap(err, "%s", name);
    if (s != TARE_OK) requests_release(r);
    return s;
}

tare_status sla_write(const struct sla *a, struct buf *out, tare_error *err)
{
    return fields_write(&sla_form, a, &a->arena, (struct fields_to){out, 0}, err);
}

void sla_release(struct sla *a)
{
    arena_release(&a->arena);
    memset(a, 0, sizeof *a);
}
