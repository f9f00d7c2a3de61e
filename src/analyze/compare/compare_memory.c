/* SPDX-License-Identifier: MIT
 * compare_memory.c - see compare_memory.h: which processes and sites there are on both sides. compare_sampled.c
 * judges them. */
#include "analyze/compare/compare_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare/compare_pairs.h"
#include "analyze/compare/compare_sampled.h"
#include "core/fmt.h"
#include "core/map.h"

#define BYTES(NAME, HELP) \
    {.name = NAME, .kind = MEASURE_BYTES, .help = HELP}
const struct measure memory_measures[] = {
    BYTES("memory.peak", "held at the peak"),
    BYTES("memory.end", "held when the record ends"),
    BYTES("memory.allocated", "allocated in all"),
    BYTES("memory.churn", "freed within 1 ms of its allocation"),
    BYTES("site.peak", "each site: held at the peak"),
    BYTES("site.allocated", "each site: allocated in all"),
    BYTES("site.growth", "each site: grows for good"),
    {.name = NULL},
};

#define SMALL_SHARE 0.02 /* of the whole: processes and sites of less are not compared */

struct memory_comparing {
    struct sampled_comparing s;
    const struct compare_memory *in;
    const struct memory_process **run[PAIR_SIDES]; /* the process of a case in each run that has it */
};

/* ---- sites of a process in all runs ---- */

struct site_run { /* of one run */
    struct memory_bytes peak, allocated;
    const struct growth *growth; /* NULL: it was not judged */
};
struct site {
    const char *name;
    struct site_run *in[PAIR_SIDES]; /* by run */
    double moved;                    /* bytes at the peak, new less base, of the mean run */
};
struct sites {
    struct map_str by_name; /* -> place in `all` */
    VEC(struct site) all;
};

static tare_status find_site(struct memory_comparing *k, struct sites *to, const struct buf *name,
                             struct site **out)
{
    struct arena *a = &k->s.c->arena;
    uint64_t *place;
    size_t before = to->by_name.n;
    tare_status s = map_str_ref(&to->by_name, name->data, name->len, &place, k->s.err);
    if (s == TARE_OK && to->by_name.n > before) {
        struct site fresh = {.name = arena_str_n(a, name->data, name->len)};
        for (int side = 0; side < PAIR_SIDES; side++)
            fresh.in[side] = arena_new(a, k->s.side[side].n, sizeof *fresh.in[side]);
        *place = to->all.n;
        s = a->failed ? compare_no_memory(k->s.err) : vec_push(&to->all, fresh, k->s.err);
    }
    if (s == TARE_OK) *out = &to->all.items[*place];
    return s;
}

static bool grows(const struct growth *g)
{
    return g && strcmp(g->verdict, "growing") == 0;
}

/* Groups of one name are one site: a file of another folder has the same name as the one it is a copy of. */
static tare_status add_group(struct memory_comparing *k, struct sites *to, const struct memory_group *g,
                             int side, size_t run)
{
    struct buf name = BUF_INIT;
    struct site *site;
    k->in->name(&name, g, k->in->by);
    tare_status s = buf_status(&name, k->s.err);
    if (s == TARE_OK) s = find_site(k, to, &name, &site);
    buf_release(&name);
    if (s != TARE_OK) return s;
    struct site_run *r = &site->in[side][run];
    memory_bytes_add(&r->peak, g->own.at_peak);
    memory_bytes_add(&r->allocated, g->own.allocated);
    if (g->own.judged && !grows(r->growth)) r->growth = &g->own.growth;
    site->moved += (side == PAIR_B ? 1 : -1) * g->own.at_peak.sum / (double)k->s.side[side].n;
    return TARE_OK;
}

static tare_status add_sites(struct memory_comparing *k, struct sites *to, int side, size_t run)
{
    struct memory_groups groups = {.n = 0};
    tare_status s = memory_group(k->run[side][run], k->in->by, &k->s.c->arena, &groups, k->s.err);
    for (size_t i = 0; i < groups.n && s == TARE_OK; i++)
        if (groups.all[i].own.allocated.sum > 0) s = add_group(k, to, &groups.all[i], side, run);
    return s;
}

