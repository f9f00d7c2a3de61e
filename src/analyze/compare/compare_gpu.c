/* SPDX-License-Identifier: MIT
 * compare_gpu.c - see compare_gpu.h. The i-th step of one side stands beside the i-th of the other. Steps that follow
 * one another share the machine's state, so that blocks of them count as launches do: what varies from block to block
 * widens the interval. False alarms are held over all rows together, for worse and for better (Holm). */
#include "analyze/compare/compare_gpu.h"

#include <math.h>
#include <string.h>

#include "analyze/compare/compare_pairs.h"
#include "analyze/judge/plausible.h"
#include "core/fmt.h"
#include "core/mem.h"
#include "core/vec.h"

enum {
    BLOCKS = 16,      /* of steps, where there are 4 for each */
    BLOCKS_LEAST = 7, /* sums that a rank test can say something of at 1 % */
    SUMS = 24         /* blocks of what is not there in every step */
};

#define TIME(NAME, HELP) \
    {.name = NAME, .kind = MEASURE_TIME, .help = HELP}
const struct measure gpu_measures[] = {
    TIME("step.time", "length of a step"),
    TIME("kernels.time", "all kernels of a step"),
    TIME("kernel.time", "each kernel by itself, per step"),
    TIME("busy.time", "at least one operation ran"),
    TIME("idle.time", "none did"),
    TIME("copy.time", "copies and fills"),
    {.name = NULL},
};

struct samples {
    const double *x;
    size_t n;
};

struct comparing {
    struct comparison *c;
    struct comparison_case *to;
    const struct compare_gpu *in;
    bool doubt; /* of the card: records are missing on one side, so that single runs are compared, no sums */
    VEC(struct comparison_metric *) judged; /* of all cases, with the two p values of each */
    VEC(double) slower;
    VEC(double) faster;
    tare_error *err;
};

/* ---- pairs ---- */

struct paired_numbers {
    double *d;       /* ln (new / base) */
    uint32_t *epoch; /* NULL: each by itself */
    size_t n;
};

static void release_numbers(struct paired_numbers *p)
{
    mem_free(p->d);
    mem_free(p->epoch);
}

/* Pairs in which one side is 0 have no ratio. Where that are many, sums over blocks of steps are compared instead. */
static tare_status make_pairs(struct samples a, struct samples b, struct paired_numbers *out, tare_error *err)
{
    size_t n = a.n < b.n ? a.n : b.n, zeros = 0, every = 1;
    for (size_t i = 0; i < n; i++) zeros += !(a.x[i] > 0) || !(b.x[i] > 0);
    if (zeros * 10 > n) every = (n + SUMS - 1) / SUMS;
    *out = (struct paired_numbers){.d = mem_new(n + 1, sizeof *out->d)};
    if (!out->d) return error_nomem(err, "%zu pairs of steps", n);
    for (size_t i = 0; i + every <= n; i += every) {
        double x = 0, y = 0;
        for (size_t k = i; k < i + every; k++) {
            x += a.x[k];
            y += b.x[k];
        }
        if (x > 0 && y > 0) out->d[out->n++] = log(y / x);
    }
    if (out->n < (size_t)4 * BLOCKS) return TARE_OK;
    out->epoch = mem_new(out->n, sizeof *out->epoch);
    if (!out->epoch) return error_nomem(err, "%zu pairs of steps", n);
    for (size_t i = 0; i < out->n; i++) out->epoch[i] = (uint32_t)(i * BLOCKS / out->n);
    return TARE_OK;
}

static tare_status middle(struct samples s, struct run_estimate *out, tare_error *err)
{
    struct interval found;
    if (!s.n) return TARE_OK;
    tare_status status = stats_median_interval(s.x, s.n, 0.95, &found, err);
    if (status < 0) return status;
    *out = (struct run_estimate){.known = true, .value = found.value};
    if (isfinite(found.lo)) out->lo = known_f64(fmin(found.lo, found.value));
    if (isfinite(found.hi)) out->hi = known_f64(fmax(found.hi, found.value));
    return TARE_OK;
}

