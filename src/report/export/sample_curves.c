/* SPDX-License-Identifier: MIT
 * sample_curves.c - see sample_curves.h. Moments are replayed through the deriver, as for the report page. */
#include "report/export/sample_curves.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/watch/course.h"
#include "core/fmt.h"
#include "core/mem.h"

enum { GONE_LEAST = 2 }; /* moments: what was not read at the last one only was not due */

struct column {
    size_t quantity;  /* of derived_table; DERIVED_NONE: a series */
    size_t series;    /* of the set */
    bool rate;        /* made of a counter: known of all the time since it was read before */
    bool process;     /* of one process, which may end */
    bool known, gaps; /* so far; not known at some moment after it was known */
    unsigned missing; /* moments since it was known */
    double last;      /* NAN: no point, or no bar that goes on */
    uint64_t last_at; /* ns of the trace, of that bar */
    uint32_t number;  /* of its curve, + 1 */
};

struct drawing {
    const struct samples *s;
    const struct trace *t;
    const struct sample_curves_to *to;
    struct column *columns;
    size_t n;
    uint32_t curves;
    tare_error *err;
};

static uint64_t time_on_axis(const struct drawing *d, uint64_t at_ns)
{
    uint64_t start = d->s->at_ns.n ? d->s->at_ns.items[0] : 0;
    if (d->t) return trace_raw_time(d->t, at_ns);
    return at_ns > start ? at_ns - start : 0;
}

static bool value_of(const struct column *c, const struct deriver *now, double *v)
{
    if (c->quantity != DERIVED_NONE) return derived_at(now, c->quantity, "", v);
    return derived_series(now, c->series, v);
}

/* ---- what has gaps ---- */

static tare_status look(struct drawing *d, const struct deriver *now, uint64_t at_ns)
{
    (void)at_ns;
    for (size_t i = 0; i < d->n; i++) {
        struct column *c = &d->columns[i];
        double v;
        bool known = value_of(c, now, &v);
        if (known && c->missing) c->gaps = true;
        c->missing = known || !c->known ? 0 : c->missing + 1;
        c->known |= known;
    }
    return TARE_OK;
}

/* A rate has no gaps: it is of all the time since the counter was read before. Of a process that is not seen any more
 * it is known that it has ended. */
static void looked(struct drawing *d)
{
    for (size_t i = 0; i < d->n; i++) {
        struct column *c = &d->columns[i];
        c->gaps = (c->gaps || c->missing >= GONE_LEAST) && !c->rate && !c->process;
    }
}

/* ---- drawing ---- */

static const char *unit_of(const struct drawing *d, const struct column *c)
{
    const char *unit = c->quantity != DERIVED_NONE
                           ? derived_table[c->quantity].unit
                           : derived_metric_unit(d->s->set.items.items[c->series].metric);
    return strcmp(unit, "1") == 0 ? "" : unit;
}

static tare_status begin_curve(struct drawing *d, struct column *c)
{
    char name[200];
    if (c->quantity != DERIVED_NONE) {
        snprintf(name, sizeof name, "%s", derived_table[c->quantity].name);
    } else {
        const struct series *one = &d->s->set.items.items[c->series];
        const char *metric = metric_table[one->metric].name;
        bool whole = !*one->label;
        snprintf(name, sizeof name, "%s%s%.100s%s", metric, whole ? "" : "[", one->label, whole ? "" : "]");
    }
    c->number = ++d->curves;
    if (c->gaps) return d->to->track(d->to->ctx, c->number - 1, name);
    return d->to->curve(d->to->ctx, c->number - 1, name, unit_of(d, c));
}

static tare_status draw_point(struct drawing *d, struct column *c, uint64_t at_ns, double v)
{
    if (v == c->last) return TARE_OK;
    tare_status s = c->number ? TARE_OK : begin_curve(d, c);
    c->last = v;
    return s == TARE_OK ? d->to->point(d->to->ctx, c->number - 1, time_on_axis(d, at_ns), v) : s;
}

