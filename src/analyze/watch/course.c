/* SPDX-License-Identifier: MIT
 * course.c - see course.h. */
#include "analyze/watch/course.h"

#include <math.h>

const char *const course_names[COURSE_COUNT] = {
#define X(id, name) name,
    COURSE_MAP(X)
#undef X
};

void course_release(struct course *c)
{
    vec_release(&c->steps);
}

/* ---- feeding ---- */

static double span_ns(const struct course_step *s)
{
    return (double)(s->end_ns - s->start_ns);
}

/* Put b, which follows a, into a. */
static void join(struct course_step *a, const struct course_step *b)
{
    double wa = span_ns(a), wb = span_ns(b);
    for (size_t q = 0; q < COURSE_COUNT; q++) {
        double x = a->value[q], y = b->value[q];
        if (isnan(y)) continue;
        bool both = !isnan(x) && wa + wb > 0;
        a->value[q] = both ? (x * wa + y * wb) / (wa + wb) : y;
    }
    a->end_ns = b->end_ns;
}

static void halve(struct course *c)
{
    size_t n = c->steps.n / 2;
    for (size_t i = 0; i < n; i++) {
        struct course_step both = c->steps.items[2 * i];
        join(&both, &c->steps.items[2 * i + 1]);
        c->steps.items[i] = both;
    }
    c->steps.n = n;
    c->joined *= 2;
}

/* A counter that was not read at every sample has its rate over all the steps since it was. */
static void fill_back(struct course *c, const struct deriver *d, const struct course_step *now)
{
    for (size_t q = 0; q < COURSE_COUNT; q++) {
        uint64_t span = isnan(now->value[q]) ? 0 : derived_span_ns(d, c->index[q]);
        for (size_t i = c->steps.n; i-- > 0;) {
            struct course_step *s = &c->steps.items[i];
            if (s->start_ns + span < now->end_ns || !isnan(s->value[q])) break;
            s->value[q] = now->value[q];
        }
    }
}

/* Samples are joined to steps of `joined` each, so that a step is never shorter than those before it. */
tare_status course_feed(struct course *c, const struct deriver *d, uint64_t at_ns, tare_error *err)
{
    if (c->last_ns == 0) {
        c->start_ns = c->last_ns = at_ns;
        for (size_t q = 0; q < COURSE_COUNT; q++) c->index[q] = derived_index(course_names[q]);
    }
    if (at_ns <= c->last_ns) return TARE_OK;
    struct course_step now = {.start_ns = c->last_ns, .end_ns = at_ns};
    for (size_t q = 0; q < COURSE_COUNT; q++)
        if (!derived_at(d, c->index[q], "", &now.value[q])) now.value[q] = NAN;
    c->last_ns = at_ns;
    fill_back(c, d, &now);
    if (derived_brief(d) && c->steps.n) { /* too short to be a step of its own */
        join(vec_last(&c->steps), &now);
        return TARE_OK;
    }
    if (c->pending) {
        join(vec_last(&c->steps), &now);
        c->pending = (c->pending + 1) % c->joined;
        return TARE_OK;
    }
    if (c->steps.n == COURSE_STEPS_MAX) halve(c);
    tare_status s = vec_push(&c->steps, now, err);
    if (s == TARE_OK) c->pending = 1 % c->joined;
    return s;
}

tare_status course_moment(const struct samples *s, size_t moment, struct sample *out, tare_error *err)
{
    tare_status st = TARE_OK;
    sample_clear(out);
    out->at_ns = s->at_ns.items[moment];
    for (size_t i = 0; st == TARE_OK && i < s->columns.n; i++)
        st = sample_set(out, i, s->columns.items[i][moment], err);
    return st;
}

/* ---- asking ---- */

double course_seconds(const struct course *c, size_t step)
{
    uint64_t at = step < c->steps.n ? c->steps.items[step].start_ns : c->last_ns;
    return (double)(at - c->start_ns) / 1e9;
}

double course_mean(const struct course *c, enum course_quantity q, size_t from, size_t to)
{
    double sum = 0, known = 0;
    for (size_t i = from; i < to && i < c->steps.n; i++) {
        const struct course_step *s = &c->steps.items[i];
        if (isnan(s->value[q])) continue;
        sum += s->value[q] * span_ns(s);
        known += span_ns(s);
    }
    return known > 0 ? sum / known : NAN;
}

static bool all_hold(const struct course_step *step, const struct course_condition *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x = step->value[all[i].quantity];
        bool holds = all[i].op == '>' ? x > all[i].threshold : x < all[i].threshold;
        if (all[i].op && !holds) return false; /* NAN is neither */
    }
    return true;
}

/* The longest stretch is what a finding shows; the share of all of them is what it is judged by. */
struct course_span course_when(const struct course *c, const struct course_condition *all, size_t n)
{
    struct course_span out = {0, 0, 0};
    double total = 0, longest = 0, run = 0;
    size_t from = 0;
    for (size_t i = 0; i < c->steps.n; i++) {
        double ns = span_ns(&c->steps.items[i]);
        total += ns;
        if (!all_hold(&c->steps.items[i], all, n)) {
            run = 0;
            from = i + 1;
            continue;
        }
        out.share += ns;
        run += ns;
        if (run <= longest) continue;
        longest = run;
        out.from = from;
        out.to = i + 1;
    }
    out.share = total > 0 ? out.share / total : 0;
    return out;
}
