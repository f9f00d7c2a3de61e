/* SPDX-License-Identifier: MIT
 * comparison.c - see comparison.h: making a comparison document, filling it in, its text. */
#include "run/comparison.h"

#include <string.h>

#include "run/fields.h"

tare_status comparison_init(struct comparison *c, const char *method, tare_error *err)
{
    struct run like = {0};
    tare_status s = run_init(&like, "compare", err); /* id, time and tool as every document has them */
    if (s < 0) return s;
    *c = (struct comparison){
        .arena = like.arena, .id = like.id, .created = like.created, .tool = like.tool, .method = method};
    return TARE_OK;
}

void comparison_release(struct comparison *c)
{
    arena_release(&c->arena);
    memset(c, 0, sizeof *c);
}

struct comparison_case *comparison_add_case(struct comparison *c, const char *name)
{
    struct comparison_case *to = RUN_LIST_ADD(&c->arena, &c->cases);
    if (to) to->name = arena_str(&c->arena, name);
    return to;
}

struct comparison_metric *comparison_add_metric(struct comparison *c, struct comparison_case *to,
                                                const char *metric)
{
    struct comparison_metric *m = RUN_LIST_ADD(&c->arena, &to->metrics);
    if (m) m->metric = arena_str(&c->arena, metric);
    return m;
}

struct comparison_difference *comparison_add_difference(struct comparison *c, const char *what,
                                                        const char *base, const char *new_)
{
    struct comparison_difference *d = RUN_LIST_ADD(&c->arena, &c->differences);
    if (!d) return NULL;
    d->what = arena_str(&c->arena, what);
    d->base = arena_str(&c->arena, base);
    d->new_ = arena_str(&c->arena, new_);
    d->severity = "info";
    return d;
}

void comparison_add_unmatched(struct comparison *c, const char *side, const char *name)
{
    struct comparison_unmatched *u = RUN_LIST_ADD(&c->arena, &c->unmatched);
    if (!u) return;
    u->side = arena_str(&c->arena, side);
    u->name = arena_str(&c->arena, name);
}

void comparison_note_text(struct comparison *c, struct comparison_case *to, const char *id,
                          const char *severity, const char *text)
{
    struct comparison_note *n = to ? RUN_LIST_ADD(&c->arena, &to->notes) : RUN_LIST_ADD(&c->arena, &c->notes);
    if (!n) return;
    n->id = arena_str(&c->arena, id);
    n->severity = arena_str(&c->arena, severity);
    n->text = arena_str(&c->arena, text);
}

/* ---- verdicts ---- */

static int rank(const char *verdict)
{
    static const char *const order[] = {"same", "improved", "unverified", "inconclusive", "regressed"};
    for (int i = 0; verdict && i < 5; i++)
        if (strcmp(order[i], verdict) == 0) return i;
    return -1;
}

const char *comparison_worse(const char *a, const char *b)
{
    return rank(b) > rank(a) ? b : a;
}

/* A verdict that the better witness gave on contended machines stands for the case (see gate in the metrics). */
static const char *case_verdict(const struct comparison_case *to)
{
    const char *worst = NULL;
    for (size_t i = 0; i < to->metrics.n; i++)
        if (to->metrics.at[i]->role && strcmp(to->metrics.at[i]->role, "gate") == 0)
            worst = comparison_worse(worst, to->metrics.at[i]->verdict);
    return worst ? worst : "inconclusive";
}

void comparison_sum_up(struct comparison *c)
{
    c->verdict = NULL;
    for (size_t i = 0; i < c->cases.n; i++) {
        c->cases.at[i]->verdict = case_verdict(c->cases.at[i]);
        c->verdict = comparison_worse(c->verdict, c->cases.at[i]->verdict);
    }
    if (!c->verdict) c->verdict = "inconclusive";
}

/* ---- text ---- */

/* Interleaved comparisons of earlier versions had two names of their own. */
static void rename_old_metrics(struct comparison *c)
{
    static const char *const names[][2] = {{"latency", "latency.p50"}, {"cpu_time", "cpu.time"}};
    for (size_t i = 0; i < c->cases.n; i++)
        for (size_t k = 0; k < c->cases.at[i]->metrics.n; k++)
            for (size_t n = 0; n < sizeof names / sizeof *names; n++)
                if (strcmp(c->cases.at[i]->metrics.at[k]->metric, names[n][0]) == 0)
                    c->cases.at[i]->metrics.at[k]->metric = names[n][1];
}

tare_status comparison_write(const struct comparison *c, struct buf *out, tare_error *err)
{
    return fields_write(&comparison_form, c, &c->arena, (struct fields_to){out, 0}, err);
}

tare_status comparison_write_page(const struct comparison *c, struct buf *out, tare_error *err)
{
    return fields_write(&comparison_form, c, &c->arena, (struct fields_to){out, 1}, err);
}

tare_status comparison_read(struct comparison *c, const char *name, const void *bytes, size_t len,
                            tare_error *err)
{
    struct comparison fresh = {.arena = ARENA_INIT};
    struct fields_text text = {name, bytes, len};
    tare_status s = fields_read(&comparison_form, &text, &fresh, &fresh.arena, err);
    if (s == TARE_OK) {
        rename_old_metrics(&fresh);
        *c = fresh;
    } else {
        arena_release(&fresh.arena);
    }
    return s;
}
