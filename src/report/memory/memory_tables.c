/* SPDX-License-Identifier: MIT
 * memory_tables.c - see memory_tables.h: tables by question for people, one list for programs. */
#include "report/memory/memory_tables.h"

#include <inttypes.h>
#include <math.h>

#include "core/fmt.h"
#include "report/memory/memory_words.h"

enum { ROWS_SHOWN = 20 };

/* ---- tables for people ---- */

struct question {
    const char *heading, *first;
    double (*rank)(const struct memory_group *g); /* 0 and less: not in the table */
    struct memory_bytes (*value)(const struct memory_group *g);
    struct memory_bytes (*whole)(const struct memory_process *p);
    struct memory_bytes (*below)(const struct memory_group *g); /* NULL: at the end in its place */
};

static struct memory_bytes value_peak(const struct memory_group *g)
{
    return g->own.at_peak;
}
static double rank_peak(const struct memory_group *g)
{
    return g->own.at_peak.sum;
}
static struct memory_bytes peak_below(const struct memory_group *g)
{
    return g->peak_below;
}
static double rank_below(const struct memory_group *g)
{
    return g->peak_below.sum > g->own.at_peak.sum * 1.001 ? g->peak_below.sum : 0;
}
static struct memory_bytes whole_peak(const struct memory_process *p)
{
    return p->peak;
}
static struct memory_bytes value_end(const struct memory_group *g)
{
    return g->own.at_end;
}
static double rank_end(const struct memory_group *g)
{
    return g->own.at_end.sum;
}
static struct memory_bytes end_below(const struct memory_group *g)
{
    return g->end_below;
}
static struct memory_bytes whole_end(const struct memory_process *p)
{
    return p->at_end;
}
static double rank_churn(const struct memory_group *g)
{
    return g->own.churn.sum;
}
static struct memory_bytes value_churn(const struct memory_group *g)
{
    return g->own.churn;
}
static struct memory_bytes whole_churn(const struct memory_process *p)
{
    return p->churn;
}
static struct memory_bytes churn_below(const struct memory_group *g)
{
    return g->churn_below;
}
static double rank_growth(const struct memory_group *g)
{
    return memory_site_grows(&g->own) ? g->own.growth.rate : 0;
}

static const struct question at_peak = {"held at the peak", "held",     rank_peak,
                                        value_peak,         whole_peak, peak_below};
static const struct question with_callees = {
    "held at the peak with what it calls", "held", rank_below, peak_below, whole_peak, value_peak};
static const struct question at_end = {"held when the record ends", "held", rank_end, value_end, whole_end, end_below};
static const struct question churned = {
    "freed within 1 ms", "churn", rank_churn, value_churn, whole_churn, churn_below};
static const struct question growing = {"growing", "rate", rank_growth, NULL, NULL, NULL};

/* The largest first; of equals the one that comes first in the list. */
static const struct memory_group *next_of(const struct question *q, const struct memory_groups *all,
                                          const struct memory_group *last)
{
    const struct memory_group *best = NULL;
    for (size_t i = 0; i < all->n; i++) {
        const struct memory_group *g = &all->all[i];
        double rank = q->rank(g);
        bool after = !last || rank < q->rank(last) || (rank == q->rank(last) && g > last);
        if (rank > 0 && after && (!best || rank > q->rank(best))) best = g;
    }
    return best;
}

void memory_say_heading(struct answer *a, const char *heading)
{
    answer_say(a, "\n%s%s%s\n", a->stream.style.bold, heading, a->stream.style.plain);
}

struct asking {
    struct answer *a;
    const struct question *q;
    const struct memory_process *p;
    const struct memory_groups *all;
};

static bool shows_below(const struct asking *x)
{
    return x->q->below && x->all->by != MEMORY_BY_STACK;
}

static void say_row(const struct asking *x, const struct memory_group *g)
{
    struct answer *a = x->a;
    if (x->q->value) {
        double whole = x->q->whole(x->p).sum;
        memory_add_bytes(answer_text(a), x->q->value(g));
        fmt_share(answer_text(a), whole > 0 ? x->q->value(g).sum / whole : 0);
    } else {
        const struct growth *r = &g->own.growth;
        answer_say(a, "%s/min (%s to %s)", show_bytes(r->rate * 60).s, show_bytes(r->lo * 60).s,
                   show_bytes(r->hi * 60).s);
        answer_say(a, "%s", show_percent(r->confidence).s);
    }
    memory_add_bytes(answer_text(a), shows_below(x) ? x->q->below(g) : g->own.at_end);
    fmt_count(answer_text(a), memory_whole(g->own.allocations));
    memory_add_group(answer_text(a), g, x->all->by);
}

/* A thousandth of the whole and more; of what grows, everything. */
static bool is_worth_a_row(const struct asking *x, const struct memory_group *g)
{
    return !x->q->whole || x->q->rank(g) >= x->q->whole(x->p).sum / 1000;
}

static void say_table(const struct asking *x)
{
    const char *other = x->q == &with_callees ? "own" : "with callees";
    struct table_column columns[] = {
        {x->q->first, false}, {x->q->value ? "share" : "confidence", false},
        {shows_below(x) ? other : "at the end", false}, {"allocations", false},
        {memory_by_words[x->all->by], true}};
    size_t n = 0;
    const struct memory_group *g = next_of(x->q, x->all, NULL);
    if (!g) return;
    memory_say_heading(x->a, x->q->heading);
    answer_table(x->a, NULL, columns, sizeof columns / sizeof *columns);
    for (; g && n < ROWS_SHOWN && (n == 0 || is_worth_a_row(x, g)); n++, g = next_of(x->q, x->all, g)) say_row(x, g);
    answer_table_end(x->a);
    if (g) answer_say(x->a, "the %zu largest (--json has all)\n", n);
}

