/* SPDX-License-Identifier: MIT
 * gpu_ranks.c - the processes of a job beside each other. The n-th kernel of a name that communicates is the same
 * collective in all of them, and it ends everywhere at nearly the same moment: so the ends tell how far clocks are
 * apart, and who was in it for the shortest time came last. That time is the transfer; what others were in it longer
 * they waited. Whether kernels do belong together is checked by their ends; where they do not, nothing is said. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_work.h"
#include "core/stats.h"

#define LEVEL 0.95
#define AGREE_LEAST 0.9         /* of the ends of a name: so many must be where they belong */
#define AGREE_OF_DISTANCE 0.25  /* where: so far from their median, of the distance from one collective to the next */
#define AGREE_NS 100e3          /* .. or so far */
#define CLOCKS_AGREE_NS 1000000 /* two clocks that are further apart than this do not agree */
enum { COLLECTIVES_LEAST = 10, RANKS_MOST = 4096 };

struct collective { /* one rank's part in it */
    uint64_t start, end;
    uint32_t name;
};

struct rank {
    uint32_t process;
    uint16_t card;
    int64_t shift; /* ns: its trace's time + this is the reference's, as far as clocks tell */
    bool one_clock;
    VEC(struct collective) parts; /* by name, then start */
    VEC(double) ahead;            /* of each matched collective: its end, less that of the reference */
    struct gpu_rank *out;
};

struct moment { /* a matched collective */
    uint64_t start;
    uint32_t last;    /* rank that was in it for the shortest time; UINT32_MAX: several */
    uint32_t by_rank; /* its place in each rank's `ahead` */
};

struct job {
    struct gpu_work *w;
    VEC(struct rank) ranks;
    VEC(struct moment) moments; /* in order of time */
    struct gpu_job *out;
};

/* ---- who takes part ---- */

/* By rank; then those whose rank was not told, in the order in which they came. */
static int by_rank(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    const struct gpu_rank *p = x->out, *q = y->out;
    if (p->rank.known != q->rank.known) return p->rank.known ? -1 : 1;
    if (p->rank.v != q->rank.v) return p->rank.v < q->rank.v ? -1 : 1;
    return (x->process > y->process) - (x->process < y->process);
}

static tare_status add_rank(struct job *j, uint32_t process, uint16_t card)
{
    struct gpu_work *w = j->w;
    const struct gpu_seen_process *p = &w->processes.items[process];
    const struct gpu_card *c = &w->cards.items[card].out;
    struct gpu_rank *out = RUN_LIST_ADD(&w->out->arena, &j->out->ranks);
    if (!out) return error_nomem(w->err, "ranks");
    *out = (struct gpu_rank){.host = p->host,
                             .pid = p->pid,
                             .trace = p->trace,
                             .device = c->number,
                             .operations = w->cards.items[card].n_ops,
                             .wall_ns = c->wall_ns,
                             .busy = c->busy,
                             .compute_ns = c->compute_ns,
                             .communication_ns = c->communication_ns,
                             .exposed_communication_ns = c->exposed_communication_ns};
    if (p->rank) out->rank = known_u64(p->rank - 1);
    if (p->local_rank) out->local_rank = known_u64(p->local_rank - 1);
    if (p->size) out->world_size = known_u64(p->size - 1);
    if (c->steps.known) {
        out->steps = known_u64(c->steps.count);
        out->step_ns = c->steps.median_ns;
        out->step_p95_ns = known_u64(c->steps.step_ns.p95);
    }
    return vec_push(&j->ranks, ((struct rank){.process = process, .card = card, .out = out}), w->err);
}

/* One process may record several blocks of itself (tare.gpu()), each as a process of the trace: the first stands for
 * it. */
static bool is_known(const struct job *j, uint32_t process)
{
    const struct gpu_seen_process *all = j->w->processes.items, *p = &all[process];
    for (size_t i = 0; i < j->ranks.n; i++) {
        const struct gpu_seen_process *q = &all[j->ranks.items[i].process];
        if (p->pid == q->pid && p->rank == q->rank && p->boot == q->boot && p->trace == q->trace) return true;
    }
    return false;
}

