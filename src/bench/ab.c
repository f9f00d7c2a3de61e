/* SPDX-License-Identifier: MIT
 * ab.c - the engine of ab.h: epochs of launches, pairs in an order that a coin decides, a budget. Never drops a
 * pair without counting it, never looks at who is faster. */
#include "bench/ab.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/engine.h"
#include "core/mem.h"
#include "probe/procfs.h"

#define SHORT_NS UINT64_C(1000000)  /* units shorter than this are repeated .. */
#define REPEAT_NS UINT64_C(2000000) /* .. until one measurement takes this */
#define REPEATS_MAX 1000000
#define SHARE_LEAST 0.1 /* of launches in the spread: below, it is taken as this */
#define COST_MOST 2.0   /* pairs of one launch take at most so many times as long as launching it */

enum {
    EPOCH_LEAST = 3,     /* pairs in one launch */
    FAILED_MOST = 3,     /* lost pairs, and .. */
    FAILED_SHARE = 10,   /* .. every tenth of all: then it is no measurement any more */
    FAILED_REQUESTS = 2, /* of a service every second: a pair has many requests, one of which may fail */
    PAIRS_ANYWAY = 2     /* taken whatever the budget says */
};

static const char *const side_words[PAIR_SIDES] = {"base", "new"};

struct ab {
    const struct ab_plan *plan;
    struct pair_set *set;
    struct ab_outcome *out;
    struct rng rng;
    bool own_launch;
    uint64_t began;
    uint64_t launch_ns, n_launches; /* starting and warming up, in all */
    uint64_t pairs_ns, n_timed;     /* pairs, warming-up ones included */
    size_t next_look;
    double launch_share; /* as the latest look said */
    bool done;
};

static uint64_t now(void)
{
    return bench_machine.now();
}

static bool is_interrupted(const struct ab *e)
{
    return e->plan->interrupted && *e->plan->interrupted;
}

static uint64_t left_ns(const struct ab *e)
{
    uint64_t spent = now() - e->began;
    return spent < e->plan->budget_ns ? e->plan->budget_ns - spent : 0;
}

static void report_progress(struct ab *e)
{
    const struct bench_progress *p = &e->plan->progress;
    uint64_t spent = now() - e->began, all = e->plan->budget_ns;
    if (p->report) p->report(p->ctx, e->plan->name, spent < all ? spent : all, all);
}

static tare_status name_side(const struct ab *e, int side, tare_error *err)
{
    const char *name = e->plan->lane[side]->name;
    return error_wrap(err, "%s%s%s (%s)", e->plan->name ? e->plan->name : "", e->plan->name ? ": " : "",
                      side_words[side], name ? name : "unnamed");
}

/* ---- a launch ---- */

static struct ab_layout draw_layout(struct ab *e)
{
    return (struct ab_layout){.env_pad = (uint32_t)rng_below(&e->rng, AB_ENV_PAD_MAX),
                              .heap_pad = AB_HEAP_STEP *
                                          (uint32_t)rng_below(&e->rng, AB_HEAP_PAD_MAX / AB_HEAP_STEP)};
}

/* Short units are run several times per measurement: as often on one side as on the other. */
static void settle_repeats(struct ab *e, const struct ab_launched *l)
{
    uint64_t least =
        l[PAIR_A].typical_ns < l[PAIR_B].typical_ns ? l[PAIR_A].typical_ns : l[PAIR_B].typical_ns;
    if (e->set->repeats) return;
    e->set->repeats = 1;
    if (e->own_launch || least >= SHORT_NS) return;
    uint64_t n = REPEAT_NS / (least ? least : 1) + 1;
    e->set->repeats = n < REPEATS_MAX ? n : REPEATS_MAX;
}

static tare_status add_epoch(struct pair_set *set, tare_error *err)
{
    if (set->n_epochs == set->cap_epochs) {
        void *grown = vec_grow_(set->epochs, &set->cap_epochs, set->n_epochs + 1, sizeof *set->epochs);
        if (!grown) return error_nomem(err, "launches");
        set->epochs = grown;
    }
    set->epochs[set->n_epochs++] = (struct pair_epoch){0};
    return TARE_OK;
}

