/* SPDX-License-Identifier: MIT
 * compare_gpu.c - see compare_gpu.h: which rows there are, and whose numbers stand in them. */
#include "analyze/compare/compare_gpu.h"

#include <math.h>
#include <string.h>

#include "analyze/compare/compare_gpu_row.h"
#include "analyze/compare/compare_pairs.h"
#include "analyze/gpu/gpu_name.h"
#include "analyze/gpu/gpu_work.h"
#include "core/fmt.h"

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

static const struct gpu_series_card *first_of(const struct comparing *k, int side)
{
    return k->side[side].card[0];
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

/* One kernel in all runs of both sides. */
struct kernel_runs {
    const struct gpu_series_kernel **found[PAIR_SIDES]; /* NULL: not in that run */
    bool **taken[PAIR_SIDES];                           /* of each run, by kernel */
};

static struct samples samples_of(const struct comparing *k, const struct gpu_series_kernel *of,
                                 size_t n_steps)
{
    if (!of) return (struct samples){NULL, 0};
    if (k->to->pairs.v && !k->doubt) return (struct samples){of->step_ns, n_steps};
    return (struct samples){of->run_ns, of->n_runs};
}

static double per_step(uint64_t runs, size_t steps)
{
    return steps ? (double)runs / (double)steps : (double)runs;
}

/* How often it ran in a step; without steps, in a run. */
static double runs_of(const struct comparing *k, const struct kernel_runs *of, int side)
{
    uint64_t runs = 0, steps = 0;
    for (size_t i = 0; i < k->side[side].n; i++) {
        if (of->found[side][i]) runs += of->found[side][i]->runs;
        steps += k->to->pairs.v ? k->side[side].card[i]->n_steps : 1;
    }
    return per_step(runs, steps);
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

static tare_status add_kernel_row(struct comparing *k, const struct kernel_runs *of, const char *name,
                                  bool steady)
{
    struct gpu_row r = {.name = name, .measure = "kernel.time", .on_gpu = true, .steady = steady};
    for (int side = 0; side < PAIR_SIDES; side++) {
        struct samples *to = arena_new(&k->c->arena, k->side[side].n, sizeof *to);
        if (!to) return compare_no_memory(k->err);
        for (size_t i = 0; i < k->side[side].n; i++)
            to[i] = samples_of(k, of->found[side][i], k->side[side].card[i]->n_steps);
        r.samples[side] = to;
    }
    tare_status s = gpu_row_add(k, &r);
    if (s < 0 || k->doubt) return s; /* doubt: how often it ran is not known */
    tell_runs(k, r.made, runs_of(k, of, PAIR_A), runs_of(k, of, PAIR_B), k->to->pairs.v > 0);
    return TARE_OK;
}

/* A kernel of the first run of the base, and the same of all other runs. */
static tare_status add_kernel(struct comparing *k, size_t at, const struct kernel_runs *of)
{
    const struct gpu_series_card *base = first_of(k, PAIR_A);
    const struct gpu_series_kernel *own = &base->kernels[at];
    size_t seen[PAIR_SIDES] = {0, 0};
    if (of->taken[PAIR_A][0][at]) return TARE_OK;
    for (int side = 0; side < PAIR_SIDES; side++)
        for (size_t i = 0; i < k->side[side].n; i++) {
            const struct gpu_series_card *card = k->side[side].card[i];
            size_t there = card == base ? at : find_kernel(own, base, card, of->taken[side][i]);
            of->found[side][i] = there == NO_KERNEL ? NULL : &card->kernels[there];
            if (there == NO_KERNEL) continue;
            of->taken[side][i][there] = true;
            seen[side]++;
        }
    const bool waits = strcmp(gpu_name_group(own->full), GPU_GROUP_COMMUNICATION) == 0;
    if (seen[PAIR_B]) return add_kernel_row(k, of, row_name(k, own, base), !waits);
    tell_unmatched(k, "base", own, base);
    return TARE_OK;
}

static bool kernel_runs_init(struct comparing *k, struct kernel_runs *of)
{
    struct arena *a = &k->c->arena;
    for (int side = 0; side < PAIR_SIDES; side++) {
        size_t n = k->side[side].n;
        of->found[side] = arena_new(a, n, sizeof *of->found[side]);
        of->taken[side] = arena_new(a, n, sizeof *of->taken[side]);
        for (size_t i = 0; of->taken[side] && i < n; i++)
            of->taken[side][i] = arena_new(a, k->side[side].card[i]->n_kernels + 1, sizeof(bool));
    }
    return !a->failed;
}

static tare_status add_kernels(struct comparing *k)
{
    const struct gpu_series_card *base = first_of(k, PAIR_A), *new_ = first_of(k, PAIR_B);
    struct kernel_runs of;
    tare_status s = TARE_OK;
    if (!kernel_runs_init(k, &of)) return compare_no_memory(k->err);
    for (size_t i = 0; i < base->n_kernels && s == TARE_OK; i++) s = add_kernel(k, i, &of);
    for (size_t i = 0; i < new_->n_kernels && s == TARE_OK; i++)
        if (!of.taken[PAIR_B][0][i]) tell_unmatched(k, "new", &new_->kernels[i], new_);
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
        gpu_row_new(k, name, gpu_row_role(k, name, strcmp(name, "kernels.time") == 0, &rule));
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
    for (size_t i = 0; s.x && i < s.n; i++) sum += s.x[i];
    return sum;
}

enum column { STEP_TIME, KERNELS_TIME, BUSY_TIME, COPY_TIME, IDLE_TIME, IDLE_CAUSE };
static const char *const column_names[] = {"step.time", "kernels.time", "busy.time", "copy.time",
                                           "idle.time"};

/* Of each step; without steps, of the whole record. `cause`: of IDLE_CAUSE. */
static struct samples column_of(struct comparing *k, const struct gpu_series_card *c, enum column what,
                                unsigned cause)
{
    const size_t n = c->n_steps;
    const uint64_t totals[] = {[KERNELS_TIME] = c->all_kernel_ns,
                               [BUSY_TIME] = c->all_busy_ns,
                               [COPY_TIME] = c->all_copy_ns,
                               [IDLE_TIME] = c->wall_ns - c->all_busy_ns};
    if (!k->to->pairs.v) {
        double *one = arena_new(&k->c->arena, 1, sizeof *one);
        if (one) *one = (double)totals[what];
        return (struct samples){one, 1};
    }
    switch (what) {
    case STEP_TIME: return (struct samples){c->step_ns, n};
    case KERNELS_TIME: return (struct samples){kernel_sums(k, c), n};
    case BUSY_TIME: return (struct samples){c->busy_ns, n};
    case COPY_TIME: return (struct samples){c->copy_ns, n};
    case IDLE_TIME: return (struct samples){sum_columns(k, c->idle_ns, GPU_CAUSES, n), n};
    case IDLE_CAUSE: return (struct samples){c->idle_ns[cause], n};
    }
    return (struct samples){NULL, 0};
}

/* What neither side has is no row, nor is what takes no more than `least`. */
static tare_status add_column(struct comparing *k, enum column what, unsigned cause, double least)
{
    struct gpu_row r = {.name = column_names[what == IDLE_CAUSE ? IDLE_TIME : what],
                        .gate = what == KERNELS_TIME || (what == STEP_TIME && k->between),
                        .on_gpu = what == KERNELS_TIME,
                        .whole = !k->to->pairs.v};
    bool some = r.whole && what != COPY_TIME;
    if (what == IDLE_CAUSE) r.name = arena_printf(&k->c->arena, "idle.%s", gpu_cause_name(cause));
    for (int side = 0; side < PAIR_SIDES; side++) {
        struct samples *to = arena_new(&k->c->arena, k->side[side].n, sizeof *to);
        for (size_t i = 0; to && i < k->side[side].n; i++) {
            to[i] = column_of(k, k->side[side].card[i], what, cause);
            if (!to[i].x) return compare_no_memory(k->err);
            some = some || sum_of(to[i]) > least;
        }
        r.samples[side] = to;
    }
    if (k->c->arena.failed) return compare_no_memory(k->err);
    return some ? gpu_row_add(k, &r) : TARE_OK;
}

/* Length of steps, then sums; where records are missing these are unknown. */
static tare_status add_columns(struct comparing *k)
{
    const bool steps = k->to->pairs.v > 0;
    const struct gpu_series_card *a = first_of(k, PAIR_A);
    tare_status s = steps ? add_column(k, STEP_TIME, 0, 0) : TARE_OK;
    for (enum column i = KERNELS_TIME; i <= IDLE_TIME && s == TARE_OK; i++)
        s = k->doubt ? add_unknown(k, column_names[i]) : add_column(k, i, 0, 0);
    if (k->doubt || !steps) return s;
    const double least =
        0.001 * sum_of((struct samples){a->step_ns, a->n_steps}); /* a cause of less explains nothing */
    for (unsigned i = 0; i < GPU_CAUSES && s == TARE_OK; i++) s = add_column(k, IDLE_CAUSE, i, least);
    return s;
}

/* "the base trace", or one of several. */
static const char *trace_word(const struct comparing *k, int side)
{
    const char *several = side == PAIR_A ? "a trace of the base" : "a trace of the new side";
    const char *one = side == PAIR_A ? "the base trace" : "the new trace";
    return k->side[side == PAIR_A ? PAIR_A : PAIR_B].n > 1 ? several : one;
}

struct lacking {
    int steps, records; /* the side of a run without; -1: none */
};

/* Where the runs of a case are no match: models, and how steps were found. */
static struct lacking look_at_runs(struct comparing *k)
{
    struct comparison *c = k->c;
    const struct gpu_series_card *a = first_of(k, PAIR_A);
    struct lacking found = {-1, -1};
    const char *other = NULL, *way = NULL;
    size_t steps[PAIR_SIDES] = {0, 0};
    for (int side = PAIR_SIDES - 1; side >= 0; side--)
        for (size_t i = k->side[side].n; i-- > 0;) {
            const struct gpu_series_card *b = k->side[side].card[i];
            steps[side] += b->n_steps;
            if (!b->n_steps) found.steps = side;
            if (b->busy_unknown) found.records = side;
            if (a->name && b->name && strcmp(a->name, b->name) != 0) other = b->name;
            if (a->n_steps && b->n_steps && strcmp(a->found_by, b->found_by) != 0) way = b->found_by;
        }
    k->to->pairs = known_u64(0);
    if (found.steps < 0)
        k->to->pairs = known_u64(steps[PAIR_A] < steps[PAIR_B] ? steps[PAIR_A] : steps[PAIR_B]);
    struct comparison_difference *d = other ? comparison_add_difference(c, "gpu", a->name, other) : NULL;
    if (d) d->severity = "warn";
    if (k->to->pairs.v && way)
        comparison_note(
            c, k->to, "steps.differ", "warn",
            "steps were found by %s in one trace and by %s in the other: they may not be the same",
            a->found_by, way);
    return found;
}

static void tell_steps(struct comparing *k)
{
    struct comparison *c = k->c;
    const struct lacking found = look_at_runs(k);
    if (!k->to->pairs.v)
        comparison_note(c, k->to, "steps.none", "warn",
                        "no steps were found in %s: single runs of kernels are compared, and totals are %s",
                        trace_word(k, found.steps), k->between ? "those of whole records" : "not judged");
    k->doubt = found.records >= 0;
    if (k->doubt)
        comparison_note(
            c, k->to, "busy.unknown", "warn",
            "records are missing in %s: single runs of kernels are compared; sums, busy and idle times are not",
            trace_word(k, found.records));
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

/* The card of a case in all runs of a side that have it. */
static tare_status find_runs(struct comparing *k, int side, const struct gpu_series_card *card)
{
    const struct compare_gpu_side *in = &k->in->side[side];
    const struct gpu_series *first = &k->in->side[PAIR_A].runs[0];
    struct gpu_side *to = &k->side[side];
    *to = (struct gpu_side){.card = arena_new(&k->c->arena, in->n, sizeof *to->card),
                            .at = arena_new(&k->c->arena, in->n, sizeof *to->at)};
    if (!to->card || !to->at) return compare_no_memory(k->err);
    for (size_t i = 0; i < in->n; i++) {
        const struct gpu_series *run = &in->runs[i];
        const struct gpu_series_card *there = run == first ? card : counterpart(first, run, card);
        int64_t ms = run->begun_ms ? run->begun_ms : (int64_t)i * k->in->apart_ms;
        if (!there) continue; /* of a run that is not the first: it used fewer cards */
        to->card[to->n] = there;
        to->at[to->n++].ms = ms;
    }
    return TARE_OK;
}

/* Runs of the base that count each. */
static tare_status count_runs(struct comparing *k, size_t *out)
{
    const struct gpu_side *of = &k->side[PAIR_A];
    struct compare_values v = {.y = arena_new(&k->c->arena, of->n, sizeof *v.y)};
    if (!v.y) return compare_no_memory(k->err);
    compare_cluster(&v, of->at, of->n, k->in->apart_ms);
    *out = v.n;
    return TARE_OK;
}

/* Without steps in one of the runs, all are compared without. */
static tare_status add_card(struct comparing *k, const struct gpu_series_card *card)
{
    size_t runs = 0;
    tare_status s = TARE_OK;
    for (int side = 0; side < PAIR_SIDES && s == TARE_OK; side++) s = find_runs(k, side, card);
    if (s == TARE_OK) s = count_runs(k, &runs);
    if (s < 0 || !k->side[PAIR_B].n) return s;
    k->between = runs >= BETWEEN_RUNS_MIN;
    k->to = comparison_add_case(k->c, name_of(k->c, &k->in->side[PAIR_A].runs[0], card));
    if (!k->to) return compare_no_memory(k->err);
    tell_steps(k);
    if (!k->between)
        comparison_note(
            k->c, NULL, "runs.one", "info",
            k->side[PAIR_A].n == 1 && k->side[PAIR_B].n == 1
                ? "judged by the steps of one run a side: by how much whole runs of this program differ (clocks, "
                  "heat, neighbours) is not in the intervals"
                : "judged by the steps of all runs together: three of the base, 30 s apart (--close-runs: or not), "
                  "would tell by how much whole runs differ");
    s = add_columns(k);
    if (s == TARE_OK) s = add_kernels(k);
    return s == TARE_OK ? gpu_rows_judge(k) : s;
}

/* ---- all of it ---- */

static void describe(struct comparison *c, const struct compare_gpu *in)
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
    const struct gpu_series *base = &in->side[PAIR_A].runs[0], *new_ = &in->side[PAIR_B].runs[0];
    tare_status s = TARE_OK;
    describe(c, in);
    for (size_t i = 0; i < base->n_cards && s == TARE_OK; i++)
        if (counterpart(base, new_, &base->cards[i])) s = add_card(&k, &base->cards[i]);
    tell_other_cards(c, "base", base, new_);
    tell_other_cards(c, "new", new_, base);
    if (s == TARE_OK && !c->cases.n)
        s = error_set(err, TARE_INVALID, "%s and %s: no GPU worked in both", base->path, new_->path);
    if (s == TARE_OK) gpu_rows_hold(&k);
    vec_release(&k.rows);
    vec_release(&k.judged);
    vec_release(&k.slower);
    vec_release(&k.faster);
    if (s == TARE_OK && c->arena.failed) s = compare_no_memory(err);
    if (s == TARE_OK) comparison_sum_up(c);
    return s;
}