/* ---- a row ---- */

/* What --fail-on says of a measure: its role, and how large a change counts as none. */
static const char *role_of(const struct comparing *k, const char *measure, bool gate,
                           struct paired_rule *rule)
{
    *rule = k->in->rule;
    for (size_t i = 0; i < k->in->n_limits; i++) {
        const struct compare_limit *l = &k->in->limits[i];
        if (strcmp(l->metric, measure) != 0) continue;
        if (!isnan(l->share)) rule->min_effect = l->share;
        rule->detect = fmax(rule->detect, rule->min_effect);
        return "gate";
    }
    return gate && !k->in->n_limits ? "gate" : "advisory";
}

static struct comparison_metric *new_row(struct comparing *k, const char *name, const char *role)
{
    struct comparison_metric *m = comparison_add_metric(k->c, k->to, name);
    if (!m) return NULL;
    m->unit = "ns";
    m->better = "less";
    m->role = role;
    return m;
}

/* Kernels take the same time in run after run. What the host has a part in does not: in two runs of one training
 * program on an H200, kernels were 0.01 % apart, but steps 17 %, copies 14 % and gaps 51 %, and the steps of each run
 * alone made those sure. Of these only what no plausible spread between runs explains is a verdict, as of single
 * saved runs. */
static void hold_for_runs(struct comparing *k, struct comparison_metric *m, const struct paired_rule *rule)
{
    double sd = plausible_sd(measure_find("latency.p50"), false, false);
    double far = plausible_ratio(sd, rule->min_effect, rule->alpha),
           ratio = m->ratio.known ? m->ratio.value : 1;
    m->p_value = (struct known_f64){0};
    run_map_text(&k->c->arena, &m->unknown, "p_value", "the spread between runs is not known");
    if (ratio >= far || ratio <= 1 / far) return;
    m->verdict = "unverified";
    m->why =
        arena_printf(&k->c->arena, "one run a side, and the host has a part in it: %.2gx would tell", far);
    m->mde = m->gate_confidence = (struct known_f64){0};
    m->gate = (struct run_estimate){0};
    run_map_text(&k->c->arena, &m->unknown, "gate", "the spread between runs is not known");
    run_map_text(&k->c->arena, &m->unknown, "mde", "the spread between runs is not known");
}

static tare_status judge_row(struct comparing *k, struct comparison_metric *m,
                             const struct paired_numbers *pairs, const struct paired_rule *rule, bool on_gpu)
{
    struct paired_result p;
    struct paired_series s = {pairs->d, pairs->epoch, pairs->n};
    tare_status status = paired_judge(&s, rule, &p, k->err);
    if (status < 0) return status;
    compare_fill_pairs(k->c, m, &p, rule, "steps");
    if (pairs->n < BLOCKS_LEAST)
        m->why =
            arena_printf(&k->c->arena, "cannot tell: %zu to compare, %d are needed", pairs->n, BLOCKS_LEAST);
    if (!on_gpu) {
        hold_for_runs(k, m, rule);
        return TARE_OK;
    }
    status = vec_push(&k->judged, m, k->err);
    const double surest = exp2(-(double)pairs->n); /* what ranks of so few pairs can say at the most */
    if (status == TARE_OK) status = vec_push(&k->slower, fmax(p.p_slower, surest), k->err);
    return status == TARE_OK ? vec_push(&k->faster, fmax(p.p_faster, surest), k->err) : status;
}

struct row {
    const char *name, *measure; /* measure NULL: it has the row's name */
    struct samples base, new_;
    bool gate;
    bool on_gpu; /* the GPU alone decides it */
    struct comparison_metric *made;
};