static int by_moved(const void *a, const void *b)
{
    const struct site *x = a, *y = b;
    double p = fabs(x->moved), q = fabs(y->moved);
    return p != q ? (p < q) - (p > q) : strcmp(x->name, y->name);
}

/* ---- growth: the judge of leaks has decided, run by run ---- */

struct memory_growth {
    const char *name;
    size_t n[PAIR_SIDES];                  /* runs in which it grows */
    const struct growth *rate[PAIR_SIDES]; /* of one of them; NULL: none */
};

static struct run_estimate rate_of(const struct growth *g)
{
    if (!g) return (struct run_estimate){0};
    return run_estimate(g->rate, fmin(g->lo, g->rate), fmax(g->hi, g->rate));
}

static tare_status growth_add(struct memory_comparing *k, const struct memory_growth *g)
{
    struct between_rule rule;
    struct arena *a = &k->s.c->arena;
    bool all_new = g->n[PAIR_B] == k->s.side[PAIR_B].n, all_base = g->n[PAIR_A] == k->s.side[PAIR_A].n;
    struct comparison_metric *m = comparison_add_metric(k->s.c, k->s.to, g->name);
    if (!m) return compare_no_memory(k->s.err);
    m->unit = "bytes/s";
    m->better = "less";
    m->method = "growth";
    m->role = sampled_role(&k->s, "site.growth", true, &rule);
    m->base = rate_of(g->rate[PAIR_A]);
    m->new_ = rate_of(g->rate[PAIR_B]);
    m->verdict = "inconclusive";
    run_map_text(a, &m->unknown, "ratio", "growth is judged by itself, on each side");
    if (!m->base.known) run_map_text(a, &m->unknown, "base", "it was not seen to grow");
    if (!m->new_.known) run_map_text(a, &m->unknown, "new", "it was not seen to grow");
    if (all_new && !g->n[PAIR_A]) {
        m->verdict = "regressed";
        m->why = "grows for good, and did not in the base";
    } else if (all_base && !g->n[PAIR_B]) {
        m->verdict = "improved";
        m->why = "no longer seen to grow";
    } else
        m->why = all_new && all_base ? "grows on both sides" : "grows in some of the runs";
    return TARE_OK;
}

/* ---- rows ---- */

static struct sampled_value value_of(struct memory_bytes b)
{
    return (struct sampled_value){b.sum, b.variance, memory_interval(b)};
}

enum what { PEAK, END, ALLOCATED, CHURN };

static struct memory_bytes whole_of(const struct memory_process *p, enum what what)
{
    switch (what) {
    case PEAK: return p->peak;
    case END: return p->at_end;
    case ALLOCATED: return p->allocated;
    case CHURN: return p->churn;
    }
    return (struct memory_bytes){0, 0, 0};
}

static struct memory_bytes part_of(const struct site_run *r, enum what what)
{
    return what == PEAK ? r->peak : r->allocated;
}

/* Is it a share that matters, in some run? */
static bool matters(const struct memory_comparing *k, const struct site *s, enum what what)
{
    for (int side = 0; side < PAIR_SIDES; side++)
        for (size_t i = 0; i < k->s.side[side].n; i++)
            if (part_of(&s->in[side][i], what).sum >= SMALL_SHARE * whole_of(k->run[side][i], what).sum)
                return true;
    return false;
}

static tare_status add_whole(struct memory_comparing *k, enum what what)
{
    struct sampled_row r = {
        .name = memory_measures[what].name, .unit = "bytes", .gate = what == PEAK};
    r.measure = r.name;
    for (int side = 0; side < PAIR_SIDES; side++) {
        struct sampled_value *to = arena_new(&k->s.c->arena, k->s.side[side].n, sizeof *to);
        if (!to) return compare_no_memory(k->s.err);
        for (size_t i = 0; i < k->s.side[side].n; i++) to[i] = value_of(whole_of(k->run[side][i], what));
        r.of[side] = to;
    }
    return sampled_row_add(&k->s, &r);
}