void memory_say_tables(struct answer *a, const struct memory_process *p, const struct memory_groups *all)
{
    const struct question *const asked[] = {p->closed ? NULL : &at_end, &at_peak,
                                            all->by == MEMORY_BY_STACK ? NULL : &with_callees, &growing, &churned};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        if (asked[i]) say_table(&(struct asking){a, asked[i], p, all});
}

/* ---- lists for programs ---- */

static void put_frames(struct answer *a, const struct memory_site *s)
{
    static const char *const kinds[] = {
        [MEMORY_NATIVE] = "native", [MEMORY_PYTHON] = "python", [MEMORY_SCOPE] = "scope", [MEMORY_CUT] = "cut"};
    int n = 0;
    answer_list(a, "frames");
    for (const struct memory_frame_named *f = s->frame; f && n < MEMORY_FRAMES_MOST; f = f->caller, n++) {
        answer_object_flat(a, NULL);
        answer_str(a, "kind", kinds[f->kind], NULL);
        answer_str(a, "name", f->name, NULL);
        answer_str(a, "file", f->file, NULL);
        if (f->line)
            answer_uint(a, "line", f->line, NULL);
        else
            answer_null(a, "line", NULL);
        if (f->kind == MEMORY_NATIVE) {
            answer_uint(a, f->file ? "offset" : "address", f->offset, NULL);
            answer_str(a, "source", f->source, NULL);
            answer_bool(a, "inlined", f->inlined, NULL);
        }
        answer_object_end(a);
    }
    answer_list_end(a);
}

static void put_growth(struct answer *a, const struct memory_site *s)
{
    if (!s->judged) {
        answer_null(a, "growth", NULL);
        return;
    }
    answer_object_flat(a, "growth");
    answer_str(a, "verdict", s->growth.verdict, NULL);
    answer_f64(a, "confidence", s->growth.confidence, NULL);
    answer_f64(a, "bytes_per_s", s->growth.rate, NULL);
    answer_f64(a, "lo", s->growth.lo, NULL);
    answer_f64(a, "hi", s->growth.hi, NULL);
    answer_object_end(a);
}

static void put_lifetimes(struct answer *a, const double *counts)
{
    uint64_t below = 1000;
    answer_list(a, "lifetimes");
    for (size_t i = 0; i < MEMORY_LIFETIMES; i++, below *= 10) {
        answer_object_flat(a, NULL);
        if (i + 1 < MEMORY_LIFETIMES)
            answer_uint(a, "below_ns", below, NULL);
        else
            answer_null(a, "below_ns", NULL);
        answer_f64(a, "allocations", counts[i], NULL);
        answer_object_end(a);
    }
    answer_list_end(a);
}

static void put_series(struct answer *a, const char *key, const double *values)
{
    if (!values) {
        answer_null(a, key, NULL);
        return;
    }
    answer_list(a, key);
    for (size_t i = 0; i < MEMORY_MOMENTS; i++) answer_f64(a, NULL, values[i], NULL);
    answer_list_end(a);
}

static void put_site(struct answer *a, const struct memory_site *s)
{
    memory_put_bytes(a, "at_peak", s->at_peak);
    memory_put_bytes(a, "at_end", s->at_end);
    memory_put_bytes(a, "allocated", s->allocated);
    answer_f64(a, "allocations", s->allocations, NULL);
    memory_put_bytes(a, "churn", s->churn);
    answer_f64(a, "churned", s->churned, NULL);
    put_growth(a, s);
}

void memory_put_sites(struct answer *a, const struct memory_process *p)
{
    answer_list(a, "sites");
    for (size_t i = 0; i < p->n_sites; i++) {
        answer_object(a, NULL);
        put_site(a, &p->sites[i]);
        put_frames(a, &p->sites[i]);
        answer_object_end(a);
        stream_poll(&a->stream);
    }
    answer_list_end(a);
}

static void put_group(struct answer *a, const struct memory_group *g, enum memory_by by)
{
    const struct memory_frame_named *f = g->own.frame;
    bool named = by == MEMORY_BY_LIBRARY || by == MEMORY_BY_SCOPE;
    answer_object(a, NULL);
    answer_str(a, "name", named || !f ? g->name : f->name, NULL);
    answer_str(a, "file", named || !f ? NULL : f->file, NULL);
    if (by == MEMORY_BY_LINE && f && f->line)
        answer_uint(a, "line", f->line, NULL);
    else
        answer_null(a, "line", NULL);
    if (by == MEMORY_BY_LINE && f && f->kind == MEMORY_NATIVE) answer_uint(a, "offset", f->offset, NULL);
    put_site(a, &g->own);
    memory_put_bytes(a, "at_peak_with_callees", g->peak_below);
    memory_put_bytes(a, "at_end_with_callees", g->end_below);
    memory_put_bytes(a, "allocated_with_callees", g->allocated_below);
    memory_put_bytes(a, "churn_with_callees", g->churn_below);
    put_lifetimes(a, g->own.lifetimes);
    put_series(a, "held_over_time", g->own.series);
    answer_object_end(a);
    stream_poll(&a->stream);
}

void memory_put_groups(struct answer *a, const struct memory_groups *all)
{
    answer_str(a, "by", memory_by_words[all->by], NULL);
    if (all->by == MEMORY_BY_STACK) return; /* sites has them */
    answer_list(a, "groups");
    for (size_t i = 0; i < all->n; i++) put_group(a, &all->all[i], all->by);
    answer_list_end(a);
}

void memory_put_times(struct answer *a, const struct memory_process *p)
{
    put_lifetimes(a, p->lifetimes);
    put_series(a, "held_over_time", p->moments);
}
