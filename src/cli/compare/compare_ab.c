/* SPDX-License-Identifier: MIT
 * compare_ab.c - `tare compare --ab`: open both sides, measure them in turn case by case, judge the pairs. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "analyze/compare/compare_pairs.h"
#include "cli/compare/compare_args.h"
#include "cli/compare/doctor_aa.h"
#include "cli/shell_words.h"
#include "cli/progress.h"
#include "core/clock.h"
#include "core/fmt.h"
#include "probe/host.h"

/* ---- two lanes in turn ---- */

struct looking {
    const struct ab_trial *t;
    uint64_t began_ns;
    struct interval log; /* of the ratio so far; 0 .. 0: none yet */
};

/* "batch=8: so far +49.0 % (+37.0 .. +61.0 %)". It is shown and stops nothing: only the width does that. */
static void tell_estimate(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    const struct looking *k = ctx;
    const struct bench_progress *to = &k->t->progress;
    struct buf text = BUF_INIT;
    buf_add_str(&text, what ? what : "");
    if (isfinite(k->log.lo) && isfinite(k->log.hi) && k->log.lo < k->log.hi) {
        buf_add_str(&text, ": so far ");
        fmt_change(&text, exp(k->log.value));
        buf_add_str(&text, " (");
        fmt_changes(&text, exp(k->log.lo), exp(k->log.hi), " .. ");
        buf_add_str(&text, ")");
    }
    uint64_t spent = clock_raw_ns() - (k->t->since_ns ? k->t->since_ns : k->began_ns);
    to->report(to->ctx, text.failed ? "" : text.data, spent, spent + (total - done) + k->t->later_ns);
    buf_release(&text);
}

static tare_status ask_for_more(void *ctx, const struct pair_set *set, struct ab_advice *out, tare_error *err)
{
    struct looking *k = ctx;
    uint64_t spent = clock_raw_ns() - k->began_ns;
    double share = spent ? (double)k->t->budget_ns / (double)spent : 1;
    struct compare_stop stop;
    tare_status s = compare_pairs_enough(set, k->t->rule, (uint64_t)((double)set->n * share), &stop, err);
    if (s < 0) return s;
    k->log = stop.log;
    *out = (struct ab_advice){stop.enough, paired_next_look(set->n, k->t->rule->least), stop.launch_share};
    return TARE_OK;
}

tare_status ab_trial_run(const struct ab_trial *t, struct pair_set *set, struct ab_outcome *out,
                         tare_error *err)
{
    struct looking k = {.t = t, .began_ns = clock_raw_ns()};
    struct ab_plan plan = {.lane = {t->lane[PAIR_A], t->lane[PAIR_B]},
                           .name = t->name,
                           .budget_ns = t->budget_ns,
                           .seed = t->seed,
                           .max_pairs = (size_t)t->max_pairs,
                           .look = {ask_for_more, &k, t->rule->least, t->rule->least_epochs},
                           .interrupted = &interrupted,
                           .progress = {t->progress.report ? tell_estimate : NULL, &k}};
    return ab_run(&plan, set, out, err);
}

const char *ab_trial_stop_word(enum ab_stop s)
{
    static const char *const words[] = {"precise", "budget", "pairs", "interrupted"};
    return words[s];
}

uint64_t ab_trial_seed(void)
{
    uint64_t state = clock_unix_ns() ^ (uint64_t)getpid() << 40;
    return rng_splitmix(&state) >> 32;
}

/* ---- the comparison ---- */

struct comparing {
    struct cli *cli;
    const struct compare_args *a;
    struct compare_sides *sides;
    struct comparison *c;
    struct paired_rule rule;
    uint64_t seed;
    struct progress bar;
    uint64_t began_ns;
    size_t n_cases;
};

/* ---- one case ---- */

static const char *unit_of(const struct compare_side *s)
{
    if (s->url) return "requests";
    return s->path ? "samples" : "runs";
}

