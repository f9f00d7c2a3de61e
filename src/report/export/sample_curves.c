/* SPDX-License-Identifier: MIT
 * sample_curves.c - see sample_curves.h. Moments are replayed through the deriver, as for the report page. */
#include "report/export/sample_curves.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/watch/course.h"
#include "core/mem.h"

struct drawing {
    const struct samples *s;
    const struct sample_curves_to *to;
    size_t derived, columns; /* the first `derived` columns are of derived_table, then come the series */
    double *last;            /* per column; NAN: no point yet */
    uint32_t *number;        /* per column: of its curve, + 1 */
    uint32_t curves;
    tare_error *err;
};

static uint64_t time_on_axis(const struct samples *s, const struct trace *t, uint64_t at_ns)
{
    uint64_t start = s->at_ns.n ? s->at_ns.items[0] : 0;
    if (t) return trace_raw_time(t, at_ns);
    return at_ns > start ? at_ns - start : 0;
}

static tare_status begin_curve(struct drawing *d, size_t column)
{
    char name[200];
    const char *unit;
    if (column < d->derived) {
        snprintf(name, sizeof name, "%s", derived_table[column].name);
        unit = derived_table[column].unit;
    } else {
        const struct series *one = &d->s->set.items.items[column - d->derived];
        const char *metric = metric_table[one->metric].name;
        bool whole = !*one->label;
        snprintf(name, sizeof name, "%s%s%.100s%s", metric, whole ? "" : "[", one->label, whole ? "" : "]");
        unit = derived_metric_unit(one->metric);
    }
    d->number[column] = ++d->curves;
    return d->to->curve(d->to->ctx, d->number[column] - 1, name, strcmp(unit, "1") == 0 ? "" : unit);
}

static tare_status draw(struct drawing *d, size_t column, uint64_t at_ns, double v)
{
    if (!isfinite(v) || v == d->last[column]) return TARE_OK;
    tare_status s = d->number[column] ? TARE_OK : begin_curve(d, column);
    d->last[column] = v;
    return s == TARE_OK ? d->to->point(d->to->ctx, d->number[column] - 1, at_ns, v) : s;
}

static tare_status draw_moment(struct drawing *d, const struct deriver *now, uint64_t at_ns)
{
    tare_status s = TARE_OK;
    double v;
    for (size_t i = 0; s == TARE_OK && i < d->columns; i++) {
        bool known = i < d->derived ? derived_value(now, derived_table[i].name, "", &v)
                                    : derived_series(now, i - d->derived, &v);
        if (known) s = draw(d, i, at_ns, v);
    }
    return s;
}

static tare_status replay(struct drawing *d, const struct trace *t, struct deriver *now,
                          struct sample *moment)
{
    const struct samples *s = d->s;
    size_t mark = 0;
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < s->at_ns.n; i++) {
        uint64_t at = s->at_ns.items[i];
        st = course_moment(s, i, moment, d->err);
        if (st == TARE_OK) st = deriver_feed(now, &s->set, moment, d->err);
        if (st == TARE_OK && !derived_brief(now)) st = draw_moment(d, now, time_on_axis(s, t, at));
    }
    for (; st == TARE_OK && mark < s->marks.n; mark++)
        st = d->to->mark(d->to->ctx, time_on_axis(s, t, s->marks.items[mark].at_ns),
                         s->marks.items[mark].text);
    return st;
}

tare_status sample_curves(const struct samples *s, const struct trace *t, const struct sample_curves_to *to,
                          tare_error *err)
{
    struct drawing d = {.s = s, .to = to, .err = err};
    struct deriver *now = NULL;
    struct sample moment = SAMPLE_INIT;
    while (derived_table[d.derived].name) d.derived++;
    d.columns = d.derived + s->set.items.n;
    d.last = mem_new(d.columns, sizeof *d.last);
    d.number = mem_new(d.columns, sizeof *d.number);
    tare_status st = d.last && d.number ? deriver_new(&now, err) : error_nomem(err, "%zu curves", d.columns);
    for (size_t i = 0; st == TARE_OK && i < d.columns; i++) d.last[i] = NAN;
    if (st == TARE_OK) st = replay(&d, t, now, &moment);
    sample_release(&moment);
    deriver_free(now);
    mem_free(d.last);
    mem_free(d.number);
    return st;
}