static tare_status add_row(struct comparing *k, struct row *r)
{
    struct paired_rule rule;
    struct paired_numbers pairs = {0};
    const char *role = role_of(k, r->measure ? r->measure : r->name, r->gate, &rule);
    struct comparison_metric *m = new_row(k, r->name, role);
    if (!m) return compare_no_memory(k->err);
    r->made = m;
    tare_status s = make_pairs(r->base, r->new_, &pairs, k->err);
    if (s == TARE_OK) s = middle(r->base, &m->base, k->err);
    if (s == TARE_OK) s = middle(r->new_, &m->new_, k->err);
    if (s == TARE_OK && pairs.n) s = judge_row(k, m, &pairs, &rule, r->on_gpu);
    if (!pairs.n) {
        m->verdict = "inconclusive";
        m->why = "cannot tell: it is not in enough steps of both sides";
        run_map_text(&k->c->arena, &m->unknown, "ratio", m->why);
    }
    release_numbers(&pairs);
    return s;
}

/* One number a side: a ratio, and nothing to judge it by. */
static tare_status add_total(struct comparing *k, const char *name, uint64_t base, uint64_t new_)
{
    struct paired_rule rule;
    struct comparison_metric *m = new_row(k, name, role_of(k, name, false, &rule));
    if (!m) return compare_no_memory(k->err);
    m->base = (struct run_estimate){.known = true, .value = (double)base};
    m->new_ = (struct run_estimate){.known = true, .value = (double)new_};
    if (base) m->ratio = (struct run_estimate){.known = true, .value = (double)new_ / (double)base};
    m->verdict = "unverified";
    m->why = "of the whole record: without steps there is one number a side";
    run_map_text(&k->c->arena, &m->unknown, "gate", m->why);
    return TARE_OK;
}

/* ---- kernels ---- */

#define NO_KERNEL SIZE_MAX

static bool same_shape(const struct gpu_series_kernel *a, const struct gpu_series_kernel *b)
{
    return a->blocks == b->blocks && a->threads == b->threads;
}

static size_t count_name(const struct gpu_series_card *c, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_kernels; i++) n += strcmp(c->kernels[i].name, name) == 0;
    return n;
}

/* The same name in full; else the same short name and launch shape; else a short name that each side has but once: a
 * compiler or a library of another version calls the same kernel by other template arguments. */
static size_t find_kernel(const struct gpu_series_kernel *k, const struct gpu_series_card *own,
                          const struct gpu_series_card *other, const bool *taken)
{
    for (int way = 0; way < 3; way++)
        for (size_t i = 0; i < other->n_kernels; i++) {
            const struct gpu_series_kernel *o = &other->kernels[i];
            if (taken[i]) continue;
            if (way == 0 && strcmp(o->full, k->full) == 0) return i;
            if (way == 0 || strcmp(o->name, k->name) != 0) continue;
            if (way == 1 && same_shape(o, k)) return i;
            if (way == 2 && count_name(own, k->name) == 1 && count_name(other, k->name) == 1) return i;
        }
    return NO_KERNEL;
}

/* Names that stand for several kernels get their launch shape. */
static const char *row_name(struct comparing *k, const struct gpu_series_kernel *of,
                            const struct gpu_series_card *in)
{
    if (count_name(in, of->name) == 1) return arena_printf(&k->c->arena, "kernel.time %s", of->name);
    return arena_printf(&k->c->arena, "kernel.time %s [%llu x %llu]", of->name,
                        (unsigned long long)of->blocks, (unsigned long long)of->threads);
}

static struct samples samples_of(const struct comparing *k, const struct gpu_series_kernel *of,
                                 size_t n_steps)
{
    if (k->to->pairs.v && !k->doubt) return (struct samples){of->step_ns, n_steps};
    return (struct samples){of->run_ns, of->n_runs};
}

static double per_step(uint64_t runs, size_t steps)
{
    return steps ? (double)runs / (double)steps : (double)runs;
}