static tare_status record(struct comparing *k, const char *name, const struct pair_set *set,
                          const struct ab_outcome *out, size_t i)
{
    const struct compare_side *a = &k->sides->side[PAIR_A];
    bool model = a->path != NULL;
    int64_t batch = model ? a->cases.cases.items[i].params.batch : 1;
    if (a->url) batch = (int64_t)k->a->concurrency;
    struct compare_pairs in = {.name = name,
                               .set = set,
                               .stopped = ab_trial_stop_word(out->stopped),
                               .spent_s = (double)out->spent_ns / 1e9,
                               .units = batch > 0 ? (double)batch : 1,
                               .unit = unit_of(a),
                               .few_launches = out->few_launches,
                               .failure = out->failure,
                               .keep_samples = k->a->samples};
    return compare_pairs_add(k->c, &in, &k->rule, &k->cli->error);
}

static tare_status measure_lanes(struct comparing *k, const char *name, struct ab_lane *const *lane, size_t i)
{
    struct pair_set set = {0};
    struct ab_outcome out;
    struct ab_trial trial = {.lane = {lane[PAIR_A], lane[PAIR_B]},
                             .name = name,
                             .budget_ns = (uint64_t)k->a->budget.ns,
                             .seed = k->seed + i,
                             .max_pairs = k->a->max_pairs,
                             .rule = &k->rule,
                             .progress = {progress_time, &k->bar},
                             .later_ns = (k->n_cases - 1 - i) * (uint64_t)k->a->budget.ns,
                             .since_ns = k->began_ns};
    tare_status s = ab_trial_run(&trial, &set, &out, &k->cli->error);
    if (s == TARE_OK) s = record(k, name, &set, &out, i);
    ab_pairs_release(&set);
    return s;
}

static const char *case_of_requests(struct comparing *k)
{
    return arena_printf(&k->sides->arena, "concurrency=%llu", (unsigned long long)k->a->concurrency);
}

static const char *case_name(struct comparing *k, size_t i)
{
    const struct compare_side *a = &k->sides->side[PAIR_A], *b = &k->sides->side[PAIR_B];
    if (a->url) return k->a->concurrency > 1 ? case_of_requests(k) : "requests";
    if (!a->path) return "command";
    const char *x = a->cases.cases.items[i].name, *y = b->cases.cases.items[i].name;
    return strcmp(x, y) == 0 ? x : arena_printf(&k->sides->arena, "%s -> %s", x, y);
}

static tare_status measure_case(struct comparing *k, size_t i)
{
    struct ab_lane *lane[PAIR_SIDES] = {NULL, NULL};
    const char *name = case_name(k, i);
    tare_status s = name ? TARE_OK : error_set(&k->cli->error, TARE_NOMEM, "out of memory for a name");
    for (int side = 0; s == TARE_OK && side < PAIR_SIDES; side++)
        s = compare_side_lane(k->sides, side, i, &lane[side], &k->cli->error);
    if (s == TARE_OK) s = measure_lanes(k, name, lane, i);
    for (int side = 0; side < PAIR_SIDES; side++) ab_lane_close(lane[side]);
    return s;
}

static tare_status measure_all(struct comparing *k)
{
    size_t n = k->sides->side[PAIR_A].path ? k->sides->side[PAIR_A].cases.cases.n : 1;
    struct interrupt was;
    tare_status s = TARE_OK;
    k->n_cases = n;
    k->began_ns = clock_raw_ns();
    interrupt_catch(&was);
    for (size_t i = 0; s == TARE_OK && i < n && !interrupted; i++) s = measure_case(k, i);
    interrupt_restore(&was);
    progress_end(&k->bar);
    return s;
}

/* ---- the document ---- */