/* What was known until now is a bar; what is known from now on begins one. */
static tare_status draw_bar(struct drawing *d, struct column *c, uint64_t at_ns, double v)
{
    uint64_t now = time_on_axis(d, at_ns);
    const char *unit = unit_of(d, c);
    tare_status s = TARE_OK;
    if (v == c->last) return s;
    if (!isnan(c->last) && !c->number) s = begin_curve(d, c);
    if (!isnan(c->last) && s == TARE_OK) {
        struct shown text = *unit ? show_quantity(unit, c->last) : show_number(c->last);
        struct sample_bar bar = {c->last_at, now, c->last, text.s, unit};
        s = d->to->bar(d->to->ctx, c->number - 1, &bar);
    }
    c->last = v;
    c->last_at = now;
    return s;
}

static uint64_t span_of(const struct column *c, const struct deriver *now)
{
    if (c->quantity != DERIVED_NONE) return derived_span_ns(now, c->quantity);
    return derived_series_ns(now, c->series);
}

/* A brief step makes rates of any height. */
static tare_status draw(struct drawing *d, const struct deriver *now, uint64_t at_ns)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < d->n; i++) {
        struct column *c = &d->columns[i];
        double v = NAN;
        bool known = value_of(c, now, &v) && isfinite(v), ended = !known && c->process && c->number;
        if (c->gaps)
            s = draw_bar(d, c, at_ns, known ? v : NAN);
        else if (ended)
            s = draw_point(d, c, at_ns, 0);
        else if (known && !(c->rate && derived_brief(now)))
            s = draw_point(d, c, at_ns - (c->rate ? span_of(c, now) : 0), v);
    }
    return s;
}

static tare_status replay(struct drawing *d,
                          tare_status (*each)(struct drawing *, const struct deriver *, uint64_t))
{
    struct deriver *now = NULL;
    struct sample moment = SAMPLE_INIT;
    tare_status st = deriver_new(&now, d->err);
    for (size_t i = 0; st == TARE_OK && i < d->s->at_ns.n; i++) {
        st = course_moment(d->s, i, &moment, d->err);
        if (st == TARE_OK) st = deriver_feed(now, &d->s->set, &moment, d->err);
        if (st == TARE_OK) st = each(d, now, d->s->at_ns.items[i]);
    }
    sample_release(&moment);
    deriver_free(now);
    return st;
}

/* What was known at the last moment was so for a step, as far as one can tell. */
static tare_status draw_last(struct drawing *d)
{
    const struct samples *s = d->s;
    size_t n = s->at_ns.n;
    tare_status st = TARE_OK;
    uint64_t step = n > 1 ? s->at_ns.items[n - 1] - s->at_ns.items[n - 2] : 1;
    for (size_t i = 0; st == TARE_OK && n && i < d->n; i++)
        if (d->columns[i].gaps) st = draw_bar(d, &d->columns[i], s->at_ns.items[n - 1] + step, NAN);
    for (size_t i = 0; st == TARE_OK && i < s->marks.n; i++)
        st = d->to->mark(d->to->ctx, time_on_axis(d, s->marks.items[i].at_ns), s->marks.items[i].text);
    return st;
}

static void set_columns(struct drawing *d, size_t derived)
{
    for (size_t i = 0; i < d->n; i++) {
        struct column *c = &d->columns[i];
        *c = (struct column){.quantity = i < derived ? i : DERIVED_NONE, .last = NAN};
        c->rate = i < derived && derived_is_rate(i);
        if (i < derived) continue;
        c->series = i - derived;
        const struct series *one = &d->s->set.items.items[c->series];
        c->rate = metric_table[one->metric].kind == METRIC_COUNTER;
        c->process = strncmp(one->label, "pid ", 4) == 0;
    }
}

tare_status sample_curves(const struct samples *s, const struct trace *t, const struct sample_curves_to *to,
                          tare_error *err)
{
    struct drawing d = {.s = s, .t = t, .to = to, .err = err};
    size_t derived = 0;
    while (derived_table[derived].name) derived++;
    d.n = derived + s->set.items.n;
    d.columns = mem_new(d.n, sizeof *d.columns);
    if (!d.columns) return error_nomem(err, "%zu curves", d.n);
    set_columns(&d, derived);
    tare_status st = replay(&d, look);
    looked(&d);
    if (st == TARE_OK) st = replay(&d, draw);
    if (st == TARE_OK) st = draw_last(&d);
    mem_free(d.columns);
    return st;
}