/* Each process by the card that it used most. A damaged file may claim thousands. */
static tare_status find_ranks(struct job *j)
{
    const struct gpu_work *w = j->w;
    tare_status s = TARE_OK;
    for (uint32_t p = 0; p < w->processes.n && s == TARE_OK && j->ranks.n < RANKS_MOST; p++) {
        size_t best = w->cards.n;
        for (size_t i = 0; i < w->cards.n; i++) {
            if (w->cards.items[i].process != p || !w->cards.items[i].n_ops) continue;
            if (best == w->cards.n || w->cards.items[i].n_ops > w->cards.items[best].n_ops) best = i;
        }
        if (best < w->cards.n && !is_known(j, p)) s = add_rank(j, p, (uint16_t)best);
    }
    if (s == TARE_OK && j->ranks.n == RANKS_MOST)
        run_map_textf(&j->w->out->arena, &j->out->unknown, "ranks", "of more than %d, these were read",
                      RANKS_MOST - 1);
    if (s != TARE_OK || !j->ranks.n) return s;
    qsort(j->ranks.items, j->ranks.n, sizeof *j->ranks.items, by_rank);
    for (size_t i = 0; i < j->ranks.n; i++) j->out->ranks.at[i] = j->ranks.items[i].out;
    return TARE_OK;
}

/* ---- clocks, as far as machines tell ---- */

/* On one machine all clocks are the same one. The wall clocks of two may be far apart: that is checked later. */
static void shift_clocks(struct job *j)
{
    const struct gpu_seen_process *all = j->w->processes.items, *first = &all[j->ranks.items[0].process];
    for (size_t i = 0; i < j->ranks.n; i++) {
        struct rank *r = &j->ranks.items[i];
        const struct gpu_seen_process *p = &all[r->process];
        r->one_clock = p->boot ? p->boot == first->boot : p->trace == first->trace;
        r->shift = (int64_t)(r->one_clock ? p->raw_ns - first->raw_ns : p->unix_ns - first->unix_ns);
        r->out->aligned_by = r->one_clock ? "one-clock" : "wall-clock";
    }
    j->ranks.items[0].out->aligned_by = "reference";
    j->ranks.items[0].out->offset_ns = run_estimate(0, 0, 0);
}

/* All of one trace are of one machine. Of several traces only the machines' boots can tell. */
static bool can_tell_hosts(const struct job *j)
{
    const struct gpu_seen_process *all = j->w->processes.items, *first = &all[j->ranks.items[0].process];
    bool boots = true, one_trace = true;
    for (size_t i = 0; i < j->ranks.n; i++) {
        boots &= all[j->ranks.items[i].process].boot != 0;
        one_trace &= all[j->ranks.items[i].process].trace == first->trace;
    }
    return boots || one_trace;
}

static void count_hosts(struct job *j)
{
    const struct gpu_seen_process *all = j->w->processes.items;
    if (!can_tell_hosts(j)) {
        run_map_text(&j->w->out->arena, &j->out->unknown, "hosts", "a trace does not tell its machine");
        return;
    }
    j->out->hosts = known_u64(0);
    for (size_t i = 0; i < j->ranks.n; i++) {
        const struct gpu_seen_process *p = &all[j->ranks.items[i].process];
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++) {
            const struct gpu_seen_process *q = &all[j->ranks.items[k].process];
            seen = p->boot ? p->boot == q->boot : p->trace == q->trace;
        }
        j->out->hosts.v += !seen;
    }
}

/* ---- collectives ---- */

static int by_name(const void *a, const void *b)
{
    const struct collective *x = a, *y = b;
    return (x->name > y->name) - (x->name < y->name);
}