/* More runs are told in words: then a longer time is no slower kernel. */
static void tell_runs(struct comparing *k, struct comparison_metric *m, double base, double new_, bool steps)
{
    struct arena *a = &k->c->arena;
    run_map_real(a, &m->evidence, steps ? "base_runs_per_step" : "base_runs", base);
    run_map_real(a, &m->evidence, steps ? "new_runs_per_step" : "new_runs", new_);
    if (fabs(new_ - base) < 0.005 * base || m->why) return;
    m->why = arena_printf(a, "%s runs%s, then %s", show_number(base).s, steps ? " a step" : "",
                          show_number(new_).s);
}

static void tell_unmatched(struct comparing *k, const char *side, const struct gpu_series_kernel *of,
                           const struct gpu_series_card *in)
{
    double runs = per_step(of->runs, in->n_steps);
    const char *name = arena_printf(&k->c->arena, "kernel %s: %s, %s", of->name, show_count(runs, "run").s,
                                    show_time(per_step(of->ns, in->n_steps)).s);
    comparison_add_unmatched(k->c, side, in->n_steps ? arena_printf(&k->c->arena, "%s a step", name) : name);
}

static tare_status add_kernel(struct comparing *k, const struct gpu_series_card *base, size_t at,
                              const struct gpu_series_card *new_, bool *taken)
{
    const struct gpu_series_kernel *of = &base->kernels[at];
    size_t other = find_kernel(of, base, new_, taken);
    if (other == NO_KERNEL) {
        tell_unmatched(k, "base", of, base);
        return TARE_OK;
    }
    const struct gpu_series_kernel *then = &new_->kernels[other];
    taken[other] = true;
    struct row r = {.name = row_name(k, of, base),
                    .measure = "kernel.time",
                    .on_gpu = true,
                    .base = samples_of(k, of, base->n_steps),
                    .new_ = samples_of(k, then, new_->n_steps)};
    tare_status s = add_row(k, &r);
    if (s < 0 || !r.made) return s;
    if (k->doubt) return TARE_OK; /* how often it ran is not known */
    bool steps = k->to->pairs.v > 0;
    tell_runs(k, r.made, per_step(of->runs, steps ? base->n_steps : 0),
              per_step(then->runs, steps ? new_->n_steps : 0), steps);
    return TARE_OK;
}

static tare_status add_kernels(struct comparing *k, const struct gpu_series_card *base,
                               const struct gpu_series_card *new_)
{
    bool *taken = mem_new(new_->n_kernels + 1, sizeof *taken);
    tare_status s = TARE_OK;
    if (!taken) return compare_no_memory(k->err);
    for (size_t i = 0; i < base->n_kernels && s == TARE_OK; i++) s = add_kernel(k, base, i, new_, taken);
    for (size_t i = 0; i < new_->n_kernels && s == TARE_OK; i++)
        if (!taken[i]) tell_unmatched(k, "new", &new_->kernels[i], new_);
    mem_free(taken);
    uint64_t left = base->left_out + new_->left_out;
    if (left)
        comparison_note(k->c, k->to, "kernels.many", "info",
                        "%llu kernels with the least time are not compared", (unsigned long long)left);
    return s;
}

/* ---- a GPU ---- */

/* Sums of several columns. */
static double *sum_columns(struct comparing *k, const double *const *columns, size_t n_columns, size_t n)
{
    double *sum = arena_new(&k->c->arena, n + 1, sizeof *sum);
    for (size_t c = 0; sum && c < n_columns; c++)
        for (size_t i = 0; i < n; i++) sum[i] += columns[c][i];
    return sum;
}

/* What a trace with missing records cannot tell. */
static tare_status add_unknown(struct comparing *k, const char *name)
{
    static const char *const fields[] = {"base", "new", "ratio", "gate"};
    struct paired_rule rule;
    struct comparison_metric *m =
        new_row(k, name, role_of(k, name, strcmp(name, "kernels.time") == 0, &rule));
    if (!m) return compare_no_memory(k->err);
    m->verdict = "inconclusive";
    m->why = "cannot tell: records are missing";
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        run_map_text(&k->c->arena, &m->unknown, fields[i], "records are missing");
    return TARE_OK;
}