/* Both are launched before either is waited for, in an order that the coin decides: they load side by side. */
static tare_status start_both(struct ab *e, tare_error *err)
{
    struct ab_launched launched[PAIR_SIDES] = {0};
    struct ab_lane *const *lane = e->plan->lane;
    uint64_t start = now();
    report_progress(e); /* from the first moment on */
    tare_status s = add_epoch(e->set, err);
    int first = (int)rng_below(&e->rng, 2), side = 0;
    for (int i = 0; s == TARE_OK && i < PAIR_SIDES; i++) {
        struct ab_layout layout = draw_layout(e);
        side = first ^ i;
        e->set->epochs[e->set->n_epochs - 1].side[side] =
            (struct pair_launch){.env_pad = layout.env_pad, .heap_pad = layout.heap_pad};
        s = lane[side]->ops->launch(lane[side], &layout, err);
    }
    for (int i = 0; s == TARE_OK && i < PAIR_SIDES; i++) {
        side = first ^ i;
        struct pair_launch *to = &e->set->epochs[e->set->n_epochs - 1].side[side];
        s = lane[side]->ops->ready(lane[side], &launched[side], err);
        to->load_ns = launched[side].load_ns;
        to->warmup_runs = launched[side].warmup_runs;
    }
    report_progress(e);
    if (s < 0) return is_interrupted(e) ? s : name_side(e, side, err);
    settle_repeats(e, launched);
    e->launch_ns += now() - start;
    e->n_launches++;
    return s;
}

static void stop_both(struct ab *e)
{
    for (int side = 0; side < PAIR_SIDES; side++) {
        uint64_t peak = 0;
        struct ab_lane *l = e->plan->lane[side];
        l->ops->stop(l, &peak);
        if (e->set->n_epochs) e->set->epochs[e->set->n_epochs - 1].side[side].rss_peak = peak;
    }
}

/* ---- a pair ---- */

#define SHIFT_MOST 0.3                   /* processors that others may use more, or less, beside the other side */
#define SHIFT_LEAST_NS UINT64_C(100000000) /* of a measurement: the kernel counts in hundredths of a second */

/* Processors that others kept busy beside one measurement; NAN: not known. */
static double others_beside(struct known_u64 before, const struct pair_side *side)
{
    struct known_u64 after = bench_machine.busy();
    if (!before.known || !after.known || side->wall_ns < SHIFT_LEAST_NS) return NAN;
    double all = (double)(after.v - before.v), own = (double)side->cpu_ns;
    return fmax(all - own, 0) / (double)side->wall_ns;
}

static bool has_shifted(const double *others)
{
    return fabs(others[PAIR_A] - others[PAIR_B]) > SHIFT_MOST; /* NAN: no */
}

/* *lost: the pair is not to be used, and the failure is counted. *shifted: the load of others was another one beside
 * each side. */
static tare_status take_pair(struct ab *e, struct pair *p, bool *lost, bool *shifted, tare_error *err)
{
    double others[PAIR_SIDES] = {NAN, NAN};
    *lost = false;
    p->b_first = rng_below(&e->rng, 2);
    p->epoch = (uint32_t)(e->set->n_epochs - 1);
    uint64_t start = now();
    for (int i = 0; i < PAIR_SIDES; i++) {
        int side = p->b_first ^ i;
        struct ab_lane *l = e->plan->lane[side];
        struct ab_layout layout = draw_layout(e);
        struct known_u64 busy = e->plan->retake ? bench_machine.busy() : (struct known_u64){0};
        tare_status s = l->ops->measure(l, e->set->repeats, &layout, &p->side[side], err);
        if (s < 0 && is_interrupted(e)) return s;
        if (s < 0 && ((!e->own_launch && !e->set->elsewhere) || s == TARE_NOMEM))
            return name_side(e, side, err);
        if (s < 0) {
            *lost = true;
            e->set->failed_side[side]++;
            name_side(e, side, err);
            if (err) snprintf(e->out->failure, sizeof e->out->failure, "%s", err->text);
            continue; /* the other side still runs, so that both have seen the same */
        }
        others[side] = others_beside(busy, &p->side[side]);
        uint64_t repeats = e->set->repeats, half = repeats / 2; /* of one run, rounded */
        p->side[side].wall_ns = (p->side[side].wall_ns + half) / repeats;
        p->side[side].cpu_ns = (p->side[side].cpu_ns + half) / repeats;
        p->side[side].others.v /= repeats;
    }
    *shifted = has_shifted(others);
    e->pairs_ns += now() - start;
    e->n_timed++;
    return TARE_OK;
}

/* A failure now and then is counted and told; a subject that fails all the time is no subject. */
static tare_status count_lost(struct ab *e, tare_error *err)
{
    uint64_t all = e->set->failed + e->set->n;
    bool hopeless = !e->set->elsewhere || e->set->failed >= FAILED_MOST;
    if (e->set->n == 0 && hopeless) return error_set(err, TARE_DENIED, "%s", e->out->failure);
    uint64_t share = e->set->elsewhere ? FAILED_REQUESTS : FAILED_SHARE;
    if (e->set->failed < FAILED_MOST || e->set->failed * share < all) return TARE_OK;
    return error_set(err, TARE_DENIED, "%s (%llu of %llu pairs failed)", e->out->failure,
                     (unsigned long long)e->set->failed, (unsigned long long)all);
}