static int by_time(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static tare_status gather_parts(struct job *j, struct rank *r)
{
    const struct gpu_seen_card *c = &j->w->cards.items[r->card];
    tare_status s = TARE_OK;
    for (size_t i = 0; i < c->n_ops && s == TARE_OK; i++) {
        const struct gpu_op *op = &j->w->ops.items[c->first_op + i];
        if (op->kind != WORK_COMMUNICATION) continue;
        s = vec_push(&r->parts, ((struct collective){op->start, op->end, op->name}), j->w->err);
    }
    if (s == TARE_OK) s = gpu_sort(r->parts.items, r->parts.n, sizeof *r->parts.items, by_name, j->w->err);
    return s;
}

/* Those of one name: a stretch of `parts`. */
struct stretch {
    const struct collective *at;
    size_t n;
};

static struct stretch named(const struct rank *r, uint32_t name)
{
    struct collective wanted = {.name = name};
    const struct gpu_sorted in = {r->parts.items, r->parts.n, sizeof *r->parts.items, by_name};
    if (!in.n) return (struct stretch){NULL, 0};
    size_t from = gpu_find(&in, &wanted, 0), to;
    wanted.name++;
    to = gpu_find(&in, &wanted, from);
    return (struct stretch){r->parts.items + from, to - from};
}

static double ahead_of(const struct rank *r, const struct collective *x, const struct collective *reference)
{
    return (double)((int64_t)(x->end - reference->end) + r->shift);
}

/* Do these kernels end together, but for one constant? If half of them were of other groups of ranks, or some of them
 * were not recorded, they would not. Where they are not equally many, some are missing: then only one clock can tell
 * that those of the same number belong together. */
static tare_status ends_agree(const struct rank *r, struct stretch x, struct stretch reference, bool *agree,
                              tare_error *err)
{
    size_t n = x.n < reference.n ? x.n : reference.n, near = 0;
    double *ahead = mem_new(n, sizeof *ahead), middle;
    *agree = false;
    if (!ahead) return error_nomem(err, "%zu collectives", n);
    for (size_t i = 0; i < n; i++) ahead[i] = ahead_of(r, &x.at[i], &reference.at[i]);
    tare_status s = stats_median(ahead, n, &middle, err);
    double whole = fabs((double)(int64_t)(reference.at[n - 1].end - reference.at[0].end));
    double distance = whole / (double)(n > 1 ? n - 1 : 1);
    double most = fmax(AGREE_NS, AGREE_OF_DISTANCE * distance);
    for (size_t i = 0; i < n && s == TARE_OK; i++) near += fabs(ahead[i] - middle) <= most;
    mem_free(ahead);
    if (s != TARE_OK) return s;
    *agree = (double)near >= AGREE_LEAST * (double)n &&
             (x.n == reference.n || (r->one_clock && fabs(middle) <= most));
    return TARE_OK;
}

/* The n-th of a name, in all ranks. */
static tare_status add_moment(struct job *j, const struct stretch *of, size_t n)
{
    struct moment m = {.start = of[0].at[n].start, .by_rank = (uint32_t)j->moments.n};
    uint64_t least = UINT64_MAX;
    tare_status s = TARE_OK;
    for (uint32_t i = 0; i < j->ranks.n; i++) {
        uint64_t ns = of[i].at[n].end - of[i].at[n].start;
        if (ns == least) m.last = UINT32_MAX;
        if (ns >= least) continue;
        least = ns;
        m.last = i;
    }
    for (uint32_t i = 0; i < j->ranks.n && s == TARE_OK; i++) {
        struct rank *r = &j->ranks.items[i];
        uint64_t ns = of[i].at[n].end - of[i].at[n].start;
        gpu_grow(&r->out->transfer_ns.v, least);
        gpu_grow(&r->out->waiting_ns.v, ns - least);
        r->out->last.v += m.last == i;
        struct gpu_wait wait = {of[i].at[n].start, of[i].at[n].end - least, i, m.last};
        if (j->w->courses && ns > least && m.last < j->ranks.n)
            s = vec_push(&j->w->courses->waits, wait, j->w->err);
        if (s != TARE_OK) return s;
        s = vec_push(&r->ahead, ahead_of(r, &of[i].at[n], &of[0].at[n]), j->w->err);
    }
    gpu_grow(&j->out->transfer_ns.v, least);
    return s == TARE_OK ? vec_push(&j->moments, m, j->w->err) : s;
}

static tare_status match_name(struct job *j, struct stretch *of, uint32_t name, bool *matched)
{
    tare_status s = TARE_OK;
    size_t n = SIZE_MAX;
    *matched = true;
    for (size_t i = 0; i < j->ranks.n; i++) {
        of[i] = named(&j->ranks.items[i], name);
        if (of[i].n < n) n = of[i].n;
    }
    if (!n) *matched = false;
    for (size_t i = 1; i < j->ranks.n && s == TARE_OK && *matched; i++)
        s = ends_agree(&j->ranks.items[i], of[i], of[0], matched, j->w->err);
    for (size_t i = 0; i < n && s == TARE_OK && *matched; i++) s = add_moment(j, of, i);
    return s;
}

static tare_status match_all(struct job *j)
{
    const struct rank *first = &j->ranks.items[0];
    struct stretch *of = mem_new(j->ranks.n, sizeof *of);
    tare_status s = of ? TARE_OK : error_nomem(j->w->err, "ranks");
    for (size_t at = 0; j->ranks.n > 1 && at < first->parts.n && s == TARE_OK; at += of[0].n) {
        bool matched = false;
        s = match_name(j, of, first->parts.items[at].name, &matched);
    }
    for (size_t i = 0; i < j->ranks.n; i++)
        gpu_grow(&j->out->unmatched, j->ranks.items[i].parts.n - j->moments.n);
    j->out->collectives = j->moments.n;
    mem_free(of);
    if (s == TARE_OK)
        s = gpu_sort(j->moments.items, j->moments.n, sizeof *j->moments.items, by_time, j->w->err);
    return s;
}

/* ---- what they say ---- */

static void unknown(struct job *j, struct gpu_rank *r, const char *field, const char *why)
{
    run_map_text(&j->w->out->arena, &r->unknown, field, why);
}

/* Clocks that drift apart make a series that is worth a single value: then the ends of the interval are the least and
 * the most that was seen. */
static void bound(struct interval *i, const double *x, size_t n)
{
    double least = x[0], most = x[0];
    for (size_t k = 1; k < n; k++) {
        least = fmin(least, x[k]);
        most = fmax(most, x[k]);
    }
    i->lo = fmax(i->lo, least);
    i->hi = fmin(i->hi, most);
}

/* How far its clock is ahead: the median over all collectives, with the interval of a series in time. Then which clock
 * is believed: one machine has one, unless collectives say by far another; of two machines collectives know better. */
static tare_status judge_clock(struct job *j, struct rank *r, double *x)
{
    struct interval by;
    for (size_t i = 0; i < j->moments.n; i++) x[i] = r->ahead.items[j->moments.items[i].by_rank];
    tare_status s = stats_median_interval(x, j->moments.n, LEVEL, &by, j->w->err);
    if (s != TARE_OK) return s;
    bound(&by, x, j->moments.n);
    r->out->offset_ns = run_estimate_of(by);
    bool differ = fmin(fabs(by.lo), fabs(by.hi)) > CLOCKS_AGREE_NS && (by.lo > 0) == (by.hi > 0);
    if (!r->one_clock || differ) r->out->aligned_by = "collectives";
    return TARE_OK;
}

/* How often it came last. Collectives follow each other, and whoever is late stays late: the interval is of so many as
 * they are worth if they hung on nothing. Told of 0 and 1 so that the median is 0, as stats_n_eff() wants it. */
static tare_status judge_last(struct job *j, uint32_t rank, double *x)
{
    struct gpu_rank *out = j->ranks.items[rank].out;
    size_t n = j->moments.n;
    double share = (double)out->last.v / (double)n, worth = (double)n;
    for (size_t i = 0; i < n; i++) {
        bool last = j->moments.items[i].last == rank;
        x[i] = last != (share > 0.5);
    }
    tare_status s = out->last.v && out->last.v < n ? stats_n_eff(x, n, &worth, j->w->err) : TARE_OK;
    if (s == TARE_OK) out->last_share = run_estimate_of(stats_share_interval(share, worth, LEVEL));
    return s;
}

static tare_status judge_collectives(struct job *j)
{
    static const char *const fields[] = {"transfer_ns", "waiting_ns", "last", "last_share",
                                         "offset_ns" /* last */};
    static const char few[] = "fewer than 10 collectives were found in all ranks";
    const size_t n = j->moments.n;
    tare_status s = TARE_OK;
    double *x = n >= COLLECTIVES_LEAST ? mem_new(n, sizeof *x) : NULL;
    if (!x && n >= COLLECTIVES_LEAST) return error_nomem(j->w->err, "%zu collectives", n);
    for (uint32_t i = 0; i < j->ranks.n && s == TARE_OK; i++) {
        struct gpu_rank *out = j->ranks.items[i].out;
        out->transfer_ns.known = out->waiting_ns.known = out->last.known = x != NULL;
        for (size_t k = 0; !x && k + !i < sizeof fields / sizeof *fields; k++)
            unknown(j, out, fields[k], few);
        if (x && i) s = judge_clock(j, &j->ranks.items[i], x);
        if (x && s == TARE_OK) s = judge_last(j, i, x);
    }
    j->out->transfer_ns.known = x != NULL;
    if (!x) run_map_text(&j->w->out->arena, &j->out->unknown, "transfer_ns", few);
    mem_free(x);
    return s;
}

/* Longest / shortest of what all ranks know. */
static struct known_f64 skew(const struct job *j, double (*of)(const struct gpu_rank *r))
{
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < j->ranks.n; i++) {
        double v = of(j->ranks.items[i].out);
        if (!(v > 0)) return (struct known_f64){0};
        least = fmin(least, v);
        most = fmax(most, v);
    }
    return known_f64(most / least);
}