static double *kernel_sums(struct comparing *k, const struct gpu_series_card *c)
{
    double *sum = arena_new(&k->c->arena, c->n_steps + 1, sizeof *sum);
    for (size_t i = 0; sum && i < c->n_kernels; i++)
        for (size_t s = 0; s < c->n_steps; s++) sum[s] += c->kernels[i].step_ns[s];
    return sum;
}

static double sum_of(struct samples s)
{
    double sum = 0;
    for (size_t i = 0; i < s.n; i++) sum += s.x[i];
    return sum;
}

/* What neither side has is no row. `gate`: of the GPU alone. */
static tare_status add_columns(struct comparing *k, const char *name, bool gate, struct samples base,
                               struct samples new_)
{
    struct row r = {.name = name, .base = base, .new_ = new_, .gate = gate, .on_gpu = gate};
    if (!base.x || !new_.x) return compare_no_memory(k->err);
    return sum_of(base) > 0 || sum_of(new_) > 0 ? add_row(k, &r) : TARE_OK;
}

static const char *const sums[] = {"kernels.time", "busy.time", "idle.time", "copy.time"};

static tare_status add_idle(struct comparing *k, const struct gpu_series_card *a,
                            const struct gpu_series_card *b)
{
    const size_t n = a->n_steps, m = b->n_steps;
    const double least =
        0.001 * sum_of((struct samples){a->step_ns, n}); /* a cause of less explains nothing */
    tare_status s =
        add_columns(k, "idle.time", false, (struct samples){sum_columns(k, a->idle_ns, GPU_CAUSES, n), n},
                    (struct samples){sum_columns(k, b->idle_ns, GPU_CAUSES, m), m});
    for (unsigned i = 0; i < GPU_CAUSES && s == TARE_OK; i++) {
        struct samples base = {a->idle_ns[i], n}, new_ = {b->idle_ns[i], m};
        const char *name = arena_printf(&k->c->arena, "idle.%s", gpu_cause_name(i));
        if (!name) return compare_no_memory(k->err);
        if (sum_of(base) > least || sum_of(new_) > least) s = add_columns(k, name, false, base, new_);
    }
    return s;
}

static tare_status add_steps(struct comparing *k, const struct gpu_series_card *a,
                             const struct gpu_series_card *b)
{
    const size_t n = a->n_steps, m = b->n_steps;
    tare_status s =
        add_columns(k, "step.time", false, (struct samples){a->step_ns, n}, (struct samples){b->step_ns, m});
    for (size_t i = 0; k->doubt && i < sizeof sums / sizeof *sums && s == TARE_OK; i++)
        s = add_unknown(k, sums[i]);
    if (s < 0 || k->doubt) return s;
    if (s == TARE_OK)
        s = add_columns(k, "kernels.time", true, (struct samples){kernel_sums(k, a), n},
                        (struct samples){kernel_sums(k, b), m});
    if (s == TARE_OK)
        s = add_columns(k, "busy.time", false, (struct samples){a->busy_ns, n},
                        (struct samples){b->busy_ns, m});
    if (s == TARE_OK)
        s = add_columns(k, "copy.time", false, (struct samples){a->copy_ns, n},
                        (struct samples){b->copy_ns, m});
    return s == TARE_OK ? add_idle(k, a, b) : s;
}

static tare_status add_totals(struct comparing *k, const struct gpu_series_card *a,
                              const struct gpu_series_card *b)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; k->doubt && i < sizeof sums / sizeof *sums && s == TARE_OK; i++)
        s = add_unknown(k, sums[i]);
    if (s < 0 || k->doubt) return s;
    s = add_total(k, "kernels.time", a->all_kernel_ns, b->all_kernel_ns);
    if (s == TARE_OK) s = add_total(k, "busy.time", a->all_busy_ns, b->all_busy_ns);
    if (s == TARE_OK) s = add_total(k, "idle.time", a->wall_ns - a->all_busy_ns, b->wall_ns - b->all_busy_ns);
    if (s == TARE_OK && (a->all_copy_ns || b->all_copy_ns))
        s = add_total(k, "copy.time", a->all_copy_ns, b->all_copy_ns);
    return s;
}