static tare_status add_part(struct memory_comparing *k, const struct site *of, enum what what)
{
    const char *measure = what == PEAK ? "site.peak" : "site.allocated";
    struct sampled_row r = {.name = arena_printf(&k->s.c->arena, "%s %s", measure, of->name),
                           .measure = measure, .unit = "bytes"};
    if (!matters(k, of, what)) return TARE_OK;
    for (int side = 0; side < PAIR_SIDES; side++) {
        struct sampled_value *to = arena_new(&k->s.c->arena, k->s.side[side].n, sizeof *to);
        if (!to || !r.name) return compare_no_memory(k->s.err);
        for (size_t i = 0; i < k->s.side[side].n; i++) to[i] = value_of(part_of(&of->in[side][i], what));
        r.of[side] = to;
    }
    return sampled_row_add(&k->s, &r);
}

static tare_status add_growth(struct memory_comparing *k, const struct site *of)
{
    struct memory_growth g = {.name = arena_printf(&k->s.c->arena, "site.growth %s", of->name)};
    for (int side = 0; side < PAIR_SIDES; side++)
        for (size_t i = 0; i < k->s.side[side].n; i++) {
            if (!grows(of->in[side][i].growth)) continue;
            g.n[side]++;
            g.rate[side] = of->in[side][i].growth; /* of the newest run that shows it */
        }
    if (!g.name) return compare_no_memory(k->s.err);
    return g.n[PAIR_A] || g.n[PAIR_B] ? growth_add(k, &g) : TARE_OK;
}

static tare_status add_rows(struct memory_comparing *k)
{
    struct sites sites = {.by_name = MAP_STR_INIT, .all = VEC_INIT};
    tare_status s = TARE_OK;
    for (enum what i = PEAK; i <= CHURN && s == TARE_OK; i++) s = add_whole(k, i);
    for (int side = 0; side < PAIR_SIDES; side++)
        for (size_t i = 0; i < k->s.side[side].n && s == TARE_OK; i++) s = add_sites(k, &sites, side, i);
    if (s == TARE_OK && sites.all.n > 1)
        qsort(sites.all.items, sites.all.n, sizeof *sites.all.items, by_moved);
    for (size_t i = 0; i < sites.all.n && s == TARE_OK; i++) s = add_growth(k, &sites.all.items[i]);
    for (size_t i = 0; i < sites.all.n && s == TARE_OK; i++) s = add_part(k, &sites.all.items[i], PEAK);
    for (size_t i = 0; i < sites.all.n && s == TARE_OK; i++) s = add_part(k, &sites.all.items[i], ALLOCATED);
    map_str_release(&sites.by_name);
    vec_release(&sites.all);
    return s;
}

/* ---- processes ---- */

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

#define NONE SIZE_MAX
/* The largest goes with the largest, whatever it is called; of others the n-th of a command with the n-th. */
static size_t counterpart(const struct memory_profile *own, const struct memory_profile *other, size_t at)
{
    size_t before = 0;
    if (at == 0) return other->n ? 0 : NONE;
    for (size_t i = 1; i < at; i++)
        before += same_text(own->processes[i].command, own->processes[at].command);
    for (size_t i = 1; i < other->n; i++)
        if (same_text(other->processes[i].command, own->processes[at].command) && before-- == 0)
            return i;
    return NONE;
}

static bool is_small(const struct memory_profile *p, size_t at)
{
    return p->processes[at].peak.sum < SMALL_SHARE * p->processes[0].peak.sum;
}

static const char *name_of(struct comparison *c, const struct memory_process *p)
{
    return p->command && *p->command ? arena_str(&c->arena, p->command)
                                     : arena_printf(&c->arena, "process %u", p->pid);
}

static tare_status find_runs(struct memory_comparing *k, int side, size_t at)
{
    const struct compare_memory_side *in = &k->in->side[side];
    const struct memory_profile *own = &k->in->side[PAIR_A].runs[0].profile;
    struct sampled_side *to = &k->s.side[side];
    *to = (struct sampled_side){.at = arena_new(&k->s.c->arena, in->n, sizeof *to->at)};
    k->run[side] = arena_new(&k->s.c->arena, in->n, sizeof *k->run[side]);
    if (!k->run[side] || !to->at) return compare_no_memory(k->s.err);
    for (size_t i = 0; i < in->n; i++) {
        const struct compare_memory_run *run = &in->runs[i];
        size_t place = counterpart(own, &run->profile, at);
        if (place == NONE) continue; /* of a run that is not the first of its side */
        k->run[side][to->n] = &run->profile.processes[place];
        to->at[to->n++].ms = run->begun_ms ? run->begun_ms : (int64_t)i * k->in->apart_ms;
    }
    return TARE_OK;
}