static double step_of(const struct gpu_rank *r)
{
    return r->step_ns.known ? r->step_ns.value : NAN;
}

static double compute_of(const struct gpu_rank *r)
{
    return r->compute_ns.known ? (double)r->compute_ns.v : NAN;
}

static const char *rank_name(struct job *j, const struct gpu_rank *r)
{
    return r->rank.known ? arena_printf(&j->w->out->arena, "rank %llu", (unsigned long long)r->rank.v)
                         : arena_printf(&j->w->out->arena, "process %llu", (unsigned long long)r->pid);
}

/* NULL: the steps of all ranks are the same thing, and may be compared. Else why not: a rank without any, or whose
 * steps were found in another way, or are not as many: then one step of it is several of another's. */
static const char *steps_differ(struct job *j)
{
    enum { MORE = 2 };          /* at the ends of a record */
    const double more_of = 1.1; /* .. or where some were left out */
    struct arena *a = &j->w->out->arena;
    const struct gpu_steps *first = NULL;
    const char *of_first = "";
    for (size_t i = 0; i < j->ranks.n; i++) {
        const struct gpu_steps *s = &j->w->cards.items[j->ranks.items[i].card].out.steps;
        const char *name = rank_name(j, j->ranks.items[i].out);
        if (!s->known) return arena_printf(a, "%s has no steps", name);
        if (!first) {
            first = s;
            of_first = name;
        }
        uint64_t least = s->count < first->count ? s->count : first->count,
                 most = s->count + first->count - least;
        if (strcmp(s->found_by, first->found_by) == 0 &&
            (most <= least + MORE || (double)most <= more_of * (double)least))
            continue;
        return arena_printf(a,
                            "steps are not the same thing in all ranks: %llu by %s in %s, %llu by %s in %s",
                            (unsigned long long)first->count, first->found_by, of_first,
                            (unsigned long long)s->count, s->found_by, name);
    }
    return NULL;
}