static void describe_plan(struct comparing *k)
{
    struct arena *a = &k->c->arena;
    struct run_map *m = &k->c->config;
    run_map_real(a, m, "budget_s", (double)k->a->budget.ns / 1e9);
    run_map_int(a, m, "seed", (int64_t)k->seed);
    run_map_real(a, m, "min_effect", k->rule.min_effect);
    run_map_real(a, m, "detect", k->rule.detect);
    run_map_real(a, m, "alpha", k->rule.alpha);
    run_map_real(a, m, "stop_half_width", paired_width(&k->rule));
    if (k->a->revisions) run_map_text(a, m, "revisions", k->a->revisions);
    if (k->a->build) run_map_text(a, m, "build", k->a->build);
}

static void add_option(struct buf *b, const char *name, const char *value)
{
    if (!value) return;
    buf_printf(b, " --%s ", name);
    words_quote(b, value);
}

static void add_list(struct buf *b, const char *name, const struct opt_list *list)
{
    for (size_t i = 0; i < list->n; i++) add_option(b, name, list->items[i]);
}

/* Headers and queries are left out: they may hold secrets. */
static void tell_asking(struct buf *b, const struct compare_args *a)
{
    const struct asking_args *q = &a->asking;
    add_option(b, "body", q->body);
    add_option(b, "template", q->template);
    add_option(b, "method", q->method);
    add_option(b, "expect-body", q->text);
    add_list(b, "expect-json", &q->json);
    if (q->status) buf_printf(b, " --expect-status %llu", (unsigned long long)q->status);
    if (a->concurrency > 1) buf_printf(b, " --concurrency %llu", (unsigned long long)a->concurrency);
    if (q->connections) buf_printf(b, " --connections %llu", (unsigned long long)q->connections);
    if (q->fresh) buf_add_str(b, " --fresh");
}

/* The command line that measures this again, coin and layouts included. */
static void tell_again(struct comparing *k)
{
    const struct compare_args *a = k->a;
    struct buf b = BUF_INIT;
    buf_printf(&b, "tare compare%s", a->ab ? " --ab" : "");
    add_option(&b, "ab-rev", a->revisions);
    add_option(&b, "build", a->build);
    for (int i = 0; a->ab && i < a->n; i++) {
        const struct compare_side *side = &k->sides->side[i % PAIR_SIDES];
        buf_add_char(&b, ' ');
        words_quote(&b, side->url ? side->name : a->args[i]);
        if (side->url && strcmp(side->url, side->name) != 0) buf_add_str(&b, "?..");
    }
    add_option(&b, "a", a->options[PAIR_A]);
    add_option(&b, "b", a->options[PAIR_B]);
    add_option(&b, "batch", a->common.batch);
    add_option(&b, "seq", a->common.seq);
    add_option(&b, "threads", a->common.threads);
    add_option(&b, "provider", a->common.provider);
    add_option(&b, "io", a->common.io);
    add_option(&b, "inputs", a->common.inputs);
    add_list(&b, "dim", &a->common.dims);
    add_list(&b, "ort", &a->common.runtimes);
    add_list(&b, "session-config", &a->common.session_config);
    add_option(&b, "prepare", a->call.prepare);
    if (a->common.optimization >= 0) buf_printf(&b, " --optimization %d", (int)a->common.optimization);
    buf_printf(&b, "%s%s%s", a->common.no_arena ? " --no-arena" : "",
               a->common.no_pattern ? " --no-memory-pattern" : "", a->common.parallel ? " --parallel" : "");
    buf_printf(&b, "%s%s", a->call.shell ? " --shell" : "",
               a->call.ignore_failure ? " --ignore-failure" : "");
    if (a->call.timeout.ns) buf_printf(&b, " --timeout %.9gs", (double)a->call.timeout.ns / 1e9);
    tell_asking(&b, a);
    if (a->max_pairs) buf_printf(&b, " --max-pairs %llu", (unsigned long long)a->max_pairs);
    buf_printf(&b, " --budget %.9gs --min-effect %.6g --seed %llu", (double)a->budget.ns / 1e9,
               k->rule.min_effect, (unsigned long long)k->seed);
    if (a->revisions) buf_add_str(&b, " --");
    for (int i = 0; a->revisions && i < a->n; i++) {
        buf_add_char(&b, ' ');
        words_quote(&b, a->args[i]);
    }
    k->c->reproduce = b.failed ? NULL : arena_str(&k->c->arena, b.data);
    buf_release(&b);
}