static tare_status keep_pair(struct ab *e, const struct pair *p, tare_error *err)
{
    struct pair_set *set = e->set;
    if (set->n == set->cap) {
        void *grown = vec_grow_(set->at, &set->cap, set->n + 1, sizeof *set->at);
        if (!grown) return error_nomem(err, "%zu pairs", set->n);
        set->at = grown;
    }
    set->at[set->n++] = *p;
    return TARE_OK;
}

/* ---- when to stop ---- */

static void finish_with(struct ab *e, enum ab_stop why)
{
    e->out->stopped = why;
    e->done = true;
}

/* Ask the caller whether the pairs so far are enough; where a launch holds several, not before it asked for. */
static tare_status ask_if_enough(struct ab *e, tare_error *err)
{
    const struct ab_look *l = &e->plan->look;
    if (e->done || e->set->n < e->next_look || (!e->own_launch && e->set->n_epochs < l->least_epochs))
        return TARE_OK;
    struct ab_advice advice = {.next = e->set->n + 1, .launch_share = NAN};
    tare_status s = l->look(l->ctx, e->set, &advice, err);
    e->next_look = advice.next > e->set->n ? advice.next : e->set->n + 1;
    e->launch_share = advice.launch_share;
    if (s == TARE_OK && advice.enough) finish_with(e, AB_STOP_PRECISE);
    return s;
}

static uint64_t mean(uint64_t sum, uint64_t n)
{
    return n ? sum / n : 0;
}

static void check_limits(struct ab *e)
{
    size_t most = e->plan->max_pairs && e->plan->max_pairs < AB_PAIRS_MAX ? e->plan->max_pairs : AB_PAIRS_MAX;
    if (is_interrupted(e))
        finish_with(e, AB_STOP_INTERRUPTED);
    else if (e->set->n >= most)
        finish_with(e, AB_STOP_PAIRS);
    else if (e->set->n >= PAIRS_ANYWAY && left_ns(e) < mean(e->pairs_ns, e->n_timed))
        finish_with(e, AB_STOP_BUDGET);
}

/* Pairs per launch for the narrowest interval in a given time: the root of cost and spread (Kalibera & Jones). */
static uint64_t best_pairs(const struct ab *e, uint64_t launch_ns, uint64_t pair_ns)
{
    double cost = (double)launch_ns / (double)pair_ns, share = e->launch_share;
    if (isnan(share)) share = 1;
    double m = sqrt(cost) / fmax(share, SHARE_LEAST);
    m = fmin(m, fmax(cost * COST_MOST, EPOCH_LEAST)); /* however alike launches look: they are to be many */
    return m < EPOCH_LEAST ? EPOCH_LEAST : (uint64_t)ceil(m);
}

/* All pairs of one launch share its layout; but loading takes time. */
static size_t pairs_in_epoch(struct ab *e)
{
    uint64_t launch = mean(e->launch_ns, e->n_launches), pair = mean(e->pairs_ns, e->n_timed);
    uint64_t done = e->set->n_epochs - 1, wanted = e->plan->look.least_epochs;
    if (pair == 0) pair = 1;
    uint64_t m = best_pairs(e, launch, pair);
    if (done + 1 >= wanted) return m;
    uint64_t left = left_ns(e), to_come = wanted - done - 1; /* launches after this one */
    uint64_t share =
        left > to_come * (launch + pair) ? (left - to_come * (launch + pair)) / (to_come + 1) : 0;
    uint64_t most = share / pair;
    if (most >= 1) return m < most ? m : most;
    e->out->few_launches = true; /* fewer, then, but with pairs in each */
    return EPOCH_LEAST;
}

/* ---- epochs ---- */

/* Whether it is taken again depends on others alone, never on who was faster; the second counts whatever it saw. */
static tare_status one_pair(struct ab *e, bool keep, tare_error *err)
{
    struct pair p = {0};
    bool lost, shifted = false;
    tare_status s = take_pair(e, &p, &lost, &shifted, err);
    if (s == TARE_OK && keep && !lost && shifted) {
        e->set->retaken++;
        p = (struct pair){0};
        s = take_pair(e, &p, &lost, &shifted, err);
    }
    if (s < 0 && is_interrupted(e)) {
        finish_with(e, AB_STOP_INTERRUPTED);
        return TARE_OK;
    }
    if (s == TARE_OK && lost) {
        e->set->failed++;
        return count_lost(e, err);
    }
    if (s == TARE_OK && keep) s = keep_pair(e, &p, err);
    return s;
}