static void tell_steps(struct comparing *k, const struct gpu_series_card *a, const struct gpu_series_card *b)
{
    struct comparison *c = k->c;
    k->to->pairs = known_u64(a->n_steps < b->n_steps ? a->n_steps : b->n_steps);
    if (!k->to->pairs.v)
        comparison_note(
            c, k->to, "steps.none", "warn",
            "no steps were found in %s: single runs of kernels are compared, and totals are not judged",
            a->n_steps ? "the new trace" : "the base trace");
    k->doubt = a->busy_unknown || b->busy_unknown;
    if (k->doubt)
        comparison_note(
            c, k->to, "busy.unknown", "warn",
            "records are missing in %s: single runs of kernels are compared; sums, busy and idle times are not",
            a->busy_unknown ? "the base trace" : "the new trace");
    if (a->name && b->name && strcmp(a->name, b->name) != 0) {
        struct comparison_difference *d = comparison_add_difference(c, "gpu", a->name, b->name);
        if (d) d->severity = "warn";
    }
    if (k->to->pairs.v && strcmp(a->found_by, b->found_by) != 0)
        comparison_note(
            c, k->to, "steps.differ", "warn",
            "steps were found by %s in one trace and by %s in the other: they may not be the same",
            a->found_by, b->found_by);
}

/* ---- cards ---- */

static size_t count_cards(const struct gpu_series *in, uint32_t number)
{
    size_t n = 0;
    for (size_t i = 0; i < in->n_cards; i++) n += in->cards[i].number == number;
    return n;
}

static const struct gpu_series_card *find_card(const struct gpu_series *in, uint32_t number, uint64_t rank)
{
    for (size_t i = 0; i < in->n_cards; i++)
        if (in->cards[i].number == number && in->cards[i].rank == rank) return &in->cards[i];
    return NULL;
}

static const struct gpu_series_card *first_card(const struct gpu_series *in, uint32_t number)
{
    for (size_t i = 0; i < in->n_cards; i++)
        if (in->cards[i].number == number) return &in->cards[i];
    return NULL;
}

/* The ranks of a job may each call their card 0: then only the rank tells which is which. The only one of its number in
 * both is the same, whatever is said of ranks; the only one, of a program that is no job, goes with the first of
 * several. Of several with one number and rank the first is taken, and the others have no counterpart. */
static const struct gpu_series_card *counterpart(const struct gpu_series *own, const struct gpu_series *other,
                                                 const struct gpu_series_card *card)
{
    uint32_t number = card->number;
    const struct gpu_series_card *there = first_card(other, number), *same = NULL;
    bool alone = count_cards(own, number) == 1, alone_there = count_cards(other, number) == 1;
    if (!there || (alone && alone_there)) return there;
    if (find_card(own, number, card->rank) == card) same = find_card(other, number, card->rank);
    if (same) return same;
    if (alone && !card->rank) return there;
    bool is_taken = find_card(own, number, 0) != NULL;
    return alone_there && !there->rank && !is_taken && first_card(own, number) == card ? there : NULL;
}

static const char *name_of(struct comparison *c, const struct gpu_series *own,
                           const struct gpu_series_card *card)
{
    bool alone = count_cards(own, card->number) == 1,
         first = find_card(own, card->number, card->rank) == card;
    if (!alone && card->rank)
        return arena_printf(&c->arena, "gpu %u of %srank %llu", card->number,
                            first ? "" : "another process of ", (unsigned long long)(card->rank - 1));
    return arena_printf(&c->arena, "gpu %u%s", card->number, first ? "" : " of another process");
}