/* Different ways of recording are no obstacle: estimates are unbiased. What was lost is. */
static void tell_doubts(struct memory_comparing *k, int side)
{
    const char *word = side == PAIR_A ? "base" : "new";
    bool lost = false, unknown = false;
    for (size_t i = 0; i < k->s.side[side].n; i++) {
        const struct memory_process *p = k->run[side][i];
        lost = lost || p->lost_records || p->lost_samples;
        unknown = unknown || !p->started;
    }
    if (lost)
        comparison_note(k->s.c, k->s.to, "records.lost", "warn",
                        "records of the %s side were lost: its sums may be off", word);
    if (unknown)
        comparison_note(k->s.c, k->s.to, "recording.unknown", "warn",
                        "how the %s side was recorded is not in its trace: nothing was scaled up", word);
}

static tare_status add_process(struct memory_comparing *k, size_t at)
{
    const struct memory_profile *own = &k->in->side[PAIR_A].runs[0].profile;
    tare_status s = TARE_OK;
    for (int side = 0; side < PAIR_SIDES && s == TARE_OK; side++) s = find_runs(k, side, at);
    if (s < 0 || !k->s.side[PAIR_B].n) return s;
    k->s.to = comparison_add_case(k->s.c, name_of(k->s.c, &own->processes[at]));
    if (!k->s.to) return compare_no_memory(k->s.err);
    for (int side = 0; side < PAIR_SIDES; side++) tell_doubts(k, side);
    return add_rows(k);
}

static void tell_others(struct comparison *c, const char *side, const struct memory_profile *own,
                        const struct memory_profile *other)
{
    for (size_t i = 0; i < own->n && !is_small(own, i); i++)
        if (counterpart(own, other, i) == NONE)
            comparison_add_unmatched(c, side,
                                     arena_printf(&c->arena, "process %s: %s at its peak",
                                                  name_of(c, &own->processes[i]),
                                                  show_bytes(own->processes[i].peak.sum).s));
}

static void describe(struct comparison *c, const struct compare_memory *in)
{
    struct compare_told told = {.min_effect = in->rule.min_effect,
                                .alpha = in->rule.alpha,
                                .limits = in->limits,
                                .n_limits = in->n_limits};
    for (int i = 0; i < PAIR_SIDES; i++) {
        told.path[i] = in->side[i].runs[0].path;
        told.n[i] = in->side[i].n;
    }
    compare_tell_traces(c, &told);
    run_map_text(&c->arena, &c->config, "by", memory_by_words[in->by]);
}

tare_status compare_memory(struct comparison *c, const struct compare_memory *in, tare_error *err)
{
    const struct sampled_rules rules = {.rule = in->rule,
                                        .limits = in->limits,
                                        .n_limits = in->n_limits,
                                        .apart_ms = in->apart_ms,
                                        .measures = memory_measures};
    struct memory_comparing k = {.s = {.c = c, .rules = &rules, .err = err}, .in = in};
    const struct memory_profile *base = &in->side[PAIR_A].runs[0].profile,
                                *new_ = &in->side[PAIR_B].runs[0].profile;
    tare_status s = TARE_OK;
    describe(c, in);
    for (size_t i = 0; i < base->n && s == TARE_OK && !is_small(base, i); i++)
        if (counterpart(base, new_, i) != NONE) s = add_process(&k, i);
    tell_others(c, "base", base, new_);
    tell_others(c, "new", new_, base);
    if (s == TARE_OK && !c->cases.n)
        s = error_set(err, TARE_INVALID, "%s and %s: no process is in both", in->side[PAIR_A].runs[0].path,
                      in->side[PAIR_B].runs[0].path);
    if (s == TARE_OK) sampled_rows_hold(&k.s);
    sampled_rows_release(&k.s);
    if (s == TARE_OK && c->arena.failed) s = compare_no_memory(err);
    if (s == TARE_OK) comparison_sum_up(c);
    return s;
}