static tare_status measure_epoch(struct ab *e, tare_error *err)
{
    size_t pairs = e->plan->per_launch;
    tare_status s = TARE_OK;
    bool cold = !pairs && !(e->set->elsewhere && e->n_timed); /* a service is not launched anew */
    if (cold) s = one_pair(e, false, err); /* finds cold caches and tells how long a pair takes */
    if (!pairs) pairs = e->own_launch ? SIZE_MAX : pairs_in_epoch(e);
    check_limits(e);
    for (size_t i = 0; s == TARE_OK && i < pairs && !e->done; i++) {
        s = one_pair(e, true, err);
        if (s == TARE_OK && !e->done) check_limits(e);
        if (s == TARE_OK && e->own_launch) s = ask_if_enough(e, err);
        report_progress(e);
    }
    return s;
}

static tare_status one_epoch(struct ab *e, tare_error *err)
{
    /* A launch is worth its time when at least one pair fits behind it. */
    uint64_t least = mean(e->launch_ns, e->n_launches) + 2 * mean(e->pairs_ns, e->n_timed);
    if (e->set->n_epochs > 0 && e->set->n >= PAIRS_ANYWAY && left_ns(e) <= least) {
        finish_with(e, AB_STOP_BUDGET);
        return TARE_OK;
    }
    tare_status s = start_both(e, err);
    if (s == TARE_OK) s = measure_epoch(e, err);
    stop_both(e);
    if (s < 0 && is_interrupted(e)) {
        finish_with(e, AB_STOP_INTERRUPTED);
        return TARE_OK;
    }
    return s == TARE_OK && !e->own_launch ? ask_if_enough(e, err) : s;
}

/* ---- the machine meanwhile ---- */

struct machine_mark {
    struct known_u64 waited_us; /* something waited for a CPU, since boot */
    struct cpu_ticks ticks;
    uint64_t at;
};

static struct machine_mark mark_machine(void)
{
    struct machine_mark m = {.ticks = cpu_ticks_read(""), .at = now()};
    char text[512];
    m.waited_us.known =
        procfs_text("", "/proc/pressure/cpu", text, sizeof text) && procfs_pressure_us(text, &m.waited_us.v);
    return m;
}

static void note_machine(struct pair_set *set, const struct machine_mark *before)
{
    struct machine_mark after = mark_machine();
    double ns = (double)(after.at - before->at);
    if (before->waited_us.known && after.waited_us.known && ns > 0)
        set->pressure = known_f64(fmin(1, (double)(after.waited_us.v - before->waited_us.v) * 1000 / ns));
    set->steal = cpu_steal_share(&after.ticks, &before->ticks);
}

/* The seed decides the order of the sides and the layouts, so that a comparison can be repeated. The time
 * spent and the state of the machine are noted after a failure, too: they tell how far it came. Few
 * launches are a warning, not an error: each launch has a layout of its own, and too few of them may all
 * be lucky ones. */
tare_status ab_run(const struct ab_plan *plan, struct pair_set *set, struct ab_outcome *out, tare_error *err)
{
    struct ab e = {.plan = plan,
                   .set = set,
                   .out = out,
                   .next_look = plan->look.first,
                   .began = now(),
                   .launch_share = NAN};
    struct machine_mark before = mark_machine();
    *out = (struct ab_outcome){0};
    rng_seed(&e.rng, plan->seed);
    e.own_launch = plan->lane[PAIR_A]->own_launch && plan->lane[PAIR_B]->own_launch;
    set->own_launch = e.own_launch;
    set->elsewhere = plan->lane[PAIR_A]->elsewhere || plan->lane[PAIR_B]->elsewhere;
    tare_status s = TARE_OK;
    while (s == TARE_OK && !e.done) s = one_epoch(&e, err);
    note_machine(set, &before);
    out->spent_ns = now() - e.began;
    out->launch_ns = e.launch_ns;
    if (!e.own_launch && set->n_epochs < plan->look.least_epochs) out->few_launches = true;
    return s;
}

void ab_pairs_release(struct pair_set *set)
{
    mem_free(set->at);
    mem_free(set->epochs);
    *set = (struct pair_set){0};
}

void ab_lane_close(struct ab_lane *l)
{
    if (l) l->ops->close(l);
}