/* NULL: ranks computed for the same while, or the same steps. Else why their sums of computing say nothing. */
static const char *lengths_differ(struct job *j, bool same_steps)
{
    const double more_of = 1.1;
    const struct gpu_rank *shortest = j->ranks.items[0].out, *longest = shortest;
    for (size_t i = 1; i < j->ranks.n; i++) {
        const struct gpu_rank *r = j->ranks.items[i].out;
        if (r->wall_ns.v < shortest->wall_ns.v) shortest = r;
        if (r->wall_ns.v > longest->wall_ns.v) longest = r;
    }
    if (same_steps || (double)longest->wall_ns.v <= more_of * (double)shortest->wall_ns.v) return NULL;
    return arena_printf(&j->w->out->arena,
                        "ranks were not recorded for the same while: %s for %.4g ms, %s for %.4g ms",
                        rank_name(j, shortest), (double)shortest->wall_ns.v / 1e6, rank_name(j, longest),
                        (double)longest->wall_ns.v / 1e6);
}

/* The one that came last more often than chance would have it, and more often than any other: its interval lies above
 * all of theirs. */
static void name_last(struct job *j)
{
    size_t best = 0;
    uint64_t waited = 0;
    struct arena *a = &j->w->out->arena;
    for (size_t i = 1; i < j->ranks.n; i++)
        if (j->ranks.items[i].out->last.v > j->ranks.items[best].out->last.v) best = i;
    const struct gpu_rank *r = j->ranks.items[best].out;
    bool stands_out = r->last_share.lo.v > 1 / (double)j->ranks.n;
    for (size_t i = 0; i < j->ranks.n; i++) {
        const struct gpu_rank *other = j->ranks.items[i].out;
        if (i == best) continue;
        gpu_grow(&waited, other->waiting_ns.v);
        stands_out &= other->last_share.hi.v < r->last_share.lo.v;
    }
    if (!stands_out) {
        j->out->evidence = arena_printf(
            a, "none stands out: %s came last most often, %.1f %% [%.1f, %.1f] of %zu collectives",
            rank_name(j, r), r->last_share.value * 100, r->last_share.lo.v * 100, r->last_share.hi.v * 100,
            j->moments.n);
        return;
    }
    j->out->slowest = known_u64(best);
    j->out->evidence = arena_printf(
        a,
        "%s came last into %.1f %% [%.1f, %.1f] of %zu collectives; meanwhile the others waited %.4g ms in all",
        rank_name(j, r), r->last_share.value * 100, r->last_share.lo.v * 100, r->last_share.hi.v * 100,
        j->moments.n, (double)waited / 1e6);
}

