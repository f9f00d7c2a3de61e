/* SPDX-License-Identifier: MIT
 * sweep.c - see sweep.h. */
#include "analyze/judge/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

/* ---- parameters ---- */

bool map_number(const struct run_map *m, const char *key, double *out)
{
    const struct run_value *v = run_map_get(m, key);
    if (!v || (v->kind != RUN_INT && v->kind != RUN_REAL)) return false;
    *out = v->kind == RUN_INT ? (double)v->i : v->d;
    return true;
}

bool param_number(const struct run_case *c, const char *param, double *out)
{
    return map_number(&c->params, param, out);
}

const char *param_text(const struct run_case *c, const char *param)
{
    const struct run_value *v = run_map_get(&c->params, param);
    return v && v->kind == RUN_TEXT && v->s ? v->s : "";
}

bool values_equal(const struct run_value *a, const struct run_value *b)
{
    if (!a || !b) return a == b;
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case RUN_NULL: return true;
    case RUN_BOOL: return a->yes == b->yes;
    case RUN_INT: return a->i == b->i;
    case RUN_REAL: return a->d == b->d;
    case RUN_TEXT: return a->s && b->s ? strcmp(a->s, b->s) == 0 : a->s == b->s;
    case RUN_LIST:
    case RUN_MAP: break;
    }
    return false;
}

bool param_is_setting(const struct run_entry *e)
{
    return e->value.kind != RUN_MAP && e->value.kind != RUN_LIST;
}

const struct run_case *case_named(const struct run *run, const char *name)
{
    for (size_t i = 0; i < run->cases.n; i++)
        if (strcmp(run->cases.at[i]->name, name) == 0) return run->cases.at[i];
    return NULL;
}

/* Does `key` only repeat the swept parameter in this case? */
static bool repeats(const struct run_case *c, const char *key, const char *param)
{
    return values_equal(run_map_get(&c->params, key), run_map_get(&c->params, param));
}

static bool covers(const struct run_case *a, const struct run_case *b, const char *param)
{
    for (size_t i = 0; i < a->params.n; i++) {
        const char *key = a->params.at[i].key;
        if (!param_is_setting(&a->params.at[i]) || strcmp(key, param) == 0 ||
            values_equal(&a->params.at[i].value, run_map_get(&b->params, key)))
            continue;
        if (strcmp(param, "variant") == 0 && strcmp(key, "precision") == 0)
            continue; /* what a variant is about */
        if (!(repeats(a, key, param) && repeats(b, key, param))) return false;
    }
    return true;
}

static bool same_but(const struct run_case *a, const struct run_case *b, const char *param)
{
    return covers(a, b, param) && covers(b, a, param);
}

/* ---- finding ---- */

struct item {
    const struct run_case *c;
    double x;
    size_t order;
};

static int by_value(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->x != y->x) return x->x < y->x ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static bool differ(const struct item *items, size_t n, const char *param, bool texts)
{
    for (size_t i = 1; i < n; i++) {
        if (!texts && items[i].x != items[0].x) return true;
        if (texts && strcmp(param_text(items[i].c, param), param_text(items[0].c, param)) != 0) return true;
    }
    return false;
}

struct search {
    const struct run *run;
    const char *param;
    bool texts;
    bool *taken;
    struct item *items;
};

/* The sweep that case `first` belongs to, into s->items; how many. */
static size_t gather(struct search *s, size_t first)
{
    size_t n = 0;
    const struct run_case *head = s->run->cases.at[first];
    for (size_t i = first; i < s->run->cases.n; i++) {
        const struct run_case *c = s->run->cases.at[i];
        struct item item = {c, 0, i};
        if (s->taken[i] || (!s->texts && !param_number(c, s->param, &item.x))) continue;
        if (i != first && !same_but(head, c, s->param)) continue;
        s->taken[i] = true;
        s->items[n++] = item;
    }
    if (!s->texts) qsort(s->items, n, sizeof *s->items, by_value);
    return n;
}

/* A case belongs to the first sweep that it fits into. gather() compares with all later cases, which is why there is a
 * limit to how many there may be. */
tare_status sweeps_find(struct sweeps *out, const struct run *run, const char *param, bool texts,
                        tare_error *err)
{
    size_t n = run->cases.n, used = 0;
    struct sweeps s = SWEEPS_INIT;
    *out = s;
    if (n < 2 || n > SWEEP_CASES_MAX) return TARE_OK;
    struct search search = {.run = run, .param = param, .texts = texts};
    search.taken = mem_new(n, sizeof *search.taken);
    search.items = mem_new(n, sizeof *search.items);
    s.cases = mem_new(n, sizeof *s.cases); /* NOLINT(bugprone-sizeof-expression): of pointers */
    s.start = mem_new(n + 1, sizeof *s.start);
    bool ok = search.taken && search.items && s.cases && s.start;
    for (size_t i = 0; ok && i < n; i++) {
        double x;
        if (search.taken[i] || (!texts && !param_number(run->cases.at[i], param, &x))) continue;
        size_t got = gather(&search, i);
        if (got < 2 || !differ(search.items, got, param, texts)) continue;
        for (size_t k = 0; k < got; k++) s.cases[used++] = search.items[k].c;
        s.start[++s.n] = used;
    }
    mem_free(search.taken);
    mem_free(search.items);
    if (!ok) {
        sweeps_release(&s);
        return error_nomem(err, "%zu cases", n);
    }
    *out = s;
    return TARE_OK;
}

void sweeps_release(struct sweeps *s)
{
    mem_free(s->cases);
    mem_free(s->start);
    *s = (struct sweeps)SWEEPS_INIT;
}

/* ---- what is given, what is chosen ---- */

static bool is_length(const char *key)
{
    return strcmp(key, "seq") == 0 || strcmp(key, "length") == 0;
}

/* Of a model's case all numbers but these are dimensions of its inputs. */
static bool is_given(const struct run *run, const struct run_entry *e)
{
    static const char *const chosen[] = {"batch", "threads", "optimization"};
    if (e->value.kind != RUN_INT) return false;
    if (is_length(e->key)) return true;
    if (!run->subject.type || strcmp(run->subject.type, "onnx") != 0) return false;
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        if (strcmp(e->key, chosen[i]) == 0) return false;
    return true;
}

/* The model's own name of a dimension ("N", "batch_size") repeats the batch: it goes with that. */
static bool repeats_batch(const struct run_case *c, const struct run_entry *e)
{
    return values_equal(run_map_get(&c->params, "batch"), &e->value);
}

bool is_same_work(const struct run *run, const struct run_case *a, const struct run_case *b)
{
    for (size_t i = 0; i < a->params.n; i++) {
        const struct run_entry *e = &a->params.at[i];
        const struct run_value *other = run_map_get(&b->params, e->key);
        if (!is_given(run, e) || !other || values_equal(&e->value, other)) continue;
        bool both = !is_length(e->key) && repeats_batch(a, e) &&
                    repeats_batch(b, &(struct run_entry){.key = e->key, .value = *other});
        if (!both) return false;
    }
    return true;
}

bool is_first_of_work(const struct run *run, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (is_same_work(run, run->cases.at[k], run->cases.at[i])) return false;
    return true;
}