/* What this machine was found to be worth, where that was measured. */
static void tell_selftest(struct comparing *k)
{
    struct selftest s;
    struct buf text = BUF_INIT;
    if (!doctor_aa_recall(k->c->host.fingerprint, &s)) return;
    selftest_sentence(&s, &k->rule, &text);
    if (!text.failed)
        comparison_note(k->c, NULL, "machine.selftest", selftest_alarming(&s, &k->rule) ? "warn" : "info",
                        "self-test of this machine, %s: %s", s.measured, text.data);
    buf_release(&text);
}

static tare_status describe(struct comparing *k)
{
    struct run host = {0}; /* host_read() fills a run: take what it found over, arena and all */
    host.arena = k->c->arena;
    tare_status s = host_read(&host, "", &k->cli->error);
    k->c->arena = host.arena;
    k->c->host = host.host;
    compare_side_describe(&k->sides->side[PAIR_A], k->c, &k->c->base);
    compare_side_describe(&k->sides->side[PAIR_B], k->c, &k->c->new_);
    describe_plan(k);
    tell_again(k);
    tell_selftest(k);
    return s;
}

tare_status compare_ab_measure(struct cli *cli, const struct compare_args *a, struct compare_sides *sides,
                               struct comparison *c)
{
    struct comparing k = {.cli = cli,
                          .a = a,
                          .sides = sides,
                          .c = c,
                          .rule = PAIRED_RULE_INIT,
                          .seed = a->seed ? a->seed : ab_trial_seed(),
                          .bar = PROGRESS_INIT(cli)};
    if (a->min_effect >= 0) k.rule.min_effect = a->min_effect;
    if (k.rule.detect < 5 * k.rule.min_effect) k.rule.detect = 5 * k.rule.min_effect;
    tare_status s = describe(&k);
    if (s == TARE_OK) s = measure_all(&k);
    return s == TARE_OK ? compare_finish(c, k.rule.alpha, &cli->error) : s;
}

static int compare_opened(struct cli *cli, const struct compare_args *a, struct compare_sides *sides)
{
    struct comparison c;
    if (comparison_init(&c, "interleaved", &cli->error) < 0) return cli_fail(cli);
    tare_status s = compare_ab_measure(cli, a, sides, &c);
    int rc = s == TARE_OK ? compare_answer(cli, a, &c, NULL) : cli_fail(cli);
    comparison_release(&c);
    return rc;
}

int compare_ab(struct cli *cli, const struct compare_args *a)
{
    struct compare_sides sides = {.arena = ARENA_INIT};
    struct compare_trees trees = {.root = ""};
    struct interrupt was;
    int rc = 0;
    if (!a->no_save && (rc = output_dir_check(cli, &a->history))) return rc; /* before minutes of measuring */
    if (a->revisions) interrupt_catch(&was); /* whatever comes, the folders are removed */
    if (a->revisions && compare_trees_make(cli, a, &trees) < 0) rc = cli_fail(cli);
    for (int i = 0; a->revisions && i < PAIR_SIDES; i++) {
        sides.side[i].dir = trees.path[i];
        sides.side[i].name = trees.revision[i];
    }
    if (!rc) rc = compare_sides_read(cli, a, &sides);
    if (!rc) rc = compare_opened(cli, a, &sides);
    compare_sides_release(&sides);
    compare_trees_remove(&trees);
    if (a->revisions) interrupt_restore(&was);
    return rc;
}