/* Without collectives: the one whose median step is longer than that of all others, with intervals apart. */
static void name_longest(struct job *j)
{
    size_t best = 0;
    struct arena *a = &j->w->out->arena;
    bool stands_out = true;
    for (size_t i = 0; i < j->ranks.n; i++) {
        const struct gpu_rank *r = j->ranks.items[i].out;
        if (!r->step_ns.lo.known || !r->step_ns.hi.known) {
            j->out->evidence = arena_printf(a, "unknown: %s has neither enough collectives nor enough steps",
                                            rank_name(j, r));
            return;
        }
        if (r->step_ns.value > j->ranks.items[best].out->step_ns.value) best = i;
    }
    const struct gpu_rank *r = j->ranks.items[best].out;
    for (size_t i = 0; i < j->ranks.n; i++)
        stands_out &= i == best || j->ranks.items[i].out->step_ns.hi.v < r->step_ns.lo.v;
    if (stands_out) j->out->slowest = known_u64(best);
    j->out->evidence = arena_printf(
        a,
        "%s%s has the longest median step, %.4g ms [%.4g, %.4g]; there are too few collectives to see who waits",
        stands_out ? "" : "none stands out: ", rank_name(j, r), r->step_ns.value / 1e6, r->step_ns.lo.v / 1e6,
        r->step_ns.hi.v / 1e6);
}