/* Without steps in one of them, both are compared without. */
static tare_status add_card(struct comparing *k, const struct gpu_series_card *a,
                            const struct gpu_series_card *b)
{
    k->to = comparison_add_case(k->c, name_of(k->c, k->in->base, a));
    if (!k->to) return compare_no_memory(k->err);
    tell_steps(k, a, b);
    tare_status s = k->to->pairs.v ? add_steps(k, a, b) : add_totals(k, a, b);
    return s == TARE_OK ? add_kernels(k, a, b) : s;
}

/* ---- all of it ---- */

static void hold_false_alarms(struct comparing *k)
{
    paired_holm(k->slower.items, k->slower.n);
    paired_holm(k->faster.items, k->faster.n);
    for (size_t i = 0; i < k->judged.n; i++) {
        struct comparison_metric *m = k->judged.items[i];
        bool improved = strcmp(m->verdict, "improved") == 0;
        compare_adjust(m, k->slower.items[i], k->in->rule.alpha, k->judged.n);
        if (!improved || k->faster.items[i] <= k->in->rule.alpha) continue;
        m->verdict = "inconclusive";
        m->why = "faster by itself, but among so many comparisons such a one comes by chance";
    }
}

static void describe(struct comparison *c, const struct compare_gpu *in)
{
    const struct gpu_series *sides[] = {in->base, in->new_};
    struct comparison_side *to[] = {&c->base, &c->new_};
    for (int i = 0; i < PAIR_SIDES; i++) {
        to[i]->name = to[i]->path = arena_str(&c->arena, sides[i]->path);
        to[i]->type = "trace";
    }
    run_map_real(&c->arena, &c->config, "min_effect", in->rule.min_effect);
    run_map_real(&c->arena, &c->config, "alpha", in->rule.alpha);
    for (size_t i = 0; i < in->n_limits; i++)
        run_map_textf(&c->arena, &c->config, in->limits[i].metric, ">%.6g%%",
                      100 * (isnan(in->limits[i].share) ? in->rule.min_effect : in->limits[i].share));
    struct run like = {.arena = c->arena, .host = c->host};
    run_explain_host(&like, RUN_BY_IMPORT); /* a trace does not tell the machine */
    c->arena = like.arena;
    c->host = like.host;
    comparison_note(
        c, NULL, "runs.one", "info",
        "judged by the steps of one run a side: by how much whole runs of this program differ (clocks, "
        "heat, neighbours) is not in the intervals");
}

static void tell_other_cards(struct comparison *c, const char *side, const struct gpu_series *own,
                             const struct gpu_series *other)
{
    for (size_t i = 0; i < own->n_cards; i++)
        if (!counterpart(own, other, &own->cards[i]))
            comparison_add_unmatched(c, side, name_of(c, own, &own->cards[i]));
}

tare_status compare_gpu(struct comparison *c, const struct compare_gpu *in, tare_error *err)
{
    struct comparing k = {.c = c, .in = in, .err = err};
    tare_status s = TARE_OK;
    describe(c, in);
    for (size_t i = 0; i < in->base->n_cards && s == TARE_OK; i++) {
        const struct gpu_series_card *a = &in->base->cards[i], *b = counterpart(in->base, in->new_, a);
        if (b) s = add_card(&k, a, b);
    }
    tell_other_cards(c, "base", in->base, in->new_);
    tell_other_cards(c, "new", in->new_, in->base);
    if (s == TARE_OK && !c->cases.n)
        s = error_set(err, TARE_INVALID, "%s and %s: no GPU worked in both", in->base->path, in->new_->path);
    if (s == TARE_OK) hold_false_alarms(&k);
    vec_release(&k.judged);
    vec_release(&k.slower);
    vec_release(&k.faster);
    if (s == TARE_OK && c->arena.failed) s = compare_no_memory(err);
    if (s == TARE_OK) comparison_sum_up(c);
    return s;
}