/* All must be of one job: as many ranks as the launcher told, each once. */
static tare_status check_world(struct job *j)
{
    struct gpu_job *out = j->out;
    struct arena *a = &j->w->out->arena;
    const struct gpu_rank *first = out->ranks.at[0];
    const char *why = NULL;
    for (size_t i = 0; i < out->ranks.n && !why; i++) {
        const struct gpu_rank *r = out->ranks.at[i];
        if (!r->world_size.known) why = "not told by all processes";
        if (r->world_size.known && first->world_size.known && r->world_size.v != first->world_size.v)
            why = "not the same of all: these are not of one job";
        if (i && r->rank.known && out->ranks.at[i - 1]->rank.known &&
            r->rank.v == out->ranks.at[i - 1]->rank.v)
            why = arena_printf(a, "rank %llu is there twice: restarted, or not of one job",
                               (unsigned long long)r->rank.v);
    }
    if (why)
        run_map_text(a, &out->unknown, "world_size", why);
    else
        out->world_size = first->world_size;
    if (!why && first->world_size.v > out->ranks.n)
        run_map_textf(a, &out->unknown, "ranks",
                      "%llu of %llu ranks are in these traces: what is said of waiting is said among them",
                      (unsigned long long)out->ranks.n, (unsigned long long)first->world_size.v);
    return a->failed ? error_nomem(j->w->err, "ranks") : TARE_OK;
}

static tare_status judge(struct job *j)
{
    shift_clocks(j);
    count_hosts(j);
    tare_status s = TARE_OK;
    for (size_t i = 0; i < j->ranks.n && s == TARE_OK; i++) s = gather_parts(j, &j->ranks.items[i]);
    if (s == TARE_OK) s = match_all(j);
    if (s == TARE_OK) s = judge_collectives(j);
    if (s != TARE_OK) return s;
    const char *differ = steps_differ(j);
    if (!differ) j->out->step_skew = skew(j, step_of);
    if (differ) run_map_text(&j->w->out->arena, &j->out->unknown, "step_skew", differ);
    const char *lengths = lengths_differ(j, !differ);
    if (!lengths) j->out->compute_skew = skew(j, compute_of);
    if (lengths) run_map_text(&j->w->out->arena, &j->out->unknown, "compute_skew", lengths);
    if (j->moments.n >= COLLECTIVES_LEAST)
        name_last(j);
    else if (!differ)
        name_longest(j);
    else
        j->out->evidence = arena_printf(&j->w->out->arena, "unknown: too few collectives, and %s", differ);
    return check_world(j);
}

/* Where their times are on one axis: by one machine's clock, or by that which collectives say. */
static tare_status place_ranks(const struct job *j)
{
    struct gpu_courses *to = j->w->courses;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < j->ranks.n && to && s == TARE_OK; i++) {
        const struct rank *r = &j->ranks.items[i];
        bool by_ends = strcmp(r->out->aligned_by, "collectives") == 0;
        struct gpu_rank_place place = {r->process,
                                       r->shift - (by_ends ? (int64_t)r->out->offset_ns.value : 0)};
        s = vec_push(&to->ranks, place, j->w->err);
    }
    return s;
}

/* One process alone is no job, unless its launcher says that there are others. */
tare_status gpu_work_ranks(struct gpu_work *w)
{
    struct job j = {.w = w, .out = &w->out->job};
    tare_status s = find_ranks(&j);
    bool several = j.ranks.n > 1 || (j.ranks.n == 1 && j.out->ranks.at[0]->world_size.v > 1);
    if (s == TARE_OK && several) s = judge(&j);
    if (s == TARE_OK && several) s = place_ranks(&j);
    if (s == TARE_OK && several)
        j.out->known = true;
    else
        w->out->job = (struct gpu_job){0};
    for (size_t i = 0; i < j.ranks.n; i++) {
        vec_release(&j.ranks.items[i].parts);
        vec_release(&j.ranks.items[i].ahead);
    }
    vec_release(&j.ranks);
    vec_release(&j.moments);
    return s;
}
